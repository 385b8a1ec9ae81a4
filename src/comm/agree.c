/* agree.c - agreement on errors.
 *
 * If only one rank returned an error, the others would wait for it forever; so every
 * phase in which a rank may fail ends with an agreement.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "comm/comm.h"

#include <assert.h>

int dnn_comm_agree(struct dnn_comm *comm, int rc, struct dnn_err *err)
{
    assert(err != NULL);
    int size = dnn_comm_size(comm), rank = dnn_comm_rank(comm);
    int64_t first = rc < 0 ? rank : size;
    struct dnn_err own = *err; /* kept if the agreement itself fails */

    if (rc < 0) err->code = own.code = rc;
    if (size == 1) return rc < 0 ? rc : 0;
    if (rc < 0 && err->everywhere) return rc; /* agreed before */

    struct dnn_err comm_err = {0};
    int comm_rc = dnn_comm_allreduce(comm, "agreement on errors", &first, 1,
                                     DNN_COMM_I64, DNN_COMM_MIN, &comm_err);
    if (comm_rc == 0 && first == size) return 0;
    if (comm_rc == 0)
        comm_rc = dnn_comm_bcast(comm, "broadcast of an error", err, sizeof *err,
                                 (int)first, &comm_err);
    if (comm_rc == 0) {
        dnn_prefix(err, "rank %d: ", (int)first);
        err->everywhere = true;
        return err->code;
    }
    if (rc < 0)
        return dnn_fail(err, rc, "rank %d: %s (also: %s)", rank, own.text,
                        comm_err.text);
    *err = comm_err;
    return comm_rc;
}
