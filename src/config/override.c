/* override.c - change keys of a configuration: --set data.batch_size=32.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config/run_config_impl.h"

#include "base/text.h"

#include <string.h>

/* How messages name the change; long ones are cut. */
static char *location_of(const char *set)
{
    enum { MOST = 80 };

    return dnn_format("--set %.*s%s", MOST, set, strlen(set) > MOST ? "..." : "");
}

/* ---- the path ---- */

struct path {
    struct dnn_jstep *step; /* keys are owned */
    size_t n, cap;
};

static void free_path(struct path *path)
{
    for (size_t i = 0; i < path->n; i++)
        dnn_free((char *)path->step[i].key);
    dnn_free(path->step);
}

static void add(struct path *path, char *key, size_t index)
{
    path->step = dnn_grow(path->step, &path->cap, path->n + 1, sizeof *path->step);
    path->step[path->n++] = (struct dnn_jstep){key, index};
}

/* Parses "[12]" at *at and advances *at. */
static bool parse_index(const char **at, struct path *out)
{
    size_t digits = strspn(*at + 1, "0123456789"), index = 0;

    if (digits == 0 || digits > 9 || (*at)[1 + digits] != ']') return false;
    for (size_t i = 0; i < digits; i++)
        index = index * 10 + (size_t)((*at)[1 + i] - '0');
    add(out, NULL, index);
    *at += digits + 2;
    return true;
}

/* Parses "a.b[0].c", len bytes. */
static bool parse_path(const char *text, size_t len, struct path *out)
{
    char *copy = dnn_strndup(text, len);
    const char *at = copy;
    bool good = true;

    while (good) {
        size_t word = strcspn(at, ".[]");

        good = word > 0;
        if (good) add(out, dnn_strndup(at, word), 0);
        at += word;
        while (good && *at == '[')
            good = parse_index(&at, out);
        if (*at == '\0') break;
        good = good && *at++ == '.';
    }
    dnn_free(copy);
    return good;
}

/* ---- the value ---- */

/* The value as JSON: unchanged if it is JSON, else as a string.  Invalid text that
 * begins like JSON or like a number is an error. */
static int read_value(const char *text, const char *where, char **out,
                      struct dnn_err *err)
{
    struct dnn_json *file = NULL;
    struct dnn_err why;
    double number;

    if (dnn_json_text("value", text, strlen(text), &file, &why) == 0) {
        struct dnn_jobj top = dnn_json_top(file);

        *out = dnn_json_compact(&top);
        dnn_json_free(file);
        return 0;
    }
    if ((text[0] != '\0' && strchr("[{\"", text[0]) != NULL) ||
        dnn_text_real(text, &number)) {
        const char *message = strchr(why.text, ' '); /* after "value:1:7:" */

        return dnn_fail(err, DNN_EUSAGE, "%s: the value is not valid JSON:%s", where,
                        message == NULL ? "" : message);
    }
    struct dnn_buf quoted = {0};
    dnn_json_quoted(&quoted, text);
    *out = quoted.text;
    return 0;
}

/* ---- applying it ---- */

/* Whether all keys of the file are under "neural_network" and path does not begin with
 * it. */
static bool wraps(const struct dnn_json *file, const struct path *path)
{
    struct dnn_jobj top = dnn_json_top(file);
    struct dnn_jobj inner = dnn_json_sub(&top, "neural_network");

    return dnn_json_type(&inner) == DNN_J_OBJECT && dnn_json_count(&top) == 1 &&
           strcmp(path->step[0].key, "neural_network") != 0;
}

static int apply(struct dnn_json *file, const char *set, const char *equals,
                 const char *where, struct path *path, struct dnn_err *err)
{
    static const struct dnn_jstep wrapper = {"neural_network", 0};
    char *json = NULL;

    if (!parse_path(set, (size_t)(equals - set), path))
        return dnn_fail(
            err, DNN_EUSAGE,
            "%s: must be KEY=VALUE, where KEY is, for example, data.batch_size "
            "or data.slicers[0].sizes",
            where);
    DNN_TRY(read_value(equals + 1, where, &json, err));
    bool inner = wraps(file, path);
    size_t n = path->n + (inner ? 1 : 0);
    struct dnn_jstep *step = dnn_alloc(n * sizeof *step);
    step[0] = wrapper;
    memcpy(step + (inner ? 1 : 0), path->step, path->n * sizeof *step);
    char *key = dnn_strndup(set, (size_t)(equals - set));
    int rc = dnn_json_set(file, step, (int)n, json, where, key, err);
    dnn_free(key);
    dnn_free(step);
    dnn_free(json);
    return rc;
}

int dnn_config_set(struct dnn_json *file, const char *set, struct dnn_err *err)
{
    const char *equals = strchr(set, '=');
    char *where = location_of(set);
    struct path path = {0};
    int rc;

    if (equals == NULL)
        rc = dnn_fail(err, DNN_EUSAGE, "%s: must be KEY=VALUE", where);
    else if (!dnn_text_is_utf8(set))
        rc = dnn_fail(err, DNN_EUSAGE, "%s: must be UTF-8, as all of a configuration",
                      where);
    else
        rc = apply(file, set, equals, where, &path, err);
    free_path(&path);
    dnn_free(where);
    return rc;
}
