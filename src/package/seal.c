/* seal.c - the checksum at the end of a model file.
 *
 * The archive's comment is the last part of a zip file.  Ours has always the same
 * length and ends with a checksum of all bytes of the file before it, so every byte is
 * covered: of members, of the archive's directory, and of the comment itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "package/package_impl.h"

#include "archive/archive.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#define MARK "dnn-toolkit model; bytes "
#define SUM "; XXH3-128 "
#define BLANK MARK "00000000000000000000" SUM "00000000000000000000000000000000"
enum { SEAL = sizeof BLANK - 1, BLOCK = 1 << 20, HEAD = 30 + sizeof PACKAGE_INFO - 1 };

const char *package_seal_blank(void)
{
    return BLANK;
}

static void write_sum(XXH128_hash_t sum, char out[PACKAGE_SUM + 1])
{
    snprintf(out, PACKAGE_SUM + 1, "%016" PRIx64 "%016" PRIx64, (uint64_t)sum.high64,
             (uint64_t)sum.low64);
}

/* The seal up to its checksum. */
static void write_head(size_t len, char out[SEAL + 1])
{
    snprintf(out, SEAL + 1, MARK "%020zu" SUM, len);
}

void package_seal(char *bytes, size_t len)
{
    char head[SEAL + 1], sum[PACKAGE_SUM + 1];

    write_head(len, head);
    memcpy(bytes + len - SEAL, head, SEAL - PACKAGE_SUM);
    write_sum(XXH3_128bits(bytes, len - PACKAGE_SUM), sum);
    memcpy(bytes + len - PACKAGE_SUM, sum, PACKAGE_SUM);
}

/* ---- checking ---- */

/* The first and the last bytes of a file; shorter files are filled up with zeros. */
struct ends {
    char head[HEAD], seal[SEAL + 1];
    size_t len;
};

static int read_ends(FILE *f, struct ends *out)
{
    struct stat st;

    *out = (struct ends){0};
    if (fstat(fileno(f), &st) != 0) return -1;
    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    out->len = (size_t)st.st_size;
    if (fread(out->head, 1, HEAD, f) < HEAD && ferror(f)) return -1;
    if (out->len < SEAL) return 0;
    if (fseek(f, -SEAL, SEEK_END) != 0) return -1;
    return fread(out->seal, 1, SEAL, f) == SEAL ? 0 : -1;
}

/* Whether the archive's first member is dnn.json. */
static bool begins_so(const struct ends *e)
{
    return memcmp(e->head, "PK\3\4", 4) == 0 &&
           memcmp(e->head + 30, PACKAGE_INFO, HEAD - 30) == 0;
}

bool dnn_package_is(const char *path)
{
    struct stat st;
    struct ends e;

    /* Nothing is read from a pipe, because it cannot be read again. */
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return false;
    FILE *f = fopen(path, "rbe");
    if (f == NULL) return false;
    bool good =
        read_ends(f, &e) == 0 && (dnn_text_ends(path, ".dnn") || begins_so(&e) ||
                                  strncmp(e.seal, MARK, strlen(MARK)) == 0);
    fclose(f);
    return good;
}

/* Explain why a file has no seal. */
static int no_seal(const char *path, const struct ends *e, struct dnn_err *err)
{
    if (e->len == 0) return dnn_fail(err, DNN_EDATA, "%s: the file is empty", path);
    if (begins_so(e))
        return dnn_fail(
            err, DNN_EDATA,
            "%s: truncated or damaged: it has %zu bytes, and the last %d are "
            "not the comment that ends a model file",
            path, e->len, SEAL);
    if (memcmp(e->head, "PK\3\4", 4) == 0)
        return dnn_fail(
            err, DNN_EDATA,
            "%s: not a model file of dnn-toolkit, but another zip archive, "
            "such as a .keras file of Keras: it does not begin with " PACKAGE_INFO
            " and does not end with the comment of model files; "
            "only weights can be read from .keras files, which must have "
            "this ending",
            path);
    return dnn_fail(err, DNN_EDATA,
                    "%s: not a model file of dnn-toolkit: it is not a zip archive",
                    path);
}

static int sum_file(FILE *f, const char *path, size_t len, char out[PACKAGE_SUM + 1],
                    struct dnn_err *err)
{
    XXH3_state_t *state = XXH3_createState();
    char *block = malloc(BLOCK);
    int rc = 0;

    if (state == NULL || block == NULL || XXH3_128bits_reset(state) != XXH_OK)
        rc = dnn_fail(err, DNN_ENOMEM, "%s: no memory for %d bytes", path, BLOCK);
    rewind(f);
    while (rc == 0 && len > 0) {
        size_t n = fread(block, 1, len < BLOCK ? len : BLOCK, f);

        if (n == 0)
            rc = dnn_fail(err, DNN_EIO, "%s: cannot be read: %s", path,
                          ferror(f) ? strerror(errno) : "it became shorter");
        else
            XXH3_128bits_update(state, block, n);
        len -= n;
    }
    if (rc == 0) write_sum(XXH3_128bits_digest(state), out);
    XXH3_freeState(state);
    free(block);
    return rc;
}

const char *package_after_path(const char *path, const char *text)
{
    size_t begin = strlen(path) + strlen(": ");

    return strlen(text) > begin ? text + begin : text;
}

/* Find the damaged part: the members have checksums of their own. */
static int damaged(const char *path, const char *stored, const char *sum,
                   struct dnn_err *err)
{
    struct dnn_err why = {0};
    const char *where =
        "its members are intact, so the damage is in the headers, in the "
        "directory or in the comment";

    if (dnn_archive_check(path, &why) < 0) where = package_after_path(path, why.text);
    return dnn_fail(
        err, DNN_EDATA,
        "%s: damaged: its checksum is %s, but the comment at its end has %s; "
        "%s",
        path, sum, stored, where);
}

static int check(FILE *f, const char *path, bool whole, char sum[PACKAGE_SUM + 1],
                 struct dnn_err *err)
{
    char head[SEAL + 1], *stored;
    struct ends e;

    if (read_ends(f, &e) < 0)
        return dnn_fail(err, DNN_EIO, "%s: cannot be read: %s", path, strerror(errno));
    if (strncmp(e.seal, MARK, strlen(MARK)) != 0) return no_seal(path, &e, err);
    stored = e.seal + SEAL - PACKAGE_SUM;
    write_head(e.len, head);
    bool same = memcmp(head, e.seal, SEAL - PACKAGE_SUM) == 0;
    dnn_text_clean(e.seal);
    if (!same)
        return dnn_fail(err, DNN_EDATA,
                        "%s: damaged: it has %zu bytes, but the comment at its end has "
                        "\"%.*s\"",
                        path, e.len, SEAL - PACKAGE_SUM - (int)strlen(SUM), e.seal);
    memcpy(sum, stored, PACKAGE_SUM + 1);
    if (!whole) return 0;
    DNN_TRY(sum_file(f, path, e.len - PACKAGE_SUM, sum, err));
    return strcmp(sum, stored) == 0 ? 0 : damaged(path, stored, sum, err);
}

int package_seal_check(const char *path, bool whole, char sum[PACKAGE_SUM + 1],
                       struct dnn_err *err)
{
    FILE *f = fopen(path, "rbe");

    if (f == NULL)
        return dnn_fail(err, DNN_EIO, "%s: cannot be read: %s", path, strerror(errno));
    int rc = check(f, path, whole, sum, err);
    fclose(f);
    return rc;
}
