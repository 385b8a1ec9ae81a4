/* svg.c - a chart of several curves as SVG, with a legend.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "report/report_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>

enum {
    WIDTH = 520,
    HEIGHT = 300,
    LEFT = 62,
    RIGHT = 16,
    TOP = 12,
    BOTTOM = 42,
    DOTS = 60,    /* with up to so many points, each point is marked      */
    PLAIN = 800,  /* with up to so many points, each point is drawn; with */
    BUCKETS = 260 /* more, means and ranges of so many buckets            */
};

/* These colours are distinguishable for colour-blind readers. */
static const char *const colour[] = {"#2563eb", "#ea580c", "#16a34a", "#9333ea",
                                     "#dc2626", "#0891b2", "#ca8a04", "#db2777"};
enum { COLOURS = sizeof colour / sizeof colour[0] };

struct plot {
    struct dnn_buf *out;
    const struct dnn_chart *chart;
    struct dnn_axis x, y;
    double scale;
};

/* ---- ranges ---- */

/* Whether a value can be drawn: with larger values, ranges would overflow. */
static bool usable(double value)
{
    return fabs(value) < 1e300;
}

struct range {
    double low, high;
    int64_t n;
};

static void widen(struct range *r, double value)
{
    if (!usable(value)) return;
    if (r->n == 0 || value < r->low) r->low = value;
    if (r->n == 0 || value > r->high) r->high = value;
    r->n++;
}

static void measure(const struct dnn_chart *c, struct range *x, struct range *y)
{
    const double scale = c->scale == 0 ? 1 : c->scale;

    *x = *y = (struct range){0};
    for (int s = 0; s < c->n; s++)
        for (int64_t i = 0; i < c->series[s].n; i++) {
            if (!usable(c->series[s].x[i]) || !usable(c->series[s].y[i])) continue;
            widen(x, c->series[s].x[i]);
            widen(y, c->series[s].y[i] * scale);
        }
}

bool dnn_chart_any(const struct dnn_chart *chart)
{
    struct range x, y;

    measure(chart, &x, &y);
    return y.n > 0;
}

/* ---- axes ---- */

void dnn_chart_place(struct dnn_axis *x, struct dnn_axis *y)
{
    x->from = LEFT, x->to = WIDTH - RIGHT;
    y->from = HEIGHT - BOTTOM, y->to = TOP;
}

void dnn_chart_open(struct dnn_buf *out, const char *title)
{
    dnn_buf_add(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH,
                HEIGHT);
    dnn_html_text(out, title);
    dnn_buf_add(out, "\">\n");
}

void dnn_chart_axes(struct dnn_buf *out, const struct dnn_axis *x,
                    const struct dnn_axis *y, const char *xlabel)
{
    double tick[DNN_AXIS_TICKS];
    char label[DNN_AXIS_TICKS][24];
    const double bottom = HEIGHT - BOTTOM, right = WIDTH - RIGHT;

    int n = dnn_axis_ticks(y, tick, label);
    for (int i = 0; i < n; i++) {
        double at = dnn_axis_at(y, tick[i]);

        dnn_buf_add(out,
                    "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%.0f\" "
                    "y2=\"%.1f\"/><text class=\"y\" x=\"%d\" y=\"%.1f\">%s</text>\n",
                    LEFT, at, right, at, LEFT - 8, at + 4, label[i]);
    }
    n = dnn_axis_ticks(x, tick, label);
    for (int i = 0; i < n; i++) {
        double at = dnn_axis_at(x, tick[i]);

        dnn_buf_add(out,
                    "<line class=\"tick\" x1=\"%.1f\" y1=\"%.0f\" x2=\"%.1f\" "
                    "y2=\"%.0f\"/><text class=\"x\" x=\"%.1f\" y=\"%.0f\">%s</text>\n",
                    at, bottom, at, bottom + 5, at, bottom + 19, label[i]);
    }
    dnn_buf_add(out,
                "<line class=\"axis\" x1=\"%d\" y1=\"%.0f\" x2=\"%.0f\" y2=\"%.0f\"/>"
                "<text class=\"x\" x=\"%.0f\" y=\"%d\">",
                LEFT, bottom, right, bottom, (LEFT + right) / 2, HEIGHT - 6);
    dnn_html_text(out, xlabel);
    dnn_buf_add(out, "</text>\n");
}

/* ---- curves ---- */

static bool drawable(const struct plot *p, double x, double y)
{
    return usable(x) && usable(y) && (!p->y.log || y > 0);
}

static const char *dash_of(int s)
{
    return s < COLOURS ? "" : " stroke-dasharray=\"5 3\"";
}

static void add_line(struct plot *p, int s, const double *x, const double *y, int64_t n)
{
    bool pen = false;

    dnn_buf_add(p->out, "<path class=\"curve\" stroke=\"%s\"%s d=\"",
                colour[s % COLOURS], dash_of(s));
    for (int64_t i = 0; i < n; i++) {
        double v = y[i] * p->scale;

        if (!drawable(p, x[i], v)) {
            pen = false;
            continue;
        }
        dnn_buf_add(p->out, "%c%.1f %.1f", pen ? 'L' : 'M', dnn_axis_at(&p->x, x[i]),
                    dnn_axis_at(&p->y, v));
        pen = true;
    }
    dnn_buf_add(p->out, "\"/>\n");
}

/* Add a mark per point, with its value as tooltip (the SVG element title). */
static void add_dots(struct plot *p, int s)
{
    const struct dnn_series *c = &p->chart->series[s];

    for (int64_t i = 0; i < c->n; i++) {
        double v = c->y[i] * p->scale;

        if (!drawable(p, c->x[i], v)) continue;
        dnn_buf_add(
            p->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.8\" fill=\"%s\"><title>",
            dnn_axis_at(&p->x, c->x[i]), dnn_axis_at(&p->y, v), colour[s % COLOURS]);
        dnn_html_text(p->out, c->name);
        dnn_buf_add(p->out, ", ");
        dnn_html_text(p->out, p->chart->xlabel);
        dnn_buf_add(p->out, " ");
        dnn_html_number(p->out, c->x[i]);
        dnn_buf_add(p->out, ": ");
        dnn_html_number(p->out, v);
        dnn_buf_add(p->out, "</title></circle>\n");
    }
}

/* Draw the mean of each bucket, and behind it the range of its values as a band. */
static void add_band(struct plot *p, int s)
{
    const struct dnn_series *c = &p->chart->series[s];
    double x[BUCKETS], mean[BUCKETS], low[BUCKETS], high[BUCKETS];
    int n = 0;

    for (int k = 0; k < BUCKETS; k++) {
        struct range r = {0};
        double sum = 0, at = 0;

        for (int64_t i = c->n * k / BUCKETS; i < c->n * (k + 1) / BUCKETS; i++) {
            if (!drawable(p, c->x[i], c->y[i] * p->scale)) continue;
            widen(&r, c->y[i]);
            sum += c->y[i];
            at += c->x[i];
        }
        if (r.n == 0) continue;
        x[n] = at / (double)r.n;
        mean[n] = sum / (double)r.n;
        low[n] = r.low;
        high[n++] = r.high;
    }
    dnn_buf_add(p->out, "<path class=\"band\" fill=\"%s\" d=\"", colour[s % COLOURS]);
    for (int k = 0; k < n; k++)
        dnn_buf_add(p->out, "%c%.1f %.1f", k == 0 ? 'M' : 'L', dnn_axis_at(&p->x, x[k]),
                    dnn_axis_at(&p->y, high[k] * p->scale));
    for (int k = n - 1; k >= 0; k--)
        dnn_buf_add(p->out, "L%.1f %.1f", dnn_axis_at(&p->x, x[k]),
                    dnn_axis_at(&p->y, low[k] * p->scale));
    dnn_buf_add(p->out, "Z\"/>\n");
    add_line(p, s, x, mean, n);
}

static void add_legend(struct dnn_buf *out, const struct dnn_chart *c)
{
    if (c->n < 2) return;
    dnn_buf_add(out, "<p class=\"legend\">");
    for (int s = 0; s < c->n; s++) {
        dnn_buf_add(out, "<span><i style=\"border-top:3px %s %s\"></i>",
                    s < COLOURS ? "solid" : "dashed", colour[s % COLOURS]);
        dnn_html_text(out, c->series[s].name);
        dnn_buf_add(out, "</span> ");
    }
    if (c->left_out > 0) dnn_buf_add(out, "<span>and %d more</span>", c->left_out);
    dnn_buf_add(out, "</p>\n");
}

void dnn_chart_add(struct dnn_buf *out, const struct dnn_chart *c)
{
    struct plot p = {.out = out, .chart = c, .scale = c->scale == 0 ? 1 : c->scale};
    struct range x, y;

    measure(c, &x, &y);
    const bool log = c->may_log && y.low > 0 && y.high / y.low > 30;
    p.x = dnn_axis_make(x.low, x.high, false, true);
    p.y = dnn_axis_make(y.low, y.high, log, false);
    dnn_chart_place(&p.x, &p.y);
    dnn_buf_add(out, "<figure class=\"chart\"><figcaption>");
    dnn_html_text(out, c->title);
    dnn_buf_add(out, "%s</figcaption>\n", log ? " <small>logarithmic</small>" : "");
    add_legend(out, c);
    dnn_chart_open(out, c->title);
    dnn_chart_axes(out, &p.x, &p.y, c->xlabel);
    for (int s = 0; s < c->n; s++) {
        const struct dnn_series *one = &c->series[s];

        if (one->n > PLAIN)
            add_band(&p, s);
        else
            add_line(&p, s, one->x, one->y, one->n);
        if (one->n <= DOTS) add_dots(&p, s);
    }
    dnn_buf_add(out, "</svg></figure>\n");
}
