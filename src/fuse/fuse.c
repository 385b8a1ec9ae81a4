/* fuse.c - builds the fused program.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "fuse/fuse_impl.h"

#include <assert.h>

struct work {
    const struct dnn_prog *from;
    struct dnn_prog *to;
    const struct fused *fused;
    struct dnn_arena *arena; /* owned; freed at the end */
    int *map;                /* value of from -> value of to */
    int copied;              /* values without an op are copied below this number */
    /* The last layer name that was copied, in both programs. */
    const char *layer_from, *layer_to;
};

static const char *copy_name(struct work *w, const char *name)
{
    if (name == NULL) return NULL;
    if (name != w->layer_from) {
        w->layer_from = name;
        w->layer_to = dnn_arena_strdup(w->to->arena, name);
    }
    return w->layer_to;
}

static int copy_value(struct work *w, const struct dnn_value *v)
{
    const struct dnn_tensor *is = &v->is;
    int new = DNN_NONE;

    w->to->layer = copy_name(w, v->layer);
    switch (v->role) {
    case DNN_INPUT:
        new = dnn_prog_input(w->to, is->name, is->dtype, &is->shape);
        break;
    case DNN_TARGET:
        new = dnn_prog_target(w->to, is->name, is->dtype, &is->shape);
        break;
    case DNN_WEIGHT:
        new = dnn_prog_weight(w->to, is->name, &is->shape, &v->init);
        break;
    case DNN_STATE:
        new = dnn_prog_state(w->to, is->name, &is->shape, &v->init);
        break;
    case DNN_CONSTANT:
        new = dnn_prog_constant(w->to, is->name, &is->shape, v->data);
        break;
    case DNN_SLOT:
    case DNN_TEMP:
        assert(!"a forward program has no slots, and an op for each temporary");
    }
    struct dnn_value *to = &w->to->value[new];
    to->is.dtype = is->dtype;
    to->trainable = v->trainable;
    to->regularizer = v->regularizer;
    to->constraint = v->constraint;
    return new;
}

/* Copy the values below end that no op computes, in order. */
static void copy_given(struct work *w, int end)
{
    for (; w->copied < end; w->copied++)
        if (w->from->value[w->copied].op == DNN_NONE)
            w->map[w->copied] = copy_value(w, &w->from->value[w->copied]);
}

static void copy_operands(struct work *w, int o)
{
    if (o == DNN_NONE) return;
    const struct dnn_op *op = &w->from->op[o];
    for (int i = 0; i < op->nin; i++)
        if (op->in[i] != DNN_NONE && w->from->value[op->in[i]].op == DNN_NONE)
            copy_given(w, op->in[i] + 1);
}

static int mapped(const struct work *w, int v)
{
    return v == DNN_NONE ? DNN_NONE : w->map[v];
}

/* Append FOLD; its results replace the weights in[1] and the bias in[2]. */
static void fold(struct work *w, const struct dnn_op *op, const struct dnn_op *norm,
                 int *in)
{
    const struct dnn_shape *x = dnn_prog_shape(w->from, op->in[0]);
    const struct dnn_shape *k = dnn_prog_shape(w->to, in[1]);
    union dnn_attr attr = {
        .fold = {.epsilon = norm->attr.batchnorm.epsilon, .axis = k->ndim - 1}
    };

    if (op->kind == DNN_OP_DECONV) attr.fold.axis--;
    /* Keras's layout of a depthwise kernel: (k..., c, m / c) */
    if (op->kind == DNN_OP_CONV)
        attr.fold.depthwise = op->attr.window.groups > 1 &&
                              op->attr.window.groups == x->dim[x->ndim - 1] &&
                              k->dim[k->ndim - 2] == x->dim[x->ndim - 1];
    int operands[6] = {in[1], in[2]};
    for (int i = 0; i < 4; i++)
        operands[2 + i] = i + 1 < norm->nin ? mapped(w, norm->in[i + 1]) : DNN_NONE;
    w->to->layer = copy_name(w, op->layer);
    w->to->line = op->line;
    in[1] = dnn_prog_op(w->to, DNN_OP_FOLD, &attr, 6, operands);
    in[2] = in[1] + 1;
}

static void add_pad(struct dnn_op_window *win, const struct dnn_op_pad *pad)
{
    for (int i = 0; i < win->nspatial; i++) {
        win->before[i] += pad->before[i + 1];
        win->after[i] += pad->after[i + 1];
    }
}

/* The operands of op o and of the ops fused into it; returns their number. */
static int operands(struct work *w, int o, int *in)
{
    const struct fused *f = &w->fused[o];
    const struct dnn_op *op = &w->from->op[o];

    copy_operands(w, f->pad);
    copy_operands(w, o);
    copy_operands(w, f->bias);
    copy_operands(w, f->norm);
    for (int i = 0; i < op->nin; i++)
        in[i] = mapped(w, op->in[i]);
    if (f->pad != DNN_NONE) in[0] = mapped(w, w->from->op[f->pad].in[0]);
    if (f->bias == DNN_NONE && f->norm == DNN_NONE) return op->nin;
    if (op->nin == 2) in[2] = DNN_NONE;
    if (f->bias != DNN_NONE) in[2] = mapped(w, w->from->op[f->bias].in[1]);
    if (f->norm != DNN_NONE) fold(w, op, &w->from->op[f->norm], in);
    return 3;
}

/* Append op o with the ops fused into it. */
static void build(struct work *w, int o)
{
    const struct fused *f = &w->fused[o];
    const struct dnn_op *was = &w->from->op[o];
    int y = was->nout > 0 ? w->from->op[f->last].out[0] : DNN_NONE;
    struct dnn_op op = *was;
    int *in = dnn_arena_alloc(w->arena, ((size_t)op.nin + 1) * sizeof *in);
    struct dnn_tensor is[DNN_MAX_OUT];
    const struct dnn_tensor *out[DNN_MAX_OUT] = {NULL};

    op.nin = operands(w, o, in);
    op.in = in;
    op.layer = copy_name(w, op.layer);
    if (f->pad != DNN_NONE) add_pad(&op.attr.window, &w->from->op[f->pad].attr.pad);
    if (f->post != DNN_NONE) op.post = &w->from->op[f->post].attr.unary;
    if (f->mask) {
        const struct dnn_tensor *x = &w->from->value[was->in[0]].is;
        op.attr.unary.mask = true;
        op.nout = dnn_op_info(op.kind)->shape(&op.attr, 1, &x, is);
        is[1].name = NULL;
        out[1] = &is[1];
    }
    for (int i = 0; i < was->nout; i++) {
        if (was->out[i] == DNN_NONE) continue;
        is[i] = w->from->value[i == 0 ? y : was->out[i]].is;
        out[i] = &is[i];
    }
    dnn_prog_append(w->to, &op, out);
    const struct dnn_op *made = &w->to->op[w->to->nops - 1];
    for (int i = 0; i < was->nout; i++)
        if (was->out[i] != DNN_NONE) w->map[i == 0 ? y : was->out[i]] = made->out[i];
}

struct dnn_prog *dnn_fuse(const struct dnn_prog *prog, int n, int *value)
{
    size_t values = (size_t)prog->nvalues + 1;
    struct work w = {.from = prog,
                     .to = dnn_prog_make(prog->dtype, prog->training),
                     .arena = dnn_arena_make()};
    bool *keep = dnn_arena_alloc(w.arena, values * sizeof *keep);

    w.map = dnn_arena_alloc(w.arena, values * sizeof *w.map);
    for (int v = 0; v < prog->nvalues; v++)
        w.map[v] = DNN_NONE;
    for (int i = 0; i < n; i++)
        keep[value[i]] = true;
    w.fused = dnn_fuse_find(prog, keep, w.arena);
    for (int o = 0; o < prog->nops; o++)
        if (!w.fused[o].removed) build(&w, o);
    copy_given(&w, prog->nvalues);
    for (int i = 0; i < n; i++)
        value[i] = w.map[value[i]];
    w.to->nstreams = prog->nstreams;
    w.to->layer = copy_name(&w, prog->layer);
    w.to->line = prog->line;
    w.to->frozen = prog->frozen;
    dnn_arena_free(w.arena);
    return w.to;
}
