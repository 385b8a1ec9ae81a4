/* open.c - the directory of checkpoints: create, lock, clean up.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "ckpt/ckpt_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the lock ---- */

/* Return the error, with host and process that hold the lock, from the lock file. */
static int fail_locked(const char *dir, int fd, struct dnn_err *err)
{
    char host[300] = "";
    long pid = 0;
    char text[400] = "";
    ssize_t n = pread(fd, text, sizeof text - 1, 0);

    text[n < 0 ? 0 : n] = '\0';
    if (sscanf(text, "%299s %ld", host, &pid) != 2)
        return dnn_fail(
            err, DNN_EIO,
            "%s: another run is using it; every run needs its own directory", dir);
    return dnn_fail(
        err, DNN_EIO,
        "%s: process %ld on %s is using it; every run needs its own directory", dir,
        pid, host);
}

static int write_owner(const char *path, int fd, struct dnn_err *err)
{
    char host[256] = "", text[300];

    if (gethostname(host, sizeof host - 1) != 0) snprintf(host, sizeof host, "?");
    int n = snprintf(text, sizeof text, "%s %ld\n", host, (long)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n)
        return dnn_fail(err, DNN_EIO, "%s: cannot be written: %s", path,
                        strerror(errno));
    return 0;
}

/* Lock the directory by an open file description lock: it is exclusive also within a
 * process, and released when the process ends. */
static int lock(struct dnn_ckpts *c, struct dnn_err *err)
{
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char *path = dnn_ckpt_path(c->dir, "lock");
    int rc = 0;

    c->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (c->lock < 0)
        rc = dnn_fail(err, DNN_EIO, "%s: cannot be written: %s", path, strerror(errno));
    else if (fcntl(c->lock, F_OFD_SETLK, &range) == 0)
        rc = write_owner(path, c->lock, err);
    else if (errno == EAGAIN || errno == EACCES)
        rc = fail_locked(c->dir, c->lock, err);
    else /* Lustre without -o flock */
        dnn_log(DNN_WARN, "ckpt",
                "%s: cannot be locked (%s); make sure that no other run uses this "
                "directory",
                path, strerror(errno));
    dnn_free(path);
    return rc;
}

/* ---- cleaning up ---- */

/* A killed run was replacing or removing the checkpoint ".ckpt-000000012.bp.old".
 * Restore it if it was being replaced: then its name is not used and .part exists.
 * Otherwise remove it. */
static int clean_up_old(const char *dir, const char *entry, const char *full,
                        struct dnn_err *err)
{
    char *name = dnn_strndup(entry + 1, strlen(entry) - 1 - strlen(".old"));
    char *part = dnn_format("%s/.%s.part", dir, name), *path = dnn_ckpt_path(dir, name);
    struct stat st;
    int rc = 0;

    if (lstat(path, &st) < 0 && lstat(part, &st) == 0) {
        if (rename(full, path) < 0)
            rc = dnn_fail(err, DNN_EIO, "%s: cannot be renamed to %s: %s", full, path,
                          strerror(errno));
    } else
        rc = dnn_file_remove_tree(full, err);
    dnn_free(name);
    dnn_free(part);
    dnn_free(path);
    return rc;
}

/* Clean up the files with a suffix: first call it for .old, which needs .part, then for
 * .part. */
static int clean_up(const char *dir, const char *suffix, struct dnn_err *err)
{
    DIR *d = opendir(dir);
    int rc = 0;

    if (d == NULL) return dnn_fail(err, DNN_EIO, "%s: %s", dir, strerror(errno));
    for (struct dirent *e; rc == 0 && (e = readdir(d)) != NULL;) {
        if (strncmp(e->d_name, ".ckpt-", 6) != 0 || !dnn_text_ends(e->d_name, suffix))
            continue;
        char *full = dnn_ckpt_path(dir, e->d_name);
        if (strcmp(suffix, ".old") == 0)
            rc = clean_up_old(dir, e->d_name, full, err);
        else {
            dnn_log(DNN_INFO, "ckpt", "%s: removed, left by a killed run", full);
            rc = dnn_file_remove_tree(full, err);
        }
        dnn_free(full);
    }
    closedir(d);
    return rc;
}

/* Complete the link to the best checkpoint; if this does not exist, remove the link. */
static int finish_link(const char *dir, struct dnn_err *err)
{
    char *link = dnn_ckpt_path(dir, DNN_CKPT_BEST_PART);
    char *best = dnn_ckpt_path(dir, DNN_CKPT_BEST);
    struct stat st;
    int rc = 0;

    if (stat(link, &st) == 0 ? rename(link, best) < 0
                             : unlink(link) < 0 && errno != ENOENT)
        rc = dnn_fail(err, DNN_EIO, "%s: %s", link, strerror(errno));
    dnn_free(link);
    dnn_free(best);
    return rc;
}

static int prepare_dir(struct dnn_ckpts *c, struct dnn_err *err)
{
    DNN_TRY(dnn_file_make_dirs(c->dir, err));
    DNN_TRY(lock(c, err));
    DNN_TRY(clean_up(c->dir, ".old", err));
    DNN_TRY(clean_up(c->dir, ".part", err));
    DNN_TRY(finish_link(c->dir, err));
    return dnn_ckpt_list(c->dir, &c->step, &c->nsteps, &c->cap, &c->best, err);
}

/* ---- public ---- */

static void release(struct dnn_ckpts *c)
{
    if (c->lock >= 0) close(c->lock);
    if (c->copy != NULL) munmap(c->copy, c->copy_bytes);
    pthread_cond_destroy(&c->cond);
    pthread_mutex_destroy(&c->mutex);
    dnn_free(c->step);
    dnn_free(c->dir);
    dnn_free(c);
}

static struct dnn_ckpts *make(struct dnn_comm *comm, const struct dnn_ckpt_cfg *cfg)
{
    struct dnn_ckpts *c = dnn_alloc(sizeof *c);
    pthread_condattr_t attr;

    c->comm = comm;
    c->size = comm == NULL ? 1 : dnn_comm_size(comm);
    c->rank = comm == NULL ? 0 : dnn_comm_rank(comm);
    c->dir = dnn_strdup(cfg->dir);
    c->keep = cfg->keep;
    c->background = cfg->background;
    c->lock = -1;
    c->best = -1;
    pthread_mutex_init(&c->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->cond, &attr);
    pthread_condattr_destroy(&attr);
    return c;
}

int dnn_ckpt_open(struct dnn_comm *comm, const struct dnn_ckpt_cfg *cfg,
                  struct dnn_ckpts **out, struct dnn_err *err)
{
    struct dnn_ckpts *c = make(comm, cfg);
    int rc = 0;

    if (c->keep < 1)
        rc = dnn_fail(err, DNN_ECONFIG,
                      "%s: number of checkpoints to keep is %d; must be at least 1",
                      c->dir, c->keep);
    if (rc == 0 && c->rank == 0) rc = prepare_dir(c, err);
    rc = dnn_ckpt_agree(c, rc, err);
    if (rc < 0) {
        release(c);
        return rc;
    }
    *out = c;
    return 0;
}

int dnn_ckpt_close(struct dnn_ckpts *c, struct dnn_err *err)
{
    if (c == NULL) return 0;
    int rc = dnn_ckpt_wait(c, err);
    release(c);
    return rc;
}
