/* backend_direct.c - our own convolution kernels against plain loops in double.
 *
 * Odd shapes, every instruction set this machine has, several thread counts; and
 * the same bits every time.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/direct.h"
#include "tap.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { GUARD = 64 }; /* bytes after each result and the scratch memory */

static uint64_t seed = 1;

static int64_t draw(int64_t lo, int64_t hi)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return lo + (int64_t)((seed >> 33) % (uint64_t)(hi - lo + 1));
}

static int64_t volume(const int64_t *v)
{
    return v[0] * v[1] * v[2];
}

static float *numbers(int64_t count)
{
    float *out = malloc((size_t)count * sizeof *out);

    for (int64_t i = 0; i < count; i++)
        out[i] = (float)draw(-1000, 1000) / 1000;
    return out;
}

/* The arrays of a shape, and the expected result. */
struct sample {
    struct dnn_direct_conv v;
    int64_t weights;
    float *x, *dy;
    double *dw, *db, most_w, most_b;
};

/* Floats from one position of x to the next. */
static int64_t pitch(const struct dnn_direct_conv *v)
{
    return v->pitch == 0 ? v->c : v->pitch;
}

static void tap_gradient(struct sample *s, const int64_t *k, double *dw)
{
    const struct dnn_direct_conv *v = &s->v;
    int64_t o[4], i[3];

    for (o[3] = 0; o[3] < v->n; o[3]++)
        for (o[0] = 0; o[0] < v->out[0]; o[0]++)
            for (o[1] = 0; o[1] < v->out[1]; o[1]++)
                for (o[2] = 0; o[2] < v->out[2]; o[2]++) {
                    bool inside = true;

                    for (int a = 0; a < 3; a++) {
                        int64_t dil = v->dilation[a] == 0 ? 1 : v->dilation[a];

                        i[a] = o[a] * v->stride[a] + k[a] * dil - v->before[a];
                        inside = inside && i[a] >= 0 && i[a] < v->in[a];
                    }
                    if (!inside) continue;
                    const float *x =
                        s->x +
                        (((o[3] * v->in[0] + i[0]) * v->in[1] + i[1]) * v->in[2] +
                         i[2]) *
                            pitch(v);
                    const float *dy =
                        s->dy +
                        (((o[3] * v->out[0] + o[0]) * v->out[1] + o[1]) * v->out[2] +
                         o[2]) *
                            v->m;
                    for (int64_t c = 0; c < v->c; c++)
                        for (int64_t m = 0; m < v->m; m++)
                            dw[c * v->m + m] += (double)x[c] * (double)dy[m];
                }
}

static struct sample sample_make(const struct dnn_direct_conv *v)
{
    struct sample s = {.v = *v, .weights = volume(v->kernel) * v->c * v->m};
    int64_t k[3], outputs = v->n * volume(v->out);
    double *dw;

    s.x = numbers(v->n * volume(v->in) * pitch(v));
    s.dy = numbers(outputs * v->m);
    s.dw = dw = calloc((size_t)s.weights, sizeof *s.dw);
    s.db = calloc((size_t)v->m, sizeof *s.db);
    for (k[0] = 0; k[0] < v->kernel[0]; k[0]++)
        for (k[1] = 0; k[1] < v->kernel[1]; k[1]++)
            for (k[2] = 0; k[2] < v->kernel[2]; k[2]++, dw += v->c * v->m)
                tap_gradient(&s, k, dw);
    for (int64_t i = 0; i < outputs * v->m; i++)
        s.db[i % v->m] += (double)s.dy[i];
    for (int64_t i = 0; i < s.weights; i++)
        s.most_w = fmax(s.most_w, fabs(s.dw[i]));
    for (int64_t i = 0; i < v->m; i++)
        s.most_b = fmax(s.most_b, fabs(s.db[i]));
    return s;
}

static void sample_free(struct sample *s)
{
    free(s->x);
    free(s->dy);
    free(s->dw);
    free(s->db);
}

/* The largest difference, relative to the largest number. */
static double apart(const float *got, const double *want, int64_t count, double most)
{
    double worst = 0;

    for (int64_t i = 0; i < count; i++) {
        double d = fabs((double)got[i] - want[i]);

        if (!(d <= worst)) worst = d; /* not a number counts too */
    }
    return worst == 0 ? 0 : worst / fmax(most, 1e-3);
}

static bool untouched(const unsigned char *at)
{
    for (int i = 0; i < GUARD; i++)
        if (at[i] != 0xa5) return false;
    return true;
}

/* Nothing outside is written, and no old content is used: results and scratch memory
 * are filled with NaN first, and the scratch memory has an odd address. */
static double run(const struct sample *s, int threads, bool bias, float *dw)
{
    size_t weights = (size_t)s->weights * sizeof(float);
    size_t outputs = (size_t)s->v.m * sizeof(float);
    size_t bytes = dnn_direct_weights_work(&s->v, threads),
           odd = (size_t)draw(0, 15) * 4;
    unsigned char *w = malloc(weights + GUARD), *b = malloc(outputs + GUARD);
    unsigned char *work = malloc(odd + bytes + GUARD);
    double worst;

    memset(w, 0xff, weights);
    memset(w + weights, 0xa5, GUARD);
    memset(b, 0xff, outputs);
    memset(b + outputs, 0xa5, GUARD);
    memset(work, 0xff, odd + bytes);
    memset(work + odd + bytes, 0xa5, GUARD);
    dnn_direct_weights(&s->v, s->x, s->dy, (float *)(void *)w,
                       bias ? (float *)(void *)b : NULL, work + odd, threads);
    worst = apart((float *)(void *)w, s->dw, s->weights, s->most_w);
    if (bias) worst = fmax(worst, apart((float *)(void *)b, s->db, s->v.m, s->most_b));
    if (!untouched(w + weights) || !untouched(b + outputs) ||
        !untouched(work + odd + bytes))
        worst = INFINITY;
    memcpy(dw, w, weights);
    free(w);
    free(b);
    free(work);
    return worst;
}

static void describe(const struct dnn_direct_conv *v, int threads, double worst)
{
    printf("# n %d in", (int)v->n);
    for (int i = 0; i < 3; i++)
        printf(" %d", (int)v->in[i]);
    printf(" c %d out %d %d %d m %d", (int)v->c, (int)v->out[0], (int)v->out[1],
           (int)v->out[2], (int)v->m);
    for (int i = 0; i < 3; i++)
        printf(" | k %d s %d b %d d %d", (int)v->kernel[i], (int)v->stride[i],
               (int)v->before[i], (int)v->dilation[i]);
    printf(" | %d threads: off by %g\n", threads, worst);
}

/* One shape with 1, 2, 3 and 7 threads, twice each; returns the number of errors. */
static int try_shape(const struct dnn_direct_conv *v)
{
    static const int teams[] = {1, 2, 3, 7};
    struct sample s = sample_make(v);
    float *one = malloc((size_t)s.weights * sizeof *one);
    float *two = malloc((size_t)s.weights * sizeof *two);
    int bad = dnn_direct_weights_can(v) ? 0 : 1;

    for (size_t i = 0; i < sizeof teams / sizeof teams[0]; i++) {
        double worst = run(&s, teams[i], true, one);

        worst = fmax(worst, run(&s, teams[i], false, two));
        if (worst <= 1e-5 && memcmp(one, two, (size_t)s.weights * sizeof *one) == 0)
            continue;
        bad++;
        describe(v, teams[i], worst);
    }
    sample_free(&s);
    free(one);
    free(two);
    return bad;
}

static struct dnn_direct_conv draw_shape(int dims, int64_t c, int64_t m, int64_t size)
{
    struct dnn_direct_conv v = {.n = draw(1, 3), .c = c, .m = m};

    if (draw(0, 2) == 0) v.pitch = c + draw(0, 9);

    for (int i = 0; i < 3; i++) {
        int64_t after;

        if (i < 3 - dims) {
            v.in[i] = v.out[i] = v.kernel[i] = v.stride[i] = 1;
            continue;
        }
        do {
            v.in[i] = draw(1, size);
            v.kernel[i] = draw(1, 4);
            v.stride[i] = draw(1, 2);
            v.dilation[i] = draw(0, 5) == 5 ? 2 : draw(0, 1);
            v.before[i] = draw(0, v.kernel[i]);
            after = draw(0, 2);
            after += v.in[i] + v.before[i] - 1 -
                     (v.kernel[i] - 1) * (v.dilation[i] == 2 ? 2 : 1);
        } while (after < 0);
        v.out[i] = after / v.stride[i] + 1;
    }
    return v;
}

static void test_isa(const char *isa)
{
    int bad = 0;

    setenv("DNN_ISA", isa, 1);
    if (strcmp(dnn_direct_isa(), isa) != 0) {
        skip(isa, "not on this machine");
        return;
    }
    seed = 1;
    for (int i = 0; i < 240; i++) {
        struct dnn_direct_conv v = draw_shape(i % 4 == 0    ? 2
                                              : i % 16 == 1 ? 1
                                                            : 3,
                                              draw(1, 40), draw(1, 40), 9);

        bad += try_shape(&v);
    }
    ok(bad == 0, "%s: random shapes are correct", isa);
    bad = 0;
    for (int64_t c = 1; c <= 8; c++)
        for (int64_t m = 1; m <= 8; m++) {
            struct dnn_direct_conv v = draw_shape(2 + (int)draw(0, 1), c, m, 9);

            bad += try_shape(&v);
        }
    ok(bad == 0, "%s: so are few channels on both sides", isa);
    bad = 0;
    for (int i = 0; i < 12; i++) {
        struct dnn_direct_conv v = draw_shape(
            i % 3 + 1, i % 2 == 0 ? 1 : 17, i % 4 < 2 ? 1 : 24, i % 3 == 0 ? 900 : 20);

        bad += try_shape(&v);
    }
    ok(bad == 0, "%s: and long axes", isa);
    bad = 0;
    for (int i = 0; i < 12; i++) {
        struct dnn_direct_conv v =
            draw_shape(i % 3 + 1, 30 + draw(0, 60), 30 + draw(0, 60), 6);

        bad += try_shape(&v);
    }
    ok(bad == 0, "%s: and many channels", isa);
}

/* A whole-network size once: 32 x 32 x 20, 16 to 16, and its 1x1x1 sibling. */
static void test_usual(void)
{
    struct dnn_direct_conv v = {
        .n = 1,
        .in = {32, 32, 20},
        .c = 16,
        .out = {32, 32, 20},
        .m = 16,
        .kernel = {3,  3,  3 },
        .stride = {1,  1,  1 },
        .before = {1,  1,  1 }
    };
    struct dnn_direct_conv last = v;

    last.m = 3;
    for (int i = 0; i < 3; i++) {
        last.kernel[i] = 1;
        last.before[i] = 0;
    }
    is_int(try_shape(&v), 0, "3x3x3, 16 to 16");
    is_int(try_shape(&last), 0, "1x1x1, 16 to 3");
}

static void test_can(void)
{
    const struct dnn_direct_conv good = {
        .n = 1,
        .in = {4, 4, 4},
        .c = 1,
        .out = {4, 4, 4},
        .m = 1,
        .kernel = {3, 3, 3},
        .stride = {1, 1, 1},
        .before = {1, 1, 1}
    };
    struct dnn_direct_conv v = good;

    ok(dnn_direct_weights_can(&v), "a common shape is supported");
    v.stride[1] = 0;
    ok(!dnn_direct_weights_can(&v), "stride 0 is not");
    v = good;
    v.before[2] = -1;
    ok(!dnn_direct_weights_can(&v), "nor is negative padding");
    v = good;
    v.c = 0;
    ok(!dnn_direct_weights_can(&v), "nor are 0 channels");
    v = good;
    v.in[0] = v.in[1] = v.in[2] = (int64_t)1 << 40;
    ok(!dnn_direct_weights_can(&v), "nor an array larger than memory");
    v = good;
    v.dilation[0] = INT64_MAX;
    ok(!dnn_direct_weights_can(&v), "nor a dilation larger than any array");
}

static void test_check(void)
{
    struct dnn_err err = {0};

    unsetenv("DNN_ISA");
    is_int(dnn_direct_check(&err), 0, "DNN_ISA may be unset");
    setenv("DNN_ISA", "plain", 1);
    is_int(dnn_direct_check(&err), 0, "DNN_ISA=plain is valid on all machines");
    is_text(dnn_direct_isa(), "plain", "and is used");
    setenv("DNN_ISA", "mmx", 1);
    is_int(dnn_direct_check(&err), DNN_EUSAGE, "DNN_ISA=mmx is refused");
    is_text(err.text, "DNN_ISA: must be one of plain, avx2, avx512, not \"mmx\"",
            "with the names that exist");
    unsetenv("DNN_ISA");
}

int main(void)
{
    test_isa("plain");
    test_isa("avx2");
    test_isa("avx512");
    unsetenv("DNN_ISA");
    test_usual();
    test_can();
    test_check();
    return done();
}
