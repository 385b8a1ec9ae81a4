/* comm_impl.h - what the files of this room share: a communicator, an operation,
 * and the table of functions a kind of communicator is.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_COMM_COMM_IMPL_H
#define DNN_COMM_COMM_IMPL_H

#include "comm/comm.h"
#include "comm/watchdog_impl.h"

#include <mpi.h>

/* Statuses are documented in base/err.h; this is dnn_exit_status(DNN_ECOMM). */
enum { DNN_COMM_EXIT = 7 };

enum dnn_comm_verb {
    DNN_COMM_BARRIER,
    DNN_COMM_BCAST,
    DNN_COMM_ALLGATHER,
    DNN_COMM_GATHERV,
    DNN_COMM_ALLREDUCE
};

/* One collective operation.  The front has checked the arguments. */
struct dnn_comm_call {
    enum dnn_comm_verb verb;
    const char *what;
    const void *in; /* all-gather, gather: what we give                    */
    void *buf;      /* where the result goes; all-reduce, bcast: in place  */
    int64_t count;  /* elements, or bytes where there is no type           */
    enum dnn_comm_type type;
    enum dnn_comm_op op;
    int root;                 /* -1 where there is none             */
    const int *counts, *offs; /* gather, on the root: bytes per rank */
};

/* An operation, as it is remembered and told to others. */
struct dnn_comm_opinfo {
    uint64_t seq; /* from 1, the same on all ranks; 0: none */
    int64_t count;
    int32_t verb, root;
    char what[88];
};

struct dnn_mpi_small;

/* An operation under way. */
struct dnn_comm_req {
    struct dnn_comm *comm;
    MPI_Request mpi;
    struct dnn_mpi_small *small; /* owned; what is under way instead, or NULL       */
    struct dnn_comm_opinfo note;
    double first;    /* when we first tested or waited; 0: not yet              */
    double call_at;  /* when to call the roll                                   */
    double judge_at; /* when the answers must be in                             */
    bool called;     /* we asked the others where they are                      */
};

struct dnn_comm_kind {
    const char *name;
    int which; /* enum dnn_comm_which */
    /* Fill rank, size, hosts, nodes and impl; on failure leave nothing behind. */
    int (*open)(struct dnn_comm *comm, struct dnn_err *err);
    void (*close)(struct dnn_comm *comm);
    int (*start)(struct dnn_comm *comm, const struct dnn_comm_call *call,
                 struct dnn_comm_req *req, struct dnn_err *err);
    int (*test)(struct dnn_comm_req *req, bool *finished, struct dnn_err *err);
    int (*wait)(struct dnn_comm_req *req, struct dnn_err *err);
    /* End every rank with this status.  Does not return. */
    void (*end)(struct dnn_comm *comm, int status);
};

extern const struct dnn_comm_kind dnn_comm_self, dnn_comm_mpi;

struct dnn_comm {
    const struct dnn_comm_kind *kind;
    int rank, size;
    double deadline;
    int under_way;   /* started and not yet waited for           */
    char *version;   /* owned                                    */
    char *host_text; /* owned; size names of HOST_LEN bytes      */
    int *node;       /* owned; node[rank]                        */
    int nodes, local_rank, local_size;
    struct dnn_watchdog *watch; /* owned */
    void *impl;                 /* owned by the kind */
};

enum { DNN_COMM_HOST_LEN = 256 };

/* Number the nodes and find our place, from host_text, rank and size. */
void dnn_comm_place(struct dnn_comm *comm);

/* "all-reduce" */
const char *dnn_comm_verb_name(enum dnn_comm_verb verb);
size_t dnn_comm_type_size(enum dnn_comm_type type);

/* Seconds on a clock that only goes forward. */
double dnn_comm_now(void);

/* "n1", without domain: as Slurm and its messages call it. */
void dnn_comm_hostname(char *out, size_t size);

/* One line on stderr, in one write and without locks, so that it gets out even
 * when this process is about to be killed or its main thread holds any lock. */
void dnn_comm_print(const char *fmt, ...) DNN_PRINTF(1, 2);

#endif
