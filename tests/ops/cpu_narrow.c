/* cpu_narrow.c - the kernel for convolutions with few channels: the same bits with any
 * number of threads and for any other samples in the batch; unsupported shapes are
 * refused.  cpu_conv.c tests that results are correct.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/onednn_impl.h"
#include "base/mem.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>

extern const struct dnn_backend dnn_backend_cpu;

enum { THREADS = 4 };

/* A convolution of two dimensions whose output is as large as its input. */
struct shape {
    int64_t n, h, w, c, m, kernel, stride, groups;
};

struct sample {
    struct dnn_op op;
    struct dnn_tensor x, w, b, y;
    const struct dnn_tensor *in[3], *out[1];
    float *in_mem[3];
    size_t bytes; /* of the result */
};

static size_t bytes_of(const struct dnn_tensor *t)
{
    return (size_t)dnn_cpu_array(t, NULL, 0).count * sizeof(float);
}

static float *numbers(size_t bytes)
{
    static uint64_t seed = 5;
    float *mem = malloc(bytes + 1);

    for (size_t i = 0; i < bytes / sizeof *mem; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        mem[i] = (float)((int64_t)((seed >> 33) % 2001) - 1000) / 1000;
    }
    return mem;
}

static void sample_make(struct sample *a, const struct shape *s, enum dnn_pass pass)
{
    static const int none[3] = {DNN_NONE, DNN_NONE, DNN_NONE};
    static const struct dnn_op_unary relu = {.fn = DNN_RELU, .max_value = INFINITY};
    bool back = pass == DNN_BWD_DATA;
    int64_t pad = (s->kernel - 1) / 2, end = s->kernel - 1 - pad;
    int64_t h = (s->h - 1) / s->stride + 1, w = (s->w - 1) / s->stride + 1;

    *a = (struct sample){
        .op = {.kind = DNN_OP_CONV, .pass = pass, .in = none, .nout = 1}
    };
    a->op.attr.window = (struct dnn_op_window){
        .nspatial = 2,
        .kernel = {s->kernel, s->kernel},
        .stride = {s->stride, s->stride},
        .dilation = {1,         1        },
        .before = {pad,       pad      },
        .after = {end,       end      },
        .groups = s->groups
    };
    a->x.shape = (struct dnn_shape){
        .ndim = 4, .dim = {s->n, s->h, s->w, s->c}
    };
    a->y.shape = (struct dnn_shape){
        .ndim = 4, .dim = {s->n, h, w, s->m}
    };
    a->w.shape = (struct dnn_shape){
        .ndim = 4, .dim = {s->kernel, s->kernel, s->c / s->groups, s->m}
    };
    a->b.shape = (struct dnn_shape){.ndim = 1, .dim = {s->m}};
    a->op.nin = back ? 2 : 3;
    a->op.post = back ? NULL : &relu;
    a->in[0] = back ? &a->y : &a->x;
    a->in[1] = &a->w;
    a->in[2] = &a->b;
    a->out[0] = back ? &a->x : &a->y;
    a->bytes = bytes_of(a->out[0]);
    for (int i = 0; i < 3; i++)
        a->in_mem[i] = numbers(bytes_of(a->in[i]));
}

static void sample_free(struct sample *a)
{
    for (int i = 0; i < 3; i++)
        free(a->in_mem[i]);
}

static bool run(struct dnn_dev *dev, const struct sample *a, const float *x, float *y)
{
    const struct cpu_algo *algo = &dnn_cpu_narrow;
    void *in[] = {(void *)(uintptr_t)x, a->in_mem[1], a->in_mem[2]}, *out[] = {y};
    struct dnn_step step = {
        .op = &a->op, .in = a->in, .out = a->out, .in_mem = in, .out_mem = out};
    struct dnn_need need = {0};
    struct dnn_err err = {0};
    void *state = NULL;

    if (!dnn_cpu_can(algo, &step) || algo->need(dev, &step, &need, &err) < 0)
        return false;
    step.work = memset(malloc(need.work + 1), 0xff, need.work);
    step.keep = memset(malloc(need.keep + 1), 0xff, need.keep);
    struct cpu_call call = dnn_cpu_call(dev, &step);
    bool good = algo->prepare(dev, &step, &call, &state, &err) == 0 &&
                algo->run(dev, &call, state, &err) == 0;
    if (state != NULL) algo->discard(state);
    dnn_free(call.in);
    free(step.work);
    free(step.keep);
    return good;
}

static void check(struct dnn_dev *const dev[THREADS], const struct shape *s,
                  enum dnn_pass pass)
{
    struct shape single = *s;
    struct sample a, one;
    char text[DNN_SHAPE_TEXT];

    single.n = 1;
    sample_make(&a, s, pass);
    sample_make(&one, &single, pass);
    float *want = malloc(a.bytes + 1), *got = malloc(a.bytes + 1);
    bool ran = run(dev[0], &a, a.in_mem[0], want), same = true, alone = true;

    for (int t = 1; t < THREADS; t++) {
        memset(got, 0xff, a.bytes);
        ran = ran && run(dev[t], &a, a.in_mem[0], got);
        same = same && memcmp(want, got, a.bytes) == 0;
    }
    for (int i = 0; i < 2; i++)
        memcpy(one.in_mem[i + 1], a.in_mem[i + 1], bytes_of(a.in[i + 1]));
    for (int64_t n = 0; n < s->n; n++) {
        size_t in = bytes_of(one.in[0]) / sizeof(float), out = one.bytes / sizeof *got;

        memset(got, 0xff, one.bytes);
        ran = ran && run(dev[n % THREADS], &one, a.in_mem[0] + (size_t)n * in, got);
        alone = alone && memcmp(want + (size_t)n * out, got, one.bytes) == 0;
    }
    dnn_shape_text(text, sizeof text, &a.x.shape);
    ok(ran, "%s %s to %d: supported", dnn_op_pass_name(pass), text, (int)s->m);
    ok(same, "the same bits with any number of threads");
    ok(alone, "and for each sample alone");
    free(want);
    free(got);
    sample_free(&a);
    sample_free(&one);
}

/* Supported shapes, forward and backward. */
static const struct shape shapes[] = {
    {5, 28, 28,  1,  4,  3, 1, 1},
    {5, 28, 28,  4,  8,  3, 1, 1},
    {3, 9,  7,   5,  7,  3, 1, 1},
    {3, 11, 300, 2,  3,  5, 1, 1},
    {2, 6,  150, 12, 14, 3, 1, 1},
    {3, 5,  33,  1,  1,  1, 1, 1}
};

/* Unsupported shapes; strides are unsupported only backward. */
static const struct shape others[] = {
    {2, 8, 8, 16, 16, 3, 1, 1},
    {2, 8, 8, 8,  17, 3, 1, 1},
    {2, 8, 8, 17, 8,  3, 1, 1},
    {2, 8, 8, 4,  8,  3, 1, 2}
};
static const struct shape apart = {3, 15, 22, 3, 5, 3, 2, 1};

static void refused(const struct shape *s, enum dnn_pass pass)
{
    struct sample a;

    sample_make(&a, s, pass);
    struct dnn_step step = {.op = &a.op, .in = a.in, .out = a.out};
    ok(!dnn_cpu_can(&dnn_cpu_narrow, &step),
       "%s of %d channels to %d in %d groups, stride %d: refused",
       dnn_op_pass_name(pass), (int)s->c, (int)s->m, (int)s->groups, (int)s->stride);
    sample_free(&a);
}

int main(void)
{
    struct dnn_dev *dev[THREADS];
    struct dnn_err err = {0};

    for (int t = 0; t < THREADS; t++)
        if (dnn_backend_cpu.open(&(struct dnn_device){.threads = t + 1}, &dev[t],
                                 &err) < 0)
            return 1;
    for (enum dnn_pass pass = DNN_FWD; pass <= DNN_BWD_DATA; pass++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            check(dev, &shapes[i], pass);
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
            refused(&others[i], pass);
    }
    check(dev, &apart, DNN_FWD);
    refused(&apart, DNN_BWD_DATA);
    for (int t = 0; t < THREADS; t++)
        dnn_backend_cpu.close(dev[t]);
    return done();
}
