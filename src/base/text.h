/* text.h - growing strings, UTF-8, similar words, endings, and numbers as text.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_TEXT_H
#define DNN_BASE_TEXT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing string.  Initialize with {0}; text is NULL until something is added. */
struct dnn_buf {
    char *text; /* owned, NUL-terminated */
    size_t len, cap;
};

void dnn_buf_add(struct dnn_buf *buf, const char *fmt, ...) DNN_PRINTF(2, 3);
void dnn_buf_bytes(struct dnn_buf *buf, const void *bytes, size_t len);
/* Add a field of a CSV file, in quotes if it needs them. */
void dnn_buf_csv(struct dnn_buf *buf, const char *field);
void dnn_buf_free(struct dnn_buf *buf);

/* The bytes of the first character of a text, and its code point (code may be NULL); 0:
 * not UTF-8.  Overlong forms and surrogates are not. */
size_t dnn_text_utf8(const char *text, uint32_t *code);

#define DNN_TEXT_REPLACED "\xef\xbf\xbd" /* U+FFFD, for a byte that is not UTF-8 */

/* Whether the complete text is UTF-8. */
bool dnn_text_is_utf8(const char *text);

/* Replace control characters by '?', so that the text can be printed on a terminal.
 * text is returned. */
char *dnn_text_clean(char *text);

/* The most similar word of a NULL-terminated list, ignoring case; NULL if none is
 * similar enough. */
const char *dnn_text_nearest(const char *word, const char *const *words);

/* "; did you mean \"x\"?", or "" if no word is similar.  out is returned. */
const char *dnn_text_hint(char *out, size_t size, const char *word,
                          const char *const *words);

/* Whether text ends with end. */
bool dnn_text_ends(const char *text, const char *end);

/* Parse a number; false if the text is not exactly one number. */
bool dnn_text_int(const char *text, long long *out);
bool dnn_text_real(const char *text, double *out);
/* "512M", "1.5GiB", "80" (bytes); false if it is not a size. */
bool dnn_text_size(const char *text, unsigned long long *out);

/* The shortest text that gives the same number when it is read; out is returned. */
enum { DNN_TEXT_NUMBER = 32 };
const char *dnn_text_number(char out[DNN_TEXT_NUMBER], double value);

enum { DNN_TEXT_COUNT = 32 };
/* Format "25,636,712" into out, which is returned. */
const char *dnn_text_count(char out[DNN_TEXT_COUNT], int64_t n);

/* Format "3.1 GiB" or "2 m 05 s" into out, which is returned. */
const char *dnn_text_bytes(char *out, size_t size, double bytes);
const char *dnn_text_seconds(char *out, size_t size, double seconds);

/* A command line, with quotes where a shell needs them; dnn_free() it. */
char *dnn_text_command(int argc, char **argv);

#endif
