/* outfile.c - the text files of rmldnn: X_train.txt and X_test.txt.
 *
 * X_train.txt has columns for plotting, a line per step.  In X_test.txt, the first
 * number of a line is the epoch and the last one its accuracy; scripts depend on this.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "telemetry/telemetry_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct outfile {
    struct dnn_append *train, *test;
};

static const char header[] = "# time(s) epoch batch step loss |g|\n";

/* ---- writing ---- */

static int write_train(struct outfile *o, const struct dnn_record *r,
                       struct dnn_err *err)
{
    const double *loss = dnn_record_find(r, "loss");
    struct dnn_buf line = {0};

    dnn_buf_add(&line, "%.3f %" PRId64 " %" PRId64 " %" PRId64 " %.6g %.6g\n",
                r->seconds, r->epoch, r->batch, r->step, loss == NULL ? NAN : *loss,
                r->grad_norm);
    int rc = dnn_append_add(o->train, line.text, line.len, err);
    dnn_buf_free(&line);
    return rc;
}

/* The value written as "accuracy": accuracy, else Dice, else the first main metric. */
static const double *accuracy_of(const struct dnn_record *r)
{
    const double *value = dnn_record_find(r, "val_accuracy");

    if (value == NULL) value = dnn_record_find(r, "val_dice");
    for (int i = 0; i < r->n && value == NULL; i++)
        if (r->value[i].main && strncmp(r->value[i].name, "val_", 4) == 0 &&
            strcmp(r->value[i].name, "val_loss") != 0)
            value = &r->value[i].value;
    return value;
}

static int write_test(struct outfile *o, const struct dnn_record *r,
                      struct dnn_err *err)
{
    const double *loss = dnn_record_find(r, "val_loss"), *accuracy = accuracy_of(r);
    struct dnn_buf line = {0};

    if (loss == NULL && accuracy == NULL) return 0; /* no evaluation */
    dnn_buf_add(&line, "epoch %" PRId64 " time(s) %.3f step %" PRId64 " loss %.6g",
                r->epoch, r->seconds, r->step, loss == NULL ? NAN : *loss);
    if (accuracy != NULL) dnn_buf_add(&line, " accuracy %.6g", *accuracy);
    dnn_buf_add(&line, "\n");
    int rc = dnn_append_add(o->test, line.text, line.len, err);
    dnn_buf_free(&line);
    return rc;
}

static int write_outfile(void *self, const struct dnn_record *r, struct dnn_err *err)
{
    struct outfile *o = self;

    if (r->event == DNN_EVENT_STEP && o->train != NULL)
        return write_train(self, r, err);
    if (r->event == DNN_EVENT_EPOCH) return write_test(self, r, err);
    return 0;
}

/* ---- resuming ---- */

static int no_step(const char *path, int64_t number, struct dnn_err *err)
{
    return dnn_fail(err, DNN_EDATA,
                    "%s:%" PRId64 ": no step, so the run cannot be resumed; move the "
                    "file away",
                    path, number);
}

static int read_train(void *arg, const char *path, int64_t number, const char *line,
                      int64_t *step, struct dnn_err *err)
{
    (void)arg;
    if (line[0] == '#') return 1;
    return sscanf(line, "%*s %*s %*s %" SCNd64, step) == 1 ? 0
                                                           : no_step(path, number, err);
}

static int read_test(void *arg, const char *path, int64_t number, const char *line,
                     int64_t *step, struct dnn_err *err)
{
    const char *at = strstr(line, " step ");

    (void)arg;
    return at != NULL && sscanf(at, " step %" SCNd64, step) == 1
               ? 0
               : no_step(path, number, err);
}

static int open_one(const struct dnn_telemetry_cfg *cfg, const char *end,
                    dnn_line_fn *read, struct dnn_append **out, struct dnn_err *err)
{
    /* X.txt and X both give X_train.txt. */
    size_t len = strlen(cfg->outfile), tail = strlen(".txt");
    bool txt = len > tail && strcmp(cfg->outfile + len - tail, ".txt") == 0;
    char *path = dnn_format("%.*s%s", (int)(txt ? len - tail : len), cfg->outfile, end);
    int rc = 0;

    if (cfg->resumed_step > 0)
        rc = dnn_append_resume(path, cfg->resumed_step, read, NULL, err);
    if (rc == 0) rc = dnn_append_open(path, cfg->resumed_step == 0, out, err);
    if (rc == 0 && read == read_train && dnn_append_empty(*out))
        rc = dnn_append_add(*out, header, strlen(header), err);
    dnn_free(path);
    return rc;
}

/* ---- the sink ---- */

static bool wanted(const struct dnn_telemetry_cfg *cfg)
{
    return cfg->outfile != NULL;
}

static void close_outfile(void *self)
{
    struct outfile *o = self;

    if (o == NULL) return;
    dnn_append_close(o->train);
    dnn_append_close(o->test);
    dnn_free(o);
}

static int open_outfile(const struct dnn_telemetry_cfg *cfg, void **self,
                        struct dnn_err *err)
{
    struct outfile *o = dnn_alloc(sizeof *o);
    int rc = 0;

    if (!cfg->tests) rc = open_one(cfg, "_train.txt", read_train, &o->train, err);
    if (rc == 0) rc = open_one(cfg, "_test.txt", read_test, &o->test, err);
    if (rc < 0) {
        close_outfile(o);
        return rc;
    }
    *self = o;
    return 0;
}

static int flush_outfile(void *self, struct dnn_err *err)
{
    struct outfile *o = self;

    if (o->train != NULL) DNN_TRY(dnn_append_flush(o->train, err));
    return dnn_append_flush(o->test, err);
}

const struct dnn_sink dnn_sink_outfile = {.wanted = wanted,
                                          .open = open_outfile,
                                          .write = write_outfile,
                                          .flush = flush_outfile,
                                          .close = close_outfile};
