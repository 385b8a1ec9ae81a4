/* job_impl.h - shared by the files that read a configuration.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_CONFIG_JOB_IMPL_H
#define DNN_CONFIG_JOB_IMPL_H

#include "base/json.h"
#include "base/mem.h"
#include "config/job.h"

/* Rows of tables. */
#define END {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL}
#define JSON(key, at, def, help) {key, DNN_F_JSON, at, def, 0, 0, NULL, help, NULL}
#define INT(key, at, def, min, max, help)                                              \
    {key, DNN_F_INT, at, def, min, max, NULL, help, NULL}
#define REAL(key, at, def, min, max, help)                                             \
    {key, DNN_F_REAL, at, def, min, max, NULL, help, NULL}
#define FLAG(key, at, def, help) {key, DNN_F_BOOL, at, def, 0, 0, NULL, help, NULL}
#define TEXT(key, at, def, help) {key, DNN_F_TEXT, at, def, 0, 0, NULL, help, NULL}
#define WORD(key, at, def, choices, help)                                              \
    {key, DNN_F_ENUM, at, def, 0, 0, choices, help, NULL}
#define BYTES(key, at, def, help) {key, DNN_F_BYTES, at, def, 0, 0, NULL, help, NULL}
#define OBJECT(key, at, def, sub, help)                                                \
    {key, DNN_F_OBJECT, at, def, 0, 0, NULL, help, sub}

/* The most samples of a batch. */
#define DNN_JOB_BATCH (1 << 20)

/* The objects of a configuration; do not copy it: objects point to each other. */
struct dnn_job_at {
    struct dnn_jobj file, inner;
    const struct dnn_jobj *top; /* one of them */
    struct dnn_jobj data;
};
void dnn_job_find(const struct dnn_job *job, struct dnn_job_at *out);

/* Sections that other components read; top is the object that has the keys. */
int dnn_job_read_sections(const struct dnn_jobj *top, struct dnn_job *job,
                          struct dnn_err *err);

/* Whether the metrics fit the network, once that is read. */
int dnn_job_check_metrics(const struct dnn_job *job, struct dnn_err *err);

/* Check the section "data" once it is filled, and read what its table cannot. */
int dnn_job_read_data(const struct dnn_jobj *top, struct dnn_job *job,
                      struct dnn_err *err);

/* origin_slice.c: samples cut by the slicers.  Takes over from, also on failure. */
int dnn_job_slice(struct dnn_source *from, const struct dnn_job_data *data,
                  struct dnn_source **out, struct dnn_err *err);
const struct dnn_job_slices *dnn_job_slices(const struct dnn_source *source);

/* Whether a type has this name. */
bool dnn_job_type_is(const char *type, const char *word);

/* What a function prints, without the last newline; lives as long as the job. */
const char *dnn_job_printed(const struct dnn_job *job,
                            void (*print)(const void *what, FILE *where),
                            const void *what);

#endif
