/* progress.h - progress of long work, on stderr.
 *
 * On a terminal: one line, redrawn at most ten times a second,
 *
 *   reading [#########-----------]  45 % 123/273 files, 12.3 files/s, 12.2 s left
 *
 * Otherwise (log file of a job): normal lines, at least 30 s and 10 % of the work
 * apart, so that there are about 10 in total, and one at the end.  If the amount of
 * work is not known, the time between lines doubles instead, up to 10 minutes.
 *
 * Nothing is printed if the log level of the component is below info.  Local; if all
 * ranks do the same work, start one on rank 0 only.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_PROGRESS_H
#define DNN_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct dnn_progress;

/* Options; zero: the default. */
struct dnn_progress_how {
    FILE *where; /* NULL: stderr                                       */
    int width;   /* of the terminal; 0: as the terminal reports it     */
    enum { DNN_METER_AUTO, DNN_METER_LINE, DNN_METER_LOG } form;
    double interval;       /* least seconds between lines of a log; 0: 30        */
    double (*now)(void *); /* the clock; NULL: dnn_clock_now()                   */
    void *arg;             /* its argument                                       */
};

/* Start.  component as for dnn_log(); title and unit ("files"; "B" for bytes) must
 * outlive it; total 0: unknown.  how may be NULL.  The caller owns the result:
 * dnn_progress_stop(). */
struct dnn_progress *dnn_progress_start(const char *component, const char *title,
                                        int64_t total, const char *unit,
                                        const struct dnn_progress_how *how);

/* Set the amount done so far.  Cheap; may be called often. */
void dnn_progress_at(struct dnn_progress *p, int64_t done);

/* Clear the line before other output; the next dnn_progress_at() draws it again. */
void dnn_progress_hide(struct dnn_progress *p);

/* Print the last line (amount and time) and free p; NULL is fine. */
void dnn_progress_stop(struct dnn_progress *p, bool finished);

#endif
