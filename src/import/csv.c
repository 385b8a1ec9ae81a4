/* csv.c - tables of numbers, classes and paths of object files.
 *
 * The input numbers of a record become one vector, the target numbers another; each
 * class and each object is a column of its own.  Only the positions of records are kept
 * in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/csv_impl.h"

#include "base/mem.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static int read_object(const struct dnn_table_source *t,
                       const struct dnn_table_field *f, const char *cell,
                       struct dnn_array *to, struct dnn_err *err)
{
    const struct dnn_column *col = &t->base.col[f->column];
    struct dnn_sample sample = {0};
    struct dnn_source *source;
    char text[DNN_SHAPE_TEXT], want[DNN_SHAPE_TEXT];
    int rc;

    DNN_TRY(dnn_table_object(t, f, cell, &source, err));
    dnn_array_swap(&sample.col[0], to); /* to reuse its memory */
    rc = dnn_source_read(source, 0, &sample, err);
    dnn_array_swap(&sample.col[0], to);
    if (rc == 0 && (to->type != col->type || to->shape.ndim != col->shape.ndim))
        rc = dnn_fail(
            err, DNN_EDATA, "%s is %s %s, but %s %s in the first record", cell,
            dnn_dtype_name(to->type), dnn_shape_text(text, sizeof text, &to->shape),
            dnn_dtype_name(col->type), dnn_shape_text(want, sizeof want, &col->shape));
    dnn_sample_free(&sample);
    dnn_source_close(source);
    return rc;
}

/* ---- reading ---- */

static int read_cell(const struct dnn_table_source *t, size_t i,
                     const struct dnn_table_field *f, const char *cell,
                     struct dnn_sample *out, struct dnn_err *err)
{
    struct dnn_array *to = &out->col[f->column];
    int64_t class;
    double real;

    switch (f->use) {
    case DNN_CSV_NUMBER:
        DNN_TRY(dnn_table_number(&t->csv, f, i, cell, &real, err));
        if (dnn_convert(&real, DNN_F64,
                        (char *)to->data + (size_t)f->index * dnn_dtype_size(to->type),
                        to->type, 1, true, NULL) < 0) {
            dnn_fail(err, DNN_EDATA, "%s cannot hold %.60s", dnn_dtype_name(to->type),
                     cell);
            return dnn_table_error_at(&t->csv, f, i, err);
        }
        return 0;
    case DNN_CSV_CLASS:
        DNN_TRY(dnn_table_class(&t->csv, f, i, cell, &class, err));
        *(int32_t *)to->data = (int32_t)class;
        return 0;
    case DNN_CSV_OBJECT:
        if (read_object(t, f, cell, to, err) < 0)
            return dnn_table_error_at(&t->csv, f, i, err);
        return 0;
    default:
        return 0;
    }
}

static int read_fields(const struct dnn_table_source *t, size_t i,
                       const struct dnn_table_record *record, struct dnn_sample *out,
                       struct dnn_err *err)
{
    if (record->nfields != t->fields.n)
        return dnn_fail(err, DNN_EDATA, "%s: changed while it was read", t->path);
    for (int c = 0; c < t->base.ncols; c++) {
        const struct dnn_column *col = &t->base.col[c];

        /* Vectors and labels; the importer allocates objects. */
        if (col->kind == DNN_KIND_LABEL ||
            (col->kind == DNN_KIND_VALUES && dnn_shape_known(&col->shape)))
            DNN_TRY(dnn_array_make(&out->col[c], col->type, &col->shape, err));
    }
    for (size_t k = 0; k < t->fields.n; k++)
        DNN_TRY(read_cell(t, i, &t->fields.field[k], record->field[k], out, err));
    out->ncols = t->base.ncols;
    return 0;
}

static int read_sample(const struct dnn_source *source, int64_t i,
                       struct dnn_sample *out, struct dnn_err *err)
{
    const struct dnn_table_source *t = (const struct dnn_table_source *)source;
    struct dnn_table_record record = {0};
    int rc = dnn_table_read(&t->csv, (size_t)i + 1, &record, err);

    if (rc == 0) rc = read_fields(t, (size_t)i + 1, &record, out, err);
    dnn_table_record_free(&record);
    return rc;
}

/* Copy a cell of sample i to out; false if it cannot be read. */
static bool cell_of(const struct dnn_table_source *t, int64_t i, int field,
                    char out[DNN_SAMPLE_NAME])
{
    struct dnn_table_record record = {0};
    bool good = dnn_table_read(&t->csv, (size_t)i + 1, &record, NULL) == 0 &&
                record.nfields == t->fields.n;

    if (good) snprintf(out, DNN_SAMPLE_NAME, "%s", record.field[field]);
    dnn_table_record_free(&record);
    return good;
}

static void label(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    const struct dnn_table_source *t = (const struct dnn_table_source *)source;

    if (t->fields.first_object < 0 || !cell_of(t, i, t->fields.first_object, out))
        snprintf(out, DNN_SAMPLE_NAME, "%.400s[%" PRId64 "]", dnn_import_base(t->path),
                 i);
}

static void group(const struct dnn_source *source, int64_t i, char out[DNN_SAMPLE_NAME])
{
    const struct dnn_table_source *t = (const struct dnn_table_source *)source;

    if (!cell_of(t, i, t->fields.group, out)) label(source, i, out);
}

static int64_t class_of(const struct dnn_source *source, int64_t i)
{
    const struct dnn_table_source *t = (const struct dnn_table_source *)source;
    char cell[DNN_SAMPLE_NAME];
    int64_t class;

    for (size_t k = 0; k < t->fields.n; k++)
        if (t->fields.field[k].use == DNN_CSV_CLASS && cell_of(t, i, (int)k, cell) &&
            dnn_table_class(&t->csv, &t->fields.field[k], (size_t)i + 1, cell, &class,
                            NULL) == 0)
            return class;
    return -1;
}

static void close_table(struct dnn_source *source)
{
    struct dnn_table_source *t = (struct dnn_table_source *)source;

    dnn_table_fields_free(&t->fields);
    dnn_table_close(&t->csv);
    dnn_free(t->file);
    dnn_free(t->path);
    dnn_free(t);
}

static const struct dnn_source_type table_type = {
    .name = "csv",
    .read = read_sample,
    .label = label,
    .class_of = class_of,
    .close = close_table,
};
static const struct dnn_source_type grouped_type = {
    .name = "csv",
    .read = read_sample,
    .label = label,
    .group = group,
    .class_of = class_of,
    .close = close_table,
};

/* ---- opening ---- */

static void add_file(struct dnn_table_source *t, const char *path)
{
    t->file = dnn_grow(t->file, &t->file_cap, t->nfiles + 1, sizeof *t->file);
    t->file[t->nfiles++] = path;
}

/* Check all records when the table is opened, not hours later. */
static int inspect_records(struct dnn_table_source *t, struct dnn_err *err)
{
    struct dnn_table_record record = {0};
    int rc = 0;

    for (size_t i = 1; i < t->csv.n && rc == 0; i++) {
        rc = dnn_table_read(&t->csv, i, &record, err);
        if (rc == 0) rc = dnn_table_inspect(&t->csv, &t->fields, i, &record, err);
        for (size_t k = 0; k < t->fields.n && rc == 0; k++) {
            if (t->fields.field[k].use != DNN_CSV_OBJECT) continue;
            char *path = dnn_table_object_path(t, record.field[k]);
            add_file(t, dnn_arena_strdup(t->fields.arena, path));
            dnn_free(path);
        }
    }
    dnn_table_record_free(&record);
    return rc;
}

static int fill(struct dnn_table_source *t, const struct dnn_import *how,
                const struct dnn_import_side *side, struct dnn_err *err)
{
    t->how = *how;
    t->how.whole = true;
    t->how.input.format = t->how.target.format = NULL;
    t->how.split = NULL;
    add_file(t, t->path);
    DNN_TRY(dnn_table_open(&t->csv, t->path, how->separator, err));
    DNN_TRY(dnn_table_choose(&t->csv, how, side, &t->fields, err));
    t->base.count = (int64_t)t->csv.n - 1;
    if (t->base.count == 0)
        return dnn_fail(err, DNN_EDATA, "%s: only a header, no records", t->path);
    DNN_TRY(inspect_records(t, err));
    DNN_TRY(dnn_table_columns(t, err));
    t->base.file = t->file;
    t->base.nfiles = (int64_t)t->nfiles;
    if (t->fields.group >= 0) t->base.type = &grouped_type;
    return 0;
}

static int open_table(const char *path, const struct dnn_import *how,
                      const struct dnn_import_side *side, struct dnn_source **out,
                      struct dnn_err *err)
{
    struct dnn_table_source *t = dnn_alloc(sizeof *t);
    int rc;

    t->base.type = &table_type;
    t->path = dnn_strdup(path);
    rc = fill(t, how, side, err);
    if (rc < 0)
        close_table(&t->base);
    else
        *out = &t->base;
    return rc;
}

const struct dnn_importer dnn_importer_csv = {
    .name = "csv",
    .suffixes = ".csv .tsv .csv.gz .tsv.gz",
    .help = "tables with a header line: numbers, class names, paths of image or array "
            "files",
    .labels = true,
    .open = open_table,
};
