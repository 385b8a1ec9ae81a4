/* select_impl.h - shared by the files that select kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_SELECT_IMPL_H
#define DNN_BACKEND_CPU_SELECT_IMPL_H

#include "backend/cpu/cpu_impl.h"
#include "base/text.h"

/* The selected kernel for each key of a step. */
struct cpu_tuned {
    struct cpu_tuned_entry {
        char *key, *algo; /* owned */
    } *at;                /* owned */
    size_t count, cap;
    char *header; /* owned: the machine and the libraries they are valid for */
    bool changed; /* not in the file yet */
    double saved; /* when, on dnn_clock_now() */
};

/* NULL: not measured yet. */
const char *dnn_cpu_tuned_find(const struct cpu_tuned *tuned, const char *key);
void dnn_cpu_tuned_set(struct cpu_tuned *tuned, const char *key, const char *algo);

/* ---- select_cache.c ---- */

/* The first line of the file: entries are valid only where it is the same. */
char *dnn_cpu_tuned_header(const struct dnn_dev *dev);
/* Add the entries of the file. A missing or damaged file, or one of another machine,
 * is ignored. */
void dnn_cpu_tuned_read(struct cpu_tuned *tuned, const char *path);
/* Write all entries, including those other processes have added meanwhile. */
int dnn_cpu_tuned_write(struct cpu_tuned *tuned, const char *path, struct dnn_err *err);

/* ---- select_autotune.c ---- */

enum { CPU_ALGOS_MAX = 8 };

/* Seconds each of the kernels takes for this step, in separate memory; INFINITY: it
 * failed. Fails if there is not enough memory. */
int dnn_cpu_measure(struct dnn_dev *dev, const struct dnn_step *step,
                    const struct cpu_algo *const *algos, int count, double *seconds,
                    struct dnn_err *err);

#endif
