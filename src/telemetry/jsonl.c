/* jsonl.c - records as JSON, one per line: metrics.jsonl, and stdout for pipes.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "telemetry/telemetry_impl.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <time.h>

struct jsonl {
    struct dnn_append *file;
    int64_t every;
};

/* Write a quoted text.  Names have no control characters. */
static void add_text(struct dnn_buf *out, const char *text)
{
    dnn_buf_add(out, "\"");
    for (; *text != '\0'; text++)
        dnn_buf_add(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    dnn_buf_add(out, "\"");
}

static int write_jsonl(void *self, const struct dnn_record *r, struct dnn_err *err)
{
    struct jsonl *j = self;
    struct dnn_buf line = {0};
    char text[DNN_TEXT_NUMBER], when[DNN_CLOCK_TEXT];
    double value;

    if (!dnn_record_kept(r, j->every)) return 0;
    dnn_buf_add(&line, "{\"event\": \"%s\", \"time\": \"%s\"",
                r->event == DNN_EVENT_EPOCH ? "epoch" : "step",
                dnn_clock_utc(when, sizeof when, time(NULL)));
    for (int i = 0; i < dnn_record_count(r); i++) {
        const char *name = dnn_record_number(r, i, &value);

        dnn_buf_add(&line, ", ");
        add_text(&line, name);
        dnn_buf_add(&line, ": %s",
                    isfinite(value) ? dnn_text_number(text, value) : "null");
    }
    dnn_buf_add(&line, "}\n");
    int rc = dnn_append_add(j->file, line.text, line.len, err);
    dnn_buf_free(&line);
    return rc;
}

static int read_step(void *arg, const char *path, int64_t number, const char *line,
                     int64_t *step, struct dnn_err *err)
{
    struct dnn_json *json = NULL;
    struct dnn_err ignored = {0};
    size_t len = 0;

    (void)arg;
    while (line[len] != '\0')
        len++;
    int rc = dnn_json_text("line", line, len, &json, &ignored);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(json), at = dnn_json_sub(&top, "step");

        rc = dnn_json_int(&at, step, &ignored);
    }
    dnn_json_free(json);
    if (rc == 0) return 0;
    return dnn_fail(err, DNN_EDATA,
                    "%s:%" PRId64 ": no step, so the run cannot be resumed; move the "
                    "file away",
                    path, number);
}

static bool wanted(const struct dnn_telemetry_cfg *cfg)
{
    return cfg->jsonl;
}

static bool wanted_stdout(const struct dnn_telemetry_cfg *cfg)
{
    return cfg->json_to_stdout;
}

static int make_sink(const struct dnn_telemetry_cfg *cfg, struct dnn_append *file,
                     void **self)
{
    struct jsonl *j = dnn_alloc(sizeof *j);

    j->file = file;
    j->every = cfg->every;
    *self = j;
    return 0;
}

static int open_jsonl(const struct dnn_telemetry_cfg *cfg, void **self,
                      struct dnn_err *err)
{
    char *path = dnn_format("%s/metrics.jsonl", cfg->dir);
    struct dnn_append *file = NULL;
    int rc = 0;

    if (cfg->resumed_step > 0)
        rc = dnn_append_resume(path, cfg->resumed_step, read_step, NULL, err);
    if (rc == 0) rc = dnn_append_open(path, cfg->resumed_step == 0, &file, err);
    dnn_free(path);
    return rc < 0 ? rc : make_sink(cfg, file, self);
}

static int open_stdout(const struct dnn_telemetry_cfg *cfg, void **self,
                       struct dnn_err *err)
{
    struct dnn_append *file;

    DNN_TRY(dnn_append_stdout(&file, err));
    return make_sink(cfg, file, self);
}

static int write_stdout(void *self, const struct dnn_record *r, struct dnn_err *err)
{
    fflush(stdout); /* keep the order with text already printed */
    return write_jsonl(self, r, err);
}

static int flush_jsonl(void *self, struct dnn_err *err)
{
    struct jsonl *j = self;

    return dnn_append_flush(j->file, err);
}

static void close_jsonl(void *self)
{
    struct jsonl *j = self;

    if (j == NULL) return;
    dnn_append_close(j->file);
    dnn_free(j);
}

const struct dnn_sink dnn_sink_jsonl = {.wanted = wanted,
                                        .open = open_jsonl,
                                        .write = write_jsonl,
                                        .flush = flush_jsonl,
                                        .close = close_jsonl};
const struct dnn_sink dnn_sink_stdout = {.wanted = wanted_stdout,
                                         .open = open_stdout,
                                         .write = write_stdout,
                                         .close = close_jsonl};
