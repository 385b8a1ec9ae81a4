/* mpi_end.c - ending the job on every rank, once, with one message.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "comm/mpi_impl.h"

#if DNN_HAVE_PMIX
#include <pmix.h>
#endif
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* How long MPI may take to end the job before each rank goes by itself. */
#define PATIENCE 10.0

/* Ticks, four a second, after which a connection is known to be lost. */
enum { LOST_TICKS = 12 };

static void nap(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000},
              NULL);
}

/* The launcher forwards stderr and kills through different channels: wait until it has
 * read what is in the pipe, however busy the machine is. */
static void drain_stderr(void)
{
    struct stat st;
    int bytes = 0;

    if (fstat(STDERR_FILENO, &st) < 0 || !S_ISFIFO(st.st_mode)) return;
    for (double end = dnn_comm_now() + PATIENCE / 2; dnn_comm_now() < end; nap(5))
        if (ioctl(STDERR_FILENO, FIONREAD, &bytes) < 0 || bytes == 0) return;
}

bool dnn_mpi_claim_report(struct dnn_comm *comm)
{
    struct dnn_mpi_peers *b = &((struct dnn_mpi *)comm->impl)->board;

    pthread_mutex_lock(&b->lock);
    bool first = b->slot == NULL || atomic_exchange(&b->slot[0]->said, 1) == 0;
    pthread_mutex_unlock(&b->lock);
    return first;
}

#if DNN_HAVE_PMIX
/* Asking the launcher directly may be done from any thread, and spares the user
 * MPI's own words after ours. */
static bool ask_launcher(int status)
{
    if (!PMIx_Initialized()) return false;
    PMIx_Abort(status, NULL, NULL, 0);
    return true;
}
#else
static bool ask_launcher(int status)
{
    (void)status;
    return false;
}
#endif

/* When a connection breaks because a rank on another node died, Open MPI ends this
 * process from inside whatever call it is in, with a status of its own and without a
 * word (unless it runs with fault tolerance).  It can be told to wait a little before
 * that: time in which the watching thread, see dnn_mpi_tick(), says what happened. */
void dnn_mpi_end_prepare(void)
{
    if (DNN_HAVE_PMIX) setenv("OMPI_MCA_mpi_abort_delay", "10", 0);
}

_Noreturn void dnn_mpi_end(struct dnn_comm *comm, int status)
{
    struct dnn_mpi *m = comm->impl;
    int up = 0, down = 0;

    atomic_store(&m->ending, 1);
    signal(SIGTERM, SIG_IGN);         /* we are ending, but with our own status */
    (void)dnn_mpi_claim_report(comm); /* what our neighbours see of it is no accident */
    dnn_watchdog_last_resort(PATIENCE, status);
    drain_stderr();
    nap(200); /* for what the launcher has read, but not passed on */
    MPI_Initialized(&up);
    MPI_Finalized(&down);
    if (up && !down && !ask_launcher(status)) MPI_Abort(MPI_COMM_WORLD, status);
    _exit(status);
}

/* On the watching thread.  MPI was promised calls from the main thread only, so if
 * that is in one of our waits it shall end the job; if it is elsewhere nobody else
 * can, and breaking the promise is the smaller evil. */
static _Noreturn void end_from_aside(struct dnn_comm *comm)
{
    struct dnn_mpi *m = comm->impl;

    atomic_store(&m->ending, 1);
    if (!DNN_HAVE_PMIX) nap(1000);
    dnn_mpi_end(comm, DNN_COMM_EXIT);
}

void dnn_mpi_expired(void *arg, const char *what, double seconds)
{
    struct dnn_comm *comm = arg;
    char host[DNN_COMM_HOST_LEN];

    dnn_comm_hostname(host, sizeof host);
    if (comm->host_text == NULL) { /* MPI does not run yet */
        dnn_comm_print("%s on %s: not finished after %g s; the job ends", what, host,
                       seconds);
        _exit(DNN_COMM_EXIT);
    }
    if (dnn_mpi_claim_report(comm))
        dnn_comm_print("rank %d on %s: %s: not finished after %g s; the job ends",
                       comm->rank, host, what, seconds);
    end_from_aside(comm);
}

/* Whether a thread of the process that started this one runs or could run. */
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

/* Return only if the neighbour died alone.  If the launcher ends all of us, by TERM or
 * KILL, it sends its signals one right after the other: on a busy machine it may have
 * lost its core in between, but it does not sleep before the last.  If it ends us
 * because of that neighbour's death, it needs longer, and its TERM must not keep us
 * from saying whose death it was. */
static void outlive(void)
{
    nap(3);
    for (int i = 0; i < 1000 && launcher_runs(); i++)
        nap(1);
    signal(SIGTERM, SIG_IGN);
    nap(25);
}

/* A neighbour's process is gone and it had not closed. */
void dnn_mpi_gone(void *arg, int i)
{
    struct dnn_comm *comm = arg;
    struct dnn_mpi *m = comm->impl;
    struct dnn_mpi_message its, ours;
    char where[160], last[160];

    if (atomic_load(&m->board.slot[i]->left) || atomic_load(&m->board.slot[0]->said))
        return;
    outlive();
    if (!dnn_mpi_claim_report(comm)) return;
    dnn_mpi_peers_read(&m->board, i, &its);
    dnn_mpi_peers_read(&m->board, m->board.me, &ours);
    dnn_mpi_op_text(last, sizeof last, &its.newest);
    dnn_mpi_op_text(where, sizeof where, &ours.newest);
    dnn_comm_print(
        "rank %d on %s ended without a word (process %d; killed?) %s %s; rank %d "
        "%s %s; the job ends",
        its.about, dnn_comm_host(comm, its.about), (int)m->board.slot[i]->pid,
        its.inside ? "in" : "after", last, comm->rank,
        ours.inside ? "waits in" : "was last in", where);
    end_from_aside(comm);
}

/* The rank on another node, if there is only one. */
static int only_stranger(const struct dnn_comm *comm)
{
    int found = -1;

    if (comm->size - comm->local_size != 1) return -1;
    for (int r = 0; r < comm->size; r++)
        if (comm->node[r] != comm->node[comm->rank]) found = r;
    return found;
}

/* A main thread that is inside MPI_Test for three seconds, asleep all the time, is one
 * whose process Open MPI is about to end: no other path in there sleeps that long.
 * Ranks of one node talk through memory and cannot lose a connection.  A launcher that
 * ends the job on one node after the other has done so by then. */
void dnn_mpi_tick(void *arg)
{
    struct dnn_comm *comm = arg;
    struct dnn_mpi *m = comm->impl;
    struct dnn_mpi_message ours;
    unsigned polls = atomic_load_explicit(&m->polls, memory_order_relaxed);
    char where[160];

    if (!DNN_HAVE_PMIX || comm->nodes == 1 || atomic_load(&m->ending)) return;
    dnn_mpi_peers_read(&m->board, m->board.me, &ours);
    bool still = ours.inside && polls == m->old_polls &&
                 dnn_mpi_peers_state(getpid(), m->main_thread) == 'S';
    m->old_polls = polls;
    m->still = still ? m->still + 1 : 0;
    if (m->still < LOST_TICKS) return;
    dnn_mpi_op_text(where, sizeof where, &ours.newest);
    int other = only_stranger(comm);
    if (!dnn_mpi_claim_report(comm)) end_from_aside(comm);
    if (other >= 0)
        dnn_comm_print(
            "%s: rank %d on %s lost its connection to rank %d on %s; the job ends",
            where, comm->rank, dnn_comm_host(comm, comm->rank), other,
            dnn_comm_host(comm, other));
    else
        dnn_comm_print(
            "%s: rank %d on %s lost its connection to a rank on another node, "
            "which the launcher's messages name; the job ends",
            where, comm->rank, dnn_comm_host(comm, comm->rank));
    end_from_aside(comm);
}
