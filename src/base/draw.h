/* draw.h - a sequence of random numbers for one sample.
 *
 * A cursor over the random numbers of rng.h for one sample of one step.  The numbers
 * depend only on (seed, stream, step, sample) and on how many were drawn before, so
 * threads and ranks do not affect each other.  Allocated on the caller's stack.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_DRAW_H
#define DNN_BASE_DRAW_H

#include "base/rng.h"

struct dnn_draw {
    struct dnn_rng rng;
    struct dnn_rng_at at; /* the next number */
};

/* The upper 32 bits of sample go into the upper bits of the index. */
static inline struct dnn_draw dnn_draw_make(uint64_t seed, uint64_t stream,
                                            uint64_t step, uint64_t sample)
{
    return (struct dnn_draw){
        dnn_rng_make(seed, stream),
        {.step = (uint32_t)step,
                        .sample = (uint32_t)sample,
                        .index = sample >> 32 << 40}
    };
}

/* Uniform in [low, high). */
static inline double dnn_draw_real(struct dnn_draw *draw, double low, double high)
{
    double u = dnn_rng_uniform(&draw->rng, draw->at);

    draw->at.index++;
    return low + (high - low) * u;
}

/* Normal with mean 0 and variance 1. */
static inline double dnn_draw_normal(struct dnn_draw *draw)
{
    double x = dnn_rng_normal(&draw->rng, draw->at);

    draw->at.index++;
    return x;
}

/* 0 ... n - 1; n must be at least 1. */
static inline int64_t dnn_draw_below(struct dnn_draw *draw, int64_t n)
{
    uint64_t x = dnn_rng_below(&draw->rng, draw->at, (uint64_t)n);

    draw->at.index++;
    return (int64_t)x;
}

#endif
