/* write.c - writes model files, and parts of them for other programs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "package/package_impl.h"

#include "archive/archive.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 5 };

static void add(struct dnn_archive_member *member, int *n, const char *name,
                const void *bytes, size_t len)
{
    member[(*n)++] = (struct dnn_archive_member){name, bytes, len};
}

/* Write the archive; info: dnn.json, or NULL for an archive of Keras alone. */
static int write_archive(const char *path, const struct dnn_package_parts *parts,
                         const char *info, struct dnn_err *err)
{
    struct dnn_archive_member member[MEMBERS];
    char *bytes = NULL;
    size_t len = 0;
    int n = 0;
    char *metadata = dnn_format("{\"keras_version\": \"3.0.0\"%s%s}",
                                parts->scaling == NULL ? "" : ", \"dnn_toolkit\": ",
                                parts->scaling == NULL ? "" : parts->scaling);

    if (info != NULL) {
        add(member, &n, PACKAGE_INFO, info, strlen(info));
        add(member, &n, PACKAGE_NETWORK, parts->network, strlen(parts->network));
    }
    if (parts->keras != NULL) {
        add(member, &n, PACKAGE_METADATA, metadata, strlen(metadata));
        add(member, &n, PACKAGE_KERAS, parts->keras, strlen(parts->keras));
    }
    add(member, &n, DNN_WEIGHTS_MEMBER, parts->weights, parts->weights_len);
    int rc = dnn_archive_make(
        path, n, member, info == NULL ? NULL : package_seal_blank(), &bytes, &len, err);
    dnn_free(metadata);
    if (rc == 0 && info != NULL) package_seal(bytes, len);
    if (rc == 0) rc = dnn_file_write(path, bytes, len, err);
    free(bytes);
    return rc;
}

int dnn_package_write(const char *path, const struct dnn_package_parts *parts,
                      struct dnn_err *err)
{
    if (dnn_text_ends(path, ".keras")) {
        if (parts->keras == NULL)
            return dnn_fail(
                err, DNN_ECONFIG,
                "%s: cannot be written: Keras has no equivalent of some layers of "
                "this network; export .weights.h5 or .json instead",
                path);
        return write_archive(path, parts, NULL, err);
    }
    char *info = package_info_text(&parts->info);
    int rc = info == NULL ? dnn_fail(err, DNN_ENOMEM, "%s: no memory", path)
                          : write_archive(path, parts, info, err);
    free(info);
    return rc;
}

/* ---- export ---- */

static int read_weights(const struct dnn_package *p, char **out, size_t *len,
                        struct dnn_err *err)
{
    DNN_TRY(dnn_archive_read(p->path, DNN_WEIGHTS_MEMBER, SIZE_MAX / 2, out, len, err));
    return *out != NULL
               ? 0
               : dnn_fail(err, DNN_EDATA,
                          "%s: changed while it was read; run the command again",
                          p->path);
}

/* The archive of Keras has the members as they are here. */
static int export_keras(const struct dnn_package *p, const char *path,
                        struct dnn_err *err)
{
    const char *metadata = dnn_package_text(p, PACKAGE_METADATA);
    const char *keras = dnn_package_text(p, PACKAGE_KERAS);
    struct dnn_json *file = NULL;
    char *weights = NULL, *scaling = NULL;
    size_t len = 0;

    if (metadata != NULL)
        DNN_TRY(
            dnn_json_text(PACKAGE_METADATA, metadata, strlen(metadata), &file, err));
    if (file != NULL) {
        struct dnn_jobj top = dnn_json_top(file);
        struct dnn_jobj at = dnn_json_sub(&top, "dnn_toolkit");

        scaling = dnn_json_compact(&at);
        dnn_json_free(file);
    }
    int rc = read_weights(p, &weights, &len, err);
    const struct dnn_package_parts parts = {
        .keras = keras, .scaling = scaling, .weights = weights, .weights_len = len};
    if (rc == 0) rc = dnn_package_write(path, &parts, err);
    free(weights);
    dnn_free(scaling);
    return rc;
}

int dnn_package_export(const struct dnn_package *package, const char *path,
                       struct dnn_err *err)
{
    char *weights = NULL;
    size_t len = 0;

    if (dnn_text_ends(path, ".keras")) return export_keras(package, path, err);
    if (dnn_text_ends(path, ".json")) {
        const char *text = dnn_package_text(package, PACKAGE_NETWORK);

        return dnn_file_write(path, text, strlen(text), err);
    }
    if (!dnn_text_ends(path, ".weights.h5"))
        return dnn_fail(err, DNN_EUSAGE,
                        "%s: the name must end in .keras, .weights.h5 or .json", path);
    DNN_TRY(read_weights(package, &weights, &len, err));
    int rc = dnn_file_write(path, weights, len, err);
    free(weights);
    return rc;
}
