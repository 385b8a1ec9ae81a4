/* tiff_impl.h - a TIFF file being read, between tiff.c and tiff_page.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_TIFF_IMPL_H
#define DNN_IMPORT_TIFF_IMPL_H

#include "import/image_impl.h"

#include <tiffio.h>

struct dnn_tiff {
    TIFF *tiff;
    const char *what; /* the file                                                    */
    uint64_t bytes;   /* of it                                                       */
    int page;         /* the current one, from 0; -1: none yet                       */
    char said[256];   /* libtiff's first words about what is wrong                   */
};

struct dnn_tiff_page {
    uint32_t width, height;
    int bits, samples, photometric, compression, planar;
    enum dnn_dtype type; /* of a number in memory                                    */
};

/* DNN_EDATA with libtiff's words. */
int dnn_tiff_fail(const struct dnn_tiff *t, struct dnn_err *err);

/* What the current page is; one that cannot be read is refused. */
int dnn_tiff_inspect(struct dnn_tiff *t, struct dnn_tiff_page *p, struct dnn_err *err);

/* The points of the current page, bytes in all, channels last. */
int dnn_tiff_page(struct dnn_tiff *t, const struct dnn_image_in *in, void *to,
                  size_t bytes, struct dnn_err *err);

#endif
