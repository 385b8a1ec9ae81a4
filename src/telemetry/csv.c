/* csv.c - metrics.csv, a row per epoch, and steps.csv, a row every n steps.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "telemetry/telemetry_impl.h"

#include "base/file.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct table {
    char *path; /* owned */
    struct dnn_append *file;
    struct dnn_arena *arena;
    char **name; /* owned */
    size_t n, cap;
};

struct csv {
    struct table epochs, steps;
    int64_t every;
};

/* ---- columns ---- */

static void add_name(struct table *t, const char *name)
{
    t->name = dnn_grow(t->name, &t->cap, t->n + 1, sizeof *t->name);
    t->name[t->n++] = dnn_arena_strdup(t->arena, name);
}

/* The column of a name, usually guess; t->n: none. */
static size_t find(const struct table *t, const char *name, size_t guess)
{
    if (guess < t->n && strcmp(t->name[guess], name) == 0) return guess;
    for (size_t k = 0; k < t->n; k++)
        if (strcmp(t->name[k], name) == 0) return k;
    return t->n;
}

/* Add the columns starting at old; they are empty in the existing rows. */
static int widen(struct table *t, size_t old, struct dnn_err *err)
{
    struct dnn_buf out = {0};
    char *text, *end;
    size_t len;

    DNN_TRY(dnn_file_read(t->path, DNN_CSV_LIMIT, &text, &len, err));
    for (char *line = text; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        dnn_buf_bytes(&out, line, (size_t)(end - line));
        for (size_t k = old; k < t->n; k++) {
            dnn_buf_add(&out, ",");
            if (line == text) dnn_buf_csv(&out, t->name[k]);
        }
        dnn_buf_add(&out, "\n");
    }
    dnn_free(text);
    int rc = dnn_file_write(t->path, out.text, out.len, err);
    dnn_buf_free(&out);
    if (rc < 0) return rc;
    /* The file was replaced: open it again. */
    dnn_append_close(t->file);
    t->file = NULL;
    return dnn_append_open(t->path, false, &t->file, err);
}

static int add_columns(struct table *t, const struct dnn_record *r, struct dnn_err *err)
{
    const size_t old = t->n;
    struct dnn_buf header = {0};
    double value;

    for (int i = 0; i < dnn_record_count(r); i++) {
        const char *name = dnn_record_number(r, i, &value);

        if (find(t, name, (size_t)i) == t->n) add_name(t, name);
    }
    if (t->n == old) return 0;
    if (old > 0) return widen(t, old, err);
    for (size_t k = 0; k < t->n; k++) {
        if (k > 0) dnn_buf_add(&header, ",");
        dnn_buf_csv(&header, t->name[k]);
    }
    dnn_buf_add(&header, "\n");
    int rc = dnn_append_add(t->file, header.text, header.len, err);
    dnn_buf_free(&header);
    return rc;
}

static int add_row(struct table *t, const struct dnn_record *r, struct dnn_err *err)
{
    struct dnn_buf line = {0};
    char text[DNN_TEXT_NUMBER];

    DNN_TRY(add_columns(t, r, err));
    double *cell = dnn_alloc(t->n * sizeof *cell), value;
    for (size_t k = 0; k < t->n; k++)
        cell[k] = NAN;
    for (int i = 0; i < dnn_record_count(r); i++) {
        const char *name = dnn_record_number(r, i, &value);

        cell[find(t, name, (size_t)i)] = value;
    }
    for (size_t k = 0; k < t->n; k++)
        dnn_buf_add(&line, "%s%s", k == 0 ? "" : ",",
                    isnan(cell[k]) ? "" : dnn_text_number(text, cell[k]));
    dnn_buf_add(&line, "\n");
    int rc = dnn_append_add(t->file, line.text, line.len, err);
    dnn_buf_free(&line);
    dnn_free(cell);
    return rc;
}

/* ---- resuming ---- */

/* Read the names in the header, and the step of each row. */
static int read_line(void *arg, const char *path, int64_t number, const char *line,
                     int64_t *step, struct dnn_err *err)
{
    struct table *t = arg;
    char *copy = dnn_strdup(line), *at = copy, *field = copy;
    long long value = 0;
    int rc = 1;

    if (number == 1) {
        while ((field = dnn_csv_cut(&at)) != NULL)
            add_name(t, field);
        if (find(t, "step", 2) == t->n)
            rc = dnn_fail(
                err, DNN_EDATA,
                "%s:1: no column \"step\", so the run cannot be resumed; move the file "
                "away",
                path);
    } else {
        for (size_t k = 0; k <= find(t, "step", 2) && field != NULL; k++)
            field = dnn_csv_cut(&at);
        rc = 0;
        if (field == NULL || !dnn_text_int(field, &value))
            rc = dnn_fail(err, DNN_EDATA,
                          "%s:%" PRId64
                          ": no step, so the run cannot be resumed; move the "
                          "file away",
                          path, number);
        *step = value;
    }
    dnn_free(copy);
    return rc;
}

/* ---- the sink ---- */

static int open_table(struct table *t, const struct dnn_telemetry_cfg *cfg,
                      const char *name, struct dnn_err *err)
{
    t->path = dnn_format("%s/%s", cfg->dir, name);
    t->arena = dnn_arena_make();
    if (cfg->resumed_step > 0)
        DNN_TRY(dnn_append_resume(t->path, cfg->resumed_step, read_line, t, err));
    return dnn_append_open(t->path, cfg->resumed_step == 0, &t->file, err);
}

static void close_table(struct table *t)
{
    dnn_append_close(t->file);
    dnn_free(t->path);
    dnn_free(t->name);
    if (t->arena != NULL) dnn_arena_free(t->arena);
}

static bool wanted(const struct dnn_telemetry_cfg *cfg)
{
    return cfg->csv;
}

static void close_csv(void *self)
{
    struct csv *csv = self;

    if (csv == NULL) return;
    close_table(&csv->epochs);
    close_table(&csv->steps);
    dnn_free(csv);
}

static int open_csv(const struct dnn_telemetry_cfg *cfg, void **self,
                    struct dnn_err *err)
{
    struct csv *csv = dnn_alloc(sizeof *csv);

    csv->every = cfg->every;
    int rc = open_table(&csv->epochs, cfg, "metrics.csv", err);
    if (rc == 0 && cfg->every > 0) rc = open_table(&csv->steps, cfg, "steps.csv", err);
    if (rc < 0) {
        close_csv(csv);
        return rc;
    }
    *self = csv;
    return 0;
}

static int write_csv(void *self, const struct dnn_record *r, struct dnn_err *err)
{
    struct csv *csv = self;

    if (!dnn_record_kept(r, csv->every)) return 0;
    return add_row(r->event == DNN_EVENT_EPOCH ? &csv->epochs : &csv->steps, r, err);
}

static int flush_csv(void *self, struct dnn_err *err)
{
    struct csv *csv = self;

    DNN_TRY(dnn_append_flush(csv->epochs.file, err));
    return csv->steps.file == NULL ? 0 : dnn_append_flush(csv->steps.file, err);
}

const struct dnn_sink dnn_sink_csv = {.wanted = wanted,
                                      .open = open_csv,
                                      .write = write_csv,
                                      .flush = flush_csv,
                                      .close = close_csv};
