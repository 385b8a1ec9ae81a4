/* fit.c - the plan of a model, within its memory limit.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "engine/model_impl.h"

#include "base/mem.h"
#include "base/memory.h"

#include <string.h>

/* With less memory for temporaries, activations are always stored. */
enum { MIN_RECOMPUTE_BYTES = 256 << 20 };

/* Keep the outputs and losses until the program has run. */
static struct dnn_plan_opts plan_opts(const struct dnn_model *m, int *keep,
                                      struct dnn_exec_pitch_arg *pitch_arg)
{
    bool training = m->opts.role == DNN_MODEL_TRAIN;
    int n = 0;

    *pitch_arg = (struct dnn_exec_pitch_arg){&m->backend, m->dev};
    for (int i = 0; i < m->noutputs && !training; i++)
        keep[n++] = m->output[i];
    for (int i = 0; i < m->nlosses; i++)
        keep[n++] = m->loss[i];
    return (struct dnn_plan_opts){
        .nkeep = n, .keep = keep, .pitch = dnn_exec_pitch, .arg = pitch_arg};
}

/* The model whose temporaries are shared, or NULL. */
static const struct dnn_model *partner_of(const struct dnn_model *m)
{
    return m->opts.memory == DNN_MODEL_SHARED ? m->opts.owner : m->opts.partner;
}

/* Plan memory, select kernels, and share memory with other models. */
static int plan(struct dnn_model *m, const struct dnn_plan_opts *opts,
                struct dnn_err *err)
{
    const struct dnn_model *partner = partner_of(m);

    dnn_exec_close(m->exec);
    dnn_plan_free(m->plan);
    m->exec = NULL;
    m->plan = NULL;
    DNN_TRY(dnn_plan_make(m->prog, opts, &m->plan, err));
    DNN_TRY(dnn_exec_make(m->plan, &m->backend, m->dev, &m->exec, err));
    if (m->opts.owner == NULL) return 0;
    return dnn_exec_share(m->exec, m->opts.owner->exec,
                          partner == NULL ? NULL : partner->exec, err);
}

/* The bytes that all blocks may have, shared ones included. */
static size_t allowed(const struct dnn_model *m, size_t limit)
{
    const struct dnn_exec_bytes need = dnn_exec_bytes(m->exec);
    const struct dnn_model *partner = partner_of(m);
    size_t used = m->opts.allocated + need.work + need.keep;
    size_t all = dnn_plan_bytes(m->plan), temps = m->plan->bytes[DNN_BLOCK_TEMPS];
    size_t most = all - need.blocks + (limit > used ? limit - used : 0);

    if (partner == NULL || need.shared[DNN_BLOCK_TEMPS]) return most;
    /* Temporaries that fit into those of the partner need no memory. */
    size_t shared = all - temps + partner->plan->bytes[DNN_BLOCK_TEMPS];
    return shared > most ? shared : most;
}

/* Replace the program by one that recomputes activations; AUTO: until all blocks need
 * at most limit bytes. */
static int recompute(struct dnn_model *m, const struct dnn_plan_opts *opts,
                     size_t limit, struct dnn_err *err)
{
    const struct dnn_recompute_opts how = {.plan = *opts,
                                           .how = m->opts.recompute,
                                           .limit = limit,
                                           .least = MIN_RECOMPUTE_BYTES};

    m->original = m->prog;
    m->prog = NULL;
    return dnn_plan_recompute(m->original, &how, &m->prog, &m->recompute, err);
}

static int check(const struct dnn_model *m, const struct dnn_plan_opts *opts,
                 enum dnn_recompute how, size_t limit, struct dnn_err *err)
{
    const struct dnn_exec_bytes need = dnn_exec_bytes(m->exec);
    struct dnn_plan_memory memory = {.plan = m->plan,
                                     .workspace = need.work + need.keep,
                                     .others = m->opts.allocated,
                                     .limit = limit,
                                     .batch = m->opts.batch,
                                     .opts = opts};

    if (how == DNN_RECOMPUTE_NEVER && m->opts.role == DNN_MODEL_TRAIN)
        memory.plain = m->prog;
    if (how == DNN_RECOMPUTE_CHEAP) memory.plain = m->original;
    memcpy(memory.shared, need.shared, sizeof memory.shared);
    return dnn_plan_check_memory(&memory, err);
}

int dnn_model_fit(struct dnn_model *m, struct dnn_err *err)
{
    int *keep = dnn_alloc((size_t)(m->noutputs + m->nlosses + 1) * sizeof *keep);
    struct dnn_exec_pitch_arg pitch_arg;
    const struct dnn_plan_opts opts = plan_opts(m, keep, &pitch_arg);
    enum dnn_recompute how =
        m->opts.role == DNN_MODEL_TRAIN ? m->opts.recompute : DNN_RECOMPUTE_NEVER;
    size_t limit = m->opts.limit;
    int rc = 0;

    if (limit == 0)
        limit = m->opts.dry_run ? SIZE_MAX : dnn_memory_available() + m->opts.allocated;
    if (how == DNN_RECOMPUTE_CHEAP || how == DNN_RECOMPUTE_ALL)
        rc = recompute(m, &opts, 0, err);
    if (rc == 0) rc = plan(m, &opts, err);
    if (rc == 0 && how == DNN_RECOMPUTE_AUTO &&
        dnn_exec_bytes(m->exec).all + m->opts.allocated > limit) {
        rc = recompute(m, &opts, allowed(m, limit), err);
        if (rc == 0) rc = plan(m, &opts, err);
    }
    if (rc == 0) rc = check(m, &opts, how, limit, err);
    dnn_free(keep);
    return rc;
}
