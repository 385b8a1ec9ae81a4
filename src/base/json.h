/* json.h - JSON files, with line numbers for error messages.
 *
 * A value that is wrong is reported with its file, line and path, as in
 * "job.json:4: optimizer.milestones[2]: must be ...".  Strict JSON: no comments,
 * no trailing commas, no duplicate keys in an object, no NUL in a string.
 *
 * Invalid files are DNN_ECONFIG, read errors are DNN_EIO.  All of this is Local.
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
    DNN_JSON_DEPTH = 100,       /* max. levels of nesting: functions may recurse */
    DNN_JSON_LIMIT = 256 << 20, /* max. bytes of a file                          */
};

struct yyjson_val; /* of the parser; opaque outside src/base */
struct dnn_json;
struct dnn_arena;
struct dnn_buf;

/* A value and its parents, for messages: lives on the caller's stack, and must not
 * outlive its parent or the file. */
struct dnn_jobj {
    const struct dnn_json *file;
    const struct dnn_jobj *up; /* the object or list that contains it; or NULL  */
    const char *name;          /* its key, or NULL                              */
    struct yyjson_val *key;    /* its key, or NULL                              */
    struct yyjson_val *val;    /* NULL: absent                                  */
    size_t index;              /* of the element or member                      */
};

/* Read and parse a file.  The caller owns *out: dnn_json_free(). */
int dnn_json_read(const char *path, struct dnn_json **out, struct dnn_err *err);
/* The same for a text in memory, which is copied; name is used in messages. */
int dnn_json_text(const char *name, const char *text, size_t len, struct dnn_json **out,
                  struct dnn_err *err);
void dnn_json_free(struct dnn_json *file); /* NULL is fine */

/* The file's name, and an arena that lives as long as the file. */
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

/* The value of an object's key name (which must outlive the result); absent if there
 * is no such key, or if at is not an object. */
struct dnn_jobj dnn_json_sub(const struct dnn_jobj *at, const char *name);

/* The elements of a list or the members of an object, in the file's order:
 * for (it = dnn_json_first(&obj); it.val != NULL; it = dnn_json_next(&it))
 * Other types have none. */
struct dnn_jobj dnn_json_first(const struct dnn_jobj *at);
struct dnn_jobj dnn_json_next(const struct dnn_jobj *it);
size_t dnn_json_count(const struct dnn_jobj *at);

/* ---- values; a wrong type is an error with the expected type ---- */

/* 3.0 and 1e3 are accepted; 1.5 and values outside int64_t are not. */
int dnn_json_int(const struct dnn_jobj *at, int64_t *out, struct dnn_err *err);
int dnn_json_real(const struct dnn_jobj *at, double *out, struct dnn_err *err);
int dnn_json_bool(const struct dnn_jobj *at, bool *out, struct dnn_err *err);
/* The string lives as long as the file. */
int dnn_json_string(const struct dnn_jobj *at, const char **out, struct dnn_err *err);

/* The value as JSON on one line, as in the file except for white space; NULL if it is
 * absent.  Owned by the caller: dnn_free(). */
char *dnn_json_compact(const struct dnn_jobj *at);

/* Append a JSON string: in quotes, with escapes.  Bytes that are not UTF-8 become
 * U+FFFD. */
void dnn_json_quoted(struct dnn_buf *out, const char *text);

/* ---- changing ---- */

/* One step of a path: the member under key or, if that is NULL, an element. */
struct dnn_jstep {
    const char *key;
    size_t index;
};

/* Set the value (valid JSON) at a path of n steps.  Missing objects and lists on the
 * path are created, and an element may be appended to a list.  Line numbers of other
 * values do not change.  Messages about the new value begin with location instead of
 * file and line, and omit path (as the user wrote it).  No dnn_jobj of the file may be
 * in use. */
int dnn_json_set(struct dnn_json *file, const struct dnn_jstep *step, int n,
                 const char *json, const char *location, const char *path,
                 struct dnn_err *err);

/* ---- error locations ---- */

/* The line of a member's key, or of an element; from 1. */
size_t dnn_json_line(const struct dnn_jobj *at);

/* Fail with DNN_ECONFIG; the message is prefixed with "file:line: a.b[2].c: ".  An
 * absent value has the location of the object it should be in; a value from
 * dnn_json_set() has the location given there. */
int dnn_json_fail(const struct dnn_jobj *at, struct dnn_err *err, const char *fmt, ...)
    DNN_PRINTF(3, 4);

/* The value as in the file, shortened, or "a list", "an object"; into out, which is
 * returned.  For messages that end with "not ...". */
enum { DNN_JSON_QUOTE = 64 };
const char *dnn_json_quote(char out[DNN_JSON_QUOTE], const struct dnn_jobj *at);

#endif
