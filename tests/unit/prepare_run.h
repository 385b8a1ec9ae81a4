/* prepare_run.h - small files, a preparation, and its dataset.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_PREPARE_RUN_H
#define DNN_TESTS_PREPARE_RUN_H

#include "tap.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "prepare/prepare.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch[] = "/tmp/dnn-prepare-XXXXXX";

/* A text without the temporary directory, whose name is random. */
static inline char *without_scratch(char *text)
{
    size_t len = strlen(scratch) + 1;

    for (char *at; (at = strstr(text, scratch)) != NULL;)
        memmove(at, at + len, strlen(at + len) + 1);
    return text;
}

/* An array as NumPy stores it: descr "|u1", "<f4", "<i8"; shape "(4, 2, 2, 1)". */
static inline void write_npy(const char *name, const char *descr, const char *shape,
                             const void *data, size_t bytes)
{
    char *path = dnn_format("%s/%s", scratch, name), head[128];
    struct dnn_file *file = NULL;
    unsigned char start[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};

    memset(head, ' ', sizeof head);
    memcpy(head, start, sizeof start);
    int n = snprintf(head + 10, 100,
                     "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr,
                     shape);
    head[10 + n] = ' ';
    head[127] = '\n';
    if (dnn_file_open(path, &file, NULL) == 0 &&
        dnn_file_add(file, head, sizeof head, NULL) == 0 &&
        dnn_file_add(file, data, bytes, NULL) == 0)
        dnn_file_commit(file, NULL);
    dnn_free(path);
}

/* Prepare with a configuration, in which %s is the temporary directory; returns the
 * error message, or "". */
static struct dnn_err prepare_err;
static inline const char *prepare(bool replace, const char *config)
{
    struct dnn_prepare_opts opts = {.replace = replace, .command = "test"};
    struct dnn_prepare *p = NULL;
    struct dnn_comm *comm = NULL;
    struct dnn_comm_cfg self = {.kind = DNN_COMM_SELF};
    struct dnn_buf text = {0};

    for (const char *c = config; *c != '\0'; c++)
        if (c[0] == '%' && c[1] == 's') {
            dnn_buf_add(&text, "%s", scratch);
            c++;
        } else {
            dnn_buf_bytes(&text, c, 1);
        }
    memset(&prepare_err, 0, sizeof prepare_err);
    dnn_comm_open(&self, &comm, &prepare_err);
    if (dnn_prepare_text("c", text.text, &p, &prepare_err) == 0)
        dnn_prepare_run(p, comm, &opts, &prepare_err);
    dnn_prepare_free(p);
    dnn_comm_close(comm);
    dnn_buf_free(&text);
    return without_scratch(prepare_err.text);
}

static inline void refuses(const char *config, const char *want)
{
    is_text(prepare(true, config), want, want);
}

/* The dataset scratch/NAME. */
static struct dnn_dataset *dataset;
static inline const struct dnn_dataset_info *open_dataset(const char *name)
{
    char *path = dnn_format("%s/%s", scratch, name);
    struct dnn_err err = {0};

    dataset = NULL;
    if (dnn_dataset_open(NULL, path, 1, &dataset, &err) < 0) printf("# %s\n", err.text);
    dnn_free(path);
    return dataset == NULL ? NULL : dnn_dataset_info(dataset);
}

/* n values of a column from sample first on, scale and offset applied; dnn_free(). */
static inline double *values(int split, int column, int64_t first, int64_t n,
                             int64_t *count)
{
    const struct dnn_stored *s = &dnn_dataset_info(dataset)->split[split].col[column];
    int64_t each = 1;

    dnn_shape_count(&s->column.shape, &each, NULL);
    void *raw = dnn_alloc((size_t)(n * each) * 8);
    double *x = dnn_alloc((size_t)(n * each) * sizeof *x);
    dnn_dataset_request(dataset, split, column, first, n, raw, NULL);
    dnn_dataset_fetch(dataset, NULL);
    dnn_convert(raw, s->column.type, x, DNN_F64, n * each, false, NULL);
    for (int64_t i = 0; s->nscale > 0 && i < n * each; i++) {
        int64_t c = s->nscale == 1 ? 0 : i % s->nscale;

        x[i] = x[i] * s->scale[c] + s->offset[c];
    }
    dnn_free(raw);
    *count = n * each;
    return x;
}

/* The same as a text, "1 2 3". */
static inline void has_values(int split, int column, int64_t first, int64_t n,
                              const char *want, const char *what)
{
    struct dnn_buf text = {0};
    int64_t count;
    double *x = values(split, column, first, n, &count);

    for (int64_t i = 0; i < count; i++)
        dnn_buf_add(&text, "%s%.4g", i > 0 ? " " : "", fabs(x[i]) < 1e-9 ? 0 : x[i]);
    is_text(text.text, want, what);
    dnn_buf_free(&text);
    dnn_free(x);
}

static inline void has_names(int split, int64_t first, int64_t n, const char *want,
                             const char *what)
{
    struct dnn_buf text = {0};
    char **name = NULL;

    dnn_dataset_metadata(dataset, split, first, n, &name, NULL, NULL, NULL);
    for (int64_t i = 0; i < n; i++)
        dnn_buf_add(&text, "%s%s", i > 0 ? " " : "", name == NULL ? "?" : name[i]);
    is_text(without_scratch(text.text), want, what);
    dnn_buf_free(&text);
    dnn_free(name);
}

static inline void scratch_begin(void)
{
    if (mkdtemp(scratch) == NULL) exit(1);
    dnn_log_levels("error", NULL);
}

static inline int scratch_end(void)
{
    dnn_file_remove_tree(scratch, NULL);
    return done();
}

#endif
