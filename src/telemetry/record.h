/* record.h - what happened, told to everybody who listens: files, terminal, report.
 *
 * A record is one moment of a run with named numbers.  Sinks (one file each, list in
 * sinks.c) write it.  Only rank 0 has sinks; all of this is Local.
 *
 * stderr: progress, a bar on a terminal, a line per interval elsewhere.
 *
 * DIR/metrics.csv: a row per epoch; DIR/steps.csv: a row every so many steps, if asked
 * for.  Columns are those of the first record; a name that comes later gets a column at
 * the end, empty in the rows before.  Empty: not known (NaN).
 *
 * DIR/metrics.jsonl: the same, each record an object in a line; what is not finite is
 * null.
 *
 * DIR/events/train and DIR/events/val: TensorBoard's event files.  A value called val_x
 * is in the second as x, so that curves lie over each other.
 *
 * X_train.txt and X_test.txt: rmldnn's pair.  "time epoch batch step loss |g|" for each
 * step, and "epoch 3 time(s) 9.5 step 300 loss 0.1 accuracy 0.9" for each epoch.
 *
 * A run that goes on appends: rows after the resumed step are dropped, and so is a last
 * line that was cut off; a header is never repeated; TensorBoard gets a new file that
 * tells it from which step on the older ones are void.  A new run begins new files, but
 * leaves older event files (and tells TensorBoard that they are void).
 *
 * Every line is given to the system whole when it is written, and made durable at the
 * end of an epoch.  When that fails, the file keeps whole lines.
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
    int64_t epoch, epochs;  /* this one, from 1, and how many                        */
    int64_t batch, batches; /* within it, from 1                                     */
    int64_t step;           /* updates made so far                                   */
    double seconds;         /* since the run began, earlier parts of it included     */
    double samples_per_second;
    double data, compute, comm; /* shares of the time, 0 to 1                        */
    double straggler;           /* of it, and part of comm: because others were later */
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
    int64_t resumed_step; /* 0: a new run; else what is beyond it in the files is
                           * dropped                                                 */
    double interval;      /* seconds between lines when not on a terminal; 0: 10     */
    int64_t every;        /* steps between records in files; 0: epochs only          */
    const struct dnn_progress_how *how; /* of the progress; NULL: as is usual        */
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
/* Take the bar off the terminal, because something else is to be printed; the next
 * record brings it back. */
void dnn_telemetry_hide(struct dnn_telemetry *telemetry);
void dnn_telemetry_close(struct dnn_telemetry *telemetry); /* NULL is fine */

/* The whole metrics.csv as columns: for the report, the search and tests.  A last line
 * that was cut off is not there; what is no such file is DNN_EDATA with its line. */
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
