/* print.c - prints a program: one line per op and per value that no op computes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/text.h"
#include "op/prog.h"

#include <inttypes.h>
#include <math.h>

static void list(struct dnn_buf *buf, const char *name, int n, const int64_t *d)
{
    dnn_buf_add(buf, " %s=", name);
    for (int i = 0; i < n; i++)
        dnn_buf_add(buf, "%s%" PRId64, i == 0 ? "" : "x", d[i]);
}

static bool all(int n, const int64_t *d, int64_t value)
{
    for (int i = 0; i < n; i++)
        if (d[i] != value) return false;
    return true;
}

static void pads(struct dnn_buf *buf, int n, const int64_t *before,
                 const int64_t *after)
{
    if (all(n, before, 0) && all(n, after, 0)) return;
    list(buf, "pad", n, before);
    for (int i = 0; i < n; i++)
        dnn_buf_add(buf, "%s%" PRId64, i == 0 ? ":" : "x", after[i]);
}

static void axes(struct dnn_buf *buf, const char *name, unsigned set)
{
    const char *sep = "";

    dnn_buf_add(buf, " %s=", name);
    for (int i = 0; i < DNN_MAX_DIMS; i++) {
        if ((set >> i & 1) == 0) continue;
        dnn_buf_add(buf, "%s%d", sep, i);
        sep = ",";
    }
}

static void window(struct dnn_buf *buf, const struct dnn_op_window *w)
{
    list(buf, "kernel", w->nspatial, w->kernel);
    if (!all(w->nspatial, w->stride, 1)) list(buf, "stride", w->nspatial, w->stride);
    if (!all(w->nspatial, w->dilation, 1))
        list(buf, "dilation", w->nspatial, w->dilation);
    pads(buf, w->nspatial, w->before, w->after);
    if (w->groups > 1) dnn_buf_add(buf, " groups=%" PRId64, w->groups);
}

static void unary(struct dnn_buf *buf, const struct dnn_op_unary *u)
{
    dnn_buf_add(buf, " %s", dnn_op_unary_name(u->fn));
    if (u->alpha != 0) dnn_buf_add(buf, " alpha=%g", u->alpha);
    if (u->fn != DNN_RELU) return;
    if (!isinf(u->max_value)) dnn_buf_add(buf, " max=%g", u->max_value);
    if (u->threshold != 0) dnn_buf_add(buf, " threshold=%g", u->threshold);
}

static void combine(struct dnn_buf *buf, const struct dnn_op *op)
{
    static const char *const name[] = {
        [DNN_ADD] = "add",           [DNN_SUBTRACT] = "subtract",
        [DNN_MULTIPLY] = "multiply", [DNN_MAXIMUM] = "maximum",
        [DNN_MINIMUM] = "minimum",   [DNN_AVERAGE] = "average"};

    dnn_buf_add(buf, " %s", name[op->attr.combine.fn]);
    if (op->pass != DNN_FWD)
        dnn_buf_add(buf, " part=%d/%d", op->attr.combine.part, op->attr.combine.parts);
}

static void noise(struct dnn_buf *buf, const struct dnn_op_noise *n)
{
    static const char *const name[] = {[DNN_DROPOUT] = "dropout",
                                       [DNN_GAUSSIAN_NOISE] = "gaussian",
                                       [DNN_GAUSSIAN_DROPOUT] = "gaussian_dropout",
                                       [DNN_ALPHA_DROPOUT] = "alpha_dropout"};

    dnn_buf_add(buf, " %s rate=%g stream=%" PRIu64, name[n->fn], n->rate, n->stream);
    if (n->seed != 0) dnn_buf_add(buf, " seed=%" PRIu64, n->seed);
    if (n->shared != 0) axes(buf, "shared", n->shared);
}

static void reduce(struct dnn_buf *buf, const struct dnn_op_reduce *r)
{
    static const char *const name[] = {
        [DNN_REDUCE_SUM] = "sum", [DNN_REDUCE_MEAN] = "mean", [DNN_REDUCE_MAX] = "max"};

    dnn_buf_add(buf, " %s", name[r->fn]);
    axes(buf, "axes", r->axes);
}

static void groupnorm(struct dnn_buf *buf, const struct dnn_op_groupnorm *g)
{
    axes(buf, "axes", g->axes);
    if (g->groups != 1) dnn_buf_add(buf, " groups=%" PRId64, g->groups);
    dnn_buf_add(buf, " epsilon=%g", g->epsilon);
}

static void batchnorm(struct dnn_buf *buf, const struct dnn_op *op)
{
    const struct dnn_op_batchnorm *b = &op->attr.batchnorm;

    dnn_buf_add(buf, " axis=%d", b->axis);
    if (op->kind == DNN_OP_BN_UPDATE) dnn_buf_add(buf, " momentum=%g", b->momentum);
    if (op->kind == DNN_OP_BN_APPLY || op->kind == DNN_OP_BN_INFER)
        dnn_buf_add(buf, " epsilon=%g", b->epsilon);
}

static void update(struct dnn_buf *buf, const struct dnn_op_update *u)
{
    static const char *const name[DNN_UPDATES] = {
        [DNN_UPDATE_SGD] = "sgd",         [DNN_UPDATE_ADAM] = "adam",
        [DNN_UPDATE_ADAMW] = "adamw",     [DNN_UPDATE_NADAM] = "nadam",
        [DNN_UPDATE_LAMB] = "lamb",       [DNN_UPDATE_LARS] = "lars",
        [DNN_UPDATE_ADAGRAD] = "adagrad", [DNN_UPDATE_ADADELTA] = "adadelta",
        [DNN_UPDATE_RMSPROP] = "rmsprop"};

    dnn_buf_add(buf, " %s", name[u->rule]);
}

static void loss(struct dnn_buf *buf, const struct dnn_op *op)
{
    static const char *const name[DNN_POINTS] = {
        [DNN_POINT_SQUARED] = "squared",
        [DNN_POINT_ABSOLUTE] = "absolute",
        [DNN_POINT_HUBER] = "huber",
        [DNN_POINT_HINGE] = "hinge",
        [DNN_POINT_BCE] = "bce",
        [DNN_POINT_BCE_LOGITS] = "bce_logits",
        [DNN_POINT_FOCAL] = "focal",
        [DNN_POINT_KL] = "kl",
        [DNN_POINT_MAPE] = "mape",
        [DNN_POINT_POISSON] = "poisson",
        [DNN_POINT_HINGE_EMBEDDING] = "hinge_embedding",
        [DNN_POINT_SOFT_MARGIN] = "soft_margin"};
    static const char *const margin[DNN_MARGINS] = {
        [DNN_MARGIN_CATEGORICAL] = "categorical", [DNN_MARGIN_MULTI] = "multi",
        [DNN_MARGIN_MULTILABEL] = "multilabel",   [DNN_MARGIN_RANKING] = "ranking",
        [DNN_MARGIN_COSINE] = "cosine",           [DNN_MARGIN_TRIPLET] = "triplet"};
    const struct dnn_op_loss *l = &op->attr.loss;

    if (op->kind == DNN_OP_POINT) {
        dnn_buf_add(buf, " %s", name[l->fn]);
        if (l->delta != 0) dnn_buf_add(buf, " delta=%g", l->delta);
        if (l->fn == DNN_POINT_FOCAL && l->alpha >= 0)
            dnn_buf_add(buf, " alpha=%g", l->alpha);
    }
    if (op->kind == DNN_OP_MARGIN) {
        dnn_buf_add(buf, " %s delta=%g", margin[l->margin], l->delta);
        if (l->power != 0) dnn_buf_add(buf, " power=%g", l->power);
        if (l->swap) dnn_buf_add(buf, " swap");
    }
    if (l->raw) dnn_buf_add(buf, " raw");
    if (l->gamma != 0) dnn_buf_add(buf, " gamma=%g", l->gamma);
    if (l->smoothing != 0) dnn_buf_add(buf, " smoothing=%g", l->smoothing);
    if (l->ignores) dnn_buf_add(buf, " ignore=%d", (int)l->ignore);
    if (op->kind != DNN_OP_WEIGH) dnn_buf_add(buf, " scale=%g", l->scale);
}

static void overlap(struct dnn_buf *buf, const struct dnn_op *op)
{
    static const char *const name[] = {[DNN_HEAD_NONE] = "none",
                                       [DNN_HEAD_SOFTMAX] = "softmax",
                                       [DNN_HEAD_SIGMOID] = "sigmoid",
                                       [DNN_HEAD_HINGE] = "hinge"};
    const struct dnn_op_overlap *o = &op->attr.overlap;

    dnn_buf_add(buf, " %s%s", name[o->source], o->whole ? " whole" : "");
    if (o->ignores) dnn_buf_add(buf, " ignore=%d", (int)o->ignore);
    if (op->kind == DNN_OP_LOVASZ) dnn_buf_add(buf, " scale=%g", o->scale);
}

/* ndim: the axes of the first operand. */
static void attributes(struct dnn_buf *buf, const struct dnn_op *op, int ndim)
{
    const union dnn_attr *a = &op->attr;

    switch (op->kind) {
    case DNN_OP_CONV:
    case DNN_OP_DECONV:
        window(buf, &a->window);
        break;
    case DNN_OP_POOL:
        dnn_buf_add(buf, a->pool.fn == DNN_POOL_MAX ? " max" : " average");
        window(buf, &a->pool.win);
        break;
    case DNN_OP_UPSAMPLE:
        dnn_buf_add(buf, a->upsample.fn == DNN_UP_NEAREST ? " nearest" : " linear");
        list(buf, "factor", a->upsample.nspatial, a->upsample.factor);
        break;
    case DNN_OP_PAD:
        pads(buf, ndim, a->pad.before, a->pad.after);
        break;
    case DNN_OP_UNARY:
        unary(buf, &a->unary);
        break;
    case DNN_OP_SOFTMAX:
        dnn_buf_add(buf, "%s axis=%d", a->softmax.log ? " log" : "", a->softmax.axis);
        break;
    case DNN_OP_COMBINE:
        combine(buf, op);
        break;
    case DNN_OP_CONCAT:
        dnn_buf_add(buf, " axis=%d", a->concat.axis);
        if (op->pass != DNN_FWD) dnn_buf_add(buf, " start=%" PRId64, a->concat.start);
        break;
    case DNN_OP_TRANSPOSE:
        dnn_buf_add(buf, " axes=");
        for (int i = 0; i < ndim; i++)
            dnn_buf_add(buf, "%s%d", i == 0 ? "" : ",", a->transpose.perm[i]);
        break;
    case DNN_OP_REDUCE:
        reduce(buf, &a->reduce);
        break;
    case DNN_OP_BN_STATS:
    case DNN_OP_BN_UPDATE:
    case DNN_OP_BN_APPLY:
    case DNN_OP_BN_INFER:
        batchnorm(buf, op);
        break;
    case DNN_OP_GROUPNORM:
        groupnorm(buf, &a->groupnorm);
        break;
    case DNN_OP_NOISE:
        noise(buf, &a->noise);
        break;
    case DNN_OP_ACTIVITY:
        dnn_buf_add(buf, " l1=%g l2=%g", a->activity.l1, a->activity.l2);
        break;
    case DNN_OP_MSE:
    case DNN_OP_XENT:
    case DNN_OP_POINT:
    case DNN_OP_MARGIN:
    case DNN_OP_WEIGH:
        loss(buf, op);
        break;
    case DNN_OP_OVERLAP:
    case DNN_OP_LOVASZ:
        overlap(buf, op);
        break;
    case DNN_OP_RATIO:
        dnn_buf_add(buf, " a=%g b=%g u=%g v=%g eps=%g scale=%g slope=%g%s", a->ratio.a,
                    a->ratio.b, a->ratio.u, a->ratio.v, a->ratio.eps, a->ratio.scale,
                    a->ratio.slope, a->ratio.whole ? " whole" : "");
        break;
    case DNN_OP_FOLD:
        dnn_buf_add(buf, " axis=%d epsilon=%g", a->fold.axis, a->fold.epsilon);
        break;
    case DNN_OP_PENALTY:
        dnn_buf_add(buf, " l1=%g l2=%g", a->penalty.l1, a->penalty.l2);
        break;
    case DNN_OP_UPDATE:
        update(buf, &a->update);
        break;
    default:
        break;
    }
}

/* "%3 f64 7" */
static void value(struct dnn_buf *buf, const struct dnn_prog *prog, int v)
{
    const struct dnn_tensor *is = &prog->value[v].is;
    char text[DNN_SHAPE_TEXT];

    dnn_buf_add(buf, "%%%d ", v);
    if (is->dtype != prog->dtype) dnn_buf_add(buf, "%s ", dnn_dtype_name(is->dtype));
    dnn_buf_add(buf, "%s", dnn_shape_text(text, sizeof text, &is->shape));
}

static void source(struct dnn_buf *buf, const struct dnn_prog *prog, int v)
{
    static const char *const role[] = {
        [DNN_INPUT] = "input", [DNN_TARGET] = "target", [DNN_WEIGHT] = "weight",
        [DNN_STATE] = "state", [DNN_SLOT] = "slot",     [DNN_CONSTANT] = "constant",
        [DNN_TEMP] = "temp"};
    const struct dnn_value *is = &prog->value[v];

    value(buf, prog, v);
    dnn_buf_add(buf, " %s\n", is->is.name != NULL ? is->is.name : role[is->role]);
}

static void line(struct dnn_buf *buf, const struct dnn_prog *prog,
                 const struct dnn_op *op)
{
    static const char *const suffix[DNN_PASSES] = {"", ".data", ".weights", ".stats"};
    const char *sep = "";
    bool any = false;

    for (int i = 0; i < op->nout; i++) {
        if (op->out[i] == DNN_NONE) continue;
        dnn_buf_add(buf, "%s", any ? ", " : "");
        value(buf, prog, op->out[i]);
        any = true;
    }
    if (any) sep = " = ";
    dnn_buf_add(buf, "%s%s%s", sep, dnn_op_info(op->kind)->name, suffix[op->pass]);
    for (int i = 0; i < op->nin; i++) {
        if (op->in[i] == DNN_NONE)
            dnn_buf_add(buf, " -");
        else
            dnn_buf_add(buf, " %%%d", op->in[i]);
    }
    attributes(buf, op, op->nin > 0 ? dnn_prog_shape(prog, op->in[0])->ndim : 0);
    if (op->post != NULL) {
        dnn_buf_add(buf, " then");
        unary(buf, op->post);
    }
    dnn_buf_add(buf, "\n");
}

void dnn_prog_print(const struct dnn_prog *prog, FILE *where)
{
    struct dnn_buf buf = {0};
    int v = 0;

    /* Values are numbered in the order in which they were made: before an op, print the
     * new values up to its operands that no op computes. */
    for (int i = 0; i < prog->nops; i++) {
        const struct dnn_op *op = &prog->op[i];
        int end = v;
        for (int j = 0; j < op->nin; j++)
            if (op->in[j] >= end) end = op->in[j] + 1;
        for (int j = 0; j < op->nout; j++)
            if (op->out[j] >= end) end = op->out[j] + 1;
        for (; v < end; v++)
            if (prog->value[v].op == DNN_NONE) source(&buf, prog, v);
        line(&buf, prog, op);
    }
    for (; v < prog->nvalues; v++)
        if (prog->value[v].op == DNN_NONE) source(&buf, prog, v);
    if (buf.text != NULL) fputs(buf.text, where);
    dnn_buf_free(&buf);
}
