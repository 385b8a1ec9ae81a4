/* telemetry_impl.h - the interface of sinks, and the functions they share.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TELEMETRY_IMPL_H
#define DNN_TELEMETRY_IMPL_H

#include "telemetry/record.h"

#include "base/text.h"

#include <stddef.h>

struct dnn_sink {
    bool (*wanted)(const struct dnn_telemetry_cfg *cfg);
    /* *cfg outlives *self. */
    int (*open)(const struct dnn_telemetry_cfg *cfg, void **self, struct dnn_err *err);
    int (*write)(void *self, const struct dnn_record *record, struct dnn_err *err);
    int (*flush)(void *self, struct dnn_err *err); /* or NULL */
    void (*hide)(void *self);                      /* or NULL */
    void (*close)(void *self);                     /* NULL is fine */
    int (*histogram)(void *self, const char *name, int64_t step, const float *value,
                     int64_t n, struct dnn_err *err); /* or NULL */
    int (*image)(void *self, const char *name, int64_t step, int width, int height,
                 const unsigned char *rgb, struct dnn_err *err); /* or NULL */
};
extern const struct dnn_sink *const dnn_sinks[]; /* ends with NULL */
extern const struct dnn_sink dnn_sink_progress, dnn_sink_csv, dnn_sink_jsonl,
    dnn_sink_stdout, dnn_sink_outfile, dnn_sink_tensorboard;

/* ---- number.c: a record as a list of named values ---- */

/* A value by name, or NULL. */
const double *dnn_record_find(const struct dnn_record *record, const char *name);
/* Whether this record is written to files: epochs, and every n-th step. */
bool dnn_record_kept(const struct dnn_record *record, int64_t every);

/* ---- append.c: files to which complete lines are appended ---- */

struct dnn_append;
/* Open a file for appending; fresh: start with an empty file. */
int dnn_append_open(const char *path, bool fresh, struct dnn_append **out,
                    struct dnn_err *err);
/* Open a duplicate of stdout. */
int dnn_append_stdout(struct dnn_append **out, struct dnn_err *err);
/* Append bytes: all of them or, on failure, none. */
int dnn_append_add(struct dnn_append *file, const void *bytes, size_t len,
                   struct dnn_err *err);
bool dnn_append_empty(const struct dnn_append *file);
int dnn_append_flush(struct dnn_append *file, struct dnn_err *err);
void dnn_append_close(struct dnn_append *file); /* NULL is fine */

/* Get the step of a line.  Returns 0 and *step; 1 if the line is always kept (a
 * header); or an error.  number is the line number, from 1; line ends with NUL. */
typedef int dnn_line_fn(void *arg, const char *path, int64_t number, const char *line,
                        int64_t *step, struct dnn_err *err);
/* Remove lines after a step and an incomplete last line; the file need not exist. */
int dnn_append_resume(const char *path, int64_t step, dnn_line_fn *fn, void *arg,
                      struct dnn_err *err);

/* ---- csv_read.c ---- */

/* The next field of a line, without quotes; NULL past the end.  Changes the line. */
char *dnn_csv_cut(char **at);
enum { DNN_CSV_LIMIT = 1 << 30 };

/* ---- wire.c: protocol buffers and TFRecord frames ---- */

void dnn_wire_int(struct dnn_buf *out, int field, int64_t value);
void dnn_wire_float(struct dnn_buf *out, int field, float value);
void dnn_wire_double(struct dnn_buf *out, int field, double value);
void dnn_wire_bytes(struct dnn_buf *out, int field, const void *bytes, size_t len);
void dnn_wire_doubles(struct dnn_buf *out, int field, const double *value, size_t n);
void dnn_wire_frame(struct dnn_buf *out, const void *bytes, size_t len);

#endif
