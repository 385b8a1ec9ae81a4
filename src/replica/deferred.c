/* deferred.c - deferred gradients of large matrices.
 *
 * The gradient of a large matrix is much larger than its operands if there are few
 * samples.  If a rank sums many micro-batches, each would write the gradient to memory,
 * and the sum would read it again.  Instead, each micro-batch stores the operands; at
 * the end, rows of the gradient are computed for all micro-batches and summed while
 * they are in the cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "replica/replica_impl.h"

#include "base/mem.h"

#include <stdlib.h>

enum {
    MIN_BYTES = 128 << 10, /* smallest gradient, in bytes                        */
    FACTOR = 4,            /* its operands must be smaller by this factor        */
    MAX_ROW = 4096,        /* maximum elements of a row                          */
    CACHE_ELEMENTS = 3072, /* elements summed at once, to stay in the cache      */
};

/* ---- selection ---- */

static bool is_read(const struct dnn_model *m, int value, int from)
{
    for (int o = from; o < m->update; o++)
        for (int i = 0; i < m->prog->op[o].nin; i++)
            if (m->prog->op[o].in[i] == value) return true;
    return false;
}

/* Whether the first result of op o is a gradient that can be deferred. */
static bool can_defer(const struct dnn_model *m, int o, struct replica_deferred *out)
{
    const struct dnn_op *op = &m->prog->op[o];
    size_t bytes = dnn_exec_defer_bytes(m->exec, o);

    if (bytes == 0) return false;
    const struct dnn_spot *spot = &m->plan->spot[op->out[0]];
    const struct dnn_tensor *is = &m->prog->value[op->out[0]].is;
    if (spot->block != DNN_BLOCK_GRADS || spot->pitch != 0 || is->dtype != DNN_F32 ||
        spot->bytes < MIN_BYTES || bytes > spot->bytes / FACTOR ||
        is_read(m, op->out[0], o + 1))
        return false;
    out->first = (int64_t)(spot->offset / sizeof(float));
    out->last = out->first + (int64_t)(spot->bytes / sizeof(float));
    out->row = is->shape.dim[is->shape.ndim - 1];
    return out->row <= MAX_ROW;
}

/* The op of a program that computes this gradient and can be deferred. */
static int find_op(const struct dnn_model *m, const struct replica_deferred *grad)
{
    for (int o = 0; o < m->update; o++) {
        struct replica_deferred one;

        if (can_defer(m, o, &one) && one.first == grad->first && one.last == grad->last)
            return o;
    }
    return DNN_NONE;
}

/* Insert in order of first. */
static void add(struct replica_cut *cut, const struct replica_deferred *grad)
{
    int at = cut->ndeferred++;

    for (; at > 0 && cut->deferred[at - 1].first > grad->first; at--)
        cut->deferred[at] = cut->deferred[at - 1];
    cut->deferred[at] = *grad;
}

static bool all_can_defer(const struct replica_cut *cut,
                          const struct replica_deferred *grad)
{
    for (int p = 0; p < cut->nmb; p++)
        if (find_op(cut->mb[p].model->model, grad) == DNN_NONE) return false;
    return true;
}

/* Rows computed and summed at once. */
static int64_t rows_at_once(const struct replica_deferred *grad)
{
    return CACHE_ELEMENTS / grad->row < DNN_BACKEND_ROWS
               ? DNN_BACKEND_ROWS
               : CACHE_ELEMENTS / grad->row / DNN_BACKEND_ROWS * DNN_BACKEND_ROWS;
}

/* Aligned to cache lines. */
static int allocate(size_t bytes, void **out, struct dnn_err *err)
{
    if (posix_memalign(out, 64, bytes) == 0) return 0;
    *out = NULL;
    return dnn_fail(err, DNN_ENOMEM,
                    "summing gradients needs %zu kB of memory, which is not available",
                    bytes >> 10);
}

static int allocate_all(struct replica_cut *cut, struct dnn_err *err)
{
    void *rows;

    for (int p = 0; p < cut->nmb; p++)
        for (int i = 0; i < cut->ndeferred; i++) {
            struct replica_micro_batch *mb = &cut->mb[p];

            DNN_TRY(allocate(dnn_exec_defer_bytes(mb->model->model->exec, mb->op[i]),
                             &mb->stored[i], err));
        }
    DNN_TRY(allocate((size_t)(cut->teams * cut->nmb * cut->rows_stride) * sizeof(float),
                     &rows, err));
    cut->rows = rows;
    return 0;
}

/* Find the ops of all micro-batches, and the size of the memory. */
static void plan_all(struct replica_cut *cut)
{
    for (int p = 0; p < cut->nmb; p++)
        for (int i = 0; i < cut->ndeferred; i++)
            cut->mb[p].op[i] = find_op(cut->mb[p].model->model, &cut->deferred[i]);
    for (int i = 0; i < cut->ndeferred; i++) {
        int64_t n = rows_at_once(&cut->deferred[i]) * cut->deferred[i].row;

        if (n > cut->rows_stride) cut->rows_stride = n;
    }
    /* Not a multiple of the page size, to avoid cache conflicts between
     * micro-batches. */
    cut->rows_stride = (cut->rows_stride + 1023) / 1024 * 1024 + 80;
}

int dnn_replica_deferred_make(struct replica_cut *cut, struct dnn_err *err)
{
    if (cut->nmb == 0) return 0;
    const struct dnn_model *m = cut->mb[0].model->model;
    for (int o = 0; o < m->update && cut->ndeferred < REPLICA_DEFERRED; o++) {
        struct replica_deferred grad;

        if (can_defer(m, o, &grad) && all_can_defer(cut, &grad)) add(cut, &grad);
    }
    if (cut->ndeferred == 0) return 0;
    plan_all(cut);
    return m->opts.dry_run ? 0 : allocate_all(cut, err);
}

void dnn_replica_deferred_free(struct replica_cut *cut)
{
    for (int p = 0; p < cut->nmb; p++)
        for (int i = 0; i < cut->ndeferred; i++)
            free(cut->mb[p].stored[i]);
    free(cut->rows);
}

size_t dnn_replica_deferred_bytes(const struct replica_cut *cut)
{
    size_t sum = (size_t)(cut->teams * cut->nmb * cut->rows_stride) * sizeof *cut->rows;

    for (int p = 0; p < cut->nmb; p++)
        for (int i = 0; i < cut->ndeferred; i++)
            sum +=
                dnn_exec_defer_bytes(cut->mb[p].model->model->exec, cut->mb[p].op[i]);
    return sum;
}

int dnn_replica_deferred_find(const struct replica_cut *cut,
                              const struct replica_micro_batch *mb, int o)
{
    for (int i = 0; i < cut->ndeferred; i++)
        if (mb->op[i] == o) return i;
    return DNN_NONE;
}

/* ---- sum ---- */

/* Elements summed at once: rows of a deferred gradient, or, if deferred is DNN_NONE,
 * elements that the micro-batches have already written. */
struct range {
    int64_t first, last;
    int deferred;
    int64_t row, rows;
};

static struct range range_at(const struct replica_cut *cut, int64_t at, int64_t end)
{
    struct range s = {.first = at, .last = at + CACHE_ELEMENTS, .deferred = DNN_NONE};

    for (int i = 0; i < cut->ndeferred; i++) {
        const struct replica_deferred *d = &cut->deferred[i];

        if (at >= d->last) continue;
        if (at < d->first) {
            if (s.last > d->first) s.last = d->first;
            break;
        }
        s.deferred = i;
        s.row = (at - d->first) / d->row;
        s.rows = rows_at_once(d);
        if (s.rows > (d->last - d->first) / d->row - s.row)
            s.rows = (d->last - d->first) / d->row - s.row;
        s.last = d->first + (s.row + s.rows) * d->row;
        break;
    }
    if (s.last > end) s.last = end;
    return s;
}

/* Sum a range over all micro-batches.  x, rows: scratch memory for pointers to the
 * micro-batches, and for rows of each. */
static void sum_range(const struct dnn_replica *r, const struct replica_cut *cut, int p,
                      const struct range *s, const float *const *grad, const float **x,
                      float *rows)
{
    int n = cut->nmb;

    for (int i = 0; i < n; i++) {
        const struct replica_micro_batch *mb = &cut->mb[i];

        x[i] = grad[i] + s->first;
        if (s->deferred == DNN_NONE) continue;
        const struct replica_deferred *d = &cut->deferred[s->deferred];
        float *to = rows + i * cut->rows_stride;
        dnn_exec_deferred_rows(mb->model->model->exec, mb->op[s->deferred],
                               mb->stored[s->deferred], s->row, s->rows, to);
        x[i] = to + (s->first - d->first - s->row * d->row);
    }
    r->rule->slice(r->self, p, s->first, s->last, x, n);
}

bool dnn_replica_deferred_send(const struct dnn_replica *r,
                               const struct replica_cut *cut, int p,
                               const float *const *grad)
{
    const struct dnn_bucket *bucket = &r->train->model[0].bucket[p];
    int64_t first = (int64_t)(bucket->first / sizeof(float));
    int64_t last = (int64_t)(bucket->last / sizeof(float));
    int teams = cut->teams, n = 0, deferred = 0;
    struct range *list = NULL;
    size_t cap = 0;

    if (cut->ndeferred == 0) return false;
    for (int64_t at = first; at < last; at = list[n++].last) {
        list = dnn_grow(list, &cap, (size_t)n + 1, sizeof *list);
        list[n] = range_at(cut, at, last);
        deferred += list[n].deferred != DNN_NONE;
    }
    const float **x = dnn_alloc((size_t)(teams * cut->nmb + 1) * sizeof *x);
#pragma omp parallel for num_threads(teams) schedule(static) if (deferred > 0)
    for (int team = 0; team < teams; team++)
        for (int i = n * team / teams; i < n * (team + 1) / teams && deferred > 0; i++)
            sum_range(r, cut, p, &list[i], grad, x + team * cut->nmb,
                      cut->rows + team * cut->nmb * cut->rows_stride);
    dnn_free(x);
    dnn_free(list);
    return deferred > 0;
}
