/* journal.c - records of completed units.
 *
 * A record is written after the values of its unit.  It has a fixed size and a checksum
 * of its own, and belongs to an output by its key: a damaged or torn record is a unit
 * that is computed again.
 *
 * Values that were just written are still in the memory of the node, and lost if it
 * fails.  Their record has a key that is also of the node since its start, so it counts
 * only where they are.  When they have been flushed to disk, the record is written
 * over with the key of the output alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "output/output_impl.h"

#include "base/clock.h"
#include "base/crc.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct record {
    int64_t unit;
    uint32_t key, sum;
};

static const double every = 30; /* seconds between flushes, at least */

/* boot: out->boot, or 0 if the values are on disk. */
static struct record make(const struct dnn_output *out, int64_t unit, uint32_t boot)
{
    struct record r = {.unit = unit, .key = out->key ^ boot};

    r.sum = dnn_crc_record(&r, offsetof(struct record, sum));
    return r;
}

void dnn_output_journal(struct dnn_output *out, uint32_t key)
{
    char id[64];
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    size_t n = f == NULL ? 0 : fread(id, 1, sizeof id, f);

    if (f != NULL) fclose(f);
    out->key = key;
    out->boot = (n == 0 ? (uint32_t)getpid() : dnn_crc_record(id, n)) | 1;
    out->flushed = dnn_clock_now();
}

static int append(struct dnn_output *out, const void *bytes, size_t len,
                  struct dnn_err *err)
{
    for (;;) {
        ssize_t n = write(out->journal, bytes, len);

        if (n == (ssize_t)len) return 0;
        if (n < 0 && errno == EINTR) continue;
        return dnn_fail(err, DNN_EIO, "%s: the journal cannot be written: %s",
                        out->work, n < 0 ? strerror(errno) : strerror(ENOSPC));
    }
}

int dnn_output_flush(struct dnn_output *out, struct dnn_err *err)
{
    struct dnn_buf all = {0};

    out->flushed = dnn_clock_now();
    if (out->nloose == 0) return 0;
    DNN_TRY(dnn_output_sync_open(out, err));
    for (size_t i = 0; i < out->nloose; i++) {
        struct record r = make(out, out->loose[i], 0);

        dnn_buf_bytes(&all, &r, sizeof r);
    }
    lseek(out->journal, -(off_t)all.len, SEEK_CUR);
    int rc = append(out, all.text, all.len, err);
    dnn_buf_free(&all);
    if (rc == 0) rc = dnn_output_sync(out->journal, out->work, err);
    if (rc == 0) out->nloose = 0;
    return rc;
}

int dnn_output_record(struct dnn_output *out, int64_t unit, struct dnn_err *err)
{
    struct record r = make(out, unit, out->boot);

    DNN_TRY(append(out, &r, sizeof r, err));
    out->loose =
        dnn_grow(out->loose, &out->loose_cap, out->nloose + 1, sizeof *out->loose);
    out->loose[out->nloose++] = unit;
    return dnn_clock_now() - out->flushed < every ? 0 : dnn_output_flush(out, err);
}

static bool is_record(const struct dnn_output *out, const struct record *r,
                      uint32_t boot)
{
    struct record want = make(out, r->unit, boot);

    return memcmp(r, &want, sizeof want) == 0 && r->unit >= 0 && r->unit < out->nunits;
}

static int replay_file(struct dnn_output *out, const char *name, struct dnn_err *err)
{
    struct record r;
    char *path = dnn_output_work(out, name), *bytes;
    size_t len;
    int rc = dnn_file_read(path, SIZE_MAX / 4, &bytes, &len, err);

    dnn_free(path);
    DNN_TRY(rc);
    for (size_t at = 0; at + sizeof r <= len; at += sizeof r) {
        memcpy(&r, bytes + at, sizeof r);
        if (is_record(out, &r, 0) || is_record(out, &r, out->boot))
            out->done[r.unit] = 1;
    }
    dnn_free(bytes);
    return 0;
}

/* Call each() for all journals in the directory. */
static int each_journal(struct dnn_output *out,
                        int (*each)(struct dnn_output *out, const char *name,
                                    struct dnn_err *err),
                        struct dnn_err *err)
{
    DIR *dir = opendir(out->work);
    struct dirent *entry;
    int rc = 0;

    if (dir == NULL)
        return dnn_fail(err, DNN_EIO, "%s: cannot be read: %s", out->work,
                        strerror(errno));
    while (rc == 0 && (entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, "journal", strlen("journal")) == 0)
            rc = each(out, entry->d_name, err);
    closedir(dir);
    return rc;
}

int dnn_output_replay(struct dnn_output *out, struct dnn_err *err)
{
    DNN_TRY(each_journal(out, replay_file, err));
    /* Of this node: from now on, the records count everywhere. */
    if (out->lock < 0 || syncfs(out->lock) == 0) return 0;
    return dnn_fail(err, DNN_EIO, "%s: cannot be flushed to disk: %s", out->work,
                    strerror(errno));
}

static int remove_rank(struct dnn_output *out, const char *name, struct dnn_err *err)
{
    char *path = dnn_output_work(out, name);
    int rc = strchr(name, '.') != NULL && unlink(path) != 0 ? -1 : 0;

    if (rc < 0)
        rc = dnn_fail(err, DNN_EIO, "%s: cannot be removed: %s", path, strerror(errno));
    dnn_free(path);
    return rc;
}

int dnn_output_compact(struct dnn_output *out, struct dnn_err *err)
{
    struct dnn_buf all = {0};
    char *path = dnn_output_work(out, "journal");

    dnn_buf_bytes(&all, "", 0);
    for (int64_t i = 0; i < out->nunits; i++)
        if (out->done[i]) {
            struct record r = make(out, i, 0);

            dnn_buf_bytes(&all, &r, sizeof r);
        }
    int rc = dnn_file_write(path, all.text, all.len, err);
    if (rc == 0) rc = each_journal(out, remove_rank, err);
    dnn_buf_free(&all);
    dnn_free(path);
    return rc;
}
