/* index.c - the file dnn.idx.  It is written last, so it marks a complete BP file, and
 * it has the offset of each block, which ADIOS2 finds only by a search of all blocks.
 *
 * Numbers are little-endian, 64 bits:
 *
 *   "DNNIDX1\n"
 *   number of files; for each: name (24 bytes), size, checksum (data files: 0)
 *   number of arrays; for each: length of its name, the name padded with zeros to a
 *       multiple of 8, number of blocks; for each: first row, rows, writer, flush,
 *       offset in the flush
 *   checksum of all of this; checksums are XXH3, 64 bits
 *
 * It is optional: a file without it can be read, but it is not known whether it is
 * complete.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/mem.h"
#include "bp/bp_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

static const char magic[8] = "DNNIDX1\n";
enum { NAME = 24, BLOCK = 40, LIMIT = 1 << 30 };

/* ---- a buffer with a read position ---- */

struct cursor {
    const char *at;
    size_t left;
    bool bad;
};

static const char *take(struct cursor *c, size_t n)
{
    const char *at = c->at;

    if (c->bad || n > c->left) {
        c->bad = true;
        return NULL;
    }
    c->at += n;
    c->left -= n;
    return at;
}

static uint64_t take_number(struct cursor *c)
{
    const char *at = take(c, 8);
    uint64_t x = 0;

    if (at != NULL) memcpy(&x, at, 8);
    return x;
}

/* ---- reading ---- */

static int compare_size(const char *path, uint64_t expected, struct dnn_err *err)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return dnn_fail(err, errno == ENOENT ? DNN_EDATA : DNN_EIO, "%s: %s", path,
                        strerror(errno));
    if ((uint64_t)st.st_size != expected)
        return dnn_fail(err, DNN_EDATA,
                        "%s: damaged or truncated: %llu bytes, but %llu were written",
                        path, (unsigned long long)st.st_size,
                        (unsigned long long)expected);
    return 0;
}

static int sum_of(const char *path, uint64_t *out, uint64_t *size, struct dnn_err *err)
{
    char *text;
    size_t len;

    DNN_TRY(dnn_file_read(path, LIMIT, &text, &len, err));
    *out = XXH3_64bits(text, len);
    *size = len;
    dnn_free(text);
    return 0;
}

static int compare(const char *path, const char *name, uint64_t size, uint64_t sum,
                   struct dnn_err *err)
{
    char *full = dnn_bp_file_name(path, name);
    uint64_t has = 0, bytes;

    int rc = compare_size(full, size, err);
    if (rc == 0 && strncmp(name, "data.", 5) != 0) {
        rc = sum_of(full, &has, &bytes, err);
        if (rc == 0 && has != sum)
            rc = dnn_fail(err, DNN_EDATA, "%s: checksum mismatch; the file is damaged",
                          full);
    }
    dnn_free(full);
    return rc;
}

static int compare_files(const char *path, struct cursor *c, struct dnn_err *err)
{
    uint64_t n = take_number(c);

    for (uint64_t i = 0; i < n && !c->bad; i++) {
        const char *name = take(c, NAME);
        uint64_t size = take_number(c), sum = take_number(c);

        if (c->bad || memchr(name, '\0', NAME) == NULL) break;
        DNN_TRY(compare(path, name, size, sum, err));
    }
    return 0;
}

int dnn_bp_index_read(const char *path, char **out, size_t *len, struct dnn_err *err)
{
    char *full = dnn_bp_file_name(path, DNN_BP_INDEX), *text = NULL;
    struct stat st;
    uint64_t sum = 0;
    int rc = 0;

    *out = NULL;
    *len = 0;
    if (lstat(full, &st) < 0) {
        dnn_free(full);
        return 0; /* a BP file of another program */
    }
    rc = dnn_file_read(full, LIMIT, &text, len, err);
    if (rc == 0) {
        if (*len >= sizeof magic + 8) memcpy(&sum, text + *len - 8, 8);
        if (*len < sizeof magic + 8 || memcmp(text, magic, sizeof magic) != 0 ||
            sum != XXH3_64bits(text, *len - 8))
            rc = dnn_fail(err, DNN_EDATA, "%s: damaged or truncated", full);
    }
    if (rc == 0) {
        struct cursor c = {.at = text + sizeof magic, .left = *len - sizeof magic - 8};
        rc = compare_files(path, &c, err);
    }
    dnn_free(full);
    if (rc < 0) {
        dnn_free(text);
        return rc;
    }
    *out = text;
    return 0;
}

_Static_assert(sizeof(struct bp_block) == BLOCK, "blocks are used in bp->index");

static void use_blocks(struct dnn_bp *bp, const char *name, const char *at, uint64_t n)
{
    int number = dnn_bp_find(bp, name);

    if (number < 0 || n == 0) return;
    bp->var[number].block = (const struct bp_block *)at;
    bp->var[number].nblocks = n;
}

void dnn_bp_index_use(struct dnn_bp *bp, size_t len)
{
    struct cursor c = {.at = bp->index + sizeof magic, .left = len - sizeof magic - 8};
    uint64_t n = take_number(&c);

    take(&c, n > len ? SIZE_MAX : n * (NAME + 16));
    n = take_number(&c);
    for (uint64_t i = 0; i < n && !c.bad; i++) {
        uint64_t length = take_number(&c);
        const char *name = take(&c, length > len ? SIZE_MAX : (length + 7) / 8 * 8);
        uint64_t nblocks = take_number(&c);
        const char *at = take(&c, nblocks > len ? SIZE_MAX : nblocks * BLOCK);

        if (c.bad) return;
        char *text = dnn_strndup(name, length);
        use_blocks(bp, text, at, nblocks);
        dnn_free(text);
    }
}
