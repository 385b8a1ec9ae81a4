/* op_shapes.c - the shape rules, and padding "same" of Keras.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "op/op.h"
#include "tap.h"

enum { MAX_IN = 6 };

struct rule {
    enum dnn_op_kind kind;
    union dnn_attr attr;
    const char *in[MAX_IN]; /* "" is absent; NULL ends */
    const char *want;       /* "f32 2x3, u8 2x3" */
};

/* clang-format off */
#define WIN2(k, s, d, b, a, g) {.nspatial = 2, .kernel = {k, k}, .stride = {s, s}, .dilation = {d, d}, .before = {b, b}, .after = {a, a}, .groups = g}

static const struct rule rules[] = {
    {DNN_OP_MATMUL, {{0}}, {"2x3x4", "4x5"}, "f32 2x3x5"},
    {DNN_OP_BIAS, {{0}}, {"2x3x4", "4"}, "f32 2x3x4"},
    {DNN_OP_CONV, {.window = WIN2(3, 1, 1, 0, 0, 1)}, {"1x5x6x2", "3x3x2x8"}, "f32 1x3x4x8"},
    {DNN_OP_CONV, {.window = WIN2(3, 2, 1, 0, 1, 1)}, {"1x6x6x2", "3x3x2x8"}, "f32 1x3x3x8"},
    {DNN_OP_CONV, {.window = WIN2(3, 1, 2, 2, 2, 1)}, {"1x6x6x2", "3x3x2x8"}, "f32 1x6x6x8"},
    {DNN_OP_CONV, {.window = WIN2(3, 1, 1, 1, 1, 2)}, {"1x6x6x4", "3x3x2x8"}, "f32 1x6x6x8"},
    {DNN_OP_CONV, {.window = WIN2(3, 1, 1, 1, 1, 4)}, {"1x6x6x4", "3x3x4x2"}, "f32 1x6x6x8"},
    {DNN_OP_CONV, {.window = WIN2(3, 1, 1, 1, 1, 4)}, {"1x6x6x4", "3x3x1x8"}, "f32 1x6x6x8"},
    {DNN_OP_CONV, {.window = WIN2(3, 1, 1, 1, 1, 1)}, {"1x6x6x1", "3x3x1x8"}, "f32 1x6x6x8"},
    {DNN_OP_DECONV, {.window = WIN2(2, 2, 1, 0, 0, 1)}, {"1x3x4x8", "2x2x5x8"}, "f32 1x6x8x5"},
    {DNN_OP_DECONV, {.window = WIN2(1, 2, 1, 0, -1, 1)}, {"1x3x4x8", "1x1x5x8"}, "f32 1x6x8x5"},
    {DNN_OP_POOL, {.pool = {WIN2(2, 2, 1, 0, 1, 1), DNN_POOL_MAX, false}}, {"2x5x4x3"}, "f32 2x3x2x3"},
    {DNN_OP_POOL, {.pool = {WIN2(2, 2, 1, 0, 1, 1), DNN_POOL_MAX, true}}, {"2x5x5x3"}, "f32 2x3x3x3, u8 2x3x3x3"},
    {DNN_OP_POOL, {.pool = {WIN2(16, 16, 1, 0, 0, 1), DNN_POOL_MAX, true}}, {"2x16x16x3"}, "f32 2x1x1x3, u8 2x1x1x3"},
    {DNN_OP_POOL, {.pool = {WIN2(17, 17, 1, 0, 0, 1), DNN_POOL_MAX, true}}, {"2x17x17x3"}, "f32 2x1x1x3, u16 2x1x1x3"},
    {DNN_OP_POOL, {.pool = {WIN2(257, 257, 1, 0, 0, 1), DNN_POOL_MAX, true}}, {"2x257x257x3"}, "f32 2x1x1x3, i32 2x1x1x3"},
    {DNN_OP_POOL, {.pool = {WIN2(2, 2, 1, 0, 0, 1), DNN_POOL_AVERAGE, true}}, {"2x5x5x3"}, "f32 2x2x2x3"},
    {DNN_OP_UPSAMPLE, {.upsample = {2, {2, 3}, DNN_UP_LINEAR}}, {"2x5x4x3"}, "f32 2x10x12x3"},
    {DNN_OP_PAD, {.pad = {{0, 1, -2}, {0, 2, 0}}}, {"2x5x4"}, "f32 2x8x2"},
    {DNN_OP_UNARY, {{0}}, {"2x5x4"}, "f32 2x5x4"},
    {DNN_OP_PRELU, {{0}}, {"2x5x4", "1x4"}, "f32 2x5x4"},
    {DNN_OP_SOFTMAX, {{0}}, {"2x5x4"}, "f32 2x5x4"},
    {DNN_OP_COMBINE, {.combine = {DNN_MULTIPLY, 0, 0}}, {"2x1x4", "2x5x1", "4"}, "f32 2x5x4"},
    {DNN_OP_COMBINE, {.combine = {DNN_SUBTRACT, 0, 0}}, {"4", "2x5x1"}, "f32 2x5x4"},
    {DNN_OP_CONCAT, {.concat = {1, 0}}, {"2x1x4", "2x5x4", "2x2x4"}, "f32 2x8x4"},
    {DNN_OP_RESHAPE, {.reshape = {{2, {6, 4}}}}, {"2x3x4"}, "f32 6x4"},
    {DNN_OP_TRANSPOSE, {.transpose = {{0, 2, 1}}}, {"2x3x4"}, "f32 2x4x3"},
    {DNN_OP_REDUCE, {.reduce = {DNN_REDUCE_MAX, 6, false}}, {"2x3x4x5"}, "f32 2x5"},
    {DNN_OP_REDUCE, {.reduce = {DNN_REDUCE_MAX, 6, true}}, {"2x3x4x5"}, "f32 2x1x1x5"},
    {DNN_OP_REDUCE, {.reduce = {DNN_REDUCE_SUM, 3, false}}, {"2x3"}, "f32 scalar"},
    {DNN_OP_BN_STATS, {.batchnorm = {1, 0, 0, false}}, {"2x3x4"}, "f64 7"},
    {DNN_OP_EXCHANGE, {{0}}, {"7"}, "f32 7"},
    {DNN_OP_BN_UPDATE, {{0}}, {"7", "3", "3"}, ""},
    {DNN_OP_UNARY, {.unary = {.fn = DNN_RELU, .mask = true}}, {"3x5"}, "f32 3x5, u8 2"},
    {DNN_OP_FOLD, {.fold = {1e-3, 3, false}}, {"3x3x2x8", "", "8", "8", "", ""}, "f32 3x3x2x8, f32 8"},
    {DNN_OP_PENALTY, {.penalty = {0, 1}}, {"3x3x2x8"}, "f64 scalar"},
    {DNN_OP_UPDATE, {{0}}, {"8", "8", "8", "8"}, ""},
    {DNN_OP_BN_APPLY, {{0}}, {"2x3x4", "9", "", "4"}, "f32 2x3x4"},
    {DNN_OP_BN_INFER, {{0}}, {"2x3x4", "4", "4"}, "f32 2x3x4"},
    {DNN_OP_GROUPNORM, {.groupnorm = {6, 4, 2, 0, true}}, {"3x5x4", "", ""}, "f32 3x5x4, f32 2x6"},
    {DNN_OP_GROUPNORM, {.groupnorm = {4, 4, 1, 0, true}}, {"3x5x4", "4", "4"}, "f32 3x5x4, f32 2x15"},
    {DNN_OP_GROUPNORM, {.groupnorm = {4, 4, 1, 0, false}}, {"3x5x4", "4", "4"}, "f32 3x5x4"},
    {DNN_OP_NOISE, {{0}}, {"3x5"}, "f32 3x5"},
    {DNN_OP_SCALE, {{0}}, {"3x5", "5", ""}, "f32 3x5"},
    {DNN_OP_MSE, {{0}}, {"3x5", "3x5"}, "f64 scalar"},
    {DNN_OP_XENT, {{0}}, {"3x4x5", "3x4"}, "f64 scalar"},
    {DNN_OP_XENT, {{0}}, {"3x4x5", "3x4", "5", "2"}, "f64 scalar"},
    {DNN_OP_POINT, {{0}}, {"3x4x5", "3x4x5", "5", ""}, "f64 scalar"},
    {DNN_OP_MARGIN, {{0}}, {"3x4x6", "3x4"}, "f64 scalar"},
    {DNN_OP_WEIGH, {.loss = {.classes = 5}}, {"3x4", "5"}, "f64 2"},
    {DNN_OP_OVERLAP, {{0}}, {"3x4x6x5", "3x4x6"}, "f64 3x5x3"},
    {DNN_OP_OVERLAP, {.overlap = {.whole = true}}, {"3x4x6x5", "3x4x6x5"}, "f64 1x6x3"},
    {DNN_OP_RATIO, {{0}}, {"3x5x3", "3x5x3", "5"}, "f64 scalar"},
    {DNN_OP_LOVASZ, {{0}}, {"3x4x5", "3x4"}, "f64 scalar, f32 3x4x5"},
    {DNN_OP_ACTIVITY, {{0}}, {"3x5"}, "f32 3x5, f32 scalar"},
};
/* clang-format on */

static void try_rule(const struct rule *r)
{
    struct dnn_tensor is[MAX_IN] = {{0}}, out[DNN_MAX_OUT] = {{0}};
    const struct dnn_tensor *in[MAX_IN] = {NULL};
    const struct dnn_op_info *info = dnn_op_info(r->kind);
    char got[256] = "", text[DNN_SHAPE_TEXT], what[300];
    int nin = 0;

    for (; nin < MAX_IN && r->in[nin] != NULL; nin++) {
        if (r->in[nin][0] == '\0') continue;
        if (dnn_shape_parse(r->in[nin], &is[nin].shape, NULL) < 0)
            ok(false, "%s is not a shape", r->in[nin]);
        in[nin] = &is[nin];
    }
    int nout = info->shape(&r->attr, nin, in, out);
    for (int i = 0; i < nout; i++) {
        size_t len = strlen(got);
        snprintf(got + len, sizeof got - len, "%s%s %s", i == 0 ? "" : ", ",
                 dnn_dtype_name(out[i].dtype),
                 dnn_shape_text(text, sizeof text, &out[i].shape));
    }
    snprintf(what, sizeof what, "%s %s -> %s", info->name, r->in[0], r->want);
    is_text(got, r->want, what);
}

/* in, kernel, stride, dilation -> before, after; the output is ceil(in / stride). */
static const int64_t sames[][6] = {
    {5,   3, 1, 1, 1, 1},
    {5,   2, 1, 1, 0, 1},
    {5,   4, 1, 1, 1, 2},
    {4,   3, 2, 1, 0, 1},
    {5,   3, 2, 1, 1, 1},
    {5,   2, 2, 1, 0, 1},
    {5,   1, 2, 1, 0, 0},
    {5,   3, 1, 2, 2, 2},
    {4,   2, 1, 3, 1, 2},
    {6,   2, 3, 1, 0, 0},
    {7,   7, 2, 1, 3, 3},
    {224, 7, 2, 1, 2, 3},
};

static void same(void)
{
    for (size_t i = 0; i < sizeof sames / sizeof sames[0]; i++) {
        const int64_t *s = sames[i];
        int64_t before, after;
        dnn_op_same(s[0], s[1], s[2], s[3], &before, &after);
        ok(before == s[4] && after == s[5], "same: extent %d, kernel %d, stride %d",
           (int)s[0], (int)s[1], (int)s[2]);
        is_int(dnn_op_window_out(s[0], s[1], s[2], s[3], before, after),
               (s[0] + s[2] - 1) / s[2], "its output");
    }
    for (int64_t k = 1; k < 6; k++)
        for (int64_t s = 1; s < 4; s++)
            for (int64_t in = 1; in < 6; in++) {
                int64_t b, a, cb, ca;
                dnn_op_same_transposed(in, in * s, k, s, 1, &b, &a);
                dnn_op_same(in * s, k, s, 1, &cb, &ca);
                /* The padding of the corresponding convolution. */
                if (dnn_op_transposed_out(in, k, s, 1, b, a) != in * s || b != cb)
                    ok(false, "same transposed: extent %d, kernel %d, stride %d",
                       (int)in, (int)k, (int)s);
            }
    is_int(dnn_op_window_out(2, 3, 1, 1, 0, 0), 0, "a window that does not fit");
}

static void broadcast(const char *a, const char *b, const char *want)
{
    struct dnn_shape x = {0}, y = {0}, out = {0};
    char text[DNN_SHAPE_TEXT];

    dnn_shape_parse(a, &x, NULL);
    dnn_shape_parse(b, &y, NULL);
    bool fits = dnn_op_broadcast(&x, &y, &out);
    is_text(fits ? dnn_shape_text(text, sizeof text, &out) : NULL, want, "broadcast");
}

int main(void)
{
    bool tried[DNN_OP_KINDS] = {false};

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        try_rule(&rules[i]);
        tried[rules[i].kind] = true;
    }
    for (int k = 0; k < DNN_OP_KINDS; k++)
        ok(tried[k], "%s has a case", dnn_op_info(k)->name);
    for (int f = 0; f < DNN_UNARIES; f++)
        ok(dnn_op_unary_name(f) != NULL, "function %d has a name", f);
    same();
    broadcast("2x3", "2x3", "2x3");
    broadcast("2x1", "1x3", "2x3");
    broadcast("3", "2x1", "2x3");
    broadcast("2x3", "2", NULL);
    broadcast("1x2", "3x3", NULL);
    return done();
}
