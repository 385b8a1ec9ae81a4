/* report.h - the report of a run as one HTML file that needs no network access.
 *
 * Curves (loss, metrics, learning rate, throughput) as inline SVG, the tables of an
 * evaluation, the confusion matrix, a reliability diagram, pictures of predictions as
 * data: URLs, and the facts of the run.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_REPORT_REPORT_H
#define DNN_REPORT_REPORT_H

#include "telemetry/record.h"

struct dnn_report_image {
    const char *caption, *png; /* path of a PNG file */
};

/* A table of numbers with names. */
struct dnn_report_table {
    const char *title, *corner; /* heading; of the column of row names                */
    int ncolumns;
    const char *const *column; /* [ncolumns]                                          */
    int64_t nrows;
    const char *const *row; /* [nrows]; NULL, or an element NULL: 0, 1...             */
    const double *value;    /* [nrows][ncolumns]; NaN: not defined                    */
};

/* Samples with a confidence from low to high. */
struct dnn_report_bin {
    double low, high, confidence, accuracy; /* the last two are means                 */
    int64_t count;                          /* 0: no means                            */
};

/* Text need not be escaped.  All pointers except title may be NULL: unknown. */
struct dnn_report {
    const char *title;       /* name of the run                                       */
    const char *csv;         /* path of metrics.csv to draw                           */
    const char *steps;       /* path of steps.csv to draw                             */
    const char *facts;       /* "name\tvalue\n" lines: version, hosts, network...     */
    const char *log;         /* last lines of the log                                 */
    int64_t classes;         /* number of classes; 0: no confusion matrix             */
    const double *confusion; /* [classes][classes], rows: target                      */
    const char *const *class_name; /* of classes                                      */
    int ntables;
    const struct dnn_report_table *table; /* totals, classes, worst samples...        */
    int nbins;
    const struct dnn_report_bin *bin; /* of a reliability diagram                     */
    const char *image_title;          /* heading of pictures; NULL: "Predictions"     */
    int nimages;
    const struct dnn_report_image *image;
};

/* Local.  The file is replaced only when it is complete.  If metrics.csv has no rows,
 * the report has no curves; a given file that cannot be read is an error. */
int dnn_report_write(const char *path, const struct dnn_report *report,
                     struct dnn_err *err);

#endif
