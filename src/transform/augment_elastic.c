/* augment_elastic.c - random elastic deformation.
 *
 * Displacements are random at control points, and cubic B-splines between them.  The
 * standard deviation of the spline kernel is sqrt(1/3) of the distance of the control
 * points.  So with a distance of sqrt(3) sigma, the result resembles noise at every
 * point after a Gaussian filter of width sigma, at a fraction of the cost.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/augment_impl.h"

#include <math.h>
#include <stddef.h>

struct opts {
    double alpha, sigma, p, fill;
};

#define AT(f) offsetof(struct opts, f)
static const struct dnn_field fields[] = {
    {"alpha", DNN_F_REAL, AT(alpha), NULL, 0, 1e6, NULL,
     "standard deviation of the displacement along each axis, in pixels", NULL},
    {"sigma", DNN_F_REAL, AT(sigma), NULL, 1, 1e6, NULL,
     "smoothness: width of the filter, in pixels",                        NULL},
    {"p",     DNN_F_REAL, AT(p),     "1",  0, 1,   NULL, "probability",   NULL},
    {"fill",  DNN_F_REAL, AT(fill),  "0",  0, 0,   NULL,
     "images: fill value outside; masks get 0",                           NULL},
    {NULL,    0,          0,         NULL, 0, 0,   NULL, NULL,            NULL},
};

/* The number of control points; the spline at the last of n points needs four. */
static int64_t controls(int64_t n, double distance)
{
    return (int64_t)((double)(n - 1) / distance) + 4;
}

/* Interpolate from g control points to n points along one axis; outer and inner are the
 * number of elements before and after this axis. */
static void expand(const float *in, int64_t outer, int64_t g, int64_t n, int64_t inner,
                   double distance, float *out)
{
    for (int64_t k = 0; k < n; k++) {
        const double t = (double)k / distance;
        const int64_t first = (int64_t)t;
        const double f = t - (double)first, e = 1 - f;
        const float w[4] = {
            (float)(e * e * e / 6), (float)((3 * f * f * f - 6 * f * f + 4) / 6),
            (float)((3 * e * e * e - 6 * e * e + 4) / 6), (float)(f * f * f / 6)};

        for (int64_t o = 0; o < outer; o++) {
            const float *a = in + (o * g + first) * inner;
            float *to = out + (o * n + k) * inner;

            for (int64_t i = 0; i < inner; i++)
                to[i] = w[0] * a[i] + w[1] * a[inner + i] + w[2] * a[2 * inner + i] +
                        w[3] * a[3 * inner + i];
        }
    }
}

static int make_array(struct dnn_array *array, const int64_t *n, int nspace,
                      struct dnn_err *err)
{
    struct dnn_shape shape = {.ndim = nspace + 1};

    for (int k = 0; k < nspace; k++)
        shape.dim[k] = n[k];
    shape.dim[nspace] = nspace;
    return dnn_array_make(array, DNN_F32, &shape, err);
}

/* Make the displacement field of these extents in field[0]. */
static int make_field(const struct opts *o, struct dnn_aug_run *run, int nspace,
                      const int64_t *extent, struct dnn_err *err)
{
    struct dnn_array *field = run->scratch->field;
    const double distance = o->sigma * sqrt(3.0);
    int64_t n[DNN_MAX_SPACE];
    /* The mean of the sum of squared spline weights is 151/315 per axis. */
    const double scale = o->alpha / pow(151.0 / 315.0, 0.5 * nspace);

    for (int k = 0; k < nspace; k++)
        n[k] = controls(extent[k], distance);
    DNN_TRY(make_array(&field[0], n, nspace, err));
    float *x = field[0].data;
    for (int64_t k = 0; k < dnn_array_count(&field[0]); k++)
        x[k] = (float)(scale * dnn_draw_normal(&run->draw));
    for (int k = nspace - 1; k >= 0; k--) {
        const int64_t g = n[k];
        int64_t outer = 1, inner = nspace;

        for (int j = 0; j < k; j++)
            outer *= n[j];
        for (int j = k + 1; j < nspace; j++)
            inner *= n[j];
        n[k] = extent[k];
        DNN_TRY(make_array(&field[1], n, nspace, err));
        expand(field[0].data, outer, g, n[k], inner, distance, field[1].data);
        dnn_array_swap(&field[0], &field[1]);
    }
    return 0;
}

static int apply(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                 struct dnn_err *err)
{
    const struct opts *o = step->opts;
    const struct dnn_column *first = &run->col[dnn_aug_first(step, run)];

    if (dnn_draw_real(&run->draw, 0, 1) >= o->p) return 0;
    DNN_TRY(make_field(o, run, dnn_aug_nspace(first), first->shape.dim, err));
    for (int c = 0; c < run->ncols; c++) {
        const struct dnn_warp warp = {
            .matrix = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
            .displacement = run->scratch->field[0].data,
            .fill = run->col[c].kind == DNN_KIND_MASK ? 0 : o->fill,
            .how = dnn_aug_interp(&run->col[c])
        };

        if (!dnn_aug_touches(step, &run->col[c])) continue;
        DNN_TRY(dnn_warp(&run->sample->col[c], &warp, &run->scratch->spare, err));
        dnn_array_swap(&run->sample->col[c], &run->scratch->spare);
    }
    return 0;
}

static int columns(const struct dnn_aug_step *step, int ncols, struct dnn_column *col,
                   struct dnn_err *err)
{
    return dnn_aug_alike(step, ncols, col, err);
}

const struct dnn_aug_kind dnn_aug_elastic = {
    .name = "elastic",
    .params = "{\"alpha\": 3, \"sigma\": 8, \"p\": 0.5}",
    .help = "random elastic deformation",
    .random = true,
    .size = sizeof(struct opts),
    .fields = fields,
    .columns = columns,
    .apply = apply,
};
