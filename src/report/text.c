/* text.c - text, numbers and bytes in HTML.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "report/report_impl.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* The length in bytes of the character that starts here; 0: not UTF-8, or a control
 * character or noncharacter, which are not allowed in HTML. */
static size_t character(const char *at)
{
    uint32_t code;
    size_t n = dnn_text_utf8(at, &code);

    if (n == 0 || (code < ' ' && code != '\n' && code != '\t') ||
        (code >= 127 && code < 160) || (code & 0xfffe) == 0xfffe)
        return 0;
    return n;
}

void dnn_html_text(struct dnn_buf *out, const char *text)
{
    while (*text != '\0') {
        size_t n = character(text);

        switch (*text) {
        case '&':
            dnn_buf_add(out, "&amp;");
            break;
        case '<':
            dnn_buf_add(out, "&lt;");
            break;
        case '>':
            dnn_buf_add(out, "&gt;");
            break;
        case '"':
            dnn_buf_add(out, "&quot;");
            break;
        case '\'':
            dnn_buf_add(out, "&#39;");
            break;
        default:
            dnn_buf_bytes(out, n > 0 ? text : DNN_TEXT_REPLACED, n > 0 ? n : 3);
        }
        text += n > 0 ? n : 1;
    }
}

void dnn_html_number(struct dnn_buf *out, double value)
{
    if (isnan(value))
        dnn_buf_add(out, "&#8211;");
    else if (value == rint(value) && fabs(value) < 1e9)
        dnn_buf_add(out, "%.0f", value);
    else if (fabs(value) >= 1e-3 && fabs(value) < 1e5)
        dnn_buf_add(out, "%.4g", value);
    else
        dnn_buf_add(out, "%.3g", value);
}

void dnn_html_base64(struct dnn_buf *out, const void *bytes, size_t len)
{
    static const char digit[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *at = bytes;

    for (; len > 0; at += 3, len = len > 3 ? len - 3 : 0) {
        unsigned b1 = len > 1 ? at[1] : 0, b2 = len > 2 ? at[2] : 0;
        char four[4] = {digit[at[0] >> 2], digit[(at[0] & 3) << 4 | b1 >> 4],
                        len > 1 ? digit[(b1 & 15) << 2 | b2 >> 6] : '=',
                        len > 2 ? digit[b2 & 63] : '='};

        dnn_buf_bytes(out, four, 4);
    }
}
