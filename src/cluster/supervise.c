/* supervise.c - the supervisor process of a cluster.
 *
 * It is init of the cluster's PID namespace: when it ends, all processes end.  It never
 * blocks for long, so that it detects the death of dnn-cluster start (the starter).
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "cluster/cluster_impl.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct supervisor {
    struct dnn_cluster_conf *conf;
    struct dnn_deadline deadline; /* until it must be ready        */
    int starter, lock;            /* starter: -1 once it is closed */
    int control, signals;
    int port[2]; /* sockets that reserve the ports, or -1 */
    pid_t munged, slurmctld;
    pid_t node[DNN_CLUSTER_MAX + 1]; /* n1 at [1]; 0: not running */
    bool ready, stop;
    struct dnn_err err;              /* why it stops, if not by request      */
    char log[DNN_CLUSTER_PATH + 32]; /* log file for the message, or empty  */
};

/* Set the log file to be shown if the next step fails. */
static void set_log(struct supervisor *s, const char *what)
{
    snprintf(s->log, sizeof s->log, "%s/log/%s.log", s->conf->dir, what);
}

static void report(struct supervisor *s, const char *what)
{
    dnn_log(DNN_INFO, "cluster", "%s", what);
    if (s->starter >= 0) dnn_cluster_send(s->starter, 0, "log %s", what);
}

/* Detach from the terminal, and close all files except starter and lock. */
static int detach(struct supervisor *s, struct dnn_err *err)
{
    char path[DNN_CLUSTER_PATH + 32];

    snprintf(path, sizeof path, "%s/log/supervisor.log", s->conf->dir);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (null < 0 || log < 0)
        return dnn_fail(err, DNN_EIO, "%s: %s", null < 0 ? "/dev/null" : path,
                        strerror(errno));
    int starter = fcntl(s->starter, F_DUPFD_CLOEXEC, 10);
    int lock = fcntl(s->lock, F_DUPFD_CLOEXEC, 10);
    if (starter < 0 || lock < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 ||
        dup2(log, 2) < 0 || dup3(starter, 3, O_CLOEXEC) < 0 ||
        dup3(lock, 4, O_CLOEXEC) < 0 || syscall(SYS_close_range, 5U, ~0U, 0U) != 0)
        return dnn_fail(err, DNN_EIO, "detaching: %s", strerror(errno));
    s->starter = 3;
    s->lock = 4;
    umask(022);
    /* Our log file has its own level, not that of the starter. */
    DNN_TRY(dnn_log_levels("info", err));
    return chdir("/") == 0 ? 0 : dnn_fail(err, DNN_EIO, "/: %s", strerror(errno));
}

/* Make a signalfd for SIGCHLD and the signals that stop the supervisor. */
static int listen_signals(struct supervisor *s, struct dnn_err *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_SETMASK, &set, NULL);
    signal(SIGHUP, SIG_IGN);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signals >= 0) return 0;
    return dnn_fail(err, DNN_EIO, "signalfd: %s", strerror(errno));
}

static int write_files(const struct dnn_cluster_conf *conf, struct dnn_err *err)
{
    struct dnn_buf text = {0}, hosts = {0};
    unsigned char key[128];

    if (getrandom(key, sizeof key, 0) != sizeof key)
        return dnn_fail(err, DNN_EIO, "random numbers for a key: %s", strerror(errno));
    int rc = dnn_cluster_dir_write(conf->dir, "munge.key", 0600, key, sizeof key, err);
    if (rc == 0) {
        dnn_cluster_conf_slurm(conf, &text);
        rc = dnn_cluster_dir_write(conf->dir, "slurm.conf", 0644, text.text, text.len,
                                   err);
    }
    if (rc == 0) {
        dnn_buf_free(&text);
        dnn_cluster_conf_cgroup(&text);
        rc = dnn_cluster_dir_write(conf->dir, "cgroup.conf", 0644, text.text, text.len,
                                   err);
    }
    if (rc == 0 && conf->nodes == 1) {
        dnn_buf_free(&text);
        dnn_cluster_conf_prolog(&text);
        rc = dnn_cluster_dir_write(conf->dir, "task_prolog", 0755, text.text, text.len,
                                   err);
    }
    if (rc == 0) {
        dnn_buf_free(&text);
        dnn_cluster_dir_read("/etc/hosts", &hosts);
        dnn_cluster_conf_hosts(conf, hosts.text, &text);
        rc = dnn_cluster_dir_write(conf->dir, "hosts", 0644, text.text, text.len, err);
    }
    dnn_buf_free(&text);
    dnn_buf_free(&hosts);
    return rc;
}

/* Write the configuration files, and set up mounts, host names and network. */
static int set_up(struct supervisor *s, struct dnn_err *err)
{
    struct dnn_cluster_conf *conf = s->conf;
    char hosts[DNN_CLUSTER_PATH + 32];

    conf->ctld_port = 6817;
    conf->slurmd_port = 6818;
    if (conf->nodes == 1) {
        DNN_TRY(dnn_cluster_net_port(&conf->ctld_port, &s->port[0], err));
        DNN_TRY(dnn_cluster_net_port(&conf->slurmd_port, &s->port[1], err));
    }
    dnn_cluster_environment(conf->dir);
    DNN_TRY(write_files(conf, err));
    snprintf(hosts, sizeof hosts, "%s/hosts", conf->dir);
    DNN_TRY(dnn_cluster_ns_mount(hosts, err));
    return conf->nodes > 1 ? dnn_cluster_net_bridge(conf->nodes, err) : 0;
}

static int start_munged(struct supervisor *s, struct dnn_err *err)
{
    const char *dir = s->conf->dir;
    char key[160], sock[160], pid[160], seed[160];
    char *const argv[] = {"munged", "--foreground", "--force", key, sock,
                          pid,      seed,           NULL};
    struct dnn_deadline end = dnn_clock_deadline(10);

    snprintf(key, sizeof key, "--key-file=%s/munge.key", dir);
    snprintf(sock, sizeof sock, "--socket=%s/munge.sock", dir);
    snprintf(pid, sizeof pid, "--pid-file=%s/munged.pid", dir);
    snprintf(seed, sizeof seed, "--seed-file=%s/munge.seed", dir);
    set_log(s, "munged");
    s->munged = dnn_cluster_spawn(argv, s->log, err);
    if (s->munged < 0) return s->munged;
    /* All other daemons need it, so wait for its socket. */
    while (access(strchr(sock, '/'), F_OK) != 0) {
        if (dnn_clock_passed(&end) || waitpid(s->munged, NULL, WNOHANG) != 0)
            return dnn_fail(err, DNN_EIO, "munged does not start, see %s", s->log);
        dnn_clock_sleep(0.02);
    }
    return 0;
}

static int start_all(struct supervisor *s, struct dnn_err *err)
{
    char *const argv[] = {"slurmctld", "-D", "-c", NULL};

    DNN_TRY(listen_signals(s, err));
    DNN_TRY(set_up(s, err));
    s->control = dnn_cluster_listen(s->conf->dir, err);
    if (s->control < 0) return s->control;
    report(s, "starting munged and slurmctld");
    DNN_TRY(start_munged(s, err));
    set_log(s, "slurmctld");
    s->slurmctld = dnn_cluster_spawn(argv, s->log, err);
    if (s->slurmctld < 0) return s->slurmctld;
    for (int i = 1; i <= s->conf->nodes; i++) {
        char what[32];

        snprintf(what, sizeof what, "starting node n%d", i);
        report(s, what);
        s->log[0] = '\0';
        DNN_TRY(dnn_cluster_node_boot(s->conf, i, &s->node[i], err));
    }
    report(s, "waiting for the nodes to be idle");
    return 0;
}

/* Query Slurm: ready when all nodes are idle; an error after the deadline. */
static void check_ready(struct supervisor *s)
{
    struct dnn_cluster_states states;
    struct dnn_err err = {0};
    int rc = dnn_cluster_states(NULL, &states, &err), busy = 0, idle = 0;

    for (int i = s->conf->nodes; rc == 0 && i >= 1; i--)
        if (strcmp(states.text[i], "idle") == 0)
            idle++;
        else
            busy = i;
    dnn_cluster_send(s->starter, 0, "idle %d", idle);
    if (rc == 0 && busy == 0) {
        s->ready = true;
        if (dnn_cluster_send(s->starter, 0, "ready") != 0) s->stop = true;
        return;
    }
    if (!dnn_clock_passed(&s->deadline)) return;
    if (rc < 0) {
        set_log(s, "slurmctld");
        dnn_fail(&s->err, DNN_EIO, "slurmctld did not answer in time (%s), see %s",
                 err.text, s->log);
    } else {
        char what[24];

        snprintf(what, sizeof what, "slurmd.n%d", busy);
        set_log(s, what);
        dnn_fail(&s->err, DNN_EIO,
                 "node n%d is %s, not idle, at the end of the timeout, see %s; "
                 "--timeout allows more time",
                 busy, states.text[busy][0] == '\0' ? "unknown" : states.text[busy],
                 s->log);
    }
    s->stop = true;
}

/* A child has ended.  If it is a daemon, or a node during the start, the cluster is
 * stopped. */
static void child_ended(struct supervisor *s, pid_t pid, int status)
{
    char what[24] = "";

    if (pid == s->munged) snprintf(what, sizeof what, "munged");
    if (pid == s->slurmctld) snprintf(what, sizeof what, "slurmctld");
    for (int i = 1; i <= s->conf->nodes; i++) {
        if (pid != s->node[i]) continue;
        s->node[i] = 0;
        if (s->conf->nodes > 1) dnn_cluster_net_disconnect(i);
        snprintf(what, sizeof what, "slurmd.n%d", i);
        dnn_log(DNN_WARN, "cluster", "node n%d ended", i);
        if (s->ready) return;
    }
    if (what[0] == '\0') return; /* an orphan, reparented to init */
    set_log(s, what);
    dnn_fail(&s->err, DNN_EIO, "%s ended (%s %d), see %s", what,
             WIFSIGNALED(status) ? "signal" : "exit status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), s->log);
    s->stop = true;
}

static void handle_signals(struct supervisor *s)
{
    struct signalfd_siginfo info;
    int status;
    pid_t pid;

    while (read(s->signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD) s->stop = true;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        child_ended(s, pid, status);
}

static int run_request(struct supervisor *s, const char *request, struct dnn_err *err)
{
    bool boot = strncmp(request, "restore ", 8) == 0;

    if (strcmp(request, "stop") == 0) {
        s->stop = true;
        return 0;
    }
    if (!boot && strncmp(request, "fail ", 5) != 0)
        return dnn_fail(err, DNN_EUSAGE, "unknown command");
    int i = dnn_cluster_conf_node(strchr(request, ' ') + 1, s->conf->nodes, err);
    if (i < 0) return i;
    dnn_log(DNN_INFO, "cluster", "%s", request);
    if (boot)
        return s->node[i] > 0 ? 0 : dnn_cluster_node_boot(s->conf, i, &s->node[i], err);
    if (s->node[i] > 0) dnn_cluster_node_kill(s->conf, i, s->node[i]);
    s->node[i] = 0;
    return 0;
}

/* Accept a client and handle one request; waits at most 1 s for it. */
static void serve(struct supervisor *s)
{
    char text[DNN_CLUSTER_PACKET];
    struct dnn_err err = {0};
    int fd = accept4(s->control, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0) return;
    if (dnn_cluster_recv(fd, 1, text, NULL) > 0) {
        if (strcmp(text, "status") == 0) {
            dnn_cluster_send(fd, 0, "cluster %d %d", s->conf->nodes, s->ready);
            for (int i = 1; i <= s->conf->nodes; i++)
                if (s->node[i] > 0) dnn_cluster_send(fd, s->node[i], "node %d", i);
            dnn_cluster_send(fd, 0, "ok");
        } else if (run_request(s, text, &err) < 0) {
            dnn_cluster_send(fd, 0, "fail %d %s", err.code, err.text);
        } else {
            dnn_cluster_send(fd, 0, "ok");
        }
    }
    close(fd);
}

/* The starter sends "go" when it has received "ready".  If it ends before that, the
 * cluster is stopped. */
static void handle_starter(struct supervisor *s)
{
    char text[DNN_CLUSTER_PACKET];

    if (dnn_cluster_recv(s->starter, 0, text, NULL) > 0 && strcmp(text, "go") == 0) {
        dnn_log(DNN_INFO, "cluster", "up");
        close(s->lock);
    } else {
        dnn_log(DNN_WARN, "cluster",
                "dnn-cluster start ended before the cluster was up");
        s->stop = true;
    }
    close(s->starter);
    s->starter = -1;
}

static void main_loop(struct supervisor *s)
{
    while (!s->stop) {
        struct pollfd p[] = {
            {.fd = s->signals, .events = POLLIN},
            {.fd = s->control, .events = POLLIN},
            {.fd = s->starter, .events = POLLIN}
        };

        if (poll(p, 3, s->ready ? -1 : 200) < 0 && errno != EINTR) break;
        if (p[0].revents != 0) handle_signals(s);
        if (p[2].revents != 0) handle_starter(s);
        if (p[1].revents != 0 && !s->stop) serve(s);
        if (!s->ready && !s->stop) check_ready(s);
    }
}

/* Report the error, and let slurmctld close its files if it was ready; the kernel kills
 * the other processes when we exit. */
static void shut_down(struct supervisor *s)
{
    struct dnn_deadline end = dnn_clock_deadline(3);
    char path[DNN_CLUSTER_PATH + 32];

    if (s->err.code < 0) dnn_log(DNN_ERROR, "cluster", "%s", s->err.text);
    if (s->starter >= 0)
        dnn_cluster_send(s->starter, 0, "fail %d %s %s",
                         s->err.code < 0 ? s->err.code : DNN_EIO,
                         s->log[0] == '\0' ? "-" : s->log,
                         s->err.code < 0 ? s->err.text : "stopped while it started");
    if (s->ready && s->slurmctld > 0 && kill(s->slurmctld, SIGTERM) == 0)
        while (waitpid(s->slurmctld, NULL, WNOHANG) == 0 && !dnn_clock_passed(&end))
            dnn_clock_sleep(0.02);
    snprintf(path, sizeof path, "%s/control", s->conf->dir);
    unlink(path);
    dnn_log(DNN_INFO, "cluster", "ended");
}

_Noreturn void dnn_cluster_supervise(struct dnn_cluster_conf *conf, double timeout,
                                     int starter, int lock)
{
    struct supervisor s = {
        .conf = conf,
        .deadline = dnn_clock_deadline(timeout),
        .starter = starter,
        .lock = lock,
        .control = -1,
        .signals = -1,
        .port = {-1, -1}
    };

    if (detach(&s, &s.err) == 0 && start_all(&s, &s.err) == 0) main_loop(&s);
    shut_down(&s);
    _exit(0);
}
