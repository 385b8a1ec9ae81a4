/* replica_deferred.c - gradients that parts of a batch do not write out.
 *
 * The gradient of a large matrix, computed of a few samples, is far larger than what it
 * is made of.  Where a rank adds up many parts, each would write it and the sum would
 * read it again, through caches that do not hold it.  Instead each part keeps what it
 * is made of, and when all have, rows of it are made of one part after the other and
 * added up while they are near.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/replica_impl.h"

#include "base/mem.h"

#include <stdlib.h>

enum {
    WORTH = 128 << 10, /* bytes of a gradient that is worth it               */
    FACTOR = 4,        /* how much less it must be made of                   */
    WIDEST = 4096,     /* elements of a row, of which each thread has a few  */
    NEAR = 3072,       /* elements that are made and added up in one go      */
    ROWS = 6           /* in which kernels make rows                         */
};

/* ---- which ---- */

static bool read_before(const struct dnn_model *m, int value, int from)
{
    for (int o = from; o < m->update; o++)
        for (int i = 0; i < m->prog->op[o].nin; i++)
            if (m->prog->op[o].in[i] == value) return true;
    return false;
}

/* Whether the first result of op o is a gradient that can be made late. */
static bool can(const struct dnn_model *m, int o, struct replica_deferred *out)
{
    const struct dnn_op *op = &m->prog->op[o];
    size_t held = dnn_exec_defer_bytes(m->exec, o);

    if (held == 0) return false;
    const struct dnn_spot *spot = &m->plan->spot[op->out[0]];
    const struct dnn_tensor *is = &m->prog->value[op->out[0]].is;
    if (spot->block != DNN_BLOCK_GRADS || spot->pitch != 0 || is->dtype != DNN_F32 ||
        spot->bytes < WORTH || held > spot->bytes / FACTOR ||
        read_before(m, op->out[0], o + 1))
        return false;
    out->first = (int64_t)(spot->offset / sizeof(float));
    out->last = out->first + (int64_t)(spot->bytes / sizeof(float));
    out->row = is->shape.dim[is->shape.ndim - 1];
    return out->row <= WIDEST;
}

/* The op of a part's program that makes this gradient, and can late. */
static int find_same(const struct dnn_model *m, const struct replica_deferred *grad)
{
    for (int o = 0; o < m->update; o++) {
        struct replica_deferred one;

        if (can(m, o, &one) && one.first == grad->first && one.last == grad->last)
            return o;
    }
    return DNN_NONE;
}

/* In order of where they lie. */
static void add(struct replica_cut *cut, const struct replica_deferred *grad)
{
    int at = cut->ndeferred++;

    for (; at > 0 && cut->deferred[at - 1].first > grad->first; at--)
        cut->deferred[at] = cut->deferred[at - 1];
    cut->deferred[at] = *grad;
}

static bool all_can(const struct replica_cut *cut, const struct replica_deferred *grad)
{
    for (int p = 0; p < cut->nparts; p++)
        if (find_same(cut->part[p].by->model, grad) == DNN_NONE) return false;
    return true;
}

/* Rows that are made and added up in one go. */
static int64_t rows_at_once(const struct replica_deferred *grad)
{
    return NEAR / grad->row < ROWS ? ROWS : NEAR / grad->row / ROWS * ROWS;
}

/* Kernels like whole lines. */
static int take(size_t bytes, void **out, struct dnn_err *err)
{
    if (posix_memalign(out, 64, bytes) == 0) return 0;
    *out = NULL;
    return dnn_fail(err, DNN_ENOMEM, "adding up the parts of a batch takes %zu kB more",
                    bytes >> 10);
}

static int take_all(struct replica_cut *cut, struct dnn_err *err)
{
    void *made;

    for (int p = 0; p < cut->nparts; p++)
        for (int i = 0; i < cut->ndeferred; i++) {
            struct replica_part *part = &cut->part[p];
            const struct dnn_model *m = part->by->model;

            part->op[i] = find_same(m, &cut->deferred[i]);
            DNN_TRY(take(dnn_exec_defer_bytes(m->exec, part->op[i]), &part->stored[i],
                         err));
        }
    for (int i = 0; i < cut->ndeferred; i++) {
        int64_t n = rows_at_once(&cut->deferred[i]) * cut->deferred[i].row;

        if (n > cut->rows_stride) cut->rows_stride = n;
    }
    /* Not a multiple of a page apart: caches would keep all parts in the same lines. */
    cut->rows_stride = (cut->rows_stride + 1023) / 1024 * 1024 + 80;
    DNN_TRY(take((size_t)(cut->teams * cut->nparts * cut->rows_stride) * sizeof(float),
                 &made, err));
    cut->rows = made;
    return 0;
}

int dnn_replica_deferred_make(struct replica_cut *cut, struct dnn_err *err)
{
    if (cut->nparts == 0) return 0;
    const struct dnn_model *m = cut->part[0].by->model;
    for (int o = 0; o < m->update && cut->ndeferred < REPLICA_DEFERRED; o++) {
        struct replica_deferred grad;

        if (can(m, o, &grad) && all_can(cut, &grad)) add(cut, &grad);
    }
    return cut->ndeferred == 0 ? 0 : take_all(cut, err);
}

void dnn_replica_deferred_free(struct replica_cut *cut)
{
    for (int p = 0; p < cut->nparts; p++)
        for (int i = 0; i < cut->ndeferred; i++)
            free(cut->part[p].stored[i]);
    free(cut->rows);
}

size_t dnn_replica_deferred_bytes(const struct replica_cut *cut)
{
    size_t sum =
        (size_t)(cut->teams * cut->nparts * cut->rows_stride) * sizeof *cut->rows;

    for (int p = 0; p < cut->nparts; p++)
        for (int i = 0; i < cut->ndeferred; i++)
            sum +=
                dnn_exec_defer_bytes(cut->part[p].by->model->exec, cut->part[p].op[i]);
    return sum;
}

int dnn_replica_deferred_find(const struct replica_cut *cut,
                              const struct replica_part *part, int o)
{
    for (int i = 0; i < cut->ndeferred; i++)
        if (part->op[i] == o) return i;
    return DNN_NONE;
}

/* ---- adding up ---- */

/* Elements that are added up in one go, of gradient late, from row on, or, if that is
 * DNN_NONE, as parts have written them. */
struct stretch {
    int64_t first, last;
    int deferred;
    int64_t row, rows;
};

static struct stretch stretch_at(const struct replica_cut *cut, int64_t at, int64_t end)
{
    struct stretch s = {.first = at, .last = at + NEAR, .deferred = DNN_NONE};

    for (int i = 0; i < cut->ndeferred; i++) {
        const struct replica_deferred *l = &cut->deferred[i];

        if (at >= l->last) continue;
        if (at < l->first) {
            if (s.last > l->first) s.last = l->first;
            break;
        }
        s.deferred = i;
        s.row = (at - l->first) / l->row;
        s.rows = rows_at_once(l);
        if (s.rows > (l->last - l->first) / l->row - s.row)
            s.rows = (l->last - l->first) / l->row - s.row;
        s.last = l->first + (s.row + s.rows) * l->row;
        break;
    }
    if (s.last > end) s.last = end;
    return s;
}

/* x and made: room for pointers to the parts, and for rows of each. */
static void add_up(const struct dnn_replica *r, const struct replica_cut *cut, int p,
                   const struct stretch *s, const float *const *grad, const float **x,
                   float *made)
{
    int n = cut->nparts;

    for (int i = 0; i < n; i++) {
        const struct replica_part *part = &cut->part[i];

        x[i] = grad[i] + s->first;
        if (s->deferred == DNN_NONE) continue;
        const struct replica_deferred *l = &cut->deferred[s->deferred];
        float *to = made + i * cut->rows_stride;
        dnn_exec_deferred_rows(part->by->model->exec, part->op[s->deferred],
                               part->stored[s->deferred], s->row, s->rows, to);
        x[i] = to + (s->first - l->first - s->row * l->row);
    }
    r->rule->piece(r->self, p, s->first, s->last, x, n);
}

bool dnn_replica_deferred_send(const struct dnn_replica *r,
                               const struct replica_cut *cut, int p,
                               const float *const *grad)
{
    const struct dnn_bucket *bucket = &r->model[0].bucket[p];
    int64_t first = (int64_t)(bucket->first / sizeof(float));
    int64_t last = (int64_t)(bucket->last / sizeof(float));
    int teams = cut->teams, n = 0, deferred = 0;
    struct stretch *list = NULL;
    size_t cap = 0;

    if (cut->ndeferred == 0) return false;
    for (int64_t at = first; at < last; at = list[n++].last) {
        list = dnn_grow(list, &cap, (size_t)n + 1, sizeof *list);
        list[n] = stretch_at(cut, at, last);
        deferred += list[n].deferred != DNN_NONE;
    }
    const float **x = dnn_alloc((size_t)(teams * cut->nparts + 1) * sizeof *x);
#pragma omp parallel for num_threads(teams) schedule(static) if (deferred > 0)
    for (int team = 0; team < teams; team++)
        for (int i = n * team / teams; i < n * (team + 1) / teams && deferred > 0; i++)
            add_up(r, cut, p, &list[i], grad, x + team * cut->nparts,
                   cut->rows + team * cut->nparts * cut->rows_stride);
    dnn_free(x);
    dnn_free(list);
    return deferred > 0;
}
