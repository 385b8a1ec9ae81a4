/* env.c - read the environment variables of Slurm, PMIx and mpirun.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "slurm/slurm.h"

#include "base/text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *get_real(const void *arg, const char *name)
{
    (void)arg;
    return getenv(name);
}

struct dnn_env dnn_slurm_env(void)
{
    return (struct dnn_env){get_real, NULL};
}

static const char *text(struct dnn_env env, const char *name)
{
    return env.get(env.arg, name);
}

/* The first of several variables that is set and not empty. */
static const char *first(struct dnn_env env, const char *const *names)
{
    for (; *names != NULL; names++) {
        const char *value = text(env, *names);

        if (value != NULL && *value != '\0') return value;
    }
    return NULL;
}

static int number(struct dnn_env env, const char *name, long min, long max, long absent,
                  long *out, struct dnn_err *err)
{
    const char *value = text(env, name);
    long long n;

    if (value == NULL || *value == '\0') {
        *out = absent;
        return 0;
    }
    if (!dnn_text_int(value, &n) || n < min || n > max)
        return dnn_fail(err, DNN_EUSAGE, "%s is \"%s\"; must be %ld to %ld", name,
                        value, min, max);
    *out = (long)n;
    return 0;
}

static int number_int(struct dnn_env env, const char *name, int min, int absent,
                      int *out, struct dnn_err *err)
{
    long n = 0;

    DNN_TRY(number(env, name, min, INT_MAX, absent, &n, err));
    *out = (int)n;
    return 0;
}

/* The last number of a normal step: greater ones are Slurm's special steps (batch
 * script, external step, interactive shell). */
static const long last_step = 0xffffffefL;

static int read_job(struct dnn_env env, struct dnn_slurm *s, struct dnn_err *err)
{
    long restarts;

    DNN_TRY(number(env, "SLURM_JOB_ID", 1, UINT_MAX, -1, &s->job, err));
    DNN_TRY(number(env, "SLURM_ARRAY_JOB_ID", 1, UINT_MAX, -1, &s->array_job, err));
    DNN_TRY(number(env, "SLURM_ARRAY_TASK_ID", 0, UINT_MAX, -1, &s->array_task, err));
    DNN_TRY(number(env, "SLURM_JOB_END_TIME", 0, LONG_MAX, -1, &s->end_time, err));
    DNN_TRY(number(env, "SLURM_RESTART_COUNT", 0, INT_MAX, 0, &restarts, err));
    s->restarts = (int)restarts;
    s->name = text(env, "SLURM_JOB_NAME");
    s->cluster = text(env, "SLURM_CLUSTER_NAME");
    s->partition = text(env, "SLURM_JOB_PARTITION");
    s->het = text(env, "SLURM_HET_SIZE") != NULL;
    return 0;
}

static int read_counts(struct dnn_env env, struct dnn_slurm *s, struct dnn_err *err)
{
    DNN_TRY(number_int(env, "SLURM_NTASKS", 1, -1, &s->ntasks, err));
    DNN_TRY(number_int(env, "SLURM_PROCID", 0, -1, &s->procid, err));
    DNN_TRY(number_int(env, "SLURM_LOCALID", 0, -1, &s->localid, err));
    DNN_TRY(number_int(env, "SLURM_NODEID", 0, -1, &s->nodeid, err));
    DNN_TRY(number_int(env, "SLURM_CPUS_PER_TASK", 1, -1, &s->cpus_per_task, err));
    DNN_TRY(number_int(env, "SLURM_CPUS_ON_NODE", 1, -1, &s->cpus_on_node, err));
    DNN_TRY(number_int(env, "SLURM_GPUS_ON_NODE", 0, -1, &s->gpus_on_node, err));
    s->node = text(env, "SLURMD_NODENAME");
    s->cpu_bind = text(env, "SLURM_CPU_BIND");
    s->gpus = first(env, (const char *[]){"SLURM_STEP_GPUS", "SLURM_JOB_GPUS", NULL});
    s->visible = text(env, "CUDA_VISIBLE_DEVICES");
    return 0;
}

/* A job submitted from a step of another job inherits that step's variables.  srun sets
 * the job's counts for its tasks, so if both differ, the step is of another job. */
static bool own_step(const struct dnn_slurm *s, int step_tasks)
{
    return s->step >= 0 && s->step <= last_step && s->procid >= 0 &&
           (s->ntasks < 0 || s->ntasks == step_tasks || s->het);
}

static int read_step(struct dnn_env env, struct dnn_slurm *s, struct dnn_err *err)
{
    int tasks;

    DNN_TRY(number(env, "SLURM_STEP_ID", 0, UINT_MAX, -1, &s->step, err));
    DNN_TRY(number_int(env, "SLURM_STEP_NUM_TASKS", 1, s->ntasks, &tasks, err));
    if (own_step(s, tasks)) {
        s->where = DNN_SLURM_STEP;
        s->ntasks = tasks;
    } else {
        /* Only the batch script has a task number (set by slurmd); salloc starts its
         * shell itself or as an interactive step. */
        bool shell = s->procid < 0 || s->step > last_step;

        s->where = shell ? DNN_SLURM_SHELL : DNN_SLURM_BATCH;
        s->step = -1;
    }
    bool step = s->where == DNN_SLURM_STEP;
    s->nodes = first(
        env, step ? (const char *[]){"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", NULL}
                  : (const char *[]){"SLURM_JOB_NODELIST", "SLURM_NODELIST", NULL});
    s->tasks_per_node =
        first(env, step ? (const char *[]){"SLURM_STEP_TASKS_PER_NODE",
                                           "SLURM_TASKS_PER_NODE", NULL}
                        : (const char *[]){"SLURM_TASKS_PER_NODE", NULL});
    return number_int(env, step ? "SLURM_STEP_NUM_NODES" : "SLURM_JOB_NUM_NODES", 1, -1,
                      &s->nnodes, err);
}

/* Whether Slurm's PMIx plugin is used for this step: its namespace is
 * slurm.pmix.JOB.STEP.  Variables may be inherited from another step. */
static bool has_slurm_pmix(const struct dnn_slurm *s)
{
    char own[64];

    snprintf(own, sizeof own, "slurm.pmix.%ld.%ld", s->job, s->step);
    return s->pmix_namespace != NULL && strcmp(s->pmix_namespace, own) == 0;
}

static int read_launch(struct dnn_env env, struct dnn_slurm *s, struct dnn_err *err)
{
    DNN_TRY(number_int(env, "PMIX_RANK", 0, -1, &s->pmix_rank, err));
    DNN_TRY(number_int(env, "OMPI_COMM_WORLD_SIZE", 1, -1, &s->world, err));
    s->pmix_namespace = text(env, "PMIX_NAMESPACE");

    bool foreign =
        s->pmix_namespace != NULL && strncmp(s->pmix_namespace, "slurm.pmix.", 11) != 0;
    bool hydra =
        text(env, "HYDI_CONTROL_FD") != NULL || text(env, "MPI_LOCALRANKID") != NULL;
    bool pmi = text(env, "PMI_RANK") != NULL || text(env, "PMI_FD") != NULL;

    if (s->world > 0 || foreign || hydra)
        s->launcher = DNN_LAUNCH_MPIRUN;
    else if (s->where == DNN_SLURM_STEP)
        s->launcher = DNN_LAUNCH_SRUN;
    else
        s->launcher = DNN_LAUNCH_DIRECT;
    if (s->where == DNN_SLURM_STEP)
        s->mpi = has_slurm_pmix(s) ? "pmix" : pmi ? "pmi2" : "none";
    return 0;
}

int dnn_slurm_read(struct dnn_env env, struct dnn_slurm *out, struct dnn_err *err)
{
    struct dnn_slurm s = {.step = -1, .nnodes = -1};

    DNN_TRY(read_job(env, &s, err));
    DNN_TRY(read_counts(env, &s, err));
    if (s.job >= 0) DNN_TRY(read_step(env, &s, err));
    DNN_TRY(read_launch(env, &s, err));
    *out = s;
    return 0;
}
