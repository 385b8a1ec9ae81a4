/* dataset_path.c - a dataset is written under a hidden name next to its path:
 *
 *   .NAME.HOST-PID.part   being written, or left by a writer that was killed
 *   .NAME.HOST-PID.old    what was replaced, about to be removed
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "data/dataset_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Whether a process of another host is alive is unknown: it is assumed to be while its
 * files are younger than this, in seconds. */
enum { AGE = 3600 };

static void host_name(char *out, size_t size)
{
    if (gethostname(out, size) != 0) snprintf(out, size, "localhost");
    out[size - 1] = '\0';
    out[strcspn(out, ".")] = '\0';
}

static void split_path(const char *path, char **dir, char **base)
{
    size_t len = strlen(path);

    while (len > 1 && path[len - 1] == '/')
        len--;
    char *trimmed = dnn_strndup(path, len), *slash = strrchr(trimmed, '/');
    *base = dnn_strdup(slash == NULL ? trimmed : slash + 1);
    if (slash == NULL)
        *dir = dnn_strdup(".");
    else
        *dir = dnn_strndup(trimmed, slash == trimmed ? 1 : (size_t)(slash - trimmed));
    dnn_free(trimmed);
}

/* Host and process of ".NAME.HOST-PID.part"; false if the name has another form. */
static bool parse(const char *entry, const char *base, const char *suffix, char *host,
                  size_t size, long *pid)
{
    size_t n = strlen(base), len = strlen(entry), s = strlen(suffix);
    char *end;

    if (entry[0] != '.' || len < n + s + 4 || strncmp(entry + 1, base, n) != 0 ||
        entry[n + 1] != '.' || strcmp(entry + len - s, suffix) != 0)
        return false;
    const char *from = entry + n + 2, *dash = entry + len - s;
    while (dash > from && *dash != '-')
        dash--;
    /* Host names here have no dot: ".x.y.HOST-1.part" belongs to "x.y", not to "x". */
    if (dash == from || (size_t)(dash - from) >= size ||
        memchr(from, '.', (size_t)(dash - from)) != NULL)
        return false;
    memcpy(host, from, (size_t)(dash - from));
    host[dash - from] = '\0';
    *pid = strtol(dash + 1, &end, 10);
    return end == entry + len - s && *pid > 0;
}

/* The newest modification time of the directory and its files. */
static time_t newest(const char *path)
{
    struct stat st;
    time_t when = stat(path, &st) == 0 ? st.st_mtime : 0;
    DIR *dir = opendir(path);

    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (fstatat(dirfd(dir), e->d_name, &st, 0) == 0 && st.st_mtime > when)
            when = st.st_mtime;
    if (dir != NULL) closedir(dir);
    return when;
}

static int clear_part(const char *path, const char *full, const char *host, long pid,
                      struct dnn_err *err)
{
    char here[256];

    host_name(here, sizeof here);
    bool ours = strcmp(host, here) == 0;
    if (ours && pid != (long)getpid() && (kill((pid_t)pid, 0) == 0 || errno == EPERM))
        return dnn_fail(err, DNN_EIO, "%s: being written by process %ld (%s)", path,
                        pid, full);
    if (!ours && time(NULL) - newest(full) < AGE)
        return dnn_fail(err, DNN_EIO,
                        "%s: being written by process %ld on %s; if that process was "
                        "killed, remove %s",
                        path, pid, host, full);
    dnn_log(DNN_INFO, "data", "%s: removing %s, left behind by a killed process", path,
            full);
    return dnn_file_remove_tree(full, err);
}

/* The rest of an interrupted replacement: the old dataset is restored if there is no
 * new one, else removed. */
static int clear_old(const char *path, const char *full, struct dnn_err *err)
{
    struct stat st;

    if (lstat(path, &st) == 0) return dnn_file_remove_tree(full, err);
    if (rename(full, path) < 0)
        return dnn_fail(err, DNN_EIO, "%s: cannot be renamed to %s: %s", full, path,
                        strerror(errno));
    return 0;
}

static int clear(const char *path, const char *dir, const char *base,
                 struct dnn_err *err)
{
    DIR *d = opendir(dir);
    int rc = 0;

    if (d == NULL) return dnn_fail(err, DNN_EIO, "%s: %s", dir, strerror(errno));
    for (struct dirent *e; rc == 0 && (e = readdir(d)) != NULL;) {
        char host[256], *full = dnn_format("%s/%s", dir, e->d_name);
        long pid;

        if (parse(e->d_name, base, ".part", host, sizeof host, &pid))
            rc = clear_part(path, full, host, pid, err);
        else if (parse(e->d_name, base, ".old", host, sizeof host, &pid))
            rc = clear_old(path, full, err);
        dnn_free(full);
    }
    closedir(d);
    return rc;
}

/* Checks that path does not exist or may be replaced.  Only datasets are replaced,
 * never other directories. */
static int check_taken(const char *path, bool replace, struct dnn_err *err)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        return errno == ENOENT
                   ? 0
                   : dnn_fail(err, DNN_EIO, "%s: %s", path, strerror(errno));
    if (!replace)
        return dnn_fail(err, DNN_EIO, "%s: exists already; use --replace to replace it",
                        path);
    char *index = dnn_format("%s/md.idx", path);
    bool bp = stat(index, &st) == 0;
    dnn_free(index);
    return bp ? 0
              : dnn_fail(err, DNN_EIO,
                         "%s: exists and is not a dataset; it is not replaced", path);
}

int dnn_dataset_temp_path(const char *path, bool replace, char **part,
                          struct dnn_err *err)
{
    char *dir, *base, host[256];

    split_path(path, &dir, &base);
    int rc = clear(path, dir, base, err);
    if (rc == 0) rc = check_taken(path, replace, err);
    host_name(host, sizeof host);
    if (rc == 0)
        *part = dnn_format("%s/.%s.%s-%ld.part", dir, base, host, (long)getpid());
    dnn_free(dir);
    dnn_free(base);
    return rc;
}

static int sync_dir(const char *path, struct dnn_err *err)
{
    char *dir, *base;

    split_path(path, &dir, &base);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    if (fd < 0 || fsync(fd) < 0)
        rc = dnn_fail(err, DNN_EIO, "%s: %s", dir, strerror(errno));
    if (fd >= 0) close(fd);
    dnn_free(dir);
    dnn_free(base);
    return rc;
}

/* Atomically where the file system supports RENAME_EXCHANGE, else in two steps. */
static int exchange(const char *part, const char *path, struct dnn_err *err)
{
    size_t len = strlen(part);

    if (renameat2(AT_FDCWD, part, AT_FDCWD, path, RENAME_EXCHANGE) == 0)
        return dnn_file_remove_tree(part, err);
    char *old = dnn_format("%.*s.old", (int)(len - strlen(".part")), part);
    int rc = 0;
    if (rename(path, old) < 0)
        rc = dnn_fail(err, DNN_EIO, "%s: cannot be moved aside: %s", path,
                      strerror(errno));
    else if (rename(part, path) < 0) {
        rc = dnn_fail(err, DNN_EIO, "%s: cannot be renamed to %s: %s", part, path,
                      strerror(errno));
        (void)!rename(old, path);
    } else
        rc = dnn_file_remove_tree(old, err);
    dnn_free(old);
    return rc;
}

int dnn_dataset_publish(const char *part, const char *path, bool replace,
                        struct dnn_err *err)
{
    struct stat st;

    DNN_TRY(check_taken(path, replace, err)); /* another process may have made it */
    if (lstat(path, &st) == 0)
        DNN_TRY(exchange(part, path, err));
    else if (rename(part, path) < 0)
        return dnn_fail(err, DNN_EIO, "%s: cannot be renamed to %s: %s", part, path,
                        strerror(errno));
    return sync_dir(path, err);
}
