/* base_field_more.c - sizes in bytes, fields that stay JSON, and enums with true and
 * false.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/field.h"
#include "base/mem.h"

#include <stddef.h>
#include <string.h>

static struct dnn_err err;

struct cfg {
    int64_t limit, space;
    const char *any, *list;
    int how;
};

static const struct dnn_choice hows[] = {
    {"false", 0},
    {"auto",  1},
    {"true",  2},
    {NULL,    0}
};

#define AT(f) offsetof(struct cfg, f)
/* clang-format off */
static const struct dnn_field fields[] = {
    {"limit", DNN_F_BYTES, AT(limit), "null", 0, 0, NULL, "at most", NULL},
    {"space", DNN_F_BYTES, AT(space), "0", 0, 0, NULL, "free space", NULL},
    {"any", DNN_F_JSON, AT(any), "null", 0, 0, NULL, "whatever", NULL},
    {"list", DNN_F_JSON, AT(list), "[1, 2]", 0, 0, NULL, "or this", NULL},
    {"how", DNN_F_ENUM, AT(how), "auto", 0, 0, hows, "a word", NULL},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};
/* clang-format on */

/* Reads text and prints it again. */
static char *again(const char *text)
{
    struct dnn_json *file = NULL;
    struct cfg cfg;
    char *printed = NULL;
    size_t size;

    if (dnn_json_text("f.json", text, strlen(text), &file, &err) < 0) return NULL;
    struct dnn_jobj top = dnn_json_top(file);
    if (dnn_field_fill(&top, fields, NULL, &cfg, &err) == 0) {
        FILE *to = open_memstream(&printed, &size);

        dnn_field_print(fields, &cfg, to);
        fclose(to);
    }
    dnn_json_free(file);
    return printed;
}

static void is_again(const char *text, const char *want, const char *what)
{
    char *printed = again(text);

    is_text(printed == NULL ? err.text : printed, want, what);
    char *twice = printed == NULL ? NULL : again(printed);
    is_text(twice == NULL ? err.text : twice, want, "which is read as the same");
    dnn_free(printed);
    dnn_free(twice);
}

static void refuses(const char *text, const char *want)
{
    char *printed = again(text);

    is_text(printed == NULL ? err.text : printed, want, "refused");
    dnn_free(printed);
}

static void test_docs(void)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    dnn_field_docs(fields, to);
    fclose(to);
    is_text(text,
            "| key | type | default | range | meaning |\n|---|---|---|---|---|\n"
            "| `limit` | bytes, or a size such as \"16GiB\" | `null` |  | at most |\n"
            "| `space` | bytes, or a size such as \"16GiB\" | `0` |  | free space |\n"
            "| `any` | see below | `null` |  | whatever |\n"
            "| `list` | see below | `[1, 2]` |  | or this |\n"
            "| `how` | one of `false`, `auto`, `true` | `auto` |  | a word |\n",
            "the manual");
    dnn_free(text);
}

int main(void)
{
    ok(dnn_field_check(fields, &err) == 0, "the table is valid");
    is_again("{}",
             "{\n    \"limit\": null,\n    \"space\": 0,\n    \"any\": null,\n    "
             "\"list\": [1, 2],\n    \"how\": \"auto\"\n}\n",
             "defaults");
    is_again(
        "{\"limit\": \"2KiB\", \"space\": 7, \"any\": {\"a\":[ 1 ]}, \"list\": \"x\", "
        "\"how\": true}",
        "{\n    \"limit\": 2048,\n    \"space\": 7,\n    \"any\": {\"a\": [1]},\n    "
        "\"list\": \"x\",\n    \"how\": true\n}\n",
        "values");
    is_again("{\"limit\": null, \"space\": 0, \"how\": \"FALSE\"}",
             "{\n    \"limit\": null,\n    \"space\": 0,\n    \"any\": null,\n    "
             "\"list\": [1, 2],\n    \"how\": false\n}\n",
             "null, and names in any case");
    refuses("{\"limit\": 0}",
            "f.json:1: limit: must be a size such as \"16GiB\", not 0");
    refuses("{\"space\": -1}",
            "f.json:1: space: must be a size such as \"16GiB\", not -1");
    refuses("{\"space\": \"lots\"}",
            "f.json:1: space: must be a size such as \"16GiB\", not \"lots\"");
    refuses("{\"limit\": []}",
            "f.json:1: limit: must be a size such as \"16GiB\", not []");
    refuses("{\"limit\": 1.5}", "f.json:1: limit: must be a whole number, not 1.5");
    refuses("{\"how\": 1}", "f.json:1: how: must be one of false, auto, true, not 1");
    test_docs();
    return done();
}
