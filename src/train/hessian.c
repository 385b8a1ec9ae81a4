/* hessian.c - the second-order optimizer: training by L-BFGS.
 *
 * The objective is the mean loss over all training samples (with steps_per_epoch: of
 * the first batches), always in the same batches.  Loss and gradient are summed batch
 * by batch, so that a run can be stopped between any two batches; then L-BFGS chooses
 * the next point.  All ranks have the same values, so they choose the same point.  One
 * iteration of L-BFGS consists of one or more evaluations, and is reported as an epoch.
 *
 * During an evaluation the weights are the current point of the line search; otherwise
 * they are the best point so far.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/hessian_impl.h"

#include "base/mem.h"
#include "optim/lbfgs.h"
#include "stage/stage.h"
#include "train/state_impl.h"

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
    const struct train_run *run;
    struct train_progress *at;
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

static int check(const struct train_run *run, struct dnn_err *err)
{
    const struct dnn_config *config = run->config;
    const struct dnn_augment *augment = run->stage->train.augment;

    if (augment != NULL && dnn_augment_random(augment))
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
    if (config->parallel->compress != DNN_COMPRESS_NONE && dnn_comm_size(run->comm) > 1)
        return dnn_fail(
            err, DNN_ECONFIG,
            "optimizer: Hessian does not support parallel.compress; remove it");
    return check_network(dnn_train_model(run)->prog, err);
}

/* ---- start and stop ---- */

int dnn_hessian_open(const struct train_run *run, struct train_progress *at,
                     struct train_hessian **out, struct dnn_err *err)
{
    const struct dnn_optim *o = &run->config->optimizer;
    const struct dnn_lbfgs_opts opts = {.max_iterations = o->max_iterations,
                                        .max_func_eval = o->max_func_eval,
                                        .absolute_tolerance = o->absolute_tolerance,
                                        .relative_tolerance = o->relative_tolerance};

    if (o->rule != DNN_OPTIM_HESSIAN) return 0;
    DNN_TRY(check(run, err));
    struct train_hessian *h = *out = dnn_alloc(sizeof *h);
    h->run = run;
    h->at = at;
    dnn_replica_flat(run->stage->replica, &h->flat);
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

void dnn_hessian_close(struct train_hessian *h)
{
    if (h == NULL) return;
    dnn_lbfgs_stop(&h->l);
    free(h->point);
    free(h->sum);
    dnn_free(h);
}

static void trial_state(struct dnn_lbfgs_trial *trial, const char *group,
                        struct train_state *state)
{
    const struct train_field field[] = {TRAIN_NUMBER("at", &trial->at),
                                        TRAIN_NUMBER("f", &trial->f),
                                        TRAIN_NUMBER("slope", &trial->slope)};

    dnn_train_state_fields(state, group, 3, field);
}

void dnn_hessian_state(struct train_hessian *h, struct train_state *state)
{
    if (h == NULL) return;
    struct dnn_lbfgs_state *s = &h->l.state;
    struct dnn_lbfgs_opts *opts = &h->ended.opts;
    const int64_t n = h->flat.count;
    const struct train_field field[] = {
        TRAIN_NUMBER("iterations", &s->iterations),
        TRAIN_NUMBER("evaluations", &s->evaluations),
        TRAIN_NUMBER("f", &s->f),
        TRAIN_NUMBER("norm", &s->norm),
        TRAIN_NUMBER("pairs", &s->pairs),
        TRAIN_NUMBER("newest", &s->newest),
        TRAIN_NUMBERS("product", s->product, DNN_LBFGS_HISTORY),
        TRAIN_NUMBER("phase", &s->phase),
        TRAIN_NUMBER("tries", &s->tries),
        TRAIN_NUMBER("step", &s->step),
        TRAIN_NUMBERS("point", h->point, n),
        TRAIN_NUMBERS("sum", h->sum, n),
        TRAIN_NUMBER("ended", &h->ended.why),
        TRAIN_NUMBER("unreported", &h->ended.unreported),
        TRAIN_NUMBER("max_iterations", &opts->max_iterations),
        TRAIN_NUMBER("max_func_eval", &opts->max_func_eval),
        TRAIN_NUMBER("absolute_tolerance", &opts->absolute_tolerance),
        TRAIN_NUMBER("relative_tolerance", &opts->relative_tolerance),
    };

    dnn_train_state_fields(state, "run/hessian", sizeof field / sizeof *field, field);
    trial_state(&s->from, "run/hessian/from", state);
    trial_state(&s->low, "run/hessian/low", state);
    trial_state(&s->high, "run/hessian/high", state);
    dnn_train_state_add(state, "run/hessian/vectors", DNN_F32,
                        (struct dnn_shape){
                            2, {DNN_LBFGS_VECTORS, n}
    },
                        h->l.vectors);
}

/* A run that has ended continues if the settings have changed. */
const char *dnn_hessian_resumed(struct train_hessian *h)
{
    if (h == NULL) return NULL;
    /* It will end by the current settings. */
    if (h->ended.why == DNN_LBFGS_CONTINUE) {
        h->ended.opts = h->l.opts;
        return NULL;
    }
    if (h->ended.unreported && h->at->batch > 0)
        return NULL; /* the epoch must be logged */
    if (memcmp(&h->ended.opts, &h->l.opts, sizeof h->l.opts) == 0)
        return dnn_lbfgs_text((enum dnn_lbfgs_why)h->ended.why);
    h->ended = (struct ended){.opts = h->l.opts};
    h->l.state = (struct dnn_lbfgs_state){0};
    return NULL;
}

/* ---- evaluations ---- */

static void set_weights(struct train_hessian *h, const float *from)
{
    memcpy(h->flat.weight, from, (size_t)h->flat.count * sizeof *from);
    dnn_exec_changed(dnn_train_model(h->run)->exec);
}

void dnn_hessian_use_best(struct train_hessian *h)
{
    if (h == NULL || h->l.state.evaluations == 0) return;
    set_weights(h,
                h->ended.why == DNN_LBFGS_CONTINUE ? dnn_lbfgs_point(&h->l) : h->point);
    h->trying = false;
}

/* The samples of an evaluation: all, unless steps_per_epoch ends it before. */
static int64_t samples_of(const struct train_run *run)
{
    const struct dnn_stage_data *data = &run->stage->train;
    int64_t n = dnn_feed_batches(data->feed) * data->batch_size;

    return n < dnn_feed_count(data->feed) ? n : dnn_feed_count(data->feed);
}

int dnn_hessian_batch(struct train_hessian *h, const struct dnn_replica_batch *batch,
                      struct dnn_replica_step *step, double *extra, int n,
                      struct dnn_err *err)
{
    bool first = h->l.state.evaluations == 0;
    const size_t bytes = (size_t)h->flat.count * sizeof *h->point;

    if (batch == NULL)
        return dnn_replica_loss_grad(h->run->stage->replica, NULL, step, first, extra,
                                     n, err);
    const double share = (double)batch->total / (double)samples_of(h->run);
    h->ended.unreported = 0;
    if (h->at->batch == 0) memset(h->sum, 0, (size_t)h->flat.count * sizeof *h->sum);
    if (first && h->at->batch == 0) memcpy(h->point, h->flat.weight, bytes);
    if (!h->trying && !first) set_weights(h, h->point);
    h->trying = true;
    DNN_TRY(dnn_replica_loss_grad(h->run->stage->replica, batch, step, first, extra, n,
                                  err));
#pragma omp parallel for schedule(static) if (h->flat.count > 1 << 15)
    for (int64_t i = 0; i < h->flat.count; i++)
        h->sum[i] += share * (double)h->flat.grad[i];
    return 0;
}

/* Add the gradients of the regularizers at the point. */
static void add_penalties(struct train_hessian *h)
{
    const struct dnn_model *m = dnn_train_model(h->run);

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
static void set_loss(struct train_progress *at, double loss)
{
    at->loss = loss;
    at->samples = 1;
}

/* Start the next pass over the data, unless the optimization has ended. */
static int restart_data(const struct train_hessian *h, struct train_outcome *outcome,
                        struct dnn_err *err)
{
    enum dnn_lbfgs_why why = (enum dnn_lbfgs_why)h->ended.why;

    if (why == DNN_LBFGS_CONTINUE)
        return dnn_feed_start(h->run->stage->train.feed, 0, 0, err);
    outcome->why = dnn_lbfgs_text(why);
    return 0;
}

int dnn_hessian_next(struct train_hessian *h, struct train_outcome *outcome,
                     struct dnn_err *err)
{
    *outcome = (struct train_outcome){.epoch = true};
    if (h == NULL) return 0;
    /* The run was stopped during the evaluation after the epoch: repeat it. */
    if (h->ended.unreported) return restart_data(h, outcome, err);
    const struct dnn_lbfgs_state *s = &h->l.state;
    int64_t before = s->iterations;

    add_penalties(h);
    for (int64_t i = 0; i < h->flat.count; i++)
        h->flat.grad[i] = (float)h->sum[i];
    enum dnn_lbfgs_why why =
        dnn_lbfgs_next(&h->l, h->at->loss / h->at->samples, h->flat.grad, h->point);
    h->trying = false;
    h->ended.why = why;
    outcome->epoch = s->iterations > before;
    set_loss(h->at, s->f);
    if (why == DNN_LBFGS_NOT_FINITE)
        return dnn_fail(err, DNN_EDATA, "optimizer: %s", dnn_lbfgs_text(why));
    /* An unfinished line search that has reduced the loss counts as an epoch. */
    if (why == DNN_LBFGS_EVALUATIONS && !outcome->epoch && s->low.at > 0) {
        outcome->epoch = true;
        set_loss(h->at, s->low.f);
    }
    /* The next epoch starts after this one is logged. */
    h->ended.unreported = outcome->epoch;
    if (!outcome->epoch) h->at->loss = h->at->samples = 0;
    if (!outcome->epoch) h->at->batch = 0;
    if (outcome->epoch || why != DNN_LBFGS_CONTINUE) dnn_hessian_use_best(h);
    return restart_data(h, outcome, err);
}
