/* state.c - the temporary directory: settings, journals, what is complete.
 *
 * Rank 0 makes it, or finds out what an interrupted run has completed; the others
 * receive the result.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "output/output_impl.h"

#include "base/file.h"
#include "base/log.h"
#include "import/hdf5_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { PIECE = 1 << 16 };

char *dnn_output_work(const struct dnn_output *out, const char *name)
{
    return dnn_format("%s/%s", out->work, name);
}

static bool exists(const struct dnn_output *out, const char *name, int64_t bytes)
{
    char *path = dnn_output_work(out, name);
    struct stat st;
    bool there = stat(path, &st) == 0 && st.st_size >= bytes;

    dnn_free(path);
    return there;
}

static bool uses(const struct dnn_output *out, enum output_place place)
{
    for (int i = 0; i < out->nparts; i++)
        if (out->part[i].place == place) return true;
    return false;
}

/* ---- settings ---- */

struct settings {
    char magic[16];
    uint64_t hash;
    int64_t offsets; /* number; they follow                                         */
};
static const char magic[16] = "dnn-output 1\n";

static int64_t offsets_of(const struct dnn_output *out)
{
    return out->o.nsamples * out->nparts;
}

/* The checksum of all that decides the content of the temporary files. */
static uint64_t hash_of(const struct dnn_output *out, uint64_t samples)
{
    const struct dnn_output_options *o = &out->o;
    struct dnn_buf text = {0};

    dnn_buf_add(&text, "%" PRIx64 " %" PRId64 " %u %u %d %d %.17g %s", samples,
                o->nsamples, o->formats, o->contents, o->precision, o->gzip,
                o->threshold, o->settings == NULL ? "" : o->settings);
    for (int k = 0; k < o->noutputs && o->noutputs > 1; k++)
        dnn_buf_add(&text, "\n%s", o->output_name[k]);
    uint64_t hash = XXH3_64bits(text.text, text.len);
    dnn_buf_free(&text);
    return hash;
}

static int write_settings(const struct dnn_output *out, uint64_t hash,
                          struct dnn_err *err)
{
    struct settings s = {.hash = hash, .offsets = offsets_of(out)};
    struct dnn_buf text = {0};
    char *path = dnn_output_work(out, "settings");

    memcpy(s.magic, magic, sizeof s.magic);
    dnn_buf_bytes(&text, &s, sizeof s);
    dnn_buf_bytes(&text, out->offset, (size_t)s.offsets * sizeof *out->offset);
    uint64_t sum = XXH3_64bits(text.text, text.len);
    dnn_buf_bytes(&text, &sum, sizeof sum);
    int rc = dnn_file_write(path, text.text, text.len, err);
    dnn_buf_free(&text);
    dnn_free(path);
    return rc;
}

/* Whether the directory belongs to these settings; then the offsets are read. */
static bool read_settings(struct dnn_output *out, uint64_t hash)
{
    struct settings s;
    uint64_t sum;
    char *path = dnn_output_work(out, "settings"), *text;
    size_t len, table = (size_t)offsets_of(out) * sizeof *out->offset;
    bool same = false;

    if (dnn_file_read(path, sizeof s + table + sizeof sum, &text, &len, NULL) == 0) {
        same = len == sizeof s + table + sizeof sum;
        if (same) {
            memcpy(&s, text, sizeof s);
            memcpy(&sum, text + sizeof s + table, sizeof sum);
            same = memcmp(s.magic, magic, sizeof s.magic) == 0 && s.hash == hash &&
                   sum == XXH3_64bits(text, sizeof s + table);
        }
        if (same) memcpy(out->offset, text + sizeof s, table);
        dnn_free(text);
    }
    dnn_free(path);
    return same;
}

/* ---- the directory ---- */

/* Make the directory and lock it against another run; file systems without locks are
 * fine. */
static int lock(struct dnn_output *out, struct dnn_err *err)
{
    DNN_TRY(dnn_file_make_dirs(out->work, err));
    out->lock = open(out->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->lock < 0 || flock(out->lock, LOCK_EX | LOCK_NB) == 0 ||
        errno != EWOULDBLOCK)
        return 0;
    close(out->lock);
    out->lock = -1;
    return dnn_fail(err, DNN_EIO,
                    "%s: another run is writing its outputs there; every run needs "
                    "its own directory",
                    out->o.dir);
}

static int create_hdf5(struct dnn_output *out, struct dnn_err *err)
{
    char *path = dnn_output_work(out, "outputs.h5");
    struct dnn_hdf5_out *file;
    int rc = dnn_hdf5_create(path, &file, err);

    dnn_free(path);
    DNN_TRY(rc);
    for (int64_t i = 0; i < out->o.nsamples; i++)
        for (int p = 0; p < out->nparts && rc == 0; p++) {
            int64_t at = i * out->nparts + p;
            struct output_layout l;

            if (out->part[p].place != OUTPUT_IN_HDF5) continue;
            dnn_output_layout(out, p, i, &l);
            rc = dnn_hdf5_reserve(file, out->final[at], l.type, &l.shape,
                                  &out->offset[at], err);
        }
    if (rc == 0) return dnn_hdf5_commit(file, err);
    dnn_hdf5_abandon(file);
    return rc;
}

static int create_scratch(struct dnn_output *out, struct dnn_err *err)
{
    char *path = dnn_output_work(out, "scratch");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666), rc = 0;

    if (fd < 0 || ftruncate(fd, out->scratch_bytes) != 0)
        rc = dnn_fail(err, DNN_EIO, "%s: cannot be written: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    dnn_free(path);
    return rc;
}

static int create(struct dnn_output *out, uint64_t hash, struct dnn_err *err)
{
    int old = out->lock;

    /* Another run must not begin in the directory while it is removed. */
    out->lock = -1;
    int rc = dnn_file_remove_tree(out->work, err);
    if (rc == 0) rc = lock(out, err);
    if (old >= 0) close(old);
    DNN_TRY(rc);
    if (uses(out, OUTPUT_IN_HDF5)) DNN_TRY(create_hdf5(out, err));
    if (uses(out, OUTPUT_IN_SCRATCH)) DNN_TRY(create_scratch(out, err));
    return out->o.settings == NULL ? 0 : write_settings(out, hash, err);
}

/* The end of the last dataset. */
static int64_t end_of_hdf5(const struct dnn_output *out)
{
    int64_t end = 0;

    for (int64_t i = 0; i < offsets_of(out); i++) {
        int p = (int)(i % out->nparts);
        struct output_layout l;

        if (out->part[p].place != OUTPUT_IN_HDF5) continue;
        dnn_output_layout(out, p, i / out->nparts, &l);
        if (out->offset[i] + l.bytes > end) end = out->offset[i] + l.bytes;
    }
    return end;
}

/* On rank 0. */
static int prepare(struct dnn_output *out, uint64_t hash, struct dnn_err *err)
{
    const char *hdf5 = out->o.hdf5_path;

    DNN_TRY(lock(out, err));
    if (hdf5 != NULL && strrchr(hdf5, '/') != NULL && strrchr(hdf5, '/') != hdf5) {
        char *dir = dnn_strndup(hdf5, (size_t)(strrchr(hdf5, '/') - hdf5));
        int rc = dnn_file_make_dirs(dir, err);

        dnn_free(dir);
        DNN_TRY(rc);
    }
    if (out->o.settings == NULL || !read_settings(out, hash))
        return create(out, hash, err);
    out->committing = exists(out, "committing", 0);
    if ((!out->committing && uses(out, OUTPUT_IN_HDF5) &&
         !exists(out, "outputs.h5", end_of_hdf5(out))) ||
        (uses(out, OUTPUT_IN_SCRATCH) && !exists(out, "scratch", out->scratch_bytes))) {
        out->committing = false;
        return create(out, hash, err);
    }
    return dnn_output_replay(out, err);
}

/* ---- what is complete ---- */

/* The maximum over all ranks. */
static int combine(struct dnn_output *out, unsigned char *bytes, struct dnn_err *err)
{
    int64_t *piece = dnn_alloc(PIECE * sizeof *piece);
    int rc = 0;

    for (int64_t at = 0; at < out->nunits && rc == 0; at += PIECE) {
        int64_t n = out->nunits - at < PIECE ? out->nunits - at : PIECE;

        for (int64_t i = 0; i < n; i++)
            piece[i] = bytes[at + i];
        rc = dnn_comm_allreduce(out->comm, "completed units of outputs", piece, n,
                                DNN_COMM_I64, DNN_COMM_MAX, err);
        for (int64_t i = 0; i < n; i++)
            bytes[at + i] = (unsigned char)piece[i];
    }
    dnn_free(piece);
    return rc;
}

int dnn_output_combine(struct dnn_output *out, struct dnn_err *err)
{
    return combine(out, out->done, err);
}

int64_t dnn_output_missing(const struct dnn_output *out)
{
    for (int64_t i = 0; i < out->nunits; i++)
        if (!out->done[i]) return i;
    return -1;
}

static bool has_files(struct dnn_output *out, int64_t sample)
{
    for (int p = 0; p < out->nparts; p++)
        if (out->part[p].place == OUTPUT_IN_FILE &&
            !dnn_output_is_whole(out, p, sample))
            return false;
    return true;
}

/* Units of samples whose files are gone are not complete, nor are those of a sample
 * whose picture for the overlay is missing. */
static int forget_lost(struct dnn_output *out, struct dnn_err *err)
{
    unsigned char *lost = dnn_alloc((size_t)out->nunits + 1);
    bool input = dnn_output_wants_input(out);

    for (int64_t i = 0; i < out->o.nsamples; i++) {
        const struct output_sample *s = &out->sample[i];
        bool any = memchr(out->done + s->first, 1, (size_t)s->units) != NULL;

        if (!any) continue;
        if ((dnn_output_mine(out, i) && !has_files(out, i)) ||
            (input && !out->done[out->units_of_samples + i]))
            memset(lost + s->first, 1, (size_t)s->units);
    }
    int rc = combine(out, lost, err);
    for (int64_t i = 0; i < out->nunits; i++)
        if (lost[i]) out->done[i] = 0;
    dnn_free(lost);
    return rc;
}

/* ---- begin ---- */

static int bcast(struct dnn_output *out, void *bytes, size_t n, struct dnn_err *err)
{
    enum { MOST = 1 << 24 };

    for (size_t at = 0; at < n; at += MOST)
        DNN_TRY(dnn_comm_bcast(out->comm, "state of the outputs", (char *)bytes + at,
                               n - at < MOST ? n - at : MOST, 0, err));
    return 0;
}

static int open_one(const struct dnn_output *out, const char *name, int how, int *fd,
                    struct dnn_err *err)
{
    char *path = dnn_output_work(out, name);
    int rc = 0;

    *fd = open(path, how | O_CLOEXEC, 0666);
    if (*fd < 0)
        rc = dnn_fail(err, DNN_EIO, "%s: cannot be opened: %s", path, strerror(errno));
    dnn_free(path);
    return rc;
}

static int open_files(struct dnn_output *out, struct dnn_err *err)
{
    char name[32];

    snprintf(name, sizeof name, "journal.%d", out->rank);
    if (uses(out, OUTPUT_IN_SCRATCH))
        DNN_TRY(open_one(out, "scratch", O_RDWR, &out->scratch, err));
    if (uses(out, OUTPUT_IN_HDF5) && !out->committing)
        DNN_TRY(open_one(out, "outputs.h5", O_RDWR, &out->hdf5, err));
    if (out->o.settings == NULL) return 0;
    return open_one(out, name, O_WRONLY | O_CREAT | O_TRUNC, &out->journal, err);
}

static void report(const struct dnn_output *out)
{
    int64_t n = 0;

    for (int64_t i = 0; i < out->units_of_samples; i++)
        n += out->done[i];
    if (n > 0)
        dnn_log(DNN_INFO, "output",
                "%s: resuming an interrupted run: %" PRId64 " of %" PRId64
                " parts are complete",
                out->o.dir, n, out->units_of_samples);
}

int dnn_output_begin(struct dnn_output *out, uint64_t samples, struct dnn_err *err)
{
    uint64_t hash = hash_of(out, samples);
    int rc = 0;

    dnn_output_journal(out, (uint32_t)(hash ^ hash >> 32));
    if (out->rank == 0) rc = prepare(out, hash, err);
    DNN_TRY(dnn_comm_agree(out->comm, rc, err));
    DNN_TRY(bcast(out, &out->committing, sizeof out->committing, err));
    if (uses(out, OUTPUT_IN_HDF5))
        DNN_TRY(bcast(out, out->offset, (size_t)offsets_of(out) * sizeof *out->offset,
                      err));
    if (out->o.settings != NULL) {
        DNN_TRY(bcast(out, out->done, (size_t)out->nunits, err));
        if (!out->committing) DNN_TRY(forget_lost(out, err));
        /* Files may have their names already: whatever a damaged journal says, nothing
         * must be written again. */
        if (out->committing) memset(out->done, 1, (size_t)out->nunits);
        report(out);
        rc = out->rank == 0 ? dnn_output_compact(out, err) : 0;
        DNN_TRY(dnn_comm_agree(out->comm, rc, err));
    }
    return dnn_comm_agree(out->comm, open_files(out, err), err);
}
