/* comm_agree.c - for every set of failing ranks, all ranks get the error of the lowest
 * one.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "ranks.h"

static const int codes[] = {DNN_EDATA, DNN_EIO, DNN_ECONFIG, DNN_ESTOP};

int main(void)
{
    struct dnn_comm_cfg cfg = {.kind = DNN_COMM_MPI, .deadline = 60};
    struct dnn_comm *comm;
    struct dnn_err err = {0};

    if (dnn_comm_open(&cfg, &comm, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    int rank = dnn_comm_rank(comm), size = dnn_comm_size(comm);
    for (unsigned set = 0; set < 1u << (size < 6 ? size : 6); set++) {
        int first = 0, rc = 0, want = 0;
        char text[100] = "as before";

        while (first < size && (set >> first & 1) == 0)
            first++;
        snprintf(err.text, sizeof err.text, "as before");
        err.code = 0;
        if (set >> rank & 1)
            rc = dnn_fail(&err, codes[rank % 4], "shard %d: is empty", rank);
        if (set != 0) {
            want = codes[first % 4];
            snprintf(text, sizeof text, "rank %d: shard %d: is empty", first, first);
        }
        int got = dnn_comm_agree(comm, rc, &err);
        all_ok(comm, got == want && err.code == want && strcmp(err.text, text) == 0,
               "ranks failing: set %#x", set);
    }
    return all_done(comm);
}
