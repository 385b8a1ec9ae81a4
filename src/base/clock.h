/* clock.h - durations, deadlines and the time of day.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_CLOCK_H
#define DNN_BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

/* Seconds of a monotonic clock: not affected by clock corrections, so differences are
 * durations. */
double dnn_clock_now(void);

enum { DNN_CLOCK_TEXT = 32 }; /* bytes for any text below */

/* ISO 8601 into out, which is returned: in UTC ("2026-03-01T12:00:00Z") and in local
 * time ("2026-03-01T13:00:00+01:00"). */
const char *dnn_clock_utc(char *out, size_t size, time_t when);
const char *dnn_clock_local(char *out, size_t size, time_t when);

/* A time limit. */
struct dnn_deadline {
    double at; /* in dnn_clock_now()'s time; infinite: never */
};

/* That many seconds from now; INFINITY: never. */
struct dnn_deadline dnn_clock_deadline(double seconds);
/* Seconds left, 0 once it has passed. */
double dnn_clock_left(const struct dnn_deadline *deadline);
bool dnn_clock_passed(const struct dnn_deadline *deadline);
/* The same as poll(2) requires it: milliseconds rounded up, -1 for never. */
int dnn_clock_poll_ms(const struct dnn_deadline *deadline);

/* Sleep; continues after signals. */
void dnn_clock_sleep(double seconds);

#endif
