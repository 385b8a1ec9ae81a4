/* describe_stats.c - histograms and class counts as text.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/describe_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    WIDTH = DNN_DESCRIBE_WIDTH,
    ROWS = 4,   /* of a histogram                     */
    LEVELS = 8, /* heights that a character can show  */
    BAR = 30,   /* columns of a class's bar           */
    SHOWN = 40, /* classes, channels: lines at most   */
};

static bool utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);

        if (value == NULL || value[0] == '\0') continue;
        return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
    }
    return false;
}

/* ---- values ---- */

static int shown_channels(const struct dnn_stats *s)
{
    return s->nchannels < DNN_STATS_CHANNELS ? s->nchannels : DNN_STATS_CHANNELS;
}

void dnn_describe_channels(const struct dnn_stats *s, FILE *where)
{
    int n = shown_channels(s), most = n < SHOWN ? n : SHOWN;

    for (int c = 0; c < most; c++)
        fprintf(where, "    channel %-4d  %.5g to %.5g, mean %.5g, std %.5g\n", c,
                s->min[c], s->max[c], s->mean[c], dnn_stats_std(s, c));
    if (s->nchannels > most)
        fprintf(where, "    and %d more channels\n", s->nchannels - most);
}

/* Counts per text column, from the first to the last bin that is not empty; the count
 * of a bin is spread over the columns it covers.  false: fewer than two bins. */
static bool count_columns(const struct dnn_stats *s, double count[WIDTH])
{
    int first = 0, last = DNN_STATS_BINS - 1;

    while (first < DNN_STATS_BINS && s->bin[first] == 0)
        first++;
    while (last > first && s->bin[last] == 0)
        last--;
    if (first >= last) return false;                  /* no bin or one */
    double wide = (double)WIDTH / (last - first + 1); /* of a bin, in columns */
    memset(count, 0, WIDTH * sizeof(*count));
    for (int b = first; b <= last; b++) {
        double from = (b - first) * wide, to = from + wide;

        for (int i = (int)from; i < WIDTH && i < to; i++) {
            double part = fmin(to, i + 1) - fmax(from, i);

            count[i] += (double)s->bin[b] * part / wide;
        }
    }
    return true;
}

/* Smallest and largest value of all channels. */
static void value_range(const struct dnn_stats *s, double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (int c = 0; c < shown_channels(s); c++) {
        if (s->min[c] < *low) *low = s->min[c];
        if (s->max[c] > *high) *high = s->max[c];
    }
}

/* Rounds to a thousandth of the span or less: bins are not more precise. */
static double rounded(double x, double span)
{
    double step = pow(10, floor(log10(span)) - 3);

    return round(x / step) * step + 0.0; /* and no -0 */
}

void dnn_describe_histogram(const struct dnn_stats *s, FILE *where)
{
    static const char *const block[LEVELS + 1] = {" ",      "\u2581", "\u2582",
                                                  "\u2583", "\u2584", "\u2585",
                                                  "\u2586", "\u2587", "\u2588"};
    double count[WIDTH], low, high, most = 0;
    bool blocks = utf8();
    char left[32], right[32];

    if (!count_columns(s, count)) return;
    value_range(s, &low, &high);
    for (int i = 0; i < WIDTH; i++)
        if (count[i] > most) most = count[i];
    /* Square roots, so that rare values next to a large background are visible. */
    for (int row = ROWS - 1; row >= 0; row--) {
        fputs("    |", where);
        for (int i = 0; i < WIDTH; i++) {
            int level =
                (int)ceil(sqrt(count[i] / most) * ROWS * LEVELS - 1e-9) - row * LEVELS;

            if (blocks)
                fputs(block[level < 0 ? 0 : level > LEVELS ? LEVELS : level], where);
            else
                fputc(level >= LEVELS / 2 ? '#' : level > 0 ? '.' : ' ', where);
        }
        fputs("|\n", where);
    }
    snprintf(left, sizeof(left), "%.5g", low);
    snprintf(right, sizeof(right), "%.5g", high);
    fprintf(where, "     %s%*s\n", left, WIDTH - (int)strlen(left), right);
    fprintf(where,
            "     bar height: square root of the count; 90 %% of all values lie in "
            "%.6g to %.6g\n",
            rounded(dnn_stats_quantile(s, 0.05), high - low),
            rounded(dnn_stats_quantile(s, 0.95), high - low));
}

/* ---- classes ---- */

static void print_bar(double share, bool blocks, FILE *where)
{
    static const char *const part[] = {"",       "\u258f", "\u258e", "\u258d",
                                       "\u258c", "\u258b", "\u258a", "\u2589"};
    int eighths = (int)lround(share * BAR * 8);

    if (eighths > 0) fputs("  ", where);
    for (int i = 0; i < eighths / 8; i++)
        fputs(blocks ? "\u2588" : "#", where);
    if (blocks)
        fputs(part[eighths % 8], where);
    else if (eighths % 8 >= 4)
        fputc('#', where);
}

static int64_t shown_classes(const struct dnn_column *column, const struct dnn_stats *s)
{
    int64_t n =
        s != NULL && s->nclasses > column->classes ? s->nclasses : column->classes;

    return n < DNN_STATS_CLASSES ? n : DNN_STATS_CLASSES;
}

void dnn_describe_classes(const struct dnn_column *column, const struct dnn_stats *s,
                          FILE *where)
{
    int64_t n = shown_classes(column, s), most = n < SHOWN ? n : SHOWN;
    double total = 0, top = 0;
    bool blocks = utf8();
    char digits[32];
    int wide = 1;

    for (int64_t i = 0; s != NULL && i < n; i++) {
        total += (double)s->class_count[i];
        if ((double)s->class_count[i] > top) top = (double)s->class_count[i];
    }
    for (int64_t i = 0; i < most && column->class_name != NULL; i++)
        if (i < column->classes && (int)strlen(column->class_name[i]) > wide)
            wide = (int)strlen(column->class_name[i]);
    if (wide > 40) wide = 40;
    int number = snprintf(digits, sizeof(digits), "%.0f", top);
    for (int64_t i = 0; i < most; i++) {
        bool named = column->class_name != NULL && i < column->classes;

        fprintf(where, "    %4" PRId64 "  %-*.*s", i, wide, wide,
                named ? column->class_name[i] : "-");
        if (s != NULL && total > 0) {
            double count = (double)s->class_count[i];

            fprintf(where, "  %*.0f  %5.1f %%", number, count, 100 * count / total);
            print_bar(count / top, blocks, where);
        }
        fputc('\n', where);
    }
    if (n > most) fprintf(where, "    and %" PRId64 " more classes\n", n - most);
}
