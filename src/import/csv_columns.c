/* csv_columns.c - the use and type of the columns of a table.
 *
 * Inputs are numbers.  Targets are numbers or classes as their kind specifies, else as
 * the first record suggests: a string is a class name, an integer a class number
 * (unless a later record contains a real number or a negative one), a real number a
 * number.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/csv_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int dnn_table_error_at(const struct dnn_csv *csv, const struct dnn_table_field *field,
                       size_t i, struct dnn_err *err)
{
    return dnn_prefix(err, "%s:%" PRId64 ": column \"%s\": ", csv->path,
                      dnn_table_line(csv, i), field->name);
}

/* ---- cells ---- */

enum { NUMBER_BYTES = 64 }; /* maximum bytes of a number */

/* A cell without surrounding blanks. */
static const char *trim(const char *cell, char out[NUMBER_BYTES])
{
    size_t len;

    cell += strspn(cell, " \t");
    len = strlen(cell);
    while (len > 0 && (cell[len - 1] == ' ' || cell[len - 1] == '\t'))
        len--;
    if (len >= NUMBER_BYTES) return cell;
    memcpy(out, cell, len);
    out[len] = '\0';
    return out;
}

static bool is_int(const char *cell, long long *out)
{
    char text[NUMBER_BYTES];

    return dnn_text_int(trim(cell, text), out);
}

static bool is_real(const char *cell, double *out)
{
    char text[NUMBER_BYTES];

    return dnn_text_real(trim(cell, text), out); /* rejects nan and inf */
}

int dnn_table_number(const struct dnn_csv *csv, const struct dnn_table_field *field,
                     size_t i, const char *cell, double *out, struct dnn_err *err)
{
    if (cell[strspn(cell, " \t")] == '\0')
        dnn_fail(err, DNN_EDATA, "the value is missing");
    else if (!is_real(cell, out))
        dnn_fail(err, DNN_EDATA, "\"%.60s\" is not a number", cell);
    else
        return 0;
    dnn_table_error_at(csv, field, i, err);
    return DNN_EDATA;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int dnn_table_class(const struct dnn_csv *csv, const struct dnn_table_field *field,
                    size_t i, const char *cell, int64_t *out, struct dnn_err *err)
{
    long long number;

    if (cell[0] == '\0') {
        dnn_fail(err, DNN_EDATA, "the value is missing");
    } else if (!field->integers) {
        const char **at = field->nnames == 0
                              ? NULL
                              : bsearch(&cell, field->names, field->nnames,
                                        sizeof *field->names, by_text);

        if (at != NULL) {
            *out = at - field->names;
            return 0;
        }
        dnn_fail(err, DNN_EDATA,
                 "\"%.60s\" is a new class; the table changed while it was read", cell);
    } else if (!is_int(cell, &number)) {
        dnn_fail(err, DNN_EDATA,
                 "\"%.60s\" is not a class number, unlike the other values", cell);
    } else if (number < 0 || number >= DNN_CSV_CLASSES) {
        dnn_fail(err, DNN_EDATA,
                 "%lld is not a class number (0 to %d); for regression targets set "
                 "\"kind\": \"values\"",
                 number, DNN_CSV_CLASSES - 1);
    } else {
        *out = number;
        return 0;
    }
    dnn_table_error_at(csv, field, i, err);
    return DNN_EDATA;
}

/* ---- inspecting records ---- */

static int add_name(struct dnn_table_fields *fields, struct dnn_table_field *f,
                    const char *cell, struct dnn_err *err)
{
    size_t low = 0, high = f->nnames;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(f->names[mid], cell);

        if (order == 0) return 0;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (f->nnames == DNN_CSV_CLASSES)
        return dnn_fail(err, DNN_EDATA,
                        "more than %d different texts; too many for class names",
                        DNN_CSV_CLASSES);
    f->names = dnn_grow(f->names, &f->names_cap, f->nnames + 1, sizeof *f->names);
    memmove(f->names + low + 1, f->names + low, (f->nnames - low) * sizeof *f->names);
    f->names[low] = dnn_arena_strdup(fields->arena, cell);
    f->nnames++;
    return 0;
}

/* From the first record: class numbers or class names; numbers if no kind was given. */
static void guess(struct dnn_table_field *f, const char *cell)
{
    long long number;
    double real;

    f->integers = is_int(cell, &number);
    if (f->undecided && !f->integers && is_real(cell, &real)) f->use = DNN_CSV_NUMBER;
    f->undecided = f->undecided && f->integers;
}

static int inspect_cell(const struct dnn_csv *csv, struct dnn_table_fields *fields,
                        struct dnn_table_field *f, size_t i, const char *cell,
                        struct dnn_err *err)
{
    int64_t class;
    double real;

    if (f->use == DNN_CSV_CLASS && i == 1) guess(f, cell);
    if (f->use == DNN_CSV_CLASS && f->undecided) {
        long long number;

        /* Integers so far; after a negative or real number, all are real numbers. */
        if (is_real(cell, &real) && (!is_int(cell, &number) || number < 0))
            f->use = DNN_CSV_NUMBER;
    }
    switch (f->use) {
    case DNN_CSV_NUMBER:
        return dnn_table_number(csv, f, i, cell, &real, err);
    case DNN_CSV_CLASS:
        if (!f->integers && cell[0] != '\0') {
            if (add_name(fields, f, cell, err) < 0)
                return dnn_table_error_at(csv, f, i, err);
            return 0;
        }
        DNN_TRY(dnn_table_class(csv, f, i, cell, &class, err));
        if (class > f->max) f->max = class;
        return 0;
    case DNN_CSV_OBJECT:
        if (cell[0] != '\0') return 0;
        dnn_fail(err, DNN_EDATA, "the path is missing");
        dnn_table_error_at(csv, f, i, err);
        return DNN_EDATA;
    default:
        return 0;
    }
}

int dnn_table_inspect(const struct dnn_csv *csv, struct dnn_table_fields *fields,
                      size_t i, const struct dnn_table_record *record,
                      struct dnn_err *err)
{
    if (record->nfields != fields->n)
        return dnn_fail(err, DNN_EDATA,
                        "%s:%" PRId64 ": %zu fields, but the header has %zu", csv->path,
                        dnn_table_line(csv, i), record->nfields, fields->n);
    for (size_t k = 0; k < fields->n; k++)
        DNN_TRY(inspect_cell(csv, fields, &fields->field[k], i, record->field[k], err));
    return 0;
}

/* ---- selecting ---- */

static int find_field(const struct dnn_csv *csv, const struct dnn_table_fields *fields,
                      const char *name, struct dnn_table_field **out,
                      struct dnn_err *err)
{
    const char **names;
    char hint[160];

    for (size_t k = 0; k < fields->n; k++)
        if (strcmp(fields->field[k].name, name) == 0) {
            *out = &fields->field[k];
            return 0;
        }
    names = dnn_alloc((fields->n + 1) * sizeof *names);
    for (size_t k = 0; k < fields->n; k++)
        names[k] = fields->field[k].name;
    int rc = dnn_fail(err, DNN_EDATA, "%s:%" PRId64 ": there is no column \"%s\"%s",
                      csv->path, dnn_table_line(csv, 0), name,
                      dnn_text_hint(hint, sizeof hint, name, names));
    dnn_free(names);
    return rc;
}

/* By sorting: some tables have 100 000 columns. */
static int check_unique(const struct dnn_csv *csv,
                        const struct dnn_table_fields *fields, struct dnn_err *err)
{
    const char **name = dnn_alloc((fields->n + 1) * sizeof *name);
    int rc = 0;

    for (size_t k = 0; k < fields->n; k++)
        name[k] = fields->field[k].name;
    qsort(name, fields->n, sizeof *name, by_text);
    for (size_t k = 1; k < fields->n && rc == 0; k++)
        if (strcmp(name[k - 1], name[k]) == 0)
            rc =
                dnn_fail(err, DNN_EDATA, "%s:%" PRId64 ": duplicate column name \"%s\"",
                         csv->path, dnn_table_line(csv, 0), name[k]);
    dnn_free(name);
    return rc;
}

/* Read the header: each column must have a unique name. */
static int read_header(const struct dnn_csv *csv, struct dnn_table_fields *fields,
                       struct dnn_err *err)
{
    struct dnn_table_record record = {0};
    size_t numbers = 0, indices = 0;
    double real;
    int rc = dnn_table_read(csv, 0, &record, err);

    if (rc == 0) {
        fields->n = record.nfields;
        fields->field = dnn_alloc(fields->n * sizeof *fields->field);
    }
    for (size_t k = 0; k < fields->n && rc == 0; k++) {
        char *name = record.field[k];

        name += strspn(name, " ");
        for (size_t len = strlen(name); len > 0 && name[len - 1] == ' ';)
            name[--len] = '\0';
        fields->field[k].name = dnn_arena_strdup(fields->arena, name);
        if (dnn_text_real(name, &real)) {
            numbers++;
            indices += real == (double)k || real == (double)k + 1;
        }
        if (name[0] == '\0' && fields->n > 1)
            rc = dnn_fail(err, DNN_EDATA, "%s:%" PRId64 ": column %zu has no name",
                          csv->path, dnn_table_line(csv, 0), k + 1);
        for (size_t j = 0; j < k && rc == 0; j++)
            if (strcmp(fields->field[j].name, name) == 0)
                rc = dnn_fail(err, DNN_EDATA,
                              "%s:%" PRId64 ": duplicate column name \"%s\"", csv->path,
                              dnn_table_line(csv, 0), name);
    }
    if (rc == 0) rc = check_unique(csv, fields, err);
    if (rc == 0 && numbers == fields->n && indices < fields->n)
        rc = dnn_fail(err, DNN_EDATA,
                      "%s:%" PRId64 ": the first line must contain the column names, "
                      "but it contains only numbers",
                      csv->path, dnn_table_line(csv, 0));
    dnn_table_record_free(&record);
    return rc;
}

/* A target is a class or a number as its kind specifies; else it is detected. */
static void use_target(struct dnn_table_field *f, int kind)
{
    f->target = true;
    if (f->use == DNN_CSV_OBJECT) return;
    f->use = kind == DNN_KIND_VALUES ? DNN_CSV_NUMBER : DNN_CSV_CLASS;
    f->undecided = kind < 0;
}

/* Inputs are columns of the input table, and so are targets unless they have their own
 * path; objects may be in either table. */
static int choose_listed(const struct dnn_csv *csv, const struct dnn_import *how,
                         bool as_target, struct dnn_table_fields *fields,
                         struct dnn_err *err)
{
    struct dnn_table_field *f;

    for (int64_t i = 0; i < how->objects.count; i++) {
        int rc = find_field(csv, fields, how->objects.texts[i], &f, err);

        if (rc < 0 && how->target.path == NULL) return rc;
        if (rc == 0) f->use = DNN_CSV_OBJECT;
    }
    for (int64_t i = 0; i < how->targets.count; i++) {
        if (!as_target && how->target.path != NULL) break;
        DNN_TRY(find_field(csv, fields, how->targets.texts[i], &f, err));
        use_target(f, how->target.kind);
    }
    for (int64_t i = 0; i < how->inputs.count && !as_target; i++) {
        DNN_TRY(find_field(csv, fields, how->inputs.texts[i], &f, err));
        if (f->target)
            return dnn_fail(err, DNN_ECONFIG,
                            "%s: column \"%s\" cannot be both input and target",
                            csv->path, f->name);
        if (f->use == DNN_CSV_UNUSED) f->use = DNN_CSV_NUMBER;
    }
    return 0;
}

int dnn_table_choose(const struct dnn_csv *csv, const struct dnn_import *how,
                     const struct dnn_import_side *side,
                     struct dnn_table_fields *fields, struct dnn_err *err)
{
    bool as_target = side == &how->target;

    fields->arena = dnn_arena_make();
    fields->group = fields->first_object = -1;
    DNN_TRY(read_header(csv, fields, err));
    DNN_TRY(choose_listed(csv, how, as_target, fields, err));
    for (size_t k = 0; k < fields->n; k++) {
        struct dnn_table_field *f = &fields->field[k];

        if (how->group != NULL && strcmp(how->group, f->name) == 0)
            fields->group = (int)k;
        if (as_target && !f->target) {
            /* In the target table, columns that are not targets are not used. */
            if (how->targets.count == 0 && (int)k != fields->group)
                use_target(f, side->kind);
            else
                f->use = DNN_CSV_UNUSED;
        } else if (!as_target && f->use == DNN_CSV_UNUSED && how->inputs.count == 0 &&
                   (int)k != fields->group) {
            f->use = DNN_CSV_NUMBER;
        }
        if (f->use == DNN_CSV_OBJECT && fields->first_object < 0)
            fields->first_object = (int)k;
    }
    return 0;
}

void dnn_table_fields_free(struct dnn_table_fields *fields)
{
    for (size_t k = 0; k < fields->n && fields->field != NULL; k++)
        dnn_free(fields->field[k].names);
    dnn_free(fields->field);
    dnn_arena_free(fields->arena);
}
