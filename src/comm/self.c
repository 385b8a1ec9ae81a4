/* self.c - the communicator of a single rank, which may pretend that there are others.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "comm/comm_impl.h"

#include <string.h>
#include <unistd.h>

static void expired(void *arg, const char *what, double seconds)
{
    const struct dnn_comm *comm = arg;

    dnn_comm_print("%s on %s: not finished after %g s; terminating", what,
                   dnn_comm_host(comm, 0), seconds);
    _exit(DNN_COMM_EXIT);
}

/* There are no peers. */
static void died(void *arg, int i)
{
    (void)arg;
    (void)i;
}

static void set_up(struct dnn_comm *comm, int size, int rank)
{
    comm->rank = rank;
    comm->size = size;
    comm->version = dnn_strdup("one rank, no library");
    comm->host_text = dnn_alloc((size_t)size * DNN_COMM_HOST_LEN);
    for (int r = 0; r < size; r++)
        dnn_comm_hostname(comm->host_text + (size_t)r * DNN_COMM_HOST_LEN,
                          DNN_COMM_HOST_LEN);
    dnn_comm_find_nodes(comm);
    comm->watch = dnn_watchdog_make(
        &(struct dnn_watchdog_calls){.expired = expired, .died = died, .arg = comm});
}

static int open_self(struct dnn_comm *comm, struct dnn_err *err)
{
    (void)err;
    set_up(comm, 1, 0);
    return 0;
}

struct dnn_comm *dnn_comm_pretend(int size, int rank)
{
    struct dnn_comm *comm = dnn_alloc(sizeof *comm);

    comm->kind = &dnn_comm_self;
    set_up(comm, size, rank);
    return comm;
}

static void close_self(struct dnn_comm *comm)
{
    (void)comm;
}

static int start(struct dnn_comm *comm, const struct dnn_comm_call *call,
                 struct dnn_comm_req *req, struct dnn_err *err)
{
    bool sums = call->verb == DNN_COMM_ALLREDUCE && call->op == DNN_COMM_SUM;

    (void)req;
    if (comm->size > 1 && (sums || (call->root >= 0 && call->root != comm->rank)))
        return dnn_fail(err, DNN_ECOMM, "%s of %s: there are no other ranks",
                        dnn_comm_verb_name(call->verb),
                        call->what == NULL ? "data" : call->what);
    for (int r = 0; call->in != NULL && r < comm->size; r++)
        memcpy((char *)call->buf + (size_t)r * (size_t)call->count, call->in,
               (size_t)call->count);
    return 0;
}

static int test(struct dnn_comm_req *req, bool *finished, struct dnn_err *err)
{
    (void)req;
    (void)err;
    *finished = true;
    return 0;
}

static int wait(struct dnn_comm_req *req, struct dnn_err *err)
{
    (void)req;
    (void)err;
    return 0;
}

static _Noreturn void end(struct dnn_comm *comm, int status)
{
    (void)comm;
    _exit(status);
}

const struct dnn_comm_kind dnn_comm_self = {
    .name = "self",
    .which = DNN_COMM_SELF,
    .open = open_self,
    .close = close_self,
    .start = start,
    .test = test,
    .wait = wait,
    .end = end,
};
