/* collect.h - gather of any number of bytes per rank on rank 0.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_COMM_COLLECT_H
#define DNN_COMM_COLLECT_H

#include "comm/comm.h"

/* Collective.  Concatenate the bytes of all ranks, in the order of ranks; in pieces, so
 * that only rank 0 needs memory for all.  On rank 0 the caller owns *out (dnn_free());
 * elsewhere it becomes NULL and *total 0.  comm NULL: a copy of mine. */
int dnn_comm_collect(struct dnn_comm *comm, const char *what, const void *mine,
                     size_t bytes, void **out, size_t *total, struct dnn_err *err);

#endif
