/* select_impl.h - shared by the files of kernel selection.
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
    bool changed; /* has entries that are not in the file */
    double saved; /* time of the last write: dnn_clock_now() */
};

/* The name of the kernel for a key; NULL: not measured yet. */
const char *dnn_cpu_tuned_find(const struct cpu_tuned *tuned, const char *key);
void dnn_cpu_tuned_set(struct cpu_tuned *tuned, const char *key, const char *algo);

/* ---- select_cache.c ---- */

/* The first line of the file; entries are valid only if it is the same. The caller
 * frees it. */
char *dnn_cpu_tuned_header(const struct dnn_dev *dev);
/* Add the entries of the file. A missing or damaged file, or one from another machine,
 * is ignored. */
void dnn_cpu_tuned_read(struct cpu_tuned *tuned, const char *path);
/* Write all entries, including those that other processes have added to the file. */
int dnn_cpu_tuned_write(struct cpu_tuned *tuned, const char *path, struct dnn_err *err);

/* ---- select_autotune.c ---- */

enum { CPU_ALGOS_MAX = 8 };

/* seconds[i] = the time of kernel i for this step, measured in separate memory;
 * INFINITY: it failed. Fails if there is not enough memory. */
int dnn_cpu_measure(struct dnn_dev *dev, const struct dnn_step *step,
                    const struct cpu_algo *const *algos, int count, double *seconds,
                    struct dnn_err *err);

#endif
