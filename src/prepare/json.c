/* json.c - writes values of a JSON file as compact JSON.
 *
 * For the record in the dataset, and so that configurations that differ only in layout
 * have the same fingerprint.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

void dnn_prepare_quote(struct dnn_buf *out, const char *text)
{
    dnn_buf_add(out, "\"");
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            dnn_buf_add(out, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            dnn_buf_add(out, "\\u%04x", (unsigned char)*c);
        else
            dnn_buf_bytes(out, c, 1);
    }
    dnn_buf_add(out, "\"");
}

/* The shortest text that reads back as the same number. */
static void add_number(struct dnn_buf *out, const struct dnn_jobj *at)
{
    int64_t whole;
    double real = 0;
    char text[32];

    if (dnn_json_int(at, &whole, NULL) == 0) {
        dnn_buf_add(out, "%" PRId64, whole);
        return;
    }
    dnn_json_real(at, &real, NULL);
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, real);
        if (strtod(text, NULL) == real) break;
    }
    dnn_buf_add(out, "%s", text);
}

static void add_members(struct dnn_buf *out, const struct dnn_jobj *at)
{
    bool list = dnn_json_type(at) == DNN_J_LIST;
    const char *comma = "";

    dnn_buf_add(out, list ? "[" : "{");
    for (struct dnn_jobj it = dnn_json_first(at); it.val != NULL;
         it = dnn_json_next(&it)) {
        dnn_buf_add(out, "%s", comma);
        comma = ", ";
        if (!list) {
            dnn_prepare_quote(out, it.name);
            dnn_buf_add(out, ": ");
        }
        dnn_prepare_json(out, &it);
    }
    dnn_buf_add(out, list ? "]" : "}");
}

void dnn_prepare_json(struct dnn_buf *out, const struct dnn_jobj *at)
{
    const char *text = "";
    bool yes = false;

    switch (dnn_json_type(at)) {
    case DNN_J_BOOL:
        dnn_json_bool(at, &yes, NULL);
        dnn_buf_add(out, yes ? "true" : "false");
        return;
    case DNN_J_NUMBER:
        add_number(out, at);
        return;
    case DNN_J_TEXT:
        dnn_json_string(at, &text, NULL);
        dnn_prepare_quote(out, text);
        return;
    case DNN_J_LIST:
    case DNN_J_OBJECT:
        add_members(out, at);
        return;
    default:
        dnn_buf_add(out, "null");
    }
}
