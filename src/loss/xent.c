/* xent.c - multi-class losses: nll, cross_entropy, focal, kl_divergence.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "loss/loss_impl.h"

#include <math.h>

static const char *const metrics[] = {"accuracy", NULL};
static const char *const value_metrics[] = {"kl_divergence", NULL};

/* ---- of classes ---- */

static int check_classes(const struct loss_ctx *ctx, struct dnn_err *err)
{
    if (ctx->classes > 1) return 0;
    return dnn_loss_fail(
        ctx, err,
        "needs two or more classes in the last axis; use bce or focal for one channel, "
        "mse for values");
}

/* weighted: the mean is weighted by the labels' weights; else all positions that are
 * not ignored count the same. */
static int classes(struct loss_ctx *ctx, union dnn_attr attr, bool weighted,
                   struct dnn_err *err)
{
    const struct loss_term *t = ctx->term;
    int w, sums = DNN_NONE;
    bool ignores;

    DNN_TRY(check_classes(ctx, err));
    DNN_TRY(dnn_loss_weights(ctx, &w, err));
    DNN_TRY(dnn_loss_ignores(ctx, &ignores, err));
    if (ctx->labels && (ignores || (weighted && w != DNN_NONE)))
        sums = dnn_loss_weigh(ctx, weighted ? w : DNN_NONE);
    attr.loss.ignores = ignores;
    attr.loss.ignore = t->ignore;
    attr.loss.scale *= t->factor / (double)ctx->total;
    if (sums == DNN_NONE) attr.loss.scale /= (double)ctx->rows;
    if (w == DNN_NONE && sums == DNN_NONE)
        return dnn_prog_op2(ctx->prog, DNN_OP_XENT, &attr, ctx->of, ctx->target);
    return dnn_prog_op(ctx->prog, DNN_OP_XENT, &attr, 4,
                       (int[]){ctx->of, ctx->target, w, sums});
}

static int softmax_source(struct loss_ctx *ctx, enum loss_source *source,
                          struct dnn_err *err)
{
    DNN_TRY(dnn_loss_find_source(ctx, source, err));
    if (*source == LOSS_SIGMOID)
        return dnn_loss_fail(
            ctx, err,
            "needs a softmax over the classes, but the network ends in "
            "sigmoid; use bce");
    return 0;
}

static int xent(struct loss_ctx *ctx, bool raw, struct dnn_err *err)
{
    enum loss_source source;
    union dnn_attr attr = {
        .loss = {.scale = 1, .smoothing = ctx->term->smoothing}
    };

    DNN_TRY(check_classes(ctx, err));
    DNN_TRY(softmax_source(ctx, &source, err));
    attr.loss.raw = raw && source == LOSS_NONE;
    return classes(ctx, attr, true, err);
}

static int nll(struct loss_ctx *ctx, struct dnn_err *err)
{
    return xent(ctx, true, err);
}

static int cross_entropy(struct loss_ctx *ctx, struct dnn_err *err)
{
    return xent(ctx, false, err);
}

/* As in Keras: summed over the classes, averaged over the rest. */
static int kl_divergence(struct loss_ctx *ctx, struct dnn_err *err)
{
    const union dnn_attr log_softmax = {
        .softmax = {.axis = dnn_prog_shape(ctx->prog, ctx->y)->ndim - 1, .log = true}
    };
    enum loss_source source;

    DNN_TRY(check_classes(ctx, err));
    DNN_TRY(softmax_source(ctx, &source, err));
    struct loss_ctx of_log = *ctx;
    if (source != LOSS_NONE)
        of_log.of = dnn_prog_op1(ctx->prog, DNN_OP_SOFTMAX, &log_softmax, ctx->of);
    return dnn_loss_mean(&of_log, (struct dnn_op_loss){.fn = DNN_POINT_KL}, err);
}

/* ---- focal ---- */

/* One channel, or several independent ones. */
static int binary(struct loss_ctx *ctx, struct dnn_err *err)
{
    return dnn_loss_mean(ctx,
                         (struct dnn_op_loss){.fn = DNN_POINT_FOCAL,
                                              .gamma = ctx->term->gamma,
                                              .alpha = ctx->term->alpha},
                         err);
}

static int focal(struct loss_ctx *ctx, struct dnn_err *err)
{
    const struct loss_term *t = ctx->term;
    enum loss_source source;

    DNN_TRY(dnn_loss_find_source(ctx, &source, err));
    if (source == LOSS_NONE)
        return dnn_loss_fail(
            ctx, err,
            "needs logits: source must be softmax, log_softmax or sigmoid, not none");
    if (source == LOSS_AUTO) source = ctx->classes == 1 ? LOSS_SIGMOID : LOSS_SOFTMAX;
    if (source == LOSS_SIGMOID) return binary(ctx, err);
    const union dnn_attr attr = {
        .loss = {.scale = t->alpha < 0 ? 1 : t->alpha, .gamma = t->gamma}
    };
    return classes(ctx, attr, false, err);
}

/* ---- the kinds ---- */

#define SMOOTHING                                                                      \
    LOSS_REAL("label_smoothing", smoothing, "0", 0, 1,                                 \
              "fraction of each target that is spread evenly over all classes")

static const struct dnn_field class_fields[] = {LOSS_COMMON, LOSS_SOURCE, LOSS_WEIGHT,
                                                LOSS_IGNORE, SMOOTHING,   LOSS_END};
static const struct dnn_field kl_fields[] = {LOSS_COMMON, LOSS_SOURCE, LOSS_END};
static const struct dnn_field focal_fields[] = {
    LOSS_COMMON,
    LOSS_SOURCE,
    LOSS_WEIGHT,
    LOSS_IGNORE,
    LOSS_REAL(
        "gamma", gamma, "2", 0, 100,
        "focusing parameter: how strongly well-classified samples are down-weighted"),
    LOSS_REAL(
        "alpha", alpha, "-1", -1, 1,
        "sigmoid: weight of positives, 1 - alpha that of negatives; softmax: factor of "
        "the loss; below 0: none"),
    LOSS_END};

extern const struct loss_kind dnn_loss_nll, dnn_loss_cross_entropy, dnn_loss_focal,
    dnn_loss_kl_divergence;
const struct loss_kind dnn_loss_nll = {
    "nll",
    {"negative_log_likelihood", "nll_loss"},
    "negative log-likelihood; source none: the outputs are log-probabilities",
    class_fields,
    true,
    metrics,
    nll
};
const struct loss_kind dnn_loss_cross_entropy = {
    "cross_entropy",
    {"xent", "crossentropy", "categorical_cross_entropy", "categorical_crossentropy",
      "sparse_categorical_crossentropy", "cross_entropy_loss"},
    "cross-entropy of logits, the input of a softmax; source none: the outputs are "
    "logits",
    class_fields,
    true,
    metrics,
    cross_entropy
};
const struct loss_kind dnn_loss_focal = {
    "focal",
    {"focal_loss"},
    "cross-entropy with well-classified samples down-weighted",
    focal_fields,
    true,
    metrics,
    focal};
const struct loss_kind dnn_loss_kl_divergence = {
    "kl_divergence",
    {"kl_div", "kld", "kullback_leibler_divergence"},
    "Kullback-Leibler divergence of the targets from the outputs, summed over classes; "
    "source none: the outputs are log-probabilities",
    kl_fields,
    false,
    value_metrics,
    kl_divergence
};
