/* monitor.c - what follows from the values of an epoch: plateau schedules, early
 * stopping, the best epoch.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/monitor_impl.h"

#include "base/crc.h"
#include "base/mem.h"
#include "metric/metric.h"
#include "stage/stage.h"
#include "train/state_impl.h"

#include <math.h>
#include <string.h>

/* ---- metrics ---- */

/* Choose the monitored metric: checkpoints.best, else the metric of early_stopping,
 * else the loss. */
static void choose_metric(struct train_monitor *m)
{
    const struct dnn_stopping *early = m->run->config->early;
    const struct dnn_stage_data *eval = &m->run->stage->eval;
    const char *metric = m->run->config->ckpt->best;

    if (metric == NULL && early != NULL) metric = early->metric;
    if (metric == NULL) metric = eval->role == DNN_MODEL_EVALUATE ? "val_loss" : "loss";
    m->best_rule.metric = metric;
    if (early != NULL && strcmp(metric, early->metric) == 0)
        m->best_rule.mode = early->mode;
}

/* Whether every metric named in the configuration exists. */
static int check_metrics(const struct train_monitor *m, int n,
                         const struct dnn_named *value, struct dnn_err *err)
{
    const struct dnn_config *config = m->run->config;
    struct dnn_schedule_state scratch = {0};
    const struct {
        const char *key;
        const struct dnn_stopping *rule;
    } all[] = {
        {"early_stopping",   config->early},
        {"target_metric",    config->goal },
        {"checkpoints.best", &m->best_rule}
    };
    double unused;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].rule != NULL)
            DNN_TRY(dnn_schedule_find(all[i].key, all[i].rule->metric, n, value,
                                      &unused, err));
    return dnn_schedule_epoch(config->schedule, &scratch, n, value, err);
}

/* The loss and the values as `named`; returns their number. */
static int name_values(double loss, int n, const struct train_value *value,
                       struct dnn_named named[TRAIN_VALUES + 1])
{
    named[0] = (struct dnn_named){"loss", loss};
    for (int i = 0; i < n; i++)
        named[i + 1] = (struct dnn_named){value[i].name, value[i].value};
    return n + 1;
}

int dnn_train_monitor_open(struct train_monitor *m, const struct train_run *run,
                           const struct train_progress *at, struct dnn_err *err)
{
    struct train_value value[TRAIN_VALUES];
    struct dnn_named named[TRAIN_VALUES + 1];
    int n;

    m->run = run;
    m->at = at;
    choose_metric(m);
    if (run->metrics != NULL) dnn_metrics_start(run->metrics);
    dnn_train_values(run, NAN, value, &n);
    /* Only the names matter. */
    return check_metrics(m, name_values(NAN, n, value, named), named, err);
}

/* ---- the state ---- */

static void stopping_state(struct dnn_stopping_state *s, const char *group,
                           struct train_state *state)
{
    const struct train_field field[] = {
        TRAIN_NUMBER("best", &s->best), TRAIN_NUMBER("best_epoch", &s->best_epoch),
        TRAIN_NUMBER("bad", &s->bad), TRAIN_NUMBER("seen", &s->seen),
        TRAIN_NUMBERS("recent", s->recent, 2 * DNN_STOPPING_WINDOW)};

    dnn_train_state_fields(state, group, sizeof field / sizeof *field, field);
}

void dnn_train_monitor_state(struct train_monitor *m, struct train_state *state)
{
    struct dnn_schedule_state *s = &m->schedule;
    const struct train_field ended = TRAIN_NUMBER("ended", &m->ended);
    const struct train_field plateau[] = {
        TRAIN_NUMBERS("best", s->best, DNN_SCHEDULE_STATES),
        TRAIN_NUMBERS("reduced", s->reduced, DNN_SCHEDULE_STATES),
        TRAIN_NUMBERS("bad", s->bad, DNN_SCHEDULE_STATES),
        TRAIN_NUMBERS("wait", s->wait, DNN_SCHEDULE_STATES),
        TRAIN_NUMBERS("seen", s->seen, DNN_SCHEDULE_STATES),
        TRAIN_NUMBERS("applied", s->applied, DNN_SCHEDULE_STATES)};

    dnn_train_state_fields(state, "run", 1, &ended);
    dnn_train_state_fields(state, "run/plateau", sizeof plateau / sizeof *plateau,
                           plateau);
    stopping_state(&m->early, "run/early_stopping", state);
    stopping_state(&m->goal, "run/target_metric", state);
    stopping_state(&m->best, "run/best", state);
}

/* ---- an epoch ---- */

double dnn_train_rate(const struct train_monitor *m)
{
    const struct dnn_config *config = m->run->config;
    int64_t per = dnn_feed_batches(m->run->stage->train.feed);
    const struct dnn_schedule_at at = {.step = m->at->step,
                                       .epoch = m->at->epoch,
                                       .per_epoch = per,
                                       .total = per * config->num_epochs,
                                       .ranks = dnn_comm_size(m->run->comm)};

    return dnn_schedule_rate(config->schedule, &m->schedule, config->optimizer.rate,
                             &at);
}

static int update_best(struct train_monitor *m, int n, const struct dnn_named *value,
                       struct dnn_err *err)
{
    const struct dnn_config *config = m->run->config;
    const struct dnn_config_ckpt *how = config->ckpt;
    int64_t epoch = m->at->epoch;
    char why[256];
    bool ended;

    m->is_best = false;
    if (epoch % how->best_interval != 0 && epoch < config->num_epochs) return 0;
    DNN_TRY(dnn_stopping_epoch(&m->best_rule, &m->best, epoch, n, value, &ended,
                               &m->is_best, why, err));
    /* The best epoch is saved only if checkpoints are written after epochs, or if the
     * best one is requested. */
    if (how->interval <= 0 && how->best == NULL &&
        (config->early == NULL || !config->early->restore))
        m->is_best = false;
    return 0;
}

/* Checksum of the stopping rules: a run that they have ended may continue with other
 * rules. */
static int64_t rules(const struct dnn_config *config)
{
    char *text = dnn_format("%s\n%s", config->early_text, config->goal_text);
    int64_t sum = (int64_t)dnn_crc_record(text, strlen(text)) + 1;

    dnn_free(text);
    return sum;
}

int dnn_train_monitor_epoch(struct train_monitor *m, double loss, int n,
                            const struct train_value *value, char stop[256],
                            struct dnn_err *err)
{
    const struct dnn_config *config = m->run->config;
    struct dnn_named named[TRAIN_VALUES + 1];
    int nnamed = name_values(loss, n, value, named);
    bool ended = false, unused;

    DNN_TRY(dnn_schedule_epoch(config->schedule, &m->schedule, nnamed, named, err));
    DNN_TRY(update_best(m, nnamed, named, err));
    stop[0] = '\0';
    if (config->early != NULL)
        DNN_TRY(dnn_stopping_epoch(config->early, &m->early, m->at->epoch, nnamed,
                                   named, &ended, &unused, stop, err));
    if (!ended && config->goal != NULL)
        DNN_TRY(dnn_stopping_epoch(config->goal, &m->goal, m->at->epoch, nnamed, named,
                                   &ended, &unused, stop, err));
    if (ended)
        m->ended = rules(config);
    else
        stop[0] = '\0';
    return 0;
}

bool dnn_train_ended(const struct train_monitor *m)
{
    return m->ended != 0 && m->ended == rules(m->run->config);
}
