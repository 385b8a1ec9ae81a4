/* mpi_allreduce.c - small all-reduces among few ranks.
 *
 * MPI_Iallreduce takes several rounds, and each needs both sides to call MPI: a rank
 * that computes between start and wait delays the others.  Here every rank sends its
 * values to all others at once and sums in the order of ranks.  It is finished when
 * all messages are received; it does not wait for the sends.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "comm/mpi_impl.h"

#include <string.h>

enum { TAG = 2, RANKS = 16, BYTES = 64 << 10 }; /* of all ranks together */

struct dnn_mpi_small {
    struct dnn_mpi_small *next;           /* of those with running sends             */
    MPI_Request recv[RANKS], send[RANKS]; /* by rank                              */
    void *buf;
    int n;
    size_t bytes;
    MPI_Datatype type;
    MPI_Op op;
    char all[]; /* by rank; our own part is what we send */
};

bool dnn_mpi_small(const struct dnn_comm *comm, int64_t bytes)
{
    return comm->size <= RANKS && bytes * comm->size <= BYTES;
}

/* Free those whose sends are finished; wait: all. */
static void free_sent(struct dnn_comm *comm, bool wait)
{
    struct dnn_mpi *m = comm->impl;

    for (struct dnn_mpi_small **p = &m->small; *p != NULL;) {
        struct dnn_mpi_small *s = *p;
        int sent = 1;

        if (wait)
            MPI_Waitall(comm->size, s->send, MPI_STATUSES_IGNORE);
        else if (MPI_Testall(comm->size, s->send, &sent, MPI_STATUSES_IGNORE) !=
                 MPI_SUCCESS)
            sent = 1;
        if (sent) {
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

    free_sent(comm, false);
    s->buf = buf;
    s->n = n;
    s->bytes = bytes;
    s->type = type;
    s->op = op;
    memcpy(mine, buf, bytes);
    req->small = s;
    for (int r = 0; r < comm->size; r++)
        s->recv[r] = s->send[r] = MPI_REQUEST_NULL;
    for (int r = 0; r < comm->size && bad == MPI_SUCCESS; r++)
        if (r != comm->rank)
            bad = MPI_Irecv(s->all + (size_t)r * bytes, (int)bytes, MPI_BYTE, r, TAG,
                            m->work, &s->recv[r]);
    for (int r = 0; r < comm->size && bad == MPI_SUCCESS; r++)
        if (r != comm->rank)
            bad = MPI_Isend(mine, (int)bytes, MPI_BYTE, r, TAG, m->work, &s->send[r]);
    return bad;
}

int dnn_mpi_small_test(struct dnn_comm_req *req, int *finished)
{
    struct dnn_mpi *m = req->comm->impl;
    struct dnn_mpi_small *s = req->small;
    int size = req->comm->size;

    int bad = MPI_Testall(size, s->recv, finished, MPI_STATUSES_IGNORE);
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
    free_sent(comm, true);
}
