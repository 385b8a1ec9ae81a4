/* eval.c - evaluation: loss and metrics on samples not used for training.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/train_impl.h"

#include "base/stop.h"
#include "stage/eval.h"

#include <stdio.h>

static int on_seen(void *arg, const struct dnn_stage_seen *seen, struct dnn_err *err)
{
    struct train_loop *t = arg;

    return dnn_train_pictures_add(&t->log.pictures, seen, err);
}

static int on_batch(void *arg, int64_t done, struct dnn_err *err)
{
    struct train_loop *t = arg;

    /* On rank 0 only: all ranks agree on it later. */
    (void)err;
    if (t->pending.code == 0) dnn_train_log_eval(&t->log, done, &t->pending);
    return 0;
}

static bool on_stop(void *arg)
{
    struct train_loop *t = arg;

    return dnn_stop_requested() != 0 ||
           (t->run.root && dnn_train_action(&t->run, &t->ckpt) == TRAIN_STOP);
}

static void add(struct train_value *value, int *n, const char *name, double x,
                bool main)
{
    if (*n == TRAIN_VALUES) return;
    snprintf(value[*n].name, sizeof value[*n].name, "val_%s", name);
    value[*n].value = x;
    value[(*n)++].main = main;
}

void dnn_train_values(const struct train_run *run, double loss,
                      struct train_value *value, int *n)
{
    const struct dnn_metric_value *outputs;

    *n = 0;
    if (run->eval == NULL) return;
    add(value, n, "loss", loss, true);
    int m = dnn_metrics_values(run->metrics, &outputs);
    for (int i = 0; i < m; i++)
        add(value, n, outputs[i].name, outputs[i].value, outputs[i].main);
}

int dnn_train_evaluate(struct train_loop *t, struct train_value *value, int *n,
                       struct dnn_err *err)
{
    const struct dnn_stage_watch watch = {on_seen, on_batch, on_stop, t};
    const struct train_run *run = &t->run;
    double loss;

    *n = 0;
    if (run->eval == NULL) return 0;
    dnn_train_pictures_start(&t->log.pictures);
    bool swapped = dnn_train_ema_use(&t->ema, true);
    int rc = dnn_stage_run(run->stage, &run->stage->eval, run->eval, &watch, NULL,
                           &loss, err);
    if (swapped) dnn_train_ema_use(&t->ema, false);
    DNN_TRY(rc);
    DNN_TRY(dnn_train_pictures_end(&t->log.pictures, err));
    dnn_train_values(run, loss, value, n);
    return 0;
}
