/* bytes.c - random access to a file, plain or gzip.
 *
 * A plain file is read with pread(), without a lock.  The first KEEP decompressed bytes
 * of a gzip file stay in memory, so that samples can be read in any order; reading
 * backwards beyond them decompresses the file from its start again.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import/import_impl.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if DNN_HAVE_ZLIB
#include <zlib.h>
#endif

enum { KEEP = 256 << 20, STEP = 1 << 20 };

struct dnn_bytes {
    char *path;
    int fd;
    int64_t size; /* of a plain file; -1: gzip */
#if DNN_HAVE_ZLIB
    pthread_mutex_t lock; /* of all members below */
    gzFile gz;
    int64_t at;  /* position of gz, in decompressed bytes  */
    int64_t end; /* size of the content; -1: not known     */
    char *kept;  /* the first nkept bytes                  */
    size_t nkept, cap;
#endif
};

static int read_failed(const struct dnn_bytes *file, struct dnn_err *err)
{
    return dnn_fail(err, DNN_EIO, "%s: cannot be read: %s", file->path,
                    strerror(errno));
}

/* ---- plain ---- */

static int read_plain(const struct dnn_bytes *file, int64_t at, char *to, size_t n,
                      size_t *got, struct dnn_err *err)
{
    *got = 0;
    while (*got < n) {
        ssize_t count = pread(file->fd, to + *got, n - *got, at + (int64_t)*got);

        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return read_failed(file, err);
        if (count == 0) break;
        *got += (size_t)count;
    }
    return 0;
}

/* ---- gzip ---- */

#if DNN_HAVE_ZLIB
static int start_gzip(struct dnn_bytes *file, struct dnn_err *err)
{
    int fd = dup(file->fd);

    if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0) {
        int rc = read_failed(file, err);

        if (fd >= 0) close(fd);
        return rc;
    }
    file->gz = gzdopen(fd, "rb");
    if (file->gz == NULL) {
        close(fd);
        return dnn_fail(err, DNN_ENOMEM, "%s: not enough memory to decompress it",
                        file->path);
    }
    gzbuffer(file->gz, 1 << 17);
    pthread_mutex_init(&file->lock, NULL);
    file->size = -1;
    file->end = -1;
    return 0;
}

/* The next bytes, at most n; at the end of the content *got is 0. */
static int next_bytes(struct dnn_bytes *file, char *to, size_t n, size_t *got,
                      struct dnn_err *err)
{
    int count = gzread(file->gz, to, (unsigned)(n < STEP ? n : STEP)), code = Z_OK;
    const char *why = gzerror(file->gz, &code);

    /* In a truncated file, all available bytes are returned before Z_BUF_ERROR. */
    if (count < 0 || (count == 0 && code != Z_OK && code != Z_STREAM_END)) {
        if (code == Z_ERRNO) return read_failed(file, err);
        if (code == Z_BUF_ERROR) why = "unexpected end of file";
        return dnn_fail(err, DNN_EDATA,
                        "%s: decompression failed after %" PRId64 " bytes: %s",
                        file->path, file->at, why);
    }
    *got = (size_t)count;
    file->at += count;
    if (count == 0) file->end = file->at;
    return 0;
}

/* Decompress until `until` bytes are kept, at most KEEP, or the file ends. */
static int keep_until(struct dnn_bytes *file, int64_t until, struct dnn_err *err)
{
    if (until > KEEP) until = KEEP;
    while (file->end < 0 && (int64_t)file->nkept < until) {
        size_t got, want = KEEP - file->nkept < STEP ? KEEP - file->nkept : STEP;

        if (file->nkept + want > file->cap) {
            size_t cap = file->cap < STEP ? STEP : file->cap * 2;
            char *more = realloc(file->kept, cap);

            if (more == NULL)
                return dnn_fail(err, DNN_ENOMEM,
                                "%s: not enough memory to read %zu bytes", file->path,
                                cap);
            file->kept = more;
            file->cap = cap;
        }
        if (file->nkept + want > file->cap) want = file->cap - file->nkept;
        DNN_TRY(next_bytes(file, file->kept + file->nkept, want, &got, err));
        file->nkept += got;
    }
    return 0;
}

/* Move gz to a position beyond the kept bytes. */
static int seek_gzip(struct dnn_bytes *file, int64_t at, char *scratch, size_t n,
                     struct dnn_err *err)
{
    if (file->at > at) {
        if (gzrewind(file->gz) != 0) return read_failed(file, err);
        file->at = 0;
    }
    while (file->at < at) {
        size_t got, want = at - file->at < (int64_t)n ? (size_t)(at - file->at) : n;

        DNN_TRY(next_bytes(file, scratch, want, &got, err));
        if (got == 0) break;
    }
    return 0;
}

static int read_gzip(struct dnn_bytes *file, int64_t at, char *to, size_t n,
                     size_t *got, struct dnn_err *err)
{
    *got = 0;
    DNN_TRY(keep_until(file, at + (int64_t)n, err));
    if (at < (int64_t)file->nkept) {
        size_t available = file->nkept - (size_t)at;

        *got = available < n ? available : n;
        memcpy(to, file->kept + at, *got);
    }
    if (*got == n || (file->end >= 0 && at + (int64_t)*got >= file->end)) return 0;
    DNN_TRY(seek_gzip(file, at + (int64_t)*got, to + *got, n - *got, err));
    while (*got < n && file->at == at + (int64_t)*got) {
        size_t count;

        DNN_TRY(next_bytes(file, to + *got, n - *got, &count, err));
        if (count == 0) break;
        *got += count;
    }
    return 0;
}
#endif

/* ---- both ---- */

/* Check four bytes: raw data may begin with the two magic bytes by chance. */
static bool is_gzip(const unsigned char magic[4])
{
    return magic[0] == 0x1f && magic[1] == 0x8b && magic[2] == 8 &&
           (magic[3] & 0xe0) == 0;
}

int dnn_bytes_open(const char *path, struct dnn_bytes **out, struct dnn_err *err)
{
    struct dnn_bytes *file = dnn_alloc(sizeof *file);
    unsigned char magic[4] = {0};
    size_t got = 0;
    struct stat st;
    int rc = 0;

    *out = NULL;
    file->path = dnn_strdup(path);
    /* Do not wait for a writer if it is a pipe. */
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0 || fstat(file->fd, &st) != 0)
        rc = read_failed(file, err);
    else if (S_ISDIR(st.st_mode))
        rc = dnn_fail(err, DNN_EIO, "%s: is a directory, not a file", path);
    else if (!S_ISREG(st.st_mode))
        rc = dnn_fail(err, DNN_EIO, "%s: not a regular file", path);
    if (rc == 0) {
        file->size = st.st_size;
        rc = read_plain(file, 0, (char *)magic, sizeof magic, &got, err);
    }
    if (rc == 0 && got == sizeof magic && is_gzip(magic)) {
#if DNN_HAVE_ZLIB
        rc = start_gzip(file, err);
#else
        rc = dnn_fail(err, DNN_ECONFIG,
                      "%s: gzip files need zlib, and this program was built without it",
                      path);
#endif
    }
    if (rc < 0)
        dnn_bytes_close(file);
    else
        *out = file;
    return rc;
}

int dnn_bytes_some(struct dnn_bytes *file, int64_t at, void *to, size_t n, size_t *got,
                   struct dnn_err *err)
{
    int64_t end;

    *got = 0;
    if (at < 0 || n > PTRDIFF_MAX || __builtin_add_overflow(at, (int64_t)n, &end))
        return dnn_fail(err, DNN_EDATA, "%s: the file ends before byte %" PRId64,
                        file->path, at);
#if DNN_HAVE_ZLIB
    if (file->size < 0) {
        pthread_mutex_lock(&file->lock);
        int rc = read_gzip(file, at, to, n, got, err);
        pthread_mutex_unlock(&file->lock);
        return rc;
    }
#endif
    return read_plain(file, at, to, n, got, err);
}

int dnn_bytes_read(struct dnn_bytes *file, int64_t at, void *to, size_t n,
                   struct dnn_err *err)
{
    size_t got;

    DNN_TRY(dnn_bytes_some(file, at, to, n, &got, err));
    if (got == n) return 0;
    int64_t length;
    DNN_TRY(dnn_bytes_length(file, &length, err));
    return dnn_fail(err, DNN_EDATA, "%s: truncated: %" PRId64 " of %" PRId64 " bytes",
                    file->path, length, at + (int64_t)n);
}

int64_t dnn_bytes_size(const struct dnn_bytes *file)
{
    return file->size;
}

int dnn_bytes_length(struct dnn_bytes *file, int64_t *out, struct dnn_err *err)
{
    int rc = 0;

    *out = file->size;
#if DNN_HAVE_ZLIB
    if (file->size < 0) {
        char *scratch = dnn_alloc(STEP);

        pthread_mutex_lock(&file->lock);
        rc = keep_until(file, KEEP, err);
        while (rc == 0 && file->end < 0) {
            size_t got;

            rc = next_bytes(file, scratch, STEP, &got, err);
        }
        *out = file->end;
        pthread_mutex_unlock(&file->lock);
        dnn_free(scratch);
    }
#else
    (void)err;
#endif
    return rc;
}

void dnn_bytes_close(struct dnn_bytes *file)
{
    if (file == NULL) return;
#if DNN_HAVE_ZLIB
    if (file->gz != NULL) {
        gzclose_r(file->gz);
        pthread_mutex_destroy(&file->lock);
    }
    free(file->kept);
#endif
    if (file->fd >= 0) close(file->fd);
    dnn_free(file->path);
    dnn_free(file);
}
