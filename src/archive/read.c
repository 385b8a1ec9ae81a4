/* read.c - reads members of a zip archive, which may contain anything.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "archive/archive.h"

#include "base/text.h"

#if DNN_HAVE_ZIP
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <zip.h>

enum {
    NAME = 80, /* bytes of a member's name in a message */
    BLOCK = 1 << 20,
    UNCHECKED = 64 << 20, /* bytes of a member whose ratio is not checked      */
    MAX_RATIO = 100       /* maximum compression ratio of larger ones: weights
                         hardly compress                                       */
};

static const char *show_name(char out[NAME], const char *name)
{
    snprintf(out, NAME, "%s", name == NULL ? "a member" : name);
    return dnn_text_clean(out);
}

/* Programs may differ in which of two members with the same name they read. */
static int check_names(const char *path, zip_t *zip, struct dnn_err *err)
{
    char shown[NAME];

    for (int64_t i = 0, n = zip_get_num_entries(zip, 0); i < n; i++) {
        const char *name = zip_get_name(zip, (zip_uint64_t)i, 0);
        int64_t first = name == NULL ? -1 : zip_name_locate(zip, name, 0);

        if (first >= 0 && first != i)
            return dnn_fail(err, DNN_EDATA, "%s: has two members %s", path,
                            show_name(shown, name));
    }
    return 0;
}

static int open_archive(const char *path, zip_t **out, struct dnn_err *err)
{
    int code = 0;

    *out = zip_open(path, ZIP_RDONLY, &code);
    if (*out != NULL) {
        int rc = check_names(path, *out, err);
        if (rc < 0) zip_discard(*out);
        return rc;
    }
    zip_error_t why;
    zip_error_init_with_code(&why, code);
    int rc = dnn_fail(err, DNN_EDATA, "%s: cannot be read as a zip archive: %s", path,
                      zip_error_strerror(&why));
    zip_error_fini(&why);
    return rc;
}

static int failed(const char *path, const char *name, zip_file_t *member,
                  struct dnn_err *err)
{
    return dnn_fail(err, DNN_EDATA, "%s: %s in it: %s", path, name,
                    zip_error_strerror(zip_file_get_error(member)));
}

/* Read the member, whose declared size is size, into to. */
static int fill(const char *path, const char *name, zip_file_t *member, char *to,
                uint64_t size, struct dnn_err *err)
{
    uint64_t done = 0;
    char more;

    while (done < size) {
        uint64_t left = size - done;
        int64_t n = zip_fread(member, to + done, left < BLOCK ? left : BLOCK);

        if (n < 0) return failed(path, name, member, err);
        if (n == 0)
            return dnn_fail(err, DNN_EDATA, "%s: %s in it is truncated", path, name);
        done += (uint64_t)n;
    }
    /* libzip checks the checksum when it reads past the last byte. */
    int64_t n = zip_fread(member, &more, 1);
    if (n > 0)
        return dnn_fail(err, DNN_EDATA, "%s: %s in it is longer than its declared size",
                        path, name);
    return n < 0 ? failed(path, name, member, err) : 0;
}

static int check_size(const char *path, const char *name, const zip_stat_t *stat,
                      size_t limit, struct dnn_err *err)
{
    if ((stat->valid & ZIP_STAT_SIZE) == 0 || (stat->valid & ZIP_STAT_COMP_SIZE) == 0)
        return dnn_fail(err, DNN_EDATA, "%s: %s in it has no size", path, name);
    if (stat->size > limit)
        return dnn_fail(err, DNN_EDATA,
                        "%s: %s in it has %" PRIu64
                        " bytes, which exceeds the limit of "
                        "%zu",
                        path, name, (uint64_t)stat->size, limit);
    if (stat->size > UNCHECKED && stat->size / MAX_RATIO > stat->comp_size)
        return dnn_fail(err, DNN_EDATA,
                        "%s: %s in it would grow from %" PRIu64 " to %" PRIu64
                        " bytes, which is not possible for weights",
                        path, name, (uint64_t)stat->comp_size, (uint64_t)stat->size);
    return 0;
}

static int read_member(const char *path, zip_t *zip, const char *name, size_t limit,
                       char **out, size_t *len, struct dnn_err *err)
{
    zip_stat_t stat;
    int64_t at = zip_name_locate(zip, name, 0);

    *out = NULL;
    *len = 0;
    if (at < 0) return 0;
    zip_stat_init(&stat);
    zip_stat_index(zip, (zip_uint64_t)at, 0, &stat);
    DNN_TRY(check_size(path, name, &stat, limit, err));
    zip_file_t *member = zip_fopen_index(zip, (zip_uint64_t)at, 0);
    if (member == NULL)
        return dnn_fail(err, DNN_EDATA, "%s: %s in it: %s", path, name,
                        zip_strerror(zip));
    char *memory = malloc(stat.size + 1);
    int rc = memory == NULL ? dnn_fail(err, DNN_ENOMEM,
                                       "%s: no memory for %" PRIu64 " bytes of %s",
                                       path, (uint64_t)stat.size, name)
                            : fill(path, name, member, memory, stat.size, err);
    zip_fclose(member);
    if (rc < 0) {
        free(memory);
        return rc;
    }
    memory[stat.size] = '\0';
    *out = memory;
    *len = stat.size;
    return 0;
}

int dnn_archive_read(const char *path, const char *name, size_t limit, char **out,
                     size_t *len, struct dnn_err *err)
{
    zip_t *zip;

    DNN_TRY(open_archive(path, &zip, err));
    int rc = read_member(path, zip, name, limit, out, len, err);
    zip_discard(zip);
    return rc;
}

/* Read a member without keeping it; *left: bytes that this and later ones may have. */
static int check_member(const char *path, zip_t *zip, zip_uint64_t at, char *block,
                        uint64_t *left, struct dnn_err *err)
{
    char shown[NAME];
    zip_file_t *member = zip_fopen_index(zip, at, 0);
    int rc = 0;
    int64_t n;

    show_name(shown, zip_get_name(zip, at, 0));
    if (member == NULL)
        return dnn_fail(err, DNN_EDATA, "%s: %s in it: %s", path, shown,
                        zip_strerror(zip));
    while (rc == 0 && (n = zip_fread(member, block, BLOCK)) != 0) {
        if (n < 0)
            rc = failed(path, shown, member, err);
        else if ((uint64_t)n > *left)
            rc = dnn_fail(err, DNN_EDATA, "%s: its members have more bytes than itself",
                          path);
        else
            *left -= (uint64_t)n;
    }
    zip_fclose(member);
    return rc;
}

int dnn_archive_check(const char *path, struct dnn_err *err)
{
    struct stat st;
    zip_t *zip;
    int rc = 0;

    DNN_TRY(open_archive(path, &zip, err));
    char *block = malloc(BLOCK);
    int64_t n = zip_get_num_entries(zip, 0);
    uint64_t left = stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
    if (block == NULL)
        rc = dnn_fail(err, DNN_ENOMEM, "%s: no memory for %d bytes", path, BLOCK);
    for (int64_t i = 0; i < n && rc == 0; i++)
        rc = check_member(path, zip, (zip_uint64_t)i, block, &left, err);
    free(block);
    zip_discard(zip);
    return rc;
}

#else

int dnn_archive_read(const char *path, const char *name, size_t limit, char **out,
                     size_t *len, struct dnn_err *err)
{
    (void)name, (void)limit, (void)out, (void)len;
    return dnn_fail(err, DNN_ECONFIG,
                    "%s: zip archives need libzip, which this was built without", path);
}

int dnn_archive_check(const char *path, struct dnn_err *err)
{
    return dnn_archive_read(path, NULL, 0, NULL, NULL, err);
}
#endif
