/* replica_nan.c - where the first number arose that is none.
 *
 * The weights are still those the batch was computed with, so it is computed again, op
 * by op, and every result is looked at as soon as it is there.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/replica_impl.h"

#include "base/mem.h"
#include "parallel/exact.h"

#include <math.h>
#include <stdio.h>

/* The first element that is NaN or infinite, -1: none is. */
static int64_t strange(const void *mem, enum dnn_dtype type, size_t bytes)
{
    if (type == DNN_F32) {
        const float *x = mem;
        for (size_t i = 0; i < bytes / sizeof *x; i++)
            if (!isfinite(x[i])) return (int64_t)i;
    } else if (type == DNN_F64) {
        const double *x = mem;
        for (size_t i = 0; i < bytes / sizeof *x; i++)
            if (!isfinite(x[i])) return (int64_t)i;
    }
    return -1;
}

static bool value_is_strange(const struct dnn_model *m, int v, struct dnn_err *err)
{
    size_t bytes = m->plan->spot[v].bytes;
    void *mem = dnn_alloc(bytes + 1);
    bool is = dnn_exec_get(m->exec, v, mem, err) == 0 &&
              strange(mem, m->prog->value[v].is.dtype, bytes) >= 0;

    dnn_free(mem);
    return is;
}

static const char *layer_of(const struct dnn_op *op)
{
    return op->layer == NULL ? dnn_op_info(op->kind)->name : op->layer;
}

/* What goes into a part: inputs, targets, weights. */
static bool look_before(const struct dnn_model *m, char *where, size_t size,
                        struct dnn_err *err)
{
    for (int v = 0; v < m->prog->nvalues; v++) {
        const struct dnn_value *value = &m->prog->value[v];
        const char *what = value->role == DNN_INPUT    ? "the input"
                           : value->role == DNN_TARGET ? "the target"
                           : value->role == DNN_WEIGHT ? "the weight"
                           : value->role == DNN_STATE  ? "the statistic"
                                                       : NULL;

        if (what == NULL || m->plan->spot[v].bytes == 0) continue;
        if (!value_is_strange(m, v, err)) continue;
        bool data = value->role == DNN_INPUT || value->role == DNN_TARGET;
        snprintf(where, size, "%s '%s%s%s'%s", what,
                 value->layer == NULL ? "" : value->layer,
                 value->layer == NULL ? "" : "/",
                 value->is.name == NULL ? "" : value->is.name,
                 data ? "" : ", by the update before");
        return true;
    }
    return false;
}

/* Op by op; the exchanges stay those of this rank's samples, for others may have found
 * nothing. */
static bool look_inside(const struct dnn_model *m, struct dnn_now now, char *where,
                        size_t size, struct dnn_err *err)
{
    for (int o = 0; o < m->update; o++) {
        const struct dnn_op *op = &m->prog->op[o];

        if (op->kind == DNN_OP_BN_UPDATE || op->kind == DNN_OP_EXCHANGE) continue;
        if (dnn_exec_try(m->exec, o, &now, err) < 0) return false;
        for (int i = 0; i < op->nout; i++) {
            if (op->out[i] == DNN_NONE || !value_is_strange(m, op->out[i], err))
                continue;
            snprintf(where, size, "layer '%s' (%s, %s)%s", layer_of(op),
                     dnn_op_info(op->kind)->name, dnn_op_pass_name(op->pass),
                     op->pass == DNN_FWD ? "" : ", while its gradient was computed");
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

    for (int p = 0; p < cut->nparts && !found && rc == 0; p++) {
        const struct replica_part *part = &cut->part[p];
        struct dnn_now here = *now;

        if (part->n == 0) continue;
        const struct dnn_model *m = part->by->model;
        here.sample = (uint32_t)part->first;
        rc = dnn_replica_load(part, batch, err);
        if (rc == 0) found = look_before(m, where, sizeof where, err);
        if (rc == 0 && !found) found = look_inside(m, here, where, sizeof where, err);
    }
    if (rc == 0 && found)
        rc =
            dnn_fail(err, DNN_EDATA,
                     "step %llu: a number became NaN or infinite: the first one in %s; "
                     "lower the learning rate, clip gradients, or look at the data",
                     (unsigned long long)now->updates, where);
    /* The lowest rank that found it root for all. */
    rc = dnn_comm_agree(replica->cfg.comm, rc, err);
    if (rc < 0) return rc;
    if (replica->cfg.how.deterministic)
        dnn_fail(err, DNN_EDATA,
                 "step %llu: a gradient is larger than %g, which is too much for "
                 "sums that do not depend on the ranks; lower the learning rate, "
                 "or set \"deterministic\": false",
                 (unsigned long long)now->updates, (double)DNN_EXACT_LARGEST);
    else
        dnn_fail(err, DNN_EDATA,
                 "step %llu: the loss or a gradient became NaN or infinite when the "
                 "ranks' were added; lower the learning rate",
                 (unsigned long long)now->updates);
    err->everywhere = true;
    return DNN_EDATA;
}
