/* mpi.c - the communicator of a job that a launcher started: MPI.
 *
 * Operations run on a communicator of our own, so that libraries which use MPI too
 * cannot meet our messages, and MPI's errors come back to us as codes.  Nothing
 * blocks inside MPI but opening and closing, and those are watched by the clock.
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
    char words[MPI_MAX_ERROR_STRING + 1];
    int len = 0;

    if (MPI_Error_string(code, words, &len) != MPI_SUCCESS) len = 0;
    words[len] = '\0';
    return dnn_fail(err, DNN_ECOMM, "%s: MPI says: %s", doing,
                    len > 0 ? words : "an unknown error");
}

const char *dnn_mpi_op_text(char *out, size_t size, const struct dnn_comm_opinfo *n)
{
    const char *name = dnn_comm_verb_name((enum dnn_comm_verb)n->verb);

    if (n->seq == 0)
        snprintf(out, size, "the start");
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
    int up = 0, down = 0, level, bad = MPI_SUCCESS;

    MPI_Initialized(&up);
    MPI_Finalized(&down);
    if (down)
        return dnn_fail(err, DNN_ECOMM,
                        "MPI was closed in this process and cannot be opened again");
    if (!up) {
        bad = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
        if (bad != MPI_SUCCESS) return dnn_mpi_fail(err, "the start of MPI", bad);
        m->ours = true;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    bad = MPI_Comm_dup(MPI_COMM_WORLD, &m->work);
    if (bad == MPI_SUCCESS) bad = MPI_Comm_dup(MPI_COMM_WORLD, &m->roll);
    if (bad == MPI_SUCCESS) bad = MPI_Op_create(dnn_mpi_add_bf16, 1, &m->add_bf16);
    if (bad == MPI_SUCCESS) bad = MPI_Op_create(dnn_mpi_add_f16, 1, &m->add_f16);
    if (bad != MPI_SUCCESS) return dnn_mpi_fail(err, "the start of MPI", bad);
    MPI_Comm_set_errhandler(m->work, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(m->roll, MPI_ERRORS_RETURN);
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
        return dnn_mpi_fail(err, "exchanging host names", bad);
    }
    comm->host_text = all;
    dnn_comm_place(comm);
    return 0;
}

/* "Open MPI v5.0.7" out of a paragraph. */
static char *library_version(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING + 1];
    int len = 0;

    if (MPI_Get_library_version(text, &len) != MPI_SUCCESS) len = 0;
    text[len] = '\0';
    return dnn_strndup(text, strcspn(text, ",\n"));
}

/* From now on the death of a neighbour is noticed. */
static void watch_peers(struct dnn_comm *comm)
{
    struct dnn_mpi_peers *b = &((struct dnn_mpi *)comm->impl)->board;
    pid_t *pid = dnn_alloc(sizeof *pid * (size_t)b->n);

    for (int i = 0; i < b->n; i++)
        pid[i] = i == b->me ? 0 : dnn_mpi_peers_pid(b, i);
    dnn_watchdog_peers(comm->watch, pid, b->n);
    dnn_free(pid);
}

static void shut_mpi(struct dnn_mpi *m)
{
    if (m->add_f16 != MPI_OP_NULL) MPI_Op_free(&m->add_f16);
    if (m->add_bf16 != MPI_OP_NULL) MPI_Op_free(&m->add_bf16);
    if (m->roll != MPI_COMM_NULL) MPI_Comm_free(&m->roll);
    if (m->work != MPI_COMM_NULL) MPI_Comm_free(&m->work);
    if (m->ours) MPI_Finalize();
}

/* Hundreds of processes take their time to find each other, however short the
 * deadline for their later work. */
static double start_patience(const struct dnn_comm *comm)
{
    return comm->deadline > 30 ? comm->deadline : 30;
}

static int open_mpi(struct dnn_comm *comm, struct dnn_err *err)
{
    struct dnn_mpi *m = dnn_alloc(sizeof *m);

    m->work = m->roll = MPI_COMM_NULL;
    m->add_bf16 = m->add_f16 = MPI_OP_NULL;
    pthread_mutex_init(&m->board.lock, NULL);
    m->main_thread = gettid();
    comm->impl = m;
    dnn_mpi_end_prepare(); /* changes the environment: before there are threads */
    comm->watch =
        dnn_watchdog_make(&(struct dnn_watchdog_calls){.expired = dnn_mpi_expired,
                                                       .gone = dnn_mpi_gone,
                                                       .tick = dnn_mpi_tick,
                                                       .arg = comm});
    dnn_watchdog_arm(comm->watch, "the start of MPI", start_patience(comm));
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
        shut_mpi(m);
        dnn_watchdog_disarm(comm->watch);
        pthread_mutex_destroy(&m->board.lock);
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

    /* Everybody gets this far, or the deadline says who does not. */
    if (dnn_comm_barrier(comm, "closing", &err) < 0)
        dnn_log_all(DNN_ERROR, "comm", "closing: %s", err.text);
    atomic_store(&m->board.slot[m->board.me]->left, 1);
    dnn_watchdog_peers(comm->watch, NULL, 0);
    dnn_watchdog_arm(comm->watch, "the end of MPI", start_patience(comm));
    dnn_mpi_wait_close(comm);
    dnn_mpi_small_close(comm);
    dnn_mpi_peers_close(comm);
    shut_mpi(m);
    dnn_watchdog_disarm(comm->watch);
    pthread_mutex_destroy(&m->board.lock);
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
    case DNN_COMM_GATHERV:
        return MPI_Igatherv(c->in, n, MPI_BYTE, c->buf, c->counts, c->offs, MPI_BYTE,
                            c->root, m->work, out);
    default:
        return reduce(m, c, req);
    }
}

static int start(struct dnn_comm *comm, const struct dnn_comm_call *c,
                 struct dnn_comm_req *req, struct dnn_err *err)
{
    struct dnn_mpi *m = comm->impl;
    struct dnn_comm_opinfo *note = &req->note;

    note->seq = ++m->seq;
    note->verb = (int32_t)c->verb;
    note->root = c->root;
    /* Ranks give different amounts to a gather; all else must be the same. */
    note->count = c->verb == DNN_COMM_GATHERV ? 0 : c->count;
    snprintf(note->what, sizeof note->what, "%s", c->what == NULL ? "" : c->what);
    m->history[m->seq % DNN_MPI_HISTORY] = *note;
    dnn_mpi_peers_enter(&m->board, note);
    int bad = issue(m, c, req);
    if (bad != MPI_SUCCESS) {
        char text[160];
        return dnn_mpi_fail(err, dnn_mpi_op_text(text, sizeof text, note), bad);
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
