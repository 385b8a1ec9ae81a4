/* sinks.c - the list of sinks.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "telemetry/telemetry_impl.h"

/* Files come before the terminal. */
const struct dnn_sink *const dnn_sinks[] = {
    &dnn_sink_csv,
    &dnn_sink_jsonl,
    &dnn_sink_outfile,
    &dnn_sink_tensorboard,
    &dnn_sink_stdout,
    &dnn_sink_progress,
    NULL,
};
