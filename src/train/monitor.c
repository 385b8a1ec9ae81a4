/* monitor.c - the best epoch, early stopping, and restoring the best weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/train_impl.h"

#include "base/crc.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- the best epoch ---- */

/* Choose the monitored metric: checkpoints.best, else the metric of early_stopping,
 * else the loss. */
static void choose_metric(struct dnn_trainer *t)
{
    const struct dnn_stopping *early = t->config->early;
    const char *metric = t->config->ckpt->best;

    if (metric == NULL && early != NULL) metric = early->metric;
    if (metric == NULL)
        metric = t->stage->eval.feed != NULL && t->stage->eval.targets ? "val_loss" : "loss";
    t->best_rule.metric = metric;
    if (early != NULL && strcmp(metric, early->metric) == 0)
        t->best_rule.mode = early->mode;
}

/* Whether every metric named in the configuration exists. */
static int check_metrics(const struct dnn_trainer *t, int n,
                         const struct dnn_named *value, struct dnn_err *err)
{
    struct dnn_schedule_state scratch = {0};
    const struct {
        const char *key;
        const struct dnn_stopping *rule;
    } all[] = {
        {"early_stopping",   t->config->early},
        {"target_metric",    t->config->goal },
        {"checkpoints.best", &t->best_rule   }
    };
    double unused;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].rule != NULL)
            DNN_TRY(dnn_schedule_find(all[i].key, all[i].rule->metric, n, value,
                                      &unused, err));
    return dnn_schedule_epoch(t->config->schedule, &scratch, n, value, err);
}

int dnn_trainer_check_metrics(struct dnn_trainer *t, struct dnn_err *err)
{
    struct train_value *value = dnn_alloc(TRAIN_VALUES * sizeof *value);
    struct dnn_named *named = dnn_alloc((TRAIN_VALUES + 1) * sizeof *named);
    int n = 0;

    choose_metric(t);
    if (t->metrics != NULL) dnn_metrics_start(t->metrics);
    dnn_trainer_values(t, NAN, value, &n);
    named[0] = (struct dnn_named){"loss", NAN};
    for (int i = 0; i < n; i++)
        named[i + 1] = (struct dnn_named){value[i].name, NAN};
    int rc = check_metrics(t, n + 1, named, err);
    dnn_free(value);
    dnn_free(named);
    return rc;
}

int dnn_trainer_update_best(struct dnn_trainer *t, int n, const struct dnn_named *value,
                            struct dnn_err *err)
{
    const struct dnn_config_ckpt *how = t->config->ckpt;
    int64_t every = how->best_interval;
    char why[256];
    bool ended;

    t->is_best = false;
    if (t->at.epoch % every != 0 && t->at.epoch < t->config->num_epochs) return 0;
    DNN_TRY(dnn_stopping_epoch(&t->best_rule, &t->best, t->at.epoch, n, value, &ended,
                               &t->is_best, why, err));
    /* The best epoch is saved only if checkpoints are written after epochs, or if the
     * best one is requested. */
    if (how->interval <= 0 && how->best == NULL &&
        (t->config->early == NULL || !t->config->early->restore))
        t->is_best = false;
    return 0;
}

/* ---- end of the run ---- */

/* Checksum of the stopping rules: a run that they have ended may continue with other
 * rules. */
static int64_t rules(const struct dnn_trainer *t)
{
    char *text = dnn_format("%s\n%s", t->config->early_text, t->config->goal_text);
    int64_t sum = (int64_t)dnn_crc_record(text, strlen(text)) + 1;

    dnn_free(text);
    return sum;
}

void dnn_trainer_end(struct dnn_trainer *t)
{
    t->at.ended = rules(t);
}

bool dnn_trainer_ended(const struct dnn_trainer *t)
{
    return t->at.ended != 0 && t->at.ended == rules(t);
}

/* Load the weights of the best checkpoint, but keep the progress of the run. */
static int load_best(struct dnn_trainer *t, int64_t *step, struct dnn_err *err)
{
    const struct train_counters at = t->at;
    const struct train_sums sum = t->sum;
    const struct dnn_schedule_state memory = t->memory;
    const struct dnn_stopping_state early = t->early, goal = t->goal, best = t->best;
    char *state = NULL;

    int rc = dnn_ckpt_load(t->ckpts, "best", t->narrays, t->array, step, &state, err);
    dnn_free(state);
    t->at = at;
    t->sum = sum;
    t->memory = memory;
    t->early = early;
    t->goal = goal;
    t->best = best;
    dnn_exec_changed(dnn_replica_model(t->stage->replica)->exec);
    return rc < 0 ? dnn_prefix(err, "early_stopping.restore: ") : 0;
}

int dnn_trainer_restore_best(struct dnn_trainer *t, struct dnn_err *err)
{
    int64_t step = -1;

    if (t->ckpts == NULL || t->config->early == NULL || !t->config->early->restore)
        return 0;
    if (t->best.seen == 0 || isnan(t->best.best)) {
        dnn_log(DNN_WARN, "train", "%s was never computed; using the last weights",
                t->best_rule.metric);
        return 0;
    }
    DNN_TRY(load_best(t, &step, err));
    dnn_log(DNN_INFO, "train",
            "restored the best weights: epoch %" PRId64 ", step %" PRId64 ", %s %g",
            t->best.best_epoch, step, t->best_rule.metric, t->best.best);
    return 0;
}
