/* csv_impl.h - tables: records of a file, and how their columns are used.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_IMPORT_CSV_IMPL_H
#define DNN_IMPORT_CSV_IMPL_H

#include "import/import_impl.h"

enum { DNN_CSV_RECORD = 16 << 20, DNN_CSV_CLASSES = 1 << 16 };

/* ---- csv_record.c: positions and fields of records ---- */

/* A file of records.  Only their positions are kept in memory. */
struct dnn_csv {
    const char *path; /* not owned */
    struct dnn_bytes *bytes;
    char separator;
    int64_t *start; /* offset of each record, header first, and the end of the last */
    size_t n, cap;  /* records */
};

/* The fields of one record, without quotes.  Start from {0}. */
struct dnn_table_record {
    char *text;
    size_t text_cap;
    char **field;
    size_t nfields, field_cap;
};

int dnn_table_open(struct dnn_csv *csv, const char *path, const char *separator,
                   struct dnn_err *err);
void dnn_table_close(struct dnn_csv *csv);
/* Record i; the header is record 0. */
int dnn_table_read(const struct dnn_csv *csv, size_t i, struct dnn_table_record *out,
                   struct dnn_err *err);
void dnn_table_record_free(struct dnn_table_record *record);
/* The line (from 1) in which a record begins. */
int64_t dnn_table_line(const struct dnn_csv *csv, size_t i);

/* ---- csv_columns.c: how the fields of a record are used ---- */

enum dnn_table_use {
    DNN_CSV_UNUSED,
    DNN_CSV_NUMBER, /* an element of a vector                */
    DNN_CSV_CLASS,  /* a label, by number or name            */
    DNN_CSV_OBJECT  /* a path of a file                      */
};

struct dnn_table_field {
    char *name;
    enum dnn_table_use use;
    bool target;
    bool integers;      /* class numbers, not class names                       */
    bool undecided;     /* only integers so far: classes, unless a real follows */
    int column;         /* of the source                                        */
    int64_t index;      /* number: index in the vector                          */
    int64_t max;        /* class numbers: the largest                           */
    const char **names; /* class names, sorted                                  */
    size_t nnames, names_cap;
};

struct dnn_table_fields {
    struct dnn_table_field *field;
    size_t n;
    int group; /* index of the group field; -1: none */
    int first_object;
    struct dnn_arena *arena;
};

/* Determine the use of each field from the header and how. */
int dnn_table_choose(const struct dnn_csv *csv, const struct dnn_import *how,
                     const struct dnn_import_side *side,
                     struct dnn_table_fields *fields, struct dnn_err *err);
/* Use a record to determine the types of fields; invalid values are an error. */
int dnn_table_inspect(const struct dnn_csv *csv, struct dnn_table_fields *fields,
                      size_t i, const struct dnn_table_record *record,
                      struct dnn_err *err);
void dnn_table_fields_free(struct dnn_table_fields *fields);

/* A cell as a number or class; errors name file, line and column. */
int dnn_table_number(const struct dnn_csv *csv, const struct dnn_table_field *field,
                     size_t i, const char *cell, double *out, struct dnn_err *err);
int dnn_table_class(const struct dnn_csv *csv, const struct dnn_table_field *field,
                    size_t i, const char *cell, int64_t *out, struct dnn_err *err);
/* "t.csv:7: column "age": " in front of a message. */
int dnn_table_error_at(const struct dnn_csv *csv, const struct dnn_table_field *field,
                       size_t i, struct dnn_err *err);

/* ---- csv_make.c: a table as a source ---- */

struct dnn_table_source {
    struct dnn_source base;
    struct dnn_import how; /* for the object files: each is one sample */
    struct dnn_csv csv;
    struct dnn_table_fields fields;
    char *path;
    const char **file; /* the table, then every object file */
    size_t nfiles, file_cap;
};

/* The path of the object file that a cell names; the caller owns it. */
char *dnn_table_object_path(const struct dnn_table_source *t, const char *cell);
int dnn_table_object(const struct dnn_table_source *t, const struct dnn_table_field *f,
                     const char *cell, struct dnn_source **out, struct dnn_err *err);
/* Make the columns, after all records were inspected. */
int dnn_table_columns(struct dnn_table_source *t, struct dnn_err *err);

#endif
