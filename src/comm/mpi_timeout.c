/* mpi_timeout.c - the message of an operation that did not finish: who is missing,
 * who is elsewhere.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "comm/mpi_impl.h"

#include <stdio.h>

/* Beyond that a message is no longer read. */
enum { MAX_NAMED = 8 };

enum fate { FINE, MISSING, BEHIND, OTHER };

static bool answered(const struct dnn_mpi_message *a)
{
    return a->kind == DNN_MPI_HERE;
}

/* What became of a rank, seen from an operation it should be in. */
static enum fate fate_of(const struct dnn_comm *comm, int rank,
                         const struct dnn_comm_opinfo *op)
{
    const struct dnn_mpi *m = comm->impl;
    const struct dnn_mpi_message *a = &m->answer[rank];

    if (rank == comm->rank) return FINE;
    if (!answered(a)) return MISSING;
    if (a->newest.seq < op->seq) return BEHIND;
    if (a->then.seq == op->seq &&
        (a->then.verb != op->verb || a->then.root != op->root ||
         a->then.count != op->count))
        return OTHER;
    return FINE;
}

static int count(const struct dnn_comm *comm, const struct dnn_comm_opinfo *op,
                 enum fate fate)
{
    int n = 0;

    for (int r = 0; r < comm->size; r++)
        n += fate_of(comm, r, op) == fate;
    return n;
}

/* "rank 3 on n2, rank 4 on n2 and 5 more" */
static void name_missing(const struct dnn_comm *comm, const struct dnn_comm_opinfo *op,
                         struct dnn_buf *out)
{
    int n = 0;

    for (int r = 0; r < comm->size; r++)
        if (fate_of(comm, r, op) == MISSING && ++n <= MAX_NAMED)
            dnn_buf_add(out, "%srank %d on %s", n > 1 ? ", " : "", r,
                        dnn_comm_host(comm, r));
    if (n > MAX_NAMED) dnn_buf_add(out, " and %d more", n - MAX_NAMED);
}

/* What is known of a rank that does not answer. */
static void tell_last(const struct dnn_comm *comm, int rank, struct dnn_buf *out)
{
    const struct dnn_mpi *m = comm->impl;
    const struct dnn_mpi_message *a = &m->answer[rank];
    char last[160];

    dnn_buf_add(out, "; rank %d ", rank);
    if (a->kind == 0) { /* only what its share in finished operations proves */
        dnn_buf_add(out, "was last heard of in %s",
                    dnn_mpi_op_text(last, sizeof last, &m->met));
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
                a->inside ? "" : ", which it has left");
}

/* Ranks that answered from another place. */
static void tell_elsewhere(const struct dnn_comm *comm, int rank, enum fate fate,
                           const struct dnn_comm_opinfo *op, struct dnn_buf *out)
{
    const struct dnn_mpi_message *a =
        &((const struct dnn_mpi *)comm->impl)->answer[rank];
    const struct dnn_comm_opinfo *n = fate == OTHER ? &a->then : &a->newest;
    char text[160];

    dnn_mpi_op_text(text, sizeof text, n);
    dnn_buf_add(out, "; rank %d on %s %s %s", rank, dnn_comm_host(comm, rank),
                fate == OTHER ? "called" : "is still in", text);
    if (fate != OTHER || n->verb != op->verb) return;
    if (n->count != op->count)
        dnn_buf_add(out, " with %lld elements instead of %lld", (long long)n->count,
                    (long long)op->count);
    else
        dnn_buf_add(out, " with root %d instead of %d", (int)n->root, (int)op->root);
}

void dnn_mpi_timeout_text(struct dnn_comm *comm, const struct dnn_comm_opinfo *op,
                          struct dnn_buf *out)
{
    int missing = count(comm, op, MISSING), others = count(comm, op, OTHER);
    int told = 0;
    char text[160];

    dnn_buf_add(out, "%s: ", dnn_mpi_op_text(text, sizeof text, op));
    if (missing > 0) {
        dnn_buf_add(out, "no answer from ");
        name_missing(comm, op, out);
        dnn_buf_add(out, " after %g s", comm->deadline);
    } else {
        dnn_buf_add(out, "not finished after %g s", comm->deadline);
    }
    for (int r = 0; r < comm->size && told < MAX_NAMED; r++) {
        enum fate fate = fate_of(comm, r, op);

        if (fate == FINE) continue;
        told++;
        if (fate == MISSING)
            tell_last(comm, r, out);
        else
            tell_elsewhere(comm, r, fate, op, out);
    }
    if (others > 0)
        dnn_buf_add(out, "; all ranks must call the same operations in the same order");
    if (told == 0)
        dnn_buf_add(out, " although every rank is in it: MPI or the network is stuck");
    dnn_buf_add(out, "; the job ends");
}
