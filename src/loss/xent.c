/* xent.c - losses of one class out of several: nll, cross_entropy, focal.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "loss/loss_impl.h"

#include <math.h>

static const char *const metrics[] = {"accuracy", NULL};

/* ---- of classes ---- */

static int several(const struct loss_job *job, struct dnn_err *err)
{
    if (job->classes > 1) return 0;
    return dnn_loss_fail(
        job, err,
        "needs two classes or more in the last axis; bce and focal take "
        "one channel, mse any output");
}

/* weighed: the mean is over the weights of the labels; else over places that count. */
static int classes(struct loss_job *job, union dnn_attr attr, bool weighed,
                   struct dnn_err *err)
{
    const struct loss_term *t = job->term;
    int w, sums = DNN_NONE;
    bool ignores;

    DNN_TRY(several(job, err));
    DNN_TRY(dnn_loss_weights(job, &w, err));
    DNN_TRY(dnn_loss_ignores(job, &ignores, err));
    if (job->labels && (ignores || (weighed && w != DNN_NONE)))
        sums = dnn_loss_weigh(job, weighed ? w : DNN_NONE);
    attr.loss.ignores = ignores;
    attr.loss.ignore = t->ignore;
    attr.loss.scale *= t->factor / (double)job->total;
    if (sums == DNN_NONE) attr.loss.scale /= (double)job->rows;
    if (w == DNN_NONE && sums == DNN_NONE)
        return dnn_prog_op2(job->prog, DNN_OP_XENT, &attr, job->of, job->target);
    return dnn_prog_op(job->prog, DNN_OP_XENT, &attr, 4,
                       (int[]){job->of, job->target, w, sums});
}

static int xent(struct loss_job *job, bool raw, struct dnn_err *err)
{
    enum loss_source source;
    union dnn_attr attr = {
        .loss = {.scale = 1, .smoothing = job->term->smoothing}
    };

    DNN_TRY(several(job, err));
    DNN_TRY(dnn_loss_find_source(job, &source, err));
    if (source == LOSS_SIGMOID)
        return dnn_loss_fail(job, err,
                             "is of one class out of several, and a sigmoid's outputs "
                             "are not; bce takes them");
    attr.loss.raw = raw && source == LOSS_NONE;
    return classes(job, attr, true, err);
}

static int nll(struct loss_job *job, struct dnn_err *err)
{
    return xent(job, true, err);
}

static int cross_entropy(struct loss_job *job, struct dnn_err *err)
{
    return xent(job, false, err);
}

/* ---- focal ---- */

/* One channel, or several that are independent of each other. */
static int binary(struct loss_job *job, struct dnn_err *err)
{
    return dnn_loss_mean(job,
                         (struct dnn_op_loss){.fn = DNN_POINT_FOCAL,
                                              .gamma = job->term->gamma,
                                              .alpha = job->term->alpha},
                         err);
}

static int focal(struct loss_job *job, struct dnn_err *err)
{
    const struct loss_term *t = job->term;
    enum loss_source source;

    DNN_TRY(dnn_loss_find_source(job, &source, err));
    if (source == LOSS_NONE)
        return dnn_loss_fail(
            job, err,
            "is of what goes into a softmax or sigmoid: source must be "
            "softmax, log_softmax or sigmoid, not none");
    if (source == LOSS_AUTO) source = job->classes == 1 ? LOSS_SIGMOID : LOSS_SOFTMAX;
    if (source == LOSS_SIGMOID) return binary(job, err);
    const union dnn_attr attr = {
        .loss = {.scale = t->alpha < 0 ? 1 : t->alpha, .gamma = t->gamma}
    };
    return classes(job, attr, false, err);
}

/* ---- the kinds ---- */

#define SMOOTHING                                                                      \
    LOSS_REAL("label_smoothing", smoothing, "0", 0, 1,                                 \
              "how much of each target is spread over all classes")

static const struct dnn_field class_fields[] = {LOSS_COMMON, LOSS_SOURCE, LOSS_WEIGHT,
                                                LOSS_IGNORE, SMOOTHING,   LOSS_END};
static const struct dnn_field focal_fields[] = {
    LOSS_COMMON,
    LOSS_SOURCE,
    LOSS_WEIGHT,
    LOSS_IGNORE,
    LOSS_REAL("gamma", gamma, "2", 0, 100,
              "how much less what is right already counts"),
    LOSS_REAL(
        "alpha", alpha, "-1", -1, 1,
        "sigmoid: weight of what is 1, the rest is that of what is 0; softmax: of "
        "all; below 0: no weights"),
    LOSS_END};

extern const struct loss_kind dnn_loss_nll, dnn_loss_cross_entropy, dnn_loss_focal;
const struct loss_kind dnn_loss_nll = {
    "nll",
    {NULL},
    "negative log-likelihood of the right class; source none: the outputs are "
    "logarithms of probabilities",
    class_fields,
    true,
    metrics,
    nll};
const struct loss_kind dnn_loss_cross_entropy = {
    "cross_entropy",
    {"xent", "crossentropy", NULL},
    "the same of what goes into a softmax; source none: the outputs do",
    class_fields,
    true,
    metrics,
    cross_entropy
};
const struct loss_kind dnn_loss_focal = {
    "focal",      {NULL}, "cross-entropy in which what is right already counts less",
    focal_fields, true,   metrics,
    focal};
