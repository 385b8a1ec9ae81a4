/* cpu_loss.c - the cpu backend's losses against the ref backend: odd numbers of
 * classes, labels and values, weights, rows with a pitch, one to three threads, the
 * same bits in two runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "ops/cpu_rows.h"

/* Settings of a loss. */
struct kind {
    const char *name;
    enum dnn_op_kind kind;
    union dnn_attr attr;
    bool weights, sums;
    double low, high; /* of x */
};

#define LOSS(...)                                                                      \
    {                                                                                  \
        .loss = {.scale = 0.25, __VA_ARGS__ }                                          \
    }
#define OVERLAP(...)                                                                   \
    {                                                                                  \
        .overlap = {.scale = 0.25, __VA_ARGS__ }                                       \
    }

/* clang-format off */
static const struct kind kinds[] = {
    {"xent", DNN_OP_XENT, LOSS(.gamma = 0), false, false, -5, 5},
    {"xent weighed", DNN_OP_XENT, LOSS(.smoothing = 0.125, .ignores = true, .ignore = 1), true, true, -5, 5},
    {"xent smoothed", DNN_OP_XENT, LOSS(.smoothing = 0.25), true, false, -5, 5},
    {"xent of log p", DNN_OP_XENT, LOSS(.raw = true), true, true, -5, 0},
    {"focal of classes", DNN_OP_XENT, LOSS(.gamma = 2), true, false, -5, 5},
    {"focal of classes, gamma 1.5", DNN_OP_XENT, LOSS(.gamma = 1.5), false, true, -5, 5},
    {"squared", DNN_OP_POINT, LOSS(.fn = DNN_POINT_SQUARED), false, false, -2, 2},
    {"absolute", DNN_OP_POINT, LOSS(.fn = DNN_POINT_ABSOLUTE), true, false, -2, 2},
    {"huber", DNN_OP_POINT, LOSS(.fn = DNN_POINT_HUBER, .delta = 0.75), false, false, -2, 2},
    {"hinge", DNN_OP_POINT, LOSS(.fn = DNN_POINT_HINGE), false, false, -2, 2},
    {"bce", DNN_OP_POINT, LOSS(.fn = DNN_POINT_BCE), true, false, 0.01, 0.99},
    {"bce logits", DNN_OP_POINT, LOSS(.fn = DNN_POINT_BCE_LOGITS, .ignores = true, .ignore = 0), true, true, -20, 20},
    {"focal", DNN_OP_POINT, LOSS(.fn = DNN_POINT_FOCAL, .gamma = 2, .alpha = 0.25), false, true, -5, 5},
    {"focal, gamma 0.5", DNN_OP_POINT, LOSS(.fn = DNN_POINT_FOCAL, .gamma = 0.5, .alpha = -1), false, false, -5, 5},
    {"kl", DNN_OP_POINT, LOSS(.fn = DNN_POINT_KL), false, false, -5, 0},
    {"mape", DNN_OP_POINT, LOSS(.fn = DNN_POINT_MAPE, .delta = 0.25), false, false, -2, 2},
    {"poisson of rates", DNN_OP_POINT, LOSS(.fn = DNN_POINT_POISSON, .delta = 1e-8), false, false, 0.1, 4},
    {"poisson of logarithms", DNN_OP_POINT, LOSS(.fn = DNN_POINT_POISSON, .raw = true), true, false, -2, 2},
    {"hinge embedding", DNN_OP_POINT, LOSS(.fn = DNN_POINT_HINGE_EMBEDDING, .delta = 0.75), false, false, -2, 2},
    {"soft margin", DNN_OP_POINT, LOSS(.fn = DNN_POINT_SOFT_MARGIN, .ignores = true, .ignore = 0), true, true, -20, 20},
    {"overlap, softmax", DNN_OP_OVERLAP, OVERLAP(.source = DNN_HEAD_SOFTMAX), false, false, -5, 5},
    {"overlap, sigmoid", DNN_OP_OVERLAP, OVERLAP(.source = DNN_HEAD_SIGMOID, .whole = true), false, false, -5, 5},
    {"overlap", DNN_OP_OVERLAP, OVERLAP(.ignores = true, .ignore = 1), false, false, 0, 1},
    {"lovasz, softmax", DNN_OP_LOVASZ, OVERLAP(.source = DNN_HEAD_SOFTMAX), false, false, -5, 5},
    {"lovasz, sigmoid", DNN_OP_LOVASZ, OVERLAP(.source = DNN_HEAD_SIGMOID, .ignores = true, .ignore = 1), false, false, -5, 5},
    {"lovasz hinge", DNN_OP_LOVASZ, OVERLAP(.source = DNN_HEAD_HINGE), false, false, -3, 3},
};
/* clang-format on */

enum { SAMPLES = 3 };

static const struct cpu_algo *way_of(enum dnn_op_kind kind, bool data)
{
    switch (kind) {
    case DNN_OP_OVERLAP:
        return data ? &dnn_cpu_overlap_data : &dnn_cpu_overlap;
    case DNN_OP_LOVASZ:
        return data ? &dnn_cpu_lovasz_data : &dnn_cpu_lovasz;
    default:
        return data ? &dnn_cpu_loss_data : &dnn_cpu_loss;
    }
}

static void *targets(struct dnn_tensor *t, int64_t rows, int64_t n, bool labels)
{
    *t = TENSOR(DNN_F32, SAMPLES, rows, n);
    if (!labels) return filled(t, 0, 1, 7);
    *t = TENSOR(DNN_I32, SAMPLES, rows);
    int32_t *label = dnn_alloc((size_t)(SAMPLES * rows) * sizeof *label + 64);
    for (int64_t i = 0; i < SAMPLES * rows; i++)
        label[i] = (int32_t)(i * 7 % (n + 3)) - 1; /* some are out of range */
    return label;
}

/* If the order matters: x without equal values, and without x and -x. */
static void *arguments(const struct kind *kind, const struct dnn_tensor *x)
{
    int64_t n = count_of(x), c = row_of(x), rows = n / c;

    if (kind->kind != DNN_OP_LOVASZ) return filled(x, kind->low, kind->high, 8);
    float *mem = dnn_alloc((size_t)n * sizeof *mem + 64);
    for (int64_t i = 0; i < n; i++) {
        int64_t place = i / c * 7919 % rows; /* rows are no multiple of it */
        double t = pow(((double)place + 0.5) / (double)rows, 1.37);

        mem[i] = (float)((kind->low + (kind->high - kind->low) * t) *
                         (i % c % 2 == 0 ? 1 : -0.6) / (1 + 0.37 * (double)(i % c)));
    }
    return mem;
}

static struct rows_case make(const struct kind *kind, int64_t rows, int64_t n,
                             bool labels, bool data)
{
    struct dnn_tensor x = TENSOR(DNN_F32, SAMPLES, rows, n), one = {.dtype = DNN_F64};
    bool whole = kind->kind == DNN_OP_OVERLAP && kind->attr.overlap.whole;
    struct dnn_tensor sums =
        TENSOR(DNN_F64, whole ? 1 : SAMPLES, n + (whole ? 1 : 0), 3);
    bool overlap = kind->kind == DNN_OP_OVERLAP;
    bool more = kind->kind == DNN_OP_XENT || kind->kind == DNN_OP_POINT;
    struct rows_case k = {
        .op = {.kind = kind->kind, .attr = kind->attr, .nin = more ? 4 : 2, .nout = 1},
    };
    int at = data ? 1 : 0;

    k.in[at] = x;
    k.in_mem[at] = arguments(kind, &x);
    k.in_mem[at + 1] = targets(&k.in[at + 1], rows, n, labels);
    k.in[at + 2] = TENSOR(DNN_F32, n);
    if (more && kind->weights) k.in_mem[at + 2] = filled(&k.in[at + 2], 0.25, 2, 9);
    k.in[at + 3] = TENSOR(DNN_F64, 2);
    if (more && kind->sums) k.in_mem[at + 3] = filled(&k.in[at + 3], 2, 9, 3);
    if (!data) {
        k.out[0] = overlap ? sums : one;
        k.out[1] = x;
        if (kind->kind == DNN_OP_LOVASZ) k.op.nout = 2;
        return k;
    }
    k.op.pass = DNN_BWD_DATA;
    k.op.nin++;
    k.in[0] = overlap ? sums : one;
    k.in_mem[0] = filled(&k.in[0], 0.25, 0.75, 4);
    k.out[0] = x;
    if (kind->kind == DNN_OP_LOVASZ) {
        k.op.nin = 4;
        k.in[3] = x;
        k.in_mem[3] = filled(&x, -1, 1, 5);
    }
    return k;
}

static void try(const struct kind *kind, int64_t n, bool labels)
{
    bool lovasz = kind->kind == DNN_OP_LOVASZ;
    int64_t rows = lovasz || n >= 20 ? 61 : 1403;

    if (kind->kind == DNN_OP_LOVASZ && kind->attr.overlap.source == DNN_HEAD_HINGE &&
        n > 1)
        return;
    for (int data = 0; data < 2; data++) {
        struct rows_case k = make(kind, rows, n, labels, data);
        char what[96];

        snprintf(what, sizeof what, "%s of %d classes, labels %d%s", kind->name, (int)n,
                 labels, data ? ", backward" : "");
        rows_ref(&k);
        rows_check(&k, way_of(kind->kind, data), 4e-6, what);
    }
}

static void weigh(int64_t n, bool weights)
{
    struct rows_case k = {
        .op = {.kind = DNN_OP_WEIGH,
               .attr.loss = {.classes = n, .ignores = true, .ignore = 1},
               .nin = 2,
               .nout = 1},
        .out = {TENSOR(DNN_F64, 2)}
    };
    char what[64];

    k.in_mem[0] = targets(&k.in[0], 14033, n, true);
    k.in[1] = TENSOR(DNN_F32, n);
    if (weights) k.in_mem[1] = filled(&k.in[1], 0.25, 2, 9);
    snprintf(what, sizeof what, "weigh %d classes, weights %d", (int)n, weights);
    rows_ref(&k);
    rows_check(&k, &dnn_cpu_weigh, 1e-12, what);
}

int main(void)
{
    static const int64_t counts[] = {1, 2, 3, 4, 5, 8, 10, 37};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            try(&kinds[i], counts[c], false);
            try(&kinds[i], counts[c], true);
        }
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        weigh(counts[c], false);
        weigh(counts[c], true);
    }
    return done();
}
