/* mpi_end.c - terminate the job on all ranks, with one message.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "base/clock.h"
#include "comm/mpi_impl.h"

#if DNN_HAVE_PMIX
#include <pmix.h>
#endif
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Seconds until a rank exits by itself if MPI_Abort hangs. */
#define ABORT_TIMEOUT 10.0

/* Ticks, four per second, after which a connection is considered lost. */
enum { LOST_TICKS = 12 };

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000},
              NULL);
}

/* Wait until the launcher has read all of stderr. */
static void drain_stderr(void)
{
    struct stat st;
    int bytes = 0;

    if (fstat(STDERR_FILENO, &st) < 0 || !S_ISFIFO(st.st_mode)) return;
    for (double end = dnn_clock_now() + ABORT_TIMEOUT / 2; dnn_clock_now() < end;
         sleep_ms(5))
        if (ioctl(STDERR_FILENO, FIONREAD, &bytes) < 0 || bytes == 0) return;
}

bool dnn_mpi_claim_report(struct dnn_comm *comm)
{
    struct dnn_mpi_peers *b = &((struct dnn_mpi *)comm->impl)->peers;

    pthread_mutex_lock(&b->lock);
    bool first = b->slot == NULL || atomic_exchange(&b->slot[0]->reported, 1) == 0;
    pthread_mutex_unlock(&b->lock);
    return first;
}

#if DNN_HAVE_PMIX
/* PMIx_Abort may be called from any thread, and avoids the messages of MPI_Abort. */
static bool abort_by_launcher(int status)
{
    if (!PMIx_Initialized()) return false;
    PMIx_Abort(status, NULL, NULL, 0);
    return true;
}
#else
static bool abort_by_launcher(int status)
{
    (void)status;
    return false;
}
#endif

/* When a rank on another node dies, Open MPI aborts this process from inside any call,
 * without a message (unless it has fault tolerance).  With a delay the watchdog thread,
 * see dnn_mpi_tick(), can print what happened. */
void dnn_mpi_end_prepare(void)
{
    if (DNN_HAVE_PMIX) setenv("OMPI_MCA_mpi_abort_delay", "10", 0);
}

_Noreturn void dnn_mpi_end(struct dnn_comm *comm, int status)
{
    struct dnn_mpi *m = comm->impl;
    int up = 0, down = 0;

    atomic_store(&m->ending, 1);
    signal(SIGTERM, SIG_IGN);         /* exit with our own status */
    (void)dnn_mpi_claim_report(comm); /* the other ranks print nothing */
    dnn_watchdog_last_resort(ABORT_TIMEOUT, status);
    drain_stderr();
    sleep_ms(200); /* the launcher must forward what it has read */
    MPI_Initialized(&up);
    MPI_Finalized(&down);
    if (up && !down && !abort_by_launcher(status)) MPI_Abort(MPI_COMM_WORLD, status);
    _exit(status);
}

/* On the watchdog thread.  MPI may be called from the main thread only: if that thread
 * is in one of our waits, it sees ending and terminates the job.  Otherwise MPI is
 * called from this thread. */
static _Noreturn void end_from_watchdog(struct dnn_comm *comm)
{
    struct dnn_mpi *m = comm->impl;

    atomic_store(&m->ending, 1);
    if (!DNN_HAVE_PMIX) sleep_ms(1000);
    dnn_mpi_end(comm, DNN_COMM_EXIT);
}

void dnn_mpi_expired(void *arg, const char *what, double seconds)
{
    struct dnn_comm *comm = arg;
    char host[DNN_COMM_HOST_LEN];

    dnn_comm_hostname(host, sizeof host);
    if (comm->host_text == NULL) { /* MPI is not initialized yet */
        dnn_comm_print("%s on %s: not finished after %g s; terminating", what, host,
                       seconds);
        _exit(DNN_COMM_EXIT);
    }
    if (dnn_mpi_claim_report(comm))
        dnn_comm_print(
            "rank %d on %s: %s: not finished after %g s; terminating all ranks",
            comm->rank, host, what, seconds);
    end_from_watchdog(comm);
}

/* Whether a thread of the parent process, the launcher, runs or could run. */
static bool launcher_runs(void)
{
    char path[40];
    pid_t parent = getppid();
    bool runs = false;

    snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
    DIR *dir = parent > 1 ? opendir(path) : NULL;
    if (dir == NULL) return false;
    for (struct dirent *e; !runs && (e = readdir(dir)) != NULL;)
        if (isdigit((unsigned char)e->d_name[0])) {
            int state = dnn_mpi_peers_state(parent, atoi(e->d_name));

            runs = state == 'R' || state == 'D';
        }
    closedir(dir);
    return runs;
}

/* If the launcher is killing all ranks, its signals follow each other immediately: it
 * may be preempted in between on a busy machine, but it does not sleep.  Then this
 * function does not return.  If the launcher kills us because a peer has died, its
 * SIGTERM comes later and is ignored until the message is printed. */
static void wait_for_kill(void)
{
    sleep_ms(3);
    for (int i = 0; i < 1000 && launcher_runs(); i++)
        sleep_ms(1);
    signal(SIGTERM, SIG_IGN);
    sleep_ms(25);
}

/* The process of a peer has died before it closed the communicator. */
void dnn_mpi_died(void *arg, int i)
{
    struct dnn_comm *comm = arg;
    struct dnn_mpi *m = comm->impl;
    struct dnn_mpi_message peer, own;
    char where[160], last[160];

    if (atomic_load(&m->peers.slot[i]->closing) ||
        atomic_load(&m->peers.slot[0]->reported))
        return;
    wait_for_kill();
    if (!dnn_mpi_claim_report(comm)) return;
    dnn_mpi_peers_read(&m->peers, i, &peer);
    dnn_mpi_peers_read(&m->peers, m->peers.me, &own);
    dnn_mpi_op_text(last, sizeof last, &peer.newest);
    dnn_mpi_op_text(where, sizeof where, &own.newest);
    dnn_comm_print(
        "rank %d on %s died (process %d; killed?) %s %s; rank %d %s %s; terminating "
        "all ranks",
        peer.about, dnn_comm_host(comm, peer.about), (int)m->peers.slot[i]->pid,
        peer.inside ? "in" : "after", last, comm->rank,
        own.inside ? "waits in" : "was last in", where);
    end_from_watchdog(comm);
}

/* The rank on another node, if there is only one. */
static int only_remote(const struct dnn_comm *comm)
{
    int found = -1;

    if (comm->size - comm->local_size != 1) return -1;
    for (int r = 0; r < comm->size; r++)
        if (comm->node[r] != comm->node[comm->rank]) found = r;
    return found;
}

/* If the main thread sleeps for three seconds inside MPI_Test, Open MPI is about to
 * abort it (see dnn_mpi_end_prepare()): nothing else there sleeps that long.  Ranks of
 * one node use shared memory and cannot lose a connection.  A launcher that kills the
 * nodes one after the other has finished by then. */
void dnn_mpi_tick(void *arg)
{
    struct dnn_comm *comm = arg;
    struct dnn_mpi *m = comm->impl;
    struct dnn_mpi_message own;
    unsigned polls = atomic_load_explicit(&m->polls, memory_order_relaxed);
    char where[160];

    if (!DNN_HAVE_PMIX || comm->nodes == 1 || atomic_load(&m->ending)) return;
    dnn_mpi_peers_read(&m->peers, m->peers.me, &own);
    bool idle = own.inside && polls == m->old_polls &&
                dnn_mpi_peers_state(getpid(), m->main_thread) == 'S';
    m->old_polls = polls;
    m->idle_ticks = idle ? m->idle_ticks + 1 : 0;
    if (m->idle_ticks < LOST_TICKS) return;
    dnn_mpi_op_text(where, sizeof where, &own.newest);
    int other = only_remote(comm);
    if (!dnn_mpi_claim_report(comm)) end_from_watchdog(comm);
    if (other >= 0)
        dnn_comm_print("%s: rank %d on %s lost the connection to rank %d on %s; "
                       "terminating all ranks",
                       where, comm->rank, dnn_comm_host(comm, comm->rank), other,
                       dnn_comm_host(comm, other));
    else
        dnn_comm_print(
            "%s: rank %d on %s lost the connection to a rank on another node (see the "
            "messages of the launcher); terminating all ranks",
            where, comm->rank, dnn_comm_host(comm, comm->rank));
    end_from_watchdog(comm);
}
