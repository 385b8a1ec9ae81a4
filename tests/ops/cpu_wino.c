/* cpu_wino.c - Winograd convolutions, forward and backward data, against the loops
 * of the ref backend: small errors, the same bits in two runs and with any number of
 * threads, nothing else written; unsupported shapes are refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/onednn_impl.h"
#include "base/mem.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>

extern const struct dnn_backend dnn_backend_ref, dnn_backend_cpu;

enum { THREADS = 3 };
static const double near = 5e-6;

/* A forward convolution; gap: floats between rows of y and of dy. */
struct shape {
    int ns;
    int64_t n, in[3], c, m, kernel[3], before[3], after[3];
    int64_t gap;
    bool bias;
    const struct dnn_op_unary *post;
};

struct sample {
    struct dnn_op op;
    struct dnn_tensor x, w, b, y;
    const struct dnn_tensor *in[3], *out[1];
    void *in_mem[3], *out_mem[1];
    int64_t in_pitch[3], out_pitch[1];
    size_t bytes; /* of the result */
    struct dnn_step step;
};

static float draw(void)
{
    static uint64_t seed = 11;

    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)((int64_t)((seed >> 33) % 2001) - 1000) / 1000;
}

static size_t bytes_of(const struct dnn_tensor *t, int64_t pitch)
{
    struct cpu_array a = dnn_cpu_array(t, NULL, pitch);

    return (size_t)(a.rows * a.pitch) * sizeof(float);
}

static float *numbers(size_t bytes)
{
    float *mem = malloc(bytes + 1);

    for (size_t i = 0; i < bytes / sizeof *mem; i++)
        mem[i] = draw();
    return mem;
}

static void shapes_of(const struct shape *s, struct sample *a)
{
    struct dnn_op_window *w = &a->op.attr.window;
    int last = s->ns + 1;

    a->x.shape.ndim = a->y.shape.ndim = a->w.shape.ndim = s->ns + 2;
    a->x.shape.dim[0] = a->y.shape.dim[0] = s->n;
    a->x.shape.dim[last] = a->w.shape.dim[last - 1] = s->c;
    a->y.shape.dim[last] = a->w.shape.dim[last] = s->m;
    a->b.shape = (struct dnn_shape){.ndim = 1, .dim = {s->m}};
    *w = (struct dnn_op_window){.nspatial = s->ns, .groups = 1};
    for (int i = 0; i < s->ns; i++) {
        w->kernel[i] = a->w.shape.dim[i] = s->kernel[i];
        w->stride[i] = w->dilation[i] = 1;
        w->before[i] = s->before[i];
        w->after[i] = s->after[i];
        a->x.shape.dim[i + 1] = s->in[i];
        a->y.shape.dim[i + 1] =
            s->in[i] + s->before[i] + s->after[i] - s->kernel[i] + 1;
    }
}

static void sample_make(struct sample *a, const struct shape *s, enum dnn_pass pass)
{
    static const int none[3] = {DNN_NONE, DNN_NONE, DNN_NONE};
    bool back = pass == DNN_BWD_DATA;

    *a = (struct sample){
        .op = {.kind = DNN_OP_CONV, .pass = pass, .in = none, .nout = 1}
    };
    shapes_of(s, a);
    a->op.nin = back ? 2 : 3;
    if (!back) a->op.post = s->post;
    a->in[0] = back ? &a->y : &a->x;
    a->in[1] = &a->w;
    a->in[2] = !back && s->bias ? &a->b : NULL;
    a->out[0] = back ? &a->x : &a->y;
    if (s->gap > 0) *(back ? &a->in_pitch[0] : &a->out_pitch[0]) = s->m + s->gap;
    for (int i = 0; i < 3; i++)
        if (a->in[i] != NULL)
            a->in_mem[i] = numbers(bytes_of(a->in[i], a->in_pitch[i]));
    a->bytes = bytes_of(a->out[0], a->out_pitch[0]);
    a->out_mem[0] = numbers(a->bytes);
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
    free(a->out_mem[0]);
}

/* ---- the expected result ---- */

static void ref_run(struct dnn_dev *ref, const struct dnn_step *step)
{
    struct dnn_kernel *kernel;
    struct dnn_err err = {0};
    struct dnn_need need;

    if (dnn_backend_ref.need(ref, step, &need, &err) < 0 ||
        dnn_backend_ref.prepare(ref, step, &kernel, &err) < 0) {
        ok(false, "ref: %s", err.text);
        return;
    }
    dnn_backend_ref.run(ref, kernel, &(struct dnn_now){0}, &err);
    dnn_backend_ref.discard(ref, kernel);
}

/* The bare convolution by the ref backend, the rest here. */
static void answer(struct dnn_dev *ref, const struct sample *a, float *out)
{
    struct cpu_array y = dnn_cpu_array(a->out[0], out, a->out_pitch[0]);
    const struct dnn_op_unary *post = a->op.post;
    const float *bias = a->in_mem[2];
    struct dnn_op op = a->op;
    struct dnn_step step = a->step;
    void *mem[] = {out};

    memcpy(out, a->out_mem[0], a->bytes);
    op.nin = 2;
    op.post = NULL;
    step.op = &op;
    step.out_mem = mem;
    ref_run(ref, &step);
    for (int64_t i = 0; i < y.count; i++) {
        float *at = out + i / y.row * y.pitch + i % y.row;

        if (bias != NULL) *at += bias[i % y.row];
        if (post != NULL && post->fn == DNN_TANH) *at = tanhf(*at);
        if (post != NULL && post->fn == DNN_RELU && *at < 0) *at *= (float)post->alpha;
        if (post != NULL && post->fn == DNN_RELU && *at > post->max_value)
            *at = (float)post->max_value;
    }
}

static double apart(const struct sample *a, const float *got, const float *want,
                    bool *gaps)
{
    struct cpu_array y = dnn_cpu_array(a->out[0], NULL, a->out_pitch[0]);
    double off = 0, size = 0;

    for (int64_t i = 0; i < y.rows * y.pitch; i++) {
        if (i % y.pitch >= y.row) {
            *gaps = *gaps && memcmp(&got[i], &want[i], sizeof *got) == 0;
            continue;
        }
        double d = (double)got[i] - (double)want[i];
        off += d * d;
        size += (double)want[i] * (double)want[i];
    }
    return sqrt(off) / fmax(sqrt(size), 1e-30);
}

/* ---- the kernel ---- */

static const char *const names[] = {"wino 1x4", "wino 4x4"};

static const struct cpu_algo *find(enum dnn_pass pass, int square)
{
    const struct cpu_algo *const *algos = dnn_cpu_algos(DNN_OP_CONV, pass);

    for (; *algos != NULL; algos++)
        if (strcmp((*algos)->name, names[square]) == 0) return *algos;
    return NULL;
}

/* Whether the 4x4 kernel supports it. */
static bool is_square(const struct shape *s)
{
    int h = s->ns - 2;

    return h >= 0 && s->kernel[h] == 3 && s->in[h] >= 4 &&
           s->in[h] + s->before[h] + s->after[h] >= 6;
}

/* Two runs, with other weights in between: are the results the same? */
static bool run_twice(struct dnn_dev *dev, const struct cpu_algo *algo,
                      const struct sample *a, float *first)
{
    size_t bytes = bytes_of(a->in[1], 0);
    struct dnn_step step = a->step;
    struct dnn_need need = {0};
    struct dnn_err err = {0};
    void *state = NULL, *mem[] = {first};
    float *weights = a->in_mem[1], *copy = numbers(bytes);

    step.out_mem = mem;
    bool good = algo->need(dev, &step, &need, &err) == 0;
    step.work = memset(malloc(need.work + 1), 0xff, need.work);
    step.keep = memset(malloc(need.keep + 1), 0xff, need.keep);
    struct cpu_call call = dnn_cpu_call(dev, &step);
    good = good && algo->prepare(dev, &step, &call, &state, &err) == 0 &&
           algo->run(dev, &call, state, &err) == 0;
    float *again = memcpy(malloc(a->bytes + 1), first, a->bytes);
    for (size_t i = 0; i < bytes / sizeof *weights; i++) {
        copy[i] = weights[i];
        weights[i] = -weights[i] + 1;
    }
    call.now.weights = 1;
    good = good && algo->run(dev, &call, state, &err) == 0 &&
           memcmp(first, again, a->bytes) != 0;
    memcpy(weights, copy, bytes);
    call.now.weights = 2;
    good = good && algo->run(dev, &call, state, &err) == 0 &&
           memcmp(first, again, a->bytes) == 0;
    if (state != NULL) algo->discard(state);
    dnn_free(call.in);
    free(step.work);
    free(step.keep);
    free(again);
    free(copy);
    return good;
}

static void check(struct dnn_dev *ref, struct dnn_dev *const dev[THREADS],
                  const struct shape *s, enum dnn_pass pass, int square)
{
    const struct cpu_algo *algo = find(pass, square);
    char x[DNN_SHAPE_TEXT], w[DNN_SHAPE_TEXT];
    struct sample a;

    sample_make(&a, s, pass);
    float *want = malloc(a.bytes + 1), *got = malloc(a.bytes + 1),
          *one = malloc(a.bytes + 1);
    bool gaps = true, same = true, twice = true, can = dnn_cpu_can(algo, &a.step);
    double worst = 0;

    answer(ref, &a, want);
    for (int t = 0; can && t < THREADS; t++) {
        memcpy(got, a.out_mem[0], a.bytes);
        twice = run_twice(dev[t], algo, &a, got) && twice;
        worst = fmax(worst, apart(&a, got, want, &gaps));
        if (t == 0) memcpy(one, got, a.bytes);
        same = same && memcmp(one, got, a.bytes) == 0;
    }
    ok(can && gaps && same && twice && worst < near, "%s, %s %s by %s: %.1e%s%s%s%s",
       names[square], dnn_op_pass_name(pass), dnn_shape_text(x, sizeof x, &a.x.shape),
       dnn_shape_text(w, sizeof w, &a.w.shape), worst, can ? "" : ", refused",
       gaps ? "" : ", writes between rows",
       same ? "" : ", other bits with more threads",
       twice ? "" : ", other bits the second time");
    free(want);
    free(got);
    free(one);
    sample_free(&a);
}

/* ---- the tables ---- */

static const struct dnn_op_unary relu = {.fn = DNN_RELU, .max_value = INFINITY};
static const struct dnn_op_unary leaky = {
    .fn = DNN_RELU, .max_value = INFINITY, .alpha = 0.25};
static const struct dnn_op_unary capped = {.fn = DNN_RELU, .max_value = 0.5};
static const struct dnn_op_unary curve = {.fn = DNN_TANH};

/* clang-format off */
static const struct shape shapes[] = {
    /* one dimension */
    {1, 2, {4}, 8, 8, {3}, {1}, {1}, 0, true, &relu},
    {1, 2, {37}, 9, 17, {3}, {0}, {0}, 0, true, NULL},
    {1, 1, {6}, 8, 8, {3}, {0}, {0}, 0, false, NULL},
    {1, 3, {150}, 13, 25, {3}, {2}, {0}, 0, true, &leaky},
    /* two */
    {2, 2, {5, 7}, 16, 16, {3, 3}, {1, 1}, {1, 1}, 0, true, &relu},
    {2, 1, {9, 13}, 40, 48, {3, 3}, {1, 1}, {1, 1}, 0, false, NULL},
    {2, 2, {9, 14}, 11, 31, {3, 3}, {0, 0}, {0, 0}, 5, true, &curve},
    {2, 1, {6, 22}, 24, 24, {1, 3}, {0, 1}, {0, 1}, 0, true, &capped},
    {2, 1, {8, 11}, 19, 8, {5, 3}, {2, 0}, {2, 2}, 0, true, NULL},
    {2, 1, {7, 9}, 8, 40, {4, 3}, {0, 2}, {3, 2}, 3, true, &relu},
    {2, 1, {4, 8}, 300, 33, {3, 3}, {1, 1}, {1, 1}, 0, true, NULL},
    {2, 1, {2, 19}, 10, 12, {2, 3}, {3, 1}, {2, 0}, 0, false, NULL},
    {2, 1, {41, 70}, 8, 18, {3, 3}, {1, 1}, {1, 1}, 0, true, &relu},
    {2, 5, {6, 10}, 9, 8, {3, 3}, {1, 1}, {1, 1}, 0, true, NULL},
    /* three */
    {3, 2, {5, 6, 8}, 16, 16, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, 0, true, &relu},
    {3, 1, {4, 5, 21}, 24, 9, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, 0, true, &leaky},
    {3, 1, {5, 5, 10}, 8, 23, {3, 3, 3}, {0, 0, 0}, {0, 0, 0}, 0, true, NULL},
    {3, 2, {3, 4, 6}, 17, 40, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, 7, true, &relu},
    {3, 1, {6, 4, 5}, 12, 13, {1, 1, 3}, {0, 0, 1}, {0, 0, 1}, 0, false, NULL},
    {3, 1, {6, 4, 12}, 9, 10, {2, 3, 3}, {0, 2, 1}, {1, 0, 0}, 0, true, &curve},
    {3, 1, {4, 3, 7}, 8, 8, {3, 1, 3}, {4, 0, 2}, {2, 0, 1}, 0, true, NULL},
    {3, 1, {4, 38, 37}, 8, 9, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, 0, true, NULL},
    {3, 1, {7, 9, 33}, 16, 20, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, 0, true, &relu},
};

/* Unsupported shapes. */
static const struct shape others[] = {
    {2, 1, {8, 8}, 7, 16, {3, 3}, {1, 1}, {1, 1}, 0, false, NULL},
    {2, 1, {8, 8}, 16, 7, {3, 3}, {1, 1}, {1, 1}, 0, false, NULL},
    {2, 1, {8, 8}, 16, 16, {3, 2}, {1, 0}, {1, 1}, 0, false, NULL},
    {2, 1, {8, 8}, 16, 16, {3, 5}, {1, 2}, {1, 2}, 0, false, NULL},
    {2, 1, {8, 3}, 16, 16, {3, 3}, {1, 1}, {1, 1}, 0, false, NULL},
    {2, 1, {8, 8}, 16, 16, {3, 3}, {1, 3}, {1, 1}, 0, false, NULL},
};
/* clang-format on */

static void check_refused(enum dnn_pass pass, int square)
{
    struct sample a;

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        sample_make(&a, &others[i], pass);
        ok(!dnn_cpu_can(find(pass, square), &a.step), "%s, %s: shape %zu is refused",
           names[square], dnn_op_pass_name(pass), i);
        sample_free(&a);
    }
    for (size_t i = 0; square == 1 && i < sizeof shapes / sizeof shapes[0]; i++) {
        if (is_square(&shapes[i])) continue;
        sample_make(&a, &shapes[i], pass);
        ok(!dnn_cpu_can(find(pass, square), &a.step),
           "%s, %s: row shape %zu is refused", names[square], dnn_op_pass_name(pass),
           i);
        sample_free(&a);
    }
    sample_make(&a, &shapes[4], pass);
    struct dnn_op_window *w = &a.op.attr.window;
    w->groups = 2;
    ok(!dnn_cpu_can(find(pass, square), &a.step), "%s, %s: groups are", names[square],
       dnn_op_pass_name(pass));
    w->groups = 1;
    w->dilation[0] = 2;
    ok(!dnn_cpu_can(find(pass, square), &a.step), "%s, %s: gaps are", names[square],
       dnn_op_pass_name(pass));
    w->dilation[0] = 1;
    w->stride[1] = 2;
    ok(!dnn_cpu_can(find(pass, square), &a.step), "%s, %s: strides are", names[square],
       dnn_op_pass_name(pass));
    sample_free(&a);
}

int main(void)
{
    struct dnn_dev *ref, *dev[THREADS];
    struct dnn_err err = {0};

    if (dnn_backend_ref.open(&(struct dnn_device){0}, &ref, &err) < 0) return 1;
    for (int t = 0; t < THREADS; t++)
        if (dnn_backend_cpu.open(&(struct dnn_device){.threads = t + 1}, &dev[t],
                                 &err) < 0)
            return 1;
    for (int both = 0; both < 4; both++) {
        enum dnn_pass pass = both % 2 == 0 ? DNN_FWD : DNN_BWD_DATA;
        int square = both / 2;

        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            if (square == 0 || is_square(&shapes[i]))
                check(ref, dev, &shapes[i], pass, square);
        check_refused(pass, square);
    }
    for (int t = 0; t < THREADS; t++)
        dnn_backend_cpu.close(dev[t]);
    dnn_backend_ref.close(ref);
    return done();
}
