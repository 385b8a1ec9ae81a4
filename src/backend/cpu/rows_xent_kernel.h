/* rows_xent_kernel.h - cross-entropy of rows of classes, and what losses share.
 *
 * As in rows_class_kernel.h, rows of 1, 2, 4 or 8 classes are taken as they lie,
 * others are transposed.
 *
 * Included by rows_plain.c and rows_avx2.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_softmax_kernel.h"
#include "op/op.h"

/* ---- targets ---- */

/* c numbers again and again. */
INLINE vec pattern(const float *w, const int c)
{
    float each[LANES];

    for (int i = 0; i < LANES; i++)
        each[i] = w == NULL ? 1 : w[i % c];
    return v_load(each);
}

/* Where a label counts: there is one, and nobody ignores it. */
INLINE ivec counted(const struct rows_loss *k, ivec label)
{
    int32_t end = k->n == 1 ? 2 : (int32_t)k->n;

    return (label >= 0) & (label < end) & (label != k->ignore);
}

/* The labels of whole rows of c classes, once for each class. */
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

/* The same where rows end before the vector does; -1 for those there are not. */
INLINE ivec group_label_some(const int32_t *at, int64_t rows, const int c)
{
    int32_t each[LANES];

    for (int l = 0; l < LANES; l++)
        each[l] = l / c < rows ? at[l / c] : -1;
    return *(const ivec *)each;
}

/* Targets of the lanes from element i on; returns which count. */
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
    return counted(k, label);
}

/* The labels of LANES rows from r on, or, without labels, 0 where there is a row. */
INLINE ivec lane_label(const struct rows_loss *k, int64_t r)
{
    int32_t each[LANES];

    for (int i = 0; i < LANES; i++)
        each[i] = r + i >= k->rows ? -1 : k->labels == NULL ? 0 : k->labels[r + i];
    return *(const ivec *)each;
}

/* Of class j of the lanes' rows. */
INLINE ivec lane_target(const struct rows_loss *k, ivec label, int64_t j,
                        const float *t, vec *target)
{
    if (k->labels == NULL) {
        *target = v_load(t + j * ROWS_BLOCK);
        return label >= 0;
    }
    *target = v_where(label == (k->n == 1 ? 1 : (int32_t)j), v_splat(1));
    return counted(k, label);
}

/* The rows from r on: how many, and their numbers turned. */
INLINE int64_t turn_few(const struct rows_loss *k, int64_t r, float *x, float *t)
{
    int64_t few = k->rows - r < ROWS_BLOCK ? k->rows - r : ROWS_BLOCK;

    turn_in(x, k->x + r * k->x_pitch, k->x_pitch, few, k->n);
    if (k->t != NULL && k->labels == NULL)
        turn_in(t, k->t + r * k->t_pitch, k->t_pitch, few, k->n);
    return few;
}

/* Classes of a row that fill vectors as they lie, or 0. */
INLINE int side_by_side(const struct rows_loss *k)
{
    bool few = k->n == 1 || k->n == 2 || k->n == 4 || (k->n == 8 && LANES == 8);

    if (!few || k->x_pitch != k->n) return 0;
    if (k->t != NULL && k->labels == NULL && k->t_pitch != k->n) return 0;
    if (k->dp != NULL && k->dp_pitch != k->n) return 0;
    return k->y == NULL || k->y_pitch == k->n ? (int)k->n : 0;
}

#define SIDE_BY_SIDE(k, function)                                                      \
    switch (side_by_side(k)) {                                                         \
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

INLINE vec to_the(vec x, float e)
{
    if (e == 0.0f) return v_splat(1);
    if (e == 1.0f) return x;
    if (e == 2.0f) return x * x;
    return v_exp(v_log(x) * e);
}

/* -m (1 - p)^gamma log p, and p times its slope without the m. */
INLINE vec xent_term(const struct rows_loss *k, vec mass, vec less)
{
    if (k->gamma != 0.0f) mass *= to_the(1.0f - v_exp(-less), k->gamma);
    return v_where((mass > 0.0f) | (mass < 0.0f), mass * less);
}

INLINE vec xent_slope(const struct rows_loss *k, vec p, vec log_p)
{
    if (k->gamma == 0.0f) return v_splat(-1);
    vec rest = 1.0f - p;
    vec q = k->gamma * to_the(rest, k->gamma - 1) * p * log_p - to_the(rest, k->gamma);
    return v_where(~(rest <= 0.0f), q);
}

/* Without gamma: mass (log of the sum) - t v.  A vector has few rows, so the sums of c
 * vectors share one logarithm: lane l holds that of its row in vector l % c. */
INLINE double group_xent_plain(const struct rows_loss *k, const int c)
{
    vec w = pattern(k->w, c), on = w * k->on, off = w * k->off;
    int64_t n = k->rows * c, i = 0;
    dvec all = {0};

    while (i < n) {
        vec sums = v_splat(1), masses = {0};

        for (int u = 0; u < c && i < n; u++, i += LANES) {
            int64_t left = n - i < LANES ? n - i : 0;
            vec x = v_load_some(k->x + i, left), v = x - group_most(x, c), target;
            ivec counts = group_target(k, i, left, c, &target);
            ivec pick = (LANE_NUMBERS & (c - 1)) == u;
            vec mass = v_where(counts, target * on + off);
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
        vec less = -v_load_some(k->x + i, left), target;
        ivec counts = group_target(k, i, left, c, &target);

        if (!k->raw) {
            vec v = -less - group_most(-less, c);
            less = v_log(group_sum(v_exp(v), c)) - v;
        }
        vec loss = xent_term(k, v_where(counts, target * on + off), less);
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
        ivec counts = group_target(k, i, left, c, &target);

        if (!k->raw) {
            vec v = x - group_most(x, c), e = v_exp(v), sum = group_sum(e, c);

            p = e / sum;
            if (k->gamma != 0.0f) log_p = v - v_log(sum);
        }
        vec d = v_where(counts, target * on + off) * xent_slope(k, p, log_p);
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
    vec most = {0}, all = {0};
    ivec label = lane_label(k, r);
    dvec two = {0};

    if (!k->raw) {
        most = lane_most(x, k->n);
        all = v_log(lane_sum(x, k->n, most, NULL));
    }
    for (int64_t j = 0; j < k->n; j++) {
        vec target, w = v_splat(weight_of(k, j));
        ivec counts = lane_target(k, label, j, t, &target);
        vec loss = xent_term(k, v_where(counts, (target * k->on + k->off) * w),
                             all - (v_load(x + j * ROWS_BLOCK) - most));

        two += v_low(loss) + v_high(loss);
    }
    return d_sum(two);
}

INLINE void lane_xent_data(const struct rows_loss *k, int64_t r, float *x,
                           const float *t)
{
    vec most = k->raw ? v_splat(0) : lane_most(x, k->n), all = {0}, sum = {0};
    ivec label = lane_label(k, r);

    if (!k->raw) all = v_log(lane_sum(x, k->n, most, NULL));
    for (int pass = k->raw ? 1 : 0; pass < 2; pass++)
        for (int64_t j = 0; j < k->n; j++) {
            vec log_p = (v_load(x + j * ROWS_BLOCK) - most) - all, target;
            vec w = v_splat(weight_of(k, j) * k->factor), p = {0};
            ivec counts = lane_target(k, label, j, t, &target);

            if (!k->raw) p = v_exp(log_p);
            vec d = v_where(counts, (target * k->on + k->off) * w) *
                    xent_slope(k, p, log_p);
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

    SIDE_BY_SIDE(k, group_xent)
    for (int64_t r = 0; r < k->rows; r += ROWS_BLOCK) {
        (void)turn_few(k, r, x, t);
        for (int v = 0; v < ROWS_BLOCK; v += LANES)
            sum += lane_xent(k, r + v, x + v, t + v);
    }
    return sum;
}

static TARGET void xent_data(const struct rows_loss *k)
{
    float *x = k->scratch, *t = x + ROWS_BLOCK * k->n;

    SIDE_BY_SIDE(k, group_xent_data)
    for (int64_t r = 0; r < k->rows; r += ROWS_BLOCK) {
        int64_t few = turn_few(k, r, x, t);

        for (int v = 0; v < ROWS_BLOCK; v += LANES)
            lane_xent_data(k, r + v, x + v, t + v);
        turn_out(x, k->y + r * k->y_pitch, k->y_pitch, few, k->n);
    }
}
