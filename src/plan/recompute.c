/* recompute.c - rewrite a program so that it recomputes values, and the cost.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "plan/plan_impl.h"

#include "base/mem.h"

#include <string.h>

enum { FLOPS_PER_BYTE = 10 }; /* cost of reading or writing a byte */

bool dnn_plan_recomputable(const struct dnn_prog *prog, int o, bool cheap)
{
    const struct dnn_op *op = &prog->op[o];
    enum dnn_op_recompute again = dnn_op_info(op->kind)->recompute;

    if (op->pass != DNN_FWD || op->nout == 0 || op->out[0] == DNN_NONE) return false;
    return again == DNN_OP_CHEAP || (again == DNN_OP_HEAVY && !cheap);
}

static double count(const struct dnn_prog *prog, int v)
{
    const struct dnn_shape *shape = &prog->value[v].is.shape;
    double n = 1;

    for (int i = 0; i < shape->ndim; i++)
        n *= (double)shape->dim[i];
    return n;
}

/* Forward, x w -> y; backward data, dy w -> dx; backward weights, x dy -> dw.  In each
 * pass, each weight is used once per output position of the convolution and sample. */
double dnn_plan_flops(const struct dnn_prog *prog, const struct dnn_op *op)
{
    bool conv = op->kind == DNN_OP_CONV;

    if (!conv && op->kind != DNN_OP_DECONV && op->kind != DNN_OP_MATMUL) return 0;
    int x = op->pass == DNN_BWD_DATA ? op->out[0] : op->in[0];
    int w = op->pass == DNN_BWD_WEIGHTS ? op->out[0] : op->in[1];
    int y = op->pass == DNN_FWD        ? op->out[0]
            : op->pass == DNN_BWD_DATA ? op->in[0]
                                       : op->in[1];
    if (x == DNN_NONE || w == DNN_NONE || y == DNN_NONE) return 0;
    int at = op->kind == DNN_OP_DECONV ? x : y; /* has the window positions */
    return 2 * count(prog, w) * count(prog, at) / (double)dnn_plan_row(prog, at);
}

double dnn_plan_cost(const struct dnn_prog *prog, const struct dnn_op *op)
{
    double bytes = 0;

    if (dnn_op_info(op->kind)->view) return 0;
    for (int i = 0; i < op->nin; i++)
        if (op->in[i] != DNN_NONE)
            bytes += count(prog, op->in[i]) *
                     (double)dnn_dtype_size(prog->value[op->in[i]].is.dtype);
    for (int i = 0; i < op->nout; i++)
        if (op->out[i] != DNN_NONE)
            bytes += count(prog, op->out[i]) *
                     (double)dnn_dtype_size(prog->value[op->out[i]].is.dtype);
    return dnn_plan_flops(prog, op) + FLOPS_PER_BYTE * bytes;
}

struct work {
    const struct dnn_prog *old;
    struct dnn_prog *new;
    const bool *drop;
    bool often;
    int *origin; /* by new op: the old op */
    int origin_cap;
    int *copy;          /* by old value: its recomputed copy, or DNN_NONE */
    int *copied_for;    /* by old value: the op it was recomputed for */
    int *first, *final; /* by old value: the first and last op that changes it in place;
                           first > final: none */
    bool stale;         /* a recomputed value would depend on a changed value */
};

static void add_change(struct work *w, int v, int o)
{
    if (v == DNN_NONE) return;
    if (w->first[v] > o) w->first[v] = o;
    w->final[v] = o;
}

/* Find the ops that change values in place. */
static void find_changes(struct work *w)
{
    for (int v = 0; v < w->old->nvalues; v++) {
        w->copy[v] = w->final[v] = DNN_NONE;
        w->first[v] = w->old->nops;
    }
    for (int o = 0; o < w->old->nops; o++) {
        const struct dnn_op *op = &w->old->op[o];

        if (op->kind == DNN_OP_BN_UPDATE)
            for (int i = 1; i < op->nin; i++)
                add_change(w, op->in[i], o);
        if (op->kind == DNN_OP_UPDATE)
            for (int i = 0; i < op->nin; i++)
                if (i != 1) add_change(w, op->in[i], o);
    }
}

static bool changes_between(const struct work *w, int v, int from, int to)
{
    return w->first[v] <= w->final[v] && w->final[v] > from && w->first[v] < to;
}

/* Double the capacity of an array; the old array remains in the arena. */
static void *grow(struct dnn_prog *prog, const void *old, int *cap, size_t size)
{
    void *mem = dnn_arena_alloc(prog->arena, 2 * (size_t)*cap * size);

    memcpy(mem, old, (size_t)*cap * size);
    *cap *= 2;
    return mem;
}

/* Append a copy of an op with other inputs. */
static struct dnn_op *add(struct work *w, int o, const int *in)
{
    struct dnn_prog *new = w->new;

    if (new->nops == new->op_cap)
        new->op = grow(new, new->op, &new->op_cap, sizeof *new->op);
    if (new->nops == w->origin_cap)
        w->origin = grow(new, w->origin, &w->origin_cap, sizeof *w->origin);
    w->origin[new->nops] = o;
    struct dnn_op *added = &new->op[new->nops++];
    *added = w->old->op[o];
    added->in = in;
    return added;
}

static int add_value(struct work *w, int like)
{
    struct dnn_prog *new = w->new;

    if (new->nvalues == new->value_cap)
        new->value = grow(new, new->value, &new->value_cap, sizeof *new->value);
    struct dnn_value *added = &new->value[new->nvalues];
    *added = w->old->value[like];
    added->op = new->nops - 1;
    added->grad = DNN_NONE;
    return new->nvalues++;
}

/* Whether the copy of v is still available for op at: a cheap value is recomputed again
 * instead of storing it for a long time. */
static bool is_available(const struct work *w, int v, int at)
{
    enum { MAX_DISTANCE = 8 };

    if (w->copy[v] == DNN_NONE) return false;
    int o = w->old->value[v].op;
    return !w->often || at - w->copied_for[v] <= MAX_DISTANCE ||
           dnn_plan_flops(w->old, &w->old->op[o]) > 0;
}

/* Recompute v for the old op at, after the values it depends on. */
static int recompute(struct work *w, int v, int at)
{
    const struct dnn_prog *old = w->old;
    int o = old->value[v].op;
    const struct dnn_op *op = &old->op[o];

    if (is_available(w, v, at)) return w->copy[v];
    int *in = dnn_arena_alloc(w->new->arena, ((size_t)op->nin + 1) * sizeof *in);
    for (int i = 0; i < op->nin; i++) {
        in[i] = op->in[i];
        if (in[i] == DNN_NONE) continue;
        w->stale |= changes_between(w, in[i], o, at);
        if (w->drop[in[i]]) in[i] = recompute(w, in[i], at);
    }
    struct dnn_op *new = add(w, o, in);
    /* Only the first output is recomputed; the other outputs, which are small (index of
     * the maximum, statistics), remain stored. */
    new->nout = 1;
    for (int i = 1; i < DNN_MAX_OUT; i++)
        new->out[i] = DNN_NONE;
    if (op->kind == DNN_OP_POOL) new->attr.pool.index = false;
    if (op->kind == DNN_OP_UNARY) new->attr.unary.mask = false;
    if (op->kind == DNN_OP_GROUPNORM) new->attr.groupnorm.save = false;
    new->out[0] = w->copy[v] = add_value(w, v);
    w->copied_for[v] = at;
    return w->copy[v];
}

static void copy_op(struct work *w, int o, bool backward)
{
    const struct dnn_op *op = &w->old->op[o];
    int *in = dnn_arena_alloc(w->new->arena, ((size_t)op->nin + 1) * sizeof *in);

    for (int i = 0; i < op->nin; i++) {
        in[i] = op->in[i];
        if (backward && in[i] != DNN_NONE && w->drop[in[i]])
            in[i] = recompute(w, in[i], o);
    }
    add(w, o, in);
    for (int i = 0; i < op->nout; i++)
        if (op->out[i] != DNN_NONE) w->new->value[op->out[i]].op = w->new->nops - 1;
}

struct dnn_prog *dnn_plan_rewrite(const struct dnn_prog *prog, const bool *drop,
                                  bool often, int **origin)
{
    struct dnn_prog *new = dnn_prog_make(prog->dtype, prog->training);
    struct dnn_arena *arena = new->arena, *scratch = dnn_arena_make();
    size_t n = (size_t)prog->nvalues + 1;
    struct work w = {.old = prog,
                     .new = new,
                     .drop = drop,
                     .often = often,
                     .copy = dnn_arena_alloc(scratch, n * sizeof *w.copy),
                     .copied_for = dnn_arena_alloc(scratch, n * sizeof *w.copied_for),
                     .first = dnn_arena_alloc(scratch, n * sizeof *w.first),
                     .final = dnn_arena_alloc(scratch, n * sizeof *w.final)};

    *new = *prog;
    new->arena = arena;
    /* Sufficient, unless cheap values are recomputed several times. */
    new->op_cap = prog->nops + prog->nforward + 1;
    new->value_cap = prog->nvalues + prog->nforward + 1;
    new->op = dnn_arena_alloc(arena, (size_t)new->op_cap * sizeof *new->op);
    new->value = dnn_arena_alloc(arena, (size_t)new->value_cap * sizeof *new->value);
    w.origin_cap = new->op_cap;
    w.origin = dnn_arena_alloc(arena, (size_t)new->op_cap * sizeof *w.origin);
    new->nops = 0;
    memcpy(new->value, prog->value, (size_t)prog->nvalues * sizeof *new->value);
    find_changes(&w);
    for (int o = 0; o < prog->nops; o++)
        copy_op(&w, o, o >= prog->nforward);
    dnn_arena_free(scratch);
    if (w.stale) {
        dnn_prog_free(new);
        return NULL;
    }
    if (origin != NULL) *origin = w.origin;
    return new;
}
