/* mpi_impl.h - what the files of the MPI communicator share.
 *
 * mpi.c        opens and closes it and starts operations;
 * mpi_allreduce.c  does small all-reduces in one round;
 * mpi_wait.c   polls operations against the deadline, and calls the roll;
 * mpi_timeout.c  puts into words who was missing;
 * mpi_peers.c  where the ranks of this node are, in memory they share;
 * mpi_end.c    ends the job, once, with one message.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_COMM_MPI_IMPL_H
#define DNN_COMM_MPI_IMPL_H

#include "base/text.h"
#include "comm/comm_impl.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

/* Where one rank of this node is.  Written by that rank only, but for said. */
struct dnn_mpi_slot {
    struct dnn_comm_opinfo newest; /* the last operation it entered               */
    int inside;                    /* whether it waits in one                     */
    pid_t pid;
    uint64_t pid_space; /* pids of other spaces mean nothing to us      */
    _Atomic int left;   /* it closes: its end is no accident            */
    _Atomic int said;   /* first slot only: this node's ranks are ending
                         * the job and one of them has said why         */
};

struct dnn_mpi_peers {
    MPI_Win win; /* MPI_WIN_NULL: could not be shared; then we see only ourselves */
    int n, me;
    int *rank;                  /* owned; rank[i] of the i-th on this node      */
    struct dnn_mpi_slot **slot; /* owned array; slot[i] lies in shared memory   */
    struct dnn_mpi_slot *alone; /* owned; our slot if nothing is shared         */
    pthread_mutex_t lock;       /* over our slot: the watching thread reads it        */
};

/* What ranks that wait too long tell each other: a question, where the sender is,
 * where a neighbour of the sender is. */
enum { DNN_MPI_ASK = 1, DNN_MPI_HERE, DNN_MPI_PEER };

struct dnn_mpi_message {
    int32_t kind;   /* one of these, 0: none                            */
    int32_t about;  /* the rank this is about                           */
    int32_t inside; /* it waits in an operation                         */
    int32_t state;  /* of its process: a letter of proc(5), 0: unknown  */
    uint64_t asked; /* the number of the operation asked about          */
    struct dnn_comm_opinfo newest, then; /* its last one; the one asked about       */
};

enum { DNN_MPI_HISTORY = 64 };

struct dnn_mpi {
    MPI_Comm work, roll;
    MPI_Op add_bf16, add_f16; /* what MPI cannot add itself */
    bool ours;                /* MPI was not running before: we finalize it */
    uint64_t seq;
    struct dnn_comm_opinfo history[DNN_MPI_HISTORY]; /* [seq % DNN_MPI_HISTORY] */
    struct dnn_comm_opinfo met; /* the newest that proves every rank entered it */
    struct dnn_mpi_peers board;
    struct dnn_mpi_message *answer; /* owned; answer[rank], kind 0: none came   */
    struct dnn_mpi_pending *sent;   /* owned list: words on their way           */
    struct dnn_mpi_small *small;    /* owned list: numbers on their way         */
    _Atomic int ending;             /* this rank is ending the job              */
    pid_t main_thread;              /* the one that calls MPI                   */
    _Atomic unsigned polls;         /* grows as long as MPI lets us poll        */
    unsigned old_polls, still;      /* the watching thread's: for how many looks */
};

/* mpi_half.c: sums of 16-bit numbers, as MPI calls them. */
void dnn_mpi_add_bf16(void *in, void *inout, int *n, MPI_Datatype *type);
void dnn_mpi_add_f16(void *in, void *inout, int *n, MPI_Datatype *type);

/* mpi_allreduce.c: whether so many bytes are few; start, and test until it is finished:
 * then buf holds the result, and req->mpi is a request that is finished, too.  Both
 * return MPI's codes.  Close after the last operation. */
bool dnn_mpi_small(const struct dnn_comm *comm, int64_t bytes);
int dnn_mpi_small_start(struct dnn_comm_req *req, void *buf, int n, size_t bytes,
                        MPI_Datatype type, MPI_Op op);
int dnn_mpi_small_test(struct dnn_comm_req *req, int *finished);
void dnn_mpi_small_close(struct dnn_comm *comm);

/* MPI's own words for one of its codes, as a DNN_ECOMM message. */
int dnn_mpi_fail(struct dnn_err *err, const char *doing, int code);

/* "all-reduce #12 (bucket 3)".  out is returned. */
const char *dnn_mpi_op_text(char *out, size_t size, const struct dnn_comm_opinfo *note);

/* mpi_peers.c.  Open is collective over comm->work. */
int dnn_mpi_peers_open(struct dnn_comm *comm, struct dnn_err *err);
void dnn_mpi_peers_close(struct dnn_comm *comm);
void dnn_mpi_peers_enter(struct dnn_mpi_peers *b, const struct dnn_comm_opinfo *note);
void dnn_mpi_peers_inside(struct dnn_mpi_peers *b, bool inside);
/* The i-th of this node, as far as can be seen from outside it. */
void dnn_mpi_peers_read(struct dnn_mpi_peers *b, int i, struct dnn_mpi_message *out);
/* The letter proc(5) gives the thread of a process: R, S, D, T (stopped), t (traced),
 * Z; X if there is none any more. */
int dnn_mpi_peers_state(pid_t process, pid_t thread);
/* Its process if we may look at it, else 0. */
pid_t dnn_mpi_peers_pid(struct dnn_mpi_peers *b, int i);

/* mpi_wait.c */
int dnn_mpi_test(struct dnn_comm_req *req, bool *finished, struct dnn_err *err);
int dnn_mpi_wait(struct dnn_comm_req *req, struct dnn_err *err);
/* Forget words still on their way; after the last operation. */
void dnn_mpi_wait_close(struct dnn_comm *comm);

/* mpi_timeout.c: the message, from what answers came to the question about op. */
void dnn_mpi_timeout_text(struct dnn_comm *comm, const struct dnn_comm_opinfo *op,
                          struct dnn_buf *out);

/* mpi_end.c */
/* Whether it is ours to say why the job ends: true for the first on this node. */
bool dnn_mpi_claim_report(struct dnn_comm *comm);
_Noreturn void dnn_mpi_end(struct dnn_comm *comm, int status);
void dnn_mpi_expired(void *comm, const char *what, double seconds);
void dnn_mpi_gone(void *comm, int i);
void dnn_mpi_tick(void *comm);
/* Before MPI starts: leave time to say why, should the library end us by itself. */
void dnn_mpi_end_prepare(void);

#endif
