/* rows_kernel.h - the loops over rows that are compiled once per instruction set.
 *
 * Each works on a box: rows of n floats, a pitch apart, that one thread has to do.
 * Outputs may lie where inputs do, element for element.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_ROWS_KERNEL_H
#define DNN_BACKEND_CPU_ROWS_KERNEL_H

#include "op/op.h"

#include <stdbool.h>
#include <stdint.h>

/* A ReLU done in the same go: v < 0 becomes alpha v. */
struct rows_relu {
    bool on;
    float alpha;
};

/* Batch norm.  v = (x - mean) scale + shift is the result before a ReLU; what lies
 * between x and its normalized value is in the numbers per column. */
struct rows_norm {
    int64_t rows, n;
    const float *x, *dy;
    float *y; /* or dx */
    int64_t x_pitch, dy_pitch, y_pitch;
    const float *mean, *scale, *shift; /* n of each */
    const float *slope, *rest;         /* dx = scale dy + slope (x - mean) + rest */
    struct rows_relu relu;
    bool stream; /* y is too large to stay in the caches; aligned to 64, pitch too */
    double *sum, *more; /* n of each, added to: x and x^2, or dy and dy (x - mean) */
};

enum { ROWS_MAX_TERMS = 8 };

/* y = the terms combined, one after the other.  A pitch of 0 is one row for all. */
struct rows_combine {
    int64_t rows, n;
    int terms; /* 1 ... ROWS_MAX_TERMS */
    const float *x[ROWS_MAX_TERMS];
    int64_t pitch[ROWS_MAX_TERMS];
    float *y;
    int64_t y_pitch;
    enum dnn_combine fn;
    float factor; /* of the result */
    struct rows_relu relu;
};

struct rows_unary {
    int64_t rows, n;
    const float *dy, *x; /* dy: backward */
    float *y;            /* or dx */
    int64_t dy_pitch, x_pitch, y_pitch;
    enum dnn_unary fn;
    float alpha, max_value, threshold;
    bool result; /* backward: x is the function's result */
};

/* Outputs in a row along the last axis of space, all made of the same taps: tap t of
 * output i is the n floats at x + at[t] + i * x_step. */
struct rows_window {
    int64_t count, n;
    int taps;
    const float *x;
    const int64_t *at;
    const int32_t *number; /* of the tap, for the index */
    int64_t x_step;
    float *y;
    int64_t y_step;
    void *index; /* forward: NULL if not wanted; backward: beside x */
    int index_size;
    int64_t index_step;
    const int64_t *index_at; /* backward */
    float factor;            /* of a sum */
    bool stream;             /* see rows_norm; backward only, n in whole lines */
    /* Each tap counts weight[t] line[line_at[t] + i], NULL: once. */
    const float *weight, *line;
    const int64_t *line_at;
};

enum { ROWS_BLOCK = 16 }; /* rows whose classes are done side by side */

/* One step of an optimizer on n weights side by side; see struct dnn_op_update. */
struct rows_update {
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
struct rows_box {
    int64_t rows, n;
    const float *x, *t;
    float *y;
    int64_t x_pitch, t_pitch, y_pitch;
};

/* n floats side by side. */
struct rows_scale {
    int64_t n;
    const float *dy, *x, *a, *b; /* b NULL: 0 */
    float *y;
};

/* Rows of n classes. */
struct rows_classes {
    int64_t rows, n;
    const float *x; /* softmax backward: its result             */
    const float *t; /* backward: dy                             */
    float *y;       /* or dx                                    */
    int64_t x_pitch, t_pitch, y_pitch;
    bool log;
    float *scratch; /* 2 n ROWS_BLOCK floats                       */
};

/* Losses of rows of n classes. */
struct rows_loss {
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
    bool raw;            /* xent: x is log p; poisson: the log of the rate            */
    int fn, source;      /* enum dnn_point, enum dnn_head                    */
    const float *pt, *p; /* overlap_data: slopes of the sums of p t and of p, n each;
                            or, pt NULL:                                       */
    const float *dp;     /* factor times these are the slopes in p             */
    int64_t dp_pitch;
    double *sums;   /* overlap: 3 n, added to                                  */
    float *scratch; /* 2 n ROWS_BLOCK floats                               */
};

/* Norm of each row by itself. */
struct rows_layer {
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
struct rows_column {
    int64_t rows, n;
    const float *x, *dy; /* dy: one row, but for prelu's */
    float *y;
    int64_t x_pitch, dy_pitch, y_pitch;
    const float *most; /* one row */
    float *out;        /* the most so far, how many are equal to the most */
    double *sum;
};

/* Dropout of n floats side by side: number i is drawn at index + i. */
struct rows_draw {
    int64_t n;
    uint32_t key[2], step, sample;
    uint64_t index;
    uint64_t least; /* kept if the first 64 random bits are as much */
    const float *x;
    float *y;
    float times, plus; /* kept ones; others become dropped */
    float dropped;
};

struct dnn_rows_isa {
    const char *name;
    void (*norm_stats)(const struct rows_norm *b); /* more NULL: only the sums */
    void (*norm_apply)(const struct rows_norm *b);
    void (*norm_dstats)(const struct rows_norm *b);
    void (*norm_data)(const struct rows_norm *b);
    void (*combine)(const struct rows_combine *b);
    /* x where the first term is the most (least) and comes before equal ones: y =
     * dy where x[0] equals x[1] (the result), and none of the terms behind does. */
    void (*chosen)(const struct rows_combine *b, const float *dy, int64_t dy_pitch);
    void (*unary)(const struct rows_unary *b);
    void (*unary_data)(const struct rows_unary *b);
    /* n elements side by side: bit i of mask is x[i] > 0; dx = dy, or alpha dy where
     * its bit is 0.  n is a multiple of 8 but at the end. */
    void (*mask)(const float *x, int64_t n, uint8_t *mask);
    void (*mask_data)(const float *dy, const uint8_t *mask, int64_t n, float alpha,
                      float *dx);
    void (*window_max)(const struct rows_window *w);
    void (*window_max_data)(const struct rows_window *w);
    void (*window_sum)(const struct rows_window *w);
    /* Rows times i ... times i + times - 1 of y are row i of x.  stream: n is a
     * multiple of 16, y aligned to 64 and its pitch too. */
    void (*repeat)(const float *x, int64_t x_pitch, int64_t rows, int64_t n,
                   int64_t times, float *y, int64_t y_pitch, bool stream);
    /* y = the sum of weight[t] x[t], n floats side by side; terms may be 0. */
    void (*mix)(float *y, int64_t n, int terms, const float *const *x,
                const float *weight);
    void (*sgd)(const struct rows_update *u);  /* LARS, too  */
    void (*adam)(const struct rows_update *u); /* AdamW, too */
    void (*nadam)(const struct rows_update *u);
    void (*adagrad)(const struct rows_update *u);
    void (*adadelta)(const struct rows_update *u);
    void (*rmsprop)(const struct rows_update *u);
    /* Sums of squares of the weights, and of the gradients or the steps; lamb_means
     * moves the means, lamb then makes the step of them. */
    void (*lars_norms)(const struct rows_update *u, double *weight, double *grad);
    void (*lamb_means)(const struct rows_update *u, double *weight, double *step);
    void (*lamb)(const struct rows_update *u);
    /* Sums of |x| and of x^2. */
    void (*norms)(const float *x, int64_t n, double *absolute, double *square);
    /* y = dy + l1 sign(x) + l2_twice x. */
    void (*regular)(const float *dy, const float *x, float *y, int64_t n, float l1,
                    float l2_twice);
    double (*squares)(const struct rows_box *b); /* the sum of (x - t)^2 */
    void (*difference)(const struct rows_box *b, float times); /* y = times (x - t) */
    void (*scale)(const struct rows_scale *s);      /* y = x a + b                    */
    void (*prelu)(const struct rows_scale *s);      /* y = x > 0 ? x : x a            */
    void (*prelu_data)(const struct rows_scale *s); /* y = x > 0 ? dy : dy a */
    void (*dropout)(const struct rows_draw *d);
    void (*softmax)(const struct rows_classes *c);
    void (*softmax_data)(const struct rows_classes *c);
    double (*xent)(const struct rows_loss *k);
    void (*xent_data)(const struct rows_loss *k);
    double (*point)(const struct rows_loss *k);
    void (*point_data)(const struct rows_loss *k);
    void (*overlap)(const struct rows_loss *k);
    void (*overlap_data)(const struct rows_loss *k);
    void (*layer)(const struct rows_layer *l);       /* x -> y, mean, inv */
    void (*layer_again)(const struct rows_layer *l); /* y by the mean and inv given */
    void (*layer_data)(const struct rows_layer *l);
    void (*layer_weights)(const struct rows_layer *l);
    void (*column_most)(const struct rows_column *c);
    void (*column_equal)(const struct rows_column *c);  /* adds to out */
    void (*column_spread)(const struct rows_column *c); /* y = x == most ? dy : 0 */
    void (*column_prelu)(const struct rows_column *c);  /* sum += x < 0 ? dy x : 0 */
};

extern const struct dnn_rows_isa dnn_rows_plain;
#if defined(__x86_64__)
extern const struct dnn_rows_isa dnn_rows_avx2;
#endif

/* The best this machine runs, or the one DNN_ISA asks for. */
const struct dnn_rows_isa *dnn_rows_find(void);

#endif
