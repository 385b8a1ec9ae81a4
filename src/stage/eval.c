/* eval.c - evaluation and inference: runs all samples, adds up the metrics.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "stage/eval.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct dnn_stage_eval {
    struct dnn_stage *stage;
    int nsets;
    struct dnn_metrics **set; /* owned; deterministic: one per micro-batch           */
    void *target;             /* owned: the first target of a micro-batch            */
    int64_t samples;          /* that fit into it                                    */
    enum dnn_probability how; /* the first output becomes probabilities              */
};

/* ---- metrics ---- */

void dnn_stage_extents(const struct dnn_stage *stage, int64_t *channels,
                       int64_t *positions)
{
    const struct dnn_model *m = dnn_replica_model(stage->replica);
    const struct dnn_shape *s = dnn_prog_shape(m->prog, m->output[0]);

    *channels = s->dim[s->ndim - 1];
    *positions = 1;
    for (int i = 1; i + 1 < s->ndim; i++)
        *positions *= s->dim[i];
}

int dnn_stage_probability(const struct dnn_loss *loss, const struct dnn_graph *graph,
                          int k, enum dnn_probability *out, bool *bounded,
                          struct dnn_err *err)
{
    const size_t n = (size_t)graph->noutputs;
    int *output = dnn_alloc(n * sizeof *output);
    const char **name = dnn_alloc(n * sizeof *name);
    /* Without fusion, which would hide the last activation. */
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, false);
    const struct dnn_loss_net net = {
        .noutputs = graph->noutputs, .output = output, .name = name};

    for (int i = 0; i < graph->noutputs; i++)
        name[i] = graph->node[graph->output[i]].name;
    int rc = dnn_graph_lower(graph, 1, prog, output, err);
    if (rc == 0) {
        *out = dnn_loss_probability(loss, prog, &net, k);
        *bounded = dnn_loss_bounded(prog, output[k]);
    }
    dnn_prog_free(prog);
    dnn_free(name);
    dnn_free(output);
    return rc;
}

int dnn_stage_eval_make(struct dnn_stage *stage, struct dnn_stage_eval **out,
                        struct dnn_err *err)
{
    static const char *const dice[] = {"dice", NULL};
    const struct dnn_config *config = stage->config;
    struct dnn_stage_eval *e = dnn_alloc(sizeof *e);
    int64_t channels, positions;
    int first, last;
    bool bounded;

    e->stage = stage;
    int rc =
        dnn_stage_probability(config->loss, dnn_replica_model(stage->replica)->graph, 0,
                              &e->how, &bounded, err);
    dnn_stage_extents(stage, &channels, &positions);
    /* rmldnn reports Dice as the accuracy of masks, whatever the loss. */
    bool masks =
        config->wrapped && positions > 1 && stage->target_is[0] == DNN_TARGET_LABELS;
    const char *const *defaults = masks ? dice : dnn_loss_metrics(config->loss);
    dnn_replica_eval_parts(stage->replica, &first, &last);
    int sets = config->deterministic && last > first ? last - first : 1;
    e->set = dnn_alloc((size_t)sets * sizeof *e->set);
    for (; e->nsets < sets && rc == 0; e->nsets++)
        rc = dnn_config_metrics(config, defaults, channels, &e->set[e->nsets], err);
    if (rc < 0)
        dnn_stage_eval_free(e);
    else
        *out = e;
    return rc;
}

void dnn_stage_eval_free(struct dnn_stage_eval *eval)
{
    if (eval == NULL) return;
    for (int i = 0; i < eval->nsets; i++)
        dnn_metrics_free(eval->set[i]);
    dnn_free(eval->set);
    free(eval->target);
    dnn_free(eval);
}

struct dnn_metrics *dnn_stage_metrics(const struct dnn_stage_eval *eval)
{
    return eval->set[0];
}

/* Deterministic: add the sums of all micro-batches in order to the first set.  Each is
 * zero on all ranks but one, so the all-reduce is exact. */
static int add_micro_batches(struct dnn_stage_eval *e, struct dnn_err *err)
{
    int first, last, all = dnn_replica_eval_parts(e->stage->replica, &first, &last);
    int rc = 0;
    int64_t n = 0;
    double *total = dnn_metrics_sums(e->set[0], &n);
    double *sum = dnn_alloc((size_t)n * sizeof *sum);
    double *one = dnn_alloc((size_t)n * sizeof *one);

    for (int i = 0; i < all && rc == 0; i++) {
        memset(one, 0, (size_t)n * sizeof *one);
        if (i >= first && i < last)
            memcpy(one, dnn_metrics_sums(e->set[i - first], &n),
                   (size_t)n * sizeof *one);
        rc = dnn_comm_allreduce(e->stage->session->comm, "metrics", one, n,
                                DNN_COMM_F64, DNN_COMM_SUM, err);
        for (int64_t k = 0; k < n; k++)
            sum[k] += one[k];
    }
    memcpy(total, sum, (size_t)n * sizeof *sum);
    dnn_free(sum);
    dnn_free(one);
    return rc;
}

static int reduce_metrics(struct dnn_stage_eval *e, struct dnn_err *err)
{
    int64_t n = 0;

    if (e->stage->config->deterministic) return add_micro_batches(e, err);
    double *sums = dnn_metrics_sums(e->set[0], &n);
    return dnn_comm_allreduce(e->stage->session->comm, "metrics", sums, n, DNN_COMM_F64,
                              DNN_COMM_SUM, err);
}

/* ---- sums of loss and metrics ---- */

/* Deterministic: those of each micro-batch; else of all together.  The loss is first.
 */
int dnn_stage_eval_sums(const struct dnn_stage_eval *e, double **out, int64_t *n,
                        struct dnn_err *err)
{
    const bool apart = e->stage->config->deterministic;
    const double *loss = dnn_replica_eval_sums(e->stage->replica);
    int first, last, parts = dnn_replica_eval_parts(e->stage->replica, &first, &last);
    int64_t each;

    dnn_metrics_sums(e->set[0], &each);
    *n = (apart ? parts : 1) * (each + 1);
    double *sums = *out = dnn_alloc((size_t)*n * sizeof *sums);
    for (int i = 0; i < parts; i++)
        sums[apart ? i * (each + 1) : 0] += loss[i];
    for (int i = 0; i < (apart ? last - first : 1); i++)
        memcpy(sums + (apart ? first + i : 0) * (each + 1) + 1,
               dnn_metrics_sums(e->set[i], &each), (size_t)each * sizeof *sums);
    return dnn_comm_allreduce(e->stage->session->comm, "sums of the evaluation", sums,
                              *n, DNN_COMM_F64, DNN_COMM_SUM, err);
}

/* Begin with the sums of other batches. */
static void set_sums(struct dnn_stage_eval *e, const double *sums)
{
    const bool apart = e->stage->config->deterministic;
    double *loss = dnn_replica_eval_sums(e->stage->replica);
    int first, last, n;
    int64_t each;

    dnn_replica_eval_parts(e->stage->replica, &first, &last);
    n = apart ? last - first : dnn_comm_rank(e->stage->session->comm) == 0;
    for (int i = 0; i < n; i++) {
        const int part = apart ? first + i : 0;
        double *own = dnn_metrics_sums(e->set[i], &each);
        const double *from = sums + part * (each + 1);

        loss[part] = from[0];
        memcpy(own, from + 1, (size_t)each * sizeof *own);
    }
}

/* ---- a run ---- */

struct run {
    struct dnn_stage *stage;
    struct dnn_stage_data *data;
    struct dnn_stage_eval *eval;
    const struct dnn_stage_watch *watch;
    struct dnn_replica_batch mine; /* this rank's samples of the current batch */
};

/* Read the first target of samples [skip, skip + n) of this rank. */
static int read_targets(struct run *r, struct dnn_metric_batch *view, int64_t skip,
                        int64_t n, struct dnn_err *err)
{
    struct dnn_stage_eval *e = r->eval;
    const struct dnn_column *col;
    int64_t count;

    dnn_feed_columns(r->data->feed, &col);
    DNN_TRY(dnn_shape_count(&col[r->data->target[0]].shape, &count, err));
    if (n > e->samples) {
        free(e->target);
        e->target = malloc((size_t)(n * count) * 4 + 64);
        e->samples = e->target == NULL ? 0 : n;
        if (e->target == NULL)
            return dnn_fail(err, DNN_ENOMEM,
                            "targets of %lld samples do not fit into memory; reduce "
                            "data.test_batch_size",
                            (long long)n);
    }
    DNN_TRY(r->mine.read(r->mine.arg, true, 0, skip, n, e->target, err));
    if (r->stage->target_is[0] == DNN_TARGET_LABELS)
        view->labels = e->target;
    else
        view->values = e->target;
    return 0;
}

/* Add a micro-batch to the metrics, and pass it on. */
static int see(void *arg, const struct dnn_replica_seen *seen, struct dnn_err *err)
{
    static const enum dnn_logits logits[] = {
        [DNN_PROBABILITY_SOFTMAX] = DNN_LOGITS_SOFTMAX,
        [DNN_PROBABILITY_SIGMOID] = DNN_LOGITS_SIGMOID,
        [DNN_PROBABILITY_EXP] = DNN_LOGITS_SOFTMAX};
    struct run *r = arg;
    struct dnn_stage_seen s = {
        .batch = r->data->batch,
        .skip = seen->first - r->mine.first,
        .n = seen->n,
        .output = seen->output,
        .view = {.n = seen->n, .output = seen->output[0], .ignore = -1}
    };

    dnn_stage_extents(r->stage, &s.view.channels, &s.view.positions);
    if (r->eval != NULL) {
        int set = r->eval->nsets > 1 ? seen->part : 0;

        s.view.logits = logits[r->eval->how];
        DNN_TRY(read_targets(r, &s.view, s.skip, s.n, err));
        DNN_TRY(dnn_metrics_add(r->eval->set[set], &s.view, err));
    }
    return r->watch->seen == NULL ? 0 : r->watch->seen(r->watch->arg, &s, err);
}

/* Agree on errors and on stopping; without errors, this is one small all-reduce. */
static int check_all(const struct run *r, int rc, bool *stops, struct dnn_err *err)
{
    struct dnn_comm *comm = r->stage->session->comm;
    bool stop = r->watch->stop != NULL && r->watch->stop(r->watch->arg);
    int64_t any[2] = {rc < 0, stop};
    struct dnn_err failure = {0};

    if (dnn_comm_size(comm) > 1 &&
        dnn_comm_allreduce(comm, "evaluation", any, 2, DNN_COMM_I64, DNN_COMM_MAX,
                           &failure) < 0) {
        if (rc == 0) *err = failure;
        return rc < 0 ? rc : failure.code;
    }
    *stops = any[1] != 0;
    return any[0] != 0 ? dnn_comm_agree(comm, rc, err) : 0;
}

static int fail_stopped(struct dnn_err *err)
{
    dnn_fail(err, DNN_ESTOP,
             "stopped before all samples were evaluated; run the same command again");
    err->everywhere = true;
    return DNN_ESTOP;
}

/* All ranks agree on errors before the next batch, because batches are collective. */
static int all_batches(struct run *r, int64_t from, int64_t n, struct dnn_err *err)
{
    const struct dnn_batch *b;
    bool stops = false;

    /* An interrupted run may have completed all. */
    int rc = from < n ? dnn_feed_start(r->data->feed, 0, from, err) : 0;
    for (int64_t i = from; i <= n; i++) {
        if (rc == 0 && i < n) rc = dnn_feed_next(r->data->feed, &b, NULL, err);
        DNN_TRY(check_all(r, rc, &stops, err));
        if (i > from && r->watch->batch != NULL)
            DNN_TRY(r->watch->batch(r->watch->arg, i, err));
        if (stops) return fail_stopped(err);
        if (i == n) break;
        dnn_stage_batch(r->data, b, &r->mine);
        rc = dnn_replica_eval(r->stage->replica, r->data->role, &r->mine, see, r, err);
    }
    return 0;
}

int dnn_stage_run(struct dnn_stage *stage, struct dnn_stage_data *data,
                  struct dnn_stage_eval *eval, const struct dnn_stage_watch *watch,
                  const struct dnn_stage_range *range, double *loss,
                  struct dnn_err *err)
{
    static const struct dnn_stage_watch nothing = {0};
    const int64_t batches = dnn_feed_batches(data->feed);
    int64_t from = range == NULL ? 0 : range->from, last = dnn_feed_count(data->feed);
    const double *sums = eval == NULL || range == NULL ? NULL : range->sums;
    int64_t to = range == NULL || range->to == 0 ? batches : range->to;
    struct run r = {.stage = stage,
                    .data = data,
                    .eval = eval,
                    .watch = watch == NULL ? &nothing : watch};

    for (int i = 0; eval != NULL && i < eval->nsets; i++)
        dnn_metrics_start(eval->set[i]);
    if (eval != NULL) dnn_replica_eval_start(stage->replica);
    if (sums != NULL) set_sums(eval, sums);
    int rc = all_batches(&r, from, to, err);
    dnn_feed_stop(data->feed);
    if (rc < 0 || eval == NULL) return rc;
    DNN_TRY(dnn_replica_eval_loss(stage->replica, loss, err));
    if (to < batches) last = to * data->batch_size;
    *loss /= (double)(last - (sums == NULL ? from * data->batch_size : 0));
    return reduce_metrics(eval, err);
}
