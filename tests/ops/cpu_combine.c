/* cpu_combine.c - bias and ops of several arrays of the cpu backend against the ref
 * backend: odd shapes, rows with a pitch, in place, one to three threads, the same bits
 * in two runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "ops/cpu_rows.h"

/* ---- bias ---- */

static void bias(int64_t rows, int64_t c)
{
    struct rows_case k = {
        .op = {.kind = DNN_OP_BIAS, .nin = 2, .nout = 1}
    };
    struct rows_case w = {
        .op = {.kind = DNN_OP_BIAS, .pass = DNN_BWD_WEIGHTS, .nin = 1, .nout = 1}
    };
    char what[100];

    k.in[0] = k.out[0] = w.in[0] = TENSOR(DNN_F32, 1, rows, c);
    k.in[1] = w.out[0] = TENSOR(DNN_F32, c);
    k.in_mem[0] = filled(&k.in[0], -1, 2, 1);
    k.in_mem[1] = filled(&k.in[1], -1, 2, 2);
    w.in_mem[0] = filled(&k.in[0], -1, 2, 3);
    rows_ref(&k);
    rows_ref(&w);
    snprintf(what, sizeof what, "bias %dx%d", (int)rows, (int)c);
    rows_check(&k, &dnn_cpu_bias, 1e-7, what);
    snprintf(what, sizeof what, "bias backward weights %dx%d", (int)rows, (int)c);
    rows_check(&w, &dnn_cpu_bias_weights, 1e-7, what);
}

/* ---- several into one; bit i of rows: operand i is one row, or one number ---- */

static void combine(enum dnn_combine fn, int terms, unsigned row, bool one,
                    int64_t rows, int64_t c, const struct dnn_op_unary *post)
{
    struct rows_case k = {
        .op = {.kind = DNN_OP_COMBINE,
               .attr.combine = {.fn = fn, .parts = terms},
               .nin = terms,
               .nout = 1,
               .post = post}
    };
    char what[100];

    k.out[0] = TENSOR(DNN_F32, 2, rows, c);
    for (int i = 0; i < terms; i++) {
        k.in[i] = k.out[0];
        if (row >> i & 1) k.in[i] = one ? TENSOR(DNN_F32, 1) : TENSOR(DNN_F32, 1, 1, c);
        k.in_mem[i] = filled(&k.in[i], -1, 2, 1 + (uint64_t)i);
    }
    rows_ref(&k);
    if (post != NULL) apply(post, &k.out[0], k.out_mem[0]);
    snprintf(what, sizeof what, "combine %d of %d, rows %u, %dx%d, post %s", (int)fn,
             terms, row, (int)rows, (int)c,
             post == NULL ? "-" : dnn_op_unary_name(post->fn));
    rows_check(&k, &dnn_cpu_combine, 1e-6, what);
}

static void combine_data(enum dnn_combine fn, int part, int terms, bool row,
                         int64_t rows, int64_t c)
{
    struct rows_case k = {
        .op = {.kind = DNN_OP_COMBINE,
               .pass = DNN_BWD_DATA,
               .attr.combine = {.fn = fn, .part = part, .parts = terms},
               .nin = 1,
               .nout = 1}
    };
    struct dnn_tensor x = TENSOR(DNN_F32, 2, rows, c);
    bool most = fn == DNN_MAXIMUM || fn == DNN_MINIMUM;
    char what[100];

    if (fn == DNN_MULTIPLY) k.op.nin = terms;
    if (most) k.op.nin = 3 + part;
    for (int i = 0; i < k.op.nin; i++) {
        k.in[i] = x;
        if (row && fn == DNN_MULTIPLY && i > 0) k.in[i] = TENSOR(DNN_F32, c);
        /* few different values, so that many are y, and several at once */
        k.in_mem[i] = filled(&k.in[i], most && i > 0 ? 1 : -1, most && i > 0 ? 1 : 2,
                             1 + (uint64_t)i);
        float *v = k.in_mem[i];
        for (int64_t j = 0; most && i > 0 && j < count_of(&k.in[i]); j++)
            v[j] = (float)((j * 7 + i * 3 + j / 5) % 3);
    }
    k.out[0] = row && fn != DNN_MULTIPLY ? TENSOR(DNN_F32, c) : x;
    rows_ref(&k);
    snprintf(what, sizeof what, "combine %d backward to %d of %d%s, %dx%d", (int)fn,
             part, terms, row ? " rows" : "", (int)rows, (int)c);
    rows_check(&k, &dnn_cpu_combine_data, 1e-6, what);
}

static void combines(void)
{
    static const int64_t c[] = {1, 3, 8, 17, 64};

    for (int fn = DNN_ADD; fn <= DNN_AVERAGE; fn++)
        for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
            enum dnn_combine f = (enum dnn_combine)fn;

            combine(f, 2, 0, false, 37, c[i], posts[i]);
            combine(f, 2, 2, i % 2, 37, c[i], posts[(i + 1) % 6]);
            combine(f, 2, 1, i % 2, 5, c[i], NULL);
            combine_data(f, 1, 2, false, 37, c[i]);
            if (f == DNN_SUBTRACT) continue;
            combine(f, 5, 4, false, 300, c[i], posts[(i + 2) % 6]);
            combine_data(f, 2, 3, false, 300, c[i]);
            if (f != DNN_MAXIMUM && f != DNN_MINIMUM)
                combine_data(f, 1, 2, true, 300, c[i]);
        }
}

static void all(void)
{
    bias(1, 1);
    bias(37, 3);
    bias(19, 16);
    bias(700, 33);
    bias(40, 130);
    combines();
}

int main(void)
{
    all();
    printf("# in plain C\n");
    setenv("DNN_ISA", "plain", 1);
    all();
    return done();
}
