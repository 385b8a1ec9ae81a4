/* comm_fate.c - ranks of which one comes to grief; the others' end is looked at by
 * the script that started this.
 *
 * usage: comm_fate FATE RANK
 *
 * All ranks say "rank R pid P host H" on stdout, then meet in a barrier, then all but
 * RANK do an all-reduce, while RANK meets its fate:
 *   stop   SIGSTOP             kill   SIGKILL
 *   nap    works for very long
 *   other  a barrier           count  an all-reduce of another size
 *   watch  hangs in a call that is watched for 2 s
 *   abort  aborts with DNN_EDATA
 *   none   joins in; all end well
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

    /* When it happens, the others wait already. */
    if (strcmp(fate, "none") != 0) usleep(700000);
    if (strcmp(fate, "stop") == 0) raise(SIGSTOP);
    if (strcmp(fate, "kill") == 0) raise(SIGKILL);
    if (strcmp(fate, "nap") == 0) sleep(100);
    if (strcmp(fate, "abort") == 0) dnn_comm_abort(comm, DNN_EDATA);
    if (strcmp(fate, "other") == 0) dnn_comm_barrier(comm, "end of epoch", &err);
    if (strcmp(fate, "count") == 0)
        dnn_comm_allreduce(comm, "bucket 3", x, 7, DNN_COMM_F32, DNN_COMM_SUM, &err);
    if (strcmp(fate, "watch") == 0) {
        dnn_comm_watch(comm, "opening data.bp", 2);
        sleep(100);
    }
}

int main(int argc, char **argv)
{
    struct dnn_comm *comm;
    struct dnn_err err = {0};
    float x[5] = {1, 2, 3, 4, 5};

    if (argc != 3) return 2;
    if (dnn_comm_open(NULL, &comm, &err) < 0) {
        fprintf(stderr, "comm_fate: %s\n", err.text);
        return dnn_exit_status(err.code);
    }
    int rank = dnn_comm_rank(comm);
    printf("rank %d pid %d host %s\n", rank, (int)getpid(), dnn_comm_host(comm, rank));
    fflush(stdout);
    int rc = dnn_comm_barrier(comm, "start of epoch", &err);
    usleep(300000); /* what was printed shall arrive */
    if (rc == 0 && rank == atoi(argv[2])) meet_fate(comm, argv[1]);
    if (rc == 0)
        rc = dnn_comm_allreduce(comm, "bucket 3", x, 5, DNN_COMM_F32, DNN_COMM_SUM,
                                &err);
    if (rc < 0) {
        fprintf(stderr, "comm_fate: %s\n", err.text);
        dnn_comm_abort(comm, rc);
    }
    dnn_comm_close(comm);
    return 0;
}
