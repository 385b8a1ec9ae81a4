/* work_units.c - computes units of work, round-robin on all ranks, until all are done
 * or a signal arrives.
 *
 * The ranks agree after each round: an error or a signal of one rank stops all, and all
 * finished units are on disk.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include "base/progress.h"
#include "base/stop.h"

#include <inttypes.h>
#include <string.h>

/* ---- rounds ---- */

/* The units that are missing, the same list on all ranks. */
static int find_missing(const struct dnn_work *work, struct dnn_comm *comm,
                        const struct dnn_units *pass, int64_t **out, int64_t *n,
                        struct dnn_err *err)
{
    unsigned char *done = dnn_alloc((size_t)pass->n + 1);
    int rc = 0;

    if (dnn_comm_rank(comm) == 0)
        rc = dnn_work_list(work, pass->name, pass->n, done, err);
    rc = dnn_comm_agree(comm, rc, err);
    if (rc == 0)
        rc = dnn_comm_bcast(comm, "preparation", done, (size_t)pass->n, 0, err);
    *out = dnn_alloc((size_t)(pass->n + 1) * sizeof **out);
    *n = 0;
    for (int64_t i = 0; rc == 0 && i < pass->n; i++)
        if (!done[i]) (*out)[(*n)++] = i;
    dnn_free(done);
    return rc;
}

static int make_one(const struct dnn_work *work, const struct dnn_units *pass,
                    int64_t number, struct dnn_err *err)
{
    struct dnn_buf buf = {0};
    int rc = pass->make(pass->arg, number, &buf, err);

    if (rc == 0)
        rc = dnn_work_save(work, pass->name, number, buf.text == NULL ? "" : buf.text,
                           buf.len, err);
    dnn_buf_free(&buf);
    return rc;
}

/* Agrees on the result of a round: one short allreduce if there is no error. */
static int agree(struct dnn_comm *comm, const struct dnn_units *pass, int64_t done,
                 int rc, struct dnn_err *err)
{
    int64_t flags[2] = {rc < 0, dnn_stop_requested()};

    DNN_TRY(dnn_comm_allreduce(comm, pass->title, flags, 2, DNN_COMM_I64, DNN_COMM_MAX,
                               rc < 0 ? NULL : err));
    if (flags[0] != 0) return dnn_comm_agree(comm, rc, err);
    if (flags[1] == 0) return 0;
    dnn_fail(err, DNN_ESTOP,
             "stopped by %s while %s, %" PRId64 " of %" PRId64
             " done; run the same command again to continue",
             dnn_stop_name((int)flags[1]), pass->title, done, pass->n);
    err->everywhere = true;
    return DNN_ESTOP;
}

int dnn_units_run(const struct dnn_work *work, struct dnn_comm *comm,
                  const struct dnn_units *pass, struct dnn_err *err)
{
    int64_t *missing = NULL, n = 0;
    int rank = dnn_comm_rank(comm), size = dnn_comm_size(comm);
    int rc = find_missing(work, comm, pass, &missing, &n, err);
    struct dnn_progress *progress = NULL;
    int64_t had = pass->n - n;

    if (rc == 0 && rank == 0 && n > 0)
        progress = dnn_progress_start("prepare", pass->title, pass->n, "units", NULL);
    for (int64_t at = 0; rc == 0 && at < n; at += size) {
        int64_t mine = at + rank, done = at + size < n ? at + size : n;

        if (mine < n) rc = make_one(work, pass, missing[mine], err);
        rc = agree(comm, pass, had + done, rc, err);
        if (progress != NULL && rc == 0) dnn_progress_at(progress, had + done);
    }
    dnn_progress_stop(progress, rc == 0);
    dnn_free(missing);
    return rc;
}
