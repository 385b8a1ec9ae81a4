/* field.h - tables that describe JSON objects.
 *
 * One table per struct gives parsing, types, ranges, defaults, unknown-key
 * errors, the printed struct and the manual.  A table ends with a NULL key:
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

/* What is under a key, and in C at the field's offset. */
enum dnn_ftype {
    DNN_F_INT,     /* int64_t                                                   */
    DNN_F_REAL,    /* double                                                    */
    DNN_F_BOOL,    /* bool                                                      */
    DNN_F_TEXT,    /* const char *; NULL for null, if the default is "null"     */
    DNN_F_ENUM,    /* int: the value of one of choices, whose case is ignored; true
                    * and false are such words, too, where choices have them    */
    DNN_F_INTS,    /* struct dnn_list of int64_t                                */
    DNN_F_REALS,   /* struct dnn_list of double                                 */
    DNN_F_TEXTS,   /* struct dnn_list of const char *                           */
    DNN_F_ENUMS,   /* struct dnn_list of int                                    */
    DNN_F_OBJECT,  /* pointer to a struct that sub describes; NULL for null, if the
                    * default is "null"                                         */
    DNN_F_OBJECTS, /* struct dnn_list of such structs                           */
    DNN_F_IGNORED, /* nothing: any value is accepted and ignored                 */
    DNN_F_NEUTRAL, /* nothing: only null or the default is accepted             */
    DNN_F_OTHER,   /* nothing: the caller reads it with dnn_json_sub()          */
    DNN_F_BYTES,   /* int64_t: a number of bytes or "16GiB"; 0 for null, if the
                    * default is "null", and for 0, if that is the default      */
    DNN_F_JSON     /* const char *: any value, as JSON on one line; NULL for null, if
                    * the default (which is JSON) is "null".  Whoever fills reads it
                    * with dnn_json_sub(), and may leave another text to be printed */
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

/* More about a list or an object. */
struct dnn_sub {
    const struct dnn_field *fields; /* objects: what each holds                  */
    size_t size;                    /* objects: of one struct                    */
    int min, max;                   /* lists: elements; max 0: any number        */
    bool single;                    /* lists: a value alone is a list of one     */
};

struct dnn_field {
    const char *key;
    enum dnn_ftype type;
    size_t offset;   /* where in the struct                                      */
    const char *def; /* as the user would type it (a text or enum without quotes);
                      * NULL: the key must be given                              */
    double min, max; /* numbers only, inclusive; INFINITY for an open end, both 0
                      * for any number                                           */
    const struct dnn_choice *choices; /* enums only, ends with NULL              */
    const char *help;                 /* a few words for the manual              */
    const struct dnn_sub *sub;        /* objects; lists with more to say; or NULL */
};

/* Fill *out from the object obj.  Unknown keys, wrong types, values out of range
 * and missing keys are DNN_ECONFIG, with file, line and path; *out then
 * holds nothing of use.  Lists and sub-structs are made in arena, and texts are
 * copied into it; if it is NULL, the file's own is used and texts stay where they
 * are, so that all lives as long as the file. */
int dnn_field_fill(const struct dnn_jobj *obj, const struct dnn_field *fields,
                   struct dnn_arena *arena, void *out, struct dnn_err *err);

/* The same when several tables share one object, each with its own struct: say,
 * what all optimizers have and what this one has. */
struct dnn_fill {
    const struct dnn_field *fields;
    void *out;
};
int dnn_field_fill_all(const struct dnn_jobj *obj, const struct dnn_fill *fills,
                       int nfills, struct dnn_arena *arena, struct dnn_err *err);

/* Whether a table is sound: no key twice, defaults that its own rules accept,
 * choices and sub-tables where they are needed.  For the tests of its owner. */
int dnn_field_check(const struct dnn_field *fields, struct dnn_err *err);

/* A table as one of Markdown: key (with its path), type, default, range, help. */
void dnn_field_docs(const struct dnn_field *fields, FILE *where);

/* A filled struct as JSON that would fill it again. */
void dnn_field_print(const struct dnn_field *fields, const void *in, FILE *where);

#endif
