/* dir.c - the directory of a cluster's files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "cluster/cluster_impl.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A directory that contains this file was made by dnn-cluster and may be cleared. */
static const char marker[] = "dnn-cluster";

/* Whether text has only letters, digits and the characters in others. */
static bool has_only(const char *text, const char *others)
{
    for (; *text != '\0'; text++)
        if (!isalnum((unsigned char)*text) && strchr(others, *text) == NULL)
            return false;
    return true;
}

int dnn_cluster_dir(const struct dnn_cluster_cfg *cfg, char dir[DNN_CLUSTER_PATH],
                    struct dnn_err *err)
{
    char cwd[4096] = "";
    int n;

    if (cfg->name[0] == '\0' || strlen(cfg->name) > 40 || !has_only(cfg->name, "-_"))
        return dnn_fail(err, DNN_EUSAGE,
                        "--name: must be 1 to 40 letters, digits, - and _, not \"%s\"",
                        cfg->name);
    if (cfg->dir == NULL) {
        n = snprintf(dir, DNN_CLUSTER_PATH, "/tmp/dnn-cluster-%u/%s",
                     (unsigned)geteuid(), cfg->name);
    } else {
        /* slurm.conf has no quotes, and its lists are separated by commas. */
        if (cfg->dir[0] == '\0' || !has_only(cfg->dir, "-_./+@"))
            return dnn_fail(
                err, DNN_EUSAGE,
                "--dir: \"%s\" is not possible in slurm.conf; only letters, "
                "digits and -_./+@ are allowed",
                cfg->dir);
        if (cfg->dir[0] != '/' && getcwd(cwd, sizeof cwd) == NULL)
            return dnn_fail(err, DNN_EIO, "--dir %s: the working directory: %s",
                            cfg->dir, strerror(errno));
        n = snprintf(dir, DNN_CLUSTER_PATH, "%s%s%s", cwd, cwd[0] == '\0' ? "" : "/",
                     cfg->dir);
    }
    if (n >= DNN_CLUSTER_PATH)
        return dnn_fail(err, DNN_EUSAGE,
                        "--dir: the path has %d characters; must be at most %d, for "
                        "the sockets in it",
                        n, DNN_CLUSTER_PATH - 1);
    if (!has_only(dir, "-_./+@"))
        return dnn_fail(err, DNN_EUSAGE,
                        "--dir: \"%s\" is not possible in slurm.conf; only letters, "
                        "digits and -_./+@ are allowed",
                        dir);
    return 0;
}

/* A directory of another user in /tmp must not be used. */
int dnn_cluster_dir_make(const char *dir, struct dnn_err *err)
{
    struct stat st;
    /* munged requires a directory that all users can enter and only we can write to. */
    mode_t mask = umask(022);
    int rc = dnn_file_make_dirs(dir, err);

    umask(mask);
    if (rc < 0) return rc;
    if (lstat(dir, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 022) != 0)
        return dnn_fail(err, DNN_EIO,
                        "%s: must be a directory that belongs to you and that nobody "
                        "else can write to",
                        dir);
    return 0;
}

/* Remove the content of the directory; fails if there are files and it is not ours.
 * The lock is kept, because it is held now and other starts may be waiting for it.  The
 * marker is kept, so that a start that is killed here can be repeated. */
static int remove_content(const char *dir, bool ours, struct dnn_err *err)
{
    DIR *d = opendir(dir);
    int rc = 0;

    if (d == NULL) return dnn_fail(err, DNN_EIO, "%s: %s", dir, strerror(errno));
    for (struct dirent *e; rc == 0 && (e = readdir(d)) != NULL;) {
        char path[DNN_CLUSTER_PATH + 257];

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            strcmp(e->d_name, "lock") == 0 || strcmp(e->d_name, marker) == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        rc = ours ? dnn_file_remove_tree(path, err)
                  : dnn_fail(err, DNN_EUSAGE,
                             "%s: contains files that are not of a cluster; choose an "
                             "empty or new directory",
                             dir);
    }
    closedir(d);
    return rc;
}

int dnn_cluster_dir_clear(const char *dir, int nodes, struct dnn_err *err)
{
    static const char *const subs[] = {"log", "state", NULL};
    char path[DNN_CLUSTER_PATH + 32];

    snprintf(path, sizeof path, "%s/%s", dir, marker);
    DNN_TRY(remove_content(dir, access(path, F_OK) == 0, err));
    DNN_TRY(dnn_cluster_dir_write(dir, marker, 0644, "", 0, err));
    for (int i = 0; subs[i] != NULL; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, subs[i]);
        DNN_TRY(dnn_cluster_dir_make(path, err));
    }
    for (int i = 1; i <= nodes; i++) {
        snprintf(path, sizeof path, "%s/spool/n%d", dir, i);
        DNN_TRY(dnn_cluster_dir_make(path, err));
    }
    return 0;
}

int dnn_cluster_dir_lock(const char *dir, double wait, int *fd, struct dnn_err *err)
{
    struct dnn_deadline end = dnn_clock_deadline(wait);
    char path[DNN_CLUSTER_PATH + 32];
    bool logged = false;

    snprintf(path, sizeof path, "%s/lock", dir);
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (*fd < 0) return dnn_fail(err, DNN_EIO, "%s: %s", path, strerror(errno));
    while (flock(*fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK || dnn_clock_passed(&end)) {
            int why = errno;

            close(*fd);
            return why == EWOULDBLOCK
                       ? dnn_fail(err, DNN_EIO,
                                  "%s: still locked by another start after %.0f s",
                                  path, wait)
                       : dnn_fail(err, DNN_EIO, "%s: %s", path, strerror(why));
        }
        if (!logged)
            dnn_log(DNN_INFO, "cluster", "waiting for another start to finish");
        logged = true;
        dnn_clock_sleep(0.05);
    }
    return 0;
}

bool dnn_cluster_dir_locked(const char *dir)
{
    char path[DNN_CLUSTER_PATH + 32];

    snprintf(path, sizeof path, "%s/lock", dir);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return false;
    bool locked = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return locked;
}

int dnn_cluster_dir_write(const char *dir, const char *name, mode_t mode,
                          const void *bytes, size_t len, struct dnn_err *err)
{
    char path[DNN_CLUSTER_PATH + 32];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    ssize_t n = fd < 0 ? -1 : write(fd, bytes, len);
    if (n < 0 || (size_t)n < len) {
        int why = n < 0 ? errno : ENOSPC;

        if (fd >= 0) close(fd);
        return dnn_fail(err, DNN_EIO, "%s: %s", path, strerror(why));
    }
    close(fd);
    return 0;
}

void dnn_cluster_dir_read(const char *path, struct dnn_buf *out)
{
    char part[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    dnn_buf_bytes(out, "", 0);
    if (fd < 0) return;
    for (ssize_t n; (n = read(fd, part, sizeof part)) > 0;)
        dnn_buf_bytes(out, part, (size_t)n);
    close(fd);
}

void dnn_cluster_dir_tail(const char *path, int lines)
{
    struct dnn_buf log = {0};

    dnn_cluster_dir_read(path, &log);
    while (log.len > 0 && log.text[log.len - 1] == '\n')
        log.text[--log.len] = '\0';
    char *from = log.text + log.len;
    while (from > log.text && (from[-1] != '\n' || --lines > 0))
        from--;
    if (*from != '\0') dnn_log(DNN_ERROR, "cluster", "the end of %s:", path);
    for (char *line = strtok(from, "\n"); line != NULL; line = strtok(NULL, "\n"))
        dnn_log(DNN_ERROR, "cluster", "  %s", line);
    dnn_buf_free(&log);
}
