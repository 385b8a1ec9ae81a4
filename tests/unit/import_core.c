/* import_core.c - paths as sources: files, directories, lists, classes and pairs, and
 * error messages.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import_tools.h"

#include "import/import_impl.h"

#include <pthread.h>
#include <sys/stat.h>
#if DNN_HAVE_ZLIB
#include <zlib.h>
#endif

/* A file of the simplest format, raw: two bytes. */
static void raw(const char *path, int a, int b)
{
    unsigned char bytes[2] = {(unsigned char)a, (unsigned char)b};

    put(path, bytes, sizeof bytes);
}

#define SHAPE "\"input_shape\": [1, 2]"
#define BOTH SHAPE ", \"target_shape\": [1, 2], \"target_kind\": \"mask\""

static void names(void)
{
    static const char *const rows[][2] = {
        {"a.png",      "a"      },
        {"a/b.nii.gz", "a/b"    },
        {"a.b/c",      "a.b/c"  },
        {"a.b.npy",    "a.b"    },
        {".hidden",    ".hidden"},
        {"x.npz[7]",   "x[7]"   },
        {"a.gz",       "a"      },
        {"",           ""       },
    };
    char out[DNN_SAMPLE_NAME];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dnn_import_key(rows[i][0], out);
        is_text(out, rows[i][1], "a name without its suffix");
    }
}

static void table(void)
{
    struct dnn_importer_info info;
    struct dnn_err err = {0};
    int n = 0;

    is_int(dnn_field_check(dnn_import_fields, &err), 0, "the table of keys is valid");
    while (dnn_import_info(n, &info)) {
        ok(info.name != NULL && info.suffixes != NULL && info.help != NULL,
           "importer %d, %s, has a description", n, info.name);
        n++;
    }
    is_int(n, 13, "number of formats");
    ok(!dnn_import_info(-1, &info), "no format at index -1");
}

static void series(void)
{
    raw("dir/b/2.raw", 5, 6);
    raw("dir/a.raw", 1, 2);
    raw("dir/b/10.raw", 3, 4);
    raw("dir/.hidden.raw", 9, 9);
    raw("dir/.git/x.raw", 9, 9);
    is_source("{\"input_path\": \"dir\", " SHAPE "}",
              "3: input image u8 1x2x1\n"
              "a.raw -1: 1 2\nb/10.raw -1: 3 4\nb/2.raw -1: 5 6\n");
    is_source("{\"input_path\": \"dir/\", \"group\": \"directory\", " SHAPE "}",
              "3: input image u8 1x2x1\n"
              "a.raw -1 of .: 1 2\nb/10.raw -1 of b: 3 4\nb/2.raw -1 of b: 5 6\n");
    is_source("{\"input_path\": \"dir\", \"split\": \"b\", " SHAPE "}",
              "2: input image u8 1x2x1\nb/10.raw -1: 3 4\nb/2.raw -1: 5 6\n");
    refused("{\"input_path\": \"dir\", \"split\": \"c\", " SHAPE "}", DNN_EDATA,
            "dir: no files for the split \"c\": no directory of this name, and no file "
            "name begins with it");
    put_text("some.list", "# comment\n\ndir/b/2.raw\r\n  dir/a.raw\n");
    is_source("{\"input_path\": \"some.list\", \"group\": \".\", " SHAPE "}",
              "2: input image u8 1x2x1\n"
              "dir/b/2.raw -1 of dir/b/2: 5 6\ndir/a.raw -1 of dir/a: 1 2\n");
    put_text("tagged.list", "dir/b/2.raw\ndir/a.raw\n");
    is_source("{\"input_path\": \"tagged.list\", \"split\": \"b\", " SHAPE "}",
              "1: input image u8 1x2x1\ndir/b/2.raw -1: 5 6\n");
    is_source("{\"input_path\": \"dir/b/2.raw\", \"split\": \"b\", " SHAPE "}",
              "1: input image u8 1x2x1\n2.raw: 5 6\n");
    refused("{\"input_path\": \"dir/a.raw\", \"split\": \"b\", " SHAPE "}", DNN_EDATA,
            "dir/a.raw: not part of the split \"b\": neither a directory nor the file "
            "name says so");
    put_text("empty.list", "# nothing\n");
    refused("{\"input_path\": \"empty.list\", " SHAPE "}", DNN_EDATA,
            "empty.list: the list contains no files");
    put_text("gone.txt", "dir/a.raw\nnowhere.raw\n");
    unreadable("{\"input_path\": \"gone.txt\", " SHAPE "}", 1,
               "nowhere.raw: cannot be read: No such file or directory");
    put("dir/c.raw", "123", 3);
    unreadable("{\"input_path\": \"dir\", " SHAPE "}", 3,
               "dir/c.raw: 3 bytes after an offset of 0 is not a multiple of the "
               "sample size: u8 1x2 (2 bytes each)");
    put("dir/c.raw", "1234", 4);
    unreadable(
        "{\"input_path\": \"dir\", " SHAPE "}", 3,
        "dir/c.raw: contains 2 samples of u8 1x2, but each file must be one sample");
    unreadable("{\"input_path\": \"dir\", " SHAPE "}", 4,
               "series: sample 4 requested, but there are only 0 to 3");
}

/* A directory of tables: several samples per file; some files stay open. */
static void tables(void)
{
    char name[32], text[64];
    struct dnn_sample sample = {0};
    struct opened o;
    int bad = 0;

    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "many/%02d.csv", i);
        snprintf(text, sizeof text, "x,y\n%d,0\n%d,1\n", i, i + 100);
        put_text(name, text);
    }
    open_with(&o, "{\"input_path\": \"many\", \"targets\": \"y\"}");
    if (o.source == NULL) {
        ok(false, "a directory of tables: %s", o.err.text);
        close_it(&o);
        return;
    }
    is_int(o.source->count, 80, "a directory of tables");
    is_int(o.source->nfiles, 40, "all files are listed");
    for (int64_t i = 0; i < 80; i++) {
        int64_t k = i * 37 % 80; /* so that files are closed and opened again */
        float want = (float)(k / 2 + 100 * (k % 2));

        bad += dnn_source_read(o.source, k, &sample, &o.err) < 0 ||
               *(float *)sample.col[0].data != want ||
               o.source->type->class_of(o.source, k) != k % 2;
    }
    is_int(bad, 0, "each sample is read from its file, in any order");
    put_text("many/07.csv", "x,y\n1,2\n");
    int rc = dnn_source_read(o.source, 14, &sample, &o.err);
    is_text(rc < 0 ? o.err.text : "",
            "many/07.csv: changed while it was read: 2 samples at first, now 1",
            "a changed file is detected");
    dnn_sample_free(&sample);
    close_it(&o);
    put_text("mixed/a.csv", "x,y\n1,a\n2,b\n");
    put_text("mixed/b.csv", "x,y\n1,a\n2,c\n");
    refused("{\"input_path\": \"mixed\", \"targets\": \"y\"}", DNN_EDATA,
            "mixed/b.csv: the classes differ from those of mixed/a.csv: class 1 is "
            "\"c\", not \"b\"");
    put_text("mixed/b.csv", "x,z\n1,2.5\n");
    refused("{\"input_path\": \"mixed\"}", DNN_EDATA,
            "mixed/a.csv:2: column \"y\": \"a\" is not a number");
    put_text("mixed/a.csv", "x,y,z\n1,2,3\n");
    put_text("mixed/b.csv", "x,y\n1,1\n");
    is_source("{\"input_path\": \"mixed\", \"inputs\": [\"x\", \"y\"]}",
              "2: input values f32 2\na.csv[0] -1: 1 2\nb.csv[0] -1: 1 1\n");
}

struct reader {
    pthread_t thread;
    const struct dnn_source *source;
    int from, bad;
};

static void *read_all(void *arg)
{
    struct reader *r = arg;
    struct dnn_sample sample = {0};

    for (int64_t i = 0; i < r->source->count; i++) {
        int64_t k = (i * 7 + r->from) % r->source->count;
        float want = (float)(k / 2 + 100 * (k % 2));

        r->bad += dnn_source_read(r->source, k, &sample, NULL) < 0 ||
                  *(float *)sample.col[0].data != want;
    }
    dnn_sample_free(&sample);
    return NULL;
}

static void threads(void)
{
    struct reader r[4];
    struct opened o;
    int bad = 0;

    put_text("many/07.csv", "x,y\n7,0\n107,1\n");
    open_with(&o, "{\"input_path\": \"many\", \"targets\": \"y\"}");
    if (o.source == NULL) {
        ok(false, "%s", o.err.text);
        close_it(&o);
        return;
    }
    for (int i = 0; i < 4; i++) {
        r[i] = (struct reader){.source = o.source, .from = i * 19};
        pthread_create(&r[i].thread, NULL, read_all, &r[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(r[i].thread, NULL);
        bad += r[i].bad;
    }
    is_int(bad, 0, "four threads read one series");
    close_it(&o);
}

static void pairs(void)
{
    raw("in/a/1.raw", 1, 2);
    raw("in/2.raw", 3, 4);
    raw("out/a/1.vol", 5, 6);
    raw("out/2.vol", 7, 8);
    is_source("{\"input_path\": \"in\", \"target_path\": \"out\", " BOTH "}",
              "2: input image u8 1x2x1, target mask u8 1x2x1\n"
              "2.raw -1: 3 4 | 7 8\na/1.raw -1: 1 2 | 5 6\n");
    raw("out/3.vol", 0, 0);
    raw("in/4.raw", 0, 0);
    raw("in/a/5.raw", 0, 0);
    raw("in/a/6.raw", 0, 0);
    raw("in/a/7.raw", 0, 0);
    refused("{\"input_path\": \"in\", \"target_path\": \"out\", " BOTH "}", DNN_EDATA,
            "in, out: inputs without a target of the same name: 4.raw, a/5.raw, "
            "a/6.raw and 1 more; targets without an input: 3.vol");
    refused("{\"input_path\": \"in\", \"target_path\": \"out\", \"pairing\": "
            "\"order\", " BOTH "}",
            DNN_EDATA, "in, out: 6 inputs, but 3 targets");
    remove("in/4.raw");
    remove("in/a/5.raw");
    remove("in/a/6.raw");
    remove("in/a/7.raw");
    refused("{\"input_path\": \"in\", \"target_path\": \"out\", " BOTH "}", DNN_EDATA,
            "in, out: targets without an input of the same name: 3.vol");
    raw("in/8.raw", 0, 0);
    is_source("{\"input_path\": \"in\", \"target_path\": \"out\", \"pairing\": "
              "\"order\", " BOTH "}",
              "3: input image u8 1x2x1, target mask u8 1x2x1\n"
              "2.raw -1: 3 4 | 7 8\n8.raw -1: 0 0 | 0 0\na/1.raw -1: 1 2 | 5 6\n");
    raw("out/2.dat", 0, 0);
    refused("{\"input_path\": \"in\", \"target_path\": \"out\", " BOTH "}", DNN_EDATA,
            "in, out: 2.dat and 2.vol differ only in their suffix, so inputs and "
            "targets cannot be paired by name");
    put("rows.raw", "\1\2\3\4\5\6", 6);
    put("labels.raw", "\0\1\0", 3);
    is_source("{\"input_path\": \"rows.raw\", \"target_path\": \"labels.raw\", " SHAPE
              ", \"target_shape\": 1}",
              "3: input image u8 1x2x1, target label u8 scalar\n"
              "rows.raw[0] -1: 1 2 | 0\nrows.raw[1] -1: 3 4 | 1\n"
              "rows.raw[2] -1: 5 6 | 0\n");
    refused("{\"input_path\": \"rows.raw\", \"target_path\": \"in/2.raw\", " SHAPE
            ", \"target_shape\": 1}",
            DNN_EDATA, "rows.raw, in/2.raw: 3 inputs, but 2 targets");
}

/* Class directories of images. */
static void folders(void)
{
#if DNN_HAVE_PNG
    static const unsigned char png[] = {
        0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d,
        0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01,
        0x08, 0x00, 0x00, 0x00, 0x00, 0xd1, 0x49, 0x20, 0x56, 0x00, 0x00, 0x00,
        0x0b, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0x64, 0x64, 0x04, 0x00,
        0x00, 0x09, 0x00, 0x04, 0x2e, 0xc4, 0x23, 0xc5, 0x00, 0x00, 0x00, 0x00,
        0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
    static const char *const paths[] = {"pets/dog/1.png",       "pets/cat/x/2.png",
                                        "pets/cat/1.png",       "tagged/train/b/1.png",
                                        "tagged/train/c/1.png", "tagged/test/c/2.png",
                                        "tagged/test/a/1.png",  "one/only/1.png",
                                        "flat/1.png",           "flat/sub/2.png"};

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        put(paths[i], png, sizeof png);
    is_source("{\"input_path\": \"pets\"}",
              "3: input image u8 ?x?x?, target label i32 scalar 2 (cat dog)\n"
              "cat/1.png 0: 1 2 | 0\ncat/x/2.png 0: 1 2 | 0\ndog/1.png 1: 1 2 | 1\n");
    is_source("{\"input_path\": \"tagged\"}",
              "4: input image u8 ?x?x?, target label i32 scalar 3 (a b c)\n"
              "test/a/1.png 0: 1 2 | 0\ntest/c/2.png 2: 1 2 | 2\n"
              "train/b/1.png 1: 1 2 | 1\ntrain/c/1.png 2: 1 2 | 2\n");
    is_source("{\"input_path\": \".\", \"split\": \"train\", \"input_format\": "
              "\"png\"}",
              "2: input image u8 ?x?x?, target label i32 scalar 2 (b c)\n"
              "tagged/train/b/1.png 0: 1 2 | 0\ntagged/train/c/1.png 1: 1 2 | 1\n");
    is_source("{\"input_path\": \"one\"}",
              "1: input image u8 1x2x1\nonly/1.png -1: 1 2\n");
    is_source("{\"input_path\": \"flat\"}",
              "2: input image u8 ?x?x?\n1.png -1: 1 2\nsub/2.png -1: 1 2\n");
    is_source("{\"input_path\": \"pets/cat\", \"target_path\": \"pets/cat\"}",
              "2: input image u8 ?x?x?, target mask u8 ?x?x1\n"
              "1.png -1: 1 2 | 1 2\nx/2.png -1: 1 2 | 1 2\n");
#else
    skip("class directories", "no libpng");
    put_text("lone/x.png", "?");
    refused("{\"input_path\": \"lone/x.png\"}", DNN_ECONFIG,
            "png files cannot be read: this program was built without libpng");
    refused("{\"input_path\": \"lone\"}", DNN_ECONFIG,
            "png files cannot be read: this program was built without libpng");
#endif
}

static void formats(void)
{
    refused("{\"input_path\": \"nowhere\"}", DNN_EIO,
            "nowhere: cannot be read: No such file or directory");
    put_text("x.pngg", "hello");
    refused("{\"input_path\": \"x.pngg\"}", DNN_EDATA,
            "x.pngg: unknown file format (suffix \".pngg\", and the content is not "
            "recognised); did you mean \".png\"?");
    put_text("x.unheard", "hello");
    refused("{\"input_path\": \"x.unheard\"}", DNN_EDATA,
            "x.unheard: unknown file format (suffix \".unheard\", and the content is "
            "not recognised)");
    put_text("plain", "hello");
    refused(
        "{\"input_path\": \"plain\"}", DNN_EDATA,
        "plain: unknown file format (no suffix, and the content is not recognised)");
    refused("{\"input_path\": \"plain\", \"input_format\": \"pgn\"}", DNN_ECONFIG,
            "unknown format \"pgn\"; known: png, jpeg, tiff, nifti, npy, npz, hdf5, "
            "bp, tfrecord, idx, cifar, csv, raw; did you mean \"png\"?");
    put_text("zoo/a.csv", "x\n1\n");
    put_text("zoo/b.npy", "x");
    put_text("zoo/README", "x");
    refused("{\"input_path\": \"zoo\"}", DNN_EDATA,
            "zoo: contains files of several formats, csv (a.csv) and npy (b.npy); set "
            "\"format\"");
    is_source("{\"input_path\": \"zoo\", \"input_format\": \"csv\"}",
              "1: input values f32 1\na.csv[0] -1: 1\n");
    refused("{\"input_path\": \"zoo\", \"input_format\": \"cifar\"}", DNN_EDATA,
            "zoo: no cifar file (.bin) among its 3 files");
    put_text("docs/README", "x");
    refused("{\"input_path\": \"docs\"}", DNN_EDATA,
            "docs: none of its 1 files has a known format");
    refused("{\"input_path\": \"rows.raw\", \"limit\": 3, \"input_shape\": [1, 6]}",
            DNN_EDATA, "rows.raw: u8 1x6 needs 6 B, which exceeds the limit of 3 B");
    if (mkfifo("pipe.csv", 0600) == 0)
        refused("{\"input_path\": \"pipe.csv\"}", DNN_EIO,
                "pipe.csv: not a regular file");
    if (symlink(".", "zoo/loop") == 0) ok(true, "a circular link");
    struct opened o;
    open_with(&o, "{\"input_path\": \"zoo\", \"input_format\": \"csv\"}");
    ok(o.source == NULL && o.err.code < 0, "is not followed without end");
    close_it(&o);
}

static void bytes(void)
{
#if DNN_HAVE_ZLIB
    struct dnn_bytes *file = NULL;
    struct dnn_err err = {0};
    unsigned char text[1000], back[1000];
    int64_t length = 0;
    gzFile gz = gzopen("x.gz", "wb");

    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)(i * i >> 3);
    gzwrite(gz, text, sizeof text);
    gzclose(gz);
    is_int(dnn_bytes_open("x.gz", &file, &err), 0, "a gzip file is opened");
    is_int(dnn_bytes_size(file), -1, "its length is not known");
    ok(dnn_bytes_read(file, 500, back, 500, &err) == 0 &&
           memcmp(back, text + 500, 500) == 0 &&
           dnn_bytes_read(file, 0, back, 1000, &err) == 0 &&
           memcmp(back, text, 1000) == 0,
       "it is read forwards and backwards");
    is_int(dnn_bytes_length(file, &length, &err), 0, "its length can be found");
    is_int(length, 1000, "and is that of the content");
    dnn_bytes_read(file, 900, back, 101, &err);
    is_text(err.text, "x.gz: truncated: 1000 of 1001 bytes",
            "reading beyond its end is an error");
    dnn_bytes_close(file);
    file = NULL;
    if (truncate("x.gz", 60) == 0 && dnn_bytes_open("x.gz", &file, &err) == 0)
        dnn_bytes_read(file, 0, back, 1000, &err);
    ok(strncmp(err.text, "x.gz: decompression failed after ", 33) == 0 &&
           strstr(err.text, " bytes: unexpected end of file") != NULL,
       "a truncated gzip file: %s", err.text);
    dnn_bytes_close(file);
#else
    skip("gzip", "no zlib");
#endif
}

int main(void)
{
    tools_start();
    names();
    table();
    series();
    tables();
    threads();
    pairs();
    folders();
    formats();
    bytes();
    return tools_end();
}
