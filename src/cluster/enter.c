/* enter.c - running a program as if logged in on the cluster.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "cluster/cluster_impl.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const int passed_on[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                                SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};

/* Wait for the child and hand it the signals we are sent.  Those a terminal
 * sends go to the child's process group anyway and are not doubled. */
static int attend(pid_t child, const sigset_t *set)
{
    int status = 0;

    for (;;) {
        siginfo_t info;
        int sig = sigwaitinfo(set, &info);

        if (sig > 0 && sig != SIGCHLD && info.si_code <= 0) kill(child, sig);
        if (waitpid(child, &status, WNOHANG) == child) break;
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Become the program.  If we are killed it is hung up on, as when a login ends. */
static _Noreturn void be(char **argv, const sigset_t *mask)
{
    prctl(PR_SET_PDEATHSIG, SIGHUP);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(argv[0], argv);
    fprintf(stderr, "dnn-cluster run: %s: %s\n", argv[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

int dnn_cluster_run(const struct dnn_cluster_cfg *cfg, char **argv, int *status,
                    struct dnn_err *err)
{
    char dir[DNN_CLUSTER_PATH];
    struct dnn_cluster_peer peer;
    sigset_t set, old;

    DNN_TRY(dnn_cluster_find(cfg, dir, &peer, err));
    int rc = dnn_cluster_space_join(&peer, true, err);
    dnn_cluster_disconnect(&peer);
    if (rc < 0) return rc;
    dnn_cluster_environment(dir);

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof passed_on / sizeof passed_on[0]; i++)
        sigaddset(&set, passed_on[i]);
    sigprocmask(SIG_BLOCK, &set, &old);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) be(argv, &old);
    if (pid > 0) *status = attend(pid, &set);
    rc = pid < 0 ? dnn_fail(err, DNN_EIO, "fork: %s", strerror(errno)) : 0;
    sigprocmask(SIG_SETMASK, &old, NULL);
    return rc;
}
