/* direct.c - read rows and boxes by pread() directly into the caller's memory.
 *
 * For each request ADIOS2 searches all blocks of an array and copies the data; for many
 * small blocks this takes longer than reading.  If dnn.idx has the offsets of the
 * blocks, and they are not compressed, both are avoided.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "bp/bp_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    PIECE = 4 << 20,        /* bytes read by one pread()                        */
    MIN_PARALLEL = 2 << 20, /* fewer bytes in total are read by one thread      */
    MAX_THREADS = 64
};

struct piece {
    uint64_t file, at;
    size_t bytes;
    char *to;
};

struct bp_direct {
    struct bp_map map;
    int *fd;             /* owned; one per data file, -1: not open */
    struct piece *piece; /* owned; requested                       */
    size_t npieces, cap;
    size_t bytes;        /* of all pieces                          */
    _Atomic size_t next; /* the next piece to read                 */
};

void dnn_bp_direct_open(struct dnn_bp *bp, const char *map, size_t map_len,
                        size_t index_len)
{
    struct bp_direct *d = dnn_alloc(sizeof *d);

    if (dnn_bp_map_read(bp->path, map, map_len, &d->map, NULL) < 0 ||
        d->map.steps != 1) {
        dnn_bp_map_free(&d->map);
        dnn_free(d);
        return;
    }
    d->fd = dnn_alloc(d->map.nfiles * sizeof *d->fd);
    for (uint64_t i = 0; i < d->map.nfiles; i++)
        d->fd[i] = -1;
    bp->direct = d;
    dnn_bp_index_use(bp, index_len);
}

void dnn_bp_direct_close(struct dnn_bp *bp)
{
    struct bp_direct *d = bp->direct;

    if (d == NULL) return;
    for (uint64_t i = 0; i < d->map.nfiles; i++)
        if (d->fd[i] >= 0) close(d->fd[i]);
    dnn_free(d->fd);
    dnn_free(d->piece);
    dnn_bp_map_free(&d->map);
    dnn_free(d);
    bp->direct = NULL;
}

static bool open_file(struct dnn_bp *bp, uint64_t file)
{
    struct bp_direct *d = bp->direct;
    char name[32];

    if (d->fd[file] >= 0) return true;
    snprintf(name, sizeof name, "data.%llu", (unsigned long long)file);
    char *full = dnn_bp_file_name(bp->path, name);
    d->fd[file] = open(full, O_RDONLY | O_CLOEXEC);
    dnn_free(full);
    return d->fd[file] >= 0;
}

/* The block that contains a row, or NULL. */
static const struct bp_block *find(const struct bp_var *var, int64_t row)
{
    size_t low = 0, high = var->nblocks;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (var->block[mid].first <= row)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == 0) return NULL;
    const struct bp_block *b = &var->block[low - 1];
    return row - b->first < b->rows ? b : NULL;
}

static void add(struct bp_direct *d, uint64_t file, uint64_t at, size_t bytes, char *to)
{
    struct piece *last = d->npieces > 0 ? &d->piece[d->npieces - 1] : NULL;

    d->bytes += bytes;
    if (last != NULL && last->file == file && last->at + last->bytes == at &&
        last->to + last->bytes == to && last->bytes + bytes <= PIECE) {
        last->bytes += bytes;
        return;
    }
    while (bytes > 0) {
        size_t n = bytes < PIECE ? bytes : PIECE;

        d->piece = dnn_grow(d->piece, &d->cap, d->npieces + 1, sizeof *d->piece);
        d->piece[d->npieces++] = (struct piece){file, at, n, to};
        at += n;
        to += n;
        bytes -= n;
    }
}

/* The part of a row of axis 0 that is read: runs of contiguous bytes. */
struct part {
    size_t row, run; /* bytes of a row in the file, and of a run */
    int naxes;       /* the axes over which runs are repeated    */
    int64_t start;   /* of the first run in a row, in bytes      */
    int64_t extent[DNN_MAX_DIMS], stride[DNN_MAX_DIMS];
    size_t bytes; /* of all runs of a row */
};

static struct part part_of(const struct bp_var *var, const int64_t *start,
                           const int64_t *extent)
{
    const struct dnn_shape *shape = &var->pub.shape;
    struct part p = {.row = (size_t)var->row_bytes};
    int64_t step = (int64_t)dnn_dtype_size(var->pub.type);
    int d = shape->ndim - 1;

    for (; d > 0 && extent[d] == shape->dim[d]; d--)
        step *= shape->dim[d];
    if (d > 0) p.start = start[d] * step;
    p.run = (size_t)(d > 0 ? step * extent[d] : step);
    p.bytes = p.run;
    for (int k = d - 1; k > 0; k--) {
        step *= shape->dim[k + 1];
        p.start += start[k] * step;
        p.extent[k - 1] = extent[k];
        p.stride[k - 1] = step;
        p.bytes *= (size_t)extent[k];
        p.naxes++;
    }
    return p;
}

/* Add the runs of a row that begins at this offset of a file. */
static void add_row(struct bp_direct *d, const struct part *p, uint64_t file,
                    uint64_t at, char *to)
{
    int64_t index[DNN_MAX_DIMS] = {0};

    at += (uint64_t)p->start;
    for (int k = 0; k >= 0; to += p->run) {
        add(d, file, at, p->run, to);
        for (k = p->naxes - 1; k >= 0; k--) {
            at += (uint64_t)p->stride[k];
            if (++index[k] < p->extent[k]) break;
            at -= (uint64_t)(p->stride[k] * index[k]);
            index[k] = 0;
        }
    }
}

/* Request rows of one block; false if its position is not valid. */
static bool request_block(struct dnn_bp *bp, const struct part *p,
                          const struct bp_block *b, int64_t skip, int64_t rows,
                          char *to)
{
    struct bp_direct *d = bp->direct;
    uint64_t start, bytes, block_bytes;

    if (b->writer >= d->map.nwriters || b->flush > d->map.nflushes ||
        __builtin_mul_overflow((uint64_t)b->rows, (uint64_t)p->row, &block_bytes))
        return false;
    dnn_bp_map_flush(&d->map, b->writer, b->flush, &start, &bytes);
    uint64_t file = dnn_bp_map_file(&d->map, b->writer);
    if (block_bytes > bytes || b->offset > bytes - block_bytes || !open_file(bp, file))
        return false;
    start += b->offset + (uint64_t)skip * p->row;
    if (p->bytes == p->row) {
        add(d, file, start, (size_t)rows * p->row, to);
        return true;
    }
    for (int64_t i = 0; i < rows; i++, start += p->row, to += p->bytes)
        add_row(d, p, file, start, to);
    return true;
}

bool dnn_bp_direct_request(struct dnn_bp *bp, struct bp_var *var, const int64_t *start,
                           const int64_t *extent, void *to)
{
    int64_t first = start[0], end = first + extent[0];

    if (bp->direct == NULL || var->block == NULL) return false;
    for (int64_t row = first; row < end;) { /* first only a check */
        const struct bp_block *b = find(var, row);

        if (b == NULL || b->rows <= 0) return false;
        row = b->first + b->rows;
    }
    struct part p = part_of(var, start, extent);
    for (int64_t row = first; row < end;) {
        const struct bp_block *b = find(var, row);
        int64_t skip = row - b->first, n = b->rows - skip;

        if (n > end - row) n = end - row;
        if (!request_block(bp, &p, b, skip, n,
                           (char *)to + (size_t)(row - first) * p.bytes))
            return false; /* rows requested before are read twice, to the same memory */
        row += n;
    }
    return true;
}

/* ---- fetching ---- */

struct worker {
    struct dnn_bp *bp;
    struct dnn_err err;
    int rc;
};

static int read_piece(struct dnn_bp *bp, const struct piece *p, struct dnn_err *err)
{
    for (size_t got = 0; got < p->bytes;) {
        ssize_t n = pread(bp->direct->fd[p->file], p->to + got, p->bytes - got,
                          (off_t)(p->at + got));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return dnn_fail(err, DNN_EIO, "%s/data.%llu: %s", bp->path,
                            (unsigned long long)p->file, strerror(errno));
        if (n == 0)
            return dnn_fail(err, DNN_EDATA, "%s/data.%llu: truncated before byte %llu",
                            bp->path, (unsigned long long)p->file,
                            (unsigned long long)(p->at + p->bytes));
        got += (size_t)n;
    }
    return 0;
}

static void *read_pieces(void *arg)
{
    struct worker *w = arg;
    struct bp_direct *d = w->bp->direct;

    for (;;) {
        size_t i = atomic_fetch_add(&d->next, 1);

        if (i >= d->npieces || w->rc < 0) return NULL;
        w->rc = read_piece(w->bp, &d->piece[i], &w->err);
    }
}

int dnn_bp_direct_fetch(struct dnn_bp *bp, struct dnn_err *err)
{
    struct bp_direct *d = bp->direct;
    struct worker w[MAX_THREADS];
    pthread_t thread[MAX_THREADS];
    int n = bp->threads < MAX_THREADS ? bp->threads : MAX_THREADS, started = 1;

    if (d == NULL || d->npieces == 0) return 0;
    if ((size_t)n > d->npieces) n = (int)d->npieces;
    if (d->bytes < MIN_PARALLEL) n = 1;
    atomic_store(&d->next, 0);
    for (int i = 0; i < n; i++) {
        w[i].bp = bp;
        w[i].rc = 0;
        w[i].err.text[0] = '\0';
    }
    /* If a thread cannot be created, the others read its pieces. */
    while (started < n &&
           pthread_create(&thread[started], NULL, read_pieces, &w[started]) == 0)
        started++;
    read_pieces(&w[0]);
    for (int i = 1; i < started; i++)
        pthread_join(thread[i], NULL);
    d->npieces = 0;
    d->bytes = 0;
    for (int i = 0; i < started; i++)
        if (w[i].rc < 0) {
            if (err != NULL) *err = w[i].err;
            return w[i].rc;
        }
    return 0;
}
