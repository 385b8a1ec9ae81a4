/* proc_impl.h - other programs, such as PyTorch, and the values they report.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BENCH_PROC_IMPL_H
#define DNN_BENCH_PROC_IMPL_H

#include "base/err.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- proc.c: a program that prints JSON, an object per line.  All Local. ---- */

struct dnn_proc;

/* Start a program.  env: environment variables NAME=VALUE to set, or NULL.  argv and
 * env end with NULL.  The caller owns *out: dnn_proc_stop(). */
int dnn_proc_start(const char *const *argv, const char *const *env,
                   struct dnn_proc **out, struct dnn_err *err);
/* Read the next object it prints; *at: seconds since its start, unless at is NULL.  The
 * caller owns *out: dnn_json_free(); NULL at the end of its output. */
int dnn_proc_next(struct dnn_proc *p, struct dnn_json **out, double *at,
                  struct dnn_err *err);
/* Send a line and read the object that is the reply; the end of output is an error. */
int dnn_proc_ask(struct dnn_proc *p, const char *request, struct dnn_json **out,
                 struct dnn_err *err);
/* Wait for its end; an exit status other than 0 is an error with its last message. */
int dnn_proc_finish(struct dnn_proc *p, struct dnn_err *err);
void dnn_proc_stop(struct dnn_proc *p); /* NULL is fine */
/* Run a program to its end and ignore its output. */
int dnn_proc_run(const char *const *argv, const char *const *env, struct dnn_err *err);

/* A number or text of the object; NAN or "" if the key is missing. */
double dnn_proc_number(const struct dnn_json *json, const char *key);
const char *dnn_proc_text(const struct dnn_json *json, const char *key);

/* ---- torch.c: the same measurements with PyTorch.  All Local. ---- */

/* The PyTorch that is used. */
struct dnn_torch_info {
    char python[512], version[32], onednn[16];
    bool mkl;
    int threads;
};

enum { DNN_BENCH_PATH = 4096, DNN_TORCH_TEXT = 640 };
/* The directory of this program; returns out. */
const char *dnn_bench_dir(char out[DNN_BENCH_PATH]);
/* The path of the Python that runs PyTorch; the path of a script.  The caller owns
 * them: dnn_free(). */
char *dnn_torch_python(struct dnn_err *err);
char *dnn_torch_script(const char *name, struct dnn_err *err);
/* Set info from the first object of a script; log a warning if PyTorch has no MKL. */
void dnn_torch_read_info(const struct dnn_json *json, struct dnn_torch_info *info);
/* "PyTorch 2.15.0 with MKL, oneDNN 3.13, 2 threads (/usr/bin/python3)"; returns
 * out. */
const char *dnn_torch_text(char out[DNN_TORCH_TEXT], const struct dnn_torch_info *info);
/* Start a script with arguments (args ends with NULL) and wait until it is ready.
 * *first is its first object; the caller owns it: dnn_json_free(). */
int dnn_torch_start(const char *script, const char *const *args,
                    struct dnn_torch_info *info, struct dnn_json **first,
                    struct dnn_proc **out, struct dnn_err *err);

/* ---- values.c ---- */

/* Measured values. */
struct dnn_values {
    double *value; /* owned: dnn_values_free() */
    int n;
    size_t cap;
};
void dnn_values_add(struct dnn_values *values, double x);
double dnn_values_median(const struct dnn_values *values); /* NAN: no values */
double dnn_values_min(const struct dnn_values *values);    /* NAN: no values */
double dnn_values_max(const struct dnn_values *values);    /* NAN: no values */
void dnn_values_free(struct dnn_values *values);

/* ---- values.c: directories ---- */

/* Make a new directory in dir (NULL: TMPDIR or /tmp).  The caller owns *out:
 * dnn_free(). */
int dnn_bench_make_dir(const char *dir, char **out, struct dnn_err *err);
/* Remove a directory.  Returns rc if rc is not 0, otherwise the result. */
int dnn_bench_remove_dir(const char *dir, int rc, struct dnn_err *err);

#endif
