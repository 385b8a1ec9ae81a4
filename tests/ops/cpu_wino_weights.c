/* cpu_wino_weights.c - the Winograd gradient of the weights of a convolution against
 * the ref backend: odd shapes, pitches, every instruction set of this CPU, one to three
 * threads, the same bits in two runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/onednn_impl.h"
#include "ops/cpu_rows.h"

/* Tolerance: the largest difference over the largest number. */
static const double close_to = 5e-6;

struct shape {
    int64_t n, in[3], c, m;
    struct dnn_op_window w;
};

#define K(...) .kernel = {__VA_ARGS__}
#define PAD(...) .before = {__VA_ARGS__}
#define AFTER(...) .after = {__VA_ARGS__}

/* clang-format off */
static const struct shape shapes[] = {
    /* one dimension: same, valid, on one side, with more zeros than numbers */
    {1, {8}, 8, 8, {1, K(3), PAD(1), AFTER(1)}},
    {2, {8}, 8, 9, {1, K(3)}},
    {2, {9}, 17, 16, {1, K(3), PAD(2)}},
    {2, {37}, 40, 48, {1, K(3), PAD(0), AFTER(2)}},
    {1, {10}, 9, 24, {1, K(3), PAD(13), AFTER(9)}},
    {1, {3001}, 12, 12, {1, K(3), PAD(1), AFTER(1)}},
    {50, {11}, 8, 16, {1, K(3), PAD(1), AFTER(1)}},
    /* two: small images, large ones, other extents along the first axis */
    {2, {9, 11}, 16, 16, {2, K(3, 3), PAD(1, 1), AFTER(1, 1)}},
    {2, {5, 12}, 24, 24, {2, K(3, 3)}},
    {3, {7, 13}, 10, 40, {2, K(2, 3), PAD(0, 1), AFTER(1, 0)}},
    {1, {6, 14}, 33, 17, {2, K(5, 3), PAD(2, 1), AFTER(2, 1)}},
    {2, {4, 15}, 19, 31, {2, K(1, 3), PAD(0, 2), AFTER(0, 1)}},
    {2, {1, 16}, 16, 8, {2, K(3, 3), PAD(1, 1), AFTER(1, 1)}},
    {2, {40, 37}, 13, 11, {2, K(3, 3), PAD(1, 1), AFTER(1, 1)}},
    {2, {3, 20}, 8, 8, {2, K(3, 3), PAD(7, 0), AFTER(6, 1)}},
    {1, {33, 32}, 8, 48, {2, K(4, 3), PAD(3, 2), AFTER(0, 0)}},
    {1, {2, 1100}, 8, 8, {2, K(2, 3), PAD(1, 1), AFTER(0, 1)}},
    /* three */
    {1, {4, 5, 8}, 16, 16, {3, K(3, 3, 3), PAD(1, 1, 1), AFTER(1, 1, 1)}},
    {2, {5, 4, 9}, 8, 20, {3, K(3, 3, 3)}},
    {2, {6, 7, 18}, 12, 24, {3, K(3, 3, 3), PAD(1, 1, 1), AFTER(1, 1, 1)}},
    {1, {3, 6, 21}, 40, 9, {3, K(3, 3, 3), PAD(2, 0, 1), AFTER(0, 2, 0)}},
    {1, {7, 3, 10}, 11, 33, {3, K(2, 4, 3), PAD(1, 1, 0), AFTER(0, 2, 2)}},
    {1, {4, 3, 12}, 18, 18, {3, K(3, 1, 3), PAD(1, 0, 1), AFTER(1, 0, 1)}},
    {2, {3, 9, 22}, 9, 16, {3, K(1, 3, 3), PAD(0, 1, 1), AFTER(0, 1, 1)}},
    {1, {2, 2, 16}, 8, 8, {3, K(3, 3, 3), PAD(4, 3, 2), AFTER(4, 3, 2)}},
    {1, {12, 20, 33}, 8, 8, {3, K(3, 3, 3), PAD(1, 1, 1), AFTER(1, 1, 1)}},
};

/* Unsupported: few channels, short rows, other windows along the rows. */
static const struct shape others[] = {
    {1, {9, 16}, 7, 8, {2, K(3, 3), PAD(1, 1), AFTER(1, 1)}},
    {1, {9, 16}, 8, 7, {2, K(3, 3), PAD(1, 1), AFTER(1, 1)}},
    {1, {9, 7}, 8, 8, {2, K(3, 3), PAD(1, 1), AFTER(1, 1)}},
    {1, {9, 16}, 8, 8, {2, K(3, 2), PAD(1, 1), AFTER(1, 1)}},
    {1, {9, 16}, 8, 8, {2, K(3, 5), PAD(1, 2), AFTER(1, 2)}},
    {1, {9, 16}, 8, 8, {2, K(3, 3), .stride = {1, 2}, PAD(1, 1), AFTER(1, 1)}},
    {1, {9, 16}, 8, 8, {2, K(3, 3), .stride = {2, 1}, PAD(1, 1), AFTER(1, 1)}},
    {1, {9, 16}, 8, 8, {2, K(3, 3), .dilation = {1, 2}, PAD(1, 1), AFTER(1, 1)}},
    {1, {9, 16}, 8, 8, {2, K(3, 3), .dilation = {2, 1}, PAD(1, 1), AFTER(1, 1)}},
    {1, {9, 16}, 8, 8, {2, K(3, 3), PAD(1, 1), AFTER(1, 1), .groups = 2}},
};
/* clang-format on */

static struct dnn_op_window window_of(const struct shape *s)
{
    struct dnn_op_window w = s->w;

    if (w.groups == 0) w.groups = 1;
    for (int i = 0; i < w.nspatial; i++) {
        if (w.stride[i] == 0) w.stride[i] = 1;
        if (w.dilation[i] == 0) w.dilation[i] = 1;
    }
    return w;
}

/* The tensors of a case, without memory. */
static struct rows_case case_of(const struct shape *s, bool bias)
{
    struct rows_case k = {
        .op = {.kind = DNN_OP_CONV, .pass = DNN_BWD_WEIGHTS, .nin = 2, .nout = 1}
    };
    struct dnn_op_window w = window_of(s);
    int ns = w.nspatial;
    int64_t x[5] = {s->n}, y[5] = {s->n}, dw[5];

    for (int i = 0; i < ns; i++) {
        x[i + 1] = s->in[i];
        y[i + 1] = dnn_op_window_out(s->in[i], w.kernel[i], w.stride[i], w.dilation[i],
                                     w.before[i], w.after[i]);
        dw[i] = w.kernel[i];
    }
    x[ns + 1] = s->c;
    y[ns + 1] = dw[ns + 1] = s->m;
    dw[ns] = s->c / w.groups;
    k.op.attr.window = w;
    k.in[0] = tensor(DNN_F32, ns + 2, x);
    k.in[1] = tensor(DNN_F32, ns + 2, y);
    k.out[0] = tensor(DNN_F32, ns + 2, dw);
    if (bias) {
        k.op.nout = 2;
        k.out[1] = TENSOR(DNN_F32, s->m);
    }
    return k;
}

static void expect_bias(struct rows_case *k)
{
    int64_t m = count_of(&k->out[1]), rows = count_of(&k->in[1]) / m;
    const float *dy = k->in_mem[1];
    float *db = filled(&k->out[1], 0, 0, 0);

    for (int64_t j = 0; j < m; j++) {
        double sum = 0;

        for (int64_t i = 0; i < rows; i++)
            sum += dy[i * m + j];
        db[j] = (float)sum;
    }
    k->out_mem[1] = db;
}

static void check(const struct shape *s, bool bias, uint64_t seed, const char *isa)
{
    struct rows_case k = case_of(s, false);
    char what[256], x[DNN_SHAPE_TEXT], w[DNN_SHAPE_TEXT];

    for (int i = 0; i < 2; i++)
        k.in_mem[i] = filled(&k.in[i], -1, 1, seed + (uint64_t)i);
    rows_ref(&k);
    struct rows_case full = case_of(s, bias);
    memcpy(full.in_mem, k.in_mem, sizeof k.in_mem);
    full.out_mem[0] = k.out_mem[0];
    if (bias) expect_bias(&full);
    snprintf(what, sizeof what, "%s: %s by %s%s", isa,
             dnn_shape_text(x, sizeof x, &k.in[0].shape),
             dnn_shape_text(w, sizeof w, &k.out[0].shape), bias ? ", bias" : "");
    rows_check(&full, &dnn_cpu_wino_weights, close_to, what);
}

/* Whether the kernel supports a shape, with this pitch of operand i. */
static bool takes(const struct shape *s, int i, int64_t pitch)
{
    struct rows_case k = case_of(s, false);
    const struct dnn_tensor *in[] = {&k.in[0], &k.in[1]}, *out[] = {&k.out[0]};
    int64_t pitches[2] = {0};

    pitches[i] = pitch;
    return dnn_cpu_can(
        &dnn_cpu_wino_weights,
        &(struct dnn_step){.op = &k.op, .in = in, .out = out, .in_pitch = pitches});
}

int main(void)
{
    static const char *const isas[] = {"plain", "avx2", "avx512"};

    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        setenv("DNN_ISA", isas[i], 1);
        if (strcmp(dnn_direct_isa(), isas[i]) != 0) {
            skip(isas[i], "not supported by this CPU");
            continue;
        }
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            check(&shapes[s], (i + s) % 2 == 0, s, isas[i]);
    }
    ok(takes(&shapes[0], 0, 9), "x may have a pitch");
    ok(!takes(&shapes[0], 1, 9), "dy may not");
    for (size_t s = 0; s < sizeof others / sizeof others[0]; s++)
        ok(!takes(&others[s], 0, 0), "other shape %zu is not supported", s + 1);
    return done();
}
