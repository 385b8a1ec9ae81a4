/* mpi_timeout.c - the message of an operation that timed out: which ranks are missing
 * or in another operation.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "comm/mpi_impl.h"

#include <stdio.h>

/* Ranks named in a message. */
enum { MAX_NAMED = 8 };

enum status { ENTERED, MISSING, BEHIND, OTHER_OP };

static bool answered(const struct dnn_mpi_message *a)
{
    return a->kind == DNN_MPI_SENDER;
}

/* Status of a rank, relative to an operation it should be in. */
static enum status status_of(const struct dnn_comm *comm, int rank,
                             const struct dnn_comm_opinfo *op)
{
    const struct dnn_mpi *m = comm->impl;
    const struct dnn_mpi_message *a = &m->answer[rank];

    if (rank == comm->rank) return ENTERED;
    if (!answered(a)) return MISSING;
    if (a->newest.seq < op->seq) return BEHIND;
    if (a->queried.seq == op->seq &&
        (a->queried.verb != op->verb || a->queried.root != op->root ||
         a->queried.count != op->count))
        return OTHER_OP;
    return ENTERED;
}

static int count(const struct dnn_comm *comm, const struct dnn_comm_opinfo *op,
                 enum status status)
{
    int n = 0;

    for (int r = 0; r < comm->size; r++)
        n += status_of(comm, r, op) == status;
    return n;
}

/* "rank 3 on n2, rank 4 on n2 and 5 more" */
static void name_missing(const struct dnn_comm *comm, const struct dnn_comm_opinfo *op,
                         struct dnn_buf *out)
{
    int n = 0;

    for (int r = 0; r < comm->size; r++)
        if (status_of(comm, r, op) == MISSING && ++n <= MAX_NAMED)
            dnn_buf_add(out, "%srank %d on %s", n > 1 ? ", " : "", r,
                        dnn_comm_host(comm, r));
    if (n > MAX_NAMED) dnn_buf_add(out, " and %d more", n - MAX_NAMED);
}

/* The last known status of a rank that does not answer. */
static void add_last(const struct dnn_comm *comm, int rank, struct dnn_buf *out)
{
    const struct dnn_mpi *m = comm->impl;
    const struct dnn_mpi_message *a = &m->answer[rank];
    char last[160];

    dnn_buf_add(out, "; rank %d ", rank);
    if (a->kind == 0) { /* not from a peer: only from finished operations */
        dnn_buf_add(out, "was last seen in %s",
                    dnn_mpi_op_text(last, sizeof last, &m->common));
        return;
    }
    if (a->state == 'T' || a->state == 't')
        dnn_buf_add(out, "is stopped and ");
    else if (a->state == 'Z' || a->state == 'X')
        dnn_buf_add(out, "is dead and ");
    else if (a->state != 0)
        dnn_buf_add(out, "is alive and ");
    dnn_buf_add(out, "last entered %s%s",
                dnn_mpi_op_text(last, sizeof last, &a->newest),
                a->inside ? "" : " and has left it");
}

/* A rank that answered from another operation. */
static void add_elsewhere(const struct dnn_comm *comm, int rank, enum status status,
                          const struct dnn_comm_opinfo *op, struct dnn_buf *out)
{
    const struct dnn_mpi_message *a =
        &((const struct dnn_mpi *)comm->impl)->answer[rank];
    const struct dnn_comm_opinfo *n = status == OTHER_OP ? &a->queried : &a->newest;
    char text[160];

    dnn_mpi_op_text(text, sizeof text, n);
    dnn_buf_add(out, "; rank %d on %s %s %s", rank, dnn_comm_host(comm, rank),
                status == OTHER_OP ? "called" : "is still in", text);
    if (status != OTHER_OP || n->verb != op->verb) return;
    if (n->count != op->count)
        dnn_buf_add(out, " with %lld elements instead of %lld", (long long)n->count,
                    (long long)op->count);
    else
        dnn_buf_add(out, " with root %d instead of %d", (int)n->root, (int)op->root);
}

void dnn_mpi_timeout_text(struct dnn_comm *comm, const struct dnn_comm_opinfo *op,
                          struct dnn_buf *out)
{
    int missing = count(comm, op, MISSING), others = count(comm, op, OTHER_OP);
    int named = 0;
    char text[160];

    dnn_buf_add(out, "%s: ", dnn_mpi_op_text(text, sizeof text, op));
    if (missing > 0) {
        dnn_buf_add(out, "no answer from ");
        name_missing(comm, op, out);
        dnn_buf_add(out, " after %g s", comm->deadline);
    } else {
        dnn_buf_add(out, "not finished after %g s", comm->deadline);
    }
    for (int r = 0; r < comm->size && named < MAX_NAMED; r++) {
        enum status status = status_of(comm, r, op);

        if (status == ENTERED) continue;
        named++;
        if (status == MISSING)
            add_last(comm, r, out);
        else
            add_elsewhere(comm, r, status, op, out);
    }
    if (others > 0)
        dnn_buf_add(out, "; all ranks must call the same operations in the same order");
    if (named == 0)
        dnn_buf_add(out, ", but all ranks are in it: MPI or the network hangs");
    dnn_buf_add(out, "; terminating all ranks");
}
