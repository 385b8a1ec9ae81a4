/* importers.c - the list of formats, and detection of the format of a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/import_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <string.h>
#include <strings.h>

/* The first importer that recognises the content of a file is used: the most reliable
 * checks first. */
const struct dnn_importer *const dnn_importers[] = {
    &dnn_importer_png,      &dnn_importer_jpeg,
    &dnn_importer_tiff,     &dnn_importer_nifti,
    &dnn_importer_npy,      &dnn_importer_npz,
    &dnn_importer_hdf5,     &dnn_importer_bp,
    &dnn_importer_tfrecord, &dnn_importer_idx,
    &dnn_importer_cifar,    &dnn_importer_csv,
    &dnn_importer_raw,      NULL};

bool dnn_import_info(int index, struct dnn_importer_info *out)
{
    int n = 0;

    while (dnn_importers[n] != NULL)
        n++;
    if (index < 0 || index >= n) return false;
    const struct dnn_importer *it = dnn_importers[index];
    *out =
        (struct dnn_importer_info){it->name, it->suffixes, it->help, it->open != NULL};
    return true;
}

int dnn_importer_lacks(const struct dnn_importer *importer, struct dnn_err *err)
{
    return dnn_fail(err, DNN_ECONFIG,
                    "%s files cannot be read: this program was built without %s",
                    importer->name,
                    importer->lacks == NULL ? "the required library" : importer->lacks);
}

/* ---- by suffix ---- */

/* The next suffix of an importer, advancing *at; NULL at the end. */
static const char *next_suffix(const char **at, size_t *len)
{
    const char *start = *at + strspn(*at, " ");

    *len = strcspn(start, " ");
    *at = start + *len;
    return *len == 0 ? NULL : start;
}

/* The length of the suffix of an importer with which path ends; 0: none. */
static size_t suffix_length(const struct dnn_importer *importer, const char *path)
{
    const char *at = importer->suffixes, *suffix, *base = dnn_import_base(path);
    size_t n = strlen(base), len, best = 0;

    if (at == NULL) return 0;
    while ((suffix = next_suffix(&at, &len)) != NULL)
        if (n > len && len > best && strncasecmp(base + n - len, suffix, len) == 0)
            best = len;
    return best;
}

bool dnn_importer_owns(const struct dnn_importer *importer, const char *path)
{
    return suffix_length(importer, path) > 0;
}

const struct dnn_importer *dnn_importer_by_suffix(const char *path)
{
    const struct dnn_importer *found = NULL;
    size_t best = 0;

    for (int i = 0; dnn_importers[i] != NULL; i++) {
        size_t len = suffix_length(dnn_importers[i], path);

        if (len > best) {
            best = len;
            found = dnn_importers[i];
        }
    }
    return found;
}

/* ---- by content ---- */

enum { HEAD = 1024 };

static int by_content(const char *path, const struct dnn_importer **out,
                      struct dnn_err *err)
{
    unsigned char head[HEAD];
    struct dnn_bytes *file;
    size_t n;

    *out = NULL;
    DNN_TRY(dnn_bytes_open(path, &file, err));
    int rc = dnn_bytes_some(file, 0, head, sizeof head, &n, err);
    dnn_bytes_close(file);
    if (rc < 0) return rc;
    for (int i = 0; dnn_importers[i] != NULL && *out == NULL; i++)
        if (dnn_importers[i]->sniff != NULL && dnn_importers[i]->sniff(head, n))
            *out = dnn_importers[i];
    return 0;
}

/* ---- errors ---- */

static int unknown_format(const char *format, struct dnn_err *err)
{
    struct dnn_buf list = {0};
    const char *names[64];
    char hint[96];
    int n = 0, rc;

    for (; dnn_importers[n] != NULL && n < 63; n++) {
        names[n] = dnn_importers[n]->name;
        dnn_buf_add(&list, "%s%s", n == 0 ? "" : ", ", names[n]);
    }
    names[n] = NULL;
    rc = dnn_fail(err, DNN_ECONFIG, "unknown format \"%s\"; known: %s%s", format,
                  list.text, dnn_text_hint(hint, sizeof hint, format, names));
    dnn_buf_free(&list);
    return rc;
}

static int unknown_file(const char *path, struct dnn_err *err)
{
    const char *base = dnn_import_base(path), *dot = strrchr(base, '.');
    struct dnn_arena *arena = dnn_arena_make();
    const char *names[128], *at, *suffix;
    size_t n = 0, len;
    char hint[96];
    int rc;

    for (int i = 0; dnn_importers[i] != NULL; i++) {
        at = dnn_importers[i]->suffixes;
        while (at != NULL && (suffix = next_suffix(&at, &len)) != NULL && n < 127) {
            char *name = dnn_strndup(suffix, len);

            names[n++] = dnn_arena_strdup(arena, name);
            dnn_free(name);
        }
    }
    names[n] = NULL;
    if (dot == NULL || dot == base)
        rc = dnn_fail(
            err, DNN_EDATA,
            "%s: unknown file format (no suffix, and the content is not recognised)",
            path);
    else
        rc = dnn_fail(err, DNN_EDATA,
                      "%s: unknown file format (suffix \"%s\", and the content is not "
                      "recognised)%s",
                      path, dot, dnn_text_hint(hint, sizeof hint, dot, names));
    dnn_arena_free(arena);
    return rc;
}

int dnn_importer_find(const char *format, const char *path,
                      const struct dnn_importer **out, struct dnn_err *err)
{
    const struct dnn_importer *found = NULL;

    if (format != NULL) {
        for (int i = 0; dnn_importers[i] != NULL; i++)
            if (strcasecmp(dnn_importers[i]->name, format) == 0)
                found = dnn_importers[i];
        if (found == NULL) return unknown_format(format, err);
    } else {
        found = dnn_importer_by_suffix(path);
        if (found == NULL) DNN_TRY(by_content(path, &found, err));
        if (found == NULL) return unknown_file(path, err);
    }
    if (found->open == NULL) return dnn_importer_lacks(found, err);
    *out = found;
    return 0;
}
