/* compat.c - check whether a checkpoint is compatible with the configuration.
 *
 * The seed and the names, types and shapes of all arrays must be the same; if the
 * checkpoint was saved within an epoch, also the settings that determine the order of
 * samples.  Other settings may change; changes are logged.  The state of a rule that
 * monitors another metric than before is reset.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/ckpt_impl.h"

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "stage/stage.h"

#include <inttypes.h>
#include <string.h>

enum when { ALWAYS, WITHIN_EPOCH, NEVER }; /* when a setting must be the same */

struct setting {
    const char *key;
    enum when when;
    char *text;                        /* owned                             */
    struct dnn_stopping_state *memory; /* reset if the setting changes; or NULL */
};
enum { SETTINGS = 17 };

/* The metric a rule monitors, as text.  Its other settings may change. */
static char *monitored(const struct dnn_stopping *rule)
{
    if (rule == NULL) return dnn_strdup("none");
    const char *mode = dnn_better_more(rule->metric, rule->mode) ? "max" : "min";
    if (rule->window == 0) return dnn_format("%s, %s", rule->metric, mode);
    return dnn_format("%s, %s of %" PRId64, rule->metric, mode, rule->window);
}

static void list_settings(struct train_monitor *m, struct setting setting[SETTINGS])
{
    const struct dnn_config *config = m->run->config;
    const struct dnn_feed *feed = m->run->stage->train.feed;
    const struct dnn_config_data *data = config->data;
    const struct setting all[SETTINGS] = {
        {"seed", ALWAYS, dnn_format("%" PRId64, config->seed), NULL},
        {"data.batch_size", WITHIN_EPOCH, dnn_format("%" PRId64, config->batch_size),
         NULL},
        {"steps_per_epoch", WITHIN_EPOCH,
         dnn_format("%" PRId64, config->steps_per_epoch), NULL},
        {"number of samples", WITHIN_EPOCH,
         dnn_format("%" PRId64, dnn_feed_count(feed)), NULL},
        {"hash of the dataset", WITHIN_EPOCH, dnn_strdup(dnn_feed_hash(feed)), NULL},
        {"data.split", WITHIN_EPOCH, dnn_strdup(data->split == NULL ? "" : data->split),
         NULL},
        {"data.fold", WITHIN_EPOCH, dnn_format("%" PRId64, data->fold), NULL},
        {"data.shuffle", WITHIN_EPOCH, dnn_strdup(data->shuffle ? "true" : "false"),
         NULL},
        {"data.window", WITHIN_EPOCH, dnn_format("%" PRId64, (int64_t)data->window),
         NULL},
        {"layers", NEVER, dnn_strdup(config->layers), NULL},
        {"loss", NEVER, dnn_strdup(config->loss_text), NULL},
        {"optimizer", NEVER, dnn_strdup(config->optimizer_text), NULL},
        {"ema", NEVER, dnn_format("%g", config->ema), NULL},
        {"deterministic", NEVER, dnn_strdup(config->deterministic ? "true" : "false"),
         NULL},
        {"checkpoints.best", NEVER, monitored(&m->best_rule), &m->best},
        {"early_stopping", NEVER, monitored(config->early), &m->early},
        {"target_metric", NEVER, monitored(config->goal), &m->goal},
    };

    memcpy(setting, all, sizeof all);
}

static void release(struct setting setting[SETTINGS])
{
    for (int i = 0; i < SETTINGS; i++)
        dnn_free(setting[i].text);
}

void dnn_train_write_settings(struct train_monitor *m, struct dnn_buf *out)
{
    struct setting setting[SETTINGS];

    list_settings(m, setting);
    for (int i = 0; i < SETTINGS; i++) {
        dnn_buf_add(out, "%s", i == 0 ? "{" : ", ");
        dnn_json_quoted(out, setting[i].key);
        dnn_buf_add(out, ": ");
        dnn_json_quoted(out, setting[i].text);
    }
    dnn_buf_add(out, "}");
    release(setting);
}

static int compare(const struct train_progress *at, const struct setting *f,
                   const char *stored, struct dnn_err *err)
{
    if (strcmp(stored, f->text) == 0) return 0;
    if (f->when == NEVER || (f->when == WITHIN_EPOCH && at->batch == 0)) {
        dnn_log(DNN_INFO, "train",
                "changed since the checkpoint: %s is %.300s, was %.300s", f->key,
                f->text, stored);
        if (f->memory != NULL) *f->memory = (struct dnn_stopping_state){0};
        return 0;
    }
    return dnn_fail(err, DNN_ECONFIG,
                    "%s is %.100s, but was %.100s in the checkpoint of step %" PRId64
                    "%s; set it back, or start a new run with another \"dir\" or "
                    "checkpoints.resume false (checkpoints.load keeps the weights)",
                    f->key, f->text, stored, at->step,
                    f->when == WITHIN_EPOCH ? ", within an epoch" : "");
}

int dnn_train_check_settings(struct train_monitor *m, const char *state,
                             struct dnn_err *err)
{
    struct setting setting[SETTINGS];
    struct dnn_json *file;
    const char *stored;

    DNN_TRY(dnn_json_text("state of the checkpoint", state, strlen(state), &file, err));
    struct dnn_jobj top = dnn_json_top(file), config = dnn_json_sub(&top, "config");
    int rc = 0;
    list_settings(m, setting);
    for (int i = 0; rc == 0 && i < SETTINGS; i++) {
        struct dnn_jobj at = dnn_json_sub(&config, setting[i].key);

        if (at.val == NULL) continue;
        rc = dnn_json_string(&at, &stored, err);
        if (rc == 0) rc = compare(m->at, &setting[i], stored, err);
    }
    release(setting);
    dnn_json_free(file);
    return rc;
}
