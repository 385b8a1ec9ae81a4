/* comms.c - the kinds of communicators, and which one to open.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "comm/comm_impl.h"

#include <stdlib.h>

static const struct dnn_comm_kind *const kinds[] = {&dnn_comm_self, &dnn_comm_mpi};
enum { NKINDS = sizeof kinds / sizeof kinds[0] };

#define DEFAULT_DEADLINE 600.0
#define MAX_DEADLINE 1e7

/* Set by MPI launchers: PMIx (Open MPI's mpirun, srun --mpi=pmix), older mpiruns, PMI
 * (MPICH, srun --mpi=pmi2).  srun without them is detected by dnn_slurm_check_launch().
 */
static bool started_by_mpi(void)
{
    static const char *const names[] = {"PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",
                                        "PMI_ID", NULL};

    for (int i = 0; names[i] != NULL; i++)
        if (getenv(names[i]) != NULL) return true;
    return false;
}

/* NULL: unknown. */
static const struct dnn_comm_kind *find_kind(int which)
{
    if (which == DNN_COMM_AUTO) which = started_by_mpi() ? DNN_COMM_MPI : DNN_COMM_SELF;
    for (int i = 0; i < NKINDS; i++)
        if (kinds[i]->which == which) return kinds[i];
    return NULL;
}

static int find_deadline(double requested, double *out, struct dnn_err *err)
{
    const char *env = getenv("DNN_DEADLINE");

    *out = requested != 0 ? requested : DEFAULT_DEADLINE;
    if (env != NULL && env[0] != '\0' &&
        (!dnn_text_real(env, out) || !(*out >= 1 && *out <= MAX_DEADLINE)))
        return dnn_fail(err, DNN_EUSAGE,
                        "DNN_DEADLINE: must be a number of seconds between 1 and %.0f, "
                        "not \"%s\"",
                        MAX_DEADLINE, env);
    if (!(*out >= 1 && *out <= MAX_DEADLINE))
        return dnn_fail(err, DNN_EUSAGE,
                        "deadline: must be between 1 and %.0f seconds, not %g",
                        MAX_DEADLINE, *out);
    return 0;
}

static void release(struct dnn_comm *comm)
{
    dnn_watchdog_free(comm->watch);
    dnn_free(comm->version);
    dnn_free(comm->host_text);
    dnn_free(comm->node);
    dnn_free(comm);
}

int dnn_comm_open(const struct dnn_comm_cfg *cfg, struct dnn_comm **out,
                  struct dnn_err *err)
{
    static const struct dnn_comm_cfg none;
    double deadline;

    if (cfg == NULL) cfg = &none;
    const struct dnn_comm_kind *kind = find_kind(cfg->kind);
    if (kind == NULL)
        return dnn_fail(err, DNN_EUSAGE, "comm: unknown kind %d", cfg->kind);
    DNN_TRY(find_deadline(cfg->deadline, &deadline, err));

    struct dnn_comm *comm = dnn_alloc(sizeof *comm);
    comm->kind = kind;
    comm->deadline = deadline;
    comm->size = 1;
    int rc = kind->open(comm, err);
    if (rc < 0) {
        release(comm);
        return rc;
    }
    dnn_log_rank(comm->rank, comm->size, dnn_comm_host(comm, comm->rank));
    *out = comm;
    return 0;
}

void dnn_comm_close(struct dnn_comm *comm)
{
    if (comm == NULL) return;
    if (comm->running > 0)
        dnn_log_all(DNN_WARN, "comm", "%d operations were started but not finished",
                    comm->running);
    comm->kind->close(comm);
    release(comm);
}
