/* margin.c - losses of a row of channels: class margins, pairs and triplets of vectors.
 *
 * A pair or triplet is one output: its vectors are concatenated along the channels, as
 * by a Concatenate layer.  The target of a pair is a class number,
 * 1 (or above) or 0.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "loss/loss_impl.h"

#include <math.h>

static const char *const class_metrics[] = {"accuracy", NULL};
static const char *const no_metrics[] = {NULL};

/* The mean over all rows that are not ignored. */
static int rows(struct loss_ctx *ctx, struct dnn_op_loss what, struct dnn_err *err)
{
    const struct loss_term *t = ctx->term;
    union dnn_attr attr = {.loss = what};
    int w, sums = DNN_NONE;

    if (ctx->classes < 2)
        return dnn_loss_fail(ctx, err, "needs two or more channels in the last axis");
    attr.loss.power = t->power;
    attr.loss.ignore = t->ignore;
    attr.loss.scale = t->factor / (double)ctx->total;
    DNN_TRY(dnn_loss_weights(ctx, &w, err));
    DNN_TRY(dnn_loss_ignores(ctx, &attr.loss.ignores, err));
    if (attr.loss.ignores) sums = dnn_loss_weigh(ctx, DNN_NONE);
    if (sums == DNN_NONE) attr.loss.scale /= (double)ctx->rows;
    if (w == DNN_NONE && sums == DNN_NONE)
        return dnn_prog_op2(ctx->prog, DNN_OP_MARGIN, &attr, ctx->of, ctx->target);
    return dnn_prog_op(ctx->prog, DNN_OP_MARGIN, &attr, 4,
                       (int[]){ctx->of, ctx->target, w, sums});
}

static int categorical_hinge(struct loss_ctx *ctx, struct dnn_err *err)
{
    return rows(ctx, (struct dnn_op_loss){.margin = DNN_MARGIN_CATEGORICAL, .delta = 1},
                err);
}

static int multi_margin(struct loss_ctx *ctx, struct dnn_err *err)
{
    return rows(
        ctx,
        (struct dnn_op_loss){.margin = DNN_MARGIN_MULTI, .delta = ctx->term->delta},
        err);
}

static int multilabel_margin(struct loss_ctx *ctx, struct dnn_err *err)
{
    return rows(ctx, (struct dnn_op_loss){.margin = DNN_MARGIN_MULTILABEL, .delta = 1},
                err);
}

static int vectors(struct loss_ctx *ctx, enum dnn_margin margin, struct dnn_err *err)
{
    int64_t n = margin == DNN_MARGIN_TRIPLET ? 3 : 2;

    if (ctx->classes % n != 0)
        return dnn_loss_fail(ctx, err,
                             "needs %d vectors of the same length one behind the other "
                             "in the channels, but the output has %lld channels",
                             (int)n, (long long)ctx->classes);
    if (n == 2 && !ctx->labels)
        return dnn_loss_fail(ctx, err,
                             "needs class numbers 1 and 0 as targets, but they are "
                             "values");
    return rows(ctx,
                (struct dnn_op_loss){.margin = margin,
                                     .delta = ctx->term->delta,
                                     .swap = ctx->term->swap},
                err);
}

static int margin_ranking(struct loss_ctx *ctx, struct dnn_err *err)
{
    return vectors(ctx, DNN_MARGIN_RANKING, err);
}

static int cosine_embedding(struct loss_ctx *ctx, struct dnn_err *err)
{
    return vectors(ctx, DNN_MARGIN_COSINE, err);
}

static int triplet_margin(struct loss_ctx *ctx, struct dnn_err *err)
{
    return vectors(ctx, DNN_MARGIN_TRIPLET, err);
}

#define POWER(def, help) LOSS_REAL("p", power, def, 1, 100, help)

static const struct dnn_field class_fields[] = {LOSS_COMMON, LOSS_IGNORE, LOSS_END};
static const struct dnn_field multi_fields[] = {LOSS_COMMON,
                                                LOSS_WEIGHT,
                                                LOSS_IGNORE,
                                                LOSS_MARGIN("1"),
                                                POWER("1", "power of each difference"),
                                                LOSS_END};
static const struct dnn_field pair_fields[] = {LOSS_COMMON, LOSS_MARGIN("0"), LOSS_END};
static const struct dnn_field triplet_fields[] = {
    LOSS_COMMON, LOSS_MARGIN("1"),
    POWER("2", "norm of the distance: 2 is the Euclidean one"),
    LOSS_BOOL("swap", swap, "false",
              "take the distance from positive to negative where it is less than that "
              "from anchor to negative"),
    LOSS_END};

extern const struct loss_kind dnn_loss_categorical_hinge, dnn_loss_multi_margin,
    dnn_loss_multilabel_margin, dnn_loss_margin_ranking, dnn_loss_cosine_embedding,
    dnn_loss_triplet_margin;
const struct loss_kind dnn_loss_categorical_hinge = {
    "categorical_hinge",
    {NULL},
    "max(0, 1 + largest output of another class - output of the target class)",
    class_fields,
    true,
    class_metrics,
    categorical_hinge};
const struct loss_kind dnn_loss_multi_margin = {
    "multi_margin",
    {"multi_margin_loss"},
    "sum over the other classes of max(0, margin - y of the target class + y)^p, over "
    "the number of classes",
    multi_fields,
    true,
    class_metrics,
    multi_margin};
const struct loss_kind dnn_loss_multilabel_margin = {
    "multilabel_margin",
    {"multilabel_margin_loss"},
    "sum over pairs of a present class a and an absent class b of max(0, 1 - y_a + "
    "y_b), "
    "over the number of classes; a class with a target above 0 is present",
    class_fields,
    false,
    no_metrics,
    multilabel_margin};
const struct loss_kind dnn_loss_margin_ranking = {
    "margin_ranking",
    {"margin_ranking_loss"},
    "the output is two vectors a, b (halves of the channels): max(0, margin - t (a - "
    "b)); class 1: t is 1, a ranks higher; class 0: t is -1",
    pair_fields,
    true,
    no_metrics,
    margin_ranking};
const struct loss_kind dnn_loss_cosine_embedding = {
    "cosine_embedding",
    {"cosine_embedding_loss"},
    "the output is two vectors (halves of the channels): 1 - cosine for class 1, "
    "max(0, cosine - margin) for class 0",
    pair_fields,
    true,
    no_metrics,
    cosine_embedding};
const struct loss_kind dnn_loss_triplet_margin = {
    "triplet_margin",
    {"triplet_margin_loss", "triplet"},
    "the output is anchor, positive, negative (thirds of the channels): max(0, "
    "d(anchor, positive) - d(anchor, negative) + margin); targets are ignored",
    triplet_fields,
    true,
    no_metrics,
    triplet_margin
};
