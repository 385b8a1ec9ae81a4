/* session.c - the environment of this process: Slurm job, ranks, cores.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "session/session.h"

#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* The local part, which must run before MPI starts threads. */
static int read_environment(int threads, struct dnn_session *s, struct dnn_err *err)
{
    struct dnn_env env = dnn_slurm_env();

    DNN_TRY(dnn_slurm_read(env, &s->slurm, err));
    DNN_TRY(dnn_topo_open(&s->topo, err));
    return dnn_topo_make_request(s->topo, s->bind, threads, env, &s->slurm, &s->request,
                                 err);
}

static int check_launch(const struct dnn_session *s, struct dnn_err *err)
{
    bool mpi = strcmp(dnn_comm_kind(s->comm), "mpi") == 0;

    return dnn_slurm_check_launch(&s->slurm, s->size,
                                  mpi ? dnn_comm_version(s->comm) : NULL, err);
}

static int map_and_bind(struct dnn_session *s, struct dnn_err *err)
{
    DNN_TRY(dnn_topo_map(s->topo, s->requests, s->size, dnn_comm_rank(s->comm),
                         &s->place, err));
    return dnn_topo_bind(s->topo, s->bind, &s->place, &s->bound, err);
}

static int exchange(struct dnn_session *s, int rc, struct dnn_err *err)
{
    size_t n = (size_t)s->size;

    s->requests = dnn_alloc(n * sizeof *s->requests);
    s->places = dnn_alloc(n * sizeof *s->places);
    s->bounds = dnn_alloc(n * sizeof *s->bounds);
    if (rc == 0) rc = check_launch(s, err);
    DNN_TRY(dnn_comm_agree(s->comm, rc, err));
    DNN_TRY(dnn_comm_allgather(s->comm, "exchange of CPU masks", &s->request,
                               sizeof s->request, s->requests, err));
    rc = map_and_bind(s, err);
    DNN_TRY(dnn_comm_agree(s->comm, rc, err));
    DNN_TRY(dnn_comm_allgather(s->comm, "exchange of places", &s->place,
                               sizeof s->place, s->places, err));
    return dnn_comm_allgather(s->comm, "exchange of bindings", &s->bound,
                              sizeof s->bound, s->bounds, err);
}

int dnn_session_open(int threads, enum dnn_topo_policy bind, struct dnn_session *out,
                     struct dnn_err *err)
{
    struct dnn_err ignored = {0};

    *out = (struct dnn_session){.bind = bind};
    int first = read_environment(threads, out, err);
    int rc = dnn_comm_open(NULL, &out->comm, first < 0 ? &ignored : err);
    if (rc == 0) {
        out->size = dnn_comm_size(out->comm);
        rc = exchange(out, first, err);
    } else if (first < 0) {
        rc = first;
    }
    if (rc < 0) dnn_session_close(out);
    return rc;
}

static int pretend(int threads, struct dnn_session *s, struct dnn_err *err)
{
    size_t n = (size_t)s->size;

    s->requests = dnn_alloc(n * sizeof *s->requests);
    s->places = dnn_alloc(n * sizeof *s->places);
    s->bounds = dnn_alloc(n * sizeof *s->bounds);
    DNN_TRY(read_environment(threads, s, err));
    for (int r = 0; r < s->size; r++)
        s->requests[r] = s->request;
    for (int r = 0; r < s->size; r++)
        DNN_TRY(dnn_topo_map(s->topo, s->requests, s->size, r, &s->places[r], err));
    dnn_session_pretend_rank(s, 0);
    return 0;
}

int dnn_session_pretend(int threads, int size, struct dnn_session *out,
                        struct dnn_err *err)
{
    *out = (struct dnn_session){.bind = DNN_BIND_AUTO, .size = size};
    int rc = pretend(threads, out, err);
    if (rc < 0) dnn_session_close(out);
    return rc;
}

void dnn_session_pretend_rank(struct dnn_session *session, int rank)
{
    dnn_comm_close(session->comm);
    session->comm = dnn_comm_pretend(session->size, rank);
    session->place = session->places[rank];
}

void dnn_session_close(struct dnn_session *session)
{
    dnn_comm_close(session->comm);
    dnn_topo_close(session->topo);
    dnn_free(session->requests);
    dnn_free(session->places);
    dnn_free(session->bounds);
    *session = (struct dnn_session){0};
}

int dnn_session_report(const struct dnn_session *session)
{
    struct dnn_topo_report report = {0};

    dnn_topo_make_report(session->requests, session->places, session->size, &report);
    for (int i = 0; i < report.count; i++)
        dnn_log((enum dnn_level)report.note[i].level, "topo", "%s",
                report.note[i].text);
    int overlaps = report.overlaps;
    dnn_topo_free_report(&report);
    if (session->place.nnumas > 1)
        dnn_log(DNN_INFO, "topo",
                "the cores of rank 0 span %d NUMA domains; one rank per NUMA domain "
                "(mpirun -n, srun -n) is faster",
                session->place.nnumas);
    return overlaps;
}

double dnn_session_time_left(const struct dnn_session *session)
{
    if (session->slurm.where == DNN_SLURM_NONE || session->slurm.end_time <= 0)
        return INFINITY;
    return (double)session->slurm.end_time - (double)time(NULL);
}
