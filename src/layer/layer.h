/* layer.h - the interface of a kind of layer: reading its JSON, shape inference,
 * its weights, and lowering to ops.
 *
 * Layers do not compute and do not depend on a backend.  Channels are the last
 * axis everywhere, the batch is the first.  To add a kind: write its file, add a
 * line in layers.c.  All functions are Local.
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
    DNN_LAYER_WEIGHTS = 8,          /* of one layer at most                    */
    DNN_LAYER_AXIS_MAX = 1 << 30,   /* elements along an axis: bounds products */
    DNN_LAYER_INPUTS_MAX = 1 << 12, /* of one layer at most                    */
};

/* Maximum number of elements of a weight, and of one sample of an output. */
#define DNN_LAYER_COUNT_MAX ((int64_t)1 << 48)

struct dnn_layer;

/* A weight or state of a layer, with Keras's order of axes. */
struct dnn_layer_weight {
    const char *name; /* "kernel"                                              */
    struct dnn_shape shape;
    bool trainable; /* false also for all of a frozen layer            */
    bool state;     /* never trained in Keras, such as moving averages */
    struct dnn_init init;
    struct dnn_regularizer reg;
    struct dnn_constraint constraint;
};

/* Arguments of lower(). */
struct dnn_layer_lower {
    struct dnn_prog *prog;
    bool training;
    int nin;
    const int *in;     /* values of the inputs                             */
    const int *weight; /* values of the weights, in the order of weights() */
};

/* A layer in the format of Keras 3. */
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
    const char *name;     /* Keras class_name                                */
    const char *alias[3]; /* other names                                     */
    int nd;               /* spatial axes, if the class name has them ("2D") */
    int kind;             /* variant, if one file defines several            */
    size_t size;          /* of the struct that fields describe              */
    const struct dnn_field *fields;
    const struct dnn_field *keras1; /* keys as Keras 1 wrote them, or NULL      */

    /* After fields: read keys of type DNN_F_OTHER, and check keys that depend on
     * each other.  NULL: nothing to do. */
    int (*read)(struct dnn_layer *layer, void *cfg, const struct dnn_jobj *config,
                struct dnn_err *err);

    /* Output shape from input shapes; dim[0] is the batch, and any extent may be
     * DNN_UNKNOWN.  Rejects inputs that the layer does not support, so that
     * weights() and lower() cannot fail. */
    int (*infer)(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                 struct dnn_shape *out, struct dnn_err *err);

    /* Store the weights for these inputs, which infer() accepted, in out; returns
     * their number.  NULL: no weights. */
    int (*weights)(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                   struct dnn_layer_weight *out);

    /* Append this layer's ops; returns the value of its output.  All extents are
     * known. */
    int (*lower)(const struct dnn_layer *layer, const struct dnn_layer_lower *to);

    /* Set out->config to that of the equivalent layer of Keras 3, and out->class_name
     * if its class has another name there.  Fails if Keras has no such layer.  NULL: a
     * Keras class without keys of its own. */
    int (*write)(const struct dnn_layer *layer, struct dnn_layer_out *out,
                 struct dnn_err *err);
};

/* A layer; not changed after reading. */
struct dnn_layer {
    const struct dnn_layer_type *type;
    const char *name;
    bool trainable;
    struct dnn_regularizer activity; /* regularizer of the output */
    const void *cfg;
    int keras;               /* 1, 2 or 3: version whose defaults and formulas apply */
    struct dnn_shape input;  /* shape of its input, from its JSON */
    bool has_input;          /* whether there is one */
    struct dnn_arena *arena; /* of the layer */
    const struct dnn_layer_op *op; /* an operation of keras.ops; NULL: a layer */
};

/* The kind with this name, or NULL; the list is in layers.c. */
const struct dnn_layer_type *dnn_layer_find(const char *name);
/* The index-th kind; NULL past the end. */
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

/* The layer in the format of Keras 3: its class and the content of its config,
 * including name, dtype and trainable.  The caller owns out->config: dnn_buf_free(),
 * also after a failure.  Fails if Keras has no such layer. */
int dnn_layer_write(const struct dnn_layer *layer, const char *name,
                    struct dnn_layer_out *out, struct dnn_err *err);

/* Shape of the output; also fails if the output or a weight is too large. */
int dnn_layer_infer(const struct dnn_layer *layer, int nin, const struct dnn_shape *in,
                    struct dnn_shape *out, struct dnn_err *err);

/* Weights for inputs that dnn_layer_infer() accepted; returns their number.  trainable
 * is false for all weights of a frozen layer. */
int dnn_layer_weights(const struct dnn_layer *layer, int nin,
                      const struct dnn_shape *in,
                      struct dnn_layer_weight out[DNN_LAYER_WEIGHTS]);

/* A Keras shape with its batch, [null, 28, 28, 1]; null is DNN_UNKNOWN. */
int dnn_layer_read_shape(const struct dnn_jobj *at, struct dnn_shape *out,
                         struct dnn_err *err);

#endif
