/* collect.c - gather of any number of bytes per rank on rank 0.
 *
 * Each rank in turn broadcasts its bytes: simple, with the deadlines of a broadcast,
 * and rarely called.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "comm/collect.h"

#include "base/mem.h"

#include <string.h>

enum { PIECE = 16 << 20 };

struct buffer {
    char *data;
    size_t len, cap;
};

static void add(struct buffer *h, const void *bytes, size_t n)
{
    h->data = dnn_grow(h->data, &h->cap, h->len + n, 1);
    if (n > 0) memcpy(h->data + h->len, bytes, n);
    h->len += n;
}

static int collect_from(struct dnn_comm *comm, const char *what, int root,
                        const char *mine, size_t bytes, char *piece, struct buffer *all,
                        struct dnn_err *err)
{
    int rank = dnn_comm_rank(comm);
    uint64_t left = bytes;

    DNN_TRY(dnn_comm_bcast(comm, what, &left, sizeof left, root, err));
    for (uint64_t at = 0; left > 0;) {
        size_t n = left < PIECE ? (size_t)left : PIECE;

        if (rank == root) memcpy(piece, mine + at, n);
        DNN_TRY(dnn_comm_bcast(comm, what, piece, n, root, err));
        if (rank == 0) add(all, piece, n);
        at += n;
        left -= n;
    }
    return 0;
}

int dnn_comm_collect(struct dnn_comm *comm, const char *what, const void *mine,
                     size_t bytes, void **out, size_t *total, struct dnn_err *err)
{
    struct buffer all = {0};
    int rc = 0, size = comm == NULL ? 1 : dnn_comm_size(comm);

    *out = NULL;
    *total = 0;
    all.data = dnn_grow(NULL, &all.cap, 1, 1); /* not NULL on rank 0 */
    if (size == 1) {
        add(&all, mine, bytes);
    } else {
        char *piece = dnn_alloc(PIECE);

        for (int r = 0; rc == 0 && r < size; r++)
            rc = collect_from(comm, what, r, mine, bytes, piece, &all, err);
        dnn_free(piece);
    }
    if (rc < 0 || (comm != NULL && dnn_comm_rank(comm) != 0)) {
        dnn_free(all.data);
        return rc;
    }
    *out = all.data;
    *total = all.len;
    return 0;
}
