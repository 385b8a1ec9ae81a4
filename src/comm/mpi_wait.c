/* mpi_wait.c - poll an operation until its deadline, then find the missing ranks.
 *
 * Shortly before the deadline a waiting rank queries the status of all others, on a
 * separate communicator.  Waiting ranks answer such queries; a rank that does not
 * answer is missing.  An answer also contains the status of peers on the same node,
 * which may be unable to answer.  If several ranks query, the lowest one continues; the
 * others wait, and continue only if it does not terminate the job.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/clock.h"
#include "base/mem.h"
#include "comm/mpi_impl.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TAG = 1 };

/* Seconds.  Until SPIN only test, until YIELD (longer for large operations, which
 * need our progress) yield the core, then sleep between tests. */
#define SPIN 100e-6
#define YIELD 1.0
#define BYTES_PER_SECOND 100e6
#define LISTEN_AFTER 0.25 /* no rank queries us before that */
#define GRACE 10.0        /* for answers; never more than half of the deadline */
#define DEFER 10.0        /* extra wait for the querying rank to terminate the job */

/* A message being sent. */
struct dnn_mpi_pending {
    struct dnn_mpi_pending *next;
    MPI_Request mpi;
    struct dnn_mpi_message message;
};

static double grace(const struct dnn_comm *comm)
{
    return comm->deadline / 2 < GRACE ? comm->deadline / 2 : GRACE;
}

static void post(struct dnn_mpi *m, int to, const struct dnn_mpi_message *message)
{
    struct dnn_mpi_pending *l = dnn_alloc(sizeof *l);

    l->message = *message;
    if (MPI_Isend(&l->message, sizeof l->message, MPI_BYTE, to, TAG, m->query,
                  &l->mpi) != MPI_SUCCESS) {
        dnn_free(l); /* without an answer the rank is reported as missing */
        return;
    }
    l->next = m->sent;
    m->sent = l;
}

/* Free messages that are sent. */
static void free_sent(struct dnn_mpi *m)
{
    for (struct dnn_mpi_pending **p = &m->sent; *p != NULL;) {
        struct dnn_mpi_pending *l = *p;
        int sent = 0;

        if (MPI_Test(&l->mpi, &sent, MPI_STATUS_IGNORE) != MPI_SUCCESS) sent = 1;
        if (sent) {
            *p = l->next;
            dnn_free(l);
        } else {
            p = &l->next;
        }
    }
}

static void query_all(struct dnn_comm *comm, struct dnn_comm_req *req)
{
    struct dnn_mpi *m = comm->impl;
    struct dnn_mpi_message message = {
        .kind = DNN_MPI_QUERY, .about = comm->rank, .query_seq = req->info.seq};

    memset(m->answer, 0, sizeof *m->answer * (size_t)comm->size);
    for (int r = 0; r < comm->size; r++)
        if (r != comm->rank) post(m, r, &message);
}

/* Send our status, and that of the peers on this node, which may be unable to answer.
 */
static void answer(struct dnn_comm *comm, const struct dnn_mpi_message *request)
{
    struct dnn_mpi *m = comm->impl;

    for (int i = 0; i < m->peers.n; i++) {
        struct dnn_mpi_message message = {.query_seq = request->query_seq};
        const struct dnn_comm_opinfo *queried_op =
            &m->history[request->query_seq % DNN_MPI_HISTORY];

        if (m->peers.rank[i] == request->about) continue;
        dnn_mpi_peers_read(&m->peers, i, &message);
        message.kind = i == m->peers.me ? DNN_MPI_SENDER : DNN_MPI_PEER;
        if (i == m->peers.me && queried_op->seq == request->query_seq)
            message.queried = *queried_op;
        post(m, request->about, &message);
    }
}

/* Receive a message, if there is one. */
static bool receive(struct dnn_comm *comm, struct dnn_mpi_message *message)
{
    struct dnn_mpi *m = comm->impl;
    MPI_Status from;
    int some = 0;

    if (MPI_Iprobe(MPI_ANY_SOURCE, TAG, m->query, &some, &from) != MPI_SUCCESS || !some)
        return false;
    return MPI_Recv(message, sizeof *message, MPI_BYTE, from.MPI_SOURCE, TAG, m->query,
                    MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

static void handle_messages(struct dnn_comm_req *req, double now)
{
    struct dnn_comm *comm = req->comm;
    struct dnn_mpi *m = comm->impl;
    struct dnn_mpi_message message;

    while (receive(comm, &message)) {
        if (message.about < 0 || message.about >= comm->size) continue;
        if (message.kind == DNN_MPI_QUERY) {
            answer(comm, &message);
            if (!req->queried || message.about < comm->rank) {
                req->queried = false;
                req->query_at = now + grace(comm) + DEFER;
            }
        } else if (req->queried && message.query_seq == req->info.seq &&
                   (message.kind == DNN_MPI_SENDER ||
                    m->answer[message.about].kind != DNN_MPI_SENDER)) {
            m->answer[message.about] = message;
        }
    }
    free_sent(m);
}

/* Print the message and terminate the job. */
static _Noreturn void time_out(struct dnn_comm_req *req)
{
    struct dnn_comm *comm = req->comm;
    struct dnn_mpi *m = comm->impl;
    struct dnn_buf text = {0};

    for (int i = 0; i < m->peers.n; i++) {
        struct dnn_mpi_message *a = &m->answer[m->peers.rank[i]];

        if (i == m->peers.me || a->kind == DNN_MPI_SENDER) continue;
        dnn_mpi_peers_read(&m->peers, i, a);
        a->kind = DNN_MPI_PEER;
    }
    dnn_mpi_timeout_text(comm, &req->info, &text);
    if (dnn_mpi_claim_report(comm)) dnn_comm_print("%s", text.text);
    dnn_buf_free(&text);
    dnn_mpi_end(comm, DNN_COMM_EXIT);
}

static void check_deadline(struct dnn_comm_req *req, double now)
{
    struct dnn_comm *comm = req->comm;
    struct dnn_mpi *m = comm->impl;

    if (atomic_load(&m->ending)) dnn_mpi_end(comm, DNN_COMM_EXIT);
    if (now - req->first < LISTEN_AFTER) return;
    handle_messages(req, now);
    if (!req->queried && now >= req->query_at) {
        query_all(comm, req);
        req->queried = true;
        req->report_at = now + grace(comm);
    }
    if (req->queried && now >= req->report_at) time_out(req);
}

/* The lowest rank queries first, to avoid queries of all ranks. */
static void start_deadline(struct dnn_comm_req *req, double now)
{
    struct dnn_comm *comm = req->comm;
    double g = grace(comm), turn = 2e-3 * comm->rank;

    req->first = now;
    req->query_at = now + comm->deadline - g + (turn < g / 4 ? turn : g / 4);
}

/* Record a finished operation that all ranks must have entered. */
static void record_common(struct dnn_mpi *m, const struct dnn_comm_req *req)
{
    const struct dnn_comm_opinfo *n = &req->info;

    if (n->seq > m->common.seq && n->verb != DNN_COMM_BCAST) m->common = *n;
}

static int fail(struct dnn_comm_req *req, int bad, struct dnn_err *err)
{
    char text[160];

    return dnn_mpi_fail(err, dnn_mpi_op_text(text, sizeof text, &req->info), bad);
}

static int test(struct dnn_comm_req *req, int *finished)
{
    return req->small != NULL ? dnn_mpi_small_test(req, finished)
                              : MPI_Test(&req->mpi, finished, MPI_STATUS_IGNORE);
}

int dnn_mpi_test(struct dnn_comm_req *req, bool *finished, struct dnn_err *err)
{
    struct dnn_mpi *m = req->comm->impl;
    int flag = 0;

    int bad = test(req, &flag);
    if (bad != MPI_SUCCESS) return fail(req, bad, err);
    if (flag) {
        record_common(m, req);
    } else {
        double now = dnn_clock_now();

        if (req->first == 0) start_deadline(req, now);
        check_deadline(req, now);
    }
    *finished = flag;
    return 0;
}

/* Yield at first, later sleep. */
static void yield_or_sleep(double waited, double yield_time)
{
    if (waited < yield_time)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = waited < 10 ? 100000 : 1000000}, NULL);
}

static int poll_until_finished(struct dnn_comm_req *req, struct dnn_err *err)
{
    struct dnn_mpi *m = req->comm->impl;
    double yield_time = YIELD + 8 * (double)req->info.count / BYTES_PER_SECOND;

    for (;;) {
        int flag = 0;

        /* Reading the clock costs as much as a test. */
        for (int i = 0; i < 16 && !flag; i++) {
            int bad = test(req, &flag);
            if (bad != MPI_SUCCESS) return fail(req, bad, err);
        }
        if (flag) return 0;
        atomic_fetch_add_explicit(&m->polls, 1, memory_order_relaxed);
        double now = dnn_clock_now();
        if (req->first == 0) start_deadline(req, now);
        check_deadline(req, now);
        if (now - req->first > SPIN) yield_or_sleep(now - req->first, yield_time);
    }
}

int dnn_mpi_wait(struct dnn_comm_req *req, struct dnn_err *err)
{
    struct dnn_mpi *m = req->comm->impl;

    dnn_mpi_peers_inside(&m->peers, true);
    int rc = poll_until_finished(req, err);
    dnn_mpi_peers_inside(&m->peers, false);
    if (rc == 0) record_common(m, req);
    return rc;
}

void dnn_mpi_wait_close(struct dnn_comm *comm)
{
    struct dnn_mpi *m = comm->impl;
    struct dnn_mpi_message message;

    /* Drop answers to old queries. */
    while (receive(comm, &message))
        continue;
    free_sent(m);
    while (m->sent != NULL) {
        struct dnn_mpi_pending *l = m->sent;

        m->sent = l->next;
        MPI_Cancel(&l->mpi);
        MPI_Wait(&l->mpi, MPI_STATUS_IGNORE);
        dnn_free(l);
    }
}
