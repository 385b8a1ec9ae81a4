/* journal.c - records of completed units.
 *
 * A record is written after the values of its unit.  It has a fixed size and a checksum
 * of its own, and belongs to an output by its key: a damaged or torn record is a unit
 * that is computed again.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "output/output_impl.h"

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

static struct record make(const struct dnn_output *out, int64_t unit)
{
    struct record r = {.unit = unit, .key = out->key};

    r.sum = dnn_crc_record(&r, offsetof(struct record, sum));
    return r;
}

int dnn_output_record(struct dnn_output *out, int64_t unit, struct dnn_err *err)
{
    struct record r = make(out, unit);

    for (;;) {
        ssize_t n = write(out->journal, &r, sizeof r);

        if (n == (ssize_t)sizeof r) return 0;
        if (n < 0 && errno == EINTR) continue;
        return dnn_fail(err, DNN_EIO, "%s: the journal cannot be written: %s",
                        out->work, n < 0 ? strerror(errno) : strerror(ENOSPC));
    }
}

static int replay_file(struct dnn_output *out, const char *name, struct dnn_err *err)
{
    struct record r, want;
    char *path = dnn_output_work(out, name), *bytes;
    size_t len;
    int rc = dnn_file_read(path, SIZE_MAX / 4, &bytes, &len, err);

    dnn_free(path);
    DNN_TRY(rc);
    for (size_t at = 0; at + sizeof r <= len; at += sizeof r) {
        memcpy(&r, bytes + at, sizeof r);
        want = make(out, r.unit);
        if (memcmp(&r, &want, sizeof r) == 0 && r.unit >= 0 && r.unit < out->nunits)
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
    return each_journal(out, replay_file, err);
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
            struct record r = make(out, i);

            dnn_buf_bytes(&all, &r, sizeof r);
        }
    int rc = dnn_file_write(path, all.text, all.len, err);
    if (rc == 0) rc = each_journal(out, remove_rank, err);
    dnn_buf_free(&all);
    dnn_free(path);
    return rc;
}
