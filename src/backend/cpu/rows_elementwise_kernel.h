/* rows_elementwise_kernel.h - sums of squares, scaling, PReLU, dropout.
 *
 * Included by rows_isa.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_kernel.h"
#include "backend/cpu/vmath_impl.h"

INLINE vec sign_of(vec x)
{
    vec one = v_select(x < 0.0f, v_splat(-1), v_splat(1));

    return v_where(x != 0.0f, one);
}

/* ---- sums: of a few vectors in float, then in double ---- */

enum { CHUNK = 64 * LANES };

static TARGET void norms(const float *x, int64_t n, double *absolute, double *square)
{
    dvec all = {0}, all2 = {0};

    for (int64_t first = 0; first < n; first += CHUNK) {
        int64_t last = n - first < CHUNK ? n : first + CHUNK, i = first;
        vec s[2] = {{0}}, q[2] = {{0}};

        for (; i + 2 * LANES <= last; i += 2 * LANES)
            for (int k = 0; k < 2; k++) {
                vec v = v_load(x + i + k * LANES);
                s[k] += v_abs(v);
                q[k] += v * v;
            }
        for (; i < last; i += LANES) {
            vec v = v_load_some(x + i, left_of(last, i));
            s[0] += v_abs(v);
            q[0] += v * v;
        }
        all += (v_low(s[0]) + v_high(s[0])) + (v_low(s[1]) + v_high(s[1]));
        all2 += (v_low(q[0]) + v_high(q[0])) + (v_low(q[1]) + v_high(q[1]));
    }
    *absolute = d_sum(all);
    *square = d_sum(all2);
}

INLINE dvec squares_chunk(const float *x, const float *t, int64_t n)
{
    vec q[4] = {{0}};
    int64_t i = 0;

    for (; i + 4 * LANES <= n; i += 4 * LANES)
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) {
            vec d = v_load(x + i + k * LANES) - v_load(t + i + k * LANES);
            q[k] += d * d;
        }
    for (; i < n; i += LANES) {
        int64_t left = left_of(n, i);
        vec d = v_load_some(x + i, left) - v_load_some(t + i, left);
        q[0] += d * d;
    }
    dvec a = v_low(q[0]) + v_high(q[0]), b = v_low(q[1]) + v_high(q[1]);
    a += v_low(q[2]) + v_high(q[2]);
    return a + (b + (v_low(q[3]) + v_high(q[3])));
}

static TARGET double squares(const struct rows_box *b)
{
    dvec all = {0};

    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t i = 0; i < b->n; i += CHUNK)
            all += squares_chunk(b->x + r * b->x_pitch + i, b->t + r * b->t_pitch + i,
                                 b->n - i < CHUNK ? b->n - i : CHUNK);
    return d_sum(all);
}

static TARGET void difference(const struct rows_box *b, float factor)
{
    for (int64_t r = 0; r < b->rows; r++) {
        const float *x = b->x + r * b->x_pitch, *t = b->t + r * b->t_pitch;
        float *y = b->y + r * b->y_pitch;
        int64_t n = b->n, i = 0;

        for (; i + LANES <= n; i += LANES)
            v_store(y + i, (v_load(x + i) - v_load(t + i)) * factor);
        if (i < n)
            v_store_part(
                y + i, (v_load_part(x + i, n - i) - v_load_part(t + i, n - i)) * factor,
                n - i);
    }
}

static TARGET void penalty_data(const float *dy, const float *x, float *y, int64_t n,
                                float l1, float l2_twice)
{
    for (int64_t i = 0; i < n; i += LANES) {
        int64_t left = left_of(n, i);
        vec v = v_load_some(x + i, left);

        v_store_some(y + i, v_load_some(dy + i, left) + sign_of(v) * l1 + v * l2_twice,
                     left);
    }
}

/* ---- scaling ---- */

static TARGET void scale(const struct rows_scale *given)
{
    const struct rows_scale s = *given;

    for (int64_t i = 0; i < s.n; i += LANES) {
        int64_t left = left_of(s.n, i);
        vec v = v_load_some(s.x + i, left) * v_load_some(s.a + i, left);

        if (s.b != NULL) v += v_load_some(s.b + i, left);
        v_store_some(s.y + i, v, left);
    }
}

static TARGET void prelu(const struct rows_scale *given)
{
    const struct rows_scale s = *given;

    for (int64_t i = 0; i < s.n; i += LANES) {
        int64_t left = left_of(s.n, i);
        vec x = v_load_some(s.x + i, left), a = v_load_some(s.a + i, left);

        v_store_some(s.y + i, v_select(x > 0.0f, x, x * a), left);
    }
}

static TARGET void prelu_data(const struct rows_scale *given)
{
    const struct rows_scale s = *given;

    for (int64_t i = 0; i < s.n; i += LANES) {
        int64_t left = left_of(s.n, i);
        vec x = v_load_some(s.x + i, left), a = v_load_some(s.a + i, left);
        vec dy = v_load_some(s.dy + i, left);

        v_store_some(s.y + i, v_select(x > 0.0f, dy, dy * a), left);
    }
}

/* ---- dropout: the random numbers of base/rng, several at a time ---- */

#if LANES == 8
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#else
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#endif

/* One counter word per 64 bits; the upper halves are ignored. */
typedef uint64_t wide __attribute__((vector_size(4 * LANES), aligned(8), may_alias));

INLINE wide wide_product(wide a, uint32_t b)
{
#if defined(__x86_64__) && LANES == 8
    return (wide)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x((int64_t)b));
#elif defined(__x86_64__) && LANES == 4
    return (wide)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x((int64_t)b));
#else
    return (a & 0xffffffffu) * (uint64_t)b;
#endif
}

/* The first 64 random bits of each of index ... index + LANES / 2 - 1 (Philox). */
INLINE wide random_bits(const struct rows_draw *d, uint64_t index)
{
    wide c0, c1, c2 = (wide){0} + d->sample, c3 = (wide){0} + d->step;
    uint32_t k0 = d->key[0], k1 = d->key[1];

    for (int i = 0; i < LANES / 2; i++)
        c0[i] = index + (uint64_t)i;
    c1 = c0 >> 32;
#pragma GCC unroll 10
    for (int round = 0; round < 10; round++) {
        wide a = wide_product(c0, 0xD2511F53), b = wide_product(c2, 0xCD9E8D57);

        c0 = (b >> 32) ^ c1 ^ (uint64_t)k0;
        c1 = b;
        c2 = (a >> 32) ^ c3 ^ (uint64_t)k1;
        c3 = a;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    return c0 << 32 | (c1 & 0xffffffffu);
}

static TARGET void dropout(const struct rows_draw *given)
{
    const struct rows_draw d = *given;
    vec dropped = v_splat(d.dropped);

    for (int64_t i = 0; i < d.n; i += LANES) {
        int64_t left = left_of(d.n, i);
        uint64_t at = d.index + (uint64_t)i;
        wide low = random_bits(&d, at) >= d.threshold;
        wide high = random_bits(&d, at + LANES / 2) >= d.threshold;
        ivec keep = EVEN((ivec)low, (ivec)high);

        v_store_some(
            d.y + i,
            v_select(keep, v_load_some(d.x + i, left) * d.factor + d.offset, dropped),
            left);
    }
}
