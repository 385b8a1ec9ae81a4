/* log.h - log messages, on stderr.
 *
 * Levels: error (the run will end), warn (the user should change something),
 * info (at most a page per run, for any number of ranks), debug (decisions),
 * trace (every step).  Set by DNN_LOG or --log, such as "warn,plan=debug": a level
 * for all and levels for single components.  Results go to stdout, metrics to files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_LOG_H
#define DNN_BASE_LOG_H

#include "base/err.h"

#include <stdbool.h>

enum dnn_level { DNN_ERROR, DNN_WARN, DNN_INFO, DNN_DEBUG, DNN_TRACE };

/* Log on rank 0 only: the message (no newline) is the same on all ranks. */
void dnn_log(enum dnn_level level, const char *component, const char *fmt, ...)
    DNN_PRINTF(3, 4);

/* Log on this rank, prefixed "[rank@host]" when there are several. */
void dnn_log_all(enum dnn_level level, const char *component, const char *fmt, ...)
    DNN_PRINTF(3, 4);

/* As dnn_log, but a message that was logged before is dropped. */
void dnn_log_once(enum dnn_level level, const char *component, const char *fmt, ...)
    DNN_PRINTF(3, 4);

/* Whether a message of this level and component would be printed. */
bool dnn_log_enabled(enum dnn_level level, const char *component);

/* Set levels, such as "warn,plan=debug".  On failure nothing changes and the message
 * lists the levels. */
int dnn_log_levels(const char *spec, struct dnn_err *err);

/* Set rank, number of ranks and host; before that messages carry no rank. */
void dnn_log_rank(int rank, int size, const char *host);

/* Whether this is rank 0, by dnn_log_rank() or, before that, by the launcher's
 * environment variables. */
bool dnn_log_is_root(void);

#endif
