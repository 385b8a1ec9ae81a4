/* slurm_launch.c - messages about wrong launchers.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/log.h"
#include "tap.h"
#include "unit/slurm_cases.h"

#define OPENMPI "Open MPI v5.0.7, package: Debian OpenMPI"
#define SITE " (srun --mpi=list shows what this site has)"

static const struct {
    const char *what, *lines;
    int size;
    const char *library;
    enum dnn_slurm_verdict verdict;
    const char *text;
} cases[] = {
    {"a laptop",                                     "",                                                        1, NULL,                 DNN_LAUNCH_GOOD,  ""},
    {"mpirun on a laptop",                           MPIRUN,                                                    2, OPENMPI,              DNN_LAUNCH_GOOD,  ""},
    {"srun --mpi=pmix",                              STEP(PMIX),                                                4, OPENMPI,              DNN_LAUNCH_GOOD,  ""},
    {"srun --mpi=pmi2 with an MPI that supports it", STEP(PMI2),                                                4,
     "MPICH Version: 4.2",                                                                                                               DNN_LAUNCH_GOOD,  ""},
    {"srun --mpi=none",                              STEP(""),                                                  1, OPENMPI,              DNN_LAUNCH_WRONG,
     "MPI sees 1 rank but Slurm started 4 tasks: this srun used --mpi=none, Open MPI "
     "needs --mpi=pmix" SITE                                                                                                                                 },
    {"srun --mpi=none, MPI unknown",                 STEP(""),                                                  1, NULL,                 DNN_LAUNCH_WRONG,
     "MPI sees 1 rank but Slurm started 4 tasks: this srun used --mpi=none, MPI needs "
     "--mpi=pmix" SITE                                                                                                                                       },
    {"srun --mpi=pmi2",                              STEP(PMI2),                                                1, OPENMPI,              DNN_LAUNCH_WRONG,
     "MPI sees 1 rank but Slurm started 4 tasks: this srun used --mpi=pmi2, Open MPI "
     "needs --mpi=pmix" SITE                                                                                                                                 },
    {"MPICH without PMI",                            STEP(""),                                                  1, "MPICH Version: 4.2", DNN_LAUNCH_WRONG,
     "MPI sees 1 rank but Slurm started 4 tasks: this srun used --mpi=none, MPICH "
     "needs "
     "--mpi=pmi2" SITE                                                                                                                                       },
    {"PMIx that MPI does not support",               STEP(PMIX),                                                1, OPENMPI,              DNN_LAUNCH_WRONG,
     "MPI sees 1 rank but Slurm started 4 tasks: this srun used --mpi=pmix, which this "
     "Open MPI does not understand; it was built without it or for another "
     "version" SITE                                                                                                                                          },
    {"one task",
     "SLURM_JOB_ID=5\nSLURM_STEP_ID=0\nSLURM_PROCID=0\nSLURM_NTASKS=1\n"
     "SLURM_STEP_NUM_TASKS=1\n",                                                                                1, OPENMPI,              DNN_LAUNCH_GOOD,  ""},
    {"directly in the batch script",                 BATCH,                                                     1, NULL,                 DNN_LAUNCH_WRONG,
     "job 5 has 4 tasks, but this program was started directly in the batch script, as "
     "one process; start it with srun (srun -n1 for one process)"                                                                                            },
    {"mpirun in the batch script",                   BATCH MPIRUN,                                              2, OPENMPI,              DNN_LAUNCH_GOOD,  ""},
    {"mpirun in a step, as on its other nodes",      STEP(MPIRUN),                                              2, OPENMPI,
     DNN_LAUNCH_GOOD,                                                                                                                                      ""},
    {"another MPI's mpirun",                         BATCH MPIRUN,                                              1, "MPICH Version: 4.2", DNN_LAUNCH_WRONG,
     "MPI sees 1 rank but mpirun started 2: this program was built with another MPI "
     "than "
     "that mpirun belongs to; start it with srun or with its own mpirun"                                                                                     },
    {"a batch script with one task",
     "SLURM_JOB_ID=5\nSLURM_PROCID=0\nSLURM_NTASKS=1\nSLURM_JOB_NUM_NODES=1\n",                                 1, NULL,
     DNN_LAUNCH_GOOD,                                                                                                                                      ""},
    {"a batch script without --ntasks",
     "SLURM_JOB_ID=5\nSLURM_PROCID=0\nSLURM_JOB_NUM_NODES=1\n",                                                 1, NULL,
     DNN_LAUNCH_GOOD,                                                                                                                                      ""},
    {"... on two nodes",                             "SLURM_JOB_ID=5\nSLURM_PROCID=0\nSLURM_JOB_NUM_NODES=2\n", 1,
     NULL,                                                                                                                               DNN_LAUNCH_WARN,
     "job 5 has 2 nodes, but this program was started directly, as one process on one "
     "of "
     "them; start it with srun to use them all"                                                                                                              },
    {"salloc's shell",                               SALLOC,                                                    1, NULL,                 DNN_LAUNCH_WARN,
     "job 8 has 4 tasks, but this program was started directly in a shell, as one "
     "process; start it with srun (srun -n1 for one process)"                                                                                                },
    {"another job's leftovers",                      NESTED,                                                    1, OPENMPI,              DNN_LAUNCH_GOOD,  ""},
    {"a heterogeneous job",                          STEP(PMIX "SLURM_HET_SIZE=2\n"),                           6, OPENMPI,
     DNN_LAUNCH_GOOD,                                                                                                                                      ""},
    {"a heterogeneous job, launched wrong",          STEP("SLURM_HET_SIZE=2\n"),                                1, OPENMPI,
     DNN_LAUNCH_WRONG,                                                                                                                                     "MPI sees 1 rank but Slurm started 4 tasks: this srun used --mpi=none, Open MPI "
     "needs --mpi=pmix" SITE                                                                                                           },
};

int main(void)
{
    dnn_log_levels("error", NULL); /* no warnings in the output */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dnn_slurm s;
        struct dnn_err err = {0};
        char text[512];

        if (dnn_slurm_read(recorded(cases[i].lines), &s, &err) < 0) {
            ok(false, "%s: %s", cases[i].what, err.text);
            continue;
        }
        is_int(dnn_slurm_launch_verdict(&s, cases[i].size, cases[i].library, text,
                                        sizeof text),
               cases[i].verdict, cases[i].what);
        is_text(text, cases[i].text, "... and its message");
        is_int(dnn_slurm_check_launch(&s, cases[i].size, cases[i].library, &err),
               cases[i].verdict == DNN_LAUNCH_WRONG ? DNN_ECOMM : 0, "... as an error");
        is_text(err.text, cases[i].verdict == DNN_LAUNCH_WRONG ? cases[i].text : "",
                "... with the same message");
    }
    return done();
}
