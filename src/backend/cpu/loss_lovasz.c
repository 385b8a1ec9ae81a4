/* loss_lovasz.c - the Lovasz extension of the Jaccard loss: errors sorted in descending
 * order, each times the increase of 1 - IoU it causes.
 *
 * Errors are not negative, so their bit patterns sort like their values: a radix
 * sort in three passes of eleven bits.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/loss_impl.h"

#include <omp.h>

/* One position of a sample: the bits of its error; and its row, with the highest bit
 * set if its target is the class. */
struct entry {
    uint32_t error, at;
};

enum { RADIX_BITS = 11, RADIX = 1 << RADIX_BITS };
static const uint32_t class_bit = UINT32_C(1) << 31;

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

/* For each sample and class: its loss, and whether the class is present; for each
 * thread two lists of positions. */
static size_t work(const struct dnn_step *step, int threads)
{
    const struct dnn_tensor *x = step->in[0];
    int64_t n = rows_row(x);

    return scratch_bytes(n, threads) +
           (size_t)(2 * x->shape.dim[0] * n) * sizeof(double) +
           (size_t)threads * 2 * (size_t)rows_of(x) * sizeof(struct entry);
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

/* Sort in descending order, stable. Returns the sorted list: a or b. */
static struct entry *sort(struct entry *a, struct entry *b, int64_t n)
{
    for (int shift = 0; shift < 32; shift += RADIX_BITS) {
        int64_t count[RADIX] = {0}, at = 0;

        for (int64_t i = 0; i < n; i++)
            count[a[i].error >> shift & (RADIX - 1)]++;
        for (int d = RADIX - 1; d >= 0; d--) {
            int64_t size = count[d];

            count[d] = at;
            at += size;
        }
        for (int64_t i = 0; i < n; i++)
            b[count[a[i].error >> shift & (RADIX - 1)]++] = a[i];
        struct entry *swap = a;
        a = b;
        b = swap;
    }
    return a;
}

struct class
{
    const struct cpu_call *c;
    int64_t first, rows; /* of the sample           */
    int64_t n, j;        /* number of classes; the class */
    float *p;            /* of the first row, class j    */
    int64_t pitch;
};

/* 1: the target of a row is the class; 0: it is not; -1: the row is ignored. */
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

static float error_of(const struct class *k, int64_t row, bool positive)
{
    float p = k->p[row * k->pitch], e;

    if (k->c->op->attr.overlap.source != DNN_HEAD_HINGE)
        return fabsf((positive ? 1.0f : 0.0f) - p);
    e = positive ? 1 - p : 1 + p;
    return e < 0 ? 0 : e;
}

static int64_t gather(const struct class *k, struct entry *entry, double *total)
{
    int64_t n = 0;

    *total = 0;
    for (int64_t r = 0; r < k->rows; r++) {
        int positive = target(k, r);

        if (positive < 0) continue;
        float e = error_of(k, r, positive > 0);
        memcpy(&entry[n].error, &e, sizeof e);
        entry[n++].at = (uint32_t)r | (positive > 0 ? class_bit : 0);
        *total += positive;
    }
    return n;
}

/* The derivative in p of a nonzero error. */
static double sign(const struct class *k, float p, bool positive)
{
    if (k->c->op->attr.overlap.source == DNN_HEAD_HINGE) return positive ? -1 : 1;
    return positive ? (p > 1 ? 1 : -1) : (p < 0 ? -1 : 1);
}

/* The loss of the class, times a factor; p becomes the gradient, times the same
 * factor. */
static double lovasz(const struct class *k, struct entry *list, double factor)
{
    bool hinge = k->c->op->attr.overlap.source == DNN_HEAD_HINGE;
    double total, found = 0, previous = 0, loss = 0;
    int64_t n = gather(k, list, &total);
    struct entry *entry = sort(list, list + k->rows, n);

    if (n < k->rows)
        for (int64_t r = 0; r < k->rows; r++)
            if (target(k, r) < 0) k->p[r * k->pitch] = 0;
    for (int64_t i = 0; i < n; i++) {
        bool positive = (entry[i].at & class_bit) != 0;
        float e, *p = &k->p[(int64_t)(entry[i].at & ~class_bit) * k->pitch];

        memcpy(&e, &entry[i].error, sizeof e);
        found += positive;
        double jaccard = 1 - (total - found) / (total + (double)(i + 1) - found);
        double increase = jaccard - previous;

        previous = jaccard;
        loss += (double)e * increase;
        *p = hinge && e <= 0 ? 0 : (float)(increase * sign(k, *p, positive) * factor);
    }
    return loss * factor;
}

static bool present(const struct class *k)
{
    for (int64_t r = 0; r < k->rows; r++)
        if (target(k, r) > 0) return true;
    return k->n == 1;
}

/* ---- all classes of all samples ---- */

static void forward(const struct cpu_call *c)
{
    const struct cpu_array *x = &c->in[0], *y = &c->out[1];
    int64_t samples = x->shape.dim[0], n = x->row, rows = x->rows / samples;
    char *at = (char *)c->work + scratch_bytes(n, c->threads);
    double *sums = (double *)(void *)at, *has = sums + samples * n, sum = 0;
    struct entry *list = (struct entry *)(void *)(has + samples * n);

    probabilities(c);
#pragma omp parallel num_threads(c->threads)
    {
        struct entry *own = list + 2 * rows * omp_get_thread_num();

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
                sums[i] = lovasz(&k, own, c->op->attr.overlap.scale / classes);
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
