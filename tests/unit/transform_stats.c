/* transform_stats.c - moments and histograms: exact where required, and independent of
 * how the data is divided.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform_cases.h"

#include "base/mem.h"
#include "transform/stats.h"

#include <inttypes.h>

static struct dnn_err err;

static struct dnn_column column_of(enum dnn_kind kind, enum dnn_dtype type)
{
    return (struct dnn_column){.name = "x", .kind = kind, .type = type};
}

static struct dnn_stats *stats_of(const struct dnn_column *col,
                                  const struct dnn_array *a)
{
    struct dnn_stats *s = dnn_alloc(sizeof *s);

    dnn_stats_start(s, col);
    if (a != NULL && dnn_stats_add(s, col, a, &err) < 0) printf("# %s\n", err.text);
    return s;
}

/* Numbers a to b - 1 of a vector of single channels, as an array of its own. */
static struct dnn_array part_of(const struct dnn_array *a, int64_t from, int64_t to)
{
    struct dnn_array part = {0};
    struct dnn_shape shape = {
        .ndim = 2, .dim = {to - from, 1}
    };
    size_t size = dnn_dtype_size(a->type);

    dnn_array_make(&part, a->type, &shape, &err);
    memcpy(part.data, (const char *)a->data + (size_t)from * size,
           (size_t)(to - from) * size);
    return part;
}

/* ---- moments ---- */

/* Channel c of numbers with so many channels, against sums in long double. */
static bool channel_right(const struct dnn_stats *s, const double *x, int64_t count,
                          int64_t own, int64_t c)
{
    int64_t n = 0, end = c == DNN_STATS_CHANNELS - 1 ? own : c + 1;
    long double sum = 0, squares = 0;
    double min = INFINITY, max = -INFINITY;

    for (int64_t at = 0; at < count; at += own)
        for (int64_t k = at + c; k < at + end; k++, n++) {
            sum += x[k];
            min = fmin(min, x[k]);
            max = fmax(max, x[k]);
        }
    for (int64_t at = 0; at < count; at += own)
        for (int64_t k = at + c; k < at + end; k++)
            squares += (x[k] - sum / n) * (x[k] - sum / n);
    return s->good[c] == n && fabsl(s->mean[c] - sum / n) < 1e-13L &&
           fabsl(s->m2[c] - squares) <= 1e-12L * squares + 1e-24L && s->min[c] == min &&
           s->max[c] == max;
}

static void moments(void)
{
    static const char *const shapes[] = {"9000x1", "37x41x3", "300x64", "100x70",
                                         "2x5000", "7x1",     "1"};

    for (enum dnn_dtype type = 0; type < DNN_NDTYPES; type++)
        for (int i = 0; i < 7; i++) {
            struct dnn_column col = column_of(DNN_KIND_IMAGE, type);
            struct dnn_array a = drawn(type, shapes[i]);
            struct dnn_stats *s = stats_of(&col, &a);
            int64_t count = dnn_array_count(&a), own = a.shape.dim[a.shape.ndim - 1];
            bool good = s->count == count / own && s->bad == 0 &&
                        s->nchannels == (own < 64 ? own : 64);

            dnn_array_convert(&a, DNN_F64, true, &err);
            for (int64_t c = 0; c < s->nchannels && good; c++)
                good = channel_right(s, a.data, count, own, c);
            ok(good, "moments of %s %s", dnn_dtype_name(type), shapes[i]);
            dnn_array_free(&a);
            dnn_free(s);
        }
}

/* A small variance with a large mean, in many parts: naive sums would fail. */
static void accuracy(void)
{
    struct dnn_column col = column_of(DNN_KIND_IMAGE, DNN_F64);
    struct dnn_array a = blank(DNN_F64, "60000x1");
    struct dnn_stats *s = stats_of(&col, NULL);
    long double sum = 0, squares = 0;
    int64_t n = dnn_array_count(&a);

    for (int64_t i = 0; i < n; i++)
        set_value(&a, i, 1e8 + (double)draw(1000000) / 1e6);
    for (int64_t i = 0; i < n; i += 1000) {
        struct dnn_array part = part_of(&a, i, i + 1000);
        struct dnn_stats *b = stats_of(&col, &part);

        dnn_stats_merge(s, b);
        dnn_array_free(&part);
        dnn_free(b);
    }
    for (int64_t i = 0; i < n; i++)
        sum += value_of(&a, i);
    for (int64_t i = 0; i < n; i++)
        squares += (value_of(&a, i) - sum / n) * (value_of(&a, i) - sum / n);
    ok(fabsl(s->mean[0] - sum / n) < 1e-7L, "a mean of 1e8, to 15 digits");
    ok(fabsl(s->m2[0] - squares) < 1e-8L * squares, "its small variance, to 8 digits");
    ok(fabs(dnn_stats_std(s, 0) - (double)sqrtl(squares / n)) < 1e-8, "std");
    dnn_array_free(&a);
    dnn_free(s);
}

static void bad_numbers(void)
{
    struct dnn_column col = column_of(DNN_KIND_VALUES, DNN_F32);
    struct dnn_array a = counted(DNN_F32, "5x2");
    struct dnn_stats *s;

    set_value(&a, 2, NAN);
    set_value(&a, 4, INFINITY);
    set_value(&a, 7, -INFINITY);
    s = stats_of(&col, &a);
    is_int(s->count, 5, "points");
    is_int(s->bad, 3, "bad ones");
    is_int(s->good[0], 3, "good ones of a channel");
    ok(s->mean[0] == 14.0 / 3 && s->mean[1] == 4.5, "means are of the finite values");
    ok(s->min[0] == 0 && s->max[1] == 9, "and so is the range");
    dnn_free(s);
    for (int i = 0; i < 10; i++)
        set_value(&a, i, NAN);
    s = stats_of(&col, &a);
    ok(s->bad == 10 && s->low == s->high && isnan(dnn_stats_quantile(s, 0.5)) &&
           isnan(dnn_stats_std(s, 0)),
       "nothing but NaN");
    dnn_free(s);
    dnn_array_free(&a);
}

/* ---- histograms ---- */

/* Numbers of very different magnitude, and some of similar magnitude. */
static struct dnn_array any_numbers(enum dnn_dtype type, int64_t n)
{
    struct dnn_array a = {0};
    struct dnn_shape shape = {
        .ndim = 2, .dim = {n, 1}
    };
    int mode = (int)draw(6);
    bool real =
        type == DNN_F32 || type == DNN_F64 || type == DNN_F16 || type == DNN_BF16;

    dnn_array_make(&a, type, &shape, &err);
    for (int64_t i = 0; i < n; i++) {
        double x = (double)draw(1 << 20) / (1 << 20);

        if (mode == 1) x = 1000 + x;
        if (mode == 2) x = (x - 0.5) * ldexp(1, (int)draw(200) - 100);
        if (mode == 3) x = -x * ldexp(1, (int)draw(20));
        if (mode == 4) x = (x - 0.5) * ldexp(1, (int)draw(2000) - 1073);
        if (mode == 5) x = draw(3) == 0 ? -0x1p-1074 : 0;
        if (!real) x *= 0x1p40;
        set_value(&a, i, x);
    }
    return a;
}

/* All at once, and in random parts merged in random order: everything except the
 * moments must be bitwise equal. */
static bool parts_agree(enum dnn_dtype type)
{
    struct dnn_column col = column_of(DNN_KIND_IMAGE, type);
    int64_t n = draw(3000) + 1, at = 0, k = 0;
    struct dnn_array a = any_numbers(type, n);
    struct dnn_stats *all = stats_of(&col, &a), *parts[8];
    bool good;

    for (; k < 8; k++) {
        int64_t to = k == 7 ? n : at + draw(n - at + 1);
        struct dnn_array part = part_of(&a, at, to);

        parts[k] = stats_of(&col, &part);
        dnn_array_free(&part);
        at = to;
    }
    while (k > 1) {
        int64_t i = draw(k), j = (i + 1 + draw(k - 1)) % k;

        dnn_stats_merge(parts[i], parts[j]);
        dnn_free(parts[j]);
        parts[j] = parts[--k];
    }
    memcpy(parts[0]->mean, all->mean, sizeof all->mean);
    memcpy(parts[0]->m2, all->m2, sizeof all->m2);
    good = memcmp(parts[0], all, sizeof *all) == 0;
    int64_t sum = all->bad;
    for (int i = 0; i < DNN_STATS_BINS; i++)
        sum += all->bin[i];
    good = good && sum == n;
    dnn_free(parts[0]);
    dnn_free(all);
    dnn_array_free(&a);
    return good;
}

/* Every number lies between the edges of its bin, and bins are as narrow as possible.
 */
static bool bins_right(enum dnn_dtype type)
{
    struct dnn_column col = column_of(DNN_KIND_IMAGE, type);
    struct dnn_array a = any_numbers(type, 500);
    struct dnn_stats *s = stats_of(&col, &a);
    double width = (s->high - s->low) / DNN_STATS_BINS;
    int64_t *count = dnn_alloc(sizeof s->bin);
    bool good = true;
    int e;

    for (int64_t i = 0; i < 500; i++) {
        double x = value_of(&a, i);

        if (!(fabs(x) < 0x1p500)) continue;
        good = good && x >= s->low && x < s->high;
        if (good) count[(int)(floorl((long double)x / width) - s->low / width)]++;
    }
    good = good && frexp(width, &e) == 0.5 && fmod(s->low, width) == 0 &&
           s->low <= s->min[0] && s->low + width > s->min[0] &&
           memcmp(count, s->bin, sizeof s->bin) == 0;
    double size = fmax(fabs(s->min[0]), fabs(s->max[0])), half = width / 2;
    good = good && ((s->whole && width == 1) || width == 0x1p-1000 ||
                    half < ldexp(1, ilogb(size) - 49) ||
                    floorl((long double)s->max[0] / half) -
                            floorl((long double)s->min[0] / half) >=
                        DNN_STATS_BINS);
    dnn_free(count);
    dnn_free(s);
    dnn_array_free(&a);
    return good;
}

static void histograms(void)
{
    for (enum dnn_dtype type = 0; type < DNN_NDTYPES; type++) {
        bool same = true, right = true;

        for (int i = 0; i < 40; i++) {
            same = same && parts_agree(type);
            right = right && bins_right(type);
        }
        ok(same, "%s: one histogram, for any division", dnn_dtype_name(type));
        ok(right, "%s: every number in its bin", dnn_dtype_name(type));
    }
}

static void bytes_are_exact(void)
{
    struct dnn_column col = column_of(DNN_KIND_IMAGE, DNN_U8);
    struct dnn_array a = counted(DNN_U8, "256x1");
    struct dnn_stats *s = stats_of(&col, &a);
    bool good = s->low == 0 && s->high == 4096;

    for (int i = 0; i < DNN_STATS_BINS; i++)
        good = good && s->bin[i] == (i < 256);
    ok(good, "one bin per byte value");
    ok(dnn_stats_quantile(s, 0) == 0 && dnn_stats_quantile(s, 1) == 255 &&
           dnn_stats_quantile(s, 0.5) == 127 && dnn_stats_quantile(s, 0.25) == 63,
       "exact quantiles");
    dnn_free(s);
    dnn_array_free(&a);
}

/* ---- quantiles ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void quantiles(enum dnn_dtype type, double scale, double offset, bool exact)
{
    struct dnn_column col = column_of(DNN_KIND_IMAGE, type);
    struct dnn_array a = blank(type, "5000x1");
    double *sorted = dnn_alloc(5000 * sizeof *sorted), width;
    bool good = true;

    for (int i = 0; i < 5000; i++)
        set_value(&a, i,
                  floor(scale * (double)draw(1000) / 1000 * (double)draw(1000) / 1000 +
                        offset));
    for (int i = 0; i < 5000; i++)
        sorted[i] = value_of(&a, i);
    qsort(sorted, 5000, sizeof *sorted, by_value);
    struct dnn_stats *s = stats_of(&col, &a);
    width = (s->high - s->low) / DNN_STATS_BINS;
    for (int i = 0; i <= 1000; i++) {
        double share = i / 1000.0, got = dnn_stats_quantile(s, share);
        int64_t at = (int64_t)ceil(share * 5000) - 1;
        double want = sorted[at < 0 ? 0 : at];

        good = good && (exact ? got == want : fabs(got - want) <= width);
    }
    ok(good, "quantiles of %s%s", dnn_dtype_name(type),
       exact ? ", exact" : ", to a bin");
    ok(isnan(dnn_stats_quantile(s, -0.1)) && isnan(dnn_stats_quantile(s, 1.1)) &&
           isnan(dnn_stats_quantile(s, NAN)),
       "no quantiles outside 0 to 1");
    dnn_free(s);
    dnn_free(sorted);
    dnn_array_free(&a);
}

/* ---- classes ---- */

static void classes(void)
{
    struct dnn_column mask = column_of(DNN_KIND_MASK, DNN_U8);
    struct dnn_column label = column_of(DNN_KIND_LABEL, DNN_I64);
    struct dnn_array a = counted(DNN_U8, "2x3x1"), b = blank(DNN_I64, "scalar");
    struct dnn_stats *s, *t;

    mask.classes = 4;
    label.classes = 10;
    s = stats_of(&mask, NULL);
    is_int(s->nclasses, 4, "number of classes given before");
    dnn_free(s);
    set_value(&a, 0, 3);
    s = stats_of(&mask, &a);
    ok(s->nclasses == 6 && s->class_count[0] == 0 && s->class_count[3] == 2 &&
           s->class_count[5] == 1 && s->count == 6,
       "points of a mask");
    dnn_free(s);
    set_value(&b, 0, 7);
    s = stats_of(&label, &b);
    t = stats_of(&label, &b);
    dnn_stats_merge(s, t);
    ok(s->nclasses == 10 && s->class_count[7] == 2 && s->count == 2, "labels, merged");
    set_value(&b, 0, 4096);
    is_text(dnn_stats_add(s, &label, &b, &err) < 0 ? err.text : "",
            "column 'x': classes: element 0 is 4096; classes are 0 to 4095",
            "too many classes");
    dnn_free(s);
    dnn_free(t);
    dnn_array_free(&a);
    dnn_array_free(&b);
}

static void refusals(void)
{
    struct dnn_column col = column_of(DNN_KIND_IMAGE, DNN_U8);
    struct dnn_array a = counted(DNN_U8, "2x3"), b = counted(DNN_U8, "2x2");
    struct dnn_array c = counted(DNN_F32, "2x3");
    struct dnn_stats *s = stats_of(&col, &a);

    is_text(dnn_stats_add(s, &col, &b, &err) < 0 ? err.text : "",
            "column 'x': 2 channels, but 3 before", "other channels");
    is_text(dnn_stats_add(s, &col, &c, &err) < 0 ? err.text : "",
            "column 'x': dtype f32, expected u8", "reals for integers");
    dnn_free(s);
    dnn_array_free(&a);
    dnn_array_free(&b);
    dnn_array_free(&c);
}

/* The same parts in the same order give the same bits. */
static void repeated(void)
{
    struct dnn_column col = column_of(DNN_KIND_IMAGE, DNN_F32);
    struct dnn_array a = drawn(DNN_F32, "700x3"), b = drawn(DNN_F32, "300x3");
    struct dnn_stats *one = stats_of(&col, &a), *two = stats_of(&col, &a);
    struct dnn_stats *more = stats_of(&col, &b);

    dnn_stats_merge(one, more);
    dnn_stats_merge(two, more);
    ok(memcmp(one, two, sizeof *one) == 0, "merged twice: the same bits");
    dnn_free(one);
    one = stats_of(&col, NULL);
    dnn_stats_merge(one, two);
    ok(memcmp(one, two, sizeof *one) == 0, "empty merged with statistics");
    dnn_free(more);
    more = stats_of(&col, NULL);
    dnn_stats_merge(one, more);
    ok(memcmp(one, two, sizeof *one) == 0, "statistics merged with empty");
    dnn_free(one);
    dnn_free(two);
    dnn_free(more);
    dnn_array_free(&a);
    dnn_array_free(&b);
}

int main(void)
{
    moments();
    accuracy();
    bad_numbers();
    histograms();
    bytes_are_exact();
    quantiles(DNN_U8, 255, 0, true);
    quantiles(DNN_I16, 4000, -1024, true);
    quantiles(DNN_U16, 65535, 0, false);
    quantiles(DNN_F32, 1e6, -1e5, false);
    classes();
    refusals();
    repeated();
    return done();
}
