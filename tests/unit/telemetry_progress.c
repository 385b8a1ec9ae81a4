/* telemetry_progress.c - the progress bar of an epoch on a terminal, and lines in a
 * log.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/log.h"
#include "telemetry_made.h"

static double clock_says;

static double fake_clock(void *arg)
{
    (void)arg;
    return clock_says;
}

static char *out;
static size_t out_len;
static struct dnn_progress_how how;

static struct dnn_telemetry *begin(int form, int width)
{
    struct dnn_telemetry_cfg cfg = {.progress = true, .how = &how};
    struct dnn_telemetry *t = NULL;
    struct dnn_err err = {0};

    how = (struct dnn_progress_how){.width = width, .now = fake_clock};
    how.form = form;
    how.where = open_memstream(&out, &out_len);
    clock_says = 1000;
    if (dnn_telemetry_open(&cfg, &t, &err) < 0) exit(1);
    return t;
}

static void is_output(const char *want, const char *what)
{
    char *shown = NULL;
    size_t len = 0;

    fclose(how.where);
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

static void record(struct dnn_telemetry *t, enum dnn_event moment, int64_t step)
{
    struct dnn_record r = made_record(moment, step);
    struct dnn_err err = {0};

    if (moment == DNN_EVENT_STEP) r.grad_norm = 1.5;
    if (moment == DNN_EVENT_EPOCH) made_add(&r, "val_accuracy", 0.75);
    r.value[r.n].name = "hidden";
    r.value[r.n++].value = 7;
    dnn_telemetry_write(t, &r, &err);
}

static void test_terminal(void)
{
    struct dnn_telemetry *t = begin(DNN_METER_LINE, 110);

    record(t, DNN_EVENT_STEP, 1);
    clock_says += 0.05;
    record(t, DNN_EVENT_STEP, 2); /* too soon */
    clock_says += 9.95;
    record(t, DNN_EVENT_EVAL_STEP, 1);
    record(t, DNN_EVENT_EPOCH, 2);
    dnn_telemetry_hide(t); /* is hidden already */
    record(t, DNN_EVENT_STEP, 3);
    dnn_telemetry_hide(t);
    record(t, DNN_EVENT_STEP, 4);
    record(t, DNN_EVENT_END, 6);
    dnn_telemetry_close(t);
    is_output(
        "<CR>epoch 1/3 [###########-----------]  50 % loss 1, |g| 1.5, 64.0 samples/s, "
        "data 25 %, compute 50 %, comm 25 %<ESC>[K"
        "<CR>evaluating epoch 1/3 [####----]  50 % loss 1, 40.0 s left, 64.0 "
        "samples/s, "
        "data 25 %, compute 50 %, comm 25 %<ESC>[K"
        "<CR><ESC>[Kepoch 1/3: loss 0.5, val_accuracy 0.75, 64.0 samples/s, data 25 %, "
        "compute 50 %, comm 25 %, 40.0 s left\n"
        "<CR>epoch 2/3 [####----]  50 % loss 0.3333, |g| 1.5, 15.0 s left, 64.0 "
        "samples/s, data 25 %, compute 50 %, comm 2<ESC>[K"
        "<CR><ESC>[K"
        "<CR>epoch 2/3 [########] 100 % loss 0.25, |g| 1.5, 6.7 s left, 64.0 "
        "samples/s, "
        "data 25 %, compute 50 %, comm 25 %<ESC>[K"
        "<CR><ESC>[Ktrained: 3 epochs, 6 steps in 3.0 s, 64.0 samples/s\n",
        "a bar on a terminal");
}

/* A wide terminal also shows the metrics of the last epoch. */
static void test_wide(void)
{
    struct dnn_telemetry *t = begin(DNN_METER_LINE, 140);

    record(t, DNN_EVENT_EPOCH, 2);
    clock_says += 10;
    record(t, DNN_EVENT_STEP, 3);
    dnn_telemetry_close(t);
    is_output("epoch 1/3: loss 0.5, val_accuracy 0.75, 64.0 samples/s, data 25 %, "
              "compute 50 %, comm 25 %\n"
              "<CR>epoch 2/3 [#######--------]  50 % loss 0.3333, |g| 1.5, 30.0 s "
              "left, 64.0 samples/s, data 25 %, compute 50 %, comm 25 %, val_accuracy "
              "0.75<ESC>[K<CR><ESC>[K",
              "a wide terminal shows the last evaluation, too");
}

static void test_log(void)
{
    struct dnn_telemetry *t = begin(DNN_METER_LOG, 0);

    record(t, DNN_EVENT_STEP, 1);
    clock_says += 9;
    record(t, DNN_EVENT_STEP, 2); /* too soon */
    clock_says += 1;
    record(t, DNN_EVENT_STEP, 3);
    clock_says += 10;
    record(t, DNN_EVENT_EVAL_STEP, 3);
    record(t, DNN_EVENT_EPOCH, 4);
    clock_says += 9;
    record(t, DNN_EVENT_STEP, 5);
    dnn_telemetry_close(t);
    is_output(
        "epoch 2/3, batch 1/2: loss 0.3333, |g| 1.5, 64.0 samples/s, data 25 %, "
        "compute 50 %, comm 25 %, 15.0 s left\n"
        "evaluating epoch 2/3, batch 1/2: loss 0.3333, 64.0 samples/s, data 25 %, "
        "compute 50 %, comm 25 %, 13.3 s left\n"
        "epoch 2/3: loss 0.25, val_accuracy 0.75, 64.0 samples/s, data 25 %, "
        "compute 50 %, comm 25 %, 13.3 s left\n",
        "lines in a log");
}

static void test_quiet(void)
{
    struct dnn_err err = {0};

    dnn_log_levels("warn", &err);
    struct dnn_telemetry *t = begin(DNN_METER_LOG, 0);
    record(t, DNN_EVENT_EPOCH, 2);
    dnn_telemetry_close(t);
    is_output("", "nothing with --quiet");
    dnn_log_levels("info", &err);
}

int main(void)
{
    test_terminal();
    test_wide();
    test_log();
    test_quiet();
    return done();
}
