/* values.c - the result of each op, from formulas independent of the code: gradients
 * may agree with finite differences of a function that is itself wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "ops/compare.h"
#include "tap.h"

#include <math.h>

enum { MAX = 24, MAX_IN = 6 };

static struct dnn_shape shape(const char *text)
{
    struct dnn_shape s = {0};

    if (dnn_shape_parse(text, &s, NULL) < 0) ok(false, "%s is not a shape", text);
    return s;
}

static void same(const char *name, const double *got, const double *want, int64_t n)
{
    double a[MAX], b[MAX];

    for (int64_t i = 0; i < n; i++) {
        /* NaN is equal to an expected NaN. */
        bool both = got[i] != got[i] && want[i] != want[i];
        a[i] = both ? 0 : got[i];
        b[i] = both ? 0 : want[i];
    }
    struct ops_diff d = ops_compare(a, b, n);
    if (!ok(d.worst <= 1e-14, "%s", name))
        printf("#   element %lld: got %.17g, want %.17g; norms: difference %.3g, "
               "wanted %.3g\n",
               (long long)d.at, d.got, d.want, d.l2, d.norm);
}

/* ---- functions of one element, at -0.7 and 1.3 ---- */

static const struct {
    struct dnn_op_unary unary;
    double y[2];
} functions[] = {
    {{DNN_RELU, 0.1, INFINITY, 0, false},  {-0.06999999999999999, 1.3}               },
    {{DNN_RELU, 0.1, 1, 0.5, false},       {-0.12, 1}                                },
    {{DNN_ELU, 2, 0, 0, false},            {-1.006829392417181, 1.3}                 },
    {{DNN_SELU, 0, 0, 0, false},           {-0.8850530455772052, 1.3659112835621245} },
    {{DNN_GELU, 0, 0, 0, false},           {-0.16937455655615113, 1.1741593700387067}},
    {{DNN_GELU_TANH, 0, 0, 0, false},      {-0.16942986529488321, 1.1739290123173094}},
    {{DNN_SIGMOID, 0, 0, 0, false},        {0.3318122278318339, 0.7858349830425586}  },
    {{DNN_TANH, 0, 0, 0, false},           {-0.6043677771171636, 0.8617231593133063} },
    {{DNN_SOFTPLUS, 0, 0, 0, false},       {0.40318604888545784, 1.5410084538329922} },
    {{DNN_SOFTSIGN, 0, 0, 0, false},       {-0.4117647058823529, 0.5652173913043479} },
    {{DNN_HARD_SIGMOID, 0.2, 0, 0, false}, {0.36, 0.76}                              },
    {{DNN_HARD_SWISH, 0, 0, 0, false},     {-0.2683333333333333, 0.9316666666666666} },
    {{DNN_SWISH, 0, 0, 0, false},          {-0.2322685594822837, 1.0215854779553262} },
    {{DNN_MISH, 0, 0, 0, false},           {-0.2678702347955009, 1.185976571527536}  },
    {{DNN_LOG_SIGMOID, 0, 0, 0, false},    {-1.103186048885458, -0.24100845383299221}},
    {{DNN_EXP, 0, 0, 0, false},            {0.4965853037914095, 3.6692966676192444}  },
    {{DNN_LOG, 0, 0, 0, false},            {NAN, 0.26236426446749106}                },
    {{DNN_SQUARE, 0, 0, 0, false},         {0.48999999999999994, 1.6900000000000002} },
    {{DNN_SQRT, 0, 0, 0, false},           {NAN, 1.140175425099138}                  },
    {{DNN_ABS, 0, 0, 0, false},            {0.7, 1.3}                                },
    {{DNN_NEGATE, 0, 0, 0, false},         {0.7, -1.3}                               },
};

/* One op on its operands; y, and if dx is not NULL the gradient of the
 * first where that of y is dy. */
struct one {
    const char *name;
    enum dnn_op_kind kind;
    union dnn_attr attr;
    struct {
        const char *shape; /* NULL: none, "": absent */
        double data[MAX];
    } in[MAX_IN];
    double y[MAX];
    bool backward;
    double dy[MAX], dx[MAX];
};

static void run_one(const struct one *o)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F64, true);
    const struct dnn_backend *ref = dnn_backend_find("ref", NULL);
    struct ops_run run;
    double got[MAX];
    int in[MAX_IN], n = 0;

    for (; n < MAX_IN && o->in[n].shape != NULL; n++) {
        in[n] = DNN_NONE;
        if (o->in[n].shape[0] == '\0') continue;
        struct dnn_shape s = shape(o->in[n].shape);
        in[n] = dnn_prog_input(prog, NULL, DNN_F64, &s);
    }
    int y = dnn_prog_op(prog, o->kind, &o->attr, n, in);
    int dy = dnn_prog_input(prog, "dy", DNN_F64, dnn_prog_shape(prog, y));
    dnn_grad(prog, 1, &(struct dnn_grad_of){y, dy}, true);
    if (ops_start(prog, ref, NULL, &run, NULL) == 0) {
        for (int i = 0; i < n; i++)
            if (in[i] != DNN_NONE) ops_put(&run, in[i], o->in[i].data);
        ops_put(&run, dy, o->dy);
        ops_go(&run, 0, prog->nops, NULL);
        ops_get(&run, y, got);
        same(o->name, got, o->y, ops_count(prog, y));
        if (o->backward) {
            ops_get(&run, prog->value[in[0]].grad, got);
            same("and its gradient", got, o->dx, ops_count(prog, in[0]));
        }
        ops_stop(&run);
    } else {
        ok(false, "%s: does not start", o->name);
    }
    dnn_prog_free(prog);
}

/* clang-format off */
#define SPACE1(k, s) {.nspatial = 1, .kernel = {k}, .stride = {s}, .dilation = {1}, .groups = 1}

static const struct one ones[] = {
    {"matmul", DNN_OP_MATMUL, {{0}}, {{"2x2", {1, 2, 3, 4}}, {"2x3", {1, 10, 100, 2, 20, 200}}}, {5, 50, 500, 11, 110, 1100}, true, {1, 0, 0, 0, 1, 0}, {1, 2, 10, 20}},
    {"bias", DNN_OP_BIAS, {{0}}, {{"2x2", {1, 2, 3, 4}}, {"2", {10, 20}}}, {11, 22, 13, 24}, false, {0}, {0}},
    {"prelu", DNN_OP_PRELU, {{0}}, {{"2x2", {-1, 2, -3, -4}}, {"2", {0.5, 0.25}}}, {-0.5, 2, -1.5, -1}, true, {1, 1, 1, 1}, {0.5, 1, 0.5, 0.25}},
    {"softmax along axis 1 of 3", DNN_OP_SOFTMAX, {.softmax = {1, false}}, {{"1x2x2", {0, 1000, M_LN2, 1000}}}, {1 / 3.0, 0.5, 2 / 3.0, 0.5}, false, {0}, {0}},
    {"log softmax", DNN_OP_SOFTMAX, {.softmax = {1, true}}, {{"1x2", {-1000, 1000}}}, {-2000, 0}, false, {0}, {0}},
    {"max pool: the first of equals", DNN_OP_POOL, {.pool = {SPACE1(3, 3), DNN_POOL_MAX, false}}, {{"1x6x1", {1, 2, 2, 5, 5, 5}}}, {2, 5}, true, {7, 9}, {0, 7, 0, 9, 0, 0}},
    {"max pool: NaN is kept", DNN_OP_POOL, {.pool = {SPACE1(3, 3), DNN_POOL_MAX, false}}, {{"1x6x1", {1, NAN, 2, NAN, 5, 5}}}, {NAN, NAN}, true, {7, 9}, {0, 7, 0, 9, 0, 0}},
    {"max pool: windows that overlap", DNN_OP_POOL, {.pool = {SPACE1(2, 1), DNN_POOL_MAX, false}}, {{"1x3x1", {1, 4, 2}}}, {4, 4}, true, {7, 9}, {0, 16, 0}},
    {"maximum: the first of equals", DNN_OP_COMBINE, {.combine = {DNN_MAXIMUM, 0, 0}}, {{"3", {1, 2, 3}}, {"3", {3, 2, 1}}}, {3, 2, 3}, true, {1, 1, 1}, {0, 1, 1}},
    {"minimum: the first of equals", DNN_OP_COMBINE, {.combine = {DNN_MINIMUM, 0, 0}}, {{"3", {1, 2, 3}}, {"3", {3, 2, 1}}}, {1, 2, 1}, true, {1, 1, 1}, {1, 1, 0}},
    {"subtract, broadcast", DNN_OP_COMBINE, {.combine = {DNN_SUBTRACT, 0, 0}}, {{"1x2", {1, 2}}, {"2x1", {10, 20}}}, {-9, -8, -19, -18}, true, {1, 2, 3, 4}, {4, 6}},
    {"average", DNN_OP_COMBINE, {.combine = {DNN_AVERAGE, 0, 0}}, {{"2", {1, 2}}, {"2", {2, 4}}, {"2", {6, 9}}}, {3, 5}, true, {3, 6}, {1, 2}},
    {"multiply", DNN_OP_COMBINE, {.combine = {DNN_MULTIPLY, 0, 0}}, {{"2", {1, 2}}, {"2", {2, 4}}, {"1", {6}}}, {12, 48}, true, {1, 1}, {12, 24}},
    {"reduce max: equal values share the gradient", DNN_OP_REDUCE, {.reduce = {DNN_REDUCE_MAX, 2, false}}, {{"2x3", {1, 4, 4, 7, 5, 6}}}, {4, 7}, true, {8, 9}, {0, 4, 4, 9, 0, 0}},
    {"reduce mean over the first and last", DNN_OP_REDUCE, {.reduce = {DNN_REDUCE_MEAN, 5, true}}, {{"2x2x2", {1, 2, 3, 4, 5, 6, 7, 8}}}, {3.5, 5.5}, true, {4, 8}, {1, 1, 2, 2, 1, 1, 2, 2}},
    {"concat", DNN_OP_CONCAT, {.concat = {1, 0}}, {{"2x1", {1, 2}}, {"2x2", {3, 4, 5, 6}}}, {1, 3, 4, 2, 5, 6}, true, {1, 2, 3, 4, 5, 6}, {1, 4}},
    {"transpose", DNN_OP_TRANSPOSE, {.transpose = {{2, 0, 1}}}, {{"1x2x3", {1, 2, 3, 4, 5, 6}}}, {1, 4, 2, 5, 3, 6}, true, {1, 2, 3, 4, 5, 6}, {1, 3, 5, 2, 4, 6}},
    {"pad and crop", DNN_OP_PAD, {.pad = {{0, 1}, {1, -1}}}, {{"1x3", {1, 2, 3}}}, {0, 1, 2, 0, 0, 0}, true, {1, 2, 3, 4, 5, 6}, {2, 3, 0}},
    {"nearest in 2d", DNN_OP_UPSAMPLE, {.upsample = {2, {1, 2}, DNN_UP_NEAREST}}, {{"1x2x2x1", {1, 2, 3, 4}}}, {1, 1, 2, 2, 3, 3, 4, 4}, true, {1, 2, 3, 4, 5, 6, 7, 8}, {3, 7, 11, 15}},
    {"linear in 2d", DNN_OP_UPSAMPLE, {.upsample = {2, {2, 2}, DNN_UP_LINEAR}}, {{"1x2x2x1", {0, 4, 16, 20}}}, {0, 1, 3, 4, 4, 5, 7, 8, 12, 13, 15, 16, 16, 17, 19, 20}, false, {0}, {0}},
    {"depthwise, two per channel", DNN_OP_CONV, {.window = {1, {1}, {1}, {1}, {0}, {0}, 2}}, {{"1x2x2", {1, 2, 3, 4}}, {"1x2x2", {1, 10, 100, 1000}}}, {1, 10, 200, 2000, 3, 30, 400, 4000}, false, {0}, {0}},
    {"two groups", DNN_OP_CONV, {.window = {1, {1}, {1}, {1}, {0}, {0}, 2}}, {{"1x1x4", {1, 2, 3, 4}}, {"1x2x2", {1, 10, 100, 1000}}}, {201, 4030}, true, {1, 2}, {1, 100, 20, 2000}},
    {"layer norm", DNN_OP_GROUPNORM, {.groupnorm = {2, 2, 1, 0, false}}, {{"2x2", {1, 3, 2, 10}}, {"2", {1, 2}}, {"2", {10, 20}}}, {9, 22, 9, 22}, false, {0}, {0}},
    {"group norm", DNN_OP_GROUPNORM, {.groupnorm = {2, 2, 2, 0, false}}, {{"1x4", {1, 3, 10, 2}}, {"", {0}}, {"4", {0, 0, 5, 5}}}, {-1, 1, 6, 4}, false, {0}, {0}},
    {"instance norm", DNN_OP_GROUPNORM, {.groupnorm = {6, 4, 2, 0, false}}, {{"1x2x2", {1, 30, 3, 10}}, {"2", {1, 3}}, {"", {0}}}, {-1, 3, 1, -3}, false, {0}, {0}},
    {"matmul and bias", DNN_OP_MATMUL, {{0}}, {{"2x2", {1, 2, 3, 4}}, {"2x1", {1, 10}}, {"1", {100}}}, {121, 143}, true, {1, 2}, {1, 10, 2, 20}},
    {"conv and bias", DNN_OP_CONV, {.window = SPACE1(2, 1)}, {{"1x3x1", {1, 2, 3}}, {"2x1x1", {1, 10}}, {"1", {100}}}, {121, 132}, true, {1, 2}, {1, 12, 20}},
    {"deconv and bias", DNN_OP_DECONV, {.window = SPACE1(2, 2)}, {{"1x2x1", {1, 2}}, {"2x1x1", {1, 10}}, {"1", {100}}}, {101, 110, 102, 120}, true, {1, 2, 3, 4}, {21, 43}},
    {"relu with a mask", DNN_OP_UNARY, {.unary = {DNN_RELU, 0.5, INFINITY, 0, true}}, {{"10", {-1, 2, 0, -4, 5, 6, 7, -8, -9, 1}}}, {-0.5, 2, 0, -2, 5, 6, 7, -4, -4.5, 1}, true, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {0.5, 1, 0.5, 0.5, 1, 1, 1, 0.5, 0.5, 1}},
    /* variances 4 - epsilon 1 and 16 - 1: divided by 2 and 4 */
    {"fold", DNN_OP_FOLD, {.fold = {1, 1, false}}, {{"2x2", {1, 2, 3, 4}}, {"2", {7, 8}}, {"2", {1, 4}}, {"2", {3, 15}}, {"2", {10, 100}}, {"2", {-1, -2}}}, {5, 50, 15, 100}, false, {0}, {0}},
    {"fold of a transposed one", DNN_OP_FOLD, {.fold = {1, 0, false}}, {{"2x2", {1, 2, 3, 4}}, {"", {0}}, {"2", {1, 4}}, {"2", {3, 15}}, {"", {0}}, {"", {0}}}, {0.5, 1, 0.75, 1}, false, {0}, {0}},
    {"fold of a depthwise one", DNN_OP_FOLD, {.fold = {1, 2, true}}, {{"2x2x1", {1, 2, 3, 4}}, {"", {0}}, {"2", {1, 4}}, {"2", {3, 15}}, {"2", {10, 100}}, {"", {0}}}, {5, 50, 15, 100}, false, {0}, {0}},
    {"penalty", DNN_OP_PENALTY, {.penalty = {0.5, 0.25}}, {{"3", {-2, 4, 0}}}, {8}, false, {0}, {0}},
    {"scale", DNN_OP_SCALE, {{0}}, {{"1x2", {1, 2}}, {"2", {10, 100}}, {"1", {5}}}, {15, 205}, true, {1, 1}, {10, 100}},
    {"activity", DNN_OP_ACTIVITY, {.activity = {0.5, 0.25}}, {{"2", {-2, 4}}}, {-2, 4}, true, {1, 1}, {-0.5, 3.5}},
};
/* clang-format on */

int main(void)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        struct one o = {
            .name = dnn_op_unary_name(functions[i].unary.fn),
            .kind = DNN_OP_UNARY,
            .attr = {.unary = functions[i].unary},
            .in = {{"2", {-0.7, 1.3}}},
            .y = {functions[i].y[0], functions[i].y[1]}
        };
        run_one(&o);
    }
    for (size_t i = 0; i < sizeof ones / sizeof ones[0]; i++)
        run_one(&ones[i]);
    return done();
}
