/* update_impl.h - factors of an optimizer step that are the same for all weights:
 * they depend on the learning rate and on the number of updates.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_UPDATE_IMPL_H
#define DNN_BACKEND_UPDATE_IMPL_H

#include "backend/backend.h"

#include <math.h>

struct update_now {
    double rate;  /* of the step the rule computes */
    double ahead; /* NADAM: of the gradient itself                               */
    double small; /* added to the root in the denominator */
    double gain;  /* SGD, LARS: of the gradient in the velocity                  */
    double keep;  /* factor of a weight before the step: decoupled decay */
    double decay; /* times the weight is added to the gradient, l1 apart         */
};

/* mu of update t, and the product of mu 1 ... t. Once that is negligible beside 1
 * further factors do not matter, so few are multiplied however large t is. */
static inline double update_mu(const struct dnn_op_update *u, double t)
{
    return u->beta1 * (1 - 0.5 * pow(0.96, t * u->momentum_decay));
}

static inline double update_mu_product(const struct dnn_op_update *u, uint64_t t)
{
    double each = pow(0.96, u->momentum_decay), fall = 1, product = 1;

    for (uint64_t i = 1; i <= t && product > 1e-20; i++) {
        fall *= each;
        product *= u->beta1 * (1 - 0.5 * fall);
    }
    return product;
}

/* Bias correction of Adam; Keras adds its epsilon before it, PyTorch after it. */
static inline void update_correct(const struct dnn_op_update *u, double t,
                                  struct update_now *out)
{
    double lack = sqrt(1 - pow(u->beta2, t));

    out->rate *= lack / (1 - pow(u->beta1, t));
    if (u->torch) out->small *= lack;
}

static inline void update_ahead(const struct dnn_op_update *u, uint64_t t,
                                struct update_now *out)
{
    double lack = sqrt(1 - pow(u->beta2, (double)t));
    double mu = update_mu(u, (double)t), next = update_mu(u, (double)t + 1);
    double product = update_mu_product(u, t);

    out->ahead = out->rate * lack * (1 - mu) / (1 - product);
    out->rate *= lack * next / (1 - product * next);
    out->small *= lack;
}

static inline struct update_now update_now(const struct dnn_op_update *u,
                                           const struct dnn_now *now)
{
    double t = (double)now->updates;
    struct update_now out = {.rate = now->rate,
                             .small = u->epsilon,
                             .gain = t <= 1 ? 1 : 1 - u->dampening,
                             .keep = 1,
                             .decay = 2 * u->l2 + u->weight_decay};

    switch (u->rule) {
    case DNN_UPDATE_ADAMW:
        out.keep = 1 - now->rate * u->weight_decay;
        out.decay = 2 * u->l2;
        update_correct(u, t, &out);
        break;
    case DNN_UPDATE_LAMB:
        out.rate = 1; /* the step's length is known later */
        out.decay = 2 * u->l2;
        update_correct(u, t, &out);
        break;
    case DNN_UPDATE_ADAM:
        update_correct(u, t, &out);
        break;
    case DNN_UPDATE_NADAM:
        update_ahead(u, now->updates, &out);
        break;
    case DNN_UPDATE_ADAGRAD:
        out.rate /= 1 + (t - 1) * u->lr_decay;
        break;
    default:
        break;
    }
    return out;
}

/* The trust ratio: LARS scales the gradient (with weight decay) and LAMB the step by
 * the norms of the weight and of either; 1 where one of them is 0. */
static inline double update_trust(const struct dnn_op_update *u, double weight,
                                  double other)
{
    if (!(weight > 0) || !(other > 0)) return 1;
    if (u->rule == DNN_UPDATE_LAMB) return weight / other;
    return u->eta * weight / (other + u->weight_decay * weight);
}

#endif
