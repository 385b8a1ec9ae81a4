/* json.h - JSON files that know their lines.
 *
 * A value that is wrong is reported with its file, line and path, as in
 * "job.json:4: optimizer.milestones[2]: must be ...".  Strict JSON: no comments,
 * no trailing commas, no key twice in an object, no NUL in a text.
 *
 * What is malformed is DNN_ECONFIG, what cannot be read DNN_EIO.  All is Local.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_JSON_H
#define DNN_BASE_JSON_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DNN_JSON_DEPTH = 100,       /* levels of nesting, so that walks may recurse */
    DNN_JSON_LIMIT = 256 << 20, /* bytes of a file                              */
};

struct yyjson_val; /* the parser's own; nobody outside looks into it */
struct dnn_json;
struct dnn_arena;
struct dnn_buf;

/* A value, and how we got to it: lives on the reader's stack, and must not
 * outlive the one it came from or the file. */
struct dnn_jobj {
    const struct dnn_json *file;
    const struct dnn_jobj *up; /* what it is in; NULL at the top                */
    const char *name;          /* the key it is under; NULL: none               */
    struct yyjson_val *key;    /* that key; NULL: none                          */
    struct yyjson_val *val;    /* NULL: absent                                  */
    size_t index;              /* which element or member it is                 */
};

/* Read and parse a file.  The caller owns *out: dnn_json_free(). */
int dnn_json_read(const char *path, struct dnn_json **out, struct dnn_err *err);
/* The same for a text in memory, which is copied; name stands in messages. */
int dnn_json_text(const char *name, const char *text, size_t len, struct dnn_json **out,
                  struct dnn_err *err);
void dnn_json_free(struct dnn_json *file); /* NULL is fine */

/* The file's name, and memory that lives as long as the file does. */
const char *dnn_json_name(const struct dnn_json *file);
struct dnn_arena *dnn_json_arena(const struct dnn_json *file);

/* ---- walking ---- */

enum dnn_jtype {
    DNN_J_ABSENT,
    DNN_J_NULL,
    DNN_J_BOOL,
    DNN_J_NUMBER,
    DNN_J_TEXT,
    DNN_J_LIST,
    DNN_J_OBJECT
};

struct dnn_jobj dnn_json_top(const struct dnn_json *file);
enum dnn_jtype dnn_json_type(const struct dnn_jobj *at);

/* What is under an object's key name (which must outlive it); absent if there
 * is no such key, or if at is no object. */
struct dnn_jobj dnn_json_sub(const struct dnn_jobj *at, const char *name);

/* The elements of a list or the members of an object, in the file's order:
 * for (it = dnn_json_first(&obj); it.val != NULL; it = dnn_json_next(&it))
 * Of anything else there are none. */
struct dnn_jobj dnn_json_first(const struct dnn_jobj *at);
struct dnn_jobj dnn_json_next(const struct dnn_jobj *it);
size_t dnn_json_count(const struct dnn_jobj *at);

/* ---- values; the wrong type is an error that says what was expected ---- */

/* Also 3.0 and 1e3 are whole numbers; 1.5 and what int64_t cannot hold are not. */
int dnn_json_int(const struct dnn_jobj *at, int64_t *out, struct dnn_err *err);
int dnn_json_real(const struct dnn_jobj *at, double *out, struct dnn_err *err);
int dnn_json_bool(const struct dnn_jobj *at, bool *out, struct dnn_err *err);
/* Lives as long as the file. */
int dnn_json_string(const struct dnn_jobj *at, const char **out, struct dnn_err *err);

/* The value as JSON on one line, as the user wrote it but for blanks; the caller's,
 * dnn_free().  NULL of what is absent. */
char *dnn_json_compact(const struct dnn_jobj *at);

/* Add a text as JSON has it, in quotes. */
void dnn_json_quoted(struct dnn_buf *out, const char *text);

/* ---- changing ---- */

/* One step of a path: the member under key or, if that is NULL, an element. */
struct dnn_jstep {
    const char *key;
    size_t index;
};

/* Put a value (JSON, well-formed) at the end of a path of n steps, in place of what is
 * there; objects and lists that are missing on the way are made, and an element may be
 * added behind the last.  Lines of all else stay what they were.  Messages about the
 * value begin with location instead of file and line, and with path, as the user wrote
 * it, left out.  No dnn_jobj of the file may be in use. */
int dnn_json_set(struct dnn_json *file, const struct dnn_jstep *step, int n,
                 const char *json, const char *location, const char *path,
                 struct dnn_err *err);

/* ---- error locations ---- */

/* The line of a member's key, or of an element; from 1. */
size_t dnn_json_line(const struct dnn_jobj *at);

/* Fail with DNN_ECONFIG and "file:line: a.b[2].c: " in front.  The location of an
 * absent value is that of the object it should be in; of a value from dnn_json_set(),
 * the location given there. */
int dnn_json_fail(const struct dnn_jobj *at, struct dnn_err *err, const char *fmt, ...)
    DNN_PRINTF(3, 4);

/* The value as the user wrote it, shortened, or "a list", "an object"; into out,
 * which is returned.  For messages that end in "not ...". */
enum { DNN_JSON_QUOTE = 64 };
const char *dnn_json_quote(char out[DNN_JSON_QUOTE], const struct dnn_jobj *at);

#endif
