/* resize.c - an array at other extents: nearest points, or linear along each axis.
 *
 * Linear work is separable.  Rows are stretched along the last axis, two of them make a
 * row of a plane, two planes make a plane of the result; rows and planes that the next
 * one needs too are kept.  So an input plane is stretched once, and most of the time is
 * spent in loops over whole rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/transform_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Where each point of an axis comes from: low + part * (high - low). */
struct axis {
    int64_t n;
    int32_t *low, *high;
    double *part;
    float *part_float; /* the same */
    bool same;         /* every point is low alone, and low is its own number */
};

/* In whole numbers, hence exact: point o lies at ((2 o + 1) in - out) / (2 out). */
static void axis_make(struct axis *axis, int64_t in, int64_t out, enum dnn_interp how)
{
    axis->n = out;
    axis->low = dnn_alloc((size_t)out * sizeof *axis->low);
    axis->high = dnn_alloc((size_t)out * sizeof *axis->high);
    axis->part = dnn_alloc((size_t)out * sizeof *axis->part);
    axis->part_float = dnn_alloc((size_t)out * sizeof *axis->part_float);
    axis->same = in == out;
    for (int64_t o = 0; o < out; o++) {
        int64_t at = (2 * o + 1) * in, below = 2 * out;

        if (how == DNN_INTERP_LINEAR) at = at < out ? 0 : at - out;
        axis->low[o] = axis->high[o] = (int32_t)(at / below);
        if (how == DNN_INTERP_NEAREST || axis->low[o] >= in - 1) continue;
        axis->part[o] = (double)(at % below) / (double)below;
        axis->part_float[o] = (float)axis->part[o];
        if (axis->part[o] > 0) axis->high[o]++;
    }
}

static void axis_free(struct axis *axis)
{
    dnn_free(axis->low);
    dnn_free(axis->high);
    dnn_free(axis->part);
    dnn_free(axis->part_float);
}

struct job {
    const struct dnn_array *in;
    struct dnn_array *out;
    struct dnn_grid from, to;
    struct axis axis[DNN_MAX_SPACE];
    enum dnn_dtype work;
    size_t size; /* of a number of type work */
    int64_t row; /* numbers in a row of the result */
    struct dnn_array scratch;
    char *raw;                 /* an input row as type work */
    char *rows[2], *planes[2]; /* kept, and which they are: */
    int64_t row_is[2], plane_is[2];
};

/* ---- nearest ---- */

static void pick(const struct job *job, const char *from, char *to)
{
    const struct axis *x = &job->axis[2];
    size_t pixel = job->from.pixel;

    if (x->same) {
        memcpy(to, from, (size_t)x->n * pixel);
        return;
    }
    switch (pixel) {
    case 1:
        for (int64_t i = 0; i < x->n; i++)
            to[i] = from[x->low[i]];
        break;
    case 4:
        for (int64_t i = 0; i < x->n; i++)
            memcpy(to + i * 4, from + x->low[i] * 4, 4);
        break;
    default:
        for (int64_t i = 0; i < x->n; i++)
            memcpy(to + (size_t)i * pixel, from + (size_t)x->low[i] * pixel, pixel);
    }
}

static void nearest(const struct job *job)
{
    const struct axis *z = &job->axis[0], *y = &job->axis[1];
    size_t row = (size_t)job->to.n[2] * job->to.pixel, plane = row * (size_t)y->n;
    char *to = job->out->data;

    for (int64_t i = 0; i < z->n; i++) {
        if (i > 0 && z->low[i] == z->low[i - 1]) {
            memcpy(to, to - plane, plane);
            to += plane;
            continue;
        }
        for (int64_t j = 0; j < y->n; j++, to += row)
            if (j > 0 && y->low[j] == y->low[j - 1])
                memcpy(to, to - row, row);
            else
                pick(job,
                     (const char *)job->in->data +
                         dnn_transform_at(&job->from, z->low[i], y->low[j], 0),
                     to);
    }
}

/* ---- linear: the loops ---- */

#define LOOPS(real, parts)                                                             \
    static void blend_##real(real *restrict out, const real *restrict a,               \
                             const real *restrict b, real part, int64_t n)             \
    {                                                                                  \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) out[i] =                   \
            a[i] + part * (b[i] - a[i]);                                               \
    }                                                                                  \
    static void stretch_##real(real *restrict out, const real *restrict in,            \
                               const struct axis *x, int64_t c)                        \
    {                                                                                  \
        for (int64_t i = 0; i < x->n; i++) {                                           \
            const real *a = in + x->low[i] * c, *b = in + x->high[i] * c;              \
                                                                                       \
            for (int64_t k = 0; k < c; k++)                                            \
                *out++ = a[k] + x->parts[i] * (b[k] - a[k]);                           \
        }                                                                              \
    }                                                                                  \
    static void stretch1_##real(real *restrict out, const real *restrict in,           \
                                const struct axis *x)                                  \
    {                                                                                  \
        const int32_t *restrict low = x->low, *restrict high = x->high;                \
        const real *restrict part = x->parts;                                          \
                                                                                       \
        for (int64_t i = 0, n = x->n; i < n; i++)                                      \
            out[i] = in[low[i]] + part[i] * (in[high[i]] - in[low[i]]);                \
    }
LOOPS(float, part_float)
LOOPS(double, part)

static void blend(const struct job *job, void *out, const void *a, const void *b,
                  double part, int64_t n)
{
    if (part == 0)
        memcpy(out, a, (size_t)n * job->size);
    else if (job->work == DNN_F32)
        blend_float(out, a, b, (float)part, n);
    else
        blend_double(out, a, b, part, n);
}

static void stretch(const struct job *job, void *out, const void *in)
{
    const struct axis *x = &job->axis[2];
    int64_t c = job->from.channels;

    if (job->work == DNN_F32 && c == 1)
        stretch1_float(out, in, x);
    else if (job->work == DNN_F32)
        stretch_float(out, in, x, c);
    else if (c == 1)
        stretch1_double(out, in, x);
    else
        stretch_double(out, in, x, c);
}

/* ---- linear: rows and planes ---- */

/* Input row (z, y) at the result's extent, in one of the two that are kept or where it
 * is; the other kept one is not touched if it is row `other`. */
static int row_at(struct job *job, int64_t z, int64_t y, int64_t other,
                  const void **out, struct dnn_err *err)
{
    const char *from =
        (const char *)job->in->data + dnn_transform_at(&job->from, z, y, 0);
    int64_t n = job->from.n[2] * job->from.channels;
    bool direct = job->in->type == job->work;

    if (direct && job->axis[2].same) {
        *out = from;
        return 0;
    }
    for (int k = 0; k < 2; k++)
        if (job->row_is[k] == y) {
            *out = job->rows[k];
            return 0;
        }
    int k = job->row_is[0] == other ? 1 : 0;
    job->row_is[k] = y;
    *out = job->rows[k];
    if (job->axis[2].same)
        return dnn_transform_load(from, job->in->type, job->rows[k], job->work, n, err);
    if (!direct)
        DNN_TRY(dnn_transform_load(from, job->in->type, job->raw, job->work, n, err));
    stretch(job, job->rows[k], direct ? from : job->raw);
    return 0;
}

static int plane_fill(struct job *job, int64_t z, char *to, struct dnn_err *err)
{
    const struct axis *y = &job->axis[1];

    job->row_is[0] = job->row_is[1] = -1;
    for (int64_t j = 0; j < y->n; j++, to += (size_t)job->row * job->size) {
        const void *a, *b;

        DNN_TRY(row_at(job, z, y->low[j], y->high[j], &a, err));
        b = a;
        if (y->high[j] != y->low[j])
            DNN_TRY(row_at(job, z, y->high[j], y->low[j], &b, err));
        blend(job, to, a, b, y->part[j], job->row);
    }
    return 0;
}

static int plane_at(struct job *job, int64_t z, int64_t other, const char **out,
                    struct dnn_err *err)
{
    for (int k = 0; k < 2; k++)
        if (job->plane_is[k] == z) {
            *out = job->planes[k];
            return 0;
        }
    int k = job->plane_is[0] == other ? 1 : 0;
    job->plane_is[k] = z;
    *out = job->planes[k];
    return plane_fill(job, z, job->planes[k], err);
}

static int plane_out(struct job *job, const char *a, const char *b, double part,
                     char *to, struct dnn_err *err)
{
    size_t row = (size_t)job->row * job->size;

    if (job->in->type == job->work) {
        blend(job, to, a, b, part, job->row * job->to.n[1]);
        return 0;
    }
    for (int64_t j = 0; j < job->to.n[1]; j++) {
        if (part != 0) blend(job, job->rows[0], a, b, part, job->row);
        DNN_TRY(dnn_transform_store(part != 0 ? job->rows[0] : a, job->work, to,
                                    job->in->type, job->row, err));
        a += row;
        b += row;
        to += (size_t)job->row * job->to.element;
    }
    return 0;
}

static int linear(struct job *job, struct dnn_err *err)
{
    const struct axis *z = &job->axis[0];
    size_t plane = (size_t)(job->to.n[1] * job->to.n[2]) * job->to.pixel;
    char *to = job->out->data;

    for (int64_t i = 0; i < z->n; i++, to += plane) {
        const char *a, *b;

        if (z->same && job->in->type == job->work) {
            DNN_TRY(plane_fill(job, i, to, err));
            continue;
        }
        DNN_TRY(plane_at(job, z->low[i], z->high[i], &a, err));
        b = a;
        if (z->high[i] != z->low[i])
            DNN_TRY(plane_at(job, z->high[i], z->low[i], &b, err));
        DNN_TRY(plane_out(job, a, b, z->part[i], to, err));
    }
    return 0;
}

/* Room for two planes, two rows and a raw one. */
static int linear_room(struct job *job, struct dnn_err *err)
{
    int64_t raw = job->from.n[2] * job->from.channels;
    int64_t plane = job->row * job->to.n[1];
    struct dnn_shape shape = {.ndim = 1, .dim = {2 * plane + 2 * job->row + raw}};

    DNN_TRY(dnn_array_make(&job->scratch, job->work, &shape, err));
    char *at = job->scratch.data;
    for (int k = 0; k < 2; k++) {
        job->planes[k] = at;
        at += (size_t)plane * job->size;
        job->rows[k] = at;
        at += (size_t)job->row * job->size;
        job->row_is[k] = job->plane_is[k] = -1;
    }
    job->raw = at;
    return 0;
}

/* ---- ---- */

static int check_extents(const int64_t *extent, int nspace, struct dnn_err *err)
{
    for (int i = 0; i < nspace; i++)
        if (extent[i] < 1 || extent[i] > DNN_GRID_LIMIT)
            return dnn_fail(err, DNN_ECONFIG,
                            "resize: size %" PRId64 " of axis %d must be 1 to %d",
                            extent[i], i, DNN_GRID_LIMIT);
    return 0;
}

int dnn_resize(const struct dnn_array *in, const int64_t *extent, enum dnn_interp how,
               struct dnn_array *out, struct dnn_err *err)
{
    struct job job = {.in = in, .out = out, .work = dnn_transform_work(in->type)};

    DNN_TRY(dnn_transform_grid(in, "resize", &job.from, err));
    int nspace = job.from.nspace, skip = DNN_MAX_SPACE - nspace;
    DNN_TRY(check_extents(extent, nspace, err));
    job.to = job.from;
    for (int i = 0; i < nspace; i++)
        job.to.n[skip + i] = extent[i];
    DNN_TRY(dnn_transform_make(in, &job.to, out, err));
    for (int i = 0; i < nspace; i++)
        out->spacing[i] = in->spacing[i] * (double)in->shape.dim[i] / (double)extent[i];
    if (memcmp(job.to.n, job.from.n, sizeof job.to.n) == 0) {
        memcpy(out->data, in->data, dnn_array_bytes(in));
        return 0;
    }
    job.size = dnn_dtype_size(job.work);
    job.row = job.to.n[2] * job.to.channels;
    for (int i = 0; i < DNN_MAX_SPACE; i++)
        axis_make(&job.axis[i], job.from.n[i], job.to.n[i], how);
    int rc = 0;
    if (how == DNN_INTERP_NEAREST)
        nearest(&job);
    else if ((rc = linear_room(&job, err)) == 0)
        rc = linear(&job, err);
    for (int i = 0; i < DNN_MAX_SPACE; i++)
        axis_free(&job.axis[i]);
    dnn_array_free(&job.scratch);
    return rc;
}

int dnn_resample(const struct dnn_array *in, const double *spacing, enum dnn_interp how,
                 struct dnn_array *out, struct dnn_err *err)
{
    int64_t extent[DNN_MAX_SPACE];
    struct dnn_grid grid;

    DNN_TRY(dnn_transform_grid(in, "resample", &grid, err));
    for (int i = 0; i < grid.nspace; i++) {
        if (!(in->spacing[i] > 0) || isinf(in->spacing[i]))
            return dnn_fail(err, DNN_EDATA,
                            "resample: the voxel spacing of axis %d is unknown", i);
        if (!(spacing[i] > 0) || isinf(spacing[i]))
            return dnn_fail(err, DNN_ECONFIG,
                            "resample: spacing %g of axis %d must be more than 0",
                            spacing[i], i);
        double n = floor((double)in->shape.dim[i] * in->spacing[i] / spacing[i] + 0.5);
        if (n > DNN_GRID_LIMIT)
            return dnn_fail(err, DNN_ECONFIG,
                            "resample: axis %d would grow to %.0f from %" PRId64
                            "; the maximum is %d",
                            i, n, in->shape.dim[i], DNN_GRID_LIMIT);
        extent[i] = n < 1 ? 1 : (int64_t)n;
    }
    return dnn_resize(in, extent, how, out, err);
}
