/* match.c - which ops may be done in one.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "fuse/fuse_impl.h"

#include <math.h>

struct work {
    const struct dnn_prog *prog;
    const bool *keep;
    struct fused *fused;
    int *uses, *user; /* by value: how many operands it is, and the last op's      */
    bool *later; /* by value: whether the gradient of an op that uses it wants it */
};

/* ---- who wants what ---- */

/* Ops whose results nobody wants are gone; those that have none are done for their
 * effect. */
static void find_dead(struct work *w, struct dnn_arena *arena)
{
    const struct dnn_prog *prog = w->prog;
    bool *live = dnn_arena_alloc(arena, ((size_t)prog->nvalues + 1) * sizeof *live);

    for (int v = 0; v < prog->nvalues; v++)
        live[v] = w->keep[v];
    for (int o = prog->nops - 1; o >= 0; o--) {
        const struct dnn_op *op = &prog->op[o];
        bool wanted = op->nout == 0;

        for (int i = 0; i < op->nout; i++)
            wanted = wanted || (op->out[i] != DNN_NONE && live[op->out[i]]);
        w->fused[o].gone = !wanted;
        for (int i = 0; i < op->nin && wanted; i++)
            if (op->in[i] != DNN_NONE) live[op->in[i]] = true;
    }
}

static void find_users(struct work *w, struct dnn_arena *arena)
{
    const struct dnn_prog *prog = w->prog;
    size_t n = (size_t)prog->nvalues + 1;

    w->uses = dnn_arena_alloc(arena, n * sizeof *w->uses);
    w->user = dnn_arena_alloc(arena, n * sizeof *w->user);
    for (int o = 0; o < prog->nops; o++)
        for (int i = 0; i < prog->op[o].nin && !w->fused[o].gone; i++)
            if (prog->op[o].in[i] != DNN_NONE) {
                w->uses[prog->op[o].in[i]]++;
                w->user[prog->op[o].in[i]] = o;
            }
}

static bool used_once(const struct work *w, int v)
{
    return !w->keep[v] && w->uses[v] == 1;
}

/* The op of a kind that alone reads what op o makes, as its first operand. */
static int follower(const struct work *w, int o, enum dnn_op_kind kind)
{
    int y = w->prog->op[o].out[0];

    if (!used_once(w, y)) return DNN_NONE;
    int next = w->user[y];
    const struct dnn_op *op = &w->prog->op[next];
    return op->kind == kind && op->pass == DNN_FWD && op->post == NULL && op->in[0] == y
               ? next
               : DNN_NONE;
}

/* Whether operands from of an op were there before the program began: then they are
 * there wherever the op goes. */
static bool given(const struct work *w, int o, int from)
{
    const struct dnn_op *op = &w->prog->op[o];

    for (int i = from; i < op->nin; i++)
        if (op->in[i] != DNN_NONE && w->prog->value[op->in[i]].op != DNN_NONE)
            return false;
    return true;
}

static bool linear(enum dnn_op_kind kind)
{
    return kind == DNN_OP_CONV || kind == DNN_OP_DECONV || kind == DNN_OP_MATMUL;
}

/* ---- before and behind an op ---- */

static void take_pad(struct work *w, int o)
{
    const struct dnn_op *op = &w->prog->op[o];
    int p = w->prog->value[op->in[0]].op;

    if (op->kind != DNN_OP_CONV || p == DNN_NONE) return;
    const struct dnn_op *pad = &w->prog->op[p];
    if (pad->kind != DNN_OP_PAD || pad->pass != DNN_FWD || !used_once(w, op->in[0]))
        return;
    const struct dnn_op_pad *by = &pad->attr.pad;
    const struct dnn_op_window *win = &op->attr.window;
    int last = win->nspatial + 1;
    if (by->before[0] != 0 || by->after[0] != 0 || by->before[last] != 0 ||
        by->after[last] != 0)
        return;
    for (int i = 0; i < win->nspatial; i++) {
        int64_t reach = win->dilation[i] * (win->kernel[i] - 1);
        /* No more than a window can see, and nothing cut off. */
        if (by->before[i + 1] < 0 || by->before[i + 1] + win->before[i] > reach ||
            by->after[i + 1] < 0 || by->after[i + 1] + win->after[i] > reach)
            return;
    }
    w->fused[o].pad = p;
    w->fused[p].gone = true;
}

/* Let op o take in the one behind what it does so far, if there is such a one. */
static int take(struct work *w, int o, int next)
{
    if (next == DNN_NONE) return DNN_NONE;
    w->fused[next].gone = true;
    w->fused[o].last = next;
    return next;
}

static void take_bias(struct work *w, int o)
{
    struct fused *f = &w->fused[o];

    if (!linear(w->prog->op[o].kind) || w->prog->op[o].nin != 2) return;
    int next = follower(w, o, DNN_OP_BIAS);
    if (next != DNN_NONE && given(w, next, 1)) f->bias = take(w, o, next);
}

static void take_norm(struct work *w, int o)
{
    const struct dnn_op *op = &w->prog->op[o];
    struct fused *f = &w->fused[o];

    if (w->prog->training || !linear(op->kind) || !given(w, o, 1)) return;
    int next = follower(w, f->last, DNN_OP_BN_INFER);
    if (next == DNN_NONE || !given(w, next, 1)) return;
    const struct dnn_op *norm = &w->prog->op[next];
    if (norm->attr.batchnorm.axis == dnn_prog_shape(w->prog, norm->in[0])->ndim - 1)
        f->norm = take(w, o, next);
}

/* Functions that any kernel does on its way to memory.  The sigmoid and the like stay
 * apart: a loss may want what is before them. */
static bool cheap(const struct dnn_op_unary *u)
{
    switch (u->fn) {
    case DNN_RELU:
        return dnn_op_unary_by_result(u);
    case DNN_ELU:
    case DNN_TANH:
    case DNN_SWISH:
    case DNN_GELU:
    case DNN_GELU_TANH:
    case DNN_HARD_SWISH:
        return !u->mask;
    default:
        return false;
    }
}

static bool may_post(const struct work *w, const struct dnn_op *op,
                     const struct dnn_op_unary *u)
{
    bool norm = op->kind == DNN_OP_BN_APPLY || op->kind == DNN_OP_GROUPNORM;

    if (!norm && !linear(op->kind) && op->kind != DNN_OP_BN_INFER &&
        (op->kind != DNN_OP_COMBINE || op->attr.combine.fn != DNN_ADD))
        return false;
    if (op->post != NULL || !cheap(u)) return false;
    if (!w->prog->training) return true;
    return norm ? u->fn == DNN_RELU : dnn_op_unary_by_result(u);
}

static void take_post(struct work *w, int o)
{
    struct fused *f = &w->fused[o];
    int next = follower(w, f->last, DNN_OP_UNARY);

    if (next != DNN_NONE && may_post(w, &w->prog->op[o], &w->prog->op[next].attr.unary))
        f->post = take(w, o, next);
}

/* ---- masks ---- */

/* Whether the gradient of op o wants its operand v, or what may have v's bytes in it.
 */
static bool wants(const struct work *w, int o, int v)
{
    const struct dnn_op *op = &w->prog->op[o];

    switch (op->kind) {
    case DNN_OP_MATMUL:
    case DNN_OP_CONV:
    case DNN_OP_DECONV: /* the weights' */
        return op->in[1] == v || w->prog->value[op->in[1]].role != DNN_WEIGHT ||
               w->prog->value[op->in[1]].trainable;
    case DNN_OP_COMBINE:
        return op->attr.combine.fn != DNN_ADD && op->attr.combine.fn != DNN_SUBTRACT &&
               op->attr.combine.fn != DNN_AVERAGE;
    case DNN_OP_UNARY:
        return !dnn_op_unary_by_result(&op->attr.unary);
    case DNN_OP_REDUCE:
        return op->attr.reduce.fn == DNN_REDUCE_MAX;
    case DNN_OP_RESHAPE:
    case DNN_OP_CONCAT:
        return w->later[op->out[0]];
    case DNN_OP_PAD: /* a convolution that pads itself wants v */
        return w->fused[o].gone && w->later[op->out[0]];
    case DNN_OP_POOL:
    case DNN_OP_UPSAMPLE:
    case DNN_OP_TRANSPOSE:
    case DNN_OP_SOFTMAX:
    case DNN_OP_BIAS:
    case DNN_OP_NOISE:
    case DNN_OP_SCALE:
        return false;
    default:
        return true;
    }
}

static void find_later(struct work *w, struct dnn_arena *arena)
{
    const struct dnn_prog *prog = w->prog;

    w->later = dnn_arena_alloc(arena, ((size_t)prog->nvalues + 1) * sizeof *w->later);
    for (int v = 0; v < prog->nvalues; v++)
        w->later[v] = w->keep[v];
    for (int o = prog->nops - 1; o >= 0; o--)
        for (int i = 0; i < prog->op[o].nin; i++) {
            int v = prog->op[o].in[i];
            if (v != DNN_NONE && wants(w, o, v)) w->later[v] = true;
        }
}

static void leave_mask(struct work *w, int o)
{
    const struct dnn_op *op = &w->prog->op[o];
    const struct dnn_op_unary *u = &op->attr.unary;

    if (!w->prog->training || op->kind != DNN_OP_UNARY || op->pass != DNN_FWD) return;
    if (u->fn != DNN_RELU || u->threshold != 0 || !isinf(u->max_value)) return;
    w->fused[o].mask = u->mask || !w->later[op->out[0]];
}

struct fused *dnn_fuse_find(const struct dnn_prog *prog, const bool *keep,
                            struct dnn_arena *arena)
{
    size_t n = (size_t)prog->nops + 1;
    struct work w = {.prog = prog,
                     .keep = keep,
                     .fused = dnn_arena_alloc(arena, n * sizeof *w.fused)};

    for (int o = 0; o < prog->nops; o++)
        w.fused[o] =
            (struct fused){false, DNN_NONE, DNN_NONE, DNN_NONE, DNN_NONE, o, false};
    find_dead(&w, arena);
    find_users(&w, arena);
    for (int o = 0; o < prog->nops; o++) {
        if (w.fused[o].gone || prog->op[o].pass != DNN_FWD || prog->op[o].nout == 0)
            continue;
        if (prog->op[o].nin > 0 && prog->op[o].in[0] != DNN_NONE) take_pad(&w, o);
        take_bias(&w, o);
        take_norm(&w, o);
        take_post(&w, o);
    }
    find_later(&w, arena);
    for (int o = 0; o < prog->nops; o++)
        if (!w.fused[o].gone) leave_mask(&w, o);
    return w.fused;
}
