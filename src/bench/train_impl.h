/* train_impl.h - declarations shared by the files of dnn-bench train.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BENCH_TRAIN_IMPL_H
#define DNN_BENCH_TRAIN_IMPL_H

#include "bench/bench.h"
#include "bench/proc_impl.h"

/* One setup in which a network is trained: ranks, threads, options. */
struct dnn_train_setup {
    const char *key, *name; /* in JSON, in the table */
    int ranks, threads;
    bool torch, deterministic, checkpoints;
    char format[16], reader[16], mode[16]; /* the fastest of PyTorch               */
    struct dnn_values rate;                /* samples per second, without validation */
    struct dnn_values total;               /* samples per second, with validation  */
    struct dnn_values comm;                /* fraction of time in communication    */
    struct dnn_values straggler; /* fraction of time waiting for slower ranks         */
    struct dnn_values bare;      /* comm - straggler: exposed communication           */
    struct dnn_values start;     /* seconds until the end of the first step           */
    struct dnn_values excess;    /* additional seconds of the steps after a checkpoint;
                                  * without checkpoints, of the same steps            */
};

/* A network, its samples, and the setups in which it is trained. */
struct dnn_train_net {
    const char *key, *name, *images; /* images: description of the samples */
    char *dir;  /* owned: contains config.json, net.json, data.bp and the runs */
    char *data; /* owned: the same samples for PyTorch                   */
    int64_t samples, tests, batch, test_batch;
    int period; /* steps between checkpoints; 0: none                    */
    int nsetups;
    struct dnn_train_setup setup[8];
};

struct dnn_train {
    struct dnn_bench_train cfg; /* with defaults and --quick applied              */
    struct dnn_train_net net[2];
    int nnets;
    char *dir, *cache, *train, *prepare;    /* owned                              */
    struct dnn_err torch_error, rank_error; /* code 0: PyTorch, ranks are available */
    struct dnn_torch_info info;
};

/* ---- train_data.c ---- */

/* Local.  Make the dataset and the configuration file, and set the counts in net. */
int dnn_train_make_unet(const struct dnn_train *t, struct dnn_train_net *net,
                        struct dnn_err *err);
int dnn_train_make_cnn(const struct dnn_train *t, struct dnn_train_net *net,
                       struct dnn_err *err);

/* ---- train_print.c ---- */

void dnn_train_print(const struct dnn_train *t, FILE *where);

#endif
