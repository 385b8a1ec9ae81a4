/* slurm_cases.h - environments of Slurm 24.11 and Open MPI 5.0, only the relevant
 * variables; NAME=value lines.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_SLURM_CASES_H
#define DNN_TESTS_SLURM_CASES_H

#include "slurm/slurm.h"

#include <string.h>

/* sbatch -N2 -n4, in the script itself. */
#define BATCH                                                                          \
    "ENVIRONMENT=BATCH\n"                                                              \
    "SLURMD_NODENAME=n1\n"                                                             \
    "SLURM_CLUSTER_NAME=site\n"                                                        \
    "SLURM_CPUS_ON_NODE=2\n"                                                           \
    "SLURM_JOB_END_TIME=1826329743\n"                                                  \
    "SLURM_JOB_ID=5\n"                                                                 \
    "SLURM_JOB_NAME=topo\n"                                                            \
    "SLURM_JOB_NODELIST=n[1-2]\n"                                                      \
    "SLURM_JOB_NUM_NODES=2\n"                                                          \
    "SLURM_JOB_PARTITION=batch\n"                                                      \
    "SLURM_LOCALID=0\n"                                                                \
    "SLURM_NODEID=0\n"                                                                 \
    "SLURM_NTASKS=4\n"                                                                 \
    "SLURM_PROCID=0\n"                                                                 \
    "SLURM_TASKS_PER_NODE=2(x2)\n"

/* Its srun, task 3 on the second node; more: variables of --mpi. */
#define STEP(more)                                                                     \
    "ENVIRONMENT=BATCH\n"                                                              \
    "SLURMD_NODENAME=n2\n"                                                             \
    "SLURM_CLUSTER_NAME=site\n"                                                        \
    "SLURM_CPUS_ON_NODE=2\n"                                                           \
    "SLURM_CPUS_PER_TASK=1\n"                                                          \
    "SLURM_CPU_BIND=quiet,mask_cpu:0x1,0x2\n"                                          \
    "SLURM_JOB_END_TIME=1826329743\n"                                                  \
    "SLURM_JOB_ID=5\n"                                                                 \
    "SLURM_JOB_NAME=topo\n"                                                            \
    "SLURM_JOB_NODELIST=n[1-2]\n"                                                      \
    "SLURM_JOB_NUM_NODES=2\n"                                                          \
    "SLURM_JOB_PARTITION=batch\n"                                                      \
    "SLURM_LOCALID=1\n"                                                                \
    "SLURM_NODEID=1\n"                                                                 \
    "SLURM_NTASKS=4\n"                                                                 \
    "SLURM_PROCID=3\n"                                                                 \
    "SLURM_STEP_ID=0\n"                                                                \
    "SLURM_STEP_NODELIST=n[1-2]\n"                                                     \
    "SLURM_STEP_NUM_NODES=2\n"                                                         \
    "SLURM_STEP_NUM_TASKS=4\n"                                                         \
    "SLURM_STEP_TASKS_PER_NODE=2(x2)\n"                                                \
    "SLURM_TASKS_PER_NODE=2(x2)\n" more

#define PMIX "PMIX_NAMESPACE=slurm.pmix.5.0\nPMIX_RANK=3\nSLURM_MPI_TYPE=pmix\n"
#define PMI2 "PMI_FD=17\nPMI_JOBID=5.0\nPMI_RANK=3\nPMI_SIZE=4\nSLURM_MPI_TYPE=pmi2\n"

/* Open MPI's mpirun -n 2, in any environment. */
#define MPIRUN                                                                         \
    "OMPI_COMM_WORLD_RANK=1\n"                                                         \
    "OMPI_COMM_WORLD_SIZE=2\n"                                                         \
    "PMIX_NAMESPACE=prterun-n1-74@1\n"                                                 \
    "PMIX_RANK=1\n"

/* salloc -N2 -n4, its shell on the login host. */
#define SALLOC                                                                         \
    "SLURM_CLUSTER_NAME=site\n"                                                        \
    "SLURM_JOB_ID=8\n"                                                                 \
    "SLURM_JOB_NAME=interactive\n"                                                     \
    "SLURM_JOB_NODELIST=n[1-2]\n"                                                      \
    "SLURM_JOB_NUM_NODES=2\n"                                                          \
    "SLURM_NTASKS=4\n"                                                                 \
    "SLURM_TASKS_PER_NODE=2(x2)\n"

/* sbatch -n1 from inside a task of another job's step of two: that step's
 * variables are still there. */
#define NESTED                                                                         \
    "SLURMD_NODENAME=n1\n"                                                             \
    "SLURM_JOB_ID=7\n"                                                                 \
    "SLURM_JOB_NODELIST=n1\n"                                                          \
    "SLURM_JOB_NUM_NODES=1\n"                                                          \
    "SLURM_LOCALID=0\n"                                                                \
    "SLURM_NODEID=0\n"                                                                 \
    "SLURM_NTASKS=1\n"                                                                 \
    "SLURM_PROCID=0\n"                                                                 \
    "SLURM_STEP_ID=0\n"                                                                \
    "SLURM_STEP_NODELIST=n1\n"                                                         \
    "SLURM_STEP_NUM_NODES=1\n"                                                         \
    "SLURM_STEP_NUM_TASKS=2\n"                                                         \
    "SLURM_STEP_TASKS_PER_NODE=2\n"                                                    \
    "SLURM_TASKS_PER_NODE=1\n"                                                         \
    "PMIX_NAMESPACE=slurm.pmix.6.0\n"                                                  \
    "PMIX_RANK=1\n"                                                                    \
    "SLURM_MPI_TYPE=pmix\n"

/* Look a name up in such lines.  Values are kept in a ring, enough for one
 * struct dnn_slurm. */
static inline const char *look_recorded(const void *arg, const char *name)
{
    static char ring[64][128];
    static int at;
    size_t len = strlen(name);

    for (const char *line = arg; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');

        if (strncmp(line, name, len) == 0 && line[len] == '=') {
            char *value = ring[at++ % 64];
            size_t n = (size_t)(end - line) - len - 1;

            memcpy(value, line + len + 1, n);
            value[n] = '\0';
            return value;
        }
        line = end + 1;
    }
    return NULL;
}

static inline struct dnn_env recorded(const char *lines)
{
    return (struct dnn_env){look_recorded, lines};
}

#endif
