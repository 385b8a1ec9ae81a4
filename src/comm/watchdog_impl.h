/* watchdog_impl.h - a thread that looks at the clock, and at the processes beside us,
 * while the main thread is busy.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_COMM_WATCHDOG_IMPL_H
#define DNN_COMM_WATCHDOG_IMPL_H

#include <sys/types.h>

struct dnn_watchdog;

/* What to do; called on the watching thread, without locks held. */
struct dnn_watchdog_calls {
    /* What was armed has not been disarmed in time. */
    void (*expired)(void *arg, const char *what, double seconds);
    /* The process of peer number i is gone.  Said once per peer. */
    void (*gone)(void *arg, int i);
    /* Four times a second while peers are watched; NULL: not wanted. */
    void (*tick)(void *arg);
    void *arg;
};

/* The thread starts with the first arm or peers. */
struct dnn_watchdog *dnn_watchdog_make(const struct dnn_watchdog_calls *calls);
/* Ends the thread; NULL is fine. */
void dnn_watchdog_free(struct dnn_watchdog *watch);

/* From the main thread.  A second arm replaces the first. */
void dnn_watchdog_arm(struct dnn_watchdog *watch, const char *what, double seconds);
void dnn_watchdog_disarm(struct dnn_watchdog *watch);

/* Look after these processes (0: none to look at) until the next call; n 0 ends it,
 * and after it returned gone() is not being called. */
void dnn_watchdog_peers(struct dnn_watchdog *watch, const pid_t *pid, int n);

/* In a few seconds this process is gone, whatever hangs: for calls that end the job
 * and might not return. */
void dnn_watchdog_last_resort(double seconds, int status);

#endif
