/* picture.h - pictures as files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TELEMETRY_PICTURE_H
#define DNN_TELEMETRY_PICTURE_H

#include "base/text.h"

/* RGB of 8 bits as the bytes of a PNG file; what stands in the message.  DNN_ECONFIG
 * if this was built without libpng. */
int dnn_png_encode(const char *what, int width, int height, const unsigned char *rgb,
                   struct dnn_buf *out, struct dnn_err *err);
/* The same to a file, whole or not at all. */
int dnn_png_save(const char *path, int width, int height, const unsigned char *rgb,
                 struct dnn_err *err);

#endif
