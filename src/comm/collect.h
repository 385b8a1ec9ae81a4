/* collect.h - bytes of all ranks, brought to the first.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_COMM_COLLECT_H
#define DNN_COMM_COLLECT_H

#include "comm/comm.h"

/* Collective.  What every rank gives, one after the other in the order of ranks, any
 * number of bytes from each; in pieces, so that no rank but the first needs room for
 * more than its own.  On rank 0 the caller owns *out (dnn_free()); elsewhere it becomes
 * NULL and *total 0.  comm NULL: a copy of what this process gives. */
int dnn_comm_collect(struct dnn_comm *comm, const char *what, const void *mine,
                     size_t bytes, void **out, size_t *total, struct dnn_err *err);

#endif
