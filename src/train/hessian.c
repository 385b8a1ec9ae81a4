/* hessian.c - the second-order optimizer: training by L-BFGS.
 *
 * The objective is the mean loss over all training samples, always in the same batches.
 * Loss and gradient are summed batch by batch, so that a run can be stopped between any
 * two batches; then L-BFGS chooses the next point.  All ranks have the same values, so
 * they choose the same point.  One iteration of L-BFGS consists of one or more
 * evaluations, and is reported as an epoch.
 *
 * During an evaluation the weights are the current point of the line search; otherwise
 * they are the best point so far.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/train_impl.h"

#include "base/mem.h"
#include "optim/lbfgs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The settings, and why the optimization has ended. */
struct ended {
    struct dnn_lbfgs_opts opts;
    int64_t why;        /* enum dnn_lbfgs_why */
    int64_t unreported; /* an epoch is done, but may not be logged yet */
};

struct train_hessian {
    struct dnn_lbfgs l;
    struct dnn_flat flat;
    float *point; /* owned: the point being evaluated                               */
    double *sum;  /* owned: sum of the gradients over the batches so far            */
    bool trying;  /* the weights are point, not the best so far                    */
    struct ended ended;
};

/* ---- restrictions ---- */

static int check_network(const struct dnn_prog *prog, struct dnn_err *err)
{
    for (int o = 0; o < prog->nops; o++)
        if (prog->op[o].kind == DNN_OP_NOISE)
            return dnn_fail(err, DNN_ECONFIG,
                            "optimizer: Hessian needs a deterministic loss, but layer "
                            "'%s' is random; remove it or use another optimizer",
                            prog->op[o].layer == NULL ? "" : prog->op[o].layer);
    for (int v = 0; v < prog->nvalues; v++)
        if (prog->value[v].role == DNN_WEIGHT &&
            prog->value[v].constraint.kind != DNN_CONSTRAIN_NONE)
            return dnn_fail(
                err, DNN_ECONFIG,
                "optimizer: Hessian does not support constraints, but layer "
                "'%s' has one",
                prog->value[v].layer == NULL ? "" : prog->value[v].layer);
    return 0;
}

static int check(const struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_config *config = t->config;

    if (t->stage->train.augment != NULL && dnn_augment_random(t->stage->train.augment))
        return dnn_fail(
            err, DNN_ECONFIG,
            "optimizer: Hessian needs a deterministic loss, but data.transforms "
            "has random augmentation; remove it or use another optimizer");
    if (config->clip_norm > 0 || config->clip_value > 0)
        return dnn_fail(err, DNN_ECONFIG,
                        "optimizer: Hessian does not support gradient clipping");
    if (config->ema > 0)
        return dnn_fail(err, DNN_ECONFIG,
                        "optimizer: Hessian does not support \"ema\"; remove it");
    if (config->parallel->compress != DNN_COMPRESS_NONE && dnn_comm_size(t->comm) > 1)
        return dnn_fail(
            err, DNN_ECONFIG,
            "optimizer: Hessian does not support parallel.compress; remove it");
    return check_network(dnn_replica_model(t->stage->replica)->prog, err);
}

/* ---- start and stop ---- */

int dnn_hessian_open(struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_optim *o = &t->config->optimizer;
    const struct dnn_lbfgs_opts opts = {.max_iterations = o->max_iterations,
                                        .max_func_eval = o->max_func_eval,
                                        .absolute_tolerance = o->absolute_tolerance,
                                        .relative_tolerance = o->relative_tolerance};

    if (o->rule != DNN_OPTIM_HESSIAN) return 0;
    DNN_TRY(check(t, err));
    struct train_hessian *h = t->hessian = dnn_alloc(sizeof *h);
    dnn_replica_flat(t->stage->replica, &h->flat);
    if (h->flat.count == 0)
        return dnn_fail(err, DNN_ECONFIG, "the network has no trainable parameters");
    h->ended.opts = opts;
    DNN_TRY(dnn_lbfgs_start(&h->l, h->flat.count, DNN_F32, &opts, err));
    h->point = calloc((size_t)h->flat.count, sizeof *h->point);
    h->sum = calloc((size_t)h->flat.count, sizeof *h->sum);
    if (h->point == NULL || h->sum == NULL)
        return dnn_fail(err, DNN_ENOMEM,
                        "a gradient of %" PRId64 " numbers does not fit into memory",
                        h->flat.count);
    return 0;
}

void dnn_hessian_close(struct dnn_trainer *t)
{
    struct train_hessian *h = t->hessian;

    if (h == NULL) return;
    dnn_lbfgs_stop(&h->l);
    free(h->point);
    free(h->sum);
    dnn_free(h);
    t->hessian = NULL;
}

int dnn_hessian_arrays(struct dnn_trainer *t, struct dnn_ckpt_array array[])
{
    struct train_hessian *h = t->hessian;

    if (h == NULL) return 0;
    const int64_t n = h->flat.count;
    const struct dnn_ckpt_array all[TRAIN_HESSIAN_ARRAYS] = {
        {"hessian/state",   DNN_U8,  {1, {sizeof h->l.state}},    &h->l.state },
        {"hessian/vectors", DNN_F32, {2, {DNN_LBFGS_VECTORS, n}}, h->l.vectors},
        {"hessian/point",   DNN_F32, {1, {n}},                    h->point    },
        {"hessian/sum",     DNN_F64, {1, {n}},                    h->sum      },
        {"hessian/ended",   DNN_U8,  {1, {sizeof h->ended}},      &h->ended   },
    };

    memcpy(array, all, sizeof all);
    return TRAIN_HESSIAN_ARRAYS;
}

/* A run that has ended continues if the settings have changed. */
const char *dnn_hessian_resumed(struct dnn_trainer *t)
{
    struct train_hessian *h = t->hessian;

    if (h == NULL || h->ended.why == DNN_LBFGS_CONTINUE) return NULL;
    if (h->ended.unreported && t->at.batch > 0)
        return NULL; /* the epoch must be logged */
    if (memcmp(&h->ended.opts, &h->l.opts, sizeof h->l.opts) == 0)
        return dnn_lbfgs_text((enum dnn_lbfgs_why)h->ended.why);
    h->ended = (struct ended){.opts = h->l.opts};
    h->l.state = (struct dnn_lbfgs_state){0};
    return NULL;
}

/* ---- evaluations ---- */

static void set_weights(struct dnn_trainer *t, const float *from)
{
    struct train_hessian *h = t->hessian;

    memcpy(h->flat.weight, from, (size_t)h->flat.count * sizeof *from);
    dnn_exec_changed(dnn_replica_model(t->stage->replica)->exec);
}

void dnn_hessian_use_best(struct dnn_trainer *t)
{
    struct train_hessian *h = t->hessian;

    if (h == NULL || h->l.state.evaluations == 0) return;
    set_weights(t,
                h->ended.why == DNN_LBFGS_CONTINUE ? dnn_lbfgs_point(&h->l) : h->point);
    h->trying = false;
}

int dnn_hessian_batch(struct dnn_trainer *t, const struct dnn_replica_batch *batch,
                      struct dnn_replica_step *step, double *extra, int n,
                      struct dnn_err *err)
{
    struct train_hessian *h = t->hessian;
    bool first = h->l.state.evaluations == 0;
    const size_t bytes = (size_t)h->flat.count * sizeof *h->point;

    if (batch == NULL)
        return dnn_replica_loss_grad(t->stage->replica, NULL, step, first, extra, n, err);
    const double share = (double)batch->total / (double)dnn_feed_count(t->stage->train.feed);
    h->ended.unreported = 0;
    if (t->at.batch == 0) memset(h->sum, 0, (size_t)h->flat.count * sizeof *h->sum);
    if (first && t->at.batch == 0) memcpy(h->point, h->flat.weight, bytes);
    if (!h->trying && !first) set_weights(t, h->point);
    h->trying = true;
    DNN_TRY(dnn_replica_loss_grad(t->stage->replica, batch, step, first, extra, n, err));
#pragma omp parallel for schedule(static) if (h->flat.count > 1 << 15)
    for (int64_t i = 0; i < h->flat.count; i++)
        h->sum[i] += share * (double)h->flat.grad[i];
    return 0;
}

/* Add the gradients of the regularizers at the point. */
static void add_penalties(struct dnn_trainer *t)
{
    struct train_hessian *h = t->hessian;
    const struct dnn_model *m = dnn_replica_model(t->stage->replica);

    for (int v = 0; v < m->prog->nvalues; v++) {
        const struct dnn_value *x = &m->prog->value[v];
        const struct dnn_regularizer r = x->regularizer;
        int64_t first = (int64_t)(m->plan->spot[v].offset / sizeof(float));
        int64_t n = (int64_t)(m->plan->spot[v].bytes / sizeof(float));

        if (x->role != DNN_WEIGHT || !x->trainable || x->grad == DNN_NONE) continue;
        if (r.l1 == 0 && r.l2 == 0) continue;
        for (int64_t i = first; i < first + n; i++) {
            double w = (double)h->point[i];

            h->sum[i] += r.l1 * ((w > 0) - (w < 0)) + 2 * r.l2 * w;
        }
    }
}

/* Set the loss of the current weights, for the log. */
static void set_loss(struct dnn_trainer *t, double loss)
{
    t->sum.loss = loss;
    t->sum.samples = 1;
}

/* Start the next pass over the data, unless the optimization has ended. */
static int restart_data(struct dnn_trainer *t, struct train_outcome *outcome,
                        struct dnn_err *err)
{
    enum dnn_lbfgs_why why = (enum dnn_lbfgs_why)t->hessian->ended.why;

    if (why == DNN_LBFGS_CONTINUE) return dnn_feed_start(t->stage->train.feed, 0, 0, err);
    outcome->why = dnn_lbfgs_text(why);
    return 0;
}

int dnn_hessian_next(struct dnn_trainer *t, struct train_outcome *outcome,
                     struct dnn_err *err)
{
    struct train_hessian *h = t->hessian;

    *outcome = (struct train_outcome){.epoch = true};
    if (h == NULL) return 0;
    /* The run was stopped during the evaluation after the epoch: repeat it. */
    if (h->ended.unreported) return restart_data(t, outcome, err);
    const struct dnn_lbfgs_state *s = &h->l.state;
    int64_t before = s->iterations;

    add_penalties(t);
    for (int64_t i = 0; i < h->flat.count; i++)
        h->flat.grad[i] = (float)h->sum[i];
    enum dnn_lbfgs_why why =
        dnn_lbfgs_next(&h->l, t->sum.loss / t->sum.samples, h->flat.grad, h->point);
    h->trying = false;
    h->ended.why = why;
    outcome->epoch = s->iterations > before;
    set_loss(t, s->f);
    if (why == DNN_LBFGS_NOT_FINITE)
        return dnn_fail(err, DNN_EDATA, "optimizer: %s", dnn_lbfgs_text(why));
    /* An unfinished line search that has reduced the loss counts as an epoch. */
    if (why == DNN_LBFGS_EVALUATIONS && !outcome->epoch && s->low.at > 0) {
        outcome->epoch = true;
        set_loss(t, s->low.f);
    }
    /* The next epoch starts after this one is logged. */
    h->ended.unreported = outcome->epoch;
    if (!outcome->epoch) t->sum.loss = t->sum.samples = 0;
    if (!outcome->epoch) t->at.batch = 0;
    if (outcome->epoch || why != DNN_LBFGS_CONTINUE) dnn_hessian_use_best(t);
    return restart_data(t, outcome, err);
}
