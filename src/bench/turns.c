/* turns.c - time several programs in turns.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/bench_impl.h"

#include "base/clock.h"

/* OpenMP threads spin for a short time after their work; the next program to be
 * measured should not share the cores with them. */
static const double pause_seconds = 0.02;

/* If steps are short, a repetition has several: about its seconds, and the maximum
 * number of steps. */
static const double turn_seconds = 0.15;
enum { TURN_STEPS = 200 };

/* One repetition: one step, or, if steps are short, several, of which the first one
 * only wakes up the threads.  Adds the median to runner->times. */
static int run_turn(struct dnn_bench_runner *runner, struct dnn_err *err)
{
    struct dnn_values each = {0};
    double first = 0, all = 0;
    int rc = runner->run(runner->arg, &first, err);

    for (all = first; rc == 0 && each.n < TURN_STEPS && all < turn_seconds;) {
        double seconds;

        rc = runner->run(runner->arg, &seconds, err);
        if (rc < 0) break;
        dnn_values_add(&each, seconds);
        all += seconds;
    }
    if (rc == 0)
        dnn_values_add(&runner->times, each.n == 0 ? first : dnn_values_median(&each));
    dnn_values_free(&each);
    return rc;
}

int dnn_bench_turns(struct dnn_bench_runner *runner, int n, long reps,
                    struct dnn_progress *progress, int64_t done, struct dnn_err *err)
{
    double seconds, all = 0;

    /* Warm-up: page faults and cold caches. */
    for (int i = 0; i < 3 && all < 2; i++) {
        DNN_TRY(runner->run(runner->arg, &seconds, err));
        all += seconds;
    }
    for (long i = 0; i < reps; i++) {
        for (int k = 0; k < n; k++) {
            DNN_TRY(run_turn(&runner[k], err));
            if (n > 1) dnn_clock_sleep(pause_seconds);
        }
        dnn_progress_at(progress, done + i + 1);
    }
    return 0;
}
