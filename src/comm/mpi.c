/* mpi.c - the MPI communicator.
 *
 * Operations use duplicated communicators, so that other libraries cannot receive our
 * messages and MPI errors are returned as codes.  Only opening and closing block inside
 * MPI; both have a watchdog.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/log.h"
#include "base/mem.h"
#include "comm/comm_mpi.h"
#include "comm/mpi_impl.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int dnn_mpi_fail(struct dnn_err *err, const char *doing, int code)
{
    char text[MPI_MAX_ERROR_STRING + 1];
    int len = 0;

    if (MPI_Error_string(code, text, &len) != MPI_SUCCESS) len = 0;
    text[len] = '\0';
    return dnn_fail(err, DNN_ECOMM, "%s: MPI error: %s", doing,
                    len > 0 ? text : "unknown error");
}

const char *dnn_mpi_op_text(char *out, size_t size, const struct dnn_comm_opinfo *n)
{
    const char *name = dnn_comm_verb_name((enum dnn_comm_verb)n->verb);

    if (n->seq == 0)
        snprintf(out, size, "MPI_Init");
    else if (n->what[0] == '\0')
        snprintf(out, size, "%s #%llu", name, (unsigned long long)n->seq);
    else
        snprintf(out, size, "%s #%llu (%s)", name, (unsigned long long)n->seq, n->what);
    return out;
}

bool dnn_comm_mpi_handle(const struct dnn_comm *comm, MPI_Comm *out)
{
    if (comm == NULL || comm->kind != &dnn_comm_mpi) return false;
    *out = ((const struct dnn_mpi *)comm->impl)->work;
    return true;
}

static int start_mpi(struct dnn_mpi *m, struct dnn_err *err)
{
    int initialized_before = 0, finalized = 0, level, bad = MPI_SUCCESS;

    MPI_Initialized(&initialized_before);
    MPI_Finalized(&finalized);
    if (finalized)
        return dnn_fail(
            err, DNN_ECOMM,
            "MPI was finalized in this process and cannot be started again");
    if (!initialized_before) {
        bad = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
        if (bad != MPI_SUCCESS) return dnn_mpi_fail(err, "MPI_Init", bad);
        m->initialized = true;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    bad = MPI_Comm_dup(MPI_COMM_WORLD, &m->work);
    if (bad == MPI_SUCCESS) bad = MPI_Comm_dup(MPI_COMM_WORLD, &m->query);
    if (bad == MPI_SUCCESS) bad = MPI_Op_create(dnn_mpi_add_bf16, 1, &m->add_bf16);
    if (bad == MPI_SUCCESS) bad = MPI_Op_create(dnn_mpi_add_f16, 1, &m->add_f16);
    if (bad != MPI_SUCCESS) return dnn_mpi_fail(err, "MPI_Init", bad);
    MPI_Comm_set_errhandler(m->work, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(m->query, MPI_ERRORS_RETURN);
    return 0;
}

static int exchange_hosts(struct dnn_comm *comm, struct dnn_err *err)
{
    struct dnn_mpi *m = comm->impl;
    char mine[DNN_COMM_HOST_LEN] = "";

    dnn_comm_hostname(mine, sizeof mine);
    char *all = dnn_alloc((size_t)comm->size * DNN_COMM_HOST_LEN);
    int bad = MPI_Allgather(mine, DNN_COMM_HOST_LEN, MPI_BYTE, all, DNN_COMM_HOST_LEN,
                            MPI_BYTE, m->work);
    if (bad != MPI_SUCCESS) {
        dnn_free(all);
        return dnn_mpi_fail(err, "exchange of host names", bad);
    }
    comm->host_text = all;
    dnn_comm_find_nodes(comm);
    return 0;
}

/* The first part: "Open MPI v5.0.7". */
static char *library_version(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING + 1];
    int len = 0;

    if (MPI_Get_library_version(text, &len) != MPI_SUCCESS) len = 0;
    text[len] = '\0';
    return dnn_strndup(text, strcspn(text, ",\n"));
}

/* From now on the death of a process on this node is detected. */
static void watch_peers(struct dnn_comm *comm)
{
    struct dnn_mpi_peers *b = &((struct dnn_mpi *)comm->impl)->peers;
    pid_t *pid = dnn_alloc(sizeof *pid * (size_t)b->n);

    for (int i = 0; i < b->n; i++)
        pid[i] = i == b->me ? 0 : dnn_mpi_peers_pid(b, i);
    dnn_watchdog_peers(comm->watch, pid, b->n);
    dnn_free(pid);
}

static void stop_mpi(struct dnn_mpi *m)
{
    if (m->add_f16 != MPI_OP_NULL) MPI_Op_free(&m->add_f16);
    if (m->add_bf16 != MPI_OP_NULL) MPI_Op_free(&m->add_bf16);
    if (m->query != MPI_COMM_NULL) MPI_Comm_free(&m->query);
    if (m->work != MPI_COMM_NULL) MPI_Comm_free(&m->work);
    if (m->initialized) MPI_Finalize();
}

/* Starting hundreds of processes takes time, however short the deadline. */
static double start_timeout(const struct dnn_comm *comm)
{
    return comm->deadline > 30 ? comm->deadline : 30;
}

static int open_mpi(struct dnn_comm *comm, struct dnn_err *err)
{
    struct dnn_mpi *m = dnn_alloc(sizeof *m);

    m->work = m->query = MPI_COMM_NULL;
    m->add_bf16 = m->add_f16 = MPI_OP_NULL;
    pthread_mutex_init(&m->peers.lock, NULL);
    m->main_thread = gettid();
    comm->impl = m;
    dnn_mpi_end_prepare(); /* changes the environment: before threads start */
    comm->watch =
        dnn_watchdog_make(&(struct dnn_watchdog_calls){.expired = dnn_mpi_expired,
                                                       .died = dnn_mpi_died,
                                                       .tick = dnn_mpi_tick,
                                                       .arg = comm});
    dnn_watchdog_arm(comm->watch, "MPI_Init", start_timeout(comm));
    int rc = start_mpi(m, err);
    if (rc == 0) {
        MPI_Comm_rank(m->work, &comm->rank);
        MPI_Comm_size(m->work, &comm->size);
        comm->version = library_version();
        m->answer = dnn_alloc(sizeof *m->answer * (size_t)comm->size);
        rc = exchange_hosts(comm, err);
    }
    if (rc == 0) rc = dnn_mpi_peers_open(comm, err);
    if (rc < 0) {
        stop_mpi(m);
        dnn_watchdog_disarm(comm->watch);
        pthread_mutex_destroy(&m->peers.lock);
        dnn_free(m->answer);
        dnn_free(m);
        return rc;
    }
    dnn_watchdog_disarm(comm->watch);
    watch_peers(comm);
    return 0;
}

static void close_mpi(struct dnn_comm *comm)
{
    struct dnn_mpi *m = comm->impl;
    struct dnn_err err = {0};

    /* All ranks get here, or the deadline reports the missing ones. */
    if (dnn_comm_barrier(comm, "closing", &err) < 0)
        dnn_log_all(DNN_ERROR, "comm", "closing: %s", err.text);
    atomic_store(&m->peers.slot[m->peers.me]->closing, 1);
    dnn_watchdog_peers(comm->watch, NULL, 0);
    dnn_watchdog_arm(comm->watch, "MPI_Finalize", start_timeout(comm));
    dnn_mpi_wait_close(comm);
    dnn_mpi_small_close(comm);
    dnn_mpi_peers_close(comm);
    stop_mpi(m);
    dnn_watchdog_disarm(comm->watch);
    pthread_mutex_destroy(&m->peers.lock);
    dnn_free(m->answer);
    dnn_free(m);
    comm->impl = NULL;
}

static MPI_Datatype mpi_type(enum dnn_comm_type type)
{
    switch (type) {
    case DNN_COMM_I64:
        return MPI_INT64_T;
    case DNN_COMM_F64:
        return MPI_DOUBLE;
    case DNN_COMM_BF16:
    case DNN_COMM_F16:
        return MPI_UINT16_T;
    default:
        return MPI_FLOAT;
    }
}

static MPI_Op mpi_op(const struct dnn_mpi *m, enum dnn_comm_type type,
                     enum dnn_comm_op op)
{
    if (type == DNN_COMM_BF16) return m->add_bf16;
    if (type == DNN_COMM_F16) return m->add_f16;
    switch (op) {
    case DNN_COMM_SUM:
        return MPI_SUM;
    case DNN_COMM_MIN:
        return MPI_MIN;
    default:
        return MPI_MAX;
    }
}

static int reduce(const struct dnn_mpi *m, const struct dnn_comm_call *c,
                  struct dnn_comm_req *req)
{
    size_t bytes = (size_t)c->count * dnn_comm_type_size(c->type);
    MPI_Datatype type = mpi_type(c->type);
    MPI_Op op = mpi_op(m, c->type, c->op);
    int n = (int)c->count;

    if (dnn_mpi_small(req->comm, (int64_t)bytes))
        return dnn_mpi_small_start(req, c->buf, n, bytes, type, op);
    return MPI_Iallreduce(MPI_IN_PLACE, c->buf, n, type, op, m->work, &req->mpi);
}

static int issue(struct dnn_mpi *m, const struct dnn_comm_call *c,
                 struct dnn_comm_req *req)
{
    MPI_Request *out = &req->mpi;
    int n = (int)c->count;

    switch (c->verb) {
    case DNN_COMM_BARRIER:
        return MPI_Ibarrier(m->work, out);
    case DNN_COMM_BCAST:
        return MPI_Ibcast(c->buf, n, MPI_BYTE, c->root, m->work, out);
    case DNN_COMM_ALLGATHER:
        return MPI_Iallgather(c->in, n, MPI_BYTE, c->buf, n, MPI_BYTE, m->work, out);
    default:
        return reduce(m, c, req);
    }
}

static int start(struct dnn_comm *comm, const struct dnn_comm_call *c,
                 struct dnn_comm_req *req, struct dnn_err *err)
{
    struct dnn_mpi *m = comm->impl;
    struct dnn_comm_opinfo *info = &req->info;

    info->seq = ++m->seq;
    info->verb = (int32_t)c->verb;
    info->root = c->root;
    info->count = c->count;
    snprintf(info->what, sizeof info->what, "%s", c->what == NULL ? "" : c->what);
    m->history[m->seq % DNN_MPI_HISTORY] = *info;
    dnn_mpi_peers_enter(&m->peers, info);
    int bad = issue(m, c, req);
    if (bad != MPI_SUCCESS) {
        char text[160];
        return dnn_mpi_fail(err, dnn_mpi_op_text(text, sizeof text, info), bad);
    }
    return 0;
}

const struct dnn_comm_kind dnn_comm_mpi = {
    .name = "mpi",
    .which = DNN_COMM_MPI,
    .open = open_mpi,
    .close = close_mpi,
    .start = start,
    .test = dnn_mpi_test,
    .wait = dnn_mpi_wait,
    .end = dnn_mpi_end,
};
