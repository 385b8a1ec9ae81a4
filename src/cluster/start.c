/* start.c - start a cluster and wait for it.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "cluster/cluster_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/progress.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

/* 1 if it is running with the same number of nodes, 0 if it is not running. */
static int running(const struct dnn_cluster_cfg *cfg, const char *dir,
                   struct dnn_err *err)
{
    struct dnn_cluster_peer peer;
    struct dnn_cluster_state state;

    if (!dnn_cluster_connect(dir, &peer)) return 0;
    int rc = dnn_cluster_query(&peer, &state, err);
    pid_t pid = peer.pid;
    dnn_cluster_disconnect(&peer);
    if (rc < 0) return rc;
    if (state.nodes != cfg->nodes)
        return dnn_fail(err, DNN_EUSAGE,
                        "cluster \"%s\" is running with %d node%s, not %d; stop it "
                        "first (dnn-cluster stop) or choose another --name",
                        cfg->name, state.nodes, plural(state.nodes), cfg->nodes);
    dnn_log(DNN_INFO, "cluster", "\"%s\" is already running, supervisor %d", cfg->name,
            (int)pid);
    return 1;
}

/* Set user and hardware of the configuration; the caller owns the two buffers. */
static int set_machine(struct dnn_cluster_conf *conf, struct dnn_buf *user,
                       struct dnn_buf *hardware, struct dnn_err *err)
{
    char *const argv[] = {"slurmd", "-C", NULL};
    struct dnn_buf printed = {0};
    struct passwd *pw = getpwuid(geteuid());

    if (pw == NULL)
        return dnn_fail(err, DNN_EIO,
                        "user %u has no name in the password file; Slurm needs one",
                        (unsigned)geteuid());
    dnn_buf_add(user, "%s", pw->pw_name);
    int rc = dnn_cluster_capture(argv, 20, NULL, NULL, &printed, err);
    if (rc == 0 && !dnn_cluster_conf_hardware(printed.text, hardware))
        rc = dnn_fail(err, DNN_EIO, "slurmd -C prints nothing about this machine: %s",
                      printed.text);
    dnn_buf_free(&printed);
    conf->user = user->text;
    conf->hardware = hardware->text;
    return rc;
}

/* The process between us and the supervisor: creates a new session and new namespaces;
 * its child is the supervisor. */
static _Noreturn void fork_supervisor(struct dnn_cluster_conf *conf, double timeout,
                                      int starter, int lock)
{
    struct dnn_err err = {0};

    setsid();
    int rc = dnn_cluster_ns_unshare(conf->nodes > 1, &err);
    if (rc == 0) {
        pid_t pid = fork();

        if (pid == 0) dnn_cluster_supervise(conf, timeout, starter, lock);
        if (pid > 0) _exit(0);
        rc = dnn_fail(&err, DNN_EIO, "fork: %s", strerror(errno));
    }
    dnn_cluster_send(starter, 0, "fail %d - %s", err.code, err.text);
    _exit(1);
}

/* Read its messages until it is ready or fails. */
static int read_messages(int fd, double timeout, struct dnn_progress *progress,
                         struct dnn_err *err)
{
    /* The supervisor has its own timeout; this one is for a supervisor that hangs. */
    struct dnn_deadline end = dnn_clock_deadline(timeout + 15);
    char text[DNN_CLUSTER_PACKET], log[DNN_CLUSTER_PATH + 32];
    int got, code, idle, at = 0;

    while ((got = dnn_cluster_recv(fd, dnn_clock_left(&end), text, NULL)) > 0) {
        if (strncmp(text, "log ", 4) == 0) {
            dnn_progress_hide(progress);
            dnn_log(DNN_INFO, "cluster", "%s", text + 4);
        } else if (sscanf(text, "idle %d", &idle) == 1) {
            dnn_progress_at(progress, idle);
        } else if (strcmp(text, "ready") == 0) {
            return dnn_cluster_send(fd, 0, "go") == 0
                       ? 0
                       : dnn_fail(err, DNN_EIO, "the supervisor ended unexpectedly");
        } else if (sscanf(text, "fail %d %127s %n", &code, log, &at) == 2 && at > 0) {
            if (log[0] == '/') dnn_cluster_dir_tail(log, 10);
            /* Wait until the supervisor, and with it the cluster, has ended. */
            while (dnn_cluster_recv(fd, 10, text + at, NULL) > 0)
                ;
            return dnn_fail(err, code, "%s", text + at);
        }
    }
    return dnn_fail(err, DNN_EIO, "the supervisor %s",
                    got == 0 ? "was killed" : "does not answer");
}

/* Follow the supervisor until it is ready or reports why not. */
static int follow(int fd, int nodes, double timeout, struct dnn_err *err)
{
    struct dnn_progress *progress =
        dnn_progress_start("cluster", "cluster: idle", nodes, "nodes", NULL);
    int rc = read_messages(fd, timeout, progress, err);

    dnn_progress_stop(progress, rc == 0);
    return rc;
}

static int launch(struct dnn_cluster_conf *conf, double timeout, int lock,
                  struct dnn_err *err)
{
    int fd[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) != 0)
        return dnn_fail(err, DNN_EIO, "socketpair: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        close(fd[0]);
        fork_supervisor(conf, timeout, fd[1], lock);
    }
    int why = errno;
    close(fd[1]);
    int rc = pid < 0 ? dnn_fail(err, DNN_EIO, "fork: %s", strerror(why))
                     : follow(fd[0], conf->nodes, timeout, err);
    close(fd[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return rc;
}

int dnn_cluster_start(const struct dnn_cluster_cfg *cfg, struct dnn_err *err)
{
    char dir[DNN_CLUSTER_PATH];
    struct dnn_buf user = {0}, hardware = {0};
    double start = dnn_clock_now();
    int lock;

    if (cfg->nodes < 1 || cfg->nodes > DNN_CLUSTER_MAX)
        return dnn_fail(err, DNN_EUSAGE, "nodes: must be 1 to %d, not %d",
                        DNN_CLUSTER_MAX, cfg->nodes);
    DNN_TRY(dnn_cluster_dir(cfg, dir, err));
    DNN_TRY(dnn_cluster_check_programs(cfg->nodes, err));
    DNN_TRY(dnn_cluster_dir_make(dir, err));
    DNN_TRY(dnn_cluster_dir_lock(dir, cfg->timeout + 15, &lock, err));
    struct dnn_cluster_conf conf = {
        .name = cfg->name, .dir = dir, .nodes = cfg->nodes, .grace = cfg->grace};
    int rc = running(cfg, dir, err);
    if (rc == 0) {
        rc = dnn_cluster_dir_clear(dir, cfg->nodes, err);
        if (rc == 0) rc = set_machine(&conf, &user, &hardware, err);
        if (rc == 0) rc = launch(&conf, cfg->timeout, lock, err);
        if (rc == 0)
            dnn_log(DNN_INFO, "cluster", "\"%s\" is up with %d node%s after %.1f s: %s",
                    cfg->name, cfg->nodes, plural(cfg->nodes), dnn_clock_now() - start,
                    dir);
    }
    close(lock);
    dnn_buf_free(&user);
    dnn_buf_free(&hardware);
    return rc < 0 ? rc : 0;
}
