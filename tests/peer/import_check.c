/* import_check.c - print what an importer reads from files, for the Python tests.
 *
 *   import_check [--option value]... PATH [TARGET]
 *
 * The options are the keys of an import (docs of dnn_import_fields), lists written as
 * JSON, and
 *   --samples A:B   only samples A to B - 1
 *   --dump DIR      write column k of sample i as raw numbers to DIR/i.k
 *   --quiet         no values
 *
 * Output: "count N", "split NAME", a line for each file, one for each column (name,
 * role, kind, type, shape, classes, names of classes), then for each sample its number,
 * name, class and group, and under it a line per column: type, shape, values.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "import/import.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct check {
    struct dnn_buf json; /* the options as an object */
    const char *dump;
    int64_t first, end; /* samples; end -1: all */
    bool quiet;
};

/* ---- options ---- */

/* Texts are quoted; values that are JSON already (numbers, lists, true) are not. */
static void add_key(struct check *c, const char *key, const char *value)
{
    bool plain =
        value[0] == '[' || strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
    long long number;

    dnn_buf_add(&c->json, "%s\"", c->json.len == 0 ? "{" : ", ");
    for (; *key != '\0'; key++)
        dnn_buf_add(&c->json, "%c", *key == '-' ? '_' : *key);
    dnn_buf_add(&c->json, "\": ");
    if (plain || dnn_text_int(value, &number)) {
        dnn_buf_add(&c->json, "%s", value);
        return;
    }
    dnn_buf_add(&c->json, "\"");
    for (; *value != '\0'; value++) {
        unsigned char byte = (unsigned char)*value;

        if (byte == '"' || byte == '\\')
            dnn_buf_add(&c->json, "\\%c", byte);
        else if (byte < 0x20)
            dnn_buf_add(&c->json, "\\u%04x", byte);
        else
            dnn_buf_add(&c->json, "%c", byte);
    }
    dnn_buf_add(&c->json, "\"");
}

static int parse(struct check *c, int argc, char **argv, struct dnn_err *err)
{
    int paths = 0;

    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(word, "--quiet") == 0) {
            c->quiet = true;
        } else if (strncmp(word, "--", 2) != 0) {
            if (paths == 2)
                return dnn_fail(err, DNN_EUSAGE, "at most two paths, not %s too", word);
            add_key(c, paths++ == 0 ? "input_path" : "target_path", word);
        } else if (value == NULL) {
            return dnn_fail(err, DNN_EUSAGE, "%s needs a value", word);
        } else if (strcmp(word, "--dump") == 0) {
            c->dump = argv[++i];
        } else if (strcmp(word, "--samples") == 0) {
            if (sscanf(argv[++i], "%" SCNd64 ":%" SCNd64, &c->first, &c->end) != 2)
                return dnn_fail(err, DNN_EUSAGE, "--samples needs A:B, not %s", value);
        } else {
            add_key(c, word + 2, argv[++i]);
        }
    }
    if (paths == 0) return dnn_fail(err, DNN_EUSAGE, "a path is needed");
    dnn_buf_add(&c->json, "}");
    return 0;
}

/* ---- output ---- */

static void print_columns(const struct dnn_source *s)
{
    char text[DNN_SHAPE_TEXT];

    printf("count %" PRId64 "\n", s->count);
    if (s->split != NULL) printf("split %s\n", s->split);
    for (int64_t i = 0; i < s->nfiles; i++)
        printf("file %s\n", s->file[i]);
    for (int k = 0; k < s->ncols; k++) {
        const struct dnn_column *col = &s->col[k];

        printf("column %s %s %s %s %s %" PRId64, col->name,
               dnn_choice_name(dnn_role_choices, (int)col->role),
               dnn_choice_name(dnn_kind_choices, (int)col->kind),
               dnn_dtype_name(col->type),
               dnn_shape_text(text, sizeof text, &col->shape), col->classes);
        for (int64_t c = 0; col->class_name != NULL && c < col->classes; c++)
            printf("%s%s", c == 0 ? " " : ",", col->class_name[c]);
        printf("\n");
    }
}

static int print_values(const struct dnn_array *array, struct dnn_err *err)
{
    int64_t n = dnn_array_count(array);
    char text[DNN_SHAPE_TEXT];

    printf("  %s %s", dnn_dtype_name(array->type),
           dnn_shape_text(text, sizeof text, &array->shape));
    for (int d = 0; d < DNN_MAX_SPACE; d++)
        if (array->spacing[d] != 0)
            printf("%s%.9g", d == 0 ? " spacing " : ",", array->spacing[d]);
    printf(" :");
    for (int64_t i = 0; i < n; i++) {
        const char *at =
            (const char *)array->data + (size_t)i * dnn_dtype_size(array->type);
        double x;
        int64_t whole;

        if (array->type == DNN_I64 || array->type == DNN_U64) {
            memcpy(&whole, at, sizeof whole);
            if (array->type == DNN_I64)
                printf(" %" PRId64, whole);
            else
                printf(" %" PRIu64, (uint64_t)whole);
            continue;
        }
        DNN_TRY(dnn_convert(at, array->type, &x, DNN_F64, 1, false, err));
        printf(" %.17g", x);
    }
    printf("\n");
    return 0;
}

static int dump(const struct check *c, int64_t i, int k, const struct dnn_array *array,
                struct dnn_err *err)
{
    char *path = dnn_format("%s/%" PRId64 ".%d", c->dump, i, k);
    int rc = dnn_file_write(path, array->data, dnn_array_bytes(array), err);

    dnn_free(path);
    return rc;
}

/* Every sample must have the columns that the source declares. */
static int as_promised(const struct dnn_source *s, const struct dnn_sample *sample,
                       struct dnn_err *err)
{
    if (sample->ncols != s->ncols)
        return dnn_fail(err, DNN_EDATA, "wrong sample: %d columns, not %d",
                        sample->ncols, s->ncols);
    for (int k = 0; k < s->ncols; k++) {
        const struct dnn_array *a = &sample->col[k];
        const struct dnn_shape *want = &s->col[k].shape;
        bool same = a->type == s->col[k].type && a->shape.ndim == want->ndim;

        for (int d = 0; same && d < want->ndim; d++)
            same = want->dim[d] == DNN_UNKNOWN || want->dim[d] == a->shape.dim[d];
        if (!same)
            return dnn_fail(err, DNN_EDATA,
                            "wrong sample: column %d has another type or shape", k);
    }
    return 0;
}

static int print_sample(const struct check *c, const struct dnn_source *s, int64_t i,
                        struct dnn_sample *sample, struct dnn_err *err)
{
    char name[DNN_SAMPLE_NAME];

    DNN_TRY(dnn_source_read(s, i, sample, err));
    DNN_TRY(as_promised(s, sample, err));
    dnn_source_label(s, i, name);
    printf("sample %" PRId64 " %s", i, name);
    if (s->type->class_of != NULL) printf(" class %" PRId64, s->type->class_of(s, i));
    if (s->type->group != NULL) {
        s->type->group(s, i, name);
        printf(" group %s", name);
    }
    printf("\n");
    for (int k = 0; k < sample->ncols; k++) {
        if (!c->quiet) DNN_TRY(print_values(&sample->col[k], err));
        if (c->dump != NULL) DNN_TRY(dump(c, i, k, &sample->col[k], err));
    }
    return 0;
}

static int run(struct check *c, int argc, char **argv, struct dnn_err *err)
{
    struct dnn_sample sample = {0};
    struct dnn_source *source = NULL;
    struct dnn_json *json = NULL;
    struct dnn_import how;
    int rc = parse(c, argc, argv, err);

    if (rc == 0) rc = dnn_json_text("options", c->json.text, c->json.len, &json, err);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(json);

        rc = dnn_field_fill(&top, dnn_import_fields, NULL, &how, err);
    }
    if (rc == 0) rc = dnn_import_open(&how, &source, err);
    if (rc == 0) {
        int64_t end = c->end < 0 || c->end > source->count ? source->count : c->end;

        print_columns(source);
        for (int64_t i = c->first; i < end && rc == 0; i++)
            rc = print_sample(c, source, i, &sample, err);
    }
    dnn_sample_free(&sample);
    dnn_source_close(source);
    dnn_json_free(json);
    return rc;
}

int main(int argc, char **argv)
{
    struct check c = {.end = -1};
    struct dnn_err err = {0};
    int rc = run(&c, argc, argv, &err);

    if (rc < 0) fprintf(stderr, "import_check: %s\n", err.text);
    dnn_buf_free(&c.json);
    return dnn_exit_status(rc);
}
