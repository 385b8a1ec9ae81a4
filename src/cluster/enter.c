/* enter.c - running a program as if logged in on the cluster.
 *
 * A keeper process enters the namespaces and starts the program there; we stay
 * outside as we are.  Both hand down signals.
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

static const int passed_on[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                                SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};
static const int stops[] = {SIGTSTP, SIGTTIN, SIGTTOU};
enum {
    NPASSED = sizeof passed_on / sizeof passed_on[0],
    NSTOPS = sizeof stops / sizeof stops[0]
};

/* Wait for the child and hand it the signals we are sent.  Those a terminal
 * sends go to the whole process group anyway and are not doubled. */
static int attend(pid_t child, const sigset_t *set)
{
    int status = 0;

    while (waitpid(child, &status, WNOHANG) != child) {
        siginfo_t info;
        int sig = sigwaitinfo(set, &info);

        if (sig > 0 && sig != SIGCHLD && info.si_code <= 0) kill(child, sig);
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Die, with the reason to whoever reads fd. */
static _Noreturn void give_up(int fd, const struct dnn_err *err, int status)
{
    if (write(fd, err, sizeof *err) != sizeof *err) status = 126;
    _exit(status);
}

/* Become the program.  If the keeper is killed it is hung up on, as when a
 * login ends. */
static _Noreturn void be(char **argv, const sigset_t *mask, int fd)
{
    struct dnn_err err = {0};

    prctl(PR_SET_PDEATHSIG, SIGHUP);
    for (int i = 0; i < NSTOPS; i++)
        signal(stops[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(argv[0], argv);
    int status = errno == ENOENT ? 127 : 126;
    dnn_fail(&err, DNN_EUSAGE, "%s: %s", argv[0], strerror(errno));
    give_up(fd, &err, status);
}

/* The keeper.  It must always be able to collect the program, even when a
 * terminal stops us all: a cluster cannot end before its last process has been
 * waited for. */
static _Noreturn void keep(const struct dnn_cluster_peer *peer, char **argv,
                           const sigset_t *set, const sigset_t *old, int fd)
{
    struct dnn_err err = {0};

    prctl(PR_SET_PDEATHSIG, SIGHUP);
    for (int i = 0; i < NSTOPS; i++)
        signal(stops[i], SIG_IGN);
    if (dnn_cluster_ns_join(peer, true, &err) < 0) give_up(fd, &err, 126);
    pid_t pid = fork();
    if (pid == 0) be(argv, old, fd);
    if (pid > 0) _exit(attend(pid, set));
    dnn_fail(&err, DNN_EIO, "fork: %s", strerror(errno));
    give_up(fd, &err, 126);
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
    for (int i = 0; i < NPASSED; i++)
        sigaddset(&set, passed_on[i]);
    sigprocmask(SIG_BLOCK, &set, &old);
    pid_t pid = fork();
    if (pid == 0) keep(&peer, argv, &set, &old, fd[1]);
    int rc = pid < 0 ? dnn_fail(err, DNN_EIO, "fork: %s", strerror(errno)) : 0;
    close(fd[1]);
    dnn_cluster_disconnect(&peer);
    if (pid > 0) *status = attend(pid, &set);
    sigprocmask(SIG_SETMASK, &old, NULL);
    /* Silence means that the program was started. */
    if (rc == 0 && read(fd[0], &why, sizeof why) == sizeof why) {
        if (why.code == DNN_EUSAGE)
            dnn_log(DNN_ERROR, "cluster", "%s", why.text);
        else
            rc = dnn_fail(err, why.code, "%s", why.text);
    }
    close(fd[0]);
    return rc;
}
