/* loss_impl.h - targets of the losses of the ref backend.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_REF_LOSS_IMPL_H
#define DNN_BACKEND_REF_LOSS_IMPL_H

#include "backend/ref/ref_impl.h"

#include <math.h>

/* Rows of n classes, labels or values. */
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

static inline bool ref_label_counts(double label, int64_t classes, bool ignores,
                                    double ignore)
{
    if (ignores && label == ignore) return false;
    return label >= 0 && label < (double)(classes == 1 ? 2 : classes);
}

static inline bool ref_counts(const struct ref_targets *k, int64_t row)
{
    return !k->labels || ref_label_counts(get(k->t, row), k->n, k->ignores, k->ignore);
}

/* The target of class j of a valid row. */
static inline double ref_target(const struct ref_targets *k, int64_t row, int64_t j)
{
    if (!k->labels) return get(k->t, row * k->n + j);
    return get(k->t, row) == (double)(k->n == 1 ? 1 : j);
}

/* The scale, and the divisor of the mean where it depends on the data. */
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

/* log sum exp of a row, which is what softmax divides by. */
static inline double ref_log_sum(const struct ref_array *x, int64_t row, int64_t n)
{
    double most = -INFINITY, sum = 0;

    for (int64_t j = 0; j < n; j++)
        most = fmax(most, get(x, row * n + j));
    for (int64_t j = 0; j < n; j++)
        sum += exp(get(x, row * n + j) - most);
    return most + log(sum);
}

/* p of element j of a row, which has this log_sum. */
static inline double ref_p(enum dnn_head source, const struct ref_array *x, int64_t row,
                           int64_t n, int64_t j, double all)
{
    double v = get(x, row * n + j);

    return source == DNN_HEAD_SOFTMAX   ? exp(v - all)
           : source == DNN_HEAD_SIGMOID ? ref_sigmoid(v)
                                        : v;
}

/* The slopes in x of a row, in place of those in p that dx holds. */
static inline void ref_p_data(enum dnn_head source, const struct ref_array *x,
                              int64_t row, int64_t n, const struct ref_array *dx)
{
    double all = source == DNN_HEAD_SOFTMAX ? ref_log_sum(x, row, n) : 0, sum = 0;

    if (source == DNN_HEAD_SOFTMAX)
        for (int64_t j = 0; j < n; j++)
            sum += get(dx, row * n + j) * ref_p(source, x, row, n, j, all);
    for (int64_t j = 0; j < n; j++) {
        double p = ref_p(source, x, row, n, j, all), d = get(dx, row * n + j);

        if (source == DNN_HEAD_SOFTMAX) d = p * (d - sum);
        if (source == DNN_HEAD_SIGMOID) d *= p * (1 - p);
        set(dx, row * n + j, d);
    }
}

#endif
