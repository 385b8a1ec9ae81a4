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
    char format[16], reader[16], mode[16]; /* PyTorch's fastest                    */
    struct dnn_values rate;                /* samples per second, training alone   */
    struct dnn_values total;               /* the same with validation             */
    struct dnn_values comm;                /* share in which it waits for ranks    */
    struct dnn_values straggler; /* of this: because another rank was later           */
    struct dnn_values bare;      /* the remainder: exposed communication              */
    struct dnn_values start;     /* seconds until the end of the first step           */
    struct dnn_values excess;    /* seconds by which the steps after a checkpoint, or
                                  * where one would be, take longer than the others   */
};

/* A network with its samples and the setups it is trained in. */
struct dnn_train_net {
    const char *key, *name, *images; /* images: which ones */
    char *dir;  /* owned: of config.json, net.json, data.bp and the runs */
    char *data; /* owned: the same samples for PyTorch                   */
    int64_t samples, tests, batch, test_batch;
    int period; /* steps between checkpoints; 0: none                    */
    int nsetups;
    struct dnn_train_setup setup[8];
};

struct dnn_train {
    struct dnn_bench_train cfg; /* with all defaults and --quick                  */
    struct dnn_train_net net[2];
    int nnets;
    char *dir, *cache, *train, *prepare;    /* owned                              */
    struct dnn_err torch_error, rank_error; /* code 0: PyTorch, ranks are available */
    struct dnn_torch_info info;
};

/* ---- train_data.c ---- */

/* Local.  Make the dataset and the configuration file, and fill in counts. */
int dnn_train_make_unet(const struct dnn_train *t, struct dnn_train_net *net,
                        struct dnn_err *err);
int dnn_train_make_cnn(const struct dnn_train *t, struct dnn_train_net *net,
                       struct dnn_err *err);

/* ---- train_print.c ---- */

void dnn_train_print(const struct dnn_train *t, FILE *where);

#endif
