/* bench.h - the commands of dnn-bench.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BENCH_BENCH_H
#define DNN_BENCH_BENCH_H

#include "base/choice.h"
#include "base/err.h"
#include "graph/zoo.h"

#include <stdbool.h>
#include <stdio.h>

struct dnn_bench_topo {
    int bind;     /* enum dnn_topo_policy                    */
    long threads; /* per rank; 0: from the environment       */
    bool json;
};

/* Collective: opens and closes the communicator itself.  Bind all ranks and print the
 * binding on rank 0. */
int dnn_bench_topo(const struct dnn_bench_topo *cfg, FILE *where, struct dnn_err *err);

/* What to compare with. */
enum dnn_bench_against { DNN_AGAINST_NONE, DNN_AGAINST_TORCH };
extern const struct dnn_choice dnn_bench_peers[];

struct dnn_bench_torch {
    bool install, remove; /* the virtual environment with PyPI's PyTorch */
    bool json;
};

/* Local.  Print which PyTorch is compared with, or install or remove the toolkit's own;
 * the installation replaces this process. */
int dnn_bench_torch(const struct dnn_bench_torch *cfg, FILE *where,
                    struct dnn_err *err);

struct dnn_bench_step {
    struct dnn_zoo_opts zoo; /* which network, zoo NULL: layers; and its numbers   */
    const char *layers;      /* a Keras file                                       */
    const char *size;        /* extents of space, "64" or "48x80x64"; NULL: its own */
    long channels;           /* 0: its own                                         */
    long batch, threads;     /* threads 0: as OpenMP would                         */
    long reps;               /* steps whose median counts                          */
    long rows;               /* of the table of layers                             */
    const char *backend;     /* NULL: the best that is built                       */
    const char *cache;       /* where choices of kernels are kept; NULL: nowhere   */
    int kernels;   /* enum dnn_kernel_selection                                    */
    int loss;      /* one of dnn_loss_names                              */
    int optimizer; /* enum dnn_update                                    */
    int recompute; /* enum dnn_recompute                                 */
    const char *limit; /* memory to take at most, "16GiB"; NULL: what there is */
    int against;       /* enum dnn_bench_against                             */
    long compile;      /* seconds for torch.compile; 0: eager only           */
    bool fuse;
    bool json; /* one object instead of the tables */
};

/* Local.  Time a training step and inference of a network, and print it. */
int dnn_bench_step(const struct dnn_bench_step *cfg, FILE *where, struct dnn_err *err);

struct dnn_bench_ops {
    const char *op;      /* only this kind; NULL: all                     */
    const char *backend; /* NULL: the fastest that is built               */
    long threads;        /* 0: as OpenMP would                            */
    int kernels;         /* enum dnn_kernel_selection                               */
    int full;            /* 1: data as large as in earnest; what ref would take too
                            long for is not compared                      */
    bool json;           /* one object per op instead of the table        */
};

/* Local.  Time every kind of op in each of its passes, compare with the ref backend,
 * and print it.  DNN_EDEVICE if results are too far from ref's. */
int dnn_bench_ops(const struct dnn_bench_ops *cfg, FILE *where, struct dnn_err *err);

struct dnn_bench_io {
    const char *dir;      /* where datasets are made and removed; NULL: a new one
                           * in the temporary directory                          */
    long volumes, extent; /* how many, points along each axis                    */
    long images, pixels;
    long volume_batch, image_batch;
    long threads, reps;
    double compute; /* seconds of a batch; 0: as MLPerf Storage has it            */
    bool cold;      /* what the system keeps of files is dropped before each turn */
    bool million;   /* open a dataset of a million samples, too                   */
    int against;    /* enum dnn_bench_against                                     */
    bool json;      /* one object instead of the table                            */
};

/* Local.  Read datasets while a network is pretended to compute, and print how well
 * that goes. */
int dnn_bench_io(const struct dnn_bench_io *cfg, FILE *where, struct dnn_err *err);

/* What is trained. */
enum dnn_bench_part { DNN_BENCH_ALL, DNN_BENCH_UNET, DNN_BENCH_CNN };
extern const struct dnn_choice dnn_bench_parts[];

struct dnn_bench_train {
    int part;                /* enum dnn_bench_part                                  */
    long size, base, depth;  /* of the U-Net: points along each axis, channels...    */
    long volumes, batch;     /* samples to train with, and of a step                 */
    const char *images;      /* a directory as Fashion-MNIST's; NULL: where Debian has
                              * it, or generated ones                                */
    long count, image_batch; /* generated images; 0: only if there are no others     */
    long ranks;              /* and as many threads of a single rank                 */
    long epochs, reps;       /* that are timed, after a first; rounds                */
    const char *launch;      /* what starts ranks, as "mpiexec"; NULL: that          */
    const char *keep;        /* where files are made and stay; NULL: a new directory
                              * that is removed                                      */
    int against;             /* enum dnn_bench_against                               */
    long compile;            /* seconds for torch.compile; 0: eager only             */
    bool quick;              /* smallest sizes and counts                            */
    bool json;               /* one object instead of the tables                     */
};

/* Local.  Train with dnn-train on one rank and on several, deterministically or not,
 * with and without checkpoints, and with PyTorch, in turns; print what is faster. */
int dnn_bench_train(const struct dnn_bench_train *cfg, FILE *where,
                    struct dnn_err *err);

#endif
