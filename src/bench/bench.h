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

/* Collective; opens and closes its own communicator.  Bind all ranks and print the
 * binding on rank 0. */
int dnn_bench_topo(const struct dnn_bench_topo *cfg, FILE *where, struct dnn_err *err);

/* What to compare with (--against). */
enum dnn_bench_against { DNN_AGAINST_NONE, DNN_AGAINST_TORCH, DNN_AGAINST_ONNX };
extern const struct dnn_choice dnn_bench_peers[];       /* none or torch */
extern const struct dnn_choice dnn_bench_infer_peers[]; /* any, or both added */

struct dnn_bench_torch {
    bool install, remove; /* the virtual environment with PyPI's PyTorch */
    bool json;
};

/* Local.  Print the PyTorch that is used for comparison, or install or remove the one
 * of the toolkit.  The installation replaces this process. */
int dnn_bench_torch(const struct dnn_bench_torch *cfg, FILE *where,
                    struct dnn_err *err);

struct dnn_bench_step {
    struct dnn_zoo_opts zoo; /* the network and its parameters; zoo NULL: layers */
    const char *layers;      /* a Keras file                                     */
    const char *size;        /* spatial size, "64" or "48x80x64"; NULL: default  */
    long channels;           /* 0: default of the network                        */
    long batch, threads;     /* threads 0: OpenMP's default                      */
    long reps;               /* repetitions; the median is printed               */
    long rows;               /* rows of the table of layers                      */
    const char *backend;     /* NULL: the fastest in this build                  */
    const char *cache;       /* file of autotuned kernels; NULL: none            */
    int kernels;             /* enum dnn_kernel_selection                        */
    int loss;                /* index into dnn_loss_names                        */
    int optimizer;           /* enum dnn_update                                  */
    int recompute;           /* enum dnn_recompute                               */
    const char *limit;       /* maximum memory, "16GiB"; NULL: available memory  */
    int against;             /* enum dnn_bench_against                           */
    long compile;            /* seconds for torch.compile; 0: eager only         */
    bool fuse;
    bool json;
};

/* Local.  Time a training step and inference of a network, and print it. */
int dnn_bench_step(const struct dnn_bench_step *cfg, FILE *where, struct dnn_err *err);

struct dnn_bench_infer {
    struct dnn_zoo_opts zoo; /* the network, as in struct dnn_bench_step    */
    const char *layers, *size;
    long channels, batch, threads;
    long reps;           /* turns                                       */
    const char *backend; /* NULL: the fastest in this build             */
    const char *cache;   /* file of autotuned kernels; NULL: none       */
    int kernels;         /* enum dnn_kernel_selection                   */
    int against;         /* enum dnn_bench_against, added               */
    double bound;        /* of the outputs' differences, relative to the
                          * largest output                              */
    long compile;        /* seconds for torch.compile; 0: eager only    */
    bool json;
};

/* Local.  Time inference of a network, and print it.  Peers run the same network with
 * the same weights and inputs; DNN_EDEVICE if their outputs differ. */
int dnn_bench_infer(const struct dnn_bench_infer *cfg, FILE *where,
                    struct dnn_err *err);

struct dnn_bench_ops {
    const char *op;      /* only this kind; NULL: all                            */
    const char *backend; /* NULL: the fastest in this build                      */
    long threads;        /* 0: OpenMP's default                                  */
    int kernels;         /* enum dnn_kernel_selection                            */
    int full;            /* 1: sizes as in training; ops that take seconds on
                          * the ref backend are not compared                     */
    bool json;           /* one object per line and op                           */
};

/* Local.  Time each kind of op in each pass, compare the results with the ref backend,
 * and print both.  DNN_EDEVICE if an error is too large. */
int dnn_bench_ops(const struct dnn_bench_ops *cfg, FILE *where, struct dnn_err *err);

struct dnn_bench_io {
    const char *dir;      /* for the temporary datasets; NULL: TMPDIR            */
    long volumes, extent; /* number of volumes, points along each axis           */
    long images, pixels;
    long volume_batch, image_batch;
    long threads, reps;
    double compute; /* seconds per batch; 0: as in MLPerf Storage                */
    bool cold;      /* drop files from the page cache before each repetition     */
    bool million;   /* also open a dataset of a million samples                  */
    int against;    /* enum dnn_bench_against                                    */
    bool json;
};

/* Local.  Read datasets with a simulated computation for each batch, and print the
 * speed. */
int dnn_bench_io(const struct dnn_bench_io *cfg, FILE *where, struct dnn_err *err);

/* Which networks are trained. */
enum dnn_bench_part { DNN_BENCH_ALL, DNN_BENCH_UNET, DNN_BENCH_CNN };
extern const struct dnn_choice dnn_bench_parts[];

struct dnn_bench_train {
    int part;                /* enum dnn_bench_part                              */
    long size, base, depth;  /* of the U-Net: points along each axis, channels...*/
    long volumes, batch;     /* training samples, global batch size              */
    const char *images;      /* a directory like that of Fashion-MNIST; NULL: the
                              * one of Debian, or generated images               */
    long count, image_batch; /* generated images; 0: only if no others are found */
    long ranks;              /* also the number of threads of a single rank      */
    long epochs, reps;       /* measured epochs per run; number of runs          */
    const char *launch;      /* command that starts the ranks; NULL: mpiexec     */
    const char *keep;        /* directory of the files, which is kept; NULL: a
                              * temporary one                                    */
    int against;             /* enum dnn_bench_against                           */
    long compile;            /* seconds for torch.compile; 0: eager only         */
    bool quick;              /* smallest sizes and counts                        */
    bool json;
};

/* Local.  Train with dnn-train on one rank and on several, deterministic or not, with
 * and without checkpoints, and with PyTorch, alternately; print the speeds. */
int dnn_bench_train(const struct dnn_bench_train *cfg, FILE *where,
                    struct dnn_err *err);

#endif
