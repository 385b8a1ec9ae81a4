/* eval.c - evaluation: loss and metrics on samples not used for training.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/train_impl.h"

#include "base/stop.h"

#include <stdio.h>
#include <string.h>

/* Outputs and targets of n samples of this rank, starting at sample skip. */
static struct dnn_metric_batch view(const struct dnn_trainer *t, int64_t skip,
                                    int64_t n)
{
    bool labels = t->target_is[0] == DNN_TARGET_LABELS;
    const char *target =
        (const char *)t->eval.target_mem[0] + (size_t)skip * t->eval.target_row[0];

    return (struct dnn_metric_batch){
        .n = n,
        .positions = t->points,
        .channels = t->channels,
        .output = t->output[0] + skip * t->points * t->channels,
        .labels = labels ? (const int32_t *)(const void *)target : NULL,
        .values = labels ? NULL : (const float *)(const void *)target,
        .ignore = -1};
}

static int add_range(struct dnn_trainer *t, struct dnn_metrics *set, int64_t skip,
                     int64_t n, struct dnn_err *err)
{
    const struct dnn_metric_batch outputs = view(t, skip, n);

    return n == 0 ? 0 : dnn_metrics_add(set, &outputs, err);
}

/* Add a batch to metrics and pictures. */
static int add_batch(struct dnn_trainer *t, const struct dnn_batch *b,
                     const struct dnn_replica_batch *mine, struct dnn_err *err)
{
    const struct dnn_metric_batch outputs = view(t, 0, mine->n);
    int64_t first, n;

    if (mine->n > 0) DNN_TRY(dnn_trainer_pictures_add(t, b, &outputs, err));
    if (!t->config->deterministic && t->nsets > 0)
        return add_range(t, t->set[0], 0, mine->n, err);
    for (int i = 0; i < t->nsets; i++) {
        if (dnn_replica_eval_part(t->replica, mine->total, i, &first, &n) < 0) break;
        DNN_TRY(add_range(t, t->set[i], first - mine->first, n, err));
    }
    return 0;
}

/* Agree on errors and on stopping; without either, this is one small all-reduce. */
static int check_all(struct dnn_trainer *t, int rc, struct dnn_err *err)
{
    bool stop =
        dnn_stop_requested() != 0 || (t->root && dnn_trainer_action(t) == TRAIN_STOP);
    int64_t any[2] = {rc < 0, stop};
    struct dnn_err failure = {0};

    if (dnn_comm_size(t->comm) > 1 &&
        dnn_comm_allreduce(t->comm, "evaluation", any, 2, DNN_COMM_I64, DNN_COMM_MAX,
                           &failure) < 0) {
        if (rc == 0) *err = failure;
        return rc < 0 ? rc : failure.code;
    }
    if (any[0] != 0) return dnn_comm_agree(t->comm, rc, err);
    if (any[1] == 0) return 0;
    dnn_fail(err, DNN_ESTOP,
             "stopped before all samples were evaluated; run the same command again");
    err->everywhere = true;
    return DNN_ESTOP;
}

/* The samples, whether to compute the loss, and the callback for each batch. */
struct eval_run {
    struct train_data *data;
    bool with_loss;
    train_batch_fn *on_batch;
    void *arg;
};

static int batch(struct dnn_trainer *t, const struct eval_run *run,
                 const struct dnn_batch *b, const struct dnn_replica_batch *mine,
                 struct dnn_err *err)
{
    if (run->with_loss) {
        DNN_TRY(dnn_replica_eval(t->replica, mine, t->output, err));
        return add_batch(t, b, mine, err);
    }
    return dnn_replica_infer(t->replica, mine, t->output, NULL, err);
}

/* Run all batches.  All ranks agree on errors before the next batch, because batches
 * are collective. */
static int all_batches(struct dnn_trainer *t, const struct eval_run *run,
                       struct dnn_err *err)
{
    int64_t n = dnn_feed_batches(run->data->feed);
    struct dnn_replica_batch mine;
    const struct dnn_batch *b;

    for (int i = 0; i < t->nsets && run->with_loss; i++)
        dnn_metrics_start(t->set[i]);
    int rc = dnn_feed_start(run->data->feed, 0, 0, err);
    for (int64_t i = 0; i < n; i++) {
        if (rc == 0) rc = dnn_feed_next(run->data->feed, &b, NULL, err);
        if (rc == 0) rc = dnn_trainer_make_batch(t, run->data, b, &mine, err);
        DNN_TRY(check_all(t, rc, err));
        rc = batch(t, run, b, &mine, err);
        if (rc == 0) rc = dnn_trainer_log_eval(t, i + 1, err);
        if (run->on_batch == NULL) continue;
        DNN_TRY(check_all(t, rc, err));
        DNN_TRY(run->on_batch(run->arg, b, err));
    }
    return check_all(t, rc, err);
}

/* Deterministic: add the sums of all micro-batches in order to the first set.  Each is
 * zero on all ranks but one, so the all-reduce is exact. */
static int add_micro_batches(struct dnn_trainer *t, struct dnn_err *err)
{
    int micro_batches = dnn_replica_eval_micro_batches(t->replica), own = 0, rc = 0;
    int64_t n = 0, first, unused;
    double *total = dnn_metrics_sums(t->set[0], &n);
    double *all = dnn_alloc((size_t)n * sizeof *all);
    double *one = dnn_alloc((size_t)n * sizeof *one);

    for (int micro_batch = 0; micro_batch < micro_batches && rc == 0; micro_batch++) {
        memset(one, 0, (size_t)n * sizeof *one);
        if (dnn_replica_eval_part(t->replica, 1, own, &first, &unused) == micro_batch)
            memcpy(one, dnn_metrics_sums(t->set[own++], &n), (size_t)n * sizeof *one);
        rc = dnn_comm_allreduce(t->comm, "metrics", one, n, DNN_COMM_F64, DNN_COMM_SUM,
                                err);
        for (int64_t k = 0; k < n; k++)
            all[k] += one[k];
    }
    memcpy(total, all, (size_t)n * sizeof *all);
    dnn_free(all);
    dnn_free(one);
    return rc;
}

static int reduce_metrics(struct dnn_trainer *t, struct dnn_err *err)
{
    int64_t n = 0;

    if (t->config->deterministic) return add_micro_batches(t, err);
    double *sums = dnn_metrics_sums(t->set[0], &n);
    return dnn_comm_allreduce(t->comm, "metrics", sums, n, DNN_COMM_F64, DNN_COMM_SUM,
                              err);
}

static void add(struct train_value *value, int *n, const char *name, double x,
                bool main)
{
    if (*n == TRAIN_VALUES) return;
    snprintf(value[*n].name, sizeof value[*n].name, "val_%s", name);
    value[*n].value = x;
    value[(*n)++].main = main;
}

void dnn_trainer_values(const struct dnn_trainer *t, double loss,
                        struct train_value *value, int *n)
{
    const struct dnn_metric_value *outputs;

    *n = 0;
    if (t->eval.feed == NULL || !t->eval.targets) return;
    add(value, n, "loss", loss, true);
    int m = t->metrics == NULL ? 0 : dnn_metrics_values(t->metrics, &outputs);
    for (int i = 0; i < m; i++)
        add(value, n, outputs[i].name, outputs[i].value, outputs[i].main);
}

int dnn_trainer_run_samples(struct dnn_trainer *t, struct train_data *data,
                            train_batch_fn *on_batch, void *arg,
                            struct train_value *value, int *n, struct dnn_err *err)
{
    const struct eval_run run = {data, data == &t->eval && data->targets, on_batch,
                                 arg};
    double loss;

    *n = 0;
    if (run.with_loss) dnn_replica_eval_start(t->replica);
    if (run.with_loss) dnn_trainer_pictures_start(t);
    bool swapped = dnn_trainer_ema_use(t, true);
    int rc = all_batches(t, &run, err);
    if (swapped) dnn_trainer_ema_use(t, false);
    dnn_feed_stop(data->feed);
    if (rc < 0 || !run.with_loss) return rc;
    DNN_TRY(dnn_replica_eval_end(t->replica, &loss, err));
    if (t->nsets > 0) {
        DNN_TRY(reduce_metrics(t, err));
        DNN_TRY(dnn_trainer_pictures_end(t, err));
    }
    dnn_trainer_values(t, loss / (double)dnn_feed_count(data->feed), value, n);
    return 0;
}

int dnn_trainer_evaluate(struct dnn_trainer *t, struct train_value *value, int *n,
                         struct dnn_err *err)
{
    *n = 0;
    if (t->eval.feed == NULL || !t->eval.targets) return 0;
    return dnn_trainer_run_samples(t, &t->eval, NULL, NULL, value, n, err);
}
