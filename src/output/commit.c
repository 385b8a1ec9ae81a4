/* commit.c - from temporary to complete files.
 *
 * First all ranks check that everything is complete and flush it to disk; then a file
 * in the temporary directory says so; then files are renamed.  After an interruption
 * the rest is renamed, without computing anything again: a missing temporary file has
 * its name already.  Files made from scratch are just made again.  The temporary
 * directory remains until the output is closed.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "output/output_impl.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if DNN_HAVE_ZLIB
#include <zlib.h>
#endif

enum { PIECE = 4 << 20 };

/* ---- checks ---- */

static int check_complete(const struct dnn_output *out, struct dnn_err *err)
{
    int64_t unit = dnn_output_missing(out), i = 0;
    char text[DNN_OUTPUT_NAME];

    if (unit < 0) return 0;
    if (unit >= out->units_of_samples)
        return dnn_fail(
            err, DNN_EDATA, "%s: the input of %s for the overlay is missing",
            out->o.dir,
            dnn_output_text(out, unit - out->units_of_samples, text, sizeof text));
    while (unit >= out->sample[i].first + out->sample[i].units)
        i++;
    return dnn_fail(err, DNN_EDATA,
                    "%s: part %" PRId64 " of %" PRId64 " of %s is missing", out->o.dir,
                    unit - out->sample[i].first + 1, out->sample[i].units,
                    dnn_output_text(out, i, text, sizeof text));
}

static int sync_file(const char *path, struct dnn_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return dnn_fail(err, DNN_EIO, "%s: cannot be opened: %s", path,
                        strerror(errno));
    int rc = dnn_output_sync(fd, path, err);
    close(fd);
    return rc;
}

/* Flush what this rank has written, and the files of its samples. */
static int sync_mine(struct dnn_output *out, struct dnn_err *err)
{
    DNN_TRY(dnn_output_sync_open(out, err));
    for (int64_t i = out->rank; i < out->o.nsamples; i += out->size)
        for (int p = 0; p < out->nparts; p++) {
            if (out->part[p].place != OUTPUT_IN_FILE) continue;
            char *path = dnn_output_temp(out, p, i);
            int rc = sync_file(path, err);

            dnn_free(path);
            DNN_TRY(rc);
        }
    return 0;
}

static int mark(struct dnn_output *out, struct dnn_err *err)
{
    char *path = dnn_output_work(out, "committing");
    int rc = dnn_file_write(path, "", 0, err);

    dnn_free(path);
    return rc;
}

/* ---- files of samples ---- */

static int make_parent(const char *path, struct dnn_err *err)
{
    const char *slash = strrchr(path, '/');

    if (slash == NULL || slash == path) return 0;
    char *dir = dnn_strndup(path, (size_t)(slash - path));
    int rc = dnn_file_make_dirs(dir, err);
    dnn_free(dir);
    return rc;
}

/* Rename; from may be missing if an earlier run has renamed it. */
static int rename_file(const struct dnn_output *out, const char *from, const char *to,
                       struct dnn_err *err)
{
    if (rename(from, to) == 0) return 0;
    if (errno != ENOENT || !out->committing)
        return dnn_fail(err, DNN_EIO, "%s: cannot be replaced: %s", to,
                        strerror(errno));
    if (access(to, F_OK) == 0) return 0;
    return dnn_fail(err, DNN_EIO,
                    "%s: was complete in an interrupted run, but is missing now; "
                    "remove %s to compute all outputs again",
                    to, out->work);
}

#if DNN_HAVE_ZLIB
static int compress_to(int from, const char *path, gzFile to, struct dnn_err *err)
{
    char *piece = dnn_alloc(PIECE);
    int rc = 0;

    for (int64_t at = 0; rc == 0;) {
        ssize_t n = pread(from, piece, PIECE, at);

        if (n < 0 && errno == EINTR) continue;
        if (n == 0) break;
        if (n < 0 || gzwrite(to, piece, (unsigned)n) != n)
            rc = dnn_fail(err, DNN_EIO, "%s: cannot be compressed: %s", path,
                          strerror(errno));
        at += n;
    }
    dnn_free(piece);
    return rc;
}

/* Compress a file to "PATH.gz". */
static int compress_file(const char *path, const char *compressed, struct dnn_err *err)
{
    int from = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
    gzFile to = from < 0 ? NULL : gzopen(compressed, "wbe");

    if (to == NULL)
        rc = dnn_fail(err, DNN_EIO, "%s: cannot be compressed: %s", path,
                      strerror(errno));
    else
        rc = compress_to(from, path, to, err);
    if (to != NULL && gzclose(to) != Z_OK && rc == 0)
        rc = dnn_fail(err, DNN_EIO, "%s: cannot be compressed: %s", path,
                      strerror(errno));
    if (from >= 0) close(from);
    return rc == 0 ? sync_file(compressed, err) : rc;
}
#else
static int compress_file(const char *path, const char *compressed, struct dnn_err *err)
{
    (void)compressed;
    return dnn_fail(err, DNN_ECONFIG, "%s: this program was built without zlib", path);
}
#endif

static int finish_gzip(const struct dnn_output *out, const char *temp,
                       const char *final, struct dnn_err *err)
{
    char *compressed = dnn_format("%s.gz", temp);
    int rc = 0;

    if (access(temp, F_OK) == 0 || !out->committing)
        rc = compress_file(temp, compressed, err);
    if (rc == 0) rc = rename_file(out, compressed, final, err);
    if (rc == 0) unlink(temp);
    dnn_free(compressed);
    return rc;
}

static int finish_part(struct dnn_output *out, int part, int64_t sample,
                       struct dnn_err *err)
{
    const struct output_part *p = &out->part[part];
    char *final =
        dnn_format("%s/%s", out->o.dir, out->final[sample * out->nparts + part]);
    char *temp = dnn_output_temp(out, part, sample);
    int rc = make_parent(final, err);

    if (rc == 0 && p->place == OUTPUT_IN_SCRATCH) rc = make_parent(temp, err);
    if (rc == 0 && p->place == OUTPUT_IN_SCRATCH)
        rc = dnn_output_picture(out, part, sample, temp, err);
    if (rc == 0 && p->format == DNN_OUTPUT_NIFTI && out->o.gzip)
        rc = finish_gzip(out, temp, final, err);
    else if (rc == 0)
        rc = rename_file(out, temp, final, err);
    dnn_free(final);
    dnn_free(temp);
    return rc;
}

/* Collective.  The ranks agree often, so that none waits for long. */
static int finish_samples(struct dnn_output *out, struct dnn_err *err)
{
    const int64_t often = out->o.gzip ? 1 : 64;
    int64_t rounds = (out->o.nsamples + out->size - 1) / out->size;
    int rc = 0;

    for (int64_t round = 0; round < rounds; round++) {
        int64_t i = round * out->size + out->rank;

        for (int p = 0; p < out->nparts && i < out->o.nsamples && rc == 0; p++)
            if (out->part[p].suffix != NULL) rc = finish_part(out, p, i, err);
        if (round % often == often - 1) DNN_TRY(dnn_comm_agree(out->comm, rc, err));
    }
    return dnn_comm_agree(out->comm, rc, err);
}

/* ---- files for all samples ---- */

/* Copy the part of this rank to a file that exists. */
static int copy_mine(const struct dnn_output *out, const char *from, const char *to,
                     struct dnn_err *err)
{
    int in = open(from, O_RDONLY | O_CLOEXEC), to_fd = open(to, O_WRONLY | O_CLOEXEC);
    struct stat st = {0};
    int rc = 0;

    if (in < 0 || to_fd < 0 || fstat(in, &st) != 0)
        rc = dnn_fail(err, DNN_EIO, "%s: cannot be copied to %s: %s", from, to,
                      strerror(errno));
    int64_t pieces = (st.st_size + PIECE - 1) / PIECE;
    int64_t last = pieces * (out->rank + 1) / out->size * PIECE;
    char *piece = dnn_alloc(PIECE);
    for (int64_t at = pieces * out->rank / out->size * PIECE; rc == 0 && at < last;
         at += PIECE) {
        size_t n = st.st_size - at < PIECE ? (size_t)(st.st_size - at) : PIECE;

        rc = dnn_output_read(in, from, piece, n, at, err);
        if (rc == 0) rc = dnn_output_write(to_fd, to, piece, n, at, err);
    }
    if (rc == 0) rc = dnn_output_sync(to_fd, to, err);
    dnn_free(piece);
    if (in >= 0) close(in);
    if (to_fd >= 0) close(to_fd);
    return rc;
}

/* Collective. */
static int copy_hdf5(const struct dnn_output *out, const char *from,
                     struct dnn_err *err)
{
    char *temp = dnn_format("%s.tmp", out->o.hdf5_path);
    int rc = 0;

    if (out->rank == 0) {
        int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

        if (fd < 0)
            rc = dnn_fail(err, DNN_EIO, "%s: cannot be written: %s", temp,
                          strerror(errno));
        else
            close(fd);
    }
    rc = dnn_comm_agree(out->comm, rc, err);
    if (rc == 0) rc = dnn_comm_agree(out->comm, copy_mine(out, from, temp, err), err);
    if (rc == 0 && out->rank == 0) rc = rename_file(out, temp, out->o.hdf5_path, err);
    if (rc < 0 && out->rank == 0) unlink(temp);
    dnn_free(temp);
    return dnn_comm_agree(out->comm, rc, err);
}

/* Collective. */
static int finish_hdf5(const struct dnn_output *out, struct dnn_err *err)
{
    char *temp = dnn_output_work(out, "outputs.h5");
    char *final = dnn_output_shared(out, -1, ".h5");
    bool there = access(temp, F_OK) == 0 || !out->committing;
    int rc =
        dnn_comm_bcast(out->comm, "state of the outputs", &there, sizeof there, 0, err);

    /* This run may want a copy at another path than the interrupted one. */
    if (rc == 0 && out->o.hdf5_path != NULL)
        rc = copy_hdf5(out, there ? temp : final, err);
    if (rc == 0 && out->rank == 0) rc = rename_file(out, temp, final, err);
    dnn_free(temp);
    dnn_free(final);
    return dnn_comm_agree(out->comm, rc, err);
}

static int finish_table(struct dnn_output *out, enum dnn_output_format format, int k,
                        const char *suffix, struct dnn_err *err)
{
    if ((out->o.formats & (unsigned)format) == 0) return 0;
    char *final = dnn_output_shared(out, k, suffix);
    char *temp = dnn_output_work(out, "table");
    int rc = make_parent(final, err);

    if (rc == 0) rc = dnn_output_table(out, format, k, temp, err);
    if (rc == 0) rc = rename_file(out, temp, final, err);
    dnn_free(final);
    dnn_free(temp);
    return rc;
}

/* On rank 0. */
static int finish_shared(struct dnn_output *out, struct dnn_err *err)
{
    for (int k = 0; k < out->o.noutputs; k++) {
        DNN_TRY(finish_table(out, DNN_OUTPUT_CSV, k, ".csv", err));
        DNN_TRY(finish_table(out, DNN_OUTPUT_JSON, k, ".json", err));
    }
    /* EINVAL: the file system does not need or support it. */
    int fd = open(out->o.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    if (fd >= 0 && fsync(fd) != 0 && errno != EINVAL)
        rc = dnn_fail(err, DNN_EIO, "%s: cannot be flushed to disk: %s", out->o.dir,
                      strerror(errno));
    if (fd >= 0) close(fd);
    return rc;
}

int dnn_output_commit(struct dnn_output *out, struct dnn_err *err)
{
    struct dnn_comm *comm = out->comm;
    int rc = dnn_output_close_handles(out, err);

    DNN_TRY(dnn_comm_agree(comm, rc, err));
    DNN_TRY(dnn_output_combine(out, err));
    DNN_TRY(dnn_comm_agree(comm, check_complete(out, err), err));
    if (!out->committing) {
        DNN_TRY(dnn_comm_agree(comm, sync_mine(out, err), err));
        rc = out->rank == 0 ? mark(out, err) : 0;
        DNN_TRY(dnn_comm_agree(comm, rc, err));
    }
    DNN_TRY(finish_samples(out, err));
    if (out->o.formats & DNN_OUTPUT_BP5) DNN_TRY(dnn_output_complete_bp(out, err));
    if (out->o.formats & DNN_OUTPUT_HDF5) DNN_TRY(finish_hdf5(out, err));
    rc = out->rank == 0 ? finish_shared(out, err) : 0;
    return dnn_comm_agree(comm, rc, err);
}
