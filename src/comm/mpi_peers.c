/* mpi_peers.c - status of the ranks of this node, in shared memory.
 *
 * A stopped or dead rank cannot answer a query, so every rank publishes the operation
 * it is in.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/log.h"
#include "base/mem.h"
#include "comm/mpi_impl.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t pid_space(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* Slots of all ranks of the node. */
static int share_slots(struct dnn_mpi_peers *b, MPI_Comm node_comm)
{
    struct dnn_mpi_slot *mine;
    int bad, any;

    bad = MPI_Win_allocate_shared(sizeof *mine, 1, MPI_INFO_NULL, node_comm, &mine,
                                  &b->win);
    if (bad != MPI_SUCCESS) b->win = MPI_WIN_NULL;
    any = bad != MPI_SUCCESS;
    bad = MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, node_comm);
    if (bad != MPI_SUCCESS || any) return -1;
    memset(mine, 0, sizeof *mine);
    for (int i = 0; i < b->n; i++) {
        MPI_Aint size;
        int unit;

        if (MPI_Win_shared_query(b->win, i, &size, &unit, &b->slot[i]) != MPI_SUCCESS)
            return -1;
    }
    return 0;
}

/* Without shared memory: only our own slot. */
static void use_own_slot(struct dnn_mpi_peers *b)
{
    b->own = dnn_alloc(sizeof *b->own);
    b->slot[0] = b->own;
    b->rank[0] = b->rank[b->me];
    b->n = 1;
    b->me = 0;
}

int dnn_mpi_peers_open(struct dnn_comm *comm, struct dnn_err *err)
{
    struct dnn_mpi *m = comm->impl;
    struct dnn_mpi_peers *b = &m->peers;
    MPI_Comm node_comm;

    b->win = MPI_WIN_NULL;
    int bad = MPI_Comm_split_type(m->work, MPI_COMM_TYPE_SHARED, comm->rank,
                                  MPI_INFO_NULL, &node_comm);
    if (bad != MPI_SUCCESS) return dnn_mpi_fail(err, "MPI_Comm_split_type", bad);
    MPI_Comm_set_errhandler(node_comm, MPI_ERRORS_RETURN);
    MPI_Comm_size(node_comm, &b->n);
    MPI_Comm_rank(node_comm, &b->me);
    b->rank = dnn_alloc(sizeof *b->rank * (size_t)b->n);
    b->slot = dnn_alloc(sizeof(*b->slot) * (size_t)b->n);
    bad = MPI_Allgather(&comm->rank, 1, MPI_INT, b->rank, 1, MPI_INT, node_comm);
    if (bad == MPI_SUCCESS && share_slots(b, node_comm) < 0) {
        dnn_log_once(DNN_DEBUG, "comm",
                     "no shared memory between the ranks of this node");
        use_own_slot(b);
    }
    if (bad == MPI_SUCCESS) {
        b->slot[b->me]->pid = getpid();
        b->slot[b->me]->pid_space = pid_space();
        bad = MPI_Barrier(node_comm); /* all slots are written */
    }
    MPI_Comm_free(&node_comm);
    if (bad != MPI_SUCCESS) {
        dnn_mpi_peers_close(comm);
        return dnn_mpi_fail(err, "exchange of ranks on a node", bad);
    }
    return 0;
}

void dnn_mpi_peers_close(struct dnn_comm *comm)
{
    struct dnn_mpi_peers *b = &((struct dnn_mpi *)comm->impl)->peers;

    pthread_mutex_lock(&b->lock); /* the watchdog thread must not use it any more */
    dnn_free(b->slot);
    b->slot = NULL;
    pthread_mutex_unlock(&b->lock);
    if (b->win != MPI_WIN_NULL) MPI_Win_free(&b->win);
    dnn_free(b->rank);
    dnn_free(b->own);
}

void dnn_mpi_peers_enter(struct dnn_mpi_peers *b, const struct dnn_comm_opinfo *info)
{
    struct dnn_mpi_slot *mine = b->slot[b->me];

    pthread_mutex_lock(&b->lock);
    mine->newest = *info;
    pthread_mutex_unlock(&b->lock);
}

void dnn_mpi_peers_inside(struct dnn_mpi_peers *b, bool inside)
{
    pthread_mutex_lock(&b->lock);
    b->slot[b->me]->inside = inside;
    pthread_mutex_unlock(&b->lock);
}

pid_t dnn_mpi_peers_pid(struct dnn_mpi_peers *b, int i)
{
    const struct dnn_mpi_slot *mine = b->slot[b->me], *peer = b->slot[i];

    return mine->pid_space != 0 && peer->pid_space == mine->pid_space ? peer->pid : 0;
}

int dnn_mpi_peers_state(pid_t process, pid_t thread)
{
    char path[60], text[256];

    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)process, (int)thread);
    FILE *f = fopen(path, "re");
    if (f == NULL) return 'X';
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    const char *end = strrchr(text, ')'); /* the name may contain anything */
    return end != NULL && end[1] == ' ' ? (unsigned char)end[2] : 0;
}

void dnn_mpi_peers_read(struct dnn_mpi_peers *b, int i, struct dnn_mpi_message *out)
{
    pid_t pid = dnn_mpi_peers_pid(b, i);

    pthread_mutex_lock(&b->lock);
    out->newest = b->slot[i]->newest;
    out->inside = b->slot[i]->inside;
    pthread_mutex_unlock(&b->lock);
    /* The other process may have been writing at the same time. */
    out->newest.what[sizeof out->newest.what - 1] = '\0';
    out->about = b->rank[i];
    out->state = pid == 0 ? 0 : dnn_mpi_peers_state(pid, pid);
}
