/* rows_kernel.h - the loops over rows that are compiled once per instruction set.
 *
 * Each works on a box: rows of n floats, a pitch apart, which one thread computes.
 * Outputs may be in place, element for element.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_ROWS_KERNEL_H
#define DNN_BACKEND_CPU_ROWS_KERNEL_H

#include "op/op.h"

#include <stdbool.h>
#include <stdint.h>

/* A fused ReLU: v < 0 becomes alpha v. */
struct rows_relu {
    bool on;
    float alpha;
};

/* Batch norm. v = (x - mean) scale + shift is the result before a ReLU. */
struct rows_norm {
    int64_t rows, n;
    const float *x, *dy;
    float *y; /* or dx */
    int64_t x_pitch, dy_pitch, y_pitch;
    const float *mean, *scale, *shift; /* n of each */
    const float *slope, *rest;         /* dx = scale dy + slope (x - mean) + rest */
    struct rows_relu relu;
    bool stream; /* use non-temporal stores: y and its pitch are aligned to 64 bytes */
    double *sum, *sum2; /* n each; adds x and x^2, or dy and dy (x - mean) */
};

enum { ROWS_MAX_TERMS = 8 };

/* y = the terms combined, from first to last.  Pitch 0: the same row for all. */
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

/* Outputs along the last spatial axis that have the same taps: tap t of output i is n
 * floats at x + at[t] + i * x_step. */
struct rows_window {
    int64_t count, n;
    int taps;
    const float *x;
    const int64_t *at;
    const int32_t *number; /* of each tap in the window: for the index */
    int64_t x_step;
    float *y;
    int64_t y_step;
    void *index; /* the tap of each maximum; forward: NULL if not needed */
    int index_size;
    int64_t index_step;
    const int64_t *index_at; /* backward */
    float factor;            /* of sums */
    bool stream;             /* see rows_norm; backward only, n in whole cache lines */
    /* The weight of a tap is weight[t] * line[line_at[t] + i]; NULL: 1. */
    const float *weight, *line;
    const int64_t *line_at;
};

enum { ROWS_BLOCK = 16 }; /* rows that are transposed together */

/* One step of an optimizer on n contiguous weights; see struct dnn_op_update. */
struct rows_update {
    int64_t n;
    float *w, *m, *v, *s; /* m, v, s: NULL if the rule has none */
    const float *g;
    float l1, decay;  /* l1 * sign(w) + decay * w is added to g */
    bool regularized; /* l1 or decay is not 0                   */
    bool clip;        /* weights below 0 become 0               */
    bool torch, nesterov;
    float momentum, grad_factor;      /* grad_factor: in the velocity          */
    float beta1, rest1, beta2, rest2; /* rest is 1 - beta                      */
    float epsilon;                    /* added to the root in the denominator  */
    float rate, grad_rate;            /* grad_rate: NADAM, of the gradient itself */
    float w_factor;                   /* w is multiplied by it before the step */
    float w_rate;                     /* LAMB: w_rate * w is added to the step */
    float trust;                      /* LARS: of the gradient; LAMB: of the step */
};

/* Rows of n floats of up to three arrays. */
struct rows_box {
    int64_t rows, n;
    const float *x, *t;
    float *y;
    int64_t x_pitch, t_pitch, y_pitch;
};

/* n contiguous floats. */
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
    const int32_t *labels; /* instead of t: one per row */
    float *y;              /* dx */
    int64_t x_pitch, t_pitch, y_pitch;
    const float *w; /* n weights; NULL: 1 */
    int32_t ignore; /* this label is ignored, and negative ones; -1: only those */
    float factor;   /* of the gradient */
    float on, off;  /* xent: the smoothed target is t * on + off */
    float gamma, delta, alpha;
    bool raw;            /* xent: x is log p; poisson: the log of the rate */
    int fn, source;      /* enum dnn_point, enum dnn_head */
    const float *pt, *p; /* overlap_data: gradients of the sums of p t and of p, n each;
                            pt NULL: uses dp */
    const float *dp;     /* overlap_data: factor * dp is the gradient of p */
    int64_t dp_pitch;
    double *sums;   /* overlap: adds to these 3 n sums */
    float *scratch; /* 2 n ROWS_BLOCK floats */
};

/* Layer norm of each row. */
struct rows_layer {
    int64_t rows, n;
    const float *x, *dy;
    float *y; /* or dx */
    int64_t x_pitch, dy_pitch, y_pitch;
    const float *gamma, *beta; /* NULL: 1 and 0                              */
    float *mean, *inv;         /* one per row; forward: written, unless NULL */
    double epsilon;
    double *product, *sum; /* n each; adds dy hat and dy */
};

/* Reductions over rows, column by column. */
struct rows_column {
    int64_t rows, n;
    const float *x, *dy; /* dy: one row; column_prelu: one per row of x */
    float *y;
    int64_t x_pitch, dy_pitch, y_pitch;
    const float *max; /* the maxima, one row */
    float *out;       /* the maximum so far, or the number of elements equal to it */
    double *sum;
};

/* Dropout of n contiguous floats: element i uses the random number at index + i. */
struct rows_draw {
    int64_t n;
    uint32_t key[2], step, sample;
    uint64_t index;
    uint64_t threshold; /* kept if the first 64 random bits are at least this */
    const float *x;
    float *y;
    float factor, offset; /* kept elements: x * factor + offset */
    float dropped;        /* value of the others */
};

struct dnn_rows_isa {
    const char *name;
    void (*norm_stats)(const struct rows_norm *b); /* sum2 NULL: only sum */
    void (*norm_apply)(const struct rows_norm *b);
    void (*norm_dstats)(const struct rows_norm *b);
    void (*norm_data)(const struct rows_norm *b);
    void (*combine)(const struct rows_combine *b);
    /* The gradient of operand x[0] of a maximum or minimum: y = dy where x[0] equals
     * the result x[1] and none of x[2] ..., the operands before it, does; else 0. */
    void (*max_min_data)(const struct rows_combine *b, const float *dy,
                         int64_t dy_pitch);
    void (*unary)(const struct rows_unary *b);
    void (*unary_data)(const struct rows_unary *b);
    /* n contiguous elements: bit i of mask is x[i] > 0; dx = dy, or alpha dy where its
     * bit is 0.  n is a multiple of 8, except in the last call for an array. */
    void (*mask)(const float *x, int64_t n, uint8_t *mask);
    void (*mask_data)(const float *dy, const uint8_t *mask, int64_t n, float alpha,
                      float *dx);
    void (*window_max)(const struct rows_window *w);
    void (*window_max_data)(const struct rows_window *w);
    void (*window_sum)(const struct rows_window *w);
    /* Each row of x is repeated `times` times in y.  stream: use non-temporal stores; n
     * is a multiple of 16, y and its pitch are aligned to 64 bytes. */
    void (*repeat)(const float *x, int64_t x_pitch, int64_t rows, int64_t n,
                   int64_t times, float *y, int64_t y_pitch, bool stream);
    /* y = the sum of weight[t] x[t], n contiguous floats; terms may be 0. */
    void (*mix)(float *y, int64_t n, int terms, const float *const *x,
                const float *weight);
    void (*sgd)(const struct rows_update *u);  /* LARS, too  */
    void (*adam)(const struct rows_update *u); /* AdamW, too */
    void (*nadam)(const struct rows_update *u);
    void (*adagrad)(const struct rows_update *u);
    void (*adadelta)(const struct rows_update *u);
    void (*rmsprop)(const struct rows_update *u);
    /* Sums of squares of the weights, and of the gradients (LARS) or steps (LAMB).
     * lamb_means also updates the moving means; lamb then updates the weights. */
    void (*lars_norms)(const struct rows_update *u, double *weight, double *grad);
    void (*lamb_means)(const struct rows_update *u, double *weight, double *step);
    void (*lamb)(const struct rows_update *u);
    /* Sums of |x| and of x^2. */
    void (*norms)(const float *x, int64_t n, double *absolute, double *square);
    /* y = dy + l1 sign(x) + l2_twice x. */
    void (*penalty_data)(const float *dy, const float *x, float *y, int64_t n, float l1,
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
    void (*layer)(const struct rows_layer *l); /* x -> y, mean, inv */
    void (*layer_recompute)(
        const struct rows_layer *l); /* y from the stored mean and inv */
    void (*layer_data)(const struct rows_layer *l);
    void (*layer_weights)(const struct rows_layer *l);
    void (*column_max)(const struct rows_column *c);
    void (*column_equal)(const struct rows_column *c);  /* adds to out */
    void (*column_spread)(const struct rows_column *c); /* y = x == max ? dy : 0 */
    void (*column_prelu)(const struct rows_column *c);  /* sum += x < 0 ? dy x : 0 */
};

extern const struct dnn_rows_isa dnn_rows_plain;
#if defined(__x86_64__)
extern const struct dnn_rows_isa dnn_rows_avx2;
#endif

/* The best one for this machine and DNN_ISA. */
const struct dnn_rows_isa *dnn_rows_find(void);

#endif
