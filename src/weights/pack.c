/* pack.c - writes a .keras archive: metadata.json, config.json and model.weights.h5.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#if DNN_HAVE_HDF5
#include "weights/h5_impl.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

#if DNN_HAVE_ZIP
#include <zip.h>

/* A member without compression, dated 1980, so that equal content gives equal bytes. */
static bool add(zip_t *zip, const char *name, const void *bytes, size_t len)
{
    zip_source_t *from = zip_source_buffer(zip, bytes, len, 0);
    zip_int64_t at = from == NULL ? -1 : zip_file_add(zip, name, from, 0);

    if (at < 0) {
        zip_source_free(from);
        return false;
    }
    return zip_set_file_compression(zip, (zip_uint64_t)at, ZIP_CM_STORE, 0) == 0 &&
           zip_file_set_dostime(zip, (zip_uint64_t)at, 0, 1 << 5 | 1, 0) == 0;
}

/* Write the archive in memory to the file. */
static int write_out(const char *path, zip_source_t *all, struct dnn_err *err)
{
    zip_stat_t stat;

    zip_stat_init(&stat);
    if (zip_source_stat(all, &stat) < 0 || zip_source_open(all) < 0)
        return dnn_fail(err, DNN_EIO, "%s: libzip cannot write the archive", path);
    char *bytes = malloc(stat.size + 1);
    int rc = 0;
    if (bytes == NULL)
        rc = dnn_fail(err, DNN_ENOMEM, "%s: no memory for %zu bytes to write", path,
                      (size_t)stat.size);
    else if (zip_source_read(all, bytes, stat.size) != (zip_int64_t)stat.size)
        rc = dnn_fail(err, DNN_EIO, "%s: libzip cannot write the archive", path);
    else
        rc = dnn_file_write(path, bytes, stat.size, err);
    free(bytes);
    zip_source_close(all);
    return rc;
}

int dnn_h5_pack(const char *path, const struct dnn_weights_about *about,
                const void *weights, size_t len, struct dnn_err *err)
{
    zip_source_t *all = zip_source_buffer_create(NULL, 0, 0, NULL);
    zip_t *zip = all == NULL ? NULL : zip_open_from_source(all, ZIP_TRUNCATE, NULL);

    if (zip == NULL) {
        zip_source_free(all);
        return dnn_fail(err, DNN_EIO, "%s: libzip cannot make an archive", path);
    }
    zip_source_keep(all);
    char *metadata = dnn_format("{\"keras_version\": \"3.0.0\"%s%s}",
                                about->scaling == NULL ? "" : ", \"dnn_toolkit\": ",
                                about->scaling == NULL ? "" : about->scaling);
    int rc = 0;
    if (!add(zip, "metadata.json", metadata, strlen(metadata)) ||
        !add(zip, "config.json", about->network, strlen(about->network)) ||
        !add(zip, "model.weights.h5", weights, len)) {
        rc = dnn_fail(err, DNN_EIO, "%s: %s", path, zip_strerror(zip));
        zip_discard(zip);
    } else if (zip_close(zip) < 0) {
        rc = dnn_fail(err, DNN_EIO, "%s: %s", path, zip_strerror(zip));
        zip_discard(zip);
    } else
        rc = write_out(path, all, err);
    dnn_free(metadata);
    zip_source_free(all);
    return rc;
}

#else

int dnn_h5_pack(const char *path, const struct dnn_weights_about *about,
                const void *weights, size_t len, struct dnn_err *err)
{
    (void)about, (void)weights, (void)len;
    return dnn_fail(err, DNN_ECONFIG,
                    "%s: .keras archives need libzip, which this was built without",
                    path);
}
#endif
#endif
