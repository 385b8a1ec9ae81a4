/* tile_impl.h - tiles of sums that stay in registers, for one instruction set; shared
 * by direct_kernel.h, wino_kernel.h and wino_weights_kernel.h.
 *
 * The including file defines LANES (floats in a vector) and TARGET (the functions'
 * attribute).
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_TILE_IMPL_H
#define DNN_BACKEND_CPU_TILE_IMPL_H

/* A vector at any address; may alias floats. */
typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
/* A vector in a local array: aligned, as sanitizers require. */
typedef float reg __attribute__((vector_size(4 * LANES), may_alias));

#define INLINE static inline __attribute__((always_inline)) TARGET

/* sum[r][v] += x * b[v]: rows (up to 12) times vecs (up to 3) sums; x is an expression
 * of r.  rows and vecs must be constants: then the loops are unrolled and sum stays in
 * registers. */
#define TILE_ADD(sum, rows, vecs, b, x)                                                \
    do {                                                                               \
        __typeof__((sum)[0][0]) y_[3];                                                 \
                                                                                       \
        _Pragma("GCC unroll 3") for (int v = 0; v < (vecs); v++) y_[v] =               \
            ((const vec *)(b))[v];                                                     \
        _Pragma("GCC unroll 12") for (int r = 0; r < (rows); r++)                      \
        {                                                                              \
            float x_ = (x);                                                            \
                                                                                       \
            _Pragma("GCC unroll 3") for (int v = 0; v < (vecs); v++)(sum)[r][v] +=     \
                x_ * y_[v];                                                            \
        }                                                                              \
    } while (0)

/* A case of a switch for each number of rows: DO(rows, ...). */
#define TILE_ROWS_4(DO, ...)                                                           \
    DO(1, __VA_ARGS__) DO(2, __VA_ARGS__) DO(3, __VA_ARGS__) DO(4, __VA_ARGS__)
#define TILE_ROWS_6(DO, ...)                                                           \
    TILE_ROWS_4(DO, __VA_ARGS__) DO(5, __VA_ARGS__) DO(6, __VA_ARGS__)
#define TILE_ROWS_8(DO, ...)                                                           \
    TILE_ROWS_6(DO, __VA_ARGS__) DO(7, __VA_ARGS__) DO(8, __VA_ARGS__)
#define TILE_ROWS_12(DO, ...)                                                          \
    TILE_ROWS_8(DO, __VA_ARGS__)                                                       \
    DO(9, __VA_ARGS__) DO(10, __VA_ARGS__) DO(11, __VA_ARGS__) DO(12, __VA_ARGS__)
/* As many rows as fit in the registers, with two and with three vectors per row. */
#if TILE_ROWS == 6
#define TILE_ROWS_OF_2 TILE_ROWS_6
#define TILE_ROWS_OF_3 TILE_ROWS_4
#else
#define TILE_ROWS_OF_2 TILE_ROWS_12
#define TILE_ROWS_OF_3 TILE_ROWS_8
#endif

#endif
