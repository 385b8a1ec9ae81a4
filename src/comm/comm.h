/* comm.h - ranks talking to each other, agreeing on errors, and never waiting
 * for ever.
 *
 * Every operation takes a few words, `what`, that say what it is for ("bucket 3");
 * NULL or "" means the operation's own name is enough.  An operation
 * that does not finish within the deadline ends the job on every rank with exit
 * status 7, after one message on stderr that names the missing ranks, their hosts
 * and the operation.  Such an end is the one case in which this component prints and
 * exits itself: a rank that cannot reach its peers cannot hand an error up either.
 *
 * A rank whose process dies is noticed at once by the ranks of its node, and by the
 * others as soon as MPI or the launcher does: the job ends in the same way.
 *
 * All ranks must call the collective operations in the same order.  One thread at a
 * time may use a communicator.
 *
 * Environment: DNN_DEADLINE, seconds, wins over dnn_comm_cfg.deadline.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_COMM_COMM_H
#define DNN_COMM_COMM_H

#include "base/choice.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dnn_comm_which {
    DNN_COMM_AUTO, /* mpi if a launcher started us, else self     */
    DNN_COMM_SELF, /* one rank, no library                        */
    DNN_COMM_MPI
};

/* auto, self, mpi: for option tables. */
extern const struct dnn_choice dnn_comm_choices[];

/* All zero is a good configuration. */
struct dnn_comm_cfg {
    int kind;        /* enum dnn_comm_which                                */
    double deadline; /* seconds an operation may take; 0: 600              */
};

struct dnn_comm;

/* Collective.  Join the other ranks; the caller owns *out: dnn_comm_close().  cfg may
 * be NULL.  Also tells the log who we are.  MPI can be opened once in a process'
 * life, a rule of MPI's own.  The start itself may take as long as the deadline, but
 * at least 30 s; the same holds for the end. */
int dnn_comm_open(const struct dnn_comm_cfg *cfg, struct dnn_comm **out,
                  struct dnn_err *err);

/* Collective.  Leave; NULL is fine.  Every operation started must have been waited
 * for.  Errors while leaving are logged, not returned: there is nobody left to
 * agree with. */
void dnn_comm_close(struct dnn_comm *comm);

/* Local, all of these.  Texts belong to the communicator. */
const char *dnn_comm_kind(const struct dnn_comm *comm);    /* "self" or "mpi"      */
const char *dnn_comm_version(const struct dnn_comm *comm); /* the library's words */
double dnn_comm_deadline(const struct dnn_comm *comm);     /* seconds              */
int dnn_comm_rank(const struct dnn_comm *comm);
int dnn_comm_size(const struct dnn_comm *comm);
/* Where a rank runs; hosts were exchanged at open, so this never communicates. */
const char *dnn_comm_host(const struct dnn_comm *comm, int rank);
/* Nodes are numbered 0, 1, ... in the order of their lowest ranks. */
int dnn_comm_nodes(const struct dnn_comm *comm);
int dnn_comm_node(const struct dnn_comm *comm, int rank);
/* Our place among the ranks of our node, in rank order, and how many they are. */
int dnn_comm_local_rank(const struct dnn_comm *comm);
int dnn_comm_local_size(const struct dnn_comm *comm);

/* Collective.  Returns when every rank has called it. */
int dnn_comm_barrier(struct dnn_comm *comm, const char *what, struct dnn_err *err);

/* Collective.  Root's bytes become everybody's. */
int dnn_comm_bcast(struct dnn_comm *comm, const char *what, void *buf, size_t bytes,
                   int root, struct dnn_err *err);

/* Collective.  all receives size * bytes bytes, rank 0's first; mine must not
 * lie inside it. */
int dnn_comm_allgather(struct dnn_comm *comm, const char *what, const void *mine,
                       size_t bytes, void *all, struct dnn_err *err);

/* Collective.  Root gets one text per rank in (*out)[rank]; text may differ in
 * length and NULL counts as "".  The array and the texts are one block, released by
 * dnn_free(*out).  Elsewhere *out becomes NULL; out may be NULL there. */
int dnn_comm_gather(struct dnn_comm *comm, const char *what, const char *text, int root,
                    char ***out, struct dnn_err *err);

/* The two halves are rounded at every addition, and can only be added. */
enum dnn_comm_type {
    DNN_COMM_I64,
    DNN_COMM_F64,
    DNN_COMM_F32,
    DNN_COMM_BF16,
    DNN_COMM_F16
};
enum dnn_comm_op { DNN_COMM_SUM, DNN_COMM_MIN, DNN_COMM_MAX };

/* Collective.  Combine count elements over all ranks, in place, for everybody. */
int dnn_comm_allreduce(struct dnn_comm *comm, const char *what, void *buf,
                       int64_t count, enum dnn_comm_type type, enum dnn_comm_op op,
                       struct dnn_err *err);

/* An all-reduce under way. */
struct dnn_comm_req;

/* Collective.  As dnn_comm_allreduce, but returns at once; buf must neither be read
 * nor written until the wait.  Requests may be waited for in any order.  The caller
 * owns *out: dnn_comm_wait(). */
int dnn_comm_start(struct dnn_comm *comm, const char *what, void *buf, int64_t count,
                   enum dnn_comm_type type, enum dnn_comm_op op,
                   struct dnn_comm_req **out, struct dnn_err *err);

/* Local.  Push it on, and say whether it is finished; it must still be waited for.
 * The deadline counts from the first test or wait, so that work between start and
 * wait takes as long as it likes. */
int dnn_comm_test(struct dnn_comm_req *req, bool *finished, struct dnn_err *err);

/* Finish and release it, also on failure; NULL is fine. */
int dnn_comm_wait(struct dnn_comm_req *req, struct dnn_err *err);

/* Collective.  Every rank says how its share of a phase went (rc, and err if rc is
 * negative); all return the same code and hold the same message, that of the lowest
 * rank that failed, with "rank N: " in front if there are several ranks.  What all
 * ranks hold already (err->everywhere) stays as it is.  err must not be NULL. */
int dnn_comm_agree(struct dnn_comm *comm, int rc, struct dnn_err *err);

/* Local.  While this rank is inside a call of another library that has no deadline
 * of its own: after so many seconds (0: the communicator's deadline) without
 * dnn_comm_unwatch(), say what this rank was doing and end the job with status 7.
 * what is copied.  Watches do not nest: a second one replaces the first. */
void dnn_comm_watch(struct dnn_comm *comm, const char *what, double seconds);
void dnn_comm_unwatch(struct dnn_comm *comm);

/* Local.  End the job on every rank, now, with the exit status of code.  For main()
 * when an error cannot be agreed on; print the message first. */
_Noreturn void dnn_comm_abort(struct dnn_comm *comm, int code);

#endif
