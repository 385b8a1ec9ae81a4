/* warp.c - transform an array by an affine map and a displacement field.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/transform_impl.h"

#include <math.h>
#include <string.h>

struct ctx {
    const struct dnn_warp *warp;
    struct dnn_grid grid;
    int skip; /* number of axes that the array does not have */
    double centre[DNN_MAX_SPACE], end[DNN_MAX_SPACE]; /* end: extents                 */
    int64_t last[DNN_MAX_SPACE]; /* the last point; 1 for missing axes, which need no
                                  * next point                                        */
    int64_t step[DNN_MAX_SPACE]; /* values from a point to the next; 0: missing axis  */
    const void *from;            /* input values, of type work if linear              */
    char fill[8];                /* of the same type                                  */
};

/* ---- the source of a point ---- */

/* A row of points: their sources are base + slope * x, plus the displacement. */
struct line {
    double base[DNN_MAX_SPACE], slope[DNN_MAX_SPACE];
    const float *field; /* or NULL */
};

static struct line line_of(const struct ctx *ctx, int64_t z, int64_t y)
{
    const struct dnn_warp *warp = ctx->warp;
    double p[DNN_MAX_SPACE] = {(double)z, (double)y, 0};
    struct line line = {.field = NULL};
    int nspace = ctx->grid.nspace, skip = ctx->skip;

    for (int k = 0; k < nspace; k++) {
        double sum = ctx->centre[skip + k] + warp->shift[k];

        for (int j = 0; j < nspace; j++)
            sum += warp->matrix[k][j] * (p[skip + j] - ctx->centre[skip + j]);
        line.base[skip + k] = sum;
        line.slope[skip + k] = warp->matrix[k][nspace - 1];
    }
    if (warp->displacement != NULL)
        line.field = warp->displacement +
                     (z * ctx->grid.n[1] + y) * ctx->grid.n[2] * (int64_t)nspace;
    return line;
}

/* Unrolled, because it is computed for every point. */
static inline void source_of(const struct line *line, int nspace, int64_t x,
                             double at[DNN_MAX_SPACE])
{
    at[0] = line->base[0] + line->slope[0] * (double)x;
    at[1] = line->base[1] + line->slope[1] * (double)x;
    at[2] = line->base[2] + line->slope[2] * (double)x;
    if (line->field == NULL) return;
    const float *f = line->field + x * nspace + nspace;
    at[2] += (double)f[-1];
    if (nspace > 1) at[1] += (double)f[-2];
    if (nspace > 2) at[0] += (double)f[-3];
}

/* Round down; x must be in the range of int64_t. */
static inline int64_t round_down(double x)
{
    int64_t whole = (int64_t)x;

    return whole - ((double)whole > x);
}

/* ---- nearest ---- */

static void row_nearest(const struct ctx *ctx, const struct line *line, char *to)
{
    const struct dnn_grid *grid = &ctx->grid;

    for (int64_t x = 0; x < grid->n[2]; x++, to += grid->pixel) {
        double at[DNN_MAX_SPACE];

        source_of(line, grid->nspace, x, at);
        double a = at[0] + 0.5, b = at[1] + 0.5, c = at[2] + 0.5;
        if (a >= 0 && a < ctx->end[0] && b >= 0 && b < ctx->end[1] && c >= 0 &&
            c < ctx->end[2]) /* NaN is outside */
            dnn_transform_copy(
                to, 0,
                (const char *)ctx->from +
                    dnn_transform_at(grid, round_down(a), round_down(b), round_down(c)),
                0, 1, grid->pixel);
        else
            dnn_transform_copy(to, (ptrdiff_t)grid->element, ctx->fill, 0,
                               grid->channels, grid->element);
    }
}

/* ---- linear ---- */

/* The grid cell of a source point: its first corner, the position of the point in the
 * cell along each axis, and whether all corners, or none, are points of the array. */
struct cell {
    int64_t at[DNN_MAX_SPACE];
    double part[DNN_MAX_SPACE];
    bool all, none;
};

static inline void cell_along(const struct ctx *ctx, int k, double at, struct cell *s)
{
    s->at[k] = round_down(at);
    s->part[k] = at - (double)s->at[k];
    s->all = s->all && s->at[k] >= 0 && s->at[k] < ctx->last[k];
}

static inline void cell_of(const struct ctx *ctx, const double *at, struct cell *s)
{
    s->none = !(at[0] > -1 && at[0] < ctx->end[0] && at[1] > -1 &&
                at[1] < ctx->end[1] && at[2] > -1 && at[2] < ctx->end[2]);
    s->all = !s->none; /* NaN is outside */
    if (s->none) return;
    cell_along(ctx, 0, at[0], s);
    cell_along(ctx, 1, at[1], s);
    cell_along(ctx, 2, at[2], s);
}

/* For each type: the interpolation of eight corners; at the border, where corners
 * outside are fill; inside the array; and of a row of points. */
#define LOOPS(real)                                                                    \
    static real mix_##real(const real v[8], const double *part)                        \
    {                                                                                  \
        real z = (real)part[0], y = (real)part[1], x = (real)part[2];                  \
        real a = v[0] + x * (v[1] - v[0]), b = v[2] + x * (v[3] - v[2]);               \
        real c = v[4] + x * (v[5] - v[4]), d = v[6] + x * (v[7] - v[6]);               \
        real low = a + y * (b - a), high = c + y * (d - c);                            \
                                                                                       \
        return low + z * (high - low);                                                 \
    }                                                                                  \
    static real border_##real(const struct ctx *ctx, const struct cell *s, int64_t c,  \
                              real fill)                                               \
    {                                                                                  \
        real v[8];                                                                     \
                                                                                       \
        for (int corner = 0; corner < 8; corner++) {                                   \
            int64_t at = c;                                                            \
            bool in = true;                                                            \
                                                                                       \
            for (int k = 0; k < DNN_MAX_SPACE; k++) {                                  \
                /* a corner with weight 0 is replaced by its neighbor */               \
                int64_t i = s->at[k] + ((corner >> (2 - k) & 1) && s->part[k] > 0);    \
                                                                                       \
                in = in && i >= 0 && i < ctx->grid.n[k];                               \
                at += i * ctx->step[k];                                                \
            }                                                                          \
            v[corner] = in ? ((const real *)ctx->from)[at] : fill;                     \
        }                                                                              \
        return mix_##real(v, s->part);                                                 \
    }                                                                                  \
    static real flat_##real(const real *v, int64_t dy, int64_t dx, const double *part) \
    {                                                                                  \
        real y = (real)part[1], x = (real)part[2];                                     \
        real a = v[0] + x * (v[dx] - v[0]);                                            \
        real b = v[dy] + x * (v[dy + dx] - v[dy]);                                     \
                                                                                       \
        return a + y * (b - a);                                                        \
    }                                                                                  \
    static void point_##real(const struct ctx *ctx, const struct cell *s, real *to)    \
    {                                                                                  \
        int64_t dz = ctx->step[0], dy = ctx->step[1], dx = ctx->step[2];               \
        const real *v =                                                                \
            (const real *)ctx->from + s->at[0] * dz + s->at[1] * dy + s->at[2] * dx;   \
        real z = (real)s->part[0];                                                     \
                                                                                       \
        for (int64_t c = 0; c < ctx->grid.channels; c++) {                             \
            real low = flat_##real(v + c, dy, dx, s->part);                            \
                                                                                       \
            to[c] = low;                                                               \
            if (dz != 0)                                                               \
                to[c] += z * (flat_##real(v + dz + c, dy, dx, s->part) - low);         \
        }                                                                              \
    }                                                                                  \
    static void row_##real(const struct ctx *ctx, const struct line *line, real *to)   \
    {                                                                                  \
        int64_t channels = ctx->grid.channels;                                         \
        real fill;                                                                     \
                                                                                       \
        memcpy(&fill, ctx->fill, sizeof fill);                                         \
        for (int64_t x = 0; x < ctx->grid.n[2]; x++, to += channels) {                 \
            double at[DNN_MAX_SPACE];                                                  \
                                                                                       \
            source_of(line, ctx->grid.nspace, x, at);                                  \
            struct cell s;                                                             \
            cell_of(ctx, at, &s);                                                      \
            if (s.all)                                                                 \
                point_##real(ctx, &s, to);                                             \
            else                                                                       \
                for (int64_t c = 0; c < channels; c++)                                 \
                    to[c] = s.none ? fill : border_##real(ctx, &s, c, fill);           \
        }                                                                              \
    }
LOOPS(float)
LOOPS(double)

/* Compute all rows.  If the type is not the work type, row is the buffer, else NULL. */
static int rows(const struct ctx *ctx, enum dnn_dtype work, void *row,
                struct dnn_array *out, struct dnn_err *err)
{
    const struct dnn_grid *grid = &ctx->grid;
    size_t bytes = (size_t)grid->n[2] * grid->pixel;
    char *to = out->data;

    for (int64_t z = 0; z < grid->n[0]; z++)
        for (int64_t y = 0; y < grid->n[1]; y++, to += bytes) {
            struct line line = line_of(ctx, z, y);
            void *buffer = row == NULL ? to : row;

            if (ctx->warp->how == DNN_INTERP_NEAREST)
                row_nearest(ctx, &line, to);
            else if (work == DNN_F32)
                row_float(ctx, &line, buffer);
            else
                row_double(ctx, &line, buffer);
            if (row != NULL)
                DNN_TRY(dnn_convert(row, work, to, out->type,
                                    grid->n[2] * grid->channels, false, err));
        }
    return 0;
}

static int check_matrix(const struct dnn_warp *warp, int nspace, struct dnn_err *err)
{
    for (int i = 0; i < nspace; i++) {
        bool good = isfinite(warp->shift[i]);

        for (int j = 0; j < nspace; j++)
            good = good && isfinite(warp->matrix[i][j]);
        if (!good)
            return dnn_fail(err, DNN_ECONFIG, "warp: row %d of the map is not finite",
                            i);
    }
    return 0;
}

static void set_steps(struct ctx *ctx)
{
    int64_t step = ctx->grid.channels;

    ctx->skip = DNN_MAX_SPACE - ctx->grid.nspace;
    for (int k = 0; k < DNN_MAX_SPACE; k++) {
        ctx->end[k] = (double)ctx->grid.n[k];
        ctx->last[k] = k < ctx->skip ? 1 : ctx->grid.n[k] - 1;
    }
    for (int k = DNN_MAX_SPACE - 1; k >= ctx->skip; k--) {
        ctx->step[k] = step;
        step *= ctx->grid.n[k];
        ctx->centre[k] = (double)(ctx->grid.n[k] - 1) / 2;
    }
}

int dnn_warp(const struct dnn_array *in, const struct dnn_warp *warp,
             struct dnn_array *out, struct dnn_err *err)
{
    enum dnn_dtype work = dnn_transform_work(in->type);
    struct dnn_array copy = {0}, row = {0};
    struct ctx ctx = {.warp = warp, .from = in->data};
    bool convert = warp->how == DNN_INTERP_LINEAR && work != in->type;
    int rc = 0;

    DNN_TRY(dnn_transform_grid(in, "warp", &ctx.grid, err));
    DNN_TRY(check_matrix(warp, ctx.grid.nspace, err));
    DNN_TRY(dnn_transform_value(warp->fill, in->type, "warp", ctx.fill, err));
    DNN_TRY(dnn_transform_make(in, &ctx.grid, out, err));
    set_steps(&ctx);
    if (convert) {
        int64_t n = dnn_array_count(in);
        struct dnn_shape all = {.ndim = 1, .dim = {n}};
        struct dnn_shape one = {.ndim = 1, .dim = {ctx.grid.n[2] * ctx.grid.channels}};

        rc = dnn_transform_value(warp->fill, work, "warp", ctx.fill, err);
        if (rc == 0) rc = dnn_array_make(&copy, work, &all, err);
        if (rc == 0) rc = dnn_array_make(&row, work, &one, err);
        if (rc == 0)
            rc = dnn_convert(in->data, in->type, copy.data, work, n, false, err);
        ctx.from = copy.data;
    }
    if (rc == 0) rc = rows(&ctx, work, row.data, out, err);
    dnn_array_free(&copy);
    dnn_array_free(&row);
    return rc;
}
