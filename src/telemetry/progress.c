/* progress.c - progress on stderr: a bar on a terminal, lines in a log file.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "telemetry/telemetry_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct meter {
    FILE *where;
    struct dnn_progress_how how;
    double interval;
    bool line, silent, shown;
    double last;           /* time of the last output                               */
    bool started;          /* true after the first record                           */
    double start;          /* time of the first record */
    double start_fraction; /* fraction of the run done at this time */
    char validation[128];  /* validation metrics of the last epoch                  */
};

static double now(const struct meter *m)
{
    return m->how.now == NULL ? dnn_clock_now() : m->how.now(m->how.arg);
}

/* ---- text ---- */

static void add_values(struct dnn_buf *out, const struct dnn_record *r)
{
    for (int i = 0; i < r->n; i++)
        if (r->value[i].main)
            dnn_buf_add(out, "%s%s %.4g", out->len == 0 ? "" : ", ", r->value[i].name,
                        r->value[i].value);
    if (r->event == DNN_EVENT_STEP && !isnan(r->grad_norm))
        dnn_buf_add(out, "%s|g| %.4g", out->len == 0 ? "" : ", ", r->grad_norm);
}

static void add_speed(struct dnn_buf *out, const struct dnn_record *r)
{
    const double rate = r->samples_per_second;

    if (rate > 0)
        dnn_buf_add(out, rate < 100 ? "%s%.1f samples/s" : "%s%.0f samples/s",
                    out->len == 0 ? "" : ", ", rate);
    if (r->data >= 0 && r->compute >= 0 && r->comm >= 0 &&
        r->data + r->compute + r->comm > 0)
        dnn_buf_add(out, "%sdata %.0f %%, compute %.0f %%, comm %.0f %%",
                    out->len == 0 ? "" : ", ", 100 * r->data, 100 * r->compute,
                    100 * r->comm);
}

/* The fraction of the run that is done; an evaluation is the end of its epoch. */
static double fraction_done(const struct dnn_record *r)
{
    double done = (double)r->epoch;

    if (r->event == DNN_EVENT_STEP && r->batches > 0)
        done += (double)r->batch / (double)r->batches - 1;
    return r->epochs > 0 ? done / (double)r->epochs : 1;
}

/* Add the remaining time, estimated from the speed of this process only, not from
 * before a restart. */
static void add_remaining(struct dnn_buf *out, const struct meter *m,
                          const struct dnn_record *r, double t)
{
    const double done = fraction_done(r) - m->start_fraction,
                 remaining = 1 - fraction_done(r);
    char text[32];

    if (!(done > 0) || !(remaining > 0) || !(t > m->start)) return;
    dnn_buf_add(out, "%s%s left", out->len == 0 ? "" : ", ",
                dnn_text_seconds(text, sizeof text, (t - m->start) / done * remaining));
}

/* ---- output on a terminal ---- */

static int width_of(const struct meter *m)
{
    struct winsize size;

    if (m->how.width > 0) return m->how.width;
    if (ioctl(fileno(m->where), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

static void hide(void *self)
{
    struct meter *m = self;

    if (!m->shown) return;
    fputs("\r\033[K", m->where);
    fflush(m->where);
    m->shown = false;
}

/* Store the validation metrics, which are shown during the next epoch. */
static void save_validation(struct meter *m, const struct dnn_record *r)
{
    struct dnn_buf body = {0};

    for (int i = 0; i < r->n; i++)
        if (r->value[i].main && strncmp(r->value[i].name, "val_", 4) == 0)
            dnn_buf_add(&body, ", %s %.4g", r->value[i].name, r->value[i].value);
    snprintf(m->validation, sizeof m->validation, "%s", body.len == 0 ? "" : body.text);
    dnn_buf_free(&body);
}

/* Draw the bar in the space next to the text; text that does not fit is cut. */
static void draw(struct meter *m, const struct dnn_record *r, double t)
{
    enum { MIN_BAR = 8, MAX_BAR = 30 };
    struct dnn_buf line = {0}, body = {0};
    const int width = width_of(m) - 1; /* some terminals wrap at the last column */
    int full = r->batches <= 0          ? 0
               : r->batch >= r->batches ? 100
                                        : (int)(100 * r->batch / r->batches);

    add_values(&body, r);
    add_remaining(&body, m, r, t);
    add_speed(&body, r);
    dnn_buf_add(&line, "%s %" PRId64 "/%" PRId64 " ",
                r->event == DNN_EVENT_STEP ? "epoch" : "evaluating epoch", r->epoch,
                r->epochs);
    if ((int)(line.len + body.len + strlen(m->validation)) + MIN_BAR + 10 <= width)
        dnn_buf_add(&body, "%s", m->validation);
    int bar = width - (int)line.len - (int)body.len - 10;
    bar = bar > MAX_BAR ? MAX_BAR : bar < MIN_BAR ? MIN_BAR : bar;
    dnn_buf_add(&line, "[");
    for (int i = 0; i < bar; i++)
        dnn_buf_add(&line, "%c", i < bar * full / 100 ? '#' : '-');
    dnn_buf_add(&line, "] %3d %% %s", full, body.text == NULL ? "" : body.text);
    fprintf(m->where, "\r%.*s\033[K", width, line.text);
    fflush(m->where);
    m->shown = true;
    m->last = t;
    dnn_buf_free(&line);
    dnn_buf_free(&body);
}

/* ---- output as lines ---- */

static void print_line(struct meter *m, const char *head, const struct dnn_buf *body)
{
    hide(m);
    fprintf(m->where, "%s: %s\n", head, body->text == NULL ? "done" : body->text);
    fflush(m->where);
}

static void print_step(struct meter *m, const struct dnn_record *r, double t)
{
    struct dnn_buf body = {0}, head = {0};

    dnn_buf_add(&head, "%sepoch %" PRId64 "/%" PRId64 ", batch %" PRId64 "/%" PRId64,
                r->event == DNN_EVENT_STEP ? "" : "evaluating ", r->epoch, r->epochs,
                r->batch, r->batches);
    add_values(&body, r);
    add_speed(&body, r);
    add_remaining(&body, m, r, t);
    if (body.len == 0 && r->batches > 0)
        dnn_buf_add(&body, "%" PRId64 " %%", 100 * r->batch / r->batches);
    print_line(m, head.text, &body);
    m->last = t;
    dnn_buf_free(&head);
    dnn_buf_free(&body);
}

/* Also printed on a terminal. */
static void print_epoch(struct meter *m, const struct dnn_record *r, double t)
{
    struct dnn_buf body = {0}, head = {0};

    dnn_buf_add(&head, "epoch %" PRId64 "/%" PRId64, r->epoch, r->epochs);
    add_values(&body, r);
    add_speed(&body, r);
    add_remaining(&body, m, r, t);
    print_line(m, head.text, &body);
    save_validation(m, r);
    m->last = t;
    dnn_buf_free(&head);
    dnn_buf_free(&body);
}

static void print_end(struct meter *m, const struct dnn_record *r)
{
    struct dnn_buf body = {0};
    char text[32];

    dnn_buf_add(&body, "%" PRId64 " epochs, %" PRId64 " steps in %s", r->epoch, r->step,
                dnn_text_seconds(text, sizeof text, r->seconds));
    if (r->samples_per_second > 0)
        dnn_buf_add(&body, ", %.1f samples/s", r->samples_per_second);
    print_line(m, "trained", &body);
    dnn_buf_free(&body);
}

/* ---- the sink ---- */

static int write_meter(void *self, const struct dnn_record *r, struct dnn_err *err)
{
    struct meter *m = self;
    const double t = now(m);

    (void)err;
    if (m->silent) return 0;
    if (!m->started) {
        m->started = true;
        m->start = m->last = t;
        m->start_fraction = fraction_done(r);
        if (m->line) m->last -= 1; /* draw it immediately */
    }
    if (r->event == DNN_EVENT_EPOCH)
        print_epoch(m, r, t);
    else if (r->event == DNN_EVENT_END)
        print_end(m, r);
    else if (m->line && (t - m->last >= 0.1 || !m->shown))
        draw(m, r, t);
    else if (!m->line && t - m->last >= m->interval)
        print_step(m, r, t);
    return 0;
}

static bool wanted(const struct dnn_telemetry_cfg *cfg)
{
    return cfg->progress;
}

static bool is_terminal(FILE *where)
{
    const char *term = getenv("TERM");

    return isatty(fileno(where)) && term != NULL && strcmp(term, "dumb") != 0;
}

static int open_meter(const struct dnn_telemetry_cfg *cfg, void **self,
                      struct dnn_err *err)
{
    struct meter *m = dnn_alloc(sizeof *m);

    (void)err;
    if (cfg->how != NULL) m->how = *cfg->how;
    m->where = m->how.where == NULL ? stderr : m->how.where;
    m->interval = cfg->interval > 0 ? cfg->interval : 10;
    m->line = m->how.form == DNN_METER_LINE ||
              (m->how.form == DNN_METER_AUTO && is_terminal(m->where));
    m->silent = !dnn_log_enabled(DNN_INFO, "telemetry");
    *self = m;
    return 0;
}

static void close_meter(void *self)
{
    if (self == NULL) return;
    hide(self);
    dnn_free(self);
}

const struct dnn_sink dnn_sink_progress = {.wanted = wanted,
                                           .open = open_meter,
                                           .write = write_meter,
                                           .hide = hide,
                                           .close = close_meter};
