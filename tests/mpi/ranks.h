/* ranks.h - tests with several ranks: all ranks check, rank 0 prints TAP.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_MPI_RANKS_H
#define DNN_TESTS_MPI_RANKS_H

#include "comm/comm.h"
#include "tap.h"

/* Passes only if it passes on every rank. */
static inline DNN_PRINTF(3, 4) void all_ok(struct dnn_comm *comm, bool good,
                                           const char *fmt, ...)
{
    int64_t all = good;
    struct dnn_err err = {0};
    char what[200];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (dnn_comm_allreduce(comm, what, &all, 1, DNN_COMM_I64, DNN_COMM_MIN, &err) < 0) {
        fprintf(stderr, "# %s: %s\n", what, err.text);
        dnn_comm_abort(comm, err.code);
    }
    if (!good) fprintf(stderr, "# rank %d: not ok: %s\n", dnn_comm_rank(comm), what);
    if (dnn_comm_rank(comm) == 0) ok(all != 0, "%s", what);
}

/* Called at the end of main(); returns the exit status. */
static inline int all_done(struct dnn_comm *comm)
{
    int rank = dnn_comm_rank(comm);

    dnn_comm_close(comm);
    return rank == 0 ? done() : 0;
}

#endif
