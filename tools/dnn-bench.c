/* dnn-bench.c - measure this machine.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/backend.h"
#include "base/opt.h"
#include "bench/bench.h"
#include "config/job.h"
#include "run/model.h"
#include "dnn-bench.h"
#include "topo/topo.h"

#include <assert.h>
#include <string.h>

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

/* ---- step ---- */

static const struct dnn_choice choosing[] = {
    {"autotune",  DNN_KERNELS_AUTOTUNE },
    {"heuristic", DNN_KERNELS_HEURISTIC},
    {NULL,        0                    }
};

static const struct dnn_choice optimizers[] = {
    {"sgd",  DNN_UPDATE_SGD },
    {"adam", DNN_UPDATE_ADAM},
    {NULL,   0              }
};

/* Numbers of the zoo's networks follow these: see add_zoo(). */
static struct dnn_option step_options[40] = {
    {.name = "model",
     .letter = 'm',
     .type = DNN_O_TEXT,
     .offset = AT(step.zoo.zoo),
     .arg = "NAME",
     .help = "a network of the zoo: unet3d, resnet50..."},
    {.name = "layers",
     .letter = 'l',
     .type = DNN_O_TEXT,
     .offset = AT(step.layers),
     .arg = "FILE",
     .help = "a network from a Keras JSON file instead"},
    {.name = "size",
     .letter = 's',
     .type = DNN_O_TEXT,
     .offset = AT(step.size),
     .arg = "N|DxHxW",
     .help = "extents of space of the data; the network's own by default"},
    {.name = "channels",
     .type = DNN_O_INT,
     .offset = AT(step.channels),
     .arg = "N",
     .def = "0",
     .max = 1e6,
     .help = "channels of the data; 0: the network's own"},
    {.name = "batch",
     .letter = 'b',
     .type = DNN_O_INT,
     .offset = AT(step.batch),
     .arg = "N",
     .def = "1",
     .min = 1,
     .max = 1e6,
     .help = "samples per step"},
    {.name = "loss",
     .type = DNN_O_ENUM,
     .offset = AT(step.loss),
     .arg = "LOSS",
     .def = "mse",
     .choices = dnn_loss_names,
     .help = "what training makes small"},
    {.name = "optimizer",
     .type = DNN_O_ENUM,
     .offset = AT(step.optimizer),
     .arg = "RULE",
     .def = "adam",
     .choices = optimizers,
     .help = "how weights follow their gradients"},
    {.name = "recompute",
     .type = DNN_O_ENUM,
     .offset = AT(step.recompute),
     .arg = "HOW",
     .def = "cheap",
     .choices = dnn_job_recomputes,
     .help = "compute activations again instead of keeping them: what is cheap, as the "
             "memory limit demands, all that helps (true), or nothing (false)"},
    {.name = "memory-limit",
     .type = DNN_O_TEXT,
     .offset = AT(step.limit),
     .arg = "SIZE",
     .help = "memory to take at most, as 16GiB; what the system has by default"},
    {.name = "threads",
     .letter = 't',
     .type = DNN_O_INT,
     .offset = AT(step.threads),
     .arg = "N",
     .def = "0",
     .max = DNN_TOPO_THREADS,
     .help = "threads; 0: OMP_NUM_THREADS, else one per CPU"},
    {.name = "reps",
     .letter = 'r',
     .type = DNN_O_INT,
     .offset = AT(step.reps),
     .arg = "N",
     .def = "5",
     .min = 1,
     .max = 10000,
     .help = "steps whose median is printed"},
    {.name = "backend",
     .type = DNN_O_TEXT,
     .offset = AT(step.backend),
     .arg = "NAME",
     .help = "what computes: cpu or ref; the fastest that is built by default"},
    {.name = "kernels",
     .type = DNN_O_ENUM,
     .offset = AT(step.kernels),
     .arg = "HOW",
     .def = "autotune",
     .choices = choosing,
     .help = "kernels by measuring them first, or by rule"},
    {.name = "cache",
     .type = DNN_O_TEXT,
     .offset = AT(step.cache),
     .arg = "FILE",
     .help = "keep measured choices of kernels there; by default they are measured "
             "every time"},
    {.name = "fuse",
     .type = DNN_O_FLAG,
     .offset = AT(step.fuse),
     .def = "true",
     .help = "let one kernel do several ops"},
    {.name = "against",
     .letter = 'a',
     .type = DNN_O_ENUM,
     .offset = AT(step.against),
     .arg = "WHOM",
     .def = "nobody",
     .choices = dnn_bench_rivals,
     .help = "compare with the same network in PyTorch, step by step in turns"},
    {.name = "rows",
     .type = DNN_O_INT,
     .offset = AT(step.rows),
     .arg = "N",
     .def = "12",
     .max = 1e6,
     .help = "layers in the table of where the time goes"},
    {.name = "json",
     .letter = 'j',
     .type = DNN_O_FLAG,
     .offset = AT(step.json),
     .help = "print one JSON object instead of tables"},
    {.name = NULL},
};

/* The parameters of the zoo's networks as options, from the table that reads them
 * in a job.  --size and --channels stand for its input. */
static void add_zoo(struct dnn_option *options, size_t room)
{
    size_t n = 0;

    static_assert(sizeof(long) == sizeof(int64_t), "options and fields agree");
    while (options[n].name != NULL)
        n++;
    for (const struct dnn_field *f = dnn_zoo_fields; f->key != NULL; f++) {
        if (strcmp(f->key, "zoo") == 0 || f->type == DNN_F_INTS) continue;
        assert(n + 1 < room);
        options[n++] = (struct dnn_option){.name = f->key,
                                           .type = f->type == DNN_F_INT    ? DNN_O_INT
                                                   : f->type == DNN_F_REAL ? DNN_O_REAL
                                                                           : DNN_O_ENUM,
                                           .offset = AT(step.zoo) + f->offset,
                                           .arg = f->type == DNN_F_INT    ? "N"
                                                  : f->type == DNN_F_REAL ? "X"
                                                                          : "WORD",
                                           .def = f->def,
                                           .min = f->min,
                                           .max = f->max,
                                           .choices = f->choices,
                                           .help = f->help};
    }
    (void)room;
}

static int run_step(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    const struct options *o = opt;

    (void)nargs;
    (void)args;
    return dnn_bench_step(&o->step, stdout, err);
}

static const char step_about[] =
    "Makes a network ready for training and for inference, one after the other, fills "
    "it with random numbers and times whole steps.  Printed are the median time; "
    "floating-point operations per second, counting two for every multiplication of "
    "convolutions and matrix products, and what part they are of the speed of "
    "OpenBLAS's sgemm measured before and after; the memory that was predicted before "
    "anything was allocated, and by how much the process grew; and where the time "
    "goes, by layer and by kind of op.\n\n"
    "With --json one object is printed instead: train_s, infer_s (seconds), "
    "train_gflops, infer_gflops, sgemm_gflops, memory_predicted and memory_measured "
    "(bytes, of training).\n\n"
    "With --against torch the same network runs in PyTorch, in a process of its own "
    "for "
    "each of its memory formats, with as many threads, the same loss and optimizer.  "
    "Steps are taken in turns.  The faster format counts, and its time over ours is "
    "the "
    "ratio printed.  The JSON object then also has torch_train_s, torch_infer_s, "
    "torch_memory (by how many bytes its process grew after PyTorch was loaded), "
    "torch_format, ratio_train and ratio_infer.  python3 must have PyTorch and NumPy.";

/* ---- ops ---- */

static const struct dnn_choice sizes[] = {
    {"small", 0},
    {"full",  1},
    {NULL,    0}
};
static const struct dnn_option ops_options[] = {
    {.name = "op",
     .letter = 'o',
     .type = DNN_O_TEXT,
     .offset = AT(ops.op),
     .arg = "KIND",
     .help = "only ops of this kind: conv, pool, unary..."},
    {.name = "size",
     .letter = 's',
     .type = DNN_O_ENUM,
     .offset = AT(ops.full),
     .arg = "SIZE",
     .def = "small",
     .choices = sizes,
     .help = "full: data as large as in earnest"},
    {.name = "threads",
     .letter = 't',
     .type = DNN_O_INT,
     .offset = AT(ops.threads),
     .arg = "N",
     .def = "0",
     .max = DNN_TOPO_THREADS,
     .help = "threads; 0: OMP_NUM_THREADS, else one per CPU"},
    {.name = "backend",
     .type = DNN_O_TEXT,
     .offset = AT(ops.backend),
     .arg = "NAME",
     .help = "what computes: cpu or ref; the fastest that is built by default"},
    {.name = "kernels",
     .type = DNN_O_ENUM,
     .offset = AT(ops.kernels),
     .arg = "HOW",
     .def = "autotune",
     .choices = choosing,
     .help = "kernels by measuring them first, or by rule"},
    {.name = "json",
     .letter = 'j',
     .type = DNN_O_FLAG,
     .offset = AT(ops.json),
     .help = "print one JSON object per op and line instead of the table"},
    {.name = NULL},
};

static int run_ops(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    const struct options *o = opt;

    (void)nargs;
    (void)args;
    return dnn_bench_ops(&o->ops, stdout, err);
}

static const char ops_about[] =
    "Runs a list of layers with usual and odd shapes, forward and backward, and prints "
    "a line for every op: the kernel that did it, its time, floating-point operations "
    "and bytes of operands per second, what part that is of OpenBLAS's sgemm or of a "
    "copy of memory, whichever is more, how far the results are from those of the ref "
    "backend (the norm of the difference over the norm), and how many times faster it "
    "is.  Ops whose results are further away than 1e-4 are marked, and the status is "
    "then 6.  With --size full the data is as large as in earnest, and what the ref "
    "backend would take seconds for is not compared.";

/* ---- io ---- */

static const struct dnn_option io_options[] = {
    {.name = "dir",
     .letter = 'd',
     .type = DNN_O_TEXT,
     .offset = AT(io.dir),
     .arg = "DIR",
     .help = "where the datasets are made, on the file system to be measured; the "
             "temporary directory by default.  They are removed afterwards"},
    {.name = "volumes",
     .type = DNN_O_INT,
     .offset = AT(io.volumes),
     .arg = "N",
     .def = "96",
     .min = 1,
     .max = 1e6,
     .help = "volumes with masks"},
    {.name = "extent",
     .type = DNN_O_INT,
     .offset = AT(io.extent),
     .arg = "N",
     .def = "128",
     .min = 1,
     .max = 1024,
     .help = "points along each of their axes"},
    {.name = "volume-batch",
     .type = DNN_O_INT,
     .offset = AT(io.volume_batch),
     .arg = "N",
     .def = "2",
     .min = 1,
     .max = 1e6,
     .help = "volumes of a batch"},
    {.name = "images",
     .type = DNN_O_INT,
     .offset = AT(io.images),
     .arg = "N",
     .def = "4096",
     .min = 1,
     .max = 1e8,
     .help = "images with labels"},
    {.name = "pixels",
     .type = DNN_O_INT,
     .offset = AT(io.pixels),
     .arg = "N",
     .def = "224",
     .min = 1,
     .max = 16384,
     .help = "pixels along both of their axes, of three bytes each"},
    {.name = "image-batch",
     .type = DNN_O_INT,
     .offset = AT(io.image_batch),
     .arg = "N",
     .def = "64",
     .min = 1,
     .max = 1e6,
     .help = "images of a batch"},
    {.name = "compute",
     .letter = 'c',
     .type = DNN_O_REAL,
     .offset = AT(io.compute),
     .arg = "SECONDS",
     .def = "0",
     .max = 3600,
     .help = "how long a network pretends to compute on each batch; 0: as long as in "
             "MLPerf Storage"},
    {.name = "threads",
     .letter = 't',
     .type = DNN_O_INT,
     .offset = AT(io.threads),
     .arg = "N",
     .def = "2",
     .min = 1,
     .max = DNN_TOPO_THREADS,
     .help = "threads that read and convert"},
    {.name = "reps",
     .letter = 'r',
     .type = DNN_O_INT,
     .offset = AT(io.reps),
     .arg = "N",
     .def = "3",
     .min = 1,
     .max = 16,
     .help = "turns whose medians are printed"},
    {.name = "cold",
     .type = DNN_O_FLAG,
     .offset = AT(io.cold),
     .help = "have the system drop what it keeps of the files before each turn"},
    {.name = "million",
     .type = DNN_O_FLAG,
     .offset = AT(io.million),
     .help = "also time the opening of a dataset of a million small samples"},
    {.name = "against",
     .letter = 'a',
     .type = DNN_O_ENUM,
     .offset = AT(io.against),
     .arg = "WHOM",
     .def = "nobody",
     .choices = dnn_bench_rivals,
     .help = "compare with PyTorch's DataLoader on the same images, in turns"},
    {.name = "json",
     .letter = 'j',
     .type = DNN_O_FLAG,
     .offset = AT(io.json),
     .help = "print one JSON object instead of the table"},
    {.name = NULL},
};

static int run_io(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    const struct options *o = opt;

    (void)nargs;
    (void)args;
    return dnn_bench_io(&o->io, stdout, err);
}

static const char io_about[] =
    "Makes two datasets, volumes of f32 with masks as a U-Net takes them and images of "
    "u8 with labels as a classifier does, reads them shuffled as in training, and "
    "prints two things of each.  The utilisation: a network pretends to compute on "
    "each "
    "batch, by sleeping, and this is its share of the time after the first batch, as "
    "in MLPerf Storage.  The speed: an epoch without computing, once with batches as "
    "they are stored, to be converted where they are used, and what part that is of "
    "reading the same files one after the other with nothing but read(), into 64 MiB "
    "of memory; and once converted to the f32 a network takes (u8 becomes four times "
    "as "
    "large), which is also what is compared with PyTorch.  Samples of 64 KiB or more "
    "are read for five batches before the clock starts.\n\n"
    "Files are in the page cache unless --cold is given.\n\n"
    "With --against torch PyTorch's DataLoader reads the same images in turns with us, "
    "with two worker processes that stay from epoch to epoch: once from a "
    "memory-mapped file of NumPy, and once from PNG files if python3 has PIL.\n\n"
    "With --json one object is printed: for volumes and images each an object with "
    "samples, bytes, batch, memory, compute_s, utilisation, read_gbs, batch_gbs, "
    "plain_gbs, ratio_plain and samples_s, and against PyTorch torch_npy_samples_s, "
    "ratio_npy, torch_png_samples_s and ratio_png; then threads, with --cold "
    "still_cached (what part of a dataset the system kept nevertheless) and with "
    "--million open_million_s.";

/* ---- train: the table is in dnn-bench-train.c ---- */

static int run_train(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    const struct options *o = opt;

    (void)nargs;
    (void)args;
    return dnn_bench_train(&o->train, stdout, err);
}

/* ---- topo ---- */

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
    {.name = "step",
     .operands = "",
     .help = "time a training step and inference of a network",
     .options = step_options,
     .about = step_about,
     .run = run_step},
    {.name = "ops",
     .operands = "",
     .help = "time every op and pass, and compare with the ref backend",
     .options = ops_options,
     .about = ops_about,
     .run = run_ops},
    {.name = "io",
     .operands = "",
     .help = "time the reading of datasets, and see whether a network would wait",
     .options = io_options,
     .about = io_about,
     .run = run_io},
    {.name = "train",
     .operands = "",
     .help = "time whole training runs on one rank and on several",
     .options = dnn_bench_train_options,
     .about = dnn_bench_train_about,
     .run = run_train},
    {.run = NULL},
};

static const struct dnn_tool tool = {
    .name = "dnn-bench",
    .help = "measure this machine",
    .about = "Shows how ranks, threads, memory and GPUs meet the hardware they were "
             "given, alone, under srun or under mpirun; how fast networks run, and how "
             "fast their data is read.",
    .size = sizeof(struct options),
    .commands = commands,
    .environment =
        "OMP_NUM_THREADS\tthreads per rank, unless --threads is given\n"
        "CUDA_VISIBLE_DEVICES\tthe GPUs a rank may get, in this order\n"
        "DNN_PEER_DIR\twhere torch_step.py and its neighbours are, for --against "
        "torch\n"
        "MPIEXEC\twhat starts ranks for train, unless --launch is given\n"
        "DNN_DEADLINE\tseconds that ranks wait for each other, 600 by default\n"
        "DNN_LOG\thow much to say, as --log\n",
    .examples =
        "dnn-bench topo\tthis machine, one rank\n"
        "srun --mpi=pmix -n 4 dnn-bench topo\tfour ranks under Slurm\n"
        "srun --mpi=pmix -n 4 --cpu-bind=none dnn-bench topo\tlet us divide the cores\n"
        "mpirun -n 2 --bind-to none dnn-bench topo --threads 1 --json\tfor programs\n"
        "dnn-bench step --model unet3d --size 64 --base 16\ta 3D U-Net\n"
        "dnn-bench step --layers net.json --batch 8 --json\tany network, for "
        "programs\n"
        "dnn-bench io --dir /scratch/me\treading, on that file system\n"
        "dnn-bench train --against torch\ttraining, compared with PyTorch\n",
    .see_also = "dnn-cluster(1), srun(1), mpirun(1), hwloc(7)",
};

int main(int argc, char **argv)
{
    add_zoo(step_options, sizeof step_options / sizeof step_options[0]);
    return dnn_opt_main(&tool, argc, argv);
}
