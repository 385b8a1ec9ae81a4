/* infer.c - inference with the weights of a replica, between its steps.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "replica/replica_impl.h"

#include "base/mem.h"

#include <string.h>

/* Find the model for n samples, or make it on first use. */
static int find_model(struct dnn_replica *r, int64_t n, bool with_loss,
                      struct dnn_model **out, struct dnn_err *err)
{
    struct dnn_model_opts opts = r->cfg.model;
    const struct dnn_model_opts *first = &r->model[0].model->opts;

    if (!first->training && first->batch == n && first->with_loss == with_loss) {
        *out = r->model[0].model;
        return 0;
    }
    for (int i = 0; i < r->ninfers; i++)
        if (r->infer[i]->opts.batch == n && r->infer[i]->opts.with_loss == with_loss) {
            *out = r->infer[i];
            return 0;
        }
    opts.batch = n;
    opts.total = 1; /* the loss is a sum over samples, not a mean */
    opts.training = false;
    opts.with_loss = with_loss;
    opts.owner = r->model[0].model;
    opts.separate = false;
    struct dnn_model **grown = dnn_alloc(((size_t)r->ninfers + 1) * sizeof *grown);
    if (r->ninfers > 0) memcpy(grown, r->infer, (size_t)r->ninfers * sizeof *grown);
    dnn_free(r->infer);
    r->infer = grown;
    DNN_TRY(dnn_model_make(r->cfg.graph, &opts, out, err));
    r->infer[r->ninfers++] = *out;
    return dnn_model_start(*out, err);
}

int dnn_replica_output(const struct dnn_model *m, int i, float *to, struct dnn_err *err)
{
    int value = m->output[i];

    if (m->prog->value[value].is.dtype != DNN_F64)
        return dnn_exec_get(m->exec, value, to, err);
    size_t n = m->plan->spot[value].bytes / sizeof(double);
    double *wide = dnn_alloc((n + 1) * sizeof *wide);
    int rc = dnn_exec_get(m->exec, value, wide, err);

    for (size_t k = 0; k < n && rc == 0; k++)
        to[k] = (float)wide[k];
    dnn_free(wide);
    return rc;
}

int dnn_replica_infer(struct dnn_replica *replica,
                      const struct dnn_replica_batch *batch, float *const *output,
                      double *loss, struct dnn_err *err)
{
    struct dnn_model *m;
    double one;

    if (loss != NULL) *loss = 0;
    if (batch->n == 0) return 0;
    DNN_TRY(find_model(replica, batch->n, loss != NULL, &m, err));
    for (int i = 0; i < m->ninputs; i++)
        DNN_TRY(dnn_exec_put(m->exec, m->input[i], batch->input[i], err));
    for (int i = 0; i < m->noutputs && loss != NULL; i++)
        if (m->target[i] != DNN_NONE)
            DNN_TRY(dnn_exec_put(m->exec, m->target[i], batch->target[i], err));
    DNN_TRY(dnn_model_run(m, 0, NULL, err));
    for (int i = 0; i < m->noutputs; i++)
        if (output != NULL && output[i] != NULL)
            DNN_TRY(dnn_replica_output(m, i, output[i], err));
    for (int i = 0; i < m->nsample_losses && loss != NULL; i++) {
        DNN_TRY(dnn_exec_get(m->exec, m->loss[i], &one, err));
        *loss += one;
    }
    return 0;
}
