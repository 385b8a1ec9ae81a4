/* write.c - write one checkpoint; on the writer thread, so without MPI.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/mem.h"
#include "bp/bp.h"
#include "ckpt/ckpt_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <xxhash.h>

/* Bytes written at once, between two flushes, and between two calls of fsync(). */
enum { BLOCK = 16 << 20, UNFLUSHED = 64 << 20, UNSYNCED = 256 << 20 };
/* With fewer free bytes, the disk counts as full. */
enum { FULL_DISK = 32 << 10 };

/* A file being written. */
struct output {
    struct dnn_bp *bp;
    const char *part;
    size_t unflushed, unsynced;
};

/* Sync the files.  This is done several times, so that the last sync is short. */
static int sync_files(const char *part, struct dnn_err *err)
{
    DIR *dir = opendir(part);
    int rc = 0;

    if (dir == NULL) return dnn_fail(err, DNN_EIO, "%s: %s", part, strerror(errno));
    for (struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        int fd = openat(dirfd(dir), e->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fsync(fd) < 0)
            rc = dnn_fail(err, DNN_EIO, "%s/%s: %s", part, e->d_name, strerror(errno));
        if (fd >= 0) close(fd);
    }
    closedir(dir);
    return rc;
}

static int flush_some(struct output *out, size_t bytes, struct dnn_err *err)
{
    out->unflushed += bytes;
    out->unsynced += bytes;
    if (out->unflushed < UNFLUSHED) return 0;
    DNN_TRY(dnn_bp_flush(out->bp, err));
    out->unflushed = 0;
    if (out->unsynced < UNSYNCED) return 0;
    out->unsynced = 0;
    return sync_files(out->part, err);
}

static int put_array(struct dnn_ckpts *c, struct output *out,
                     const struct dnn_ckpt_array *a, size_t bytes, struct dnn_err *err)
{
    struct dnn_shape shape = a->shape;
    int var;

    if (shape.ndim == 0) shape = (struct dnn_shape){.ndim = 1, .dim = {1}};
    DNN_TRY(dnn_bp_define(out->bp, a->name, a->type, &shape, true, &var, err));
    int64_t rows = shape.dim[0];
    size_t row = bytes / (size_t)rows;
    int64_t max = row >= BLOCK ? 1 : (int64_t)(BLOCK / row);
    for (int64_t at = 0; at < rows; at += max) {
        int64_t n = rows - at < max ? rows - at : max;
        const char *from = (const char *)a->data + (size_t)at * row;

        DNN_TRY(dnn_bp_put(out->bp, var, at, n, from, err));
        DNN_TRY(flush_some(out, (size_t)n * row, err));
        atomic_fetch_add(&c->progress, 1);
    }
    return 0;
}

static int put_texts(const struct ckpt_job *job, struct dnn_bp *bp, uint64_t *sum,
                     struct dnn_err *err)
{
    struct ckpt_table table = {.step = job->step,
                               .n = job->n,
                               .array = job->array,
                               .sum = sum,
                               .state_bytes = strlen(job->state)};
    struct dnn_buf text = {0};
    char hex[17];

    dnn_ckpt_table_print(&table, &text);
    snprintf(hex, sizeof hex, "%016" PRIx64, dnn_ckpt_table_sum(text.text, job->state));
    int rc = dnn_bp_attr_text(bp, "ckpt/table", text.text, err);
    if (rc == 0 && job->state[0] != '\0')
        rc = dnn_bp_attr_text(bp, "ckpt/state", job->state, err);
    if (rc == 0) rc = dnn_bp_attr_text(bp, "ckpt/sum", hex, err);
    dnn_buf_free(&text);
    return rc;
}

/* Write an array of one byte: ADIOS2 requires at least one array in a file. */
static int put_placeholder(struct dnn_bp *bp, struct dnn_err *err)
{
    static const struct dnn_shape one = {.ndim = 1, .dim = {1}};
    static const uint8_t zero;
    int var;

    DNN_TRY(dnn_bp_define(bp, "ckpt/empty", DNN_U8, &one, true, &var, err));
    return dnn_bp_put(bp, var, 0, 1, &zero, err);
}

/* Write all arrays, large types first: then there is no padding, which would not be
 * covered by checksums. */
static int put_arrays(struct dnn_ckpts *c, struct output *out, uint64_t *sum,
                      struct dnn_err *err)
{
    size_t all = 0;

    for (size_t unit = 8; unit > 0; unit /= 2)
        for (int i = 0; i < c->job.n; i++) {
            const struct dnn_ckpt_array *a = &c->job.array[i];
            size_t bytes = 0;

            if (dnn_dtype_size(a->type) != unit) continue;
            DNN_TRY(dnn_ckpt_bytes(a, &bytes, err));
            sum[i] = XXH3_64bits(a->data, bytes);
            if (bytes > 0) DNN_TRY(put_array(c, out, a, bytes, err));
            all += bytes;
        }
    return all == 0 ? put_placeholder(out->bp, err) : 0;
}

static int put_all(struct dnn_ckpts *c, struct output *out, struct dnn_err *err)
{
    uint64_t *sum = dnn_alloc((size_t)c->job.n * sizeof *sum + 1);
    int rc = put_arrays(c, out, sum, err);

    if (rc == 0) rc = put_texts(&c->job, out->bp, sum, err);
    dnn_free(sum);
    return rc;
}

/* Create and remove a directory, because ADIOS2 does not report why it cannot create
 * one. */
static int try_mkdir(const char *part, struct dnn_err *err)
{
    if (mkdir(part, 0777) < 0 || rmdir(part) < 0)
        return dnn_fail(err, DNN_EIO, "%s: %s", part, strerror(errno));
    return 0;
}

/* Remove an incomplete checkpoint.  Its files are truncated first, because a failed
 * writer may still have them open, so that they would occupy disk space. */
static int discard(const char *path, struct dnn_err *err)
{
    DIR *dir = opendir(path);

    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        int fd = openat(dirfd(dir), e->d_name,
                        O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

        if (fd < 0) continue; /* also for "." and ".." */
        (void)!ftruncate(fd, 0);
        close(fd);
    }
    if (dir != NULL) closedir(dir);
    return dnn_file_remove_tree(path, err);
}

static int write_part(struct dnn_ckpts *c, const char *part, struct dnn_err *err)
{
    struct output out = {.part = part};

    DNN_TRY(discard(part, err));
    DNN_TRY(try_mkdir(part, err));
    DNN_TRY(dnn_bp_create(NULL, part, NULL, &out.bp, err));
    int rc = put_all(c, &out, err);
    if (rc < 0) {
        dnn_bp_close(out.bp);
        return rc;
    }
    atomic_fetch_add(&c->progress, 1);
    rc = dnn_bp_finish(out.bp, err);
    atomic_fetch_add(&c->progress, 1);
    return rc;
}

/* Rename part to path; an existing path is replaced.  This is atomic if the file system
 * can exchange names; otherwise it takes two steps, and dnn_ckpt_open() of the next run
 * repairs an interruption between them. */
static int rename_part(const char *part, const char *path, const char *old,
                       struct dnn_err *err)
{
    struct stat st;

    if (lstat(path, &st) == 0) {
        if (renameat2(AT_FDCWD, part, AT_FDCWD, path, RENAME_EXCHANGE) == 0)
            return discard(part, err);
        if (rename(path, old) < 0)
            return dnn_fail(err, DNN_EIO, "the old one cannot be renamed: %s",
                            strerror(errno));
        if (rename(part, path) == 0) return dnn_file_remove_tree(old, err);
        dnn_fail(err, DNN_EIO, "cannot be renamed: %s", strerror(errno));
        (void)!rename(old, path);
        return DNN_EIO;
    }
    if (rename(part, path) < 0)
        return dnn_fail(err, DNN_EIO, "cannot be renamed: %s", strerror(errno));
    return 0;
}

static int make_link(const char *name, const char *link, struct dnn_err *err)
{
    if ((unlink(link) < 0 && errno != ENOENT) || symlink(name, link) < 0)
        return dnn_fail(err, DNN_EIO, "%s: cannot be created: %s", link,
                        strerror(errno));
    return 0;
}

/* Rename a complete checkpoint to its final name. */
static int publish(struct dnn_ckpts *c, const char *name, const char *part,
                   const char *path, struct dnn_err *err)
{
    char *link = dnn_ckpt_path(c->dir, DNN_CKPT_BEST_PART);
    char *best = dnn_ckpt_path(c->dir, DNN_CKPT_BEST);
    char *old = dnn_format("%s/.%s.old", c->dir, name);
    int rc = c->job.best ? make_link(name, link, err) : 0;

    if (rc == 0) rc = rename_part(part, path, old, err);
    if (rc == 0) {
        bool linked = c->job.best && rename(link, best) == 0;

        if (c->job.best && !linked)
            rc = dnn_fail(err, DNN_EIO,
                          "is written, but cannot be marked as the best: %s: %s", best,
                          strerror(errno));
        if (rc == 0 && dnn_ckpt_sync(c->dir, err) < 0)
            rc = dnn_prefix(err, "is written, but not synced to disk: ");
        dnn_ckpt_keep(c, c->job.step, linked);
    }
    if (rc < 0 && c->job.best) unlink(link);
    dnn_free(link);
    dnn_free(best);
    dnn_free(old);
    return rc;
}

/* Free disk space in bytes. */
static double free_space(const struct dnn_ckpts *c)
{
    struct statvfs fs;

    if (statvfs(c->dir, &fs) < 0) return INFINITY;
    return (double)fs.f_bavail * (double)fs.f_frsize;
}

/* If the disk is full, add the needed and the free space to the error.  ADIOS2 may
 * report another error, so free_before, the free space before the cleanup, is checked,
 * too. */
static void add_disk_space(const struct dnn_ckpts *c, double free_before,
                           struct dnn_err *err)
{
    char want[32], has[32];
    bool full = strstr(err->text, strerror(ENOSPC)) != NULL;
    double bytes = 0, free_now = free_space(c);

    for (int i = 0; i < c->job.n; i++) {
        size_t n;
        if (dnn_ckpt_bytes(&c->job.array[i], &n, NULL) == 0) bytes += (double)n;
    }
    if (isinf(free_now) || (free_now > bytes * 1.1 && free_before > FULL_DISK && !full))
        return;
    size_t len = strlen(err->text);
    snprintf(err->text + len, sizeof err->text - len,
             "%s (needs a little more than %s, %s free)",
             full ? "" : "; the disk is full", dnn_text_bytes(want, sizeof want, bytes),
             dnn_text_bytes(has, sizeof has, free_now));
}

int dnn_ckpt_write(struct dnn_ckpts *c, struct dnn_err *err)
{
    char *name = dnn_ckpt_name(c->job.step), *path = dnn_ckpt_path(c->dir, name);
    char *part = dnn_format("%s/.%s.part", c->dir, name);
    struct dnn_err why = {0};

    int rc = write_part(c, part, &why);
    if (rc == 0)
        rc = publish(c, name, part, path, &why);
    else
        dnn_prefix(&why, "cannot be written: ");
    if (rc < 0) {
        double free_before = free_space(c);

        discard(part, NULL); /* if it fails, the next dnn_ckpt_open() does it */
        add_disk_space(c, free_before, &why);
        dnn_fail(err, rc, "%s: %s", path, why.text);
    }
    dnn_free(name);
    dnn_free(path);
    dnn_free(part);
    return rc;
}
