/* rows2_kernel.h - more loops that are compiled once per instruction set: weights,
 * losses, classes, norms of single rows, random numbers.
 *
 * Outputs may lie where inputs do, element for element.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_ROWS2_KERNEL_H
#define DNN_BACKEND_CPU_ROWS2_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

enum { ROWS2_TOGETHER = 16 }; /* rows whose classes are done side by side */

/* One step of an optimizer on n weights side by side. */
struct rows2_update {
    int64_t n;
    float *w, *m, *v; /* m, v: NULL if the rule has none */
    const float *g;
    float l1, l2_twice;
    bool regular; /* l1 or l2 is not 0        */
    bool clip;    /* weights below 0 become 0 */
    bool nesterov;
    float momentum;                          /* SGD */
    float beta1, rest1, beta2, rest2, small; /* ADAM; rest is 1 - beta */
    float rate;
};

/* Rows of n floats, pitches apart. */
struct rows2_box {
    int64_t rows, n;
    const float *x, *t;
    float *y;
    int64_t x_pitch, t_pitch, y_pitch;
};

/* n floats side by side. */
struct rows2_scale {
    int64_t n;
    const float *dy, *x, *a, *b; /* b NULL: 0 */
    float *y;
};

/* Rows of n classes. */
struct rows2_classes {
    int64_t rows, n;
    const float *x;        /* softmax backward: its result             */
    const float *t;        /* targets; softmax backward: dy            */
    const int32_t *labels; /* instead of t: one per row                */
    float *y;              /* or dx                                    */
    int64_t x_pitch, t_pitch, y_pitch;
    bool log;
    float factor;   /* of the loss's gradient                          */
    float *scratch; /* 2 n ROWS2_TOGETHER floats                       */
};

/* Norm of each row by itself. */
struct rows2_layer {
    int64_t rows, n;
    const float *x, *dy;
    float *y; /* or dx */
    int64_t x_pitch, dy_pitch, y_pitch;
    const float *gamma, *beta; /* NULL: 1 and 0                            */
    float *mean, *inv;         /* one per row; forward: written, unless NULL */
    double epsilon;
    double *product, *sum; /* n of each, added to: dy hat and dy       */
};

/* Over rows, column by column. */
struct rows2_column {
    int64_t rows, n;
    const float *x, *dy; /* dy: one row, but for prelu's */
    float *y;
    int64_t x_pitch, dy_pitch, y_pitch;
    const float *most; /* one row */
    float *out;        /* the most so far, how many are equal to the most */
    double *sum;
};

/* Dropout of n floats side by side: number i is drawn at index + i. */
struct rows2_draw {
    int64_t n;
    uint32_t key[2], step, sample;
    uint64_t index;
    uint64_t least; /* kept if the first 64 random bits are as much */
    const float *x;
    float *y;
    float times, plus; /* kept ones; others become dropped */
    float dropped;
};

struct dnn_rows2_isa {
    void (*adam)(const struct rows2_update *u);
    void (*sgd)(const struct rows2_update *u);
    /* Sums of |x| and of x^2. */
    void (*norms)(const float *x, int64_t n, double *absolute, double *square);
    /* y = dy + l1 sign(x) + l2_twice x. */
    void (*regular)(const float *dy, const float *x, float *y, int64_t n, float l1,
                    float l2_twice);
    double (*squares)(const struct rows2_box *b); /* the sum of (x - t)^2 */
    void (*difference)(const struct rows2_box *b, float times); /* y = times (x - t) */
    void (*scale)(const struct rows2_scale *s); /* y = x a + b                    */
    void (*prelu)(const struct rows2_scale *s); /* y = x > 0 ? x : x a            */
    void (*prelu_data)(const struct rows2_scale *s); /* y = x > 0 ? dy : dy a */
    void (*dropout)(const struct rows2_draw *d);
    void (*softmax)(const struct rows2_classes *c);
    void (*softmax_data)(const struct rows2_classes *c);
    double (*xent)(const struct rows2_classes *c);
    void (*xent_data)(const struct rows2_classes *c);
    void (*layer)(const struct rows2_layer *l);       /* x -> y, mean, inv */
    void (*layer_again)(const struct rows2_layer *l); /* y by the mean and inv given */
    void (*layer_data)(const struct rows2_layer *l);
    void (*layer_weights)(const struct rows2_layer *l);
    void (*column_most)(const struct rows2_column *c);
    void (*column_equal)(const struct rows2_column *c);  /* adds to out */
    void (*column_spread)(const struct rows2_column *c); /* y = x == most ? dy : 0 */
    void (*column_prelu)(const struct rows2_column *c);  /* sum += x < 0 ? dy x : 0 */
};

extern const struct dnn_rows2_isa dnn_rows2_plain;
#if defined(__x86_64__)
extern const struct dnn_rows2_isa dnn_rows2_avx2;
#endif

/* The best this machine runs, or the one DNN_ISA asks for. */
const struct dnn_rows2_isa *dnn_rows2_find(void);

#endif
