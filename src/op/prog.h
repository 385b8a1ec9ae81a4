/* prog.h - a program: values, and ops in execution order.
 *
 * Layers append to it, grad.c appends the backward ops, plan reads it. Values are
 * numbered from 0; shapes are concrete, including the batch. All of a program is in
 * one arena.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_OP_PROG_H
#define DNN_OP_PROG_H

#include "base/mem.h"
#include "op/init.h"
#include "op/op.h"

#include <stdio.h>

enum dnn_role {
    DNN_INPUT,
    DNN_TARGET,
    DNN_WEIGHT,   /* trained, unless it is frozen                      */
    DNN_STATE,    /* kept between steps but not trained: a moving mean */
    DNN_SLOT,     /* state of the optimizer for a weight; initially 0  */
    DNN_CONSTANT, /* known when the program is made                    */
    DNN_TEMP      /* computed by an op                                 */
};

struct dnn_regularizer {
    double l1, l2; /* l1 sum |w| + l2 sum w^2 */
};

struct dnn_value {
    struct dnn_tensor is; /* name (may be NULL), dtype, shape                     */
    enum dnn_role role;
    int op;             /* that computes it, DNN_NONE: none                        */
    int grad;           /* the value that is its gradient, DNN_NONE: there is none */
    const char *layer;  /* that created it; may be NULL                            */
    const double *data; /* DNN_CONSTANT: its elements                              */
    /* DNN_WEIGHT and DNN_STATE */
    struct dnn_init init;
    bool trainable;
    struct dnn_regularizer regularizer;
    struct dnn_constraint constraint;
};

struct dnn_prog {
    struct dnn_arena *arena; /* owned */
    enum dnn_dtype dtype;    /* of weights, states, constants */
    bool training;
    int nvalues, nops;
    struct dnn_value *value;
    struct dnn_op *op;
    int nforward; /* ops before the first that dnn_grad() appended; nops if none */
    /* The current layer, see dnn_prog_set_layer(). */
    const char *layer;
    int line;
    bool frozen;
    uint64_t nstreams;
    int value_cap, op_cap;
};

/* An empty program.  In training max pooling also makes its index, norms their
 * statistics.  The caller owns it. */
struct dnn_prog *dnn_prog_make(enum dnn_dtype dtype, bool training);
void dnn_prog_free(struct dnn_prog *prog);

/* Set the layer that appends from now on: its full name (unique in the program,
 * copied) and its line.  Weights made while frozen is set are not trainable. */
void dnn_prog_set_layer(struct dnn_prog *prog, const char *layer, int line,
                        bool frozen);

/* Each returns the new value's number.  Names are copied; NULL: none. */
int dnn_prog_input(struct dnn_prog *prog, const char *name, enum dnn_dtype dtype,
                   const struct dnn_shape *shape);
int dnn_prog_target(struct dnn_prog *prog, const char *name, enum dnn_dtype dtype,
                    const struct dnn_shape *shape);
/* A weight or state of the current layer.  If the layer has already made one with this
 * name, that value is returned: so a shared layer shares its weights.  Regularizer,
 * constraint and trainable may be changed in prog->value[] afterwards. */
int dnn_prog_weight(struct dnn_prog *prog, const char *name,
                    const struct dnn_shape *shape, const struct dnn_init *init);
int dnn_prog_state(struct dnn_prog *prog, const char *name,
                   const struct dnn_shape *shape, const struct dnn_init *init);
/* A state of the optimizer, of the weight's shape and type. */
int dnn_prog_slot(struct dnn_prog *prog, const char *name, int weight);
/* data is copied. */
int dnn_prog_constant(struct dnn_prog *prog, const char *name,
                      const struct dnn_shape *shape, const double *data);

/* Append a forward op and return its first output (DNN_NONE for BN_UPDATE); the
 * others follow it in number.  attr NULL: all zero.  The shapes of operands
 * must fit: layers have checked them. */
int dnn_prog_op(struct dnn_prog *prog, enum dnn_op_kind kind,
                const union dnn_attr *attr, int nin, const int *in);

/* The same for the usual numbers of operands. */
int dnn_prog_op1(struct dnn_prog *prog, enum dnn_op_kind kind,
                 const union dnn_attr *attr, int x);
int dnn_prog_op2(struct dnn_prog *prog, enum dnn_op_kind kind,
                 const union dnn_attr *attr, int x, int w);

/* Batch normalization of x over all axes but attr's, with the moving mean and
 * variance.  use_batch: normalize with this batch's statistics and update the
 * states (as Keras does in training unless the layer is frozen), as BN_STATS,
 * EXCHANGE, BN_UPDATE and BN_APPLY; else BN_INFER.  gamma and beta may be DNN_NONE. */
int dnn_prog_batchnorm(struct dnn_prog *prog, const struct dnn_op_batchnorm *attr,
                       bool use_batch, int x, int gamma, int beta, int mean, int var);

/* Append an op of any pass, for code that rewrites programs: kind, pass, attr, post,
 * nin, in, nout, layer and line are taken from op; out[i] is the description of an
 * output (its name is copied), NULL if it is absent.  Returns the first output. */
int dnn_prog_append(struct dnn_prog *prog, const struct dnn_op *op,
                    const struct dnn_tensor *const *out);

/* The extent of an axis; negative axes count from the last. */
int64_t dnn_prog_dim(const struct dnn_prog *prog, int value, int axis);
const struct dnn_shape *dnn_prog_shape(const struct dnn_prog *prog, int value);

/* One line per value and op: "%2 32x10 = matmul %0 %1".  The element type is
 * named where it is not the program's. */
void dnn_prog_print(const struct dnn_prog *prog, FILE *where);

#endif
