/* bytes_box.c - read a box of an array in a file, with any order of its axes.
 *
 * Parts of the box that are close to each other in the file are read at once, with what
 * is between them, so that there are few calls.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/array_impl.h"

#include <stdlib.h>

enum { PIECE = 256 << 10 }; /* bytes read at once, unless they are contiguous */

/* The axes of a box, the slowest in the file first. */
struct box {
    struct dnn_bytes *file;
    int ndim;
    size_t size; /* of an element */
    int64_t extent[DNN_MAX_DIMS], from[DNN_MAX_DIMS], to[DNN_MAX_DIMS]; /* strides */
    char *buffer; /* PIECE bytes */
};

/* Bytes from the first to the last element of axes d and faster. */
static int64_t span(const struct box *b, int d)
{
    int64_t bytes = (int64_t)b->size;

    for (; d < b->ndim; d++)
        bytes += (b->extent[d] - 1) * b->from[d];
    return bytes;
}

/* Whether axes d and faster are dense in the file, and in the same order in memory. */
static bool is_dense(const struct box *b, int d)
{
    int64_t step = (int64_t)b->size;

    for (int i = b->ndim - 1; i >= d; i--) {
        if (b->from[i] != step || b->to[i] != step) return false;
        step *= b->extent[i];
    }
    return true;
}

static int read_axes(const struct box *b, int d, int64_t at, char *to,
                     struct dnn_err *err)
{
    int64_t bytes = span(b, d);

    if (is_dense(b, d)) return dnn_bytes_read(b->file, at, to, (size_t)bytes, err);
    if (bytes <= PIECE) {
        DNN_TRY(dnn_bytes_read(b->file, at, b->buffer, (size_t)bytes, err));
        dnn_box_copy(b->ndim - d, b->extent + d, b->size, b->buffer, b->from + d, to,
                     b->to + d);
        return 0;
    }
    for (int64_t i = 0; i < b->extent[d]; i++)
        DNN_TRY(read_axes(b, d + 1, at + i * b->from[d], to + i * b->to[d], err));
    return 0;
}

int dnn_bytes_box(struct dnn_bytes *file, int64_t at, size_t size, int ndim,
                  const int64_t *extent, const int64_t *stride, void *to,
                  struct dnn_err *err)
{
    struct box b = {.file = file, .size = size};
    int64_t dense[DNN_MAX_DIMS];

    dnn_box_strides(ndim, extent, size, dense);
    for (int d = 0; d < ndim; d++) {
        int k = b.ndim;

        if (extent[d] == 1) continue;
        for (; k > 0 && b.from[k - 1] < stride[d]; k--) {
            b.extent[k] = b.extent[k - 1];
            b.from[k] = b.from[k - 1];
            b.to[k] = b.to[k - 1];
        }
        b.extent[k] = extent[d];
        b.from[k] = stride[d];
        b.to[k] = dense[d];
        b.ndim++;
    }
    b.buffer = malloc(PIECE);
    if (b.buffer == NULL)
        return dnn_fail(err, DNN_ENOMEM, "not enough memory to read a part of a file");
    int rc = read_axes(&b, 0, at, to, err);
    free(b.buffer);
    return rc;
}
