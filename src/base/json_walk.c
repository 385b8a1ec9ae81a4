/* json_walk.c - access the values of a parsed file, and locate errors in it.
 *
 * The parser does not store positions, but its values are in the order of the text:
 * the n-th value (counting keys) is the n-th token that is not a closing bracket.
 * Positions are computed in this way, only when a message needs them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/json_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct dnn_jobj dnn_json_top(const struct dnn_json *file)
{
    return (struct dnn_jobj){.file = file, .val = yyjson_doc_get_root(file->doc)};
}

enum dnn_jtype dnn_json_type(const struct dnn_jobj *at)
{
    switch (yyjson_get_type(at->val)) {
    case YYJSON_TYPE_NULL:
        return DNN_J_NULL;
    case YYJSON_TYPE_BOOL:
        return DNN_J_BOOL;
    case YYJSON_TYPE_NUM:
        return DNN_J_NUMBER;
    case YYJSON_TYPE_STR:
        return DNN_J_TEXT;
    case YYJSON_TYPE_ARR:
        return DNN_J_LIST;
    case YYJSON_TYPE_OBJ:
        return DNN_J_OBJECT;
    default:
        return DNN_J_ABSENT;
    }
}

size_t dnn_json_count(const struct dnn_jobj *at)
{
    return yyjson_is_ctn(at->val) ? yyjson_get_len(at->val) : 0;
}

struct dnn_jobj dnn_json_first(const struct dnn_jobj *at)
{
    struct dnn_jobj it = {.file = at->file, .up = at};

    if (dnn_json_count(at) == 0) return it;
    it.val = unsafe_yyjson_get_first(at->val);
    if (yyjson_is_obj(at->val)) {
        it.key = it.val;
        it.val = it.key + 1;
        it.name = yyjson_get_str(it.key);
    }
    return it;
}

struct dnn_jobj dnn_json_next(const struct dnn_jobj *it)
{
    struct dnn_jobj next = {.file = it->file, .up = it->up, .index = it->index + 1};

    if (it->val == NULL || next.index >= dnn_json_count(it->up)) return next;
    next.val = unsafe_yyjson_get_next(it->val);
    if (it->key != NULL) {
        next.key = next.val;
        next.val = next.key + 1;
        next.name = yyjson_get_str(next.key);
    }
    return next;
}

struct dnn_jobj dnn_json_sub(const struct dnn_jobj *at, const char *name)
{
    struct dnn_jobj it = {.file = at->file, .up = at, .name = name};

    if (!yyjson_is_obj(at->val)) return it;
    for (it = dnn_json_first(at); it.val != NULL; it = dnn_json_next(&it))
        if (strcmp(it.name, name) == 0) return it;
    it.name = name;
    return it;
}

/* ---- positions ---- */

/* Add the number of values from at to want to *count; false if want is not in at. */
static bool count_to(yyjson_val *at, yyjson_val *want, size_t *count)
{
    size_t i, n;
    yyjson_val *key, *val;

    if (at == want) return true;
    ++*count;
    if (yyjson_is_arr(at)) {
        yyjson_arr_foreach(at, i, n, val) if (count_to(val, want, count)) return true;
    } else if (yyjson_is_obj(at)) {
        yyjson_obj_foreach(at, i, n, key, val)
        {
            if (count_to(key, want, count) || count_to(val, want, count)) return true;
        }
    }
    return false;
}

void dnn_json_span(const struct dnn_json *file, yyjson_val *val, size_t *from,
                   size_t *to)
{
    size_t before = 0;

    count_to(yyjson_doc_get_root(file->doc), val, &before);
    *to = 0;
    while (dnn_json_token(file->text, file->len, to, from)) {
        if (strchr("]}", file->text[*from]) != NULL) continue;
        if (before-- == 0) return;
    }
}

size_t dnn_json_line(const struct dnn_jobj *at)
{
    size_t from = 0, to, line, column;

    while (at->val == NULL && at->up != NULL)
        at = at->up;
    if (at->val != NULL)
        dnn_json_span(at->file, at->key != NULL ? at->key : at->val, &from, &to);
    dnn_json_locate(at->file->text, from, &line, &column);
    return line;
}

/* Bytes of text that fit into most without cutting a UTF-8 character. */
static size_t cut(const char *text, size_t len, size_t most)
{
    if (len <= most) return len;
    while (most > 0 && (text[most] & 0xc0) == 0x80)
        most--;
    return most;
}

const char *dnn_json_quote(char out[DNN_JSON_QUOTE], const struct dnn_jobj *at)
{
    enum { MOST = 48 };
    size_t from, to;

    switch (dnn_json_type(at)) {
    case DNN_J_ABSENT:
        snprintf(out, DNN_JSON_QUOTE, "nothing");
        break;
    case DNN_J_LIST:
        snprintf(out, DNN_JSON_QUOTE, dnn_json_count(at) == 0 ? "[]" : "a list");
        break;
    case DNN_J_OBJECT:
        snprintf(out, DNN_JSON_QUOTE, dnn_json_count(at) == 0 ? "{}" : "an object");
        break;
    default:
        dnn_json_span(at->file, at->val, &from, &to);
        const char *text = at->file->text + from;
        size_t len = cut(text, to - from, MOST);
        snprintf(out, DNN_JSON_QUOTE, "%.*s%s", (int)len, text,
                 len == to - from ? ""
                 : *text == '"'   ? "...\""
                                  : "...");
    }
    return out;
}

/* Add a key to a path: .word, or ["text"] if it has other characters. */
static void add_key(struct dnn_buf *path, const char *key)
{
    size_t len = cut(key, strlen(key), 60), plain = 0;

    while (isalnum((unsigned char)key[plain]) || strchr("_-", key[plain]) != NULL) {
        if (key[plain] == '\0') break;
        plain++;
    }
    if (plain > 0 && key[plain] == '\0' && plain == len) {
        dnn_buf_add(path, "%s%s", path->len == 0 ? "" : ".", key);
        return;
    }
    dnn_buf_add(path, "[\"");
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)key[i] < ' ' || key[i] == 127)
            dnn_buf_add(path, "\\u%04x", (unsigned)key[i]);
        else if (key[i] == '"' || key[i] == '\\')
            dnn_buf_add(path, "\\%c", key[i]);
        else
            dnn_buf_bytes(path, &key[i], 1);
    }
    dnn_buf_add(path, "%s\"]", len < strlen(key) ? "..." : "");
}

static void add_path(struct dnn_buf *path, const struct dnn_jobj *at)
{
    if (at->up == NULL) return;
    add_path(path, at->up);
    if (at->name != NULL)
        add_key(path, at->name);
    else
        dnn_buf_add(path, "[%zu]", at->index);
}

/* Whether the last keys of a path are those of another path. */
static bool ends_with(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);

    return n >= m && strcmp(path + n - m, end) == 0 &&
           (n == m || path[n - m - 1] == '.');
}

static int fail_at_path(const struct dnn_jobj *at, struct dnn_err *err,
                        const char *dots, const char *path, const char *message)
{
    const struct dnn_json_origin *origin = dnn_json_origin_of(at);
    const char *colon = *path == '\0' ? "" : ": ";

    if (origin == NULL)
        return dnn_fail(err, DNN_ECONFIG, "%s:%zu: %s%s%s%s", at->file->name,
                        dnn_json_line(at), dots, path, colon, message);
    if (ends_with(path, origin->path)) dots = path = colon = "";
    return dnn_fail(err, DNN_ECONFIG, "%s: %s%s%s%s", origin->location, dots, path,
                    colon, message);
}

int dnn_json_fail(const struct dnn_jobj *at, struct dnn_err *err, const char *fmt, ...)
{
    enum { MOST = 300 }; /* bytes of a path; the beginning is cut */
    struct dnn_buf path = {0};
    char message[700];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    while (at->val == NULL && at->up != NULL)
        at = at->up;
    add_path(&path, at);
    const char *tail = path.len == 0 ? "" : path.text;
    if (path.len > MOST) {
        tail += path.len - MOST;
        while ((*tail & 0xc0) == 0x80)
            tail++;
    }
    int rc = fail_at_path(at, err, path.len > MOST ? "..." : "", tail, message);
    dnn_buf_free(&path);
    return rc;
}

/* ---- values ---- */

/* "must be WANT, not VALUE", with a hint if the value is quoted. */
static int wrong_type(const struct dnn_jobj *at, const char *want, bool unquoted,
                      struct dnn_err *err)
{
    char quote[DNN_JSON_QUOTE];

    return dnn_json_fail(at, err, "must be %s, not %s%s", want,
                         dnn_json_quote(quote, at),
                         unquoted ? "; remove the quotes" : "");
}

static bool text_is_number(const struct dnn_jobj *at)
{
    double ignored;

    return yyjson_is_str(at->val) && dnn_text_real(yyjson_get_str(at->val), &ignored);
}

int dnn_json_int(const struct dnn_jobj *at, int64_t *out, struct dnn_err *err)
{
    char quote[DNN_JSON_QUOTE];

    if (yyjson_is_sint(at->val) ||
        (yyjson_is_uint(at->val) && yyjson_get_uint(at->val) <= (uint64_t)INT64_MAX)) {
        *out = yyjson_get_sint(at->val);
        return 0;
    }
    double real = yyjson_get_num(at->val);
    if (!yyjson_is_num(at->val) || real != floor(real))
        return wrong_type(at, "a whole number", text_is_number(at), err);
    if (real < -0x1p63 || real >= 0x1p63)
        return dnn_json_fail(at, err,
                             "must be between %" PRId64 " and %" PRId64 ", not %s",
                             INT64_MIN, INT64_MAX, dnn_json_quote(quote, at));
    *out = (int64_t)real;
    return 0;
}

int dnn_json_real(const struct dnn_jobj *at, double *out, struct dnn_err *err)
{
    if (!yyjson_is_num(at->val))
        return wrong_type(at, "a number", text_is_number(at), err);
    *out = yyjson_get_num(at->val);
    return 0;
}

int dnn_json_bool(const struct dnn_jobj *at, bool *out, struct dnn_err *err)
{
    const char *text = yyjson_get_str(at->val);

    if (!yyjson_is_bool(at->val))
        return wrong_type(at, "true or false",
                          text != NULL &&
                              (strcmp(text, "true") == 0 || strcmp(text, "false") == 0),
                          err);
    *out = yyjson_get_bool(at->val);
    return 0;
}

int dnn_json_string(const struct dnn_jobj *at, const char **out, struct dnn_err *err)
{
    if (!yyjson_is_str(at->val)) return wrong_type(at, "a string", false, err);
    *out = yyjson_get_str(at->val);
    return 0;
}
