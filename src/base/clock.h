/* clock.h - how long, how late, and what time it is.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_CLOCK_H
#define DNN_BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

/* Seconds since some fixed moment.  It never goes back and knows nothing of
 * clock corrections, so differences are durations. */
double dnn_clock_now(void);

enum { DNN_CLOCK_TEXT = 32 }; /* bytes that hold any text below */

/* ISO 8601 into out, which is returned: "2026-03-01T12:00:00Z", and as the
 * user's own clock shows it: "2026-03-01T13:00:00+01:00". */
const char *dnn_clock_utc(char *out, size_t size, time_t when);
const char *dnn_clock_local(char *out, size_t size, time_t when);

/* A moment by which something must have happened. */
struct dnn_deadline {
    double at; /* on dnn_clock_now(); infinite: never */
};

/* That many seconds from now; INFINITY for one that never comes. */
struct dnn_deadline dnn_clock_deadline(double seconds);
/* Seconds left, 0 once it has passed. */
double dnn_clock_left(const struct dnn_deadline *deadline);
bool dnn_clock_passed(const struct dnn_deadline *deadline);
/* The same as poll(2) wants it: milliseconds rounded up, -1 for never. */
int dnn_clock_poll_ms(const struct dnn_deadline *deadline);

/* Sleep, however often a signal interrupts. */
void dnn_clock_sleep(double seconds);

#endif
