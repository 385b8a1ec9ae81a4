/* surface.c - distances between the surfaces of target and output, per class.
 *
 * The surface of a class are its points with a face neighbour outside of the class or
 * of the sample.  A directed distance is the distance of a point of one surface to the
 * nearest point of the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "evaluate/evaluate_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TARGET = 1, OUTPUT = 2 };

/* The bounding box of a class in target and output together. */
struct region {
    int64_t low[3], high[3];
    int found; /* TARGET, OUTPUT */
};

static unsigned code_of(const unsigned char *map, int width, int64_t i)
{
    uint16_t code;

    if (width == 1) return map[i];
    memcpy(&code, map + 2 * i, 2);
    return code;
}

static void widen(struct region *r, const int64_t at[3], int which)
{
    for (int d = 0; d < 3; d++) {
        if (r->found == 0 || at[d] < r->low[d]) r->low[d] = at[d];
        if (r->found == 0 || at[d] > r->high[d]) r->high[d] = at[d];
    }
    r->found |= which;
}

static void find_regions(const struct evaluate_volume *v, int64_t classes,
                         struct region *region)
{
    int64_t i = 0, at[3];

    for (at[0] = 0; at[0] < v->extent[0]; at[0]++)
        for (at[1] = 0; at[1] < v->extent[1]; at[1]++)
            for (at[2] = 0; at[2] < v->extent[2]; at[2]++, i++) {
                unsigned t = code_of(v->target, v->width, i);
                unsigned o = code_of(v->output, v->width, i);

                if (t < classes) widen(&region[t], at, TARGET);
                if (o < classes) widen(&region[o], at, OUTPUT);
            }
}

/* ---- one class ---- */

struct pair {
    const struct evaluate_volume *v;
    unsigned class;
    int64_t start[3], extent[3], points; /* of the region */
    unsigned char *surface;              /* TARGET, OUTPUT */
    float *distance;
};

static bool on_surface(const struct pair *p, const unsigned char *map,
                       const int64_t *at, int64_t i)
{
    int64_t stride = 1;

    if (code_of(map, p->v->width, i) != p->class) return false;
    for (int d = 2; d >= 0; d--) {
        if (d < p->v->ndim && (at[d] == 0 || at[d] == p->v->extent[d] - 1 ||
                               code_of(map, p->v->width, i - stride) != p->class ||
                               code_of(map, p->v->width, i + stride) != p->class))
            return true;
        stride *= p->v->extent[d];
    }
    return false;
}

static void mark_plane(const struct pair *p, int64_t plane, int64_t n[2])
{
    const int64_t *e = p->v->extent;
    unsigned char *out = p->surface + plane * p->extent[1] * p->extent[2];
    int64_t at[3] = {p->start[0] + plane, 0, 0};

    for (int64_t y = 0; y < p->extent[1]; y++)
        for (int64_t x = 0; x < p->extent[2]; x++, out++) {
            at[1] = p->start[1] + y, at[2] = p->start[2] + x;
            const int64_t i = (at[0] * e[1] + at[1]) * e[2] + at[2];
            const bool t = on_surface(p, p->v->target, at, i);
            const bool o = on_surface(p, p->v->output, at, i);

            *out = (unsigned char)((t ? TARGET : 0) | (o ? OUTPUT : 0));
            n[0] += t;
            n[1] += o;
        }
}

/* Mark both surfaces; returns the larger number of points. */
static int64_t mark(const struct pair *p)
{
    int64_t targets = 0, outputs = 0;

#pragma omp parallel for reduction(+ : targets, outputs) if (p->points > 16384)
    for (int64_t z = 0; z < p->extent[0]; z++) {
        int64_t n[2] = {0, 0};

        mark_plane(p, z, n);
        targets += n[0];
        outputs += n[1];
    }
    return targets > outputs ? targets : outputs;
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return x < y ? -1 : x > y;
}

/* Linear interpolation between the two nearest ranks. */
static double percentile(const float *sorted, int64_t n, double share)
{
    const double at = share * (double)(n - 1);
    const int64_t i = (int64_t)at;
    const double a = sqrt(sorted[i]), b = sqrt(sorted[i + 1 < n ? i + 1 : i]);

    return a + (b - a) * (at - (double)i);
}

/* The directed distances from one surface to the other: their 95th percentile, and
 * their sum and number. */
static double directed(const struct pair *p, int from, int to, float *list,
                       struct evaluate_mean *mean)
{
    int64_t n = 0;

    for (int64_t i = 0; i < p->points; i++)
        p->distance[i] = (p->surface[i] & to) != 0 ? 0 : INFINITY;
    dnn_evaluate_distance(p->distance, p->extent, p->v->spacing);
    for (int64_t i = 0; i < p->points; i++)
        if ((p->surface[i] & from) != 0) list[n++] = p->distance[i];
    qsort(list, (size_t)n, sizeof *list, ascending);
    for (int64_t i = 0; i < n; i++)
        dnn_evaluate_mean_add(mean, sqrt(list[i]));
    return percentile(list, n, 0.95);
}

static int measure(const struct evaluate_volume *v, const struct region *r,
                   unsigned class, double *value, struct dnn_err *err)
{
    struct pair p = {.v = v, .class = class};
    struct evaluate_mean mean = {0};
    float *list = NULL;
    int rc = 0;

    for (int d = 0; d < 3; d++) {
        p.start[d] = r->low[d];
        p.extent[d] = r->high[d] - r->low[d] + 1;
    }
    p.points = dnn_evaluate_points(p.extent);
    p.surface = malloc((size_t)p.points);
    p.distance = malloc((size_t)p.points * sizeof *p.distance);
    if (p.surface != NULL && p.distance != NULL)
        list = malloc((size_t)mark(&p) * sizeof *list);
    if (list == NULL) {
        rc = dnn_fail(err, DNN_ENOMEM,
                      "surface distances of %lld points of class %u do not fit into "
                      "memory; set inference.surfaces to false",
                      (long long)p.points, class);
    } else {
        double to_output = directed(&p, TARGET, OUTPUT, list, &mean);
        double to_target = directed(&p, OUTPUT, TARGET, list, &mean);

        value[0] = to_output > to_target ? to_output : to_target;
        value[1] = dnn_evaluate_mean(&mean);
    }
    free(list);
    free(p.distance);
    free(p.surface);
    return rc;
}

int dnn_evaluate_surfaces(const struct dnn_evaluation *e,
                          const struct evaluate_volume *v, double *value,
                          struct dnn_err *err)
{
    const int64_t classes = e->cfg.classes;
    struct region *region = dnn_alloc((size_t)classes * sizeof *region);
    int rc = 0;

    find_regions(v, classes, region);
    for (int64_t c = 0; c < classes && rc == 0; c++)
        if (region[c].found == (TARGET | OUTPUT) && dnn_evaluate_averaged(e, c))
            rc = measure(v, &region[c], (unsigned)c, value + 2 * c, err);
    dnn_free(region);
    return rc;
}
