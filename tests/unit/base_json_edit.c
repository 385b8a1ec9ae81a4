/* base_json_edit.c - values set in a file after reading, and their place in messages.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"

#include <string.h>

static struct dnn_err err;

static struct dnn_json *parse(const char *text)
{
    struct dnn_json *file = NULL;

    ok(dnn_json_text("f.json", text, strlen(text), &file, &err) == 0, "parsed");
    return file;
}

static void is_now(const struct dnn_json *file, const char *want, const char *what)
{
    struct dnn_jobj top = dnn_json_top(file);
    char *text = dnn_json_compact(&top);

    is_text(text, want, what);
    dnn_free(text);
}

#define KEY(k) {k, 0}
#define ELEMENT(i) {NULL, i}
#define N(path) (int)(sizeof path / sizeof path[0])

static void compact(void)
{
    struct dnn_json *file =
        parse(" { \"a\" : [1,\n 2.50 , \"x , \\\" : y\\\\\" ] ,\t\"b\":{ } }\n");

    is_now(file, "{\"a\": [1, 2.50, \"x , \\\" : y\\\\\"], \"b\": {}}",
           "one line, strings unchanged");
    struct dnn_jobj top = dnn_json_top(file), none = dnn_json_sub(&top, "c");
    ok(dnn_json_compact(&none) == NULL, "NULL for an absent value");
    dnn_json_free(file);
    struct dnn_buf out = {0};
    dnn_json_quoted(&out, "a\"b\\c\n\xc3\xa4");
    is_text(out.text, "\"a\\\"b\\\\c\\u000a\xc3\xa4\"", "a quoted string");
    dnn_buf_free(&out);
    dnn_json_quoted(&out, "r\xe9sum\xc3");
    is_text(out.text, "\"r\xef\xbf\xbdsum\xef\xbf\xbd\"", "one that is not UTF-8");
    dnn_buf_free(&out);
}

static void replaced(void)
{
    static const struct dnn_jstep b[] = {KEY("a"), KEY("b")};
    static const struct dnn_jstep second[] = {KEY("l"), ELEMENT(1)};
    static const struct dnn_jstep third[] = {KEY("l"), ELEMENT(2)};
    static const struct dnn_jstep made[] = {KEY("n"), KEY("o"), ELEMENT(0), KEY("p")};
    struct dnn_json *file =
        parse("{\"a\": {\"b\": [1,\n2]},\n\"l\": [1, 2],\n\"z\": 0}");

    is_int(dnn_json_set(file, b, N(b), "3", "--set a.b=3", "a.b", &err), 0, "a value");
    is_int(dnn_json_set(file, second, N(second), "{}", "x", "l[1]", &err), 0,
           "an element");
    is_int(dnn_json_set(file, third, N(third), "true", "x", "l[2]", &err), 0,
           "one after the last");
    is_int(dnn_json_set(file, made, N(made), "null", "x", "n", &err), 0,
           "missing objects and lists are made");
    is_now(
        file,
        "{\"a\": {\"b\": 3}, \"l\": [1, {}, true], \"z\": 0, \"n\": {\"o\": [{\"p\": "
        "null}]}}",
        "all of it");
    struct dnn_jobj top = dnn_json_top(file), z = dnn_json_sub(&top, "z");
    is_int((long long)dnn_json_line(&z), 4, "lines are not changed");
    static const struct dnn_jstep p[] = {KEY("n"), KEY("o"), ELEMENT(0), KEY("p"),
                                         KEY("q")};
    is_int(dnn_json_set(file, p, N(p), "1", "x", "n", &err), 0,
           "null becomes an object");
    is_int(dnn_json_set(file, NULL, 0, "[]", "x", "", &err), 0, "the whole file");
    is_now(file, "[]", "nothing is left");
    dnn_json_free(file);
}

static void refused(void)
{
    static const struct {
        struct dnn_jstep step[2];
        const char *want;
    } bad[] = {
        {{KEY("s"), KEY("t")},
         "S: cannot set the key \"t\" of \"word\", which is not an object"  },
        {{KEY("l"), KEY("t")},
         "S: cannot set the key \"t\" of a list, which is not an object"    },
        {{KEY("s"), ELEMENT(0)},
         "S: cannot set element [0] of \"word\", which is not a list"       },
        {{KEY("l"), ELEMENT(4)},
         "S: the list has 2 elements; the next one is [2], not [4]"         },
        {{KEY("x"), ELEMENT(1)},
         "S: the list does not exist yet; its first element is [0], not [1]"},
    };
    struct dnn_json *file = parse("{\"s\": \"word\", \"l\": [1, 2]}");

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        is_int(dnn_json_set(file, bad[i].step, 2, "1", "S", "", &err), DNN_EUSAGE,
               "refused");
        is_text(err.text, bad[i].want, "with the reason");
    }
    is_now(file, "{\"s\": \"word\", \"l\": [1, 2]}", "nothing has changed");
    dnn_json_free(file);
}

static int64_t number;

static void places(const struct dnn_json *file, const char *a, const char *b,
                   const char *want)
{
    struct dnn_jobj top = dnn_json_top(file), outer = dnn_json_sub(&top, a);
    struct dnn_jobj inner = dnn_json_sub(&outer, b);

    ok(dnn_json_int(&inner, &number, &err) < 0, "not a number");
    is_text(err.text, want, "the message has its source");
}

static void sources(void)
{
    static const struct dnn_jstep b[] = {KEY("a"), KEY("b")};
    static const struct dnn_jstep a[] = {KEY("a")}, c[] = {KEY("a"), KEY("c")};
    struct dnn_json *file =
        parse("{\"a\":\n {\"b\": 1,\n \"c\": \"x\"},\n \"d\": {\"e\": []}}");

    is_int(dnn_json_set(file, b, N(b), "\"y\"", "--set a.b=y", "a.b", &err), 0, "b");
    places(file, "a", "b", "--set a.b=y: must be a whole number, not \"y\"");
    places(file, "a", "c", "f.json:3: a.c: must be a whole number, not \"x\"");
    places(file, "d", "e", "f.json:4: d.e: must be a whole number, not []");
    is_int(dnn_json_set(file, c, N(c), "null", "--set a.c=null", "a.c", &err), 0, "c");
    places(file, "a", "b", "--set a.b=y: must be a whole number, not \"y\"");
    places(file, "a", "c", "--set a.c=null: must be a whole number, not null");
    is_int(dnn_json_set(file, a, N(a), "{\"b\": {}, \"c\": 1.5}", "--set a={...}", "a",
                        &err),
           0, "both at once");
    places(file, "a", "b", "--set a={...}: a.b: must be a whole number, not {}");
    is_int(dnn_json_set(file, b, N(b), "[]", "--set a.b=[]", "a.b", &err), 0, "again");
    places(file, "a", "b", "--set a.b=[]: must be a whole number, not []");
    places(file, "a", "c", "--set a={...}: a.c: must be a whole number, not 1.5");
    places(file, "d", "e", "f.json:4: d.e: must be a whole number, not []");
    dnn_json_free(file);
}

int main(void)
{
    compact();
    replaced();
    refused();
    sources();
    return done();
}
