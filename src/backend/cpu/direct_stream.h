/* direct_stream.h - products of a few rows with a matrix that exceeds the caches,
 * for one instruction set; part of direct_kernel.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */

enum { CHUNK = 2 * LANES };

#define FOR_FEWER_ROWS(MAKE) MAKE(1) MAKE(2) MAKE(3) MAKE(4) MAKE(5)
_Static_assert(DNN_DIRECT_ROWS == 6, "a case for each number of rows");

/* rows is a constant in every call. */
INLINE void add_tile(const float *x, int64_t step, const float *w, int64_t ldw,
                     int depth, float *sum, const int rows)
{
    reg s[DNN_DIRECT_ROWS][2];

#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        s[r][0] = *(const vec *)(sum + r * CHUNK);
        s[r][1] = *(const vec *)(sum + r * CHUNK + LANES);
    }
    for (int k = 0; k < depth; k++, w += ldw, x += step) {
        vec a = *(const vec *)w, b = *(const vec *)(w + LANES);

#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
            s[r][0] += x[r] * a;
            s[r][1] += x[r] * b;
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        *(vec *)(sum + r * CHUNK) = s[r][0];
        *(vec *)(sum + r * CHUNK + LANES) = s[r][1];
    }
}

#define ADD_TILE(n)                                                                    \
    case n:                                                                            \
        add_tile(x + r, rows, w, ldw, depth, sum + r * CHUNK, n);                      \
        break;

INLINE void add_chunk(const float *x, int64_t rows, const float *w, int64_t ldw,
                      int depth, float *sum)
{
    int64_t r = 0;

    for (; r + DNN_DIRECT_ROWS <= rows; r += DNN_DIRECT_ROWS)
        add_tile(x + r, rows, w, ldw, depth, sum + r * CHUNK, DNN_DIRECT_ROWS);
    switch (rows - r) {
        FOR_FEWER_ROWS(ADD_TILE)
    }
}

static TARGET void add_rows(const float *x, int64_t rows, const float *w, int64_t ldw,
                            int depth, int64_t cols, float *sum)
{
    float last[DNN_DIRECT_DEPTH * CHUNK] = {0};

    for (; cols >= CHUNK; cols -= CHUNK, w += CHUNK, sum += rows * CHUNK)
        add_chunk(x, rows, w, ldw, depth, sum);
    if (cols == 0) return;
    for (int k = 0; k < depth; k++)
        memcpy(last + k * CHUNK, w + k * ldw, (size_t)cols * sizeof *w);
    add_chunk(x, rows, last, CHUNK, depth, sum);
}

/* rows and n are constants in every call. */
INLINE void dots_tile(const float *y, int64_t ldy, const float *w, int64_t ldw,
                      int64_t cols, float *to, int64_t ld_to, const int rows,
                      const int n)
{
    reg s[DNN_DIRECT_DOT_ROWS][DNN_DIRECT_DOTS];
    int64_t i = 0;

#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 3
        for (int k = 0; k < n; k++)
            s[r][k] = (vec){0};
    for (; i + LANES <= cols; i += LANES) {
        reg wv[DNN_DIRECT_DOTS];

#pragma GCC unroll 3
        for (int k = 0; k < n; k++)
            wv[k] = *(const vec *)(w + k * ldw + i);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            vec yv = *(const vec *)(y + r * ldy + i);

#pragma GCC unroll 3
            for (int k = 0; k < n; k++)
                s[r][k] += yv * wv[k];
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 3
        for (int k = 0; k < n; k++) {
            float sum = total(s[r][k]);

            for (int64_t j = i; j < cols; j++)
                sum += y[r * ldy + j] * w[k * ldw + j];
            to[r * ld_to + k] += sum;
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

/* n, and vectors (1 or 2), are constants in every call. */
INLINE void across_tile(const float *w, int64_t ldw, const float *y, int64_t rows,
                        int64_t cols, float *to, const int n, const int vectors)
{
    reg s[DNN_DIRECT_ROWS][2];

#pragma GCC unroll 6
    for (int k = 0; k < n; k++)
        s[k][0] = s[k][1] = (vec){0};
    for (int64_t i = 0; i < cols; i++, y += rows) {
        vec a = *(const vec *)y, b = *(const vec *)(y + (vectors - 1) * LANES);

#pragma GCC unroll 6
        for (int k = 0; k < n; k++) {
            s[k][0] += w[k * ldw + i] * a;
            if (vectors > 1) s[k][1] += w[k * ldw + i] * b;
        }
    }
#pragma GCC unroll 6
    for (int k = 0; k < n; k++) {
        *(vec *)(to + k * rows) = s[k][0];
        if (vectors > 1) *(vec *)(to + k * rows + LANES) = s[k][1];
    }
}

#define ACROSS(n)                                                                      \
    case n:                                                                            \
        for (; r + CHUNK <= rows; r += CHUNK)                                          \
            across_tile(w, ldw, y + r, rows, cols, to + r, n, 2);                      \
        if (r < rows) across_tile(w, ldw, y + r, rows, cols, to + r, n, 1);            \
        break;

static TARGET void across(const float *w, int64_t ldw, int k, const float *y,
                          int64_t rows, int64_t cols, float *to)
{
    int64_t r = 0;

    switch (k) {
        FOR_FEWER_ROWS(ACROSS)
        ACROSS(DNN_DIRECT_ROWS)
    }
}

/* n is a constant in every call. */
INLINE void outer_tile(const float *x, int64_t rows, const float *y,
                       vec s[DNN_DIRECT_ROWS][2], const int n)
{
#pragma GCC unroll 6
    for (int k = 0; k < n; k++)
        s[k][0] = s[k][1] = (vec){0};
    for (int64_t r = 0; r < rows; r++, x += DNN_DIRECT_ROWS, y += CHUNK) {
        vec a = *(const vec *)y, b = *(const vec *)(y + LANES);

#pragma GCC unroll 6
        for (int k = 0; k < n; k++) {
            s[k][0] += x[k] * a;
            s[k][1] += x[k] * b;
        }
    }
}

INLINE void outer_rows(const float *x, int64_t rows, const float *y, int64_t cols,
                       float *w, int64_t ldw, bool stream, const int n)
{
    reg s[DNN_DIRECT_ROWS][2];

    for (; cols > 0; cols -= CHUNK, w += CHUNK, y += rows * CHUNK) {
        outer_tile(x, rows, y, s, n);
#pragma GCC unroll 6
        for (int k = 0; k < n; k++) {
            float *to = w + k * ldw;

            if (cols < CHUNK) {
                store_some(to, s[k][0], s[k][1], cols);
            } else if (stream) {
                STREAM(to, s[k][0]);
                STREAM(to + LANES, s[k][1]);
            } else {
                *(vec *)to = s[k][0];
                *(vec *)(to + LANES) = s[k][1];
            }
        }
    }
}

#define OUTER_ROWS(n)                                                                  \
    case n:                                                                            \
        outer_rows(buf, rows, y, cols, w, ldw, stream, n);                             \
        break;

static TARGET void outer(const float *x, int64_t ldx, int64_t rows, const float *y,
                         int k, int64_t cols, float *w, int64_t ldw, bool stream)
{
    /* Copied: rows of x may be a power of two apart, which causes cache conflicts. */
    float buf[DNN_DIRECT_MAX_ROWS * DNN_DIRECT_ROWS];

    for (int64_t r = 0; r < rows; r++)
        for (int i = 0; i < DNN_DIRECT_ROWS; i++)
            buf[r * DNN_DIRECT_ROWS + i] = i < k ? x[r * ldx + i] : 0;
    switch (k) {
        FOR_FEWER_ROWS(OUTER_ROWS)
        OUTER_ROWS(DNN_DIRECT_ROWS)
    }
}

static TARGET void fence(void)
{
    FENCE();
}
