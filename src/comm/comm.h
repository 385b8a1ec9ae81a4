/* comm.h - collective communication with agreement on errors and deadlines.
 *
 * Every operation has a description `what` for messages ("bucket 3"), or NULL.  An
 * operation that does not finish before the deadline terminates all ranks with exit
 * status 7, after one message on stderr with the missing ranks, their hosts and the
 * operation.  Only in this case the component prints and exits itself, because an
 * error cannot be agreed on without the missing ranks.
 *
 * The death of a process is detected at once by the ranks of its node, and by the
 * others as soon as MPI or the launcher does; the job is terminated in the same way.
 *
 * All ranks must call the collective operations in the same order.  One thread at a
 * time may use a communicator.
 *
 * Environment: DNN_DEADLINE (seconds) overrides dnn_comm_cfg.deadline.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_COMM_COMM_H
#define DNN_COMM_COMM_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dnn_comm_which {
    DNN_COMM_AUTO, /* mpi if started by an MPI launcher, else self */
    DNN_COMM_SELF, /* one rank, no library                        */
    DNN_COMM_MPI
};

/* All zero: the defaults. */
struct dnn_comm_cfg {
    int kind;        /* enum dnn_comm_which                                */
    double deadline; /* seconds an operation may take; 0: 600              */
};

struct dnn_comm;

/* Collective.  Join the other ranks; the caller owns *out: dnn_comm_close().  cfg may
 * be NULL.  Also sets rank and host of log messages.  MPI can be opened only once per
 * process.  Start and end may each take as long as the deadline, but at least 30 s. */
int dnn_comm_open(const struct dnn_comm_cfg *cfg, struct dnn_comm **out,
                  struct dnn_err *err);

/* Local.  A communicator as rank `rank` of size on this node would have it, to plan
 * what that rank would do.  There are no other ranks: agreement and all-gather return
 * what they would if all ranks gave the same, and what needs the data of others is an
 * error.  The caller owns the result: dnn_comm_close(). */
struct dnn_comm *dnn_comm_pretend(int size, int rank);

/* Collective.  NULL is fine.  All started operations must be finished.  Errors are
 * logged, not returned. */
void dnn_comm_close(struct dnn_comm *comm);

/* Local, all of these.  Strings are owned by the communicator. */
const char *dnn_comm_kind(const struct dnn_comm *comm);    /* "self" or "mpi"      */
const char *dnn_comm_version(const struct dnn_comm *comm); /* of the library     */
double dnn_comm_deadline(const struct dnn_comm *comm);     /* seconds              */
int dnn_comm_rank(const struct dnn_comm *comm);
int dnn_comm_size(const struct dnn_comm *comm);
/* Host of a rank; exchanged at open. */
const char *dnn_comm_host(const struct dnn_comm *comm, int rank);
/* Nodes are numbered 0, 1, ... in the order of their lowest ranks. */
int dnn_comm_nodes(const struct dnn_comm *comm);
int dnn_comm_node(const struct dnn_comm *comm, int rank);
/* Index among the ranks of this node, and their number. */
int dnn_comm_local_rank(const struct dnn_comm *comm);
int dnn_comm_local_size(const struct dnn_comm *comm);

/* Collective.  Returns when every rank has called it. */
int dnn_comm_barrier(struct dnn_comm *comm, const char *what, struct dnn_err *err);

/* Collective.  Broadcast the bytes of root. */
int dnn_comm_bcast(struct dnn_comm *comm, const char *what, void *buf, size_t bytes,
                   int root, struct dnn_err *err);

/* Collective.  all receives size * bytes bytes, in the order of ranks; mine must not
 * overlap it. */
int dnn_comm_allgather(struct dnn_comm *comm, const char *what, const void *mine,
                       size_t bytes, void *all, struct dnn_err *err);

/* BF16 and F16 are rounded at every addition and support only SUM. */
enum dnn_comm_type {
    DNN_COMM_I64,
    DNN_COMM_F64,
    DNN_COMM_F32,
    DNN_COMM_BF16,
    DNN_COMM_F16
};
enum dnn_comm_op { DNN_COMM_SUM, DNN_COMM_MIN, DNN_COMM_MAX };

/* Collective.  All-reduce of count elements, in place. */
int dnn_comm_allreduce(struct dnn_comm *comm, const char *what, void *buf,
                       int64_t count, enum dnn_comm_type type, enum dnn_comm_op op,
                       struct dnn_err *err);

/* A running all-reduce. */
struct dnn_comm_req;

/* Collective.  As dnn_comm_allreduce, but returns at once; buf must neither be read
 * nor written until the wait.  Requests may be waited for in any order.  The caller
 * owns *out: dnn_comm_wait(). */
int dnn_comm_start(struct dnn_comm *comm, const char *what, void *buf, int64_t count,
                   enum dnn_comm_type type, enum dnn_comm_op op,
                   struct dnn_comm_req **out, struct dnn_err *err);

/* Local.  Make progress and test whether it is finished; dnn_comm_wait() is still
 * needed. The deadline counts from the first test or wait, so work between start and
 * wait may take any time. */
int dnn_comm_test(struct dnn_comm_req *req, bool *finished, struct dnn_err *err);

/* Finish and release it, also on failure; NULL is fine. */
int dnn_comm_wait(struct dnn_comm_req *req, struct dnn_err *err);

/* Collective.  Agree on errors: every rank gives its result (rc, and err if negative);
 * all return the same code and message, that of the lowest rank that failed, prefixed
 * with "rank N: " if there are several ranks.  An error that all ranks already have
 * (err->everywhere) is returned unchanged.  err must not be NULL. */
int dnn_comm_agree(struct dnn_comm *comm, int rc, struct dnn_err *err);

/* Local.  A watchdog for calls of other libraries that have no deadline: after so many
 * seconds (0: the deadline) without dnn_comm_unwatch(), print what and terminate the
 * job with status 7.  what is copied.  A second watch replaces the first. */
void dnn_comm_watch(struct dnn_comm *comm, const char *what, double seconds);
void dnn_comm_unwatch(struct dnn_comm *comm);

/* Local.  Terminate all ranks now, with the exit status of code, when an error cannot
 * be agreed on; print the message first. */
_Noreturn void dnn_comm_abort(struct dnn_comm *comm, int code);

#endif
