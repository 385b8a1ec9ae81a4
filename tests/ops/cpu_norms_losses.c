/* cpu_norms_losses.c - the norms, losses, softmax, noise and updates of the cpu
 * backend against the ref backend: odd shapes, pitches, in place, one to three threads,
 * the same bits in two runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "ops/cpu_rows.h"

/* Activations after a norm; post i is the one at index i - 1, 0 is none. */
static const struct dnn_op_unary behind[] = {
    {.fn = DNN_RELU, .max_value = INFINITY},
    {.fn = DNN_RELU, .alpha = 0.25, .max_value = INFINITY},
    {.fn = DNN_SWISH},
    {.fn = DNN_TANH}
};

/* ---- running ---- */

/* The op with its activation by the ref backend, on the memory of the case. */
static void ref_run(struct rows_case *k, const struct dnn_now *now)
{
    const struct dnn_backend *ref = &dnn_backend_ref;
    const struct dnn_tensor *in[MAX_IN], *out[DNN_MAX_OUT];
    struct dnn_err err = {0};
    struct dnn_dev *dev;
    struct dnn_need need;
    struct dnn_kernel *kernel;

    for (int i = 0; i < k->op.nin; i++)
        in[i] = k->in_mem[i] == NULL ? NULL : &k->in[i];
    for (int i = 0; i < k->op.nout; i++) {
        out[i] = &k->out[i];
        dnn_free(k->out_mem[i]);
        k->out_mem[i] = filled(&k->out[i], 0, 0, 0);
    }
    struct dnn_step step = {
        .op = &k->op, .in = in, .out = out, .in_mem = k->in_mem, .out_mem = k->out_mem};
    if (ref->open(&(struct dnn_device){0}, &dev, &err) < 0 ||
        ref->need(dev, &step, &need, &err) < 0) {
        printf("# %s\n", err.text);
        abort();
    }
    step.work = dnn_alloc(need.work + 64);
    if (ref->prepare(dev, &step, &kernel, &err) < 0 ||
        ref->run(dev, kernel, now, &err) < 0) {
        printf("# %s\n", err.text);
        abort();
    }
    ref->discard(dev, kernel);
    dnn_free(step.work);
    ref->close(dev);
}

static void check(struct rows_case *k, const struct cpu_algo *algo, double tolerance,
                  const char *what)
{
    ref_run(k, &(struct dnn_now){0});
    rows_check(k, algo, tolerance, what);
}

/* ---- norms ---- */

struct norm_shape {
    const char *name;
    struct dnn_tensor x;
    int64_t groups;
    bool layer;
    double offset; /* of the numbers */
};

static struct rows_case norm_case(const struct norm_shape *s, enum dnn_pass pass,
                                  const struct dnn_op_unary *post, bool params)
{
    int nd = s->x.shape.ndim;
    int64_t c = s->x.shape.dim[nd - 1], stats = s->groups;
    struct rows_case k = {
        .op = {.kind = DNN_OP_GROUPNORM, .pass = pass, .post = post}
    };
    struct dnn_op_groupnorm *a = &k.op.attr.groupnorm;

    a->params = 1u << (nd - 1);
    a->axes = s->layer ? a->params : (1u << nd) - 2;
    a->groups = s->groups;
    a->epsilon = 1e-3;
    a->save = true;
    for (int i = 0; i < nd; i++)
        if ((a->axes >> i & 1) == 0) stats *= s->x.shape.dim[i];
    int x = pass == DNN_FWD ? 0 : 1, g = pass == DNN_FWD ? 1 : 3;
    k.in[0] = k.in[x] = s->x;
    k.in[g] = k.in[g + 1] = TENSOR(DNN_F32, c);
    k.op.nin = g + 2;
    k.op.nout = pass == DNN_BWD_DATA ? 1 : 2;
    k.in_mem[x] = filled(&s->x, s->offset - 1, s->offset + 2, 1);
    if (params) k.in_mem[g] = filled(&k.in[g], 0.5, 2, 2);
    if (params) k.in_mem[g + 1] = filled(&k.in[g], -1, 1, 3);
    struct dnn_tensor two = TENSOR(DNN_F32, 2, stats);
    k.out[0] = pass == DNN_BWD_WEIGHTS ? k.in[g] : s->x;
    k.out[1] = pass == DNN_BWD_WEIGHTS ? k.in[g] : two;
    if (pass == DNN_FWD) return k;
    k.in[2] = two;
    k.in_mem[0] = filled(&s->x, -1, 1, 4);
    return k;
}

static void norm_check(const struct norm_shape *s, int post, bool params)
{
    static const struct cpu_algo *const algos[] = {
        &dnn_cpu_groupnorm, &dnn_cpu_groupnorm_data, &dnn_cpu_groupnorm_weights};
    char what[100];
    void *stats = NULL;

    for (int pass = DNN_FWD; pass <= DNN_BWD_WEIGHTS; pass++) {
        struct rows_case k = norm_case(s, (enum dnn_pass)pass,
                                       post == 0 ? NULL : &behind[post - 1], params);

        snprintf(what, sizeof what, "%s, pass %d, post %d, params %d", s->name, pass,
                 post, params);
        if (pass == DNN_FWD) {
            ref_run(&k, &(struct dnn_now){0});
            stats = filled(&k.out[1], 0, 0, 0);
            memcpy(stats, k.out_mem[1], (size_t)count_of(&k.out[1]) * sizeof(float));
        } else {
            k.in_mem[2] = filled(&k.in[2], 0, 0, 0);
            memcpy(k.in_mem[2], stats, (size_t)count_of(&k.in[2]) * sizeof(float));
        }
        k.size = 1;
        check(&k, algos[pass], s->offset > 10 ? 1e-4 : 5e-6, what);
    }
    dnn_free(stats);
}

static void norms(void)
{
    const struct norm_shape shapes[] = {
        {"instance norm", TENSOR(DNN_F32, 2, 5, 7, 3), 3, false, 0},
        {"instance norm, 16 channels", TENSOR(DNN_F32, 3, 41, 37, 16), 16, false, 0},
        {"instance norm, one sample", TENSOR(DNN_F32, 1, 71, 67, 17), 17, false, 0},
        {"instance norm, far from 0", TENSOR(DNN_F32, 2, 31, 17, 5), 5, false, 1000},
        {"group norm", TENSOR(DNN_F32, 3, 11, 13, 24), 8, false, 0.5},
        {"group norm, all", TENSOR(DNN_F32, 4, 50, 70), 1, false, 0},
        {"group norm of a vector", TENSOR(DNN_F32, 9, 12), 4, false, 0},
        {"layer norm", TENSOR(DNN_F32, 7, 9, 33), 1, true, 0},
        {"layer norm, long", TENSOR(DNN_F32, 5, 3001), 1, true, 0},
        {"layer norm, short", TENSOR(DNN_F32, 3001, 4), 1, true, 0},
    };

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int post = 0; post < (i % 3 == 0 ? 5 : 2); post++)
            norm_check(&shapes[i], post, true);
        norm_check(&shapes[i], 0, false);
        norm_check(&shapes[i], 1, false);
    }
}

/* ---- classes ---- */

static void softmax(int64_t rows, int64_t n, bool log)
{
    struct dnn_tensor t = TENSOR(DNN_F32, rows, n);
    struct rows_case k = {
        .op = {.kind = DNN_OP_SOFTMAX, .nin = 1, .nout = 1},
          .in = {t, t},
          .out = {t}
    };
    char what[80];

    k.op.attr.softmax = (struct dnn_op_softmax){.axis = 1, .log = log};
    struct rows_case b = k;
    k.in_mem[0] = filled(&t, -20, 20, 5);
    ref_run(&k, &(struct dnn_now){0});
    b.op.pass = DNN_BWD_DATA;
    b.op.nin = 2;
    b.in_mem[0] = filled(&t, -1, 1, 6);
    b.in_mem[1] = filled(&t, 0, 0, 0);
    memcpy(b.in_mem[1], k.out_mem[0], (size_t)count_of(&t) * sizeof(float));
    snprintf(what, sizeof what, "softmax of %d classes, log %d", (int)n, log);
    rows_check(&k, &dnn_cpu_softmax, 1e-6, what);
    snprintf(what, sizeof what, "softmax of %d classes, log %d, backward", (int)n, log);
    check(&b, &dnn_cpu_softmax_data, 2e-6, what);
}

static void *targets(struct dnn_tensor *t, int64_t rows, int64_t n, bool labels)
{
    *t = TENSOR(DNN_F32, rows, n);
    if (!labels) return filled(t, 0, 1, 7);
    *t = TENSOR(DNN_I32, rows);
    int32_t *label = dnn_alloc((size_t)rows * sizeof *label + 64);
    for (int64_t i = 0; i < rows; i++)
        label[i] = (int32_t)(i * 7 % (n + 2)) - 1; /* some are out of range */
    return label;
}

static void loss(enum dnn_op_kind kind, int64_t rows, int64_t n, bool labels)
{
    struct dnn_tensor x = TENSOR(DNN_F32, rows, n), one = {.dtype = DNN_F64};
    struct rows_case k = {
        .op = {.kind = kind, .attr.loss = {.scale = 0.25}, .nin = 2, .nout = 1},
        .in = {x},
        .out = {one}
    };
    struct rows_case b = k;
    bool mse = kind == DNN_OP_MSE;
    char what[80];

    k.in_mem[0] = filled(&x, -5, 5, 8);
    k.in_mem[1] = targets(&k.in[1], rows, n, labels);
    snprintf(what, sizeof what, "%s of %d columns, labels %d", mse ? "mse" : "xent",
             (int)n, labels);
    check(&k, mse ? &dnn_cpu_mse : &dnn_cpu_loss, 1e-6, what);
    b.op.pass = DNN_BWD_DATA;
    b.op.nin = 3;
    b.in[0] = one;
    b.in[1] = b.out[0] = x;
    b.in_mem[0] = filled(&one, 0.5, 0.5, 0);
    b.in_mem[1] = filled(&x, -5, 5, 8);
    b.in_mem[2] = targets(&b.in[2], rows, n, labels);
    snprintf(what, sizeof what, "%s of %d columns, labels %d, backward",
             mse ? "mse" : "xent", (int)n, labels);
    check(&b, mse ? &dnn_cpu_mse_data : &dnn_cpu_loss_data, 2e-6, what);
}

static void classes(void)
{
    static const int64_t counts[] = {1, 2, 3, 4, 5, 8, 10, 16, 37, 1000};

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int64_t rows = counts[i] < 20 ? 4099 : 61;

        softmax(rows, counts[i], false);
        softmax(rows, counts[i], true);
        loss(DNN_OP_XENT, rows, counts[i], false);
        loss(DNN_OP_XENT, rows, counts[i], true);
        loss(DNN_OP_MSE, rows, counts[i], false);
    }
}

/* ---- sums ---- */

static void reduce(struct dnn_tensor x, struct dnn_tensor y, unsigned axes,
                   enum dnn_reduce fn)
{
    struct rows_case k = {
        .op = {.kind = DNN_OP_REDUCE, .nin = 1, .nout = 1},
          .in = {x},
          .out = {y}
    };
    char what[80];

    k.op.attr.reduce = (struct dnn_op_reduce){.fn = fn, .axes = axes};
    struct rows_case b = k;
    k.in_mem[0] = filled(&x, -1, 2, 9);
    ref_run(&k, &(struct dnn_now){0});
    b.op.pass = DNN_BWD_DATA;
    b.op.nin = 3;
    b.in[0] = b.in[2] = y;
    b.in[1] = b.out[0] = x;
    b.in_mem[0] = filled(&y, -1, 1, 10);
    if (fn == DNN_REDUCE_MAX) {
        b.in_mem[1] = filled(&x, -1, 2, 9);
        b.in_mem[2] = filled(&y, 0, 0, 0);
        memcpy(b.in_mem[2], k.out_mem[0], (size_t)count_of(&y) * sizeof(float));
    }
    snprintf(what, sizeof what, "reduce %d over %x", (int)fn, axes);
    rows_check(&k, &dnn_cpu_reduce, 1e-6, what);
    snprintf(what, sizeof what, "reduce %d over %x, backward", (int)fn, axes);
    check(&b, &dnn_cpu_reduce_data, 1e-6, what);
}

static void reduces(void)
{
    for (int fn = DNN_REDUCE_SUM; fn <= DNN_REDUCE_MAX; fn++) {
        enum dnn_reduce f = (enum dnn_reduce)fn;

        reduce(TENSOR(DNN_F32, 2, 67, 71, 5), TENSOR(DNN_F32, 2, 5), 6, f);
        reduce(TENSOR(DNN_F32, 7, 9, 11, 16), TENSOR(DNN_F32, 7, 16), 6, f);
        reduce(TENSOR(DNN_F32, 1, 31, 70, 1), TENSOR(DNN_F32, 1, 1), 6, f);
        reduce(TENSOR(DNN_F32, 3, 40, 131), TENSOR(DNN_F32, 3, 131), 2, f);
        reduce(TENSOR(DNN_F32, 300, 17), TENSOR(DNN_F32, 17), 1, f);
    }
}

/* ---- scaling ---- */

static void prelu(struct dnn_tensor x, struct dnn_tensor a, const char *name)
{
    for (int pass = DNN_FWD; pass <= DNN_BWD_WEIGHTS; pass++) {
        struct rows_case k = {
            .op = {.kind = DNN_OP_PRELU,
                   .pass = (enum dnn_pass)pass,
                   .nin = pass == DNN_BWD_DATA ? 3 : 2,
                   .nout = 1},
            .in = {x, pass == DNN_FWD ? a : x, a},
            .out = {pass == DNN_BWD_WEIGHTS ? a : x}
        };
        static const struct cpu_algo *const algos[] = {
            &dnn_cpu_prelu, &dnn_cpu_prelu_data, &dnn_cpu_prelu_weights};
        char what[80];

        for (int i = 0; i < k.op.nin; i++)
            k.in_mem[i] = filled(&k.in[i], -1, 1, 11 + (uint64_t)i);
        snprintf(what, sizeof what, "prelu, %s, pass %d", name, pass);
        check(&k, algos[pass], 1e-6, what);
    }
}

static void scale(struct dnn_tensor x, struct dnn_tensor a, const struct dnn_tensor *b,
                  const char *name)
{
    for (int pass = DNN_FWD; pass <= DNN_BWD_DATA; pass++) {
        struct rows_case k = {
            .op = {.kind = DNN_OP_SCALE,
                   .pass = (enum dnn_pass)pass,
                   .nin = pass == DNN_FWD ? 3 : 2,
                   .nout = 1},
            .in = {x, a},
            .out = {x}
        };
        char what[80];

        k.in_mem[0] = filled(&x, -1, 1, 14);
        k.in_mem[1] = filled(&a, -1, 1, 15);
        if (b != NULL) k.in[2] = *b;
        if (b != NULL && pass == DNN_FWD) k.in_mem[2] = filled(b, -1, 1, 16);
        snprintf(what, sizeof what, "scale, %s, pass %d", name, pass);
        check(&k, pass == DNN_FWD ? &dnn_cpu_scale : &dnn_cpu_scale_data, 1e-6, what);
    }
}

static void activity(void)
{
    struct dnn_tensor x = TENSOR(DNN_F32, 3, 41, 83), one = {.dtype = DNN_F32};
    struct rows_case k = {
        .op = {.kind = DNN_OP_ACTIVITY,
               .attr.activity = {.l1 = 0.5, .l2 = 0.25},
               .nin = 1,
               .nout = 2},
        .in = {x, x},
        .out = {x, one}
    };
    struct rows_case b = k;

    k.in_mem[0] = filled(&x, -1, 1, 17);
    check(&k, &dnn_cpu_activity, 1e-6, "activity");
    b.op.pass = DNN_BWD_DATA;
    b.op.nin = 2;
    b.op.nout = 1;
    b.in_mem[0] = filled(&x, -1, 1, 18);
    b.in_mem[1] = filled(&x, -1, 1, 19);
    check(&b, &dnn_cpu_activity_data, 1e-6, "activity, backward");
}

static void scales(void)
{
    struct dnn_tensor x = TENSOR(DNN_F32, 3, 43, 41, 5), c = TENSOR(DNN_F32, 5);
    struct dnn_tensor shared = TENSOR(DNN_F32, 1, 1, 5), one = {.dtype = DNN_F32};
    struct dnn_tensor image = TENSOR(DNN_F32, 43, 41, 5);

    prelu(x, shared, "channels");
    prelu(x, image, "image");
    prelu(x, TENSOR(DNN_F32, 1, 1, 1), "one");
    prelu(TENSOR(DNN_F32, 1, 43, 41, 5), image, "image of one");
    scale(x, c, &c, "channels");
    scale(x, one, &c, "one and channels");
    scale(x, image, &one, "image and one");
    scale(x, c, NULL, "channels alone");
    scale(x, x, NULL, "all");
    activity();
}

/* ---- updates and noise, which depend on the step ---- */

static const struct dnn_now somewhere = {
    .seed = 77, .step = 12, .sample = 34, .rate = 0.01, .updates = 3};

/* Ref and the kernel on copies of the case's memory; the kernel twice. */
static void check_now(struct rows_case *k, const struct cpu_algo *algo,
                      double tolerance, const char *what)
{
    struct dnn_tensor ins[MAX_IN];
    const struct dnn_tensor *in[MAX_IN], *out[DNN_MAX_OUT];
    struct dnn_step step = {.op = &k->op, .in = in, .out = out};
    void *start[MAX_IN] = {0}, *first[MAX_IN] = {0};
    double far = 0;
    bool same = true;

    for (int i = 0; i < k->op.nout; i++) /* results are compared like operands */
        out[i] = &k->out[i];
    for (int i = 0; i < k->op.nin; i++) {
        ins[i] = k->in[i];
        in[i] = k->in_mem[i] == NULL ? NULL : &ins[i];
        if (in[i] == NULL) continue;
        start[i] = filled(&ins[i], 0, 0, 0);
        memcpy(start[i], k->in_mem[i], (size_t)count_of(&ins[i]) * sizeof(float));
    }
    ref_run(k, &somewhere);
    for (int threads = 1; threads <= 3; threads++)
        for (int again = 0; again < 2; again++) {
            struct cpu_array a[MAX_IN] = {0};
            struct cpu_call call = {
                .op = &k->op, .in = a, .threads = threads, .now = somewhere};
            size_t work = algo->work == NULL ? 0 : algo->work(&step, threads);

            call.work = aligned_alloc(64, (work + 127) & ~(size_t)63);
            for (int i = 0; i < k->op.nin; i++) {
                if (in[i] == NULL) continue;
                a[i] = array_of(&ins[i], 0);
                copy_rows(&a[i], start[i], true);
            }
            for (int i = 0; i < k->op.nout; i++)
                call.out[i] = array_of(out[i], 0);
            same = same && (algo->can == NULL || algo->can(&step));
            algo->fn(&call);
            for (int i = 0; i < k->op.nin + k->op.nout; i++) {
                bool result = i >= k->op.nin;
                int o = i - k->op.nin;
                const struct cpu_array *got = result ? &call.out[o] : &a[i];
                const struct dnn_tensor *t = result ? out[o] : &ins[i];
                size_t bytes = (size_t)got->count * dnn_dtype_size(got->dtype);

                if (got->mem == NULL) continue;
                double d = apart(t, got->mem, result ? k->out_mem[o] : k->in_mem[i], 0);
                if (d > far) far = d;
                same = same && gaps_whole(got);
                if (again == 0) {
                    first[i] = dnn_alloc(bytes);
                    memcpy(first[i], got->mem, bytes);
                } else {
                    same = same && memcmp(first[i], got->mem, bytes) == 0;
                    dnn_free(first[i]);
                    first[i] = NULL;
                }
                dnn_free(got->mem);
            }
            free(call.work);
        }
    if (!ok(same && far <= tolerance, "%s", what)) printf("# %g off\n", far);
    for (int i = 0; i < k->op.nin; i++)
        dnn_free(start[i]);
    rows_free(k);
}

static void update(const struct dnn_op_update *u, int64_t n, int states,
                   const char *what)
{
    struct dnn_tensor w = TENSOR(DNN_F32, n);
    struct rows_case k = {
        .op = {.kind = DNN_OP_UPDATE, .attr.update = *u, .nin = 4},
          .in = {w, w, w, w}
    };

    k.in_mem[0] = filled(&w, -1, 1, 20);
    k.in_mem[1] = filled(&w, -1, 1, 21);
    if (states > 0) k.in_mem[2] = filled(&w, -1, 1, 22);
    if (states > 1) k.in_mem[3] = filled(&w, 0, 1, 23);
    check_now(&k, &dnn_cpu_update, 1e-6, what);
}

static void updates(void)
{
    static const int64_t counts[] = {1, 7, 1003, 50021};

    for (int i = 0; i < 4; i++) {
        struct dnn_op_update u = {
            .rule = DNN_UPDATE_ADAM, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-7};

        update(&u, counts[i], 2, "adam");
        u.l1 = 0.25;
        u.l2 = 0.125;
        u.constraint.kind = DNN_NON_NEG;
        update(&u, counts[i], 2, "adam, regularized, not negative");
        u.rule = DNN_UPDATE_SGD;
        update(&u, counts[i], 0, "sgd, regularized, not negative");
        u = (struct dnn_op_update){.rule = DNN_UPDATE_SGD, .momentum = 0.9};
        update(&u, counts[i], 1, "sgd, momentum");
        u.nesterov = true;
        update(&u, counts[i], 1, "sgd, nesterov");
    }
}

static void noise(enum dnn_noise fn, struct dnn_tensor x, unsigned shared, double rate,
                  const char *name)
{
    char what[80];

    for (int pass = DNN_FWD; pass <= DNN_BWD_DATA; pass++) {
        struct rows_case k = {
            .op = {.kind = DNN_OP_NOISE,
                   .pass = (enum dnn_pass)pass,
                   .nin = 1,
                   .nout = 1},
            .in = {x},
            .out = {x}
        };
        struct rows_case here = k;

        k.op.attr.noise = (struct dnn_op_noise){
            .fn = fn, .rate = rate, .seed = 5, .stream = 3, .shared = shared};
        here.op = k.op;
        k.in_mem[0] = filled(&x, 0.5, 1, 24);
        here.in_mem[0] = filled(&x, 0.5, 1, 24);
        const struct cpu_algo *algo =
            pass == DNN_FWD ? &dnn_cpu_noise : &dnn_cpu_noise_data;
        snprintf(what, sizeof what, "noise %d, %s, pass %d", (int)fn, name, pass);
        check_now(&k, algo, 1e-6, what);
        snprintf(what, sizeof what, "noise %d, %s, pass %d, in place", (int)fn, name,
                 pass);
        check(&here, algo, 1e-6, what);
    }
}

static void noises(void)
{
    struct dnn_tensor x = TENSOR(DNN_F32, 3, 43, 41, 5);

    for (int fn = DNN_DROPOUT; fn <= DNN_ALPHA_DROPOUT; fn++) {
        noise((enum dnn_noise)fn, x, 0, 0.3, "own");
        noise((enum dnn_noise)fn, x, 1, 0.5, "samples share");
        noise((enum dnn_noise)fn, x, 6, 0.5, "space shares");
    }
    noise(DNN_DROPOUT, x, 0, 0, "nothing dropped");
    noise(DNN_DROPOUT, x, 0, 0.999999, "nearly everything dropped");
}

/* ---- weights alone ---- */

static void penalty(int64_t n)
{
    struct dnn_tensor w = TENSOR(DNN_F32, n), one = {.dtype = DNN_F64};
    struct rows_case k = {
        .op = {.kind = DNN_OP_PENALTY,
               .attr.penalty = {.l1 = 0.5, .l2 = 0.25},
               .nin = 1,
               .nout = 1},
        .in = {w},
        .out = {one}
    };

    k.in_mem[0] = filled(&w, -1, 1, 25);
    check(&k, &dnn_cpu_penalty, 1e-6, "penalty");
}

static void fold(struct dnn_tensor w, int axis, bool depthwise, bool params,
                 const char *what)
{
    const int64_t *dim = w.shape.dim;
    int64_t n = depthwise ? dim[w.shape.ndim - 2] * dim[w.shape.ndim - 1] : dim[axis];
    struct dnn_tensor c = TENSOR(DNN_F32, n);
    struct rows_case k = {
        .op = {.kind = DNN_OP_FOLD,
               .attr.fold = {.epsilon = 1e-3, .axis = axis, .depthwise = depthwise},
               .nin = 6,
               .nout = 2},
        .in = {w, c, c, c, c, c},
        .out = {w, c}
    };

    k.in_mem[0] = filled(&w, -1, 1, 26);
    for (int i = 1; i < 6; i++)
        if (params || i == 2 || i == 3)
            k.in_mem[i] = filled(&c, 0.5, 1, 26 + (uint64_t)i);
    check(&k, &dnn_cpu_fold, 1e-6, what);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    updates();
    penalty(3);
    penalty(100003);
    fold(TENSOR(DNN_F32, 3, 3, 17, 33), 3, false, true, "fold");
    fold(TENSOR(DNN_F32, 3, 3, 17, 33), 3, false, false, "fold, no parameters");
    fold(TENSOR(DNN_F32, 3, 3, 33, 17), 2, false, true, "fold, transposed");
    fold(TENSOR(DNN_F32, 3, 3, 33, 2), 3, true, true, "fold, depthwise");
    classes();
    norms();
    reduces();
    noises();
    scales();
    return done();
}
