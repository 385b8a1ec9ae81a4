/* field_impl.h - internals of field tables.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_FIELD_IMPL_H
#define DNN_BASE_FIELD_IMPL_H

#include "base/field.h"

/* The shortest text that is parsed to x again; out is returned. */
const char *dnn_field_number(char out[32], double x);

/* The type of a list's elements; other types are returned unchanged. */
enum dnn_ftype dnn_field_element(enum dnn_ftype list);

/* Bytes of one element of a list field. */
size_t dnn_field_element_size(const struct dnn_field *f);

/* Whether a default (may be NULL) is this word. */
bool dnn_field_is(const char *def, const char *word);

/* The values of DNN_F_BYTES and DNN_F_JSON. */
int dnn_field_bytes(const struct dnn_field *f, const struct dnn_jobj *at, int64_t *to,
                    struct dnn_err *err);
void dnn_field_json(const struct dnn_jobj *at, struct dnn_arena *arena,
                    const char **to);

/* The word of an enum value in a file, or NULL if it is none. */
const char *dnn_field_word(const struct dnn_field *f, const struct dnn_jobj *at);

/* Fail unless the value is null or the field's default. */
int dnn_field_neutral(const struct dnn_field *f, const struct dnn_jobj *at,
                      struct dnn_err *err);

#endif
