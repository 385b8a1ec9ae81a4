/* rng.c - counter-based random numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/rng.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0, "doubles must be computed as doubles");

/* Purposes of derived keys, so that different purposes have different keys. */
enum { FOR_STREAM = 1, FOR_PERM = 2 };

void dnn_rng_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];

    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53 * c0, b = (uint64_t)0xCD9E8D57 * c2;

        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* A key is itself a random number: the one at counter (what, purpose) of seed. */
static struct dnn_rng derive(uint64_t seed, uint64_t what, uint32_t purpose)
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t counter[4] = {(uint32_t)what, (uint32_t)(what >> 32), purpose, 0};
    uint32_t words[4];

    dnn_rng_philox(counter, key, words);
    return (struct dnn_rng){
        {words[0], words[1]}
    };
}

struct dnn_rng dnn_rng_make(uint64_t seed, uint64_t stream)
{
    return derive(seed, stream, FOR_STREAM);
}

void dnn_rng_words(const struct dnn_rng *rng, struct dnn_rng_at at, uint32_t out[4])
{
    uint32_t counter[4] = {(uint32_t)at.index, (uint32_t)(at.index >> 32), at.sample,
                           at.step};

    dnn_rng_philox(counter, rng->key, out);
}

/* 53 random bits of two words. */
static uint64_t bits53(uint32_t high, uint32_t low)
{
    return ((uint64_t)high << 32 | low) >> 11;
}

double dnn_rng_uniform(const struct dnn_rng *rng, struct dnn_rng_at at)
{
    uint32_t w[4];

    dnn_rng_words(rng, at, w);
    return (double)bits53(w[0], w[1]) * 0x1p-53;
}

/* The natural logarithm of x > 0, normal: x = m 2^e with m near 1, and
 * log m = 2 artanh((m - 1) / (m + 1)) by its series, in which the twelfth term
 * is below half a unit in the last place. */
static double log_exact(double x)
{
    int e;
    double m = frexp(x, &e);

    if (m < 0x1.6a09e667f3bcdp-1) {
        m *= 2;
        e--;
    }
    double s = (m - 1) / (m + 1), z = s * s, sum = 1.0 / 23;
    for (int k = 21; k >= 1; k -= 2)
        sum = fma(sum, z, 1.0 / k);
    return fma(e, 0x1.62e42fefa39efp-1, 2 * s * sum);
}

/* Cosine and sine of turn/2^53 of a full turn. */
static void turn_exact(uint64_t turn, double *cosine, double *sine)
{
    /* The nearest quarter turn, and the rest: at most an eighth of a turn in either
     * direction, exact. */
    unsigned quarter = (unsigned)((turn + ((uint64_t)1 << 50)) >> 51);
    int64_t rest = (int64_t)turn - (int64_t)((uint64_t)quarter << 51);
    double x = (double)rest * 0x1p-53 * 0x1.921fb54442d18p+2, z = x * x;
    double c = 1, s = 1;

    /* The series, smallest terms first: 1 - z/2 (1 - z/12 (1 - ...)). */
    for (int k = 18; k >= 2; k -= 2) {
        c = fma(c, -z / (k * (k - 1)), 1);
        s = fma(s, -z / (k * (k + 1)), 1);
    }
    s = x * s;
    switch (quarter & 3) {
    case 0:
        *cosine = c;
        *sine = s;
        break;
    case 1:
        *cosine = -s;
        *sine = c;
        break;
    case 2:
        *cosine = -c;
        *sine = -s;
        break;
    default:
        *cosine = s;
        *sine = -c;
    }
}

void dnn_rng_normals(const struct dnn_rng *rng, struct dnn_rng_at at, double out[2])
{
    uint32_t w[4];
    double c, s;

    dnn_rng_words(rng, at, w);
    double radius = sqrt(-2 * log_exact((double)(bits53(w[0], w[1]) + 1) * 0x1p-53));
    turn_exact(bits53(w[2], w[3]), &c, &s);
    out[0] = radius * c;
    out[1] = radius * s;
}

double dnn_rng_normal(const struct dnn_rng *rng, struct dnn_rng_at at)
{
    double two[2];

    dnn_rng_normals(rng, at, two);
    return two[0];
}

/* The upper and lower half of a product. */
static uint64_t multiply(uint64_t a, uint64_t b, uint64_t *low)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;

    *low = (uint64_t)product;
    return (uint64_t)(product >> 64);
}

/* The upper half of n times 64 random bits; draws that would bias the result are
 * rejected (Lemire's method).  A block has two draws; more are taken from the next
 * keys. */
uint64_t dnn_rng_below(const struct dnn_rng *rng, struct dnn_rng_at at, uint64_t n)
{
    struct dnn_rng shifted = *rng;
    uint64_t biased = (0 - n) % n; /* 2^64 mod n */

    assert(n > 0);
    for (;; shifted.key[1]++) {
        uint32_t w[4];

        dnn_rng_words(&shifted, at, w);
        for (int i = 0; i < 4; i += 2) {
            uint64_t low;
            uint64_t high = multiply((uint64_t)w[i] << 32 | w[i + 1], n, &low);

            if (low >= biased) return high;
        }
    }
}

/* A Feistel network: each half of the bits is changed in turn by a random function of
 * the other half.  This is invertible for any function, so it is a permutation of the
 * numbers of high + low bits.  Up to half of these are not below n; such a result is
 * mapped again until it is ("cycle walking": still a permutation; at most two times on
 * average). */
/* Number of rounds: with few bits and less than 48 rounds, some permutations of 8
 * elements were measurably too frequent; with many bits 12 rounds are enough. */
static uint32_t rounds(const struct dnn_perm *perm)
{
    return perm->high + perm->low <= 16 ? 48 : 12;
}

struct dnn_perm dnn_rng_perm(uint64_t seed, uint64_t epoch, uint64_t n)
{
    int bits = 0;

    assert(n > 0 && n <= (uint64_t)1 << 63);
    while (bits < 63 && (uint64_t)1 << bits < n)
        bits++;
    return (struct dnn_perm){.rng = derive(seed, epoch, FOR_PERM),
                             .n = n,
                             .high = bits / 2,
                             .low = bits - bits / 2};
}

static uint64_t scramble(const struct dnn_perm *perm, uint64_t i)
{
    uint64_t low_mask = ((uint64_t)1 << perm->low) - 1;
    uint64_t high_mask = ((uint64_t)1 << perm->high) - 1;
    uint64_t high = i >> perm->low, low = i & low_mask;

    for (uint32_t round = 0, n = rounds(perm); round < n; round += 2) {
        struct dnn_rng_at at = {round, (uint32_t)(perm->low + perm->high), low};
        uint32_t w[4];

        dnn_rng_words(&perm->rng, at, w);
        high ^= w[0] & high_mask;
        at.step = round + 1;
        at.index = high;
        dnn_rng_words(&perm->rng, at, w);
        low ^= w[0] & low_mask;
    }
    return high << perm->low | low;
}

uint64_t dnn_rng_perm_at(const struct dnn_perm *perm, uint64_t i)
{
    assert(i < perm->n);
    do
        i = scramble(perm, i);
    while (i >= perm->n);
    return i;
}
