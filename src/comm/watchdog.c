/* watchdog.c - a thread that checks the deadline and the processes of this node.
 *
 * Processes are watched by pidfds: the kernel reports the death of a process to us and
 * to the launcher at the same time, so that a message can be printed before the
 * launcher kills the job.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "comm/watchdog_impl.h"

#include "base/clock.h"
#include "base/mem.h"
#include "comm/comm_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct dnn_watchdog {
    struct dnn_watchdog_calls calls;
    pthread_t thread;
    bool running;
    int wakeup; /* an eventfd: a member below has changed */
    pthread_mutex_t lock;
    pthread_cond_t applied; /* the thread has applied a change */
    /* The following members are protected by the lock. */
    bool stop;
    bool armed;
    double at, seconds;
    char what[128];
    const pid_t *pid; /* borrowed until the change is applied */
    int npids;
    unsigned long nchanges, napplied; /* of peers */
};

struct fds {
    struct pollfd *fd; /* owned; [0] is the wakeup, then one per peer */
    int n;
};

static void close_fds(struct fds *fds)
{
    for (int i = 1; i < fds->n; i++)
        if (fds->fd[i].fd >= 0) close(fds->fd[i].fd);
    fds->n = 1;
}

/* A peer that cannot be watched (kernel before 5.3, already dead, other namespace) is
 * detected by the deadline. */
static void open_fds(struct fds *fds, const pid_t *pid, int n)
{
    struct pollfd wakeup = fds->fd[0];

    close_fds(fds);
    dnn_free(fds->fd);
    fds->fd = dnn_alloc(sizeof *fds->fd * (size_t)(n + 1));
    fds->fd[0] = wakeup;
    for (int i = 0; i < n; i++) {
        fds->fd[i + 1].fd = pid[i] > 0 ? (int)syscall(SYS_pidfd_open, pid[i], 0) : -1;
        fds->fd[i + 1].events = POLLIN;
    }
    fds->n = n + 1;
}

enum { TICK_MS = 250 };

/* Milliseconds until the next timeout, -1: none. */
static int timeout_ms(const struct dnn_watchdog *w)
{
    bool ticks = w->calls.tick != NULL && w->npids > 0;

    if (!w->armed) return ticks ? TICK_MS : -1;
    double left = (w->at - dnn_clock_now()) * 1000;
    if (left <= 0) return 0;
    if (ticks && left > TICK_MS) return TICK_MS;
    return left > 1e9 ? 1000000000 : (int)left + 1;
}

/* Apply changes of the main thread; *expired: the deadline has passed. */
static bool apply_changes(struct dnn_watchdog *w, struct fds *fds, bool *expired,
                          char *what, size_t size, double *seconds)
{
    bool stop;

    pthread_mutex_lock(&w->lock);
    if (w->napplied != w->nchanges) {
        open_fds(fds, w->pid, w->npids);
        w->napplied = w->nchanges;
        pthread_cond_broadcast(&w->applied);
    }
    *expired = w->armed && dnn_clock_now() >= w->at;
    if (*expired) {
        w->armed = false;
        snprintf(what, size, "%s", w->what);
        *seconds = w->seconds;
    }
    stop = w->stop;
    pthread_mutex_unlock(&w->lock);
    return !stop;
}

static void *run(void *arg)
{
    struct dnn_watchdog *w = arg;
    struct fds fds = {.n = 1};
    char what[sizeof w->what];
    double seconds = 0;
    bool expired;

    fds.fd = dnn_alloc(sizeof *fds.fd);
    fds.fd[0] = (struct pollfd){.fd = w->wakeup, .events = POLLIN};
    while (apply_changes(w, &fds, &expired, what, sizeof what, &seconds)) {
        if (expired) w->calls.expired(w->calls.arg, what, seconds);

        pthread_mutex_lock(&w->lock);
        int ms = w->napplied == w->nchanges && !w->stop ? timeout_ms(w) : 0;
        pthread_mutex_unlock(&w->lock);
        int some = poll(fds.fd, (nfds_t)fds.n, ms);
        if (some == 0 && fds.n > 1 && w->calls.tick != NULL)
            w->calls.tick(w->calls.arg);
        if (some <= 0) continue;

        uint64_t count;
        if (fds.fd[0].revents != 0 && read(w->wakeup, &count, sizeof count) < 0)
            continue;
        for (int i = 1; i < fds.n; i++)
            if (fds.fd[i].fd >= 0 && fds.fd[i].revents != 0) {
                close(fds.fd[i].fd);
                fds.fd[i].fd = -1;
                w->calls.died(w->calls.arg, i - 1);
            }
    }
    close_fds(&fds);
    dnn_free(fds.fd);
    return NULL;
}

/* With all signals blocked: they are handled by the main thread. */
static int start_thread(pthread_t *thread, void *(*body)(void *), void *arg)
{
    sigset_t all, old;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(thread, NULL, body, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

static void wake(struct dnn_watchdog *w)
{
    uint64_t one = 1;

    if (!w->running) {
        w->running = start_thread(&w->thread, run, w) == 0;
        if (!w->running) dnn_comm_print("cannot start the watchdog thread");
    }
    if (write(w->wakeup, &one, sizeof one) < 0 && errno != EAGAIN)
        dnn_comm_print("cannot wake the watchdog thread: %s", strerror(errno));
}

struct dnn_watchdog *dnn_watchdog_make(const struct dnn_watchdog_calls *calls)
{
    struct dnn_watchdog *w = dnn_alloc(sizeof *w);

    w->calls = *calls;
    w->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->applied, NULL);
    return w;
}

void dnn_watchdog_free(struct dnn_watchdog *w)
{
    if (w == NULL) return;
    if (w->running) {
        pthread_mutex_lock(&w->lock);
        w->stop = true;
        pthread_mutex_unlock(&w->lock);
        wake(w);
        pthread_join(w->thread, NULL);
    }
    if (w->wakeup >= 0) close(w->wakeup);
    pthread_cond_destroy(&w->applied);
    pthread_mutex_destroy(&w->lock);
    dnn_free(w);
}

void dnn_watchdog_arm(struct dnn_watchdog *w, const char *what, double seconds)
{
    pthread_mutex_lock(&w->lock);
    w->armed = true;
    w->seconds = seconds;
    w->at = dnn_clock_now() + seconds;
    snprintf(w->what, sizeof w->what, "%s", what);
    pthread_mutex_unlock(&w->lock);
    wake(w);
}

/* No wakeup is needed: the thread sees it at the old timeout. */
void dnn_watchdog_disarm(struct dnn_watchdog *w)
{
    pthread_mutex_lock(&w->lock);
    w->armed = false;
    pthread_mutex_unlock(&w->lock);
}

void dnn_watchdog_peers(struct dnn_watchdog *w, const pid_t *pid, int n)
{
    pthread_mutex_lock(&w->lock);
    w->pid = pid;
    w->npids = n;
    w->nchanges++;
    pthread_mutex_unlock(&w->lock);
    wake(w);
    if (!w->running) return;
    pthread_mutex_lock(&w->lock);
    while (w->napplied != w->nchanges)
        pthread_cond_wait(&w->applied, &w->lock);
    w->pid = NULL;
    pthread_mutex_unlock(&w->lock);
}

struct last_resort {
    double seconds;
    int status;
};

static void *exit_later(void *arg)
{
    const struct last_resort *l = arg;
    struct timespec t = {.tv_sec = (time_t)l->seconds,
                         .tv_nsec =
                             (long)((l->seconds - (double)(time_t)l->seconds) * 1e9)};

    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        continue;
    _exit(l->status);
}

void dnn_watchdog_last_resort(double seconds, int status)
{
    pthread_t thread;
    struct last_resort *l = dnn_alloc(sizeof *l);

    *l = (struct last_resort){seconds, status};
    if (start_thread(&thread, exit_later, l) == 0)
        pthread_detach(thread);
    else
        _exit(status);
}
