/* rows_window_kernel.h - maxima and sums over windows, and weighted sums of rows.
 *
 * Included by rows_plain.c and rows_avx2.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_kernel.h"
#include "backend/cpu/vmath_impl.h"

typedef uint16_t wvec __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

/* Intrinsics: compilers would convert vectors of this size element by element. */
INLINE void store_bytes(uint8_t *p, ivec v)
{
#if defined(__x86_64__) && LANES == 8
    __m256i a = (__m256i)v;
    __m128i b =
        _mm_packs_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));

    _mm_storel_epi64((__m128i *)p, _mm_packus_epi16(b, b));
#elif defined(__x86_64__) && LANES == 4
    __m128i b = _mm_packs_epi32((__m128i)v, (__m128i)v);
    int32_t four = _mm_cvtsi128_si32(_mm_packus_epi16(b, b));

    memcpy(p, &four, sizeof four);
#else
    *(bvec *)p = __builtin_convertvector(v, bvec);
#endif
}

INLINE ivec load_bytes(const uint8_t *p)
{
#if defined(__x86_64__) && LANES == 8
    return (ivec)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
#elif defined(__x86_64__) && LANES == 4
    int32_t four;
    __m128i zero = _mm_setzero_si128();

    memcpy(&four, p, sizeof four);
    __m128i b = _mm_unpacklo_epi8(_mm_cvtsi32_si128(four), zero);
    return (ivec)_mm_unpacklo_epi16(b, zero);
#else
    return __builtin_convertvector(*(const bvec *)p, ivec);
#endif
}

INLINE void store_index(void *index, int64_t at, const int size, ivec v, int64_t left)
{
    if (left == 0) {
        if (size == 1)
            store_bytes((uint8_t *)index + at, v);
        else if (size == 2)
            *(wvec *)((uint16_t *)index + at) = __builtin_convertvector(v, wvec);
        else
            *(ivec *)((int32_t *)index + at) = v;
        return;
    }
    for (int64_t i = 0; i < left; i++) {
        if (size == 1)
            ((uint8_t *)index)[at + i] = (uint8_t)v[i];
        else if (size == 2)
            ((uint16_t *)index)[at + i] = (uint16_t)v[i];
        else
            ((int32_t *)index)[at + i] = v[i];
    }
}

INLINE ivec load_index(const void *index, int64_t at, const int size, int64_t left)
{
    ivec v = {0};

    if (left == 0) {
        if (size == 1) return load_bytes((const uint8_t *)index + at);
        if (size == 2)
            return __builtin_convertvector(
                *(const wvec *)((const uint16_t *)index + at), ivec);
        return *(const ivec *)((const int32_t *)index + at);
    }
    for (int64_t i = 0; i < left; i++)
        v[i] = size == 1   ? ((const uint8_t *)index)[at + i]
               : size == 2 ? ((const uint16_t *)index)[at + i]
                           : ((const int32_t *)index)[at + i];
    return v;
}

/* Whole vectors of a row, then the remainder: call(j, left). */
#define EACH(n, call)                                                                  \
    do {                                                                               \
        int64_t j_ = 0;                                                                \
        for (; j_ + LANES <= (n); j_ += LANES)                                         \
            call(j_, 0);                                                               \
        if (j_ < (n)) call(j_, (n) - j_);                                              \
    } while (0)

/* ---- maxima ---- */

/* size (0: no index) is a constant, and taps too where it is 4 or 8. */
INLINE void max_one(const struct rows_window *w, int64_t i, int64_t j, int64_t left,
                    const int taps, const int size)
{
    const float *x = w->x + i * w->x_step + j;
    vec max = v_load_some(x + w->at[0], left);
    ivec best = (ivec){0} + w->number[0];

#pragma GCC unroll 8
    for (int t = 1; t < taps; t++) {
        vec v = v_load_some(x + w->at[t], left);
        /* The first of equal maxima; the first NaN, if there is one. */
        ivec greater = ~(v <= max) & (max == max);

        max = v_select(greater, v, max);
        if (size != 0) best = (greater & w->number[t]) | (~greater & best);
    }
    v_store_some(w->y + i * w->y_step + j, max, left);
    if (size != 0) store_index(w->index, i * w->index_step + j, size, best, left);
}

INLINE void max_run(const struct rows_window *given, const int taps, const int size)
{
    const struct rows_window w = *given;

#define CALL(j, left) max_one(&w, i, j, left, taps, size)
    for (int64_t i = 0; i < w.count; i++)
        EACH(w.n, CALL);
#undef CALL
}

INLINE void max_taps(const struct rows_window *w, const int size)
{
    if (w->taps == 8)
        max_run(w, 8, size);
    else if (w->taps == 4)
        max_run(w, 4, size);
    else
        max_run(w, w->taps, size);
}

static TARGET void window_max(const struct rows_window *w)
{
    if (w->index == NULL)
        max_taps(w, 0);
    else if (w->index_size == 1)
        max_taps(w, 1);
    else if (w->index_size == 2)
        max_taps(w, 2);
    else
        max_taps(w, 4);
}

INLINE void max_data_one(const struct rows_window *w, int64_t i, int64_t j,
                         int64_t left, const int taps, const int size,
                         const bool stream)
{
    const float *dy = w->x + i * w->x_step + j;
    float *dx = w->y + i * w->y_step + j;
    vec sum = {0};

    for (int t = 0; t < taps; t++) {
        int64_t at = w->index_at[t] + i * w->index_step + j;
        ivec index = load_index(w->index, at, size, left);

        sum += v_where(index == w->number[t], v_load_some(dy + w->at[t], left));
    }
    if (stream)
        v_stream(dx, sum);
    else
        v_store_some(dx, sum, left);
}

INLINE void max_data_run(const struct rows_window *given, const int taps,
                         const int size, const bool stream)
{
    const struct rows_window w = *given;

#define CALL(j, left) max_data_one(&w, i, j, left, taps, size, stream)
    for (int64_t i = 0; i < w.count; i++)
        EACH(w.n, CALL);
#undef CALL
    if (stream) v_fence();
}

INLINE void max_data_taps(const struct rows_window *w, const int size)
{
    if (w->taps == 1 && w->stream)
        max_data_run(w, 1, size, true);
    else if (w->taps == 1)
        max_data_run(w, 1, size, false);
    else
        max_data_run(w, w->taps, size, false);
}

static TARGET void window_max_data(const struct rows_window *w)
{
    if (w->index_size == 1)
        max_data_taps(w, 1);
    else if (w->index_size == 2)
        max_data_taps(w, 2);
    else
        max_data_taps(w, 4);
}

/* ---- sums ---- */

INLINE void sum_one(const struct rows_window *w, int64_t i, int64_t j, int64_t left,
                    const int taps, const bool weighted)
{
    const float *x = w->x + i * w->x_step + j;
    vec sum = {0};

#pragma GCC unroll 8
    for (int t = 0; t < taps; t++) {
        vec v = v_load_some(x + w->at[t], left);

        if (weighted) v *= w->weight[t] * w->line[w->line_at[t] + i];
        sum += v;
    }
    v_store_some(w->y + i * w->y_step + j, sum * w->factor, left);
}

INLINE void sum_run(const struct rows_window *given, const int taps,
                    const bool weighted)
{
    const struct rows_window w = *given;

#define CALL(j, left) sum_one(&w, i, j, left, taps, weighted)
    for (int64_t i = 0; i < w.count; i++)
        EACH(w.n, CALL);
#undef CALL
}

static TARGET void window_sum(const struct rows_window *w)
{
    if (w->weight != NULL)
        sum_run(w, w->taps, true);
    else if (w->taps == 8)
        sum_run(w, 8, false);
    else if (w->taps == 4)
        sum_run(w, 4, false);
    else if (w->taps == 1)
        sum_run(w, 1, false);
    else
        sum_run(w, w->taps, false);
}

INLINE void mix_one(float *y, int64_t j, int64_t left, const int terms,
                    const float *const *x, const float *weight)
{
    vec sum = {0};

    for (int t = 0; t < terms; t++)
        sum += v_load_some(x[t] + j, left) * weight[t];
    v_store_some(y + j, sum, left);
}

INLINE void mix_terms(float *y, int64_t n, const int terms, const float *const *x,
                      const float *weight)
{
#define CALL(j, left) mix_one(y, j, left, terms, x, weight)
    EACH(n, CALL);
#undef CALL
}

static TARGET void mix(float *y, int64_t n, int terms, const float *const *x,
                       const float *weight)
{
    if (terms == 2)
        mix_terms(y, n, 2, x, weight);
    else if (terms == 4)
        mix_terms(y, n, 4, x, weight);
    else
        mix_terms(y, n, terms, x, weight);
}

/* ---- copies ---- */

INLINE void repeat_one(const float *x, int64_t j, int64_t left, const int64_t times,
                       float *y, int64_t y_pitch)
{
    vec v = v_load_some(x + j, left);

    for (int64_t t = 0; t < times; t++)
        v_store_some(y + t * y_pitch + j, v, left);
}

INLINE void repeat_rows(const float *x, int64_t x_pitch, int64_t rows, int64_t n,
                        const int64_t times, float *y, int64_t y_pitch)
{
#define CALL(j, left) repeat_one(x, j, left, times, y, y_pitch)
    for (int64_t r = 0; r < rows; r++, x += x_pitch, y += times * y_pitch)
        EACH(n, CALL);
#undef CALL
}

/* With non-temporal stores: y is larger than the caches and has whole cache lines. */
INLINE void stream_rows(const float *x, int64_t x_pitch, int64_t rows, int64_t n,
                        int64_t times, float *y, int64_t y_pitch)
{
    for (int64_t r = 0; r < rows; r++, x += x_pitch)
        for (int64_t t = 0; t < times; t++, y += y_pitch)
            for (int64_t j = 0; j < n; j += LANES)
                v_stream(y + j, v_load(x + j));
    v_fence();
}

static TARGET void repeat(const float *x, int64_t x_pitch, int64_t rows, int64_t n,
                          int64_t times, float *y, int64_t y_pitch, bool stream)
{
    if (stream)
        stream_rows(x, x_pitch, rows, n, times, y, y_pitch);
    else if (times == 1)
        repeat_rows(x, x_pitch, rows, n, 1, y, y_pitch);
    else if (times == 2)
        repeat_rows(x, x_pitch, rows, n, 2, y, y_pitch);
    else
        repeat_rows(x, x_pitch, rows, n, times, y, y_pitch);
}
