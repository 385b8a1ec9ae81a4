/* image_impl.h - interface of the readers of images and volumes.
 *
 * All readers follow these rules:
 *
 * - Spatial axes first, channels last: HxWxC, volumes DxHxWxC; grayscale images have
 *   C = 1.
 * - Values are those of the file: gamma, color profiles and the EXIF orientation are
 * not applied.  Grayscale of 1, 2 or 4 bits is scaled to 0..255.
 * - Alpha is the last channel (C = 2 or 4); conversion to grayscale drops it.
 * - Grayscale is ITU-R 601 luma, (19595 R + 38470 G + 7471 B + 32768) / 65536.
 * - Palette images become color images, except masks: their class numbers are the
 * palette indices, or the unscaled values of grayscale of less than 8 bits.
 * - A target without a given kind is a mask if it has one channel of integers (or a
 *   palette) and its format is lossless (PNG, TIFF, NIfTI), else an image.
 * - A mask of floating-point numbers must contain integers only; it becomes i32.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_IMAGE_IMPL_H
#define DNN_IMPORT_IMAGE_IMPL_H

#include "import/import_impl.h"

/* One image to be inspected or decoded. */
struct dnn_image_in {
    const char *what;  /* path of the file, also for messages                    */
    const void *bytes; /* content, if the kind requires it                       */
    size_t n;          /* number of bytes                                        */
    const struct dnn_import *how;
    bool gray, mask;
};

/* Properties of an image, known without decoding it. */
struct dnn_picture {
    enum dnn_dtype type;
    struct dnn_shape shape; /* after decoding                                         */
    bool classes;           /* values may be class numbers                            */
    double affine[12];      /* if the kind has one: 3 x 4, row by row                 */
};

struct dnn_image_kind {
    const char *name;
    bool in_memory; /* requires bytes; else it opens the file itself                  */
    bool affine;    /* each image has an affine matrix                                */
    int (*inspect)(const struct dnn_image_in *in, struct dnn_picture *out,
                   struct dnn_err *err);
    int (*read)(const struct dnn_image_in *in, struct dnn_picture *about,
                struct dnn_array *out, struct dnn_err *err);
    /* Read a box of an image of this shape; NULL: not possible.  DNN_SOURCE_WHOLE: not
     * of this file. */
    int (*read_box)(const struct dnn_image_in *in, const struct dnn_shape *shape,
                    const int64_t *start, const int64_t *extent, struct dnn_array *out,
                    struct dnn_err *err);
};

/* One file of the kind as a source of one sample: struct dnn_importer's open. */
int dnn_image_open(const struct dnn_image_kind *kind, const char *path,
                   const struct dnn_import *how, const struct dnn_import_side *side,
                   struct dnn_source **out, struct dnn_err *err);

/* Decode a PNG or JPEG image in memory (detected by content), which what names. */
int dnn_image_decode(const void *bytes, size_t n, const char *what,
                     const struct dnn_import *how, bool gray, struct dnn_array *out,
                     struct dnn_err *err);

/* NULL if this build has no such library. */
extern const struct dnn_image_kind *const dnn_image_png, *const dnn_image_jpeg;
bool dnn_image_is_png(const unsigned char *head, size_t n);
bool dnn_image_is_jpeg(const unsigned char *head, size_t n);

/* Convert to grayscale in place: C >= 2, u8, u16, f32 or f64. */
int dnn_image_gray(const char *what, struct dnn_array *array, struct dnn_err *err);

/* Replace palette indices by colors, in place.  array is u8 with C channels; its last
 * bytes, one per pixel, are the indices. */
int dnn_image_colours(const char *what, struct dnn_array *array,
                      const unsigned char (*colour)[4], int ncolours,
                      struct dnn_err *err);

/* Check that an image of this size can be stored in a file of so many bytes; ratio is
 * the maximum number of decoded bytes per byte of the file. */
int dnn_image_check_size(const char *what, const struct dnn_picture *about,
                         uint64_t bytes, uint64_t ratio, struct dnn_err *err);

#endif
