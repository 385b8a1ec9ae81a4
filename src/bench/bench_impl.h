/* bench_impl.h - what the files of this room share.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BENCH_BENCH_IMPL_H
#define DNN_BENCH_BENCH_IMPL_H

#include "bench/bench.h"
#include "bench/turns_impl.h"

#include "config/net.h"
#include "run/measure.h"
#include "run/model.h"

/* ---- peak.c: what the machine can do at best ---- */

/* Operations per second of OpenBLAS's product of large matrices in single precision
 * with these threads: the best of a few.  Takes about half a second, and returns
 * when OpenBLAS's threads have gone to sleep. */
double dnn_bench_sgemm(int threads);
/* Bytes read and written per second when a large array is copied. */
double dnn_bench_copy(int threads);

/* ---- step.c ---- */

enum { DNN_RIVALS = 2 }; /* PyTorch in as many memory formats */
extern const char *const dnn_rival_formats[DNN_RIVALS];

enum { DNN_BENCH_TRAIN, DNN_BENCH_INFER, DNN_BENCH_SIDES };

/* What was measured of one side: training, or inference. */
struct dnn_bench_side {
    struct dnn_model *model; /* owned */
    double seconds;          /* the median                                        */
    double flops;
    double predicted, measured; /* bytes; measured 0: the system does not tell     */
    double *op_seconds;         /* owned, by op                                    */
    /* The rival's best: seconds, in which format, bytes. */
    double rival_seconds, rival_bytes, rival_each[DNN_RIVALS];
    const char *rival_format;
};

/* ---- step_print.c ---- */

void dnn_bench_print_side(const struct dnn_bench_step *cfg, int which,
                          const struct dnn_bench_side *side, double sgemm, FILE *where);
void dnn_bench_print_json(const struct dnn_bench_step *cfg,
                          const struct dnn_bench_side side[DNN_BENCH_SIDES],
                          double sgemm, FILE *where);

/* ---- ops_cases.c ---- */

enum {
    DNN_CASE_FUSED = 1, /* ops are done in one go where they can be */
    DNN_CASE_INFER = 2, /* as in inference, forward only            */
    DNN_CASE_PAIR = 4,  /* the layer has two inputs                 */
    DNN_CASE_MSE = 8,   /* with that loss behind it                 */
    DNN_CASE_XENT = 16,
    DNN_CASE_UPDATE = 32 /* with penalties and updates of its weights */
};

/* A layer or two, whose ops are measured. */
struct dnn_ops_case {
    const char *what;         /* NULL ends the list              */
    const char *layers;       /* Keras JSON, separated by commas */
    const char *small, *full; /* shapes of the data, batch first */
    unsigned flags;
};
extern const struct dnn_ops_case dnn_ops_cases[];

/* The network of a case.  The caller owns *out: dnn_graph_free(). */
int dnn_ops_graph(const struct dnn_ops_case *c, bool full, struct dnn_graph **out,
                  int64_t *batch, struct dnn_err *err);

#endif
