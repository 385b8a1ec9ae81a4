/* resize.c - resize an array: nearest, or linear along each axis.
 *
 * Linear interpolation is separable.  Rows are resized along the last axis, two rows
 * make a row of a plane, and two planes make a plane of the result.  The last two rows
 * and planes are kept, so that each input plane is resized only once, and most of the
 * time is spent in loops over complete rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/transform_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The source of each point of an axis: low + part * (high - low). */
struct axis {
    int64_t n;
    int32_t *low, *high;
    double *part;
    float *part_float; /* part as float */
    bool same;         /* the axis does not change */
};

/* With integers, so exact: the source of point o is ((2 o + 1) in - out) / (2 out). */
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

struct ctx {
    const struct dnn_array *in;
    struct dnn_array *out;
    struct dnn_grid from, to;
    struct axis axis[DNN_MAX_SPACE];
    enum dnn_dtype work;
    size_t size; /* bytes of a value of type work */
    int64_t row; /* values in a row of the result */
    struct dnn_array scratch;
    char *raw;                 /* an input row as type work */
    char *rows[2], *planes[2]; /* kept, with these indices: */
    int64_t row_is[2], plane_is[2];
};

/* ---- nearest ---- */

static void nearest_row(const struct ctx *ctx, const char *from, char *to)
{
    const struct axis *x = &ctx->axis[2];
    size_t pixel = ctx->from.pixel;

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

static void nearest(const struct ctx *ctx)
{
    const struct axis *z = &ctx->axis[0], *y = &ctx->axis[1];
    size_t row = (size_t)ctx->to.n[2] * ctx->to.pixel, plane = row * (size_t)y->n;
    char *to = ctx->out->data;

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
                nearest_row(ctx,
                            (const char *)ctx->in->data +
                                dnn_transform_at(&ctx->from, z->low[i], y->low[j], 0),
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

static void blend(const struct ctx *ctx, void *out, const void *a, const void *b,
                  double part, int64_t n)
{
    if (part == 0)
        memcpy(out, a, (size_t)n * ctx->size);
    else if (ctx->work == DNN_F32)
        blend_float(out, a, b, (float)part, n);
    else
        blend_double(out, a, b, part, n);
}

static void resize_row(const struct ctx *ctx, void *out, const void *in)
{
    const struct axis *x = &ctx->axis[2];
    int64_t c = ctx->from.channels;

    if (ctx->work == DNN_F32 && c == 1)
        stretch1_float(out, in, x);
    else if (ctx->work == DNN_F32)
        stretch_float(out, in, x, c);
    else if (c == 1)
        stretch1_double(out, in, x);
    else
        stretch_double(out, in, x, c);
}

/* ---- linear: rows and planes ---- */

/* Input row (z, y), resized along the last axis: one of the two kept rows, or the input
 * itself if it can be used directly.  If row `other` is kept, it is not overwritten. */
static int row_at(struct ctx *ctx, int64_t z, int64_t y, int64_t other,
                  const void **out, struct dnn_err *err)
{
    const char *from =
        (const char *)ctx->in->data + dnn_transform_at(&ctx->from, z, y, 0);
    int64_t n = ctx->from.n[2] * ctx->from.channels;
    bool direct = ctx->in->type == ctx->work;

    if (direct && ctx->axis[2].same) {
        *out = from;
        return 0;
    }
    for (int k = 0; k < 2; k++)
        if (ctx->row_is[k] == y) {
            *out = ctx->rows[k];
            return 0;
        }
    int k = ctx->row_is[0] == other ? 1 : 0;
    ctx->row_is[k] = y;
    *out = ctx->rows[k];
    if (ctx->axis[2].same)
        return dnn_convert(from, ctx->in->type, ctx->rows[k], ctx->work, n, false, err);
    if (!direct)
        DNN_TRY(dnn_convert(from, ctx->in->type, ctx->raw, ctx->work, n, false, err));
    resize_row(ctx, ctx->rows[k], direct ? from : ctx->raw);
    return 0;
}

static int plane_fill(struct ctx *ctx, int64_t z, char *to, struct dnn_err *err)
{
    const struct axis *y = &ctx->axis[1];

    ctx->row_is[0] = ctx->row_is[1] = -1;
    for (int64_t j = 0; j < y->n; j++, to += (size_t)ctx->row * ctx->size) {
        const void *a, *b;

        DNN_TRY(row_at(ctx, z, y->low[j], y->high[j], &a, err));
        b = a;
        if (y->high[j] != y->low[j])
            DNN_TRY(row_at(ctx, z, y->high[j], y->low[j], &b, err));
        blend(ctx, to, a, b, y->part[j], ctx->row);
    }
    return 0;
}

static int plane_at(struct ctx *ctx, int64_t z, int64_t other, const char **out,
                    struct dnn_err *err)
{
    for (int k = 0; k < 2; k++)
        if (ctx->plane_is[k] == z) {
            *out = ctx->planes[k];
            return 0;
        }
    int k = ctx->plane_is[0] == other ? 1 : 0;
    ctx->plane_is[k] = z;
    *out = ctx->planes[k];
    return plane_fill(ctx, z, ctx->planes[k], err);
}

static int plane_out(struct ctx *ctx, const char *a, const char *b, double part,
                     char *to, struct dnn_err *err)
{
    size_t row = (size_t)ctx->row * ctx->size;

    if (ctx->in->type == ctx->work) {
        blend(ctx, to, a, b, part, ctx->row * ctx->to.n[1]);
        return 0;
    }
    for (int64_t j = 0; j < ctx->to.n[1]; j++) {
        if (part != 0) blend(ctx, ctx->rows[0], a, b, part, ctx->row);
        DNN_TRY(dnn_convert(part != 0 ? ctx->rows[0] : a, ctx->work, to, ctx->in->type,
                            ctx->row, false, err));
        a += row;
        b += row;
        to += (size_t)ctx->row * ctx->to.element;
    }
    return 0;
}

static int linear(struct ctx *ctx, struct dnn_err *err)
{
    const struct axis *z = &ctx->axis[0];
    size_t plane = (size_t)(ctx->to.n[1] * ctx->to.n[2]) * ctx->to.pixel;
    char *to = ctx->out->data;

    for (int64_t i = 0; i < z->n; i++, to += plane) {
        const char *a, *b;

        if (z->same && ctx->in->type == ctx->work) {
            DNN_TRY(plane_fill(ctx, i, to, err));
            continue;
        }
        DNN_TRY(plane_at(ctx, z->low[i], z->high[i], &a, err));
        b = a;
        if (z->high[i] != z->low[i])
            DNN_TRY(plane_at(ctx, z->high[i], z->low[i], &b, err));
        DNN_TRY(plane_out(ctx, a, b, z->part[i], to, err));
    }
    return 0;
}

/* Allocate two planes, two rows and a raw row. */
static int make_scratch(struct ctx *ctx, struct dnn_err *err)
{
    int64_t raw = ctx->from.n[2] * ctx->from.channels;
    int64_t plane = ctx->row * ctx->to.n[1];
    struct dnn_shape shape = {.ndim = 1, .dim = {2 * plane + 2 * ctx->row + raw}};

    DNN_TRY(dnn_array_make(&ctx->scratch, ctx->work, &shape, err));
    char *at = ctx->scratch.data;
    for (int k = 0; k < 2; k++) {
        ctx->planes[k] = at;
        at += (size_t)plane * ctx->size;
        ctx->rows[k] = at;
        at += (size_t)ctx->row * ctx->size;
        ctx->row_is[k] = ctx->plane_is[k] = -1;
    }
    ctx->raw = at;
    return 0;
}

/* ---- public functions ---- */

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
    struct ctx ctx = {.in = in, .out = out, .work = dnn_transform_work(in->type)};

    DNN_TRY(dnn_transform_grid(in, "resize", &ctx.from, err));
    int nspace = ctx.from.nspace, skip = DNN_MAX_SPACE - nspace;
    DNN_TRY(check_extents(extent, nspace, err));
    ctx.to = ctx.from;
    for (int i = 0; i < nspace; i++)
        ctx.to.n[skip + i] = extent[i];
    DNN_TRY(dnn_transform_make(in, &ctx.to, out, err));
    for (int i = 0; i < nspace; i++)
        out->spacing[i] = in->spacing[i] * (double)in->shape.dim[i] / (double)extent[i];
    if (memcmp(ctx.to.n, ctx.from.n, sizeof ctx.to.n) == 0) {
        memcpy(out->data, in->data, dnn_array_bytes(in));
        return 0;
    }
    ctx.size = dnn_dtype_size(ctx.work);
    ctx.row = ctx.to.n[2] * ctx.to.channels;
    for (int i = 0; i < DNN_MAX_SPACE; i++)
        axis_make(&ctx.axis[i], ctx.from.n[i], ctx.to.n[i], how);
    int rc = 0;
    if (how == DNN_INTERP_NEAREST)
        nearest(&ctx);
    else if ((rc = make_scratch(&ctx, err)) == 0)
        rc = linear(&ctx, err);
    for (int i = 0; i < DNN_MAX_SPACE; i++)
        axis_free(&ctx.axis[i]);
    dnn_array_free(&ctx.scratch);
    return rc;
}

double dnn_resample_extent(int64_t n, double spacing, double wanted)
{
    double extent = floor((double)n * spacing / wanted + 0.5);

    return extent < 1 ? 1 : extent;
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
        double n = dnn_resample_extent(in->shape.dim[i], in->spacing[i], spacing[i]);

        if (n > DNN_GRID_LIMIT)
            return dnn_fail(err, DNN_ECONFIG,
                            "resample: axis %d would grow to %.0f from %" PRId64
                            "; the maximum is %d",
                            i, n, in->shape.dim[i], DNN_GRID_LIMIT);
        extent[i] = (int64_t)n;
    }
    return dnn_resize(in, extent, how, out, err);
}
