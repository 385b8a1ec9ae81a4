/* json_explain.c - explain why a text is not valid JSON.
 *
 * The messages of the parser are too short for users.  This scans the text again
 * and detects common mistakes: comments, Python literals, single quotes, missing
 * and trailing commas.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/json_impl.h"

#include "base/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What is allowed next. */
enum state { VALUE, VALUE_OR_END, KEY, KEY_OR_END, COLON, COMMA_OR_END };

struct scan {
    const char *text;
    size_t len, pos;
    int depth;
    size_t open[DNN_JSON_DEPTH]; /* positions of open brackets     */
    size_t comma;                /* position of the last comma     */
    size_t at;                   /* position of the error          */
    char *message;               /* size bytes                     */
    size_t size;
};

static bool fault(struct scan *s, size_t at, const char *fmt, ...) DNN_PRINTF(3, 4);
static bool fault(struct scan *s, size_t at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(s->message, s->size, fmt, ap);
    va_end(ap);
    s->at = at;
    return true;
}

/* The character at pos; NUL past the end (there is none inside the text). */
static int peek(const struct scan *s, size_t pos)
{
    return pos < s->len ? (unsigned char)s->text[pos] : '\0';
}

/* A character in quotes, or the code of an unprintable byte. */
static const char *char_text(char out[16], int c)
{
    if (c > ' ' && c < 127)
        snprintf(out, 16, "\"%c\"", c);
    else
        snprintf(out, 16, "the byte 0x%02x", (unsigned)c);
    return out;
}

/* ---- strings ---- */

/* The four digits of a \u escape at pos, or -1. */
static long hex4(const struct scan *s, size_t pos)
{
    long value = 0;

    for (size_t i = 0; i < 4; i++) {
        int c = peek(s, pos + i);

        if (!isxdigit(c)) return -1;
        value = value * 16 + (isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
    }
    return value;
}

/* Parse the escape at s->pos. */
static bool escape(struct scan *s)
{
    size_t start = s->pos;
    int c = peek(s, start + 1);
    char name[16];

    s->pos += 2;
    if (c != '\0' && strchr("\"\\/bfnrt", c) != NULL) return false;
    if (c != 'u')
        return fault(
            s, start,
            "invalid escape: a backslash before %s; write \\\\ for a backslash",
            char_text(name, c));
    long unit = hex4(s, s->pos);
    if (unit < 0)
        return fault(s, start, "\\u must be followed by four hexadecimal digits");
    s->pos += 4;
    if (unit < 0xd800 || unit > 0xdfff) return false;
    long other = peek(s, s->pos) == '\\' && peek(s, s->pos + 1) == 'u'
                     ? hex4(s, s->pos + 2)
                     : -1;
    if (unit > 0xdbff || other < 0xdc00 || other > 0xdfff)
        return fault(s, start,
                     "unpaired surrogate: \\uD800 to \\uDBFF and "
                     "\\uDC00 to \\uDFFF come in pairs");
    s->pos += 6;
    return false;
}

static bool string(struct scan *s)
{
    size_t start = s->pos++;

    for (;;) {
        int c = peek(s, s->pos);
        size_t n;

        if (c == '"') {
            s->pos++;
            return false;
        }
        if (s->pos >= s->len || c == '\n' || c == '\r')
            return fault(s, start, "the string that begins here has no closing quote");
        if (c == '\t')
            return fault(s, s->pos, "a tab in a string must be written as \\t");
        if (c < ' ')
            return fault(
                s, s->pos,
                "the control character 0x%02x in a string must be written as \\u%04x",
                (unsigned)c, (unsigned)c);
        if (c == '\\') {
            if (escape(s)) return true;
        } else if ((n = dnn_text_utf8(s->text + s->pos, NULL)) == 0)
            return fault(s, s->pos, "not valid UTF-8: the byte 0x%02x", (unsigned)c);
        else
            s->pos += n;
    }
}

/* ---- numbers and literals ---- */

static bool digits(struct scan *s)
{
    size_t start = s->pos;

    while (isdigit(peek(s, s->pos)))
        s->pos++;
    return s->pos > start;
}

static size_t word_at(const struct scan *s, size_t pos)
{
    size_t n = 0;

    while (isalnum(peek(s, pos + n)) || peek(s, pos + n) == '_')
        n++;
    return n < 30 ? n : 30;
}

static bool number(struct scan *s)
{
    size_t start = s->pos;

    if (peek(s, s->pos) == '-') s->pos++;
    size_t first = s->pos;
    if (!digits(s)) return fault(s, start, "a digit is missing after the minus sign");
    if (peek(s, first) == '0' && tolower(peek(s, s->pos)) == 'x')
        return fault(s, start, "hexadecimal numbers are not JSON");
    if (peek(s, first) == '0' && s->pos > first + 1)
        return fault(s, start, "a number must not have leading zeros");
    if (peek(s, s->pos) == '.') {
        s->pos++;
        if (!digits(s))
            return fault(s, start, "a digit is missing after the decimal point");
    }
    if (tolower(peek(s, s->pos)) == 'e') {
        s->pos++;
        if (peek(s, s->pos) == '+' || peek(s, s->pos) == '-') s->pos++;
        if (!digits(s)) return fault(s, start, "a digit is missing in the exponent");
    }
    size_t n = word_at(s, s->pos);
    if (n > 0)
        return fault(s, start, "unexpected \"%.*s\" after a number", (int)n,
                     s->text + s->pos);
    return false;
}

static bool is_word(const char *word, size_t len, const char *const *list)
{
    for (; *list != NULL; list++)
        if (strlen(*list) == len && strncmp(*list, word, len) == 0) return true;
    return false;
}

static bool word(struct scan *s)
{
    static const char *const right[] = {"true", "false", "null", NULL};
    static const char *const infinite[] = {"NaN", "nan", "Infinity",
                                           "inf", "Inf", NULL};
    static const char *const other[][2] = {
        {"True",      "true" },
        {"False",     "false"},
        {"None",      "null" },
        {"TRUE",      "true" },
        {"FALSE",     "false"},
        {"NULL",      "null" },
        {"undefined", "null" },
        {"nil",       "null" },
    };
    const char *at = s->text + s->pos;
    size_t n = word_at(s, s->pos);

    if (is_word(at, n, right)) {
        s->pos += n;
        return false;
    }
    if (is_word(at, n, infinite))
        return fault(s, s->pos, "%.*s is not a number in JSON", (int)n, at);
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        if (strlen(other[i][0]) == n && strncmp(other[i][0], at, n) == 0)
            return fault(s, s->pos, "write %s, not %s", other[i][1], other[i][0]);
    return fault(s, s->pos, "%.*s is not valid JSON; strings need double quotes",
                 (int)n, at);
}

/* ---- structure ---- */

/* Errors that are possible in every state. */
static bool common(struct scan *s, int c)
{
    if (c == '/' || c == '#')
        return fault(s, s->pos, "comments are not allowed in JSON");
    if (c == '\'')
        return fault(s, s->pos, "strings need double quotes, not single quotes");
    return false;
}

static bool close_bracket(struct scan *s, int c, enum state *state)
{
    size_t line, column, open = s->depth > 0 ? s->open[s->depth - 1] : 0;

    if (s->depth == 0) return fault(s, s->pos, "unmatched \"%c\"", c);
    if ((s->text[open] == '{') != (c == '}')) {
        dnn_json_locate(s->text, open, &line, &column);
        return fault(s, s->pos, "\"%c\" does not match the \"%c\" in line %zu", c,
                     s->text[open], line);
    }
    s->depth--;
    s->pos++;
    *state = COMMA_OR_END;
    return false;
}

static bool value(struct scan *s, int c, enum state *state)
{
    char name[16];

    if (c == '{' || c == '[') {
        if (s->depth == DNN_JSON_DEPTH) return fault(s, s->pos, "nested too deep");
        s->open[s->depth++] = s->pos++;
        *state = c == '{' ? KEY_OR_END : VALUE_OR_END;
        return false;
    }
    bool ends = c == ']' || c == '}';
    if (ends && *state == VALUE_OR_END) return close_bracket(s, c, state);
    if (ends && s->depth > 0 && s->text[s->open[s->depth - 1]] == '[' && c == ']')
        return fault(s, s->comma, "trailing comma is not allowed");
    if (ends || c == ',')
        return fault(s, s->pos, "a value is missing before \"%c\"", c);
    if (common(s, c)) return true;
    if (c == '+') return fault(s, s->pos, "a number must not begin with a plus sign");
    if (c == '.')
        return fault(s, s->pos, "a number needs a digit before the decimal point");
    *state = COMMA_OR_END;
    if (c == '"') return string(s);
    if (c == '-' || isdigit(c)) return number(s);
    if (isalpha(c) || c == '_') return word(s);
    return fault(s, s->pos, "a value cannot begin with %s", char_text(name, c));
}

static bool key(struct scan *s, int c, enum state *state)
{
    char name[16];

    if (c == '}' && *state == KEY)
        return fault(s, s->comma, "trailing comma is not allowed");
    if (c == '}') return close_bracket(s, c, state);
    if (common(s, c)) return true;
    *state = COLON;
    if (c == '"') return string(s);
    size_t n = word_at(s, s->pos);
    if (n > 0)
        return fault(s, s->pos, "the key %.*s is not in double quotes", (int)n,
                     s->text + s->pos);
    return fault(s, s->pos, "a key in double quotes is expected here, not %s",
                 char_text(name, c));
}

static bool comma(struct scan *s, int c, enum state *state)
{
    if (common(s, c)) return true;
    if (s->depth == 0)
        return fault(s, s->pos,
                     "unexpected text after the end; a file contains one value");
    bool list = s->text[s->open[s->depth - 1]] == '[';
    if (c == ']' || c == '}') return close_bracket(s, c, state);
    if (c == ':' && list)
        return fault(s, s->pos, "a list has no keys; use { } instead of [ ]");
    if (c != ',') return fault(s, s->pos, "a comma is missing before this");
    s->comma = s->pos++;
    *state = list ? VALUE : KEY;
    return false;
}

/* The text ends too early. */
static bool too_short(struct scan *s)
{
    size_t end = s->len, line, column;

    while (end > 0 && isspace(peek(s, end - 1)))
        end--;
    if (s->depth == 0) return fault(s, end, "unexpected end: a value is missing");
    size_t open = s->open[s->depth - 1];
    dnn_json_locate(s->text, open, &line, &column);
    return fault(s, end, "unexpected end: the \"%c\" in line %zu is not closed",
                 s->text[open], line);
}

static bool scan(struct scan *s)
{
    enum state state = VALUE;
    bool bad = false;

    while (!bad) {
        while (s->pos < s->len && strchr(" \t\r\n", peek(s, s->pos)) != NULL)
            s->pos++;
        if (s->pos == s->len)
            return state == COMMA_OR_END && s->depth == 0 ? false : too_short(s);

        int c = peek(s, s->pos);
        if (state == VALUE || state == VALUE_OR_END)
            bad = value(s, c, &state);
        else if (state == KEY || state == KEY_OR_END)
            bad = key(s, c, &state);
        else if (state == COMMA_OR_END)
            bad = comma(s, c, &state);
        else if (common(s, c))
            bad = true;
        else if (c != ':')
            bad = fault(s, s->pos, "a colon is missing after the key");
        else {
            s->pos++;
            state = VALUE;
        }
    }
    return true;
}

bool dnn_json_explain(const char *text, size_t len, size_t *pos, char *message,
                      size_t size)
{
    struct scan s = {.text = text, .len = len, .message = message, .size = size};

    if (!scan(&s)) return false;
    *pos = s.at;
    return true;
}
