/* dnn-bench-train.c - the options of dnn-bench train.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "dnn-bench.h"

const struct dnn_option dnn_bench_train_options[] = {
    {.name = "part",
     .letter = 'p',
     .type = DNN_O_ENUM,
     .offset = AT(train.part),
     .arg = "WHICH",
     .def = "all",
     .choices = dnn_bench_parts,
     .help = "which networks: unet, cnn, or both"},
    {.name = "size",
     .letter = 's',
     .type = DNN_O_INT,
     .offset = AT(train.size),
     .arg = "N",
     .def = "32",
     .min = 8,
     .max = 512,
     .help = "points along each axis of a volume"},
    {.name = "base",
     .type = DNN_O_INT,
     .offset = AT(train.base),
     .arg = "N",
     .def = "16",
     .min = 1,
     .max = 1024,
     .help = "channels of the first level of the U-Net"},
    {.name = "depth",
     .type = DNN_O_INT,
     .offset = AT(train.depth),
     .arg = "N",
     .def = "2",
     .min = 1,
     .max = 6,
     .help = "how often it halves its volumes"},
    {.name = "volumes",
     .type = DNN_O_INT,
     .offset = AT(train.volumes),
     .arg = "N",
     .def = "64",
     .min = 2,
     .max = 1e6,
     .help = "volumes to train with; a quarter as many to validate with"},
    {.name = "batch",
     .letter = 'b',
     .type = DNN_O_INT,
     .offset = AT(train.batch),
     .arg = "N",
     .def = "4",
     .min = 1,
     .max = 1e6,
     .help = "volumes of a step, of all ranks together"},
    {.name = "images",
     .type = DNN_O_TEXT,
     .offset = AT(train.images),
     .arg = "DIR",
     .help = "images for the CNN, IDX files as MNIST has them; Fashion-MNIST as Debian "
             "installs it by default, or generated ones if it is not there"},
    {.name = "count",
     .type = DNN_O_INT,
     .offset = AT(train.count),
     .arg = "N",
     .def = "0",
     .max = 1e8,
     .help = "generate so many images instead; 0: do not"},
    {.name = "image-batch",
     .type = DNN_O_INT,
     .offset = AT(train.image_batch),
     .arg = "N",
     .def = "128",
     .min = 1,
     .max = 1e6,
     .help = "images of a step"},
    {.name = "ranks",
     .letter = 'n',
     .type = DNN_O_INT,
     .offset = AT(train.ranks),
     .arg = "N",
     .def = "2",
     .min = 2,
     .max = 1024,
     .help = "compare so many ranks of one thread with one rank of so many threads"},
    {.name = "epochs",
     .letter = 'e',
     .type = DNN_O_INT,
     .offset = AT(train.epochs),
     .arg = "N",
     .def = "3",
     .min = 1,
     .max = 10000,
     .help = "epochs of a run that are timed, after a first one that is not"},
    {.name = "reps",
     .letter = 'r',
     .type = DNN_O_INT,
     .offset = AT(train.reps),
     .arg = "N",
     .def = "3",
     .min = 1,
     .max = 1000,
     .help = "runs of each kind, in turns"},
    {.name = "launch",
     .type = DNN_O_TEXT,
     .offset = AT(train.launch),
     .arg = "COMMAND",
     .help = "what starts ranks, as \"srun --mpi=pmix\"; -n and their number are "
             "added; mpiexec by default"},
    {.name = "keep",
     .letter = 'k',
     .type = DNN_O_TEXT,
     .offset = AT(train.keep),
     .arg = "DIR",
     .help =
         "make datasets, jobs and runs there, and leave them; else they are removed"},
    {.name = "against",
     .letter = 'a',
     .type = DNN_O_ENUM,
     .offset = AT(train.against),
     .arg = "WHOM",
     .def = "nobody",
     .choices = dnn_bench_rivals,
     .help = "compare with the same training in PyTorch, in turns"},
    {.name = "quick",
     .type = DNN_O_FLAG,
     .offset = AT(train.quick),
     .help = "the least of everything, to see whether it works; overrides sizes and "
             "counts"},
    {.name = "json",
     .letter = 'j',
     .type = DNN_O_FLAG,
     .offset = AT(train.json),
     .help = "print one JSON object instead of the tables"},
    {.name = NULL},
};

const char dnn_bench_train_about[] =
    "Makes datasets of generated volumes and of Fashion-MNIST, starts dnn-train with "
    "jobs for a 3D U-Net and for a small CNN (simplecnn), whole runs in turns, and "
    "times their epochs after the first.  The fastest counts, because neighbours of a "
    "virtual machine may make any other slower, one run more than the next; ratios of "
    "medians are printed beside.  The U-Net is trained by one rank with several "
    "threads "
    "and by several ranks with one thread each, also with results that do "
    "not depend on the number of ranks, and with checkpoints; the CNN by one rank, "
    "deterministic or not, and by several.  Printed are samples per second of training "
    "alone, and with "
    "validation and all else between two epochs; the share of steps in which rank 0 "
    "waited for others; and the seconds from the start of the process to the end of "
    "its first step, of the first run, in which kernels are chosen by measuring, and "
    "of later runs.  What a checkpoint takes is the median of by how much steps behind "
    "one take longer than those before the next, less the same without checkpoints.  "
    "Where ranks meet, the last to come waits for messages alone: as long as "
    "that is exposed communication, what it waits more is the "
    "difference in speed between cores, and is shown apart.\n\n"
    "With --against torch PyTorch trains the same networks with the same samples: in "
    "one process with as many threads, and the U-Net also with DistributedDataParallel "
    "over gloo.  Its memory formats, and for the CNN tensors in memory and the "
    "DataLoader with 0, 1 and 2 processes, are tried before, and the fastest counts.  "
    "Without PyTorch, or without something that starts ranks, the rest is measured and "
    "the reason is printed.\n\n"
    "The last lines are ratios, and what is wanted of them; the status is 0 whatever "
    "they are.\n\n"
    "With --json one object is printed: for unet and cnn each an object with samples, "
    "batch, and for each way to train (one, ranks, one_same, ranks_same, saves, "
    "torch_ranks, torch_one) an object with ranks, threads, samples_s, "
    "whole_samples_s, the medians of both, comm, late, first_start_s and start_s, and "
    "format and reader of PyTorch; then epochs, reps and what could be measured of "
    "ratio_ranks, ratio_ddp, "
    "comm_share, ratio_same_one, ratio_same_ranks, checkpoint_share, ratio_cnn, "
    "ratio_same_cnn and start_s.";
