/* make.c - makes a zip archive in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "archive/archive.h"

#include <stdlib.h>
#include <string.h>

#if DNN_HAVE_ZIP
#include <zip.h>

static bool add(zip_t *zip, const struct dnn_archive_member *m)
{
    zip_source_t *from = zip_source_buffer(zip, m->bytes, m->len, 0);
    zip_int64_t at = from == NULL ? -1 : zip_file_add(zip, m->name, from, 0);

    if (at < 0) {
        zip_source_free(from);
        return false;
    }
    return zip_set_file_compression(zip, (zip_uint64_t)at, ZIP_CM_STORE, 0) == 0 &&
           zip_file_set_dostime(zip, (zip_uint64_t)at, 0, 1 << 5 | 1, 0) == 0;
}

/* Copy the archive out of libzip's memory. */
static int take(const char *path, zip_source_t *all, char **out, size_t *len,
                struct dnn_err *err)
{
    zip_stat_t stat;

    zip_stat_init(&stat);
    if (zip_source_stat(all, &stat) < 0 || zip_source_open(all) < 0)
        return dnn_fail(err, DNN_EIO, "%s: libzip cannot make the archive", path);
    char *bytes = malloc(stat.size + 1);
    int rc = 0;
    if (bytes == NULL)
        rc = dnn_fail(err, DNN_ENOMEM, "%s: no memory for %zu bytes to write", path,
                      (size_t)stat.size);
    else if (zip_source_read(all, bytes, stat.size) != (zip_int64_t)stat.size)
        rc = dnn_fail(err, DNN_EIO, "%s: libzip cannot make the archive", path);
    zip_source_close(all);
    if (rc < 0) {
        free(bytes);
        return rc;
    }
    *out = bytes;
    *len = stat.size;
    return 0;
}

int dnn_archive_make(const char *path, int n, const struct dnn_archive_member *member,
                     const char *comment, char **out, size_t *len, struct dnn_err *err)
{
    zip_source_t *all = zip_source_buffer_create(NULL, 0, 0, NULL);
    zip_t *zip = all == NULL ? NULL : zip_open_from_source(all, ZIP_TRUNCATE, NULL);
    bool good = zip != NULL;
    int rc;

    if (!good) {
        zip_source_free(all);
        return dnn_fail(err, DNN_EIO, "%s: libzip cannot make an archive", path);
    }
    zip_source_keep(all);
    for (int i = 0; i < n && good; i++)
        good = add(zip, &member[i]);
    if (comment != NULL)
        good = good && zip_set_archive_comment(zip, comment,
                                               (zip_uint16_t)strlen(comment)) == 0;
    if (!good || zip_close(zip) < 0) {
        rc = dnn_fail(err, DNN_EIO, "%s: %s", path, zip_strerror(zip));
        zip_discard(zip);
    } else
        rc = take(path, all, out, len, err);
    zip_source_free(all);
    return rc;
}

#else

int dnn_archive_make(const char *path, int n, const struct dnn_archive_member *member,
                     const char *comment, char **out, size_t *len, struct dnn_err *err)
{
    (void)n, (void)member, (void)comment, (void)out, (void)len;
    return dnn_fail(err, DNN_ECONFIG,
                    "%s: zip archives need libzip, which this was built without", path);
}
#endif
