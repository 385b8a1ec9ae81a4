/* rows_point_kernel.h - element-wise losses.
 *
 * Included by rows_isa.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_xent_kernel.h"

INLINE vec at_least(vec a, float min)
{
    return v_select(a < min, v_splat(min), a);
}

INLINE vec focal_wrong(vec p, vec t)
{
    return p + t - 2.0f * p * t;
}

INLINE vec focal_part(const struct rows_loss *k, vec t)
{
    if (k->alpha < 0.0f) return v_splat(1);
    return k->alpha * t + (1 - k->alpha) * (1.0f - t);
}

INLINE vec point_value(const struct rows_loss *k, vec x, vec t)
{
    vec d = x - t, a = v_abs(d);

    switch (k->fn) {
    case DNN_POINT_ABSOLUTE:
        return a;
    case DNN_POINT_HUBER:
        return v_select(a <= k->delta, 0.5f * d * d, k->delta * (a - 0.5f * k->delta));
    case DNN_POINT_HINGE:
        return at_least(v_select(t > 0.0f, 1.0f - x, 1.0f + x), 0);
    case DNN_POINT_BCE:
        return -(t * at_least(v_log(x), -100) +
                 (1.0f - t) * at_least(v_log(1.0f - x), -100));
    case DNN_POINT_BCE_LOGITS:
        return v_softplus(x) - x * t;
    case DNN_POINT_FOCAL:
        return (v_softplus(x) - x * t) * focal_part(k, t) *
               power_of(focal_wrong(v_sigmoid(x), t), k->gamma);
    case DNN_POINT_KL:
        return v_where(t > 0.0f, t * (v_log(t) - x));
    case DNN_POINT_MAPE:
        return 100.0f * a / at_least(v_abs(t), k->delta);
    case DNN_POINT_POISSON:
        return k->raw ? v_exp(x) - t * x : x - t * v_log(x + k->delta);
    case DNN_POINT_HINGE_EMBEDDING:
        return v_select(t > 0.0f, x, at_least(k->delta - x, 0));
    case DNN_POINT_SOFT_MARGIN:
        return v_softplus(v_select(t > 0.0f, -x, x));
    default:
        return d * d;
    }
}

INLINE vec focal_slope(const struct rows_loss *k, vec x, vec t)
{
    vec p = v_sigmoid(x), wrong = focal_wrong(p, t);
    vec slope_term = (v_softplus(x) - x * t) * k->gamma *
                     power_of(wrong, k->gamma - 1) * (1.0f - 2.0f * t) * p * (1.0f - p);

    return focal_part(k, t) *
           ((p - t) * power_of(wrong, k->gamma) + v_where(wrong > 0.0f, slope_term));
}

INLINE vec point_slope(const struct rows_loss *k, vec x, vec t)
{
    vec d = x - t, one = v_splat(1), delta = v_splat(k->delta);

    switch (k->fn) {
    case DNN_POINT_ABSOLUTE:
        return v_where(d > 0.0f, one) - v_where(d < 0.0f, one);
    case DNN_POINT_HUBER:
        return v_select(d > k->delta, delta, at_least(d, -k->delta));
    case DNN_POINT_HINGE:
        return v_select(t > 0.0f, -v_where(x < 1.0f, one), v_where(x > -1.0f, one));
    case DNN_POINT_BCE:
        return d / at_least(x * (1.0f - x), 1e-12f);
    case DNN_POINT_BCE_LOGITS:
        return v_sigmoid(x) - t;
    case DNN_POINT_FOCAL:
        return focal_slope(k, x, t);
    case DNN_POINT_KL:
        return -v_where(t > 0.0f, t);
    case DNN_POINT_MAPE:
        return 100.0f * (v_where(d > 0.0f, one) - v_where(d < 0.0f, one)) /
               at_least(v_abs(t), k->delta);
    case DNN_POINT_POISSON:
        return k->raw ? v_exp(x) - t : 1.0f - t / (x + k->delta);
    case DNN_POINT_HINGE_EMBEDDING:
        return v_select(t > 0.0f, one, -v_where(x < k->delta, one));
    case DNN_POINT_SOFT_MARGIN:
        return v_sigmoid(x) - v_where(t > 0.0f, one);
    default:
        return 2.0f * d;
    }
}

INLINE double group_point(const struct rows_loss *k, const int c)
{
    vec w = pattern(k->w, c);
    int64_t n = k->rows * c;
    dvec all = {0};

    for (int64_t i = 0; i < n; i += LANES) {
        int64_t left = n - i < LANES ? n - i : 0;
        vec x = v_load_some(k->x + i, left), target;
        ivec valid = group_target(k, i, left, c, &target);
        vec loss = v_where(valid, w * point_value(k, x, target));

        all += v_low(loss) + v_high(loss);
    }
    return d_sum(all);
}

INLINE void group_point_data(const struct rows_loss *k, const int c)
{
    vec w = pattern(k->w, c) * k->factor;
    int64_t n = k->rows * c;

    for (int64_t i = 0; i < n; i += LANES) {
        int64_t left = n - i < LANES ? n - i : 0;
        vec x = v_load_some(k->x + i, left), target;
        ivec valid = group_target(k, i, left, c, &target);

        v_store_some(k->y + i, v_where(valid, w * point_slope(k, x, target)), left);
    }
}

INLINE double lane_point(const struct rows_loss *k, int64_t r, float *x, const float *t,
                         const bool data)
{
    ivec label = lane_label(k, r);
    dvec total = {0};

    for (int64_t j = 0; j < k->n; j++) {
        vec target, at = v_load(x + j * ROWS_BLOCK);
        ivec valid = lane_target(k, label, j, t, &target);
        float w = weight_of(k, j);

        if (data) {
            v_store(x + j * ROWS_BLOCK,
                    v_where(valid, w * k->factor * point_slope(k, at, target)));
            continue;
        }
        vec loss = v_where(valid, w * point_value(k, at, target));
        total += v_low(loss) + v_high(loss);
    }
    return d_sum(total);
}

static TARGET double point(const struct rows_loss *k)
{
    float *x = k->scratch, *t = x + ROWS_BLOCK * k->n;
    double sum = 0;

    RUN_LOSS_GROUPS(k, group_point)
    for (int64_t r = 0; r < k->rows; r += ROWS_BLOCK) {
        (void)transpose_rows(k, r, x, t);
        for (int v = 0; v < ROWS_BLOCK; v += LANES)
            sum += lane_point(k, r + v, x + v, t + v, false);
    }
    return sum;
}

static TARGET void point_data(const struct rows_loss *k)
{
    float *x = k->scratch, *t = x + ROWS_BLOCK * k->n;

    RUN_LOSS_GROUPS(k, group_point_data)
    for (int64_t r = 0; r < k->rows; r += ROWS_BLOCK) {
        int64_t rows = transpose_rows(k, r, x, t);

        for (int v = 0; v < ROWS_BLOCK; v += LANES)
            (void)lane_point(k, r + v, x + v, t + v, true);
        transpose_out(x, k->y + r * k->y_pitch, k->y_pitch, rows, k->n);
    }
}
