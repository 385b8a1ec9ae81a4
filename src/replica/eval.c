/* eval.c - evaluation and inference over all ranks.
 *
 * A batch is split into micro-batches as in training; losses are normalized by the
 * whole batch.  They are summed per micro-batch, and over micro-batches in order at the
 * end, so that deterministic sums do not depend on the number of ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "replica/replica_impl.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

void dnn_replica_eval_start(struct dnn_replica *replica)
{
    struct replica_set *set = &replica->set[DNN_MODEL_EVALUATE];

    memset(set->loss, 0, (size_t)set->micro_batches * sizeof *set->loss);
}

/* One call of dnn_replica_eval(). */
struct eval_run {
    struct dnn_replica *r;
    enum dnn_model_role role;
    const struct replica_cut *cut;
    const struct dnn_replica_batch *batch;
    dnn_replica_seen_fn *seen;
    void *arg;
    double *loss; /* by micro-batch */
};

/* Call seen() with the outputs of a micro-batch that has run. */
static int show(const struct eval_run *e, const struct replica_micro_batch *mb,
                struct dnn_err *err)
{
    const struct dnn_model *m = mb->model->model;
    float **buffer = dnn_alloc(((size_t)m->noutputs + 1) * sizeof *buffer);
    const float **output = dnn_alloc(((size_t)m->noutputs + 1) * sizeof *output);
    int rc = 0;

    for (int i = 0; i < m->noutputs && rc == 0; i++) {
        output[i] = dnn_exec_view(m->exec, m->output[i], &buffer[i], err);
        if (output[i] == NULL) rc = err->code;
    }
    const struct dnn_replica_seen seen = {mb->part, mb->first, mb->n, output};
    if (rc == 0) rc = e->seen(e->arg, &seen, err);
    for (int i = 0; i < m->noutputs; i++)
        free(buffer[i]);
    dnn_free(buffer);
    dnn_free(output);
    return rc;
}

/* As dnn_replica_try_load(). */
static void try_show(const struct eval_run *e, const struct replica_micro_batch *mb)
{
    if (e->seen != NULL && e->r->failed == 0) e->r->failed = show(e, mb, &e->r->why);
}

/* A rank without samples joins the exchanges. */
static int join_exchanges(const struct eval_run *e, const struct dnn_now *now,
                          struct dnn_err *err)
{
    void *pending = NULL;

    for (int o = 0; o < e->cut->lead->prog->nops; o++)
        DNN_TRY(dnn_replica_join_exchange(e->r, e->cut->lead, o, &pending, now, err));
    return 0;
}

/* The loss of each micro-batch; their sum is the mean of the batch. */
static int run(const struct eval_run *e, struct dnn_err *err)
{
    const struct replica_cut *cut = e->cut;
    const struct dnn_now now = {0};

    if (e->r->set[e->role].lockstep) {
        DNN_TRY(dnn_replica_lockstep(e->r, cut, e->batch, &now, e->loss, err));
        for (int p = 0; p < cut->nmb; p++)
            try_show(e, &cut->mb[p]);
        return 0;
    }
    if (cut->nmb == 0 && dnn_replica_exchanges(cut->lead))
        return join_exchanges(e, &now, err);
    for (int p = 0; p < cut->nmb; p++) {
        const struct replica_micro_batch *mb = &cut->mb[p];
        const struct dnn_model *m = mb->model->model;

        dnn_replica_try_load(e->r, mb, e->batch);
        DNN_TRY(dnn_exec_run(m->exec, 0, m->prog->nops, &now, err));
        DNN_TRY(dnn_replica_add_loss(mb, e->loss, err));
        try_show(e, mb);
    }
    return 0;
}

int dnn_replica_eval(struct dnn_replica *replica, enum dnn_model_role role,
                     const struct dnn_replica_batch *batch, dnn_replica_seen_fn *seen,
                     void *arg, struct dnn_err *err)
{
    struct replica_set *set = &replica->set[role];
    struct eval_run e = {.r = replica,
                         .role = role,
                         .batch = batch,
                         .cut = dnn_replica_find_cut(replica, role, batch, err),
                         .seen = seen,
                         .arg = arg};

    if (e.cut == NULL) return err->code;
    e.loss = dnn_alloc((size_t)set->micro_batches * sizeof *e.loss);
    replica->failed = 0;
    int rc = run(&e, err);
    for (int l = 0; l < set->micro_batches; l++)
        set->loss[l] += e.loss[l] * (double)batch->total;
    dnn_free(e.loss);
    if (rc < 0 || replica->failed == 0) return rc;
    *err = replica->why;
    return replica->failed;
}

int dnn_replica_eval_loss(struct dnn_replica *replica, double *loss,
                          struct dnn_err *err)
{
    struct replica_set *set = &replica->set[DNN_MODEL_EVALUATE];

    /* Each is zero on all ranks but one, so the all-reduce is exact. */
    int rc = dnn_comm_allreduce(replica->cfg.comm, "loss", set->loss,
                                set->micro_batches, DNN_COMM_F64, DNN_COMM_SUM, err);

    *loss = 0;
    for (int l = 0; l < set->micro_batches; l++)
        *loss += set->loss[l];
    return rc;
}

double *dnn_replica_eval_sums(struct dnn_replica *replica)
{
    return replica->set[DNN_MODEL_EVALUATE].loss;
}

int dnn_replica_eval_parts(const struct dnn_replica *replica, int *first, int *last)
{
    int n = replica->set[DNN_MODEL_EVALUATE].micro_batches;

    dnn_replica_own_range(replica->cfg.comm, n, first, last);
    return n;
}
