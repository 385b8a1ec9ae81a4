/* field_print.c - print tables as documentation, and filled structs as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/field_impl.h"

#include "base/text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- documentation ---- */

static const char *const type_names[] = {
    [DNN_F_INT] = "whole number",
    [DNN_F_REAL] = "number",
    [DNN_F_BOOL] = "true or false",
    [DNN_F_TEXT] = "string",
    [DNN_F_ENUM] = "one of",
    [DNN_F_BYTES] = "bytes, or a size such as \"16GiB\"",
    [DNN_F_JSON] = "see below",
    [DNN_F_INTS] = "list of whole numbers",
    [DNN_F_REALS] = "list of numbers",
    [DNN_F_TEXTS] = "list of strings",
    [DNN_F_ENUMS] = "list of",
    [DNN_F_OBJECT] = "object",
    [DNN_F_OBJECTS] = "list of objects",
    [DNN_F_IGNORED] = "anything, ignored",
    [DNN_F_NEUTRAL] = "only null or the default",
    [DNN_F_OTHER] = "see below",
};

static bool is_list(enum dnn_ftype type)
{
    return dnn_field_element(type) != type;
}

/* A cell of a Markdown table; a bar in it must be escaped. */
static void cell(FILE *where, const char *text)
{
    fputs(" ", where);
    for (; text != NULL && *text != '\0'; text++) {
        if (*text == '|') fputc('\\', where);
        fputc(*text, where);
    }
    fputs(" |", where);
}

/* The range of the values and, for lists, of the number of elements. */
static void add_range(struct dnn_buf *out, const struct dnn_field *f)
{
    char min[32], max[32];

    dnn_field_number(min, f->min);
    dnn_field_number(max, f->max);
    if (f->min == 0 && f->max == 0)
        dnn_buf_add(out, "%s", "");
    else if (isinf(f->max))
        dnn_buf_add(out, "at least %s", min);
    else if (isinf(f->min))
        dnn_buf_add(out, "at most %s", max);
    else
        dnn_buf_add(out, "%s to %s", min, max);
    if (!is_list(f->type) || f->sub == NULL || (f->sub->min == 0 && f->sub->max == 0))
        return;
    dnn_buf_add(out, "%s", out->len == 0 ? "" : "; ");
    if (f->sub->min == f->sub->max)
        dnn_buf_add(out, "%d", f->sub->min);
    else if (f->sub->max == 0)
        dnn_buf_add(out, "at least %d", f->sub->min);
    else
        dnn_buf_add(out, "%d to %d", f->sub->min, f->sub->max);
    dnn_buf_add(out, f->sub->min == 1 && f->sub->max <= 1 ? " element" : " elements");
}

static void docs_row(const struct dnn_field *f, const char *prefix, FILE *where)
{
    struct dnn_buf text = {0};

    dnn_buf_add(&text, "`%s%s`", prefix, f->key);
    fputs("|", where);
    cell(where, text.text);
    text.len = 0;
    dnn_buf_add(&text, "%s", type_names[f->type]);
    if (f->type == DNN_F_ENUM || f->type == DNN_F_ENUMS)
        for (int i = 0; f->choices[i].name != NULL; i++)
            dnn_buf_add(&text, "%s`%s`", i == 0 ? " " : ", ", f->choices[i].name);
    if (is_list(f->type) && f->sub != NULL && f->sub->single)
        dnn_buf_add(&text, ", or a single one");
    cell(where, text.text);
    text.len = 0;
    if (f->def != NULL)
        dnn_buf_add(&text, "`%s`", f->def);
    else
        dnn_buf_add(&text, f->type == DNN_F_IGNORED   ? ""
                           : f->type == DNN_F_NEUTRAL ? "`null`"
                                                      : "required");
    cell(where, text.text);
    text.len = 0;
    text.text[0] = '\0';
    add_range(&text, f);
    cell(where, text.text);
    cell(where, f->help);
    fputs("\n", where);
    dnn_buf_free(&text);
}

static void docs_rows(const struct dnn_field *fields, const char *prefix, FILE *where)
{
    for (const struct dnn_field *f = fields; f->key != NULL; f++) {
        docs_row(f, prefix, where);
        if (dnn_field_element(f->type) == DNN_F_OBJECT) {
            struct dnn_buf path = {0};

            dnn_buf_add(&path, "%s%s%s.", prefix, f->key, is_list(f->type) ? "[]" : "");
            docs_rows(f->sub->fields, path.text, where);
            dnn_buf_free(&path);
        }
    }
}

void dnn_field_docs(const struct dnn_field *fields, FILE *where)
{
    fputs("| key | type | default | range | meaning |\n|---|---|---|---|---|\n", where);
    docs_rows(fields, "", where);
}

/* ---- a struct as JSON ---- */

static void print_text(FILE *where, const char *text)
{
    if (text == NULL) {
        fputs("null", where);
        return;
    }
    struct dnn_buf quoted = {0};
    dnn_json_quoted(&quoted, text);
    fputs(quoted.text, where);
    dnn_buf_free(&quoted);
}

static void print_object(const struct dnn_field *fields, const char *in, int indent,
                         FILE *where);

/* JSON that may have several lines. */
static void print_json(FILE *where, const char *json, int indent)
{
    if (json == NULL) json = "null";
    for (; *json != '\0'; json++) {
        fputc(*json, where);
        if (*json == '\n') fprintf(where, "%*s", indent, "");
    }
}

/* true and false are printed without quotes. */
static void print_choice(const struct dnn_field *f, int value, FILE *where)
{
    const char *name = dnn_choice_name(f->choices, value);

    assert(name != NULL);
    if (strcmp(name, "true") == 0 || strcmp(name, "false") == 0)
        fputs(name, where);
    else
        print_text(where, name);
}

/* Print the value at from: of field f, or an element of it; type is its own type. */
static void print_value(const struct dnn_field *f, enum dnn_ftype type,
                        const void *from, int indent, FILE *where)
{
    char number[32];

    if (type == DNN_F_INT)
        fprintf(where, "%" PRId64, *(const int64_t *)from);
    else if (type == DNN_F_REAL)
        fputs(dnn_field_number(number, *(const double *)from), where);
    else if (type == DNN_F_BOOL)
        fputs(*(const bool *)from ? "true" : "false", where);
    else if (type == DNN_F_TEXT)
        print_text(where, *(const char *const *)from);
    else if (type == DNN_F_ENUM)
        print_choice(f, *(const int *)from, where);
    else if (type == DNN_F_BYTES && *(const int64_t *)from == 0)
        fputs(f->def, where);
    else if (type == DNN_F_BYTES)
        fprintf(where, "%" PRId64, *(const int64_t *)from);
    else if (type == DNN_F_JSON)
        print_json(where, *(const char *const *)from, indent);
    else if (from == NULL)
        fputs("null", where);
    else
        print_object(f->sub->fields, from, indent, where);
}

static void print_list(const struct dnn_field *f, const struct dnn_list *list,
                       int indent, FILE *where)
{
    enum dnn_ftype type = dnn_field_element(f->type);
    size_t size = dnn_field_element_size(f);

    if (list->objects == NULL && dnn_field_is(f->def, "null")) {
        fputs("null", where);
        return;
    }
    fputc('[', where);
    for (int64_t i = 0; i < list->count; i++) {
        if (i > 0) fputs(", ", where);
        print_value(f, type, (const char *)list->objects + (size_t)i * size, indent,
                    where);
    }
    fputc(']', where);
}

static void print_object(const struct dnn_field *fields, const char *in, int indent,
                         FILE *where)
{
    const char *before = "";

    fputc('{', where);
    for (const struct dnn_field *f = fields; f->key != NULL; f++) {
        const void *from = in + f->offset;

        if (f->type == DNN_F_IGNORED || f->type == DNN_F_NEUTRAL ||
            f->type == DNN_F_OTHER)
            continue;
        fprintf(where, "%s\n%*s", before, indent + 4, "");
        before = ",";
        print_text(where, f->key);
        fputs(": ", where);
        if (is_list(f->type))
            print_list(f, from, indent + 4, where);
        else
            print_value(f, f->type,
                        f->type == DNN_F_OBJECT ? *(const void *const *)from : from,
                        indent + 4, where);
    }
    if (*before != '\0') fprintf(where, "\n%*s", indent, "");
    fputc('}', where);
}

void dnn_field_print(const struct dnn_field *fields, const void *in, FILE *where)
{
    print_object(fields, in, 0, where);
    fputc('\n', where);
}
