/* step.c - one training step over all ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "replica/replica_impl.h"

#include "base/clock.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

/* All-reduce the losses by micro-batch, the time and waits of the previous step, and
 * the values of the caller.  Each loss and wait is zero on all ranks but one, so these
 * sums are exact. */
static int reduce_scalars(struct dnn_replica *r, struct dnn_replica_step *step,
                          double *extra, int n, struct dnn_err *err)
{
    int waits = dnn_replica_waits_count(r);
    int64_t count = r->train->micro_batches + 1 + n + waits;
    double *all = dnn_alloc((size_t)count * sizeof *all),
           *took = all + r->train->micro_batches;
    double began = dnn_clock_now();

    memcpy(all, r->train->loss, (size_t)r->train->micro_batches * sizeof *all);
    *took = r->tune.took;
    if (n > 0) memcpy(took + 1, extra, (size_t)n * sizeof *extra);
    dnn_replica_waits_put(r, took + 1 + n);
    int rc = dnn_comm_allreduce(r->cfg.comm, "loss", all, count, DNN_COMM_F64,
                                DNN_COMM_SUM, err);
    step->loss = 0;
    for (int l = 0; l < r->train->micro_batches; l++)
        step->loss += all[l];
    dnn_replica_tune_add(r, *took);
    if (n > 0) memcpy(extra, took + 1, (size_t)n * sizeof *extra);
    step->straggler = dnn_replica_straggler_wait(r, took + 1 + n);
    dnn_free(all);
    dnn_replica_add_wait(r, began);
    return rc;
}

static double norm_f64(const struct dnn_replica *r)
{
    const double *grad = (const double *)(const void *)r->grad;
    double sum = 0;

    for (int64_t i = 0; i < r->count / 2; i++)
        sum += grad[i] * grad[i];
    return sqrt(sum);
}

static void clip_f64(struct dnn_replica *r, double scale, double limit)
{
    double *grad = (double *)(void *)r->grad;

    for (int64_t i = 0; i < r->count / 2; i++) {
        double g = grad[i] * scale;

        if (limit > 0) g = g > limit ? limit : g < -limit ? -limit : g;
        grad[i] = g;
    }
}

/* The sums of blocks are added in order, so the result does not depend on the number of
 * threads. */
static double norm(const struct dnn_replica *r)
{
    enum { BLOCK = 1 << 14 };

    if (r->f64) return norm_f64(r);
    int64_t blocks = (r->count + BLOCK - 1) / BLOCK;
    double *sum = dnn_alloc((size_t)(blocks + 1) * sizeof *sum), all = 0;

#pragma omp parallel for schedule(static) if (blocks > 4)
    for (int64_t b = 0; b < blocks; b++) {
        int64_t last = b + 1 == blocks ? r->count : (b + 1) * BLOCK;
        double four[4] = {0};
        int64_t i = b * BLOCK;

        for (; i + 4 <= last; i += 4)
            for (int k = 0; k < 4; k++)
                four[k] += (double)r->grad[i + k] * (double)r->grad[i + k];
        for (; i < last; i++)
            four[0] += (double)r->grad[i] * (double)r->grad[i];
        sum[b] = (four[0] + four[1]) + (four[2] + four[3]);
    }
    for (int64_t b = 0; b < blocks; b++)
        all += sum[b];
    dnn_free(sum);
    return sqrt(all);
}

static void clip(struct dnn_replica *r, const struct dnn_replica_step *step)
{
    float limit = (float)step->clip_value, scale = 1;

    if (step->clip_norm > 0 && step->grad_norm > step->clip_norm)
        scale = (float)(step->clip_norm / step->grad_norm);
    if (scale == 1 && limit <= 0) return;
    if (r->f64) {
        clip_f64(r, scale < 1 ? step->clip_norm / step->grad_norm : 1,
                 step->clip_value);
        return;
    }
#pragma omp parallel for schedule(static) if (r->count > 1 << 15)
    for (int64_t i = 0; i < r->count; i++) {
        float g = r->grad[i] * scale;

        if (limit > 0) g = g > limit ? limit : g < -limit ? -limit : g;
        r->grad[i] = g;
    }
}

/* Update the weights; *penalty: regularization losses before the update. */
static int update(struct dnn_replica *r, const struct dnn_now *now, double *penalty,
                  struct dnn_err *err)
{
    const struct dnn_model *m = r->owner;
    double one;

    DNN_TRY(dnn_exec_run(m->exec, m->update, m->prog->nops, now, err));
    *penalty = 0;
    for (int i = m->nsample_losses; i < m->nlosses; i++) {
        DNN_TRY(dnn_exec_get(m->exec, m->loss[i], &one, err));
        *penalty += one;
    }
    return 0;
}

/* This rank has failed: run the step with NaN as loss, so that no rank makes the update
 * and all agree on the error. */
static int fail_step(struct dnn_replica *r, const struct dnn_now *now, double *extra,
                     int n, struct dnn_err *err)
{
    struct dnn_err why = *err;
    struct dnn_replica_step step;

    if (dnn_comm_size(r->cfg.comm) == 1) return why.code;
    memset(r->train->loss, 0, (size_t)r->train->micro_batches * sizeof *r->train->loss);
    r->train->loss[0] = NAN;
    DNN_TRY(dnn_replica_idle(r, now, err));
    DNN_TRY(r->rule->before(r->self, err));
    DNN_TRY(reduce_scalars(r, &step, extra, n, err));
    *err = why;
    return dnn_comm_agree(r->cfg.comm, why.code, err);
}

/* Loss and gradient of a batch, and the update, if the program has one. */
static int run_step(struct dnn_replica *r, const struct dnn_replica_batch *batch,
                    struct dnn_replica_step *step, bool check, double *extra, int n,
                    struct dnn_err *err)
{
    const struct dnn_now now = {.seed = step->seed,
                                .step = (uint32_t)step->step,
                                .rate = step->rate,
                                .updates = step->step + 1};
    double began = dnn_clock_now(), penalty;

    if (batch == NULL) return fail_step(r, &now, extra, n, err);
    const struct replica_cut *cut =
        dnn_replica_find_cut(r, DNN_MODEL_TRAIN, batch, err);
    if (cut == NULL) return err->code;
    r->now = (struct replica_waits){0};
    r->failed = 0;
    memset(r->train->loss, 0, (size_t)r->train->micro_batches * sizeof *r->train->loss);
    DNN_TRY(dnn_replica_compute(r, cut, batch, &now, err));
    /* NaN as loss: no rank makes the update, and all agree on the error. */
    if (r->failed < 0) r->train->loss[cut->mb[0].index] = NAN;
    double computed = dnn_clock_now();
    DNN_TRY(r->rule->before(r->self, err));
    dnn_replica_add_wait(r, computed);
    DNN_TRY(reduce_scalars(r, step, extra, n, err));
    if (r->failed < 0) {
        *err = r->why;
        return dnn_comm_agree(r->cfg.comm, r->failed, err);
    }
    step->grad_norm = norm(r);
    bool finite = isfinite(step->loss) && isfinite(step->grad_norm);
    /* Another rank may have failed.  Its error is the cause: what it sent may have made
     * NaN here, too. */
    if (!finite) DNN_TRY(dnn_comm_agree(r->cfg.comm, 0, err));
    if (!finite && check) return dnn_replica_find_nan(r, cut, batch, &now, err);
    clip(r, step);
    DNN_TRY(update(r, &now, &penalty, err));
    step->loss += penalty;
    step->comm = r->now.all;
    r->before = r->now;
    double took = dnn_clock_now() - began;
    step->compute = took - step->comm;
    return dnn_replica_tune_next(r, batch->total, took, err);
}

int dnn_replica_run(struct dnn_replica *replica, const struct dnn_replica_batch *batch,
                    struct dnn_replica_step *step, double *extra, int n,
                    struct dnn_err *err)
{
    return run_step(replica, batch, step, true, extra, n, err);
}

int dnn_replica_loss_grad(struct dnn_replica *replica,
                          const struct dnn_replica_batch *batch,
                          struct dnn_replica_step *step, bool first, double *extra,
                          int n, struct dnn_err *err)
{
    /* The program of such a replica has no updates. */
    return run_step(replica, batch, step, first, extra, n, err);
}

void dnn_replica_flat(const struct dnn_replica *replica, struct dnn_flat *out)
{
    const struct dnn_model *m = replica->owner;

    *out = (struct dnn_flat){.weight = dnn_exec_block(m->exec, DNN_BLOCK_WEIGHTS),
                             .grad = replica->grad,
                             .count = replica->count};
}
