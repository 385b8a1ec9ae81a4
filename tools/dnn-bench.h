/* dnn-bench.h - what the files of dnn-bench share.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TOOLS_DNN_BENCH_H
#define DNN_TOOLS_DNN_BENCH_H

#include "base/opt.h"
#include "bench/bench.h"

#include <stddef.h>

struct options {
    struct dnn_bench_topo topo;
    struct dnn_bench_step step;
    struct dnn_bench_ops ops;
    struct dnn_bench_io io;
    struct dnn_bench_train train;
};

#define AT(f) offsetof(struct options, f)

/* dnn-bench-train.c: of the command train. */
extern const struct dnn_option dnn_bench_train_options[];
extern const char dnn_bench_train_about[];

#endif
