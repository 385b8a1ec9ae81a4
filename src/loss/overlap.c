/* overlap.c - overlap of probabilities and masks: dice, jaccard, tversky, lovasz.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "loss/loss_impl.h"

#include <math.h>

static const char *const metrics[] = {"dice", NULL};

static int find_head(struct loss_ctx *ctx, enum dnn_head *out, struct dnn_err *err)
{
    enum loss_source source;

    DNN_TRY(dnn_loss_find_source(ctx, &source, err));
    switch (source) {
    case LOSS_SOFTMAX:
    case LOSS_LOG_SOFTMAX:
        *out = DNN_HEAD_SOFTMAX;
        break;
    case LOSS_SIGMOID:
        *out = DNN_HEAD_SIGMOID;
        break;
    case LOSS_NONE:
        *out = DNN_HEAD_NONE;
        break;
    default:
        return dnn_loss_fail(
            ctx, err,
            "needs probabilities, but the network does not end in softmax, log_softmax "
            "or sigmoid; set source to the one to apply, or to none if the outputs are "
            "probabilities");
    }
    if (*out == DNN_HEAD_SOFTMAX && ctx->classes == 1)
        return dnn_loss_fail(ctx, err,
                             "a softmax over one channel is always 1; end the network "
                             "in sigmoid or in two channels");
    return 0;
}

static int ratio(struct loss_ctx *ctx, union dnn_attr attr, struct dnn_err *err)
{
    const struct loss_term *t = ctx->term;
    bool whole = t->per == LOSS_PER_BATCH;
    union dnn_attr sums = {
        .overlap = {.whole = whole, .ignore = t->ignore}
    };
    struct dnn_op_ratio *r = &attr.ratio;
    double weight = 0;
    int w;

    DNN_TRY(find_head(ctx, &sums.overlap.source, err));
    DNN_TRY(dnn_loss_weights(ctx, &w, err));
    DNN_TRY(dnn_loss_ignores(ctx, &sums.overlap.ignores, err));
    for (int64_t i = 0; i < t->weight.count; i++)
        weight += t->weight.reals[i];
    if (w != DNN_NONE && weight == 0)
        return dnn_loss_fail(ctx, err, "at least one class weight must be above 0");
    int s = dnn_prog_op2(ctx->prog, DNN_OP_OVERLAP, &sums, ctx->of, ctx->target);
    int all = whole ? dnn_loss_exchange(ctx, s) : s;
    r->eps = t->eps;
    r->whole = whole;
    r->slope = r->scale = t->factor / (double)ctx->total;
    if (whole) r->scale *= (double)ctx->batch;
    return dnn_prog_op(ctx->prog, DNN_OP_RATIO, &attr, 3, (int[]){s, all, w});
}

static int dice(struct loss_ctx *ctx, struct dnn_err *err)
{
    return ratio(ctx,
                 (union dnn_attr){
                     .ratio = {.a = 2, .u = 1, .v = 1}
    },
                 err);
}

static int jaccard(struct loss_ctx *ctx, struct dnn_err *err)
{
    return ratio(ctx,
                 (union dnn_attr){
                     .ratio = {.a = 1, .b = -1, .u = 1, .v = 1}
    },
                 err);
}

/* False positives are p - i, false negatives t - i. */
static int tversky(struct loss_ctx *ctx, struct dnn_err *err)
{
    const struct loss_term *t = ctx->term;

    return ratio(ctx,
                 (union dnn_attr){
                     .ratio = {.a = 1,
                               .b = 1 - t->alpha - t->beta,
                               .u = t->alpha,
                               .v = t->beta}
    },
                 err);
}

static int lovasz(struct loss_ctx *ctx, struct dnn_err *err)
{
    const struct loss_term *t = ctx->term;
    union dnn_attr attr = {
        .overlap = {.ignore = t->ignore, .scale = t->factor / (double)ctx->total}
    };

    DNN_TRY(find_head(ctx, &attr.overlap.source, err));
    DNN_TRY(dnn_loss_ignores(ctx, &attr.overlap.ignores, err));
    if (attr.overlap.source == DNN_HEAD_SIGMOID && ctx->classes == 1)
        attr.overlap.source = DNN_HEAD_HINGE;
    return dnn_prog_op2(ctx->prog, DNN_OP_LOVASZ, &attr, ctx->of, ctx->target);
}

static const struct dnn_choice pers[] = {
    {"sample", LOSS_PER_SAMPLE},
    {"batch",  LOSS_PER_BATCH },
    {NULL,     0              }
};

#define EPS                                                                            \
    LOSS_REAL("eps", eps, "1e-7", 1e-300, INFINITY,                                    \
              "added to numerator and denominator, for absent classes")
#define PER                                                                            \
    {"per",                                                                            \
     DNN_F_ENUM,                                                                       \
     LOSS_AT(per),                                                                     \
     "sample",                                                                         \
     0,                                                                                \
     0,                                                                                \
     pers,                                                                             \
     "sums are taken over each sample, or over the whole batch",                       \
     NULL}

static const struct dnn_field ratio_fields[] = {
    LOSS_COMMON, LOSS_SOURCE, LOSS_WEIGHT, LOSS_IGNORE, EPS, PER, LOSS_END};
static const struct dnn_field tversky_fields[] = {
    LOSS_COMMON,
    LOSS_SOURCE,
    LOSS_WEIGHT,
    LOSS_IGNORE,
    EPS,
    PER,
    LOSS_REAL("alpha", alpha, "0.5", 0, INFINITY, "weight of false positives"),
    LOSS_REAL("beta", beta, "0.5", 0, INFINITY, "weight of false negatives"),
    LOSS_END};
static const struct dnn_field lovasz_fields[] = {LOSS_COMMON, LOSS_SOURCE, LOSS_IGNORE,
                                                 LOSS_END};

extern const struct loss_kind dnn_loss_dice, dnn_loss_jaccard, dnn_loss_tversky,
    dnn_loss_lovasz;
const struct loss_kind dnn_loss_dice = {
    "dice",
    {"dice_loss"},
    "1 - Dice coefficient, averaged over classes and samples",
    ratio_fields,
    true,
    metrics,
    dice};
const struct loss_kind dnn_loss_jaccard = {
    "jaccard",
    {"iou", "jaccard_loss"},
    "1 - intersection over union",
    ratio_fields,
    true,
    metrics,
    jaccard
};
const struct loss_kind dnn_loss_tversky = {
    "tversky",
    {NULL},
    "1 - Tversky index: Jaccard with weights for false positives and false negatives",
    tversky_fields,
    true,
    metrics,
    tversky};
const struct loss_kind dnn_loss_lovasz = {
    "lovasz",
    {NULL},
    "Lovasz-Softmax: an extension of 1 - IoU of each sample, over the classes it has; "
    "for one channel with sigmoid the Lovasz hinge",
    lovasz_fields,
    true,
    metrics,
    lovasz};
