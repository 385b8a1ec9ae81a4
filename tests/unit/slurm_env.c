/* slurm_env.c - reading recorded environments.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"
#include "unit/slurm_cases.h"

static struct dnn_slurm slurm_of(const char *lines)
{
    struct dnn_slurm s = {0};
    struct dnn_err err = {0};

    if (dnn_slurm_read(recorded(lines), &s, &err) < 0) ok(false, "%s", err.text);
    return s;
}

static void test_none(void)
{
    struct dnn_slurm s = slurm_of("");

    is_int(s.where, DNN_SLURM_NONE, "no Slurm");
    is_int(s.launcher, DNN_LAUNCH_DIRECT, "... and no launcher");
    is_int(s.job, -1, "... no job");
    is_int(s.ntasks, -1, "... no tasks");
    is_int(s.restarts, 0, "... never restarted");
    is_int(s.nnodes, -1, "... no nodes");
    ok(s.nodes == NULL && s.mpi == NULL && s.visible == NULL, "... no texts");
    s = slurm_of(MPIRUN);
    is_int(s.launcher, DNN_LAUNCH_MPIRUN, "mpirun on a laptop");
    is_int(s.world, 2, "... started two");
    is_int(s.pmix_rank, 1, "... this is the second");
}

static void test_batch(void)
{
    struct dnn_slurm s = slurm_of(BATCH);

    is_int(s.where, DNN_SLURM_BATCH, "a batch script");
    is_int(s.job, 5, "... its job");
    is_int(s.step, -1, "... no step");
    is_text(s.name, "topo", "... its name");
    is_text(s.cluster, "site", "... cluster");
    is_text(s.partition, "batch", "... partition");
    is_text(s.node, "n1", "... node");
    is_text(s.nodes, "n[1-2]", "... nodes");
    is_int(s.nnodes, 2, "... how many");
    is_int(s.ntasks, 4, "... tasks");
    is_int(s.end_time, 1826329743, "... end");
    is_text(s.mpi, NULL, "... no srun");
    s = slurm_of(BATCH "SLURM_RESTART_COUNT=2\nSLURM_ARRAY_JOB_ID=4\n"
                       "SLURM_ARRAY_TASK_ID=7\n");
    is_int(s.restarts, 2, "a requeued job");
    is_int(s.array_job, 4, "an array's job");
    is_int(s.array_task, 7, "an array's task");
    s = slurm_of(BATCH MPIRUN);
    is_int(s.where, DNN_SLURM_BATCH, "mpirun in a batch script");
    is_int(s.launcher, DNN_LAUNCH_MPIRUN, "... is the launcher");
    s = slurm_of(BATCH "SLURM_JOB_GPUS=0,3\nSLURM_GPUS_ON_NODE=2\n"
                       "CUDA_VISIBLE_DEVICES=0,1\n");
    is_text(s.gpus, "0,3", "GPUs of the job");
    is_int(s.gpus_on_node, 2, "... how many");
    is_text(s.visible, "0,1", "... as CUDA sees them");
}

static void test_step(void)
{
    struct dnn_slurm s = slurm_of(STEP(PMIX));

    is_int(s.where, DNN_SLURM_STEP, "a task");
    is_int(s.launcher, DNN_LAUNCH_SRUN, "... of srun");
    is_int(s.step, 0, "... its step");
    is_int(s.procid, 3, "... number");
    is_int(s.localid, 1, "... on its node");
    is_int(s.nodeid, 1, "... which is");
    is_int(s.nnodes, 2, "... one of");
    is_int(s.cpus_per_task, 1, "... CPUs per task");
    is_text(s.tasks_per_node, "2(x2)", "... tasks per node");
    is_text(s.cpu_bind, "quiet,mask_cpu:0x1,0x2", "... binding");
    is_text(s.mpi, "pmix", "... PMIx");
    is_text(s.pmix_namespace, "slurm.pmix.5.0", "... its name");
    is_text(slurm_of(STEP(PMI2)).mpi, "pmi2", "PMI-2");
    is_text(slurm_of(STEP("")).mpi, "none", "nothing");
    is_text(slurm_of(STEP("PMIX_NAMESPACE=slurm.pmix.4.0\nPMIX_RANK=0\n")).mpi, "none",
            "PMIx of another launcher does not count");
    s = slurm_of(STEP(PMI2 "MPI_LOCALRANKID=0\n"));
    is_int(s.launcher, DNN_LAUNCH_MPIRUN, "Hydra's mpiexec in a step");
}

static void test_other(void)
{
    struct dnn_slurm s = slurm_of(SALLOC);

    is_int(s.where, DNN_SLURM_SHELL, "salloc's shell");
    is_int(s.ntasks, 4, "... tasks of the job");
    s = slurm_of(BATCH "SLURM_STEP_ID=4294967290\nSLURM_STEP_NUM_TASKS=1\n");
    is_int(s.where, DNN_SLURM_SHELL, "an interactive step is a shell too");
    is_int(s.step, -1, "... and no step of its own");
    s = slurm_of(NESTED);
    is_int(s.where, DNN_SLURM_BATCH,
           "a batch script with another job's step variables");
    is_int(s.ntasks, 1, "... has its own count");
    is_int(s.step, -1, "... and no step");
    is_text(s.nodes, "n1", "... and its own nodes");
    is_text(s.tasks_per_node, "1", "... and tasks");
}

static void is_wrong(const char *lines, const char *want)
{
    struct dnn_slurm s;
    struct dnn_err err = {0};

    is_int(dnn_slurm_read(recorded(lines), &s, &err), DNN_EUSAGE, "refused");
    is_text(err.text, want, "... with a reason");
}

static void test_wrong(void)
{
    is_wrong("SLURM_JOB_ID=five\n",
             "SLURM_JOB_ID is \"five\"; must be 1 to 4294967295");
    is_wrong("SLURM_JOB_ID=5\nSLURM_NTASKS=0\n", "SLURM_NTASKS is \"0\"; must be 1 to "
                                                 "2147483647");
    is_wrong("SLURM_PROCID=-1\n", "SLURM_PROCID is \"-1\"; must be 0 to 2147483647");
    is_wrong("PMIX_RANK=3x\n", "PMIX_RANK is \"3x\"; must be 0 to 2147483647");
    is_int(slurm_of("SLURM_JOB_ID=\n").where, DNN_SLURM_NONE,
           "an empty variable is none");
}

int main(void)
{
    test_none();
    test_batch();
    test_step();
    test_other();
    test_wrong();
    return done();
}
