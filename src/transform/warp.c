/* warp.c - an array seen through an affine map and a field of displacements.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/transform_impl.h"

#include <math.h>
#include <string.h>

struct job {
    const struct dnn_warp *warp;
    struct dnn_grid grid;
    int skip; /* axes that the array does not have */
    double centre[DNN_MAX_SPACE], end[DNN_MAX_SPACE]; /* end: points of the axis      */
    int64_t last[DNN_MAX_SPACE]; /* the last point, from which nothing comes after; 1
                                  * where skipped, where nothing need come after      */
    int64_t step[DNN_MAX_SPACE]; /* numbers from a point to the next; 0 where skipped */
    const void *from;            /* numbers to take, of type work if linear           */
    char fill[8];                /* the same type                                     */
};

/* ---- where a point comes from ---- */

/* A row of points: they come from base + slope * x, and what the field adds. */
struct line {
    double base[DNN_MAX_SPACE], slope[DNN_MAX_SPACE];
    const float *field; /* or NULL */
};

static struct line line_of(const struct job *job, int64_t z, int64_t y)
{
    const struct dnn_warp *warp = job->warp;
    double p[DNN_MAX_SPACE] = {(double)z, (double)y, 0};
    struct line line = {.field = NULL};
    int nspace = job->grid.nspace, skip = job->skip;

    for (int k = 0; k < nspace; k++) {
        double sum = job->centre[skip + k] + warp->shift[k];

        for (int j = 0; j < nspace; j++)
            sum += warp->matrix[k][j] * (p[skip + j] - job->centre[skip + j]);
        line.base[skip + k] = sum;
        line.slope[skip + k] = warp->matrix[k][nspace - 1];
    }
    if (warp->displacement != NULL)
        line.field = warp->displacement +
                     (z * job->grid.n[1] + y) * job->grid.n[2] * (int64_t)nspace;
    return line;
}

/* Written out: it is done for every point. */
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

/* Rounded down; x must fit. */
static inline int64_t down(double x)
{
    int64_t whole = (int64_t)x;

    return whole - ((double)whole > x);
}

/* ---- nearest ---- */

static void row_nearest(const struct job *job, const struct line *line, char *to)
{
    const struct dnn_grid *grid = &job->grid;

    for (int64_t x = 0; x < grid->n[2]; x++, to += grid->pixel) {
        double at[DNN_MAX_SPACE];

        source_of(line, grid->nspace, x, at);
        double a = at[0] + 0.5, b = at[1] + 0.5, c = at[2] + 0.5;
        if (a >= 0 && a < job->end[0] && b >= 0 && b < job->end[1] && c >= 0 &&
            c < job->end[2]) /* a NaN is nowhere */
            dnn_transform_copy(to, 0,
                               (const char *)job->from +
                                   dnn_transform_at(grid, down(a), down(b), down(c)),
                               0, 1, grid->pixel);
        else
            dnn_transform_copy(to, (ptrdiff_t)grid->element, job->fill, 0,
                               grid->channels, grid->element);
    }
}

/* ---- linear ---- */

/* The corner at or before the point, how far the point is beyond it along each axis,
 * and whether all corners around, or none, are points of the array. */
struct spot {
    int64_t at[DNN_MAX_SPACE];
    double part[DNN_MAX_SPACE];
    bool all, none;
};

static inline void spot_along(const struct job *job, int k, double at, struct spot *s)
{
    s->at[k] = down(at);
    s->part[k] = at - (double)s->at[k];
    s->all = s->all && s->at[k] >= 0 && s->at[k] < job->last[k];
}

static inline void spot_of(const struct job *job, const double *at, struct spot *s)
{
    s->none = !(at[0] > -1 && at[0] < job->end[0] && at[1] > -1 &&
                at[1] < job->end[1] && at[2] > -1 && at[2] < job->end[2]);
    s->all = !s->none; /* a NaN is nowhere */
    if (s->none) return;
    spot_along(job, 0, at[0], s);
    spot_along(job, 1, at[1], s);
    spot_along(job, 2, at[2], s);
}

/* Per type: the value of a channel from its eight corners, corner by corner at the
 * border, where those outside are fill; then a row of points. */
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
    static real border_##real(const struct job *job, const struct spot *s, int64_t c,  \
                              real fill)                                               \
    {                                                                                  \
        real v[8];                                                                     \
                                                                                       \
        for (int corner = 0; corner < 8; corner++) {                                   \
            int64_t at = c;                                                            \
            bool in = true;                                                            \
                                                                                       \
            for (int k = 0; k < DNN_MAX_SPACE; k++) {                                  \
                /* a corner without weight is its neighbour */                         \
                int64_t i = s->at[k] + ((corner >> (2 - k) & 1) && s->part[k] > 0);    \
                                                                                       \
                in = in && i >= 0 && i < job->grid.n[k];                               \
                at += i * job->step[k];                                                \
            }                                                                          \
            v[corner] = in ? ((const real *)job->from)[at] : fill;                     \
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
    static void point_##real(const struct job *job, const struct spot *s, real *to)    \
    {                                                                                  \
        int64_t dz = job->step[0], dy = job->step[1], dx = job->step[2];               \
        const real *v =                                                                \
            (const real *)job->from + s->at[0] * dz + s->at[1] * dy + s->at[2] * dx;   \
        real z = (real)s->part[0];                                                     \
                                                                                       \
        for (int64_t c = 0; c < job->grid.channels; c++) {                             \
            real low = flat_##real(v + c, dy, dx, s->part);                            \
                                                                                       \
            to[c] = low;                                                               \
            if (dz != 0)                                                               \
                to[c] += z * (flat_##real(v + dz + c, dy, dx, s->part) - low);         \
        }                                                                              \
    }                                                                                  \
    static void row_##real(const struct job *job, const struct line *line, real *to)   \
    {                                                                                  \
        int64_t channels = job->grid.channels;                                         \
        real fill;                                                                     \
                                                                                       \
        memcpy(&fill, job->fill, sizeof fill);                                         \
        for (int64_t x = 0; x < job->grid.n[2]; x++, to += channels) {                 \
            double at[DNN_MAX_SPACE];                                                  \
                                                                                       \
            source_of(line, job->grid.nspace, x, at);                                  \
            struct spot s;                                                             \
            spot_of(job, at, &s);                                                      \
            if (s.all)                                                                 \
                point_##real(job, &s, to);                                             \
            else                                                                       \
                for (int64_t c = 0; c < channels; c++)                                 \
                    to[c] = s.none ? fill : border_##real(job, &s, c, fill);           \
        }                                                                              \
    }
LOOPS(float)
LOOPS(double)

/* All rows; those of another type than is worked in are made in row. */
static int rows(const struct job *job, enum dnn_dtype work, void *row,
                struct dnn_array *out, struct dnn_err *err)
{
    const struct dnn_grid *grid = &job->grid;
    size_t bytes = (size_t)grid->n[2] * grid->pixel;
    char *to = out->data;

    for (int64_t z = 0; z < grid->n[0]; z++)
        for (int64_t y = 0; y < grid->n[1]; y++, to += bytes) {
            struct line line = line_of(job, z, y);
            void *place = row == NULL ? to : row;

            if (job->warp->how == DNN_INTERP_NEAREST)
                row_nearest(job, &line, to);
            else if (work == DNN_F32)
                row_float(job, &line, place);
            else
                row_double(job, &line, place);
            if (row != NULL)
                DNN_TRY(dnn_transform_store(row, work, to, out->type,
                                            grid->n[2] * grid->channels, err));
        }
    return 0;
}

static int check_numbers(const struct dnn_warp *warp, int nspace, struct dnn_err *err)
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

static void job_steps(struct job *job)
{
    int64_t step = job->grid.channels;

    job->skip = DNN_MAX_SPACE - job->grid.nspace;
    for (int k = 0; k < DNN_MAX_SPACE; k++) {
        job->end[k] = (double)job->grid.n[k];
        job->last[k] = k < job->skip ? 1 : job->grid.n[k] - 1;
    }
    for (int k = DNN_MAX_SPACE - 1; k >= job->skip; k--) {
        job->step[k] = step;
        step *= job->grid.n[k];
        job->centre[k] = (double)(job->grid.n[k] - 1) / 2;
    }
}

int dnn_warp(const struct dnn_array *in, const struct dnn_warp *warp,
             struct dnn_array *out, struct dnn_err *err)
{
    enum dnn_dtype work = dnn_transform_work(in->type);
    struct dnn_array copy = {0}, row = {0};
    struct job job = {.warp = warp, .from = in->data};
    bool convert = warp->how == DNN_INTERP_LINEAR && work != in->type;
    int rc = 0;

    DNN_TRY(dnn_transform_grid(in, "warp", &job.grid, err));
    DNN_TRY(check_numbers(warp, job.grid.nspace, err));
    DNN_TRY(dnn_transform_value(warp->fill, in->type, "warp", job.fill, err));
    DNN_TRY(dnn_transform_make(in, &job.grid, out, err));
    job_steps(&job);
    if (convert) {
        int64_t n = dnn_array_count(in);
        struct dnn_shape all = {.ndim = 1, .dim = {n}};
        struct dnn_shape one = {.ndim = 1, .dim = {job.grid.n[2] * job.grid.channels}};

        rc = dnn_transform_value(warp->fill, work, "warp", job.fill, err);
        if (rc == 0) rc = dnn_array_make(&copy, work, &all, err);
        if (rc == 0) rc = dnn_array_make(&row, work, &one, err);
        if (rc == 0)
            rc = dnn_transform_load(in->data, in->type, copy.data, work, n, err);
        job.from = copy.data;
    }
    if (rc == 0) rc = rows(&job, work, row.data, out, err);
    dnn_array_free(&copy);
    dnn_array_free(&row);
    return rc;
}
