/* append.c - files to which complete lines are appended, also if a run is killed.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "telemetry/telemetry_impl.h"

#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct dnn_append {
    char *path; /* owned */
    int fd;
    off_t len; /* -1: not truncated after a failure */
};

static int write_error(const char *path, int why, struct dnn_err *err)
{
    return dnn_fail(err, DNN_EIO, "%s: cannot be written: %s", path, strerror(why));
}

int dnn_append_open(const char *path, bool fresh, struct dnn_append **out,
                    struct dnn_err *err)
{
    const int how = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    struct stat st;
    int fd;

    do
        fd = open(path, fresh ? how | O_TRUNC : how, 0666);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) return write_error(path, errno, err);
    if (fstat(fd, &st) != 0) {
        int why = errno;

        close(fd);
        return write_error(path, why, err);
    }
    struct dnn_append *file = dnn_alloc(sizeof *file);
    file->path = dnn_strdup(path);
    file->fd = fd;
    file->len = S_ISREG(st.st_mode) ? st.st_size : -1;
    *out = file;
    return 0;
}

int dnn_append_stdout(struct dnn_append **out, struct dnn_err *err)
{
    /* /dev/stdout cannot be opened if it is a socket. */
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);

    if (fd < 0) return write_error("stdout", errno, err);
    struct dnn_append *file = dnn_alloc(sizeof *file);
    file->path = dnn_strdup("stdout");
    file->fd = fd;
    file->len = -1;
    *out = file;
    return 0;
}

int dnn_append_add(struct dnn_append *file, const void *bytes, size_t len,
                   struct dnn_err *err)
{
    const char *at = bytes;
    size_t left = len;

    while (left > 0) {
        ssize_t n = write(file->fd, at, left);

        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            int why = n == 0 ? EIO : errno;

            /* Remove the partial line. */
            if (file->len >= 0 && left < len && ftruncate(file->fd, file->len) != 0)
                return dnn_fail(
                    err, DNN_EIO,
                    "%s: cannot be written: %s; its last line is incomplete",
                    file->path, strerror(why));
            return write_error(file->path, why, err);
        }
        at += n;
        left -= (size_t)n;
    }
    if (file->len >= 0) file->len += (off_t)len;
    return 0;
}

bool dnn_append_empty(const struct dnn_append *file)
{
    return file->len == 0;
}

int dnn_append_flush(struct dnn_append *file, struct dnn_err *err)
{
    if (file->len < 0) return 0;
    while (fsync(file->fd) != 0) {
        if (errno == EINVAL || errno == ENOTSUP) return 0; /* not supported */
        if (errno != EINTR) return write_error(file->path, errno, err);
    }
    return 0;
}

void dnn_append_close(struct dnn_append *file)
{
    if (file == NULL) return;
    close(file->fd);
    dnn_free(file->path);
    dnn_free(file);
}

/* ---- resuming ---- */

/* Copy the lines up to the step to out. */
static int keep(const char *path, char *text, size_t len, int64_t step, dnn_line_fn *fn,
                void *arg, struct dnn_buf *out, struct dnn_err *err)
{
    int64_t number = 1, has = 0;

    for (char *line = text, *end; line < text + len; line = end + 1, number++) {
        end = memchr(line, '\n', (size_t)(text + len - line));
        if (end == NULL) break; /* incomplete: the process was killed */
        *end = '\0';
        int rc = fn(arg, path, number, line, &has, err);
        *end = '\n';
        if (rc < 0) return rc;
        if (rc == 1 || has <= step) dnn_buf_bytes(out, line, (size_t)(end + 1 - line));
    }
    return 0;
}

int dnn_append_resume(const char *path, int64_t step, dnn_line_fn *fn, void *arg,
                      struct dnn_err *err)
{
    struct dnn_buf out = {0};
    char *text;
    size_t len;

    if (access(path, F_OK) != 0 && errno == ENOENT) return 0;
    DNN_TRY(dnn_file_read(path, DNN_CSV_LIMIT, &text, &len, err));
    int rc = keep(path, text, len, step, fn, arg, &out, err);
    if (rc == 0 && out.len < len) rc = dnn_file_write(path, out.text, out.len, err);
    dnn_buf_free(&out);
    dnn_free(text);
    return rc;
}
