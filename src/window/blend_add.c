/* blend_add.c - adds the values of a tile to sums.
 *
 * A value times its weight is rounded to an integer, so sums are exact.  A sum is at
 * most the largest value times its scale, and a rounding error per tile: far from the
 * limits of its type.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "window/window_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* BLOCK: elements that are added at once.  Less work than SMALL is not worth threads.
 */
enum { BLOCK = 1024, SMALL = 1 << 14 };

static const float SCALE = 0x1p30f, WIDE_SCALE = 0x1p32f;
/* Of absolute values.  A bounded one may exceed 1 by its rounding error. */
static const float LARGEST = 1 + 1e-5f, WIDE_LARGEST = 0x1p30f - 64;

/* A sum that becomes a value, in the same memory. */
typedef float float_in_place __attribute__((may_alias));

static float scale_of(const struct dnn_blend *blend)
{
    return blend->cfg.bounded ? SCALE : WIDE_SCALE;
}

static float largest_of(const struct dnn_blend *blend)
{
    return blend->cfg.bounded ? LARGEST : WIDE_LARGEST;
}

/* ---- elements ---- */

/* Comparisons as integers, so that the loops become vector instructions: the bits of
 * absolute values are ordered like the values, and NaN is above infinity. */
static inline uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float from_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* All bits, or none if |x| > largest or x is NaN. */
static inline uint32_t good_mask(float x, float largest)
{
    return (bits_of(x) & 0x7fffffffu) <= bits_of(largest) ? ~0u : 0;
}

/* 0.5 with the sign of x: added before truncation, it rounds to nearest. */
static inline float half_of(float x)
{
    return from_bits((bits_of(x) & 0x80000000u) | bits_of(0.5f));
}

/* Both return whether some value is bad; it is then not added. */
static bool add_bounded(int32_t *restrict sum, const float *restrict value,
                        const float *restrict weight, int64_t n)
{
    uint32_t good = ~0u;

#pragma omp simd reduction(& : good)
    for (int64_t i = 0; i < n; i++) {
        uint32_t mask = good_mask(value[i], LARGEST);
        float x = from_bits(bits_of(value[i]) & mask) * weight[i];

        good &= mask;
        sum[i] += (int32_t)(x + half_of(x));
    }
    return good == 0;
}

static bool add_wide(int64_t *restrict sum, const float *restrict value,
                     const float *restrict weight, int64_t n)
{
    uint32_t good = ~0u;

    for (int64_t i = 0; i < n; i++) {
        uint32_t mask = good_mask(value[i], WIDE_LARGEST);
        double x = (double)from_bits(bits_of(value[i]) & mask) * (double)weight[i];

        good &= mask;
        sum[i] += (int64_t)(x + copysign(0.5, x));
    }
    return good == 0;
}

/* Repeats weights for each channel: those of n elements from number `first`. */
static void repeat(const float *weight, int64_t channels, int64_t first, int64_t n,
                   float *out)
{
    int64_t point = first / channels, channel = first % channels;

    for (int64_t i = 0; i < n; point++, channel = 0) {
        int64_t end = i + channels - channel < n ? i + channels - channel : n;

        for (; i < end; i++)
            out[i] = weight[point];
    }
}

/* Adds n points of all channels; weight: of each point. */
static bool add_points(const struct dnn_blend *blend, void *sum, int64_t at,
                       const float *value, const float *weight, int64_t n)
{
    int64_t channels = blend->cfg.channels, count = n * channels;
    bool bad = false;

    for (int64_t i = 0; i < count; i += BLOCK) {
        int64_t m = count - i < BLOCK ? count - i : BLOCK;
        float each[BLOCK];
        const float *w = each;

        if (channels == 1)
            w = weight + i;
        else
            repeat(weight, channels, i, m, each);
        if (blend->cfg.bounded)
            bad |= add_bounded((int32_t *)sum + at * channels + i, value + i, w, m);
        else
            bad |= add_wide((int64_t *)sum + at * channels + i, value + i, w, m);
    }
    return bad;
}

/* ---- rows ---- */

/* The values of a row of a tile from a point of the sample. */
static const float *row_values(const struct dnn_blend *blend,
                               const struct blend_box *box, const int64_t *at,
                               const float *value)
{
    const struct window_axis *axis = blend->cfg.window->axis;
    int64_t i = 0;

    for (int a = 0; a < DNN_WINDOW_DIMS; a++)
        i = i * axis[a].tile + (at[a] - box->start[a]);
    return value + i * blend->cfg.channels;
}

/* Adds the part of a row that is in one cell. */
static bool add_in_cell(const struct dnn_blend *blend, const struct blend_box *box,
                        const int64_t *cell, const int64_t *at, int64_t end,
                        const float *value)
{
    const struct dnn_window *w = blend->cfg.window;
    const struct blend_cell *c = blend_cell_of(blend, cell);
    int64_t start[DNN_WINDOW_DIMS], extent[DNN_WINDOW_DIMS], first = 0;
    bool bad = false;

    if (c == NULL || c->sum == NULL) return false; /* not wanted */
    blend_cell_box(w, cell, start, extent);
    for (int a = 0; a < DNN_WINDOW_DIMS; a++)
        first = first * extent[a] + (at[a] - start[a]);
    for (int64_t x = at[2]; x < end; x += WINDOW_ROW) {
        struct window_row row = {
            {at[0], at[1], x},
            end - x < WINDOW_ROW ? end - x : WINDOW_ROW
        };
        int64_t i = first + (x - at[2]);
        float weight[WINDOW_ROW];

        window_weights(w, box->start, &row, c->inverse == NULL ? NULL : c->inverse + i,
                       scale_of(blend), weight);
        bad |= add_points(blend, c->sum, i, row_values(blend, box, row.at, value),
                          weight, row.n);
    }
    return bad;
}

static bool add_row(const struct dnn_blend *blend, const struct blend_box *box,
                    int64_t z, int64_t y, const float *value)
{
    const struct window_axis *axis = blend->cfg.window->axis;
    int64_t cell[DNN_WINDOW_DIMS] = {window_cell(&axis[0], z), window_cell(&axis[1], y),
                                     0};
    int64_t at[DNN_WINDOW_DIMS] = {z, y, box->from[2]};
    bool bad = false;

    while (at[2] < box->to[2]) {
        cell[2] = window_cell(&axis[2], at[2]);
        int64_t end = axis[2].edge[cell[2] + 1];

        if (end > box->to[2]) end = box->to[2];
        bad |= add_in_cell(blend, box, cell, at, end, value);
        at[2] = end;
    }
    return bad;
}

bool blend_add_box(const struct dnn_blend *blend, const struct blend_box *box,
                   const float *value)
{
    int64_t rows = box->to[1] - box->from[1], n = (box->to[0] - box->from[0]) * rows;
    int64_t work = n * (box->to[2] - box->from[2]) * blend->cfg.channels;
    bool bad = false;

    /* Each point is added by one thread. */
#pragma omp parallel for schedule(static) reduction(| : bad) if (work > SMALL)
    for (int64_t i = 0; i < n; i++)
        bad |= add_row(blend, box, box->from[0] + i / rows, box->from[1] + i % rows,
                       value);
    return !bad;
}

/* ---- errors ---- */

static int fail_at(const struct dnn_blend *blend, const int64_t *at, int64_t channel,
                   float value, struct dnn_err *err)
{
    int lead = blend->cfg.window->lead, len = 0;
    char place[96];

    for (int a = lead; a < DNN_WINDOW_DIMS; a++)
        len += snprintf(place + len, sizeof place - (size_t)len, "%s%lld",
                        a > lead ? ", " : "", (long long)at[a]);
    if (!isfinite(value))
        return dnn_fail(err, DNN_EDATA, "the output at (%s), channel %lld, is %s",
                        place, (long long)channel, isnan(value) ? "NaN" : "infinite");
    return dnn_fail(err, DNN_EDATA,
                    "the output at (%s), channel %lld, is %g; its absolute value must "
                    "%s",
                    place, (long long)channel, (double)value,
                    blend->cfg.bounded ? "not exceed 1" : "be below 2^30");
}

int blend_bad_value(const struct dnn_blend *blend, const struct blend_box *box,
                    const float *value, struct dnn_err *err)
{
    int64_t at[DNN_WINDOW_DIMS];

    for (at[0] = box->from[0]; at[0] < box->to[0]; at[0]++)
        for (at[1] = box->from[1]; at[1] < box->to[1]; at[1]++)
            for (at[2] = box->from[2]; at[2] < box->to[2]; at[2]++) {
                const float *x = row_values(blend, box, at, value);

                for (int64_t c = 0; c < blend->cfg.channels; c++)
                    if (!(fabsf(x[c]) <= largest_of(blend)))
                        return fail_at(blend, at, c, x[c], err);
            }
    return dnn_fail(err, DNN_EDATA, "the output of a tile changed while it was added");
}

/* ---- from sums to values ---- */

void blend_divide(bool bounded, void *sum, int64_t n)
{
    float_in_place *to = sum;

    if (bounded) {
        const int32_t *from = sum;

        for (int64_t i = 0; i < n; i++)
            to[i] = (float)((double)from[i] / (double)SCALE);
        return;
    }
    const int64_t *from = sum;
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)((double)from[i] / (double)WIDE_SCALE);
}
