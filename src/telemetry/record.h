/* record.h - records of a run for its sinks: files, terminal, report.
 *
 * A record is an event of a run with named values.  Sinks (one source file each, listed
 * in sinks.c) write it.  Only rank 0 has sinks; all functions are Local.
 *
 * stderr: progress, a bar on a terminal, a line per interval elsewhere.
 *
 * DIR/metrics.csv: a row per epoch; DIR/steps.csv: a row every n steps, if configured.
 * The first record defines the columns; a name that occurs later gets a column at the
 * end, empty in earlier rows.  Empty: unknown (NaN).
 *
 * DIR/metrics.jsonl: the same, one JSON object per line; values that are not finite are
 * null.
 *
 * DIR/events/train and DIR/events/val: TensorBoard's event files.  A value val_x is
 * written as x to val, so that both are in one chart.
 *
 * X_train.txt and X_test.txt: the files of rmldnn.  "time epoch batch step loss |g|"
 * for each step, and "epoch 3 time(s) 9.5 step 300 loss 0.1 accuracy 0.9" for each
 * epoch.
 *
 * A resumed run appends: rows after the resumed step and an incomplete last line are
 * dropped; TensorBoard gets a new file, which contains the step from which older files
 * are invalid.  A new run starts new files, but keeps older event files (marked as
 * invalid).
 *
 * Every line is written immediately, and synced at the end of an epoch.  After a
 * failure the file contains only complete lines.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TELEMETRY_RECORD_H
#define DNN_TELEMETRY_RECORD_H

#include "base/err.h"
#include "base/progress.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum dnn_event {
    DNN_EVENT_STEP,      /* a training step was made                                */
    DNN_EVENT_EVAL_STEP, /* a batch was evaluated                                   */
    DNN_EVENT_EPOCH,     /* an epoch has ended, including its validation            */
    DNN_EVENT_END        /* the run has ended                                       */
};

enum { DNN_RECORD_VALUES = 256 };

struct dnn_record {
    enum dnn_event event;
    int64_t epoch, epochs;  /* current epoch, from 1; total number                   */
    int64_t batch, batches; /* in the epoch, from 1; total number                    */
    int64_t step;           /* updates made so far                                   */
    double seconds;         /* of training since the start, including before restarts */
    double samples_per_second;
    double data, compute, comm; /* shares of the time, 0 to 1                        */
    double straggler;           /* part of comm: waiting for slower ranks             */
    double grad_norm;           /* NaN: unknown                                      */
    double rate;                /* learning rate                                     */
    int n;
    struct {
        const char *name; /* "loss", "accuracy", "val_loss"... */
        double value;
        bool main; /* shown on the terminal */
    } value[DNN_RECORD_VALUES];
};

struct dnn_telemetry_cfg {
    const char *dir;     /* of metrics.csv, metrics.jsonl, events...; or NULL */
    const char *outfile; /* base name of the files of rmldnn, or NULL                */
    bool tests;          /* no training: of the files of rmldnn only X_test.txt      */
    bool csv, jsonl, tensorboard, progress, json_to_stdout;
    int64_t resumed_step; /* 0: a new run; else later rows in the files are
                           * dropped                                                 */
    double interval;      /* seconds between lines, if not on a terminal; 0: 10      */
    int64_t every;        /* steps between records in files; 0: epochs only          */
    const struct dnn_progress_how *how; /* of the progress; NULL: default            */
};

struct dnn_telemetry;
/* The caller owns *out: dnn_telemetry_close().  *cfg is copied; *cfg->how must outlive
 * *out. */
int dnn_telemetry_open(const struct dnn_telemetry_cfg *cfg, struct dnn_telemetry **out,
                       struct dnn_err *err);
/* Write a record to all sinks.  Names of values must not contain control characters.  A
 * number in the record is NaN if it is unknown.  The error names the file. */
int dnn_telemetry_write(struct dnn_telemetry *telemetry,
                        const struct dnn_record *record, struct dnn_err *err);
/* For TensorBoard: a histogram of the finite values; a picture (RGB, 8 bits).  Without
 * cfg->tensorboard they do nothing. */
int dnn_telemetry_histogram(struct dnn_telemetry *telemetry, const char *name,
                            int64_t step, const float *value, int64_t n,
                            struct dnn_err *err);
int dnn_telemetry_image(struct dnn_telemetry *telemetry, const char *name, int64_t step,
                        int width, int height, const unsigned char *rgb,
                        struct dnn_err *err);
/* Sync all files to disk.  Called automatically at the end of an epoch. */
int dnn_telemetry_flush(struct dnn_telemetry *telemetry, struct dnn_err *err);
/* Remove the bar from the terminal before something else is printed; the next record
 * restores it. */
void dnn_telemetry_hide(struct dnn_telemetry *telemetry);
void dnn_telemetry_close(struct dnn_telemetry *telemetry); /* NULL is fine */

/* Read metrics.csv as columns: for the report, the search and tests.  An incomplete
 * last line is ignored; for other errors DNN_EDATA with the line.  The caller owns
 * *out: dnn_csv_free(). */
struct dnn_csv;
int dnn_csv_read(const char *path, struct dnn_csv **out, struct dnn_err *err);
void dnn_csv_free(struct dnn_csv *csv); /* NULL is fine */
int64_t dnn_csv_rows(const struct dnn_csv *csv);
int dnn_csv_columns(const struct dnn_csv *csv);
const char *dnn_csv_name(const struct dnn_csv *csv, int column);
/* Find a column by name: *out points to its dnn_csv_rows() values, NaN if empty.
 * Returns its index; -1 if there is none, and then *out is NULL. */
int dnn_csv_column(const struct dnn_csv *csv, const char *name, const double **out);

/* Number of values, and the name and value of one: first epoch, batch, step, ..., then
 * record->value. */
int dnn_record_count(const struct dnn_record *record);
const char *dnn_record_number(const struct dnn_record *record, int i, double *value);

#endif
