/* layer.h - what a kind of layer must tell us: how its JSON reads, what shape
 * comes out, which weights it has and which ops it is made of.
 *
 * A layer never computes anything and never names a backend.  Channels are the
 * last axis everywhere, the batch is the first.  To add a kind: write its file,
 * add a line in layers.c.  All is Local.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_LAYER_LAYER_H
#define DNN_LAYER_LAYER_H

#include "base/err.h"
#include "base/field.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/shape.h"
#include "base/text.h"
#include "op/prog.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    DNN_LAYER_WEIGHTS = 8,          /* of one layer at most                       */
    DNN_LAYER_AXIS_MAX = 1 << 30,   /* elements along an axis: keeps products sane */
    DNN_LAYER_INPUTS_MAX = 1 << 12, /* that a layer may join                      */
};

/* The most elements a weight or one sample of an output may have. */
#define DNN_LAYER_COUNT_MAX ((int64_t)1 << 48)

struct dnn_layer;

/* One array of a layer's state, in Keras's own order of axes. */
struct dnn_layer_weight {
    const char *name; /* "kernel"                                              */
    struct dnn_shape shape;
    bool trainable; /* false also for all of a frozen layer                     */
    bool state;     /* what Keras never trains, as moving averages              */
    struct dnn_init init;
    struct dnn_regularizer reg;
    struct dnn_constraint constraint;
};

/* What lower() appends to. */
struct dnn_layer_lower {
    struct dnn_prog *prog;
    bool training;
    int nin;
    const int *in;     /* values of the inputs                                  */
    const int *weight; /* values of the weights, in the order weights() gave    */
};

/* A layer as Keras 3 writes it. */
struct dnn_layer_out {
    const char *module, *class_name;
    const char *registered; /* "registered_name"; NULL: null */
    struct dnn_buf config;  /* "key": value, ... */
    /* Zeros that a ZeroPadding layer must add on both sides before this one, per
     * spatial axis; npad 0: none. */
    int npad;
    int64_t pad[3];
};

/* An operation of Keras 3 between layers, such as x + 3. */
struct dnn_layer_op {
    const char *class_name, *module, *config; /* as read; config is JSON             */
    bool has_number; /* one of the operands is a number                          */
    bool first;      /* it is the first operand                                  */
    double number;
};

struct dnn_layer_type {
    const char *name;    /* Keras class_name                                    */
    const char *also[3]; /* other names of it                                   */
    int nd;              /* spatial axes, where the class name says             */
    int kind;            /* which of its family, if one file has several        */
    size_t size;         /* of the struct that fields fill                      */
    const struct dnn_field *fields;
    const struct dnn_field *keras1; /* keys as Keras 1 wrote them, or NULL      */

    /* After the table: keys of type DNN_F_OTHER that only this kind knows, and
     * what depends on several keys.  NULL: nothing more. */
    int (*read)(struct dnn_layer *layer, void *cfg, const struct dnn_jobj *config,
                struct dnn_err *err);

    /* Output shape from input shapes; dim[0] is the batch, and any extent may be
     * DNN_UNKNOWN.  Says no to inputs the layer cannot take, so that what comes
     * after cannot fail. */
    int (*infer)(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                 struct dnn_shape *out, struct dnn_err *err);

    /* The weights it has for these inputs, which infer() accepted: their number.
     * NULL: none. */
    int (*weights)(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                   struct dnn_layer_weight *out);

    /* Append this layer's ops; returns the value they end in.  Every extent is
     * known by now. */
    int (*lower)(const struct dnn_layer *layer, const struct dnn_layer_lower *to);

    /* The config of the Keras 3 layer that computes the same: out->config, and
     * out->class_name where Keras has another name for it.  Fails where Keras has no
     * such layer.  NULL: a Keras class without keys of its own. */
    int (*write)(const struct dnn_layer *layer, struct dnn_layer_out *out,
                 struct dnn_err *err);
};

/* A layer as read: const from then on. */
struct dnn_layer {
    const struct dnn_layer_type *type;
    const char *name;
    bool trainable;
    struct dnn_regularizer activity; /* regularizer of the output */
    const void *cfg;
    int keras;                     /* 1, 2 or 3: whose defaults and formulas hold     */
    struct dnn_shape input;        /* the shape its own JSON gives its input          */
    bool has_input;                /* whether it does                                 */
    struct dnn_arena *arena;       /* where it lives                                  */
    const struct dnn_layer_op *op; /* an operation, not a layer of Keras; or NULL */
};

/* The kind with this name, or NULL.  The list is layers.c. */
const struct dnn_layer_type *dnn_layer_find(const char *name);
/* All of them in order, NULL past the end. */
const struct dnn_layer_type *dnn_layer_at(int index);

/* Read the config of a layer of this class_name.  Messages begin with
 * "file:line: layer 'name' (Class): key: ...".  The result lives in arena. */
int dnn_layer_read(const char *class_name, const char *name,
                   const struct dnn_jobj *config, int keras, struct dnn_arena *arena,
                   const struct dnn_layer **out, struct dnn_err *err);

/* The same for an operation of Keras 3's keras.ops; op holds its class, module and
 * number.  The result has a copy of op. */
int dnn_layer_read_op(const struct dnn_layer_op *op, const char *name,
                      const struct dnn_jobj *config, struct dnn_arena *arena,
                      const struct dnn_layer **out, struct dnn_err *err);

/* The layer as Keras 3 writes it: its class and the content of its config, name, dtype
 * and trainable included.  The caller owns out->config: dnn_buf_free(), also after a
 * failure, which says what Keras does not have. */
int dnn_layer_write(const struct dnn_layer *layer, const char *name,
                    struct dnn_layer_out *out, struct dnn_err *err);

/* Shape of the output; also refuses what is too large to be meant. */
int dnn_layer_infer(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                    struct dnn_shape *out, struct dnn_err *err);

/* Weights for inputs that dnn_layer_infer() accepted: how many.  trainable is
 * false for all of a frozen layer. */
int dnn_layer_weights(const struct dnn_layer *layer, int nin,
                      const struct dnn_shape *in,
                      struct dnn_layer_weight out[DNN_LAYER_WEIGHTS]);

/* A Keras shape with its batch, [null, 28, 28, 1]; null is DNN_UNKNOWN. */
int dnn_layer_read_shape(const struct dnn_jobj *at, struct dnn_shape *out,
                         struct dnn_err *err);

#endif
