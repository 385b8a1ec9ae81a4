/* save.c - a copy of the arrays, a thread that writes it, and waiting for that thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/clock.h"
#include "base/mem.h"
#include "ckpt/ckpt_impl.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ALIGN = 64 };

int dnn_ckpt_agree(struct dnn_ckpts *c, int rc, struct dnn_err *err)
{
    return c->size > 1 ? dnn_comm_agree(c->comm, rc, err) : rc;
}

/* ---- the writer ---- */

/* The thread that saves may be bound to one core, where the writer would get nothing:
 * it may go wherever one of this process's threads may. */
static void spread(void)
{
    DIR *dir = opendir("/proc/self/task");
    cpu_set_t all, one;

    CPU_ZERO(&all);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        long id = strtol(e->d_name, NULL, 10);

        if (id > 0 && sched_getaffinity((pid_t)id, sizeof one, &one) == 0)
            CPU_OR(&all, &all, &one);
    }
    if (dir != NULL) closedir(dir);
    if (CPU_COUNT(&all) > 0) sched_setaffinity(0, sizeof all, &all);
}

/* Behind everything that computes.  If the system does not allow it, it is only less
 * polite. */
static void step_back(void)
{
    struct sched_param none = {0};

    sched_setscheduler(0, SCHED_BATCH, &none);
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 19);
    spread();
}

static void write_job(struct dnn_ckpts *c)
{
    c->rc = dnn_ckpt_write(c, &c->err);
    c->took = dnn_clock_now() - c->began;
}

static void *fly(void *arg)
{
    struct dnn_ckpts *c = arg;

    step_back();
    write_job(c);
    pthread_mutex_lock(&c->mutex);
    c->finished = true;
    pthread_cond_signal(&c->cond);
    pthread_mutex_unlock(&c->mutex);
    return NULL;
}

/* Signals are for the threads that know what to do with them.  If there is no thread
 * to be had, it is written here and now. */
static void start(struct dnn_ckpts *c)
{
    sigset_t all, was;

    c->finished = false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    c->flying = pthread_create(&c->thread, NULL, fly, c) == 0;
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    if (!c->flying) write_job(c);
}

/* ---- waiting ---- */

/* Whether it is finished, after at most so many seconds. */
static bool await(struct dnn_ckpts *c, double seconds)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds + 1;
    pthread_mutex_lock(&c->mutex);
    while (!c->finished &&
           pthread_cond_timedwait(&c->cond, &c->mutex, &until) != ETIMEDOUT)
        ;
    bool finished = c->finished;
    pthread_mutex_unlock(&c->mutex);
    return finished;
}

static void forget(struct ckpt_job *job)
{
    for (int i = 0; i < job->n; i++)
        dnn_free((char *)job->array[i].name);
    dnn_free(job->array);
    dnn_free(job->state);
    memset(job, 0, sizeof *job);
}

/* A writer that gets on may take as long as it likes: the others are told to wait on.
 * One that does not get on at all is given the communicator's deadline. */
static int wait_for_writer(struct dnn_ckpts *c, struct dnn_err *err)
{
    double most = c->comm == NULL ? 3600 : dnn_comm_deadline(c->comm) / 4;
    unsigned seen = 0;
    bool watched = false;
    int64_t done = 0;
    int rc = 0;

    if (!(most < 30)) most = 30;
    while (rc == 0 && done == 0) {
        unsigned way = atomic_load(&c->way);

        if (c->flying && c->comm != NULL && (!watched || way != seen)) {
            char *what = dnn_format("%s: writing the checkpoint of step %" PRId64,
                                    c->dir, c->job.step);
            dnn_comm_watch(c->comm, what, 0);
            dnn_free(what);
            watched = true;
            seen = way;
        }
        done = c->flying ? await(c, most) : 1;
        if (c->size > 1)
            rc = dnn_comm_allreduce(c->comm, "a checkpoint being written", &done, 1,
                                    DNN_COMM_I64, DNN_COMM_MIN, err);
    }
    if (watched) dnn_comm_unwatch(c->comm);
    return rc;
}

int dnn_ckpt_join(struct dnn_ckpts *c, struct dnn_err *err)
{
    int lost = wait_for_writer(c, err);

    if (c->flying) pthread_join(c->thread, NULL);
    c->flying = false;
    int rc = c->rc;
    if (c->job.array != NULL) c->all = c->took;
    forget(&c->job);
    c->rc = 0;
    if (lost < 0) return lost;
    if (rc < 0) *err = c->err;
    return dnn_ckpt_agree(c, rc, err);
}

int dnn_ckpt_wait(struct dnn_ckpts *c, struct dnn_err *err)
{
    struct dnn_err own = {0};

    return dnn_ckpt_join(c, err == NULL ? &own : err);
}

/* ---- the copy ---- */

static int size_of_copy(const struct dnn_ckpts *c, int n,
                        const struct dnn_ckpt_array *array, size_t *out,
                        struct dnn_err *err)
{
    size_t all = 0;

    for (int i = 0; i < n; i++) {
        size_t bytes;

        if (dnn_ckpt_bytes(&array[i], &bytes, err) < 0)
            return dnn_prefix(err, "%s: %s: ", c->dir, array[i].name);
        if (__builtin_add_overflow(all, bytes, &all) ||
            __builtin_add_overflow(all, (size_t)ALIGN, &all))
            return dnn_fail(err, DNN_ENOMEM,
                            "%s: the arrays to save have more bytes than there are "
                            "addresses",
                            c->dir);
    }
    *out = all;
    return 0;
}

/* Asked of the system itself, and in place before it is needed. */
static int reserve(struct dnn_ckpts *c, int n, const struct dnn_ckpt_array *array,
                   struct dnn_err *err)
{
    size_t bytes = 0;
    char want[32], had[32];

    DNN_TRY(dnn_ckpt_check(c->dir, n, array, err));
    DNN_TRY(size_of_copy(c, n, array, &bytes, err));
    if (!c->background || bytes <= c->copy_bytes) return 0;
    char *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (copy == MAP_FAILED)
        return dnn_fail(
            err, DNN_ENOMEM,
            "%s: no memory for a copy of the arrays to save: %s wanted for "
            "%d array%s, %s there; without writing in the background none is "
            "needed",
            c->dir, dnn_text_bytes(want, sizeof want, (double)bytes), n,
            n == 1 ? "" : "s", dnn_text_bytes(had, sizeof had, (double)c->copy_bytes));
    if (c->copy != NULL) munmap(c->copy, c->copy_bytes);
    c->copy = copy;
    c->copy_bytes = bytes;
    return 0;
}

int dnn_ckpt_reserve(struct dnn_ckpts *c, int n, const struct dnn_ckpt_array *array,
                     struct dnn_err *err)
{
    struct dnn_err own = {0};

    if (err == NULL) err = &own;
    DNN_TRY(dnn_ckpt_join(c, err)); /* the copy is being read otherwise */
    return dnn_ckpt_agree(c, c->rank == 0 ? reserve(c, n, array, err) : 0, err);
}

static void take(struct dnn_ckpts *c, int64_t step, int n,
                 const struct dnn_ckpt_array *array, const char *state, bool best)
{
    char *to = c->copy;

    c->job = (struct ckpt_job){
        .step = step,
        .best = best,
        .n = n,
        .array = dnn_alloc((size_t)n * sizeof *array + 1),
        .state = dnn_strdup(state == NULL ? "" : state),
    };
    for (int i = 0; i < n; i++) {
        size_t bytes = 0;

        dnn_ckpt_bytes(&array[i], &bytes, NULL); /* was looked at before */
        c->job.array[i] = array[i];
        c->job.array[i].name = dnn_strdup(array[i].name);
        if (!c->background || bytes == 0) continue;
        memcpy(to, array[i].data, bytes);
        c->job.array[i].data = to;
        to += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
}

/* ---- saving ---- */

int dnn_ckpt_save(struct dnn_ckpts *c, int64_t step, int n,
                  const struct dnn_ckpt_array *array, const char *state, bool best,
                  struct dnn_err *err)
{
    struct dnn_err own = {0};
    double began = dnn_clock_now();
    int rc;

    if (err == NULL) err = &own;
    DNN_TRY(dnn_ckpt_join(c, err));
    rc = step < 0 ? dnn_fail(err, DNN_EDATA, "%s: there is no step %" PRId64 " to save",
                             c->dir, step)
                  : 0;
    if (rc == 0 && c->rank == 0) rc = reserve(c, n, array, err);
    rc = dnn_ckpt_agree(c, rc, err);
    if (rc == 0 && c->rank == 0) {
        c->began = began;
        take(c, step, n, array, state, best);
        start(c);
    }
    if (rc == 0 && !c->background) rc = dnn_ckpt_join(c, err);
    c->held = dnn_clock_now() - began;
    return rc;
}

void dnn_ckpt_times(const struct dnn_ckpts *c, double *held, double *all)
{
    *held = c->held;
    *all = c->all;
}
