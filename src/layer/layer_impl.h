/* layer_impl.h - shared by the files of the layer kinds.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_LAYER_LAYER_IMPL_H
#define DNN_LAYER_LAYER_IMPL_H

#include "layer/layer.h"

/* ---- common rows of field tables ---- */

#define DNN_LAYER_END {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL}
#define DNN_LAYER_INT(key, at, def, min, max, help)                                    \
    {key, DNN_F_INT, at, def, min, max, NULL, help, NULL}
#define DNN_LAYER_REAL(key, at, def, min, max, help)                                   \
    {key, DNN_F_REAL, at, def, min, max, NULL, help, NULL}
#define DNN_LAYER_BOOL(key, at, def, help)                                             \
    {key, DNN_F_BOOL, at, def, 0, 0, NULL, help, NULL}
#define DNN_LAYER_ENUM(key, at, def, choices, help)                                    \
    {key, DNN_F_ENUM, at, def, 0, 0, choices, help, NULL}
/* sub: number of elements, and whether a single one may apply to all axes. */
#define DNN_LAYER_INTS(key, at, def, min, max, help, sub)                              \
    {key, DNN_F_INTS, at, def, min, max, NULL, help, sub}
/* A key that the kind's read() reads. */
#define DNN_LAYER_OTHER(key, help) {key, DNN_F_OTHER, 0, "null", 0, 0, NULL, help, NULL}
#define DNN_LAYER_IGNORED(key)                                                         \
    {key, DNN_F_IGNORED, 0, "null", 0, 0, NULL, "changes no result", NULL}
#define DNN_LAYER_NEUTRAL(key, def)                                                    \
    {key, DNN_F_NEUTRAL, 0, def, 0, 0, NULL, "only its default", NULL}
/* The three keys of one weight. */
#define DNN_LAYER_WEIGHT(prefix)                                                       \
    DNN_LAYER_OTHER(prefix "_initializer", "initializer"),                             \
        DNN_LAYER_OTHER(prefix "_regularizer", "regularizer"),                         \
        DNN_LAYER_OTHER(prefix "_constraint", "constraint")
/* The position of the channels in Keras 2 and 3. */
#define DNN_LAYER_FORMAT DNN_LAYER_OTHER("data_format", "channels_last")

/* ---- reading ---- */

/* The config of a layer whose type is set. */
int dnn_layer_read_keys(struct dnn_layer *layer, const struct dnn_jobj *config,
                        struct dnn_err *err);
/* Turn "file:line: key: what" into "file:line: layer 'name' (Class): key: what". */
int dnn_layer_error_at(const struct dnn_jobj *config, const char *name,
                       const char *class_name, struct dnn_err *err);

/* Initializer, regularizer and constraint of a weight. */
struct dnn_layer_spec {
    struct dnn_init init;
    struct dnn_regularizer reg;
    struct dnn_constraint constraint;
};

/* Read prefix_initializer, prefix_regularizer and prefix_constraint; or Keras 1's
 * init1, letter1_regularizer and letter1_constraint (NULL: it had none). */
int dnn_layer_read_spec(const struct dnn_jobj *config, const char *prefix,
                        const char *init1, const char *letter1, const char *def,
                        struct dnn_layer_spec *out, struct dnn_err *err);

/* A name or {class_name, config}; absent or null is def. */
int dnn_layer_read_init(const struct dnn_jobj *at, const char *def,
                        struct dnn_init *out, struct dnn_err *err);
int dnn_layer_read_reg(const struct dnn_jobj *at, struct dnn_regularizer *out,
                       struct dnn_err *err);

/* Fail unless "data_format" (Keras 1: "dim_ordering") is absent or channels last. */
int dnn_layer_read_format(const struct dnn_jobj *config, struct dnn_err *err);

/* Split Keras's {class_name, config} object, or a name alone: *inside is the config,
 * absent if there is none.  at must outlive *inside. */
int dnn_layer_read_object(const struct dnn_jobj *at, const char **class_name,
                          struct dnn_jobj *inside, struct dnn_err *err);

/* One value per spatial axis, from a list of nd values or of one for all axes; def
 * for an empty list. */
int dnn_layer_read_extents(const struct dnn_jobj *config, const char *key, int nd,
                           const struct dnn_list *list, int64_t def, int64_t out[3],
                           struct dnn_err *err);
extern const struct dnn_sub dnn_layer_extents; /* of such a list */

/* The first of two keys that is present; if none is, the absent first one. */
struct dnn_jobj dnn_layer_either(const struct dnn_jobj *config, const char *a,
                                 const char *b);

/* ---- activations ---- */

enum dnn_layer_act_kind { DNN_LAYER_LINEAR, DNN_LAYER_UNARY, DNN_LAYER_SOFTMAX };

struct dnn_layer_act {
    int kind; /* enum dnn_layer_act_kind                          */
    struct dnn_op_unary unary;
    int64_t axis; /* softmax: negative ones count from the last   */
    bool log;     /* softmax: its logarithm                       */
};

/* The key "activation": null, a name or an object. */
int dnn_layer_read_act(const struct dnn_layer *layer, const struct dnn_jobj *at,
                       struct dnn_layer_act *out, struct dnn_err *err);
/* Whether it can be applied to such a shape. */
int dnn_layer_infer_act(const struct dnn_layer_act *act, const struct dnn_shape *shape,
                        struct dnn_err *err);
int dnn_layer_lower_act(const struct dnn_layer_act *act, struct dnn_prog *prog, int x);

/* The name of an activation in Keras 3; NULL: it has none and needs a layer. */
const char *dnn_layer_act_name(const struct dnn_layer_act *act);

/* ---- writing as Keras 3: each adds "key": value to the config ---- */

void dnn_layer_put(struct dnn_layer_out *out, const char *fmt, ...) DNN_PRINTF(2, 3);
void dnn_layer_put_int(struct dnn_layer_out *out, const char *key, int64_t x);
void dnn_layer_put_ints(struct dnn_layer_out *out, const char *key, int64_t n,
                        const int64_t *x);
void dnn_layer_put_reals(struct dnn_layer_out *out, const char *key, int64_t n,
                         const double *x);
void dnn_layer_put_bool(struct dnn_layer_out *out, const char *key, bool yes);
void dnn_layer_put_init(struct dnn_layer_out *out, const char *key,
                        const struct dnn_init *init);
/* prefix_initializer, prefix_regularizer and prefix_constraint */
void dnn_layer_put_spec(struct dnn_layer_out *out, const char *prefix,
                        const struct dnn_layer_spec *spec);
/* An activation as a separate layer: class and config. */
int dnn_layer_write_act(const struct dnn_layer_act *act, struct dnn_layer_out *out,
                        struct dnn_err *err);
/* "activation" */
int dnn_layer_put_act(struct dnn_layer_out *out, const struct dnn_layer_act *act,
                      struct dnn_err *err);

/* ---- windows: convolutions and pooling ---- */

enum dnn_layer_padding {
    DNN_LAYER_VALID,
    DNN_LAYER_SAME,
    DNN_LAYER_CAUSAL,
    DNN_LAYER_NUMBERS /* explicit, equal on both sides of an axis */
};

struct dnn_layer_window {
    int nd;
    int64_t size[3], stride[3], dilation[3];
    int padding; /* enum dnn_layer_padding */
    int64_t pad[3];
};

int dnn_layer_read_padding(const struct dnn_jobj *config, bool causal,
                           struct dnn_layer_window *window, struct dnn_err *err);
/* Fail unless in is one array of (batch, nd extents, channels known). */
int dnn_layer_one_image(int nd, int nin, const struct dnn_shape *in,
                        struct dnn_err *err);
/* Output extents of a window over in; channels and batch are unchanged. */
int dnn_layer_window_infer(const struct dnn_layer_window *w, const struct dnn_shape *in,
                           struct dnn_shape *out, struct dnn_err *err);
/* The padding before and after each spatial axis of a known shape. */
void dnn_layer_window_pads(const struct dnn_layer_window *w, const struct dnn_shape *in,
                           int64_t before[3], int64_t after[3]);

/* "padding" and "data_format".  Keras has no explicit padding: with pads it becomes a
 * ZeroPadding layer (out->npad), else it is an error. */
int dnn_layer_put_padding(struct dnn_layer_out *out, const struct dnn_layer_window *w,
                          bool pads, struct dnn_err *err);

/* ---- shapes ---- */

/* Fail unless there is one input; with at least min axes, the batch included. */
int dnn_layer_one(int nin, const struct dnn_shape *in, int min, struct dnn_err *err);
/* An axis from the front, from one that may count from the end, in [0, ndim). */
int dnn_layer_axis(int64_t axis, int ndim, int *out, struct dnn_err *err);
struct dnn_shape dnn_layer_shape(int ndim, int64_t a, int64_t b, int64_t c, int64_t d,
                                 int64_t e);

/* Store a weight at out[*n], and increment *n. */
void dnn_layer_add_weight(struct dnn_layer_weight *out, int *n, const char *name,
                          struct dnn_shape shape, bool trainable,
                          const struct dnn_layer_spec *spec);

#endif
