/* bench_impl.h - declarations shared by the files of src/bench.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BENCH_BENCH_IMPL_H
#define DNN_BENCH_BENCH_IMPL_H

#include "bench/bench.h"
#include "bench/proc_impl.h"

#include "base/progress.h"
#include "config/net.h"
#include "engine/measure.h"
#include "engine/model.h"

/* ---- peak.c: the peak of this machine ---- */

/* Floating-point operations per second of OpenBLAS's sgemm of large matrices: the best
 * of a few runs.  Takes about half a second; returns when the threads of OpenBLAS are
 * idle. */
double dnn_bench_sgemm(int threads);
/* Bytes read and written per second when a large array is copied. */
double dnn_bench_copy(int threads);

/* ---- turns.c ---- */

/* A program that is timed in turns with others. */
struct dnn_bench_runner {
    int (*run)(void *arg, double *seconds, struct dnn_err *err); /* one step */
    void *arg;
    struct dnn_values times; /* of each turn; owned by the caller */
};
/* Time each runner reps times, alternating between them, so that other load on the
 * machine affects all of them.  The first one is warmed up. */
int dnn_bench_turns(struct dnn_bench_runner *runner, int n, long reps,
                    struct dnn_progress *progress, int64_t done, struct dnn_err *err);

/* ---- step.c ---- */

/* Open a network of the zoo (layers NULL) or of a Keras file (zoo->zoo NULL).  The
 * caller owns *out: dnn_net_free(). */
int dnn_bench_net(const struct dnn_zoo_opts *zoo, const char *layers,
                  const struct dnn_net_size *size, struct dnn_net *out,
                  struct dnn_err *err);

enum { DNN_BENCH_TRAIN, DNN_BENCH_INFER, DNN_BENCH_PHASES };
/* PyTorch runs eagerly in each memory format, and compiled in the faster of them. */
enum { DNN_TORCH_FORMATS = 2, DNN_TORCH_VARIANTS = DNN_TORCH_FORMATS + 1 };

struct dnn_torch_variant {
    const char *format;
    bool compiled;
    int process;
    double seconds; /* median */
};

/* Results of training or inference. */
struct dnn_bench_phase {
    struct dnn_model *model; /* owned */
    double seconds;          /* median                                             */
    double flops;
    double predicted, measured; /* bytes; measured 0: the system does not report it */
    double *op_seconds;         /* owned: by op                                     */
    int nvariants;
    struct dnn_torch_variant variant[DNN_TORCH_VARIANTS];
    const struct dnn_torch_variant *best; /* NULL: none                             */
    double torch_memory;                  /* bytes, eager                           */
};

/* ---- step_print.c ---- */

/* A duration with four significant digits, in s or ms; returns out. */
const char *dnn_bench_duration(char out[32], double seconds);
void dnn_bench_print_phase(const struct dnn_bench_step *cfg, int which,
                           const struct dnn_bench_phase *phase,
                           const struct dnn_torch_info *info, double sgemm,
                           FILE *where);
void dnn_bench_print_json(const struct dnn_bench_phase phase[DNN_BENCH_PHASES],
                          const struct dnn_torch_info *info, double sgemm, FILE *where);

/* ---- ops_cases.c ---- */

enum {
    DNN_CASE_FUSED = 1, /* fused ops                                */
    DNN_CASE_INFER = 2, /* inference: forward pass only             */
    DNN_CASE_PAIR = 4,  /* two inputs                               */
    DNN_CASE_MSE = 8,   /* with loss MSE                            */
    DNN_CASE_XENT = 16,
    DNN_CASE_UPDATE = 32 /* with penalties and weight updates */
};

/* One or two layers, whose ops are measured. */
struct dnn_ops_case {
    const char *what;         /* NULL ends the list              */
    const char *layers;       /* Keras JSON, separated by commas */
    const char *small, *full; /* shapes of the data, batch first */
    unsigned flags;
};
extern const struct dnn_ops_case dnn_ops_cases[];

/* Make the network of a case.  The caller owns *out: dnn_graph_free(). */
int dnn_ops_graph(const struct dnn_ops_case *c, bool full, struct dnn_graph **out,
                  int64_t *batch, struct dnn_err *err);

#endif
