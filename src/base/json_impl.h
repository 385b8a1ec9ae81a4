/* json_impl.h - internals of JSON files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_JSON_IMPL_H
#define DNN_BASE_JSON_IMPL_H

#include "base/json.h"

#include <yyjson.h>

/* A part of the text that was set by dnn_json_set(). */
struct dnn_json_origin {
    size_t from, to; /* in the text */
    char *location, *path;
};

struct dnn_json {
    char *name;                     /* owned                                          */
    char *text;                     /* owned: for line numbers and quotes             */
    size_t len;                     /* of text                                        */
    yyjson_doc *doc;                /* owned                                          */
    struct dnn_arena *arena;        /* owned                                          */
    struct dnn_json_origin *origin; /* owned: parts set by dnn_json_set()             */
    size_t norigins, origin_cap;
};

/* The next token of a text, which may be invalid JSON: skips commas, colons and white
 * space.  False at the end; else [*from, *pos) is the token. */
bool dnn_json_token(const char *text, size_t len, size_t *pos, size_t *from);

/* Explain why a text is not valid JSON: position and message.  False if no error is
 * found. */
bool dnn_json_explain(const char *text, size_t len, size_t *pos, char *message,
                      size_t size);

/* Position of a value in the text: [*from, *to); of a list or object only its opening
 * bracket. */
void dnn_json_span(const struct dnn_json *file, yyjson_val *val, size_t *from,
                   size_t *to);

/* The origin of a value; NULL: the file. */
const struct dnn_json_origin *dnn_json_origin_of(const struct dnn_jobj *at);

/* Parse and check file->text, into file->doc. */
int dnn_json_parse(struct dnn_json *file, struct dnn_err *err);

/* Line and column (in characters) of a position; from 1. */
void dnn_json_locate(const char *text, size_t pos, size_t *line, size_t *column);

#endif
