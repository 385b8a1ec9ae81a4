/* ckpt.c - the checkpoints of a run: saving, and resuming from them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/ckpt_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "replica/replica.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>

/* ---- open ---- */

int dnn_train_ckpt_open(struct train_ckpt *c, struct dnn_err *err)
{
    int64_t keep = c->config->ckpt->keep;
    const struct dnn_ckpt_cfg cfg = {dnn_config_ckpt_dir(c->config),
                                     keep == 0 ? INT_MAX : (int)keep, true};
    const struct train_field field[] = {TRAIN_NUMBER("bucket", &c->bucket),
                                        TRAIN_NUMBER("bucket_ranks", &c->bucket_ranks)};

    DNN_TRY(dnn_ckpt_open(c->comm, &cfg, &c->ckpts, err));
    dnn_train_state_fields(&c->state, "run", sizeof field / sizeof *field, field);
    return dnn_ckpt_reserve(c->ckpts, c->state.n, c->state.array, err);
}

void dnn_train_ckpt_close(struct train_ckpt *c, bool failed)
{
    struct dnn_err err = {0};

    if (dnn_ckpt_close(c->ckpts, &err) < 0)
        dnn_log(failed ? DNN_DEBUG : DNN_ERROR, "train", "%s", err.text);
    dnn_train_state_free(&c->state);
}

/* ---- load ---- */

/* Load into all arrays; *state: dnn_free(). */
static int load(struct train_ckpt *c, const char *wanted, int64_t *step, char **state,
                struct dnn_err *err)
{
    int rc =
        dnn_ckpt_load(c->ckpts, wanted, c->state.n, c->state.array, step, state, err);

    dnn_exec_changed(dnn_replica_model(c->replica)->exec);
    return rc;
}

/* Log where the run resumes. */
static void log_resumed(const struct train_ckpt *c, int64_t step)
{
    const struct dnn_config *config = c->config;

    dnn_log(DNN_INFO, "train",
            "resuming from the checkpoint of step %" PRId64 ": epoch %" PRId64
            ", batch %" PRId64 "%s",
            step, c->at->epoch + 1, c->at->batch,
            config->ckpt->load == NULL ? "" : "; checkpoints.load is ignored");
    if (dnn_train_ended(c->monitor) && c->at->epoch < config->num_epochs)
        dnn_log(DNN_INFO, "train",
                "the run was ended by early_stopping or target_metric; change these to "
                "continue");
}

int dnn_train_resume(struct train_ckpt *c, int64_t *step, struct dnn_err *err)
{
    const struct dnn_config *config = c->config;
    char *state = NULL;

    *step = -1;
    if (config->ckpt->resume == DNN_RESUME_NO) return 0;
    int rc = load(c, NULL, step, &state, err);
    if (rc == DNN_EDATA)
        dnn_prefix(err, "if the network, its optimizer or \"ema\" has changed, set it "
                        "back; or start a new run with another \"dir\" or "
                        "checkpoints.resume false: ");
    DNN_TRY(rc);
    if (*step >= 0) rc = dnn_train_check_settings(c->monitor, state, err);
    dnn_free(state);
    DNN_TRY(dnn_comm_agree(c->comm, rc, err));
    if (*step < 0 && config->ckpt->resume == DNN_RESUME_YES)
        return dnn_fail(
            err, DNN_EDATA,
            "checkpoints.resume is true, but there is no checkpoint; set it to "
            "\"auto\" to start a new run");
    if (*step < 0) return 0;
    if (c->bucket > 0 && c->bucket_ranks == dnn_comm_size(c->comm) &&
        config->parallel->bucket == 0)
        DNN_TRY(dnn_replica_set_bucket_size(c->replica, (size_t)c->bucket, err));
    log_resumed(c, *step);
    if (!dnn_train_ended(c->monitor)) c->monitor->ended = 0;
    return 0;
}

int dnn_train_restore_best(struct train_ckpt *c, struct dnn_err *err)
{
    const struct dnn_stopping *early = c->config->early;
    const struct dnn_stopping_state *best = &c->monitor->best;
    const char *metric = c->monitor->best_rule.metric;
    /* Only the weights are replaced, not the progress of the run. */
    const struct train_progress at = *c->at;
    const struct train_monitor monitor = *c->monitor;
    char *state = NULL;
    int64_t step;

    if (early == NULL || !early->restore) return 0;
    if (best->seen == 0 || isnan(best->best)) {
        dnn_log(DNN_WARN, "train", "%s was never computed; using the last weights",
                metric);
        return 0;
    }
    int rc = load(c, "best", &step, &state, err);
    dnn_free(state);
    *c->at = at;
    *c->monitor = monitor;
    if (rc < 0) return dnn_prefix(err, "early_stopping.restore: ");
    dnn_log(DNN_INFO, "train",
            "restored the best weights: epoch %" PRId64 ", step %" PRId64 ", %s %g",
            best->best_epoch, step, metric, best->best);
    return 0;
}

/* ---- save ---- */

/* Check that all weights are finite: an update may overflow although its gradients are
 * finite.  Only on rank 0, which writes. */
static int check_finite(const struct train_ckpt *c, struct dnn_err *err)
{
    for (int i = 0; i < c->state.n && dnn_comm_rank(c->comm) == 0; i++) {
        const struct dnn_ckpt_array *a = &c->state.array[i];
        int64_t count;

        /* Numbers of the run are f64, and some may be NaN. */
        if (i >= c->state.nmodel && a->type == DNN_F64) continue;
        DNN_TRY(dnn_shape_count(&a->shape, &count, err));
        int64_t k = dnn_tensor_find_nan(a->type, a->data, count);
        if (k >= 0)
            return dnn_fail(err, DNN_EDATA,
                            "step %" PRId64 ": element %" PRId64
                            " of '%s' became NaN or infinite in the update; no "
                            "checkpoint is saved; lower the learning rate or clip "
                            "gradients",
                            c->at->step, k, a->name);
    }
    return 0;
}

int dnn_train_save(struct train_ckpt *c, bool best, struct dnn_err *err)
{
    double now = dnn_clock_now(), blocked, all, seconds = c->at->seconds;
    struct dnn_buf state = {0};

    DNN_TRY(dnn_comm_agree(c->comm, check_finite(c, err), err));
    c->bucket = (int64_t)dnn_replica_bucket_size(c->replica);
    c->bucket_ranks = dnn_comm_size(c->comm);
    dnn_buf_add(&state,
                "{\"step\": %" PRId64 ", \"epoch\": %" PRId64 ", \"batch\": %" PRId64
                ", \"config\": ",
                c->at->step, c->at->epoch, c->at->batch);
    dnn_train_write_settings(c->monitor, &state);
    dnn_buf_add(&state, "}");
    /* The arrays are copied during the call. */
    c->at->seconds = dnn_train_seconds(c->at);
    int rc = dnn_ckpt_save(c->ckpts, c->at->step, c->state.n, c->state.array,
                           state.text, best, err);
    c->at->seconds = seconds;
    dnn_buf_free(&state);
    c->last = now;
    dnn_ckpt_times(c->ckpts, &blocked, &all);
    c->save_time = fmax(c->save_time, fmax(blocked, all));
    return rc;
}
