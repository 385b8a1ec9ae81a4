/* mpi_impl.h - internals of the MPI communicator.
 *
 * mpi.c            opens and closes it, starts operations;
 * mpi_allreduce.c  small all-reduces in one round;
 * mpi_wait.c       polls operations until the deadline, then queries all ranks;
 * mpi_timeout.c    the message of a timeout: which ranks are missing;
 * mpi_peers.c      status of the ranks of this node, in shared memory;
 * mpi_end.c        terminates the job with one message.
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

/* Status of one rank of this node.  Written only by that rank, except reported. */
struct dnn_mpi_slot {
    struct dnn_comm_opinfo newest; /* the last operation it entered               */
    int inside;                    /* it is waiting in this operation             */
    pid_t pid;
    uint64_t pid_space;   /* pid namespace                                */
    _Atomic int closing;  /* it is closing: its exit is not an error      */
    _Atomic int reported; /* first slot only: a rank of this node has printed
                           * why the job is terminated                    */
};

struct dnn_mpi_peers {
    MPI_Win win; /* MPI_WIN_NULL: memory cannot be shared, only our own slot */
    int n, me;
    int *rank;                  /* owned; rank[i] of the i-th on this node      */
    struct dnn_mpi_slot **slot; /* owned array; slot[i] is in shared memory     */
    struct dnn_mpi_slot *own;   /* owned; our slot without shared memory        */
    pthread_mutex_t lock;       /* of our slot: the watchdog thread reads it    */
};

/* Messages about status: a query, the status of the sender, the status of a peer on the
 * node of the sender. */
enum { DNN_MPI_QUERY = 1, DNN_MPI_SENDER, DNN_MPI_PEER };

struct dnn_mpi_message {
    int32_t kind;       /* one of these, 0: none                            */
    int32_t about;      /* the rank this message is about                   */
    int32_t inside;     /* it is waiting in an operation                    */
    int32_t state;      /* of its process: a letter of proc(5), 0: unknown  */
    uint64_t query_seq; /* of the queried operation */
    struct dnn_comm_opinfo newest, queried; /* its last operation; the queried one */
};

enum { DNN_MPI_HISTORY = 64 };

struct dnn_mpi {
    MPI_Comm work, query;     /* operations; status queries */
    MPI_Op add_bf16, add_f16; /* types MPI does not have */
    bool initialized;         /* MPI was initialized here; finalize it */
    uint64_t seq;
    struct dnn_comm_opinfo history[DNN_MPI_HISTORY]; /* [seq % DNN_MPI_HISTORY] */
    struct dnn_comm_opinfo common; /* the newest that all ranks have entered */
    struct dnn_mpi_peers peers;
    struct dnn_mpi_message *answer; /* owned; answer[rank], kind 0: none        */
    struct dnn_mpi_pending *sent;   /* owned list: messages being sent          */
    struct dnn_mpi_small *small;    /* owned list: all-reduces being sent       */
    _Atomic int ending;             /* this rank is terminating the job         */
    pid_t main_thread;              /* the thread that calls MPI                */
    _Atomic unsigned polls;         /* counts polls                             */
    unsigned old_polls, idle_ticks; /* watchdog: ticks without a poll           */
};

/* mpi_half.c: sums of 16-bit numbers, as MPI operations. */
void dnn_mpi_add_bf16(void *in, void *inout, int *n, MPI_Datatype *type);
void dnn_mpi_add_f16(void *in, void *inout, int *n, MPI_Datatype *type);

/* mpi_allreduce.c: whether that many bytes are small; start, and test until it is
 * finished: then buf is the result, and req->mpi is a finished request.  Both return
 * MPI codes.  Close after the last operation. */
bool dnn_mpi_small(const struct dnn_comm *comm, int64_t bytes);
int dnn_mpi_small_start(struct dnn_comm_req *req, void *buf, int n, size_t bytes,
                        MPI_Datatype type, MPI_Op op);
int dnn_mpi_small_test(struct dnn_comm_req *req, int *finished);
void dnn_mpi_small_close(struct dnn_comm *comm);

/* An MPI error code as DNN_ECOMM with its message. */
int dnn_mpi_fail(struct dnn_err *err, const char *doing, int code);

/* "all-reduce #12 (bucket 3)".  out is returned. */
const char *dnn_mpi_op_text(char *out, size_t size, const struct dnn_comm_opinfo *info);

/* mpi_peers.c.  Open is collective over comm->work. */
int dnn_mpi_peers_open(struct dnn_comm *comm, struct dnn_err *err);
void dnn_mpi_peers_close(struct dnn_comm *comm);
void dnn_mpi_peers_enter(struct dnn_mpi_peers *b, const struct dnn_comm_opinfo *info);
void dnn_mpi_peers_inside(struct dnn_mpi_peers *b, bool inside);
/* Status of the i-th rank of this node. */
void dnn_mpi_peers_read(struct dnn_mpi_peers *b, int i, struct dnn_mpi_message *out);
/* State of a thread as in proc(5): R, S, D, T (stopped), t (traced), Z; X: does not
 * exist. */
int dnn_mpi_peers_state(pid_t process, pid_t thread);
/* Its process id if in our namespace, else 0. */
pid_t dnn_mpi_peers_pid(struct dnn_mpi_peers *b, int i);

/* mpi_wait.c */
int dnn_mpi_test(struct dnn_comm_req *req, bool *finished, struct dnn_err *err);
int dnn_mpi_wait(struct dnn_comm_req *req, struct dnn_err *err);
/* Cancel status messages; after the last operation. */
void dnn_mpi_wait_close(struct dnn_comm *comm);

/* mpi_timeout.c: the message, from the answers to the query about op. */
void dnn_mpi_timeout_text(struct dnn_comm *comm, const struct dnn_comm_opinfo *op,
                          struct dnn_buf *out);

/* mpi_end.c */
/* Whether this rank prints why the job is terminated: true for the first of this node.
 */
bool dnn_mpi_claim_report(struct dnn_comm *comm);
_Noreturn void dnn_mpi_end(struct dnn_comm *comm, int status);
void dnn_mpi_expired(void *comm, const char *what, double seconds);
void dnn_mpi_died(void *comm, int i);
void dnn_mpi_tick(void *comm);
/* Before MPI starts: make it wait before it aborts, so that we can print the reason. */
void dnn_mpi_end_prepare(void);

#endif
