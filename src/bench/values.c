/* values.c - measured values, and temporary directories.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/proc_impl.h"

#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void dnn_values_add(struct dnn_values *v, double x)
{
    v->value = dnn_grow(v->value, &v->cap, (size_t)v->n + 1, sizeof *v->value);
    v->value[v->n++] = x;
}

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

double dnn_values_median(const struct dnn_values *v)
{
    if (v->n == 0) return NAN;
    size_t n = (size_t)v->n;
    double *copy = dnn_alloc(n * sizeof *copy);
    memcpy(copy, v->value, n * sizeof *copy);
    qsort(copy, n, sizeof *copy, ascending);
    double median = (copy[(n - 1) / 2] + copy[n / 2]) / 2;
    dnn_free(copy);
    return median;
}

double dnn_values_min(const struct dnn_values *v)
{
    double min = v->n == 0 ? NAN : v->value[0];

    for (int i = 1; i < v->n; i++)
        min = fmin(min, v->value[i]);
    return min;
}

double dnn_values_max(const struct dnn_values *v)
{
    double max = v->n == 0 ? NAN : v->value[0];

    for (int i = 1; i < v->n; i++)
        max = fmax(max, v->value[i]);
    return max;
}

void dnn_values_free(struct dnn_values *v)
{
    dnn_free(v->value);
    *v = (struct dnn_values){0};
}

int dnn_bench_make_dir(const char *dir, char **out, struct dnn_err *err)
{
    const char *tmp = getenv("TMPDIR");

    if (dir != NULL) DNN_TRY(dnn_file_make_dirs(dir, err));
    *out = dnn_format("%s/dnn-bench-XXXXXX", dir != NULL   ? dir
                                             : tmp != NULL ? tmp
                                                           : "/tmp");
    if (mkdtemp(*out) != NULL) return 0;
    int rc = dnn_fail(err, DNN_EIO, "%s: %s", *out, strerror(errno));
    dnn_free(*out);
    *out = NULL;
    return rc;
}

int dnn_bench_remove_dir(const char *dir, int rc, struct dnn_err *err)
{
    struct dnn_err second = {0};
    int removed = dir == NULL ? 0 : dnn_file_remove_tree(dir, &second);

    if (rc < 0 || removed == 0) return rc;
    if (err != NULL) *err = second;
    return removed;
}
