/* reliability.c - the reliability diagram: accuracy over confidence.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "report/report_impl.h"

#include <inttypes.h>

struct diagram {
    struct dnn_buf *out;
    struct dnn_axis x, y;
};

static void add_bar(const struct diagram *d, double left, double right, double low,
                    double high, const char *colour)
{
    if (low > high) {
        const double swap = low;

        low = high;
        high = swap;
    }
    const double x = dnn_axis_at(&d->x, left), y = dnn_axis_at(&d->y, high);
    const double width = dnn_axis_at(&d->x, right) - x;
    const double gap = width > 2 ? 0.5 : 0; /* at both sides */
    dnn_buf_add(d->out,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                "fill=\"%s\"/>\n",
                x + gap, y, width - 2 * gap, dnn_axis_at(&d->y, low) - y, colour);
}

/* The accuracy in blue, and its distance from the confidence in red. */
static void add_bin(const struct diagram *d, const struct dnn_report_bin *bin)
{
    if (bin->count < 1) return;
    dnn_buf_add(d->out,
                "<g><title>confidence %.3f, accuracy %.3f, %" PRId64
                " samples</title>\n",
                bin->confidence, bin->accuracy, bin->count);
    add_bar(d, bin->low, bin->high, 0, bin->accuracy, "#93b4f5");
    add_bar(d, bin->low, bin->high, bin->accuracy, bin->confidence,
            "rgba(220,38,38,.45)");
    dnn_buf_add(d->out, "</g>\n");
}

void dnn_report_reliability(struct dnn_buf *out, int nbins,
                            const struct dnn_report_bin *bin)
{
    struct diagram d = {
        .out = out, .x = {.low = 0, .high = 1},
             .y = {.low = 0, .high = 1}
    };

    dnn_chart_place(&d.x, &d.y);
    dnn_buf_add(out, "<section><h2>Calibration</h2>\n<div class=\"charts\">"
                     "<figure class=\"chart\"><figcaption>accuracy by confidence "
                     "<small>red: difference</small></figcaption>\n");
    dnn_chart_open(out, "accuracy by confidence");
    dnn_chart_axes(out, &d.x, &d.y, "confidence");
    for (int b = 0; b < nbins; b++)
        add_bin(&d, &bin[b]);
    dnn_buf_add(out,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
                "stroke=\"#46505e\" stroke-dasharray=\"5 3\"/>\n"
                "</svg></figure></div></section>\n",
                d.x.from, d.y.from, d.x.to, d.y.to);
}
