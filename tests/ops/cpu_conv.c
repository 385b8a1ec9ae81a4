/* cpu_conv.c - every kernel of the cpu backend for convolutions, transposed
 * convolutions and matrix products, against the loops of the ref backend; and the same
 * bits in two runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/cpu_impl.h"
#include "base/mem.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>

extern const struct dnn_backend dnn_backend_ref, dnn_backend_cpu;

/* A convolution as it would be forward; in is x's extents. */
struct shape {
    enum dnn_op_kind kind;
    int64_t n, in[3], c, m;
    struct dnn_op_window w; /* MATMUL: not used */
};

/* An op with its own memory. */
struct sample {
    struct dnn_op op;
    struct dnn_op_unary post;
    struct dnn_tensor tensor[5];
    const struct dnn_tensor *in[3], *out[2];
    void *in_mem[3], *out_mem[2];
    int64_t in_pitch[3], out_pitch[2];
    struct dnn_step step;
};

static uint64_t seed = 7;

static float draw(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)((int64_t)((seed >> 33) % 2001) - 1000) / 1000;
}

/* ---- making steps ---- */

static struct dnn_shape activation(const struct shape *s, const int64_t *extent,
                                   int64_t channels)
{
    struct dnn_shape shape = {.ndim = s->w.nspatial + 2};

    shape.dim[0] = s->n;
    for (int i = 0; i < s->w.nspatial; i++)
        shape.dim[i + 1] = extent[i];
    shape.dim[s->w.nspatial + 1] = channels;
    return shape;
}

static struct dnn_shape y_shape(const struct shape *s)
{
    int64_t out[3] = {0};

    for (int i = 0; i < s->w.nspatial; i++)
        out[i] =
            s->kind == DNN_OP_DECONV
                ? dnn_op_transposed_out(s->in[i], s->w.kernel[i], s->w.stride[i],
                                        s->w.dilation[i], s->w.before[i], s->w.after[i])
                : dnn_op_window_out(s->in[i], s->w.kernel[i], s->w.stride[i],
                                    s->w.dilation[i], s->w.before[i], s->w.after[i]);
    return activation(s, out, s->m);
}

static struct dnn_shape w_shape(const struct shape *s)
{
    int ns = s->w.nspatial;
    struct dnn_shape shape = {.ndim = ns + 2};

    for (int i = 0; i < ns; i++)
        shape.dim[i] = s->w.kernel[i];
    bool depthwise = s->w.groups == s->c && s->c > 1;
    shape.dim[ns] = s->kind == DNN_OP_DECONV ? s->m
                    : depthwise              ? s->c
                                             : s->c / s->w.groups;
    shape.dim[ns + 1] = s->kind == DNN_OP_DECONV ? s->c
                        : depthwise              ? s->m / s->c
                                                 : s->m;
    return shape;
}

static size_t bytes_of(const struct dnn_tensor *t, int64_t pitch)
{
    struct cpu_array a = dnn_cpu_array(t, NULL, pitch);

    return (size_t)(a.rows * a.pitch) * sizeof(float);
}

static void *numbers(const struct dnn_tensor *t, int64_t pitch)
{
    size_t bytes = bytes_of(t, pitch);
    float *mem = aligned_alloc(64, (bytes + 63) / 64 * 64);

    for (size_t i = 0; i < bytes / sizeof *mem; i++)
        mem[i] = draw();
    return mem;
}

/* gap: elements between the rows of y and dy. */
static void sample_make(struct sample *a, const struct shape *s, enum dnn_pass pass,
                        bool bias, const struct dnn_op_unary *post, int64_t gap)
{
    static const int none[3] = {DNN_NONE, DNN_NONE, DNN_NONE};

    *a = (struct sample){
        .op = {.kind = s->kind, .pass = pass, .in = none}
    };
    struct dnn_tensor *x = &a->tensor[0], *w = &a->tensor[1], *b = &a->tensor[2];
    struct dnn_tensor *y = &a->tensor[3];
    x->shape = activation(s, s->in, s->c);
    w->shape = w_shape(s);
    y->shape = y_shape(s);
    b->shape = (struct dnn_shape){.ndim = 1, .dim = {s->m}};
    a->op.attr.window = s->w;
    bool weights = pass == DNN_BWD_WEIGHTS;
    a->in[0] = pass == DNN_BWD_DATA ? y : x;
    a->in[1] = weights ? y : w;
    a->out[0] = pass == DNN_FWD ? y : weights ? w : x;
    if (bias && pass == DNN_FWD) a->in[2] = b;
    if (bias && weights) a->out[1] = b;
    a->op.nin = pass == DNN_FWD ? 3 : 2;
    a->op.nout = weights ? 2 : 1;
    if (post != NULL && pass == DNN_FWD) {
        a->post = *post;
        a->op.post = &a->post;
    }
    for (int i = 0; i < 3; i++) {
        if (a->in[i] == y && gap > 0) a->in_pitch[i] = s->m + gap;
        if (a->in[i] != NULL) a->in_mem[i] = numbers(a->in[i], a->in_pitch[i]);
    }
    for (int i = 0; i < 2; i++) {
        if (a->out[i] == y && gap > 0) a->out_pitch[i] = s->m + gap;
        if (a->out[i] != NULL) a->out_mem[i] = numbers(a->out[i], a->out_pitch[i]);
    }
    a->step = (struct dnn_step){.op = &a->op,
                                .in = a->in,
                                .out = a->out,
                                .in_mem = a->in_mem,
                                .out_mem = a->out_mem,
                                .in_pitch = a->in_pitch,
                                .out_pitch = a->out_pitch};
}

static void sample_free(struct sample *a)
{
    for (int i = 0; i < 3; i++)
        free(a->in_mem[i]);
    for (int i = 0; i < 2; i++)
        free(a->out_mem[i]);
}

/* ---- running ---- */

/* One op of the ref backend on the given memory. */
static void ref_run(struct dnn_dev *ref, struct dnn_step *step)
{
    struct dnn_kernel *kernel;
    struct dnn_err err;
    struct dnn_need need;

    if (dnn_backend_ref.need(ref, step, &need, &err) < 0 ||
        dnn_backend_ref.prepare(ref, step, &kernel, &err) < 0) {
        ok(false, "ref: %s", err.text);
        return;
    }
    dnn_backend_ref.run(ref, kernel, &(struct dnn_now){0}, &err);
    dnn_backend_ref.discard(ref, kernel);
}

/* The expected result: the op alone, then bias and activation one by one. */
static void ref_answer(struct dnn_dev *ref, struct sample *a, void *const out[2])
{
    static const int none[3] = {DNN_NONE, DNN_NONE, DNN_NONE};
    struct dnn_op op = a->op;
    struct dnn_step step = a->step;

    op.nin = 2;
    op.nout = 1;
    op.post = NULL;
    step.op = &op;
    step.out_mem = out;
    ref_run(ref, &step);
    if (a->in[2] != NULL) {
        op = (struct dnn_op){.kind = DNN_OP_BIAS, .nin = 2, .nout = 1, .in = none};
        const struct dnn_tensor *in[] = {a->out[0], a->in[2]};
        void *mem[] = {out[0], a->in_mem[2]};
        step.in = in;
        step.in_mem = mem;
        step.in_pitch = (int64_t[]){a->out_pitch[0], 0};
        ref_run(ref, &step);
    }
    if (a->op.post != NULL) {
        op = (struct dnn_op){.kind = DNN_OP_UNARY,
                             .attr.unary = *a->op.post,
                             .nin = 1,
                             .nout = 1,
                             .in = none};
        step.in = a->out;
        step.in_mem = out;
        step.in_pitch = a->out_pitch;
        ref_run(ref, &step);
    }
    if (a->out[1] != NULL) {
        op = (struct dnn_op){.kind = DNN_OP_BIAS,
                             .pass = DNN_BWD_WEIGHTS,
                             .nin = 1,
                             .nout = 1,
                             .in = none};
        step = a->step;
        step.op = &op;
        step.in = a->in + 1;
        step.in_mem = a->in_mem + 1;
        step.in_pitch = a->in_pitch + 1;
        step.out = a->out + 1;
        step.out_mem = out + 1;
        step.out_pitch = a->out_pitch + 1;
        ref_run(ref, &step);
    }
}

/* A prepared kernel. */
struct ready {
    const struct cpu_algo *algo;
    struct dnn_need need;
    struct dnn_step step;
    struct cpu_call call;
    void *state;
};

static void ready_free(struct ready *r)
{
    if (r->state != NULL) r->algo->discard(r->state);
    dnn_free(r->call.in);
    free(r->step.work);
    free(r->step.keep);
}

static int ready_make(struct dnn_dev *dev, const struct cpu_algo *algo,
                      const struct sample *a, struct ready *r, struct dnn_err *err)
{
    *r = (struct ready){.algo = algo, .step = a->step};
    if (algo->need != NULL)
        DNN_TRY(algo->need(dev, &a->step, &r->need, err));
    else if (algo->work != NULL)
        r->need.work = algo->work(&a->step, dev->threads);
    size_t work = (r->need.work + 127) / 64 * 64, keep = (r->need.keep + 127) / 64 * 64;
    r->step.work = aligned_alloc(64, work);
    r->step.keep = aligned_alloc(64, keep);
    memset(r->step.work, 0xff, work);
    memset(r->step.keep, 0xff, keep);
    r->call = dnn_cpu_call(dev, &r->step);
    return algo->fn != NULL ? 0
                            : algo->prepare(dev, &r->step, &r->call, &r->state, err);
}

static int ready_run(struct dnn_dev *dev, struct ready *r, struct dnn_err *err)
{
    r->call.now.weights++;
    if (r->algo->fn == NULL) return r->algo->run(dev, &r->call, r->state, err);
    r->algo->fn(&r->call);
    return 0;
}

/* ---- comparing ---- */

static double norm_apart(const struct dnn_tensor *t, int64_t pitch, const float *got,
                         const float *want, bool *gaps)
{
    struct cpu_array a = dnn_cpu_array(t, NULL, pitch);
    double apart = 0, size = 0;

    for (int64_t i = 0; i < a.rows * a.pitch; i++) {
        if (i % a.pitch >= a.row) {
            if (memcmp(&got[i], &want[i], sizeof *got) != 0) *gaps = false;
            continue;
        }
        double d = (double)got[i] - (double)want[i];
        apart += d * d;
        size += (double)want[i] * (double)want[i];
    }
    return sqrt(apart) / fmax(sqrt(size), 1e-30);
}

/* The outputs as filled by numbers(), to compare the gaps between rows. */
struct outputs {
    void *mem[2];
    size_t bytes[2];
};

static struct outputs outputs_copy(const struct sample *a)
{
    struct outputs o = {{NULL}, {0}};

    for (int i = 0; i < 2; i++) {
        if (a->out[i] == NULL) continue;
        o.bytes[i] = bytes_of(a->out[i], a->out_pitch[i]);
        o.mem[i] = malloc(o.bytes[i] + 1);
        memcpy(o.mem[i], a->out_mem[i], o.bytes[i]);
    }
    return o;
}

static void outputs_free(struct outputs *o)
{
    free(o->mem[0]);
    free(o->mem[1]);
}

static void outputs_reset(const struct outputs *o, struct sample *a)
{
    for (int i = 0; i < 2; i++)
        if (a->out[i] != NULL) memcpy(a->out_mem[i], o->mem[i], o->bytes[i]);
}

/* One kernel: correct, nothing else written, the same bits in two runs. */
static bool check_algo(struct dnn_dev *dev, const struct cpu_algo *algo,
                       struct sample *a, const struct outputs *before,
                       const struct outputs *want, const char *what)
{
    struct dnn_err err = {0};
    struct ready r;

    outputs_reset(before, a);
    if (ready_make(dev, algo, a, &r, &err) < 0) {
        printf("# %s: %s: %s\n", what, algo->name, err.text);
        ready_free(&r);
        return false;
    }
    bool ran = ready_run(dev, &r, &err) == 0, gaps = true;
    double apart = 0;
    for (int i = 0; i < 2; i++)
        if (a->out[i] != NULL)
            apart = fmax(apart, norm_apart(a->out[i], a->out_pitch[i], a->out_mem[i],
                                           want->mem[i], &gaps));
    const char *does = algo->describe == NULL ? algo->name : algo->describe(r.state);
    struct outputs first = outputs_copy(a);
    outputs_reset(before, a);
    ran = ran && ready_run(dev, &r, &err) == 0;
    bool same = true;
    for (int i = 0; i < 2; i++)
        if (a->out[i] != NULL)
            same = same && memcmp(a->out_mem[i], first.mem[i], first.bytes[i]) == 0;
    ok(ran && gaps && same && apart < 1e-5, "%s: %s (%.1e%s%s)", what, does, apart,
       gaps ? "" : ", writes between rows", same ? "" : ", other bits the second time");
    outputs_free(&first);
    ready_free(&r);
    return true;
}

static int check_step(struct dnn_dev *dev, struct dnn_dev *ref, struct sample *a,
                      const char *what)
{
    const struct cpu_algo *const *algos = dnn_cpu_algos(a->op.kind, a->op.pass);
    struct outputs before = outputs_copy(a), want = outputs_copy(a);
    int count = 0;

    ref_answer(ref, a, want.mem);
    for (int i = 0; algos[i] != NULL; i++) {
        if (!dnn_cpu_can(algos[i], &a->step)) continue;
        if (check_algo(dev, algos[i], a, &before, &want, what)) count++;
    }
    outputs_free(&before);
    outputs_free(&want);
    return count;
}

/* ---- the tables ---- */

#define NO_POST {.fn = DNN_UNARIES}
static const struct dnn_op_unary posts[] = {
    NO_POST,
    {.fn = DNN_RELU, .max_value = INFINITY},
    {.fn = DNN_RELU, .max_value = 0.5},
    {.fn = DNN_RELU, .max_value = INFINITY, .alpha = 0.25},
    {.fn = DNN_RELU, .max_value = 0.75, .alpha = 0.25, .threshold = 0.1},
    {.fn = DNN_ELU, .alpha = 0.7},
    {.fn = DNN_SELU},
    {.fn = DNN_GELU},
    {.fn = DNN_GELU_TANH},
    {.fn = DNN_SIGMOID},
    {.fn = DNN_TANH},
    {.fn = DNN_SOFTPLUS},
    {.fn = DNN_SOFTSIGN},
    {.fn = DNN_HARD_SIGMOID, .alpha = 0.2},
    {.fn = DNN_HARD_SWISH},
    {.fn = DNN_SWISH},
    {.fn = DNN_MISH},
    {.fn = DNN_LOG_SIGMOID},
};
enum { POSTS = sizeof posts / sizeof posts[0] };

#define CONV DNN_OP_CONV
#define DECONV DNN_OP_DECONV
#define WINDOW(ns, ...) {.nspatial = ns, __VA_ARGS__}
#define K(...) .kernel = {__VA_ARGS__}
#define S(...) .stride = {__VA_ARGS__}
#define DIL(...) .dilation = {__VA_ARGS__}
#define PAD(...) .before = {__VA_ARGS__}
#define AFTER(...) .after = {__VA_ARGS__}
#define G(g) .groups = g
#define ONES1 DIL(1)
#define ONES2 DIL(1, 1)
#define ONES3 DIL(1, 1, 1)

/* clang-format off */
static const struct shape shapes[] = {
    /* one dimension */
    {CONV, 2, {13}, 3, 5, WINDOW(1, K(3), S(1), ONES1, PAD(1), AFTER(1), G(1))},
    {CONV, 3, {17}, 17, 16, WINDOW(1, K(4), S(2), ONES1, PAD(1), AFTER(2), G(1))},
    {CONV, 1, {40}, 8, 1, WINDOW(1, K(5), S(1), DIL(3), PAD(12), AFTER(0), G(1))},
    {CONV, 2, {9}, 6, 6, WINDOW(1, K(3), S(1), ONES1, PAD(1), AFTER(1), G(6))},
    /* two */
    {CONV, 2, {9, 11}, 3, 7, WINDOW(2, K(3, 3), S(1, 1), ONES2, PAD(1, 1), AFTER(1, 1), G(1))},
    {CONV, 1, {14, 14}, 17, 17, WINDOW(2, K(3, 3), S(2, 2), ONES2, PAD(0, 0), AFTER(1, 1), G(1))},
    {CONV, 2, {16, 15}, 16, 32, WINDOW(2, K(1, 1), S(1, 1), ONES2, PAD(0, 0), AFTER(0, 0), G(1))},
    {CONV, 2, {16, 15}, 24, 3, WINDOW(2, K(1, 1), S(1, 1), ONES2, PAD(0, 0), AFTER(0, 0), G(1))},
    {CONV, 3, {7, 5}, 3, 2, WINDOW(2, K(1, 1), S(1, 1), ONES2, PAD(0, 0), AFTER(0, 0), G(1))},
    {CONV, 1, {8, 10}, 130, 70, WINDOW(2, K(1, 1), S(1, 1), ONES2, PAD(0, 0), AFTER(0, 0), G(1))},
    {CONV, 2, {16, 15}, 16, 20, WINDOW(2, K(1, 1), S(2, 2), ONES2, PAD(0, 0), AFTER(0, 0), G(1))},
    {CONV, 1, {20, 19}, 5, 4, WINDOW(2, K(7, 7), S(2, 2), ONES2, PAD(3, 3), AFTER(3, 3), G(1))},
    {CONV, 2, {12, 12}, 8, 12, WINDOW(2, K(3, 3), S(1, 1), DIL(2, 3), PAD(2, 3), AFTER(2, 3), G(1))},
    {CONV, 2, {12, 12}, 8, 12, WINDOW(2, K(3, 3), S(1, 1), ONES2, PAD(1, 1), AFTER(1, 1), G(4))},
    {CONV, 2, {10, 9}, 12, 12, WINDOW(2, K(3, 3), S(1, 1), ONES2, PAD(1, 1), AFTER(1, 1), G(12))},
    {CONV, 2, {10, 9}, 8, 24, WINDOW(2, K(3, 3), S(2, 2), ONES2, PAD(0, 1), AFTER(1, 1), G(8))},
    {CONV, 1, {11, 13}, 2, 1, WINDOW(2, K(3, 5), S(1, 2), ONES2, PAD(1, 0), AFTER(1, 4), G(1))},
    /* three */
    {CONV, 1, {8, 9, 10}, 1, 16, WINDOW(3, K(3, 3, 3), S(1, 1, 1), ONES3, PAD(1, 1, 1), AFTER(1, 1, 1), G(1))},
    {CONV, 2, {6, 7, 8}, 16, 16, WINDOW(3, K(3, 3, 3), S(1, 1, 1), ONES3, PAD(1, 1, 1), AFTER(1, 1, 1), G(1))},
    {CONV, 1, {6, 6, 9}, 16, 1, WINDOW(3, K(3, 3, 3), S(1, 1, 1), ONES3, PAD(1, 1, 1), AFTER(1, 1, 1), G(1))},
    {CONV, 1, {6, 6, 9}, 16, 2, WINDOW(3, K(3, 3, 3), S(1, 1, 1), ONES3, PAD(1, 1, 1), AFTER(1, 1, 1), G(1))},
    {CONV, 2, {5, 6, 19}, 17, 3, WINDOW(3, K(3, 3, 3), S(1, 1, 1), ONES3, PAD(1, 1, 1), AFTER(1, 1, 1), G(1))},
    {CONV, 1, {6, 5, 7}, 8, 4, WINDOW(3, K(3, 2, 3), S(2, 1, 1), ONES3, PAD(0, 1, 0), AFTER(1, 0, 2), G(1))},
    {CONV, 1, {5, 5, 5}, 3, 5, WINDOW(3, K(3, 3, 3), S(1, 1, 1), DIL(1, 2, 1), PAD(1, 2, 1), AFTER(1, 2, 1), G(1))},
    {CONV, 1, {8, 8, 8}, 16, 32, WINDOW(3, K(4, 4, 4), S(2, 2, 2), ONES3, PAD(1, 1, 1), AFTER(1, 1, 1), G(1))},
    {CONV, 2, {7, 6, 8}, 16, 1, WINDOW(3, K(1, 1, 1), S(1, 1, 1), ONES3, PAD(0, 0, 0), AFTER(0, 0, 0), G(1))},
    {CONV, 1, {7, 6, 8}, 19, 4, WINDOW(3, K(1, 1, 1), S(1, 1, 1), ONES3, PAD(0, 0, 0), AFTER(0, 0, 0), G(1))},
    {CONV, 1, {4, 4, 5}, 48, 33, WINDOW(3, K(3, 3, 3), S(1, 1, 1), ONES3, PAD(1, 1, 1), AFTER(1, 1, 1), G(1))},
    {CONV, 1, {4, 5, 6}, 8, 8, WINDOW(3, K(3, 3, 3), S(1, 1, 1), ONES3, PAD(1, 1, 1), AFTER(1, 1, 1), G(2))},
    {CONV, 1, {4, 5, 6}, 8, 8, WINDOW(3, K(3, 3, 3), S(1, 1, 1), ONES3, PAD(1, 1, 1), AFTER(1, 1, 1), G(8))},
    {CONV, 2, {4, 4, 4}, 6, 12, WINDOW(3, K(2, 2, 2), S(2, 2, 2), ONES3, PAD(0, 0, 0), AFTER(0, 0, 0), G(1))},
    {CONV, 1, {7, 7, 7}, 5, 9, WINDOW(3, K(2, 2, 2), S(3, 3, 3), ONES3, PAD(0, 0, 0), AFTER(0, 0, 0), G(1))},
    /* few channels on both sides */
    {CONV, 3, {28, 28}, 1, 4, WINDOW(2, K(3, 3), S(1, 1), ONES2, PAD(1, 1), AFTER(1, 1), G(1))},
    {CONV, 2, {28, 28}, 4, 8, WINDOW(2, K(3, 3), S(1, 1), ONES2, PAD(1, 1), AFTER(1, 1), G(1))},
    {CONV, 1, {9, 41}, 8, 4, WINDOW(2, K(3, 3), S(1, 1), ONES2, PAD(0, 0), AFTER(0, 0), G(1))},
    {CONV, 2, {17, 19}, 3, 16, WINDOW(2, K(3, 3), S(2, 2), ONES2, PAD(0, 1), AFTER(1, 1), G(1))},
    {CONV, 2, {17, 70}, 16, 4, WINDOW(2, K(5, 5), S(1, 1), ONES2, PAD(2, 2), AFTER(2, 2), G(1))},
    {CONV, 2, {7, 130}, 1, 1, WINDOW(2, K(3, 3), S(1, 1), ONES2, PAD(1, 1), AFTER(1, 1), G(1))},
    {CONV, 1, {12, 33}, 5, 7, WINDOW(2, K(3, 3), S(1, 1), DIL(2, 3), PAD(2, 3), AFTER(2, 3), G(1))},
    {CONV, 1, {5, 3}, 5, 7, WINDOW(2, K(2, 2), S(1, 1), ONES2, PAD(0, 0), AFTER(1, 1), G(1))},
    {CONV, 1, {1, 1}, 2, 6, WINDOW(2, K(3, 3), S(1, 1), ONES2, PAD(1, 1), AFTER(1, 1), G(1))},
    {CONV, 2, {11, 61}, 2, 15, WINDOW(2, K(3, 4), S(3, 3), DIL(1, 2), PAD(1, 4), AFTER(0, 3), G(1))},
    {CONV, 1, {6, 23}, 4, 4, WINDOW(2, K(3, 2), S(1, 5), ONES2, PAD(2, 0), AFTER(2, 0), G(1))},
    {CONV, 2, {600}, 2, 4, WINDOW(1, K(9), S(1), ONES1, PAD(4), AFTER(4), G(1))},
    {CONV, 1, {1100}, 4, 2, WINDOW(1, K(4), S(2), DIL(3), PAD(5), AFTER(4), G(1))},
    {CONV, 1, {5}, 9, 10, WINDOW(1, K(3), S(1), DIL(2), PAD(4), AFTER(0), G(1))},
    {CONV, 2, {7, 6, 21}, 1, 8, WINDOW(3, K(3, 3, 3), S(1, 1, 1), ONES3, PAD(1, 1, 1), AFTER(1, 1, 1), G(1))},
    {CONV, 1, {5, 7, 9}, 6, 3, WINDOW(3, K(3, 3, 3), S(1, 1, 1), DIL(2, 2, 1), PAD(2, 2, 1), AFTER(2, 2, 1), G(1))},
    {CONV, 1, {6, 8, 11}, 4, 8, WINDOW(3, K(2, 3, 3), S(2, 2, 2), ONES3, PAD(0, 1, 1), AFTER(0, 1, 1), G(1))},
    /* transposed, without overlap */
    {DECONV, 2, {3, 4, 5}, 16, 8, WINDOW(3, K(2, 2, 2), S(2, 2, 2), ONES3, PAD(0, 0, 0), AFTER(0, 0, 0), G(1))},
    {DECONV, 1, {3, 3, 7}, 32, 16, WINDOW(3, K(2, 2, 2), S(2, 2, 2), ONES3, PAD(0, 0, 0), AFTER(0, 0, 0), G(1))},
    {DECONV, 1, {2, 3, 5}, 13, 5, WINDOW(3, K(2, 2, 2), S(2, 2, 2), ONES3, PAD(0, 0, 0), AFTER(0, 0, 0), G(1))},
    {DECONV, 2, {5, 7}, 20, 24, WINDOW(2, K(2, 2), S(2, 2), ONES2, PAD(0, 0), AFTER(0, 0), G(1))},
    {DECONV, 1, {4, 3}, 7, 3, WINDOW(2, K(3, 2), S(3, 2), ONES2, PAD(0, 0), AFTER(0, 0), G(1))},
    {DECONV, 2, {11}, 8, 8, WINDOW(1, K(2), S(2), ONES1, PAD(0), AFTER(0), G(1))},
    /* with */
    {DECONV, 1, {4, 5, 4}, 8, 6, WINDOW(3, K(3, 3, 3), S(2, 2, 2), ONES3, PAD(0, 0, 0), AFTER(1, 1, 1), G(1))},
    {DECONV, 2, {5, 6}, 16, 9, WINDOW(2, K(4, 4), S(2, 2), ONES2, PAD(1, 1), AFTER(1, 1), G(1))},
    {DECONV, 1, {5, 6}, 4, 3, WINDOW(2, K(3, 3), S(1, 1), DIL(2, 2), PAD(2, 2), AFTER(2, 2), G(1))},
    {DECONV, 1, {5}, 6, 4, WINDOW(1, K(3), S(2), ONES1, PAD(0), AFTER(-1), G(1))},
};
/* clang-format on */

static void describe_shape(const struct shape *s, enum dnn_pass pass, char *out,
                           size_t size)
{
    char x[DNN_SHAPE_TEXT], w[DNN_SHAPE_TEXT];
    struct dnn_shape in = activation(s, s->in, s->c), weights = w_shape(s);

    snprintf(out, size, "%s %s %s by %s", dnn_op_info(s->kind)->name,
             dnn_op_pass_name(pass), dnn_shape_text(x, sizeof x, &in),
             dnn_shape_text(w, sizeof w, &weights));
}

/* Activations and biases alternate with the number of the shape: each is tested with
 * some shapes, and each shape with some of them. */
static void check_shape(struct dnn_dev *dev, struct dnn_dev *ref, const struct shape *s,
                        int number)
{
    char what[256];

    for (enum dnn_pass pass = DNN_FWD; pass <= DNN_BWD_WEIGHTS; pass++) {
        describe_shape(s, pass, what, sizeof what);
        for (int variant = 0; variant < 2; variant++) {
            const struct dnn_op_unary *post =
                variant == 0 ? NULL : &posts[(size_t)number % POSTS];
            struct sample a;

            if (post != NULL && post->fn == DNN_UNARIES) post = NULL;
            sample_make(&a, s, pass, variant == 1, post, 0);
            if (check_step(dev, ref, &a, what) == 0)
                ok(false, "%s: no kernel except the loops", what);
            sample_free(&a);
        }
        if (pass == DNN_BWD_WEIGHTS && s->kind != DECONV) continue;
        struct sample a;
        sample_make(&a, s, pass, true, NULL, 3);
        strcat(what, " apart");
        check_step(dev, ref, &a, what);
        sample_free(&a);
    }
}

static const int64_t products[][3] = {
    /* rows, k, n */
    {1,   1,    1   },
    {3,   17,   5   },
    {4,   300,  1   },
    {1,   64,   257 },
    {8,   130,  10  },
    {64,  33,   64  },
    {37,  1,    20  },
    {200, 48,   100 },
    {7,   1000, 515 },
    {16,  200,  128 },
    {19,  37,   40  },
    {32,  50,   1100},
    {300, 16,   3   },
    {900, 7,    24  }
};

static void check_products(struct dnn_dev *dev, struct dnn_dev *ref)
{
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        for (enum dnn_pass pass = DNN_FWD; pass <= DNN_BWD_WEIGHTS; pass++) {
            struct shape s = {DNN_OP_MATMUL,  products[i][0], {0},
                              products[i][1], products[i][2], {.groups = 1}};
            char what[256];
            struct sample a;

            describe_shape(&s, pass, what, sizeof what);
            const struct dnn_op_unary *post = &posts[i % POSTS];
            sample_make(&a, &s, pass, i % 2 == 1, post->fn == DNN_UNARIES ? NULL : post,
                        0);
            if (check_step(dev, ref, &a, what) == 0)
                ok(false, "%s: no kernel except the loops", what);
            sample_free(&a);
        }
}

int main(void)
{
    static const int threads[] = {1, 3};
    struct dnn_err err = {0};
    struct dnn_dev *ref, *cpu;

    if (dnn_backend_ref.open(&(struct dnn_device){0}, &ref, &err) < 0) return 1;
    for (int t = 0; t < 2; t++) {
        struct dnn_device device = {.threads = threads[t]};

        if (dnn_backend_cpu.open(&device, &cpu, &err) < 0) return 1;
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            check_shape(cpu, ref, &shapes[i], (int)i + 7 * t);
        check_products(cpu, ref);
        dnn_backend_cpu.close(cpu);
    }
    dnn_backend_ref.close(ref);
    return done();
}
