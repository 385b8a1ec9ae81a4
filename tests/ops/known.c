/* known.c - the ref backend on cases small enough to compute by hand, on two ranks,
 * and its errors.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "ops/compare.h"
#include "tap.h"

#include <math.h>

static struct dnn_shape shape(const char *text)
{
    struct dnn_shape s = {0};

    if (dnn_shape_parse(text, &s, NULL) < 0) s.ndim = -1;
    return s;
}

/* ---- one op, one line of space ---- */

struct line {
    const char *name;
    enum dnn_op_kind kind;
    int64_t kernel, stride; /* or factor */
    int64_t dilation;
    int fn; /* enum dnn_pool or dnn_upsample */
    int nx;
    double x[6];
    double w[4]; /* the kernel, one channel */
    int ny;
    double y[9];
};

/* clang-format off */
/* All with padding "same".  The kernels 1, 10, 100 make every sum readable. */
static const struct line lines[] = {
    {"conv, kernel 2", DNN_OP_CONV, 2, 1, 1, 0, 4, {1, 2, 3, 4}, {1, 10}, 4, {21, 32, 43, 4}},
    {"conv, kernel 3", DNN_OP_CONV, 3, 1, 1, 0, 3, {1, 2, 3}, {1, 10, 100}, 3, {210, 321, 32}},
    {"conv, kernel 4", DNN_OP_CONV, 4, 1, 1, 0, 3, {1, 2, 3}, {1, 10, 100, 1000}, 3, {3210, 321, 32}},
    {"conv, kernel 3, stride 2, even extent", DNN_OP_CONV, 3, 2, 1, 0, 4, {1, 2, 3, 4}, {1, 10, 100}, 2, {321, 43}},
    {"conv, kernel 3, stride 2, odd extent", DNN_OP_CONV, 3, 2, 1, 0, 3, {1, 2, 3}, {1, 10, 100}, 2, {210, 32}},
    {"conv, kernel 2, stride 2, odd extent", DNN_OP_CONV, 2, 2, 1, 0, 3, {1, 2, 3}, {1, 10}, 2, {21, 3}},
    {"conv, kernel 1, stride 2", DNN_OP_CONV, 1, 2, 1, 0, 4, {1, 2, 3, 4}, {1}, 2, {1, 3}},
    {"conv, kernel 2, dilation 2", DNN_OP_CONV, 2, 1, 2, 0, 4, {1, 2, 3, 4}, {1, 10}, 4, {20, 31, 42, 3}},
    {"deconv, kernel 3, stride 2", DNN_OP_DECONV, 3, 2, 1, 0, 2, {1, 2}, {1, 10, 100}, 4, {1, 10, 102, 20}},
    {"deconv, kernel 2, stride 2", DNN_OP_DECONV, 2, 2, 1, 0, 2, {1, 2}, {1, 10}, 4, {1, 10, 2, 20}},
    {"deconv, kernel 2, stride 1", DNN_OP_DECONV, 2, 1, 1, 0, 3, {1, 2, 3}, {1, 10}, 3, {1, 12, 23}},
    {"deconv, kernel 3, stride 1", DNN_OP_DECONV, 3, 1, 1, 0, 3, {1, 2, 3}, {1, 10, 100}, 3, {12, 123, 230}},
    {"deconv, kernel 4, stride 2", DNN_OP_DECONV, 4, 2, 1, 0, 2, {1, 2}, {1, 10, 100, 1000}, 4, {10, 102, 1020, 200}},
    {"deconv, kernel 1, stride 2", DNN_OP_DECONV, 1, 2, 1, 0, 2, {1, 2}, {1}, 4, {1, 0, 2, 0}},
    {"max pool, kernel 2, odd extent", DNN_OP_POOL, 2, 2, 1, DNN_POOL_MAX, 5, {1, 2, 4, 3, -5}, {0}, 3, {2, 4, -5}},
    {"max pool, kernel 3, stride 2", DNN_OP_POOL, 3, 2, 1, DNN_POOL_MAX, 4, {-4, -3, -2, -1}, {0}, 2, {-2, -1}},
    {"max pool, kernel 2, stride 1", DNN_OP_POOL, 2, 1, 1, DNN_POOL_MAX, 3, {3, 1, 2}, {0}, 3, {3, 2, 2}},
    {"average pool, kernel 2, odd extent", DNN_OP_POOL, 2, 2, 1, DNN_POOL_AVERAGE, 5, {1, 2, 3, 4, 5}, {0}, 3, {1.5, 3.5, 5}},
    {"average pool, kernel 3, stride 2", DNN_OP_POOL, 3, 2, 1, DNN_POOL_AVERAGE, 4, {1, 2, 3, 4}, {0}, 2, {2, 3.5}},
    {"average pool, kernel 3, stride 1", DNN_OP_POOL, 3, 1, 1, DNN_POOL_AVERAGE, 3, {1, 2, 6}, {0}, 3, {1.5, 3, 4}},
    {"nearest, twice", DNN_OP_UPSAMPLE, 1, 2, 1, DNN_UP_NEAREST, 2, {1, 2}, {0}, 4, {1, 1, 2, 2}},
    {"linear, twice", DNN_OP_UPSAMPLE, 1, 2, 1, DNN_UP_LINEAR, 2, {0, 10}, {0}, 4, {0, 2.5, 7.5, 10}},
    {"linear, three times", DNN_OP_UPSAMPLE, 1, 3, 1, DNN_UP_LINEAR, 3, {0, 3, 9}, {0}, 9, {0, 0, 1, 2, 3, 5, 7, 9, 9}},
    {"linear, one element", DNN_OP_UPSAMPLE, 1, 3, 1, DNN_UP_LINEAR, 1, {4}, {0}, 3, {4, 4, 4}},
};
/* clang-format on */

static union dnn_attr line_attr(const struct line *l)
{
    union dnn_attr a = {0};

    if (l->kind == DNN_OP_UPSAMPLE) {
        a.upsample = (struct dnn_op_upsample){1, {l->stride}, (enum dnn_upsample)l->fn};
        return a;
    }
    struct dnn_op_window w = {.nspatial = 1,
                              .kernel = {l->kernel},
                              .stride = {l->stride},
                              .dilation = {l->dilation},
                              .groups = 1};
    if (l->kind == DNN_OP_DECONV)
        dnn_op_same_transposed(l->nx, l->nx * l->stride, l->kernel, l->stride,
                               l->dilation, &w.before[0], &w.after[0]);
    else
        dnn_op_same(l->nx, l->kernel, l->stride, l->dilation, &w.before[0],
                    &w.after[0]);
    if (l->kind == DNN_OP_POOL)
        a.pool = (struct dnn_op_pool){w, (enum dnn_pool)l->fn, false};
    else
        a.window = w;
    return a;
}

static void check(struct ops_run *run, int value, const double *want, double limit,
                  const char *name)
{
    double got[64];

    ops_get(run, value, got);
    struct ops_diff d = ops_compare(got, want, ops_count(run->prog, value));
    if (!ok(d.worst <= limit, "%s", name))
        printf("#   element %lld: got %.17g, want %.17g; norms: difference %.3g, "
               "wanted %.3g\n",
               (long long)d.at, d.got, d.want, d.l2, d.norm);
}

static void run_line(const struct line *l)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, false);
    struct dnn_err err = {0};
    struct ops_run run;
    struct dnn_shape xs =
                         {
                             3, {1, l->nx, 1}
    },
                     ws = {3, {l->kernel, 1, 1}};
    union dnn_attr a = line_attr(l);
    int in[2], n = 0;

    in[n++] = dnn_prog_input(prog, "x", DNN_F32, &xs);
    if (l->kind == DNN_OP_CONV || l->kind == DNN_OP_DECONV)
        in[n++] = dnn_prog_input(prog, "w", DNN_F32, &ws);
    int y = dnn_prog_op(prog, l->kind, &a, n, in);
    is_int(dnn_prog_dim(prog, y, 1), l->ny, l->name);
    is_int(prog->op[0].nout, 1, "without training there is no index");
    if (dnn_prog_dim(prog, y, 1) == l->ny &&
        ops_start(prog, dnn_backend_find("ref", NULL), NULL, &run, &err) == 0) {
        ops_put(&run, in[0], l->x);
        if (n == 2) ops_put(&run, in[1], l->w);
        ops_go(&run, 0, prog->nops, NULL);
        check(&run, y, l->y, 1e-7, l->name);
        ops_stop(&run);
    }
    dnn_prog_free(prog);
}

/* ---- batch norm: x = 1, 5 has mean 3 and variance 4 ---- */

static void batchnorm(bool unbiased)
{
    static const struct dnn_init zeros = {.kind = DNN_INIT_ZEROS};
    struct dnn_op_batchnorm bn = {1, 0, 0.9, unbiased};
    struct dnn_prog *prog = dnn_prog_make(DNN_F64, true);
    struct dnn_shape xs = shape("2x1"), one = shape("1");
    struct ops_run run;

    int x = dnn_prog_input(prog, "x", DNN_F64, &xs);
    int gamma = dnn_prog_weight(prog, "gamma", &one, &zeros);
    int beta = dnn_prog_weight(prog, "beta", &one, &zeros);
    int mean = dnn_prog_state(prog, "mean", &one, &zeros);
    int var = dnn_prog_state(prog, "var", &one, &zeros);
    int y = dnn_prog_batchnorm(prog, &bn, true, x, gamma, beta, mean, var);
    if (ops_start(prog, dnn_backend_find("ref", NULL), NULL, &run, NULL) == 0) {
        ops_put(&run, x, (double[]){1, 5});
        ops_put(&run, gamma, (double[]){2});
        ops_put(&run, beta, (double[]){1});
        ops_put(&run, var, (double[]){1});
        ops_go(&run, 0, prog->nops, NULL);
        check(&run, y, (double[]){-1, 3}, 1e-15, "batch norm");
        check(&run, mean, (double[]){0.3}, 1e-15, "the moving mean");
        check(&run, var, (double[]){unbiased ? 0.9 + 0.8 : 0.9 + 0.4}, 1e-15,
              "the moving variance");
        ops_stop(&run);
    }
    dnn_prog_free(prog);
}

/* ---- two ranks, each with a part of the batch, agree with one that has all ---- */

struct peer {
    struct ops_run *other;
    int op; /* the exchange both are at */
};

/* The part of the other rank is the input of its exchange. */
static int add_other(void *arg, double *data, int64_t n, struct dnn_err *err)
{
    struct peer *p = arg;
    double all[64];

    (void)err;
    ops_get(p->other, p->other->prog->op[p->op].in[0], all);
    for (int64_t i = 0; i < n; i++)
        data[i] += all[i];
    return 0;
}

struct net {
    struct dnn_prog *prog; /* owned */
    int x, seed, gamma, y, mean;
};

static struct net net(int64_t batch)
{
    static const struct dnn_init zeros = {.kind = DNN_INIT_ZEROS};
    struct dnn_op_batchnorm bn = {2, 1e-3, 0.9, false};
    struct dnn_shape xs =
                         {
                             3, {batch, 3, 2}
    },
                     two = shape("2");
    union dnn_attr drop = {
        .noise = {.fn = DNN_DROPOUT, .rate = 0.3}
    };
    struct net n = {.prog = dnn_prog_make(DNN_F64, true)};

    n.x = dnn_prog_input(n.prog, "x", DNN_F64, &xs);
    n.seed = dnn_prog_input(n.prog, "seed", DNN_F64, &xs);
    n.gamma = dnn_prog_weight(n.prog, "gamma", &two, &zeros);
    n.mean = dnn_prog_state(n.prog, "mean", &two, &zeros);
    int var = dnn_prog_state(n.prog, "var", &two, &zeros);
    n.y = dnn_prog_op1(n.prog, DNN_OP_NOISE, &drop, n.x);
    n.y = dnn_prog_batchnorm(n.prog, &bn, true, n.y, n.gamma, DNN_NONE, n.mean, var);
    dnn_grad(n.prog, 1, &(struct dnn_grad_of){n.y, n.seed}, true);
    return n;
}

static void ranks(void)
{
    const struct dnn_backend *ref = dnn_backend_find("ref", NULL);
    struct net whole = net(5), part[2] = {net(2), net(3)};
    struct ops_run all, run[2];
    struct peer peer[2] = {
        {&run[1], 0},
        {&run[0], 0}
    };
    struct dnn_exchange sum[2] = {
        {.sum = add_other, .arg = &peer[0]},
        {.sum = add_other, .arg = &peer[1]}
    };
    double x[30], seed[30], want[30], dgamma[2] = {0}, share[2];
    const int start[2] = {0, 12};

    ops_fill(x, 30, -1, 1, 1);
    ops_fill(seed, 30, -1, 1, 2);
    ops_start(whole.prog, ref, NULL, &all, NULL);
    ops_put(&all, whole.x, x);
    ops_put(&all, whole.seed, seed);
    ops_put(&all, whole.gamma, (double[]){2, 3});
    ops_go(&all, 0, whole.prog->nops, NULL);
    for (int r = 0; r < 2; r++) {
        ops_start(part[r].prog, ref, &sum[r], &run[r], NULL);
        run[r].now.sample = r == 0 ? 0 : 2;
        ops_put(&run[r], part[r].x, x + start[r]);
        ops_put(&run[r], part[r].seed, seed + start[r]);
        ops_put(&run[r], part[r].gamma, (double[]){2, 3});
    }
    for (int i = 0; i < whole.prog->nops; i++)
        for (int r = 0; r < 2; r++) {
            peer[r].op = i;
            ops_go(&run[r], i, i + 1, NULL);
        }
    for (int r = 0; r < 2; r++) {
        ops_get(&all, whole.y, want);
        check(&run[r], part[r].y, want + start[r], 1e-14, "ranks: y");
        ops_get(&all, whole.prog->value[whole.x].grad, want);
        check(&run[r], part[r].prog->value[part[r].x].grad, want + start[r], 1e-14,
              "ranks: gradient of x");
        ops_get(&all, whole.mean, want);
        check(&run[r], part[r].mean, want, 1e-14, "ranks: moving mean");
        ops_get(&run[r], part[r].prog->value[part[r].gamma].grad, share);
        for (int i = 0; i < 2; i++)
            dgamma[i] += share[i];
    }
    check(&all, whole.prog->value[whole.gamma].grad, dgamma, 1e-14,
          "ranks: the parts of gamma's gradient add up");
    for (int r = 0; r < 2; r++) {
        ops_stop(&run[r]);
        dnn_prog_free(part[r].prog);
    }
    ops_stop(&all);
    dnn_prog_free(whole.prog);
}

/* ---- noise: its moments, and that it depends on the step ---- */

static void noise(enum dnn_noise fn, double mean, double deviation, const char *name)
{
    enum { N = 20000 };
    static double x[N], y[N], again[N];
    struct dnn_prog *prog = dnn_prog_make(DNN_F64, true);
    struct dnn_shape s = {
        2, {4, N / 4}
    };
    union dnn_attr a = {
        .noise = {.fn = fn, .rate = 0.25}
    };
    struct ops_run run;
    double sum = 0, squares = 0;
    int in = dnn_prog_input(prog, "x", DNN_F64, &s);
    int out = dnn_prog_op1(prog, DNN_OP_NOISE, &a, in);

    for (int i = 0; i < N; i++)
        x[i] = 1;
    ops_start(prog, dnn_backend_find("ref", NULL), NULL, &run, NULL);
    ops_put(&run, in, x);
    ops_go(&run, 0, 1, NULL);
    ops_get(&run, out, y);
    ops_go(&run, 0, 1, NULL);
    ops_get(&run, out, again);
    ok(memcmp(y, again, sizeof y) == 0, "%s: the same step, the same numbers", name);
    run.now.step = 1;
    ops_go(&run, 0, 1, NULL);
    ops_get(&run, out, again);
    ok(memcmp(y, again, sizeof y) != 0, "%s: another step, other numbers", name);
    for (int i = 0; i < N; i++)
        sum += y[i], squares += y[i] * y[i];
    double dev = sqrt(squares / N - sum / N * sum / N);
    if (!ok(fabs(sum / N - mean) < 0.02 && fabs(dev - deviation) < 0.02, "%s: moments",
            name))
        printf("#   mean %g, deviation %g\n", sum / N, dev);
    ops_stop(&run);
    dnn_prog_free(prog);
}

/* ---- losses: -log(1/2) for each of two rows that count, and 1 + 4 ---- */

static void losses(void)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, true);
    struct dnn_shape xs = shape("3x2"), ts = shape("3"), two = shape("2");
    union dnn_attr half = {.loss = {.scale = 0.5}};
    struct ops_run run;

    int x = dnn_prog_input(prog, "x", DNN_F32, &xs);
    int t = dnn_prog_target(prog, "t", DNN_I32, &ts);
    int xent = dnn_prog_op2(prog, DNN_OP_XENT, &half, x, t);
    int a = dnn_prog_input(prog, "a", DNN_F32, &two);
    int b = dnn_prog_target(prog, "b", DNN_F32, &two);
    int mse = dnn_prog_op2(prog, DNN_OP_MSE, &half, a, b);
    if (ops_start(prog, dnn_backend_find("ref", NULL), NULL, &run, NULL) == 0) {
        /* Large numbers do not overflow; label 2 is not a class. */
        ops_put(&run, x, (double[]){3000, 3000, -3000, -3000, 1, 1});
        ops_put(&run, t, (double[]){0, 1, 2});
        ops_put(&run, a, (double[]){1, 2});
        ops_put(&run, b, (double[]){0, 4});
        ops_go(&run, 0, prog->nops, NULL);
        check(&run, xent, (double[]){M_LN2}, 1e-12, "cross-entropy");
        check(&run, mse, (double[]){2.5}, 1e-15, "mse");
        ops_stop(&run);
    }
    dnn_prog_free(prog);
}

/* ---- errors ---- */

static void refuses(enum dnn_op_kind kind, enum dnn_pass pass, enum dnn_dtype in,
                    enum dnn_dtype second, const char *want)
{
    const struct dnn_backend *ref = dnn_backend_find("ref", NULL);
    const struct dnn_tensor a =
                                {
                                    NULL, in, {1, {4}}
    },
                            b = {NULL, second, {1, {4}}};
    const struct dnn_tensor *ins[2] = {&a, &b}, *outs[1] = {&a};
    struct dnn_op op = {.kind = kind, .pass = pass, .nin = 2, .nout = 1};
    struct dnn_step step = {.op = &op, .in = ins, .out = outs};
    struct dnn_err err = {0};
    struct dnn_dev *dev = NULL;

    ref->open(&(struct dnn_device){0}, &dev, NULL);
    int rc = ref->supports(dev, &step, &err);
    is_int(rc, want == NULL ? 0 : DNN_ECONFIG, "the code of supports");
    if (want != NULL) is_text(err.text, want, want);
    ref->close(dev);
}

static void messages(void)
{
    struct dnn_err err = {0};
    struct dnn_dev *dev = NULL;

    refuses(DNN_OP_CONV, DNN_BWD_DATA, DNN_F32, DNN_F32, NULL);
    refuses(DNN_OP_CONV, DNN_BWD_DATA, DNN_F32, DNN_BF16,
            "backend ref has no conv backward data for bf16; it has f32 and f64");
    refuses(DNN_OP_MATMUL, DNN_FWD, DNN_F16, DNN_F32,
            "backend ref has no matmul forward for f16; it has f32 and f64");
    refuses(DNN_OP_BIAS, DNN_BWD_DATA, DNN_F32, DNN_F32,
            "backend ref has no bias backward data");
    refuses(DNN_OP_SOFTMAX, DNN_BWD_STATS, DNN_F32, DNN_F32,
            "backend ref has no softmax backward statistics");
    refuses(DNN_OP_POOL, DNN_BWD_DATA, DNN_F32, DNN_U16, NULL);
    refuses(DNN_OP_POOL, DNN_BWD_DATA, DNN_F32, DNN_I64,
            "backend ref has no pool backward data for an index of i64; it has u8, u16 "
            "and i32");
    refuses(DNN_OP_EXCHANGE, DNN_FWD, DNN_F32, DNN_F32,
            "backend ref has no exchange forward for f32; it has f64");
    ok(dnn_backend_find("abacus", &err) == NULL, "no such backend");
    is_int(err.code, DNN_ECONFIG, "its code");
    ok(strncmp(err.text, "unknown backend \"abacus\"; this build has ", 41) == 0 &&
           strstr(err.text, "ref") != NULL,
       "its message: %s", err.text);
    ok(dnn_backend_at(0) != NULL && dnn_backend_at(-1) == NULL, "the list of backends");
    is_int(dnn_backend_find("ref", NULL)
               ->open(&(struct dnn_device){.index = 1}, &dev, &err),
           DNN_EDEVICE, "device 1");
    is_text(err.text, "backend ref has only device 0, not 1", "and its message");
    void *mem = NULL;
    const struct dnn_backend *ref = dnn_backend_find("ref", NULL);
    ref->open(&(struct dnn_device){0}, &dev, NULL);
    is_int(ref->alloc(dev, SIZE_MAX - 3, &mem, &err), DNN_ENOMEM, "all of memory");
    is_text(err.text,
            "backend ref: cannot allocate 18446744073709551612 bytes of memory",
            "and its message");
    ref->close(dev);
}

int main(void)
{
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        run_line(&lines[i]);
    batchnorm(false);
    batchnorm(true);
    ranks();
    noise(DNN_DROPOUT, 1, sqrt(1 / 3.0), "dropout");
    noise(DNN_GAUSSIAN_NOISE, 1, 0.25, "gaussian noise");
    noise(DNN_GAUSSIAN_DROPOUT, 1, sqrt(1 / 3.0), "gaussian dropout");
    /* x = 1: kept a + b, dropped a d + b; d = -1.758, a = 0.8673, b = 0.3812 */
    noise(DNN_ALPHA_DROPOUT, 0.75 * 1.2484 + 0.25 * -1.1435, 2.3920 * sqrt(0.1875),
          "alpha dropout");
    losses();
    messages();
    return done();
}
