/* mpi_wait.c - polling an operation against the deadline, and calling the roll.
 *
 * Shortly before the deadline a rank that still waits asks all others, on a
 * communicator kept for that, where they are.  Ranks that wait too look for such
 * questions and answer; who does not answer is missing.  An answer also tells of
 * neighbours that cannot speak for themselves, as far as the node's board shows.  Of
 * several that ask, the lowest goes on and the others leave it to that one, coming
 * back only if it does not end the job.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "comm/mpi_impl.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TAG = 1 };

/* Seconds.  Until SPIN we only test, until PATIENT (and longer for large operations,
 * which need us to move them) we let others have the core, then we sleep in between. */
#define SPIN 100e-6
#define PATIENT 1.0
#define BYTES_PER_SECOND 100e6
#define LISTEN_AFTER 0.25 /* before that, nobody can be asking about us */
#define GRACE 10.0        /* for answers; never more than half of the deadline */
#define DEFER 10.0        /* how much longer we wait for who asked to end the job */

/* A word on its way; MPI needs the memory until it has arrived. */
struct dnn_mpi_pending {
    struct dnn_mpi_pending *next;
    MPI_Request mpi;
    struct dnn_mpi_message word;
};

static double grace(const struct dnn_comm *comm)
{
    return comm->deadline / 2 < GRACE ? comm->deadline / 2 : GRACE;
}

static void post(struct dnn_mpi *m, int to, const struct dnn_mpi_message *word)
{
    struct dnn_mpi_pending *l = dnn_alloc(sizeof *l);

    l->word = *word;
    if (MPI_Isend(&l->word, sizeof l->word, MPI_BYTE, to, TAG, m->roll, &l->mpi) !=
        MPI_SUCCESS) {
        dnn_free(l); /* who cannot be reached will not answer */
        return;
    }
    l->next = m->sent;
    m->sent = l;
}

/* Release what has arrived. */
static void sweep(struct dnn_mpi *m)
{
    for (struct dnn_mpi_pending **p = &m->sent; *p != NULL;) {
        struct dnn_mpi_pending *l = *p;
        int gone = 0;

        if (MPI_Test(&l->mpi, &gone, MPI_STATUS_IGNORE) != MPI_SUCCESS) gone = 1;
        if (gone) {
            *p = l->next;
            dnn_free(l);
        } else {
            p = &l->next;
        }
    }
}

static void ask_all(struct dnn_comm *comm, struct dnn_comm_req *req)
{
    struct dnn_mpi *m = comm->impl;
    struct dnn_mpi_message word = {
        .kind = DNN_MPI_ASK, .about = comm->rank, .asked = req->note.seq};

    memset(m->answer, 0, sizeof *m->answer * (size_t)comm->size);
    for (int r = 0; r < comm->size; r++)
        if (r != comm->rank) post(m, r, &word);
}

/* Tell where we are, and where neighbours are that have not come as far as the
 * operation asked about and may be unable to say so. */
static void answer(struct dnn_comm *comm, const struct dnn_mpi_message *ask)
{
    struct dnn_mpi *m = comm->impl;

    for (int i = 0; i < m->board.n; i++) {
        struct dnn_mpi_message word = {.asked = ask->asked};
        const struct dnn_comm_opinfo *then = &m->history[ask->asked % DNN_MPI_HISTORY];

        if (m->board.rank[i] == ask->about) continue;
        dnn_mpi_peers_read(&m->board, i, &word);
        word.kind = i == m->board.me ? DNN_MPI_HERE : DNN_MPI_PEER;
        if (i == m->board.me && then->seq == ask->asked) word.then = *then;
        post(m, ask->about, &word);
    }
}

/* Take one word if there is one. */
static bool hear(struct dnn_comm *comm, struct dnn_mpi_message *word)
{
    struct dnn_mpi *m = comm->impl;
    MPI_Status from;
    int some = 0;

    if (MPI_Iprobe(MPI_ANY_SOURCE, TAG, m->roll, &some, &from) != MPI_SUCCESS || !some)
        return false;
    return MPI_Recv(word, sizeof *word, MPI_BYTE, from.MPI_SOURCE, TAG, m->roll,
                    MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

static void listen(struct dnn_comm_req *req, double now)
{
    struct dnn_comm *comm = req->comm;
    struct dnn_mpi *m = comm->impl;
    struct dnn_mpi_message word;

    while (hear(comm, &word)) {
        if (word.about < 0 || word.about >= comm->size) continue;
        if (word.kind == DNN_MPI_ASK) {
            answer(comm, &word);
            if (!req->called || word.about < comm->rank) {
                req->called = false;
                req->call_at = now + grace(comm) + DEFER;
            }
        } else if (req->called && word.asked == req->note.seq &&
                   (word.kind == DNN_MPI_HERE ||
                    m->answer[word.about].kind != DNN_MPI_HERE)) {
            m->answer[word.about] = word;
        }
    }
    sweep(m);
}

/* The answers are in: say it and end the job. */
static _Noreturn void judge(struct dnn_comm_req *req)
{
    struct dnn_comm *comm = req->comm;
    struct dnn_mpi *m = comm->impl;
    struct dnn_buf text = {0};

    for (int i = 0; i < m->board.n; i++) {
        struct dnn_mpi_message *a = &m->answer[m->board.rank[i]];

        if (i == m->board.me || a->kind == DNN_MPI_HERE) continue;
        dnn_mpi_peers_read(&m->board, i, a);
        a->kind = DNN_MPI_PEER;
    }
    dnn_mpi_timeout_text(comm, &req->note, &text);
    if (dnn_mpi_claim_report(comm)) dnn_comm_print("%s", text.text);
    dnn_buf_free(&text);
    dnn_mpi_end(comm, DNN_COMM_EXIT);
}

static void look_around(struct dnn_comm_req *req, double now)
{
    struct dnn_comm *comm = req->comm;
    struct dnn_mpi *m = comm->impl;

    if (atomic_load(&m->ending)) dnn_mpi_end(comm, DNN_COMM_EXIT);
    if (now - req->first < LISTEN_AFTER) return;
    listen(req, now);
    if (!req->called && now >= req->call_at) {
        ask_all(comm, req);
        req->called = true;
        req->judge_at = now + grace(comm);
    }
    if (req->called && now >= req->judge_at) judge(req);
}

/* The lowest rank asks first, if all came at the same time: fewer questions. */
static void begin(struct dnn_comm_req *req, double now)
{
    struct dnn_comm *comm = req->comm;
    double g = grace(comm), turn = 2e-3 * comm->rank;

    req->first = now;
    req->call_at = now + comm->deadline - g + (turn < g / 4 ? turn : g / 4);
}

/* Every rank has taken part in what cannot end without each of them. */
static void met(struct dnn_mpi *m, const struct dnn_comm_req *req)
{
    const struct dnn_comm_opinfo *n = &req->note;

    if (n->seq > m->met.seq && n->verb != DNN_COMM_BCAST && n->verb != DNN_COMM_GATHERV)
        m->met = *n;
}

static int fail(struct dnn_comm_req *req, int bad, struct dnn_err *err)
{
    char text[160];

    return dnn_mpi_fail(err, dnn_mpi_op_text(text, sizeof text, &req->note), bad);
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
        met(m, req);
    } else {
        double now = dnn_comm_now();

        if (req->first == 0) begin(req, now);
        look_around(req, now);
    }
    *finished = flag;
    return 0;
}

/* Let others run, less and less eager the longer it takes. */
static void rest(double waited, double patient)
{
    if (waited < patient)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = waited < 10 ? 100000 : 1000000}, NULL);
}

static int poll_it(struct dnn_comm_req *req, struct dnn_err *err)
{
    struct dnn_mpi *m = req->comm->impl;
    double patient = PATIENT + 8 * (double)req->note.count / BYTES_PER_SECOND;

    for (;;) {
        int flag = 0;

        /* Looking at the clock costs as much as a test: not every time. */
        for (int i = 0; i < 16 && !flag; i++) {
            int bad = test(req, &flag);
            if (bad != MPI_SUCCESS) return fail(req, bad, err);
        }
        if (flag) return 0;
        atomic_fetch_add_explicit(&m->polls, 1, memory_order_relaxed);
        double now = dnn_comm_now();
        if (req->first == 0) begin(req, now);
        look_around(req, now);
        if (now - req->first > SPIN) rest(now - req->first, patient);
    }
}

int dnn_mpi_wait(struct dnn_comm_req *req, struct dnn_err *err)
{
    struct dnn_mpi *m = req->comm->impl;

    dnn_mpi_peers_inside(&m->board, true);
    int rc = poll_it(req, err);
    dnn_mpi_peers_inside(&m->board, false);
    if (rc == 0) met(m, req);
    return rc;
}

void dnn_mpi_wait_close(struct dnn_comm *comm)
{
    struct dnn_mpi *m = comm->impl;
    struct dnn_mpi_message word;

    /* Questions that were settled by a late arrival: answers nobody needs. */
    while (hear(comm, &word))
        continue;
    sweep(m);
    while (m->sent != NULL) {
        struct dnn_mpi_pending *l = m->sent;

        m->sent = l->next;
        MPI_Cancel(&l->mpi);
        MPI_Wait(&l->mpi, MPI_STATUS_IGNORE);
        dnn_free(l);
    }
}
