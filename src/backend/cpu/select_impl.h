/* select_impl.h - what the files that choose among algos share.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_SELECT_IMPL_H
#define DNN_BACKEND_CPU_SELECT_IMPL_H

#include "backend/cpu/cpu_impl.h"
#include "base/text.h"

/* What was chosen: a algo's name for a step's key. */
struct cpu_tuned {
    struct cpu_tuned_entry {
        char *key, *algo; /* owned */
    } *at;                /* owned */
    size_t count, cap;
    char *header; /* owned: the machine and the libraries they hold for */
    bool changed; /* not in the file yet */
    double saved; /* when, on dnn_clock_now() */
};

/* NULL: nothing is known. */
const char *dnn_cpu_tuned_find(const struct cpu_tuned *choices, const char *key);
void dnn_cpu_tuned_set(struct cpu_tuned *choices, const char *key, const char *algo);

/* ---- choose_file.c ---- */

/* The first line of the file: what must be the same for its choices to hold. */
char *dnn_cpu_tuned_header(const struct dnn_dev *dev);
/* Add what the file says.  No file, another machine's or a damaged one: nothing. */
void dnn_cpu_tuned_read(struct cpu_tuned *choices, const char *path);
/* Write them all, and those others have put there meanwhile. */
int dnn_cpu_tuned_write(struct cpu_tuned *choices, const char *path,
                        struct dnn_err *err);

/* ---- choose_measure.c ---- */

enum { CPU_ALGOS_MAX = 8 };

/* Seconds each of the algos takes for this step, on memory of its own; INFINITY: it
 * cannot after all.  Fails where there is no memory. */
int dnn_cpu_measure(struct dnn_dev *dev, const struct dnn_step *step,
                    const struct cpu_algo *const *algos, int count, double *seconds,
                    struct dnn_err *err);

#endif
