/* base_progress.c - the meter on a terminal (also a real one) and in a log.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/progress.h"
#include "base/log.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static double clock_says;

static double fake_clock(void *arg)
{
    (void)arg;
    return clock_says;
}

/* What is written is collected here. */
static char *out;
static size_t out_len;
static FILE *where;

static struct dnn_progress *begin(int form, int width, int64_t total, const char *unit)
{
    struct dnn_progress_how how = {.width = width, .now = fake_clock};

    how.form = form;
    how.where = where = open_memstream(&out, &out_len);
    clock_says = 1000;
    return dnn_progress_start("data", "reading", total, unit, &how);
}

static void is_output(const char *want, const char *what)
{
    fclose(where);
    /* Escapes made visible, so that a difference can be read. */
    char *shown = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&shown, &len);
    for (const char *c = out; *c != '\0'; c++) {
        if (*c == '\033')
            fputs("<ESC>", to);
        else if (*c == '\r')
            fputs("<CR>", to);
        else
            fputc(*c, to);
    }
    fclose(to);
    is_text(shown, want, what);
    free(shown);
    free(out);
}

static void test_line(void)
{
    struct dnn_progress *p = begin(DNN_METER_LINE, 80, 200, "files");

    dnn_progress_at(p, 0);
    clock_says += 0.05;
    dnn_progress_at(p, 1); /* too soon */
    clock_says += 1.95;
    dnn_progress_at(p, 50);
    clock_says += 8;
    dnn_progress_at(p, 199);
    dnn_progress_hide(p);
    dnn_progress_hide(p); /* is hidden already */
    clock_says += 0.01;
    dnn_progress_at(p, 200); /* soon, but nothing is on the screen */
    dnn_progress_stop(p, true);
    is_output("<CR>reading [----------------------------------------]   0 % 0/200 "
              "files<ESC>[K"
              "<CR>reading [########-----------------------]  25 % 50/200 files, 25.0 "
              "files/s, "
              "6.0 s le<ESC>[K",
              "a line on a terminal of 80 columns");
}

static void test_narrow(void)
{
    struct dnn_progress *p = begin(DNN_METER_LINE, 44, 200, "files");

    clock_says += 2;
    dnn_progress_at(p, 50);
    dnn_progress_stop(p, false);
    is_output("", "narrow");
    p = begin(DNN_METER_LINE, 10, 200, "files");
    clock_says += 2;
    dnn_progress_at(p, 50);
    dnn_progress_stop(p, true);
    is_output("", "very narrow");
}

int main(void)
{
    test_line();
    test_narrow();
    return done();
}
