/* base_progress.c - the progress bar on a terminal (also a pseudo-terminal) and in a
 * log.
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

/* The output is collected here. */
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
    dnn_progress_at(p, 200); /* soon, but nothing is displayed */
    dnn_progress_stop(p, true);
    is_output(
        "<CR>reading [----------------------------------------]   0 % 0/200 "
        "files<ESC>[K"
        "<CR>reading [######------------------]  25 % 50/200 files, 25.0 files/s, 6.0 "
        "s "
        "left<ESC>[K"
        "<CR>reading [######################-]  99 % 199/200 files, 19.9 files/s, 50 "
        "ms "
        "left<ESC>[K"
        "<CR><ESC>[K"
        "<CR>reading [###################################] 100 % 200/200 files, 20.0 "
        "files/s<ESC>[K"
        "<CR><ESC>[Kreading: 200 files in 10.0 s, 20.0 files/s\n",
        "a line on a terminal of 80 columns, drawn, hidden, finished");
}

static void test_narrow(void)
{
    struct dnn_progress *p = begin(DNN_METER_LINE, 44, 200, "files");

    clock_says += 2;
    dnn_progress_at(p, 50);
    dnn_progress_stop(p, false);
    is_output(
        "<CR>reading  25 % 50/200 files, 25.0 files/s, 6<ESC>[K"
        "<CR><ESC>[Kreading: stopped at 25 %, 50/200 files in 2.0 s, 25.0 files/s\n",
        "narrow terminal: no bar; stopped before the end");
    p = begin(DNN_METER_LINE, 10, 200, "\xc3\xa9t\xc3\xa9s");
    clock_says += 2;
    dnn_progress_at(p, 50);
    dnn_progress_stop(p, true);
    is_output(
        "<CR>reading  <ESC>[K<CR><ESC>[Kreading: 50/200 \xc3\xa9t\xc3\xa9s in 2.0 s, "
        "25.0 \xc3\xa9t\xc3\xa9s/s\n",
        "output fits a terminal of 10 columns");
    p = begin(DNN_METER_LINE, 80, 0, "B");
    clock_says += 2;
    dnn_progress_at(p, 3 << 20);
    dnn_progress_stop(p, true);
    is_output(
        "<CR>reading 3.0 MiB, 1.5 MiB/s<ESC>[K<CR><ESC>[Kreading: 3.0 MiB in 2.0 s, "
        "1.5 MiB/s\n",
        "an unknown number of bytes");
    p = begin(DNN_METER_LINE, 40, 10, "steps");
    dnn_progress_at(p, 12);
    dnn_progress_stop(p, true);
    is_output(
        "<CR>reading [###########] 100 % 12/10 steps<ESC>[K<CR><ESC>[Kreading: 12 "
        "steps in "
        "0 ms\n",
        "more than the total, in 0 s");
}

/* The bar is drawn at most ten times a second. */
static void test_throttle(void)
{
    struct dnn_progress *p = begin(DNN_METER_LINE, 80, 100000, "steps");
    int drawn = 0;

    for (int i = 0; i < 10000; i++) {
        clock_says += 0.001;
        dnn_progress_at(p, i);
    }
    fflush(where);
    for (const char *c = out; *c != '\0'; c++)
        drawn += *c == '\r';
    ok(drawn >= 90 && drawn <= 101, "10000 calls in 10 s draw %d times", drawn);
    dnn_progress_stop(p, true);
    fclose(where);
    free(out);
}

/* Ten hours, with an update every second. */
static void test_log(void)
{
    struct dnn_progress *p = begin(DNN_METER_LOG, 0, 36000, "steps");

    for (int i = 1; i <= 36000; i++) {
        clock_says += 1;
        dnn_progress_at(p, i);
    }
    dnn_progress_stop(p, true);
    is_output("reading: 10 %, 3600/36000 steps, 1.0 steps/s, 9 h 00 m left\n"
              "reading: 20 %, 7200/36000 steps, 1.0 steps/s, 8 h 00 m left\n"
              "reading: 30 %, 10800/36000 steps, 1.0 steps/s, 7 h 00 m left\n"
              "reading: 40 %, 14400/36000 steps, 1.0 steps/s, 6 h 00 m left\n"
              "reading: 50 %, 18000/36000 steps, 1.0 steps/s, 5 h 00 m left\n"
              "reading: 60 %, 21600/36000 steps, 1.0 steps/s, 4 h 00 m left\n"
              "reading: 70 %, 25200/36000 steps, 1.0 steps/s, 3 h 00 m left\n"
              "reading: 80 %, 28800/36000 steps, 1.0 steps/s, 2 h 00 m left\n"
              "reading: 90 %, 32400/36000 steps, 1.0 steps/s, 1 h 00 m left\n"
              "reading: 36000 steps in 10 h 00 m, 1.0 steps/s\n",
              "ten hours in a log: a line per tenth");

    p = begin(DNN_METER_LOG, 0, 100, "steps");
    for (int i = 1; i <= 70; i++) {
        clock_says += 1;
        dnn_progress_at(p, i);
    }
    dnn_progress_hide(p);
    dnn_progress_stop(p, false);
    is_output("reading: 30 %, 30/100 steps, 1.0 steps/s, 1 m 10 s left\n"
              "reading: 60 %, 60/100 steps, 1.0 steps/s, 40.0 s left\n"
              "reading: stopped at 70 %, 70/100 steps in 1 m 10 s, 1.0 steps/s\n",
              "a minute in a log: a line per 30 s");

    p = begin(DNN_METER_LOG, 0, 100, "steps");
    for (int i = 1; i <= 100; i++)
        dnn_progress_at(p, i);
    clock_says += 0.2;
    dnn_progress_stop(p, true);
    is_output("reading: 100 steps in 200 ms, 500 steps/s\n",
              "a moment in a log: one line");

    p = begin(DNN_METER_LOG, 0, 0, "B");
    for (int i = 1; i <= 2000; i++) {
        clock_says += 1;
        dnn_progress_at(p, (int64_t)i << 20);
    }
    dnn_progress_stop(p, true);
    is_output("reading: 30.0 MiB, 1.0 MiB/s\n"
              "reading: 90.0 MiB, 1.0 MiB/s\n"
              "reading: 210.0 MiB, 1.0 MiB/s\n"
              "reading: 450.0 MiB, 1.0 MiB/s\n"
              "reading: 930.0 MiB, 1.0 MiB/s\n"
              "reading: 1.5 GiB, 1.0 MiB/s\n"
              "reading: 2.0 GiB in 33 m 20 s, 1.0 MiB/s\n",
              "an unknown amount in a log: less and less often");
}

static void test_silent(void)
{
    struct dnn_err err = {0};

    dnn_log_levels("warn", &err);
    for (int form = DNN_METER_LINE; form <= DNN_METER_LOG; form++) {
        struct dnn_progress *p = begin(form, 80, 10, "steps");

        clock_says += 100;
        dnn_progress_at(p, 5);
        dnn_progress_hide(p);
        dnn_progress_stop(p, true);
        is_output("", "silent when the log is");
    }
    dnn_log_levels("warn,data=info", &err);
    struct dnn_progress *p = begin(DNN_METER_LOG, 80, 10, "steps");
    dnn_progress_stop(p, true);
    is_output("reading: 0/10 steps in 0 ms\n",
              "unless its component has another level");
    dnn_log_levels("info", &err);
    dnn_progress_stop(NULL, true);
}

/* ---- a pseudo-terminal, and a file ---- */

/* Read fd until it is empty. */
static size_t drain(int fd, char *text, size_t size)
{
    size_t len = 0;
    ssize_t n;

    while (len < size - 1 && (n = read(fd, text + len, size - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    return len;
}

static void test_terminal(void)
{
    char text[4096];
    int main_fd = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);

    if (main_fd < 0 || grantpt(main_fd) != 0 || unlockpt(main_fd) != 0) {
        skip("a pseudo-terminal", strerror(errno));
        if (main_fd >= 0) close(main_fd);
        return;
    }
    FILE *term = fopen(ptsname(main_fd), "w");
    if (term == NULL) {
        skip("a pseudo-terminal", strerror(errno));
        close(main_fd);
        return;
    }
    struct winsize size = {.ws_row = 24, .ws_col = 50};
    struct dnn_progress_how how = {.where = term, .now = fake_clock};
    clock_says = 0;
    setenv("TERM", "xterm", 1);
    ok(ioctl(main_fd, TIOCSWINSZ, &size) == 0, "a terminal of 50 columns");
    struct dnn_progress *p = dnn_progress_start("data", "reading", 10, "files", &how);
    clock_says = 1;
    dnn_progress_at(p, 5);
    drain(main_fd, text, sizeof text);
    is_text(text, "\rreading  50 % 5/10 files, 5.0 files/s, 1.0 s left\033[K",
            "its width is used");
    size.ws_col = 70;
    ioctl(main_fd, TIOCSWINSZ, &size);
    clock_says = 2;
    dnn_progress_at(p, 8);
    drain(main_fd, text, sizeof text);
    is_text(text,
            "\rreading [############----]  80 % 8/10 files, 4.0 files/s, 500 ms "
            "left\033[K",
            "also when it changes");
    dnn_progress_stop(p, true);
    drain(main_fd, text, sizeof text);
    is_text(text, "\r\033[Kreading: 8/10 files in 2.0 s, 4.0 files/s\r\n",
            "and the bar is removed");

    setenv("TERM", "dumb", 1);
    p = dnn_progress_start("data", "reading", 10, "files", &how);
    clock_says = 3;
    dnn_progress_at(p, 5);
    dnn_progress_stop(p, true);
    drain(main_fd, text, sizeof text);
    is_text(text, "reading: 5/10 files in 1.0 s, 5.0 files/s\r\n",
            "TERM=dumb is treated as a log");
    setenv("TERM", "xterm", 1);
    fclose(term);
    close(main_fd);
}

static void test_file(void)
{
    char text[4096];
    FILE *file = tmpfile();
    struct dnn_progress_how how = {.where = file, .now = fake_clock};

    clock_says = 0;
    struct dnn_progress *p = dnn_progress_start("data", "reading", 1000, "files", &how);
    for (int i = 1; i <= 1000; i++) {
        clock_says += 1;
        dnn_progress_at(p, i);
    }
    dnn_progress_stop(p, true);
    rewind(file);
    size_t len = fread(text, 1, sizeof text - 1, file);
    text[len] = '\0';
    fclose(file);
    ok(len > 400 && strchr(text, '\r') == NULL && strchr(text, '\033') == NULL,
       "no carriage return and no escape in a file");
}

int main(void)
{
    test_line();
    test_narrow();
    test_throttle();
    test_log();
    test_silent();
    test_terminal();
    test_file();
    return done();
}
