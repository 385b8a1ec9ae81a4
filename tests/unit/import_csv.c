/* import_csv.c - tables: quotes, separators, numbers, classes, objects, and error
 * messages.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "import_tools.h"

static void numbers(void)
{
    put_text("a.csv", "x,y,z\n1,2,3.5\n-4e2,5,.25\n");
    is_source(
        "{\"input_path\": \"a.csv\"}",
        "2: input values f32 3\na.csv[0] -1: 1 2 3.5\na.csv[1] -1: -400 5 0.25\n");
    is_source("{\"input_path\": \"a.csv\", \"inputs\": [\"z\", \"x\"]}",
              "2: input values f32 2\na.csv[0] -1: 1 3.5\na.csv[1] -1: -400 0.25\n");
    is_source("{\"input_path\": \"a.csv\", \"targets\": [\"z\"], \"input_dtype\": "
              "\"f64\"}",
              "2: input values f64 2, target values f32 1\n"
              "a.csv[0] -1: 1 2 | 3.5\na.csv[1] -1: -400 5 | 0.25\n");
    is_source(
        "{\"input_path\": \"a.csv\", \"targets\": [\"z\", \"y\"], \"target_kind\": "
        "\"values\"}",
        "2: input values f32 1, target values f32 2\n"
        "a.csv[0] -1: 1 | 2 3.5\na.csv[1] -1: -400 | 5 0.25\n");
    put_text("whole.csv", "x,y\n1,2\n2,2.5\n");
    is_source("{\"input_path\": \"whole.csv\", \"targets\": \"y\"}",
              "2: input values f32 1, target values f32 1\n"
              "whole.csv[0] -1: 1 | 2\nwhole.csv[1] -1: 2 | 2.5\n");
    put_text("minus.csv", "x,y\n1,2\n2,-2\n");
    is_source("{\"input_path\": \"minus.csv\", \"targets\": \"y\"}",
              "2: input values f32 1, target values f32 1\n"
              "minus.csv[0] -1: 1 | 2\nminus.csv[1] -1: 2 | -2\n");
    refused("{\"input_path\": \"minus.csv\", \"targets\": \"y\", \"target_kind\": "
            "\"label\"}",
            DNN_EDATA,
            "minus.csv:3: column \"y\": -2 is not a class number (0 to 65535); for "
            "regression targets set \"kind\": \"values\"");
    put_text("one.csv", "5\n1\n");
    refused("{\"input_path\": \"one.csv\"}", DNN_EDATA,
            "one.csv:1: the first line must contain the column names, but it contains "
            "only numbers");
    put_text("count.csv", "0,1\n5,6\n");
    is_source("{\"input_path\": \"count.csv\"}",
              "1: input values f32 2\ncount.csv[0] -1: 5 6\n");
}

static void forms(void)
{
    put_text("semi.csv", "\xef\xbb\xbfx;\"y;,,\"\r\n1;2\r\n\r\n3;4");
    is_source("{\"input_path\": \"semi.csv\", \"targets\": \"y;,,\"}",
              "2: input values f32 1, target label i32 scalar 5\n"
              "semi.csv[0] 2: 1 | 2\nsemi.csv[1] 4: 3 | 4\n");
    put_text("t.tsv", "x\ty\n1\t2\n");
    is_source("{\"input_path\": \"t.tsv\"}",
              "1: input values f32 2\nt.tsv[0] -1: 1 2\n");
    put_text("bar.csv", "x|y\n1|2\n");
    is_source("{\"input_path\": \"bar.csv\", \"separator\": \"|\"}",
              "1: input values f32 2\nbar.csv[0] -1: 1 2\n");
    refused(
        "{\"input_path\": \"bar.csv\", \"separator\": \"||\"}", DNN_ECONFIG,
        "bar.csv: the separator must be one character other than a quote, not \"||\"");
    put_text("quoted.csv",
             "x,what\n\"1\",\"a \"\"b\"\", c\"\n2,\"two\nlines\"\n3,\" plain \"\n");
    is_source("{\"input_path\": \"quoted.csv\", \"targets\": [\"what\"]}",
              "3: input values f32 1, target label i32 scalar 3 ( plain  a \"b\", c "
              "two\nlines)\n"
              "quoted.csv[0] 1: 1 | 1\nquoted.csv[1] 2: 2 | 2\nquoted.csv[2] 0: 3 | "
              "0\n");
    put_text("blank.csv", "x, y, z\n1, 2 , 3\n4,\t5, 6\n");
    is_source("{\"input_path\": \"blank.csv\", \"targets\": \"z\"}",
              "2: input values f32 2, target label i32 scalar 7\n"
              "blank.csv[0] 3: 1 2 | 3\nblank.csv[1] 6: 4 5 | 6\n");
    put_text("table.txt", "x,y\n1,2\n");
    is_source("{\"input_path\": \"table.txt\", \"input_format\": \"csv\"}",
              "1: input values f32 2\ntable.txt[0] -1: 1 2\n");
}

static void classes(void)
{
    put_text("c.csv", "who,x,kind\np1,1,dog\np2,2,cat\np1,3,dog\n");
    is_source("{\"input_path\": \"c.csv\", \"targets\": \"kind\", \"group\": \"who\"}",
              "3: input values f32 1, target label i32 scalar 2 (cat dog)\n"
              "c.csv[0] 1 of p1: 1 | 1\nc.csv[1] 0 of p2: 2 | 0\nc.csv[2] 1 of p1: 3 | "
              "1\n");
    is_source(
        "{\"input_path\": \"c.csv\", \"inputs\": \"x\", \"targets\": [\"who\", "
        "\"kind\"]}",
        "3: input values f32 1, who target label i32 scalar 2 (p1 p2), kind target "
        "label i32 scalar 2 (cat dog)\n"
        "c.csv[0] 0: 1 | 0 | 1\nc.csv[1] 1: 2 | 1 | 0\nc.csv[2] 0: 3 | 0 | 1\n");
    put_text("labels.csv", "kind\n2\n0\n1\n");
    is_source("{\"input_path\": \"c.csv\", \"inputs\": \"x\", \"target_path\": "
              "\"labels.csv\"}",
              "3: input values f32 1, target label i32 scalar 3\n"
              "c.csv[0] 2: 1 | 2\nc.csv[1] 0: 2 | 0\nc.csv[2] 1: 3 | 1\n");
    put_text("short.csv", "kind\n2\n");
    refused("{\"input_path\": \"c.csv\", \"inputs\": \"x\", \"target_path\": "
            "\"short.csv\"}",
            DNN_EDATA, "c.csv, short.csv: 3 inputs, but 1 targets");
}

static void cells(void)
{
    static const char *const rows[][2] = {
        {"x,y\n1,2\n3,abc\n",       "bad.csv:3: column \"y\": \"abc\" is not a number"          },
        {"x,y\n1,\n",               "bad.csv:2: column \"y\": the value is missing"             },
        {"x,y\n1,nan\n",            "bad.csv:2: column \"y\": \"nan\" is not a number"          },
        {"x,y\n1,2\n\n\n3,inf\n",   "bad.csv:5: column \"y\": \"inf\" is not a number"          },
        {"x,y\n1,1e999\n",          "bad.csv:2: column \"y\": \"1e999\" is not a number"        },
        {"x,y\n1,1.2.3\n",          "bad.csv:2: column \"y\": \"1.2.3\" is not a number"        },
        {"x,y\n1,2\n3\n",           "bad.csv:3: 1 fields, but the header has 2"                 },
        {"x,y\n1,2\n3,4,5\n",       "bad.csv:3: 3 fields, but the header has 2"                 },
        {"x,y\n1,\"2\n3,4\n",       "bad.csv:2: a closing quote is missing"                     },
        {"x,y\n1,\"2\"3\n",         "bad.csv:2: text after the closing quote of a field"        },
        {"x,y\n1,2\"3\n",           "bad.csv:2: there is a quote in a field that is not quoted" },
        {"x,y\n\"1\n\n\",2\n3,4\n",
         "bad.csv:2: column \"x\": \"1\n\n\" is not a number"                                   },
        {"x,x\n1,2\n",              "bad.csv:1: duplicate column name \"x\""                    },
        {"x,\n1,2\n",               "bad.csv:1: column 2 has no name"                           },
        {"x,y\n",                   "bad.csv: only a header, no records"                        },
        {"",                        "bad.csv: empty file; expected a line with the column names"},
        {"\n\n",                    "bad.csv: empty file; expected a line with the column names"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        put_text("bad.csv", rows[i][0]);
        refused("{\"input_path\": \"bad.csv\"}", DNN_EDATA, rows[i][1]);
    }
    put("bad.csv", "x,y\n1,\0002\n", 9);
    refused("{\"input_path\": \"bad.csv\"}", DNN_EDATA,
            "bad.csv:2: contains a NUL byte; is this a text file?");
    put_text("bad.csv", "age,y\n1,1\n2,two\n");
    refused("{\"input_path\": \"bad.csv\", \"targets\": \"y\"}", DNN_EDATA,
            "bad.csv:3: column \"y\": \"two\" is not a class number, unlike the other "
            "values");
    refused("{\"input_path\": \"bad.csv\", \"targets\": \"agee\"}", DNN_EDATA,
            "bad.csv:1: there is no column \"agee\"; did you mean \"age\"?");
    refused("{\"input_path\": \"bad.csv\", \"targets\": \"y\", \"inputs\": \"y\"}",
            DNN_ECONFIG, "bad.csv: column \"y\" cannot be both input and target");
    put_text("bad.csv", "x,y\n1,a\n2,\n");
    refused("{\"input_path\": \"bad.csv\", \"targets\": \"y\"}", DNN_EDATA,
            "bad.csv:3: column \"y\": the value is missing");
    put_text("bad.csv", "x,y\n1,5\n2,70000\n");
    refused("{\"input_path\": \"bad.csv\", \"targets\": \"y\"}", DNN_EDATA,
            "bad.csv:3: column \"y\": 70000 is not a class number (0 to 65535); for "
            "regression targets set \"kind\": \"values\"");
    put_text("bad.csv", "x\n1\n1e300\n");
    unreadable("{\"input_path\": \"bad.csv\"}", 1,
               "bad.csv:3: column \"x\": f32 cannot hold 1e300");
}

static void objects(void)
{
    put("o/1.raw", "\1\2", 2);
    put("o/2.raw", "\3\4", 2);
    put_text("t/obj.csv", "file,age,sick\n../o/1.raw,30,no\n../o/2.raw,40,yes\n");
    is_source(
        "{\"input_path\": \"t/obj.csv\", \"objects\": \"file\", \"targets\": "
        "\"sick\", \"input_shape\": [1, 2], \"input_format\": \"csv\"}",
        "2: values input values f32 1, file input image u8 ?x?x?, target label i32 "
        "scalar 2 (no yes)\n"
        "../o/1.raw 0: 30 | 1 2 | 0\n../o/2.raw 1: 40 | 3 4 | 1\n");
    put_text("t/obj.csv", "file,sick\n1.raw,0\n2.raw,1\n");
    is_source("{\"input_path\": \"t/obj.csv\", \"objects\": \"file\", \"targets\": "
              "\"sick\", \"input_shape\": [1, 2], \"input_format\": \"csv\", "
              "\"object_dir\": \"o\"}",
              "2: input image u8 ?x?x?, target label i32 scalar 2\n"
              "1.raw 0: 1 2 | 0\n2.raw 1: 3 4 | 1\n");
    put_text("t/obj.csv", "file,sick\n1.raw,0\n3.raw,1\n");
    unreadable("{\"input_path\": \"t/obj.csv\", \"objects\": \"file\", \"targets\": "
               "\"sick\", \"input_shape\": [1, 2], \"input_format\": \"csv\", "
               "\"object_dir\": \"o\"}",
               1,
               "t/obj.csv:3: column \"file\": o/3.raw: cannot be read: No such file or "
               "directory");
    put("o/3.raw", "123", 3);
    unreadable("{\"input_path\": \"t/obj.csv\", \"objects\": \"file\", \"targets\": "
               "\"sick\", \"input_shape\": [1, 2], \"input_format\": \"csv\", "
               "\"object_dir\": \"o\"}",
               1,
               "t/obj.csv:3: column \"file\": o/3.raw: 3 bytes after an offset of 0 is "
               "not a multiple of the sample size: u8 1x2 (2 bytes each)");
    put_text("t/obj.csv", "file,sick\n,0\n");
    refused("{\"input_path\": \"t/obj.csv\", \"objects\": \"file\", \"targets\": "
            "\"sick\"}",
            DNN_EDATA, "t/obj.csv:2: column \"file\": the path is missing");
    put_text("t/obj.csv", "file\nobj.csv\n");
    refused("{\"input_path\": \"t/obj.csv\", \"objects\": \"file\"}", DNN_EDATA,
            "t/obj.csv:2: column \"file\": t/obj.csv: is a table; expected an image or "
            "array file");
    put_text("t/obj.csv", "file\nx.pgn\n");
    put_text("t/x.pgn", "?");
    refused("{\"input_path\": \"t/obj.csv\", \"objects\": \"file\"}", DNN_EDATA,
            "t/obj.csv:2: column \"file\": t/x.pgn: unknown file format (suffix "
            "\".pgn\", and the content is not recognised); did you mean \".png\"?");
}

/* A table that is larger than the read buffer. */
static void large(void)
{
    FILE *f = fopen("large.csv", "w");
    struct dnn_sample sample = {0};
    struct opened o;
    int bad = 0;

    fprintf(f, "x,y,c\n");
    for (int i = 0; i < 100000; i++)
        fprintf(f, "%d,\"%d\n\",k%d\n", i, i * 2, i % 10);
    fclose(f);
    open_with(&o, "{\"input_path\": \"large.csv\", \"inputs\": \"x\", \"targets\": "
                  "\"c\"}");
    is_int(o.source == NULL ? -1 : o.source->count, 100000, "a large table");
    for (int64_t i = 0; o.source != NULL && i < 2000; i++) {
        int64_t k = i * 4999 % 100000;

        bad += dnn_source_read(o.source, k, &sample, NULL) < 0 ||
               *(float *)sample.col[0].data != (float)k ||
               *(int32_t *)sample.col[1].data != k % 10;
    }
    is_int(bad, 0, "is read in any order");
    dnn_sample_free(&sample);
    close_it(&o);
}

int main(void)
{
    tools_start();
    numbers();
    forms();
    classes();
    cells();
    objects();
    large();
    return tools_end();
}
