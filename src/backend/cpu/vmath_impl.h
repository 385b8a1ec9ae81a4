/* vmath_impl.h - vectors of floats and mathematical functions, for one instruction set.
 *
 * The including file defines LANES (floats in a vector: 4 or 8) and TARGET (the
 * attribute of every function that uses them; empty for plain C); there is one such
 * file per instruction set. Functions are accurate to one or two units in the last
 * place, handle special values as C does, and have no branches.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_VMATH_IMPL_H
#define DNN_BACKEND_CPU_VMATH_IMPL_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* At any address; may alias arrays of their elements. */
typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint8_t bvec __attribute__((vector_size(LANES), aligned(1), may_alias));
/* Half as many doubles: two of them hold the values of a vec. */
typedef double dvec __attribute__((vector_size(4 * LANES), aligned(8), may_alias));

#define INLINE static inline __attribute__((always_inline, unused)) TARGET

INLINE vec v_load(const float *p)
{
    return *(const vec *)p;
}

INLINE void v_store(float *p, vec a)
{
    *(vec *)p = a;
}

/* A non-temporal store; p is aligned to a vector. Call v_fence() after the last one. */
INLINE void v_stream(float *p, vec a)
{
#if defined(__x86_64__) && LANES == 8
    _mm256_stream_ps(p, (__m256)a);
#elif defined(__x86_64__) && LANES == 4
    _mm_stream_ps(p, (__m128)a);
#else
    v_store(p, a);
#endif
}

INLINE void v_fence(void)
{
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

/* Floats of the vector from i on, if there are fewer than LANES; 0: all LANES. */
INLINE int64_t left_of(int64_t n, int64_t i)
{
    return n - i < LANES ? n - i : 0;
}

/* Loads and stores of the first n < LANES floats; when loaded, the others are 0. */
#if defined(__x86_64__) && LANES == 8
INLINE __m256i v_first(int64_t n)
{
    static const int32_t bits[16] = {-1, -1, -1, -1, -1, -1, -1, -1};

    return _mm256_loadu_si256((const __m256i *)(bits + 8 - n));
}

INLINE vec v_load_part(const float *p, int64_t n)
{
    return (vec)_mm256_maskload_ps(p, v_first(n));
}

#else
INLINE vec v_load_part(const float *p, int64_t n)
{
    float lanes[LANES] = {0};

    for (int64_t i = 0; i < n; i++)
        lanes[i] = p[i];
    return v_load(lanes);
}
#endif

INLINE void v_store_part(float *p, vec a, int64_t n)
{
    float lanes[LANES];

    v_store(lanes, a);
    for (int64_t i = 0; i < n; i++)
        p[i] = lanes[i];
}

/* left floats; 0: a whole vector. */
INLINE vec v_load_some(const float *p, int64_t left)
{
    return left == 0 ? v_load(p) : v_load_part(p, left);
}

INLINE void v_store_some(float *p, vec v, int64_t left)
{
    if (left == 0)
        v_store(p, v);
    else
        v_store_part(p, v, left);
}

INLINE vec v_splat(float x)
{
    return (vec){0} + x;
}

/* a where the mask (all bits or none, as of a comparison) is set, else b. */
INLINE vec v_select(ivec mask, vec a, vec b)
{
    return (vec)(((ivec)a & mask) | ((ivec)b & ~mask));
}

/* a where the mask is set, else 0. */
INLINE vec v_where(ivec mask, vec a)
{
    return (vec)((ivec)a & mask);
}

INLINE vec v_abs(vec a)
{
    return (vec)((ivec)a & 0x7fffffff);
}

/* b if one of them is NaN. */
INLINE vec v_max(vec a, vec b)
{
    return v_select(a > b, a, b);
}

INLINE vec v_min(vec a, vec b)
{
    return v_select(a < b, a, b);
}

INLINE vec v_sqrt(vec a)
{
#if defined(__x86_64__) && LANES == 8
    return (vec)_mm256_sqrt_ps((__m256)a);
#elif defined(__x86_64__) && LANES == 4
    return (vec)_mm_sqrt_ps((__m128)a);
#else
    for (int i = 0; i < LANES; i++)
        a[i] = sqrtf(a[i]);
    return a;
#endif
}

/* The lower and the upper half as doubles. */
INLINE dvec v_low(vec a)
{
#if LANES == 8
    return __builtin_convertvector(__builtin_shufflevector(a, a, 0, 1, 2, 3), dvec);
#else
    return __builtin_convertvector(__builtin_shufflevector(a, a, 0, 1), dvec);
#endif
}

INLINE dvec v_high(vec a)
{
#if LANES == 8
    return __builtin_convertvector(__builtin_shufflevector(a, a, 4, 5, 6, 7), dvec);
#else
    return __builtin_convertvector(__builtin_shufflevector(a, a, 2, 3), dvec);
#endif
}

/* The sum of all lanes, always in the same order. */
INLINE float v_sum(vec a)
{
    float s = 0;

    for (int i = 0; i < LANES; i++)
        s += a[i];
    return s;
}

INLINE double d_sum(dvec a)
{
    double s = 0;

    for (int i = 0; i < LANES / 2; i++)
        s += a[i];
    return s;
}

INLINE float v_most(vec a)
{
    float s = a[0];

    for (int i = 1; i < LANES; i++)
        s = a[i] > s ? a[i] : s;
    return s;
}

/* 2^n for integers -126 <= n <= 127. */
INLINE vec v_power(ivec n)
{
    return (vec)((n + 127) << 23);
}

/* x = n ln 2 + r, |r| <= ln 2 / 2, for |x| < 2^20; returns r. */
INLINE vec v_reduce(vec x, ivec *n)
{
    vec rounded = x * 1.44269504f + 12582912.0f; /* adding 1.5 * 2^23 rounds */

    *n = (ivec)rounded - 0x4b400000;
    rounded -= 12582912.0f;
    return (x - rounded * 0.693359375f) + rounded * 2.12194440e-4f;
}

/* (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2: Taylor's series. */
INLINE vec v_exp_rest(vec r)
{
    vec p = v_splat(1.0f / 5040);

    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    return p * r + 0.5f;
}

INLINE vec v_exp(vec x)
{
    ivec n;

    x = v_select(x > 89.0f, v_splat(89), x);
    x = v_select(x < -104.0f, v_splat(-104), x);
    vec r = v_reduce(x, &n);
    vec p = (v_exp_rest(r) * r) * r + r + 1.0f;
    ivec half = n >> 1; /* two factors: 2^n may be denormal or overflow */
    return p * v_power(half) * v_power(n - half);
}

/* exp(x) - 1 for x <= 0. */
INLINE vec v_expm1(vec x)
{
    ivec n;

    x = v_select(x < -40.0f, v_splat(-40), x);
    vec r = v_reduce(x, &n), scale = v_power(n);
    vec p = (v_exp_rest(r) * r) * r + r;
    return p * scale + (scale - 1.0f);
}

INLINE vec v_log(vec x)
{
    ivec tiny = (x < 0x1p-126f) & (x > 0.0f);
    vec a = v_select(tiny, x * 0x1p23f, x);
    /* a = 2^e (1 + f), with 1 + f between the roots of 1/2 and of 2 */
    ivec e = ((ivec)a - 0x3f3504f3) >> 23;
    vec f = (vec)((ivec)a - (e << 23)) - 1.0f;
    vec k = __builtin_convertvector(e - (tiny & 23), vec);
    /* log(1 + f) = 2 atanh(s), and 2 s = f - f^2 / 2 + s f^2 / 2 */
    vec s = f / (f + 2.0f), z = s * s, h = 0.5f * f * f;
    vec p = v_splat(2.0f / 11);

    p = p * z + 2.0f / 9;
    p = p * z + 2.0f / 7;
    p = p * z + 2.0f / 5;
    p = p * z + 2.0f / 3;
    vec small = s * (h + p * z) + k * -2.12194440e-4f;
    vec y = k * 0.693359375f + (f - (h - small));

    y = v_select(x == 0.0f, v_splat(-INFINITY), y);
    y = v_select(x < 0.0f, v_splat(NAN), y);
    /* infinity or NaN */
    return v_select(((ivec)x & 0x7f800000) == 0x7f800000,
                    v_select(x < 0.0f, v_splat(NAN), x), y);
}

/* log(1 + z) for 0 <= z <= 1: 2 atanh(z / (2 + z)). */
INLINE vec v_log1p(vec z)
{
    vec s = z / (z + 2.0f), q = s * s, p = v_splat(2.0f / 15);

    p = p * q + 2.0f / 13;
    p = p * q + 2.0f / 11;
    p = p * q + 2.0f / 9;
    p = p * q + 2.0f / 7;
    p = p * q + 2.0f / 5;
    p = p * q + 2.0f / 3;
    return p * q * s + 2.0f * s;
}

INLINE vec v_tanh(vec x)
{
    vec t = v_expm1(v_abs(x) * -2.0f);
    vec y = v_abs(t) / (2.0f + t);

    return (vec)((ivec)y | ((ivec)x & INT32_MIN));
}

INLINE vec v_sigmoid(vec x)
{
    vec e = v_exp(-v_abs(x)), y = 1.0f / (1.0f + e);

    return v_select(x < 0.0f, e * y, y);
}

INLINE vec v_softplus(vec x)
{
    return v_log1p(v_exp(-v_abs(x))) + v_select(x < 0.0f, v_splat(0), x);
}

/* The normal distribution: its integral up to x, and (in *bell) exp(-x^2 / 2). For
 * 0 <= x <= 14, the polynomial in t = 1 / (1 + 0.3 x) is a least squares fit (relative
 * error) of the integral up to -x divided by exp(-x^2 / 2). */
INLINE vec v_normal(vec x, vec *bell)
{
    vec a = v_abs(x);

    a = v_select(a > 14.0f, v_splat(14), a); /* the tail is 0 beyond */
    vec t = 1.0f / (0.3f * a + 1.0f), p = v_splat(0.038870353f);

    p = p * t - 0.17144090f;
    p = p * t + 0.23310221f;
    p = p * t - 0.081276567f;
    p = p * t + 0.14560606f;
    p = p * t + 0.093474100f;
    p = p * t + 0.12220423f;
    p = p * t + 0.11945145f;
    p = p * t + 9.0936813e-6f;
    *bell = v_exp(-0.5f * a * a);
    vec tail = p * *bell;
    return v_select(x < 0.0f, tail, 1.0f - tail);
}

#endif
