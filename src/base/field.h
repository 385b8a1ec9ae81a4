/* field.h - tables that describe JSON objects.
 *
 * One table per struct is used to parse it (types, ranges, defaults, unknown keys),
 * to print it and to document it.  A table ends with a NULL key:
 *
 *   #define AT(f) offsetof(struct cfg, f)
 *   static const struct dnn_field fields[] = {
 *       {"type", DNN_F_ENUM, AT(kind), NULL, 0, 0, kinds, "update rule", NULL},
 *       {"rate", DNN_F_REAL, AT(rate), "0.1", 0, 10, NULL, "step size", NULL},
 *       {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
 *   };
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_FIELD_H
#define DNN_BASE_FIELD_H

#include "base/choice.h"
#include "base/err.h"
#include "base/json.h"

#include <stdint.h>
#include <stdio.h>

/* The JSON type of a value, and the C type at the field's offset. */
enum dnn_ftype {
    DNN_F_INT,     /* int64_t                                                   */
    DNN_F_REAL,    /* double                                                    */
    DNN_F_BOOL,    /* bool                                                      */
    DNN_F_TEXT,    /* const char *; NULL for null, if the default is "null"     */
    DNN_F_ENUM,    /* int: the value of one of choices, ignoring case; also true and
                    * false, if choices has these words                         */
    DNN_F_INTS,    /* struct dnn_list of int64_t                                */
    DNN_F_REALS,   /* struct dnn_list of double                                 */
    DNN_F_TEXTS,   /* struct dnn_list of const char *                           */
    DNN_F_ENUMS,   /* struct dnn_list of int                                    */
    DNN_F_OBJECT,  /* pointer to a struct described by sub; NULL for null, if the
                    * default is "null"                                         */
    DNN_F_OBJECTS, /* struct dnn_list of such structs                           */
    DNN_F_IGNORED, /* no C value: any value is accepted and ignored             */
    DNN_F_NEUTRAL, /* no C value: only null or the default is accepted          */
    DNN_F_OTHER,   /* no C value: the caller reads it with dnn_json_sub()       */
    DNN_F_BYTES,   /* int64_t: a number of bytes or "16GiB"; null becomes 0 if the
                    * default is "null"; 0 is allowed if the default is "0"     */
    DNN_F_JSON     /* const char *: any value, as JSON on one line; NULL for null, if
                    * the default (which is JSON) is "null".  The caller parses it
                    * with dnn_json_sub() and may replace the text to be printed */
};

struct dnn_list {
    int64_t count;
    union {
        const int64_t *ints;
        const double *reals;
        const char *const *texts;
        const int *enums;
        const void *objects;
    };
};

/* Details of a list or an object. */
struct dnn_sub {
    const struct dnn_field *fields; /* objects: their table                      */
    size_t size;                    /* objects: bytes of one struct              */
    int min, max;                   /* lists: number of elements; max 0: any     */
    bool single;                    /* lists: a single value is a list of one    */
};

struct dnn_field {
    const char *key;
    enum dnn_ftype type;
    size_t offset;   /* where in the struct                                      */
    const char *def; /* as JSON, but a string or enum without quotes;
                      * NULL: the key must be given                              */
    double min, max; /* numbers only, inclusive; INFINITY for an open end, both 0
                      * for any number                                           */
    const struct dnn_choice *choices; /* enums only, ends with NULL              */
    const char *help;                 /* short description for the manual        */
    const struct dnn_sub *sub;        /* objects, lists with details; or NULL    */
};

/* Fill *out from the object obj.  Unknown keys, wrong types, values out of range
 * and missing keys are DNN_ECONFIG, with file, line and path; the content of *out is
 * then undefined.  Lists, sub-structs and copies of strings are allocated in arena.
 * If it is NULL, the file's arena is used, strings are not copied, and everything
 * lives as long as the file. */
int dnn_field_fill(const struct dnn_jobj *obj, const struct dnn_field *fields,
                   struct dnn_arena *arena, void *out, struct dnn_err *err);

/* The same if several tables share one object, each with its own struct: for example
 * the keys of all optimizers and those of one optimizer. */
struct dnn_fill {
    const struct dnn_field *fields;
    void *out;
};
int dnn_field_fill_all(const struct dnn_jobj *obj, const struct dnn_fill *fills,
                       int nfills, struct dnn_arena *arena, struct dnn_err *err);

/* Check a table: no duplicate keys, valid defaults, choices and sub-tables where they
 * are needed.  For the unit tests of the component that has the table. */
int dnn_field_check(const struct dnn_field *fields, struct dnn_err *err);

/* Print the table in Markdown: key (with its path), type, default, range, help. */
void dnn_field_docs(const struct dnn_field *fields, FILE *where);

/* Print a filled struct as JSON that dnn_field_fill() can read. */
void dnn_field_print(const struct dnn_field *fields, const void *in, FILE *where);

#endif
