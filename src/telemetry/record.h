/* record.h - records of a run for its sinks: files, terminal, report.
 *
 * A record is an event of a run with named numbers.  Sinks (one file each, list in
 * sinks.c) write it.  Only rank 0 has sinks; all of this is Local.
 *
 * stderr: progress, a bar on a terminal, a line per interval elsewhere.
 *
 * DIR/metrics.csv: a row per epoch; DIR/steps.csv: a row every so many steps, if
 * configured.  Columns are those of the first record; a later name gets a column at the
 * end, empty in earlier rows.  Empty: unknown (NaN).
 *
 * DIR/metrics.jsonl: the same, each record an object in a line; what is not finite is
 * null.
 *
 * DIR/events/train and DIR/events/val: TensorBoard's event files.  A value val_x is
 * x in the second, so that both are in one chart.
 *
 * X_train.txt and X_test.txt: rmldnn's pair.  "time epoch batch step loss |g|" for each
 * step, and "epoch 3 time(s) 9.5 step 300 loss 0.1 accuracy 0.9" for each epoch.
 *
 * A resumed run appends: rows after the resumed step and an incomplete last line are
 * dropped; TensorBoard gets a new file with the step from which older ones are invalid.
 * A new run starts new files, but keeps older event files (marked as invalid).
 *
 * Every line is written at once, and synced at the end of an epoch.  After a failure
 * the file has only complete lines.
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
    DNN_EVENT_EPOCH,     /* an epoch is over, validation included                   */
    DNN_EVENT_END        /* the run is over                                         */
};

enum { DNN_RECORD_VALUES = 256 };

struct dnn_record {
    enum dnn_event event;
    int64_t epoch, epochs;  /* current one, from 1; total                            */
    int64_t batch, batches; /* within it, from 1                                     */
    int64_t step;           /* updates made so far                                   */
    double seconds;         /* since the start of the run, restarts included         */
    double samples_per_second;
    double data, compute, comm; /* shares of the time, 0 to 1                        */
    double straggler;           /* part of comm: waiting for slower ranks             */
    double grad_norm;           /* NaN: not known                                    */
    double rate;                /* learning rate                                     */
    int n;
    struct {
        const char *name; /* "loss", "accuracy", "val_loss"... */
        double value;
        bool main; /* shown on the terminal */
    } value[DNN_RECORD_VALUES];
};

struct dnn_telemetry_cfg {
    const char *dir; /* of the run: metrics.csv, metrics.jsonl, events...; NULL: none */
    const char *outfile; /* rmldnn's base name, or NULL                              */
    bool tests;          /* nothing is trained: of rmldnn's pair only X_test.txt     */
    bool csv, jsonl, tensorboard, progress, json_to_stdout;
    int64_t resumed_step; /* 0: a new run; else later rows in the files are
                           * dropped                                                 */
    double interval;      /* seconds between lines when not on a terminal; 0: 10     */
    int64_t every;        /* steps between records in files; 0: epochs only          */
    const struct dnn_progress_how *how; /* of the progress; NULL: default            */
};

struct dnn_telemetry;
/* The caller owns *out.  cfg is copied; *cfg->how must outlive it. */
int dnn_telemetry_open(const struct dnn_telemetry_cfg *cfg, struct dnn_telemetry **out,
                       struct dnn_err *err);
/* Names of values must not have control characters.  A number of record.h may be NaN if
 * it is not known.  The error names the file. */
int dnn_telemetry_write(struct dnn_telemetry *telemetry,
                        const struct dnn_record *record, struct dnn_err *err);
/* For TensorBoard: a histogram of numbers (those that are finite), a picture (RGB, 8
 * bits).  Nothing happens if it is not asked for. */
int dnn_telemetry_histogram(struct dnn_telemetry *telemetry, const char *name,
                            int64_t step, const float *value, int64_t n,
                            struct dnn_err *err);
int dnn_telemetry_image(struct dnn_telemetry *telemetry, const char *name, int64_t step,
                        int width, int height, const unsigned char *rgb,
                        struct dnn_err *err);
/* What is written is on the disk.  Happens by itself at the end of an epoch. */
int dnn_telemetry_flush(struct dnn_telemetry *telemetry, struct dnn_err *err);
/* Remove the bar from the terminal before something else is printed; the next record
 * restores it. */
void dnn_telemetry_hide(struct dnn_telemetry *telemetry);
void dnn_telemetry_close(struct dnn_telemetry *telemetry); /* NULL is fine */

/* The whole metrics.csv as columns: for the report, the search and tests.  An
 * incomplete last line is ignored; other errors are DNN_EDATA with the line. */
struct dnn_csv;
int dnn_csv_read(const char *path, struct dnn_csv **out, struct dnn_err *err);
void dnn_csv_free(struct dnn_csv *csv); /* NULL is fine */
int64_t dnn_csv_rows(const struct dnn_csv *csv);
int dnn_csv_columns(const struct dnn_csv *csv);
const char *dnn_csv_name(const struct dnn_csv *csv, int column);
/* The column of a name: *out gets dnn_csv_rows() numbers, NaN where it is empty.
 * Returns its index, or -1 if there is none, and then *out is NULL. */
int dnn_csv_column(const struct dnn_csv *csv, const char *name, const double **out);

#endif
