/* enter.c - run a program as if logged in on the cluster.
 *
 * A child process enters the namespaces and starts the program there; this process
 * stays outside.  Both forward signals.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "cluster/cluster_impl.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const int forwarded[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                                SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};
static const int stops[] = {SIGTSTP, SIGTTIN, SIGTTOU};
enum {
    NFORWARDED = sizeof forwarded / sizeof forwarded[0],
    NSTOPS = sizeof stops / sizeof stops[0]
};

/* Wait for the child and forward our signals to it, except those of the terminal, which
 * are sent to the complete process group anyway. */
static int wait_forwarding(pid_t child, const sigset_t *set)
{
    int status = 0;

    while (waitpid(child, &status, WNOHANG) != child) {
        siginfo_t info;
        int sig = sigwaitinfo(set, &info);

        if (sig > 0 && sig != SIGCHLD && info.si_code <= 0) kill(child, sig);
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Write the error to fd and exit. */
static _Noreturn void exit_with(int fd, const struct dnn_err *err, int status)
{
    if (write(fd, err, sizeof *err) != sizeof *err) status = 126;
    _exit(status);
}

/* Execute the program.  It gets SIGHUP if the parent is killed, as at the end of a
 * login. */
static _Noreturn void exec_program(char **argv, const sigset_t *mask, int fd)
{
    struct dnn_err err = {0};

    prctl(PR_SET_PDEATHSIG, SIGHUP);
    for (int i = 0; i < NSTOPS; i++)
        signal(stops[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(argv[0], argv);
    int status = errno == ENOENT ? 127 : 126;
    dnn_fail(&err, DNN_EUSAGE, "%s: %s", argv[0], strerror(errno));
    exit_with(fd, &err, status);
}

/* The child that starts the program and waits for it.  It ignores stop signals of the
 * terminal, because a cluster cannot end before its last process has been waited
 * for. */
static _Noreturn void run_inside(const struct dnn_cluster_peer *peer, char **argv,
                                 const sigset_t *set, const sigset_t *old, int fd)
{
    struct dnn_err err = {0};

    prctl(PR_SET_PDEATHSIG, SIGHUP);
    for (int i = 0; i < NSTOPS; i++)
        signal(stops[i], SIG_IGN);
    if (dnn_cluster_ns_join(peer, true, &err) < 0) exit_with(fd, &err, 126);
    pid_t pid = fork();
    if (pid == 0) exec_program(argv, old, fd);
    if (pid > 0) _exit(wait_forwarding(pid, set));
    dnn_fail(&err, DNN_EIO, "fork: %s", strerror(errno));
    exit_with(fd, &err, 126);
}

int dnn_cluster_run(const struct dnn_cluster_cfg *cfg, char **argv, int *status,
                    struct dnn_err *err)
{
    char dir[DNN_CLUSTER_PATH];
    struct dnn_cluster_peer peer;
    struct dnn_err why;
    sigset_t set, old;
    int fd[2];

    DNN_TRY(dnn_cluster_find(cfg, dir, &peer, err));
    if (pipe2(fd, O_CLOEXEC) != 0) {
        dnn_cluster_disconnect(&peer);
        return dnn_fail(err, DNN_EIO, "pipe: %s", strerror(errno));
    }
    dnn_cluster_environment(dir);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (int i = 0; i < NFORWARDED; i++)
        sigaddset(&set, forwarded[i]);
    sigprocmask(SIG_BLOCK, &set, &old);
    pid_t pid = fork();
    if (pid == 0) run_inside(&peer, argv, &set, &old, fd[1]);
    int rc = pid < 0 ? dnn_fail(err, DNN_EIO, "fork: %s", strerror(errno)) : 0;
    close(fd[1]);
    dnn_cluster_disconnect(&peer);
    if (pid > 0) *status = wait_forwarding(pid, &set);
    sigprocmask(SIG_SETMASK, &old, NULL);
    /* Nothing is written if the program was started. */
    if (rc == 0 && read(fd[0], &why, sizeof why) == sizeof why) {
        if (why.code == DNN_EUSAGE)
            dnn_log(DNN_ERROR, "cluster", "%s", why.text);
        else
            rc = dnn_fail(err, why.code, "%s", why.text);
    }
    close(fd[0]);
    return rc;
}
