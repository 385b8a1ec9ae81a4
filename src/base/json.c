/* json.c - read and parse JSON, with checks that the parser does not do.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/json_impl.h"

#include "base/file.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

bool dnn_json_token(const char *text, size_t len, size_t *pos, size_t *from)
{
    size_t i = *pos;

    while (i < len && strchr(" \t\r\n,:", text[i]) != NULL)
        i++;
    if (i == len) return false;
    *from = i;
    if (text[i] == '"') {
        for (i++; i < len && text[i] != '"'; i++)
            if (text[i] == '\\' && i + 1 < len) i++;
        if (i < len) i++;
    } else if (strchr("[]{}", text[i]) != NULL)
        i++;
    else
        while (i < len && strchr(" \t\r\n,:[]{}\"", text[i]) == NULL)
            i++;
    *pos = i;
    return true;
}

void dnn_json_locate(const char *text, size_t pos, size_t *line, size_t *column)
{
    *line = *column = 1;
    for (size_t i = 0; i < pos; i++) {
        if (text[i] == '\n') {
            ++*line;
            *column = 1;
        } else if ((text[i] & 0xc0) != 0x80) /* not inside a UTF-8 character */
            ++*column;
    }
}

/* ---- before parsing ---- */

static int fail_at(const struct dnn_json *file, size_t pos, struct dnn_err *err,
                   const char *message)
{
    size_t line, column;

    dnn_json_locate(file->text, pos, &line, &column);
    return dnn_fail(err, DNN_ECONFIG, "%s:%zu:%zu: %s", file->name, line, column,
                    message);
}

/* Errors in the encoding, and nesting too deep for recursive functions. */
static int check_text(const struct dnn_json *file, struct dnn_err *err)
{
    const unsigned char *t = (const unsigned char *)file->text;
    size_t pos = 0, from;
    int depth = 0;

    if (strspn(file->text, " \t\r\n") == file->len)
        return dnn_fail(err, DNN_ECONFIG, "%s: is empty; the smallest valid file is {}",
                        file->name);
    if ((t[0] == 0xff && t[1] == 0xfe) || (t[0] == 0xfe && t[1] == 0xff))
        return dnn_fail(err, DNN_ECONFIG, "%s: is UTF-16; save it as UTF-8",
                        file->name);
    if (strncmp(file->text, "\xef\xbb\xbf", 3) == 0)
        return dnn_fail(
            err, DNN_ECONFIG,
            "%s: begins with a byte order mark; save it as UTF-8 without one",
            file->name);
    const char *nul = memchr(file->text, '\0', file->len);
    if (nul != NULL)
        return fail_at(file, (size_t)(nul - file->text), err,
                       "a NUL byte: this is not a text file");
    while (dnn_json_token(file->text, file->len, &pos, &from)) {
        if (strchr("[{", file->text[from]) != NULL && ++depth > DNN_JSON_DEPTH)
            return fail_at(file, from, err, "nested more than 100 levels deep");
        if (strchr("]}", file->text[from]) != NULL) depth--;
    }
    return 0;
}
_Static_assert(DNN_JSON_DEPTH == 100, "the message above contains it");

/* ---- after parsing ---- */

struct member {
    yyjson_val *key;
    size_t order; /* in the file */
};

static int by_key(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    int differ = strcmp(yyjson_get_str(x->key), yyjson_get_str(y->key));

    return differ != 0 ? differ : x->order < y->order ? -1 : 1;
}

/* Report the first duplicate key in the order of the file. */
static int check_duplicates(const struct dnn_jobj *obj, struct dnn_err *err)
{
    size_t n = dnn_json_count(obj), i = 0;
    struct member *keys = dnn_alloc(n * sizeof *keys);
    struct member first = {0}, second = {0};
    int rc = 0;

    for (struct dnn_jobj it = dnn_json_first(obj); it.val != NULL;
         it = dnn_json_next(&it))
        keys[i++] = (struct member){it.key, it.index};
    qsort(keys, n, sizeof *keys, by_key);
    for (i = 1; i < n; i++) {
        if (strcmp(yyjson_get_str(keys[i - 1].key), yyjson_get_str(keys[i].key)) != 0)
            continue;
        if (second.key == NULL || keys[i].order < second.order) {
            first = keys[i - 1];
            second = keys[i];
        }
    }
    if (second.key != NULL) {
        struct dnn_jobj at = *obj;

        at.up = obj;
        at.key = first.key;
        size_t line = dnn_json_line(&at);
        at.key = second.key;
        at.val = second.key;
        at.name = yyjson_get_str(second.key);
        rc = dnn_json_fail(&at, err, "is given twice; first on line %zu", line);
    }
    dnn_free(keys);
    return rc;
}

static bool has_nul(yyjson_val *text)
{
    return strlen(yyjson_get_str(text)) != yyjson_get_len(text);
}

/* Check at and all values below it; the depth was checked before. */
static int check_values(const struct dnn_jobj *at, struct dnn_err *err)
{
    if (at->key != NULL && has_nul(at->key))
        return dnn_json_fail(at->up, err, "a key contains a NUL character (\\u0000)");
    if (yyjson_is_str(at->val) && has_nul(at->val))
        return dnn_json_fail(at, err, "the string contains a NUL character (\\u0000)");
    for (struct dnn_jobj it = dnn_json_first(at); it.val != NULL;
         it = dnn_json_next(&it))
        DNN_TRY(check_values(&it, err));
    return yyjson_is_obj(at->val) && dnn_json_count(at) > 1 ? check_duplicates(at, err)
                                                            : 0;
}

int dnn_json_parse(struct dnn_json *file, struct dnn_err *err)
{
    yyjson_read_err why = {0};
    char message[200];
    size_t pos;

    DNN_TRY(check_text(file, err));
    /* Without YYJSON_READ_INSITU the text is not written to. */
    file->doc = yyjson_read_opts(file->text, file->len, 0, NULL, &why);
    if (file->doc == NULL && why.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
        return dnn_fail(err, DNN_ENOMEM, "%s: not enough memory to parse %zu bytes",
                        file->name, file->len);
    if (file->doc == NULL) {
        /* Not explained: the text is well-formed, but a number is out of range. */
        if (!dnn_json_explain(file->text, file->len, &pos, message, sizeof message))
            return fail_at(file, why.pos, err,
                           why.code == YYJSON_READ_ERROR_INVALID_NUMBER
                               ? "the number is too large"
                               : why.msg);
        return fail_at(file, pos, err, message);
    }
    struct dnn_jobj top = dnn_json_top(file);
    return check_values(&top, err);
}

/* Takes ownership of text, which is freed by dnn_free(). */
static int make(const char *name, char *text, size_t len, struct dnn_json **out,
                struct dnn_err *err)
{
    struct dnn_json *file = dnn_alloc(sizeof *file);

    file->name = dnn_strdup(name);
    file->text = text;
    file->len = len;
    file->arena = dnn_arena_make();
    int rc = dnn_json_parse(file, err);
    if (rc < 0)
        dnn_json_free(file);
    else
        *out = file;
    return rc;
}

int dnn_json_read(const char *path, struct dnn_json **out, struct dnn_err *err)
{
    char *text;
    size_t len;
    int rc = dnn_file_read(path, DNN_JSON_LIMIT, &text, &len, err);

    /* A file that is too large is a configuration error here. */
    if (rc == DNN_EDATA && err != NULL) err->code = DNN_ECONFIG;
    if (rc < 0) return rc == DNN_EDATA ? DNN_ECONFIG : rc;
    return make(path, text, len, out, err);
}

int dnn_json_text(const char *name, const char *text, size_t len, struct dnn_json **out,
                  struct dnn_err *err)
{
    if (len > DNN_JSON_LIMIT)
        return dnn_fail(err, DNN_ECONFIG, "%s: is %zu bytes long; the limit is %d",
                        name, len, DNN_JSON_LIMIT);
    return make(name, dnn_strndup(text, len), len, out, err);
}

void dnn_json_free(struct dnn_json *file)
{
    if (file == NULL) return;
    yyjson_doc_free(file->doc);
    dnn_arena_free(file->arena);
    for (size_t i = 0; i < file->norigins; i++) {
        dnn_free(file->origin[i].location);
        dnn_free(file->origin[i].path);
    }
    dnn_free(file->origin);
    dnn_free(file->text);
    dnn_free(file->name);
    dnn_free(file);
}

const char *dnn_json_name(const struct dnn_json *file)
{
    return file->name;
}

struct dnn_arena *dnn_json_arena(const struct dnn_json *file)
{
    return file->arena;
}
