/* point.c - element-wise losses: regression, hinges, binary cross-entropy.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "loss/loss_impl.h"

#include <math.h>

static const char *const value_metrics[] = {"mae", NULL};
static const char *const class_metrics[] = {"accuracy", NULL};
static const char *const no_metrics[] = {NULL};

int dnn_loss_mean(struct loss_ctx *ctx, struct dnn_op_loss what, struct dnn_err *err)
{
    const struct loss_term *t = ctx->term;
    union dnn_attr attr = {.loss = what};
    int w, sums = DNN_NONE;

    attr.loss.ignore = t->ignore;
    attr.loss.scale = t->factor / (double)ctx->total;
    if (what.fn != DNN_POINT_KL) attr.loss.scale /= (double)ctx->classes;
    DNN_TRY(dnn_loss_weights(ctx, &w, err));
    DNN_TRY(dnn_loss_ignores(ctx, &attr.loss.ignores, err));
    if (attr.loss.ignores) sums = dnn_loss_weigh(ctx, DNN_NONE);
    if (sums == DNN_NONE) attr.loss.scale /= (double)ctx->rows;
    if (w != DNN_NONE || sums != DNN_NONE)
        return dnn_prog_op(ctx->prog, DNN_OP_POINT, &attr, 4,
                           (int[]){ctx->of, ctx->target, w, sums});
    /* MSE has its own, faster op. */
    bool squares = what.fn == DNN_POINT_SQUARED && !ctx->labels;
    if (squares) attr.loss = (struct dnn_op_loss){.scale = attr.loss.scale};
    return dnn_prog_op2(ctx->prog, squares ? DNN_OP_MSE : DNN_OP_POINT, &attr, ctx->of,
                        ctx->target);
}

static int mean(struct loss_ctx *ctx, enum dnn_point fn, struct dnn_err *err)
{
    return dnn_loss_mean(ctx,
                         (struct dnn_op_loss){.fn = fn,
                                              .delta = ctx->term->delta,
                                              .raw = ctx->term->log_input},
                         err);
}

static int mse(struct loss_ctx *ctx, struct dnn_err *err)
{
    return mean(ctx, DNN_POINT_SQUARED, err);
}

static int mae(struct loss_ctx *ctx, struct dnn_err *err)
{
    return mean(ctx, DNN_POINT_ABSOLUTE, err);
}

static int mape(struct loss_ctx *ctx, struct dnn_err *err)
{
    return mean(ctx, DNN_POINT_MAPE, err);
}

static int huber(struct loss_ctx *ctx, struct dnn_err *err)
{
    return mean(ctx, DNN_POINT_HUBER, err);
}

static int poisson_nll(struct loss_ctx *ctx, struct dnn_err *err)
{
    return mean(ctx, DNN_POINT_POISSON, err);
}

static int hinge(struct loss_ctx *ctx, struct dnn_err *err)
{
    return mean(ctx, DNN_POINT_HINGE, err);
}

static int hinge_embedding(struct loss_ctx *ctx, struct dnn_err *err)
{
    return mean(ctx, DNN_POINT_HINGE_EMBEDDING, err);
}

static int soft_margin(struct loss_ctx *ctx, struct dnn_err *err)
{
    return mean(ctx, DNN_POINT_SOFT_MARGIN, err);
}

/* From logits if the network ends in a sigmoid, which is more accurate; else from
 * probabilities. */
static int bce(struct loss_ctx *ctx, struct dnn_err *err)
{
    enum loss_source source;

    DNN_TRY(dnn_loss_find_source(ctx, &source, err));
    if (source == LOSS_SIGMOID) return mean(ctx, DNN_POINT_BCE_LOGITS, err);
    if (source == LOSS_LOG_SOFTMAX ||
        (source == LOSS_SOFTMAX && ctx->ends != LOSS_SOFTMAX))
        return dnn_loss_fail(ctx, err,
                             "needs probabilities: end the network in sigmoid or "
                             "softmax, or set source to sigmoid");
    ctx->of = ctx->y;
    return mean(ctx, DNN_POINT_BCE, err);
}

static int bce_logits(struct loss_ctx *ctx, struct dnn_err *err)
{
    enum loss_source source;

    DNN_TRY(dnn_loss_find_source(ctx, &source, err));
    if (source == LOSS_SOFTMAX || source == LOSS_LOG_SOFTMAX)
        return dnn_loss_fail(ctx, err,
                             "needs the logits of a sigmoid, but the network ends in "
                             "softmax; use bce");
    return mean(ctx, DNN_POINT_BCE_LOGITS, err);
}

static const struct dnn_field value_fields[] = {LOSS_COMMON, LOSS_END};
static const struct dnn_field mape_fields[] = {
    LOSS_COMMON,
    LOSS_REAL("eps", delta, "1e-7", 1e-300, INFINITY,
              "least absolute target to divide by"),
    LOSS_END};
static const struct dnn_field huber_fields[] = {
    LOSS_COMMON,
    LOSS_REAL("delta", delta, "1", 1e-300, INFINITY,
              "difference above which the loss is linear"),
    LOSS_END};
static const struct dnn_field poisson_fields[] = {
    LOSS_COMMON,
    LOSS_BOOL("log_input", log_input, "true",
              "the output is the logarithm of the rate, not the rate"),
    LOSS_REAL("eps", delta, "1e-8", 1e-300, INFINITY,
              "log_input false: added to the rate before its logarithm"),
    LOSS_END};
static const struct dnn_field embedding_fields[] = {LOSS_COMMON, LOSS_MARGIN("1"),
                                                    LOSS_END};
static const struct dnn_field binary_fields[] = {LOSS_COMMON, LOSS_SOURCE, LOSS_WEIGHT,
                                                 LOSS_IGNORE, LOSS_END};

extern const struct loss_kind dnn_loss_mse, dnn_loss_mae, dnn_loss_mape, dnn_loss_huber,
    dnn_loss_poisson_nll, dnn_loss_hinge, dnn_loss_hinge_embedding,
    dnn_loss_soft_margin, dnn_loss_bce, dnn_loss_bce_logits;
const struct loss_kind dnn_loss_mse = {
    "mse",
    {"mean_squared_error", "regression_mse"},
    "mean squared error",
    value_fields,
    false,
    value_metrics,
    mse
};
const struct loss_kind dnn_loss_mae = {
    "mae",
    {"l1", "mean_absolute_error", "regression_mae"},
    "mean absolute error",
    value_fields,
    false,
    value_metrics,
    mae
};
const struct loss_kind dnn_loss_mape = {"mape",
                                        {"mean_absolute_percentage_error"},
                                        "mean absolute error in percent of the target",
                                        mape_fields,
                                        false,
                                        value_metrics,
                                        mape};
const struct loss_kind dnn_loss_huber = {
    "huber",
    {"huber_loss"},
    "half the squared difference up to delta, linear above",
    huber_fields,
    false,
    value_metrics,
    huber};
const struct loss_kind dnn_loss_poisson_nll = {
    "poisson_nll",
    {"poisson_nll_loss"},
    "negative log-likelihood of counts with a Poisson distribution, without the "
    "constant term",
    poisson_fields,
    false,
    value_metrics,
    poisson_nll};
const struct loss_kind dnn_loss_hinge = {
    "hinge",
    {NULL},
    "max(0, 1 - t y); t is 1 where the target is above 0, else -1",
    value_fields,
    false,
    class_metrics,
    hinge};
const struct loss_kind dnn_loss_hinge_embedding = {
    "hinge_embedding",
    {"hinge_embedding_loss"},
    "of distances: y where the target is above 0, else max(0, margin - y)",
    embedding_fields,
    false,
    no_metrics,
    hinge_embedding};
const struct loss_kind dnn_loss_soft_margin = {
    "soft_margin",
    {"soft_margin_loss"},
    "log(1 + exp(-t y)); t is 1 where the target is above 0, else -1",
    value_fields,
    false,
    class_metrics,
    soft_margin};
const struct loss_kind dnn_loss_bce = {
    "bce",
    {"binary_cross_entropy", "binary_crossentropy", "bce_loss"},
    "binary cross-entropy of probabilities; weight: one number per channel",
    binary_fields,
    false,
    class_metrics,
    bce
};
const struct loss_kind dnn_loss_bce_logits = {
    "bce_logits",
    {"bce_with_logits", "multilabel_soft_margin", "multilabel_soft_margin_loss"},
    "binary cross-entropy of logits, the input of a sigmoid",
    binary_fields,
    false,
    class_metrics,
    bce_logits
};
