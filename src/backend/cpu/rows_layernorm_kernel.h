/* rows_layernorm_kernel.h - the norm of each row by itself, and what goes over rows
 * column by column.
 *
 * Included by rows_plain.c and rows_avx2.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_kernel.h"
#include "backend/cpu/vmath_impl.h"

/* The first left lanes, 0 elsewhere; left 0: all. */
INLINE vec first_of(vec v, int64_t left)
{
    float few[LANES];

    if (left == 0) return v;
    v_store(few, v);
    return v_load_part(few, left);
}

INLINE int64_t lanes_left(int64_t n, int64_t j)
{
    return n - j < LANES ? n - j : 0;
}

INLINE double add_lanes(dvec a)
{
    double s = 0;

    for (int i = 0; i < LANES / 2; i++)
        s += a[i];
    return s;
}

/* ---- forward ---- */

INLINE double row_mean(const float *x, int64_t n)
{
    dvec low = {0}, high = {0};

    for (int64_t j = 0; j < n; j += LANES) {
        vec v = v_load_some(x + j, lanes_left(n, j));

        low += v_low(v);
        high += v_high(v);
    }
    return add_lanes(low + high) / (double)n;
}

/* The mean of (x - m)^2. */
INLINE double row_spread(const float *x, int64_t n, float m)
{
    dvec low = {0}, high = {0};

    for (int64_t j = 0; j < n; j += LANES) {
        int64_t left = lanes_left(n, j);
        vec v = first_of(v_load_some(x + j, left) - m, left);

        low += v_low(v) * v_low(v);
        high += v_high(v) * v_high(v);
    }
    return add_lanes(low + high) / (double)n;
}

/* y = ((x - m) inv + more) gamma + beta. */
INLINE void row_value(const struct rows_layer *l, int64_t r, float m, float inv,
                      float more)
{
    const float *x = l->x + r * l->x_pitch;
    float *y = l->y + r * l->y_pitch;

    for (int64_t j = 0; j < l->n; j += LANES) {
        int64_t left = lanes_left(l->n, j);
        vec v = (v_load_some(x + j, left) - m) * inv + more;

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

static TARGET void layer_again(const struct rows_layer *l)
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
            hat_and_slope(&l, r, j, lanes_left(l.n, j), &hat, &d);
            sum += v_low(d) + v_high(d); /* past the end d is 0 */
            product += v_low(d) * v_low(hat) + v_high(d) * v_high(hat);
        }
        float s = (float)(add_lanes(sum) / (double)l.n);
        float p = (float)(add_lanes(product) / (double)l.n), inv = l.inv[r];
        for (int64_t j = 0; j < l.n; j += LANES) {
            int64_t left = lanes_left(l.n, j);

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

/* A few rows as floats, then doubles; gamma is not looked at. */
static TARGET void layer_weights(const struct rows_layer *given)
{
    struct rows_layer l = *given;

    l.gamma = NULL;
    for (int64_t first = 0; first < l.rows; first += ROWS_BLOCK) {
        int64_t last = first + ROWS_BLOCK;

        if (last > l.rows) last = l.rows;
        for (int64_t j = 0; j < l.n; j += LANES) {
            int64_t left = lanes_left(l.n, j);
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

enum { BLOCK = 64 }; /* rows done before going on to the next columns */

/* What is not a number wins. */
INLINE void most_at(const struct rows_column *c, int64_t first, int64_t last, int64_t j)
{
    int64_t left = lanes_left(c->n, j);
    vec most = v_load_some(c->out + j, left);

    for (int64_t r = first; r < last; r++) {
        vec v = v_load_some(c->x + r * c->x_pitch + j, left);

        most = v_select((v > most) | (v != v), v, most);
    }
    v_store_some(c->out + j, most, left);
}

INLINE void equal_at(const struct rows_column *c, int64_t first, int64_t last,
                     int64_t j)
{
    int64_t left = lanes_left(c->n, j);
    vec most = v_load_some(c->most + j, left), sum = v_load_some(c->out + j, left);

    for (int64_t r = first; r < last; r++)
        sum +=
            v_where(v_load_some(c->x + r * c->x_pitch + j, left) == most, v_splat(1));
    v_store_some(c->out + j, sum, left);
}

static TARGET void column_most(const struct rows_column *c)
{
    for (int64_t r = 0; r < c->rows; r += BLOCK)
        for (int64_t j = 0; j < c->n; j += LANES)
            most_at(c, r, c->rows - r < BLOCK ? c->rows : r + BLOCK, j);
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
            int64_t left = lanes_left(c->n, j);
            ivec it = v_load_some(c->x + r * c->x_pitch + j, left) ==
                      v_load_some(c->most + j, left);

            v_store_some(c->y + r * c->y_pitch + j,
                         v_where(it, v_load_some(c->dy + j, left)), left);
        }
}

static TARGET void column_prelu(const struct rows_column *c)
{
    for (int64_t first = 0; first < c->rows; first += ROWS_BLOCK) {
        int64_t last = first + ROWS_BLOCK;

        if (last > c->rows) last = c->rows;
        for (int64_t j = 0; j < c->n; j += LANES) {
            int64_t left = lanes_left(c->n, j);
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
