/* stop.h - signals that request a clean stop.
 *
 * The handler of SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 only sets a flag; long work
 * checks it between steps and then stops in a consistent state.  The flag is global.
 * Local.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_STOP_H
#define DNN_BASE_STOP_H

#include <stdbool.h>

/* Install the handlers.  exit_on_second: a second signal of the same kind terminates
 * the process at once, for programs that lose nothing by it; else it has no effect. */
void dnn_stop_watch(bool exit_on_second);
/* Restore the handlers from before dnn_stop_watch(). */
void dnn_stop_unwatch(void);

/* The number of the first signal received; 0: none. */
int dnn_stop_requested(void);
/* The name of such a signal: "SIGTERM"... */
const char *dnn_stop_name(int number);

#endif
