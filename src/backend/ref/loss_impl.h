/* loss_impl.h - targets of the losses of the ref backend.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_REF_LOSS_IMPL_H
#define DNN_BACKEND_REF_LOSS_IMPL_H

#include "backend/ref/ref_impl.h"

#include <math.h>

/* Targets of rows of n classes: one label per row, or one value per class. */
struct ref_targets {
    const struct ref_array *t;
    int64_t n;
    bool labels, ignores;
    double ignore;
};

static inline struct ref_targets ref_targets(const struct ref_array *x,
                                             const struct ref_array *t, bool ignores,
                                             int32_t ignore)
{
    return (struct ref_targets){.t = t,
                                .n = x->shape.dim[x->shape.ndim - 1],
                                .labels = t->shape.ndim < x->shape.ndim,
                                .ignores = ignores,
                                .ignore = ignore};
}

static inline bool ref_label_is_valid(double label, int64_t classes, bool ignores,
                                      double ignore)
{
    if (ignores && label == ignore) return false;
    return label >= 0 && label < (double)(classes == 1 ? 2 : classes);
}

static inline bool ref_is_valid(const struct ref_targets *k, int64_t row)
{
    return !k->labels ||
           ref_label_is_valid(get(k->t, row), k->n, k->ignores, k->ignore);
}

/* The target of class j of a valid row. */
static inline double ref_target(const struct ref_targets *k, int64_t row, int64_t j)
{
    if (!k->labels) return get(k->t, row * k->n + j);
    return get(k->t, row) == (double)(k->n == 1 ? 1 : j);
}

/* The scale of the loss. Input number sums, if present, is the sum of the weights and
 * the number of samples: the former then replaces the latter as the divisor. */
static inline double ref_scale(const struct ref_call *c, int sums)
{
    const struct ref_array *s = dnn_ref_in(c, sums);

    if (s->mem == NULL) return c->op->attr.loss.scale;
    return get(s, 0) == 0 ? 0 : c->op->attr.loss.scale * get(s, 1) / get(s, 0);
}

static inline double ref_weight(const struct ref_array *w, int64_t j)
{
    return w->mem == NULL ? 1 : get(w, j);
}

static inline double ref_sigmoid(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

/* log(sum(exp(x))) of a row: softmax is exp(x - this). */
static inline double ref_log_sum(const struct ref_array *x, int64_t row, int64_t n)
{
    double max = -INFINITY, sum = 0;

    for (int64_t j = 0; j < n; j++)
        max = fmax(max, get(x, row * n + j));
    for (int64_t j = 0; j < n; j++)
        sum += exp(get(x, row * n + j) - max);
    return max + log(sum);
}

/* Probability p of element j of a row; log_sum: ref_log_sum() of the row (softmax). */
static inline double ref_p(enum dnn_head source, const struct ref_array *x, int64_t row,
                           int64_t n, int64_t j, double log_sum)
{
    double v = get(x, row * n + j);

    return source == DNN_HEAD_SOFTMAX   ? exp(v - log_sum)
           : source == DNN_HEAD_SIGMOID ? ref_sigmoid(v)
                                        : v;
}

/* Converts the gradients of a row in dx, in place, from those of p to those of x. */
static inline void ref_p_data(enum dnn_head source, const struct ref_array *x,
                              int64_t row, int64_t n, const struct ref_array *dx)
{
    double log_sum = source == DNN_HEAD_SOFTMAX ? ref_log_sum(x, row, n) : 0, sum = 0;

    if (source == DNN_HEAD_SOFTMAX)
        for (int64_t j = 0; j < n; j++)
            sum += get(dx, row * n + j) * ref_p(source, x, row, n, j, log_sum);
    for (int64_t j = 0; j < n; j++) {
        double p = ref_p(source, x, row, n, j, log_sum), d = get(dx, row * n + j);

        if (source == DNN_HEAD_SOFTMAX) d = p * (d - sum);
        if (source == DNN_HEAD_SIGMOID) d *= p * (1 - p);
        set(dx, row * n + j, d);
    }
}

#endif
