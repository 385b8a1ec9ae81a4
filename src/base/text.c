/* text.c - growing strings, similar words, and numbers as text.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/text.h"

#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dnn_buf_bytes(struct dnn_buf *buf, const void *bytes, size_t len)
{
    buf->text = dnn_grow(buf->text, &buf->cap, buf->len + len + 1, 1);
    memcpy(buf->text + buf->len, bytes, len);
    buf->len += len;
    buf->text[buf->len] = '\0';
}

void dnn_buf_add(struct dnn_buf *buf, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int len = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (len < 0) return;
    buf->text = dnn_grow(buf->text, &buf->cap, buf->len + (size_t)len + 1, 1);
    va_start(ap, fmt);
    vsnprintf(buf->text + buf->len, (size_t)len + 1, fmt, ap);
    va_end(ap);
    buf->len += (size_t)len;
}

void dnn_buf_csv(struct dnn_buf *buf, const char *field)
{
    if (field[strcspn(field, ",\"\r\n")] == '\0') {
        dnn_buf_add(buf, "%s", field);
        return;
    }
    dnn_buf_add(buf, "\"");
    for (; *field != '\0'; field++)
        dnn_buf_add(buf, *field == '"' ? "\"\"" : "%c", *field);
    dnn_buf_add(buf, "\"");
}

void dnn_buf_free(struct dnn_buf *buf)
{
    dnn_free(buf->text);
    *buf = (struct dnn_buf){0};
}

size_t dnn_text_utf8(const char *text, uint32_t *code)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t n = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    uint32_t c = n == 1 ? at[0] : at[0] & (0x7fu >> n);

    if ((at[0] >= 0x80 && at[0] < 0xc2) || at[0] > 0xf4) return 0;
    for (size_t i = 1; i < n; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0; /* also at the NUL at the end */
        c = c << 6 | (at[i] & 0x3f);
    }
    if ((n == 3 && c < 0x800) || (n == 4 && c < 0x10000) || c > 0x10ffff ||
        (c >= 0xd800 && c < 0xe000))
        return 0;
    if (code != NULL) *code = c;
    return n;
}

bool dnn_text_is_utf8(const char *text)
{
    for (size_t n; *text != '\0'; text += n)
        if ((n = dnn_text_utf8(text, NULL)) == 0) return false;
    return true;
}

char *dnn_text_clean(char *text)
{
    uint32_t code;

    for (char *c = text; *c != '\0'; c++) {
        if (dnn_text_utf8(c, &code) == 0) continue;
        if (code < ' ' || code == 127) *c = '?';
        if (code >= 128 && code < 160) c[0] = c[1] = '?';
    }
    return text;
}

/* Edit distance (insert, delete, replace, swap neighbours) of a and b, ignoring case;
 * MOST for longer words. */
static int distance(const char *a, const char *b)
{
    enum { MOST = 64 };
    int row[3][MOST + 1];
    int na = (int)strlen(a), nb = (int)strlen(b);

    if (na > MOST || nb > MOST) return MOST;
    for (int j = 0; j <= nb; j++)
        row[0][j] = j;
    for (int i = 1; i <= na; i++) {
        int *cur = row[i % 3], *up = row[(i + 2) % 3], *upup = row[(i + 1) % 3];

        cur[0] = i;
        for (int j = 1; j <= nb; j++) {
            int x = tolower((unsigned char)a[i - 1]);
            int y = tolower((unsigned char)b[j - 1]);
            int best = up[j - 1] + (x != y);

            if (up[j] + 1 < best) best = up[j] + 1;
            if (cur[j - 1] + 1 < best) best = cur[j - 1] + 1;
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                y == tolower((unsigned char)a[i - 2]) && upup[j - 2] + 1 < best)
                best = upup[j - 2] + 1;
            cur[j] = best;
        }
    }
    return row[na % 3][nb];
}

const char *dnn_text_nearest(const char *word, const char *const *words)
{
    const char *best = NULL;
    size_t len = strlen(word);
    /* A third of the letters may differ; one letter of short words. */
    int most = len < 5 ? 1 : (int)(len + 2) / 3;

    for (int i = 0; words[i] != NULL; i++) {
        int d = distance(word, words[i]);

        if (d <= most && d < (int)strlen(words[i])) {
            best = words[i];
            most = d - 1;
        }
    }
    return best;
}

const char *dnn_text_hint(char *out, size_t size, const char *word,
                          const char *const *words)
{
    const char *near = dnn_text_nearest(word, words);

    if (near == NULL)
        snprintf(out, size, "%s", "");
    else
        snprintf(out, size, "; did you mean \"%s\"?", near);
    return out;
}

bool dnn_text_ends(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);

    return n >= k && strcmp(text + n - k, end) == 0;
}

bool dnn_text_int(const char *text, long long *out)
{
    char *end;

    if (*text == '\0' || isspace((unsigned char)*text)) return false;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (*end != '\0' || errno != 0) return false;
    *out = value;
    return true;
}

bool dnn_text_real(const char *text, double *out)
{
    char *end;

    if (*text == '\0' || isspace((unsigned char)*text)) return false;
    double value = strtod(text, &end);
    if (*end != '\0' || !isfinite(value)) return false;
    *out = value;
    return true;
}

bool dnn_text_size(const char *text, unsigned long long *out)
{
    static const char letters[] = "KMGTP";
    char *end;
    double scale = 1;

    if (!isdigit((unsigned char)*text)) return false;
    double value = strtod(text, &end);
    const char *at =
        *end == '\0' ? NULL : strchr(letters, toupper((unsigned char)*end));
    if (at != NULL) {
        for (int i = 0; i <= (int)(at - letters); i++)
            scale *= 1024;
        end++;
        if (*end == 'i') end++;
    }
    if (*end == 'B') end++;
    value *= scale;
    if (*end != '\0' || !(value < 18e18)) return false;
    *out = (unsigned long long)value;
    return true;
}

const char *dnn_text_number(char out[DNN_TEXT_NUMBER], double value)
{
    if (fabs(value) < 1e15 && value == rint(value)) {
        snprintf(out, DNN_TEXT_NUMBER, "%.0f", value == 0 ? 0.0 : value);
        return out;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(out, DNN_TEXT_NUMBER, "%.*g", digits, value);
        if (!(strtod(out, NULL) != value)) break;
    }
    return out;
}

const char *dnn_text_count(char out[DNN_TEXT_COUNT], int64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRId64, n), at = 0;

    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

const char *dnn_text_bytes(char *out, size_t size, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    int u = 0;

    while (bytes >= 1023.95 && u < 5) {
        bytes /= 1024;
        u++;
    }
    snprintf(out, size, u == 0 ? "%.0f %s" : "%.1f %s", bytes, units[u]);
    return out;
}

const char *dnn_text_seconds(char *out, size_t size, double seconds)
{
    if (seconds < 0.9995)
        snprintf(out, size, "%.0f ms", seconds * 1e3);
    else if (seconds < 59.95)
        snprintf(out, size, "%.1f s", seconds);
    else {
        long whole = lround(seconds);

        if (whole < 3600)
            snprintf(out, size, "%ld m %02ld s", whole / 60, whole % 60);
        else
            snprintf(out, size, "%ld h %02ld m", whole / 3600, whole % 3600 / 60);
    }
    return out;
}

char *dnn_text_command(int argc, char **argv)
{
    struct dnn_buf out = {0};

    for (int i = 0; i < argc; i++) {
        bool plain =
            argv[i][0] != '\0' &&
            strspn(argv[i], "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                            "0123456789_-+=.,:/@%") == strlen(argv[i]);

        dnn_buf_add(&out, i == 0 ? "" : " ");
        if (!plain) dnn_buf_add(&out, "'");
        for (const char *c = argv[i]; *c != '\0'; c++)
            dnn_buf_add(&out, *c == '\'' ? "'\\''" : "%c", *c);
        if (!plain) dnn_buf_add(&out, "'");
    }
    return out.text;
}
