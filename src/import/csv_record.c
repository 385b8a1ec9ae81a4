/* csv_record.c - records of a table as in RFC 4180: fields may be quoted, a quote in a
 * quoted field is doubled, and a quoted field may contain line breaks.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/csv_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 20 };

/* ---- positions of records ---- */

struct scan {
    struct dnn_csv *csv;
    int64_t at, start; /* byte offsets: current, and start of the record       */
    bool quoted;       /* in a quoted field                                    */
    bool closed;       /* directly after a quote that may close it             */
    bool begin;        /* at the beginning of a field                          */
    bool blank;        /* the record is empty so far                           */
};

static void add_start(struct dnn_csv *csv, int64_t at)
{
    csv->start = dnn_grow(csv->start, &csv->cap, csv->n + 2, sizeof *csv->start);
    csv->start[csv->n] = at;
}

/* A record ends before s->at; empty lines are skipped. */
static void end_record(struct scan *s)
{
    if (!s->blank) {
        add_start(s->csv, s->start);
        s->csv->n++;
        s->csv->start[s->csv->n] = s->at;
    }
    s->start = s->at;
    s->begin = s->blank = true;
    s->closed = false;
}

static void step(struct scan *s, char c)
{
    s->at++;
    if (s->quoted) {
        if (c == '"') {
            s->quoted = false;
            s->closed = true;
        }
        return;
    }
    if (c == '\n') {
        end_record(s);
        return;
    }
    if (c == '"' && (s->begin || s->closed)) s->quoted = true;
    s->closed = false;
    s->begin = c == s->csv->separator;
    if (c != '\r') s->blank = false;
}

static int too_long(const struct scan *s, struct dnn_err *err)
{
    add_start(s->csv, s->start);
    return dnn_fail(
        err, DNN_EDATA,
        "%s:%" PRId64 ": a record is longer than %d MiB; is a closing quote missing?",
        s->csv->path, dnn_table_line(s->csv, s->csv->n), DNN_CSV_RECORD >> 20);
}

static int find_records(struct dnn_csv *csv, int64_t from, struct dnn_err *err)
{
    struct scan s = {
        .csv = csv, .at = from, .start = from, .begin = true, .blank = true};
    char *chunk = dnn_alloc(CHUNK);
    size_t got = 0;
    int rc;

    do {
        rc = dnn_bytes_some(csv->bytes, s.at, chunk, CHUNK, &got, err);
        for (size_t i = 0; rc == 0 && i < got; i++) {
            step(&s, chunk[i]);
            if (s.at - s.start > DNN_CSV_RECORD) rc = too_long(&s, err);
        }
    } while (rc == 0 && got > 0);
    if (rc == 0 && s.quoted) {
        add_start(csv, s.start);
        rc = dnn_fail(err, DNN_EDATA, "%s:%" PRId64 ": a closing quote is missing",
                      csv->path, dnn_table_line(csv, csv->n));
    }
    if (rc == 0) end_record(&s);
    dnn_free(chunk);
    return rc;
}

int64_t dnn_table_line(const struct dnn_csv *csv, size_t i)
{
    char *chunk = dnn_alloc(CHUNK);
    int64_t at = 0, line = 1;
    size_t got = 1;

    while (at < csv->start[i] && got > 0) {
        int64_t left = csv->start[i] - at;

        if (dnn_bytes_some(csv->bytes, at, chunk, (size_t)(left < CHUNK ? left : CHUNK),
                           &got, NULL) < 0)
            break;
        for (size_t k = 0; k < got; k++)
            line += chunk[k] == '\n';
        at += (int64_t)got;
    }
    dnn_free(chunk);
    return line;
}

/* ---- the separator ---- */

/* The separator that occurs most often in the first line. */
static char guess(const char *line, size_t n)
{
    static const char marks[] = ",;\t";
    size_t most = 0;
    char best = ',';

    for (const char *m = marks; *m != '\0'; m++) {
        bool quoted = false;
        size_t count = 0;

        for (size_t i = 0; i < n && (quoted || line[i] != '\n'); i++) {
            if (line[i] == '"') quoted = !quoted;
            if (line[i] == *m && !quoted) count++;
        }
        if (count > most) {
            most = count;
            best = *m;
        }
    }
    return best;
}

int dnn_table_open(struct dnn_csv *csv, const char *path, const char *separator,
                   struct dnn_err *err)
{
    static const unsigned char mark[] = {0xef, 0xbb, 0xbf}; /* UTF-8 byte order mark */
    size_t n, skip;
    int rc;

    csv->path = path;
    if (separator != NULL &&
        (strlen(separator) != 1 || strchr("\"\r\n", separator[0]) != NULL))
        return dnn_fail(
            err, DNN_ECONFIG,
            "%s: the separator must be one character other than a quote, not \"%s\"",
            path, separator);
    DNN_TRY(dnn_bytes_open(path, &csv->bytes, err));
    char *head = dnn_alloc(CHUNK);
    rc = dnn_bytes_some(csv->bytes, 0, head, CHUNK, &n, err);
    skip = n >= sizeof mark && memcmp(head, mark, sizeof mark) == 0 ? sizeof mark : 0;
    csv->separator = separator != NULL ? separator[0] : guess(head + skip, n - skip);
    dnn_free(head);
    if (rc == 0) rc = find_records(csv, (int64_t)skip, err);
    if (rc == 0 && csv->n == 0)
        rc = dnn_fail(err, DNN_EDATA,
                      "%s: empty file; expected a line with the column names", path);
    return rc;
}

void dnn_table_close(struct dnn_csv *csv)
{
    dnn_bytes_close(csv->bytes);
    dnn_free(csv->start);
}

/* ---- fields ---- */

static void add_field(struct dnn_table_record *r, char *text)
{
    r->field = dnn_grow(r->field, &r->field_cap, r->nfields + 1, sizeof *r->field);
    r->field[r->nfields++] = text;
}

/* Remove the quotes of a field in place; *from moves past the field. */
static void unquote(char **from, const char *end, char *to)
{
    char *at = *from + 1;

    for (; at < end; at++) {
        if (*at == '"') {
            if (at + 1 == end || at[1] != '"') break;
            at++;
        }
        *to++ = *at;
    }
    *to = '\0';
    *from = at + 1; /* the closing quote exists, see find_records() */
}

static const char *split(struct dnn_table_record *r, char *end, char separator)
{
    char *at = r->text;

    r->nfields = 0;
    for (;;) {
        char *field = at;

        if (at < end && *at == '"') {
            unquote(&at, end, field);
            if (at < end && *at != separator)
                return "text after the closing quote of a field";
        } else {
            while (at < end && *at != separator) {
                if (*at == '"') return "there is a quote in a field that is not quoted";
                at++;
            }
        }
        add_field(r, field);
        if (at >= end) break;
        *at++ = '\0';
    }
    *end = '\0';
    return NULL;
}

int dnn_table_read(const struct dnn_csv *csv, size_t i, struct dnn_table_record *out,
                   struct dnn_err *err)
{
    size_t n = (size_t)(csv->start[i + 1] - csv->start[i]);
    const char *why = NULL;

    /* After the record there may be skipped empty lines, whose line ends are removed
     * with that of the record. */
    out->text = dnn_grow(out->text, &out->text_cap, n + 1, 1);
    DNN_TRY(dnn_bytes_read(csv->bytes, csv->start[i], out->text, n, err));
    while (n > 0 && (out->text[n - 1] == '\n' || out->text[n - 1] == '\r'))
        n--;
    if (memchr(out->text, '\0', n) != NULL)
        why = "contains a NUL byte; is this a text file?";
    else
        why = split(out, out->text + n, csv->separator);
    if (why == NULL) return 0;
    return dnn_fail(err, DNN_EDATA, "%s:%" PRId64 ": %s", csv->path,
                    dnn_table_line(csv, i), why);
}

void dnn_table_record_free(struct dnn_table_record *record)
{
    dnn_free(record->text);
    dnn_free(record->field);
}
