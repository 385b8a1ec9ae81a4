/* rows_layernorm_kernel.h - layer norm of rows, and loops over rows column by column.
 *
 * Included by rows_isa.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_kernel.h"
#include "backend/cpu/vmath_impl.h"

/* v with all but the first left lanes set to 0; left 0: v. */
INLINE vec keep_first(vec v, int64_t left)
{
    float lanes[LANES];

    if (left == 0) return v;
    v_store(lanes, v);
    return v_load_part(lanes, left);
}

/* ---- forward ---- */

INLINE double row_mean(const float *x, int64_t n)
{
    dvec low = {0}, high = {0};

    for (int64_t j = 0; j < n; j += LANES) {
        vec v = v_load_some(x + j, left_of(n, j));

        low += v_low(v);
        high += v_high(v);
    }
    return d_sum(low + high) / (double)n;
}

/* The mean of (x - m)^2. */
INLINE double row_spread(const float *x, int64_t n, float m)
{
    dvec low = {0}, high = {0};

    for (int64_t j = 0; j < n; j += LANES) {
        int64_t left = left_of(n, j);
        vec v = keep_first(v_load_some(x + j, left) - m, left);

        low += v_low(v) * v_low(v);
        high += v_high(v) * v_high(v);
    }
    return d_sum(low + high) / (double)n;
}

/* y = ((x - m) inv + shift) gamma + beta. */
INLINE void row_value(const struct rows_layer *l, int64_t r, float m, float inv,
                      float shift)
{
    const float *x = l->x + r * l->x_pitch;
    float *y = l->y + r * l->y_pitch;

    for (int64_t j = 0; j < l->n; j += LANES) {
        int64_t left = left_of(l->n, j);
        vec v = (v_load_some(x + j, left) - m) * inv + shift;

        if (l->gamma != NULL) v *= v_load_some(l->gamma + j, left);
        if (l->beta != NULL) v += v_load_some(l->beta + j, left);
        v_store_some(y + j, v, left);
    }
}

static TARGET void layer(const struct rows_layer *l)
{
    for (int64_t r = 0; r < l->rows; r++) {
        const float *x = l->x + r * l->x_pitch;
        double mean = row_mean(x, l->n);
        float m = (float)mean;
        double off = m - mean, variance = row_spread(x, l->n, m) - off * off;
        double inv = 1 / sqrt((variance > 0 ? variance : 0) + l->epsilon);

        if (!(variance == variance)) inv = NAN;
        if (l->mean != NULL) l->mean[r] = m;
        if (l->inv != NULL) l->inv[r] = (float)inv;
        row_value(l, r, m, (float)inv, (float)(off * inv));
    }
}

static TARGET void layer_recompute(const struct rows_layer *l)
{
    for (int64_t r = 0; r < l->rows; r++)
        row_value(l, r, l->mean[r], l->inv[r], 0);
}

/* ---- backward ---- */

INLINE void hat_and_slope(const struct rows_layer *l, int64_t r, int64_t j,
                          int64_t left, vec *hat, vec *d)
{
    *hat = (v_load_some(l->x + r * l->x_pitch + j, left) - l->mean[r]) * l->inv[r];
    *d = v_load_some(l->dy + r * l->dy_pitch + j, left);
    if (l->gamma != NULL) *d *= v_load_some(l->gamma + j, left);
}

static TARGET void layer_data(const struct rows_layer *given)
{
    const struct rows_layer l = *given;

    for (int64_t r = 0; r < l.rows; r++) {
        dvec sum = {0}, product = {0};
        vec hat, d;

        for (int64_t j = 0; j < l.n; j += LANES) {
            hat_and_slope(&l, r, j, left_of(l.n, j), &hat, &d);
            sum += v_low(d) + v_high(d); /* d is 0 past the end */
            product += v_low(d) * v_low(hat) + v_high(d) * v_high(hat);
        }
        float s = (float)(d_sum(sum) / (double)l.n);
        float p = (float)(d_sum(product) / (double)l.n), inv = l.inv[r];
        for (int64_t j = 0; j < l.n; j += LANES) {
            int64_t left = left_of(l.n, j);

            hat_and_slope(&l, r, j, left, &hat, &d);
            v_store_some(l.y + r * l.y_pitch + j, ((d - s) - hat * p) * inv, left);
        }
    }
}

INLINE void add_to(double *to, vec v, int64_t left)
{
    if (left == 0) {
        ((dvec *)to)[0] += v_low(v);
        ((dvec *)to)[1] += v_high(v);
    }
    for (int64_t i = 0; i < left; i++)
        to[i] += v[i];
}

/* Sums of ROWS_BLOCK rows in float, then in double; gamma is not used. */
static TARGET void layer_weights(const struct rows_layer *given)
{
    struct rows_layer l = *given;

    l.gamma = NULL;
    for (int64_t first = 0; first < l.rows; first += ROWS_BLOCK) {
        int64_t last = first + ROWS_BLOCK;

        if (last > l.rows) last = l.rows;
        for (int64_t j = 0; j < l.n; j += LANES) {
            int64_t left = left_of(l.n, j);
            vec sum = {0}, product = {0}, hat, d;

            for (int64_t r = first; r < last; r++) {
                hat_and_slope(&l, r, j, left, &hat, &d);
                sum += d;
                product += d * hat;
            }
            add_to(l.sum + j, sum, left);
            add_to(l.product + j, product, left);
        }
    }
}

/* ---- columns ---- */

enum { BLOCK = 64 }; /* rows computed before the next columns */

/* NaN if there is one. */
INLINE void max_at(const struct rows_column *c, int64_t first, int64_t last, int64_t j)
{
    int64_t left = left_of(c->n, j);
    vec max = v_load_some(c->out + j, left);

    for (int64_t r = first; r < last; r++) {
        vec v = v_load_some(c->x + r * c->x_pitch + j, left);

        max = v_select((v > max) | (v != v), v, max);
    }
    v_store_some(c->out + j, max, left);
}

INLINE void equal_at(const struct rows_column *c, int64_t first, int64_t last,
                     int64_t j)
{
    int64_t left = left_of(c->n, j);
    vec max = v_load_some(c->max + j, left), sum = v_load_some(c->out + j, left);

    for (int64_t r = first; r < last; r++)
        sum += v_where(v_load_some(c->x + r * c->x_pitch + j, left) == max, v_splat(1));
    v_store_some(c->out + j, sum, left);
}

static TARGET void column_max(const struct rows_column *c)
{
    for (int64_t r = 0; r < c->rows; r += BLOCK)
        for (int64_t j = 0; j < c->n; j += LANES)
            max_at(c, r, c->rows - r < BLOCK ? c->rows : r + BLOCK, j);
}

static TARGET void column_equal(const struct rows_column *c)
{
    for (int64_t r = 0; r < c->rows; r += BLOCK)
        for (int64_t j = 0; j < c->n; j += LANES)
            equal_at(c, r, c->rows - r < BLOCK ? c->rows : r + BLOCK, j);
}

static TARGET void column_spread(const struct rows_column *c)
{
    for (int64_t r = 0; r < c->rows; r++)
        for (int64_t j = 0; j < c->n; j += LANES) {
            int64_t left = left_of(c->n, j);
            ivec hit = v_load_some(c->x + r * c->x_pitch + j, left) ==
                       v_load_some(c->max + j, left);

            v_store_some(c->y + r * c->y_pitch + j,
                         v_where(hit, v_load_some(c->dy + j, left)), left);
        }
}

static TARGET void column_prelu(const struct rows_column *c)
{
    for (int64_t first = 0; first < c->rows; first += ROWS_BLOCK) {
        int64_t last = first + ROWS_BLOCK;

        if (last > c->rows) last = c->rows;
        for (int64_t j = 0; j < c->n; j += LANES) {
            int64_t left = left_of(c->n, j);
            vec sum = {0};

            for (int64_t r = first; r < last; r++) {
                vec x = v_load_some(c->x + r * c->x_pitch + j, left);
                vec dy = v_load_some(c->dy + r * c->dy_pitch + j, left);

                sum += v_where(x < 0.0f, dy * x);
            }
            add_to(c->sum + j, sum, left);
        }
    }
}
