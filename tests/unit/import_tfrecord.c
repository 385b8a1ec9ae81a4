/* import_tfrecord.c - TFRecord files: checksums, all kinds of features, and damaged
 * records.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import_made.h"

#if DNN_HAVE_PROTOBUFC
#include "base/crc.h"
#include "import/tfrecord_impl.h"

#define TFRECORD (&dnn_importer_tfrecord)

/* ---- messages, written by hand: field number and kind, length, content ---- */

static void varint(struct dnn_buf *buf, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        dnn_buf_bytes(buf, &(unsigned char){(unsigned char)(value | 0x80)}, 1);
    dnn_buf_bytes(buf, &(unsigned char){(unsigned char)value}, 1);
}

/* A field with content; inner is freed. */
static void field(struct dnn_buf *buf, int number, struct dnn_buf inner)
{
    varint(buf, (uint64_t)number << 3 | 2);
    varint(buf, inner.len);
    if (inner.len > 0) dnn_buf_bytes(buf, inner.text, inner.len);
    dnn_buf_free(&inner);
}

static struct dnn_buf bytes(const void *from, size_t n)
{
    struct dnn_buf buf = {0};

    dnn_buf_bytes(&buf, from, n);
    return buf;
}

/* A named feature whose list is of a kind: 1 bytes, 2 floats, 3 integers. */
static void feature(struct dnn_buf *all, const char *name, int kind,
                    struct dnn_buf values)
{
    struct dnn_buf list = {0}, one = {0}, entry = {0};

    field(&list, 1, values);
    field(&one, kind, list);
    field(&entry, 1, bytes(name, strlen(name)));
    field(&entry, 2, one);
    field(all, 1, entry);
}

static void ints(struct dnn_buf *all, const char *name, int n, const int64_t *values)
{
    struct dnn_buf packed = {0};

    for (int i = 0; i < n; i++)
        varint(&packed, (uint64_t)values[i]);
    feature(all, name, 3, packed);
}

static void integer(struct dnn_buf *all, const char *name, int64_t value)
{
    ints(all, name, 1, &value);
}

/* ---- records ---- */

static struct dnn_buf file; /* what is being written */

static void sum(const void *of, size_t n)
{
    uint32_t value = dnn_crc_record(of, n);
    unsigned char little[4] = {(unsigned char)value, (unsigned char)(value >> 8),
                               (unsigned char)(value >> 16),
                               (unsigned char)(value >> 24)};

    dnn_buf_bytes(&file, little, 4);
}

/* These features as a record; they are freed. */
static void record(struct dnn_buf features)
{
    struct dnn_buf example = {0};
    unsigned char length[8] = {0};

    field(&example, 1, features);
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)example.len >> 8 * i);
    dnn_buf_bytes(&file, length, 8);
    sum(length, 8);
    dnn_buf_bytes(&file, example.text, example.len);
    sum(example.text, example.len);
    dnn_buf_free(&example);
}

static void finish(void)
{
    made_file(file.text, file.len);
    dnn_buf_free(&file);
    file = (struct dnn_buf){0};
}

static void raw_image(int height, int width, int depth, const char *pixels, int label)
{
    struct dnn_buf f = {0};

    integer(&f, "height", height);
    integer(&f, "width", width);
    integer(&f, "depth", depth);
    feature(&f, "image_raw", 1,
            bytes(pixels, (size_t)height * (size_t)width * (size_t)depth));
    integer(&f, "label", label);
    record(f);
}

/* ---- valid files ---- */

static void sums(void)
{
    /* CRC-32C of "123456789" is 0xe3069283, the usual check value. */
    uint32_t crc = 0xe3069283u;

    is_int(dnn_crc_record("123456789", 9),
           (uint32_t)((crc >> 15 | crc << 17) + 0xa282ead8u), "the checksum");
    is_int(dnn_crc_record("", 0), 0xa282ead8u, "that of an empty text");
}

static void raws(void)
{
    struct dnn_import how = made_how();

    raw_image(2, 2, 1, "\1\2\3\4", 7);
    raw_image(1, 3, 1, "\5\6\7", 8);
    finish();
    struct dnn_source *s = made_open(TFRECORD, &how, false, NULL);
    made_columns(s, "input image u8 ?x?x?, target label i64 scalar", "bytes and sizes");
    is_int(s->count, 2, "records");
    made_sample(s, 1, "1x3x1: 5 6 7 | scalar: 8", "the second");
    made_sample(s, 0, "2x2x1: 1 2 3 4 | scalar: 7", "the first");
    is_int(s->type->class_of(s, 1), 8, "a class");
    char label[DNN_SAMPLE_NAME];
    dnn_source_label(s, 1, label);
    is_text(label + strlen(made_dir), "/a.tfrecord[1]", "its name");
    dnn_source_close(s);
    how.split = "train";
    made_refused(TFRECORD, &how, false, DNN_EDATA,
                 ": not part of the split \"train\": neither a directory nor the file "
                 "name says so",
                 "a split that does not exist");
    how.split = NULL;
    how.target.path = "elsewhere";
    s = made_open(TFRECORD, &how, false, NULL);
    made_columns(s, "input image u8 ?x?x?", "targets from elsewhere");
    dnn_source_close(s);
}

static void lists(void)
{
    static const float values[] = {0.5f, -1, 2, 4};
    static const int64_t shape[] = {2, 2, 1}, negative[] = {-3, 1, 2, 9};
    struct dnn_import how = made_how();
    struct dnn_buf f = {0};

    feature(&f, "x", 2, bytes(values, sizeof values));
    ints(&f, "x/shape", 3, shape);
    ints(&f, "y", 4, negative);
    record(f);
    finish();
    struct dnn_source *s = made_open(TFRECORD, &how, false, NULL);
    made_columns(s, "input image f32 ?x?x?, target values i64 4", "lists of numbers");
    made_sample(s, 0, "2x2x1: 0.5 -1 2 4 | 4: -3 1 2 9", "and their values");
    dnn_source_close(s);
    how.input.name = "y";
    how.target.name = "x";
    how.input.shape = (struct dnn_list){
        .count = 2, .ints = (const int64_t[]){1, 4}
    };
    s = made_open(TFRECORD, &how, false, NULL);
    made_columns(s, "input image i64 1x4x1, target image f32 ?x?x?",
                 "given names and shape");
    dnn_source_close(s);
}

/* ---- errors ---- */

static void wrong_features(void)
{
    static const int64_t shape[] = {2, 3};
    struct dnn_import how = made_how();
    struct dnn_buf f = {0};

    integer(&f, "lable", 1);
    feature(&f, "picture", 1, bytes("abc", 3));
    record(f);
    finish();
    made_refused(TFRECORD, &how, false, DNN_EDATA,
                 ": record 0: several features could be the input; set its name to one "
                 "of lable, picture",
                 "no usual names");
    how.input.name = "picture";
    made_refused(TFRECORD, &how, false, DNN_EDATA,
                 ": record 0: picture: not a PNG or JPEG image, and the shape of its 3 "
                 "bytes is unknown",
                 "bytes of unknown format");
    how.input.type = "u16";
    made_refused(TFRECORD, &how, false, DNN_EDATA,
                 ": record 0: picture: 3 bytes is not a multiple of the size of u16",
                 "an incomplete number");
    how = made_how();
    how.input.name = "picture";
    how.input.kind = DNN_KIND_VALUES;
    how.target.name = "label";
    made_refused(TFRECORD, &how, false, DNN_EDATA,
                 ": record 0: there is no feature \"label\"; did you mean \"lable\"?; "
                 "available: lable, picture",
                 "an unknown name");
    how.target.name = "lable";
    struct dnn_source *s = made_open(TFRECORD, &how, false, NULL);
    made_sample(s, 0, "3: 97 98 99 | scalar: 1", "a given name");
    dnn_source_close(s);
    f = (struct dnn_buf){0};
    ints(&f, "x", 2, shape);
    ints(&f, "shape", 2, shape);
    record(f);
    finish();
    how = made_how();
    made_refused(TFRECORD, &how, false, DNN_EDATA,
                 ": record 0: x: 2 values do not match the shape 2x3",
                 "a shape that does not match");
    f = (struct dnn_buf){0};
    ints(&f, "x", 2, shape);
    record(f);
    f = (struct dnn_buf){0};
    ints(&f, "x", 1, shape);
    record(f);
    finish();
    made_refused(
        TFRECORD, &how, false, DNN_EDATA,
        ": record 1: input is values i64 1, but in record 0 it is values i64 2",
        "records that differ");
    f = (struct dnn_buf){0};
    feature(&f, "image/encoded", 1, bytes("\xff\xd8\xff and no more", 15));
    record(f);
    finish();
    struct dnn_err err = {0};
    ok(made_open(TFRECORD, &how, false, &err) == NULL && err.code == DNN_EDATA,
       "a truncated JPEG is refused: %s", err.text + strlen(made_path));
}

static void wrong_records(void)
{
    struct dnn_import how = made_how();
    struct dnn_buf buf = {0};

    made_file("", 0);
    made_refused(TFRECORD, &how, false, DNN_EDATA, ": contains no records",
                 "an empty file");
    raw_image(2, 2, 1, "\1\2\3\4", 7);
    size_t one = file.len;
    raw_image(2, 2, 1, "\5\6\7\10", 8);
    dnn_buf_bytes(&buf, file.text, file.len);
    made_file(buf.text, one + 5);
    made_refused(TFRECORD, &how, false, DNN_EDATA,
                 ": truncated in the header of record 1", "truncated in a header");
    made_file(buf.text, one + 20);
    made_refused(TFRECORD, &how, false, DNN_EDATA,
                 ": record 1: 90 bytes, but the file ends after 8",
                 "truncated in data");
    buf.text[one + 1] ^= 1;
    made_file(buf.text, buf.len);
    made_refused(TFRECORD, &how, false, DNN_EDATA,
                 ": record 1: checksum mismatch in its length; the file is damaged",
                 "a changed length");
    buf.text[one + 1] ^= 1;
    buf.text[one + 30] ^= 1;
    made_file(buf.text, buf.len);
    made_refused(TFRECORD, &how, false, DNN_EDATA,
                 ": record 1: checksum mismatch; the file is damaged", "changed data");
    how.limit = 50;
    made_refused(TFRECORD, &how, false, DNN_EDATA,
                 ": record 0: 90 bytes exceed the limit of 50", "more than the limit");
    how.limit = 0;
    dnn_buf_free(&buf);
    dnn_buf_free(&file);
    /* A length of 2^60 with a checksum that is right. */
    file = bytes("\0\0\0\0\0\0\0\x10", 8);
    sum(file.text, 8);
    finish();
    made_refused(TFRECORD, &how, false, DNN_EDATA,
                 ": record 0: 1152921504606846976 bytes, but the file ends after 0",
                 "a record of 2^60 bytes");
    file = bytes("\3\0\0\0\0\0\0\0", 8);
    sum(file.text, 8);
    dnn_buf_bytes(&file, "\xff\xff\xff", 3);
    sum("\xff\xff\xff", 3);
    finish();
    made_refused(TFRECORD, &how, false, DNN_EDATA, ": record 0: not a tf.train.Example",
                 "a record of another kind");
    record((struct dnn_buf){0});
    finish();
    made_refused(TFRECORD, &how, false, DNN_EDATA, ": record 0: contains no features",
                 "an empty example");
    unlink(made_path);
    made_refused(TFRECORD, &how, false, DNN_EIO,
                 ": cannot be read: No such file or directory", "no file");
}

int main(void)
{
    made_start("a.tfrecord");
    sums();
    raws();
    lists();
    wrong_features();
    wrong_records();
    return made_end();
}
#else
int main(void)
{
    skip("records of TensorFlow's", "built without protobuf-c");
    return done();
}
#endif
