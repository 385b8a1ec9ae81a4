/* comm_impl.h - internals: a communicator, an operation, and the function table of a
 * kind of communicator.
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
    DNN_COMM_ALLREDUCE
};

/* One collective operation; comm.c has checked the arguments. */
struct dnn_comm_call {
    enum dnn_comm_verb verb;
    const char *what;
    const void *in; /* all-gather: input                                   */
    void *buf;      /* result; all-reduce, bcast: in place                 */
    int64_t count;  /* elements, or bytes where there is no type           */
    enum dnn_comm_type type;
    enum dnn_comm_op op;
    int root; /* -1 where there is none             */
};

/* An operation, as recorded and sent to other ranks. */
struct dnn_comm_opinfo {
    uint64_t seq; /* from 1, the same on all ranks; 0: none */
    int64_t count;
    int32_t verb, root;
    char what[88];
};

struct dnn_mpi_small;

/* A running operation. */
struct dnn_comm_req {
    struct dnn_comm *comm;
    MPI_Request mpi;
    struct dnn_mpi_small *small; /* owned; a small all-reduce instead of mpi, or NULL */
    struct dnn_comm_opinfo info;
    double first;     /* time of the first test or wait; 0: not yet              */
    double query_at;  /* time of the status query to all ranks                   */
    double report_at; /* time when all answers must have arrived                 */
    bool queried;     /* the query was sent                                      */
};

struct dnn_comm_kind {
    const char *name;
    int which; /* enum dnn_comm_which */
    /* Fill rank, size, hosts, nodes and impl; on failure release everything. */
    int (*open)(struct dnn_comm *comm, struct dnn_err *err);
    void (*close)(struct dnn_comm *comm);
    int (*start)(struct dnn_comm *comm, const struct dnn_comm_call *call,
                 struct dnn_comm_req *req, struct dnn_err *err);
    int (*test)(struct dnn_comm_req *req, bool *finished, struct dnn_err *err);
    int (*wait)(struct dnn_comm_req *req, struct dnn_err *err);
    /* Terminate all ranks with this status.  Does not return. */
    void (*end)(struct dnn_comm *comm, int status);
};

extern const struct dnn_comm_kind dnn_comm_self, dnn_comm_mpi;

struct dnn_comm {
    const struct dnn_comm_kind *kind;
    int rank, size;
    double deadline;
    int running;     /* operations started and not yet finished  */
    char *version;   /* owned                                    */
    char *host_text; /* owned; size names of HOST_LEN bytes      */
    int *node;       /* owned; node[rank]                        */
    int nodes, local_rank, local_size;
    struct dnn_watchdog *watch; /* owned */
    void *impl;                 /* owned by the kind */
};

enum { DNN_COMM_HOST_LEN = 256 };

/* Number the nodes, from host_text, rank and size. */
void dnn_comm_find_nodes(struct dnn_comm *comm);

/* "all-reduce" */
const char *dnn_comm_verb_name(enum dnn_comm_verb verb);
size_t dnn_comm_type_size(enum dnn_comm_type type);

/* Host name without domain, as Slurm uses it. */
void dnn_comm_hostname(char *out, size_t size);

/* Print one line on stderr, with one write and without locks: the main thread may hold
 * the lock of stderr. */
void dnn_comm_print(const char *fmt, ...) DNN_PRINTF(1, 2);

#endif
