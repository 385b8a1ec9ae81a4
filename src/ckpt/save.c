/* save.c - copy of the arrays, the writer thread, and waiting for it.
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
    struct dnn_err unused = {0};

    if (c->size == 1) return rc;
    return dnn_comm_agree(c->comm, rc, err == NULL ? &unused : err);
}

/* ---- the writer ---- */

/* Let the writer run on the cores of all threads of this process, because the calling
 * thread may be bound to one busy core. */
static void use_all_cores(void)
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

/* Run the writer with lower priority than the computing threads, if the system allows
 * it. */
static void lower_priority(void)
{
    struct sched_param none = {0};

    sched_setscheduler(0, SCHED_BATCH, &none);
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 19);
    use_all_cores();
}

static void write_job(struct dnn_ckpts *c)
{
    c->rc = dnn_ckpt_write(c, &c->err);
    c->took = dnn_clock_now() - c->began;
}

static void *writer_main(void *arg)
{
    struct dnn_ckpts *c = arg;

    lower_priority();
    write_job(c);
    pthread_mutex_lock(&c->mutex);
    c->finished = true;
    pthread_cond_signal(&c->cond);
    pthread_mutex_unlock(&c->mutex);
    return NULL;
}

/* Start the writer, with signals blocked.  If no thread can be created, write
 * synchronously. */
static void start(struct dnn_ckpts *c)
{
    sigset_t all, old_mask;

    c->finished = false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old_mask);
    c->running = pthread_create(&c->thread, NULL, writer_main, c) == 0;
    pthread_sigmask(SIG_SETMASK, &old_mask, NULL);
    if (!c->running) write_job(c);
}

/* ---- wait ---- */

/* Wait at most this time; returns whether the writer has finished. */
static bool wait_some(struct dnn_ckpts *c, double seconds)
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

static void free_job(struct ckpt_job *job)
{
    for (int i = 0; i < job->n; i++)
        dnn_free((char *)job->array[i].name);
    dnn_free(job->array);
    dnn_free(job->state);
    memset(job, 0, sizeof *job);
}

/* A writer that makes progress may take any time; without progress, the time limit of
 * the communicator applies. */
static int wait_for_writer(struct dnn_ckpts *c, struct dnn_err *err)
{
    double timeout = c->comm == NULL ? 3600 : dnn_comm_deadline(c->comm) / 4;
    unsigned seen = 0;
    bool watching = false;
    int64_t done = 0;
    int rc = 0;

    if (!(timeout < 30)) timeout = 30;
    while (rc == 0 && done == 0) {
        unsigned now = atomic_load(&c->progress);

        if (c->running && c->comm != NULL && (!watching || now != seen)) {
            char *what = dnn_format("%s: writing the checkpoint of step %" PRId64,
                                    c->dir, c->job.step);
            dnn_comm_watch(c->comm, what, 0);
            dnn_free(what);
            watching = true;
            seen = now;
        }
        done = c->running ? wait_some(c, timeout) : 1;
        if (c->size > 1)
            rc = dnn_comm_allreduce(c->comm, "writing a checkpoint", &done, 1,
                                    DNN_COMM_I64, DNN_COMM_MIN, err);
    }
    if (watching) dnn_comm_unwatch(c->comm);
    return rc;
}

int dnn_ckpt_wait(struct dnn_ckpts *c, struct dnn_err *err)
{
    int wait_rc = wait_for_writer(c, err);

    if (c->running) pthread_join(c->thread, NULL);
    c->running = false;
    int rc = c->rc;
    if (c->job.array != NULL) c->all = c->took;
    free_job(&c->job);
    c->rc = 0;
    if (wait_rc < 0) return wait_rc;
    if (rc < 0 && err != NULL) *err = c->err;
    return dnn_ckpt_agree(c, rc, err);
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
            return dnn_fail(err, DNN_ENOMEM, "%s: the arrays to save are too large",
                            c->dir);
    }
    *out = all;
    return 0;
}

/* Allocate the copy with MAP_POPULATE, so that its pages are allocated now. */
static int reserve(struct dnn_ckpts *c, int n, const struct dnn_ckpt_array *array,
                   struct dnn_err *err)
{
    size_t bytes = 0;
    char needed[32], allocated[32];

    DNN_TRY(dnn_ckpt_check(c->dir, n, array, err));
    DNN_TRY(size_of_copy(c, n, array, &bytes, err));
    if (!c->background || bytes <= c->copy_bytes) return 0;
    char *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (copy == MAP_FAILED)
        return dnn_fail(
            err, DNN_ENOMEM,
            "%s: a copy of the arrays to save needs %s of memory for %d array%s (%s "
            "allocated), which is not available; without background writing no copy is "
            "needed",
            c->dir, dnn_text_bytes(needed, sizeof needed, (double)bytes), n,
            n == 1 ? "" : "s",
            dnn_text_bytes(allocated, sizeof allocated, (double)c->copy_bytes));
    if (c->copy != NULL) munmap(c->copy, c->copy_bytes);
    c->copy = copy;
    c->copy_bytes = bytes;
    return 0;
}

int dnn_ckpt_reserve(struct dnn_ckpts *c, int n, const struct dnn_ckpt_array *array,
                     struct dnn_err *err)
{
    DNN_TRY(dnn_ckpt_wait(c, err)); /* the writer uses the copy */
    return dnn_ckpt_agree(c, c->rank == 0 ? reserve(c, n, array, err) : 0, err);
}

static void copy_arrays(struct dnn_ckpts *c, int64_t step, int n,
                        const struct dnn_ckpt_array *array, const char *state,
                        bool best)
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

        dnn_ckpt_bytes(&array[i], &bytes, NULL); /* checked before */
        c->job.array[i] = array[i];
        c->job.array[i].name = dnn_strdup(array[i].name);
        if (!c->background || bytes == 0) continue;
        memcpy(to, array[i].data, bytes);
        c->job.array[i].data = to;
        to += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
}

/* ---- save ---- */

int dnn_ckpt_save(struct dnn_ckpts *c, int64_t step, int n,
                  const struct dnn_ckpt_array *array, const char *state, bool best,
                  struct dnn_err *err)
{
    double began = dnn_clock_now();
    int rc;

    DNN_TRY(dnn_ckpt_wait(c, err));
    rc = step < 0
             ? dnn_fail(err, DNN_EDATA, "%s: step is %" PRId64 "; must not be negative",
                        c->dir, step)
             : 0;
    if (rc == 0 && c->rank == 0) rc = reserve(c, n, array, err);
    rc = dnn_ckpt_agree(c, rc, err);
    if (rc == 0 && c->rank == 0) {
        c->began = began;
        copy_arrays(c, step, n, array, state, best);
        start(c);
    }
    if (rc == 0 && !c->background) rc = dnn_ckpt_wait(c, err);
    c->blocked = dnn_clock_now() - began;
    return rc;
}

void dnn_ckpt_times(const struct dnn_ckpts *c, double *blocked, double *all)
{
    *blocked = c->blocked;
    *all = c->all;
}
