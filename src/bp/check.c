/* check.c - check a BP5 directory before ADIOS2 opens it.
 *
 * ADIOS2 does not validate its input: truncated tables, or offsets outside the files,
 * make it hang, throw or crash.  So the sizes in its tables are compared with the files
 * first.  The layout (all numbers are little-endian, 64 bits):
 *
 *   md.idx  header, 64 bytes: text; byte 36: byte order (0: little-endian), byte 37:
 *           version, byte 39: still being written;
 *           then records: a letter, the length of the rest, and
 *             w: number of writers, aggregators, data files; the data file of each
 *                writer
 *             s: offset and length in md.0, number of flushes; for each writer offset
 *                and length of each flush in its data file, and the offset of the last
 *                one
 *   md.0    for each step: length; for each writer the length of the description of its
 *           arrays; for each writer that of its attributes; then these descriptions
 *   mmd.0   pairs of a name and a description: the two lengths, then the two texts
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/mem.h"
#include "bp/bp_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { HEADER = 64, RECORD = 9, LIMIT = 1 << 30 };

struct table {
    const char *path, *name; /* directory and file */
    const char *text;
    size_t len, at;
};

char *dnn_bp_file_name(const char *path, const char *name)
{
    return dnn_format("%s/%s", path, name);
}

static uint64_t number(const char *at)
{
    uint64_t x;

    memcpy(&x, at, sizeof x);
    return x;
}

static int damaged(const struct table *t, const char *what, struct dnn_err *err)
{
    return dnn_fail(err, DNN_EDATA, "%s/%s: damaged or truncated: %s", t->path, t->name,
                    what);
}

static int size_of(const char *path, const char *name, uint64_t *out,
                   struct dnn_err *err)
{
    char *full = dnn_bp_file_name(path, name);
    struct stat st;
    int rc = 0;

    if (stat(full, &st) < 0)
        rc = dnn_fail(err, errno == ENOENT ? DNN_EDATA : DNN_EIO, "%s: %s", full,
                      strerror(errno));
    else if (!S_ISREG(st.st_mode))
        rc = dnn_fail(err, DNN_EDATA, "%s: not a regular file", full);
    else
        *out = (uint64_t)st.st_size;
    dnn_free(full);
    return rc;
}

static int check_header(const struct table *t, struct dnn_err *err)
{
    if (t->len < HEADER) return damaged(t, "it has no header", err);
    if (strncmp(t->text, "ADIOS-BP v", 10) != 0 || t->text[37] != 5)
        return dnn_fail(err, DNN_EDATA, "%s: not a BP5 file (ADIOS2 2.8 or later)",
                        t->path);
    if (t->text[36] != 0)
        return dnn_fail(err, DNN_EDATA,
                        "%s: written on a big-endian machine, which is not supported",
                        t->path);
    if (t->text[39] != 0)
        return dnn_fail(
            err, DNN_EDATA,
            "%s: incomplete: it is still being written, or its writer was killed",
            t->path);
    return 0;
}

static int read_writers(struct table *t, const char *body, uint64_t len,
                        struct bp_map *map, struct dnn_err *err)
{
    if (len < 24) return damaged(t, "a record of writers is too short", err);
    map->nwriters = number(body);
    map->nfiles = number(body + 16);
    map->file_of = body + 24;
    if (map->nwriters == 0 || map->nwriters != (len - 24) / 8 || (len - 24) % 8 != 0)
        return damaged(t, "a record of writers has the wrong length", err);
    for (uint64_t i = 0; i < map->nwriters; i++)
        if (dnn_bp_map_file(map, i) >= map->nfiles)
            return damaged(t, "a writer has no data file", err);
    return 0;
}

/* Check that the lengths at the beginning of a step in md.0 fit into the step. */
static int check_step(const struct table *md, uint64_t at, uint64_t len,
                      uint64_t nwriters, struct dnn_err *err)
{
    uint64_t sum = 8 + 16 * nwriters;

    if (len > md->len || at > md->len - len)
        return damaged(md, "a step is longer than the file", err);
    if (len < sum) return damaged(md, "a step is too short", err);
    for (uint64_t i = 0; i < 2 * nwriters; i++)
        if (__builtin_add_overflow(sum, number(md->text + at + 8 + 8 * i), &sum) ||
            sum > len)
            return damaged(md, "a description is longer than its step", err);
    return 0;
}

static int read_step(struct table *t, const char *body, uint64_t len,
                     const struct table *md, struct bp_map *map, struct dnn_err *err)
{
    uint64_t want;

    if (map->nwriters == 0) return damaged(t, "a step has no writers", err);
    if (len < 24) return damaged(t, "a record of a step is too short", err);
    map->nflushes = number(body + 16);
    map->flushes = body + 24;
    map->md_at = number(body);
    if (map->nflushes > len ||
        __builtin_mul_overflow(map->nwriters, (2 * map->nflushes + 1) * 8, &want) ||
        want != len - 24)
        return damaged(t, "a record of a step has the wrong length", err);
    map->steps++;
    if (md == NULL) return 0;
    return check_step(md, number(body), number(body + 8), map->nwriters, err);
}

static int check_records(struct table *t, const struct table *md, struct bp_map *map,
                         struct dnn_err *err)
{
    for (t->at = HEADER; t->at < t->len;) {
        if (t->len - t->at < RECORD) return damaged(t, "a record is truncated", err);
        char letter = t->text[t->at];
        uint64_t len = number(t->text + t->at + 1);
        const char *body = t->text + t->at + RECORD;

        if (len > t->len - t->at - RECORD)
            return damaged(t, "a record is longer than the file", err);
        if (letter == 'w')
            DNN_TRY(read_writers(t, body, len, map, err));
        else if (letter == 's')
            DNN_TRY(read_step(t, body, len, md, map, err));
        else
            return damaged(t, "a record of an unknown kind", err);
        t->at += RECORD + len;
    }
    if (map->steps == 0) return damaged(t, "it has no step", err);
    return 0;
}

static int check_names(const struct table *t, struct dnn_err *err)
{
    for (size_t at = 0; at < t->len;) {
        if (t->len - at < 16) return damaged(t, "a description is truncated", err);
        uint64_t name = number(t->text + at), info = number(t->text + at + 8), both;

        if (__builtin_add_overflow(name, info, &both) || both > t->len - at - 16)
            return damaged(t, "a description is longer than the file", err);
        at += 16 + both;
    }
    return t->len > 0 ? 0 : damaged(t, "empty file", err);
}

/* Size of the last flush of a writer, from its description in md.0: after the name of
 * the record format and the length there are the number of words of a bit field, an
 * offset, and the total bytes of the step.  UINT64_MAX if the values are not
 * plausible. */
static uint64_t step_bytes(const struct bp_map *map, const struct table *md,
                           const struct table *names, uint64_t writer)
{
    uint64_t form = number(names->text), head = (form + 4 + 8 + 7) / 8 * 8;
    uint64_t at = map->md_at + 8, known = 0, start, bytes;

    uint64_t len = number(md->text + at + 8 * writer);
    at += 16 * map->nwriters;
    for (uint64_t i = 0; i < writer; i++)
        at += number(md->text + map->md_at + 8 + 8 * i);
    if (form > 64 || len < head + 24) return UINT64_MAX;
    for (uint64_t p = 0; p < map->nflushes; p++) {
        dnn_bp_map_flush(map, writer, p, &start, &bytes);
        known += bytes;
    }
    uint64_t words = number(md->text + at + head);
    uint64_t all = number(md->text + at + head + 16);
    return words < 1 << 20 && all >= known && all < (uint64_t)1 << 50 ? all - known
                                                                      : UINT64_MAX;
}

/* Check that every flush of the last step is inside its file; earlier steps are not
 * checked. */
static int check_data(const char *path, const struct bp_map *map,
                      const struct table *md, const struct table *names,
                      struct dnn_err *err)
{
    uint64_t *size = dnn_alloc(map->nfiles * sizeof *size);
    int rc = 0;

    for (uint64_t i = 0; rc == 0 && i < map->nfiles; i++) {
        char name[32];

        snprintf(name, sizeof name, "data.%llu", (unsigned long long)i);
        rc = size_of(path, name, &size[i], err);
    }
    for (uint64_t w = 0; rc == 0 && w < map->nwriters; w++)
        for (uint64_t p = 0; rc == 0 && p <= map->nflushes; p++) {
            uint64_t start, bytes, file = dnn_bp_map_file(map, w);

            dnn_bp_map_flush(map, w, p, &start, &bytes);
            if (bytes == UINT64_MAX) bytes = step_bytes(map, md, names, w);
            if (bytes == UINT64_MAX || bytes == 0) continue; /* may be past the end */
            if (bytes > size[file] || start > size[file] - bytes)
                rc = dnn_fail(err, DNN_EDATA,
                              "%s/data.%llu: damaged or truncated: %llu bytes, but at "
                              "least %llu expected",
                              path, (unsigned long long)file,
                              (unsigned long long)size[file],
                              (unsigned long long)(start + bytes));
        }
    dnn_free(size);
    return rc;
}

static int load(const char *path, const char *name, struct table *t,
                struct dnn_err *err)
{
    uint64_t size;
    char *text;

    DNN_TRY(size_of(path, name, &size, err)); /* it is a regular file */
    char *full = dnn_bp_file_name(path, name);
    *t = (struct table){.path = path, .name = name};
    int rc = dnn_file_read(full, LIMIT, &text, &t->len, err);
    dnn_free(full);
    if (rc == 0) t->text = text;
    return rc;
}

static int check_dir(const char *path, struct dnn_err *err)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return dnn_fail(err, DNN_EIO, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return dnn_fail(err, DNN_EDATA, "%s: not a BP5 file, which is a directory",
                        path);
    return 0;
}

int dnn_bp_check(const char *path, struct bp_map *out, size_t *md_bytes,
                 struct dnn_err *err)
{
    struct table index = {0}, md = {0}, names = {0};

    memset(out, 0, sizeof *out);
    DNN_TRY(check_dir(path, err));
    int rc = load(path, "md.idx", &index, err);
    if (rc == 0) rc = check_header(&index, err);
    if (rc == 0) rc = load(path, "md.0", &md, err);
    if (rc == 0) rc = load(path, "mmd.0", &names, err);
    if (rc == 0) rc = check_records(&index, &md, out, err);
    if (rc == 0) rc = check_names(&names, err);
    if (rc == 0) rc = check_data(path, out, &md, &names, err);
    *md_bytes = md.len;
    dnn_free((char *)md.text);
    dnn_free((char *)names.text);
    out->text = (char *)index.text;
    out->len = index.len;
    if (rc < 0) dnn_bp_map_free(out);
    return rc;
}

int dnn_bp_map_read(const char *path, const char *text, size_t len, struct bp_map *out,
                    struct dnn_err *err)
{
    char *copy = dnn_alloc(len + 1);
    struct table t = {.path = path, .name = "md.idx", .text = copy, .len = len};

    memset(out, 0, sizeof *out);
    if (len > 0) memcpy(copy, text, len);
    out->text = copy;
    out->len = len;
    int rc = check_header(&t, err);
    if (rc == 0) rc = check_records(&t, NULL, out, err);
    if (rc < 0) dnn_bp_map_free(out);
    return rc;
}

void dnn_bp_map_free(struct bp_map *map)
{
    dnn_free(map->text);
    memset(map, 0, sizeof *map);
}

uint64_t dnn_bp_map_file(const struct bp_map *map, uint64_t writer)
{
    return number(map->file_of + 8 * writer);
}

void dnn_bp_map_flush(const struct bp_map *map, uint64_t writer, uint64_t flush,
                      uint64_t *start, uint64_t *bytes)
{
    const char *at = map->flushes + 8 * (writer * (2 * map->nflushes + 1) + 2 * flush);

    *start = number(at);
    *bytes = flush < map->nflushes ? number(at + 8) : UINT64_MAX;
}
