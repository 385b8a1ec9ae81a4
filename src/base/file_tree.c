/* file_tree.c - make directories with their parents, remove them with their content.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"

#include "base/mem.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One directory; another process may make the same one at the same time. */
static int make_one(const char *path, struct dnn_err *err)
{
    struct stat st;

    if (mkdir(path, 0777) == 0) return 0;
    int why = errno;
    /* For any errno: a read-only file system or missing permissions may be reported
     * instead of EEXIST. */
    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode)) return 0;
        return dnn_fail(err, DNN_EIO,
                        "%s: cannot be created: exists and is not a directory", path);
    }
    return dnn_fail(err, DNN_EIO, "%s: cannot be created: %s", path, strerror(why));
}

int dnn_file_make_dirs(const char *path, struct dnn_err *err)
{
    char *part = dnn_strdup(path);
    int rc = 0;

    for (char *at = part; rc == 0 && *at != '\0';) {
        at += strspn(at, "/");
        at += strcspn(at, "/");
        char kept = *at;
        *at = '\0';
        rc = make_one(part, err);
        *at = kept;
        if (kept != '\0' && at[strspn(at, "/")] == '\0') break;
    }
    if (*path == '\0') rc = dnn_fail(err, DNN_EIO, "the directory name is empty");
    dnn_free(part);
    return rc;
}

/* Position in the tree that is removed. */
struct position {
    struct dnn_buf path; /* for messages                     */
    dev_t dev;           /* other file systems are an error  */
    int depth;
};

static int fail_remove(const struct position *at, int why, struct dnn_err *err)
{
    return dnn_fail(err, DNN_EIO, "%s: cannot be removed: %s", at->path.text,
                    strerror(why));
}

static int remove_in(struct position *at, int fd, struct dnn_err *err);

/* Remove name, which at->path ends with, from the directory parent. */
static int remove_one(struct position *at, int parent, const char *name,
                      struct dnn_err *err)
{
    struct stat st;

    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) return 0;
    int why = errno;
    /* Of a directory errno may be EISDIR (Linux), EPERM (POSIX), EROFS or EACCES:
     * look at the type. */
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : fail_remove(at, errno, err);
    if (!S_ISDIR(st.st_mode)) return fail_remove(at, why, err);
    if (at->depth == 0) at->dev = st.st_dev;
    if (st.st_dev != at->dev)
        return dnn_fail(err, DNN_EIO,
                        "%s: cannot be removed: another file system is mounted there",
                        at->path.text);
    if (at->depth == DNN_TREE_DEPTH)
        return dnn_fail(err, DNN_EIO, "%s: cannot be removed: more than %d levels deep",
                        at->path.text, DNN_TREE_DEPTH);

    /* O_NOFOLLOW: fails if it has been replaced by a symbolic link meanwhile. */
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return fail_remove(at, errno, err);
    at->depth++;
    int rc = remove_in(at, fd, err);
    at->depth--;
    if (rc == 0 && unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        rc = fail_remove(at, errno, err);
    return rc;
}

/* Remove the content of the directory fd, and close fd. */
static int remove_in(struct position *at, int fd, struct dnn_err *err)
{
    DIR *dir = fdopendir(fd);
    size_t len = at->path.len;
    int rc = 0;

    if (dir == NULL) {
        rc = fail_remove(at, errno, err);
        close(fd);
        return rc;
    }
    while (rc == 0) {
        errno = 0;
        struct dirent *entry = readdir(dir);

        if (entry == NULL) {
            if (errno != 0) rc = fail_remove(at, errno, err);
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        dnn_buf_add(&at->path, "/%s", entry->d_name);
        rc = remove_one(at, fd, entry->d_name, err);
        at->path.len = len;
        at->path.text[len] = '\0';
    }
    closedir(dir);
    return rc;
}

int dnn_file_remove_tree(const char *path, struct dnn_err *err)
{
    struct position at = {0};
    size_t len = strlen(path);

    /* "link/" would mean the target of the link. */
    while (len > 1 && path[len - 1] == '/')
        len--;
    dnn_buf_bytes(&at.path, path, len);
    const char *slash = strrchr(at.path.text, '/');
    const char *last = slash == NULL ? at.path.text : slash + 1;
    int rc;
    if (*last == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
        rc = dnn_fail(
            err, DNN_EIO,
            "\"%s\": refusing to remove this; give a directory below another one",
            path);
    else {
        char *name = dnn_strdup(at.path.text);

        rc = remove_one(&at, AT_FDCWD, name, err);
        dnn_free(name);
    }
    dnn_buf_free(&at.path);
    return rc;
}
