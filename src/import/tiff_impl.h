/* tiff_impl.h - interface between tiff.c and tiff_page.c.
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
    const char *what;  /* the file                                                   */
    uint64_t bytes;    /* of the file                                                */
    int page;          /* the current page, from 0; -1: none yet                     */
    char message[256]; /* first error message of libtiff                             */
};

struct dnn_tiff_page {
    uint32_t width, height;
    int bits, samples, photometric, compression, planar;
    enum dnn_dtype type; /* of a value in memory                                     */
};

/* DNN_EDATA with the message of libtiff. */
int dnn_tiff_fail(const struct dnn_tiff *t, struct dnn_err *err);

/* Read the properties of the current page; unsupported pages are an error. */
int dnn_tiff_inspect(struct dnn_tiff *t, struct dnn_tiff_page *p, struct dnn_err *err);

/* Read the pixels of the current page (bytes in total), channels last. */
int dnn_tiff_page(struct dnn_tiff *t, const struct dnn_image_in *in, void *to,
                  size_t bytes, struct dnn_err *err);

#endif
