/* import_npz.c - archives of NumPy arrays: selection of input and target, and wrong
 * archives.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import_made.h"

#if DNN_HAVE_ZIP
#include <zip.h>

#define NPZ (&dnn_importer_npz)

/* ---- archives ---- */

/* An array of bytes with this shape ("(2, 3)") as a .npy, for dnn_buf_free(). */
static struct dnn_buf npy(const char *type, const char *shape, const void *numbers,
                          size_t n)
{
    struct dnn_buf buf = {0};
    char text[128];
    int len = snprintf(text, sizeof text,
                       "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", type,
                       shape);
    unsigned char head[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)len, 0};

    dnn_buf_bytes(&buf, head, sizeof head);
    dnn_buf_bytes(&buf, text, (size_t)len);
    dnn_buf_bytes(&buf, numbers, n);
    return buf;
}

struct member {
    const char *name, *type, *shape, *numbers;
    size_t n;
};

static void make(const struct member *m, bool deflate)
{
    int code = 0;

    unlink(made_path);
    zip_t *zip = zip_open(made_path, ZIP_CREATE, &code);
    struct dnn_buf buf[8];
    int n = 0;
    for (; m[n].name != NULL; n++) {
        buf[n] = npy(m[n].type, m[n].shape, m[n].numbers, m[n].n);
        zip_source_t *from = zip_source_buffer(zip, buf[n].text, buf[n].len, 0);
        zip_int64_t at = zip_file_add(zip, m[n].name, from, 0);

        zip_set_file_compression(zip, (zip_uint64_t)at,
                                 deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 9);
    }
    if (zip_close(zip) < 0) printf("Bail out! %s\n", zip_strerror(zip));
    while (n > 0)
        dnn_buf_free(&buf[--n]);
}

static const struct member pair[] = {
    {"x.npy", "|u1", "(2, 2, 2)", "\1\2\3\4\5\6\7\10", 8},
    {"y.npy", "<i2", "(2,)",      "\3\0\4\0",          4},
    {NULL,    NULL,  NULL,        NULL,                0},
};

/* ---- valid files ---- */

static void pairs(void)
{
    struct dnn_import how = made_how();

    for (int deflate = 0; deflate < 2; deflate++) {
        make(pair, deflate);
        struct dnn_source *s = made_open(NPZ, &how, false, NULL);
        made_columns(s, "input image u8 2x2x1, target label i16 scalar",
                     deflate ? "x and y, compressed" : "x and y");
        is_int(s->count, 2, "samples");
        made_sample(s, 1, "2x2x1: 5 6 7 8 | scalar: 4", "the second");
        made_sample(s, 0, "2x2x1: 1 2 3 4 | scalar: 3", "the first after it");
        is_int(s->type->class_of(s, 1), 4, "a class");
        dnn_source_close(s);
    }
    how.target.path = "elsewhere";
    struct dnn_source *s = made_open(NPZ, &how, false, NULL);
    made_columns(s, "input image u8 2x2x1", "targets from another file");
    dnn_source_close(s);
    s = made_open(NPZ, &how, true, NULL);
    made_columns(s, "target label i16 scalar", "only targets");
    dnn_source_close(s);
    how = made_how();
    how.target.name = "x";
    s = made_open(NPZ, &how, false, NULL);
    made_columns(s, "input values i16 1, target mask u8 2x2x1",
                 "with input and target exchanged");
    dnn_source_close(s);
    how = made_how();
    how.whole = true;
    s = made_open(NPZ, &how, false, NULL);
    made_columns(s, "input image u8 2x2x2, target values i16 2", "one sample of both");
    dnn_source_close(s);
}

static void members(void)
{
    static const struct member several[] = {
        {"b.npy",     "|u1", "(2, 2)", "\1\2\3\4", 4},
        {"a.npy",     "|u1", "(1, 2)", "\5\6",     2},
        {"c.npy",     "|u1", "(1, 2)", "\7\7",     2},
        {"notes.txt", "|u1", "(1,)",   "\7",       1},
        {NULL,        NULL,  NULL,     NULL,       0},
    };
    struct dnn_import how = made_how();

    make(several, true);
    made_refused(NPZ, &how, false, DNN_EDATA,
                 ": several arrays; set \"name\" to the one with the samples: b, a, c",
                 "no usual names");
    how.whole = true;
    how.input.layout = DNN_LAYOUT_NONE;
    struct dnn_source *s = made_open(NPZ, &how, false, NULL);
    made_columns(s, "input image u8 ?x2x1", "each member a sample");
    is_int(s->count, 3, "in the order of the archive");
    made_sample(s, 0, "2x2x1: 1 2 3 4", "the first");
    made_sample(s, 1, "1x2x1: 5 6", "the second");
    char label[DNN_SAMPLE_NAME];
    dnn_source_label(s, 1, label);
    is_text(label + strlen(made_dir), "/a.npz: a", "its name");
    dnn_source_close(s);
}

static void splits(void)
{
    static const struct member both[] = {
        {"x_train.npy", "|u1", "(2, 2)", "\1\2\3\4", 4},
        {"y_train.npy", "|u1", "(2,)",   "\1\2",     2},
        {"x_test.npy",  "|u1", "(1, 2)", "\5\6",     2},
        {"y_test.npy",  "|u1", "(1,)",   "\3",       1},
        {NULL,          NULL,  NULL,     NULL,       0},
    };
    struct dnn_import how = made_how();

    make(both, true);
    made_refused(NPZ, &how, false, DNN_EDATA,
                 ": several arrays; set \"name\" to the one with the samples: x_train, "
                 "y_train, x_test, y_test",
                 "two pairs");
    how.split = "test";
    struct dnn_source *s = made_open(NPZ, &how, false, NULL);
    made_sample(s, 0, "2: 5 6 | scalar: 3", "the split selects a pair");
    is_text(s->split, "test", "and is stored");
    dnn_source_close(s);
    how.split = "val";
    made_refused(NPZ, &how, false, DNN_EDATA,
                 ": no arrays for the split \"val\", such as x_val and y_val; "
                 "available: x_train, y_train, x_test, y_test",
                 "a split that does not exist");
}

/* ---- errors ---- */

static void wrong_arrays(void)
{
    static const struct member odd[] = {
        {"image.npy",  "|u1", "(2, 3, 8, 8)", "",         0},
        {"label.npy",  "|O",  "(2,)",         "\1\2",     2},
        {"x.npy",      "|u1", "(2, 2)",       "\1\2\3\4", 4},
        {"labels.npy", "|u1", "(3,)",         "\1\2\3",   3},
        {NULL,         NULL,  NULL,           NULL,       0},
    };
    static const struct member nchw[] = {
        {"x.npy", "|u1", "(1, 3, 1, 5)", "123456789012345", 15},
        {"y.npy", "|u1", "(1,)",         "\1",              1 },
        {NULL,    NULL,  NULL,           NULL,              0 },
    };
    struct dnn_import how = made_how();

    make(odd, false);
    made_refused(
        NPZ, &how, false, DNN_EDATA,
        ": image: 76 bytes, but the header declares 2x3x8x8 of u8, which needs 460",
        "a member shorter than in its header");
    how.input.name = "imgae";
    made_refused(NPZ, &how, false, DNN_EDATA,
                 ": there is no array \"imgae\"; did you mean \"image\"?; available: "
                 "image, label, x, labels",
                 "an unknown name");
    how.input.name = "x";
    how.target.name = "label";
    made_refused(NPZ, &how, false, DNN_EDATA,
                 ": label: contains Python objects (\"|O\"), not numbers",
                 "Python objects");
    how.target.name = "labels";
    made_refused(NPZ, &how, false, DNN_EDATA, ": x has 2 samples, but labels has 3",
                 "another number of targets");
    make(nchw, false);
    how = made_how();
    made_refused(NPZ, &how, false, DNN_EDATA,
                 ": x: sample shape 3x1x5: the position of the channel axis is "
                 "unclear; set \"layout\" to first, last or none",
                 "channels that look like the first axis");
    how.input.layout = DNN_LAYOUT_FIRST;
    struct dnn_source *s = made_open(NPZ, &how, false, NULL);
    made_columns(s, "input image u8 1x5x3, target label u8 scalar", "with a layout");
    dnn_source_close(s);
    how.limit = 10;
    made_refused(NPZ, &how, false, DNN_EDATA, ": x: 91 bytes exceed the limit of 10",
                 "more than the limit");
}

static void wrong_files(void)
{
    struct dnn_import how = made_how();
    static const struct member none[] = {
        {"a.txt", "|u1", "(1,)", "\1", 1},
        {NULL,    NULL,  NULL,   NULL, 0},
    };
    char *bytes;
    size_t n;

    made_file("", 0);
    made_refused(NPZ, &how, false, DNN_EDATA,
                 ": cannot be read as a zip archive: Not a zip archive",
                 "an empty file");
    /* The message depends on the version of libzip. */
    static const char *const why = ": cannot be read as a zip archive: ";
    struct dnn_err err = {0};
    made_file("PK\3\4 and no more than that", 26);
    ok(made_open(NPZ, &how, false, &err) == NULL, "a truncated archive is refused");
    ok(strncmp(err.text + strlen(made_path), why, strlen(why)) == 0, "and why: %s",
       why);
    make(none, false);
    made_refused(NPZ, &how, false, DNN_EDATA, ": contains no arrays", "no arrays");
    make(pair, false);
    dnn_file_read(made_path, 1 << 20, &bytes, &n, NULL);
    char *at = memmem(bytes, n, "\1\2\3\4\5\6\7\10", 8);
    at[2] = 9;
    made_file(bytes, n);
    made_refused(NPZ, &how, false, DNN_EDATA, ": x: cannot be decoded: CRC error",
                 "a changed byte");
    /* In the central directory, x has 2^32 - 2 bytes. */
    at[2] = 3;
    char *entry = memmem(bytes, n, "PK\1\2", 4);
    memcpy(entry + 24, "\xfe\xff\xff\xff", 4);
    made_file(bytes, n);
    made_refused(
        NPZ, &how, false, DNN_EDATA,
        ": x: 4294967294 bytes, but the header declares 2x2x2 of u8, which needs 81",
        "a member that claims 4 GiB");
    dnn_free(bytes);
    unlink(made_path);
    made_refused(NPZ, &how, false, DNN_EIO, ": No such file or directory", "no file");
}

/* Truncated anywhere, or with any byte changed, it is an error or the same numbers. */
static void damage(void)
{
    struct dnn_import how = made_how();
    char *bytes;
    size_t n;
    int bad = 0;

    make(pair, true);
    dnn_file_read(made_path, 1 << 20, &bytes, &n, NULL);
    for (size_t i = 0; i < 2 * n; i++) {
        struct dnn_err err = {0};
        struct dnn_sample sample = {0};

        if (i >= n) bytes[i - n] ^= 0x41;
        made_file(bytes, i < n ? i : n);
        if (i >= n) bytes[i - n] ^= 0x41;
        struct dnn_source *s = made_open(NPZ, &how, false, &err);
        if (s != NULL) dnn_source_read(s, 0, &sample, &err);
        if (s == NULL && err.text[0] == '\0') bad++;
        if (s != NULL && err.code == 0 && sample.ncols == 2 &&
            s->col[0].kind == DNN_KIND_IMAGE &&
            memcmp(sample.col[0].data, "\1\2\3\4", 4) != 0)
            bad++;
        dnn_sample_free(&sample);
        dnn_source_close(s);
    }
    is_int(bad, 0, "damage is always detected");
    dnn_free(bytes);
}

int main(void)
{
    made_start("a.npz");
    pairs();
    members();
    splits();
    wrong_arrays();
    wrong_files();
    damage();
    return made_end();
}
#else
int main(void)
{
    skip("archives of arrays", "built without libzip");
    return done();
}
#endif
