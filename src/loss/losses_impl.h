/* losses_impl.h - a loss as read.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_LOSS_LOSSES_IMPL_H
#define DNN_LOSS_LOSSES_IMPL_H

#include "loss/loss_impl.h"

enum { LOSS_TERMS = 1000 };

struct dnn_loss {
    struct dnn_arena *arena; /* owned: all is in it */
    int nterms;
    struct loss_term *term;
};

#endif
