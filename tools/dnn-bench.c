/* dnn-bench.c - measure this machine.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/backend.h"
#include "bench/bench.h"
#include "config/run_config.h"
#include "engine/model.h"
#include "dnn-bench.h"
#include "topo/topo.h"

#include <assert.h>
#include <string.h>

static const struct dnn_option topo_options[] = {
    ENUM(
        "bind", 'b', topo.bind, "POLICY", "auto", dnn_topo_policies,
        "auto divides shared cores and pins threads, inherit keeps the mask, off binds "
        "nothing"),
    INT("threads", 't', topo.threads, "0", 0, DNN_TOPO_THREADS,
        "threads per rank; 0: OMP_NUM_THREADS, else Slurm's --cpus-per-task, else one "
        "per core"),
    FLAG("json", 'j', topo.json, "print one JSON object instead of the table"),
    {.name = NULL},
};

/* ---- step ---- */

static const struct dnn_choice optimizers[] = {
    {"sgd",  DNN_UPDATE_SGD },
    {"adam", DNN_UPDATE_ADAM},
    {NULL,   0              }
};

/* add_zoo() appends the options of the zoo's networks. */
static struct dnn_option step_options[DNN_BENCH_OPTIONS] = {
    TEXT("model", 'm', step.zoo.zoo, "NAME",
         "a network of the zoo: unet3d, resnet50..."),
    TEXT("layers", 'l', step.layers, "FILE",
         "a network from a Keras JSON file instead"),
    TEXT("size", 's', step.size, "N|DxHxW",
         "spatial size of the input; default: the network's own"),
    INT("channels", 0, step.channels, "0", 0, 1e6,
        "channels of the input; 0: the network's own"),
    INT("batch", 'b', step.batch, "1", 1, 1e6, "batch size"),
    ENUM("loss", 0, step.loss, "LOSS", "mse", dnn_loss_names, "the loss to minimise"),
    ENUM("optimizer", 0, step.optimizer, "NAME", "adam", optimizers, "the optimizer"),
    ENUM("recompute", 0, step.recompute, "HOW", "cheap", dnn_config_recomputes,
         "recompute activations instead of storing them: cheap ones, as the memory "
         "limit "
         "demands (auto), all that save memory (true), or none (false)"),
    TEXT("memory-limit", 0, step.limit, "SIZE",
         "maximum memory, such as 16GiB; default: what the system has"),
    INT("threads", 't', step.threads, "0", 0, DNN_TOPO_THREADS,
        "threads; 0: OMP_NUM_THREADS, else one per CPU"),
    INT("reps", 'r', step.reps, "5", 1, 10000, "measured steps; the median is printed"),
    TEXT("backend", 0, step.backend, "NAME",
         "backend: cpu or ref; default: the fastest in this build"),
    ENUM("kernels", 0, step.kernels, "HOW", "autotune", dnn_kernel_selections,
         "kernel selection: autotune measures them first, heuristic does not"),
    TEXT("cache", 0, step.cache, "FILE",
         "store autotuned kernels in this file; default: autotune every time"),
    {.name = "fuse",
       .type = DNN_O_FLAG,
       .offset = AT(step.fuse),
       .def = "true",
       .help = "fuse ops"},
    ENUM("against", 'a', step.against, "PEER", "none", dnn_bench_peers,
         "compare with the same network in PyTorch, steps in turns"),
    INT("compile", 0, step.compile, "300", 0, 3600,
        "seconds for each torch.compile; 0: eager mode only"),
    INT("rows", 0, step.rows, "12", 0, 1e6, "layers in the table of times"),
    FLAG("json", 'j', step.json, "print one JSON object instead of tables"),
    {.name = NULL},
};

/* The parameters of the zoo's networks as options, from the table that reads them in a
 * configuration file, at this offset in struct options.  --size and --channels replace
 * its key "input". */
static void add_zoo(struct dnn_option options[DNN_BENCH_OPTIONS], size_t offset)
{
    size_t n = 0;

    static_assert(sizeof(long) == sizeof(int64_t), "options and fields agree");
    while (options[n].name != NULL)
        n++;
    for (const struct dnn_field *f = dnn_zoo_fields; f->key != NULL; f++) {
        if (strcmp(f->key, "zoo") == 0 || f->type == DNN_F_INTS) continue;
        assert(n + 1 < DNN_BENCH_OPTIONS);
        options[n++] = (struct dnn_option){.name = f->key,
                                           .type = f->type == DNN_F_INT    ? DNN_O_INT
                                                   : f->type == DNN_F_REAL ? DNN_O_REAL
                                                                           : DNN_O_ENUM,
                                           .offset = offset + f->offset,
                                           .arg = f->type == DNN_F_INT    ? "N"
                                                  : f->type == DNN_F_REAL ? "X"
                                                                          : "WORD",
                                           .def = f->def,
                                           .min = f->min,
                                           .max = f->max,
                                           .choices = f->choices,
                                           .help = f->help};
    }
}

static const char step_about[] =
    "Builds a network for training and then for inference, fills it with random "
    "numbers "
    "and times whole steps.  Printed are the median time; floating-point operations "
    "per "
    "second, counting two for each multiplication of convolutions and matrix products, "
    "and their share of OpenBLAS's sgemm, measured before and after; the memory "
    "predicted before anything was allocated, and by how much the process grew; and "
    "the "
    "time by layer and by kind of op.\n\n"
    "With --json one object is printed instead: train_s, train_gflops, infer_s, "
    "infer_gflops, sgemm_gflops, memory_predicted and memory_measured (bytes, of "
    "training).\n\n"
    "With --against torch the same network runs in PyTorch, in one process per memory "
    "format, with as many threads, the same loss and optimizer, eagerly and, in the "
    "format that is faster, with torch.compile, if that succeeds in time (it needs a "
    "C++ compiler and Python's headers).  Steps are taken in turns.  The fastest "
    "variant counts; the ratio is its time divided by ours.  \"dnn-bench torch\" "
    "prints "
    "which PyTorch that is.  The JSON object then also has torch (its version), "
    "torch_mkl, torch_onednn, torch_memory (bytes by which its process grew in eager "
    "training), and for train and infer torch_train_s, torch_train_mode, ratio_train "
    "and so on.";

/* ---- ops ---- */

static const struct dnn_choice sizes[] = {
    {"small", 0},
    {"full",  1},
    {NULL,    0}
};
static const struct dnn_option ops_options[] = {
    TEXT("op", 'o', ops.op, "KIND", "only ops of this kind: conv, pool, unary..."),
    ENUM("size", 's', ops.full, "SIZE", "small", sizes,
         "small, or full: sizes as in training"),
    INT("threads", 't', ops.threads, "0", 0, DNN_TOPO_THREADS,
        "threads; 0: OMP_NUM_THREADS, else one per CPU"),
    TEXT("backend", 0, ops.backend, "NAME",
         "backend: cpu or ref; default: the fastest in this build"),
    ENUM("kernels", 0, ops.kernels, "HOW", "autotune", dnn_kernel_selections,
         "kernel selection: autotune measures them first, heuristic does not"),
    FLAG("json", 'j', ops.json, "print one JSON object per line and op"),
    {.name = NULL},
};

static const char ops_about[] =
    "Runs a list of layers with common and odd shapes, forward and backward, and "
    "prints "
    "a line for each op: its kernel, time, floating-point operations and bytes of "
    "operands per second, their share of the peak (OpenBLAS's sgemm or a memory copy, "
    "whichever is larger), the relative error against the ref backend (norm of the "
    "difference over the norm), and the speed-up over it.  Errors above 1e-4 are "
    "marked, and the exit status is then 6.  With --size full, ops that would take the "
    "ref backend seconds are not compared.";

/* ---- io ---- */

static const struct dnn_option io_options[] = {
    TEXT("dir", 'd', io.dir, "DIR",
         "directory for the datasets, on the file system to be measured; default: the "
         "temporary directory.  They are removed afterwards"),
    INT("volumes", 0, io.volumes, "96", 1, 1e6, "number of volumes with masks"),
    INT("extent", 0, io.extent, "128", 1, 1024, "points along each axis of a volume"),
    INT("volume-batch", 0, io.volume_batch, "2", 1, 1e6, "volumes per batch"),
    INT("images", 0, io.images, "4096", 1, 1e8, "number of images with labels"),
    INT("pixels", 0, io.pixels, "224", 1, 16384,
        "height and width of an image; three bytes per pixel"),
    INT("image-batch", 0, io.image_batch, "64", 1, 1e6, "images per batch"),
    REAL("compute", 'c', io.compute, "SECONDS", "0", 0, 3600,
         "time a network pretends to compute on each batch; 0: as in MLPerf Storage"),
    INT("threads", 't', io.threads, "2", 1, DNN_TOPO_THREADS,
        "threads that read and convert"),
    INT("reps", 'r', io.reps, "3", 1, 16, "turns; medians are printed"),
    FLAG("cold", 0, io.cold, "drop the files from the page cache before each turn"),
    FLAG("million", 0, io.million,
         "also time the opening of a dataset of a million small samples"),
    ENUM("against", 'a', io.against, "PEER", "none", dnn_bench_peers,
         "compare with PyTorch's DataLoader on the same images, in turns"),
    FLAG("json", 'j', io.json, "print one JSON object instead of the table"),
    {.name = NULL},
};

static const char io_about[] =
    "Makes two datasets, volumes of f32 with masks as for a U-Net and images of u8 "
    "with "
    "labels as for a classifier, reads them shuffled as in training, and prints two "
    "figures of each.  The utilisation: a network pretends to compute on each batch, "
    "by "
    "sleeping; its share of the time after the first batch, as in MLPerf Storage.  The "
    "speed: an epoch without computing, once with batches as stored, compared with "
    "reading the same files one after the other with plain read() into 64 MiB of "
    "memory; and once converted to f32, as networks need it (u8 becomes four times as "
    "large), which is also compared with PyTorch.  Samples of 64 KiB or more are read "
    "for five batches before the clock starts.\n\n"
    "Files are in the page cache unless --cold is given.\n\n"
    "With --against torch PyTorch's DataLoader reads the same images in turns with us, "
    "with two persistent workers: from a memory-mapped NumPy file, and from PNG files "
    "if its Python has PIL.\n\n"
    "With --json one object is printed: for volumes and images each an object with "
    "samples, bytes, batch, memory, compute_s, utilisation, read_gbs, batch_gbs, "
    "plain_gbs, ratio_plain and samples_s, and against PyTorch torch_npy_samples_s, "
    "ratio_npy, torch_png_samples_s and ratio_png; then torch (its version), threads, "
    "with --cold still_cached (share of a dataset that stayed in the page cache) and "
    "with --million open_million_s.";

/* ---- torch ---- */

static const struct dnn_option torch_options[] = {
    FLAG("install", 0, torch.install,
         "install PyPI's PyTorch and ONNX Runtime for these comparisons: about 3 GB to "
         "download, 5.5 GB on disk; interrupted, it continues when run again"),
    FLAG("remove", 0, torch.remove, "remove what --install installed"),
    FLAG("json", 'j', torch.json, "print one JSON object"),
    {.name = NULL},
};

static const char torch_about[] =
    "Prints which PyTorch --against torch runs: its version, whether it has MKL, its "
    "oneDNN, its threads and its Python.  That is the Python named by DNN_TORCH; else "
    "the one that --install made, in $XDG_DATA_HOME/dnn-toolkit/torch or "
    "~/.local/share/dnn-toolkit/torch; else python3.\n\n"
    "The PyTorch of Linux distributions is often built without MKL and slower than the "
    "one of PyPI that most users have; a warning says so.";

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

#define RUN(command)                                                                   \
    static int run_##command(const void *opt, int nargs, char **args,                  \
                             struct dnn_err *err)                                      \
    {                                                                                  \
        const struct options *o = opt;                                                 \
                                                                                       \
        (void)nargs;                                                                   \
        (void)args;                                                                    \
        return dnn_bench_##command(&o->command, stdout, err);                          \
    }
RUN(topo)
RUN(step)
RUN(infer)
RUN(ops)
RUN(io)
RUN(train)
RUN(torch)

static const struct dnn_command commands[] = {
    {.name = "topo",
     .operands = "",
     .help = "bind each rank to its cores and print the binding",
     .options = topo_options,
     .about = topo_about,
     .run = run_topo},
    {.name = "step",
     .operands = "",
     .help = "time a training step and inference of a network",
     .options = step_options,
     .about = step_about,
     .run = run_step},
    {.name = "infer",
     .operands = "",
     .help = "time inference, also against PyTorch and ONNX Runtime",
     .options = dnn_bench_infer_options,
     .about = dnn_bench_infer_about,
     .run = run_infer},
    {.name = "ops",
     .operands = "",
     .help = "time each op and pass, and compare with the ref backend",
     .options = ops_options,
     .about = ops_about,
     .run = run_ops},
    {.name = "io",
     .operands = "",
     .help = "time the reading of datasets, and whether a network would wait for it",
     .options = io_options,
     .about = io_about,
     .run = run_io},
    {.name = "train",
     .operands = "",
     .help = "time whole training runs on one rank and on several",
     .options = dnn_bench_train_options,
     .about = dnn_bench_train_about,
     .run = run_train},
    {.name = "torch",
     .operands = "",
     .help = "print which PyTorch is compared with, or install it",
     .options = torch_options,
     .about = torch_about,
     .run = run_torch},
    {.run = NULL},
};

static const struct dnn_tool tool = {
    .name = "dnn-bench",
    .help = "measure this machine",
    .about = "Prints how ranks, threads, memory and GPUs are bound to the hardware, "
             "under srun, mpirun or without either; and measures how fast networks are "
             "trained and run and their data is read, also against PyTorch.",
    .size = sizeof(struct options),
    .commands = commands,
    .environment =
        "OMP_NUM_THREADS\tthreads per rank, unless --threads is given\n"
        "CUDA_VISIBLE_DEVICES\tthe GPUs a rank may get, in this order\n"
        "DNN_TORCH\tthe Python with PyTorch, for --against torch\n"
        "DNN_TORCH_SCRIPTS\tdirectory of the scripts it runs\n"
        "MPIEXEC\tcommand that starts ranks for train, unless --launch is given\n"
        "DNN_DEADLINE\tseconds that ranks wait for each other, 600 by default\n"
        "DNN_LOG\tlog levels, as --log\n",
    .examples =
        "dnn-bench topo\tthis machine, one rank\n"
        "srun --mpi=pmix -n 4 dnn-bench topo\tfour ranks under Slurm\n"
        "srun --mpi=pmix -n 4 --cpu-bind=none dnn-bench topo\tdivide the cores here\n"
        "mpirun -n 2 --bind-to none dnn-bench topo --threads 1 --json\tas JSON\n"
        "dnn-bench step --model unet3d --size 64 --base 16\ta 3D U-Net\n"
        "dnn-bench step --layers net.json --batch 8 --json\tany network, as JSON\n"
        "dnn-bench infer --model resnet50 --against both\tinference, compared\n"
        "dnn-bench io --dir /scratch/me\treading, on that file system\n"
        "dnn-bench train --against torch\ttraining, compared with PyTorch\n",
    .see_also = "dnn-cluster(1), srun(1), mpirun(1), hwloc(7)",
};

int main(int argc, char **argv)
{
    add_zoo(step_options, AT(step.zoo));
    add_zoo(dnn_bench_infer_options, AT(infer.zoo));
    return dnn_opt_main(&tool, argc, argv);
}
