/* comm.c - the public operations: checks arguments; a blocking operation is a start
 * followed by a wait.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "comm/comm_impl.h"
#include "comm/comm_mpi.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Counts of MPI are int; larger operations are split. */
enum { CHUNK = 1 << 30 };

const char *dnn_comm_verb_name(enum dnn_comm_verb verb)
{
    static const char *const names[] = {"barrier", "broadcast", "all-gather",
                                        "all-reduce"};

    return (unsigned)verb < sizeof names / sizeof names[0] ? names[verb] : "operation";
}

size_t dnn_comm_type_size(enum dnn_comm_type type)
{
    if (type == DNN_COMM_BF16 || type == DNN_COMM_F16) return 2;
    return type == DNN_COMM_F32 ? 4 : 8;
}

void dnn_comm_hostname(char *out, size_t size)
{
    if (gethostname(out, size) < 0) snprintf(out, size, "localhost");
    out[size - 1] = '\0';
    out[strcspn(out, ".")] = '\0';
}

/* -1: stderr.  Read by the watchdog thread. */
static _Atomic int print_to = -1;

void dnn_comm_print_to(int fd)
{
    print_to = fd;
}

void dnn_comm_print(const char *fmt, ...)
{
    char line[2048];
    va_list ap;

    int head = snprintf(line, sizeof line, "%s: ", program_invocation_short_name);
    if (head < 0 || (size_t)head >= sizeof line / 2) head = 0;
    va_start(ap, fmt);
    int body = vsnprintf(line + head, sizeof line - (size_t)head - 1, fmt, ap);
    va_end(ap);
    size_t len = (size_t)head + (body > 0 ? (size_t)body : 0);
    if (len > sizeof line - 2) len = sizeof line - 2;
    line[len++] = '\n';
    int fd = print_to < 0 ? STDERR_FILENO : print_to;
    for (size_t at = 0; at < len;) {
        ssize_t n = write(fd, line + at, len - at);
        if (n <= 0) break; /* stderr is closed */
        at += (size_t)n;
    }
}

const char *dnn_comm_kind(const struct dnn_comm *comm)
{
    return comm->kind->name;
}

const char *dnn_comm_version(const struct dnn_comm *comm)
{
    return comm->version;
}

double dnn_comm_deadline(const struct dnn_comm *comm)
{
    return comm->deadline;
}

int dnn_comm_rank(const struct dnn_comm *comm)
{
    return comm->rank;
}

int dnn_comm_size(const struct dnn_comm *comm)
{
    return comm->size;
}

const char *dnn_comm_host(const struct dnn_comm *comm, int rank)
{
    assert(rank >= 0 && rank < comm->size);
    return comm->host_text + (size_t)rank * DNN_COMM_HOST_LEN;
}

int dnn_comm_nodes(const struct dnn_comm *comm)
{
    return comm->nodes;
}

int dnn_comm_node(const struct dnn_comm *comm, int rank)
{
    assert(rank >= 0 && rank < comm->size);
    return comm->node[rank];
}

int dnn_comm_local_rank(const struct dnn_comm *comm)
{
    return comm->local_rank;
}

int dnn_comm_local_size(const struct dnn_comm *comm)
{
    return comm->local_size;
}

void dnn_comm_find_nodes(struct dnn_comm *comm)
{
    int *lead =
        dnn_alloc(sizeof *lead * (size_t)comm->size); /* lowest rank of a node */

    comm->node = dnn_alloc(sizeof *comm->node * (size_t)comm->size);
    comm->nodes = comm->local_rank = comm->local_size = 0;
    for (int r = 0; r < comm->size; r++) {
        int n = 0;

        while (n < comm->nodes &&
               strcmp(dnn_comm_host(comm, r), dnn_comm_host(comm, lead[n])) != 0)
            n++;
        if (n == comm->nodes) lead[comm->nodes++] = r;
        comm->node[r] = n;
    }
    for (int r = 0; r < comm->size; r++)
        if (comm->node[r] == comm->node[comm->rank]) {
            if (r < comm->rank) comm->local_rank++;
            comm->local_size++;
        }
    dnn_free(lead);
}

static int run(struct dnn_comm *comm, const struct dnn_comm_call *call,
               struct dnn_err *err)
{
    struct dnn_comm_req req = {.comm = comm};

    DNN_TRY(comm->kind->start(comm, call, &req, err));
    return comm->kind->wait(&req, err);
}

static int check_root(const struct dnn_comm *comm, const char *verb, int root,
                      struct dnn_err *err)
{
    if (root < 0 || root >= comm->size)
        return dnn_fail(err, DNN_ECOMM, "%s: root is %d; must be 0 to %d", verb, root,
                        comm->size - 1);
    return 0;
}

int dnn_comm_barrier(struct dnn_comm *comm, const char *what, struct dnn_err *err)
{
    struct dnn_comm_call call = {.verb = DNN_COMM_BARRIER, .what = what, .root = -1};

    return run(comm, &call, err);
}

int dnn_comm_bcast(struct dnn_comm *comm, const char *what, void *buf, size_t bytes,
                   int root, struct dnn_err *err)
{
    DNN_TRY(check_root(comm, "broadcast", root, err));
    do {
        size_t n = bytes < CHUNK ? bytes : CHUNK;
        struct dnn_comm_call call = {.verb = DNN_COMM_BCAST,
                                     .what = what,
                                     .buf = buf,
                                     .count = (int64_t)n,
                                     .root = root};

        DNN_TRY(run(comm, &call, err));
        buf = (char *)buf + n;
        bytes -= n;
    } while (bytes > 0);
    return 0;
}

int dnn_comm_allgather(struct dnn_comm *comm, const char *what, const void *mine,
                       size_t bytes, void *all, struct dnn_err *err)
{
    struct dnn_comm_call call = {.verb = DNN_COMM_ALLGATHER,
                                 .what = what,
                                 .in = mine,
                                 .buf = all,
                                 .count = (int64_t)bytes,
                                 .root = -1};

    if (bytes > INT_MAX)
        return dnn_fail(err, DNN_ECOMM,
                        "all-gather: %zu bytes per rank requested, at most %d allowed",
                        bytes, INT_MAX);
    return run(comm, &call, err);
}

static int check_reduce(int64_t count, enum dnn_comm_type type, enum dnn_comm_op op,
                        struct dnn_err *err)
{
    if (count < 0)
        return dnn_fail(err, DNN_ECOMM,
                        "all-reduce: number of elements is negative: %lld",
                        (long long)count);
    if ((int)type < DNN_COMM_I64 || type > DNN_COMM_F16)
        return dnn_fail(err, DNN_ECOMM, "all-reduce: unknown type %d", (int)type);
    if ((int)op < DNN_COMM_SUM || op > DNN_COMM_MAX)
        return dnn_fail(err, DNN_ECOMM, "all-reduce: unknown operation %d", (int)op);
    if (type >= DNN_COMM_BF16 && op != DNN_COMM_SUM)
        return dnn_fail(err, DNN_ECOMM, "all-reduce: 16-bit types support only sums");
    return 0;
}

int dnn_comm_allreduce(struct dnn_comm *comm, const char *what, void *buf,
                       int64_t count, enum dnn_comm_type type, enum dnn_comm_op op,
                       struct dnn_err *err)
{
    DNN_TRY(check_reduce(count, type, op, err));
    do {
        int64_t n = count < CHUNK ? count : CHUNK;
        struct dnn_comm_call call = {.verb = DNN_COMM_ALLREDUCE,
                                     .what = what,
                                     .buf = buf,
                                     .count = n,
                                     .type = type,
                                     .op = op,
                                     .root = -1};

        DNN_TRY(run(comm, &call, err));
        buf = (char *)buf + (size_t)n * dnn_comm_type_size(type);
        count -= n;
    } while (count > 0);
    return 0;
}

int dnn_comm_start(struct dnn_comm *comm, const char *what, void *buf, int64_t count,
                   enum dnn_comm_type type, enum dnn_comm_op op,
                   struct dnn_comm_req **out, struct dnn_err *err)
{
    struct dnn_comm_call call = {.verb = DNN_COMM_ALLREDUCE,
                                 .what = what,
                                 .buf = buf,
                                 .count = count,
                                 .type = type,
                                 .op = op,
                                 .root = -1};

    DNN_TRY(check_reduce(count, type, op, err));
    if (count > INT_MAX)
        return dnn_fail(err, DNN_ECOMM,
                        "all-reduce: %lld elements requested, at most %d allowed",
                        (long long)count, INT_MAX);
    struct dnn_comm_req *req = dnn_alloc(sizeof *req);
    req->comm = comm;
    int rc = comm->kind->start(comm, &call, req, err);
    if (rc < 0) {
        dnn_free(req);
        return rc;
    }
    comm->running++;
    *out = req;
    return 0;
}

int dnn_comm_test(struct dnn_comm_req *req, bool *finished, struct dnn_err *err)
{
    return req->comm->kind->test(req, finished, err);
}

int dnn_comm_wait(struct dnn_comm_req *req, struct dnn_err *err)
{
    if (req == NULL) return 0;
    int rc = req->comm->kind->wait(req, err);
    req->comm->running--;
    dnn_free(req);
    return rc;
}

void dnn_comm_watch(struct dnn_comm *comm, const char *what, double seconds)
{
    dnn_watchdog_arm(comm->watch, what, seconds > 0 ? seconds : comm->deadline);
}

void dnn_comm_unwatch(struct dnn_comm *comm)
{
    dnn_watchdog_disarm(comm->watch);
}

_Noreturn void dnn_comm_abort(struct dnn_comm *comm, int code)
{
    fflush(NULL); /* print what is buffered */
    comm->kind->end(comm, dnn_exit_status(code));
    abort();
}
