/* distance.c - exact Euclidean distance transform, one axis after the other.
 *
 * Along a line, the squared distance at a point is the smallest of the parabolas that
 * stand on the points of the line; their lower envelope is found in linear time
 * (Felzenszwalb and Huttenlocher, 2012).
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "evaluate/evaluate_impl.h"

#include <math.h>

/* Parabolas of the envelope: where each stands, and from where on it is the lowest. */
struct envelope {
    double *from, *height;
    int64_t *at;
};

/* One line of n points; w: squared distance of neighbours. */
static void transform_line(float *x, int64_t stride, int64_t n, double w,
                           const struct envelope *p)
{
    int64_t last = -1;

    for (int64_t q = 0; q < n; q++) {
        const double f = x[q * stride];
        double s = -INFINITY;

        if (isinf(f)) continue;
        for (; last >= 0; last--) {
            s = ((f - p->height[last]) / w +
                 (double)(q * q - p->at[last] * p->at[last])) /
                (2 * (double)(q - p->at[last]));
            if (s > p->from[last]) break;
        }
        last++;
        p->at[last] = q;
        p->height[last] = f;
        p->from[last] = last == 0 ? -INFINITY : s;
    }
    if (last < 0) return; /* nothing on this line: infinite */
    for (int64_t q = 0, k = 0; q < n; q++) {
        while (k < last && p->from[k + 1] < (double)q)
            k++;
        const double d = (double)(q - p->at[k]);
        x[q * stride] = (float)(w * d * d + p->height[k]);
    }
}

static void transform_axis(float *value, int64_t points, int64_t stride, int64_t n,
                           double w)
{
    const int64_t lines = points / n;

#pragma omp parallel if (points > 16384)
    {
        struct envelope p = {.from = dnn_alloc((size_t)n * sizeof(double)),
                             .height = dnn_alloc((size_t)n * sizeof(double)),
                             .at = dnn_alloc((size_t)n * sizeof(int64_t))};

#pragma omp for schedule(static)
        for (int64_t l = 0; l < lines; l++)
            transform_line(value + l / stride * stride * n + l % stride, stride, n, w,
                           &p);
        dnn_free(p.from);
        dnn_free(p.height);
        dnn_free(p.at);
    }
}

void dnn_evaluate_distance(float *value, const int64_t extent[3],
                           const double spacing[3])
{
    const int64_t points = dnn_evaluate_points(extent);
    int64_t stride = 1;

    for (int d = 2; d >= 0; d--) {
        if (extent[d] > 1)
            transform_axis(value, points, stride, extent[d], spacing[d] * spacing[d]);
        stride *= extent[d];
    }
}
