/* dnn-bench.c - measure this machine.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/opt.h"
#include "bench/bench.h"
#include "topo/topo.h"

struct options {
    struct dnn_bench_topo topo;
};

#define AT(f) offsetof(struct options, f)
static const struct dnn_option topo_options[] = {
    {.name = "bind",
     .letter = 'b',
     .type = DNN_O_ENUM,
     .offset = AT(topo.bind),
     .arg = "POLICY",
     .def = "auto",
     .choices = dnn_topo_policies,
     .help = "auto divides shared cores and pins threads, inherit takes the mask as it "
             "is, off binds nothing"},
    {.name = "threads",
     .letter = 't',
     .type = DNN_O_INT,
     .offset = AT(topo.threads),
     .arg = "N",
     .def = "0",
     .max = DNN_TOPO_THREADS,
     .help = "threads per rank; 0: OMP_NUM_THREADS, else Slurm's --cpus-per-task, else "
             "one per core"},
    {.name = "json",
     .letter = 'j',
     .type = DNN_O_FLAG,
     .offset = AT(topo.json),
     .help = "print one JSON object instead of the table"},
    {.name = NULL},
};

static int run_topo(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    const struct options *o = opt;

    (void)nargs;
    (void)args;
    return dnn_bench_topo(&o->topo, stdout, err);
}

static const char topo_about[] =
    "Each rank keeps inside the CPUs it was granted by Slurm, mpirun or taskset.  "
    "Ranks "
    "with masks of their own stay in them; ranks that share one mask divide its cores "
    "evenly, along packages and NUMA nodes where that is possible.  Every OpenMP "
    "thread "
    "gets a core of its own; other hardware threads of that core stay free unless more "
    "threads than cores are asked for.  Memory is taken from the NUMA nodes of the "
    "cores, and each rank gets the nearest GPU that no other has.\n\n"
    "Rank 0 prints a line per rank: host, package, NUMA nodes, cores (numbered by "
    "locality), memory of those NUMA nodes and of the host, GPU (as the node numbers "
    "them), threads, and, read back from the system, the CPUs the process was bound to "
    "and how many of its threads sit where they should.  Overlapping masks and fewer "
    "cores than threads are reported on standard error.\n\n"
    "MPI that sees one rank where Slurm started several tasks ends with status 7 and "
    "the --mpi= that srun needs.";

static const struct dnn_command commands[] = {
    {.name = "topo",
     .operands = "",
     .help = "bind every rank to its cores and print who got what",
     .options = topo_options,
     .about = topo_about,
     .run = run_topo},
    {.run = NULL},
};

static const struct dnn_tool tool = {
    .name = "dnn-bench",
    .help = "measure this machine",
    .about = "Shows how ranks, threads, memory and GPUs meet the hardware they were "
             "given, alone, under srun or under mpirun.",
    .size = sizeof(struct options),
    .commands = commands,
    .environment =
        "OMP_NUM_THREADS\tthreads per rank, unless --threads is given\n"
        "CUDA_VISIBLE_DEVICES\tthe GPUs a rank may get, in this order\n"
        "DNN_DEADLINE\tseconds that ranks wait for each other, 600 by default\n"
        "DNN_LOG\thow much to say, as --log\n",
    .examples =
        "dnn-bench topo\tthis machine, one rank\n"
        "srun --mpi=pmix -n 4 dnn-bench topo\tfour ranks under Slurm\n"
        "srun --mpi=pmix -n 4 --cpu-bind=none dnn-bench topo\tlet us divide the cores\n"
        "mpirun -n 2 --bind-to none dnn-bench topo --threads 1 --json\tfor programs\n",
    .see_also = "dnn-cluster(1), srun(1), mpirun(1), hwloc(7)",
};

int main(int argc, char **argv)
{
    return dnn_opt_main(&tool, argc, argv);
}
