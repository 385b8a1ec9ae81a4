/* train_hessian.c - training by L-BFGS: whole evaluations instead of updates.
 *
 * The loss is the mean over all training samples, in batches that are the same each
 * time.  It and its gradient are added up batch by batch, so that a run can be stopped
 * between any two; when all are there, L-BFGS says where it wants them next.  Every
 * rank has the same numbers, so all ask for the same point.  A step of L-BFGS, which
 * takes one evaluation or a few, is an epoch.
 *
 * While batches are computed the weights are those of the point that is tried;
 * otherwise they are the best there are.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/train_impl.h"

#include "base/mem.h"
#include "optim/lbfgs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is remembered of the settings, and how it ended. */
struct ended {
    struct dnn_lbfgs_opts opts;
    int64_t why;        /* enum dnn_lbfgs_why */
    int64_t unreported; /* an epoch is done, and perhaps not log about yet */
};

struct train_hessian {
    struct dnn_lbfgs l;
    struct dnn_flat flat;
    float *point; /* owned: where loss and gradient are wanted                     */
    double *sum;  /* owned: the gradient of the batches so far                     */
    bool trying;  /* the weights are those of point                                */
    struct ended ended;
};

/* ---- what it cannot do ---- */

static int check_network(const struct dnn_prog *prog, struct dnn_err *err)
{
    for (int o = 0; o < prog->nops; o++)
        if (prog->op[o].kind == DNN_OP_NOISE)
            return dnn_fail(err, DNN_ECONFIG,
                            "optimizer: Hessian needs a loss that is the same each "
                            "time, but layer '%s' is random; drop it, or take another "
                            "optimizer",
                            prog->op[o].layer == NULL ? "" : prog->op[o].layer);
    for (int v = 0; v < prog->nvalues; v++)
        if (prog->value[v].role == DNN_WEIGHT &&
            prog->value[v].constraint.kind != DNN_CONSTRAIN_NONE)
            return dnn_fail(err, DNN_ECONFIG,
                            "optimizer: Hessian knows no constraints, but layer '%s' "
                            "has one",
                            prog->value[v].layer == NULL ? "" : prog->value[v].layer);
    return 0;
}

static int check(const struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_job *job = t->job;

    if (t->train.augment != NULL && dnn_augment_random(t->train.augment))
        return dnn_fail(err, DNN_ECONFIG,
                        "optimizer: Hessian needs a loss that is the same each time, "
                        "but some of data.transforms are random; drop these, or take "
                        "another optimizer");
    if (job->clip_norm > 0 || job->clip_value > 0)
        return dnn_fail(err, DNN_ECONFIG,
                        "optimizer: Hessian needs gradients as they are: do not clip "
                        "them");
    if (job->ema > 0)
        return dnn_fail(err, DNN_ECONFIG,
                        "optimizer: Hessian tries weights it does not keep, of which "
                        "there is no mean: drop \"ema\"");
    if (job->parallel->compress != DNN_COMPRESS_NONE && dnn_comm_size(t->comm) > 1)
        return dnn_fail(err, DNN_ECONFIG,
                        "optimizer: Hessian needs gradients as they are: drop "
                        "parallel.compress");
    return check_network(dnn_replica_model(t->replica)->prog, err);
}

/* ---- start and stop ---- */

int dnn_hessian_open(struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_optim *o = &t->job->optimizer;
    const struct dnn_lbfgs_opts opts = {.max_iterations = o->max_iterations,
                                        .max_func_eval = o->max_func_eval,
                                        .absolute_tolerance = o->absolute_tolerance,
                                        .relative_tolerance = o->relative_tolerance};

    if (o->rule != DNN_OPTIM_HESSIAN) return 0;
    DNN_TRY(check(t, err));
    struct train_hessian *h = t->hessian = dnn_alloc(sizeof *h);
    dnn_replica_flat(t->replica, &h->flat);
    if (h->flat.count == 0)
        return dnn_fail(err, DNN_ECONFIG, "the network has no weights to train");
    h->ended.opts = opts;
    DNN_TRY(dnn_lbfgs_start(&h->l, h->flat.count, DNN_F32, &opts, err));
    h->point = calloc((size_t)h->flat.count, sizeof *h->point);
    h->sum = calloc((size_t)h->flat.count, sizeof *h->sum);
    if (h->point == NULL || h->sum == NULL)
        return dnn_fail(err, DNN_ENOMEM,
                        "no memory for a gradient of %" PRId64 " weights",
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

/* With other settings a run that has ended begins again where it ended. */
const char *dnn_hessian_resumed(struct dnn_trainer *t)
{
    struct train_hessian *h = t->hessian;

    if (h == NULL || h->ended.why == DNN_LBFGS_GO) return NULL;
    if (h->ended.unreported && t->at.batch > 0) return NULL; /* an epoch is to be log */
    if (memcmp(&h->ended.opts, &h->l.opts, sizeof h->l.opts) == 0)
        return dnn_lbfgs_text((enum dnn_lbfgs_why)h->ended.why);
    h->ended = (struct ended){.opts = h->l.opts};
    h->l.state = (struct dnn_lbfgs_state){0};
    return NULL;
}

/* ---- evaluations ---- */

static void put(struct dnn_trainer *t, const float *from)
{
    struct train_hessian *h = t->hessian;

    memcpy(h->flat.weight, from, (size_t)h->flat.count * sizeof *from);
    dnn_exec_changed(dnn_replica_model(t->replica)->exec);
}

void dnn_hessian_use_best(struct dnn_trainer *t)
{
    struct train_hessian *h = t->hessian;

    if (h == NULL || h->l.state.evaluations == 0) return;
    put(t, h->ended.why == DNN_LBFGS_GO ? dnn_lbfgs_point(&h->l) : h->point);
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
        return dnn_replica_loss_grad(t->replica, NULL, step, first, extra, n, err);
    const double share = (double)batch->total / (double)dnn_feed_count(t->train.feed);
    h->ended.unreported = 0;
    if (t->at.batch == 0) memset(h->sum, 0, (size_t)h->flat.count * sizeof *h->sum);
    if (first && t->at.batch == 0) memcpy(h->point, h->flat.weight, bytes);
    if (!h->trying && !first) put(t, h->point);
    h->trying = true;
    DNN_TRY(dnn_replica_loss_grad(t->replica, batch, step, first, extra, n, err));
#pragma omp parallel for schedule(static) if (h->flat.count > 1 << 15)
    for (int64_t i = 0; i < h->flat.count; i++)
        h->sum[i] += share * (double)h->flat.grad[i];
    return 0;
}

/* The regularizers' gradients, of weights as they were at the point. */
static void add_penalties(struct dnn_trainer *t)
{
    struct train_hessian *h = t->hessian;
    const struct dnn_model *m = dnn_replica_model(t->replica);

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

/* The loss the weights now have, for whoever reports it. */
static void report(struct dnn_trainer *t, double loss)
{
    t->sum.loss = loss;
    t->sum.samples = 1;
}

/* From the first batch again, unless it has ended. */
static int go_on(struct dnn_trainer *t, struct train_outcome *turn, struct dnn_err *err)
{
    enum dnn_lbfgs_why why = (enum dnn_lbfgs_why)t->hessian->ended.why;

    if (why == DNN_LBFGS_GO) return dnn_feed_start(t->train.feed, 0, 0, err);
    turn->why = dnn_lbfgs_text(why);
    return 0;
}

int dnn_hessian_next(struct dnn_trainer *t, struct train_outcome *turn,
                     struct dnn_err *err)
{
    struct train_hessian *h = t->hessian;

    *turn = (struct train_outcome){.epoch = true};
    if (h == NULL) return 0;
    /* Stopped while the epoch was evaluated: that is still to be done. */
    if (h->ended.unreported) return go_on(t, turn, err);
    const struct dnn_lbfgs_state *s = &h->l.state;
    int64_t before = s->iterations;

    add_penalties(t);
    for (int64_t i = 0; i < h->flat.count; i++)
        h->flat.grad[i] = (float)h->sum[i];
    enum dnn_lbfgs_why why =
        dnn_lbfgs_next(&h->l, t->sum.loss / t->sum.samples, h->flat.grad, h->point);
    h->trying = false;
    h->ended.why = why;
    turn->epoch = s->iterations > before;
    report(t, s->f);
    if (why == DNN_LBFGS_NOT_FINITE)
        return dnn_fail(err, DNN_EDATA, "optimizer: %s", dnn_lbfgs_text(why));
    /* Half a step, if it leads down, is one. */
    if (why == DNN_LBFGS_EVALUATIONS && !turn->epoch && s->low.at > 0) {
        turn->epoch = true;
        report(t, s->low.f);
    }
    /* Whoever tells about the epoch begins the next. */
    h->ended.unreported = turn->epoch;
    if (!turn->epoch) t->sum.loss = t->sum.samples = 0;
    if (!turn->epoch) t->at.batch = 0;
    if (turn->epoch || why != DNN_LBFGS_GO) dnn_hessian_use_best(t);
    return go_on(t, turn, err);
}
