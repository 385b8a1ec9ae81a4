/* png.h - RGB images as PNG files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_PNG_H
#define DNN_BASE_PNG_H

#include "base/text.h"

/* Encode an 8-bit RGB image; what: its name in messages.  DNN_ECONFIG without libpng.
 */
int dnn_png_encode(const char *what, int width, int height, const unsigned char *rgb,
                   struct dnn_buf *out, struct dnn_err *err);
/* The same to a file, complete or not at all. */
int dnn_png_save(const char *path, int width, int height, const unsigned char *rgb,
                 struct dnn_err *err);

#endif
