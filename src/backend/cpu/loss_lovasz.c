/* loss_lovasz.c - Lovasz's extension of the Jaccard loss: errors in order of size, each
 * times what it adds to 1 - IoU.
 *
 * Errors are 0 or more, so their bits are in the order of their sizes: they are sorted
 * by those, in three passes over eleven bits.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/loss_impl.h"

#include <omp.h>

/* One place of a sample: its error, and which row it is, with a bit that says whether
 * its target is the class. */
struct place {
    uint32_t error, at;
};

enum { DIGIT = 11, DIGITS = 1 << DIGIT };
static const uint32_t right = UINT32_C(1) << 31;

static int64_t rows_of(const struct dnn_tensor *x)
{
    return rows_count(x) / x->shape.dim[0] / rows_row(x);
}

static bool can(const struct dnn_step *step)
{
    return loss_can(step) && rows_of(step->in[loss_x(step->op)]) < INT32_MAX;
}

static size_t scratch_bytes(int64_t classes, int threads)
{
    return (size_t)threads * (size_t)loss_scratch(classes) * sizeof(float);
}

/* Whether each sample has each class, and what that lost; two lists of places for each
 * thread. */
static size_t work(const struct dnn_step *step, int threads)
{
    const struct dnn_tensor *x = step->in[0];
    int64_t n = rows_row(x);

    return scratch_bytes(n, threads) +
           (size_t)(2 * x->shape.dim[0] * n) * sizeof(double) +
           (size_t)threads * 2 * (size_t)rows_of(x) * sizeof(struct place);
}

static size_t data_work(const struct dnn_step *step, int threads)
{
    return scratch_bytes(rows_row(step->in[1]), threads);
}

/* ---- probabilities ---- */

static void probabilities(const struct cpu_call *c)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    const struct dnn_rows_isa *rows = dnn_rows_find();
    const struct dnn_op_unary sigmoid = {.fn = DNN_SIGMOID};
    enum dnn_head source = c->op->attr.overlap.source;
    const struct cpu_array *x = &c->in[0], *y = &c->out[1];
    int parts = rows_parts(x->count, c->threads);

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        int64_t first, last;

        dnn_cpu_share(x->rows, parts, p, &first, &last);
        const float *from = (const float *)x->mem + first * x->pitch;
        float *to = (float *)y->mem + first * y->pitch;
        const struct rows_classes k = {.rows = last - first,
                                       .n = x->row,
                                       .x = from,
                                       .y = to,
                                       .x_pitch = x->pitch,
                                       .y_pitch = y->pitch,
                                       .scratch =
                                           (float *)c->work + p * loss_scratch(x->row)};

        if (source == DNN_HEAD_SOFTMAX) {
            isa->softmax(&k);
            continue;
        }
        for (int64_t r = 0; r < k.rows; r++)
            memcpy(to + r * y->pitch, from + r * x->pitch, (size_t)x->row * sizeof *to);
        if (source == DNN_HEAD_SIGMOID)
            rows_post(rows, &sigmoid, to, y->pitch, k.rows, x->row);
    }
}

/* ---- one class of one sample ---- */

/* Largest first; equal ones stay in their order.  Returns where they are then. */
static struct place *sort(struct place *a, struct place *b, int64_t n)
{
    for (int shift = 0; shift < 32; shift += DIGIT) {
        int64_t count[DIGITS] = {0}, at = 0;

        for (int64_t i = 0; i < n; i++)
            count[a[i].error >> shift & (DIGITS - 1)]++;
        for (int d = DIGITS - 1; d >= 0; d--) {
            int64_t here = count[d];

            count[d] = at;
            at += here;
        }
        for (int64_t i = 0; i < n; i++)
            b[count[a[i].error >> shift & (DIGITS - 1)]++] = a[i];
        struct place *swap = a;
        a = b;
        b = swap;
    }
    return a;
}

struct class
{
    const struct cpu_call *c;
    int64_t first, rows; /* of the sample           */
    int64_t n, j;        /* classes, and which one  */
    float *p;            /* its first row's class j */
    int64_t pitch;
};

/* -1 does not count, else whether the target is the class. */
static int target(const struct class *k, int64_t row)
{
    const struct cpu_array *t = &k->c->in[1];
    const struct dnn_op_overlap *o = &k->c->op->attr.overlap;

    if (t->shape.ndim == k->c->in[0].shape.ndim)
        return ((const float *)t->mem)[(k->first + row) * t->pitch + k->j] > 0.5f;
    int32_t label = ((const int32_t *)t->mem)[k->first + row];
    if (label < 0 || label >= (k->n == 1 ? 2 : k->n)) return -1;
    if (o->ignores && label == o->ignore) return -1;
    return label == (k->n == 1 ? 1 : k->j);
}

static float error_of(const struct class *k, int64_t row, bool is)
{
    float p = k->p[row * k->pitch], e;

    if (k->c->op->attr.overlap.source != DNN_HEAD_HINGE)
        return fabsf((is ? 1.0f : 0.0f) - p);
    e = is ? 1 - p : 1 + p;
    return e < 0 ? 0 : e;
}

static int64_t gather(const struct class *k, struct place *place, double *all)
{
    int64_t n = 0;

    *all = 0;
    for (int64_t r = 0; r < k->rows; r++) {
        int is = target(k, r);

        if (is < 0) continue;
        float e = error_of(k, r, is > 0);
        memcpy(&place[n].error, &e, sizeof e);
        place[n++].at = (uint32_t)r | (is > 0 ? right : 0);
        *all += is;
    }
    return n;
}

/* The slope of an error in p, where there is an error. */
static double sign(const struct class *k, float p, bool is)
{
    if (k->c->op->attr.overlap.source == DNN_HEAD_HINGE) return is ? -1 : 1;
    return is ? (p > 1 ? 1 : -1) : (p < 0 ? -1 : 1);
}

/* Its loss; p becomes the slope.  times: of both. */
static double lovasz(const struct class *k, struct place *list, double times)
{
    bool hinge = k->c->op->attr.overlap.source == DNN_HEAD_HINGE;
    double all, found = 0, before = 0, loss = 0;
    int64_t n = gather(k, list, &all);
    struct place *place = sort(list, list + k->rows, n);

    if (n < k->rows)
        for (int64_t r = 0; r < k->rows; r++)
            if (target(k, r) < 0) k->p[r * k->pitch] = 0;
    for (int64_t i = 0; i < n; i++) {
        bool is = (place[i].at & right) != 0;
        float e, *p = &k->p[(int64_t)(place[i].at & ~right) * k->pitch];

        memcpy(&e, &place[i].error, sizeof e);
        found += is;
        double here = 1 - (all - found) / (all + (double)(i + 1) - found);
        double step = here - before;

        before = here;
        loss += (double)e * step;
        *p = hinge && e <= 0 ? 0 : (float)(step * sign(k, *p, is) * times);
    }
    return loss * times;
}

static bool present(const struct class *k)
{
    for (int64_t r = 0; r < k->rows; r++)
        if (target(k, r) > 0) return true;
    return k->n == 1;
}

/* ---- all of them ---- */

static void forward(const struct cpu_call *c)
{
    const struct cpu_array *x = &c->in[0], *y = &c->out[1];
    int64_t samples = x->shape.dim[0], n = x->row, rows = x->rows / samples;
    char *at = (char *)c->work + scratch_bytes(n, c->threads);
    double *sums = (double *)(void *)at, *has = sums + samples * n, sum = 0;
    struct place *list = (struct place *)(void *)(has + samples * n);

    probabilities(c);
#pragma omp parallel num_threads(c->threads)
    {
        struct place *mine = list + 2 * rows * omp_get_thread_num();

#pragma omp for schedule(static)
        for (int64_t i = 0; i < samples * n; i++) {
            struct class k = {
                .c = c, .first = i / n * rows, .rows = rows, .n = n, .j = i % n};

            has[i] = present(&k);
        }
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < samples * n; i++) {
            struct class k = {.c = c,
                              .first = i / n * rows,
                              .rows = rows,
                              .n = n,
                              .j = i % n,
                              .pitch = y->pitch};
            double classes = 0;

            k.p = (float *)y->mem + k.first * y->pitch + k.j;
            for (int64_t j = 0; j < n; j++)
                classes += has[i / n * n + j];
            sums[i] = 0;
            if (has[i] != 0)
                sums[i] = lovasz(&k, mine, c->op->attr.overlap.scale / classes);
            else
                for (int64_t r = 0; r < rows; r++)
                    k.p[r * k.pitch] = 0;
        }
    }
    for (int64_t i = 0; i < samples * n; i++)
        sum += sums[i];
    rows_put(&c->out[0], sum);
}

static void backward(const struct cpu_call *c)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    const struct cpu_array *x = &c->in[1], *slope = &c->in[3];
    int parts = rows_parts(x->count, c->threads);
    double times = rows_number(&c->in[0]);

#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int p = 0; p < parts; p++) {
        int64_t first, last;

        dnn_cpu_share(x->rows, parts, p, &first, &last);
        struct rows_loss k = loss_rows(x, &c->in[2], &c->out[0], first, last);
        k.source = c->op->attr.overlap.source;
        k.factor = (float)times;
        k.dp = (const float *)slope->mem + first * slope->pitch;
        k.dp_pitch = slope->pitch;
        k.scratch = (float *)c->work + p * loss_scratch(x->row);
        isa->overlap_data(&k);
    }
}

const struct cpu_algo dnn_cpu_lovasz = {.name = "sort",
                                        .can = can,
                                        .in_pitch = 1,
                                        .out_pitch = 2,
                                        .fn = forward,
                                        .work = work};
const struct cpu_algo dnn_cpu_lovasz_data = {.name = "rows",
                                             .can = can,
                                             .in_pitch = 2 | 8,
                                             .out_pitch = 1,
                                             .fn = backward,
                                             .work = data_work};
