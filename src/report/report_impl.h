/* report_impl.h - declarations shared by the files of the report.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_REPORT_IMPL_H
#define DNN_REPORT_IMPL_H

#include "base/text.h"
#include "report/report.h"

/* ---- text.c ---- */

/* Add escaped text; it may contain any bytes. */
void dnn_html_text(struct dnn_buf *out, const char *text);
/* Add a number with a few digits: 0.0123, 12300, 1.2e-07. */
void dnn_html_number(struct dnn_buf *out, double value);
/* Add bytes as base64. */
void dnn_html_base64(struct dnn_buf *out, const void *bytes, size_t len);

/* ---- svg.c ---- */

enum { DNN_CHART_SERIES = 16 };

struct dnn_series {
    char name[64];
    const double *x, *y;
    int64_t n;
};

struct dnn_chart {
    char title[96];
    const char *xlabel;
    bool may_log; /* large ratios are shown on a logarithmic axis         */
    double scale; /* values are multiplied by this; 0: 1                   */
    int n, left_out;
    struct dnn_series series[DNN_CHART_SERIES];
};

/* Whether there is anything to draw. */
bool dnn_chart_any(const struct dnn_chart *chart);
void dnn_chart_add(struct dnn_buf *out, const struct dnn_chart *chart);

/* ---- axis.c ---- */

/* Maps a range of values to a range of points. */
struct dnn_axis {
    double low, high; /* values at both ends; if log, their log10 */
    double from, to;  /* points                                   */
    bool log, whole;
};

struct dnn_axis dnn_axis_make(double low, double high, bool log, bool whole);
double dnn_axis_at(const struct dnn_axis *axis, double value);
enum { DNN_AXIS_TICKS = 24 };
/* Returns the number of ticks; 0 for a range that is NaN. */
int dnn_axis_ticks(const struct dnn_axis *axis, double tick[DNN_AXIS_TICKS],
                   char label[DNN_AXIS_TICKS][24]);

/* Parts of a chart: the points of its axes, its SVG element, the axes. */
void dnn_chart_place(struct dnn_axis *x, struct dnn_axis *y);
void dnn_chart_open(struct dnn_buf *out, const char *title);
void dnn_chart_axes(struct dnn_buf *out, const struct dnn_axis *x,
                    const struct dnn_axis *y, const char *xlabel);

/* ---- reliability.c ---- */

void dnn_report_reliability(struct dnn_buf *out, int nbins,
                            const struct dnn_report_bin *bin);

/* ---- curves.c ---- */

/* Add cards with the best values; add curves.  Names of classes may be NULL. */
void dnn_report_cards(struct dnn_buf *out, const struct dnn_csv *csv);
void dnn_report_curves(struct dnn_buf *out, const struct dnn_csv *csv, int64_t classes,
                       const char *const *name);
void dnn_report_steps(struct dnn_buf *out, const struct dnn_csv *csv);

/* ---- table.c ---- */

void dnn_report_facts(struct dnn_buf *out, const char *facts);
void dnn_report_table(struct dnn_buf *out, const struct dnn_report_table *table);
void dnn_report_confusion(struct dnn_buf *out, int64_t classes, const double *count,
                          const char *const *name);

#endif
