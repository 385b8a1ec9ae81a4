/* rows_xent_kernel.h - cross-entropy of rows of classes, and functions shared by
 * losses.
 *
 * As in rows_softmax_kernel.h, contiguous rows of 1, 2, 4 or 8 classes are whole
 * vectors, others are transposed.
 *
 * Included by rows_isa.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_softmax_kernel.h"
#include "op/op.h"

/* ---- targets ---- */

/* c weights, repeated to fill a vector; w NULL: 1. */
INLINE vec pattern(const float *w, const int c)
{
    float each[LANES];

    for (int i = 0; i < LANES; i++)
        each[i] = w == NULL ? 1 : w[i % c];
    return v_load(each);
}

/* Where a label is valid and not ignored. */
INLINE ivec valid_labels(const struct rows_loss *k, ivec label)
{
    int32_t end = k->n == 1 ? 2 : (int32_t)k->n;

    return (label >= 0) & (label < end) & (label != k->ignore);
}

/* The labels of complete rows of c classes, repeated for each class. */
INLINE ivec group_label(const int32_t *at, const int c)
{
#if LANES == 8
    if (c == 1) return *(const ivec *)at;
    if (c == 8) return LANE_NUMBERS * 0 + at[0];
    if (c == 4) return (ivec){at[0], at[0], at[0], at[0], at[1], at[1], at[1], at[1]};
    return (ivec){at[0], at[0], at[1], at[1], at[2], at[2], at[3], at[3]};
#else
    if (c == 1) return *(const ivec *)at;
    if (c == 4) return LANE_NUMBERS * 0 + at[0];
    return (ivec){at[0], at[0], at[1], at[1]};
#endif
}

/* The same for the last rows; -1 past the end. */
INLINE ivec group_label_some(const int32_t *at, int64_t rows, const int c)
{
    int32_t each[LANES];

    for (int l = 0; l < LANES; l++)
        each[l] = l / c < rows ? at[l / c] : -1;
    return *(const ivec *)each;
}

/* Targets of the lanes from element i on; returns the mask of valid lanes. */
INLINE ivec group_target(const struct rows_loss *k, int64_t i, int64_t left,
                         const int c, vec *target)
{
    int64_t row = i / c;

    if (k->labels == NULL) {
        *target = v_load_some(k->t + i, left);
        return LANE_NUMBERS < (int32_t)(left == 0 ? LANES : left);
    }
    ivec label = left == 0 ? group_label(k->labels + row, c)
                           : group_label_some(k->labels + row, k->rows - row, c);
    ivec class = c == 1 ? LANE_NUMBERS * 0 + 1 : LANE_NUMBERS & (c - 1);
    *target = v_where(label == class, v_splat(1));
    return valid_labels(k, label);
}

/* The labels of LANES rows from r on (without labels: 0); -1 past the last row. */
INLINE ivec lane_label(const struct rows_loss *k, int64_t r)
{
    int32_t each[LANES];

    for (int i = 0; i < LANES; i++)
        each[i] = r + i >= k->rows ? -1 : k->labels == NULL ? 0 : k->labels[r + i];
    return *(const ivec *)each;
}

/* Targets of class j of the lanes' rows; returns the mask of valid lanes. */
INLINE ivec lane_target(const struct rows_loss *k, ivec label, int64_t j,
                        const float *t, vec *target)
{
    if (k->labels == NULL) {
        *target = v_load(t + j * ROWS_BLOCK);
        return label >= 0;
    }
    *target = v_where(label == (k->n == 1 ? 1 : (int32_t)j), v_splat(1));
    return valid_labels(k, label);
}

/* Transpose up to ROWS_BLOCK rows of x and t from r on; returns their number. */
INLINE int64_t transpose_rows(const struct rows_loss *k, int64_t r, float *x, float *t)
{
    int64_t rows = k->rows - r < ROWS_BLOCK ? k->rows - r : ROWS_BLOCK;

    transpose_in(x, k->x + r * k->x_pitch, k->x_pitch, rows, k->n);
    if (k->t != NULL && k->labels == NULL)
        transpose_in(t, k->t + r * k->t_pitch, k->t_pitch, rows, k->n);
    return rows;
}

/* The number of classes, if rows are contiguous and fill vectors, else 0. */
INLINE int loss_group_size(const struct rows_loss *k)
{
    bool fits = k->n == 1 || k->n == 2 || k->n == 4 || (k->n == 8 && LANES == 8);

    if (!fits || k->x_pitch != k->n) return 0;
    if (k->t != NULL && k->labels == NULL && k->t_pitch != k->n) return 0;
    if (k->dp != NULL && k->dp_pitch != k->n) return 0;
    return k->y == NULL || k->y_pitch == k->n ? (int)k->n : 0;
}

#define RUN_LOSS_GROUPS(k, function)                                                   \
    switch (loss_group_size(k)) {                                                      \
    case 1:                                                                            \
        return function(k, 1);                                                         \
    case 2:                                                                            \
        return function(k, 2);                                                         \
    case 4:                                                                            \
        return function(k, 4);                                                         \
    case 8:                                                                            \
        return function(k, 8);                                                         \
    }

/* ---- cross-entropy ---- */

/* x^e, with fast paths. */
INLINE vec power_of(vec x, float e)
{
    if (e == 0.0f) return v_splat(1);
    if (e == 1.0f) return x;
    if (e == 2.0f) return x * x;
    return v_exp(v_log(x) * e);
}

/* -mass (1 - p)^gamma log p; and p times its derivative, without the factor mass. */
INLINE vec xent_term(const struct rows_loss *k, vec mass, vec neg_log_p)
{
    if (k->gamma != 0.0f) mass *= power_of(1.0f - v_exp(-neg_log_p), k->gamma);
    return v_where((mass > 0.0f) | (mass < 0.0f), mass * neg_log_p);
}

INLINE vec xent_slope(const struct rows_loss *k, vec p, vec log_p)
{
    if (k->gamma == 0.0f) return v_splat(-1);
    vec rest = 1.0f - p;
    vec q =
        k->gamma * power_of(rest, k->gamma - 1) * p * log_p - power_of(rest, k->gamma);
    return v_where(~(rest <= 0.0f), q);
}

/* Without gamma: the sum of mass * (log(sum) - v).  A vector has few rows, so the sums
 * of c vectors are collected for one logarithm: lane l has that of its row in vector l
 * % c. */
INLINE double group_xent_plain(const struct rows_loss *k, const int c)
{
    vec w = pattern(k->w, c), on = w * k->on, off = w * k->off;
    int64_t n = k->rows * c, i = 0;
    dvec all = {0};

    while (i < n) {
        vec sums = v_splat(1), masses = {0};

        for (int u = 0; u < c && i < n; u++, i += LANES) {
            int64_t left = n - i < LANES ? n - i : 0;
            vec x = v_load_some(k->x + i, left), v = x - group_max(x, c), target;
            ivec valid = group_target(k, i, left, c, &target);
            ivec pick = (LANE_NUMBERS & (c - 1)) == u;
            vec mass = v_where(valid, target * on + off);
            vec part = v_where((mass > 0.0f) | (mass < 0.0f), mass * v);

            sums = v_select(pick, group_sum(v_exp(v), c), sums);
            masses = v_select(pick, group_sum(mass, c), masses);
            all -= v_low(part) + v_high(part);
        }
        vec rest = v_where((masses > 0.0f) | (masses < 0.0f), masses * v_log(sums));
        all += v_low(rest) + v_high(rest);
    }
    return d_sum(all);
}

INLINE double group_xent(const struct rows_loss *k, const int c)
{
    vec w = pattern(k->w, c), on = w * k->on, off = w * k->off;
    int64_t n = k->rows * c;
    dvec all = {0};

    if (k->gamma == 0.0f && !k->raw) return group_xent_plain(k, c);
    for (int64_t i = 0; i < n; i += LANES) {
        int64_t left = n - i < LANES ? n - i : 0;
        vec neg_log_p = -v_load_some(k->x + i, left), target;
        ivec valid = group_target(k, i, left, c, &target);

        if (!k->raw) {
            vec v = -neg_log_p - group_max(-neg_log_p, c);
            neg_log_p = v_log(group_sum(v_exp(v), c)) - v;
        }
        vec loss = xent_term(k, v_where(valid, target * on + off), neg_log_p);
        all += v_low(loss) + v_high(loss);
    }
    return d_sum(all);
}

INLINE void group_xent_data(const struct rows_loss *k, const int c)
{
    vec w = pattern(k->w, c) * k->factor, on = w * k->on, off = w * k->off;
    int64_t n = k->rows * c;

    for (int64_t i = 0; i < n; i += LANES) {
        int64_t left = n - i < LANES ? n - i : 0;
        vec x = v_load_some(k->x + i, left), target, p = {0}, log_p = x;
        ivec valid = group_target(k, i, left, c, &target);

        if (!k->raw) {
            vec v = x - group_max(x, c), e = v_exp(v), sum = group_sum(e, c);

            p = e / sum;
            if (k->gamma != 0.0f) log_p = v - v_log(sum);
        }
        vec d = v_where(valid, target * on + off) * xent_slope(k, p, log_p);
        if (!k->raw) d -= p * group_sum(d, c);
        v_store_some(k->y + i, d, left);
    }
}

INLINE float weight_of(const struct rows_loss *k, int64_t j)
{
    return k->w == NULL ? 1 : k->w[j];
}

INLINE double lane_xent(const struct rows_loss *k, int64_t r, const float *x,
                        const float *t)
{
    vec max = {0}, log_sum = {0};
    ivec label = lane_label(k, r);
    dvec total = {0};

    if (!k->raw) {
        max = lane_max(x, k->n);
        log_sum = v_log(lane_sum(x, k->n, max, NULL));
    }
    for (int64_t j = 0; j < k->n; j++) {
        vec target, w = v_splat(weight_of(k, j));
        ivec valid = lane_target(k, label, j, t, &target);
        vec loss = xent_term(k, v_where(valid, (target * k->on + k->off) * w),
                             log_sum - (v_load(x + j * ROWS_BLOCK) - max));

        total += v_low(loss) + v_high(loss);
    }
    return d_sum(total);
}

INLINE void lane_xent_data(const struct rows_loss *k, int64_t r, float *x,
                           const float *t)
{
    vec max = k->raw ? v_splat(0) : lane_max(x, k->n), log_sum = {0}, sum = {0};
    ivec label = lane_label(k, r);

    if (!k->raw) log_sum = v_log(lane_sum(x, k->n, max, NULL));
    for (int pass = k->raw ? 1 : 0; pass < 2; pass++)
        for (int64_t j = 0; j < k->n; j++) {
            vec log_p = (v_load(x + j * ROWS_BLOCK) - max) - log_sum, target;
            vec w = v_splat(weight_of(k, j) * k->factor), p = {0};
            ivec valid = lane_target(k, label, j, t, &target);

            if (!k->raw) p = v_exp(log_p);
            vec d =
                v_where(valid, (target * k->on + k->off) * w) * xent_slope(k, p, log_p);
            if (pass == 0)
                sum += d;
            else
                v_store(x + j * ROWS_BLOCK, d - p * sum);
        }
}

static TARGET double xent(const struct rows_loss *k)
{
    float *x = k->scratch, *t = x + ROWS_BLOCK * k->n;
    double sum = 0;

    RUN_LOSS_GROUPS(k, group_xent)
    for (int64_t r = 0; r < k->rows; r += ROWS_BLOCK) {
        (void)transpose_rows(k, r, x, t);
        for (int v = 0; v < ROWS_BLOCK; v += LANES)
            sum += lane_xent(k, r + v, x + v, t + v);
    }
    return sum;
}

static TARGET void xent_data(const struct rows_loss *k)
{
    float *x = k->scratch, *t = x + ROWS_BLOCK * k->n;

    RUN_LOSS_GROUPS(k, group_xent_data)
    for (int64_t r = 0; r < k->rows; r += ROWS_BLOCK) {
        int64_t rows = transpose_rows(k, r, x, t);

        for (int v = 0; v < ROWS_BLOCK; v += LANES)
            lane_xent_data(k, r + v, x + v, t + v);
        transpose_out(x, k->y + r * k->y_pitch, k->y_pitch, rows, k->n);
    }
}
