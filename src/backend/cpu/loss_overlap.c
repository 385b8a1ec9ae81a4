/* loss_overlap.c - how much probabilities and masks overlap: the sums of each sample.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/loss_impl.h"

#include <omp.h>

/* Samples are cut into parts where there are fewer than threads; each part has sums of
 * its own, which are added in order. */
struct cut {
    int64_t samples, rows; /* of each sample                                  */
    int parts;             /* of each sample                                  */
    int64_t each;          /* doubles of a part's sums, whole cache lines     */
};

static struct cut cut_of(int64_t samples, int64_t count, int64_t classes, int threads)
{
    struct cut k = {.samples = samples,
                    .rows = count / samples / classes,
                    .each = (3 * classes + 7) / 8 * 8};

    k.parts = samples >= 4 * threads ? 1 : rows_parts(count / samples, threads);
    return k;
}

static struct cut cut_step(const struct dnn_step *step, int threads)
{
    const struct dnn_tensor *x = step->in[loss_x(step->op)];

    return cut_of(x->shape.dim[0], rows_count(x), rows_row(x), threads);
}

static size_t scratch_bytes(int64_t classes, int threads)
{
    return (size_t)threads * (size_t)loss_scratch(classes) * sizeof(float);
}

static size_t overlap_work(const struct dnn_step *step, int threads)
{
    struct cut k = cut_step(step, threads);

    return scratch_bytes(rows_row(step->in[0]), threads) +
           (size_t)(k.samples * k.parts * k.each) * sizeof(double);
}

/* Backward: the slopes of each sample as floats. */
static size_t data_work(const struct dnn_step *step, int threads)
{
    int64_t n = rows_row(step->in[1]);

    return scratch_bytes(n, threads) +
           (size_t)(2 * n * step->in[1]->shape.dim[0]) * sizeof(float);
}

/* Part p of sample s. */
static struct rows_loss part(const struct cpu_call *c, const struct cut *cut, bool data,
                             int64_t s, int p)
{
    const struct dnn_op_overlap *o = &c->op->attr.overlap;
    int at = loss_x(c->op);
    int64_t first, last;

    dnn_cpu_share(cut->rows, cut->parts, p, &first, &last);
    struct rows_loss k = loss_rows(&c->in[at], &c->in[at + 1], data ? &c->out[0] : NULL,
                                   s * cut->rows + first, s * cut->rows + last);
    k.source = o->source;
    if (o->ignores) k.ignore = o->ignore;
    return k;
}

static void overlap(const struct cpu_call *c)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    const struct cpu_array *x = &c->in[0];
    const struct cut cut = cut_of(x->shape.dim[0], x->count, x->row, c->threads);
    char *work = c->work;
    double *sums = (double *)(void *)(work + scratch_bytes(x->row, c->threads));
    double *out = c->out[0].mem;
    int64_t n = 3 * x->row;

    memset(sums, 0, (size_t)(cut.samples * cut.parts * cut.each) * sizeof *sums);
#pragma omp parallel num_threads(c->threads)
    {
        float *scratch =
            (float *)(void *)work + omp_get_thread_num() * loss_scratch(x->row);

#pragma omp for schedule(static)
        for (int64_t i = 0; i < cut.samples * cut.parts; i++) {
            struct rows_loss k =
                part(c, &cut, false, i / cut.parts, (int)(i % cut.parts));

            k.sums = sums + i * cut.each;
            k.scratch = scratch;
            isa->overlap(&k);
        }
    }
    memset(out, 0, (size_t)c->out[0].count * sizeof *out);
    for (int64_t i = 0; i < cut.samples * cut.parts; i++)
        for (int64_t j = 0; j < n; j++)
            out[(c->op->attr.overlap.whole ? 0 : i / cut.parts * n) + j] +=
                sums[i * cut.each + j];
    if (c->op->attr.overlap.whole) out[n] = (double)cut.samples;
}

static void overlap_data(const struct cpu_call *c)
{
    const struct dnn_rows_isa *isa = dnn_rows_find();
    const struct cpu_array *x = &c->in[1];
    const struct cut cut = cut_of(x->shape.dim[0], x->count, x->row, c->threads);
    bool whole = c->op->attr.overlap.whole;
    const double *d = c->in[0].mem;
    char *work = c->work;
    float *slope = (float *)(void *)(work + scratch_bytes(x->row, c->threads));
    int64_t n = x->row, rows = (whole ? 1 : cut.samples) * n;

    /* Those of p t, then those of p. */
    for (int64_t i = 0; i < rows; i++) {
        slope[i] = (float)d[3 * i];
        slope[rows + i] = (float)d[3 * i + 1];
    }
#pragma omp parallel num_threads(c->threads)
    {
        float *scratch = (float *)(void *)work + omp_get_thread_num() * loss_scratch(n);

#pragma omp for schedule(static)
        for (int64_t i = 0; i < cut.samples * cut.parts; i++) {
            struct rows_loss k =
                part(c, &cut, true, i / cut.parts, (int)(i % cut.parts));

            k.pt = slope + (whole ? 0 : i / cut.parts * n);
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
