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
};

extern const struct dnn_rows_isa dnn_rows_plain;
#if defined(__x86_64__)
extern const struct dnn_rows_isa dnn_rows_avx2;
#endif

/* The best this machine runs, or the one DNN_ISA asks for. */
const struct dnn_rows_isa *dnn_rows_find(void);

#endif
