/* import_tools.h - functions for tests of importers: a temporary directory for files,
 * and sources opened from options written as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_UNIT_IMPORT_TOOLS_H
#define DNN_TESTS_UNIT_IMPORT_TOOLS_H

#include "tap.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "import/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char tools_dir[64];

/* Work in a new directory, so that messages show paths as the test wrote them. */
static inline void tools_start(void)
{
    snprintf(tools_dir, sizeof tools_dir, "/tmp/dnn-import-XXXXXX");
    if (mkdtemp(tools_dir) == NULL || chdir(tools_dir) != 0) {
        printf("Bail out! there is no directory to work in\n");
        exit(1);
    }
}

static inline int tools_end(void)
{
    if (chdir("/") != 0 || dnn_file_remove_tree(tools_dir, NULL) < 0)
        printf("# %s could not be removed\n", tools_dir);
    return done();
}

/* A file with this content, and the directories it is in. */
static inline void put(const char *path, const void *bytes, size_t n)
{
    const char *slash = strrchr(path, '/');
    FILE *f;

    if (slash != NULL) {
        char *dir = dnn_strndup(path, (size_t)(slash - path));

        dnn_file_make_dirs(dir, NULL);
        dnn_free(dir);
    }
    f = fopen(path, "wb");
    if (f == NULL || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) {
        printf("Bail out! %s could not be written\n", path);
        exit(1);
    }
}

static inline void put_text(const char *path, const char *text)
{
    put(path, text, strlen(text));
}

/* A source and its options. */
struct opened {
    struct dnn_json *json;
    struct dnn_source *source; /* NULL: refused, see err */
    struct dnn_err err;
};

static inline void open_with(struct opened *o, const char *options)
{
    struct dnn_import how;

    memset(o, 0, sizeof *o);
    if (dnn_json_text("options", options, strlen(options), &o->json, &o->err) < 0)
        return;
    struct dnn_jobj top = dnn_json_top(o->json);
    if (dnn_field_fill(&top, dnn_import_fields, NULL, &how, &o->err) == 0)
        dnn_import_open(&how, &o->source, &o->err);
}

static inline void close_it(struct opened *o)
{
    dnn_source_close(o->source);
    dnn_json_free(o->json);
}

/* Opening must fail with exactly this message and code. */
static inline void refused(const char *options, int code, const char *want)
{
    struct opened o;

    open_with(&o, options);
    is_text(o.source == NULL ? o.err.text : "it was opened", want, options);
    if (o.source == NULL) is_int(o.err.code, code, "with its code");
    close_it(&o);
}

/* Reading sample i must fail with exactly this message. */
static inline void unreadable(const char *options, int64_t i, const char *want)
{
    struct dnn_sample sample = {0};
    struct opened o;
    int rc = 0;

    open_with(&o, options);
    if (o.source != NULL) rc = dnn_source_read(o.source, i, &sample, &o.err);
    is_text(o.source != NULL && rc == 0 ? "it was read" : o.err.text, want, options);
    dnn_sample_free(&sample);
    close_it(&o);
}

/* " input image u8 2x2x1" */
static inline void describe_column(struct dnn_buf *out, const struct dnn_column *col)
{
    const char *role = dnn_choice_name(dnn_role_choices, (int)col->role);
    char text[DNN_SHAPE_TEXT];

    dnn_buf_add(out, " %s", col->name);
    if (strcmp(col->name, role) != 0) dnn_buf_add(out, " %s", role);
    dnn_buf_add(out, " %s %s %s", dnn_choice_name(dnn_kind_choices, (int)col->kind),
                dnn_dtype_name(col->type),
                dnn_shape_text(text, sizeof text, &col->shape));
    if (col->classes > 0) dnn_buf_add(out, " %" PRId64, col->classes);
    for (int64_t c = 0; col->class_name != NULL && c < col->classes; c++)
        dnn_buf_add(out, "%s%s%s", c == 0 ? " (" : " ", col->class_name[c],
                    c == col->classes - 1 ? ")" : "");
}

/* The first dozen of its numbers. */
static inline void describe_array(struct dnn_buf *out, const struct dnn_array *a)
{
    for (int64_t j = 0; j < dnn_array_count(a) && j < 12; j++) {
        double x;

        dnn_convert((const char *)a->data + (size_t)j * dnn_dtype_size(a->type),
                    a->type, &x, DNN_F64, 1, false, NULL);
        dnn_buf_add(out, " %g", x);
    }
}

/* A description of a source and its samples, as text that the caller frees:
 * "2: input image u8 2x2x1, target label i32 scalar 3 (a b c)\n" and for each sample
 * "name class of group: 1 2 3 4 | 1\n". */
static inline char *describe(const struct opened *o)
{
    const struct dnn_source *s = o->source;
    struct dnn_sample sample = {0};
    struct dnn_buf out = {0};
    char text[DNN_SAMPLE_NAME];
    struct dnn_err err = {0};

    if (s == NULL) return dnn_strdup(o->err.text);
    dnn_buf_add(&out, "%" PRId64 ":", s->count);
    for (int k = 0; k < s->ncols; k++) {
        if (k > 0) dnn_buf_add(&out, ",");
        describe_column(&out, &s->col[k]);
    }
    dnn_buf_add(&out, "\n");
    for (int64_t i = 0; i < s->count; i++) {
        dnn_source_label(s, i, text);
        dnn_buf_add(&out, "%s", text);
        if (s->type->class_of != NULL)
            dnn_buf_add(&out, " %" PRId64, s->type->class_of(s, i));
        if (s->type->group != NULL) {
            s->type->group(s, i, text);
            dnn_buf_add(&out, " of %s", text);
        }
        dnn_buf_add(&out, ":");
        if (dnn_source_read(s, i, &sample, &err) < 0) {
            dnn_buf_add(&out, " %s\n", err.text);
            continue;
        }
        for (int k = 0; k < sample.ncols; k++) {
            if (k > 0) dnn_buf_add(&out, " |");
            describe_array(&out, &sample.col[k]);
        }
        dnn_buf_add(&out, "\n");
    }
    dnn_sample_free(&sample);
    return out.text;
}

static inline void is_source(const char *options, const char *want)
{
    struct opened o;

    open_with(&o, options);
    char *got = describe(&o);
    is_text(got, want, options);
    dnn_free(got);
    close_it(&o);
}

#endif
