/* feed_preload.c - loads all samples into memory, once per node, with all of its ranks.
 *
 * Several ranks of a node share a segment of POSIX shared memory, whose name is removed
 * as soon as all have mapped it: nothing remains, however the ranks end.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "data/feed_impl.h"

#include "base/mem.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { NAME = 64, ALIGN = 64 };
static const char shm_dir[] = "/dev/shm"; /* of the segments on Linux */
static const size_t block_bytes = 16 << 20;

static int agree(struct dnn_feed *feed, int rc, struct dnn_err *err)
{
    return feed->comm == NULL ? rc : dnn_comm_agree(feed->comm, rc, err);
}

/* ---- available memory ---- */

static int not_enough(const struct dnn_feed *feed, double available_bytes,
                      const char *where, struct dnn_err *err)
{
    char a[32], b[32];

    return dnn_fail(
        err, DNN_ENOMEM,
        "%s: preload needs %s for %" PRId64
        " samples, but %s has only %s free; turn preload off, or use more nodes",
        feed->about, dnn_text_bytes(a, sizeof a, (double)feed->shared_bytes),
        feed->count, where, dnn_text_bytes(b, sizeof b, available_bytes));
}

static int check_memory(const struct dnn_feed *feed, bool shm, struct dnn_err *err)
{
    double need = (double)feed->shared_bytes, memory = (double)dnn_memory_available();
    struct statvfs fs;

    if (feed->cfg.memory > 0 &&
        (double)feed->bytes + need / feed->local_size > (double)feed->cfg.memory) {
        char a[32], b[32];

        return dnn_fail(err, DNN_ENOMEM,
                        "%s: preload needs %s on each node for %" PRId64
                        " samples, which exceeds the limit of %s per rank",
                        feed->about, dnn_text_bytes(a, sizeof a, need), feed->count,
                        dnn_text_bytes(b, sizeof b, (double)feed->cfg.memory));
    }
    if (need > memory) return not_enough(feed, memory, "memory", err);
    if (!shm || statvfs(shm_dir, &fs) < 0) return 0;
    double space = (double)fs.f_bavail * (double)fs.f_frsize;
    return need > space ? not_enough(feed, space, shm_dir, err) : 0;
}

/* ---- the memory ---- */

static int map(struct dnn_feed *feed, int fd, struct dnn_err *err)
{
    int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *at = mmap(NULL, feed->shared_bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

    if (at == MAP_FAILED)
        return dnn_fail(err, DNN_ENOMEM, "%s: preload: %zu bytes: %s", feed->about,
                        feed->shared_bytes, strerror(errno));
    feed->shared = at;
    return 0;
}

/* Allocates all pages now: later a missing page would end the process (SIGBUS). */
static int create(struct dnn_feed *feed, char name[NAME], struct dnn_err *err)
{
    static _Atomic int made;

    snprintf(name, NAME, "/dnn-feed-%ld-%d", (long)getpid(), made++);
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), rc;
    if (fd < 0) {
        rc = dnn_fail(err, DNN_EIO, "%s%s: %s", shm_dir, name, strerror(errno));
        name[0] = '\0';
        return rc;
    }
    do
        rc = posix_fallocate(fd, 0, (off_t)feed->shared_bytes);
    while (rc == EINTR);
    if (rc == ENOSPC)
        rc = not_enough(feed, 0, shm_dir, err);
    else if (rc != 0)
        rc = dnn_fail(err, DNN_EIO, "%s%s: %s", shm_dir, name, strerror(rc));
    else
        rc = map(feed, fd, err);
    close(fd);
    return rc;
}

static int attach(struct dnn_feed *feed, const char *name, struct dnn_err *err)
{
    int fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);

    if (fd < 0)
        return dnn_fail(err, DNN_EIO, "%s%s: %s", shm_dir, name, strerror(errno));
    int rc = map(feed, fd, err);
    close(fd);
    return rc;
}

/* The name chosen by the first rank of our node. */
static const char *node_name(const struct dnn_feed *feed, const char *all)
{
    int here = dnn_comm_node(feed->comm, feed->rank), r = 0;

    while (dnn_comm_node(feed->comm, r) != here)
        r++;
    return all + (size_t)r * NAME;
}

static int share(struct dnn_feed *feed, struct dnn_err *err)
{
    char name[NAME] = "", *all = dnn_alloc((size_t)feed->size * NAME);
    bool shm = feed->local_size > 1, first = feed->local_rank == 0;
    int rc = first ? check_memory(feed, shm, err) : 0;

    if (rc == 0 && first) rc = shm ? create(feed, name, err) : map(feed, -1, err);
    rc = agree(feed, rc, err);
    if (rc == 0 && feed->size > 1)
        rc = dnn_comm_allgather(feed->comm, "names of shared memory", name, NAME, all,
                                err);
    if (rc == 0 && !first) rc = attach(feed, node_name(feed, all), err);
    /* Remove the name, also after an error. */
    rc = agree(feed, rc, err);
    if (name[0] != '\0') shm_unlink(name);
    dnn_free(all);
    return rc;
}

/* ---- the samples ---- */

/* The ranks of the node read blocks round-robin. */
static int fill_rows(struct dnn_feed *feed, struct dnn_progress *progress,
                     struct dnn_err *err)
{
    int64_t fit = (int64_t)(block_bytes / (dnn_feed_stored(feed) + 1)) + 1;
    int64_t block =
        (fit + feed->order.chunk - 1) / feed->order.chunk * feed->order.chunk;

    for (int64_t b = feed->local_rank; b * block < feed->count; b += feed->local_size) {
        int64_t first = b * block, left = feed->count - first;
        int64_t n = left < block ? left : block;

        for (int k = 0; k < feed->ncols; k++)
            DNN_TRY(dnn_feed_rows(
                feed, k, first, n,
                feed->window[0].base[k] + (size_t)first * feed->col[k].stored, err));
        DNN_TRY(dnn_dataset_fetch(feed->dataset, err));
        if (progress != NULL) dnn_progress_at(progress, first + n);
    }
    return 0;
}

/* All threads read samples of a source; of several errors, that of the lowest sample
 * number is reported. */
struct filling {
    _Atomic int64_t next;
    _Atomic bool failed;
    pthread_mutex_t lock;
    int64_t bad;
    int rc;
    struct dnn_err err;
};

static int fill_job(struct dnn_feed_worker *w)
{
    struct dnn_feed *feed = w->feed;
    struct filling *f = feed->filling;
    struct dnn_err err = {0};

    while (!f->failed) {
        int64_t i = atomic_fetch_add(&f->next, feed->local_size);

        if (i >= feed->count) break;
        int rc = dnn_feed_read_source(feed, i, &w->raw, &err);
        for (int k = 0; k < feed->ncols && rc == 0; k++)
            memcpy(feed->window[0].base[k] + (size_t)i * feed->col[k].stored,
                   w->raw.col[k].data, feed->col[k].stored);
        if (rc == 0) continue;
        f->failed = true;
        pthread_mutex_lock(&f->lock);
        if (f->rc == 0 || i < f->bad) {
            f->bad = i;
            f->rc = rc;
            f->err = err;
        }
        pthread_mutex_unlock(&f->lock);
    }
    return 0;
}

static int fill_from_source(struct dnn_feed *feed, struct dnn_err *err)
{
    struct filling f = {.next = feed->local_rank, .lock = PTHREAD_MUTEX_INITIALIZER};

    feed->filling = &f;
    int rc = dnn_feed_begin(feed, fill_job, err);
    dnn_feed_end(feed);
    feed->filling = NULL;
    pthread_mutex_destroy(&f.lock);
    if (rc == 0 && f.rc < 0) {
        rc = f.rc;
        *err = f.err;
    }
    return rc;
}

int dnn_feed_preload(struct dnn_feed *feed, struct dnn_err *err)
{
    size_t at[DNN_MAX_COLUMNS], used = 0;

    for (int k = 0; k < feed->ncols; k++) {
        size_t bytes;

        at[k] = used;
        if (__builtin_mul_overflow((size_t)feed->count, feed->col[k].stored, &bytes) ||
            bytes > SIZE_MAX / 4 - used)
            bytes = SIZE_MAX / 4 - used; /* reported as too large */
        used += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
    feed->shared_bytes = used > 0 ? used : ALIGN;
    size_t share_bytes = feed->shared_bytes / (size_t)feed->local_size;
    if (feed->cfg.dry_run) {
        feed->bytes += share_bytes;
        return 0;
    }
    DNN_TRY(share(feed, err));
    for (int k = 0; k < feed->ncols; k++)
        feed->window[0].base[k] = (char *)feed->shared + at[k];
    struct dnn_progress *progress =
        feed->rank == 0
            ? dnn_progress_start("data", "preloading", feed->count, "samples", NULL)
            : NULL;
    int rc = feed->dataset != NULL ? fill_rows(feed, progress, err)
                                   : fill_from_source(feed, err);
    if (progress != NULL && rc == 0) dnn_progress_at(progress, feed->count);
    dnn_progress_stop(progress, rc == 0);
    feed->window[0].seq = 0;
    feed->window[0].n = feed->window[0].loaded = 1;
    feed->bytes += share_bytes;
    return agree(feed, rc, err);
}

void dnn_feed_unload(struct dnn_feed *feed)
{
    if (feed->shared != NULL) munmap(feed->shared, feed->shared_bytes);
    feed->shared = NULL;
}
