/* telemetry_files.c - metrics.csv, steps.csv, metrics.jsonl and rmldnn's text files:
 * written, resumed, and on a full disk.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/text.h"
#include "telemetry_made.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static struct dnn_telemetry *begin(const struct dnn_telemetry_cfg *cfg)
{
    struct dnn_telemetry *t = NULL;
    struct dnn_err err = {0};

    if (dnn_telemetry_open(cfg, &t, &err) < 0) {
        ok(false, "open: %s", err.text);
        exit(1);
    }
    return t;
}

static void record(struct dnn_telemetry *t, enum dnn_event moment, int64_t step)
{
    struct dnn_record r = made_record(moment, step);
    struct dnn_err err = {0};

    if (moment == DNN_EVENT_EPOCH) {
        made_add(&r, "val_loss", 0.5);
        made_add(&r, "val_accuracy", 0.75);
    }
    if (dnn_telemetry_write(t, &r, &err) < 0) ok(false, "write: %s", err.text);
}

static void steps(struct dnn_telemetry *t, int64_t from, int64_t to)
{
    for (int64_t s = from; s <= to; s++) {
        record(t, DNN_EVENT_STEP, s);
        if (s % 2 == 0) record(t, DNN_EVENT_EPOCH, s);
    }
}

#define HEAD                                                                           \
    "epoch,batch,step,seconds,learning_rate,samples_per_second,data,compute,comm,"     \
    "straggler,"                                                                       \
    "grad_"                                                                            \
    "norm,"
static const char epochs_text[] =
    HEAD "loss,val_loss,val_accuracy\n"
         "1,2,2,1,0.1,64,0.25,0.5,0.25,0.125,,0.5,0.5,0.75\n"
         "2,2,4,2,0.1,64,0.25,0.5,0.25,0.125,,0.25,0.5,0.75\n"
         "3,2,6,3,0.1,64,0.25,0.5,0.25,0.125,,0.16666666666666666,0.5,0.75\n";
static const char steps_text[] =
    HEAD "loss\n1,2,2,1,0.1,64,0.25,0.5,0.25,0.125,,0.5\n2,2,4,2,0.1,64,0.25,0.5,0.25,"
         "0.125,,"
         "0.25\n3,2,6,3,0.1,64,0.25,0.5,0.25,0.125,,0.16666666666666666\n";
static const char train_text[] = "# time(s) epoch batch step loss |g|\n"
                                 "0.500 1 1 1 1 nan\n1.000 1 2 2 0.5 nan\n"
                                 "1.500 2 1 3 0.333333 nan\n2.000 2 2 4 0.25 nan\n"
                                 "2.500 3 1 5 0.2 nan\n3.000 3 2 6 0.166667 nan\n";
static const char test_text[] = "epoch 1 time(s) 1.000 step 2 loss 0.5 accuracy 0.75\n"
                                "epoch 2 time(s) 2.000 step 4 loss 0.5 accuracy 0.75\n"
                                "epoch 3 time(s) 3.000 step 6 loss 0.5 accuracy 0.75\n";

static void all_are(const char *when)
{
    char what[128];

    snprintf(what, sizeof what, "metrics.csv %s", when);
    is_file("metrics.csv", epochs_text, what);
    snprintf(what, sizeof what, "steps.csv %s", when);
    is_file("steps.csv", steps_text, what);
    snprintf(what, sizeof what, "X_train.txt %s", when);
    is_file("x_train.txt", train_text, what);
    snprintf(what, sizeof what, "X_test.txt %s", when);
    is_file("x_test.txt", test_text, what);
}

/* Lines and their steps. */
static void is_jsonl(const char *want, const char *what)
{
    struct dnn_err err = {0};
    struct dnn_buf got = {0};
    char *text = NULL, *rest, *line;
    size_t len;

    dnn_file_read(made_path("metrics.jsonl"), 1 << 20, &text, &len, &err);
    for (rest = text; (line = strsep(&rest, "\n")) != NULL && rest != NULL;) {
        const char *at = strstr(line, "\"step\": ");

        dnn_buf_add(&got, "%c%d ", line[11],
                    at == NULL || line[strlen(line) - 1] != '}' ? -1 : atoi(at + 8));
    }
    is_text(got.text, want, what);
    dnn_buf_free(&got);
    dnn_free(text);
}

static void add_half(const char *name, const char *text)
{
    FILE *to = fopen(made_path(name), "a");

    fputs(text, to);
    fclose(to);
}

static void test_going_on(void)
{
    char outfile[128];
    struct dnn_telemetry_cfg cfg = {
        .dir = made_dir, .outfile = outfile, .csv = true, .jsonl = true, .every = 2};

    snprintf(outfile, sizeof outfile, "%s", made_path("x.txt"));
    struct dnn_telemetry *t = begin(&cfg);
    steps(t, 1, 6);
    dnn_telemetry_close(t);
    all_are("of a run");
    is_jsonl("s2 e2 s4 e4 s6 e6 ", "metrics.jsonl of a run");

    cfg.resumed_step = 3;
    t = begin(&cfg);
    steps(t, 4, 6);
    dnn_telemetry_close(t);
    all_are("resumed from step 3");
    is_jsonl("s2 e2 s4 e4 s6 e6 ", "and metrics.jsonl");

    cfg.resumed_step = 1; /* before the first row of most */
    t = begin(&cfg);
    steps(t, 2, 6);
    dnn_telemetry_close(t);
    all_are("resumed from step 1");
    is_jsonl("s2 e2 s4 e4 s6 e6 ", "and metrics.jsonl");

    add_half("metrics.csv", "4,2,8,4,0.1");
    add_half("steps.csv", "4,2,8");
    add_half("x_train.txt", "3.5 4");
    add_half("x_test.txt", "epoch 4 time(s)");
    add_half("metrics.jsonl", "{\"event\": \"epoch\", \"st");
    cfg.resumed_step = 6;
    t = begin(&cfg);
    dnn_telemetry_close(t);
    all_are("without truncated lines");
    is_jsonl("s2 e2 s4 e4 s6 e6 ", "and metrics.jsonl");

    cfg.resumed_step = 0;
    t = begin(&cfg);
    steps(t, 1, 2);
    dnn_telemetry_close(t);
    is_jsonl("s2 e2 ", "a new run starts new files");
}

/* JSON on stdout, with other output. */
static void test_stdout(void)
{
    struct dnn_telemetry_cfg cfg = {.json_to_stdout = true};
    struct dnn_err err = {0};
    char *text = NULL, *at;
    size_t len;

    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    FILE *to = fopen(made_path("stdout"), "w");
    dup2(fileno(to), STDOUT_FILENO);
    fclose(to);
    struct dnn_telemetry *t = begin(&cfg);
    printf("before\n");
    steps(t, 1, 2);
    printf("after\n");
    dnn_telemetry_close(t);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    dnn_file_read(made_path("stdout"), 1 << 20, &text, &len, &err);
    if ((at = strstr(text, "\"time\": \"")) != NULL) memset(at + 9, '0', 20);
    is_text(text,
            "before\n{\"event\": \"epoch\", \"time\": \"00000000000000000000\", "
            "\"epoch\": 1, \"batch\": 2, \"step\": 2, \"seconds\": 1, "
            "\"learning_rate\": 0.1, "
            "\"samples_per_second\": 64, \"data\": 0.25, \"compute\": 0.5, \"comm\": "
            "0.25, \"straggler\": 0.125, \"grad_norm\": null, \"loss\": 0.5, "
            "\"val_loss\": 0.5, "
            "\"val_accuracy\": 0.75}\nafter\n",
            "JSON on stdout, in order with other output");
    dnn_free(text);
}

/* ---- new columns ---- */

static void test_columns(void)
{
    struct dnn_telemetry_cfg cfg = {.dir = made_dir, .csv = true};
    struct dnn_telemetry *t = begin(&cfg);
    struct dnn_record r = made_record(DNN_EVENT_EPOCH, 2);
    struct dnn_err err = {0};

    r.value[0].value = -INFINITY;
    dnn_telemetry_write(t, &r, &err);
    r = made_record(DNN_EVENT_EPOCH, 4);
    made_add(&r, "a,\"b\"", 1e-7);
    dnn_telemetry_write(t, &r, &err);
    r = made_record(DNN_EVENT_EPOCH, 6);
    dnn_telemetry_write(t, &r, &err);
    dnn_telemetry_close(t);
    is_file("metrics.csv",
            HEAD "loss,\"a,\"\"b\"\"\"\n"
                 "1,2,2,1,0.1,64,0.25,0.5,0.25,0.125,,-inf,\n"
                 "2,2,4,2,0.1,64,0.25,0.5,0.25,0.125,,0.25,1e-07\n"
                 "3,2,6,3,0.1,64,0.25,0.5,0.25,0.125,,0.16666666666666666,\n",
            "a new metric gets a column");
    cfg.resumed_step = 4;
    t = begin(&cfg);
    r = made_record(DNN_EVENT_EPOCH, 6);
    made_add(&r, "a,\"b\"", 3);
    made_add(&r, "c", 4);
    dnn_telemetry_write(t, &r, &err);
    dnn_telemetry_close(t);
    is_file("metrics.csv",
            HEAD "loss,\"a,\"\"b\"\"\",c\n"
                 "1,2,2,1,0.1,64,0.25,0.5,0.25,0.125,,-inf,,\n"
                 "2,2,4,2,0.1,64,0.25,0.5,0.25,0.125,,0.25,1e-07,\n"
                 "3,2,6,3,0.1,64,0.25,0.5,0.25,0.125,,0.16666666666666666,3,4\n",
            "also when resumed");
}

/* ---- errors ---- */

static void cannot_open(const struct dnn_telemetry_cfg *cfg, const char *want)
{
    struct dnn_telemetry *t = NULL;
    struct dnn_err err = {0};

    if (dnn_telemetry_open(cfg, &t, &err) == 0) strcpy(err.text, "(opened)");
    is_said(&err, want, want);
    dnn_telemetry_close(t);
}

static void test_refusals(void)
{
    struct dnn_telemetry_cfg cfg = {.dir = made_dir, .csv = true, .resumed_step = 2};
    struct dnn_telemetry *t;
    struct dnn_err err = {0};

    made_file("metrics.csv", "epoch,loss\n1,2\n");
    cannot_open(&cfg, "DIR/metrics.csv:1: no column \"step\", so the run cannot be "
                      "resumed; move the file away");
    made_file("metrics.csv", "epoch,step\n1,2\n1\n");
    cannot_open(
        &cfg,
        "DIR/metrics.csv:3: no step, so the run cannot be resumed; move the file away");
    cfg.csv = false, cfg.jsonl = true;
    made_file("metrics.jsonl", "{\"step\": 1}\n{\"epoch\": 1}\n");
    cannot_open(&cfg, "DIR/metrics.jsonl:2: no step, so the run cannot be resumed; "
                      "move the file away");
    cfg.jsonl = false, cfg.outfile = made_path("x");
    made_file("x_train.txt", "# a\n1 2 3\n");
    cannot_open(
        &cfg,
        "DIR/x_train.txt:2: no step, so the run cannot be resumed; move the file away");
    cfg = (struct dnn_telemetry_cfg){.csv = true};
    cannot_open(&cfg, "metrics.csv, metrics.jsonl and event files need a directory");
    cfg = (struct dnn_telemetry_cfg){.outfile = made_path("no/x")};
    cannot_open(&cfg, "DIR/no/x_train.txt: cannot be written: No such file or "
                      "directory");
    cfg = (struct dnn_telemetry_cfg){.dir = made_dir, .csv = true};
    t = begin(&cfg);
    struct dnn_record r = made_record(DNN_EVENT_EPOCH, 2);
    r.n = DNN_RECORD_VALUES + 1;
    dnn_telemetry_write(t, &r, &err);
    is_text(err.text, "record has 257 values; must be 0 to 256", "too many values");
    r = made_record(DNN_EVENT_EPOCH, 2);
    made_add(&r, "a\nb", 1);
    dnn_telemetry_write(t, &r, &err);
    is_text(err.text,
            "the name of value 1 of a record has a control character: byte 10",
            "a name of two lines");
    r.value[1].name = NULL;
    dnn_telemetry_write(t, &r, &err);
    is_text(err.text, "value 1 of a record has no name", "no name");
    dnn_telemetry_close(t);
}

/* /dev/full, and a file with a size limit of half a line. */
static void test_full(void)
{
    struct dnn_telemetry_cfg cfg = {.dir = made_dir, .csv = true};
    struct dnn_record r = made_record(DNN_EVENT_EPOCH, 2);
    struct dnn_telemetry *t = begin(&cfg);
    struct dnn_err err = {0};
    struct rlimit old, now;
    struct stat st;

    dnn_telemetry_write(t, &r, &err);
    stat(made_path("metrics.csv"), &st);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    now = old;
    now.rlim_cur = (rlim_t)st.st_size + 7;
    setrlimit(RLIMIT_FSIZE, &now);
    r = made_record(DNN_EVENT_EPOCH, 4);
    int rc = dnn_telemetry_write(t, &r, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    is_int(rc, DNN_EIO, "a line that does not fit");
    is_said(&err, "DIR/metrics.csv: cannot be written: File too large", "its message");
    is_file("metrics.csv", HEAD "loss\n1,2,2,1,0.1,64,0.25,0.5,0.25,0.125,,0.5\n",
            "complete lines are kept");
    is_int(dnn_telemetry_write(t, &r, &err), 0, "there is space again");
    is_file("metrics.csv",
            HEAD "loss\n1,2,2,1,0.1,64,0.25,0.5,0.25,0.125,,0.5\n"
                 "2,2,4,2,0.1,64,0.25,0.5,0.25,0.125,,0.25\n",
            "and it continues");
    dnn_telemetry_close(t);
    unlink(made_path("metrics.csv"));
    if (access("/dev/full", W_OK) != 0 ||
        symlink("/dev/full", made_path("metrics.csv")) != 0) {
        skip("a full disk", "there is no /dev/full");
        return;
    }
    t = begin(&cfg);
    dnn_telemetry_write(t, &r, &err);
    is_said(&err, "DIR/metrics.csv: cannot be written: No space left on device",
            "a full disk");
    dnn_telemetry_close(t);
    unlink(made_path("metrics.csv"));
}

int main(void)
{
    made_begin();
    test_going_on();
    test_stdout();
    test_columns();
    test_refusals();
    test_full();
    made_end();
    return done();
}
