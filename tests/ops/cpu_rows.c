/* cpu_rows.c - batch norm and element-wise functions of the cpu backend against the ref
 * backend: odd shapes, rows with a pitch, in place, one to three threads, the same bits
 * in two runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "ops/cpu_rows.h"

/* dy times u's slope where the argument is v; freed by the caller. */
static void *slope(const struct dnn_op_unary *u, const struct dnn_tensor *t,
                   const void *dy, const void *v)
{
    struct rows_case k = {
        .op = {.kind = DNN_OP_UNARY,
               .pass = DNN_BWD_DATA,
               .attr.unary = *u,
               .nin = 2,
               .nout = 1},
        .in = {*t, *t},
        .out = {*t}
    };
    size_t bytes = (size_t)count_of(t) * sizeof(float);

    k.in_mem[0] = filled(t, 0, 0, 0);
    memcpy(k.in_mem[0], dy, bytes);
    k.in_mem[1] = filled(t, 0, 0, 0);
    memcpy(k.in_mem[1], v, bytes);
    if (dnn_op_unary_by_result(u)) apply(u, t, k.in_mem[1]);
    rows_ref(&k);
    void *out = k.out_mem[0];
    k.out_mem[0] = NULL;
    rows_free(&k);
    return out;
}

static void *copy_of(const struct dnn_tensor *t, const void *mem)
{
    void *out = filled(t, 0, 0, 0);

    memcpy(out, mem, (size_t)count_of(t) * dnn_dtype_size(t->dtype));
    return out;
}

/* ---- batch norm ---- */

static struct rows_case norm(enum dnn_op_kind kind, enum dnn_pass pass,
                             const struct dnn_op_unary *post)
{
    return (struct rows_case){
        .op = {.kind = kind,
               .pass = pass,
               .attr.batchnorm = {.axis = 2, .epsilon = 1e-3},
               .post = post}
    };
}

/* sums of x, by ref. */
static void *sums_of(const struct dnn_tensor *x, const void *mem)
{
    struct rows_case k = norm(DNN_OP_BN_STATS, DNN_FWD, NULL);

    k.op.nin = k.op.nout = 1;
    k.in[0] = *x;
    k.in_mem[0] = copy_of(x, mem);
    k.out[0] = TENSOR(DNN_F64, 2 * row_of(x) + 1);
    rows_ref(&k);
    void *out = k.out_mem[0];
    k.out_mem[0] = NULL;
    rows_free(&k);
    return out;
}

static void bn_stats(int64_t rows, int64_t c, double mean)
{
    struct rows_case k = norm(DNN_OP_BN_STATS, DNN_FWD, NULL);
    char what[100];

    k.op.nin = k.op.nout = 1;
    k.in[0] = TENSOR(DNN_F32, 1, rows, c);
    k.in_mem[0] = filled(&k.in[0], mean - 2, mean + 1, 1);
    k.out[0] = TENSOR(DNN_F64, 2 * c + 1);
    rows_ref(&k);
    snprintf(what, sizeof what, "bn_stats %dx%d, mean %g", (int)rows, (int)c, mean);
    rows_check(&k, &dnn_cpu_bn_stats, 1e-13, what);
}

static struct rows_case bn_forward(int64_t rows, int64_t c, double mean, bool affine)
{
    struct rows_case k = norm(DNN_OP_BN_APPLY, DNN_FWD, NULL);

    k.op.nin = 4;
    k.op.nout = 1;
    k.in[0] = k.out[0] = TENSOR(DNN_F32, 1, rows, c);
    k.in[1] = TENSOR(DNN_F64, 2 * c + 1);
    k.in[2] = k.in[3] = TENSOR(DNN_F32, c);
    k.in_mem[0] = filled(&k.in[0], mean - 2, mean + 1, 1);
    k.in_mem[1] = sums_of(&k.in[0], k.in_mem[0]);
    if (affine) {
        k.in_mem[2] = filled(&k.in[2], 0.5, 2, 2);
        k.in_mem[3] = filled(&k.in[3], -1, 1, 3);
    }
    rows_ref(&k);
    return k;
}

static void bn_apply(int64_t rows, int64_t c, double mean, bool affine,
                     const struct dnn_op_unary *post)
{
    struct rows_case k = bn_forward(rows, c, mean, affine);
    char what[100];

    k.op.post = post;
    if (post != NULL) apply(post, &k.out[0], k.out_mem[0]);
    snprintf(what, sizeof what, "bn_apply %dx%d%s, post %s, mean %g", (int)rows, (int)c,
             affine ? " affine" : "", post == NULL ? "-" : dnn_op_unary_name(post->fn),
             mean);
    rows_check(&k, &dnn_cpu_bn_apply, 2e-6, what);
}

static void bn_infer(int64_t rows, int64_t c, bool affine,
                     const struct dnn_op_unary *post)
{
    struct rows_case k = norm(DNN_OP_BN_INFER, DNN_FWD, post);
    char what[100];

    k.op.nin = 5;
    k.op.nout = 1;
    k.in[0] = k.out[0] = TENSOR(DNN_F32, 1, rows, c);
    for (int i = 1; i < 5; i++) {
        k.in[i] = TENSOR(DNN_F32, c);
        if (i < 3 || affine) k.in_mem[i] = filled(&k.in[i], 0.5, 2, (uint64_t)i);
    }
    k.in_mem[0] = filled(&k.in[0], -2, 3, 9);
    rows_ref(&k);
    if (post != NULL) apply(post, &k.out[0], k.out_mem[0]);
    snprintf(what, sizeof what, "bn_infer %dx%d%s, post %s", (int)rows, (int)c,
             affine ? " affine" : "", post == NULL ? "-" : dnn_op_unary_name(post->fn));
    rows_check(&k, &dnn_cpu_bn_infer, 2e-6, what);
}

/* The gradient through moving averages, and dgamma and dbeta from their sums. */
static void bn_small(int64_t rows, int64_t c, bool affine)
{
    struct rows_case k = norm(DNN_OP_BN_INFER, DNN_BWD_DATA, NULL);
    struct rows_case w = norm(DNN_OP_BN_APPLY, DNN_BWD_WEIGHTS, NULL);
    char what[100];

    k.op.nin = 3;
    k.op.nout = 1;
    k.in[0] = k.out[0] = TENSOR(DNN_F32, 1, rows, c);
    k.in_mem[0] = filled(&k.in[0], -2, 3, 9);
    k.in[1] = k.in[2] = TENSOR(DNN_F32, c);
    k.in_mem[1] = filled(&k.in[1], 0.5, 2, 1);
    if (affine) k.in_mem[2] = filled(&k.in[2], 0.5, 2, 2);
    rows_ref(&k);
    snprintf(what, sizeof what, "bn_infer backward data %dx%d%s", (int)rows, (int)c,
             affine ? " affine" : "");
    rows_check(&k, &dnn_cpu_bn_infer_data, 1e-6, what);
    w.op.nin = 1;
    w.op.nout = 2;
    w.in[0] = TENSOR(DNN_F64, 2 * c);
    w.in_mem[0] = filled(&w.in[0], -2, 3, 5);
    w.out[0] = w.out[1] = TENSOR(DNN_F32, c);
    rows_ref(&w);
    snprintf(what, sizeof what, "bn_apply backward weights %d", (int)c);
    rows_check(&w, &dnn_cpu_bn_apply_weights, 1e-7, what);
}

/* Moving averages are updated in place, as by ref. */
static void bn_update(bool unbiased)
{
    enum { C = 5 };
    double sums[2 * C + 1] = {1, 2, 3, 4, 5, 10, 20, 30, 40, 50, 7};
    float state[2][2][C] = {
        {{0, 1, 2, 3, 4}, {5, 6, 7, 8, 9}}
    };
    const struct dnn_tensor is = TENSOR(DNN_F64, 2 * C + 1), of = TENSOR(DNN_F32, C);
    const struct dnn_tensor *const in[] = {&is, &of, &of};
    const struct dnn_op op = {
        .kind = DNN_OP_BN_UPDATE,
        .attr.batchnorm = {.momentum = 0.9, .unbiased = unbiased},
        .nin = 3
    };
    struct dnn_dev *dev;
    struct dnn_kernel *kernel = NULL;

    memcpy(state[1], state[0], sizeof state[0]);
    struct dnn_step step = {
        .op = &op, .in = in, .in_mem = (void *[]){sums, state[0][0], state[0][1]}
    };
    dnn_backend_ref.open(&(struct dnn_device){0}, &dev, NULL);
    dnn_backend_ref.prepare(dev, &step, &kernel, NULL);
    dnn_backend_ref.run(dev, kernel, &(struct dnn_now){0}, NULL);
    dnn_backend_ref.discard(dev, kernel);
    dnn_backend_ref.close(dev);
    struct cpu_array mine[] = {dnn_cpu_array(&is, sums, 0),
                               dnn_cpu_array(&of, state[1][0], 0),
                               dnn_cpu_array(&of, state[1][1], 0)};
    dnn_cpu_bn_update.fn(&(struct cpu_call){.op = &op, .in = mine, .threads = 1});
    double far = 0;
    for (int i = 0; i < C; i++)
        for (int j = 0; j < 2; j++)
            far = fmax(far, fabs((double)state[0][j][i] - (double)state[1][j][i]));
    ok(far < 1e-6, "bn_update%s", unbiased ? ", unbiased" : "");
}

/* Backward statistics and data: with a fused activation, ref gets dy times its slope.
 */
static void bn_backward(int64_t rows, int64_t c, bool affine,
                        const struct dnn_op_unary *post)
{
    struct rows_case f = bn_forward(rows, c, 0.5, affine);
    struct rows_case s = norm(DNN_OP_BN_APPLY, DNN_BWD_STATS, post);
    struct rows_case d = norm(DNN_OP_BN_APPLY, DNN_BWD_DATA, post);
    struct dnn_tensor x = f.in[0], dsums = TENSOR(DNN_F64, 2 * c);
    void *dy = filled(&x, -1, 2, 11), *inner = copy_of(&x, dy);
    char what[100];

    if (post != NULL) {
        dnn_free(inner);
        inner = slope(post, &x, dy, f.out_mem[0]);
    }
    s.op.nin = post == NULL ? 3 : 5;
    s.op.nout = d.op.nout = 1;
    d.op.nin = post == NULL ? 5 : 6;
    s.in[0] = s.in[1] = d.in[0] = d.in[1] = d.out[0] = x;
    s.in[2] = d.in[2] = f.in[1];
    s.in[3] = s.in[4] = d.in[4] = d.in[5] = f.in[2];
    s.out[0] = d.in[3] = dsums;
    s.in_mem[0] = inner;
    s.in_mem[1] = copy_of(&x, f.in_mem[0]);
    s.in_mem[2] = copy_of(&f.in[1], f.in_mem[1]);
    d.in_mem[0] = copy_of(&x, inner);
    d.in_mem[1] = copy_of(&x, f.in_mem[0]);
    d.in_mem[2] = copy_of(&f.in[1], f.in_mem[1]);
    for (int i = 0; affine && i < 2; i++) {
        if (post != NULL) s.in_mem[3 + i] = copy_of(&f.in[2], f.in_mem[2 + i]);
        if (post != NULL || i == 0)
            d.in_mem[4 + i] = copy_of(&f.in[2], f.in_mem[2 + i]);
    }
    rows_ref(&s);
    d.in_mem[3] = copy_of(&dsums, s.out_mem[0]);
    rows_ref(&d);
    memcpy(s.in_mem[0], dy, (size_t)count_of(&x) * sizeof(float));
    memcpy(d.in_mem[0], dy, (size_t)count_of(&x) * sizeof(float));
    snprintf(what, sizeof what, "%dx%d%s, post %s", (int)rows, (int)c,
             affine ? " affine" : "", post == NULL ? "-" : dnn_op_unary_name(post->fn));
    char both[2][130];
    snprintf(both[0], sizeof both[0], "bn_apply backward statistics %s", what);
    snprintf(both[1], sizeof both[1], "bn_apply backward data %s", what);
    rows_check(&s, &dnn_cpu_bn_apply_stats, 2e-6, both[0]);
    d.size = rows <= 2 ? 30 : 1; /* 1 / deviation */
    rows_check(&d, &dnn_cpu_bn_apply_data, 3e-6, both[1]);
    dnn_free(dy);
    rows_free(&f);
}

static void batchnorm(void)
{
    static const int64_t rows[] = {1, 2, 19, 37, 700};
    static const int64_t c[] = {1, 2, 3, 5, 8, 16, 17, 33, 130};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t j = 0; j < sizeof c / sizeof c[0]; j++) {
            size_t p = (i * 10 + j) % 6;

            bn_stats(rows[i], c[j], 0.5);
            bn_apply(rows[i], c[j], 0.5, p % 2, posts[p]);
            bn_apply(rows[i], c[j], 0.5, true, posts[(p + 1) % 6]);
            bn_infer(rows[i], c[j], p % 2 == 0, posts[p]);
            bn_small(rows[i], c[j], p % 2 == 0);
            bn_backward(rows[i], c[j], true, NULL);
            bn_backward(rows[i], c[j], p % 2 == 0, &relu);
            bn_backward(rows[i], c[j], p % 2 == 1, posts[p]);
        }
    bn_update(false);
    bn_update(true);
    bn_stats(9000, 3, 100);
    bn_apply(9000, 3, 100, true, &relu);
}

/* ---- functions of one element ---- */

static struct rows_case unary_case(const struct dnn_op_unary *u, enum dnn_pass pass,
                                   int64_t rows, int64_t c)
{
    struct rows_case k = {
        .op = {.kind = DNN_OP_UNARY, .pass = pass, .attr.unary = *u, .nout = 1}
    };
    bool root = u->fn == DNN_LOG || u->fn == DNN_SQRT || u->fn == DNN_RECIPROCAL;

    k.op.nin = pass == DNN_FWD ? 1 : 2;
    for (int i = 0; i < k.op.nin; i++) {
        k.in[i] = TENSOR(DNN_F32, 1, rows, c);
        k.in_mem[i] = filled(&k.in[i], root ? 0.01 : -7, 7, 5 + (uint64_t)i);
    }
    k.out[0] = k.in[0];
    if (pass == DNN_BWD_DATA && dnn_op_unary_by_result(u))
        apply(u, &k.in[1], k.in_mem[1]);
    rows_ref(&k);
    return k;
}

static void unary(const struct dnn_op_unary *u, int64_t rows, int64_t c)
{
    for (int pass = DNN_FWD; pass <= DNN_BWD_DATA; pass++) {
        struct rows_case k = unary_case(u, (enum dnn_pass)pass, rows, c);
        char what[100];

        snprintf(what, sizeof what, "%s %s, alpha %g, %dx%d", dnn_op_unary_name(u->fn),
                 dnn_op_pass_name((enum dnn_pass)pass), u->alpha, (int)rows, (int)c);
        rows_check(&k, pass == DNN_FWD ? &dnn_cpu_unary : &dnn_cpu_unary_data, 1e-6,
                   what);
    }
}

/* The function and its mask; then the gradient from the mask. */
static void masks(double alpha, int64_t rows, int64_t c)
{
    struct dnn_op_unary u = {.fn = DNN_RELU, .alpha = alpha, .max_value = INFINITY};
    struct rows_case k = unary_case(&u, DNN_FWD, rows, c);
    struct rows_case b = unary_case(&u, DNN_BWD_DATA, rows, c);
    struct dnn_tensor bits = TENSOR(DNN_U8, (rows * c + 7) / 8);
    uint8_t *mask = filled(&bits, 0, 0, 0);
    const float *x = k.in_mem[0];
    char what[100];

    k.op.attr.unary.mask = b.op.attr.unary.mask = true;
    k.op.nout = 2;
    k.out[1] = b.in[1] = bits;
    for (int64_t i = 0; i < rows * c; i++)
        if (x[i] > 0) mask[i / 8] |= (uint8_t)(1 << i % 8);
    k.out_mem[1] = mask;
    /* In the other case the mask is of y, which has the same sign. */
    uint8_t *other = filled(&bits, 0, 0, 0);
    x = b.in_mem[1];
    for (int64_t i = 0; i < rows * c; i++)
        if (x[i] > 0) other[i / 8] |= (uint8_t)(1 << i % 8);
    dnn_free(b.in_mem[1]);
    b.in_mem[1] = other;
    snprintf(what, sizeof what, "relu with a mask, alpha %g, %dx%d", alpha, (int)rows,
             (int)c);
    rows_check(&k, &dnn_cpu_unary, 1e-7, what);
    snprintf(what, sizeof what, "relu backward from a mask, alpha %g, %dx%d", alpha,
             (int)rows, (int)c);
    rows_check(&b, &dnn_cpu_unary_data, 1e-7, what);
}

static void unaries(void)
{
    static const struct dnn_op_unary more[] = {
        {.fn = DNN_RELU, .alpha = 0.1, .max_value = 3, .threshold = 0.5},
        {.fn = DNN_RELU, .alpha = 0.1, .max_value = 3},
        {.fn = DNN_RELU, .max_value = INFINITY},
        {.fn = DNN_ELU, .alpha = -0.5},
        {.fn = DNN_HARD_SIGMOID, .alpha = -0.2},
    };

    for (int fn = 0; fn < DNN_UNARIES; fn++) {
        struct dnn_op_unary u = {
            .fn = (enum dnn_unary)fn, .alpha = 0.2, .max_value = INFINITY};

        unary(&u, 19, 17);
        unary(&u, 1, 3);
        unary(&u, 600, 33);
    }
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
        unary(&more[i], 37, 5);
    masks(0, 37, 16);
    masks(0.3, 37, 17);
    masks(0, 5, 3);
    masks(0.3, 700, 33);
}

static void all(void)
{
    batchnorm();
    unaries();
}

int main(void)
{
    all();
    printf("# in plain C\n");
    setenv("DNN_ISA", "plain", 1);
    all();
    return done();
}
