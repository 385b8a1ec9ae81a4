/* png.h - RGB images as PNG files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PICTURE_PNG_H
#define DNN_PICTURE_PNG_H

#include "base/text.h"

/* Encode an 8-bit RGB image; what is its name in messages.  DNN_ECONFIG if built
 * without libpng. */
int dnn_png_encode(const char *what, int width, int height, const unsigned char *rgb,
                   struct dnn_buf *out, struct dnn_err *err);
/* The same into a file, which is replaced atomically. */
int dnn_png_save(const char *path, int width, int height, const unsigned char *rgb,
                 struct dnn_err *err);

#endif
