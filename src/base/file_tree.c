/* file_tree.c - directories: made with all above them, removed with all below.
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

/* One directory; somebody else may be making the same one now. */
static int make_one(const char *path, struct dnn_err *err)
{
    struct stat st;

    if (mkdir(path, 0777) == 0) return 0;
    int why = errno;
    /* Asking what is there is right for every refusal: a read-only file system
     * or a forbidding parent may say so before it says "exists". */
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

/* Where we are below the path that is to go: for messages, and to stop. */
struct place {
    struct dnn_buf path;
    dev_t dev;
    int depth;
};

static int stuck(const struct place *at, int why, struct dnn_err *err)
{
    return dnn_fail(err, DNN_EIO, "%s: cannot be removed: %s", at->path.text,
                    strerror(why));
}

static int remove_in(struct place *at, int fd, struct dnn_err *err);

/* Remove name, which at->path ends with, from the directory parent. */
static int remove_one(struct place *at, int parent, const char *name,
                      struct dnn_err *err)
{
    struct stat st;

    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) return 0;
    int why = errno;
    /* A directory: EISDIR on Linux, EPERM by POSIX, and EROFS or EACCES say
     * nothing about what it is. */
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : stuck(at, errno, err);
    if (!S_ISDIR(st.st_mode)) return stuck(at, why, err);
    if (at->depth == 0) at->dev = st.st_dev;
    if (st.st_dev != at->dev)
        return dnn_fail(err, DNN_EIO,
                        "%s: cannot be removed: another file system is mounted there",
                        at->path.text);
    if (at->depth == DNN_TREE_DEPTH)
        return dnn_fail(err, DNN_EIO, "%s: cannot be removed: more than %d levels deep",
                        at->path.text, DNN_TREE_DEPTH);

    /* O_NOFOLLOW: if a link took its place meanwhile, this fails. */
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return stuck(at, errno, err);
    at->depth++;
    int rc = remove_in(at, fd, err);
    at->depth--;
    if (rc == 0 && unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        rc = stuck(at, errno, err);
    return rc;
}

/* Remove all that is in the directory fd, which is closed. */
static int remove_in(struct place *at, int fd, struct dnn_err *err)
{
    DIR *dir = fdopendir(fd);
    size_t len = at->path.len;
    int rc = 0;

    if (dir == NULL) {
        rc = stuck(at, errno, err);
        close(fd);
        return rc;
    }
    while (rc == 0) {
        errno = 0;
        struct dirent *entry = readdir(dir);

        if (entry == NULL) {
            if (errno != 0) rc = stuck(at, errno, err);
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
    struct place at = {0};
    size_t len = strlen(path);

    /* "link/" would mean what the link leads to. */
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
