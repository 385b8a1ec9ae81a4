/* nan.c - find the layer where the first NaN or infinity occurred.
 *
 * The weights are unchanged, so the batch is recomputed op by op and every result is
 * checked.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "replica/replica_impl.h"

#include "base/mem.h"
#include "parallel/exact.h"

#include <stdio.h>

static bool has_nan(const struct dnn_model *m, int v, struct dnn_err *err)
{
    size_t bytes = m->plan->spot[v].bytes;
    enum dnn_dtype type = m->prog->value[v].is.dtype;
    void *mem = dnn_alloc(bytes + 1);
    bool is =
        dnn_exec_get(m->exec, v, mem, err) == 0 &&
        dnn_tensor_find_nan(type, mem, (int64_t)(bytes / dnn_dtype_size(type))) >= 0;

    dnn_free(mem);
    return is;
}

static const char *layer_of(const struct dnn_op *op)
{
    return op->layer == NULL ? dnn_op_info(op->kind)->name : op->layer;
}

/* Check inputs, targets and weights. */
static bool check_inputs(const struct dnn_model *m, char *where, size_t size,
                         struct dnn_err *err)
{
    for (int v = 0; v < m->prog->nvalues; v++) {
        const struct dnn_value *value = &m->prog->value[v];
        const char *what = value->role == DNN_INPUT    ? "input"
                           : value->role == DNN_TARGET ? "target"
                           : value->role == DNN_WEIGHT ? "weight"
                           : value->role == DNN_STATE  ? "statistic"
                                                       : NULL;

        if (what == NULL || m->plan->spot[v].bytes == 0) continue;
        if (!has_nan(m, v, err)) continue;
        bool data = value->role == DNN_INPUT || value->role == DNN_TARGET;
        snprintf(where, size, "%s '%s%s%s'%s", what,
                 value->layer == NULL ? "" : value->layer,
                 value->layer == NULL ? "" : "/",
                 value->is.name == NULL ? "" : value->is.name,
                 data ? "" : " after the previous update");
        return true;
    }
    return false;
}

/* Run and check all ops.  Exchanges are skipped, because other ranks may not be in this
 * function. */
static bool check_ops(const struct dnn_model *m, struct dnn_now now, char *where,
                      size_t size, struct dnn_err *err)
{
    for (int o = 0; o < m->update; o++) {
        const struct dnn_op *op = &m->prog->op[o];

        if (op->kind == DNN_OP_BN_UPDATE || op->kind == DNN_OP_EXCHANGE) continue;
        if (dnn_exec_run_op(m->exec, o, &now, err) < 0) return false;
        for (int i = 0; i < op->nout; i++) {
            if (op->out[i] == DNN_NONE || !has_nan(m, op->out[i], err)) continue;
            snprintf(where, size, "layer '%s' (%s, %s)%s", layer_of(op),
                     dnn_op_info(op->kind)->name, dnn_op_pass_name(op->pass),
                     op->pass == DNN_FWD ? "" : " in the backward pass");
            return true;
        }
    }
    return false;
}

int dnn_replica_find_nan(struct dnn_replica *replica, const struct replica_cut *cut,
                         const struct dnn_replica_batch *batch,
                         const struct dnn_now *now, struct dnn_err *err)
{
    char where[256] = "";
    bool found = false;
    int rc = 0;

    for (int p = 0; p < cut->nmb && !found && rc == 0; p++) {
        const struct replica_micro_batch *mb = &cut->mb[p];
        struct dnn_now here = *now;

        if (mb->n == 0) continue;
        const struct dnn_model *m = mb->model->model;
        here.sample = (uint32_t)mb->first;
        rc = dnn_replica_load(mb, batch, err);
        if (rc == 0) found = check_inputs(m, where, sizeof where, err);
        if (rc == 0 && !found) found = check_ops(m, here, where, sizeof where, err);
    }
    if (rc == 0 && found)
        rc = dnn_fail(
            err, DNN_EDATA,
            "step %llu: NaN or infinity, first in %s; lower the learning rate, "
            "clip gradients, or check the data",
            (unsigned long long)now->updates, where);
    /* The error of the lowest rank that found one is reported. */
    rc = dnn_comm_agree(replica->cfg.comm, rc, err);
    if (rc < 0) return rc;
    if (replica->cfg.how.deterministic)
        dnn_fail(err, DNN_EDATA,
                 "step %llu: a gradient is larger than %g, the limit of deterministic "
                 "sums; lower the learning rate or set \"deterministic\": false",
                 (unsigned long long)now->updates, (double)DNN_EXACT_LARGEST);
    else
        dnn_fail(err, DNN_EDATA,
                 "step %llu: the sum of losses or gradients over ranks is NaN or "
                 "infinite; lower the learning rate",
                 (unsigned long long)now->updates);
    err->everywhere = true;
    return DNN_EDATA;
}
