/* loss_overlap.c - overlap of probabilities and masks: the sums of each sample
 * (Dice, Jaccard).
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/loss_impl.h"

#include <omp.h>

/* Samples are split into parts if there are few of them; each part has its own sums,
 * which are added in order. */
struct split {
    int64_t samples, rows; /* rows per sample                                 */
    int parts;             /* per sample                                      */
    int64_t each;          /* doubles of a part's sums, whole cache lines     */
};

static struct split split_of(int64_t samples, int64_t count, int64_t classes,
                             int threads)
{
    struct split k = {.samples = samples,
                      .rows = count / samples / classes,
                      .each = (3 * classes + 7) / 8 * 8};

    k.parts = samples >= 4 * threads ? 1 : rows_parts(count / samples, threads);
    return k;
}

static struct split split_step(const struct dnn_step *step, int threads)
{
    const struct dnn_tensor *x = step->in[loss_x(step->op)];

    return split_of(x->shape.dim[0], rows_count(x), rows_row(x), threads);
}

static size_t scratch_bytes(int64_t classes, int threads)
{
    return (size_t)threads * (size_t)loss_scratch(classes) * sizeof(float);
}

static size_t overlap_work(const struct dnn_step *step, int threads)
{
    struct split k = split_step(step, threads);

    return scratch_bytes(rows_row(step->in[0]), threads) +
           (size_t)(k.samples * k.parts * k.each) * sizeof(double);
}

/* Backward: the gradients of each sample's sums, as floats. */
static size_t data_work(const struct dnn_step *step, int threads)
{
    int64_t n = rows_row(step->in[1]);

    return scratch_bytes(n, threads) +
           (size_t)(2 * n * step->in[1]->shape.dim[0]) * sizeof(float);
}

/* Part p of sample s. */
static struct rows_loss part(const struct cpu_call *c, const struct split *split,
                             bool data, int64_t s, int p)
{
    const struct dnn_op_overlap *o = &c->op->attr.overlap;
    int at = loss_x(c->op);
    int64_t first, last;

    dnn_cpu_share(split->rows, split->parts, p, &first, &last);
    struct rows_loss k = loss_rows(&c->in[at], &c->in[at + 1], data ? &c->out[0] : NULL,
                                   s * split->rows + first, s * split->rows + last);
    k.source = o->source;
    if (o->ignores) k.ignore = o->ignore;
    return k;
}

static void overlap(const struct cpu_call *c)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    const struct cpu_array *x = &c->in[0];
    const struct split split = split_of(x->shape.dim[0], x->count, x->row, c->threads);
    char *work = c->work;
    double *sums = (double *)(void *)(work + scratch_bytes(x->row, c->threads));
    double *out = c->out[0].mem;
    int64_t n = 3 * x->row;

    memset(sums, 0, (size_t)(split.samples * split.parts * split.each) * sizeof *sums);
#pragma omp parallel num_threads(c->threads)
    {
        float *scratch =
            (float *)(void *)work + omp_get_thread_num() * loss_scratch(x->row);

#pragma omp for schedule(static)
        for (int64_t i = 0; i < split.samples * split.parts; i++) {
            struct rows_loss k =
                part(c, &split, false, i / split.parts, (int)(i % split.parts));

            k.sums = sums + i * split.each;
            k.scratch = scratch;
            isa->overlap(&k);
        }
    }
    memset(out, 0, (size_t)c->out[0].count * sizeof *out);
    for (int64_t i = 0; i < split.samples * split.parts; i++)
        for (int64_t j = 0; j < n; j++)
            out[(c->op->attr.overlap.whole ? 0 : i / split.parts * n) + j] +=
                sums[i * split.each + j];
    if (c->op->attr.overlap.whole) out[n] = (double)split.samples;
}

static void overlap_data(const struct cpu_call *c)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    const struct cpu_array *x = &c->in[1];
    const struct split split = split_of(x->shape.dim[0], x->count, x->row, c->threads);
    bool whole = c->op->attr.overlap.whole;
    const double *d = c->in[0].mem;
    char *work = c->work;
    float *slope = (float *)(void *)(work + scratch_bytes(x->row, c->threads));
    int64_t n = x->row, rows = (whole ? 1 : split.samples) * n;

    /* The gradients of the sums of p t, then those of the sums of p. */
    for (int64_t i = 0; i < rows; i++) {
        slope[i] = (float)d[3 * i];
        slope[rows + i] = (float)d[3 * i + 1];
    }
#pragma omp parallel num_threads(c->threads)
    {
        float *scratch = (float *)(void *)work + omp_get_thread_num() * loss_scratch(n);

#pragma omp for schedule(static)
        for (int64_t i = 0; i < split.samples * split.parts; i++) {
            struct rows_loss k =
                part(c, &split, true, i / split.parts, (int)(i % split.parts));

            k.pt = slope + (whole ? 0 : i / split.parts * n);
            k.p = k.pt + rows;
            k.scratch = scratch;
            isa->overlap_data(&k);
        }
    }
}

const struct cpu_algo dnn_cpu_overlap = {.name = "rows",
                                         .can = loss_can,
                                         .in_pitch = 1,
                                         .fn = overlap,
                                         .work = overlap_work};
const struct cpu_algo dnn_cpu_overlap_data = {.name = "rows",
                                              .can = loss_can,
                                              .in_pitch = 2,
                                              .out_pitch = 1,
                                              .fn = overlap_data,
                                              .work = data_work};
