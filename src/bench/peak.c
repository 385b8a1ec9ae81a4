/* peak.c - measure the peak of this machine: sgemm and memory copy.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/bench_impl.h"

#include "base/clock.h"
#include "base/mem.h"

#include <cblas.h>
#include <stdint.h>
#include <string.h>

enum {
    SIDE = 1536,      /* of a matrix: larger ones are not faster */
    TRIES = 6,        /* the best one counts                     */
    COPIED = 64 << 20 /* bytes: larger than any cache            */
};

/* The threads of OpenBLAS spin for about 0.1 s after their work; the next measurement
 * should not share the cores with them. */
static const double settle = 0.25;

double dnn_bench_sgemm(int threads)
{
    size_t n = (size_t)SIDE * SIDE;
    float *a = dnn_alloc(n * sizeof *a), *b = dnn_alloc(n * sizeof *b);
    float *c = dnn_alloc(n * sizeof *c);
    double best = 0;

    for (size_t i = 0; i < n; i++) {
        a[i] = (float)(i % 17) / 17;
        b[i] = (float)(i % 13) / 13;
    }
    openblas_set_num_threads(threads);
    for (int i = 0; i <= TRIES; i++) {
        double start = dnn_clock_now();

        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1, a,
                    SIDE, b, SIDE, 0, c, SIDE);
        double flops = 2.0 * SIDE * SIDE * SIDE / (dnn_clock_now() - start);
        if (i > 0 && flops > best) best = flops;
    }
    dnn_free(a);
    dnn_free(b);
    dnn_free(c);
    dnn_clock_sleep(settle);
    return best;
}

double dnn_bench_copy(int threads)
{
    char *from = dnn_alloc(COPIED), *to = dnn_alloc(COPIED);
    double best = 0;

    for (int i = 0; i <= TRIES; i++) {
        double start = dnn_clock_now();

#pragma omp parallel for num_threads(threads) schedule(static)
        for (int part = 0; part < 64; part++)
            memcpy(to + (size_t)part * (COPIED / 64),
                   from + (size_t)part * (COPIED / 64), COPIED / 64);
        double speed = 2.0 * COPIED / (dnn_clock_now() - start);
        if (i > 0 && speed > best) best = speed;
    }
    dnn_free(from);
    dnn_free(to);
    return best;
}
