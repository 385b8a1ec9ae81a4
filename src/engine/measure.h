/* measure.h - FLOP, bytes and time of the ops of a program.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_ENGINE_MEASURE_H
#define DNN_ENGINE_MEASURE_H

#include "op/prog.h"

/* Floating-point operations of a program: the sum of dnn_plan_flops() over its ops (two
 * per multiplication of convolutions and matrix products). */
double dnn_measure_flops(const struct dnn_prog *prog);

/* Bytes of all operands of an op: the minimum memory traffic if nothing is cached. */
double dnn_measure_bytes(const struct dnn_prog *prog, int op);

/* Which part of a step an op belongs to. */
enum dnn_part {
    DNN_PART_FORWARD,
    DNN_PART_DATA,    /* gradients of activations, recomputation */
    DNN_PART_WEIGHTS, /* gradients of weights                    */
    DNN_PART_UPDATE,
    DNN_PARTS
};
enum dnn_part dnn_measure_part(const struct dnn_prog *prog, int op);

/* Sums over the ops of one layer, or of one kind and pass. */
struct dnn_measure_row {
    const char *name; /* owned by the program, or a constant; NULL: no layer */
    enum dnn_pass pass;
    int ops;
    double seconds[DNN_PARTS], all, flops, bytes;
};

/* Sum the seconds of the ops: one row per layer, or, if kinds, per kind and pass;
 * slowest first.  Returns the number of rows; the caller owns *out: dnn_free(). */
int dnn_measure_rows(const struct dnn_prog *prog, const double *seconds, bool kinds,
                     struct dnn_measure_row **out);

#endif
