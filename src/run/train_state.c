/* train_state.c - what a checkpoint holds, and when one is written.
 *
 * Weights, moving statistics and the optimizer's slots lie in a few blocks and are
 * saved by name; what else a run remembers is small and saved as bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/train_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

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
    const struct dnn_model *m = dnn_replica_model(t->replica);
    size_t cap = 0;

    for (int v = 0; v < m->prog->nvalues; v++) {
        const struct dnn_value *x = &m->prog->value[v];
        const struct dnn_spot *s = &m->plan->spot[v];

        if (x->role != DNN_WEIGHT && x->role != DNN_STATE && x->role != DNN_SLOT)
            continue;
        char *name = dnn_format("%s/%s", x->layer == NULL ? "" : x->layer, x->is.name);
        char *block = dnn_exec_block(m->exec, s->block);
        add(t, &cap, name, x->is.dtype, &x->is.shape, block + s->offset);
        dnn_free(name);
    }
    add_bytes(t, &cap, "run/counters", &t->at, sizeof t->at);
    add_bytes(t, &cap, "run/sums", &t->sum, sizeof t->sum);
    add_bytes(t, &cap, "run/schedule", &t->memory, sizeof t->memory);
    add_bytes(t, &cap, "run/early", &t->early, sizeof t->early);
    add_bytes(t, &cap, "run/goal", &t->goal, sizeof t->goal);
    return t->ckpts == NULL ? 0 : dnn_ckpt_reserve(t->ckpts, t->narrays, t->array, err);
}

int dnn_trainer_resume(struct dnn_trainer *t, struct dnn_err *err)
{
    int64_t step;
    char *state = NULL;

    if (t->ckpts == NULL || t->job->ckpt->resume == DNN_RESUME_NO) return 0;
    DNN_TRY(dnn_ckpt_load(t->ckpts, NULL, t->narrays, t->array, &step, &state, err));
    dnn_free(state);
    dnn_exec_changed(dnn_replica_model(t->replica)->exec);
    if (step < 0 && t->job->ckpt->resume == DNN_RESUME_YES)
        return dnn_fail(
            err, DNN_EDATA,
            "checkpoints.resume is true, but there is no checkpoint yet; set "
            "it to \"auto\" to begin anew then");
    if (step >= 0 && t->speaks)
        dnn_log(DNN_INFO, "train",
                "going on from the checkpoint of step %" PRId64 ": epoch %" PRId64
                ", batch %" PRId64,
                step, t->at.epoch + 1, t->at.batch);
    return 0;
}

int dnn_trainer_save(struct dnn_trainer *t, bool best, struct dnn_err *err)
{
    double now = dnn_clock_now(), held, all, seconds = t->sum.seconds;

    if (t->ckpts == NULL) return 0;
    t->sum.seconds += now - t->began;
    struct dnn_buf state = {0};
    dnn_buf_add(&state,
                "{\"step\": %" PRId64 ", \"epoch\": %" PRId64 ", \"batch\": %" PRId64
                ", \"seed\": %" PRId64 "}",
                t->at.step, t->at.epoch, t->at.batch, t->job->seed);
    int rc = dnn_ckpt_save(t->ckpts, t->at.step, t->narrays, t->array, state.text, best,
                           err);
    dnn_buf_free(&state);
    t->sum.seconds = seconds;
    t->last_ckpt = now;
    dnn_ckpt_times(t->ckpts, &held, &all);
    if (held > t->ckpt_time) t->ckpt_time = held;
    if (all > t->ckpt_time) t->ckpt_time = all;
    return rc;
}

int dnn_trainer_urge(const struct dnn_trainer *t)
{
    const struct dnn_job_ckpt *how = t->job->ckpt;
    double left = dnn_seat_left(t->seat);
    /* Two steps and two checkpoints, for none takes exactly as long as the last. */
    double need = 2 * t->step_time + 2 * t->ckpt_time + 15;

    if (left < need) return 2;
    if (how->steps > 0 && (t->at.step + 1) % how->steps == 0) return 1;
    return how->minutes > 0 && dnn_clock_now() - t->last_ckpt >= 60 * how->minutes;
}

bool dnn_trainer_epoch_due(const struct dnn_trainer *t)
{
    double interval = t->job->ckpt->interval;

    if (t->at.epoch == t->job->num_epochs) return true;
    if (interval <= 0) return false;
    return floor((double)t->at.epoch / interval) >
           floor((double)(t->at.epoch - 1) / interval);
}
