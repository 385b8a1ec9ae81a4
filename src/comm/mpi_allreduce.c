/* mpi_allreduce.c - all-reduces of few numbers among few ranks.
 *
 * MPI's own go through several rounds, and a round ends when both sides call MPI: a
 * rank that computes between start and wait holds up the others.  Here every rank sends
 * all it has to all others at once and adds for itself, in the order of ranks.  It is
 * done when all has come: that what was sent has been taken, which MPI may learn much
 * later, nobody waits for.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "comm/mpi_impl.h"

#include <string.h>

enum { TAG = 2, RANKS = 16, BYTES = 64 << 10 }; /* of all ranks together */

struct dnn_mpi_small {
    struct dnn_mpi_small *next;         /* of those whose letters are on their way */
    MPI_Request come[RANKS], go[RANKS]; /* by rank; our own is none             */
    void *buf;
    int n;
    size_t bytes;
    MPI_Datatype type;
    MPI_Op op;
    char all[]; /* by rank; at our own place what we send */
};

bool dnn_mpi_small(const struct dnn_comm *comm, int64_t bytes)
{
    return comm->size <= RANKS && bytes * comm->size <= BYTES;
}

/* Release those that have arrived; wait: all. */
static void sweep(struct dnn_comm *comm, bool wait)
{
    struct dnn_mpi *m = comm->impl;

    for (struct dnn_mpi_small **p = &m->small; *p != NULL;) {
        struct dnn_mpi_small *s = *p;
        int gone = 1;

        if (wait)
            MPI_Waitall(comm->size, s->go, MPI_STATUSES_IGNORE);
        else if (MPI_Testall(comm->size, s->go, &gone, MPI_STATUSES_IGNORE) !=
                 MPI_SUCCESS)
            gone = 1;
        if (gone) {
            *p = s->next;
            dnn_free(s);
        } else {
            p = &s->next;
        }
    }
}

int dnn_mpi_small_start(struct dnn_comm_req *req, void *buf, int n, size_t bytes,
                        MPI_Datatype type, MPI_Op op)
{
    struct dnn_comm *comm = req->comm;
    struct dnn_mpi *m = comm->impl;
    struct dnn_mpi_small *s = dnn_alloc(sizeof *s + bytes * (size_t)comm->size);
    char *mine = s->all + (size_t)comm->rank * bytes;
    int bad = MPI_SUCCESS;

    sweep(comm, false);
    s->buf = buf;
    s->n = n;
    s->bytes = bytes;
    s->type = type;
    s->op = op;
    memcpy(mine, buf, bytes);
    req->small = s;
    for (int r = 0; r < comm->size; r++)
        s->come[r] = s->go[r] = MPI_REQUEST_NULL;
    for (int r = 0; r < comm->size && bad == MPI_SUCCESS; r++)
        if (r != comm->rank)
            bad = MPI_Irecv(s->all + (size_t)r * bytes, (int)bytes, MPI_BYTE, r, TAG,
                            m->work, &s->come[r]);
    for (int r = 0; r < comm->size && bad == MPI_SUCCESS; r++)
        if (r != comm->rank)
            bad = MPI_Isend(mine, (int)bytes, MPI_BYTE, r, TAG, m->work, &s->go[r]);
    return bad;
}

int dnn_mpi_small_test(struct dnn_comm_req *req, int *finished)
{
    struct dnn_mpi *m = req->comm->impl;
    struct dnn_mpi_small *s = req->small;
    int size = req->comm->size;

    int bad = MPI_Testall(size, s->come, finished, MPI_STATUSES_IGNORE);
    if (bad != MPI_SUCCESS || !*finished) return bad;
    memcpy(s->buf, s->all, s->bytes);
    for (int r = 1; r < size && bad == MPI_SUCCESS; r++)
        bad = MPI_Reduce_local(s->all + (size_t)r * s->bytes, s->buf, s->n, s->type,
                               s->op);
    s->next = m->small;
    m->small = s;
    req->small = NULL;
    req->mpi = MPI_REQUEST_NULL; /* which is always finished */
    return bad;
}

void dnn_mpi_small_close(struct dnn_comm *comm)
{
    sweep(comm, true);
}
