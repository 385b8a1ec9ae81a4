/* field.c - fill structs from JSON objects, as described by field tables.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/field_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Where lists, objects and strings are allocated. */
struct storage {
    struct dnn_arena *arena;
    bool copy; /* strings are copied to it */
};

static int store(const struct dnn_field *f, const struct dnn_jobj *at,
                 struct storage *storage, void *to, struct dnn_err *err);

enum dnn_ftype dnn_field_element(enum dnn_ftype list)
{
    switch (list) {
    case DNN_F_INTS:
        return DNN_F_INT;
    case DNN_F_REALS:
        return DNN_F_REAL;
    case DNN_F_TEXTS:
        return DNN_F_TEXT;
    case DNN_F_ENUMS:
        return DNN_F_ENUM;
    case DNN_F_OBJECTS:
        return DNN_F_OBJECT;
    default:
        return list;
    }
}

size_t dnn_field_element_size(const struct dnn_field *f)
{
    switch (dnn_field_element(f->type)) {
    case DNN_F_OBJECT:
        return f->sub->size;
    case DNN_F_TEXT:
        return sizeof(const char *);
    case DNN_F_ENUM:
        return sizeof(int);
    case DNN_F_REAL:
        return sizeof(double);
    default:
        return sizeof(int64_t);
    }
}

bool dnn_field_is(const char *def, const char *word)
{
    return def != NULL && strcmp(def, word) == 0;
}

/* ---- one value ---- */

static int in_range(const struct dnn_field *f, const struct dnn_jobj *at, double x,
                    struct dnn_err *err)
{
    char quote[DNN_JSON_QUOTE], min[32], max[32];

    if ((f->min == 0 && f->max == 0) || (x >= f->min && x <= f->max)) return 0;
    dnn_json_quote(quote, at);
    dnn_field_number(min, f->min);
    dnn_field_number(max, f->max);
    if (isinf(f->max))
        return dnn_json_fail(at, err, "must be at least %s, not %s", min, quote);
    if (isinf(f->min))
        return dnn_json_fail(at, err, "must be at most %s, not %s", max, quote);
    return dnn_json_fail(at, err, "must be between %s and %s, not %s", min, max, quote);
}

static int store_text(const struct dnn_jobj *at, struct storage *storage,
                      const char **to, struct dnn_err *err)
{
    const char *text;

    DNN_TRY(dnn_json_string(at, &text, err));
    *to = storage->copy ? dnn_arena_strdup(storage->arena, text) : text;
    return 0;
}

static int store_enum(const struct dnn_field *f, const struct dnn_jobj *at, int *to,
                      struct dnn_err *err)
{
    char quote[DNN_JSON_QUOTE];
    struct dnn_err why;
    const char *word = dnn_field_word(f, at);

    if (word != NULL) {
        if (dnn_choice_find(f->choices, word, to, &why) == 0) return 0;
        return dnn_json_fail(at, err, "%s", why.text);
    }
    struct dnn_buf list = {0};
    for (int i = 0; f->choices[i].name != NULL; i++)
        dnn_buf_add(&list, "%s%s", i == 0 ? "" : ", ", f->choices[i].name);
    int rc = dnn_json_fail(at, err, "must be one of %s, not %s", list.text,
                           dnn_json_quote(quote, at));
    dnn_buf_free(&list);
    return rc;
}

static int store_number(const struct dnn_field *f, const struct dnn_jobj *at, void *to,
                        struct dnn_err *err)
{
    int64_t integer;
    double real;

    if (f->type == DNN_F_REAL) {
        DNN_TRY(dnn_json_real(at, &real, err));
        DNN_TRY(in_range(f, at, real, err));
        memcpy(to, &real, sizeof real);
        return 0;
    }
    DNN_TRY(dnn_json_int(at, &integer, err));
    DNN_TRY(in_range(f, at, (double)integer, err));
    memcpy(to, &integer, sizeof integer);
    return 0;
}

/* ---- lists and objects ---- */

static int check_length(const struct dnn_sub *sub, const struct dnn_jobj *at,
                        size_t count, struct dnn_err *err)
{
    int min = sub->min, max = sub->max;

    if (count >= (size_t)min && (max == 0 || count <= (size_t)max)) return 0;
    if (min == max)
        return dnn_json_fail(at, err, "must have %d element%s, not %zu", min,
                             min == 1 ? "" : "s", count);
    if (max == 0)
        return dnn_json_fail(at, err, "must have at least %d element%s, not %zu", min,
                             min == 1 ? "" : "s", count);
    if (min == 0)
        return dnn_json_fail(at, err, "must have at most %d element%s, not %zu", max,
                             max == 1 ? "" : "s", count);
    return dnn_json_fail(at, err, "must have %d to %d elements, not %zu", min, max,
                         count);
}

/* Lists contain the structs themselves; an object field is a pointer to one. */
static int store_element(const struct dnn_field *one, const struct dnn_jobj *at,
                         struct storage *storage, void *to, struct dnn_err *err)
{
    if (one->type != DNN_F_OBJECT) return store(one, at, storage, to, err);
    return dnn_field_fill(at, one->sub->fields, storage->copy ? storage->arena : NULL,
                          to, err);
}

static int store_list(const struct dnn_field *f, const struct dnn_jobj *at,
                      struct storage *storage, struct dnn_list *to, struct dnn_err *err)
{
    static const struct dnn_sub any = {0};
    const struct dnn_sub *sub = f->sub == NULL ? &any : f->sub;
    struct dnn_field one = *f;
    char quote[DNN_JSON_QUOTE];
    bool single = dnn_json_type(at) != DNN_J_LIST;

    if (single && (!sub->single || dnn_json_type(at) == DNN_J_NULL))
        return dnn_json_fail(at, err, "must be a list, not %s",
                             dnn_json_quote(quote, at));
    size_t count = single ? 1 : dnn_json_count(at);
    DNN_TRY(check_length(sub, at, count, err));

    one.type = dnn_field_element(f->type);
    one.def = NULL;
    size_t size = dnn_field_element_size(f);
    char *elements = dnn_arena_alloc(storage->arena, count * size);
    if (single) DNN_TRY(store_element(&one, at, storage, elements, err));
    for (struct dnn_jobj it = dnn_json_first(at); !single && it.val != NULL;
         it = dnn_json_next(&it))
        DNN_TRY(store_element(&one, &it, storage, elements + it.index * size, err));
    to->count = (int64_t)count;
    to->objects = elements;
    return 0;
}

static int store_object(const struct dnn_field *f, const struct dnn_jobj *at,
                        struct storage *storage, void **to, struct dnn_err *err)
{
    void *made = dnn_arena_alloc(storage->arena, f->sub->size);

    DNN_TRY(dnn_field_fill(at, f->sub->fields, storage->copy ? storage->arena : NULL,
                           made, err));
    *to = made;
    return 0;
}

/* ---- any type ---- */

static int store(const struct dnn_field *f, const struct dnn_jobj *at,
                 struct storage *storage, void *to, struct dnn_err *err)
{
    bool null = dnn_json_type(at) == DNN_J_NULL && dnn_field_is(f->def, "null");

    switch (f->type) {
    case DNN_F_INT:
    case DNN_F_REAL:
        return store_number(f, at, to, err);
    case DNN_F_BOOL:
        return dnn_json_bool(at, to, err);
    case DNN_F_TEXT:
        return null ? 0 : store_text(at, storage, to, err);
    case DNN_F_ENUM:
        return store_enum(f, at, to, err);
    case DNN_F_BYTES:
        return null ? 0 : dnn_field_bytes(f, at, to, err);
    case DNN_F_JSON:
        if (!null) dnn_field_json(at, storage->arena, to);
        return 0;
    case DNN_F_OBJECT:
        return null ? 0 : store_object(f, at, storage, to, err);
    case DNN_F_NEUTRAL:
        return dnn_field_neutral(f, at, err);
    case DNN_F_IGNORED:
    case DNN_F_OTHER:
        return 0;
    default:
        return null ? 0 : store_list(f, at, storage, to, err);
    }
}

/* Set a field to zero, NULL or an empty list. */
static void clear(const struct dnn_field *f, void *to)
{
    static const unsigned char size[] = {
        [DNN_F_INT] = sizeof(int64_t),
        [DNN_F_REAL] = sizeof(double),
        [DNN_F_BOOL] = sizeof(bool),
        [DNN_F_TEXT] = sizeof(char *),
        [DNN_F_ENUM] = sizeof(int),
        [DNN_F_BYTES] = sizeof(int64_t),
        [DNN_F_JSON] = sizeof(char *),
        [DNN_F_INTS] = sizeof(struct dnn_list),
        [DNN_F_REALS] = sizeof(struct dnn_list),
        [DNN_F_TEXTS] = sizeof(struct dnn_list),
        [DNN_F_ENUMS] = sizeof(struct dnn_list),
        [DNN_F_OBJECT] = sizeof(void *),
        [DNN_F_OBJECTS] = sizeof(struct dnn_list),
        [DNN_F_OTHER] = 0,
    };

    memset(to, 0, size[f->type]);
}

/* A default is parsed and checked like a value in a file.  Its JSON is freed
 * afterwards, so strings are copied. */
static int store_default(const struct dnn_field *f, struct storage *storage, void *to,
                         struct dnn_err *err)
{
    struct dnn_json *file = NULL;
    struct storage copy = {storage->arena, true};

    if (f->type == DNN_F_IGNORED || f->type == DNN_F_NEUTRAL || f->type == DNN_F_OTHER)
        return 0;
    if (f->type == DNN_F_TEXT) {
        if (!dnn_field_is(f->def, "null")) memcpy(to, &f->def, sizeof f->def);
        return 0;
    }
    if (f->type == DNN_F_ENUM) {
        struct dnn_err why;

        if (dnn_choice_find(f->choices, f->def, to, &why) < 0)
            return dnn_fail(err, DNN_ECONFIG, "the default of \"%s\": %s", f->key,
                            why.text);
        return 0;
    }
    int rc = dnn_json_text("default", f->def, strlen(f->def), &file, err);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(file);

        rc = store(f, &top, &copy, to, err);
    }
    dnn_json_free(file);
    return rc < 0 ? dnn_prefix(err, "the default of \"%s\": ", f->key) : 0;
}

/* The path of the nested object that has this key (the caller frees it), or NULL. */
static char *nested_path(const struct dnn_field *fields, const char *key)
{
    char *path = NULL;

    for (const struct dnn_field *f = fields; f->key != NULL && path == NULL; f++) {
        if (f->type != DNN_F_OBJECT) continue;
        for (const struct dnn_field *g = f->sub->fields; g->key != NULL; g++)
            if (strcmp(g->key, key) == 0) return dnn_strdup(f->key);
        char *below = nested_path(f->sub->fields, key);
        if (below != NULL) path = dnn_format("%s.%s", f->key, below);
        dnn_free(below);
    }
    return path;
}

/* The error for a key that is in no table. */
static int fail_unknown(const struct dnn_jobj *at, const struct dnn_fill *fills,
                        int nfills, struct dnn_err *err)
{
    const char **words = NULL;
    size_t n = 0, cap = 0;
    char hint[128], *path = NULL;

    for (int i = 0; i < nfills && path == NULL; i++)
        path = nested_path(fills[i].fields, at->name);
    words = dnn_grow(words, &cap, 1, sizeof *words);
    for (int i = 0; i < nfills; i++)
        for (const struct dnn_field *f = fills[i].fields; f->key != NULL; f++) {
            words = dnn_grow(words, &cap, n + 2, sizeof *words);
            words[n++] = f->key;
        }
    words[n] = NULL;
    int rc =
        path != NULL
            ? dnn_json_fail(at, err, "unknown key here; it belongs in \"%s\"", path)
            : dnn_json_fail(at, err, "unknown key%s",
                            dnn_text_hint(hint, sizeof hint, at->name, words));
    dnn_free(path);
    dnn_free(words);
    return rc;
}

static const struct dnn_field *find(const struct dnn_fill *fills, int nfills,
                                    const char *key)
{
    for (int i = 0; i < nfills; i++)
        for (const struct dnn_field *f = fills[i].fields; f->key != NULL; f++)
            if (strcmp(f->key, key) == 0) return f;
    return NULL;
}

int dnn_field_fill_all(const struct dnn_jobj *obj, const struct dnn_fill *fills,
                       int nfills, struct dnn_arena *arena, struct dnn_err *err)
{
    struct storage storage = {arena == NULL ? dnn_json_arena(obj->file) : arena,
                              arena != NULL};
    char quote[DNN_JSON_QUOTE];

    if (obj->val == NULL && obj->up != NULL)
        return dnn_json_fail(obj->up, err, "the key \"%s\" is missing", obj->name);
    if (dnn_json_type(obj) != DNN_J_OBJECT)
        return dnn_json_fail(obj, err, "must be an object, not %s",
                             dnn_json_quote(quote, obj));
    for (struct dnn_jobj it = dnn_json_first(obj); it.val != NULL;
         it = dnn_json_next(&it))
        if (find(fills, nfills, it.name) == NULL)
            return fail_unknown(&it, fills, nfills, err);

    for (int i = 0; i < nfills; i++)
        for (const struct dnn_field *f = fills[i].fields; f->key != NULL; f++) {
            struct dnn_jobj at = dnn_json_sub(obj, f->key);
            bool ignored = f->type == DNN_F_IGNORED || f->type == DNN_F_NEUTRAL;
            void *to = (char *)fills[i].out + f->offset;

            if (!ignored && f->type != DNN_F_OTHER) clear(f, to);
            if (at.val != NULL)
                DNN_TRY(store(f, &at, &storage, to, err));
            else if (f->def != NULL)
                DNN_TRY(store_default(f, &storage, to, err));
            else if (!ignored)
                return dnn_json_fail(obj, err, "the key \"%s\" is missing", f->key);
        }
    return 0;
}

int dnn_field_fill(const struct dnn_jobj *obj, const struct dnn_field *fields,
                   struct dnn_arena *arena, void *out, struct dnn_err *err)
{
    return dnn_field_fill_all(obj, &(struct dnn_fill){fields, out}, 1, arena, err);
}

/* ---- checking a table ---- */

static int check_one(const struct dnn_field *f, struct storage *storage,
                     struct dnn_err *err)
{
    enum dnn_ftype type = dnn_field_element(f->type);
    struct dnn_list value = {0};

    if (f->help == NULL || f->help[0] == '\0')
        return dnn_fail(err, DNN_ECONFIG, "\"%s\": has no help", f->key);
    if (type == DNN_F_ENUM && f->choices == NULL)
        return dnn_fail(err, DNN_ECONFIG, "\"%s\": has no choices", f->key);
    if (type == DNN_F_OBJECT &&
        (f->sub == NULL || f->sub->fields == NULL || f->sub->size == 0))
        return dnn_fail(err, DNN_ECONFIG, "\"%s\": has no sub-table", f->key);
    if (f->min > f->max) return dnn_fail(err, DNN_ECONFIG, "\"%s\": min > max", f->key);
    if (f->def != NULL) DNN_TRY(store_default(f, storage, &value, err));
    if (type == DNN_F_OBJECT && dnn_field_check(f->sub->fields, err) < 0)
        return dnn_prefix(err, "\"%s\": ", f->key);
    return 0;
}

int dnn_field_check(const struct dnn_field *fields, struct dnn_err *err)
{
    struct storage storage = {dnn_arena_make(), true};
    int rc = 0;

    for (const struct dnn_field *f = fields; rc == 0 && f->key != NULL; f++) {
        for (const struct dnn_field *g = fields; rc == 0 && g != f; g++)
            if (strcmp(g->key, f->key) == 0)
                rc = dnn_fail(err, DNN_ECONFIG, "\"%s\": appears twice", f->key);
        if (rc == 0) rc = check_one(f, &storage, err);
    }
    dnn_arena_free(storage.arena);
    return rc;
}
