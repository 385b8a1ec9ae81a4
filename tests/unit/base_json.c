/* base_json.c - JSON: error messages, lines, paths, values.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/json.h"
#include "base/json_impl.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/text.h"
#include "tap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Texts that are refused, and the whole message. */
static const struct {
    const char *text, *message;
} wrong[] = {
    /* no text */
    {"",                                            "train.json: is empty; the smallest valid file is {}"                     },
    {" \n\t ",                                      "train.json: is empty; the smallest valid file is {}"                     },
    {"\xef\xbb\xbf{}",
     "train.json: begins with a byte order mark; save it as UTF-8 without one"                                                },
    {"\xff\xfe{",                                   "train.json: is UTF-16; save it as UTF-8"                                 },
    {"{\"a\": \"caf\xe9\"}",                        "train.json:1:11: not valid UTF-8: the byte 0xe9"                         },
    {"[\"\xc3\xa9\xed\xa0\x80\"]",                  "train.json:1:4: not valid UTF-8: the byte 0xed"                          },
    {"[\"\xc0\xaf\"]",                              "train.json:1:3: not valid UTF-8: the byte 0xc0"                          },
    {"[\"\xf5\x80\x80\x80\"]",                      "train.json:1:3: not valid UTF-8: the byte 0xf5"                          },
    /* commas and comments */
    {"{\n \"a\": 1,\n}",                            "train.json:2:8: trailing comma is not allowed"                           },
    {"[1, 2,]",                                     "train.json:1:6: trailing comma is not allowed"                           },
    {"{\"a\": 1 \"b\": 2}",                         "train.json:1:9: a comma is missing before this"                          },
    {"[1 2]",                                       "train.json:1:4: a comma is missing before this"                          },
    {"[1; 2]",                                      "train.json:1:3: a comma is missing before this"                          },
    {"[,1]",                                        "train.json:1:2: a value is missing before \",\""                         },
    {"[1,,2]",                                      "train.json:1:4: a value is missing before \",\""                         },
    {"{\"a\":}",                                    "train.json:1:6: a value is missing before \"}\""                         },
    {"{,}",                                         "train.json:1:2: a key in double quotes is expected here, not \",\""      },
    {"// yes\n{}",                                  "train.json:1:1: comments are not allowed in JSON"                        },
    {"{\n  # no\n}",                                "train.json:2:3: comments are not allowed in JSON"                        },
    {"{\"a\" /* b */: 1}",                          "train.json:1:6: comments are not allowed in JSON"                        },
    {"{\"a\": 1} // c",                             "train.json:1:10: comments are not allowed in JSON"                       },
    {"{\"a\": 1 /* c */}",                          "train.json:1:9: comments are not allowed in JSON"                        },
    /* brackets */
    {"{\n\"a\": [1,\n2\n",
     "train.json:3:2: unexpected end: the \"[\" in line 2 is not closed"                                                      },
    {"{",                                           "train.json:1:2: unexpected end: the \"{\" in line 1 is not closed"       },
    {"{\"a\"",                                      "train.json:1:5: unexpected end: the \"{\" in line 1 is not closed"       },
    {"{\"a\":",                                     "train.json:1:6: unexpected end: the \"{\" in line 1 is not closed"       },
    {"[\n1\n}",                                     "train.json:3:1: \"}\" does not match the \"[\" in line 1"                },
    {"{\"a\": 1]",                                  "train.json:1:8: \"]\" does not match the \"{\" in line 1"                },
    {"[}",                                          "train.json:1:2: \"}\" does not match the \"[\" in line 1"                },
    {"]",                                           "train.json:1:1: a value is missing before \"]\""                         },
    {"{} {}",
     "train.json:1:4: unexpected text after the end; a file contains one value"                                               },
    {"1,",                                          "train.json:1:2: unexpected text after the end; a file contains one value"},
    {"[\"a\": 1]",                                  "train.json:1:5: a list has no keys; use { } instead of [ ]"              },
    /* keys */
    {"{a: 1}",                                      "train.json:1:2: the key a is not in double quotes"                       },
    {"{'a': 1}",                                    "train.json:1:2: strings need double quotes, not single quotes"           },
    {"{\"a\" 1}",                                   "train.json:1:6: a colon is missing after the key"                        },
    {"{\"a\" = 1}",                                 "train.json:1:6: a colon is missing after the key"                        },
    {"{[1]: 1}",                                    "train.json:1:2: a key in double quotes is expected here, not \"[\""      },
    /* words */
    {"{\"a\": True}",                               "train.json:1:7: write true, not True"                                    },
    {"[None]",                                      "train.json:1:2: write null, not None"                                    },
    {"[NaN]",                                       "train.json:1:2: NaN is not a number in JSON"                             },
    {"[-inf]",                                      "train.json:1:2: a digit is missing after the minus sign"                 },
    {"[Infinity]",                                  "train.json:1:2: Infinity is not a number in JSON"                        },
    {"[adam]",                                      "train.json:1:2: adam is not valid JSON; strings need double quotes"      },
    {"[nullx]",                                     "train.json:1:2: nullx is not valid JSON; strings need double quotes"     },
    {"['a']",                                       "train.json:1:2: strings need double quotes, not single quotes"           },
    {"[$]",                                         "train.json:1:2: a value cannot begin with \"$\""                         },
    {"[\x01]",                                      "train.json:1:2: a value cannot begin with the byte 0x01"                 },
    {"[\xc3\xa9]",                                  "train.json:1:2: a value cannot begin with the byte 0xc3"                 },
    /* numbers */
    {"[+1]",                                        "train.json:1:2: a number must not begin with a plus sign"                },
    {"[.5]",                                        "train.json:1:2: a number needs a digit before the decimal point"         },
    {"[5.]",                                        "train.json:1:2: a digit is missing after the decimal point"              },
    {"[1e]",                                        "train.json:1:2: a digit is missing in the exponent"                      },
    {"[1e+]",                                       "train.json:1:2: a digit is missing in the exponent"                      },
    {"[-]",                                         "train.json:1:2: a digit is missing after the minus sign"                 },
    {"[007]",                                       "train.json:1:2: a number must not have leading zeros"                    },
    {"[0x10]",                                      "train.json:1:2: hexadecimal numbers are not JSON"                        },
    {"[1_000]",                                     "train.json:1:2: unexpected \"_000\" after a number"                      },
    {"[10px]",                                      "train.json:1:2: unexpected \"px\" after a number"                        },
    {"[1e999]",                                     "train.json:1:2: the number is too large"                                 },
    /* texts */
    {"[\"abc\n\"]",                                 "train.json:1:2: the string that begins here has no closing quote"        },
    {"[\"abc",                                      "train.json:1:2: the string that begins here has no closing quote"        },
    {"[\"a\tb\"]",                                  "train.json:1:4: a tab in a string must be written as \\t"                },
    {"[\"a\x01\"]",                                 "train.json:1:4: the control character 0x01 in a string must be "
                    "written as \\u0001"                                                                   },
    {"[\"C:\\data\"]",
     "train.json:1:5: invalid escape: a backslash before \"d\"; write "
     "\\\\ for a backslash"                                                                                                   },
    {"[\"\\u12g4\"]",
     "train.json:1:3: \\u must be followed by four hexadecimal digits"                                                        },
    {"[\"\\ud800x\"]",                              "train.json:1:3: unpaired surrogate: \\uD800 to \\uDBFF and "
                       "\\uDC00 to \\uDFFF come in pairs"                                               },
    {"[\"\\udc00\"]",                               "train.json:1:3: unpaired surrogate: \\uD800 to \\uDBFF and "
                      "\\uDC00 to \\uDFFF come in pairs"                                                 },
    /* valid JSON that is refused */
    {"{\"a\": 1,\n\"b\": 2,\n\"a\": 3,\n\"b\": 4}",
     "train.json:3: a: is given twice; first on line 1"                                                                       },
    {"{\"o\":\n[{\"x\": 1,\n\"\\u0078\": 2}]}",
     "train.json:3: o[0].x: is given twice; first on line 2"                                                                  },
    {"{\"a\":\n\"x\\u0000y\"}",
     "train.json:1: a: the string contains a NUL character (\\u0000)"                                                         },
    {"[1,\n\"x\\u0000y\"]",
     "train.json:2: [1]: the string contains a NUL character (\\u0000)"                                                       },
    {"{\"o\": {\"x\\u0000y\": 1}}",
     "train.json:1: o: a key contains a NUL character (\\u0000)"                                                              },
};

static struct dnn_json *parsed(const char *text)
{
    struct dnn_err err = {0};
    struct dnn_json *file = NULL;

    if (dnn_json_text("train.json", text, strlen(text), &file, &err) < 0) {
        printf("Bail out! %s\n", err.text);
        exit(1);
    }
    return file;
}

static void test_wrong(void)
{
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct dnn_json *file = NULL;
        struct dnn_err err = {0};
        int rc = dnn_json_text("train.json", wrong[i].text, strlen(wrong[i].text),
                               &file, &err);

        char what[40];

        snprintf(what, sizeof what, "refused text %zu", i);
        is_text(err.text, wrong[i].message, what);
        if (rc != DNN_ECONFIG || err.code != rc || file != NULL)
            ok(false, "error code, and no file");
    }

    struct dnn_json *file = NULL;
    struct dnn_err err = {0};
    is_int(dnn_json_text("train.json", "{\n\0}", 4, &file, &err), DNN_ECONFIG,
           "a NUL byte");
    is_text(err.text, "train.json:2:1: a NUL byte: this is not a text file",
            "its message");
}

static void test_depth(void)
{
    struct dnn_json *file = NULL;
    struct dnn_err err = {0};
    struct dnn_buf deep = {0};

    for (int i = 0; i < 100; i++)
        dnn_buf_add(&deep, i % 2 ? "[" : "{\"a\":");
    for (int i = 99; i >= 0; i--)
        dnn_buf_add(&deep, i % 2 ? "]" : "}");
    is_int(dnn_json_text("train.json", deep.text, deep.len, &file, &err), 0,
           "100 levels");
    dnn_json_free(file);
    file = NULL;
    dnn_buf_free(&deep);

    /* Deep enough to overflow the stack of a recursive parser. */
    size_t n = 4000000;
    char *bomb = malloc(n);
    memset(bomb, '[', n);
    is_int(dnn_json_text("train.json", bomb, n, &file, &err), DNN_ECONFIG,
           "4 000 000 levels");
    is_text(err.text, "train.json:1:101: nested more than 100 levels deep",
            "its message");
    free(bomb);
}

/* ---- files ---- */

static void test_files(void)
{
    char dir[] = "/tmp/dnn-json.XXXXXX", path[64], want[256];
    struct dnn_json *file = NULL;
    struct dnn_err err = {0};

    if (mkdtemp(dir) == NULL) {
        printf("Bail out! %s: %s\n", dir, strerror(errno));
        exit(1);
    }
    is_int(dnn_json_read(dir, &file, &err), DNN_EIO, "a directory");
    snprintf(want, sizeof want, "%s: is a directory, not a file", dir);
    is_text(err.text, want, "its message");

    snprintf(path, sizeof path, "%s/train.json", dir);
    is_int(dnn_json_read(path, &file, &err), DNN_EIO, "no file");
    snprintf(want, sizeof want, "%s: cannot be read: No such file or directory", path);
    is_text(err.text, want, "its message");

    FILE *f = fopen(path, "w");
    fputs("{\n  \"a\": [1, 2]\n}\n", f);
    fclose(f);
    is_int(dnn_json_read(path, &file, &err), 0, "a file");
    is_text(dnn_json_name(file), path, "has its name");
    struct dnn_jobj top = dnn_json_top(file), a = dnn_json_sub(&top, "a");
    is_int((long long)dnn_json_count(&a), 2, "and what is in it");
    dnn_json_free(file);
    file = NULL;

    f = fopen(path, "w");
    fclose(f);
    is_int(dnn_json_read(path, &file, &err), DNN_ECONFIG, "an empty file");
    snprintf(want, sizeof want, "%s: is empty; the smallest valid file is {}", path);
    is_text(err.text, want, "its message");

    ok(truncate(path, (off_t)DNN_JSON_LIMIT + 1) == 0, "a file that is too large");
    is_int(dnn_json_read(path, &file, &err), DNN_ECONFIG, "is refused");
    snprintf(want, sizeof want,
             "%s: 256.0 MiB exceeds the limit of 256.0 MiB; is it the right file?",
             path);
    is_text(err.text, want, "its message");
    is_int(err.code, DNN_ECONFIG, "with this code");

    chmod(path, 0);
    if (geteuid() == 0)
        skip("a file without permission", "root may read everything");
    else {
        is_int(dnn_json_read(path, &file, &err), DNN_EIO, "a file without permission");
        snprintf(want, sizeof want, "%s: cannot be read: Permission denied", path);
        is_text(err.text, want, "its message");
    }
    unlink(path);
    rmdir(dir);
    dnn_json_free(NULL);
}

/* ---- walking ---- */

/* Each number in this text is the line it is on, or the line where its list or object
 * begins. */
static const char lines[] = "{\n"
                            "\"a\\\"]\": 2,\n"
                            "\"b\": [\n"
                            "4, 4,\n"
                            "5\n"
                            ", [\n"
                            "7, {\"t\": \"[{\\\\\"\n"
                            ", \"x\": 8\n"
                            "}, true, 8.0, -0,\n"
                            "10]\n"
                            "],\n"
                            "\"\": {\"c\": 12}\n"
                            "}";

static int wrong_lines(const struct dnn_jobj *at, int *seen)
{
    int bad = 0;

    for (struct dnn_jobj it = dnn_json_first(at); it.val != NULL;
         it = dnn_json_next(&it)) {
        double value;

        if (dnn_json_type(&it) == DNN_J_NUMBER &&
            dnn_json_real(&it, &value, NULL) == 0 && value >= 1 && it.index != 3) {
            ++*seen;
            bad += (double)dnn_json_line(&it) != value;
        }
        bad += wrong_lines(&it, seen);
    }
    return bad;
}

static void test_lines(void)
{
    struct dnn_json *file = parsed(lines);
    struct dnn_jobj top = dnn_json_top(file), b = dnn_json_sub(&top, "b");
    int seen = 0;

    is_int(wrong_lines(&top, &seen), 0, "every value has its line");
    is_int(seen, 8, "and all were checked");
    is_int((long long)dnn_json_line(&top), 1, "the top is on line 1");
    is_int((long long)dnn_json_line(&b), 3, "a list has the line of its key");
    struct dnn_jobj it = dnn_json_first(&b);
    while (dnn_json_type(&it) != DNN_J_LIST)
        it = dnn_json_next(&it);
    is_int((long long)dnn_json_line(&it), 6,
           "a list in a list has the line of its bracket");
    struct dnn_jobj none = dnn_json_sub(&b, "x"), deep = dnn_json_sub(&none, "y");
    is_int((long long)dnn_json_line(&deep), 3,
           "an absent value has the line of its parent");
    is_int(dnn_json_type(&deep), DNN_J_ABSENT, "and is absent");
    dnn_json_free(file);
}

static void test_walk(void)
{
    struct dnn_json *file = parsed("{\"a\": null, \"b\": [], \"c\": {}, \"d\": \"x\"}");
    struct dnn_jobj top = dnn_json_top(file);
    static const enum dnn_jtype want[] = {DNN_J_NULL, DNN_J_LIST, DNN_J_OBJECT,
                                          DNN_J_TEXT};
    int n = 0, good = 0;

    for (struct dnn_jobj it = dnn_json_first(&top); it.val != NULL;
         it = dnn_json_next(&it)) {
        struct dnn_jobj in = dnn_json_first(&it), same = dnn_json_sub(&top, it.name);

        good += dnn_json_type(&it) == want[n] && in.val == NULL && same.val == it.val &&
                it.name[0] == 'a' + n && dnn_json_count(&it) == 0;
        n++;
    }
    ok(n == 4 && good == 4, "members in order, by name, and empty ones");
    dnn_json_free(file);
    file = parsed("5");
    top = dnn_json_top(file);
    is_int(dnn_json_type(&top), DNN_J_NUMBER, "a file may be a single number");
    dnn_json_free(file);
}

/* Reading one value "v" of a text as a type: the value, or the message. */
static const struct {
    char type;
    const char *json, *want;
} values[] = {
    {'i', "7",                                                                     "7"                                                  },
    {'i', "-9223372036854775808",                                                  "-9223372036854775808"                               },
    {'i', "9223372036854775807",                                                   "9223372036854775807"                                },
    {'i', "3.0",                                                                   "3"                                                  },
    {'i', "1e3",                                                                   "1000"                                               },
    {'i', "-0.0",                                                                  "0"                                                  },
    {'i', "1.5",                                                                   "train.json:2: v: must be a whole number, not 1.5"   },
    {'i', "1e-9",                                                                  "train.json:2: v: must be a whole number, not 1e-9"  },
    {'i', "9223372036854775808",
     "train.json:2: v: must be between -9223372036854775808 and "
     "9223372036854775807, not 9223372036854775808"                                                                                     },
    {'i', "1e300",
     "train.json:2: v: must be between -9223372036854775808 and "
     "9223372036854775807, not 1e300"                                                                                                   },
    {'i', "true",                                                                  "train.json:2: v: must be a whole number, not true"  },
    {'i', "null",                                                                  "train.json:2: v: must be a whole number, not null"  },
    {'i', "\"5\"",
     "train.json:2: v: must be a whole number, not \"5\"; remove the quotes"                                                            },
    {'i', "[1]",                                                                   "train.json:2: v: must be a whole number, not a list"},
    {'i', "[]",                                                                    "train.json:2: v: must be a whole number, not []"    },
    {'r', "0.1",                                                                   "0.1"                                                },
    {'r', "-3",                                                                    "-3"                                                 },
    {'r', "18446744073709551615",                                                  "1.8446744073709552e+19"                             },
    {'r', "\"fast\"",                                                              "train.json:2: v: must be a number, not \"fast\""    },
    {'r', "\"1e-3\"",
     "train.json:2: v: must be a number, not \"1e-3\"; remove the quotes"                                                               },
    {'r', "{\"x\": 1}",                                                            "train.json:2: v: must be a number, not an object"   },
    {'r', "{}",                                                                    "train.json:2: v: must be a number, not {}"          },
    {'b', "true",                                                                  "true"                                               },
    {'b', "false",                                                                 "false"                                              },
    {'b', "1",                                                                     "train.json:2: v: must be true or false, not 1"      },
    {'b', "\"true\"",
     "train.json:2: v: must be true or false, not \"true\"; remove the quotes"                                                          },
    {'s', "\"a\\u00e9\\n\"",                                                       "a\xc3\xa9\n"                                        },
    {'s', "\"\"",                                                                  ""                                                   },
    {'s', "5",                                                                     "train.json:2: v: must be a string, not 5"           },
    {'i', "\"\\t123456789012345678901234567890123456789012345\xc3\xa9 and more\"",
     "train.json:2: v: must be a whole number, not "
     "\"\\t123456789012345678901234567890123456789012345...\""                                                                          },
};

static void test_values(void)
{
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char text[256], got[1100];
        struct dnn_err err = {0};
        int64_t whole;
        double real;
        bool yes;
        const char *string;

        snprintf(text, sizeof text, "{\"u\": 0,\n\"v\":\n%s}", values[i].json);
        struct dnn_json *file = parsed(text);
        struct dnn_jobj top = dnn_json_top(file), v = dnn_json_sub(&top, "v");
        int rc = 0;
        if (values[i].type == 'i' && (rc = dnn_json_int(&v, &whole, &err)) == 0)
            snprintf(got, sizeof got, "%" PRId64, whole);
        if (values[i].type == 'r' && (rc = dnn_json_real(&v, &real, &err)) == 0)
            snprintf(got, sizeof got, real == 0.1 ? "%.15g" : "%.17g", real);
        if (values[i].type == 'b' && (rc = dnn_json_bool(&v, &yes, &err)) == 0)
            snprintf(got, sizeof got, yes ? "true" : "false");
        if (values[i].type == 's' && (rc = dnn_json_string(&v, &string, &err)) == 0)
            snprintf(got, sizeof got, "%s", string);
        if (rc != 0) snprintf(got, sizeof got, "%s", err.text);
        is_text(got, values[i].want, values[i].json);
        dnn_json_free(file);
    }
}

/* ---- paths in messages ---- */

static void test_blame(void)
{
    struct dnn_err err = {0};
    struct dnn_json *file = parsed(
        "{\"net\": {\"layers\": [0,\n[1, {\"a b\": {\"x.y\": 1,\n\"\": 2,\n\"\\\"\\n"
        "\": 3, \"k_-9\": 4}}]]}}");
    struct dnn_jobj top = dnn_json_top(file), net = dnn_json_sub(&top, "net");
    struct dnn_jobj layers = dnn_json_sub(&net, "layers"), a = dnn_json_first(&layers);
    struct dnn_jobj b = dnn_json_next(&a), c = dnn_json_first(&b),
                    d = dnn_json_next(&c);
    struct dnn_jobj e = dnn_json_sub(&d, "a b");
    static const struct {
        const char *key, *want;
    } paths[] = {
        {"x.y",  "train.json:2: net.layers[1][1][\"a b\"][\"x.y\"]: 5 is odd"        },
        {"",     "train.json:3: net.layers[1][1][\"a b\"][\"\"]: 5 is odd"           },
        {"\"\n", "train.json:4: net.layers[1][1][\"a b\"][\"\\\"\\u000a\"]: 5 is odd"},
        {"k_-9", "train.json:4: net.layers[1][1][\"a b\"].k_-9: 5 is odd"            },
        {"none", "train.json:2: net.layers[1][1][\"a b\"]: 5 is odd"                 },
    };

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct dnn_jobj f = dnn_json_sub(&e, paths[i].key);

        is_int(dnn_json_fail(&f, &err, "%d is %s", 5, "odd"), DNN_ECONFIG, "an error");
        is_text(err.text, paths[i].want, "with its path");
    }
    dnn_json_fail(&a, &err, "is 0");
    is_text(err.text, "train.json:1: net.layers[0]: is 0", "an element");
    dnn_json_fail(&top, &err, "is odd");
    is_text(err.text, "train.json:1: is odd", "the top has no path");
    is_int(dnn_json_fail(&top, NULL, "x"), DNN_ECONFIG, "err may be NULL");
    dnn_json_free(file);

    /* A very long path: its end and the message are kept. */
    struct dnn_buf text = {0};
    for (int i = 0; i < 90; i++)
        dnn_buf_add(&text, "{\"level%d\":", i);
    dnn_buf_add(&text, "1");
    for (int i = 0; i < 90; i++)
        dnn_buf_add(&text, "}");
    file = parsed(text.text);
    struct dnn_jobj level[91];
    level[0] = dnn_json_top(file);
    for (int i = 0; i < 90; i++)
        level[i + 1] = dnn_json_first(&level[i]);
    dnn_json_fail(&level[90], &err, "is the end");
    ok(strncmp(err.text, "train.json:1: ...", 15) == 0 && strlen(err.text) < 340 &&
           strstr(err.text, ".level88.level89: is the end") != NULL,
       "a long path is shortened at its beginning");
    dnn_json_free(file);
    dnn_buf_free(&text);
}

/* For random changes of a valid text, the parser and the function that explains errors
 * agree on whether it is valid. */
static void test_agreement(void)
{
    static const char good[] =
        "{\"a\": [1, -2.5e+3, 0, true, false, null, \"t\\u00e9\\n\"],"
        " \"b\\ud83d\\ude00\": {\"c\xc3\xa9\": {}, \"d\": []}}\n";
    static const char change[] =
        "{}[]\",:0123456789-+.eEtrufalsn\\/ud8d \n\x01\xc3\xa9\xff";
    struct dnn_rng rng = dnn_rng_make(1, 1);
    int differ = 0, bad = 0;

    for (uint32_t i = 0; i < 30000; i++) {
        char text[sizeof good + 8], words[200];
        size_t len = sizeof good - 1, pos;

        memcpy(text, good, sizeof good);
        for (uint32_t k = 0; k <= i % 3; k++) {
            uint64_t at = dnn_rng_below(&rng, (struct dnn_rng_at){i, k, 0}, len);
            uint64_t how = dnn_rng_below(&rng, (struct dnn_rng_at){i, k, 1}, 3);
            char c = change[dnn_rng_below(&rng, (struct dnn_rng_at){i, k, 2},
                                          sizeof change - 1)];

            if (how == 0) /* remove */
                memmove(text + at, text + at + 1, len-- - at);
            if (how == 1) { /* insert */
                memmove(text + at + 1, text + at, ++len - at);
                text[at] = c;
            }
            if (how == 2) text[at] = c;
        }
        yyjson_doc *doc = yyjson_read(text, len, 0);
        bool explained = dnn_json_explain(text, len, &pos, words, sizeof words);
        if ((doc == NULL) != explained || (explained && pos > len)) {
            if (differ++ < 5)
                printf("# %s: %.*s (%s)\n", doc == NULL ? "refused" : "accepted",
                       (int)len, text, explained ? words : "");
        }
        bad += doc == NULL;
        yyjson_doc_free(doc);
        /* dnn_json_text() does not crash. */
        struct dnn_json *file = NULL;
        if (dnn_json_text("train.json", text, len, &file, NULL) == 0)
            dnn_json_free(file);
    }
    is_int(differ, 0, "parser and explanation agree on 30000 texts");
    ok(bad > 5000 && bad < 29000, "of which %d were wrong", bad);
}

int main(void)
{
    test_wrong();
    test_depth();
    test_files();
    test_lines();
    test_walk();
    test_values();
    test_blame();
    test_agreement();
    return done();
}
