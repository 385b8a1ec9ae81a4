/* csv_make.c - a table as a source: its columns and its object files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/csv_impl.h"

#include "base/mem.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* ---- objects ---- */

char *dnn_table_object_path(const struct dnn_table_source *t, const char *cell)
{
    if (cell[0] == '/') return dnn_strdup(cell);
    if (t->how.object_dir != NULL) return dnn_format("%s/%s", t->how.object_dir, cell);
    return dnn_format("%.*s%s", (int)(dnn_import_base(t->path) - t->path), t->path,
                      cell);
}

int dnn_table_object(const struct dnn_table_source *t, const struct dnn_table_field *f,
                     const char *cell, struct dnn_source **out, struct dnn_err *err)
{
    const struct dnn_import_side *side = f->target ? &t->how.target : &t->how.input;
    const struct dnn_importer *importer;
    char *path = dnn_table_object_path(t, cell);
    int rc = dnn_importer_find(NULL, path, &importer, err);

    *out = NULL;
    if (rc == 0 && importer == &dnn_importer_csv)
        rc = dnn_fail(err, DNN_EDATA, "%s: is a table; expected an image or array file",
                      path);
    if (rc == 0) rc = importer->open(path, &t->how, side, out, err);
    if (rc == 0 && (*out)->count != 1) {
        rc = dnn_fail(err, DNN_EDATA, "%s: contains %" PRId64 " samples, expected one",
                      path, (*out)->count);
        dnn_source_close(*out);
        *out = NULL;
    }
    dnn_free(path);
    return rc;
}

/* ---- columns ---- */

/* Names consist of letters, digits, _ . and -, and are unique. */
static void name_column(struct dnn_source *base, struct dnn_column *col,
                        const char *name)
{
    char clean[40];
    size_t n = 0;

    for (; name[n] != '\0' && n < sizeof clean - 1; n++)
        clean[n] = isalnum((unsigned char)name[n]) || strchr("_.-", name[n]) != NULL
                       ? name[n]
                       : '_';
    clean[n] = '\0';
    snprintf(col->name, sizeof col->name, "%s", n == 0 ? "_" : clean);
    for (int i = 0, next = 2; i < base->ncols; i++)
        if (strcmp(base->col[i].name, col->name) == 0) {
            snprintf(col->name, sizeof col->name, "%s_%d", clean, next++);
            i = -1;
        }
}

static int new_column(struct dnn_table_source *t, const char *name, bool target,
                      enum dnn_kind kind, enum dnn_dtype type, struct dnn_column **out,
                      struct dnn_err *err)
{
    if (t->base.ncols == DNN_MAX_COLUMNS)
        return dnn_fail(err, DNN_EDATA, "%s: more than %d columns", t->path,
                        DNN_MAX_COLUMNS);
    struct dnn_column *col = &t->base.col[t->base.ncols];
    *col = (struct dnn_column){
        .role = target ? DNN_ROLE_TARGET : DNN_ROLE_INPUT, .kind = kind, .type = type};
    name_column(&t->base, col, name);
    t->base.ncols++;
    *out = col;
    return 0;
}

/* The number of columns of inputs or targets: one vector, each class, each object. */
static int count_columns(const struct dnn_table_source *t, bool target)
{
    bool numbers = false;
    int n = 0;

    for (size_t k = 0; k < t->fields.n; k++) {
        const struct dnn_table_field *f = &t->fields.field[k];

        if (f->use == DNN_CSV_UNUSED || f->target != target) continue;
        if (f->use == DNN_CSV_NUMBER)
            numbers = true;
        else
            n++;
    }
    return n + numbers;
}

static int add_vector(struct dnn_table_source *t, bool target, const char *type,
                      struct dnn_err *err)
{
    const char *only = target ? "target" : "input",
               *one_of_many = target ? "target_values" : "values";
    struct dnn_column *col = NULL;
    enum dnn_dtype as;

    if (dnn_dtype_find(type == NULL ? "f32" : type, &as, err) < 0)
        return dnn_prefix(err, "%s: ", t->path);
    for (size_t k = 0; k < t->fields.n; k++) {
        struct dnn_table_field *f = &t->fields.field[k];

        if (f->use != DNN_CSV_NUMBER || f->target != target) continue;
        if (col == NULL) {
            DNN_TRY(new_column(t, count_columns(t, target) == 1 ? only : one_of_many,
                               target, DNN_KIND_VALUES, as, &col, err));
            col->shape.ndim = 1;
        }
        f->column = (int)(col - t->base.col);
        f->index = col->shape.dim[0]++;
    }
    return 0;
}

static int add_class(struct dnn_table_source *t, struct dnn_table_field *f,
                     const char *name, struct dnn_err *err)
{
    struct dnn_column *col;

    DNN_TRY(new_column(t, name, f->target, DNN_KIND_LABEL, DNN_I32, &col, err));
    f->column = (int)(col - t->base.col);
    col->classes = f->integers ? f->max + 1 : (int64_t)f->nnames;
    if (!f->integers) col->class_name = f->names;
    return 0;
}

/* Kind and type are those of the first record's object. */
static int add_object(struct dnn_table_source *t, struct dnn_table_field *f, size_t k,
                      const char *name, struct dnn_err *err)
{
    struct dnn_table_record record = {0};
    struct dnn_source *source = NULL;
    struct dnn_column *col;
    int rc = dnn_table_read(&t->csv, 1, &record, err);

    if (rc == 0) {
        rc = dnn_table_object(t, f, record.field[k], &source, err);
        if (rc < 0) dnn_table_error_at(&t->csv, f, 1, err);
    }
    if (rc == 0)
        rc = new_column(t, name, f->target, source->col[0].kind, source->col[0].type,
                        &col, err);
    if (rc == 0) {
        f->column = (int)(col - t->base.col);
        col->shape = source->col[0].shape;
        for (int d = 0; d < col->shape.ndim && t->base.count > 1; d++)
            col->shape.dim[d] = DNN_UNKNOWN;
    }
    dnn_source_close(source);
    dnn_table_record_free(&record);
    return rc;
}

int dnn_table_columns(struct dnn_table_source *t, struct dnn_err *err)
{
    for (int target = 0; target < 2; target++) {
        const struct dnn_import_side *side = target ? &t->how.target : &t->how.input;
        bool single = count_columns(t, target) == 1;

        DNN_TRY(add_vector(t, target, side->type, err));
        for (size_t k = 0; k < t->fields.n; k++) {
            struct dnn_table_field *f = &t->fields.field[k];
            const char *name = single ? (target ? "target" : "input") : f->name;

            if (f->target != (bool)target) continue;
            if (f->use == DNN_CSV_CLASS) DNN_TRY(add_class(t, f, name, err));
            if (f->use == DNN_CSV_OBJECT) DNN_TRY(add_object(t, f, k, name, err));
        }
    }
    if (t->base.ncols == 0)
        return dnn_fail(err, DNN_EDATA, "%s: no column is used as input or target",
                        t->path);
    return 0;
}
