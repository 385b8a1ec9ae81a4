/* proc_impl.h - other programs, PyTorch among them, and the numbers they report.
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

/* ---- proc.c: a program that prints JSON, an object per line.  All is Local. ---- */

struct dnn_proc;

/* Start it with variables NAME=VALUE changed (NULL: none).  argv and env end with NULL.
 * The caller owns *out: dnn_proc_stop(). */
int dnn_proc_start(const char *const *argv, const char *const *env,
                   struct dnn_proc **out, struct dnn_err *err);
/* The next object it prints, and seconds from its start until then (at NULL: not
 * wanted).  The caller owns *out: dnn_json_free(); NULL at the end of its output. */
int dnn_proc_next(struct dnn_proc *p, struct dnn_json **out, double *at,
                  struct dnn_err *err);
/* Send a line and wait for the object that answers it; the end of output is an error.
 */
int dnn_proc_ask(struct dnn_proc *p, const char *request, struct dnn_json **out,
                 struct dnn_err *err);
/* Wait for its end; any status but 0 is an error with its last message. */
int dnn_proc_finish(struct dnn_proc *p, struct dnn_err *err);
void dnn_proc_stop(struct dnn_proc *p); /* NULL is fine */
/* All of it, output ignored. */
int dnn_proc_run(const char *const *argv, const char *const *env, struct dnn_err *err);

/* A number or text of the object; NAN or "" if it is not there. */
double dnn_proc_number(const struct dnn_json *json, const char *key);
const char *dnn_proc_text(const struct dnn_json *json, const char *key);

/* ---- torch.c: the same work in PyTorch.  All is Local. ---- */

/* Which PyTorch runs. */
struct dnn_torch_info {
    char python[512], version[32], onednn[16];
    bool mkl;
    int threads;
};

enum { DNN_BENCH_PATH = 4096, DNN_TORCH_TEXT = 640 };
/* The directory this program is in; out is returned. */
const char *dnn_bench_dir(char out[DNN_BENCH_PATH]);
/* The Python that runs PyTorch, and a script for it: the caller's, dnn_free(). */
char *dnn_torch_python(struct dnn_err *err);
char *dnn_torch_script(const char *name, struct dnn_err *err);
/* Fill in info from the object a script prints first; warn if there is no MKL. */
void dnn_torch_read_info(const struct dnn_json *json, struct dnn_torch_info *info);
/* "PyTorch 2.15.0 with MKL, oneDNN 3.13, 2 threads (/usr/bin/python3)"; out. */
const char *dnn_torch_text(char out[DNN_TORCH_TEXT], const struct dnn_torch_info *info);
/* Start a script with arguments (ends with NULL) and wait until it is ready: *first is
 * its first object, the caller's, dnn_json_free(). */
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
double dnn_values_median(const struct dnn_values *values); /* NAN: there are none */
double dnn_values_max(const struct dnn_values *values);    /* NAN: there are none */
void dnn_values_free(struct dnn_values *values);

/* ---- values.c: directories ---- */

/* A new directory in dir (NULL: TMPDIR or /tmp).  The caller's, dnn_free(). */
int dnn_bench_make_dir(const char *dir, char **out, struct dnn_err *err);
/* Remove it, and add its error to that of rc, if that is 0; the result. */
int dnn_bench_remove_dir(const char *dir, int rc, struct dnn_err *err);

#endif
