/* list.c - existing checkpoints, which to keep, and the best.
 *
 * best.bp is a link to the best checkpoint.  A new link is created as .best.part before
 * its checkpoint is renamed, and renamed afterwards; if the run is killed in between,
 * the next run completes it.  A checkpoint to remove is first renamed to a hidden name,
 * so that an incomplete one never has a valid name.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "ckpt/ckpt_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *dnn_ckpt_name(int64_t step)
{
    return dnn_format("ckpt-%09" PRId64 ".bp", step);
}

static int64_t name_step(const char *name)
{
    char digits[24];
    long long step;
    size_t n = strncmp(name, "ckpt-", 5) == 0 ? strspn(name + 5, "0123456789") : 0;

    if (n < 9 || n >= sizeof digits || strcmp(name + 5 + n, ".bp") != 0) return -1;
    memcpy(digits, name + 5, n);
    digits[n] = '\0';
    if (!dnn_text_int(digits, &step)) return -1;
    char *again = dnn_ckpt_name(step);
    bool same = strcmp(again, name) == 0;
    dnn_free(again);
    return same ? step : -1;
}

char *dnn_ckpt_path(const char *dir, const char *name)
{
    return dnn_format("%s/%s", dir, name);
}

int dnn_ckpt_sync(const char *dir, struct dnn_err *err)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

    /* Some file systems do not support fsync() of a directory. */
    if (fd < 0 || (fsync(fd) < 0 && errno != EINVAL))
        rc = dnn_fail(err, DNN_EIO, "%s: fsync failed: %s", dir, strerror(errno));
    if (fd >= 0) close(fd);
    return rc;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static bool has_step(const int64_t *step, size_t n, int64_t which)
{
    for (size_t i = 0; i < n; i++)
        if (step[i] == which) return true;
    return false;
}

/* The step of the checkpoint a link points to; -1: none. */
static int64_t link_step(const char *dir, const char *name)
{
    char *path = dnn_ckpt_path(dir, name), to[NAME_MAX + 1];
    ssize_t n = readlink(path, to, sizeof to - 1);

    dnn_free(path);
    if (n < 0) return -1;
    to[n] = '\0';
    return name_step(to);
}

int dnn_ckpt_list(const char *dir, int64_t **out, size_t *n, size_t *cap, int64_t *best,
                  struct dnn_err *err)
{
    DIR *d = opendir(dir);

    *n = 0;
    if (d == NULL) return dnn_fail(err, DNN_EIO, "%s: %s", dir, strerror(errno));
    errno = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL; errno = 0) {
        int64_t step = name_step(e->d_name);

        if (step < 0) continue;
        *out = dnn_grow(*out, cap, *n + 1, sizeof **out);
        (*out)[(*n)++] = step;
    }
    int why = errno;
    closedir(d);
    if (why != 0) return dnn_fail(err, DNN_EIO, "%s: %s", dir, strerror(why));
    if (*n > 0) qsort(*out, *n, sizeof **out, by_number);
    *best = link_step(dir, DNN_CKPT_BEST);
    if (!has_step(*out, *n, *best)) *best = -1;
    return 0;
}

static void remove_step(struct dnn_ckpts *c, int64_t step)
{
    size_t k = 0;

    for (size_t i = 0; i < c->nsteps; i++)
        if (c->step[i] != step) c->step[k++] = c->step[i];
    c->nsteps = k;
    if (c->best != step) return;
    char *link = dnn_ckpt_path(c->dir, DNN_CKPT_BEST);
    unlink(link);
    dnn_free(link);
    c->best = -1;
}

char *dnn_ckpt_rename(struct dnn_ckpts *c, int64_t step, const char *suffix,
                      struct dnn_err *err)
{
    char *name = dnn_ckpt_name(step), *from = dnn_ckpt_path(c->dir, name);
    char *to = dnn_format("%s.%s", from, suffix);
    struct stat st;

    for (int i = 2; lstat(to, &st) == 0; i++) {
        dnn_free(to);
        to = dnn_format("%s.%s-%d", from, suffix, i);
    }
    if (rename(from, to) < 0) {
        dnn_fail(err, DNN_EIO, "%s: cannot be renamed to %s: %s", from, to,
                 strerror(errno));
        dnn_free(to);
        to = NULL;
    }
    remove_step(c, step);
    dnn_free(name);
    dnn_free(from);
    return to;
}

/* Remove a checkpoint.  A failure is logged as a warning; it is tried again after the
 * next save. */
static bool remove_one(struct dnn_ckpts *c, int64_t step)
{
    char *name = dnn_ckpt_name(step), *from = dnn_ckpt_path(c->dir, name);
    char *hidden = dnn_format("%s/.%s.old", c->dir, name);
    struct dnn_err err = {0};

    int rc = dnn_file_remove_tree(hidden, &err);
    if (rc == 0 && rename(from, hidden) < 0 && errno != ENOENT)
        rc =
            dnn_fail(&err, DNN_EIO, "%s: cannot be removed: %s", from, strerror(errno));
    bool gone = rc == 0;
    if (rc == 0) rc = dnn_file_remove_tree(hidden, &err);
    if (rc < 0) dnn_log_once(DNN_WARN, "ckpt", "%s", err.text);
    dnn_free(name);
    dnn_free(from);
    dnn_free(hidden);
    return gone;
}

static void rename_later(struct dnn_ckpts *c, int64_t step)
{
    while (c->nsteps > 0 && c->step[c->nsteps - 1] > step) {
        struct dnn_err err = {0};
        int64_t later = c->step[c->nsteps - 1];
        char *to = dnn_ckpt_rename(c, later, "superseded", &err);

        if (to == NULL)
            dnn_log(DNN_WARN, "ckpt", "%s", err.text);
        else
            dnn_log(DNN_WARN, "ckpt",
                    "%s: renamed, because it is of a later step than %" PRId64
                    ", which is "
                    "being saved, and so of another run",
                    to, step);
        dnn_free(to);
    }
}

void dnn_ckpt_keep(struct dnn_ckpts *c, int64_t step, bool best)
{
    /* Before a later one is renamed, which removes the link if that is the best. */
    if (best) c->best = step;
    rename_later(c, step);
    if (!has_step(c->step, c->nsteps, step)) {
        c->step = dnn_grow(c->step, &c->cap, c->nsteps + 1, sizeof *c->step);
        c->step[c->nsteps++] = step;
    }
    size_t old = c->nsteps > (size_t)c->keep ? c->nsteps - (size_t)c->keep : 0, k = 0;
    for (size_t i = 0; i < c->nsteps; i++) {
        int64_t s = c->step[i];

        if (i >= old || s == c->best || !remove_one(c, s)) c->step[k++] = s;
    }
    c->nsteps = k;
}

/* ---- find a checkpoint ---- */

static int path_of_step(const char *dir, int64_t best, char **out, struct dnn_err *err)
{
    if (best < 0) return dnn_fail(err, DNN_EDATA, "%s: no best checkpoint found", dir);
    char *name = dnn_ckpt_name(best);
    *out = dnn_ckpt_path(dir, name);
    dnn_free(name);
    return 0;
}

static int find_step(const char *dir, const int64_t *step, size_t n, int64_t wanted,
                     char **out, struct dnn_err *err)
{
    struct dnn_buf list = {0};

    if (has_step(step, n, wanted)) return path_of_step(dir, wanted, out, err);
    for (size_t i = 0; i < n && i < 20; i++)
        dnn_buf_add(&list, "%s%" PRId64, i > 0 ? ", " : "", step[i]);
    int rc =
        dnn_fail(err, DNN_EDATA, "%s: no checkpoint of step %" PRId64 "; %s%s%s", dir,
                 wanted, n == 0 ? "there is none" : "found: ", n == 0 ? "" : list.text,
                 n > 20 ? "..." : "");
    dnn_buf_free(&list);
    return rc;
}

int dnn_ckpt_find(const char *dir, const char *wanted, char **out, struct dnn_err *err)
{
    size_t n = 0, cap = 0, digits = wanted == NULL ? 0 : strspn(wanted, "0123456789");
    int64_t *step = NULL, best;
    long long number;

    if (wanted != NULL && strcmp(wanted, "best") != 0 &&
        (digits == 0 || wanted[digits] != '\0')) {
        *out = dnn_strdup(wanted);
        return 0;
    }
    int rc = dnn_ckpt_list(dir, &step, &n, &cap, &best, err);
    if (rc < 0)
        ;
    else if (wanted == NULL && n == 0)
        rc = dnn_fail(err, DNN_EDATA, "%s: no checkpoint found", dir);
    else if (wanted == NULL)
        rc = path_of_step(dir, step[n - 1], out, err);
    else if (digits == 0)
        rc = path_of_step(dir, best, out, err);
    else if (!dnn_text_int(wanted, &number))
        rc = dnn_fail(err, DNN_EUSAGE, "%s: is not a step number", wanted);
    else
        rc = find_step(dir, step, n, number, out, err);
    dnn_free(step);
    return rc;
}
