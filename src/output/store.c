/* store.c - the temporary files that boxes are written to.
 *
 * The files of a few samples stay open.  A file of a sample is complete in length as
 * soon as its header is written, so any rank that finds it shorter writes the header,
 * which is the same for all.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "output/output_impl.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- bytes ---- */

static int fail_write(int fd, const char *path, int why, struct dnn_err *err)
{
    struct statvfs fs;
    char unused[32];

    if ((why != ENOSPC && why != EDQUOT) || fstatvfs(fd, &fs) != 0)
        return dnn_fail(err, DNN_EIO, "%s: cannot be written: %s", path, strerror(why));
    return dnn_fail(err, DNN_EIO, "%s: %s: %s free", path,
                    why == EDQUOT ? "the disk quota is exceeded" : "the disk is full",
                    dnn_text_bytes(unused, sizeof unused,
                                   (double)fs.f_bavail * (double)fs.f_frsize));
}

int dnn_output_write(int fd, const char *path, const void *bytes, size_t n, int64_t at,
                     struct dnn_err *err)
{
    for (const char *from = bytes; n > 0;) {
        ssize_t wrote = pwrite(fd, from, n, at);

        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return fail_write(fd, path, wrote == 0 ? ENOSPC : errno, err);
        from += wrote;
        at += wrote;
        n -= (size_t)wrote;
    }
    return 0;
}

int dnn_output_read(int fd, const char *path, void *to, size_t n, int64_t at,
                    struct dnn_err *err)
{
    for (char *into = to; n > 0;) {
        ssize_t got = pread(fd, into, n, at);

        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            return dnn_fail(err, DNN_EIO, "%s: cannot be read: %s", path,
                            got < 0 ? strerror(errno) : "it is too short");
        into += got;
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

int dnn_output_sync(int fd, const char *path, struct dnn_err *err)
{
    while (fsync(fd) != 0)
        if (errno != EINTR) return fail_write(fd, path, errno, err);
    return 0;
}

int dnn_output_read_part(struct dnn_output *out, int part, int64_t sample, void *to,
                         size_t bytes, struct dnn_err *err)
{
    char *path = dnn_output_work(out, "scratch");
    int rc = dnn_output_read(out->scratch, path, to, bytes,
                             out->offset[sample * out->nparts + part], err);

    dnn_free(path);
    return rc;
}

/* ---- files of samples ---- */

char *dnn_output_temp(const struct dnn_output *out, int part, int64_t sample)
{
    enum { EACH = 1000 }; /* samples in a directory */

    return dnn_format("%s/%" PRId64 "/%" PRId64 ".%d", out->work, sample / EACH, sample,
                      part);
}

static int create(const char *path, int *fd, struct dnn_err *err)
{
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*fd < 0 && errno == ENOENT) {
        char *dir = dnn_strndup(path, (size_t)(strrchr(path, '/') - path));
        int rc = dnn_file_make_dirs(dir, err);

        dnn_free(dir);
        DNN_TRY(rc);
        *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    }
    if (*fd >= 0) return 0;
    return dnn_fail(err, DNN_EIO, "%s: cannot be written: %s", path, strerror(errno));
}

/* Write what is around the values, unless the file has its full length. */
static int write_header(struct dnn_output *out, int part, int64_t sample, int fd,
                        const char *path, int64_t *at, struct dnn_err *err)
{
    struct output_header header;
    struct output_layout l;
    struct stat st;

    dnn_output_layout(out, part, sample, &l);
    int rc = dnn_output_header(out, part, sample, &l, &header, err);
    *at = (int64_t)header.head.len;
    int64_t end = *at + l.bytes, all = end + (int64_t)header.tail.len;
    if (rc == 0 && (fstat(fd, &st) != 0 || st.st_size < all)) {
        rc = dnn_output_write(fd, path, header.head.text, header.head.len, 0, err);
        if (rc == 0 && header.tail.len > 0)
            rc =
                dnn_output_write(fd, path, header.tail.text, header.tail.len, end, err);
        else if (rc == 0 && ftruncate(fd, all) != 0)
            rc = fail_write(fd, path, errno, err);
    }
    dnn_buf_free(&header.head);
    dnn_buf_free(&header.tail);
    return rc;
}

bool dnn_output_is_whole(struct dnn_output *out, int part, int64_t sample)
{
    struct output_header header;
    struct output_layout l;
    struct stat st;
    char *path = dnn_output_temp(out, part, sample);

    dnn_output_layout(out, part, sample, &l);
    bool whole =
        dnn_output_header(out, part, sample, &l, &header, NULL) == 0 &&
        stat(path, &st) == 0 &&
        st.st_size == (int64_t)header.head.len + l.bytes + (int64_t)header.tail.len;
    dnn_buf_free(&header.head);
    dnn_buf_free(&header.tail);
    dnn_free(path);
    return whole;
}

int dnn_output_sync_open(struct dnn_output *out, struct dnn_err *err)
{
    if (out->hdf5 >= 0) DNN_TRY(dnn_output_sync(out->hdf5, out->work, err));
    if (out->scratch >= 0) DNN_TRY(dnn_output_sync(out->scratch, out->work, err));
    for (int i = 0; i < OUTPUT_HANDLES; i++)
        if (out->handle[i].fd >= 0)
            DNN_TRY(dnn_output_sync(out->handle[i].fd, out->work, err));
    return 0;
}

/* Flushed to disk first: afterwards no other rank could do it. */
static int close_handle(const struct dnn_output *out, struct output_handle *h,
                        struct dnn_err *err)
{
    if (h->fd < 0) return 0;
    char *path = dnn_output_temp(out, (int)(h->id % out->nparts), h->id / out->nparts);
    int rc = dnn_output_sync(h->fd, path, err);

    if (close(h->fd) != 0 && errno != EINTR && rc == 0)
        rc = fail_write(-1, path, errno, err);
    h->fd = -1;
    dnn_free(path);
    return rc;
}

/* The handle of the file, else the one used longest ago; NULL: all are in use. */
static struct output_handle *find(struct dnn_output *out, int64_t id)
{
    struct output_handle *oldest = NULL;

    for (int i = 0; i < OUTPUT_HANDLES; i++) {
        struct output_handle *h = &out->handle[i];

        if (h->fd >= 0 && h->id == id) return h;
        if (h->users == 0 && (oldest == NULL || h->used < oldest->used)) oldest = h;
    }
    return oldest;
}

static int take_locked(struct dnn_output *out, int part, int64_t sample,
                       struct output_store *store, struct dnn_err *err)
{
    int64_t id = sample * out->nparts + part;
    struct output_handle *h = find(out, id);

    if (h == NULL)
        return dnn_fail(err, DNN_EIO, "more than %d threads write outputs",
                        OUTPUT_HANDLES);
    if (h->fd < 0 || h->id != id) {
        DNN_TRY(close_handle(out, h, err));
        DNN_TRY(create(store->path, &h->fd, err));
        h->id = id;
        int rc = write_header(out, part, sample, h->fd, store->path, &h->at, err);
        if (rc < 0) {
            close_handle(out, h, NULL);
            return rc;
        }
    }
    h->users++;
    h->used = ++out->clock;
    store->fd = h->fd;
    store->at = h->at;
    store->slot = (int)(h - out->handle);
    return 0;
}

int dnn_output_take(struct dnn_output *out, int part, int64_t sample,
                    struct output_store *store, struct dnn_err *err)
{
    enum output_place place = out->part[part].place;
    bool hdf5 = place == OUTPUT_IN_HDF5;
    int rc = 0;

    *store = (struct output_store){.fd = hdf5 ? out->hdf5 : out->scratch, .slot = -1};
    if (place != OUTPUT_IN_FILE) {
        store->at = out->offset[sample * out->nparts + part];
        store->path = dnn_output_work(out, hdf5 ? "outputs.h5" : "scratch");
        return 0;
    }
    store->path = dnn_output_temp(out, part, sample);
    pthread_mutex_lock(&out->mutex);
    rc = take_locked(out, part, sample, store, err);
    pthread_mutex_unlock(&out->mutex);
    if (rc < 0) dnn_free(store->path);
    return rc;
}

void dnn_output_give(struct dnn_output *out, struct output_store *store)
{
    dnn_free(store->path);
    if (store->slot < 0) return;
    pthread_mutex_lock(&out->mutex);
    out->handle[store->slot].users--;
    pthread_mutex_unlock(&out->mutex);
}

int dnn_output_close_handles(struct dnn_output *out, struct dnn_err *err)
{
    int rc = 0;

    for (int i = 0; i < OUTPUT_HANDLES; i++) {
        int failed = close_handle(out, &out->handle[i], rc == 0 ? err : NULL);

        if (rc == 0) rc = failed;
    }
    return rc;
}
