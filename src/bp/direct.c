/* direct.c - rows read by pread(), straight to where they are wanted.
 *
 * ADIOS2 goes through all blocks of an array for each request and copies what it read;
 * for many small blocks that costs more than reading.  Where dnn.idx tells where the
 * blocks are, and they are not compressed, neither is needed.
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

enum { PART = 4 << 20, WORTH = 2 << 20, MOST_THREADS = 64 };

struct part {
    uint64_t file, at;
    size_t bytes;
    char *to;
};

struct bp_direct {
    struct bp_map map;
    int *fd;           /* owned; one per data file, -1: not open */
    struct part *part; /* owned; asked for                       */
    size_t nparts, cap;
    size_t bytes;        /* of all parts                           */
    _Atomic size_t next; /* which a thread takes                   */
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
    dnn_free(d->part);
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

/* The block that has a row: the last whose first row is not after it. */
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
    struct part *last = d->nparts > 0 ? &d->part[d->nparts - 1] : NULL;

    d->bytes += bytes;
    if (last != NULL && last->file == file && last->at + last->bytes == at &&
        last->to + last->bytes == to && last->bytes + bytes <= PART) {
        last->bytes += bytes;
        return;
    }
    while (bytes > 0) {
        size_t n = bytes < PART ? bytes : PART;

        d->part = dnn_grow(d->part, &d->cap, d->nparts + 1, sizeof *d->part);
        d->part[d->nparts++] = (struct part){file, at, n, to};
        at += n;
        to += n;
        bytes -= n;
    }
}

/* Of one block; false if it is not where it could be. */
static bool ask_block(struct dnn_bp *bp, const struct bp_var *var,
                      const struct bp_block *b, int64_t skip, int64_t rows, char *to)
{
    struct bp_direct *d = bp->direct;
    uint64_t place, bytes, whole;
    uint64_t row_bytes = (uint64_t)var->row_bytes;

    if (b->writer >= d->map.nwriters || b->portion > d->map.nbuckets ||
        __builtin_mul_overflow((uint64_t)b->rows, row_bytes, &whole))
        return false;
    dnn_bp_map_portion(&d->map, b->writer, b->portion, &place, &bytes);
    uint64_t file = dnn_bp_map_file(&d->map, b->writer);
    if (whole > bytes || b->offset > bytes - whole || !open_file(bp, file))
        return false;
    add(d, file, place + b->offset + (uint64_t)skip * row_bytes,
        (size_t)((uint64_t)rows * row_bytes), to);
    return true;
}

bool dnn_bp_direct_ask(struct dnn_bp *bp, struct bp_var *var, int64_t first,
                       int64_t rows, void *to)
{
    struct bp_direct *d = bp->direct;

    if (d == NULL || var->block == NULL) return false;
    for (int64_t row = first; row < first + rows;) { /* first whether, then what */
        const struct bp_block *b = find(var, row);

        if (b == NULL || b->rows <= 0) return false;
        row = b->first + b->rows;
    }
    for (int64_t row = first; row < first + rows;) {
        const struct bp_block *b = find(var, row);
        int64_t skip = row - b->first, n = b->rows - skip;

        if (n > first + rows - row) n = first + rows - row;
        if (!ask_block(bp, var, b, skip, n,
                       (char *)to + (row - first) * var->row_bytes))
            return false; /* what was asked for already is read twice, to one place */
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

static int read_part(struct dnn_bp *bp, const struct part *p, struct dnn_err *err)
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

static void *work(void *arg)
{
    struct worker *w = arg;
    struct bp_direct *d = w->bp->direct;

    for (;;) {
        size_t i = atomic_fetch_add(&d->next, 1);

        if (i >= d->nparts || w->rc < 0) return NULL;
        w->rc = read_part(w->bp, &d->part[i], &w->err);
    }
}

int dnn_bp_direct_fetch(struct dnn_bp *bp, struct dnn_err *err)
{
    struct bp_direct *d = bp->direct;
    struct worker w[MOST_THREADS];
    pthread_t thread[MOST_THREADS];
    int n = bp->threads < MOST_THREADS ? bp->threads : MOST_THREADS, started = 1;

    if (d == NULL || d->nparts == 0) return 0;
    if ((size_t)n > d->nparts) n = (int)d->nparts;
    if (d->bytes < WORTH) n = 1;
    atomic_store(&d->next, 0);
    for (int i = 0; i < n; i++) {
        w[i].bp = bp;
        w[i].rc = 0;
        w[i].err.text[0] = '\0';
    }
    /* A thread that cannot be had is no failure: the others do its work. */
    while (started < n &&
           pthread_create(&thread[started], NULL, work, &w[started]) == 0)
        started++;
    work(&w[0]);
    for (int i = 1; i < started; i++)
        pthread_join(thread[i], NULL);
    d->nparts = 0;
    d->bytes = 0;
    for (int i = 0; i < started; i++)
        if (w[i].rc < 0) {
            if (err != NULL) *err = w[i].err;
            return w[i].rc;
        }
    return 0;
}
