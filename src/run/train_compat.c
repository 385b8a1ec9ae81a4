/* train_compat.c - whether a checkpoint is of this run.
 *
 * Names, types and shapes of all arrays must agree, and the seed, for all that is
 * random follows from it.  In the middle of an epoch what decides the order of samples
 * must, too.  All else may change; what has is log.  Who looks at another metric than
 * before forgets what it saw.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/train_impl.h"

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

enum when { ALWAYS, WITHIN, NEVER }; /* it must be the same */

struct fact {
    const char *key;
    enum when when;
    char *text;                         /* owned                             */
    struct dnn_stopping_memory *memory; /* of that, else void; or NULL       */
};
enum { FACTS = 17 };

/* What a rule looks at; how patient it is does not matter here. */
static char *looks_at(const struct dnn_stopping *rule)
{
    if (rule == NULL) return dnn_strdup("nothing");
    const char *mode = dnn_better_more(rule->metric, rule->mode) ? "max" : "min";
    if (rule->window == 0) return dnn_format("%s, %s", rule->metric, mode);
    return dnn_format("%s, %s of %" PRId64, rule->metric, mode, rule->window);
}

static void list(struct dnn_trainer *t, struct fact fact[FACTS])
{
    const struct dnn_job *job = t->job;
    const struct dnn_job_data *data = job->data;
    const struct fact all[FACTS] = {
        {"seed", ALWAYS, dnn_format("%" PRId64, job->seed), NULL},
        {"data.batch_size", WITHIN, dnn_format("%" PRId64, job->batch_size), NULL},
        {"steps_per_epoch", WITHIN, dnn_format("%" PRId64, job->steps_per_epoch), NULL},
        {"number of samples", WITHIN,
         dnn_format("%" PRId64, dnn_feed_count(t->train.feed)), NULL},
        {"hash of the dataset", WITHIN, dnn_strdup(dnn_feed_hash(t->train.feed)), NULL},
        {"data.split", WITHIN, dnn_strdup(data->split == NULL ? "" : data->split),
         NULL},
        {"data.fold", WITHIN, dnn_format("%" PRId64, data->fold), NULL},
        {"data.shuffle", WITHIN, dnn_strdup(data->shuffle ? "true" : "false"), NULL},
        {"data.window", WITHIN, dnn_format("%" PRId64, (int64_t)data->window), NULL},
        {"layers", NEVER, dnn_strdup(job->layers), NULL},
        {"loss", NEVER, dnn_strdup(job->loss_text), NULL},
        {"optimizer", NEVER, dnn_strdup(job->optimizer_text), NULL},
        {"ema", NEVER, dnn_format("%g", job->ema), NULL},
        {"deterministic", NEVER, dnn_strdup(job->deterministic ? "true" : "false"),
         NULL},
        {"checkpoints.best", NEVER, looks_at(&t->best_by), &t->best},
        {"early_stopping", NEVER, looks_at(job->early), &t->early},
        {"target_metric", NEVER, looks_at(job->goal), &t->goal},
    };

    memcpy(fact, all, sizeof all);
}

static void release(struct fact fact[FACTS])
{
    for (int i = 0; i < FACTS; i++)
        dnn_free(fact[i].text);
}

void dnn_trainer_write_settings(struct dnn_trainer *t, struct dnn_buf *out)
{
    struct fact fact[FACTS];

    list(t, fact);
    for (int i = 0; i < FACTS; i++) {
        dnn_buf_add(out, "%s", i == 0 ? "{" : ", ");
        dnn_json_quoted(out, fact[i].key);
        dnn_buf_add(out, ": ");
        dnn_json_quoted(out, fact[i].text);
    }
    dnn_buf_add(out, "}");
    release(fact);
}

static int compare(const struct dnn_trainer *t, const struct fact *f, const char *was,
                   struct dnn_err *err)
{
    if (strcmp(was, f->text) == 0) return 0;
    if (f->when == NEVER || (f->when == WITHIN && t->at.batch == 0)) {
        dnn_log(DNN_INFO, "train",
                "since the checkpoint: %s is now %.300s, and was %.300s", f->key,
                f->text, was);
        if (f->memory != NULL) *f->memory = (struct dnn_stopping_memory){0};
        return 0;
    }
    return dnn_fail(
        err, DNN_ECONFIG,
        "%s is %.100s, but %.100s in the checkpoint of step %" PRId64
        " that this run would go on from%s: set it back; or give the run another "
        "\"dir\", or checkpoints.resume false, to begin anew (checkpoints.load takes "
        "the weights along)",
        f->key, f->text, was, t->at.step,
        f->when == WITHIN ? ", in the middle of an epoch" : "");
}

int dnn_trainer_check_settings(struct dnn_trainer *t, const char *state,
                               struct dnn_err *err)
{
    struct fact fact[FACTS];
    struct dnn_json *file;
    const char *was;

    DNN_TRY(dnn_json_text("state of the checkpoint", state, strlen(state), &file, err));
    struct dnn_jobj top = dnn_json_top(file), job = dnn_json_sub(&top, "job");
    int rc = 0;
    list(t, fact);
    for (int i = 0; rc == 0 && i < FACTS; i++) {
        struct dnn_jobj at = dnn_json_sub(&job, fact[i].key);

        if (at.val == NULL) continue;
        rc = dnn_json_string(&at, &was, err);
        if (rc == 0) rc = compare(t, &fact[i], was, err);
    }
    release(fact);
    dnn_json_free(file);
    return rc;
}
