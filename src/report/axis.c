/* axis.c - axes: ranges and ticks at round numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "report/report_impl.h"

#include <math.h>

enum { TICKS = 5 }; /* approximate number of ticks of an axis */

/* The step of ticks: 1, 2 or 5 times a power of ten. */
static double round_step(double range)
{
    double rough = range / TICKS, power = pow(10, floor(log10(rough)));

    if (rough / power > 7) return 10 * power;
    if (rough / power > 3) return 5 * power;
    return rough / power > 1.5 ? 2 * power : power;
}

struct dnn_axis dnn_axis_make(double low, double high, bool log, bool whole)
{
    struct dnn_axis axis = {low, high, 0, 1, log, whole};

    if (log) {
        axis.low = log10(low);
        axis.high = log10(high);
    }
    double range = axis.high - axis.low;
    if (whole) {
        if (range <= 0) axis.low -= 0.5, axis.high += 0.5;
        return axis;
    }
    if (range <= 1e-12 * fabs(axis.high)) { /* all values are equal */
        range = log ? 1 : fabs(axis.high) > 0 ? fabs(axis.high) : 1;
        axis.low -= range / 2;
        axis.high += range / 2;
        return axis;
    }
    /* Start at 0, if it is near. */
    if (!log && axis.low >= 0 && axis.low < 0.35 * axis.high)
        axis.low = 0;
    else
        axis.low -= 0.05 * range;
    axis.high += 0.05 * range;
    return axis;
}

double dnn_axis_at(const struct dnn_axis *axis, double value)
{
    if (axis->log) value = log10(value);
    return axis->from +
           (value - axis->low) / (axis->high - axis->low) * (axis->to - axis->from);
}

/* Write a label, with enough digits to distinguish it from its neighbours. */
static void name_tick(char label[24], double value, double step)
{
    int digits = (int)ceil(-log10(step) - 1e-9);

    if (fabs(value) < step * 1e-6) value = 0;
    if (value == 0) digits = 0;
    if (fabs(value) >= 1e6 || (value != 0 && digits > 5))
        snprintf(label, 24, "%.3g", value);
    else
        snprintf(label, 24, "%.*f", digits < 0 ? 0 : digits, value);
}

static int log_ticks(const struct dnn_axis *axis, double *tick,
                     char label[DNN_AXIS_TICKS][24])
{
    static const int mantissa[] = {1, 2, 5};
    const int decades = (int)(axis->high - axis->low), every = 1 + decades / 8;
    int n = 0;

    for (int e = (int)floor(axis->low); e <= axis->high && n < DNN_AXIS_TICKS - 2; e++)
        for (int k = 0; k < 3; k++) {
            double v = mantissa[k] * pow(10, e);

            if (log10(v) < axis->low - 1e-9 || log10(v) > axis->high + 1e-9) continue;
            if (k > 0 && decades >= 3) continue;
            if (e % every != 0 || n == DNN_AXIS_TICKS) continue;
            tick[n] = v;
            snprintf(label[n++], 24, "%g", v);
        }
    return n;
}

int dnn_axis_ticks(const struct dnn_axis *axis, double tick[DNN_AXIS_TICKS],
                   char label[DNN_AXIS_TICKS][24])
{
    double step = round_step(axis->high - axis->low);
    int n = 0;

    if (axis->log) return log_ticks(axis, tick, label);
    if (axis->whole && step < 1) step = 1;
    for (double k = ceil(axis->low / step - 1e-9);
         k * step <= axis->high + 1e-9 * step && n < DNN_AXIS_TICKS; k++) {
        tick[n] = k * step;
        name_tick(label[n++], k * step, step);
    }
    return n;
}
