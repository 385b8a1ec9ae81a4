/* comm_fate.c - several ranks, one of which fails; comm_deadline.t checks how the
 * others end.
 *
 * usage: comm_fate FATE RANK DIR
 *
 * All ranks meet in a barrier, then all but RANK start an all-reduce and make a file
 * DIR/R; when all these files exist, RANK does one of these:
 *   stop   SIGSTOP             kill   SIGKILL
 *   nap    sleeps for very long
 *   other  a barrier           count  an all-reduce of another size
 *   watch  hangs in a call with a time limit of 2 s
 *   abort  aborts with DNN_EDATA
 *   none   the same all-reduce; all ranks succeed
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "comm/comm.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void meet_fate(struct dnn_comm *comm, const char *fate)
{
    struct dnn_err err = {0};
    float x[7] = {0};

    if (strcmp(fate, "stop") == 0) raise(SIGSTOP);
    if (strcmp(fate, "kill") == 0) raise(SIGKILL);
    if (strcmp(fate, "nap") == 0) sleep(3600);
    if (strcmp(fate, "abort") == 0) dnn_comm_abort(comm, DNN_EDATA);
    if (strcmp(fate, "other") == 0) dnn_comm_barrier(comm, "end of epoch", &err);
    if (strcmp(fate, "count") == 0)
        dnn_comm_allreduce(comm, "bucket 3", x, 7, DNN_COMM_F32, DNN_COMM_SUM, &err);
    if (strcmp(fate, "watch") == 0) {
        dnn_comm_watch(comm, "opening data.bp", 2);
        sleep(3600);
    }
}

static void make_file(const char *dir, int rank)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%d", dir, rank);
    FILE *f = fopen(path, "w");
    if (f != NULL) fclose(f);
}

/* Until all other ranks wait. */
static void await_files(const char *dir, int rank, int size)
{
    for (int r = 0; r < size; r++) {
        char path[4096];

        snprintf(path, sizeof path, "%s/%d", dir, r);
        while (r != rank && access(path, F_OK) < 0)
            usleep(1000);
    }
}

int main(int argc, char **argv)
{
    const char *task = getenv("SLURM_PROCID");
    struct dnn_comm_req *req;
    struct dnn_comm *comm;
    struct dnn_err err = {0};
    float x[5] = {1, 2, 3, 4, 5};

    if (argc != 4) return 2;
    int victim = atoi(argv[2]);
    /* The other ranks detect the failure. */
    if (task != NULL && atoi(task) == victim) setenv("DNN_DEADLINE", "3600", 1);
    if (dnn_comm_open(NULL, &comm, &err) < 0) {
        fprintf(stderr, "comm_fate: %s\n", err.text);
        return dnn_exit_status(err.code);
    }
    int rank = dnn_comm_rank(comm);
    int rc = dnn_comm_barrier(comm, "start of epoch", &err);
    if (rc == 0 && rank == victim) {
        await_files(argv[3], rank, dnn_comm_size(comm));
        meet_fate(comm, argv[1]);
    }
    if (rc == 0)
        rc = dnn_comm_start(comm, "bucket 3", x, 5, DNN_COMM_F32, DNN_COMM_SUM, &req,
                            &err);
    if (rc == 0) {
        make_file(argv[3], rank);
        rc = dnn_comm_wait(req, &err);
    }
    if (rc < 0) {
        fprintf(stderr, "comm_fate: %s\n", err.text);
        dnn_comm_abort(comm, rc);
    }
    dnn_comm_close(comm);
    return 0;
}
