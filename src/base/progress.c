/* progress.c - progress of long work.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/progress.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct dnn_progress {
    const char *title, *unit;
    int64_t total, done;
    struct dnn_progress_how how;
    bool silent;
    bool shown;        /* the line is on the terminal                */
    double start;      /* time                                       */
    double last;       /* time of the last line or update            */
    double gap;        /* seconds until the next line of a log       */
    int64_t last_done; /* value of done at the last line             */
};

static double now(const struct dnn_progress *p)
{
    return p->how.now == NULL ? dnn_clock_now() : p->how.now(p->how.arg);
}

static bool is_terminal(FILE *where)
{
    const char *term = getenv("TERM");

    return isatty(fileno(where)) && term != NULL && strcmp(term, "dumb") != 0;
}

struct dnn_progress *dnn_progress_start(const char *component, const char *title,
                                        int64_t total, const char *unit,
                                        const struct dnn_progress_how *how)
{
    struct dnn_progress *p = dnn_alloc(sizeof *p);

    if (how != NULL) p->how = *how;
    if (p->how.where == NULL) p->how.where = stderr;
    if (p->how.interval == 0) p->how.interval = 30;
    if (p->how.form == DNN_METER_AUTO)
        p->how.form = is_terminal(p->how.where) ? DNN_METER_LINE : DNN_METER_LOG;
    p->title = title;
    p->unit = unit;
    p->total = total;
    p->silent = !dnn_log_enabled(DNN_INFO, component);
    p->start = p->last = now(p);
    p->gap = p->how.interval;
    return p;
}

/* ---- text ---- */

/* "123/273 files", "1.2 GiB/3.0 GiB" */
static void add_amount(struct dnn_buf *out, const struct dnn_progress *p)
{
    char done[32], total[32];

    if (strcmp(p->unit, "B") == 0) {
        dnn_buf_add(out, "%s", dnn_text_bytes(done, sizeof done, (double)p->done));
        if (p->total > 0)
            dnn_buf_add(out, "/%s",
                        dnn_text_bytes(total, sizeof total, (double)p->total));
        return;
    }
    dnn_buf_add(out, "%" PRId64, p->done);
    if (p->total > 0) dnn_buf_add(out, "/%" PRId64, p->total);
    dnn_buf_add(out, " %s", p->unit);
}

/* ", 12.3 files/s": the average since the start; nothing before the first progress. */
static void add_rate(struct dnn_buf *out, const struct dnn_progress *p, double took)
{
    char bytes[32];

    if (p->done <= 0 || !(took > 0)) return;
    double rate = (double)p->done / took;
    if (strcmp(p->unit, "B") == 0)
        dnn_buf_add(out, ", %s/s", dnn_text_bytes(bytes, sizeof bytes, rate));
    else
        dnn_buf_add(out, rate < 100 ? ", %.1f %s/s" : ", %.0f %s/s", rate, p->unit);
}

static void add_left(struct dnn_buf *out, const struct dnn_progress *p, double took)
{
    char text[32];

    if (p->done <= 0 || p->done >= p->total || !(took > 0)) return;
    double left = took / (double)p->done * (double)(p->total - p->done);
    dnn_buf_add(out, ", %s left", dnn_text_seconds(text, sizeof text, left));
}

/* At most 100, even if more than the total is done. */
static int percent(const struct dnn_progress *p)
{
    if (p->done >= p->total) return 100;
    return p->done <= 0 ? 0 : (int)(100.0 * (double)p->done / (double)p->total);
}

/* ---- a terminal ---- */

static int width_of(const struct dnn_progress *p)
{
    struct winsize size;

    if (p->how.width > 0) return p->how.width;
    /* Each time, because windows are resized. */
    if (ioctl(fileno(p->how.where), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

/* Print at most that many columns of a text, one per character. */
static void put_columns(FILE *where, const char *text, int columns)
{
    for (; *text != '\0'; text++) {
        if ((*text & 0xc0) != 0x80 && columns-- == 0) break;
        fputc(*text, where);
    }
}

static int columns_of(const char *text)
{
    int n = 0;

    for (; *text != '\0'; text++)
        n += (*text & 0xc0) != 0x80;
    return n;
}

/* Draw the line again.  The last column is not used, because some terminals then wrap;
 * the bar fills the space next to the text. */
static void draw(struct dnn_progress *p, double took)
{
    enum { LEAST = 8, MOST = 40 }; /* of the bar */
    FILE *where = p->how.where;
    struct dnn_buf line = {0}, text = {0};
    int columns = width_of(p) - 1;

    add_amount(&text, p);
    add_rate(&text, p, took);
    add_left(&text, p, took);
    dnn_buf_add(&line, "%s ", p->title);
    if (p->total > 0) {
        int bar = columns - columns_of(line.text) - columns_of(text.text) - 9;
        int full = percent(p);

        if (bar > MOST) bar = MOST;
        if (bar >= LEAST) {
            dnn_buf_add(&line, "[");
            for (int i = 0; i < bar; i++)
                dnn_buf_add(&line, "%c", i < bar * full / 100 ? '#' : '-');
            dnn_buf_add(&line, "] ");
        }
        dnn_buf_add(&line, "%3d %% ", full);
    }
    dnn_buf_add(&line, "%s", text.text);
    fputc('\r', where);
    put_columns(where, line.text, columns);
    fputs("\033[K", where); /* clear the rest of an older, longer line */
    fflush(where);
    p->shown = true;
    dnn_buf_free(&line);
    dnn_buf_free(&text);
}

void dnn_progress_hide(struct dnn_progress *p)
{
    if (!p->shown) return;
    fputs("\r\033[K", p->how.where);
    fflush(p->how.where);
    p->shown = false;
}

/* ---- a log ---- */

/* Print a line with one call, so that output of other programs is not mixed in. */
static void print_line(struct dnn_progress *p, const struct dnn_buf *line)
{
    fprintf(p->how.where, "%s: %s\n", p->title, line->text);
    fflush(p->how.where);
}

static void print_progress(struct dnn_progress *p, double took)
{
    struct dnn_buf line = {0};

    if (p->total > 0) dnn_buf_add(&line, "%d %%, ", percent(p));
    add_amount(&line, p);
    add_rate(&line, p, took);
    add_left(&line, p, took);
    print_line(p, &line);
    dnn_buf_free(&line);
}

/* ---- both ---- */

void dnn_progress_at(struct dnn_progress *p, int64_t done)
{
    double t = now(p);

    p->done = done;
    if (p->silent) return;
    if (p->how.form == DNN_METER_LINE) {
        /* A hidden line is drawn again at once. */
        if (t - p->last < 0.1 && p->shown) return;
        draw(p, t - p->start);
        p->last = t;
        return;
    }
    if (t - p->last < p->gap) return;
    if (p->total > 0 && (double)(done - p->last_done) < 0.1 * (double)p->total) return;
    /* dnn_progress_stop() prints the last line. */
    if (p->total > 0 && done >= p->total) return;
    print_progress(p, t - p->start);
    p->last = t;
    p->last_done = done;
    if (p->total <= 0) p->gap = p->gap * 2 < 600 ? p->gap * 2 : 600;
}

void dnn_progress_stop(struct dnn_progress *p, bool finished)
{
    if (p == NULL) return;
    if (!p->silent) {
        struct dnn_buf line = {0};
        double took = now(p) - p->start;
        char time[32];

        dnn_progress_hide(p);
        if (!finished) {
            dnn_buf_add(&line, "stopped at ");
            if (p->total > 0) dnn_buf_add(&line, "%d %%, ", percent(p));
        } else if (p->done >= p->total)
            p->total = 0; /* 273 files, not 273/273 */
        add_amount(&line, p);
        dnn_buf_add(&line, " in %s", dnn_text_seconds(time, sizeof time, took));
        add_rate(&line, p, took);
        print_line(p, &line);
        dnn_buf_free(&line);
    }
    dnn_free(p);
}
