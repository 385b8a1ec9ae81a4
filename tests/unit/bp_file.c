/* bp_file.c - BP files: arrays and attributes written and read, and invalid files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/file.h"
#include "base/mem.h"
#include "bp/bp.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/dnn-bp-XXXXXX";
static char path[256];

enum { ROWS = 37, ROW = 600 };

static bool smooth; /* fill() makes compressible data */

/* A row of any type, as bytes, different from all others. */
static void fill(unsigned char *to, int var, int64_t row, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        uint32_t x = (uint32_t)(row * 8000 + var * 5) + (smooth ? 0 : (uint32_t)i);

        to[i] = (unsigned char)((x * 2654435761u ^ x * 40503u) >> 17);
    }
}

/* Blocks in random order, of any size, with several flushes. */
static int put_types(struct dnn_bp *bp, unsigned char *data, struct dnn_err *err)
{
    static const int64_t first[] = {20, 0, 7, 8, 33}, rows[] = {13, 7, 1, 12, 4};
    struct dnn_shape shape = {
        .ndim = 3, .dim = {ROWS, 20, 30}
    };
    int var[DNN_NDTYPES];

    for (int t = 0; t < DNN_NDTYPES; t++) {
        char name[32];

        snprintf(name, sizeof name, "a/%s", dnn_dtype_name((enum dnn_dtype)t));
        DNN_TRY(
            dnn_bp_define(bp, name, (enum dnn_dtype)t, &shape, t % 2, &var[t], err));
    }
    for (int b = 0; b < 5; b++) {
        for (int t = 0; t < DNN_NDTYPES; t++) {
            size_t row = ROW * dnn_dtype_size((enum dnn_dtype)t);

            for (int64_t r = 0; r < rows[b]; r++)
                fill(data + (size_t)r * row, t, first[b] + r, row);
            DNN_TRY(dnn_bp_put(bp, var[t], first[b], rows[b], data, err));
        }
        if (b % 2 == 1) DNN_TRY(dnn_bp_flush(bp, err));
    }
    return 0;
}

static int write_types(const struct dnn_bp_how *how, struct dnn_err *err)
{
    unsigned char *data = dnn_alloc(ROWS * ROW * 8);
    struct dnn_bp *bp = NULL;
    int rc = dnn_bp_create(NULL, path, how, &bp, err);

    if (rc == 0) rc = put_types(bp, data, err);
    dnn_free(data);
    if (rc == 0) return dnn_bp_finish(bp, err);
    dnn_bp_close(bp);
    return rc;
}

static bool same_rows(struct dnn_bp *bp, int var, int type, int64_t first, int64_t rows)
{
    size_t row = ROW * dnn_dtype_size((enum dnn_dtype)type);
    unsigned char *got = dnn_alloc((size_t)rows * row), *want = dnn_alloc(row);
    struct dnn_err err = {0};
    bool same = dnn_bp_request(bp, var, first, rows, got, &err) == 0 &&
                dnn_bp_fetch(bp, &err) == 0;

    for (int64_t r = 0; same && r < rows; r++) {
        fill(want, type, first + r, row);
        same = memcmp(want, got + (size_t)r * row, row) == 0;
    }
    if (err.text[0] != '\0') printf("# %s\n", err.text);
    dnn_free(got);
    dnn_free(want);
    return same;
}

static void read_types(const char *what, bool direct)
{
    struct dnn_err err = {0};
    struct dnn_bp *bp = NULL;

    if (!ok(dnn_bp_open(NULL, path, 2, &bp, &err) == 0, "%s: opens", what)) {
        printf("# %s\n", err.text);
        return;
    }
    is_int(dnn_bp_count(bp), DNN_NDTYPES, "as many arrays as were written");
    ok(dnn_bp_complete(bp) == direct, "%s: complete or not", what);
    for (int t = 0; t < DNN_NDTYPES; t++) {
        char name[32];

        snprintf(name, sizeof name, "a/%s", dnn_dtype_name((enum dnn_dtype)t));
        int var = dnn_bp_find(bp, name);
        bool good = var >= 0 && (int)dnn_bp_var(bp, var)->type == t &&
                    dnn_bp_var(bp, var)->shape.dim[0] == ROWS;
        for (int64_t first = 0; good && first < ROWS; first += 5)
            for (int64_t n = 0; good && n <= ROWS - first; n += 4)
                good = same_rows(bp, var, t, first, n);
        ok(good, "%s: %s, from any row to any", what, name);
    }
    dnn_bp_close(bp);
}

/* The positions of all blocks are known, so reading is direct. */
static void index_is_used(void)
{
    char *full = dnn_format("%s/dnn.idx", path);
    struct stat st;

    ok(stat(full, &st) == 0 && st.st_size > DNN_NDTYPES * 5 * 40,
       "dnn.idx has the positions of all blocks");
    dnn_free(full);
}

static void types(void)
{
    struct dnn_err err = {0};
    char index[300];

    is_int(write_types(NULL, &err), 0, "arrays of all types are written");
    read_types("plain", true);
    index_is_used();
    is_int(dnn_bp_create(NULL, path, NULL, NULL, &err), DNN_EIO, "one that exists");
    char *want = dnn_format("%s: exists already", path);
    is_text(err.text, want, "is refused");
    dnn_free(want);
    snprintf(index, sizeof index, "%s/dnn.idx", path);
    unlink(index);
    read_types("without its index, through ADIOS2", false);
    dnn_file_remove_tree(path, NULL);
}

static void compressed(void)
{
    struct dnn_bp_how how = {.compress = "bzip2"};
    struct dnn_err err = {0};

    if (!dnn_bp_operator("bzip2")) {
        skip("compression", "ADIOS2 has no bzip2");
        return;
    }
    smooth = true;
    is_int(write_types(&how, &err), 0, "compressed arrays are written");
    if (err.code != 0) printf("# %s\n", err.text);
    read_types("compressed", true);
    dnn_file_remove_tree(path, NULL);
    smooth = false;
    is_int(write_types(&how, &err), DNN_EDATA, "incompressible data");
    char *want = dnn_format("%s: a/f16: rows 7 to 8 are incompressible, which ADIOS2's "
                            "bzip2 cannot store; turn compression off",
                            path);
    is_text(err.text, want, "is refused");
    dnn_free(want);
    dnn_file_remove_tree(path, NULL);
}

static void operators(void)
{
    struct dnn_bp_how how = {.compress = "zip"};
    struct dnn_bp *bp = NULL;
    struct dnn_err err = {0};
    char *want =
        dnn_format("compression \"zip\" is not available in the installed ADIOS2 %s; "
                   "available: %s%s%s",
                   dnn_bp_version(), dnn_bp_operator("blosc") ? "blosc" : "",
                   dnn_bp_operator("blosc") && dnn_bp_operator("bzip2") ? ", " : "",
                   dnn_bp_operator("bzip2") ? "bzip2" : "");

    is_int(dnn_bp_create(NULL, path, &how, &bp, &err), DNN_ECONFIG, "no operator");
    if (dnn_bp_operator("blosc") || dnn_bp_operator("bzip2"))
        is_text(err.text, want, "the message lists the available operators");
    dnn_free(want);
    how = (struct dnn_bp_how){.compress = "bzip2", .params = "level"};
    if (!dnn_bp_operator("bzip2")) return;
    struct dnn_shape shape = {.ndim = 1, .dim = {4}};
    int var;
    dnn_bp_create(NULL, path, &how, &bp, &err);
    is_int(dnn_bp_define(bp, "x", DNN_F32, &shape, false, &var, &err), DNN_ECONFIG,
           "parameters");
    want = dnn_format(
        "%s: x: parameters of bzip2 must be KEY=VALUE,KEY=VALUE, not \"level\"", path);
    is_text(err.text, want, "that are invalid");
    dnn_free(want);
    dnn_bp_close(bp);
    dnn_file_remove_tree(path, NULL);
}

/* ---- attributes ---- */

static void attributes(void)
{
    static const char *const words[] = {"cat", "a \"b\" \\ c", "", "caf\xc3\xa9\n\x01"};
    static const double reals[] = {0.1, -1e300, 0.0};
    static const int64_t ints[] = {1, INT64_MIN, INT64_MAX};
    struct dnn_shape shape = {.ndim = 1, .dim = {1}};
    struct dnn_err err = {0};
    struct dnn_bp *bp = NULL;
    enum { LONG = 3000000 };
    char *text = dnn_alloc(LONG + 1);
    int var;
    int64_t n;

    memset(text, 'x', LONG);
    dnn_bp_create(NULL, path, NULL, &bp, &err);
    dnn_bp_define(bp, "v", DNN_U8, &shape, false, &var, &err);
    dnn_bp_put(bp, var, 0, 1, "a", &err);
    dnn_bp_attr_text(bp, "long", text, &err);
    dnn_bp_attr_text(bp, "empty", "", &err);
    dnn_bp_attr_texts(bp, "words", words, 4, &err);
    dnn_bp_attr_texts(bp, "none", words, 0, &err);
    dnn_bp_attr_reals(bp, "reals", reals, 3, &err);
    dnn_bp_attr_reals(bp, "real", reals, 1, &err);
    dnn_bp_attr_ints(bp, "ints", ints, 3, &err);
    is_int(dnn_bp_finish(bp, &err), 0, "attributes are written");
    is_int(dnn_bp_open(NULL, path, 0, &bp, &err), 0, "and read");
    char *got = dnn_bp_text(bp, "long");
    ok(got != NULL && strcmp(got, text) == 0, "a text of 3 MB");
    dnn_free(got);
    got = dnn_bp_text(bp, "empty");
    is_text(got, "", "an empty text");
    dnn_free(got);
    char **list = dnn_bp_texts(bp, "words", &n);
    bool same = list != NULL && n == 4;
    for (int i = 0; same && i < 4; i++)
        same = strcmp(list[i], words[i]) == 0;
    ok(same, "a list of texts");
    dnn_free(list);
    list = dnn_bp_texts(bp, "none", &n);
    ok(list != NULL && n == 0, "an empty list");
    dnn_free(list);
    double *x = dnn_bp_reals(bp, "reals", &n);
    ok(n == 3 && memcmp(x, reals, sizeof reals) == 0, "numbers");
    dnn_free(x);
    x = dnn_bp_reals(bp, "real", &n);
    ok(n == 1 && x[0] == 0.1, "a number");
    dnn_free(x);
    int64_t *k = dnn_bp_ints(bp, "ints", &n);
    ok(n == 3 && memcmp(k, ints, sizeof ints) == 0, "whole numbers");
    dnn_free(k);
    ok(dnn_bp_text(bp, "nowhere") == NULL && dnn_bp_text(bp, "ints") == NULL &&
           dnn_bp_reals(bp, "ints", &n) == NULL && n == 0 &&
           dnn_bp_ints(bp, "words", &n) == NULL && dnn_bp_texts(bp, "long", &n) == NULL,
       "absent attributes and those of another type are not read");
    dnn_bp_close(bp);
    dnn_free(text);
    dnn_file_remove_tree(path, NULL);
}

/* ---- invalid files ---- */

static int inspect(struct dnn_err *err)
{
    struct dnn_bp *bp = NULL;
    int rc = dnn_bp_open(NULL, path, 1, &bp, err);

    for (int v = 0; rc == 0 && v < dnn_bp_count(bp); v++) {
        const struct dnn_bp_var *var = dnn_bp_var(bp, v);
        char *to = dnn_alloc(ROWS * ROW * 8);

        rc = dnn_bp_request(bp, v, 0, var->shape.dim[0], to, err);
        if (rc == 0) rc = dnn_bp_fetch(bp, err);
        dnn_free(to);
    }
    dnn_bp_close(bp);
    return rc;
}

/* Files without dnn.idx: truncation is found by ADIOS2's tables or, in the last block,
 * by reading. */
static void cut_off(const char *name)
{
    char *full = dnn_format("%s/%s", path, name), *bytes;
    size_t len;
    int missed = 0;

    dnn_file_read(full, 1 << 30, &bytes, &len, NULL);
    for (size_t k = 0; k < 20; k++) {
        struct dnn_err err = {0};

        if (truncate(full, (off_t)(len * k / 20)) < 0) break;
        if (inspect(&err) == 0) {
            printf("# %zu of %zu bytes\n", len * k / 20, len);
            missed++;
        }
        dnn_file_write(full, bytes, len, NULL);
    }
    is_int(missed, 0, name);
    dnn_free(bytes);
    dnn_free(full);
}

/* Damaged ADIOS2 tables: ADIOS2 may crash, the test program must not. */
static void changed(const char *name)
{
    char *full = dnn_format("%s/%s", path, name), *bytes;
    size_t len;
    int refused = 0;

    dnn_file_read(full, 1 << 30, &bytes, &len, NULL);
    for (size_t k = 0; k < 12; k++) {
        struct dnn_err err = {0};
        size_t at = len * (2 * k + 1) / 24;

        bytes[at] ^= 0x41;
        dnn_file_write(full, bytes, len, NULL);
        bytes[at] ^= 0x41;
        refused += inspect(&err) == DNN_EDATA;
    }
    dnn_file_write(full, bytes, len, NULL);
    ok(refused > 0, "%s with a wrong byte: %d of 12 are refused, none crashes", name,
       refused);
    dnn_free(bytes);
    dnn_free(full);
}

static void is_refused(const char *end, int code, const char *what)
{
    struct dnn_err err = {0};
    char *want = dnn_format("%s%s", path, end);

    is_int(inspect(&err), code, what);
    is_text(err.text, want, "and why");
    dnn_free(want);
}

static void broken(void)
{
    static const char *const files[] = {"md.idx", "md.0", "mmd.0", "data.0"};
    struct dnn_err err = {0};
    char *index = dnn_format("%s/dnn.idx", path), *md = dnn_format("%s/md.idx", path);

    is_refused(": No such file or directory", DNN_EIO, "nothing there");
    dnn_file_write(path, "x", 1, NULL);
    is_refused(": not a BP5 file, which is a directory", DNN_EDATA, "a file");
    unlink(path);
    mkdir(path, 0777);
    is_refused("/md.idx: No such file or directory", DNN_EDATA, "an empty directory");
    rmdir(path);
    is_int(write_types(NULL, &err), 0, "written to be damaged");
    unlink(index);
    is_int(inspect(&err), 0, "readable without its index");
    for (int i = 0; i < 4; i++)
        cut_off(files[i]);
    changed("mmd.0");
    is_int(inspect(&err), 0, "readable again");
    int fd = open(md, O_WRONLY);
    if (pwrite(fd, "\1", 1, 39) != 1) perror(md);
    is_refused(": incomplete: it is still being written, or its writer was killed",
               DNN_EDATA, "a file that is being written");
    if (pwrite(fd, "\4", 1, 37) != 1) perror(md);
    is_refused(": not a BP5 file (ADIOS2 2.8 or later)", DNN_EDATA, "another version");
    close(fd);
    dnn_free(index);
    dnn_free(md);
    dnn_file_remove_tree(path, NULL);
}

int main(void)
{
    if (mkdtemp(dir) == NULL) return 1;
    snprintf(path, sizeof path, "%s/a.bp", dir);
    types();
    compressed();
    operators();
    attributes();
    broken();
    dnn_file_remove_tree(dir, NULL);
    return done();
}
