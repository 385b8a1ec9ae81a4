/* slurm.h - the Slurm job, step, node and task of this process.
 *
 * SLURM_* and PMIX_* variables are read only here, through a lookup function, so that
 * tests can use recorded environments.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_SLURM_SLURM_H
#define DNN_SLURM_SLURM_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* An environment; get returns NULL for a variable that is not set. */
struct dnn_env {
    const char *(*get)(const void *arg, const char *name);
    const void *arg;
};

/* The environment of this process. */
struct dnn_env dnn_slurm_env(void);

enum dnn_slurm_where {
    DNN_SLURM_NONE,  /* not in a job                                         */
    DNN_SLURM_SHELL, /* in an allocation, but not a task: salloc's shell     */
    DNN_SLURM_BATCH, /* started directly by the batch script                 */
    DNN_SLURM_STEP   /* a task started by srun                               */
};

enum dnn_launcher {
    DNN_LAUNCH_DIRECT, /* from a shell or script                            */
    DNN_LAUNCH_SRUN,   /* by srun; its tasks are the ranks                  */
    DNN_LAUNCH_MPIRUN  /* by mpirun or mpiexec, with its own count of ranks */
};

/* Content of the environment.  Texts are borrowed and NULL if absent; numbers are -1 if
 * absent, unless noted. */
struct dnn_slurm {
    enum dnn_slurm_where where;
    enum dnn_launcher launcher;

    long job, array_job, array_task, step;
    const char *name, *cluster, *partition;
    int restarts;  /* how many times the job was requeued; 0 if absent  */
    long end_time; /* time limit of the job, in seconds since 1970      */
    bool het;      /* a heterogeneous job: counts are of one component  */

    const char *nodes; /* of the step, else of the job: "n[1-3]"        */
    const char *node;  /* name of this node                             */
    int nnodes, nodeid;

    int ntasks, procid, localid; /* ntasks: of the step, else of the job */
    const char *tasks_per_node;  /* "2(x3),1"                            */
    int cpus_per_task, cpus_on_node;
    const char *cpu_bind; /* SLURM_CPU_BIND                              */

    const char *gpus; /* granted by Slurm: "0,1"                          */
    int gpus_on_node;
    const char *visible; /* CUDA_VISIBLE_DEVICES: "" means none           */

    const char *mpi; /* the probable --mpi= of this srun: "pmix", "pmi2",
                      * "none"; NULL outside a step                      */
    int pmix_rank;
    const char *pmix_namespace;
    int world; /* number of processes started by mpirun                   */
};

/* Read an environment; env must outlive *out.  A variable with an invalid value is
 * DNN_EUSAGE. */
int dnn_slurm_read(struct dnn_env env, struct dnn_slurm *out, struct dnn_err *err);

enum dnn_slurm_verdict { DNN_LAUNCH_GOOD, DNN_LAUNCH_WARN, DNN_LAUNCH_WRONG };

/* Whether a program whose MPI has size ranks was started correctly.
 * library is the version text of MPI ("Open MPI v5.0.7..."), or NULL.  text becomes
 * a message with the correction, or "" if the start is correct. */
enum dnn_slurm_verdict dnn_slurm_launch_verdict(const struct dnn_slurm *slurm, int size,
                                                const char *library, char *text,
                                                size_t len);

/* Local.  Check the start of this program: DNN_ECOMM if it was wrong, a logged warning
 * if it was probably wrong. */
int dnn_slurm_check_launch(const struct dnn_slurm *slurm, int size, const char *library,
                           struct dnn_err *err);

#endif
