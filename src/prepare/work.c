/* work.c - the work directory, which keeps finished units of an interrupted
 * preparation.
 *
 * ".NAME.bp.work" next to the dataset contains a lock, a manifest with the fingerprint
 * of the preparation, and a file per finished unit.  Files are created atomically, so
 * all that exist after a crash can be used.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include "base/file.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *join(const char *dir, const char *name)
{
    return dnn_format("%s/%s", dir, name);
}

char *dnn_work_dir(const char *to)
{
    const char *slash = strrchr(to, '/');

    if (slash == NULL) return dnn_format(".%s.work", to);
    return dnn_format("%.*s.%s.work", (int)(slash + 1 - to), to, slash + 1);
}

/* ---- the lock ---- */

static int locked(const char *dir, int fd, struct dnn_err *err)
{
    char who[200] = "";
    ssize_t n = pread(fd, who, sizeof who - 1, 0);

    who[n > 0 ? n : 0] = '\0';
    who[strcspn(who, "\n")] = '\0';
    return dnn_fail(err, DNN_EIO,
                    "%s: another dnn-prepare is working on this dataset%s%s; wait for "
                    "it, or stop it",
                    dir, who[0] == '\0' ? "" : ": ", who);
}

static int take_lock(struct dnn_work *work, struct dnn_err *err)
{
    char *path = join(work->dir, "lock"), host[65] = "?";
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int rc = 0;

    for (;;) {
        struct stat ours, current;

        work->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (work->lock < 0) {
            rc = dnn_fail(err, DNN_EIO, "%s: cannot be created: %s", path,
                          strerror(errno));
            break;
        }
        if (fcntl(work->lock, F_SETLK, &all) < 0) {
            rc = errno == EACCES || errno == EAGAIN
                     ? locked(work->dir, work->lock, err)
                     : dnn_fail(err, DNN_EIO, "%s: cannot be locked: %s", path,
                                strerror(errno));
            close(work->lock);
            work->lock = -1;
            break;
        }
        /* The previous owner may have removed the file meanwhile. */
        if (stat(path, &current) == 0 && fstat(work->lock, &ours) == 0 &&
            current.st_ino == ours.st_ino && current.st_dev == ours.st_dev)
            break;
        close(work->lock);
        rc = dnn_file_make_dirs(work->dir, err);
        if (rc < 0) break;
    }
    dnn_free(path);
    if (rc < 0) return rc;
    gethostname(host, sizeof host - 1);
    char *who = dnn_format("process %ld on %s\n", (long)getpid(), host);
    /* Only for messages: a failure to write it is ignored. */
    if (ftruncate(work->lock, 0) == 0 && pwrite(work->lock, who, strlen(who), 0) < 0)
        dnn_log(DNN_DEBUG, "prepare", "%s: lock: %s", work->dir, strerror(errno));
    dnn_free(who);
    return 0;
}

/* ---- begin and end ---- */

/* Everything but the lock. */
static int clear(const char *dir, struct dnn_err *err)
{
    DIR *d = opendir(dir);
    int rc = 0;

    if (d == NULL)
        return dnn_fail(err, DNN_EIO, "%s: cannot be read: %s", dir, strerror(errno));
    for (struct dirent *e; rc == 0 && (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            strcmp(e->d_name, "lock") == 0)
            continue;
        char *path = join(dir, e->d_name);
        rc = dnn_file_remove_tree(path, err);
        dnn_free(path);
    }
    closedir(d);
    return rc;
}

/* Whether the manifest has our fingerprint; *found: there is a manifest. */
static bool continues(const struct dnn_work *work, bool *found)
{
    char *path = join(work->dir, "manifest"), *text = NULL;
    bool same = false;

    *found = dnn_file_read_text(path, 4096, &text, NULL) == 0;
    if (*found) same = strncmp(text, work->fingerprint, 32) == 0;
    dnn_free(text);
    dnn_free(path);
    return same;
}

int dnn_work_open(struct dnn_work *work, const char *to, const char *fingerprint,
                  bool restart, struct dnn_err *err)
{
    bool found = false;

    work->dir = dnn_work_dir(to);
    work->lock = -1;
    snprintf(work->fingerprint, sizeof work->fingerprint, "%s", fingerprint);
    DNN_TRY(dnn_file_make_dirs(work->dir, err));
    DNN_TRY(take_lock(work, err));
    if (continues(work, &found) && !restart) {
        dnn_log(DNN_INFO, "prepare", "%s: continuing the interrupted preparation", to);
        return 0;
    }
    if (found)
        dnn_log(DNN_INFO, "prepare", "%s: %s; starting over", to,
                restart ? "--restart given"
                        : "the interrupted preparation had another configuration, "
                          "version or other files");
    DNN_TRY(clear(work->dir, err));
    char *path = join(work->dir, "manifest");
    int rc = dnn_file_write(path, fingerprint, strlen(fingerprint), err);
    dnn_free(path);
    return rc;
}

void dnn_work_close(struct dnn_work *work, bool finished)
{
    struct dnn_err err = {0};

    if (work->lock >= 0) {
        if (finished && dnn_file_remove_tree(work->dir, &err) < 0)
            dnn_log(DNN_WARN, "prepare", "%s", err.text);
        close(work->lock);
    }
    dnn_free(work->dir);
    work->dir = NULL;
    work->lock = -1;
}

/* ---- units ---- */

/* The head of the file of a unit. */
struct head {
    char magic[8];
    uint64_t len;
    char sum[33], fingerprint[33], pass[30];
    int64_t number;
};
static const char magic[8] = "dnnunit1";

static char *unit_path(const struct dnn_work *work, const char *pass, int64_t number)
{
    return dnn_format("%s/%s-%08" PRId64, work->dir, pass, number);
}

int dnn_work_save(const struct dnn_work *work, const char *pass, int64_t number,
                  const void *bytes, size_t len, struct dnn_err *err)
{
    char *path = unit_path(work, pass, number);
    struct head head;
    struct dnn_file *file = NULL;

    memset(&head, 0, sizeof head);
    memcpy(head.magic, magic, sizeof magic);
    head.len = len;
    head.number = number;
    dnn_sum_text(bytes, len, head.sum);
    memcpy(head.fingerprint, work->fingerprint, sizeof head.fingerprint);
    snprintf(head.pass, sizeof head.pass, "%s", pass);
    int rc = dnn_file_open(path, &file, err);
    dnn_free(path);
    if (rc < 0) return rc;
    rc = dnn_file_add(file, &head, sizeof head, err);
    if (rc == 0) rc = dnn_file_add(file, bytes, len, err);
    if (rc == 0) return dnn_file_commit(file, err);
    dnn_file_abandon(file);
    return rc;
}

int dnn_work_load(const struct dnn_work *work, const char *pass, int64_t number,
                  char **out, size_t *len, struct dnn_err *err)
{
    char *path = unit_path(work, pass, number), sum[33] = "";
    struct head head;
    int rc = dnn_file_read(path, (size_t)1 << 46, out, len, err);

    if (rc == 0) {
        bool good = *len >= sizeof head;

        if (good) memcpy(&head, *out, sizeof head);
        good =
            good && memcmp(head.magic, magic, sizeof magic) == 0 &&
            head.len == *len - sizeof head && head.number == number &&
            strncmp(head.pass, pass, sizeof head.pass) == 0 &&
            memcmp(head.fingerprint, work->fingerprint, sizeof head.fingerprint) == 0;
        if (good) dnn_sum_text(*out + sizeof head, head.len, sum);
        if (!good || memcmp(sum, head.sum, sizeof sum) != 0) {
            dnn_free(*out);
            *out = NULL;
            dnn_work_remove(work, pass, number);
            rc = dnn_fail(
                err, DNN_EIO,
                "%s: damaged and removed; run the same command again to make it anew",
                path);
        } else {
            *len = head.len;
            memmove(*out, *out + sizeof head, head.len);
        }
    }
    dnn_free(path);
    return rc;
}

void dnn_work_remove(const struct dnn_work *work, const char *pass, int64_t number)
{
    char *path = unit_path(work, pass, number);

    unlink(path);
    dnn_free(path);
}

int dnn_work_list(const struct dnn_work *work, const char *pass, int64_t n,
                  unsigned char *done, struct dnn_err *err)
{
    size_t len = strlen(pass);
    DIR *d = opendir(work->dir);

    if (d == NULL)
        return dnn_fail(err, DNN_EIO, "%s: cannot be read: %s", work->dir,
                        strerror(errno));
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        long long number;

        if (strncmp(e->d_name, pass, len) != 0 || e->d_name[len] != '-') continue;
        const char *digits = e->d_name + len + 1;
        while (*digits == '0' && digits[1] != '\0')
            digits++;
        if (dnn_text_int(digits, &number) && number >= 0 && number < n)
            done[number] = 1;
    }
    closedir(d);
    return 0;
}
