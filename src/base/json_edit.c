/* json_edit.c - change values of a parsed file, and print values as JSON.
 *
 * A change is made in the text, which is then parsed again: so line numbers, quotes in
 * messages and the check for duplicate keys remain correct.  Newlines of the replaced
 * text are kept after the new text, so that line numbers do not change.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/json_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <string.h>

/* ---- values as text ---- */

/* The end of a value whose first token is [from, to). */
static size_t end_of(const struct dnn_json *file, size_t from, size_t to)
{
    int depth = 0;

    do {
        if (strchr("[{", file->text[from]) != NULL) depth++;
        if (strchr("]}", file->text[from]) != NULL) depth--;
    } while (depth > 0 && dnn_json_token(file->text, file->len, &to, &from));
    return to;
}

char *dnn_json_compact(const struct dnn_jobj *at)
{
    struct dnn_buf out = {0};
    size_t from, to;
    bool inside = false; /* of a string */

    if (at->val == NULL) return NULL;
    dnn_json_span(at->file, at->val, &from, &to);
    to = end_of(at->file, from, to);
    for (const char *c = at->file->text + from; c < at->file->text + to; c++) {
        if (!inside && strchr(" \t\r\n", *c) != NULL) continue;
        if (inside && *c == '\\')
            dnn_buf_bytes(&out, c++, 1);
        else if (*c == '"')
            inside = !inside;
        dnn_buf_bytes(&out, c, 1);
        if (!inside && (*c == ',' || *c == ':')) dnn_buf_bytes(&out, " ", 1);
    }
    return out.text;
}

void dnn_json_quoted(struct dnn_buf *out, const char *text)
{
    dnn_buf_bytes(out, "\"", 1);
    for (size_t n; *text != '\0'; text += n > 0 ? n : 1) {
        n = dnn_text_utf8(text, NULL);
        if (*text == '"' || *text == '\\')
            dnn_buf_add(out, "\\%c", *text);
        else if (n == 1 && *text < ' ')
            dnn_buf_add(out, "\\u%04x", (unsigned)*text);
        else
            dnn_buf_bytes(out, n > 0 ? text : DNN_TEXT_REPLACED, n > 0 ? n : 3);
    }
    dnn_buf_bytes(out, "\"", 1);
}

/* ---- the origin of a value ---- */

const struct dnn_json_origin *dnn_json_origin_of(const struct dnn_jobj *at)
{
    const struct dnn_json *file = at->file;
    const struct dnn_json_origin *found = NULL;
    size_t from, to;

    if (file->norigins == 0 || at->val == NULL) return NULL;
    dnn_json_span(file, at->val, &from, &to);
    for (size_t i = 0; i < file->norigins; i++) {
        const struct dnn_json_origin *o = &file->origin[i];

        if (from < o->from || from >= o->to) continue;
        if (found == NULL || o->to - o->from <= found->to - found->from) found = o;
    }
    return found;
}

/* Bytes [from, to) of the text were replaced by n bytes: remove the origins inside,
 * move those after, and resize those around. */
static void move_origins(struct dnn_json *file, size_t from, size_t to, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < file->norigins; i++) {
        struct dnn_json_origin o = file->origin[i];

        if (o.from >= from && o.to <= to) {
            dnn_free(o.location);
            dnn_free(o.path);
            continue;
        }
        if (o.from >= to) o.from = o.from - (to - from) + n;
        if (o.to >= to) o.to = o.to - (to - from) + n;
        file->origin[kept++] = o;
    }
    file->norigins = kept;
}

/* ---- changing ---- */

/* A change of the file's text. */
struct change {
    size_t from, to;     /* the bytes to replace */
    struct dnn_buf text; /* the new text         */
};

static int make_change(struct dnn_json *file, const struct change *change,
                       const char *location, const char *path, struct dnn_err *err)
{
    struct dnn_buf text = {0};
    yyjson_doc *old_doc = file->doc;
    char *old = file->text;
    size_t old_len = file->len;

    dnn_buf_bytes(&text, old, change->from);
    dnn_buf_bytes(&text, change->text.text, change->text.len);
    for (size_t i = change->from; i < change->to; i++)
        if (old[i] == '\n') dnn_buf_bytes(&text, "\n", 1);
    size_t n = text.len - change->from;
    dnn_buf_bytes(&text, old + change->to, old_len - change->to);
    file->text = text.text;
    file->len = text.len;
    file->doc = NULL;
    int rc = dnn_json_parse(file, err);
    if (rc < 0) {
        yyjson_doc_free(file->doc);
        dnn_free(file->text);
        file->text = old;
        file->len = old_len;
        file->doc = old_doc;
        return rc;
    }
    yyjson_doc_free(old_doc);
    dnn_free(old);
    move_origins(file, change->from, change->to, n);
    file->origin = dnn_grow(file->origin, &file->origin_cap, file->norigins + 1,
                            sizeof *file->origin);
    file->origin[file->norigins++] =
        (struct dnn_json_origin){change->from, change->from + change->text.len,
                                 dnn_strdup(location), dnn_strdup(path)};
    return 0;
}

/* The value inside n nested new objects and lists. */
static int add_nested(struct dnn_buf *out, const struct dnn_jstep *step, int n,
                      const char *json, const char *location, struct dnn_err *err)
{
    if (n == 0) {
        dnn_buf_add(out, "%s", json);
        return 0;
    }
    if (step->key == NULL && step->index > 0)
        return dnn_fail(
            err, DNN_EUSAGE,
            "%s: the list does not exist yet; its first element is [0], not [%zu]",
            location, step->index);
    dnn_buf_add(out, step->key == NULL ? "[" : "{");
    if (step->key != NULL) dnn_json_quoted(out, step->key);
    dnn_buf_add(out, step->key == NULL ? "" : ": ");
    DNN_TRY(add_nested(out, step + 1, n - 1, json, location, err));
    dnn_buf_add(out, step->key == NULL ? "]" : "}");
    return 0;
}

static struct dnn_jobj find_step(const struct dnn_jobj *at,
                                 const struct dnn_jstep *step)
{
    struct dnn_jobj none = {.file = at->file, .up = at, .name = step->key};

    if (step->key != NULL) return dnn_json_sub(at, step->key);
    if (dnn_json_type(at) != DNN_J_LIST) return none;
    for (struct dnn_jobj it = dnn_json_first(at); it.val != NULL;
         it = dnn_json_next(&it))
        if (it.index == step->index) return it;
    return none;
}

/* Whether a step can be added to the existing value at. */
static int check_step(const struct dnn_jobj *at, const struct dnn_jstep *step,
                      const char *location, struct dnn_err *err)
{
    enum dnn_jtype type = dnn_json_type(at);
    char quote[DNN_JSON_QUOTE];

    if (step->key != NULL && type != DNN_J_OBJECT)
        return dnn_fail(err, DNN_EUSAGE,
                        "%s: cannot set the key \"%s\" of %s, which is not an object",
                        location, step->key, dnn_json_quote(quote, at));
    if (step->key == NULL && type != DNN_J_LIST)
        return dnn_fail(err, DNN_EUSAGE,
                        "%s: cannot set element [%zu] of %s, which is not a list",
                        location, step->index, dnn_json_quote(quote, at));
    if (step->key == NULL && step->index > dnn_json_count(at))
        return dnn_fail(
            err, DNN_EUSAGE,
            "%s: the list has %zu elements; the next one is [%zu], not [%zu]", location,
            dnn_json_count(at), dnn_json_count(at), step->index);
    return 0;
}

/* The change that adds the value.  at: the last existing value on the path; n more
 * steps do not exist. */
static int plan_change(const struct dnn_jobj *at, const struct dnn_jstep *step, int n,
                       const char *json, const char *location, struct change *out,
                       struct dnn_err *err)
{
    dnn_json_span(at->file, at->val, &out->from, &out->to);
    out->to = end_of(at->file, out->from, out->to);
    if (n == 0 || dnn_json_type(at) == DNN_J_NULL)
        return add_nested(&out->text, step, n, json, location, err);
    DNN_TRY(check_step(at, step, location, err));
    out->from = --out->to; /* before the closing bracket */
    dnn_buf_add(&out->text, dnn_json_count(at) > 0 ? ", " : "");
    if (step->key != NULL) {
        dnn_json_quoted(&out->text, step->key);
        dnn_buf_add(&out->text, ": ");
    }
    return add_nested(&out->text, step + 1, n - 1, json, location, err);
}

int dnn_json_set(struct dnn_json *file, const struct dnn_jstep *step, int n,
                 const char *json, const char *location, const char *path,
                 struct dnn_err *err)
{
    struct dnn_jobj at[DNN_JSON_DEPTH + 1] = {dnn_json_top(file)};
    struct change change = {0};
    int existing = 0;

    if (n > DNN_JSON_DEPTH)
        return dnn_fail(err, DNN_EUSAGE,
                        "%s: the key is nested more than %d levels deep", location,
                        DNN_JSON_DEPTH);
    while (existing < n) {
        at[existing + 1] = find_step(&at[existing], &step[existing]);
        if (at[existing + 1].val == NULL) break;
        existing++;
    }
    int rc = plan_change(&at[existing], step + existing, n - existing, json, location,
                         &change, err);
    if (rc == 0) rc = make_change(file, &change, location, path, err);
    dnn_buf_free(&change.text);
    return rc;
}
