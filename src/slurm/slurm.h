/* slurm.h - which job, step, node and task this is.
 *
 * The only reader of SLURM_* and PMIX_* variables.  Everything is read through
 * a lookup function, so that recorded environments are test cases.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_SLURM_SLURM_H
#define DNN_SLURM_SLURM_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Where variables are looked up; look returns NULL for one that is not set. */
struct dnn_env {
    const char *(*get)(const void *arg, const char *name);
    const void *arg;
};

/* This process's own environment. */
struct dnn_env dnn_slurm_env(void);

enum dnn_slurm_where {
    DNN_SLURM_NONE,  /* not in a job                                         */
    DNN_SLURM_SHELL, /* in an allocation but no task of it: salloc's shell   */
    DNN_SLURM_BATCH, /* started directly by the batch script                 */
    DNN_SLURM_STEP   /* a task that srun started                             */
};

enum dnn_launcher {
    DNN_LAUNCH_DIRECT, /* by nobody: a shell, a script                      */
    DNN_LAUNCH_SRUN,   /* by srun; its tasks are the ranks                  */
    DNN_LAUNCH_MPIRUN  /* by mpirun or a relative, with its own count       */
};

/* What the environment says.  Texts are borrowed from it and NULL if absent;
 * numbers are -1 if absent, unless said otherwise. */
struct dnn_slurm {
    enum dnn_slurm_where where;
    enum dnn_launcher launcher;

    long job, array_job, array_task, step;
    const char *name, *cluster, *partition;
    int restarts;  /* how often the job was requeued; 0 if never        */
    long end_time; /* when the time limit strikes, in seconds since 1970 */
    bool het;      /* a heterogeneous job: counts are of one component  */

    const char *nodes; /* of the step, else of the job, as n[1-3]       */
    const char *node;  /* this one's name                               */
    int nnodes, nodeid;

    int ntasks, procid, localid; /* of the step, else as the job asked   */
    const char *tasks_per_node;  /* as 2(x3),1                           */
    int cpus_per_task, cpus_on_node;
    const char *cpu_bind; /* what srun bound tasks to, its own words     */

    const char *gpus; /* granted by Slurm, as 0,1                         */
    int gpus_on_node;
    const char *visible; /* CUDA_VISIBLE_DEVICES: "" means none           */

    const char *mpi; /* the --mpi= of this srun as far as one can tell:
                      * "pmix", "pmi2", "none"; NULL outside a step      */
    int pmix_rank;
    const char *pmix_namespace;
    int world; /* how many processes mpirun started                       */
};

/* Read an environment; env must outlive *out.  A variable with a value Slurm
 * cannot have written is DNN_EUSAGE. */
int dnn_slurm_read(struct dnn_env env, struct dnn_slurm *out, struct dnn_err *err);

enum dnn_slurm_verdict { DNN_LAUNCH_GOOD, DNN_LAUNCH_ODD, DNN_LAUNCH_WRONG };

/* Whether a program whose MPI sees size ranks was started as Slurm meant it.
 * library is what MPI calls itself ("Open MPI v5.0.7..."), or NULL.  text gets
 * one sentence of advice, or "" if all is good. */
enum dnn_slurm_verdict dnn_slurm_launch_verdict(const struct dnn_slurm *slurm, int size,
                                                const char *library, char *text,
                                                size_t len);

/* Local.  The same for a program: DNN_ECOMM if the launch was wrong, a warning
 * in the log if it is only odd. */
int dnn_slurm_check_launch(const struct dnn_slurm *slurm, int size, const char *library,
                           struct dnn_err *err);

/* More than any cluster has; longer lists are refused rather than expanded. */
enum { DNN_SLURM_MAX_NODES = 65536 };

struct dnn_slurm_nodes {
    int count;
    char **name; /* owned */
};

/* Expand a node list such as "n[1-3,7],gpu[001-010]-ib0".  The caller owns
 * what *out holds: dnn_slurm_free_nodes().  DNN_EUSAGE if it is malformed or
 * longer than DNN_SLURM_MAX_NODES. */
int dnn_slurm_expand_nodes(const char *list, struct dnn_slurm_nodes *out,
                           struct dnn_err *err);
void dnn_slurm_free_nodes(struct dnn_slurm_nodes *nodes);

/* Expand counts per node such as "2(x3),1" into an array of *count numbers
 * that the caller owns (dnn_free).  DNN_EUSAGE as above. */
int dnn_slurm_expand_tasks(const char *list, int **tasks, int *count,
                           struct dnn_err *err);

#endif
