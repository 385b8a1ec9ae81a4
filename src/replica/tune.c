/* tune.c - autotuning of the gradient bucket size.
 *
 * Small buckets are sent earlier, large ones need fewer messages; the best size depends
 * on network, machine and ranks.  A few sizes are tried for a few steps each, and the
 * one with the fastest step is used.  The size affects only the rounding of sums over
 * ranks; exact sums do not round.
 *
 * The time of a step is summed over ranks together with the loss of the next step, so
 * that all ranks make the same decision without another message.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "replica/replica_impl.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

static const size_t sizes[] = {1 << 20, 4 << 20, 16 << 20};

enum { WARMUP = 2, STEPS_PER_SIZE = 3, DEFAULT_SIZE = 4 << 20 };

int dnn_replica_make_buckets(struct dnn_replica *r, size_t bucket, struct dnn_err *err)
{
    for (int i = 0; i < r->train->nmodels; i++) {
        dnn_free(r->train->model[i].bucket);
        r->nbuckets = dnn_plan_buckets(r->train->model[i].model->plan, bucket,
                                       &r->train->model[i].bucket);
    }
    if (r->self != NULL) r->rule->stop(r->self);
    r->self = NULL;
    r->bucket = bucket;
    return dnn_replica_start_rule(r, err);
}

int dnn_replica_tune_start(struct dnn_replica *r, struct dnn_err *err)
{
    struct replica_tune *t = &r->tune;
    size_t all = r->owner->plan->bytes[DNN_BLOCK_GRADS];
    size_t initial = r->cfg.bucket != 0 ? r->cfg.bucket : DEFAULT_SIZE;

    if (r->cfg.bucket == 0 && dnn_comm_size(r->cfg.comm) > 1 && all > sizes[0]) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            if (sizes[i] < all) t->size[t->n++] = sizes[i];
        t->size[t->n++] = all;
    }
    t->step = -WARMUP;
    return dnn_replica_make_buckets(r, initial, err);
}

/* The index of the size that a step tries; -1: warm-up; at least n: all are tried. */
static int trial_of(int step)
{
    return step < 0 ? -1 : step / STEPS_PER_SIZE;
}

void dnn_replica_tune_add(struct dnn_replica *r, double seconds)
{
    struct replica_tune *t = &r->tune;
    int k = trial_of(t->step - 1); /* of the previous step */

    if (t->n == 0 || k < 0 || k >= t->n || seconds <= 0) return;
    seconds /= dnn_comm_size(r->cfg.comm);
    if (t->best[k] == 0 || seconds < t->best[k]) t->best[k] = seconds;
}

static int decide(struct dnn_replica *r, struct dnn_err *err)
{
    struct replica_tune *t = &r->tune;
    struct dnn_buf trials = {0};
    char text[32];
    int k = 0;

    for (int i = 0; i < t->n; i++) {
        if (t->best[i] < t->best[k]) k = i;
        dnn_buf_add(&trials, "%s%s: %.3g ms", i == 0 ? "" : ", ",
                    dnn_text_bytes(text, sizeof text, (double)t->size[i]),
                    1e3 * t->best[i]);
    }
    size_t best = t->size[k];
    if (dnn_comm_rank(r->cfg.comm) == 0)
        dnn_log(DNN_INFO, "train",
                "gradient bucket size: %s (autotuned; time per step: %s)",
                dnn_text_bytes(text, sizeof text, (double)best), trials.text);
    dnn_buf_free(&trials);
    *t = (struct replica_tune){0};
    return best == r->bucket ? 0 : dnn_replica_make_buckets(r, best, err);
}

int dnn_replica_tune_next(struct dnn_replica *r, int64_t total, double seconds,
                          struct dnn_err *err)
{
    struct replica_tune *t = &r->tune;

    if (t->n == 0) return 0;
    /* Steps with smaller batches are not counted. */
    t->took = total == r->cfg.batches[DNN_MODEL_TRAIN].size ? seconds : 0;
    if (total != r->cfg.batches[DNN_MODEL_TRAIN].size) return 0;
    int k = trial_of(++t->step);
    /* The time of the last trial is known one step later. */
    if (t->step > t->n * STEPS_PER_SIZE) return decide(r, err);
    if (k < 0 || k >= t->n || t->size[k] == r->bucket) return 0;
    return dnn_replica_make_buckets(r, t->size[k], err);
}

size_t dnn_replica_bucket_size(const struct dnn_replica *replica)
{
    return replica->tune.n == 0 ? replica->bucket : 0;
}

int dnn_replica_set_bucket_size(struct dnn_replica *replica, size_t bytes,
                                struct dnn_err *err)
{
    replica->tune = (struct replica_tune){0};
    return bytes == replica->bucket ? 0 : dnn_replica_make_buckets(replica, bytes, err);
}
