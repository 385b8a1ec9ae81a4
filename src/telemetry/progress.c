/* progress.c - how training goes, on stderr: a bar on a terminal, lines in a log.
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
    double last;         /* of the last drawing or line, on our clock             */
    bool begun;          /* there was a record                                    */
    double begin, share; /* when, and how much of the run was done then           */
    char before[128];    /* how good it was after the last epoch                  */
};

static double now(const struct meter *m)
{
    return m->how.now == NULL ? dnn_clock_now() : m->how.now(m->how.arg);
}

/* ---- words ---- */

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

/* How much of the run is done, 0 to 1.  Evaluation counts as the end of its epoch. */
static double share_of(const struct dnn_record *r)
{
    double done = (double)r->epoch;

    if (r->event == DNN_EVENT_STEP && r->batches > 0)
        done += (double)r->batch / (double)r->batches - 1;
    return r->epochs > 0 ? done / (double)r->epochs : 1;
}

/* By the pace since this process began: earlier parts may have had other machines. */
static void add_left(struct dnn_buf *out, const struct meter *m,
                     const struct dnn_record *r, double t)
{
    const double done = share_of(r) - m->share, left = 1 - share_of(r);
    char text[32];

    if (!(done > 0) || !(left > 0) || !(t > m->begin)) return;
    dnn_buf_add(out, "%s%s left", out->len == 0 ? "" : ", ",
                dnn_text_seconds(text, sizeof text, (t - m->begin) / done * left));
}

/* ---- a terminal ---- */

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

/* What was found out after an epoch stays in sight during the next. */
static void remember(struct meter *m, const struct dnn_record *r)
{
    struct dnn_buf words = {0};

    for (int i = 0; i < r->n; i++)
        if (r->value[i].main && strncmp(r->value[i].name, "val_", 4) == 0)
            dnn_buf_add(&words, ", %s %.4g", r->value[i].name, r->value[i].value);
    snprintf(m->before, sizeof m->before, "%s", words.len == 0 ? "" : words.text);
    dnn_buf_free(&words);
}

/* The bar takes what the words leave; words that do not fit are cut. */
static void draw(struct meter *m, const struct dnn_record *r, double t)
{
    enum { LEAST = 8, MOST = 30 };
    struct dnn_buf line = {0}, words = {0};
    const int room = width_of(m) - 1; /* some terminals wrap at the last column */
    int full = r->batches <= 0          ? 0
               : r->batch >= r->batches ? 100
                                        : (int)(100 * r->batch / r->batches);

    add_values(&words, r);
    add_left(&words, m, r, t);
    add_speed(&words, r);
    dnn_buf_add(&line, "%s %" PRId64 "/%" PRId64 " ",
                r->event == DNN_EVENT_STEP ? "epoch" : "evaluating epoch", r->epoch,
                r->epochs);
    if ((int)(line.len + words.len + strlen(m->before)) + LEAST + 10 <= room)
        dnn_buf_add(&words, "%s", m->before);
    int bar = room - (int)line.len - (int)words.len - 10;
    bar = bar > MOST ? MOST : bar < LEAST ? LEAST : bar;
    dnn_buf_add(&line, "[");
    for (int i = 0; i < bar; i++)
        dnn_buf_add(&line, "%c", i < bar * full / 100 ? '#' : '-');
    dnn_buf_add(&line, "] %3d %% %s", full, words.text == NULL ? "" : words.text);
    fprintf(m->where, "\r%.*s\033[K", room, line.text);
    fflush(m->where);
    m->shown = true;
    m->last = t;
    dnn_buf_free(&line);
    dnn_buf_free(&words);
}

/* ---- a log ---- */

static void say(struct meter *m, const char *head, const struct dnn_buf *words)
{
    hide(m);
    fprintf(m->where, "%s: %s\n", head, words->text == NULL ? "done" : words->text);
    fflush(m->where);
}

static void tell(struct meter *m, const struct dnn_record *r, double t)
{
    struct dnn_buf words = {0}, head = {0};

    dnn_buf_add(&head, "%sepoch %" PRId64 "/%" PRId64 ", batch %" PRId64 "/%" PRId64,
                r->event == DNN_EVENT_STEP ? "" : "evaluating ", r->epoch, r->epochs,
                r->batch, r->batches);
    add_values(&words, r);
    add_speed(&words, r);
    add_left(&words, m, r, t);
    if (words.len == 0 && r->batches > 0)
        dnn_buf_add(&words, "%" PRId64 " %%", 100 * r->batch / r->batches);
    say(m, head.text, &words);
    m->last = t;
    dnn_buf_free(&head);
    dnn_buf_free(&words);
}

/* The end of an epoch stays on the screen, too. */
static void tell_epoch(struct meter *m, const struct dnn_record *r, double t)
{
    struct dnn_buf words = {0}, head = {0};

    dnn_buf_add(&head, "epoch %" PRId64 "/%" PRId64, r->epoch, r->epochs);
    add_values(&words, r);
    add_speed(&words, r);
    add_left(&words, m, r, t);
    say(m, head.text, &words);
    remember(m, r);
    m->last = t;
    dnn_buf_free(&head);
    dnn_buf_free(&words);
}

static void tell_end(struct meter *m, const struct dnn_record *r)
{
    struct dnn_buf words = {0};
    char text[32];

    dnn_buf_add(&words, "%" PRId64 " epochs, %" PRId64 " steps in %s", r->epoch,
                r->step, dnn_text_seconds(text, sizeof text, r->seconds));
    if (r->samples_per_second > 0)
        dnn_buf_add(&words, ", %.1f samples/s", r->samples_per_second);
    say(m, "trained", &words);
    dnn_buf_free(&words);
}

/* ---- the sink ---- */

static int write_meter(void *self, const struct dnn_record *r, struct dnn_err *err)
{
    struct meter *m = self;
    const double t = now(m);

    (void)err;
    if (m->silent) return 0;
    if (!m->begun) {
        m->begun = true;
        m->begin = m->last = t;
        m->share = share_of(r);
        if (m->line) m->last -= 1; /* shown at once */
    }
    if (r->event == DNN_EVENT_EPOCH)
        tell_epoch(m, r, t);
    else if (r->event == DNN_EVENT_END)
        tell_end(m, r);
    else if (m->line && (t - m->last >= 0.1 || !m->shown))
        draw(m, r, t);
    else if (!m->line && t - m->last >= m->interval)
        tell(m, r, t);
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
              (m->how.form == DNN_METER_ASK && is_terminal(m->where));
    m->silent = !dnn_log_wants(DNN_INFO, "telemetry");
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
