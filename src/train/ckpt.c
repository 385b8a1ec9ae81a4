/* ckpt.c - the content of checkpoints, and when they are written.
 *
 * Weights, moving statistics and optimizer slots are stored by name; the progress of
 * the run is small and stored as bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/train_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "engine/load.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static void add(struct dnn_trainer *t, size_t *cap, const char *name,
                enum dnn_dtype type, const struct dnn_shape *shape, void *data)
{
    t->array = dnn_grow(t->array, cap, (size_t)t->narrays + 1, sizeof *t->array);
    t->array[t->narrays++] =
        (struct dnn_ckpt_array){dnn_strdup(name), type, *shape, data};
}

static void add_bytes(struct dnn_trainer *t, size_t *cap, const char *name, void *data,
                      size_t bytes)
{
    const struct dnn_shape shape = {1, {(int64_t)bytes}};

    add(t, cap, name, DNN_U8, &shape, data);
}

int dnn_trainer_arrays(struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_model *m = dnn_replica_model(t->stage->replica);
    struct dnn_ckpt_array hessian[TRAIN_HESSIAN_ARRAYS];
    int nhessian = dnn_hessian_arrays(t, hessian);
    size_t cap = 0;

    for (int v = 0; v < m->prog->nvalues; v++) {
        const struct dnn_value *x = &m->prog->value[v];
        const struct dnn_spot *s = &m->plan->spot[v];

        if (x->role != DNN_WEIGHT && x->role != DNN_STATE && x->role != DNN_SLOT)
            continue;
        char *name = dnn_load_name(x);
        char *block = dnn_exec_block(m->exec, s->block);
        add(t, &cap, name, x->is.dtype, &x->is.shape, block + s->offset);
        dnn_free(name);
        if (t->ema == NULL || x->role != DNN_WEIGHT || x->grad == DNN_NONE) continue;
        name = dnn_format("%s/%s" DNN_LOAD_EMA, x->layer == NULL ? "" : x->layer,
                          x->is.name);
        add(t, &cap, name, x->is.dtype, &x->is.shape, (char *)t->ema + s->offset);
        dnn_free(name);
    }
    for (int i = 0; i < nhessian; i++)
        add(t, &cap, hessian[i].name, hessian[i].type, &hessian[i].shape,
            hessian[i].data);
    add_bytes(t, &cap, "run/counters", &t->at, sizeof t->at);
    add_bytes(t, &cap, "run/sums", &t->sum, sizeof t->sum);
    add_bytes(t, &cap, "run/schedule", &t->memory, sizeof t->memory);
    add_bytes(t, &cap, "run/early", &t->early, sizeof t->early);
    add_bytes(t, &cap, "run/goal", &t->goal, sizeof t->goal);
    add_bytes(t, &cap, "run/best", &t->best, sizeof t->best);
    return t->ckpts == NULL ? 0 : dnn_ckpt_reserve(t->ckpts, t->narrays, t->array, err);
}

/* Resume from the newest checkpoint; *step is -1 if there is none. */
static int load_newest(struct dnn_trainer *t, int64_t *step, struct dnn_err *err)
{
    char *state = NULL;

    *step = -1;
    if (t->ckpts == NULL || t->config->ckpt->resume == DNN_RESUME_NO) return 0;
    int rc = dnn_ckpt_load(t->ckpts, NULL, t->narrays, t->array, step, &state, err);
    if (rc == DNN_EDATA)
        dnn_prefix(err,
                   "the network, its optimizer or \"ema\" has changed; set it back, or "
                   "start a new run with another \"dir\" or checkpoints.resume "
                   "false: ");
    DNN_TRY(rc);
    if (*step >= 0) rc = dnn_trainer_check_settings(t, state, err);
    dnn_free(state);
    DNN_TRY(dnn_comm_agree(t->comm, rc, err));
    dnn_exec_changed(dnn_replica_model(t->stage->replica)->exec);
    if (*step < 0 && t->config->ckpt->resume == DNN_RESUME_YES)
        return dnn_fail(
            err, DNN_EDATA,
            "checkpoints.resume is true, but there is no checkpoint; set it to "
            "\"auto\" to start a new run");
    if (*step < 0) return 0;
    if (t->sum.bucket > 0 && t->sum.ranks == dnn_comm_size(t->comm) &&
        t->config->parallel->bucket == 0)
        DNN_TRY(dnn_replica_set_bucket_size(t->stage->replica, (size_t)t->sum.bucket, err));
    dnn_log(DNN_INFO, "train",
            "resuming from the checkpoint of step %" PRId64 ": epoch %" PRId64
            ", batch %" PRId64 "%s",
            *step, t->at.epoch + 1, t->at.batch,
            t->config->ckpt->load == NULL ? "" : "; checkpoints.load is ignored");
    if (!dnn_trainer_ended(t))
        t->at.ended = 0;
    else if (t->at.epoch < t->config->num_epochs)
        dnn_log(DNN_INFO, "train",
                "the run was ended by early_stopping or target_metric; change these to "
                "continue");
    return 0;
}

int dnn_trainer_resume(struct dnn_trainer *t, struct dnn_err *err)
{
    const char *load = t->config->ckpt->load;
    int64_t step;
    char *path = NULL;

    DNN_TRY(load_newest(t, &step, err));
    if (step >= 0) return 0;
    if (load != NULL) {
        int rc = dnn_load_find(dnn_config_path(t->config, load), &path, err);

        rc = dnn_comm_agree(t->comm, rc, err);
        if (rc == 0)
            rc = dnn_load_weights(dnn_replica_model(t->stage->replica), t->comm, path, err);
        dnn_free(path);
        DNN_TRY(rc);
    }
    dnn_trainer_ema_start(t);
    return 0;
}

/* Index of the first NaN or infinity, -1: none.  Checked in blocks, without a branch
 * for each element. */
static int64_t find_nan(const float *x, int64_t n)
{
    enum { BLOCK = 4096 };

    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t end = n - at < BLOCK ? n : at + BLOCK;
        int bad = 0;

        for (int64_t k = at; k < end; k++)
            bad |= !(fabsf(x[k]) <= FLT_MAX);
        for (int64_t k = at; k < end && bad; k++)
            if (!isfinite(x[k])) return k;
    }
    return -1;
}

/* Check that all weights are finite: an update may overflow although its gradients are
 * finite.  Only on rank 0, which writes. */
static int check_arrays(const struct dnn_trainer *t, struct dnn_err *err)
{
    for (int i = 0; i < t->narrays && t->root; i++) {
        const struct dnn_ckpt_array *a = &t->array[i];
        int64_t count;

        if (a->type != DNN_F32) continue;
        DNN_TRY(dnn_shape_count(&a->shape, &count, err));
        int64_t k = find_nan(a->data, count);
        if (k >= 0)
            return dnn_fail(err, DNN_EDATA,
                            "step %" PRId64 ": element %" PRId64
                            " of '%s' became NaN or infinite in the update; no "
                            "checkpoint is saved; lower the learning rate or clip "
                            "gradients",
                            t->at.step, k, a->name);
    }
    return 0;
}

int dnn_trainer_save(struct dnn_trainer *t, bool best, struct dnn_err *err)
{
    double now = dnn_clock_now(), blocked, all, seconds = t->sum.seconds;

    if (t->ckpts == NULL) return 0;
    dnn_hessian_use_best(t);
    DNN_TRY(dnn_comm_agree(t->comm, check_arrays(t, err), err));
    t->sum.seconds += now - t->began;
    t->sum.bucket = (double)dnn_replica_bucket_size(t->stage->replica);
    t->sum.ranks = dnn_comm_size(t->comm);
    struct dnn_buf state = {0};
    dnn_buf_add(&state,
                "{\"step\": %" PRId64 ", \"epoch\": %" PRId64 ", \"batch\": %" PRId64
                ", \"config\": ",
                t->at.step, t->at.epoch, t->at.batch);
    dnn_trainer_write_settings(t, &state);
    dnn_buf_add(&state, "}");
    int rc = dnn_ckpt_save(t->ckpts, t->at.step, t->narrays, t->array, state.text, best,
                           err);
    dnn_buf_free(&state);
    t->sum.seconds = seconds;
    t->last_ckpt = now;
    dnn_ckpt_times(t->ckpts, &blocked, &all);
    if (blocked > t->ckpt_time) t->ckpt_time = blocked;
    if (all > t->ckpt_time) t->ckpt_time = all;
    return rc;
}

/* Whether a multiple of the checkpoint interval lies between before and now, which are
 * numbers of epochs. */
static bool due(const struct dnn_trainer *t, double now, double before)
{
    double interval = t->config->ckpt->interval, tolerance = 1e-9;

    return interval > 0 &&
           floor(now / interval + tolerance) > floor(before / interval + tolerance);
}

enum train_action dnn_trainer_action(const struct dnn_trainer *t)
{
    const struct dnn_config_ckpt *how = t->config->ckpt;
    double remaining = dnn_session_time_left(t->session);
    /* Time for two steps and two checkpoints, because durations vary. */
    double need = 2 * t->step_time + 2 * t->ckpt_time + 15;

    if (remaining < need) return TRAIN_STOP;
    if (t->stage->mode != DNN_CONFIG_TRAIN) return TRAIN_CONTINUE;
    double each = 1 / (double)dnn_feed_batches(t->stage->train.feed);
    double at = (double)t->at.epoch + (double)t->at.batch * each;
    if (due(t, at + each, at)) return TRAIN_SAVE;
    if (how->steps > 0 && (t->at.step + 1) % how->steps == 0) return TRAIN_SAVE;
    return how->minutes > 0 && dnn_clock_now() - t->last_ckpt >= 60 * how->minutes
               ? TRAIN_SAVE
               : TRAIN_CONTINUE;
}

bool dnn_trainer_epoch_due(const struct dnn_trainer *t)
{
    double at = (double)t->at.epoch;

    return t->at.epoch == t->config->num_epochs || due(t, at, at - 1);
}
