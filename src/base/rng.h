/* rng.h - random numbers that are a function of where they are used.
 *
 * Nothing here has a state.  A number is computed from (seed, stream, step,
 * sample, index) alone, so that it is the same whoever asks, in whatever order,
 * on any number of ranks and threads, and a run that continues need not know
 * how many were drawn before.  The generator is Philox4x32-10 (Salmon, Moraes,
 * Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011), which passes
 * the published test batteries; it is not for secrets.
 *
 * Everything is Local, cannot fail, and gives the same bits on every machine
 * with IEEE 754 doubles, dnn_rng_normal() included (see there).
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_RNG_H
#define DNN_BASE_RNG_H

#include <stdint.h>

/* One block as published: ten rounds on a counter under a key. */
void dnn_rng_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* What a purpose (shuffling, weights, dropout of layer 3...) draws from. */
struct dnn_rng {
    uint32_t key[2];
};

/* Streams of one seed are unrelated, and so are the seeds. */
struct dnn_rng dnn_rng_make(uint64_t seed, uint64_t stream);

/* Which number: 2^32 steps, 2^32 samples per step, 2^64 numbers per sample. */
struct dnn_rng_at {
    uint32_t step, sample;
    uint64_t index;
};

/* Four independent words.  The functions below each use up one such block, so
 * do not draw words and, say, a normal at the same place of the same stream. */
void dnn_rng_words(const struct dnn_rng *rng, struct dnn_rng_at at, uint32_t out[4]);

/* Uniform in [0, 1), a multiple of 2^-53. */
double dnn_rng_uniform(const struct dnn_rng *rng, struct dnn_rng_at at);
/* Uniform in (0, 1]: one whose logarithm is finite. */
double dnn_rng_uniform_above(const struct dnn_rng *rng, struct dnn_rng_at at);

/* Normal with mean 0 and variance 1, by Box and Muller's method; at most 8.6 in
 * size.  Its logarithm, sine and cosine are computed here and not by the C
 * library (whose last bit differs between versions): only with operations that
 * IEEE 754 rounds correctly (+ - * / sqrt fma), and with no product that is then
 * added to, so that a compiler that fuses the two changes nothing.  Hence the
 * bits are the same everywhere, unless -ffast-math is used. */
double dnn_rng_normal(const struct dnn_rng *rng, struct dnn_rng_at at);
/* The two independent ones a block gives; the first is dnn_rng_normal()'s. */
void dnn_rng_normals(const struct dnn_rng *rng, struct dnn_rng_at at, double out[2]);

/* 0, 1 ... n - 1, each exactly as likely; n must not be 0. */
uint64_t dnn_rng_below(const struct dnn_rng *rng, struct dnn_rng_at at, uint64_t n);

/* A random order of n things, without a table: element i is computed when it
 * is asked for.  The order is a function of (seed, epoch, n). */
struct dnn_perm {
    struct dnn_rng rng;
    uint64_t n;
    int high, low; /* bits of the two halves that scramble each other */
};

/* n from 1 to 2^63. */
struct dnn_perm dnn_rng_perm(uint64_t seed, uint64_t epoch, uint64_t n);
/* What comes at place i (0 <= i < n): every number below n at exactly one i. */
uint64_t dnn_rng_perm_at(const struct dnn_perm *perm, uint64_t i);

#endif
