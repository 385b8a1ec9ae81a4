/* rows_unary_kernel.h - element-wise functions over a box of rows, their derivatives,
 * and masks.
 *
 * Included by rows_plain.c and rows_avx2.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/rows_kernel.h"
#include "backend/cpu/vmath_impl.h"

#define SELU_ALPHA 1.67326324f
#define SELU_SCALE 1.05070099f
#define GELU_CUBIC 0.044715f
#define ROOT_2_PI 0.797884561f /* sqrt(2 / pi) */
#define ROOT_HALF 0.398942280f /* sqrt(1 / (2 pi)) */

INLINE vec clip01(vec x)
{
    return v_min(v_max(x, v_splat(0)), v_splat(1));
}

INLINE vec gelu_inner(vec x)
{
    return ROOT_2_PI * x * (1.0f + GELU_CUBIC * x * x);
}

INLINE vec relu(const struct rows_unary *u, vec x)
{
    vec y = v_select(x < u->threshold, (x - u->threshold) * u->alpha, x);

    return v_select(y > u->max_value, v_splat(u->max_value), y);
}

INLINE vec elu(vec x, float alpha)
{
    vec below = v_select(x < 0.0f, x, v_splat(0));

    return v_select(x < 0.0f, alpha * v_expm1(below), x);
}

/* sigmoid(x), and s (1 - s). */
INLINE vec sigmoid_slope(vec x, vec *slope)
{
    vec e = v_exp(-v_abs(x)), s = 1.0f / (1.0f + e);

    *slope = e * s * s;
    return v_select(x < 0.0f, e * s, s);
}

/* t = tanh(softplus(x)) = n / (n + 2), n = e (e + 2), e = exp(x). *rest becomes 1 -
 * t^2, *sigmoid sigmoid(x). */
INLINE vec mish_inner(vec x, vec *rest, vec *sigmoid)
{
    vec e = v_exp(v_select(x > 20.0f, v_splat(20), x));
    vec n = e * (e + 2.0f), t = n / (n + 2.0f);

    *rest = 2.0f / (n + 2.0f) * (1.0f + t);
    *sigmoid = e / (1.0f + e);
    return t;
}

/* fn is a constant in every call. */
INLINE vec value_of(const enum dnn_unary fn, const struct rows_unary *u, vec x)
{
    vec a, b;

    switch (fn) {
    case DNN_RELU:
        return relu(u, x);
    case DNN_ELU:
        return elu(x, u->alpha);
    case DNN_SELU:
        return SELU_SCALE * elu(x, SELU_ALPHA);
    case DNN_GELU:
        return x * v_normal(x, &a);
    case DNN_GELU_TANH:
        return x * v_sigmoid(2.0f * gelu_inner(x));
    case DNN_SIGMOID:
        return v_sigmoid(x);
    case DNN_TANH:
        return v_tanh(x);
    case DNN_SOFTPLUS:
        return v_softplus(x);
    case DNN_SOFTSIGN:
        return x / (1.0f + v_abs(x));
    case DNN_HARD_SIGMOID:
        return clip01(u->alpha * x + 0.5f);
    case DNN_HARD_SWISH:
        return x * clip01(x * (1.0f / 6) + 0.5f);
    case DNN_SWISH:
        return x * v_sigmoid(x);
    case DNN_MISH:
        return x * mish_inner(x, &a, &b);
    case DNN_LOG_SIGMOID:
        return -v_softplus(-x);
    case DNN_EXP:
        return v_exp(x);
    case DNN_LOG:
        return v_log(x);
    case DNN_SQUARE:
        return x * x;
    case DNN_SQRT:
        return v_sqrt(x);
    case DNN_ABS:
        return v_abs(x);
    case DNN_RECIPROCAL:
        return 1.0f / x;
    default:
        return -x;
    }
}

/* For functions where dnn_op_unary_by_result() is true. */
INLINE vec slope_by_result(const enum dnn_unary fn, const struct rows_unary *u, vec y)
{
    vec t;

    switch (fn) {
    case DNN_RELU:
        t = v_select(y > 0.0f, v_splat(1), v_splat(u->alpha));
        return (vec)((ivec)t & ~(y >= u->max_value));
    case DNN_ELU:
        return v_select(y > 0.0f, v_splat(1), y + u->alpha);
    case DNN_SELU:
        return v_select(y > 0.0f, v_splat(SELU_SCALE), y + SELU_SCALE * SELU_ALPHA);
    case DNN_SIGMOID:
        return y * (1.0f - y);
    case DNN_TANH:
        return (1.0f - y) * (1.0f + y);
    case DNN_SOFTPLUS:
        return -v_expm1(-y);
    case DNN_SOFTSIGN:
        t = 1.0f - v_abs(y);
        return t * t;
    case DNN_HARD_SIGMOID:
        return v_where((y > 0.0f) & (y < 1.0f), v_splat(u->alpha));
    case DNN_LOG_SIGMOID:
        return -v_expm1(y);
    case DNN_EXP:
        return y;
    case DNN_RECIPROCAL:
        return -y * y;
    default:
        return 0.5f / y;
    }
}

INLINE vec slope_by_argument(const enum dnn_unary fn, const struct rows_unary *u, vec x)
{
    vec s, t, r;

    switch (fn) {
    case DNN_RELU:
        t = v_select(x > u->threshold, v_splat(1), v_splat(u->alpha));
        return (vec)((ivec)t & ~(relu(u, x) >= u->max_value));
    case DNN_ELU:
        return v_select(x > 0.0f, v_splat(1), u->alpha * v_exp(x));
    case DNN_HARD_SIGMOID:
        t = u->alpha * x + 0.5f;
        return v_where((t > 0.0f) & (t < 1.0f), v_splat(u->alpha));
    case DNN_GELU:
        t = v_normal(x, &s);
        return t + x * s * ROOT_HALF;
    case DNN_GELU_TANH:
        s = sigmoid_slope(2.0f * gelu_inner(x), &r);
        t = 2.0f * ROOT_2_PI * (1.0f + 3 * GELU_CUBIC * x * x);
        return s + x * t * r;
    case DNN_HARD_SWISH:
        t = v_where(~(x <= -3.0f), x * (1.0f / 3) + 0.5f);
        return v_select(x >= 3.0f, v_splat(1), t);
    case DNN_SWISH:
        s = sigmoid_slope(x, &r);
        return s + x * r;
    case DNN_MISH:
        t = mish_inner(x, &r, &s);
        return t + x * s * r;
    case DNN_LOG:
        return 1.0f / x;
    case DNN_SQUARE:
        return 2.0f * x;
    case DNN_ABS:
        return v_select(x > 0.0f, v_splat(1), v_where(x < 0.0f, v_splat(-1)));
    default:
        return v_splat(-1);
    }
}

enum { VALUE, BY_RESULT, BY_ARGUMENT };

INLINE vec unary_one(const int what, const enum dnn_unary fn,
                     const struct rows_unary *u, vec dy, vec x)
{
    if (what == VALUE) return value_of(fn, u, x);
    if (what == BY_RESULT) return dy * slope_by_result(fn, u, x);
    return dy * slope_by_argument(fn, u, x);
}

INLINE void unary_rows(const struct rows_unary *given, const int what,
                       const enum dnn_unary fn)
{
    const struct rows_unary u = *given; /* a copy: stores to y cannot alias it */

    for (int64_t r = 0; r < u.rows; r++) {
        const float *x = u.x + r * u.x_pitch;
        const float *dy = what == VALUE ? x : u.dy + r * u.dy_pitch;
        float *y = u.y + r * u.y_pitch;
        int64_t j = 0;

        for (; j + LANES <= u.n; j += LANES)
            v_store(y + j, unary_one(what, fn, &u, v_load(dy + j), v_load(x + j)));
        if (j < u.n) {
            int64_t left = u.n - j;
            vec v = unary_one(what, fn, &u, v_load_part(dy + j, left),
                              v_load_part(x + j, left));

            v_store_part(y + j, v, left);
        }
    }
}

#define CASE(what, fn)                                                                 \
    case fn:                                                                           \
        unary_rows(u, what, fn);                                                       \
        break

static TARGET void unary(const struct rows_unary *u)
{
    switch (u->fn) {
        CASE(VALUE, DNN_RELU);
        CASE(VALUE, DNN_ELU);
        CASE(VALUE, DNN_SELU);
        CASE(VALUE, DNN_GELU);
        CASE(VALUE, DNN_GELU_TANH);
        CASE(VALUE, DNN_SIGMOID);
        CASE(VALUE, DNN_TANH);
        CASE(VALUE, DNN_SOFTPLUS);
        CASE(VALUE, DNN_SOFTSIGN);
        CASE(VALUE, DNN_HARD_SIGMOID);
        CASE(VALUE, DNN_HARD_SWISH);
        CASE(VALUE, DNN_SWISH);
        CASE(VALUE, DNN_MISH);
        CASE(VALUE, DNN_LOG_SIGMOID);
        CASE(VALUE, DNN_EXP);
        CASE(VALUE, DNN_LOG);
        CASE(VALUE, DNN_SQUARE);
        CASE(VALUE, DNN_SQRT);
        CASE(VALUE, DNN_ABS);
        CASE(VALUE, DNN_NEGATE);
        CASE(VALUE, DNN_RECIPROCAL);
    default:
        break;
    }
}

static TARGET void by_result(const struct rows_unary *u)
{
    switch (u->fn) {
        CASE(BY_RESULT, DNN_RELU);
        CASE(BY_RESULT, DNN_ELU);
        CASE(BY_RESULT, DNN_SELU);
        CASE(BY_RESULT, DNN_SIGMOID);
        CASE(BY_RESULT, DNN_TANH);
        CASE(BY_RESULT, DNN_SOFTPLUS);
        CASE(BY_RESULT, DNN_SOFTSIGN);
        CASE(BY_RESULT, DNN_HARD_SIGMOID);
        CASE(BY_RESULT, DNN_LOG_SIGMOID);
        CASE(BY_RESULT, DNN_EXP);
        CASE(BY_RESULT, DNN_SQRT);
        CASE(BY_RESULT, DNN_RECIPROCAL);
    default:
        break;
    }
}

static TARGET void unary_data(const struct rows_unary *u)
{
    if (u->result) {
        by_result(u);
        return;
    }
    switch (u->fn) {
        CASE(BY_ARGUMENT, DNN_RELU);
        CASE(BY_ARGUMENT, DNN_ELU);
        CASE(BY_ARGUMENT, DNN_HARD_SIGMOID);
        CASE(BY_ARGUMENT, DNN_GELU);
        CASE(BY_ARGUMENT, DNN_GELU_TANH);
        CASE(BY_ARGUMENT, DNN_HARD_SWISH);
        CASE(BY_ARGUMENT, DNN_SWISH);
        CASE(BY_ARGUMENT, DNN_MISH);
        CASE(BY_ARGUMENT, DNN_LOG);
        CASE(BY_ARGUMENT, DNN_SQUARE);
        CASE(BY_ARGUMENT, DNN_ABS);
        CASE(BY_ARGUMENT, DNN_NEGATE);
    default:
        break;
    }
}

#undef CASE

/* ---- masks ---- */

static TARGET void mask(const float *x, int64_t n, uint8_t *bits)
{
    for (int64_t i = 0; i < n; i += 8) {
        int64_t left = n - i < 8 ? n - i : 8;
        unsigned byte = 0;

#if defined(__x86_64__) && LANES == 8
        if (left == 8) {
            bits[i / 8] = (uint8_t)_mm256_movemask_ps((__m256)(v_load(x + i) > 0.0f));
            continue;
        }
#endif
        for (int64_t k = 0; k < left; k++)
            byte |= (unsigned)(x[i + k] > 0) << k;
        bits[i / 8] = (uint8_t)byte;
    }
}

static TARGET void mask_data(const float *dy, const uint8_t *bits, int64_t n,
                             float alpha, float *dx)
{
    const int32_t bit[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    int64_t i = 0;

    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k += LANES) {
            ivec which = *(const ivec *)(bit + k);
            vec v = v_load(dy + i + k);

            v_store(dx + i + k,
                    v_select((which & (int32_t)bits[i / 8]) != 0, v, v * alpha));
        }
    for (; i < n; i++)
        dx[i] = bits[i / 8] >> i % 8 & 1 ? dy[i] : dy[i] * alpha;
}
