/* update_impl.h - factors of an optimizer step that are the same for all weights: they
 * depend only on the learning rate and the number of updates.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_UPDATE_IMPL_H
#define DNN_BACKEND_UPDATE_IMPL_H

#include "backend/backend.h"

#include <math.h>

struct update_now {
    double rate;      /* factor of the step the rule computes                        */
    double grad_rate; /* NADAM: factor of the gradient itself                        */
    double epsilon;   /* added to the square root in the denominator                 */
    double grad_factor; /* SGD, LARS: factor of the gradient in the velocity */
    double w_factor; /* the weight is multiplied by this: decoupled decay           */
    double decay;    /* decay * weight is added to the gradient (without l1)        */
};

/* NAdam: mu of update t, and the product of mu of updates 1 to t. The product is only
 * used as 1 - product, so the loop ends when it is negligible. */
static inline double update_mu(const struct dnn_op_update *u, double t)
{
    return u->beta1 * (1 - 0.5 * pow(0.96, t * u->momentum_decay));
}

static inline double update_mu_product(const struct dnn_op_update *u, uint64_t t)
{
    double base = pow(0.96, u->momentum_decay), power = 1, product = 1;

    for (uint64_t i = 1; i <= t && product > 1e-20; i++) {
        power *= base;
        product *= u->beta1 * (1 - 0.5 * power);
    }
    return product;
}

/* Adam's bias correction. Keras adds epsilon before the correction, PyTorch after. */
static inline void update_bias_correction(const struct dnn_op_update *u, double t,
                                          struct update_now *out)
{
    double correction2 = sqrt(1 - pow(u->beta2, t));

    out->rate *= correction2 / (1 - pow(u->beta1, t));
    if (u->torch) out->epsilon *= correction2;
}

static inline void update_nadam(const struct dnn_op_update *u, uint64_t t,
                                struct update_now *out)
{
    double correction2 = sqrt(1 - pow(u->beta2, (double)t));
    double mu = update_mu(u, (double)t), next = update_mu(u, (double)t + 1);
    double product = update_mu_product(u, t);

    out->grad_rate = out->rate * correction2 * (1 - mu) / (1 - product);
    out->rate *= correction2 * next / (1 - product * next);
    out->epsilon *= correction2;
}

static inline struct update_now update_now(const struct dnn_op_update *u,
                                           const struct dnn_now *now)
{
    double t = (double)now->updates;
    struct update_now out = {.rate = now->rate,
                             .epsilon = u->epsilon,
                             .grad_factor = t <= 1 ? 1 : 1 - u->dampening,
                             .w_factor = 1,
                             .decay = 2 * u->l2 + u->weight_decay};

    switch (u->rule) {
    case DNN_UPDATE_ADAMW:
        out.w_factor = 1 - now->rate * u->weight_decay;
        out.decay = 2 * u->l2;
        update_bias_correction(u, t, &out);
        break;
    case DNN_UPDATE_LAMB:
        out.rate = 1; /* the trust ratio is known later */
        out.decay = 2 * u->l2;
        update_bias_correction(u, t, &out);
        break;
    case DNN_UPDATE_ADAM:
        update_bias_correction(u, t, &out);
        break;
    case DNN_UPDATE_NADAM:
        update_nadam(u, now->updates, &out);
        break;
    case DNN_UPDATE_ADAGRAD:
        out.rate /= 1 + (t - 1) * u->lr_decay;
        break;
    default:
        break;
    }
    return out;
}

/* The trust ratio, from the norms of the weight and of the gradient (LARS, with weight
 * decay) or the step (LAMB); 1 if one of the norms is 0. */
static inline double update_trust(const struct dnn_op_update *u, double weight,
                                  double other)
{
    if (!(weight > 0) || !(other > 0)) return 1;
    if (u->rule == DNN_UPDATE_LAMB) return weight / other;
    return u->eta * weight / (other + u->weight_decay * weight);
}

#endif
