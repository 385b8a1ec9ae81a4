/* mpi_end.c - ending the job on every rank, once, with one message.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "comm/mpi_impl.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* How long MPI may take to end the job before each rank goes by itself. */
#define PATIENCE 5.0

static void nap(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000},
              NULL);
}

bool dnn_mpi_first_word(struct dnn_comm *comm)
{
    struct dnn_mpi_board *b = &((struct dnn_mpi *)comm->impl)->board;

    pthread_mutex_lock(&b->lock);
    bool first = b->slot == NULL || atomic_exchange(&b->slot[0]->said, 1) == 0;
    pthread_mutex_unlock(&b->lock);
    return first;
}

/* MPI_Abort is asked of the world and not of a duplicate: the answer is the same,
 * and Open MPI's own words about it are shorter. */
_Noreturn void dnn_mpi_end(struct dnn_comm *comm, int status)
{
    int up = 0, down = 0;

    (void)dnn_mpi_first_word(comm); /* what our neighbours see of it is no accident */
    dnn_watch_last_resort(PATIENCE, status);
    /* The launcher forwards stderr and kills through different channels. */
    nap(200);
    MPI_Initialized(&up);
    MPI_Finalized(&down);
    if (up && !down) MPI_Abort(MPI_COMM_WORLD, status);
    _exit(status);
}

/* On the watching thread.  MPI was promised calls from the main thread only, so if
 * that is in one of our waits it shall end the job; if it is elsewhere nobody else
 * can, and breaking the promise is the smaller evil. */
static _Noreturn void end_from_aside(struct dnn_comm *comm)
{
    struct dnn_mpi *m = comm->impl;

    atomic_store(&m->ending, 1);
    nap(1000);
    dnn_mpi_end(comm, DNN_COMM_EXIT);
}

void dnn_mpi_expired(void *arg, const char *what, double seconds)
{
    struct dnn_comm *comm = arg;
    char host[DNN_COMM_HOST_LEN];

    dnn_comm_hostname(host, sizeof host);
    if (comm->host_text == NULL) { /* MPI does not run yet */
        dnn_comm_say("%s on %s: not finished after %g s; the job ends", what, host,
                     seconds);
        _exit(DNN_COMM_EXIT);
    }
    if (dnn_mpi_first_word(comm))
        dnn_comm_say("rank %d on %s: %s: not finished after %g s; the job ends",
                     comm->rank, host, what, seconds);
    end_from_aside(comm);
}

/* A neighbour's process is gone and it had not closed. */
void dnn_mpi_gone(void *arg, int i)
{
    struct dnn_comm *comm = arg;
    struct dnn_mpi *m = comm->impl;
    struct dnn_mpi_word its, ours;
    char where[160], last[160];

    if (atomic_load(&m->board.slot[i]->left) || !dnn_mpi_first_word(comm)) return;
    dnn_mpi_board_look(&m->board, i, &its);
    dnn_mpi_board_look(&m->board, m->board.me, &ours);
    dnn_mpi_note_text(last, sizeof last, &its.newest);
    dnn_mpi_note_text(where, sizeof where, &ours.newest);
    dnn_comm_say(
        "rank %d on %s ended without a word (process %d; killed?) %s %s; rank %d "
        "%s %s; the job ends",
        its.about, dnn_comm_host(comm, its.about), (int)m->board.slot[i]->pid,
        its.inside ? "in" : "after", last, comm->rank,
        ours.inside ? "waits in" : "was last in", where);
    end_from_aside(comm);
}
