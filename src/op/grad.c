/* grad.c - autodiff: appends the backward ops to a program.
 *
 * Each rule lists the forward operands that its backward op reads: these are kept in
 * memory until then.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "op/grad.h"

#include <assert.h>

/* A summand of a value's gradient. */
struct term {
    int grad;
    struct term *next;
};

struct work {
    struct dnn_prog *prog;
    struct dnn_arena *arena; /* owned */
    bool *need;              /* by value: its gradient is needed */
    int *first;              /* by value: the first op that uses it       */
    struct term **terms;     /* by value: in the order they were computed */
    const struct dnn_op *op; /* being differentiated; a copy, because the array of the
                                program may be reallocated */
};

static bool needed(const struct work *w, int i)
{
    return i < w->op->nin && w->op->in[i] != DNN_NONE && w->need[w->op->in[i]];
}

static void add_term(struct work *w, int value, int grad)
{
    struct term **at = &w->terms[value];

    while (*at != NULL)
        at = &(*at)->next;
    *at = dnn_arena_alloc(w->arena, sizeof **at);
    (*at)->grad = grad;
}

/* Append one backward op of the current one.  like: the values whose shapes and
 * types the outputs have, DNN_NONE for an absent output. */
static int append(struct work *w, enum dnn_pass pass, const union dnn_attr *attr,
                  int nin, const int *in, int nout, const int *like)
{
    struct dnn_op op = {.kind = w->op->kind,
                        .pass = pass,
                        .attr = *attr,
                        .nin = nin,
                        .nout = nout,
                        .in = in,
                        .layer = w->op->layer,
                        .line = w->op->line};
    /* Only the backward ops of these include the fused activation: their dy is that of
     * its result. */
    if (op.kind == DNN_OP_GROUPNORM ||
        (op.kind == DNN_OP_BN_APPLY && pass == DNN_BWD_DATA))
        op.post = w->op->post;
    struct dnn_tensor is[DNN_MAX_OUT];
    const struct dnn_tensor *out[DNN_MAX_OUT] = {NULL};

    for (int i = 0; i < nout; i++) {
        if (like[i] == DNN_NONE) continue;
        is[i] = w->prog->value[like[i]].is;
        is[i].name = NULL;
        out[i] = &is[i];
    }
    return dnn_prog_append(w->prog, &op, out);
}

/* The gradient of operand i, computed from the values in. */
static void data(struct work *w, int i, int nin, const int *in)
{
    int x = w->op->in[i];

    add_term(w, x, append(w, DNN_BWD_DATA, &w->op->attr, nin, in, 1, &x));
}

static void weights(struct work *w, int i, int nin, const int *in)
{
    int x = w->op->in[i];

    add_term(w, x, append(w, DNN_BWD_WEIGHTS, &w->op->attr, nin, in, 1, &x));
}

/* The gradients of operands i and i + 1, such as gamma and beta, by one op. */
static void both(struct work *w, int i, int nin, const int *in)
{
    int like[2] = {needed(w, i) ? w->op->in[i] : DNN_NONE,
                   needed(w, i + 1) ? w->op->in[i + 1] : DNN_NONE};

    if (like[0] == DNN_NONE && like[1] == DNN_NONE) return;
    append(w, DNN_BWD_WEIGHTS, &w->op->attr, nin, in, 2, like);
    const struct dnn_op *made = &w->prog->op[w->prog->nops - 1];
    int out[2] = {made->out[0], made->out[1]};
    for (int j = 0; j < 2; j++)
        if (like[j] != DNN_NONE) add_term(w, like[j], out[j]);
}

/* The gradient with respect to the input of a fused activation. */
static int before_post(struct work *w, int dy)
{
    const struct dnn_op *op = w->op;
    struct dnn_op undo = *op;
    int y = op->out[0];

    if (op->post == NULL) return dy;
    assert(dnn_op_unary_by_result(op->post));
    undo.kind = DNN_OP_UNARY;
    undo.post = NULL;
    w->op = &undo;
    const union dnn_attr attr = {.unary = *op->post};
    int dx = append(w, DNN_BWD_DATA, &attr, 2, (int[]){dy, y}, 1, &y);
    w->op = op;
    return dx;
}

/* The gradient of only a bias: x need not be kept. */
static void bias(struct work *w, int i, int dy)
{
    const struct dnn_op *before = w->op;
    struct dnn_op op = *before;

    op.kind = DNN_OP_BIAS;
    op.attr = (union dnn_attr){0};
    w->op = &op;
    weights(w, i, 1, &dy);
    w->op = before;
}

static void linear(struct work *w, int dy)
{
    const int *in = w->op->in;

    dy = before_post(w, dy);
    if (needed(w, 1) && needed(w, 2))
        both(w, 1, 2, (int[]){in[0], dy});
    else if (needed(w, 1))
        weights(w, 1, 2, (int[]){in[0], dy});
    else if (needed(w, 2))
        bias(w, 2, dy);
    if (needed(w, 0)) data(w, 0, 2, (int[]){dy, in[1]});
}

static void combine(struct work *w, int dy)
{
    struct dnn_op op = *w->op;
    const struct dnn_op *before = w->op;
    int *in = dnn_arena_alloc(w->arena, ((size_t)op.nin + 2) * sizeof *in);
    enum dnn_combine fn = op.attr.combine.fn;

    /* With a fused activation the result of the maximum itself is not stored. */
    assert(op.post == NULL || (fn != DNN_MAXIMUM && fn != DNN_MINIMUM));
    dy = before_post(w, dy);

    for (int i = 0; i < op.nin; i++) {
        if (!needed(w, i)) continue;
        int n = 0;
        in[n++] = dy;
        /* A sum passes dy on, unless the operand was broadcast. */
        if ((fn == DNN_ADD || (fn == DNN_SUBTRACT && i == 0)) &&
            dnn_shape_equal(dnn_prog_shape(w->prog, op.in[i]),
                            dnn_prog_shape(w->prog, dy))) {
            add_term(w, op.in[i], dy);
            continue;
        }
        if (fn == DNN_MULTIPLY)
            for (int j = 0; j < op.nin; j++)
                if (j != i) in[n++] = op.in[j];
        if (fn == DNN_MAXIMUM || fn == DNN_MINIMUM) {
            in[n++] = op.out[0];
            for (int j = 0; j <= i; j++)
                in[n++] = op.in[j];
        }
        op.attr.combine.part = i;
        w->op = &op;
        data(w, i, n, in);
        w->op = before;
    }
}

static void concat(struct work *w, int dy)
{
    struct dnn_op op = *w->op;
    const struct dnn_op *before = w->op;
    int axis = op.attr.concat.axis;

    w->op = &op;
    op.attr.concat.start = 0;
    for (int i = 0; i < op.nin; i++) {
        if (needed(w, i)) data(w, i, 1, &dy);
        op.attr.concat.start += dnn_prog_dim(w->prog, op.in[i], axis);
    }
    w->op = before;
}

/* The gradient of reshape and transpose is the same op. */
static void undo(struct work *w, int dy)
{
    union dnn_attr attr = {0};
    int x = w->op->in[0];

    if (!needed(w, 0)) return;
    if (w->op->kind == DNN_OP_RESHAPE)
        attr.reshape.shape = *dnn_prog_shape(w->prog, x);
    else
        for (int i = 0; i < dnn_prog_shape(w->prog, x)->ndim; i++)
            attr.transpose.perm[w->op->attr.transpose.perm[i]] = i;
    add_term(w, x, append(w, DNN_FWD, &attr, 1, &dy, 1, &x));
}

static void batchnorm(struct work *w, int dy)
{
    const int *in = w->op->in; /* x sums gamma beta */
    bool post = w->op->post != NULL;
    int64_t c = dnn_prog_dim(w->prog, in[0], w->op->attr.batchnorm.axis);
    const struct dnn_tensor is = {
        .dtype = DNN_F64, .shape = {.ndim = 1, .dim = {2 * c}}
    };
    const struct dnn_tensor *out = &is;

    if (!needed(w, 0) && !needed(w, 2) && !needed(w, 3)) return;
    struct dnn_op op = *w->op;
    op.pass = DNN_BWD_STATS;
    op.nin = post ? 5 : 3;
    op.nout = 1;
    op.in = (int[]){dy, in[0], in[1], in[2], in[3]};
    int local_sums = dnn_prog_append(w->prog, &op, &out);
    /* Gamma and beta use the local sums, as gradients are summed over ranks later; x
     * needs the global sums. */
    both(w, 2, 1, &local_sums);
    if (!needed(w, 0)) return;
    op.kind = DNN_OP_EXCHANGE;
    op.post = NULL;
    op.pass = DNN_FWD;
    op.attr = (union dnn_attr){0};
    op.nin = 1;
    op.in = &local_sums;
    int global_sums = dnn_prog_append(w->prog, &op, &out);
    data(w, 0, post ? 6 : 5, (int[]){dy, in[0], in[1], global_sums, in[2], in[3]});
}

static void unary(struct work *w, int dy)
{
    const struct dnn_op *op = w->op;
    int by = dnn_op_unary_by_result(&op->attr.unary) ? op->out[0] : op->in[0];

    if (op->attr.unary.mask) by = op->out[1];
    if (needed(w, 0)) data(w, 0, 2, (int[]){dy, by});
}

static void simple(struct work *w, int dy)
{
    const int *in = w->op->in, *out = w->op->out;
    bool x = needed(w, 0), post = w->op->post != NULL;

    switch (w->op->kind) {
    case DNN_OP_BIAS:
        if (needed(w, 1)) weights(w, 1, 1, &dy);
        if (x) add_term(w, in[0], dy);
        break;
    case DNN_OP_POOL:
        if (!x) break;
        if (w->op->nout == 2)
            data(w, 0, 2, (int[]){dy, out[1]});
        else
            data(w, 0, 1, &dy);
        break;
    case DNN_OP_PRELU:
        if (needed(w, 1)) weights(w, 1, 2, (int[]){dy, in[0]});
        if (x) data(w, 0, 3, (int[]){dy, in[0], in[1]});
        break;
    case DNN_OP_SOFTMAX:
        if (x) data(w, 0, 2, (int[]){dy, out[0]});
        break;
    case DNN_OP_REDUCE:
        if (!x) break;
        if (w->op->attr.reduce.fn == DNN_REDUCE_MAX)
            data(w, 0, 3, (int[]){dy, in[0], out[0]});
        else
            data(w, 0, 1, &dy);
        break;
    case DNN_OP_BN_INFER:
        dy = before_post(w, dy);
        both(w, 3, 4, (int[]){dy, in[0], in[1], in[2]});
        if (x) data(w, 0, 3, (int[]){dy, in[2], in[3]});
        break;
    case DNN_OP_GROUPNORM:
        both(w, 1, post ? 5 : 3, (int[]){dy, in[0], out[1], in[1], in[2]});
        if (x) data(w, 0, post ? 5 : 4, (int[]){dy, in[0], out[1], in[1], in[2]});
        break;
    case DNN_OP_NOISE:
        if (!x) break;
        if (w->op->attr.noise.fn == DNN_GAUSSIAN_NOISE)
            add_term(w, in[0], dy);
        else
            data(w, 0, 1, &dy);
        break;
    case DNN_OP_SCALE:
        if (x) data(w, 0, 2, (int[]){dy, in[1]});
        break;
    case DNN_OP_ACTIVITY:
        if (x) data(w, 0, 2, (int[]){dy, in[0]});
        break;
    case DNN_OP_MSE:
    case DNN_OP_OVERLAP:
        if (x) data(w, 0, 3, (int[]){dy, in[0], in[1]});
        break;
    case DNN_OP_XENT:
    case DNN_OP_POINT:
    case DNN_OP_MARGIN:
        if (x && w->op->nin == 2)
            data(w, 0, 3, (int[]){dy, in[0], in[1]});
        else if (x)
            data(w, 0, 5, (int[]){dy, in[0], in[1], in[2], in[3]});
        break;
    case DNN_OP_RATIO:
        if (x) data(w, 0, 3, (int[]){dy, in[1], in[2]});
        break;
    case DNN_OP_LOVASZ:
        if (x) data(w, 0, 4, (int[]){dy, in[0], in[1], out[1]});
        break;
    default: /* UPSAMPLE, PAD */
        if (x) data(w, 0, 1, &dy);
        break;
    }
}

static void differentiate(struct work *w, int dy)
{
    switch (w->op->kind) {
    case DNN_OP_MATMUL:
    case DNN_OP_CONV:
    case DNN_OP_DECONV:
        linear(w, dy);
        break;
    case DNN_OP_UNARY:
        unary(w, dy);
        break;
    case DNN_OP_COMBINE:
        combine(w, dy);
        break;
    case DNN_OP_CONCAT:
        concat(w, dy);
        break;
    case DNN_OP_RESHAPE:
    case DNN_OP_TRANSPOSE:
        undo(w, dy);
        break;
    case DNN_OP_BN_APPLY:
        batchnorm(w, dy);
        break;
    case DNN_OP_BN_STATS:
    case DNN_OP_EXCHANGE:
    case DNN_OP_BN_UPDATE:
        break; /* the data pass of BN_APPLY includes the statistics */
    case DNN_OP_FOLD:
    case DNN_OP_PENALTY:
    case DNN_OP_UPDATE:
    case DNN_OP_WEIGH:
        break; /* inference; targets; UPDATE adds the gradient of penalties */
    default:
        simple(w, dy);
        break;
    }
}

/* Whether a gradient flows to operand i of an op. */
static bool has_gradient(const struct dnn_op *op, int i)
{
    switch (op->kind) {
    case DNN_OP_BN_STATS:
    case DNN_OP_EXCHANGE:
    case DNN_OP_BN_UPDATE:
    case DNN_OP_FOLD:
    case DNN_OP_PENALTY:
    case DNN_OP_UPDATE:
    case DNN_OP_WEIGH:
        return false;
    case DNN_OP_BN_APPLY:
        return i != 1;
    case DNN_OP_BN_INFER:
        return i != 1 && i != 2;
    case DNN_OP_SCALE:
    case DNN_OP_MSE:
    case DNN_OP_XENT:
    case DNN_OP_POINT:
    case DNN_OP_MARGIN:
    case DNN_OP_OVERLAP:
    case DNN_OP_RATIO:
    case DNN_OP_LOVASZ:
        return i == 0;
    default:
        return true;
    }
}

static void find_needs(struct work *w, bool inputs)
{
    const struct dnn_prog *prog = w->prog;

    for (int v = 0; v < prog->nvalues; v++) {
        const struct dnn_value *is = &prog->value[v];
        w->need[v] = (is->role == DNN_WEIGHT && is->trainable) ||
                     (inputs && is->role == DNN_INPUT);
        w->first[v] = prog->nops;
    }
    for (int i = prog->nops - 1; i >= 0; i--)
        for (int j = 0; j < prog->op[i].nin; j++)
            if (prog->op[i].in[j] != DNN_NONE) w->first[prog->op[i].in[j]] = i;
    for (int i = 0; i < prog->nops; i++) {
        const struct dnn_op *op = &prog->op[i];
        for (int j = 0; j < op->nin; j++)
            if (op->in[j] != DNN_NONE && w->need[op->in[j]] && has_gradient(op, j) &&
                op->nout > 0)
                w->need[op->out[0]] = true;
    }
}

/* The complete gradient of a value, once all terms are known; DNN_NONE if there is
 * none. */
static int total(struct work *w, int value)
{
    struct dnn_prog *prog = w->prog;
    int n = 0;

    for (struct term *t = w->terms[value]; t != NULL; t = t->next)
        n++;
    if (n == 0) return DNN_NONE;
    int grad = w->terms[value]->grad;
    if (n > 1) {
        int *in = dnn_arena_alloc(w->arena, (size_t)n * sizeof *in);
        n = 0;
        for (struct term *t = w->terms[value]; t != NULL; t = t->next)
            in[n++] = t->grad;
        const union dnn_attr add = {.combine = {.fn = DNN_ADD}};
        grad = dnn_prog_op(prog, DNN_OP_COMBINE, &add, n, in);
    }
    prog->value[value].grad = grad;
    return grad;
}

void dnn_grad(struct dnn_prog *prog, int n, const struct dnn_grad_of *of, bool inputs)
{
    struct dnn_arena *arena = dnn_arena_make();
    size_t values = (size_t)prog->nvalues;
    int forward = prog->nops;
    const char *layer = prog->layer;
    int line = prog->line;
    struct work w = {
        .prog = prog,
        .arena = arena,
        .need = dnn_arena_alloc(arena, values * sizeof *w.need),
        .first = dnn_arena_alloc(arena, values * sizeof *w.first),
        .terms = dnn_arena_alloc(arena, values * sizeof *w.terms),
    };

    assert(prog->training);
    find_needs(&w, inputs);
    for (int i = 0; i < n; i++) {
        assert(dnn_shape_equal(dnn_prog_shape(prog, of[i].value),
                               dnn_prog_shape(prog, of[i].seed)));
        add_term(&w, of[i].value, of[i].seed);
    }
    for (int i = forward - 1; i >= 0; i--) {
        const struct dnn_op op = prog->op[i];
        prog->layer = op.layer;
        prog->line = op.line;
        w.op = &op;
        if (op.nout > 0 && w.need[op.out[0]]) {
            int dy = total(&w, op.out[0]);
            if (dy != DNN_NONE) differentiate(&w, dy);
        }
        /* At its first use, the gradient of a value that no op computes is complete. */
        for (int j = 0; j < op.nin; j++) {
            int v = op.in[j];
            if (v != DNN_NONE && prog->value[v].op == DNN_NONE && w.need[v] &&
                w.first[v] == i && prog->value[v].grad == DNN_NONE)
                total(&w, v);
        }
    }
    prog->layer = layer;
    prog->line = line;
    prog->nforward = forward;
    dnn_arena_free(arena);
}
