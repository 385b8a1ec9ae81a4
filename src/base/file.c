/* file.c - read complete files, and replace files atomically.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"

#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- reading ---- */

static int too_large(const char *path, double bytes, size_t limit, struct dnn_err *err)
{
    char has[32] = "more", most[32];

    if (bytes > 0) dnn_text_bytes(has, sizeof has, bytes);
    return dnn_fail(err, DNN_EDATA,
                    "%s: %s exceeds the limit of %s; is it the right file?", path, has,
                    dnn_text_bytes(most, sizeof most, (double)limit));
}

/* Read an open file to its end into *text, which grows; want is the expected size. */
static int read_all(const char *path, int fd, size_t want, size_t limit, char **text,
                    size_t *len, struct dnn_err *err)
{
    size_t cap = 0;

    for (*len = 0;;) {
        if (*len == cap) {
            /* One byte more than expected, to find the end without growing. */
            size_t more = cap == 0 ? want + 1 : cap * 2;
            if (more > limit) more = limit + 1;
            char *grown = realloc(*text, more + 1);
            if (grown == NULL)
                return dnn_fail(err, DNN_ENOMEM, "%s: not enough memory for %zu bytes",
                                path, more);
            *text = grown;
            cap = more;
        }
        ssize_t n = read(fd, *text + *len, cap - *len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return dnn_fail(err, DNN_EIO, "%s: cannot be read: %s", path,
                            strerror(errno));
        if (n == 0) break;
        *len += (size_t)n;
        if (*len > limit) return too_large(path, 0, limit, err);
    }
    (*text)[*len] = '\0';
    return 0;
}

int dnn_file_read(const char *path, size_t limit, char **out, size_t *len,
                  struct dnn_err *err)
{
    struct stat st;
    char *text = NULL;
    size_t got = 0;
    int rc, fd;

    do
        fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0 || fstat(fd, &st) != 0)
        rc = dnn_fail(err, DNN_EIO, "%s: cannot be read: %s", path, strerror(errno));
    else if (S_ISDIR(st.st_mode))
        rc = dnn_fail(err, DNN_EIO, "%s: is a directory, not a file", path);
    else if (S_ISREG(st.st_mode) && (uintmax_t)st.st_size > limit)
        rc = too_large(path, (double)st.st_size, limit, err);
    else {
        /* The size of pipes and of files in /proc is 0. */
        size_t want = st.st_size > 4096 ? (size_t)st.st_size : 4096;

        rc = read_all(path, fd, want, limit, &text, &got, err);
    }
    if (fd >= 0) close(fd);
    if (rc < 0) {
        free(text);
        return rc;
    }
    *out = text;
    *len = got;
    return 0;
}

int dnn_file_read_text(const char *path, size_t limit, char **out, struct dnn_err *err)
{
    size_t len;
    char *text;

    DNN_TRY(dnn_file_read(path, limit, &text, &len, err));
    const char *nul = memchr(text, '\0', len);
    if (nul != NULL) {
        size_t at = (size_t)(nul - text);

        dnn_free(text);
        return dnn_fail(err, DNN_EDATA, "%s: not a text file: byte %zu is NUL", path,
                        at + 1);
    }
    *out = text;
    return 0;
}

/* ---- writing ---- */

struct dnn_file {
    char *path;  /* owned; as given by the caller, for messages              */
    char *name;  /* owned; the last component of path, symbolic links resolved */
    char *part;  /* owned; the temporary file, in the same directory         */
    int dir;     /* that directory: does not depend on the working directory */
    int fd;      /* of part; -1 if it is not open                            */
    bool exists; /* part exists                                              */
    size_t len;  /* bytes written so far                                     */
};

/* Close and remove the temporary file. */
static void remove_part(struct dnn_file *file)
{
    if (file->fd >= 0) close(file->fd);
    file->fd = -1;
    if (file->exists) unlinkat(file->dir, file->part, 0);
    file->exists = false;
}

static void free_file(struct dnn_file *file)
{
    remove_part(file);
    if (file->dir >= 0) close(file->dir);
    dnn_free(file->path);
    dnn_free(file->name);
    dnn_free(file->part);
    dnn_free(file);
}

/* Fail because a file of want bytes cannot be written; why is the errno.  The temporary
 * file is removed first, so that its space counts as free in the message. */
static int fail_write(struct dnn_file *file, int why, size_t want, struct dnn_err *err)
{
    char wanted[48] = "", size[32], unused[32];
    struct statvfs fs;

    remove_part(file);
    if ((why != ENOSPC && why != EDQUOT) || fstatvfs(file->dir, &fs) != 0)
        return dnn_fail(err, DNN_EIO, "%s: cannot be written: %s", file->path,
                        strerror(why));
    if (want > 0)
        snprintf(wanted, sizeof wanted, "%s needed, ",
                 dnn_text_bytes(size, sizeof size, (double)want));
    return dnn_fail(err, DNN_EIO, "%s: %s: %s%s free", file->path,
                    why == EDQUOT ? "the disk quota is exceeded" : "the disk is full",
                    wanted,
                    dnn_text_bytes(unused, sizeof unused,
                                   (double)fs.f_bavail * (double)fs.f_frsize));
}

/* The path with symbolic links resolved; the caller frees it. */
static int resolve(const char *path, char **out, mode_t *mode, bool *exists,
                   struct dnn_err *err)
{
    struct stat st;

    *exists = stat(path, &st) == 0;
    if (*exists && S_ISDIR(st.st_mode))
        return dnn_fail(err, DNN_EIO, "%s: cannot be written: is a directory", path);
    if (*exists && !S_ISREG(st.st_mode))
        return dnn_fail(err, DNN_EIO,
                        "%s: cannot be written: is a device or pipe, not a file", path);
    if (!*exists && errno != ENOENT)
        return dnn_fail(err, DNN_EIO, "%s: cannot be written: %s", path,
                        strerror(errno));
    if (*exists)
        *mode = st.st_mode & 07777;
    else if (lstat(path, &st) == 0)
        return dnn_fail(err, DNN_EIO,
                        "%s: cannot be written: is a broken symbolic link", path);

    char *real = *exists ? realpath(path, NULL) : dnn_strdup(path);
    if (real == NULL)
        return dnn_fail(err, DNN_EIO, "%s: cannot be written: %s", path,
                        strerror(errno));
    *out = real;
    return 0;
}

/* Create the temporary file in the directory of the target, with a unique name. */
static int create(struct dnn_file *file)
{
    for (int n = 0; n < 1000; n++) {
        dnn_free(file->part);
        /* Shortened, because a name has at most 255 bytes. */
        file->part = dnn_format(".%.200s.%ld-%d.part", file->name, (long)getpid(), n);
        file->fd = openat(file->dir, file->part,
                          O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (file->fd >= 0) {
            file->exists = true;
            return 0;
        }
        if (errno == EINTR) n--;
        if (errno != EEXIST && errno != EINTR) break;
    }
    return -1;
}

/* As dnn_file_open; want is the total size if it is known, else 0. */
static int open_file(const char *path, size_t want, struct dnn_file **out,
                     struct dnn_err *err)
{
    mode_t mode = 0;
    bool exists;
    char *real = NULL;

    DNN_TRY(resolve(path, &real, &mode, &exists, err));
    struct dnn_file *file = dnn_alloc(sizeof *file);
    char *slash = strrchr(real, '/');
    file->path = dnn_strdup(path);
    file->name = dnn_strdup(slash == NULL ? real : slash + 1);
    file->fd = -1;
    if (slash != NULL) slash[slash == real ? 1 : 0] = '\0';
    file->dir = open(slash == NULL ? "." : real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(real);

    int rc = 0;
    if (file->name[0] == '\0')
        rc = dnn_fail(err, DNN_EIO, "%s: cannot be written: the file name is missing",
                      path);
    else if (file->dir < 0)
        rc = dnn_fail(err, DNN_EIO, "%s: cannot be written: its directory: %s", path,
                      strerror(errno));
    else if (create(file) < 0 || (exists && fchmod(file->fd, mode) != 0))
        rc = fail_write(file, errno, want, err);
    if (rc < 0) {
        free_file(file);
        return rc;
    }
    *out = file;
    return 0;
}

int dnn_file_open(const char *path, struct dnn_file **out, struct dnn_err *err)
{
    return open_file(path, 0, out, err);
}

/* As dnn_file_add; want is the total size for messages. */
static int add(struct dnn_file *file, const char *bytes, size_t len, size_t want,
               struct dnn_err *err)
{
    if (file->fd < 0)
        return dnn_fail(err, DNN_EIO, "%s: cannot be written: an earlier write failed",
                        file->path);
    while (len > 0) {
        ssize_t n = write(file->fd, bytes, len);

        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fail_write(file, n == 0 ? ENOSPC : errno, want, err);
        bytes += n;
        len -= (size_t)n;
        file->len += (size_t)n;
    }
    return 0;
}

int dnn_file_add(struct dnn_file *file, const void *bytes, size_t len,
                 struct dnn_err *err)
{
    return add(file, bytes, len, file->len + len, err);
}

/* fsync; continues after signals. */
static int sync_fd(int fd)
{
    int rc;

    do
        rc = fsync(fd);
    while (rc != 0 && errno == EINTR);
    return rc;
}

int dnn_file_commit(struct dnn_file *file, struct dnn_err *err)
{
    int rc = add(file, "", 0, file->len, err);

    if (rc == 0 && sync_fd(file->fd) != 0) rc = fail_write(file, errno, file->len, err);
    if (rc == 0) {
        /* The file is closed even if close() fails; but its error may be the only
         * report of a lost write. */
        int closed = close(file->fd);

        file->fd = -1;
        if (closed != 0 && errno != EINTR) rc = fail_write(file, errno, file->len, err);
    }
    if (rc == 0 && renameat(file->dir, file->part, file->dir, file->name) != 0)
        rc = fail_write(file, errno, file->len, err);
    if (rc == 0) {
        file->exists = false;
        /* Some file systems do not need this and return EINVAL. */
        if (sync_fd(file->dir) != 0 && errno != EINVAL)
            rc = dnn_fail(err, DNN_EIO,
                          "%s: written, but the directory could not be flushed to "
                          "disk, so a power failure may lose it: %s",
                          file->path, strerror(errno));
    }
    free_file(file);
    return rc;
}

void dnn_file_abandon(struct dnn_file *file)
{
    if (file != NULL) free_file(file);
}

int dnn_file_write(const char *path, const void *bytes, size_t len, struct dnn_err *err)
{
    struct dnn_file *file;

    DNN_TRY(open_file(path, len, &file, err));
    int rc = add(file, bytes, len, len, err);
    if (rc < 0) {
        dnn_file_abandon(file);
        return rc;
    }
    return dnn_file_commit(file, err);
}
