/* import_npy.c - NPY files: every header that NumPy writes, every array order, and
 * wrong headers.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import_made.h"

#define NPY (&dnn_importer_npy)

/* A file of this version with this header and data. */
static void make(int version, const char *text, const void *numbers, size_t n)
{
    struct dnn_buf buf = {0};
    size_t len = strlen(text);
    unsigned char head[] = {0x93,
                            'N',
                            'U',
                            'M',
                            'P',
                            'Y',
                            (unsigned char)version,
                            0,
                            (unsigned char)len,
                            (unsigned char)(len >> 8),
                            0,
                            0};

    dnn_buf_bytes(&buf, head, version == 1 ? 10 : 12);
    dnn_buf_bytes(&buf, text, len);
    dnn_buf_bytes(&buf, numbers, n);
    made_file(buf.text, buf.len);
    dnn_buf_free(&buf);
}

static void refused(const char *header, const char *want, const char *what)
{
    static const char numbers[64];
    struct dnn_import how = made_how();

    make(1, header, numbers, sizeof numbers);
    made_refused(NPY, &how, false, DNN_EDATA, want, what);
}

/* ---- valid files ---- */

static void versions(void)
{
    static const unsigned char numbers[] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct dnn_import how = made_how();

    for (int version = 1; version <= 3; version++) {
        make(version,
             "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2, 2), }\n",
             numbers, 8);
        struct dnn_source *s = made_open(NPY, &how, false, NULL);
        made_columns(s, "input image u8 2x2x1", "columns of a version of the format");
        is_int(s->count, 2, "its rows are samples");
        made_sample(s, 0, "2x2x1: 1 2 3 4", "the first");
        made_sample(s, 1, "2x2x1: 5 6 7 8", "the second");
        dnn_source_close(s);
    }
    make(1, "{\"shape\": (8L,),\"descr\":\"u1\" , \"fortran_order\":False}", numbers,
         8);
    struct dnn_source *s = made_open(NPY, &how, true, NULL);
    made_columns(s, "target label u8 scalar", "keys in another order, and a label");
    made_sample(s, 7, "scalar: 8", "the last of them");
    is_int(s->type->class_of(s, 6), 7, "its class without reading the sample");
    char label[DNN_SAMPLE_NAME];
    dnn_source_label(s, 3, label);
    is_text(label + strlen(made_dir), "/a.npy[3]", "its name");
    dnn_source_close(s);
}

static void orders(void)
{
    /* Array [2][2][3] of 0..11 in C order, with the first axis running fastest. */
    static const unsigned char fortran[] = {0, 6, 3, 9, 1, 7, 4, 10, 2, 8, 5, 11};
    static const unsigned char big[] = {0x01, 0x02, 0xff, 0xfe};
    struct dnn_import how = made_how();

    how.input.layout = DNN_LAYOUT_NONE;
    make(1, "{'descr': '|i1', 'fortran_order': True, 'shape': (2, 2, 3), }", fortran,
         12);
    struct dnn_source *s = made_open(NPY, &how, false, NULL);
    made_sample(s, 0, "2x3x1: 0 1 2 3 4 5", "Fortran order, the first sample");
    made_sample(s, 1, "2x3x1: 6 7 8 9 10 11", "and the second");
    dnn_source_close(s);
    how.whole = true;
    s = made_open(NPY, &how, false, NULL);
    made_columns(s, "input image i8 2x2x3x1", "all of it as one sample");
    made_sample(s, 0, "2x2x3x1: 0 1 2 3 4 5 6 7 8 9 10 11", "and its numbers");
    dnn_source_close(s);
    how = made_how();
    make(1, "{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", big, 4);
    s = made_open(NPY, &how, false, NULL);
    made_sample(s, 0, "1: 258", "big-endian numbers");
    made_sample(s, 1, "1: -2", "and negative ones");
    dnn_source_close(s);
}

static void layouts(void)
{
    static const unsigned char numbers[24] = {0,  1,  2,  3,  4,  5,  6,  7,
                                              8,  9,  10, 11, 12, 13, 14, 15,
                                              16, 17, 18, 19, 20, 21, 22, 23};
    struct dnn_import how = made_how();

    make(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 2, 6), }",
         numbers, 24);
    made_refused(NPY, &how, false, DNN_EDATA,
                 ": sample shape 2x2x6: the position of the channel axis is unclear; "
                 "set \"layout\" to first, last or none",
                 "an ambiguous channel axis is not guessed");
    how.input.layout = DNN_LAYOUT_FIRST;
    struct dnn_source *s = made_open(NPY, &how, false, NULL);
    made_columns(s, "input image u8 2x6x2", "channels first");
    made_sample(s, 0,
                "2x6x2: 0 12 1 13 2 14 3 15 4 16 5 17 6 18 7 19 8 20 9 21 10 22 11 23",
                "become last");
    dnn_source_close(s);
    how.input.layout = DNN_LAYOUT_LAST;
    s = made_open(NPY, &how, false, NULL);
    made_columns(s, "input image u8 2x2x6", "channels last");
    dnn_source_close(s);
    how.input.layout = DNN_LAYOUT_NONE;
    s = made_open(NPY, &how, false, NULL);
    made_columns(s, "input image u8 2x2x6x1", "no channels");
    dnn_source_close(s);
    how.input.kind = DNN_KIND_VALUES;
    s = made_open(NPY, &how, false, NULL);
    made_columns(s, "input values u8 24", "no space");
    dnn_source_close(s);
    how.input.kind = DNN_KIND_LABEL;
    made_refused(NPY, &how, false, DNN_EDATA,
                 ": sample shape 2x2x6: a label must be a single number", "no label");
    s = made_open(NPY, &how, true, NULL);
    made_columns(s, "target mask u8 2x2x6x1", "a mask needs no layout");
    dnn_source_close(s);
    how.target.layout = DNN_LAYOUT_LAST;
    made_refused(NPY, &how, true, DNN_EDATA,
                 ": sample shape 2x2x6: a mask must have one channel, not 6",
                 "a mask with channels");
}

static void grey(void)
{
    static const unsigned char numbers[6] = {10, 10, 10, 255, 0, 0};
    struct dnn_import how = made_how();

    how.input.gray = true;
    make(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 2, 3), }",
         numbers, 6);
    struct dnn_source *s = made_open(NPY, &how, false, NULL);
    made_columns(s, "input image u8 1x2x1", "colours become grey");
    made_sample(s, 0, "1x2x1: 10 76", "by their luma");
    dnn_source_close(s);
}

static void reals(void)
{
    static const float numbers[] = {1, 2, 2.5f, 0};
    struct dnn_import how = made_how();

    make(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", numbers, 16);
    struct dnn_source *s = made_open(NPY, &how, true, NULL);
    made_columns(s, "target values f32 1", "reals are values");
    dnn_source_close(s);
    how.target.kind = DNN_KIND_LABEL;
    s = made_open(NPY, &how, true, NULL);
    made_columns(s, "target label i64 scalar", "or labels if \"kind\" is label");
    made_sample(s, 1, "scalar: 2", "integers");
    struct dnn_sample sample = {0};
    struct dnn_err err = {0};
    is_int(dnn_source_read(s, 2, &sample, &err), DNN_EDATA, "2.5 is not a label");
    is_text(err.text + strlen(made_dir),
            "/a.npy[2]: element 0 is 2.5, out of range of i64", "and why");
    dnn_sample_free(&sample);
    dnn_source_close(s);
}

/* ---- errors ---- */

static void headers(void)
{
#define ENDS ", 'fortran_order': False, 'shape': (8, 8)}"
    refused("{'descr': '|u1', 'fortran_order': False, 'shape': (8, -8)}",
            ": invalid header: expected a dimension of 0 or more at \"-8)}\"",
            "a negative extent");
    refused(
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1152921504606846976, 1)}",
        ": 149 bytes, but the header declares 1152921504606846976x1 of u8, which needs "
        "1152921504606847061",
        "more numbers than there are bytes");
    refused(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976, 9)}",
        ": 1152921504606846976x9 of f64 is too large",
        "more numbers than can be counted");
    refused(
        "{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        ": invalid header: expected a dimension below 2^63 at \"99,)}\"",
        "a dimension that overflows");
    refused("{'descr': '|u1', 'fortran_order': False, 'shape': (8)}",
            ": invalid header: expected a comma after a dimension at \"}\"",
            "a number in parentheses is not a shape");
    refused("{'descr': '|u1', 'fortran_order': False, 'shape': "
            "(1, 1, 1, 1, 1, 1, 1, 1, 1)}",
            ": has more than 8 axes", "nine axes");
    refused("{'descr': '|O'" ENDS, ": contains Python objects (\"|O\"), not numbers",
            "Python objects");
    refused("{'descr': '<U12'" ENDS, ": contains texts (\"<U12\"), not numbers",
            "texts");
    refused("{'descr': '<c8'" ENDS, ": contains complex numbers (\"<c8\"), not numbers",
            "complex numbers");
    refused("{'descr': [('a', '<f4')]" ENDS,
            ": structured dtypes are not supported; save each field as an array",
            "records");
    refused(
        "{'descr': '<f16'" ENDS,
        ": dtype \"<f16\" is not supported; use b1, i1 to i8, u1 to u8, f2, f4 or f8",
        "a float of 16 bytes");
    refused(
        "{'descr': '|u2'" ENDS,
        ": dtype \"|u2\" is not supported; use b1, i1 to i8, u1 to u8, f2, f4 or f8",
        "two bytes without an order");
    refused("{'descr': '|u1', 'fortran_order': 0, 'shape': (8, 8)}",
            ": invalid header: expected True or False at \"0, 'shape': (8, \"",
            "an order that is neither");
    refused("{'descr': '|u1', 'descr': '|u1'" ENDS,
            ": invalid header: expected the keys descr, fortran_order and shape, once "
            "each, at \"'descr': '|u1', \"",
            "a key twice");
    refused("{'descr': '|u1', 'shape': (8, 8)}",
            ": invalid header: fortran_order is missing", "a key missing");
    refused("{'descr': '|u1'" ENDS " x",
            ": invalid header: expected only whitespace at \"x\"",
            "text after the header");
    refused("['descr']", ": invalid header: expected a dictionary at \"['descr']\"",
            "a list");
    refused("{'descr': '|u1"
            "\x01",
            ": invalid header: expected a closing quote at \"\"",
            "a string without end");
}

static void files(void)
{
    struct dnn_import how = made_how();

    made_file("", 0);
    made_refused(NPY, &how, false, DNN_EDATA,
                 ": not a NumPy file: the magic bytes are missing", "an empty file");
    made_file("\x93NUMPY\x04\0\x10\0", 10);
    made_refused(NPY, &how, false, DNN_EDATA,
                 ": NumPy format version 4.0 is not supported; 1.0, 2.0 and 3.0 are",
                 "an unknown version");
    made_file("\x93NUMPY\x02\0\xff\xff\xff\xff", 12);
    made_refused(NPY, &how, false, DNN_EDATA,
                 ": the header length 4294967307 is too large", "a header of 4 GiB");
    made_file("\x93NUMPY\x01\0\x76\0{", 11);
    made_refused(NPY, &how, false, DNN_EDATA, ": truncated: 11 of 128 bytes",
                 "a file truncated in its header");
    make(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}", "12345678", 8);
    made_refused(NPY, &how, false, DNN_EDATA,
                 ": 75 bytes, but the header declares 2x2 of f32, which needs 83",
                 "a file truncated in its numbers");
    make(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (1, 4)}", "\0\1\2\1", 4);
    made_refused(NPY, &how, false, DNN_EDATA,
                 "[0]: element 2 is 2; a bool must be 0 or 1", "a bool of 2");
    make(1, "{'descr': '|u1', 'fortran_order': False, 'shape': ()}", "\0", 1);
    made_refused(NPY, &how, false, DNN_EDATA,
                 ": contains a scalar without a sample axis; \"whole\": true makes it "
                 "one sample",
                 "one number");
    make(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (0, 4)}", "", 0);
    made_refused(NPY, &how, false, DNN_EDATA, ": contains no samples", "no rows");
    make(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 0)}", "", 0);
    made_refused(NPY, &how, false, DNN_EDATA, ": sample shape 0: the sample is empty",
                 "empty rows");
    make(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2)}", "1234", 4);
    how.limit = 3;
    made_refused(NPY, &how, false, DNN_EDATA,
                 ": 4 bytes in Fortran order exceed the limit of 3; save it in C order",
                 "more than the limit");
    how = made_how();
    how.input.name = "x";
    made_refused(
        NPY, &how, false, DNN_EDATA,
        ": contains a single unnamed array, so the name \"x\" cannot be selected",
        "a name for an unnamed array");
    how = made_how();
    how.split = "train";
    made_refused(NPY, &how, false, DNN_EDATA,
                 ": not part of the split \"train\": neither a directory nor the file "
                 "name says so",
                 "a split that does not exist");
    unlink(made_path);
    made_refused(NPY, &how, false, DNN_EIO,
                 ": cannot be read: No such file or directory", "no file");
}

int main(void)
{
    made_start("a.npy");
    versions();
    orders();
    layouts();
    grey();
    reals();
    headers();
    files();
    return made_end();
}
