/* direct_stream.h - products of a few rows with a matrix that fits in no cache, for one
 * instruction set; part of direct_kernel.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */

enum { CHUNK = 2 * LANES };

/* rows is a constant wherever these are used. */
INLINE void add_tile(const float *x, int64_t step, const float *w, int64_t ldw,
                     int depth, float *sum, const int rows)
{
    vec s[DNN_DIRECT_ROWS][2];

#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        s[r][0] = *(const vec *)(sum + r * CHUNK);
        s[r][1] = *(const vec *)(sum + r * CHUNK + LANES);
    }
    for (int k = 0; k < depth; k++, w += ldw, x += step) {
        vec a = *(const vec *)w, b = *(const vec *)(w + LANES);

#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            s[r][0] += x[r] * a;
            s[r][1] += x[r] * b;
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        *(vec *)(sum + r * CHUNK) = s[r][0];
        *(vec *)(sum + r * CHUNK + LANES) = s[r][1];
    }
}

INLINE void add_chunk(const float *x, int64_t rows, const float *w, int64_t ldw,
                      int depth, float *sum)
{
    int64_t r = 0;

    for (; r + 4 <= rows; r += 4)
        add_tile(x + r, rows, w, ldw, depth, sum + r * CHUNK, 4);
    switch (rows - r) {
    case 3:
        add_tile(x + r, rows, w, ldw, depth, sum + r * CHUNK, 3);
        break;
    case 2:
        add_tile(x + r, rows, w, ldw, depth, sum + r * CHUNK, 2);
        break;
    case 1:
        add_tile(x + r, rows, w, ldw, depth, sum + r * CHUNK, 1);
        break;
    }
}

static TARGET void add_rows(const float *x, int64_t rows, const float *w, int64_t ldw,
                            int depth, int64_t cols, float *sum)
{
    float last[DNN_DIRECT_DEEP * CHUNK] = {0};

    for (; cols >= CHUNK; cols -= CHUNK, w += CHUNK, sum += rows * CHUNK)
        add_chunk(x, rows, w, ldw, depth, sum);
    if (cols == 0) return;
    for (int k = 0; k < depth; k++)
        memcpy(last + k * CHUNK, w + k * ldw, (size_t)cols * sizeof *w);
    add_chunk(x, rows, last, CHUNK, depth, sum);
}

/* rows and n are constants wherever this is used. */
INLINE void dots_tile(const float *y, int64_t ldy, const float *w, int64_t ldw,
                      int64_t cols, float *to, int64_t ld_to, const int rows,
                      const int n)
{
    vec s[DNN_DIRECT_ROWS][DNN_DIRECT_DOTS];
    int64_t i = 0;

#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 3
        for (int k = 0; k < n; k++)
            s[r][k] = (vec){0};
    for (; i + LANES <= cols; i += LANES) {
        vec by[DNN_DIRECT_DOTS];

#pragma GCC unroll 3
        for (int k = 0; k < n; k++)
            by[k] = *(const vec *)(w + k * ldw + i);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            vec at = *(const vec *)(y + r * ldy + i);

#pragma GCC unroll 3
            for (int k = 0; k < n; k++)
                s[r][k] += at * by[k];
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 3
        for (int k = 0; k < n; k++) {
            float all = total(s[r][k]);

            for (int64_t j = i; j < cols; j++)
                all += y[r * ldy + j] * w[k * ldw + j];
            to[r * ld_to + k] += all;
        }
}

#define DOTS(r, n)                                                                     \
    case (r) * 4 + (n):                                                                \
        dots_tile(y, ldy, w, ldw, cols, to, ld_to, r, n);                              \
        break
#define DOTS_OF(r)                                                                     \
    DOTS(r, 1);                                                                        \
    DOTS(r, 2);                                                                        \
    DOTS(r, 3)

static TARGET void dots(const float *y, int64_t ldy, int rows, const float *w,
                        int64_t ldw, int k, int64_t cols, float *to, int64_t ld_to)
{
    switch (rows * 4 + k) {
        DOTS_OF(1);
        DOTS_OF(2);
        DOTS_OF(3);
        DOTS_OF(4);
    }
}

/* n is a constant wherever this is used. */
INLINE void outer_tile(const float *x, int64_t ldx, int64_t rows, const float *y,
                       vec s[DNN_DIRECT_ROWS][2], const int n)
{
#pragma GCC unroll 4
    for (int k = 0; k < n; k++)
        s[k][0] = s[k][1] = (vec){0};
    for (int64_t r = 0; r < rows; r++, x += ldx, y += CHUNK) {
        vec a = *(const vec *)y, b = *(const vec *)(y + LANES);

#pragma GCC unroll 4
        for (int k = 0; k < n; k++) {
            s[k][0] += x[k] * a;
            s[k][1] += x[k] * b;
        }
    }
}

INLINE void outer_rows(const float *x, int64_t ldx, int64_t rows, const float *y,
                       int64_t cols, float *w, int64_t ldw, bool past, const int n)
{
    vec s[DNN_DIRECT_ROWS][2];

    for (; cols > 0; cols -= CHUNK, w += CHUNK, y += rows * CHUNK) {
        outer_tile(x, ldx, rows, y, s, n);
#pragma GCC unroll 4
        for (int k = 0; k < n; k++) {
            float *to = w + k * ldw;

            if (cols < CHUNK) {
                store_some(to, s[k][0], s[k][1], cols);
            } else if (past) {
                PAST(to, s[k][0]);
                PAST(to + LANES, s[k][1]);
            } else {
                *(vec *)to = s[k][0];
                *(vec *)(to + LANES) = s[k][1];
            }
        }
    }
}

static TARGET void outer(const float *x, int64_t ldx, int64_t rows, const float *y,
                         int k, int64_t cols, float *w, int64_t ldw, bool past)
{
    /* Rows of x may be a power of two apart, which caches do not like. */
    float near[DNN_DIRECT_MOST * DNN_DIRECT_ROWS];

    for (int64_t r = 0; r < rows; r++)
        memcpy(near + r * DNN_DIRECT_ROWS, x + r * ldx, (size_t)k * sizeof *x);
    x = near;
    ldx = DNN_DIRECT_ROWS;
    switch (k) {
    case 1:
        outer_rows(x, ldx, rows, y, cols, w, ldw, past, 1);
        break;
    case 2:
        outer_rows(x, ldx, rows, y, cols, w, ldw, past, 2);
        break;
    case 3:
        outer_rows(x, ldx, rows, y, cols, w, ldw, past, 3);
        break;
    case 4:
        outer_rows(x, ldx, rows, y, cols, w, ldw, past, 4);
        break;
    }
}

static TARGET void fence(void)
{
    FENCE();
}
