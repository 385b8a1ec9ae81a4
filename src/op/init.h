/* init.h - the initializers of Keras.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_OP_INIT_H
#define DNN_OP_INIT_H

#include "base/rng.h"
#include "base/tensor.h"

#include <stdbool.h>

enum dnn_init_kind {
    DNN_INIT_ZEROS,
    DNN_INIT_ONES,
    DNN_INIT_CONSTANT,         /* a                                           */
    DNN_INIT_UNIFORM,          /* from a to b                                 */
    DNN_INIT_NORMAL,           /* mean a, deviation b                         */
    DNN_INIT_TRUNCATED_NORMAL, /* the same, redrawn beyond two deviations     */
    DNN_INIT_VARIANCE_SCALING, /* a: scale, with mode and distribution        */
    DNN_INIT_ORTHOGONAL,       /* a: gain                                     */
    DNN_INIT_IDENTITY          /* a: gain; matrices only                      */
};

enum dnn_init_mode { DNN_FAN_IN, DNN_FAN_OUT, DNN_FAN_AVG };
enum dnn_init_dist {
    DNN_DIST_TRUNCATED_NORMAL,
    DNN_DIST_UNTRUNCATED_NORMAL,
    DNN_DIST_UNIFORM
};

struct dnn_init {
    enum dnn_init_kind kind;
    double a, b;
    enum dnn_init_mode mode;
    enum dnn_init_dist dist;
    uint64_t seed; /* of this initializer; 0: none, only the run's */
};

/* The initializer of a Keras name ("glorot_uniform", "GlorotUniform", "he_normal",
 * "zeros"...) with Keras's default parameters; false if there is no such name. */
bool dnn_init_find(const char *name, struct dnn_init *out);

/* Keras's fan-in and fan-out of a weight of this shape. */
void dnn_init_fans(const struct dnn_shape *shape, double *in, double *out);

/* Fill host memory with shape's count of elements of dtype (f32 or f64).  Element
 * i depends only on rng, i and the initializer.  Fails on a shape the
 * initializer cannot fill, and on another dtype. */
int dnn_init_fill(const struct dnn_init *init, const struct dnn_shape *shape,
                  const struct dnn_rng *rng, enum dnn_dtype dtype, void *dst,
                  struct dnn_err *err);

#endif
