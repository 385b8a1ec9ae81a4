/* text.h - growing strings, nearest words, and numbers as people read them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_TEXT_H
#define DNN_BASE_TEXT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* A string that grows.  Start from {0}; text is NULL until something is added. */
struct dnn_buf {
    char *text; /* owned, NUL-terminated */
    size_t len, cap;
};

void dnn_buf_add(struct dnn_buf *buf, const char *fmt, ...) DNN_PRINTF(2, 3);
void dnn_buf_bytes(struct dnn_buf *buf, const void *bytes, size_t len);
void dnn_buf_free(struct dnn_buf *buf);

/* The word of a NULL-ended list that word was probably meant to be, ignoring
 * case, or NULL if none is near enough to suggest. */
const char *dnn_text_nearest(const char *word, const char *const *words);

/* "; did you mean \"x\"?" or "" if nothing is near.  out is returned. */
const char *dnn_text_hint(char *out, size_t size, const char *word,
                          const char *const *words);

/* Whole-text conversions: false if text is not exactly one such number. */
bool dnn_text_int(const char *text, long long *out);
bool dnn_text_real(const char *text, double *out);
/* "512M", "1.5GiB", "80" (bytes); false if it is none. */
bool dnn_text_size(const char *text, unsigned long long *out);

/* Into out, which is returned: "3.1 GiB", "2 m 05 s". */
const char *dnn_text_bytes(char *out, size_t size, double bytes);
const char *dnn_text_seconds(char *out, size_t size, double seconds);

#endif
