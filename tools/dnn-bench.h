/* dnn-bench.h - declarations shared by the files of dnn-bench.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TOOLS_DNN_BENCH_H
#define DNN_TOOLS_DNN_BENCH_H

#include "base/opt_rows.h"
#include "bench/bench.h"

struct options {
    struct dnn_bench_topo topo;
    struct dnn_bench_step step;
    struct dnn_bench_infer infer;
    struct dnn_bench_ops ops;
    struct dnn_bench_io io;
    struct dnn_bench_train train;
    struct dnn_bench_torch torch;
};

/* dnn-bench-infer.c: options of the command infer; those of the zoo are appended. */
enum { DNN_BENCH_OPTIONS = 40 };
extern struct dnn_option dnn_bench_infer_options[DNN_BENCH_OPTIONS];
extern const char dnn_bench_infer_about[];

/* dnn-bench-train.c: options of the command train. */
extern const struct dnn_option dnn_bench_train_options[];
extern const char dnn_bench_train_about[];

#endif
