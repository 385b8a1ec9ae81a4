/* upsample.c - upsampling: nearest (repeats pixels) and linear (pixel i has its centre
 * at i + 0.5).
 *
 * Linear works line by line: lines are first mixed along the other axes into one that
 * stays in the cache, then along the last axis.  Backward, each line of dx sums the
 * lines of dy that it contributed to.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/pool_impl.h"
#include "backend/cpu/rows_split.h"

/* As windows over y (or dy): in are the extents of y, out those of x (or dx). */
static struct window3d axes_of(const struct dnn_op_upsample *u,
                               const struct dnn_shape *x, const struct dnn_shape *y)
{
    struct dnn_op_window w = {.nspatial = u->nspatial, .groups = 1};

    for (int i = 0; i < u->nspatial; i++) {
        w.kernel[i] = w.stride[i] = u->factor[i];
        w.dilation[i] = 1;
    }
    return window3d(&w, y, x);
}

/* The pixels of x on an axis that contribute to one pixel of y. */
struct mix {
    int64_t first;
    int count;
    float weight[2];
};

static struct mix mix_at(int64_t o, int64_t in, int64_t factor)
{
    struct mix m = {.first = o / factor, .count = 1, .weight = {1}};

    if (factor == 1) return m;
    double position = ((double)o + 0.5) / (double)factor - 0.5, low = floor(position);
    m.first = (int64_t)low;
    if (m.first < 0) m.first = 0;
    if (low < 0 || m.first == in - 1 || position == low) return m;
    m.count = 2;
    m.weight[0] = (float)(1 - (position - low));
    m.weight[1] = (float)(position - low);
    return m;
}

/* Pixel i of x may contribute to pixels *first ... *last - 1 of y. */
static void reach(int64_t i, int64_t in, int64_t factor, int64_t *first, int64_t *last)
{
    *first = factor == 1 ? i : i == 0 ? 0 : (i - 1) * factor;
    *last = factor == 1 ? i + 1 : i == in - 1 ? in * factor : (i + 2) * factor;
}

static float weight_in(int64_t o, int64_t i, int64_t in, int64_t factor)
{
    struct mix m = mix_at(o, in, factor);

    for (int k = 0; k < m.count; k++)
        if (m.first + k == i) return m.weight[k];
    return 0;
}

/* The pixels of the last axis of y that pixel i of x contributes to; their weights are
 * in space.share, from i * 3 * factor on. */
struct shares {
    int64_t first, count;
};

/* Memory of a thread: a line, and the terms of a mix. Shared by all threads, along the
 * last axis: mix (forward); shares and their weights share (backward). */
struct space {
    float *line, *weight;
    const float **term;
    struct mix *mix;
    struct shares *shares;
    float *share;
    size_t bytes, axis; /* per thread, and shared */
};

static size_t round_64(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

static struct space space_of(const struct window3d *w, bool back, void *work, int part)
{
    /* w.in are the extents of y, w.out those of x */
    size_t terms = back ? 9 * (size_t)w->taps : 4, n = (size_t)w->out[2];
    size_t line =
        round_64((size_t)(back ? w->in[2] : w->out[2]) * (size_t)w->c * sizeof(float));
    struct space s = {0};

    s.bytes = round_64(line + terms * (sizeof(float *) + sizeof(float)));
    s.axis = round_64((size_t)w->in[2] * sizeof(struct mix));
    if (back)
        s.axis = round_64(
            n * (sizeof(struct shares) + 3 * (size_t)w->stride[2] * sizeof(float)));
    if (work == NULL) return s;
    s.mix = work;
    s.shares = work;
    s.share = (float *)((char *)work + n * sizeof(struct shares));
    char *own = (char *)work + s.axis + (size_t)part * s.bytes;
    s.line = (float *)own;
    s.term = (const float **)(own + line);
    s.weight = (float *)(own + line + terms * sizeof(float *));
    return s;
}

/* Fill in the shared part. */
static void along_last(const struct window3d *w, bool back, void *work)
{
    struct space s = space_of(w, back, work, 0);
    int64_t n = w->out[2], factor = w->stride[2], from, to;

    for (int64_t o = 0; !back && o < w->in[2]; o++)
        s.mix[o] = mix_at(o, n, factor);
    for (int64_t i = 0; back && i < n; i++) {
        struct shares *h = &s.shares[i];

        *h = (struct shares){0};
        reach(i, n, factor, &from, &to);
        for (int64_t o = from; o < to; o++) {
            float weight = weight_in(o, i, n, factor);

            if (weight == 0) continue;
            if (h->count == 0) h->first = o;
            s.share[i * 3 * factor + h->count++] = weight;
        }
    }
}

/* s->line = the weighted sum of the terms: n pixels of c floats, a pitch apart. */
static void mix_lines(const struct dnn_rows_isa *isa, const struct space *s, int terms,
                      int64_t n, int64_t c, int64_t pitch)
{
    if (pitch == c) {
        isa->mix(s->line, n * c, terms, s->term, s->weight);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        isa->mix(s->line + i * c, c, terms, s->term, s->weight);
        for (int t = 0; t < terms; t++)
            s->term[t] += pitch;
    }
}

/* ---- forward ---- */

static void nearest_line(const struct dnn_rows_isa *isa, const struct window3d *w,
                         const struct cpu_call *c, int64_t l)
{
    const struct cpu_array *x = &c->in[0], *y = &c->out[0];
    int64_t o1 = l % w->in[1], o0 = l / w->in[1] % w->in[0];
    int64_t sample = l / w->in[1] / w->in[0];
    int64_t from =
        (sample * w->out[0] + o0 / w->stride[0]) * w->out[1] + o1 / w->stride[1];

    isa->repeat((const float *)x->mem + from * w->out[2] * x->pitch, x->pitch,
                w->out[2], w->c, w->stride[2],
                (float *)y->mem + l * w->in[2] * y->pitch, y->pitch,
                w->c % 16 == 0 && dnn_rows_stream(y, x, ROWS_LARGE_FILL));
}

static void linear_line(const struct dnn_rows_isa *isa, const struct window3d *w,
                        const struct cpu_call *c, const struct space *s, int64_t l)
{
    const struct cpu_array *x = &c->in[0], *y = &c->out[0];
    int64_t sample = l / w->in[1] / w->in[0];
    struct mix a = mix_at(l / w->in[1] % w->in[0], w->out[0], w->stride[0]);
    struct mix b = mix_at(l % w->in[1], w->out[1], w->stride[1]);
    int n = 0;

    for (int i = 0; i < a.count; i++)
        for (int j = 0; j < b.count; j++, n++) {
            int64_t from = (sample * w->out[0] + a.first + i) * w->out[1] + b.first + j;

            s->term[n] = (const float *)x->mem + from * w->out[2] * x->pitch;
            s->weight[n] = a.weight[i] * b.weight[j];
        }
    mix_lines(isa, s, n, w->out[2], w->c, x->pitch);
    for (int64_t o = 0; o < w->in[2]; o++) {
        struct mix m = s->mix[o];
        const float *two[2] = {s->line + m.first * w->c,
                               s->line + (m.first + 1) * w->c};

        isa->mix((float *)y->mem + (l * w->in[2] + o) * y->pitch, w->c, m.count, two,
                 m.weight);
    }
}

static void upsample(const struct cpu_call *c)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    const struct dnn_op_upsample *u = &c->op->attr.upsample;
    struct window3d w = axes_of(u, &c->in[0].shape, &c->out[0].shape);
    int parts = rows_parts(c->out[0].count, c->threads);

    if (u->fn == DNN_UP_LINEAR) along_last(&w, false, c->work);
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct space s = {0};
        int64_t first, last;

        if (u->fn == DNN_UP_LINEAR) s = space_of(&w, false, c->work, p);
        dnn_cpu_share(w.n * w.in[0] * w.in[1], parts, p, &first, &last);
        for (int64_t l = first; l < last; l++)
            if (u->fn == DNN_UP_LINEAR)
                linear_line(isa, &w, c, &s, l);
            else
                nearest_line(isa, &w, c, l);
    }
}

/* ---- backward ---- */

static void linear_data_line(const struct dnn_rows_isa *isa, const struct window3d *w,
                             const struct cpu_call *c, const struct space *s, int64_t l)
{
    const struct cpu_array *dy = &c->in[0], *dx = &c->out[0];
    int64_t at[2] = {l / w->out[1] % w->out[0], l % w->out[1]};
    int64_t sample = l / w->out[1] / w->out[0], from[2], to[2];
    int n = 0;

    for (int i = 0; i < 2; i++)
        reach(at[i], w->out[i], w->stride[i], &from[i], &to[i]);
    for (int64_t a = from[0]; a < to[0]; a++)
        for (int64_t b = from[1]; b < to[1]; b++) {
            float weight = weight_in(a, at[0], w->out[0], w->stride[0]) *
                           weight_in(b, at[1], w->out[1], w->stride[1]);
            int64_t line = (sample * w->in[0] + a) * w->in[1] + b;

            if (weight == 0) continue;
            s->term[n] = (const float *)dy->mem + line * w->in[2] * dy->pitch;
            s->weight[n++] = weight;
        }
    mix_lines(isa, s, n, w->in[2], w->c, dy->pitch);
    for (int64_t i = 0; i < w->out[2]; i++) {
        struct shares h = s->shares[i];

        for (int64_t k = 0; k < h.count; k++)
            s->term[k] = s->line + (h.first + k) * w->c;
        isa->mix((float *)dx->mem + (l * w->out[2] + i) * dx->pitch, w->c, (int)h.count,
                 s->term, s->share + i * 3 * w->stride[2]);
    }
}

static void upsample_data(const struct cpu_call *c)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    const struct dnn_op_upsample *u = &c->op->attr.upsample;
    struct window3d w = axes_of(u, &c->out[0].shape, &c->in[0].shape);
    int parts = rows_parts(c->in[0].count, c->threads);

    if (u->fn == DNN_UP_NEAREST) {
        dnn_cpu_windows_sum(&w, c, 1);
        return;
    }
    along_last(&w, true, c->work);
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        struct space s = space_of(&w, true, c->work, p);
        int64_t first, last;

        dnn_cpu_share(w.n * w.out[0] * w.out[1], parts, p, &first, &last);
        for (int64_t l = first; l < last; l++)
            linear_data_line(isa, &w, c, &s, l);
    }
}

static size_t work(const struct dnn_step *step, int threads)
{
    const struct dnn_op_upsample *u = &step->op->attr.upsample;
    bool back = step->op->pass == DNN_BWD_DATA;
    const struct dnn_tensor *x = back ? step->out[0] : step->in[0];
    const struct dnn_tensor *y = back ? step->in[0] : step->out[0];
    struct window3d w = axes_of(u, &x->shape, &y->shape);

    if (u->fn == DNN_UP_NEAREST) return back ? dnn_cpu_windows_work(&w, threads) : 0;
    struct space s = space_of(&w, back, NULL, 0);
    return s.axis + (size_t)threads * s.bytes;
}

const struct cpu_algo dnn_cpu_upsample = {
    .name = "rows", .in_pitch = 1, .out_pitch = 1, .fn = upsample, .work = work};
const struct cpu_algo dnn_cpu_upsample_data = {
    .name = "rows", .in_pitch = 1, .out_pitch = 1, .fn = upsample_data, .work = work};
