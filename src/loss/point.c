/* point.c - losses of single elements: mse, mae, huber, hinge, bce.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "loss/loss_impl.h"

#include <math.h>

static const char *const value_metrics[] = {"mae", NULL};
static const char *const class_metrics[] = {"accuracy", NULL};

int dnn_loss_mean(struct loss_job *job, struct dnn_op_loss what, struct dnn_err *err)
{
    const struct loss_term *t = job->term;
    union dnn_attr attr = {.loss = what};
    int w, sums = DNN_NONE;

    attr.loss.ignore = t->ignore;
    attr.loss.scale = t->factor / (double)job->total / (double)job->classes;
    DNN_TRY(dnn_loss_weights(job, &w, err));
    DNN_TRY(dnn_loss_ignores(job, &attr.loss.ignores, err));
    if (attr.loss.ignores) sums = dnn_loss_weigh(job, DNN_NONE);
    if (sums == DNN_NONE) attr.loss.scale /= (double)job->rows;
    if (w != DNN_NONE || sums != DNN_NONE)
        return dnn_prog_op(job->prog, DNN_OP_POINT, &attr, 4,
                           (int[]){job->of, job->target, w, sums});
    /* The oldest has an op of its own. */
    bool squares = what.fn == DNN_POINT_SQUARED && !job->labels;
    if (squares) attr.loss = (struct dnn_op_loss){.scale = attr.loss.scale};
    return dnn_prog_op2(job->prog, squares ? DNN_OP_MSE : DNN_OP_POINT, &attr, job->of,
                        job->target);
}

static int mean(struct loss_job *job, enum dnn_point fn, struct dnn_err *err)
{
    return dnn_loss_mean(job, (struct dnn_op_loss){.fn = fn, .delta = job->term->delta},
                         err);
}

static int mse(struct loss_job *job, struct dnn_err *err)
{
    return mean(job, DNN_POINT_SQUARED, err);
}

static int mae(struct loss_job *job, struct dnn_err *err)
{
    return mean(job, DNN_POINT_ABSOLUTE, err);
}

static int huber(struct loss_job *job, struct dnn_err *err)
{
    return mean(job, DNN_POINT_HUBER, err);
}

static int hinge(struct loss_job *job, struct dnn_err *err)
{
    return mean(job, DNN_POINT_HINGE, err);
}

/* Of probabilities, whatever made them; but what goes into a sigmoid is better. */
static int bce(struct loss_job *job, struct dnn_err *err)
{
    enum loss_source source;

    DNN_TRY(dnn_loss_find_source(job, &source, err));
    if (source == LOSS_SIGMOID) return mean(job, DNN_POINT_BCE_LOGITS, err);
    if (source == LOSS_LOG_SOFTMAX ||
        (source == LOSS_SOFTMAX && job->ends != LOSS_SOFTMAX))
        return dnn_loss_fail(job, err,
                             "takes probabilities: the network must end in sigmoid or "
                             "softmax, or source be sigmoid");
    job->of = job->y;
    return mean(job, DNN_POINT_BCE, err);
}

static int bce_logits(struct loss_job *job, struct dnn_err *err)
{
    enum loss_source source;

    DNN_TRY(dnn_loss_find_source(job, &source, err));
    if (source == LOSS_SOFTMAX || source == LOSS_LOG_SOFTMAX)
        return dnn_loss_fail(job, err,
                             "is of what goes into a sigmoid, but the source is a "
                             "softmax; bce takes that");
    return mean(job, DNN_POINT_BCE_LOGITS, err);
}

static const struct dnn_field value_fields[] = {LOSS_COMMON, LOSS_END};
static const struct dnn_field huber_fields[] = {
    LOSS_COMMON,
    LOSS_REAL("delta", delta, "1", 1e-300, INFINITY,
              "up to which difference it is squared"),
    LOSS_END};
static const struct dnn_field binary_fields[] = {LOSS_COMMON, LOSS_SOURCE, LOSS_WEIGHT,
                                                 LOSS_IGNORE, LOSS_END};

extern const struct loss_kind dnn_loss_mse, dnn_loss_mae, dnn_loss_huber,
    dnn_loss_hinge, dnn_loss_bce, dnn_loss_bce_logits;
const struct loss_kind dnn_loss_mse = {
    "mse",
    {"mean_squared_error", NULL},
    "mean of squared differences",
    value_fields,
    false,
    value_metrics,
    mse
};
const struct loss_kind dnn_loss_mae = {
    "mae",
    {"l1", "mean_absolute_error", NULL},
    "mean of absolute differences",
    value_fields,
    false,
    value_metrics,
    mae
};
const struct loss_kind dnn_loss_huber = {
    "huber",      {NULL}, "half the squared difference up to delta, then straight",
    huber_fields, false,  value_metrics,
    huber};
const struct loss_kind dnn_loss_hinge = {
    "hinge",
    {NULL},
    "how far below 1 outputs are whose target is above 0, above -1 the others",
    value_fields,
    false,
    class_metrics,
    hinge};
const struct loss_kind dnn_loss_bce = {
    "bce",
    {"binary_cross_entropy", "binary_crossentropy", NULL},
    "cross-entropy of each probability with its target; weight: by channel",
    binary_fields,
    false,
    class_metrics,
    bce
};
const struct loss_kind dnn_loss_bce_logits = {
    "bce_logits",
    {"bce_with_logits", NULL},
    "the same of what goes into a sigmoid",
    binary_fields,
    false,
    class_metrics,
    bce_logits
};
