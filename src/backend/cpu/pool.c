/* pool.c - max and average pooling. Padding is ignored.
 *
 * Forward runs over the rows of y, backward over those of dx: each element is
 * written once. A row is split into runs of elements with the same taps.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/pool_impl.h"
#include "backend/cpu/rows_split.h"

enum { D = DNN_MAX_SPATIAL };

/* The count windows that contain element i of an axis: outputs o, o - 1, ..., which
 * read it with taps tap, tap + stride, ... run: number of elements from i on, a stride
 * apart, with the same taps. */
struct windows {
    int64_t tap, o, count, run;
};

/* The taps of a run. One struct per thread. */
struct taps {
    int64_t *at, *index_at, *line_at;
    int32_t *number;
    float *weight;
    /* Along the last axis, shared by all threads: */
    const float *line;             /* 1 / taps inside, by output   */
    const struct windows *windows; /* the windows of each element  */
};

static size_t line_bytes(const struct window3d *w)
{
    return ((size_t)w->out[D - 1] * sizeof(float) + 63) & ~(size_t)63;
}

static size_t taps_bytes(const struct window3d *w)
{
    return ((size_t)w->taps * (3 * sizeof(int64_t) + 8) + 63) & ~(size_t)63;
}

static size_t windows_bytes(const struct window3d *w)
{
    return (size_t)w->in[D - 1] * sizeof(struct windows);
}

size_t dnn_cpu_windows_work(const struct window3d *w, int threads)
{
    return line_bytes(w) + windows_bytes(w) + (size_t)threads * taps_bytes(w);
}

static struct taps taps_of(const struct window3d *w, void *work, int part)
{
    char *own = (char *)work + line_bytes(w);
    struct taps t = {.line = work, .windows = (const struct windows *)own};

    own += windows_bytes(w) + (size_t)part * taps_bytes(w);
    t.at = (int64_t *)own;

    t.index_at = t.at + w->taps;
    t.line_at = t.index_at + w->taps;
    t.number = (int32_t *)(t.line_at + w->taps);
    t.weight = (float *)(t.number + w->taps);
    return t;
}

/* The taps of output o that are inside the input on an axis: *first ... *last - 1. */
static void inside(const struct window3d *w, int axis, int64_t o, int64_t *first,
                   int64_t *last)
{
    int64_t from = o * w->stride[axis] - w->before[axis];

    *first = from < 0 ? -from : 0;
    *last = w->in[axis] - from < w->kernel[axis] ? w->in[axis] - from : w->kernel[axis];
}

static double inverse_taps(const struct window3d *w, int axis, int64_t o)
{
    int64_t first, last;

    inside(w, axis, o, &first, &last);
    return 1 / (double)(last - first);
}

/* Whether no window crosses the edge. */
static bool all_inside(const struct window3d *w)
{
    for (int i = 0; i < D; i++)
        if (w->before[i] != 0 ||
            (w->out[i] - 1) * w->stride[i] + w->kernel[i] > w->in[i])
            return false;
    return true;
}

/* ---- forward ---- */

typedef void window_kernel(const struct rows_window *run);

struct forward {
    const struct window3d *w;
    const struct cpu_array *x, *y;
    char *index; /* NULL: none */
    int index_size;
    window_kernel *kernel;
    float factor; /* of sums; 0: mean */
};

/* Row l of y. */
static void forward_line(const struct forward *f, int64_t l, const struct taps *t)
{
    const struct window3d *w = f->w;
    int64_t o1 = l % w->out[1], o0 = l / w->out[1] % w->out[0];
    int64_t sample = l / w->out[1] / w->out[0], lo[D], hi[D], next[2];
    int64_t row = l * w->out[2], xp = f->x->pitch;
    struct rows_window run = {.n = w->c,
                              .x = f->x->mem,
                              .at = t->at,
                              .number = t->number,
                              .x_step = w->stride[2] * xp,
                              .y_step = f->y->pitch,
                              .index_size = f->index_size,
                              .index_step = w->c};

    inside(w, 0, o0, &lo[0], &hi[0]);
    inside(w, 1, o1, &lo[1], &hi[1]);
    for (int64_t o = 0; o < w->out[2]; o += run.count) {
        inside(w, 2, o, &lo[2], &hi[2]);
        run.count = 1;
        while (o + run.count < w->out[2]) {
            inside(w, 2, o + run.count, &next[0], &next[1]);
            if (next[0] != lo[2] || next[1] != hi[2]) break;
            run.count++;
        }
        run.taps = 0;
        for (int64_t a = lo[0]; a < hi[0]; a++)
            for (int64_t b = lo[1]; b < hi[1]; b++)
                for (int64_t e = lo[2]; e < hi[2]; e++) {
                    int64_t i0 = o0 * w->stride[0] - w->before[0] + a;
                    int64_t i1 = o1 * w->stride[1] - w->before[1] + b;
                    int64_t i2 = o * w->stride[2] - w->before[2] + e;
                    int64_t i = (sample * w->in[0] + i0) * w->in[1] + i1;

                    t->at[run.taps] = (i * w->in[2] + i2) * xp;
                    t->number[run.taps++] =
                        (int32_t)((a * w->kernel[1] + b) * w->kernel[2] + e);
                }
        run.factor = f->factor != 0 ? f->factor : 1 / (float)run.taps;
        run.y = (float *)f->y->mem + (row + o) * f->y->pitch;
        if (f->index != NULL) run.index = f->index + (row + o) * w->c * f->index_size;
        f->kernel(&run);
    }
}

static void forward_all(const struct forward *f, const struct cpu_call *c)
{
    int64_t lines = f->w->n * f->w->out[0] * f->w->out[1];
    int parts = rows_parts(f->x->count, c->threads);

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct taps t = taps_of(f->w, c->work, p);
        int64_t first, last;

        dnn_cpu_share(lines, parts, p, &first, &last);
        for (int64_t l = first; l < last; l++)
            forward_line(f, l, &t);
    }
}

void dnn_cpu_windows_sum(const struct window3d *w, const struct cpu_call *c,
                         float factor)
{
    struct forward f = {.w = w,
                        .x = &c->in[0],
                        .y = &c->out[0],
                        .kernel = dnn_rows_find()->window_sum,
                        .factor = factor};

    forward_all(&f, c);
}

/* ---- backward ---- */

struct backward {
    const struct window3d *w;
    const struct cpu_array *dy, *dx;
    char *index; /* NULL: average */
    int index_size;
    bool weighted; /* average, and windows have different numbers of taps */
    window_kernel *kernel;
};

static struct windows windows_over(const struct window3d *w, int axis, int64_t i)
{
    int64_t stride = w->stride[axis], from = i + w->before[axis];
    struct windows v = {.tap = from % stride, .o = from / stride, .run = 1};
    int64_t last = w->kernel[axis] - 1 < from ? w->kernel[axis] - 1 : from;

    while (v.o >= w->out[axis]) {
        v.o--;
        v.tap += stride;
    }
    v.count = v.tap > last ? 0 : (last - v.tap) / stride + 1;
    return v;
}

/* The taps through which dy contributes to an element of dx. */
static int backward_taps(const struct backward *b, int64_t sample,
                         const struct windows at[D], const struct taps *t)
{
    const struct window3d *w = b->w;
    int n = 0;

    for (int64_t i = 0; i < at[0].count; i++)
        for (int64_t j = 0; j < at[1].count; j++)
            for (int64_t k = 0; k < at[2].count; k++, n++) {
                int64_t o[D] = {at[0].o - i, at[1].o - j, at[2].o - k};
                int64_t tap[D] = {at[0].tap + i * w->stride[0],
                                  at[1].tap + j * w->stride[1],
                                  at[2].tap + k * w->stride[2]};
                int64_t line = (sample * w->out[0] + o[0]) * w->out[1] + o[1];
                int64_t row = line * w->out[2] + o[2];

                t->at[n] = row * b->dy->pitch;
                t->index_at[n] = row * w->c;
                t->number[n] =
                    (int32_t)((tap[0] * w->kernel[1] + tap[1]) * w->kernel[2] + tap[2]);
                if (!b->weighted) continue;
                t->line_at[n] = o[2];
                t->weight[n] =
                    (float)(inverse_taps(w, 0, o[0]) * inverse_taps(w, 1, o[1]));
            }
    return n;
}

/* Row l of dx: elements a stride apart have the same taps. */
static void backward_line(const struct backward *b, int64_t l, const struct taps *t)
{
    const struct window3d *w = b->w;
    int64_t sample = l / w->in[1] / w->in[0], stride = w->stride[2];
    struct windows at[D] = {windows_over(w, 0, l / w->in[1] % w->in[0]),
                            windows_over(w, 1, l % w->in[1])};
    struct rows_window run = {.n = w->c,
                              .x = b->dy->mem,
                              .at = t->at,
                              .number = t->number,
                              .x_step = b->dy->pitch,
                              .y_step = stride * b->dx->pitch,
                              .index = b->index,
                              .index_size = b->index_size,
                              .index_step = w->c,
                              .index_at = t->index_at,
                              .factor = b->weighted ? 1 : 1 / (float)w->taps,
                              .stream = w->c % 16 == 0 &&
                                        dnn_rows_stream(b->dx, b->dy, ROWS_LARGE_FILL)};

    if (b->weighted) {
        run.weight = t->weight;
        run.line = t->line;
        run.line_at = t->line_at;
    }
    for (int64_t r = 0; r < stride && r < w->in[2]; r++)
        for (int64_t i = r; i < w->in[2]; i += run.count * stride) {
            at[2] = t->windows[i];
            run.count = at[2].run;
            run.taps = backward_taps(b, sample, at, t);
            run.y = (float *)b->dx->mem + (l * w->in[2] + i) * b->dx->pitch;
            b->kernel(&run);
        }
}

/* Fill in the values along the last axis, which are the same for all rows. */
static void along_last(const struct window3d *w, void *work)
{
    float *line = work;
    struct windows *at = (struct windows *)((char *)work + line_bytes(w));
    int64_t stride = w->stride[2];

    for (int64_t o = 0; o < w->out[2]; o++)
        line[o] = (float)inverse_taps(w, 2, o);
    for (int64_t i = w->in[2] - 1; i >= 0; i--) {
        at[i] = windows_over(w, 2, i);
        if (i + stride < w->in[2] && at[i + stride].tap == at[i].tap &&
            at[i + stride].count == at[i].count)
            at[i].run = at[i + stride].run + 1;
    }
}

static void backward_all(const struct backward *b, const struct cpu_call *c)
{
    const struct window3d *w = b->w;
    int64_t lines = w->n * w->in[0] * w->in[1];
    int parts = rows_parts(b->dx->count, c->threads);

    along_last(w, c->work);
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct taps t = taps_of(w, c->work, p);
        int64_t first, last;

        dnn_cpu_share(lines, parts, p, &first, &last);
        for (int64_t l = first; l < last; l++)
            backward_line(b, l, &t);
    }
}

/* ---- the passes ---- */

static struct window3d windows_of(const struct dnn_step *step)
{
    bool back = step->op->pass == DNN_BWD_DATA;

    return window3d(&step->op->attr.pool.win,
                    back ? &step->out[0]->shape : &step->in[0]->shape,
                    back ? &step->in[0]->shape : &step->out[0]->shape);
}

static bool can(const struct dnn_step *step)
{
    return windows_of(step).taps <= 1 << 20;
}

static size_t work(const struct dnn_step *step, int threads)
{
    struct window3d w = windows_of(step);

    return dnn_cpu_windows_work(&w, threads);
}

static void pool(const struct cpu_call *c)
{
    const struct dnn_op_pool *p = &c->op->attr.pool;
    struct window3d w = window3d(&p->win, &c->in[0].shape, &c->out[0].shape);
    struct forward f = {.w = &w, .x = &c->in[0], .y = &c->out[0]};

    if (p->fn == DNN_POOL_AVERAGE) {
        dnn_cpu_windows_sum(&w, c, 0);
        return;
    }
    f.kernel = dnn_rows_find()->window_max;
    if (c->op->nout > 1 && c->out[1].mem != NULL) {
        f.index = c->out[1].mem;
        f.index_size = (int)dnn_dtype_size(c->out[1].dtype);
    }
    forward_all(&f, c);
}

static void pool_data(const struct cpu_call *c)
{
    const struct dnn_op_pool *p = &c->op->attr.pool;
    struct window3d w = window3d(&p->win, &c->out[0].shape, &c->in[0].shape);
    struct backward b = {.w = &w, .dy = &c->in[0], .dx = &c->out[0]};

    if (p->fn == DNN_POOL_AVERAGE) {
        b.kernel = dnn_rows_find()->window_sum;
        b.weighted = !all_inside(&w);
    } else {
        b.kernel = dnn_rows_find()->window_max_data;
        b.index = c->in[1].mem;
        b.index_size = (int)dnn_dtype_size(c->in[1].dtype);
    }
    backward_all(&b, c);
}

const struct cpu_algo dnn_cpu_pool = {.name = "rows",
                                      .can = can,
                                      .in_pitch = 1,
                                      .out_pitch = 1,
                                      .fn = pool,
                                      .work = work};
const struct cpu_algo dnn_cpu_pool_data = {.name = "rows",
                                           .can = can,
                                           .in_pitch = 1,
                                           .out_pitch = 1,
                                           .fn = pool_data,
                                           .work = work};
