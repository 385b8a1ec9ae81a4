/* match.c - which ops can be fused.
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
    int *uses, *user; /* by value: number of uses, and the last op that uses it */
    bool *saved;      /* by value: a backward op reads it */
};

/* ---- users of values ---- */

/* Drop ops whose results are not used. Ops without results are kept: they change
 * states. */
static void find_dead(struct work *w, struct dnn_arena *arena)
{
    const struct dnn_prog *prog = w->prog;
    bool *live = dnn_arena_alloc(arena, ((size_t)prog->nvalues + 1) * sizeof *live);

    for (int v = 0; v < prog->nvalues; v++)
        live[v] = w->keep[v];
    for (int o = prog->nops - 1; o >= 0; o--) {
        const struct dnn_op *op = &prog->op[o];
        bool used = op->nout == 0;

        for (int i = 0; i < op->nout; i++)
            used = used || (op->out[i] != DNN_NONE && live[op->out[i]]);
        w->fused[o].removed = !used;
        for (int i = 0; i < op->nin && used; i++)
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
        for (int i = 0; i < prog->op[o].nin && !w->fused[o].removed; i++)
            if (prog->op[o].in[i] != DNN_NONE) {
                w->uses[prog->op[o].in[i]]++;
                w->user[prog->op[o].in[i]] = o;
            }
}

static bool used_once(const struct work *w, int v)
{
    return !w->keep[v] && w->uses[v] == 1;
}

/* The op of this kind that alone reads the result of op o, as its first operand;
 * DNN_NONE: there is none. */
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

/* Whether no op computes the operands of op o from number from on: then op o can be
 * moved. */
static bool operands_given(const struct work *w, int o, int from)
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

/* ---- padding before an op; bias, norm and activation after it ---- */

static void fuse_pad(struct work *w, int o)
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
        /* At most what a window covers, and no cropping. */
        if (by->before[i + 1] < 0 || by->before[i + 1] + win->before[i] > reach ||
            by->after[i + 1] < 0 || by->after[i + 1] + win->after[i] > reach)
            return;
    }
    w->fused[o].pad = p;
    w->fused[p].removed = true;
}

/* Fuse the op next, if there is one, into op o. */
static int fuse(struct work *w, int o, int next)
{
    if (next == DNN_NONE) return DNN_NONE;
    w->fused[next].removed = true;
    w->fused[o].last = next;
    return next;
}

static void fuse_bias(struct work *w, int o)
{
    struct fused *f = &w->fused[o];

    if (!linear(w->prog->op[o].kind) || w->prog->op[o].nin != 2) return;
    int next = follower(w, o, DNN_OP_BIAS);
    if (next != DNN_NONE && operands_given(w, next, 1)) f->bias = fuse(w, o, next);
}

static void fuse_norm(struct work *w, int o)
{
    const struct dnn_op *op = &w->prog->op[o];
    struct fused *f = &w->fused[o];

    if (w->prog->training || !linear(op->kind) || !operands_given(w, o, 1)) return;
    int next = follower(w, f->last, DNN_OP_BN_INFER);
    if (next == DNN_NONE || !operands_given(w, next, 1)) return;
    const struct dnn_op *norm = &w->prog->op[next];
    if (norm->attr.batchnorm.axis == dnn_prog_shape(w->prog, norm->in[0])->ndim - 1)
        f->norm = fuse(w, o, next);
}

/* Activations that every kernel can fuse. Sigmoid and softmax stay separate: a
 * loss may need their input. */
static bool can_fuse(const struct dnn_op_unary *u)
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

static bool can_fuse_into(const struct work *w, const struct dnn_op *op,
                          const struct dnn_op_unary *u)
{
    bool norm = op->kind == DNN_OP_BN_APPLY || op->kind == DNN_OP_GROUPNORM;

    if (!norm && !linear(op->kind) && op->kind != DNN_OP_BN_INFER &&
        (op->kind != DNN_OP_COMBINE || op->attr.combine.fn != DNN_ADD))
        return false;
    if (op->post != NULL || !can_fuse(u)) return false;
    if (!w->prog->training) return true;
    return norm ? u->fn == DNN_RELU : dnn_op_unary_by_result(u);
}

static void fuse_post(struct work *w, int o)
{
    struct fused *f = &w->fused[o];
    int next = follower(w, f->last, DNN_OP_UNARY);

    if (next != DNN_NONE &&
        can_fuse_into(w, &w->prog->op[o], &w->prog->op[next].attr.unary))
        f->post = fuse(w, o, next);
}

/* ---- masks ---- */

/* Whether a backward op of op o reads its operand v, or a value that may share v's
 * memory. */
static bool reads_later(const struct work *w, int o, int v)
{
    const struct dnn_op *op = &w->prog->op[o];

    switch (op->kind) {
    case DNN_OP_MATMUL:
    case DNN_OP_CONV:
    case DNN_OP_DECONV: /* for the gradient of the weights */
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
        return w->saved[op->out[0]];
    case DNN_OP_PAD: /* a convolution with fused padding reads v */
        return w->fused[o].removed && w->saved[op->out[0]];
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

static void find_saved(struct work *w, struct dnn_arena *arena)
{
    const struct dnn_prog *prog = w->prog;

    w->saved = dnn_arena_alloc(arena, ((size_t)prog->nvalues + 1) * sizeof *w->saved);
    for (int v = 0; v < prog->nvalues; v++)
        w->saved[v] = w->keep[v];
    for (int o = prog->nops - 1; o >= 0; o--)
        for (int i = 0; i < prog->op[o].nin; i++) {
            int v = prog->op[o].in[i];
            if (v != DNN_NONE && reads_later(w, o, v)) w->saved[v] = true;
        }
}

static void choose_mask(struct work *w, int o)
{
    const struct dnn_op *op = &w->prog->op[o];
    const struct dnn_op_unary *u = &op->attr.unary;

    if (!w->prog->training || op->kind != DNN_OP_UNARY || op->pass != DNN_FWD) return;
    if (u->fn != DNN_RELU || u->threshold != 0 || !isinf(u->max_value)) return;
    w->fused[o].mask = u->mask || !w->saved[op->out[0]];
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
        if (w.fused[o].removed || prog->op[o].pass != DNN_FWD || prog->op[o].nout == 0)
            continue;
        if (prog->op[o].nin > 0 && prog->op[o].in[0] != DNN_NONE) fuse_pad(&w, o);
        fuse_bias(&w, o);
        fuse_norm(&w, o);
        fuse_post(&w, o);
    }
    find_saved(&w, arena);
    for (int o = 0; o < prog->nops; o++)
        if (!w.fused[o].removed) choose_mask(&w, o);
    return w.fused;
}
