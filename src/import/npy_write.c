/* npy_write.c - headers of NPY files, version 1.0.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/npy_write.h"

#include <inttypes.h>

static const char *name_of(enum dnn_dtype type)
{
    switch (type) {
    case DNN_U8:
        return "|u1";
    case DNN_U16:
        return "<u2";
    case DNN_I32:
        return "<i4";
    case DNN_F16:
        return "<f2";
    case DNN_F64:
        return "<f8";
    default:
        return "<f4";
    }
}

void dnn_npy_make(enum dnn_dtype type, const struct dnn_shape *shape,
                  struct dnn_buf *out)
{
    enum { FIXED = 10, ALIGN = 64 }; /* bytes before the text; of the whole header */
    struct dnn_buf text = {0};

    dnn_buf_add(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                name_of(type));
    for (int i = 0; i < shape->ndim; i++)
        dnn_buf_add(&text, "%" PRId64 "%s", shape->dim[i],
                    shape->ndim == 1      ? ","
                    : i + 1 < shape->ndim ? ", "
                                          : "");
    dnn_buf_add(&text, "), }");
    size_t len = (FIXED + text.len + 1 + ALIGN - 1) / ALIGN * ALIGN - FIXED;
    dnn_buf_add(&text, "%*s\n", (int)(len - text.len - 1), "");
    const unsigned char length[] = {(unsigned char)len, (unsigned char)(len >> 8)};
    dnn_buf_bytes(out, "\x93NUMPY\x01\x00", FIXED - sizeof length);
    dnn_buf_bytes(out, length, sizeof length);
    dnn_buf_bytes(out, text.text, text.len);
    dnn_buf_free(&text);
}
