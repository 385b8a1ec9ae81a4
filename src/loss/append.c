/* append.c - assign terms to outputs and append their ops.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "loss/losses_impl.h"

#include "base/text.h"

#include <stdarg.h>
#include <string.h>

int dnn_loss_fail(const struct loss_ctx *ctx, struct dnn_err *err, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return dnn_fail(err, DNN_ECONFIG, "output '%s': loss %s: %s", ctx->output,
                    ctx->term->kind->name, text);
}

/* ---- shared by the kinds ---- */

/* The activation the network ends in, and its input x.  A reshape after it that keeps
 * the channels is moved before it. */
static enum loss_source find_end(struct dnn_prog *prog, int y, int *x)
{
    int o = prog->value[y].op;

    *x = y;
    if (o == DNN_NONE) return LOSS_NONE;
    const struct dnn_op op = prog->op[o];
    if (op.kind == DNN_OP_UNARY && op.attr.unary.fn == DNN_SIGMOID) {
        *x = op.in[0];
        return LOSS_SIGMOID;
    }
    if (op.kind == DNN_OP_SOFTMAX &&
        op.attr.softmax.axis == dnn_prog_shape(prog, y)->ndim - 1) {
        *x = op.in[0];
        return op.attr.softmax.log ? LOSS_LOG_SOFTMAX : LOSS_SOFTMAX;
    }
    if (op.kind == DNN_OP_RESHAPE &&
        dnn_prog_dim(prog, y, -1) == dnn_prog_dim(prog, op.in[0], -1)) {
        int before;
        enum loss_source ends = find_end(prog, op.in[0], &before);

        if (ends != LOSS_NONE)
            *x = dnn_prog_op1(prog, DNN_OP_RESHAPE, &op.attr, before);
        return ends;
    }
    return LOSS_NONE;
}

static bool soft(enum loss_source source)
{
    return source == LOSS_SOFTMAX || source == LOSS_LOG_SOFTMAX;
}

int dnn_loss_find_source(struct loss_ctx *ctx, enum loss_source *out,
                         struct dnn_err *err)
{
    enum loss_source given = (enum loss_source)ctx->term->source;

    ctx->of = given == LOSS_NONE ? ctx->y : ctx->x;
    *out = given;
    if (given == LOSS_NONE) return 0;
    if (given == LOSS_AUTO) {
        *out = ctx->ends == LOSS_NONE ? LOSS_AUTO : ctx->ends;
        return 0;
    }
    if (ctx->ends == LOSS_NONE || ctx->ends == given ||
        (soft(ctx->ends) && soft(given)))
        return 0;
    return dnn_loss_fail(ctx, err, "source is %s, but the network ends in %s",
                         dnn_choice_name(dnn_loss_sources, given),
                         dnn_choice_name(dnn_loss_sources, ctx->ends));
}

int dnn_loss_weights(const struct loss_ctx *ctx, int *out, struct dnn_err *err)
{
    const struct dnn_list *weight = &ctx->term->weight;
    const struct dnn_shape shape = {.ndim = 1, .dim = {ctx->classes}};

    *out = DNN_NONE;
    if (weight->count == 0) return 0;
    if (weight->count != ctx->classes)
        return dnn_loss_fail(
            ctx, err, "%lld class weights given, but the output has %lld classes",
            (long long)weight->count, (long long)ctx->classes);
    *out = dnn_prog_constant(ctx->prog, "weight", &shape, weight->reals);
    return 0;
}

int dnn_loss_ignores(const struct loss_ctx *ctx, bool *out, struct dnn_err *err)
{
    *out = ctx->term->ignores;
    if (*out && !ctx->labels)
        return dnn_loss_fail(
            ctx, err,
            "ignore_index needs class numbers as targets, but they are values");
    return 0;
}

int dnn_loss_exchange(const struct loss_ctx *ctx, int s)
{
    return dnn_prog_op1(ctx->prog, DNN_OP_EXCHANGE, NULL, s);
}

int dnn_loss_weigh(const struct loss_ctx *ctx, int weights)
{
    const union dnn_attr attr = {
        .loss = {.ignores = ctx->term->ignores,
                 .ignore = ctx->term->ignore,
                 .classes = ctx->classes}
    };

    return dnn_loss_exchange(ctx, dnn_prog_op(ctx->prog, DNN_OP_WEIGH, &attr, 2,
                                              (int[]){ctx->target, weights}));
}

/* ---- terms and outputs ---- */

static int fail_names(const struct loss_term *term, const struct dnn_loss_net *net,
                      struct dnn_err *err)
{
    struct dnn_buf names = {0};

    for (int i = 0; i < net->noutputs; i++)
        dnn_buf_add(&names, "%s'%s'", i == 0 ? "" : ", ", net->name[i]);
    int rc = dnn_fail(
        err, DNN_ECONFIG,
        term->output == NULL
            ? "loss %s%s: every output already has a loss; set \"output\" "
              "to one of %s"
            : "loss %s: the network has no output '%s'; it has %s",
        term->kind->name, term->output == NULL ? "" : term->output, names.text);
    dnn_buf_free(&names);
    return rc;
}

bool dnn_loss_every(const struct dnn_loss *loss)
{
    return loss->nterms == 1 && loss->term[0].output == NULL;
}

int dnn_loss_output(const struct loss_term *term, const struct dnn_loss_net *net,
                    const int *target)
{
    for (int i = 0; i < net->noutputs; i++)
        if (term->output == NULL ? target[i] == DNN_NONE || net->noutputs == 1
                                 : strcmp(term->output, net->name[i]) == 0)
            return i;
    return DNN_NONE;
}

static int add_target(struct loss_ctx *ctx, enum dnn_loss_target is,
                      struct dnn_err *err)
{
    struct dnn_shape shape = *dnn_prog_shape(ctx->prog, ctx->y);

    ctx->labels = is == DNN_TARGET_ANY ? ctx->term->kind->labels && shape.ndim > 1
                                       : is == DNN_TARGET_LABELS;
    if (ctx->labels && shape.ndim < 2)
        return dnn_loss_fail(ctx, err,
                             "the targets are class numbers, but the output has no "
                             "class axis");
    if (ctx->labels) shape.ndim--;
    ctx->target = dnn_prog_target(ctx->prog, ctx->output,
                                  ctx->labels ? DNN_I32 : ctx->prog->dtype, &shape);
    return 0;
}

/* One term of output i. */
static int add(const struct loss_term *term, struct dnn_prog *prog,
               const struct dnn_loss_net *net, int i, int *target, int *of,
               struct dnn_err *err)
{
    struct loss_ctx ctx = {.term = term,
                           .prog = prog,
                           .output = net->name[i],
                           .y = net->output[i],
                           .target = target[i],
                           .batch = net->batch,
                           .total = net->total};
    int64_t count;

    DNN_TRY(dnn_shape_count(dnn_prog_shape(prog, ctx.y), &count, err));
    ctx.classes = dnn_prog_dim(prog, ctx.y, -1);
    ctx.rows = count / ctx.classes / net->batch;
    if (dnn_prog_shape(prog, ctx.y)->ndim < 2)
        return dnn_loss_fail(&ctx, err,
                             "the output must have another axis than the batch");
    if (target[i] == DNN_NONE)
        DNN_TRY(add_target(&ctx,
                           net->target_is == NULL
                               ? DNN_TARGET_ANY
                               : (enum dnn_loss_target)net->target_is[i],
                           err));
    else
        ctx.labels = prog->value[target[i]].is.dtype == DNN_I32;
    ctx.ends = find_end(prog, ctx.y, &ctx.x);
    ctx.of = ctx.y;
    int value = term->kind->append(&ctx, err);
    if (value < 0) return value;
    if (target[i] == DNN_NONE) {
        target[i] = ctx.target;
        of[i] = ctx.of;
    }
    return value;
}

int dnn_loss_append(const struct dnn_loss *loss, struct dnn_prog *prog,
                    const struct dnn_loss_net *net, int *target, int *of,
                    const int **terms, struct dnn_err *err)
{
    bool every = dnn_loss_every(loss);
    int n = every ? net->noutputs : loss->nterms;
    int *list = dnn_arena_alloc(prog->arena, ((size_t)n + 1) * sizeof *list);

    dnn_prog_set_layer(prog, "loss", 0, false);
    for (int i = 0; i < net->noutputs; i++) {
        target[i] = DNN_NONE;
        of[i] = net->output[i];
    }
    for (int i = 0; i < n; i++) {
        const struct loss_term *term = &loss->term[every ? 0 : i];
        int out = every ? i : dnn_loss_output(term, net, target);

        if (out == DNN_NONE) return fail_names(term, net, err);
        list[i] = add(term, prog, net, out, target, of, err);
        if (list[i] < 0) return list[i];
    }
    *terms = list;
    return n;
}
