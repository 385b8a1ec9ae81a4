/* launch.c - check that the program was started correctly under Slurm.
 *
 * A common mistake: srun with a wrong --mpi= starts N independent programs with one
 * rank each.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "slurm/slurm.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>

static bool begins(const char *text, const char *with)
{
    return text != NULL && strncmp(text, with, strlen(with)) == 0;
}

/* MPI libraries: version text, name, and the --mpi= they need. */
struct library {
    const char *begins, *name, *mpi;
};

static const struct library *library_of(const char *library)
{
    static const struct library known[] = {
        {"Open MPI",     "Open MPI",  "pmix"},
        {"MPICH",        "MPICH",     "pmi2"},
        {"Intel(R) MPI", "Intel MPI", "pmi2"},
        {"MVAPICH",      "MVAPICH",   "pmi2"},
    };
    static const struct library other = {"", "MPI", "pmix"};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (begins(library, known[i].begins)) return &known[i];
    return &other;
}

static void describe_wrong_mpi(const struct dnn_slurm *s, int size, const char *library,
                               char *text, size_t len)
{
    const struct library *mpi = library_of(library);
    const char *list = "(srun --mpi=list shows what this site has)";
    int at = snprintf(text, len,
                      "MPI sees %d rank%s but Slurm started %d task%s: this srun used "
                      "--mpi=%s, ",
                      size, size == 1 ? "" : "s", s->ntasks, s->ntasks == 1 ? "" : "s",
                      s->mpi);

    if (at < 0 || (size_t)at >= len) return;
    if (strcmp(s->mpi, mpi->mpi) != 0)
        snprintf(text + at, len - (size_t)at, "%s needs --mpi=%s %s", mpi->name,
                 mpi->mpi, list);
    else
        snprintf(text + at, len - (size_t)at,
                 "which this %s does not understand; it was built without it or for "
                 "another version %s",
                 mpi->name, list);
}

/* With mpirun the number of ranks is mpirun's, also inside an allocation. */
static enum dnn_slurm_verdict check_mpirun(const struct dnn_slurm *s, int size,
                                           char *text, size_t len)
{
    if (s->world <= 0 || s->world == size) return DNN_LAUNCH_GOOD;
    snprintf(text, len,
             "MPI sees %d rank%s but mpirun started %d: this program was built with "
             "another MPI than that mpirun belongs to; start it with srun or with its "
             "own mpirun",
             size, size == 1 ? "" : "s", s->world);
    return DNN_LAUNCH_WRONG;
}

/* A single process, although the job has several tasks. */
static enum dnn_slurm_verdict check_direct(const struct dnn_slurm *s, char *text,
                                           size_t len)
{
    bool batch = s->where == DNN_SLURM_BATCH;

    if (s->ntasks > 1) {
        snprintf(text, len,
                 "job %ld has %d tasks, but this program was started directly %s, as "
                 "one process; start it with srun (srun -n1 for one process)",
                 s->job, s->ntasks, batch ? "in the batch script" : "in a shell");
        return batch ? DNN_LAUNCH_WRONG : DNN_LAUNCH_WARN;
    }
    if (s->ntasks < 0 && s->nnodes > 1) {
        snprintf(text, len,
                 "job %ld has %d nodes, but this program was started directly, as one "
                 "process on one of them; start it with srun to use them all",
                 s->job, s->nnodes);
        return DNN_LAUNCH_WARN;
    }
    return DNN_LAUNCH_GOOD;
}

enum dnn_slurm_verdict dnn_slurm_launch_verdict(const struct dnn_slurm *slurm, int size,
                                                const char *library, char *text,
                                                size_t len)
{
    if (len > 0) text[0] = '\0';
    if (slurm->launcher == DNN_LAUNCH_MPIRUN)
        return check_mpirun(slurm, size, text, len);
    if (slurm->where == DNN_SLURM_NONE) return DNN_LAUNCH_GOOD;
    if (slurm->where != DNN_SLURM_STEP)
        return size == 1 ? check_direct(slurm, text, len) : DNN_LAUNCH_GOOD;

    /* In a heterogeneous job Slurm counts one component, and MPI may have the ranks of
     * all: only a single rank is certainly wrong. */
    if (size == slurm->ntasks || slurm->ntasks < 0 || (slurm->het && size > 1))
        return DNN_LAUNCH_GOOD;
    describe_wrong_mpi(slurm, size, library, text, len);
    return DNN_LAUNCH_WRONG;
}

int dnn_slurm_check_launch(const struct dnn_slurm *slurm, int size, const char *library,
                           struct dnn_err *err)
{
    char text[512];

    switch (dnn_slurm_launch_verdict(slurm, size, library, text, sizeof text)) {
    case DNN_LAUNCH_GOOD:
        break;
    case DNN_LAUNCH_WARN:
        dnn_log(DNN_WARN, "slurm", "%s", text);
        break;
    case DNN_LAUNCH_WRONG:
        return dnn_fail(err, DNN_ECOMM, "%s", text);
    }
    return 0;
}
