/* op_init.c - initializers: names, fans, moments, and error messages.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "op/init.h"
#include "tap.h"

#include <math.h>

static struct dnn_shape shape(const char *text)
{
    struct dnn_shape s = {0};

    if (dnn_shape_parse(text, &s, NULL) < 0) ok(false, "%s is not a shape", text);
    return s;
}

static void fans(const char *text, double in, double out)
{
    struct dnn_shape s = shape(text);
    double i, o;

    dnn_init_fans(&s, &i, &o);
    ok(i == in && o == out, "fans of %s: %g and %g", text, i, o);
}

/* The shape 30x20x10x40 has fan-in 6000, fan-out 24000. */
static const struct {
    const char *name;
    double mean, deviation, most;
} moments[] = {
    {"zeros",            0, 0,          0        },
    {"Ones",             1, 0,          1        },
    {"RandomUniform",    0, 0.0288675,  0.05     },
    {"random_normal",    0, 0.05,       0.4      },
    {"truncated_normal", 0, 0.0439813,  0.1      },
    {"GlorotUniform",    0, 0.00816497, 0.0141422},
    {"glorot_normal",    0, 0.00816497, 0.0185649},
    {"he_uniform",       0, 0.0182574,  0.0316228},
    {"HeNormal",         0, 0.0182574,  0.0415122},
    {"lecun_uniform",    0, 0.0129099,  0.0223607},
    {"LecunNormal",      0, 0.0129099,  0.0293535},
    {"variance_scaling", 0, 0.0129099,  0.0293535},
};

static void moment(size_t row)
{
    enum { N = 30 * 20 * 10 * 40 };
    static double data[N];
    struct dnn_shape s = shape("30x20x10x40");
    struct dnn_rng rng = dnn_rng_make(3, row);
    struct dnn_init init;
    double sum = 0, squares = 0, most = 0, want = moments[row].deviation;

    if (!ok(dnn_init_find(moments[row].name, &init), "%s is known", moments[row].name))
        return;
    is_int(dnn_init_fill(&init, &s, &rng, DNN_F64, data, NULL), 0, "it fills");
    for (int i = 0; i < N; i++) {
        sum += data[i];
        squares += data[i] * data[i];
        most = fmax(most, fabs(data[i]));
    }
    double mean = sum / N, dev = sqrt(fmax(0, squares / N - mean * mean));
    if (!ok(fabs(mean - moments[row].mean) <= 0.01 * want &&
                fabs(dev - want) <= 0.01 * want && most <= moments[row].most * 1.0001,
            "moments of %s", moments[row].name))
        printf("#   mean %g, deviation %g, largest %g\n", mean, dev, most);
}

/* Rows or columns, whichever are fewer, have norm gain and are orthogonal. */
static void orthogonal(const char *text, int rows, int cols)
{
    struct dnn_shape s = shape(text);
    struct dnn_rng rng = dnn_rng_make(3, 1);
    struct dnn_init init = {.kind = DNN_INIT_ORTHOGONAL, .a = 2};
    double data[128], worst = 0;
    int few = rows < cols ? rows : cols, many = rows < cols ? cols : rows;

    is_int(dnn_init_fill(&init, &s, &rng, DNN_F64, data, NULL), 0, "it fills");
    for (int i = 0; i < few; i++)
        for (int j = 0; j < few; j++) {
            double dot = 0;
            for (int k = 0; k < many; k++)
                dot += rows < cols ? data[i * cols + k] * data[j * cols + k]
                                   : data[k * cols + i] * data[k * cols + j];
            worst = fmax(worst, fabs(dot - (i == j ? 4 : 0)));
        }
    ok(worst < 1e-13, "orthogonal %s: off by %.2g", text, worst);
}

static void refuses(enum dnn_init_kind kind, const char *text, enum dnn_dtype dtype,
                    const char *want)
{
    struct dnn_shape s = shape(text);
    struct dnn_rng rng = dnn_rng_make(3, 1);
    struct dnn_init init = {.kind = kind};
    struct dnn_err err = {0};
    float data[64];

    is_int(dnn_init_fill(&init, &s, &rng, dtype, data, &err), DNN_ECONFIG, want);
    is_text(err.text, want, "and its message");
}

int main(void)
{
    struct dnn_init init;
    float eye[6];
    struct dnn_rng rng = dnn_rng_make(1, 1);
    struct dnn_shape s = shape("2x3");

    fans("7", 7, 7);
    fans("5x7", 5, 7);
    fans("3x3x16x32", 144, 288);
    fans("3x3x3x1x8", 27, 216);
    for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++)
        moment(i);
    ok(!dnn_init_find("glorot", &init), "\"glorot\" is not a name");
    ok(!dnn_init_find("", &init), "nor is \"\"");
    ok(dnn_init_find("Identity", &init), "identity");
    dnn_init_fill(&init, &s, &rng, DNN_F32, eye, NULL);
    ok(memcmp(eye, (float[]){1, 0, 0, 0, 1, 0}, sizeof eye) == 0, "identity 2x3");
    init = (struct dnn_init){.kind = DNN_INIT_CONSTANT, .a = 0.5};
    dnn_init_fill(&init, &s, &rng, DNN_F32, eye, NULL);
    ok(eye[0] == 0.5F && eye[5] == 0.5F, "constant");
    orthogonal("8x5", 8, 5);
    orthogonal("5x8", 5, 8);
    orthogonal("3x3x2x4", 18, 4);
    refuses(DNN_INIT_IDENTITY, "2x2x2", DNN_F32,
            "initializer identity: needs 2 axes, but the shape is 2x2x2");
    refuses(DNN_INIT_ORTHOGONAL, "4", DNN_F32,
            "initializer orthogonal: needs at least 2 axes, but the shape is 4");
    refuses(DNN_INIT_ZEROS, "4", DNN_BF16,
            "initializers support f32 and f64, not bf16");
    return done();
}
