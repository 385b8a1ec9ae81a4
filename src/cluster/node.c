/* node.c - one node: init of its own PID namespace, with a slurmd below it.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "cluster/cluster_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Redirect stdout and stderr to the log file, make fd number 3 and close all others: in
 * particular, only the supervisor may have the control socket. */
static int redirect(const char *log, int fd)
{
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

    if (out < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 || dup2(fd, 3) < 0) return -1;
    return (int)syscall(SYS_close_range, 4U, ~0U, 0U);
}

/* Wait for slurmd and all orphans, as init does. */
static void reap(void)
{
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
}

/* The main function of a node.  One byte is read from fd when its network is
 * connected. */
static _Noreturn void run_node(const struct dnn_cluster_conf *conf, int index, int fd)
{
    char *const argv[] = {"slurmd", "-D", NULL};
    char name[16], log[DNN_CLUSTER_PATH + 32], spool[sizeof log], byte;
    struct dnn_err err = {0};
    sigset_t none;

    snprintf(name, sizeof name, "n%d", index);
    snprintf(log, sizeof log, "%s/log/slurmd.%s.log", conf->dir, name);
    snprintf(spool, sizeof spool, "%s/spool/%s", conf->dir, name);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (redirect(log, fd) != 0 || read(3, &byte, 1) != 1) _exit(1);
    close(3);
    int rc = dnn_cluster_ns_node(name, spool, &err);
    if (rc == 0 && conf->nodes > 1) rc = dnn_cluster_net_node(conf->nodes, index, &err);
    pid_t slurmd = rc < 0 ? rc : dnn_cluster_spawn(argv, log, &err);
    if (slurmd < 0) {
        dprintf(2, "node %s: %s\n", name, err.text);
        _exit(1);
    }
    reap();
    _exit(0);
}

int dnn_cluster_node_boot(const struct dnn_cluster_conf *conf, int index, pid_t *pid,
                          struct dnn_err *err)
{
    struct clone_args args = {.flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS |
                                       (conf->nodes > 1 ? CLONE_NEWNET : 0),
                              .exit_signal = SIGCHLD};
    int fd[2], rc = 0;

    if (pipe2(fd, O_CLOEXEC) != 0)
        return dnn_fail(err, DNN_EIO, "node n%d: pipe: %s", index, strerror(errno));
    *pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (*pid == 0) run_node(conf, index, fd[0]);
    if (*pid < 0) {
        *pid = 0;
        rc = dnn_fail(err, DNN_EIO, "node n%d: its namespaces: %s", index,
                      strerror(errno));
    }
    if (rc == 0 && conf->nodes > 1) rc = dnn_cluster_net_connect(index, *pid, err);
    if (rc == 0 && write(fd[1], "", 1) != 1)
        rc = dnn_fail(err, DNN_EIO, "node n%d: ended at once", index);
    close(fd[0]);
    close(fd[1]);
    if (rc < 0 && *pid > 0) {
        dnn_cluster_node_kill(conf, index, *pid);
        *pid = 0;
    }
    return rc;
}

void dnn_cluster_node_kill(const struct dnn_cluster_conf *conf, int index, pid_t pid)
{
    kill(pid, SIGKILL);
    if (conf->nodes > 1) dnn_cluster_net_disconnect(index);
    /* Init of a PID namespace ends after all other processes in it. */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}
