/* json_impl.h - what the files of JSON share.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_JSON_IMPL_H
#define DNN_BASE_JSON_IMPL_H

#include "base/json.h"

#include <yyjson.h>

struct dnn_json {
    char *name;              /* owned                                          */
    char *text;              /* owned: as it was read, for lines and quotes    */
    size_t len;              /* of text                                        */
    yyjson_doc *doc;         /* owned                                          */
    struct dnn_arena *arena; /* owned                                          */
};

/* One token of a text that may even be malformed: commas, colons and blanks are
 * passed over.  False at the end; else [*from, *pos) is the token. */
bool dnn_json_token(const char *text, size_t len, size_t *pos, size_t *from);

/* Why a text is no JSON: false if there is nothing to say against it, else where
 * and what, in words for whoever wrote it. */
bool dnn_json_explain(const char *text, size_t len, size_t *pos, char *words,
                      size_t size);

/* Line and column (in characters) of a place; from 1. */
void dnn_json_locate(const char *text, size_t pos, size_t *line, size_t *column);

#endif
