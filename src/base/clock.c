/* clock.c - durations, deadlines and the time of day.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>

double dnn_clock_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const char *dnn_clock_utc(char *out, size_t size, time_t when)
{
    struct tm tm;

    if (gmtime_r(&when, &tm) == NULL ||
        strftime(out, size, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        snprintf(out, size, "?");
    return out;
}

const char *dnn_clock_local(char *out, size_t size, time_t when)
{
    char day[24];
    struct tm tm;

    /* localtime_r need not read TZ itself. */
    tzset();
    if (localtime_r(&when, &tm) == NULL ||
        strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
        snprintf(out, size, "?");
        return out;
    }
    /* strftime's %z has no colon. */
    long minutes = tm.tm_gmtoff / 60, offset = minutes < 0 ? -minutes : minutes;
    snprintf(out, size, "%s%c%02d:%02d", day, minutes < 0 ? '-' : '+',
             (int)(offset / 60), (int)(offset % 60));
    return out;
}

struct dnn_deadline dnn_clock_deadline(double seconds)
{
    return (struct dnn_deadline){dnn_clock_now() + seconds};
}

double dnn_clock_left(const struct dnn_deadline *deadline)
{
    double left = deadline->at - dnn_clock_now();

    return left > 0 ? left : 0;
}

bool dnn_clock_passed(const struct dnn_deadline *deadline)
{
    return !(dnn_clock_left(deadline) > 0);
}

int dnn_clock_poll_ms(const struct dnn_deadline *deadline)
{
    double left = dnn_clock_left(deadline);

    if (isinf(left)) return -1;
    double ms = ceil(left * 1e3);
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

void dnn_clock_sleep(double seconds)
{
    if (!(seconds > 0)) return;
    struct timespec rest = {(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)};

    while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
        ;
}
