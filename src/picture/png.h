/* png.h - images as PNG files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PICTURE_PNG_H
#define DNN_PICTURE_PNG_H

#include "base/text.h"

enum dnn_png_kind {
    DNN_PNG_RGB,    /* three bytes per pixel                                         */
    DNN_PNG_GREY,   /* one                                                           */
    DNN_PNG_CLASSES /* one: the class; the palette has the colours of classes        */
};

/* Encode an 8-bit image; what is its name in messages.  DNN_ECONFIG if built without
 * libpng. */
int dnn_png_encode(const char *what, enum dnn_png_kind kind, int width, int height,
                   const unsigned char *bytes, struct dnn_buf *out,
                   struct dnn_err *err);
/* The same into a file, which is replaced atomically. */
int dnn_png_save(const char *path, enum dnn_png_kind kind, int width, int height,
                 const unsigned char *bytes, struct dnn_err *err);

#endif
