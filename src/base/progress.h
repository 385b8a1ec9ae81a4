/* progress.h - progress of long work, on stderr.
 *
 * On a terminal: one line, redrawn at most ten times a second,
 *
 *   reading [#########-----------]  45 % 123/273 files, 12.3 files/s, 12.2 s left
 *
 * Elsewhere (a job's log): plain lines without a carriage return, each at least
 * 30 s and a tenth of the work after the one before, so about a dozen however
 * long it takes; and one at the end.  If the amount of work is not known, the time
 * between lines doubles instead, up to 10 minutes.
 *
 * Nothing is printed if the log level of the component is below info.  Local; if all
 * ranks do the same, start one on rank 0 only.
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

/* Where and how; zero: the default. */
struct dnn_progress_how {
    FILE *where; /* NULL: stderr                                       */
    int width;   /* of the terminal; 0: ask it                         */
    enum { DNN_METER_ASK, DNN_METER_LINE, DNN_METER_LOG } form;
    double interval;       /* least seconds between lines of a log; 0: 30        */
    double (*now)(void *); /* the clock; NULL: dnn_clock_now()                   */
    void *arg;             /* its argument                                       */
};

/* Begin.  component as for dnn_log(); title and unit ("files"; "B" counts bytes) must
 * outlive it; total 0: not known.  how may be NULL.  The caller ends it with
 * dnn_progress_stop(). */
struct dnn_progress *dnn_progress_start(const char *component, const char *title,
                                        int64_t total, const char *unit,
                                        const struct dnn_progress_how *how);

/* How much is done in total.  Cheap: call it often. */
void dnn_progress_at(struct dnn_progress *p, int64_t done);

/* Clear the line, before something else is printed; the next dnn_progress_at() draws it
 * again. */
void dnn_progress_hide(struct dnn_progress *p);

/* Print the last line (amount and time, or where it stopped) and free p; NULL is fine.
 */
void dnn_progress_stop(struct dnn_progress *p, bool finished);

#endif
