/* csv_read.c - read a table of numbers with a header, as columns.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "telemetry/telemetry_impl.h"

#include "base/file.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct dnn_csv {
    struct dnn_arena *arena;
    char **name; /* owned */
    size_t ncols, cap;
    double *cell; /* owned: by row while the file is read, then by column */
    size_t ncells, cellcap;
    int64_t rows;
};

char *dnn_csv_cut(char **at)
{
    char *field = *at, *to, *from;

    if (field == NULL) return NULL;
    if (field[0] != '"') {
        char *comma = strchr(field, ',');

        if (comma != NULL) *comma = '\0';
        *at = comma == NULL ? NULL : comma + 1;
        return field;
    }
    for (to = field, from = field + 1; *from != '\0'; from++) {
        if (from[0] == '"' && from[1] != '"') break;
        if (from[0] == '"') from++;
        *to++ = *from;
    }
    if (*from == '"') from++;
    char next = *from;
    *to = '\0';
    *at = next == ',' ? from + 1 : NULL;
    return field;
}

static int read_header(struct dnn_csv *csv, const char *path, char *line,
                       struct dnn_err *err)
{
    for (char *field; (field = dnn_csv_cut(&line)) != NULL;) {
        for (size_t k = 0; k < csv->ncols; k++)
            if (strcmp(csv->name[k], field) == 0)
                return dnn_fail(err, DNN_EDATA, "%s:1: column \"%.40s\" occurs twice",
                                path, field);
        csv->name = dnn_grow(csv->name, &csv->cap, csv->ncols + 1, sizeof *csv->name);
        csv->name[csv->ncols++] = dnn_arena_strdup(csv->arena, field);
    }
    return 0;
}

static int read_row(struct dnn_csv *csv, const char *path, char *line,
                    struct dnn_err *err)
{
    size_t n = 0;
    char *field;

    for (; (field = dnn_csv_cut(&line)) != NULL; n++) {
        double value = NAN;

        if (n == csv->ncols) break;
        if (field[0] != '\0' && strcmp(field, "nan") != 0 &&
            strcmp(field, "inf") != 0 && strcmp(field, "-inf") != 0 &&
            !dnn_text_real(field, &value))
            return dnn_fail(err, DNN_EDATA,
                            "%s:%" PRId64
                            ": column \"%s\" has \"%.40s\", which is not a "
                            "number",
                            path, csv->rows + 2, csv->name[n], field);
        if (strcmp(field, "inf") == 0) value = INFINITY;
        if (strcmp(field, "-inf") == 0) value = -INFINITY;
        csv->cell = dnn_grow(csv->cell, &csv->cellcap, csv->ncells + 1, sizeof(double));
        csv->cell[csv->ncells++] = value;
    }
    if (n != csv->ncols || field != NULL)
        return dnn_fail(err, DNN_EDATA,
                        "%s:%" PRId64 ": has %s columns than the header (%zu)", path,
                        csv->rows + 2, field != NULL ? "more" : "fewer", csv->ncols);
    csv->rows++;
    return 0;
}

static int read_lines(struct dnn_csv *csv, const char *path, char *text,
                      struct dnn_err *err)
{
    char *end;

    for (char *line = text; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        if (end > line && end[-1] == '\r') end[-1] = '\0';
        DNN_TRY(line == text ? read_header(csv, path, line, err)
                             : read_row(csv, path, line, err));
    }
    if (csv->ncols == 0)
        return dnn_fail(err, DNN_EDATA, "%s: is empty, a header is expected", path);
    return 0;
}

int dnn_csv_read(const char *path, struct dnn_csv **out, struct dnn_err *err)
{
    char *text;

    DNN_TRY(dnn_file_read_text(path, DNN_CSV_LIMIT, &text, err));
    struct dnn_csv *csv = dnn_alloc(sizeof *csv);
    csv->arena = dnn_arena_make();
    int rc = read_lines(csv, path, text, err);
    dnn_free(text);
    if (rc < 0) {
        dnn_csv_free(csv);
        return rc;
    }
    double *column = dnn_alloc((csv->ncells + 1) * sizeof *column);
    for (size_t i = 0; i < csv->ncells; i++)
        column[i % csv->ncols * (size_t)csv->rows + i / csv->ncols] = csv->cell[i];
    dnn_free(csv->cell);
    csv->cell = column;
    *out = csv;
    return 0;
}

void dnn_csv_free(struct dnn_csv *csv)
{
    if (csv == NULL) return;
    dnn_arena_free(csv->arena);
    dnn_free(csv->name);
    dnn_free(csv->cell);
    dnn_free(csv);
}

int64_t dnn_csv_rows(const struct dnn_csv *csv)
{
    return csv->rows;
}

int dnn_csv_columns(const struct dnn_csv *csv)
{
    return (int)csv->ncols;
}

const char *dnn_csv_name(const struct dnn_csv *csv, int column)
{
    return column < 0 || column >= (int)csv->ncols ? NULL : csv->name[column];
}

int dnn_csv_column(const struct dnn_csv *csv, const char *name, const double **out)
{
    for (size_t k = 0; k < csv->ncols; k++)
        if (strcmp(csv->name[k], name) == 0) {
            *out = csv->cell + k * (size_t)csv->rows;
            return (int)k;
        }
    *out = NULL;
    return -1;
}
