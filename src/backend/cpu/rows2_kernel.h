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

/* One step of an optimizer on n weights side by side; see struct dnn_op_update. */
struct rows2_update {
    int64_t n;
    float *w, *m, *v, *s; /* m, v, s: NULL if the rule has none */
    const float *g;
    float l1, decay; /* decay: times w is added to g                          */
    bool regular;    /* l1 or decay is not 0                                  */
    bool clip;       /* weights below 0 become 0                              */
    bool torch, nesterov;
    float momentum, gain;             /* gain: of the gradient in the velocity      */
    float beta1, rest1, beta2, rest2; /* rest is 1 - beta                           */
    float small;                      /* added to the root that is divided by       */
    float rate, ahead;                /* of what is made of g, and of g itself      */
    float keep;                       /* of w, before the step                      */
    float own;                        /* LAMB: of w, in the step                    */
    float trust;                      /* LARS: of the gradient; LAMB: of the step   */
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
    const float *x; /* softmax backward: its result             */
    const float *t; /* backward: dy                             */
    float *y;       /* or dx                                    */
    int64_t x_pitch, t_pitch, y_pitch;
    bool log;
    float *scratch; /* 2 n ROWS2_TOGETHER floats                       */
};

/* Losses of rows of n classes. */
struct rows2_loss {
    int64_t rows, n;
    const float *x, *t;
    const int32_t *labels; /* instead of t: one per row                        */
    float *y;              /* dx                                               */
    int64_t x_pitch, t_pitch, y_pitch;
    const float *w; /* n weights; NULL: 1                                      */
    int32_t ignore; /* a label that does not count; -1, as none below 0 does   */
    float factor;   /* of the gradient                                         */
    float on, off;  /* xent: a target is t on + off                            */
    float gamma, delta, alpha;
    bool raw;            /* xent: x is log p; poisson: the rate's log          */
    int fn, source;      /* enum dnn_point, enum dnn_head                    */
    const float *pt, *p; /* overlap_data: slopes of the sums of p t and of p, n each;
                            or, pt NULL:                                       */
    const float *dp;     /* factor times these are the slopes in p             */
    int64_t dp_pitch;
    double *sums;   /* overlap: 3 n, added to                                  */
    float *scratch; /* 2 n ROWS2_TOGETHER floats                               */
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
    void (*sgd)(const struct rows2_update *u);  /* LARS, too  */
    void (*adam)(const struct rows2_update *u); /* AdamW, too */
    void (*nadam)(const struct rows2_update *u);
    void (*adagrad)(const struct rows2_update *u);
    void (*adadelta)(const struct rows2_update *u);
    void (*rmsprop)(const struct rows2_update *u);
    /* Sums of squares of the weights, and of the gradients or the steps; lamb_means
     * moves the means, lamb then makes the step of them. */
    void (*lars_norms)(const struct rows2_update *u, double *weight, double *grad);
    void (*lamb_means)(const struct rows2_update *u, double *weight, double *step);
    void (*lamb)(const struct rows2_update *u);
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
    double (*xent)(const struct rows2_loss *k);
    void (*xent_data)(const struct rows2_loss *k);
    double (*point)(const struct rows2_loss *k);
    void (*point_data)(const struct rows2_loss *k);
    void (*overlap)(const struct rows2_loss *k);
    void (*overlap_data)(const struct rows2_loss *k);
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
