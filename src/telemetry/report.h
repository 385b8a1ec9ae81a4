/* report.h - a run as one HTML file that opens without a network.
 *
 * Curves (loss, metrics, learning rate, throughput) as inline SVG, the confusion
 * matrix, pictures of predictions as data: URLs, and the facts of the run.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TELEMETRY_REPORT_H
#define DNN_TELEMETRY_REPORT_H

#include "telemetry/record.h"

struct dnn_report_image {
    const char *caption, *png; /* path of a PNG file */
};

/* Texts are escaped here.  Any pointer but title may be NULL: not known. */
struct dnn_report {
    const char *title;       /* the run's name                                        */
    const char *csv;         /* path of metrics.csv to draw                           */
    const char *steps;       /* path of steps.csv to draw                             */
    const char *facts;       /* "name\tvalue\n" lines: version, hosts, network...     */
    const char *log;         /* last lines of the log                                 */
    int64_t classes;         /* how many; 0: there are none                           */
    const double *confusion; /* classes^2, rows: target                               */
    const char *const *class_name; /* of classes                                      */
    int nimages;
    const struct dnn_report_image *image;
};

/* Local.  Whole or not at all.  A metrics.csv without rows gives a report without
 * curves; a file that is named and cannot be read is an error. */
int dnn_report_write(const char *path, const struct dnn_report *report,
                     struct dnn_err *err);

#endif
