/* stats.c - statistics of the values of a column.
 *
 * Values are processed in blocks that fit the cache: first the sum, then the sum of
 * squared deviations from the mean of the block, then the histogram.  Blocks are merged
 * by the formula of Chan, Golub and LeVeque (1979).  The order of all sums is fixed.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/stats.h"

#include "transform/stats_impl.h"
#include "transform/transform_impl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool has_classes(const struct dnn_column *column)
{
    return column->kind == DNN_KIND_LABEL || column->kind == DNN_KIND_MASK;
}

void dnn_stats_start(struct dnn_stats *stats, const struct dnn_column *column)
{
    memset(stats, 0, sizeof *stats); /* padding too: it may be stored as bytes */
    stats->whole = dnn_transform_is_integer(column->type);
    if (has_classes(column) && column->classes > 0)
        stats->nclasses = column->classes < DNN_STATS_CLASSES ? (int32_t)column->classes
                                                              : DNN_STATS_CLASSES;
    for (int c = 0; c < DNN_STATS_CHANNELS; c++) {
        stats->min[c] = INFINITY;
        stats->max[c] = -INFINITY;
    }
}

/* ---- moments ---- */

/* Add the moments of n values to channel c. */
static void add_moments(struct dnn_stats *s, int c, int64_t n, double mean, double m2)
{
    if (n == 0) return;
    double all = (double)(s->good[c] + n), delta = mean - s->mean[c];
    double part = (double)n / all;

    s->m2[c] += m2 + delta * delta * ((double)s->good[c] * part);
    s->mean[c] = s->good[c] == 0 ? mean : s->mean[c] + delta * part;
    s->good[c] += n;
}

/* Add the remaining n values, then add up the lanes. */
static double lanes_sum(const lanes *all, const double *rest, int64_t n)
{
    double lane[LANES];

    memcpy(lane, all, sizeof lane);
    for (int64_t k = 0; k < n; k++)
        lane[k] += rest[k];
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static double sum_of(const double *x, int64_t n)
{
    lanes all = {0}, v;
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        memcpy(&v, x + i, sizeof v);
        all += v;
    }
    return lanes_sum(&all, x + i, n - i);
}

static double squares_of(const double *x, int64_t n, double mean)
{
    lanes all = {0}, v;
    double rest[LANES] = {0};
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        memcpy(&v, x + i, sizeof v);
        v -= mean;
        all += v * v;
    }
    for (int64_t k = i; k < n; k++)
        rest[k - i] = (x[k] - mean) * (x[k] - mean);
    return lanes_sum(&all, rest, n - i);
}

static inline pair smaller(pair a, pair b)
{
    mask less = a < b;

    return (pair)(((mask)a & less) | ((mask)b & ~less));
}

static void range_of(const double *x, int64_t n, double *min, double *max)
{
    pair low[2] =
        {
            {x[0], x[0]},
            {x[0], x[0]}
    },
         high[2] = {-low[0], -low[0]}, v[2];
    int64_t i = 0;

    for (; i + 4 <= n; i += 4) { /* the maximum is the negative minimum of -x */
        memcpy(v, x + i, sizeof v);
        low[0] = smaller(v[0], low[0]);
        low[1] = smaller(v[1], low[1]);
        high[0] = smaller(-v[0], high[0]);
        high[1] = smaller(-v[1], high[1]);
    }
    low[0] = smaller(low[0], low[1]);
    high[0] = smaller(high[0], high[1]);
    *min = low[0][0] < low[0][1] ? low[0][0] : low[0][1];
    *max = high[0][0] < high[0][1] ? -high[0][0] : -high[0][1];
    for (; i < n; i++) {
        *min = x[i] < *min ? x[i] : *min;
        *max = x[i] > *max ? x[i] : *max;
    }
}

/* ---- one block ---- */

#define LIMIT 0x1p500

/* Remove bad values; returns how many are left. */
static int64_t remove_bad(double *x, int64_t n)
{
    int64_t good = 0;

    for (int64_t i = 0; i < n; i++)
        if (fabs(x[i]) < LIMIT) x[good++] = x[i];
    return good;
}

/* Add n values to channel c; x may be changed.  A NaN is detected in the sum, too large
 * values in the range. */
static void add_values(struct dnn_stats *s, int c, double *x, int64_t n)
{
    double min, max, sum = sum_of(x, n);

    range_of(x, n, &min, &max);
    if (!(isfinite(sum) && fabs(min) < LIMIT && fabs(max) < LIMIT)) {
        int64_t good = remove_bad(x, n);

        s->bad += n - good;
        n = good;
        if (n == 0) return;
        sum = sum_of(x, n);
        range_of(x, n, &min, &max);
    }
    min += 0.0; /* never -0, which would depend on the order */
    max += 0.0;
    s->min[c] = min < s->min[c] ? min : s->min[c];
    s->max[c] = max > s->max[c] ? max : s->max[c];
    double mean = sum / (double)n;
    add_moments(s, c, n, mean, squares_of(x, n, mean));
    dnn_stats_widen(s);
    dnn_stats_bins_add(s, x, n);
}

enum { POINTS = 4096 }; /* doubles per block: 32 KiB */

static int add_reals(struct dnn_stats *s, const struct dnn_array *array,
                     int64_t channels, struct dnn_err *err)
{
    int64_t count = dnn_array_count(array), step = POINTS;
    size_t size = dnn_dtype_size(array->type);
    double x[POINTS], one[POINTS];

    if (channels > 1 && channels < POINTS) step = POINTS / channels * channels;
    if (channels >= POINTS) step = channels; /* in blocks of POINTS, see below */
    for (int64_t at = 0; at < count; at += step)
        for (int64_t in = 0; in < step; in += POINTS) {
            int64_t left = count - at < step ? count - at : step;
            int64_t n = left - in < POINTS ? left - in : POINTS;

            DNN_TRY(dnn_convert((const char *)array->data + (size_t)(at + in) * size,
                                array->type, x, DNN_F64, n, false, err));
            if (channels == 1) {
                add_values(s, 0, x, n);
                continue;
            }
            int64_t own =
                channels <= DNN_STATS_CHANNELS ? channels : DNN_STATS_CHANNELS - 1;
            for (int64_t c = 0; c < own && in == 0; c++) {
                int64_t m = 0;

                for (int64_t i = c; i < n; i += channels)
                    one[m++] = x[i];
                add_values(s, (int)c, one, m);
            }
            if (own == channels) continue;
            int64_t m = 0;
            for (int64_t i = 0; i < n; i++)
                if ((in + i) % channels >= own) one[m++] = x[i];
            if (m > 0) add_values(s, DNN_STATS_CHANNELS - 1, one, m);
        }
    return 0;
}

/* Bytes: count how often each value occurs, then process each value once. */
static void add_bytes(struct dnn_stats *s, const struct dnn_array *array,
                      int64_t channels)
{
    int64_t count = dnn_array_count(array);
    const unsigned char *x = array->data;
    bool negative = array->type == DNN_I8;

    for (int64_t c = 0; c < channels; c++) {
        int to = c < DNN_STATS_CHANNELS ? (int)c : DNN_STATS_CHANNELS - 1;
        int64_t seen[256] = {0}, n = 0;
        double sum = 0, m2 = 0;

        for (int64_t i = c; i < count; i += channels)
            seen[x[i]]++;
        for (int k = 0; k < 256; k++) {
            double v = negative && k > 127 ? k - 256 : k;

            if (seen[k] == 0) continue;
            n += seen[k];
            sum += (double)seen[k] * v;
            s->min[to] = v < s->min[to] ? v : s->min[to];
            s->max[to] = v > s->max[to] ? v : s->max[to];
        }
        dnn_stats_widen(s);
        for (int k = 0; k < 256; k++) {
            double v = negative && k > 127 ? k - 256 : k,
                   deviation = v - sum / (double)n;

            m2 += (double)seen[k] * (deviation * deviation);
            dnn_stats_bin_add(s, v, seen[k]);
        }
        add_moments(s, to, n, sum / (double)n, m2);
    }
}

/* ---- a sample ---- */

static int add_classes(struct dnn_stats *s, const struct dnn_array *array,
                       struct dnn_err *err)
{
    int64_t count = dnn_array_count(array), is[DNN_TRANSFORM_BLOCK];

    for (int64_t at = 0; at < count; at += DNN_TRANSFORM_BLOCK) {
        int64_t n = count - at < DNN_TRANSFORM_BLOCK ? count - at : DNN_TRANSFORM_BLOCK;

        DNN_TRY(
            dnn_transform_classes(array, at, n, DNN_STATS_CLASSES, "classes", is, err));
        for (int64_t i = 0; i < n; i++) {
            s->class_count[is[i]]++;
            if (is[i] >= s->nclasses) s->nclasses = (int32_t)is[i] + 1;
        }
    }
    s->count += count;
    return 0;
}

static int set_channels(struct dnn_stats *s, int64_t channels, struct dnn_err *err)
{
    int64_t before = s->nchannels == 0 ? 0 : s->nchannels - 1 + s->share;

    if (channels > INT32_MAX || (before != 0 && before != channels))
        return dnn_fail(err, DNN_EDATA, "%" PRId64 " channels, but %" PRId64 " before",
                        channels, before);
    s->nchannels =
        channels < DNN_STATS_CHANNELS ? (int32_t)channels : DNN_STATS_CHANNELS;
    s->share = (int32_t)(channels - s->nchannels + 1);
    return 0;
}

int dnn_stats_add(struct dnn_stats *stats, const struct dnn_column *column,
                  const struct dnn_array *array, struct dnn_err *err)
{
    int ndim = array->shape.ndim;
    int64_t channels = ndim == 0 ? 1 : array->shape.dim[ndim - 1];
    int64_t count = dnn_array_count(array);
    int rc;

    if (has_classes(column)) {
        rc = add_classes(stats, array, err);
    } else if (stats->whole && !dnn_transform_is_integer(array->type)) {
        rc = dnn_fail(err, DNN_EDATA, "dtype %s, expected %s",
                      dnn_dtype_name(array->type), dnn_dtype_name(column->type));
    } else if (count == 0) {
        rc = 0;
    } else if ((rc = set_channels(stats, channels, err)) == 0) {
        stats->count += count / channels;
        if (dnn_dtype_size(array->type) == 1)
            add_bytes(stats, array, channels);
        else
            rc = add_reals(stats, array, channels, err);
    }
    return rc < 0 ? dnn_prefix(err, "column '%s': ", column->name) : 0;
}

void dnn_stats_merge(struct dnn_stats *a, const struct dnn_stats *b)
{
    for (int c = 0; c < DNN_STATS_CHANNELS; c++) {
        add_moments(a, c, b->good[c], b->mean[c], b->m2[c]);
        a->min[c] = b->min[c] < a->min[c] ? b->min[c] : a->min[c];
        a->max[c] = b->max[c] > a->max[c] ? b->max[c] : a->max[c];
    }
    dnn_stats_bins_merge(a, b);
    for (int k = 0; k < DNN_STATS_CLASSES; k++)
        a->class_count[k] += b->class_count[k];
    if (b->nclasses > a->nclasses) a->nclasses = b->nclasses;
    if (a->nchannels == 0) {
        a->nchannels = b->nchannels;
        a->share = b->share;
    }
    a->count += b->count;
    a->bad += b->bad;
}

double dnn_stats_std(const struct dnn_stats *stats, int channel)
{
    if (channel < 0 || channel >= stats->nchannels || stats->good[channel] == 0)
        return NAN;
    return sqrt(stats->m2[channel] / (double)stats->good[channel]);
}
