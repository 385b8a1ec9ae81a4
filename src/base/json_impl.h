/* json_impl.h - what the files of JSON share.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_JSON_IMPL_H
#define DNN_BASE_JSON_IMPL_H

#include "base/json.h"

#include <yyjson.h>

/* A part of the text that somebody put there. */
struct dnn_json_origin {
    size_t from, to; /* in the text */
    char *location, *path;
};

struct dnn_json {
    char *name;                     /* owned                                          */
    char *text;                     /* owned: as it was read, for lines and quotes    */
    size_t len;                     /* of text                                        */
    yyjson_doc *doc;                /* owned                                          */
    struct dnn_arena *arena;        /* owned                                          */
    struct dnn_json_origin *origin; /* owned: what dnn_json_set() put there    */
    size_t norigins, origin_cap;
};

/* One token of a text that may even be malformed: commas, colons and blanks are
 * passed over.  False at the end; else [*from, *pos) is the token. */
bool dnn_json_token(const char *text, size_t len, size_t *pos, size_t *from);

/* Why a text is no JSON: false if there is nothing to say against it, else where
 * and what, in words for whoever wrote it. */
bool dnn_json_explain(const char *text, size_t len, size_t *pos, char *words,
                      size_t size);

/* Where a value stands in the text: [*from, *to), of a list only its bracket. */
void dnn_json_place(const struct dnn_json *file, yyjson_val *val, size_t *from,
                    size_t *to);

/* Who put a value there; NULL: it is the file's own. */
const struct dnn_json_origin *dnn_json_origin_of(const struct dnn_jobj *at);

/* Parse file->text; what was parsed before stays if it fails. */
int dnn_json_parse(struct dnn_json *file, struct dnn_err *err);

/* Line and column (in characters) of a place; from 1. */
void dnn_json_locate(const char *text, size_t pos, size_t *line, size_t *column);

#endif
