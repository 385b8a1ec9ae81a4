/* train_eval.c - how good the network is on samples it does not learn from.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/train_impl.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* One batch: its outputs, and what the metrics make of them. */
static int batch(struct dnn_trainer *t, const struct dnn_batch *b, double sums[2],
                 struct dnn_err *err)
{
    struct dnn_replica_batch mine;
    double loss = 0;

    DNN_TRY(dnn_trainer_load(t, &t->eval, b, &mine, err));
    DNN_TRY(dnn_replica_infer(t->replica, &mine, t->output, &loss, err));
    sums[0] += loss;
    sums[1] += (double)b->n;
    if (t->metrics == NULL || b->n == 0) return 0;
    bool labels = t->target_is[0] == DNN_TARGET_LABELS;
    const struct dnn_metric_batch seen = {
        .n = b->n,
        .places = t->places,
        .channels = t->channels,
        .output = t->output[0],
        .labels = labels ? t->eval.target_mem[0] : NULL,
        .values = labels ? NULL : t->eval.target_mem[0],
        .ignore = -1};
    return dnn_metrics_add(t->metrics, &seen, err);
}

static int all_batches(struct dnn_trainer *t, double sums[2], struct dnn_err *err)
{
    int64_t n = dnn_feed_batches(t->eval.feed);

    DNN_TRY(dnn_feed_start(t->eval.feed, 0, 0, err));
    for (int64_t i = 0; i < n; i++) {
        const struct dnn_batch *b;

        DNN_TRY(dnn_feed_next(t->eval.feed, &b, NULL, err));
        DNN_TRY(batch(t, b, sums, err));
    }
    return 0;
}

static void add(struct train_value *value, int *n, const char *name, double x,
                bool main)
{
    if (*n == TRAIN_VALUES) return;
    snprintf(value[*n].name, sizeof value[*n].name, "val_%s", name);
    value[*n].value = x;
    value[(*n)++].main = main;
}

int dnn_trainer_evaluate(struct dnn_trainer *t, struct train_value *value, int *n,
                         struct dnn_err *err)
{
    const struct dnn_metric_value *seen;
    double sums[2] = {0};
    int64_t count = 0;

    *n = 0;
    if (t->eval.feed == NULL || !t->eval.targets) return 0;
    if (t->metrics != NULL) dnn_metrics_start(t->metrics);
    int rc = all_batches(t, sums, err);
    dnn_feed_stop(t->eval.feed);
    DNN_TRY(dnn_comm_agree(t->comm, rc, err));
    DNN_TRY(
        dnn_comm_allreduce(t->comm, "loss", sums, 2, DNN_COMM_F64, DNN_COMM_SUM, err));
    add(value, n, "loss", sums[0] / sums[1], true);
    if (t->metrics == NULL) return 0;
    double *all = dnn_metrics_sums(t->metrics, &count);
    DNN_TRY(dnn_comm_allreduce(t->comm, "metrics", all, count, DNN_COMM_F64,
                               DNN_COMM_SUM, err));
    int m = dnn_metrics_values(t->metrics, &seen);
    for (int i = 0; i < m; i++)
        add(value, n, seen[i].name, seen[i].value, seen[i].main);
    return 0;
}
