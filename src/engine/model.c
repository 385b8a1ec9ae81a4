/* model.c - from a graph to kernels on a device.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "engine/model_impl.h"

#include "base/mem.h"
#include "base/memory.h"
#include "base/rng.h"
#include "fuse/fuse.h"
#include "op/grad.h"
#include "op/reorder.h"

#include <string.h>

int dnn_model_backend(const char *name, const struct dnn_backend **out,
                      struct dnn_err *err)
{
    *out = NULL;
    if (name == NULL) *out = dnn_backend_find("cpu", NULL);
    if (*out == NULL) *out = dnn_backend_find(name == NULL ? "ref" : name, err);
    return *out == NULL ? DNN_ECONFIG : 0;
}

/* ---- the program ---- */

static void append_loss(struct dnn_model *m, int value)
{
    int *grown = dnn_alloc(((size_t)m->nlosses + 1) * sizeof *grown);

    if (m->nlosses > 0) memcpy(grown, m->loss, (size_t)m->nlosses * sizeof *grown);
    grown[m->nlosses++] = value;
    dnn_free(m->loss);
    m->loss = grown;
}

static bool training(const struct dnn_model *m)
{
    return m->opts.role == DNN_MODEL_TRAIN;
}

static int64_t total(const struct dnn_model *m)
{
    return m->opts.total == 0 ? m->opts.batch : m->opts.total;
}

/* Add targets and loss terms.  In training, m->output is replaced by the inputs of the
 * loss. */
static int add_losses(struct dnn_model *m, struct dnn_err *err)
{
    const char **name = dnn_alloc(((size_t)m->noutputs + 1) * sizeof *name);
    int *of = dnn_alloc(((size_t)m->noutputs + 1) * sizeof *of), rc = 0;
    const struct dnn_loss_net net = {.noutputs = m->noutputs,
                                     .output = m->output,
                                     .name = name,
                                     .target_is = m->opts.target_is,
                                     .batch = m->opts.batch,
                                     .total = total(m)};
    struct dnn_loss *default_loss = NULL;
    const int *term;

    for (int i = 0; i < m->noutputs; i++)
        name[i] = m->graph->node[m->graph->output[i]].name;
    if (m->opts.loss == NULL) rc = dnn_loss_make("mse", &default_loss, err);
    if (rc == 0)
        rc = dnn_loss_append(default_loss == NULL ? m->opts.loss : default_loss,
                             m->prog, &net, m->target, of, &term, err);
    for (int i = 0; i < rc; i++)
        append_loss(m, term[i]);
    if (rc >= 0 && training(m)) memcpy(m->output, of, (size_t)m->noutputs * sizeof *of);
    dnn_loss_free(default_loss);
    dnn_free(of);
    dnn_free(name);
    m->nterms = m->nsample_losses = m->nlosses;
    return rc < 0 ? rc : 0;
}

static void differentiate(struct dnn_model *m)
{
    const struct dnn_shape scalar = {.ndim = 0};
    const double one = 1;
    int n = m->nterms; /* penalties have their own gradients */
    int seed = dnn_prog_constant(m->prog, "one", &scalar, &one);
    struct dnn_grad_of *of = dnn_alloc((size_t)n * sizeof *of);

    for (int i = 0; i < n; i++)
        of[i] = (struct dnn_grad_of){m->loss[i], seed};
    dnn_grad(m->prog, n, of, false);
    dnn_free(of);
}

/* Add the activity penalties to the losses: outputs of ops that pass the activations
 * through unchanged and compute the gradients of the penalty themselves. */
static void find_penalties(struct dnn_model *m)
{
    for (int o = 0; o < m->prog->nops; o++) {
        struct dnn_op *op = &m->prog->op[o];

        if (op->kind != DNN_OP_ACTIVITY) continue;
        /* Normalize by the whole batch instead of the micro-batch. */
        op->attr.activity.l1 *= (double)m->opts.batch / (double)total(m);
        op->attr.activity.l2 *= (double)m->opts.batch / (double)total(m);
        append_loss(m, op->out[1]);
    }
    m->nsample_losses = m->nlosses;
}

/* Fuse ops.  The indices of values change. */
static void fuse(struct dnn_model *m)
{
    struct {
        int n, *value;
    } const group[] = {
        {m->ninputs,                      m->input },
        {m->noutputs,                     m->output},
        {m->nterms > 0 ? m->noutputs : 0, m->target},
        {m->nlosses,                      m->loss  },
    };
    int *list = dnn_alloc((size_t)m->prog->nvalues * sizeof *list), n = 0;

    for (size_t g = 0; g < sizeof group / sizeof *group; g++)
        for (int i = 0; i < group[g].n; i++)
            if (group[g].value[i] != DNN_NONE) list[n++] = group[g].value[i];
    struct dnn_prog *fused = dnn_fuse(m->prog, n, list);
    n = 0;
    for (size_t g = 0; g < sizeof group / sizeof *group; g++)
        for (int i = 0; i < group[g].n; i++)
            if (group[g].value[i] != DNN_NONE) group[g].value[i] = list[n++];
    dnn_free(list);
    dnn_prog_free(m->prog);
    m->prog = fused;
}

static int make_program(struct dnn_model *m, struct dnn_err *err)
{
    struct dnn_prog *prog = m->prog = dnn_prog_make(m->opts.dtype, training(m));

    DNN_TRY(dnn_graph_lower(m->graph, m->opts.batch, prog, m->output, err));
    for (int v = 0, n = 0; v < prog->nvalues; v++)
        if (prog->value[v].role == DNN_INPUT) m->input[n++] = v;
    if (m->opts.role != DNN_MODEL_INFER) DNN_TRY(add_losses(m, err));
    if (training(m)) find_penalties(m);
    if (!m->opts.no_fusion) fuse(m);
    if (!training(m)) return 0;
    differentiate(m);
    const int *penalty;
    int n = dnn_optim_append(m->prog, &m->opts.optim, &penalty);
    for (int i = 0; i < n; i++)
        append_loss(m, penalty[i]);
    if (m->opts.device.exchange.start != NULL) dnn_prog_reorder(m->prog);
    return 0;
}

/* The first op of the optimizer.  Call it after recomputation was added, which moves
 * ops. */
static int first_update(const struct dnn_prog *prog)
{
    for (int o = 0; o < prog->nops; o++)
        if (prog->op[o].kind == DNN_OP_PENALTY || prog->op[o].kind == DNN_OP_UPDATE)
            return o;
    return prog->nops;
}

/* ---- public ---- */

/* The device of another model to share, or NULL. */
static struct dnn_dev *shared_dev(const struct dnn_model_opts *opts)
{
    if (opts->partner != NULL) return opts->partner->dev;
    return opts->owner == NULL || opts->memory == DNN_MODEL_CONCURRENT
               ? NULL
               : opts->owner->dev;
}

int dnn_model_make(const struct dnn_graph *graph, const struct dnn_model_opts *opts,
                   struct dnn_model **out, struct dnn_err *err)
{
    struct dnn_model *m = dnn_alloc(sizeof *m);

    m->opts = *opts;
    m->graph = graph;
    m->backend = *opts->backend;
    if (opts->dry_run) dnn_model_make_dry(&m->backend);
    m->ninputs = graph->ninputs;
    m->noutputs = graph->noutputs;
    m->input = dnn_alloc(((size_t)m->ninputs + 1) * sizeof(int));
    m->output = dnn_alloc(((size_t)m->noutputs + 1) * sizeof(int));
    m->target = dnn_alloc(((size_t)m->noutputs + 1) * sizeof(int));
    int rc = 0;
    m->dev = shared_dev(opts);
    if (m->dev == NULL) rc = m->backend.open(&opts->device, &m->dev, err);
    if (rc == 0) rc = make_program(m, err);
    if (rc == 0) rc = dnn_model_fit(m, err);
    if (rc < 0) {
        dnn_model_free(m);
        return rc;
    }
    m->update = first_update(m->prog);
    *out = m;
    return 0;
}

int dnn_model_start(struct dnn_model *model, struct dnn_err *err)
{
    return dnn_exec_start(model->exec, err);
}

void dnn_model_free(struct dnn_model *model)
{
    if (model == NULL) return;
    dnn_exec_close(model->exec);
    if (model->dev != NULL && shared_dev(&model->opts) == NULL)
        model->backend.close(model->dev);
    dnn_plan_free(model->plan);
    if (model->prog != NULL) dnn_prog_free(model->prog);
    if (model->original != NULL) dnn_prog_free(model->original);
    dnn_free(model->input);
    dnn_free(model->output);
    dnn_free(model->target);
    dnn_free(model->loss);
    dnn_free(model);
}

struct dnn_exec_bytes dnn_model_bytes(const struct dnn_model *model)
{
    return dnn_exec_bytes(model->exec);
}

/* Fill a value with normal random numbers, or with random labels from 0 to classes -
 * 1. */
static int fill(struct dnn_model *m, int value, struct dnn_rng rng, int64_t classes,
                struct dnn_err *err)
{
    const struct dnn_tensor *is = &m->prog->value[value].is;
    int64_t n;

    DNN_TRY(dnn_shape_count(&is->shape, &n, err));
    void *mem = dnn_alloc((size_t)n * dnn_dtype_size(is->dtype) + 1);
#pragma omp parallel for
    for (int64_t i = 0; i < n; i++) {
        const struct dnn_rng_at at = {.index = (uint64_t)i};

        if (is->dtype == DNN_I32)
            ((int32_t *)mem)[i] = (int32_t)dnn_rng_below(&rng, at, (uint64_t)classes);
        else if (is->dtype == DNN_F64)
            ((double *)mem)[i] = dnn_rng_normal(&rng, at);
        else
            ((float *)mem)[i] = (float)dnn_rng_normal(&rng, at);
    }
    int rc = dnn_exec_put(m->exec, value, mem, err);
    dnn_free(mem);
    return rc;
}

/* The number of classes of output i; one channel: binary classification. */
static int64_t classes_of(const struct dnn_model *m, int i)
{
    int64_t n = dnn_prog_dim(m->prog, m->output[i], -1);

    return n == 1 ? 2 : n;
}

int dnn_model_fill(struct dnn_model *model, uint64_t seed, struct dnn_err *err)
{
    const uint64_t inputs = UINT64_C(1) << 40, targets = UINT64_C(1) << 41;

    DNN_TRY(dnn_exec_init(model->exec, seed, err));
    model->now.seed = seed;
    for (int i = 0; i < model->ninputs; i++)
        DNN_TRY(fill(model, model->input[i], dnn_rng_make(seed, inputs + (uint64_t)i),
                     0, err));
    for (int i = 0; i < model->noutputs && training(model); i++)
        if (model->target[i] != DNN_NONE)
            DNN_TRY(fill(model, model->target[i],
                         dnn_rng_make(seed, targets + (uint64_t)i),
                         classes_of(model, i), err));
    return 0;
}

int dnn_model_run(struct dnn_model *model, double rate, double *seconds,
                  struct dnn_err *err)
{
    struct dnn_now *now = &model->now;

    now->rate = rate;
    now->step++;
    now->updates++;
    if (seconds == NULL)
        return dnn_exec_run(model->exec, 0, model->prog->nops, now, err);
    return dnn_exec_profile(model->exec, 0, model->prog->nops, now, seconds, err);
}
