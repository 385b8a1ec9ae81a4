/* watchdog_impl.h - a thread that checks a deadline and the processes of other ranks,
 * while the main thread is busy.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_COMM_WATCHDOG_IMPL_H
#define DNN_COMM_WATCHDOG_IMPL_H

#include <sys/types.h>

struct dnn_watchdog;

/* Callbacks, on the watchdog thread, without locks held. */
struct dnn_watchdog_calls {
    /* The deadline has passed. */
    void (*expired)(void *arg, const char *what, double seconds);
    /* The process of peer i has died.  Once per peer. */
    void (*died)(void *arg, int i);
    /* Four times per second while peers are watched; or NULL. */
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

/* Watch these processes (pid 0: not watched) until the next call.  n 0: stop watching;
 * died() is not called any more after it returns. */
void dnn_watchdog_peers(struct dnn_watchdog *watch, const pid_t *pid, int n);

/* Exit after that many seconds, from a separate thread: for calls that terminate the
 * job and might not return. */
void dnn_watchdog_last_resort(double seconds, int status);

#endif
