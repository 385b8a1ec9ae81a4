/* compare.h - run a program op by op, and compare arrays.
 *
 * Every value has its own memory and every op is run in order: the simplest
 * executor, so that a failure is that of an op.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_OPS_COMPARE_H
#define DNN_TESTS_OPS_COMPARE_H

#include "backend/backend.h"
#include "op/grad.h"
#include "op/prog.h"

struct ops_run {
    const struct dnn_prog *prog;
    const struct dnn_backend *backend;
    struct dnn_dev *dev;
    void **mem;                 /* by value, in device memory */
    struct dnn_kernel **kernel; /* by op                      */
    void **work;                /* by op                      */
    size_t *work_bytes;
    struct dnn_now now;
};

/* Open a device, give every value memory (constants and zeros are put there) and
 * prepare every op.  prog must outlive the run; on failure nothing is held. */
int ops_start(const struct dnn_prog *prog, const struct dnn_backend *backend,
              const struct dnn_exchange *exchange, struct ops_run *run,
              struct dnn_err *err);
void ops_stop(struct ops_run *run);

/* Copy all elements of a value from and to doubles: put f32, f64 and i32 (rounded
 * down), get any type an op has. */
void ops_put(struct ops_run *run, int value, const double *from);
void ops_get(struct ops_run *run, int value, double *to);

/* Run ops first ... end - 1. */
int ops_go(struct ops_run *run, int first, int end, struct dnn_err *err);

int64_t ops_count(const struct dnn_prog *prog, int value);

/* Difference of got and want: the largest difference over the largest absolute value of
 * want. */
struct ops_diff {
    double worst;     /* that quotient; not a number counts as infinite */
    int64_t at;       /* the element it is at                            */
    double got, want; /* its values                                      */
    double l2, norm;  /* Euclidean norms of the difference and of want   */
};

struct ops_diff ops_compare(const double *got, const double *want, int64_t n);

/* After a run: run op i once more with its first output where its first operand
 * is, and compare.  false if the op may not do so. */
bool ops_in_place(struct ops_run *run, int i, struct ops_diff *diff);

/* Numbers between low and high that are exact in f32; a function of (seed, i). */
void ops_fill(double *to, int64_t n, double low, double high, uint64_t seed);

#endif
