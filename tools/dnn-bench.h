/* dnn-bench.h - declarations shared by the files of dnn-bench.
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
    struct dnn_bench_infer infer;
    struct dnn_bench_ops ops;
    struct dnn_bench_io io;
    struct dnn_bench_train train;
    struct dnn_bench_torch torch;
};

#define AT(f) offsetof(struct options, f)

/* Rows of the tables: name, letter, field of struct options, ..., help. */
#define INT(n, l, f, d, lo, hi, h)                                                     \
    {.name = n,                                                                        \
     .letter = l,                                                                      \
     .type = DNN_O_INT,                                                                \
     .offset = AT(f),                                                                  \
     .arg = "N",                                                                       \
     .def = d,                                                                         \
     .min = lo,                                                                        \
     .max = hi,                                                                        \
     .help = h}
#define REAL(n, l, f, a, d, hi, h)                                                     \
    {.name = n,                                                                        \
     .letter = l,                                                                      \
     .type = DNN_O_REAL,                                                               \
     .offset = AT(f),                                                                  \
     .arg = a,                                                                         \
     .def = d,                                                                         \
     .max = hi,                                                                        \
     .help = h}
#define TEXT(n, l, f, a, h)                                                            \
    {.name = n, .letter = l, .type = DNN_O_TEXT, .offset = AT(f), .arg = a, .help = h}
#define FLAG(n, l, f, d, h)                                                            \
    {.name = n, .letter = l, .type = DNN_O_FLAG, .offset = AT(f), .def = d, .help = h}
#define ENUM(n, l, f, a, d, c, h)                                                      \
    {.name = n,                                                                        \
     .letter = l,                                                                      \
     .type = DNN_O_ENUM,                                                               \
     .offset = AT(f),                                                                  \
     .arg = a,                                                                         \
     .def = d,                                                                         \
     .choices = c,                                                                     \
     .help = h}

/* dnn-bench.c: options of several commands. */
extern const struct dnn_choice dnn_bench_selections[];

/* dnn-bench-infer.c: options of the command infer; those of the zoo are appended. */
enum { DNN_BENCH_OPTIONS = 40 };
extern struct dnn_option dnn_bench_infer_options[DNN_BENCH_OPTIONS];
extern const char dnn_bench_infer_about[];

/* dnn-bench-train.c: options of the command train. */
extern const struct dnn_option dnn_bench_train_options[];
extern const char dnn_bench_train_about[];

#endif
