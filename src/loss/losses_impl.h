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

/* Whether it is a single loss without "output", which is used for every output. */
bool dnn_loss_every(const struct dnn_loss *loss);
/* The output a term is for; target: DNN_NONE for outputs without a term so far.
 * DNN_NONE: there is none. */
int dnn_loss_output(const struct loss_term *term, const struct dnn_loss_net *net,
                    const int *target);

#endif
