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
    size_t held = dnn_exec_held(m->exec, o);

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
static int find_same(const struct dnn_model *m, const struct replica_deferred *late)
{
    for (int o = 0; o < m->update; o++) {
        struct replica_deferred one;

        if (can(m, o, &one) && one.first == late->first && one.last == late->last)
            return o;
    }
    return DNN_NONE;
}

/* In order of where they lie. */
static void add(struct replica_cut *cut, const struct replica_deferred *late)
{
    int at = cut->nlate++;

    for (; at > 0 && cut->late[at - 1].first > late->first; at--)
        cut->late[at] = cut->late[at - 1];
    cut->late[at] = *late;
}

static bool all_can(const struct replica_cut *cut, const struct replica_deferred *late)
{
    for (int p = 0; p < cut->nparts; p++)
        if (find_same(cut->part[p].by->model, late) == DNN_NONE) return false;
    return true;
}

/* Rows that are made and added up in one go. */
static int64_t rows_at_once(const struct replica_deferred *late)
{
    return NEAR / late->row < DNN_BACKEND_ROWS
               ? DNN_BACKEND_ROWS
               : NEAR / late->row / DNN_BACKEND_ROWS * DNN_BACKEND_ROWS;
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
        for (int i = 0; i < cut->nlate; i++) {
            struct replica_part *part = &cut->part[p];
            const struct dnn_model *m = part->by->model;

            part->late[i] = find_same(m, &cut->late[i]);
            DNN_TRY(take(dnn_exec_held(m->exec, part->late[i]), &part->held[i], err));
        }
    for (int i = 0; i < cut->nlate; i++) {
        int64_t n = rows_at_once(&cut->late[i]) * cut->late[i].row;

        if (n > cut->making) cut->making = n;
    }
    /* Not a multiple of a page apart: caches would keep all parts in the same lines. */
    cut->making = (cut->making + 1023) / 1024 * 1024 + 80;
    DNN_TRY(take((size_t)(cut->teams * cut->nparts * cut->making) * sizeof(float),
                 &made, err));
    cut->made = made;
    return 0;
}

int dnn_replica_deferred_make(struct replica_cut *cut, struct dnn_err *err)
{
    if (cut->nparts == 0) return 0;
    const struct dnn_model *m = cut->part[0].by->model;
    for (int o = 0; o < m->update && cut->nlate < REPLICA_DEFERRED; o++) {
        struct replica_deferred late;

        if (can(m, o, &late) && all_can(cut, &late)) add(cut, &late);
    }
    return cut->nlate == 0 ? 0 : take_all(cut, err);
}

void dnn_replica_deferred_free(struct replica_cut *cut)
{
    for (int p = 0; p < cut->nparts; p++)
        for (int i = 0; i < cut->nlate; i++)
            free(cut->part[p].held[i]);
    free(cut->made);
}

size_t dnn_replica_deferred_bytes(const struct replica_cut *cut)
{
    size_t sum = (size_t)(cut->teams * cut->nparts * cut->making) * sizeof *cut->made;

    for (int p = 0; p < cut->nparts; p++)
        for (int i = 0; i < cut->nlate; i++)
            sum += dnn_exec_held(cut->part[p].by->model->exec, cut->part[p].late[i]);
    return sum;
}

int dnn_replica_deferred_find(const struct replica_cut *cut,
                              const struct replica_part *part, int o)
{
    for (int i = 0; i < cut->nlate; i++)
        if (part->late[i] == o) return i;
    return DNN_NONE;
}

/* ---- adding up ---- */

/* Elements that are added up in one go, of gradient late, from row on, or, if that is
 * DNN_NONE, as parts have written them. */
struct stretch {
    int64_t first, last;
    int late;
    int64_t row, rows;
};

static struct stretch stretch_at(const struct replica_cut *cut, int64_t at, int64_t end)
{
    struct stretch s = {.first = at, .last = at + NEAR, .late = DNN_NONE};

    for (int i = 0; i < cut->nlate; i++) {
        const struct replica_deferred *l = &cut->late[i];

        if (at >= l->last) continue;
        if (at < l->first) {
            if (s.last > l->first) s.last = l->first;
            break;
        }
        s.late = i;
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
        if (s->late == DNN_NONE) continue;
        const struct replica_deferred *l = &cut->late[s->late];
        float *to = made + i * cut->making;
        dnn_exec_rows(part->by->model->exec, part->late[s->late], part->held[s->late],
                      s->row, s->rows, to);
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
    int teams = cut->teams, n = 0, late = 0;
    struct stretch *list = NULL;
    size_t cap = 0;

    if (cut->nlate == 0) return false;
    for (int64_t at = first; at < last; at = list[n++].last) {
        list = dnn_grow(list, &cap, (size_t)n + 1, sizeof *list);
        list[n] = stretch_at(cut, at, last);
        late += list[n].late != DNN_NONE;
    }
    const float **x = dnn_alloc((size_t)(teams * cut->nparts + 1) * sizeof *x);
#pragma omp parallel for num_threads(teams) schedule(static) if (late > 0)
    for (int team = 0; team < teams; team++)
        for (int i = n * team / teams; i < n * (team + 1) / teams && late > 0; i++)
            add_up(r, cut, p, &list[i], grad, x + team * cut->nparts,
                   cut->made + team * cut->nparts * cut->making);
    dnn_free(x);
    dnn_free(list);
    return late > 0;
}
