/* state_impl.h - the state of a run: what a checkpoint stores, as a list of arrays by
 * name.
 *
 * Each part of a run adds its own arrays.  Their data stay where they are: they are
 * read when a checkpoint is saved, and written when one is loaded.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRAIN_STATE_IMPL_H
#define DNN_TRAIN_STATE_IMPL_H

#include "ckpt/ckpt.h"
#include "engine/model.h"

struct train_state {
    int n, nmodel; /* the first nmodel: dnn_train_state_model() */
    size_t cap;
    struct dnn_ckpt_array *array; /* owned, with the names */
};

/* A field of a struct: a number (n is 0) or n numbers. */
struct train_field {
    const char *name;
    enum dnn_dtype type;
    int64_t n;
    void *data;
};
/* Its type is that of *x. */
#define TRAIN_NUMBER(name, x) TRAIN_NUMBERS(name, x, 0)
#define TRAIN_NUMBERS(name, x, n)                                                      \
    {name,                                                                             \
     _Generic(*(x),                                                                    \
         int32_t: DNN_I32,                                                             \
         int64_t: DNN_I64,                                                             \
         float: DNN_F32,                                                               \
         double: DNN_F64),                                                             \
     n, x}

/* All are Local.  Add an array; the name is copied. */
void dnn_train_state_add(struct train_state *state, const char *name,
                         enum dnn_dtype type, struct dnn_shape shape, void *data);
/* Add fields as "GROUP/NAME". */
void dnn_train_state_fields(struct train_state *state, const char *group, int n,
                            const struct train_field field[]);
/* Before all others: add weights, moving statistics and optimizer slots; and ema, the
 * moving average of the trainable weights, unless it is NULL. */
void dnn_train_state_model(struct train_state *state, const struct dnn_model *m,
                           float *ema);
void dnn_train_state_free(struct train_state *state);

#endif
