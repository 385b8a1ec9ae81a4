/* combine.c - adding up the evaluations of all ranks.
 *
 * Counts are integers, and what is added before a sample is complete is an exact sum.
 * Everything else is computed by rank 0 from the rows of all samples in ascending
 * order, and broadcast.  So the results do not depend on ranks and order.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "evaluate/evaluate_impl.h"

#include "comm/collect.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- merging ---- */

static int by_sample(const void *a, const void *b)
{
    const struct evaluate_row *x = a, *y = b;

    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

int dnn_evaluate_merge(const struct dnn_evaluation *e, struct evaluate_row *row,
                       struct evaluate_row *other, struct dnn_err *err)
{
    if (row->name[0] == '\0') row->name = other->name;
    row->points += other->points;
    if (memcmp(row->full, other->full, sizeof row->full) != 0 ||
        row->points > dnn_evaluate_points(row->full))
        return dnn_fail(err, DNN_EDATA,
                        "sample \"%s\" (%" PRId64 "): was added more than once, or its "
                        "boxes overlap",
                        row->name, row->sample);
    for (int64_t k = 0; k < e->ncount; k++)
        row->count[k] += other->count[k];
    for (int64_t k = 0; k < e->nvalue; k++)
        row->value[k] = fmax(row->value[k], other->value[k]); /* or the only one */
    for (int64_t k = 0; k < e->nsum && other->sum != NULL; k++)
        dnn_evaluate_sum_merge(&row->sum[k], &other->sum[k]);
    return 0;
}

/* Sort the rows, and join those of a sample. */
static int merge_rows(struct dnn_evaluation *e, struct dnn_err *err)
{
    size_t n = 0;
    int rc = 0;

    if (e->nrows > 0) qsort(e->row, e->nrows, sizeof *e->row, by_sample);
    for (size_t i = 0; i < e->nrows && rc == 0; i++) {
        if (n > 0 && e->row[n - 1].sample == e->row[i].sample) {
            rc = dnn_evaluate_merge(e, &e->row[n - 1], &e->row[i], err);
            dnn_evaluate_row_shrink(&e->row[i]);
            continue;
        }
        struct evaluate_row row = e->row[i];
        memset(&e->row[i], 0, sizeof e->row[i]);
        e->row[n++] = row;
    }
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct evaluate_row *row = &e->row[i];

        if (row->points < dnn_evaluate_points(row->full))
            rc = dnn_fail(err, DNN_EDATA,
                          "sample \"%s\" (%" PRId64 "): only %" PRId64
                          " of its %" PRId64 " points were evaluated",
                          row->name, row->sample, row->points,
                          dnn_evaluate_points(row->full));
        if (rc == 0 && row->sum != NULL && e->kind->complete != NULL)
            e->kind->complete(e, row);
        if (rc == 0) dnn_evaluate_row_shrink(row);
    }
    if (rc == 0) e->nrows = n;
    return rc;
}

/* Bring the rows of all ranks to rank 0. */
static int gather_rows(struct dnn_evaluation *e, struct dnn_comm *comm,
                       struct dnn_err *err)
{
    struct dnn_buf mine = {0};
    void *all = NULL;
    size_t bytes = 0;

    for (size_t i = 0; i < e->nrows; i++)
        dnn_evaluate_pack(e, &e->row[i], &mine);
    for (size_t i = 0; i < e->nrows; i++)
        dnn_evaluate_row_shrink(&e->row[i]);
    e->nrows = e->nopen = 0;
    int rc = dnn_comm_collect(comm, "rows of samples", mine.text, mine.len, &all,
                              &bytes, err);
    dnn_buf_free(&mine);
    if (rc < 0) return rc;
    for (const char *at = all; at != NULL && at < (const char *)all + bytes;)
        at = dnn_evaluate_unpack(e, at);
    dnn_free(all);
    e->nopen = 0;
    rc = merge_rows(e, err);
    return dnn_comm_agree(comm, rc, err);
}

/* ---- results ---- */

/* Rank 0 sends the list of worst samples. */
static int send_worst(struct dnn_evaluation *e, struct dnn_comm *comm,
                      struct dnn_err *err)
{
    struct evaluate_results *r = &e->results;

    DNN_TRY(
        dnn_comm_bcast(comm, "worst samples", &r->nworst, sizeof r->nworst, 0, err));
    if (dnn_comm_rank(comm) != 0) {
        dnn_free(r->worst);
        r->worst = dnn_alloc((size_t)r->nworst * sizeof *r->worst);
    }
    for (int i = 0; i < r->nworst; i++) {
        struct dnn_evaluate_worst *w = &r->worst[i];
        struct {
            int64_t sample, name;
            double value;
        } head = {w->sample, w->name == NULL ? 0 : (int64_t)strlen(w->name), w->value};

        DNN_TRY(dnn_comm_bcast(comm, "worst samples", &head, sizeof head, 0, err));
        char *name = dnn_arena_alloc(e->arena, (size_t)head.name + 1);
        if (w->name != NULL) memcpy(name, w->name, (size_t)head.name);
        DNN_TRY(dnn_comm_bcast(comm, "worst samples", name, (size_t)head.name, 0, err));
        *w = (struct dnn_evaluate_worst){head.sample, name, e->kind->worst, head.value};
    }
    return 0;
}

/* Other ranks have results of the same form, without values. */
static int send_results(struct dnn_evaluation *e, struct dnn_comm *comm,
                        struct dnn_err *err)
{
    struct evaluate_results *r = &e->results;
    const char *what = "results of the evaluation";
    const size_t n = (size_t)e->cfg.classes;

    for (int k = 0; k < r->ntotals; k++)
        DNN_TRY(dnn_comm_bcast(comm, what, &r->total[k].value, sizeof(double), 0, err));
    DNN_TRY(dnn_comm_bcast(comm, what, r->table,
                           n * (size_t)r->ncolumns * sizeof *r->table, 0, err));
    if (r->confusion != NULL)
        DNN_TRY(dnn_comm_bcast(comm, what, r->confusion, n * n * sizeof *r->confusion,
                               0, err));
    if (r->nbins > 0)
        DNN_TRY(dnn_comm_bcast(comm, what, r->bin, (size_t)r->nbins * sizeof *r->bin, 0,
                               err));
    return send_worst(e, comm, err);
}

int dnn_evaluate_combine(struct dnn_evaluation *e, struct dnn_comm *comm,
                         struct dnn_err *err)
{
    if (e->combined) return 0;
    if (e->cfg.surfaces) DNN_TRY(dnn_evaluate_exchange(e, comm, err));
    if (e->ncell > 0)
        DNN_TRY(dnn_comm_allreduce(comm, "counts of the evaluation", e->cell, e->ncell,
                                   DNN_COMM_I64, DNN_COMM_SUM, err));
    DNN_TRY(gather_rows(e, comm, err));
    e->kind->results(e);
    dnn_evaluate_sort_worst(e);
    DNN_TRY(send_results(e, comm, err));
    e->combined = true;
    return 0;
}
