/* rows_overlap_kernel.h - sums of probabilities and masks, and their gradients.
 *
 * Included by rows_isa.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_point_kernel.h"

INLINE vec group_p(const struct rows_loss *k, vec x, const int c)
{
    if (k->source == DNN_HEAD_SIGMOID) return v_sigmoid(x);
    if (k->source != DNN_HEAD_SOFTMAX) return x;
    vec e = v_exp(x - group_max(x, c));
    return e / group_sum(e, c);
}

/* Add the lanes to the sums of their classes: lane i is class i % c. */
INLINE void group_add(double *to, dvec low, dvec high, const int c)
{
    for (int i = 0; i < LANES / 2; i++) {
        to[i % c * 3] += low[i];
        to[(i + LANES / 2) % c * 3] += high[i];
    }
}

INLINE void group_overlap(const struct rows_loss *k, const int c)
{
    int64_t n = k->rows * c;
    dvec low[3] = {{0}}, high[3] = {{0}};

    for (int64_t i = 0; i < n; i += LANES) {
        int64_t left = n - i < LANES ? n - i : 0;
        vec p = group_p(k, v_load_some(k->x + i, left), c), t;
        ivec valid = group_target(k, i, left, c, &t);

        p = v_where(valid, p);
        t = v_where(valid, t);
        vec both = p * t;
        low[0] += v_low(both);
        high[0] += v_high(both);
        low[1] += v_low(p);
        high[1] += v_high(p);
        low[2] += v_low(t);
        high[2] += v_high(t);
    }
    for (int s = 0; s < 3; s++)
        group_add(k->sums + s, low[s], high[s], c);
}

INLINE vec p_slope(const struct rows_loss *k, vec p, vec d, vec sum)
{
    if (k->source == DNN_HEAD_SOFTMAX) return p * (d - sum);
    if (k->source == DNN_HEAD_SIGMOID) return d * p * (1.0f - p);
    return d;
}

INLINE void group_overlap_data(const struct rows_loss *k, const int c)
{
    vec pt = pattern(k->pt, c), add = pattern(k->p, c);
    int64_t n = k->rows * c;

    for (int64_t i = 0; i < n; i += LANES) {
        int64_t left = n - i < LANES ? n - i : 0;
        vec p = group_p(k, v_load_some(k->x + i, left), c), d, t;

        if (k->pt == NULL)
            d = v_load_some(k->dp + i, left) * k->factor;
        else {
            ivec valid = group_target(k, i, left, c, &t);
            d = v_where(valid, t * pt + add);
        }
        v_store_some(k->y + i, p_slope(k, p, d, group_sum(d * p, c)), left);
    }
}

/* x becomes p, in place. */
INLINE void lane_p(const struct rows_loss *k, float *x)
{
    if (k->source == DNN_HEAD_SOFTMAX) {
        lane_softmax(x, k->n, false);
        return;
    }
    for (int64_t j = 0; j < k->n && k->source == DNN_HEAD_SIGMOID; j++)
        v_store(x + j * ROWS_BLOCK, v_sigmoid(v_load(x + j * ROWS_BLOCK)));
}

INLINE void lane_overlap(const struct rows_loss *k, int64_t r, float *x, const float *t)
{
    ivec label = lane_label(k, r);

    lane_p(k, x);
    for (int64_t j = 0; j < k->n; j++) {
        vec target, p = v_load(x + j * ROWS_BLOCK);
        ivec valid = lane_target(k, label, j, t, &target);

        p = v_where(valid, p);
        target = v_where(valid, target);
        k->sums[j * 3] += v_sum(p * target);
        k->sums[j * 3 + 1] += v_sum(p);
        k->sums[j * 3 + 2] += v_sum(target);
    }
}

/* t: targets, or gradients of p. */
INLINE void lane_overlap_data(const struct rows_loss *k, int64_t r, float *x, float *t)
{
    ivec label = lane_label(k, r);
    vec sum = {0};

    lane_p(k, x);
    for (int64_t j = 0; j < k->n; j++) {
        vec d, target;

        if (k->pt == NULL)
            d = v_load(t + j * ROWS_BLOCK) * k->factor;
        else {
            ivec valid = lane_target(k, label, j, t, &target);
            d = v_where(valid, target * k->pt[j] + k->p[j]);
        }
        v_store(t + j * ROWS_BLOCK, d);
        sum += d * v_load(x + j * ROWS_BLOCK);
    }
    for (int64_t j = 0; j < k->n; j++)
        v_store(x + j * ROWS_BLOCK, p_slope(k, v_load(x + j * ROWS_BLOCK),
                                            v_load(t + j * ROWS_BLOCK), sum));
}

static TARGET void overlap(const struct rows_loss *k)
{
    float *x = k->scratch, *t = x + ROWS_BLOCK * k->n;

    RUN_LOSS_GROUPS(k, group_overlap)
    for (int64_t r = 0; r < k->rows; r += ROWS_BLOCK) {
        (void)transpose_rows(k, r, x, t);
        for (int v = 0; v < ROWS_BLOCK; v += LANES)
            lane_overlap(k, r + v, x + v, t + v);
    }
}

static TARGET void overlap_data(const struct rows_loss *k)
{
    float *x = k->scratch, *t = x + ROWS_BLOCK * k->n;

    RUN_LOSS_GROUPS(k, group_overlap_data)
    for (int64_t r = 0; r < k->rows; r += ROWS_BLOCK) {
        int64_t rows = transpose_rows(k, r, x, t);

        if (k->pt == NULL)
            transpose_in(t, k->dp + r * k->dp_pitch, k->dp_pitch, rows, k->n);
        for (int v = 0; v < ROWS_BLOCK; v += LANES)
            lane_overlap_data(k, r + v, x + v, t + v);
        transpose_out(x, k->y + r * k->y_pitch, k->y_pitch, rows, k->n);
    }
}
