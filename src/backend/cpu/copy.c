/* copy.c - ops that only copy: concatenate, pad, reshape, transpose.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_split.h"

/* Copy rows of n floats. */
static void copy(const struct dnn_rows_isa *isa, float *to, int64_t to_pitch,
                 const float *from, int64_t from_pitch, int64_t rows, int64_t n,
                 bool stream)
{
    if (rows <= 0 || n <= 0) return;
    if (to_pitch == n && from_pitch == n) {
        n *= rows;
        rows = 1;
    }
    if (stream || n < 256)
        isa->repeat(from, from_pitch, rows, n, 1, to, to_pitch, stream);
    else
        for (int64_t r = 0; r < rows; r++)
            memcpy(to + r * to_pitch, from + r * from_pitch, (size_t)n * sizeof(float));
}

/* ---- concatenation ---- */

/* Copies between an array and a part of it: the slice from start on along an axis.
 * Blocks of rows of the part are contiguous in the whole array. */
struct join {
    const struct cpu_array *whole, *part;
    int64_t start, step; /* in rows of whole: first block, and from block to block */
    int64_t block;       /* rows of a block                                        */
    int64_t column;      /* offset in a row, if the axis is the last one           */
    bool out;            /* from whole to part                                     */
    bool stream;         /* with non-temporal stores                               */
};

static struct join join_of(const struct cpu_array *whole, const struct cpu_array *part,
                           int axis, int64_t start, bool out)
{
    struct join j = {.whole = whole, .part = part, .out = out};
    int last = part->shape.ndim - 1;
    int64_t inner = 1;

    if (axis == last) {
        j.block = j.step = part->rows;
        j.column = start;
        j.stream =
            part->row % 16 == 0 && start % 16 == 0 &&
            dnn_rows_stream(out ? part : whole, out ? whole : part, ROWS_LARGE_COPY);
        return j;
    }
    for (int i = axis + 1; i < last; i++)
        inner *= part->shape.dim[i];
    j.block = part->shape.dim[axis] * inner;
    j.step = whole->shape.dim[axis] * inner;
    j.start = start * inner;
    return j;
}

/* Rows first ... last - 1 of the part. */
static void join_rows(const struct dnn_rows_isa *isa, const struct join *j,
                      int64_t first, int64_t last)
{
    while (first < last) {
        int64_t within = first % j->block;
        int64_t rows =
            j->block - within < last - first ? j->block - within : last - first;
        int64_t at = first / j->block * j->step + j->start + within;
        float *whole = (float *)j->whole->mem + at * j->whole->pitch + j->column;
        float *part = (float *)j->part->mem + first * j->part->pitch;

        if (j->out)
            copy(isa, part, j->part->pitch, whole, j->whole->pitch, rows, j->part->row,
                 j->stream);
        else
            copy(isa, whole, j->whole->pitch, part, j->part->pitch, rows, j->part->row,
                 j->stream);
        first += rows;
    }
}

/* Whether the part is a view of the whole array: nothing to copy. */
static bool in_place(const struct join *j)
{
    float *whole = (float *)j->whole->mem + j->start * j->whole->pitch + j->column;

    return whole == j->part->mem && j->whole->pitch == j->part->pitch &&
           (j->block == j->part->rows || j->block == j->step);
}

static void concat(const struct cpu_call *c)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    int axis = c->op->attr.concat.axis;
    int parts = rows_parts(c->out[0].count, c->threads);

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        int64_t start = 0;

        for (int i = 0; i < c->op->nin; i++) {
            struct join j = join_of(&c->out[0], &c->in[i], axis, start, false);
            int64_t first, last;

            start += c->in[i].shape.dim[axis];
            dnn_cpu_share(c->in[i].rows, parts, p, &first, &last);
            if (!in_place(&j)) join_rows(isa, &j, first, last);
        }
    }
}

static void concat_data(const struct cpu_call *c)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    const struct dnn_op_concat *a = &c->op->attr.concat;
    struct join j = join_of(&c->in[0], &c->out[0], a->axis, a->start, true);
    int parts = rows_parts(c->out[0].count, c->threads);

    if (in_place(&j)) return;
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        int64_t first, last;

        dnn_cpu_share(j.part->rows, parts, p, &first, &last);
        join_rows(isa, &j, first, last);
    }
}

/* ---- padding ---- */

/* Row r of y, which has sign * before of padding at the start of each axis: *from
 * becomes its row in x; false: padding. */
static bool pad_row(const struct cpu_array *x, const struct cpu_array *y,
                    const int64_t *before, int sign, int64_t r, int64_t *from)
{
    int64_t step = 1;

    *from = 0;
    for (int i = y->shape.ndim - 2; i >= 0; i--) {
        int64_t at = r % y->shape.dim[i] - sign * before[i];

        r /= y->shape.dim[i];
        if (at < 0 || at >= x->shape.dim[i]) return false;
        *from += at * step;
        step *= x->shape.dim[i];
    }
    return true;
}

static void pad_by(const struct cpu_call *c, int sign)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    const struct cpu_array *x = &c->in[0], *y = &c->out[0];
    const int64_t *before = c->op->attr.pad.before;
    int64_t shift = y->shape.ndim == 0 ? 0 : sign * before[y->shape.ndim - 1];
    int64_t first = shift > 0 ? shift : 0, skip = shift < 0 ? -shift : 0;
    int64_t n = x->row - skip < y->row - first ? x->row - skip : y->row - first;

    if (n < 0) n = 0;
#pragma omp parallel for schedule(static) num_threads(rows_parts(y->count, c->threads))
    for (int64_t r = 0; r < y->rows; r++) {
        float *to = (float *)y->mem + r * y->pitch;
        int64_t from, count = n;

        if (!pad_row(x, y, before, sign, r, &from)) count = 0;
        if (count < y->row) memset(to, 0, (size_t)y->row * sizeof(float));
        if (count > 0)
            copy(isa, to + first, 0, (const float *)x->mem + from * x->pitch + skip, 0,
                 1, count, false);
    }
}

static void pad(const struct cpu_call *c)
{
    pad_by(c, 1);
}

static void pad_data(const struct cpu_call *c)
{
    pad_by(c, -1);
}

/* ---- reshape and transpose ---- */

static void reshape(const struct cpu_call *c)
{
    const struct cpu_array *x = &c->in[0], *y = &c->out[0];
    int parts = rows_parts(x->count, c->threads);

    if (x->mem == y->mem) return;
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        int64_t first, last;

        dnn_cpu_share(x->count, parts, p, &first, &last);
        if (last > first)
            memcpy((float *)y->mem + first, (const float *)x->mem + first,
                   (size_t)(last - first) * sizeof(float));
    }
}

static void transpose(const struct cpu_call *c)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    const struct cpu_array *x = &c->in[0], *y = &c->out[0];
    int last = y->shape.ndim - 1;
    int64_t own[DNN_MAX_DIMS], step[DNN_MAX_DIMS] = {0};

    for (int i = last; i >= 0; i--)
        own[i] = i == last       ? 1
                 : i == last - 1 ? x->pitch
                                 : own[i + 1] * x->shape.dim[i + 1];
    for (int i = 0; i <= last; i++)
        step[i] = own[c->op->attr.transpose.perm[i]];
#pragma omp parallel for schedule(static) num_threads(rows_parts(y->count, c->threads))
    for (int64_t r = 0; r < y->rows; r++) {
        float *to = (float *)y->mem + r * y->pitch;
        const float *from = x->mem;
        int64_t at = r;

        for (int i = last - 1; i >= 0; i--) {
            from += at % y->shape.dim[i] * step[i];
            at /= y->shape.dim[i];
        }
        if (step[last < 0 ? 0 : last] == 1)
            copy(isa, to, 0, from, 0, 1, y->row, false);
        else
            for (int64_t j = 0; j < y->row; j++)
                to[j] = from[j * step[last < 0 ? 0 : last]];
    }
}

const struct cpu_algo dnn_cpu_concat = {
    .name = "rows", .in_pitch = ~0u, .out_pitch = 1, .fn = concat};
const struct cpu_algo dnn_cpu_concat_data = {
    .name = "rows", .in_pitch = 1, .out_pitch = 1, .fn = concat_data};
const struct cpu_algo dnn_cpu_pad = {
    .name = "rows", .in_pitch = 1, .out_pitch = 1, .fn = pad};
const struct cpu_algo dnn_cpu_pad_data = {
    .name = "rows", .in_pitch = 1, .out_pitch = 1, .fn = pad_data};
const struct cpu_algo dnn_cpu_reshape = {.name = "rows", .fn = reshape};
const struct cpu_algo dnn_cpu_transpose = {
    .name = "rows", .in_pitch = 1, .out_pitch = 1, .fn = transpose};
