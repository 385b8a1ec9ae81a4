/* base_clock.c - durations, deadlines and formatted times.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/clock.h"
#include "tap.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static const struct {
    const char *zone;
    time_t when;
    const char *utc, *local;
} moments[] = {
    {"UTC0",     0,          "1970-01-01T00:00:00Z", "1970-01-01T00:00:00+00:00"},
    {"CET-1",    1772366400, "2026-03-01T12:00:00Z", "2026-03-01T13:00:00+01:00"},
    {"NST3:30",  1772366400, "2026-03-01T12:00:00Z", "2026-03-01T08:30:00-03:30"},
    {"HALF0:30", 1772366400, "2026-03-01T12:00:00Z", "2026-03-01T11:30:00-00:30"},
    {"NPT-5:45", 951782399,  "2000-02-28T23:59:59Z", "2000-02-29T05:44:59+05:45"},
};

static void test_text(void)
{
    char text[DNN_CLOCK_TEXT];

    for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++) {
        setenv("TZ", moments[i].zone, 1);
        is_text(dnn_clock_utc(text, sizeof text, moments[i].when), moments[i].utc,
                moments[i].utc);
        is_text(dnn_clock_local(text, sizeof text, moments[i].when), moments[i].local,
                moments[i].local);
    }
}

static void wake(int sig)
{
    (void)sig;
}

static void test_duration(void)
{
    struct itimerval often =
                         {
                             {0, 5000},
                             {0, 5000}
    },
                     never = {{0, 0}, {0, 0}};
    double start = dnn_clock_now(), last = start;
    bool forward = true;

    signal(SIGALRM, wake);
    setitimer(ITIMER_REAL, &often, NULL);
    dnn_clock_sleep(0.05);
    setitimer(ITIMER_REAL, &never, NULL);
    double took = dnn_clock_now() - start;
    ok(took >= 0.05, "a sleep is not shortened by signals (%g s)", took);
    for (int i = 0; i < 10000; i++) {
        double now = dnn_clock_now();

        forward = forward && now >= last;
        last = now;
    }
    ok(forward, "the clock never goes back");
    start = dnn_clock_now();
    dnn_clock_sleep(0);
    dnn_clock_sleep(-1);
    ok(dnn_clock_now() - start < 60, "a sleep of 0 or less returns at once");
}

static void test_deadline(void)
{
    struct dnn_deadline soon = dnn_clock_deadline(100), past = dnn_clock_deadline(-1);
    struct dnn_deadline never = dnn_clock_deadline(INFINITY);
    struct dnn_deadline far = dnn_clock_deadline(1e12);
    int ms = dnn_clock_poll_ms(&soon);

    ok(!dnn_clock_passed(&soon), "a deadline in the future has not passed");
    ok(dnn_clock_left(&soon) > 0 && dnn_clock_left(&soon) <= 100, "and time is left");
    ok(ms > 0 && ms <= 100000, "in milliseconds too (%d)", ms);
    ok(dnn_clock_passed(&past), "a deadline a second ago has passed");
    is_int(dnn_clock_poll_ms(&past), 0, "0 ms are left");
    ok(dnn_clock_left(&past) == 0, "never a negative time");
    ok(!dnn_clock_passed(&never) && isinf(dnn_clock_left(&never)),
       "no deadline has not passed");
    is_int(dnn_clock_poll_ms(&never), -1, "poll waits without limit");
    is_int(dnn_clock_poll_ms(&far), 2147483647,
           "a distant deadline is limited to the range of poll");
}

int main(void)
{
    test_text();
    test_duration();
    test_deadline();
    return done();
}
