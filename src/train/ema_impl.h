/* ema_impl.h - exponential moving average (EMA) of the weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRAIN_EMA_IMPL_H
#define DNN_TRAIN_EMA_IMPL_H

#include "engine/model.h"

struct train_ema {
    struct dnn_model *model;
    double decay;
    float *average; /* owned: of the trainable weights; NULL: none, and the functions
                     * below do nothing                                              */
    int64_t count;
    bool in_use; /* the weights and their average are swapped                        */
};

/* All are Local.  decay 0: none. */
int dnn_train_ema_make(struct train_ema *ema, struct dnn_model *model, double decay,
                       struct dnn_err *err);
void dnn_train_ema_free(struct train_ema *ema);
void dnn_train_ema_start(struct train_ema *ema); /* from the current weights        */
void dnn_train_ema_step(struct train_ema *ema,
                        int64_t step); /* after so many updates */
/* Use the average as weights (use), or the weights again.  Returns whether they were
 * swapped. */
bool dnn_train_ema_use(struct train_ema *ema, bool use);

#endif
