/* comm_self.c - the communicator of one rank, and invalid arguments.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "comm/comm.h"
#include "tap.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void open_refuses(const char *env, double deadline, int kind, const char *want)
{
    struct dnn_comm_cfg cfg = {.kind = kind, .deadline = deadline};
    struct dnn_comm *comm = NULL;
    struct dnn_err err = {0};

    if (env != NULL) setenv("DNN_DEADLINE", env, 1);
    is_int(dnn_comm_open(&cfg, &comm, &err), DNN_EUSAGE, "a wrong configuration");
    is_text(err.text, want, "... is named");
    ok(comm == NULL, "... and nothing is opened");
    unsetenv("DNN_DEADLINE");
}

static void opening(void)
{
    struct dnn_comm_cfg cfg = {.kind = DNN_COMM_SELF, .deadline = 20};
    struct dnn_comm *comm = NULL;
    struct dnn_err err = {0};
    static const char *const marks[] = {"PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",
                                        "PMI_ID",    "SLURM_STEP_ID",        NULL};

    for (int i = 0; marks[i] != NULL; i++)
        unsetenv(marks[i]);
    unsetenv("DNN_DEADLINE");
    is_int(dnn_comm_open(NULL, &comm, &err), 0, "auto opens without a launcher");
    is_text(dnn_comm_kind(comm), "self", "... and is self");
    is_int((long long)dnn_comm_deadline(comm), 600, "the deadline is 600 s");
    dnn_comm_close(comm);

    is_int(dnn_comm_open(&cfg, &comm, &err), 0, "self opens");
    is_int((long long)dnn_comm_deadline(comm), 20, "a deadline is set");
    dnn_comm_close(comm);
    setenv("DNN_DEADLINE", "35", 1);
    is_int(dnn_comm_open(&cfg, &comm, &err), 0, "DNN_DEADLINE is read");
    is_int((long long)dnn_comm_deadline(comm), 35, "... and overrides it");
    dnn_comm_close(comm);
    dnn_comm_close(NULL);

    open_refuses(
        "soon", 0, DNN_COMM_SELF,
        "DNN_DEADLINE: must be a number of seconds between 1 and 10000000, not "
        "\"soon\"");
    open_refuses(
        "-3", 0, DNN_COMM_SELF,
        "DNN_DEADLINE: must be a number of seconds between 1 and 10000000, not "
        "\"-3\"");
    open_refuses(NULL, 0.5, DNN_COMM_SELF,
                 "deadline: must be between 1 and 10000000 seconds, not 0.5");
    open_refuses(NULL, 0, 17, "comm: unknown kind 17");
}

static void place(struct dnn_comm *comm)
{
    is_int(dnn_comm_rank(comm), 0, "rank");
    is_int(dnn_comm_size(comm), 1, "size");
    is_int(dnn_comm_nodes(comm), 1, "nodes");
    is_int(dnn_comm_node(comm, 0), 0, "node");
    is_int(dnn_comm_local_rank(comm), 0, "local rank");
    is_int(dnn_comm_local_size(comm), 1, "local size");
    ok(dnn_comm_host(comm, 0)[0] != '\0', "there is a host name");
    ok(dnn_comm_version(comm)[0] != '\0', "there is a version");
}

static void moving(struct dnn_comm *comm)
{
    struct dnn_err err = {0};
    int64_t i[3] = {1, -2, 3}, all[3] = {0};
    float f[2] = {0.5f, 2};
    struct dnn_comm_req *req = NULL;
    bool finished = false;

    is_int(dnn_comm_barrier(comm, NULL, &err), 0, "barrier");
    is_int(dnn_comm_bcast(comm, "x", i, sizeof i, 0, &err), 0, "broadcast");
    is_int(dnn_comm_allgather(comm, "x", i, sizeof i, all, &err), 0, "all-gather");
    ok(memcmp(i, all, sizeof i) == 0, "... returns the same");
    is_int(dnn_comm_allgather(comm, "x", i, 0, all, &err), 0, "... of nothing");
    is_int(dnn_comm_allreduce(comm, "x", i, 3, DNN_COMM_I64, DNN_COMM_SUM, &err), 0,
           "all-reduce");
    ok(i[0] == 1 && i[1] == -2 && i[2] == 3, "... changes nothing");
    is_int(dnn_comm_start(comm, "x", f, 2, DNN_COMM_F32, DNN_COMM_MAX, &req, &err), 0,
           "start");
    is_int(dnn_comm_test(req, &finished, &err), 0, "test");
    ok(finished, "... has finished");
    is_int(dnn_comm_wait(req, &err), 0, "wait");
    ok(f[0] == 0.5f && f[1] == 2, "... changes nothing");
    is_int(dnn_comm_wait(NULL, &err), 0, "waiting for nothing");
}

static void refusing(struct dnn_comm *comm)
{
    struct dnn_err err = {0};
    struct dnn_comm_req *req = NULL;
    int64_t x = 0;

    is_int(dnn_comm_bcast(comm, "x", &x, sizeof x, 1, &err), DNN_ECOMM, "a wrong root");
    is_text(err.text, "broadcast: root is 1; must be 0 to 0", "...");
    is_int(dnn_comm_allreduce(comm, "x", &x, -1, DNN_COMM_I64, DNN_COMM_SUM, &err),
           DNN_ECOMM, "a wrong count");
    is_text(err.text, "all-reduce: number of elements is negative: -1", "...");
    is_int(
        dnn_comm_allreduce(comm, "x", &x, 1, (enum dnn_comm_type)9, DNN_COMM_SUM, &err),
        DNN_ECOMM, "a wrong type");
    is_text(err.text, "all-reduce: unknown type 9", "...");
    is_int(
        dnn_comm_allreduce(comm, "x", &x, 1, DNN_COMM_I64, (enum dnn_comm_op)9, &err),
        DNN_ECOMM, "a wrong operation");
    is_text(err.text, "all-reduce: unknown operation 9", "...");
    is_int(dnn_comm_start(comm, "x", &x, (int64_t)INT_MAX + 1, DNN_COMM_I64,
                          DNN_COMM_SUM, &req, &err),
           DNN_ECOMM, "too many elements to start");
    is_text(err.text,
            "all-reduce: 2147483648 elements requested, at most 2147483647 allowed",
            "...");
    ok(req == NULL, "... and nothing is started");
}

/* Rank 1 of three, of which two do not exist. */
static void pretending(void)
{
    struct dnn_comm *comm = dnn_comm_pretend(3, 1);
    struct dnn_err err = {0};
    int64_t x = 7, all[3] = {0};

    is_int(dnn_comm_rank(comm), 1, "rank of a pretended communicator");
    is_int(dnn_comm_size(comm), 3, "... size");
    is_int(dnn_comm_nodes(comm), 1, "... nodes");
    is_int(dnn_comm_local_rank(comm), 1, "... local rank");
    is_int(dnn_comm_local_size(comm), 3, "... local size");
    is_int(dnn_comm_allgather(comm, "x", &x, sizeof x, all, &err), 0, "all-gather");
    ok(all[0] == 7 && all[1] == 7 && all[2] == 7, "... all ranks give the same");
    is_int(dnn_comm_allreduce(comm, "x", &x, 1, DNN_COMM_I64, DNN_COMM_MIN, &err), 0,
           "minimum");
    is_int(x, 7, "... is our own");
    is_int(dnn_comm_allreduce(comm, "x", &x, 1, DNN_COMM_I64, DNN_COMM_SUM, &err),
           DNN_ECOMM, "a sum is refused");
    is_text(err.text, "all-reduce of x: there are no other ranks", "...");
    is_int(dnn_comm_bcast(comm, "x", &x, sizeof x, 1, &err), 0, "broadcast of our own");
    is_int(dnn_comm_bcast(comm, "x", &x, sizeof x, 0, &err), DNN_ECOMM,
           "broadcast of others is refused");
    is_int(dnn_comm_agree(comm, 0, &err), 0, "agreement on success");
    dnn_fail(&err, DNN_EDATA, "data.bp: is empty");
    is_int(dnn_comm_agree(comm, DNN_EDATA, &err), DNN_EDATA, "... and on failure");
    is_text(err.text, "rank 1: data.bp: is empty", "...");
    dnn_comm_close(comm);
}

static void agreeing(struct dnn_comm *comm)
{
    struct dnn_err err = {0};

    is_int(dnn_comm_agree(comm, 0, &err), 0, "agreement on success");
    dnn_fail(&err, DNN_EDATA, "data.bp: is empty");
    is_int(dnn_comm_agree(comm, DNN_EDATA, &err), DNN_EDATA, "agreement on failure");
    is_text(err.text, "data.bp: is empty", "... keeps the message");
}

/* Output, exit status and time of a child that hangs. */
static void watching(double seconds, bool unwatch)
{
    int pipe_fd[2], status = -1;
    char text[300] = "", want[300];

    fflush(stdout);
    if (pipe(pipe_fd) < 0) return;
    pid_t child = fork();
    if (child == 0) {
        struct dnn_comm *comm;
        struct dnn_comm_cfg cfg = {.kind = DNN_COMM_SELF, .deadline = 2};

        dup2(pipe_fd[1], STDERR_FILENO);
        if (dnn_comm_open(&cfg, &comm, NULL) < 0) _exit(1);
        dnn_comm_watch(comm, "the opening of data.bp", seconds);
        if (unwatch) dnn_comm_unwatch(comm);
        sleep(unwatch ? 3 : 600);
        dnn_comm_close(comm);
        exit(0);
    }
    close(pipe_fd[1]);
    waitpid(child, &status, 0);
    ssize_t n = read(pipe_fd[0], text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    close(pipe_fd[0]);
    is_int(WIFEXITED(status) ? WEXITSTATUS(status) : -1, unwatch ? 0 : 7,
           unwatch ? "an unwatched call may take long" : "a watched call ends the job");
    const char *tail = strstr(text, "the opening");
    snprintf(want, sizeof want, "not finished after %g s; terminating\n",
             seconds > 0 ? seconds : 2);
    if (unwatch)
        is_text(text, "", "... without a message");
    else
        ok(tail != NULL && strstr(tail, want) != NULL, "... with a message: %s", text);
}

int main(void)
{
    struct dnn_comm *comm;
    struct dnn_err err = {0};
    struct dnn_comm_cfg cfg = {.kind = DNN_COMM_SELF};

    opening();
    if (dnn_comm_open(&cfg, &comm, &err) < 0) return 1;
    place(comm);
    moving(comm);
    refusing(comm);
    agreeing(comm);
    dnn_comm_close(comm);
    pretending();
    watching(0, false);
    watching(0.3, false);
    watching(0, true);
    return done();
}
