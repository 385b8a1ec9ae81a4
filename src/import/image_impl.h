/* image_impl.h - what the readers of images and volumes share.
 *
 * What they make of a file, everywhere the same:
 *
 * - Spatial axes first, channels last: HxWxC, volumes DxHxWxC; grey images have C = 1.
 * - Numbers are the file's own: no gamma, no colour profile, no turning by what a
 *   camera wrote about how it was held.  Grey of 1, 2 or 4 bits is stretched to 0..255.
 * - Transparency is kept as the last channel (C = 2 or 4); grey drops it.
 * - Grey of colours is ITU-R 601 luma, (19595 R + 38470 G + 7471 B + 32768) / 65536.
 * - Palettes become colours, except in masks: there the indices are the class numbers,
 *   as are the unstretched values of grey of few bits.
 * - A target whose kind is not said is a mask if it has one channel of integers (or a
 *   palette) and its format keeps values (PNG, TIFF, NIfTI), else an image.
 * - A mask of real numbers must hold whole ones; it becomes i32.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_IMAGE_IMPL_H
#define DNN_IMPORT_IMAGE_IMPL_H

#include "import/import_impl.h"

/* One image to be looked at or decoded. */
struct dnn_image_in {
    const char *what;  /* its file, also for messages                            */
    const void *bytes; /* its content, if the kind wants it                      */
    size_t n;          /* how many they are                                      */
    const struct dnn_import *how;
    bool gray, mask;
};

/* What is known of it without decoding. */
struct dnn_picture {
    enum dnn_dtype type;
    struct dnn_shape shape; /* as it will be decoded                                  */
    bool classes;           /* its values may be class numbers                        */
    double affine[12];      /* only kinds that have one: three rows of four           */
};

struct dnn_image_kind {
    const char *name;
    bool in_memory; /* wants the bytes; else it opens the file itself                 */
    bool affine;    /* there is a matrix for each image                               */
    int (*look)(const struct dnn_image_in *in, struct dnn_picture *out,
                struct dnn_err *err);
    int (*read)(const struct dnn_image_in *in, struct dnn_picture *about,
                struct dnn_array *out, struct dnn_err *err);
};

/* One file of the kind as a source of one sample: struct dnn_importer's open. */
int dnn_image_open(const struct dnn_image_kind *kind, const char *path,
                   const struct dnn_import *how, const struct dnn_import_side *side,
                   struct dnn_source **out, struct dnn_err *err);

/* A PNG or JPEG, by content, that is in memory; what stands in messages. */
int dnn_image_decode(const void *bytes, size_t n, const char *what,
                     const struct dnn_import *how, bool gray, struct dnn_array *out,
                     struct dnn_err *err);

/* NULL when the build lacks the library. */
extern const struct dnn_image_kind *const dnn_image_png, *const dnn_image_jpeg;
bool dnn_image_is_png(const unsigned char *head, size_t n);
bool dnn_image_is_jpeg(const unsigned char *head, size_t n);

/* Colours (C >= 2, integers of 8 or 16 bits or reals) become grey, in place. */
int dnn_image_gray(const char *what, struct dnn_array *array, struct dnn_err *err);

/* array is u8 with C channels; its last part, one byte per point, holds indices.  They
 * become colours of C channels, in place. */
int dnn_image_colours(const char *what, struct dnn_array *array,
                      const unsigned char (*colour)[4], int ncolours,
                      struct dnn_err *err);

/* Bytes that the header asks for against those the file has: ratio is what a byte can
 * become at most. */
int dnn_image_holds(const char *what, const struct dnn_picture *about, uint64_t bytes,
                    uint64_t ratio, struct dnn_err *err);

#endif
