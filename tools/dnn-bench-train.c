/* dnn-bench-train.c - the options of dnn-bench train.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "dnn-bench.h"

const struct dnn_option dnn_bench_train_options[] = {
    ENUM("part", 'p', train.part, "WHICH", "all", dnn_bench_parts,
         "which networks: unet, cnn, or all"),
    INT("size", 's', train.size, "32", 8, 512, "points along each axis of a volume"),
    INT("base", 0, train.base, "16", 1, 1024,
        "channels of the first level of the U-Net"),
    INT("depth", 0, train.depth, "2", 1, 6, "downsampling levels of the U-Net"),
    INT("volumes", 0, train.volumes, "64", 2, 1e6,
        "training volumes; a quarter as many are used for validation"),
    INT("batch", 'b', train.batch, "4", 1, 1e6, "global batch size of the U-Net"),
    TEXT("images", 0, train.images, "DIR",
         "images for the CNN, IDX files like MNIST's; by default Fashion-MNIST as "
         "Debian "
         "installs it, or generated ones if it is not installed"),
    INT("count", 0, train.count, "0", 0, 1e8,
        "number of images to generate instead; 0: none"),
    INT("image-batch", 0, train.image_batch, "128", 1, 1e6, "batch size of the CNN"),
    INT("ranks", 'n', train.ranks, "2", 2, 1024,
        "compare this many ranks of one thread with one rank of this many threads"),
    INT("epochs", 'e', train.epochs, "3", 1, 10000,
        "measured epochs per run, after a first one that is not measured"),
    INT("reps", 'r', train.reps, "3", 1, 1000, "runs of each setup, in turns"),
    TEXT("launch", 0, train.launch, "COMMAND",
         "command that starts ranks, such as \"srun --mpi=pmix\"; -n and their number "
         "are added; default: mpiexec"),
    TEXT("keep", 'k', train.keep, "DIR",
         "make datasets and runs in this directory and keep them"),
    ENUM("against", 'a', train.against, "PEER", "none", dnn_bench_peers,
         "compare with the same training in PyTorch, in turns"),
    INT("compile", 0, train.compile, "300", 0, 3600,
        "seconds for torch.compile; 0: eager mode only"),
    FLAG("quick", 0, train.quick,
         "smallest sizes and counts, to see whether everything works"),
    FLAG("json", 'j', train.json, "print one JSON object instead of the tables"),
    {.name = NULL},
};

const char dnn_bench_train_about[] =
    "Makes datasets of generated volumes and of Fashion-MNIST, trains a 3D U-Net and a "
    "small CNN (simplecnn) with dnn-train, whole runs in turns, and measures the "
    "epochs "
    "after the first.  The fastest epoch counts, because other load on a shared "
    "machine "
    "only makes epochs slower; ratios of medians are printed as well.  The U-Net is "
    "trained by one rank with several threads and by several ranks with one thread "
    "each, both also in deterministic mode, and with checkpoints; the CNN by one rank, "
    "deterministic or not, and by several.\n\n"
    "Printed are samples per second of training alone and with validation; the share "
    "of "
    "steps in which rank 0 waited for other ranks; and the seconds from the start of "
    "the process to the end of its first step, of the first run, which autotunes, and "
    "of later runs.  The cost of a checkpoint is the median time by which the steps "
    "after one take longer than those before the next, minus the same without "
    "checkpoints.  Exposed communication is how long the last rank to arrive waits for "
    "messages; waiting for stragglers is printed separately.\n\n"
    "With --against torch PyTorch trains the same networks with the same samples: in "
    "one process with as many threads, and the U-Net also with DistributedDataParallel "
    "over gloo.  Before that its memory formats, torch.compile (one process only), and "
    "for the CNN tensors in memory and the DataLoader with 0, 1 and 2 workers are "
    "tried; the fastest counts, and the table names it.  If PyTorch or ranks cannot be "
    "started, the remainder is measured and the reason is printed.\n\n"
    "The last lines are ratios with their targets; the exit status does not depend on "
    "them.\n\n"
    "With --json one object is printed: for unet and cnn each an object with samples, "
    "batch, and for each setup (one, ranks, one_deterministic, ranks_deterministic, "
    "checkpoints, torch_ranks, torch_one) an object with ranks, threads, samples_s, "
    "total_samples_s, the medians of both, comm, straggler, first_start_s and start_s, "
    "and "
    "format, reader and mode of PyTorch; then torch, torch_mkl, epochs, reps and, "
    "where "
    "measured, ratio_ranks, ratio_ddp, comm_share, ratio_deterministic_one, "
    "ratio_deterministic_ranks, checkpoint_share, ratio_cnn, ratio_deterministic_cnn "
    "and start_s; ratios also by medians, with _median at the end of the name.";
