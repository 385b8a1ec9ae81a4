/* rows_combine_kernel.h - element-wise combination of several boxes of rows.
 *
 * Included by rows_plain.c and rows_avx2.c, after rows_norm_kernel.h, whose ReLU it
 * uses.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
INLINE vec combine_two(const enum dnn_combine fn, vec a, vec b)
{
    switch (fn) {
    case DNN_SUBTRACT:
        return a - b;
    case DNN_MULTIPLY:
        return a * b;
    case DNN_MAXIMUM: /* NaN if one is NaN */
        return v_select((b > a) | (b != b), b, a);
    case DNN_MINIMUM:
        return v_select((b < a) | (b != b), b, a);
    default:
        return a + b;
    }
}

INLINE vec combine_at(const enum dnn_combine fn, const float *const *x, int terms,
                      int64_t j, int64_t left)
{
    vec v = v_load_some(x[0] + j, left);

    for (int t = 1; t < terms; t++)
        v = combine_two(fn, v, v_load_some(x[t] + j, left));
    return v;
}

/* terms is a constant where it is 2. */
INLINE void combine_rows(const struct rows_combine *b, const enum dnn_combine fn,
                         const int terms, const int kind)
{
    float factor = b->factor, alpha = b->relu.alpha;
    int64_t n = b->n;

    for (int64_t r = 0; r < b->rows; r++) {
        const float *x[ROWS_MAX_TERMS];
        float *y = b->y + r * b->y_pitch;

        for (int t = 0; t < terms; t++)
            x[t] = b->x[t] + r * b->pitch[t];
        for (int64_t j = 0; j < n; j += LANES) {
            int64_t left = n - j < LANES ? n - j : 0;

            v_store_some(
                y + j,
                relu_value(combine_at(fn, x, terms, j, left) * factor, kind, alpha),
                left);
        }
    }
}

INLINE void combine_terms(const struct rows_combine *b, const enum dnn_combine fn)
{
    int kind = relu_kind(b->relu);

    if (b->terms == 2 && kind == RELU_NONE)
        combine_rows(b, fn, 2, RELU_NONE);
    else if (b->terms == 2 && kind == RELU_ZERO)
        combine_rows(b, fn, 2, RELU_ZERO);
    else if (kind == RELU_NONE)
        combine_rows(b, fn, b->terms, RELU_NONE);
    else
        combine_rows(b, fn, b->terms, RELU_LEAKY);
}

static TARGET void combine(const struct rows_combine *b)
{
    switch (b->fn) {
    case DNN_SUBTRACT:
        combine_terms(b, DNN_SUBTRACT);
        break;
    case DNN_MULTIPLY:
        combine_terms(b, DNN_MULTIPLY);
        break;
    case DNN_MAXIMUM:
        combine_terms(b, DNN_MAXIMUM);
        break;
    case DNN_MINIMUM:
        combine_terms(b, DNN_MINIMUM);
        break;
    default:
        combine_terms(b, DNN_ADD);
        break;
    }
}

static TARGET void max_min_data(const struct rows_combine *b, const float *dy,
                                int64_t dy_pitch)
{
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t j = 0; j < b->n; j += LANES) {
            int64_t left = b->n - j < LANES ? b->n - j : 0;
            vec y = v_load_some(b->x[1] + r * b->pitch[1] + j, left);
            ivec hit = v_load_some(b->x[0] + r * b->pitch[0] + j, left) == y;

            for (int t = 2; t < b->terms; t++)
                hit &= v_load_some(b->x[t] + r * b->pitch[t] + j, left) != y;
            v_store_some(b->y + r * b->y_pitch + j,
                         v_where(hit, v_load_some(dy + r * dy_pitch + j, left)), left);
        }
}
