/* field_more.c - single values: numbers as text, sizes in bytes, JSON, enum words.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/field_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

const char *dnn_field_number(char out[32], double x)
{
    for (int digits = 15; digits <= 17; digits++) {
        double back;

        snprintf(out, 32, "%.*g", digits, x);
        if (dnn_text_real(out, &back) && back == x) break;
    }
    return out;
}

int dnn_field_bytes(const struct dnn_field *f, const struct dnn_jobj *at, int64_t *to,
                    struct dnn_err *err)
{
    bool zero = f->def != NULL && strcmp(f->def, "0") == 0;
    char quote[DNN_JSON_QUOTE];
    unsigned long long bytes;
    const char *text;

    if (dnn_json_type(at) == DNN_J_NUMBER) {
        DNN_TRY(dnn_json_int(at, to, err));
        if (*to > 0 || (*to == 0 && zero)) return 0;
    } else if (dnn_json_type(at) == DNN_J_TEXT) {
        DNN_TRY(dnn_json_string(at, &text, err));
        if (dnn_text_size(text, &bytes) && bytes > 0 && bytes <= INT64_MAX) {
            *to = (int64_t)bytes;
            return 0;
        }
    }
    return dnn_json_fail(at, err, "must be a size such as \"16GiB\", not %s",
                         dnn_json_quote(quote, at));
}

void dnn_field_json(const struct dnn_jobj *at, struct dnn_arena *arena, const char **to)
{
    char *text = dnn_json_compact(at);

    *to = dnn_arena_strdup(arena, text);
    dnn_free(text);
}

const char *dnn_field_word(const struct dnn_field *f, const struct dnn_jobj *at)
{
    const char *word;
    bool yes;

    if (dnn_json_type(at) == DNN_J_TEXT && dnn_json_string(at, &word, NULL) == 0)
        return word;
    if (dnn_json_type(at) != DNN_J_BOOL || dnn_json_bool(at, &yes, NULL) < 0)
        return NULL;
    for (int i = 0; f->choices[i].name != NULL; i++)
        if (strcmp(f->choices[i].name, yes ? "true" : "false") == 0)
            return f->choices[i].name;
    return NULL;
}
