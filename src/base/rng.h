/* rng.h - counter-based random numbers.
 *
 * There is no state.  A number depends only on (seed, stream, step, sample, index), so
 * it is the same in any order, on any number of ranks and threads, and a resumed run
 * need not restore a state.  The generator is Philox4x32-10 (Salmon, Moraes, Dror,
 * Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011), which passes the
 * published test batteries; it is not cryptographically secure.
 *
 * Everything is Local, cannot fail, and gives the same bits on every machine
 * with IEEE 754 doubles, also dnn_rng_normal() (see there).
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_RNG_H
#define DNN_BASE_RNG_H

#include <stdint.h>

/* One Philox4x32-10 block: ten rounds on a counter with a key. */
void dnn_rng_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* The random numbers for one purpose (shuffling, weights, dropout of layer 3...). */
struct dnn_rng {
    uint32_t key[2];
};

/* Streams of one seed are independent, and so are different seeds. */
struct dnn_rng dnn_rng_make(uint64_t seed, uint64_t stream);

/* The position of a number: 2^32 steps, 2^32 samples per step, 2^64 numbers per
 * sample. */
struct dnn_rng_at {
    uint32_t step, sample;
    uint64_t index;
};

/* Four independent words.  Each function below uses one such block, so words and (for
 * example) a normal at the same position of the same stream are not independent. */
void dnn_rng_words(const struct dnn_rng *rng, struct dnn_rng_at at, uint32_t out[4]);

/* Uniform in [0, 1), a multiple of 2^-53. */
double dnn_rng_uniform(const struct dnn_rng *rng, struct dnn_rng_at at);

/* Normal with mean 0 and variance 1, by the Box-Muller method; at most 8.6 in absolute
 * value.  Logarithm, sine and cosine are computed here, not by the C library (whose
 * last bit differs between versions): only with operations that IEEE 754 rounds
 * correctly (+ - * / sqrt fma), and never with a product that is added to, which a
 * compiler could fuse.  So the bits are the same on all machines, unless -ffast-math is
 * used. */
double dnn_rng_normal(const struct dnn_rng *rng, struct dnn_rng_at at);
/* Both independent normals of a block; the first is that of dnn_rng_normal(). */
void dnn_rng_normals(const struct dnn_rng *rng, struct dnn_rng_at at, double out[2]);

/* Uniform in 0, 1 ... n - 1, without bias; n must not be 0. */
uint64_t dnn_rng_below(const struct dnn_rng *rng, struct dnn_rng_at at, uint64_t n);

/* A random permutation of 0 ... n - 1 without a table: each element is computed when
 * needed.  It depends only on (seed, epoch, n). */
struct dnn_perm {
    struct dnn_rng rng;
    uint64_t n;
    int high, low; /* bits of the two halves of the Feistel network */
};

/* n from 1 to 2^63. */
struct dnn_perm dnn_rng_perm(uint64_t seed, uint64_t epoch, uint64_t n);
/* Element i (0 <= i < n) of the permutation. */
uint64_t dnn_rng_perm_at(const struct dnn_perm *perm, uint64_t i);

#endif
