/* stop.h - has somebody asked this process to stop soon?
 *
 * SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 only leave a note; whoever works looks at it
 * between two pieces of work, so that nothing is left half done.  One of the few things
 * in the project that are global.  Local.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_STOP_H
#define DNN_BASE_STOP_H

#include <stdbool.h>

/* From now on signals leave a note.  impatient: a second signal of a kind ends the
 * process at once, for programs that lose nothing by it; else it changes nothing. */
void dnn_stop_watch(bool impatient);
/* As before dnn_stop_watch(). */
void dnn_stop_unwatch(void);

/* The number of the signal that asked first, 0: none has. */
int dnn_stop_asked(void);
/* "SIGTERM"... of such a number. */
const char *dnn_stop_name(int number);

#endif
