/* telemetry.c - pass records to all sinks.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "telemetry/telemetry_impl.h"

#include "base/file.h"
#include "base/mem.h"

#include <string.h>

enum { MAX_SINKS = 8 };

struct dnn_telemetry {
    struct dnn_telemetry_cfg cfg;
    char *dir, *outfile; /* owned: cfg points to them */
    int n;
    const struct dnn_sink *sink[MAX_SINKS];
    void *self[MAX_SINKS];
};

int dnn_telemetry_open(const struct dnn_telemetry_cfg *cfg, struct dnn_telemetry **out,
                       struct dnn_err *err)
{
    struct dnn_telemetry *t = dnn_alloc(sizeof *t);
    int rc = 0;

    t->cfg = *cfg;
    if (cfg->dir != NULL) t->cfg.dir = t->dir = dnn_strdup(cfg->dir);
    if (cfg->outfile != NULL) t->cfg.outfile = t->outfile = dnn_strdup(cfg->outfile);
    if (t->dir == NULL && (cfg->csv || cfg->jsonl || cfg->tensorboard))
        rc = dnn_fail(err, DNN_EUSAGE,
                      "metrics.csv, metrics.jsonl and event files need a directory");
    if (rc == 0 && t->dir != NULL) rc = dnn_file_make_dirs(t->dir, err);
    for (int k = 0; rc == 0 && dnn_sinks[k] != NULL && t->n < MAX_SINKS; k++) {
        if (!dnn_sinks[k]->wanted(&t->cfg)) continue;
        t->sink[t->n] = dnn_sinks[k];
        rc = dnn_sinks[k]->open(&t->cfg, &t->self[t->n], err);
        if (rc == 0) t->n++;
    }
    if (rc < 0) {
        dnn_telemetry_close(t);
        return rc;
    }
    *out = t;
    return 0;
}

static int check(const struct dnn_record *r, struct dnn_err *err)
{
    if (r->n < 0 || r->n > DNN_RECORD_VALUES)
        return dnn_fail(err, DNN_EUSAGE, "record has %d values; must be 0 to %d", r->n,
                        DNN_RECORD_VALUES);
    for (int i = 0; i < r->n; i++) {
        const char *name = r->value[i].name;

        if (name == NULL || name[0] == '\0')
            return dnn_fail(err, DNN_EUSAGE, "value %d of a record has no name", i);
        for (const char *c = name; *c != '\0'; c++)
            if ((unsigned char)*c < ' ' || *c == 127)
                return dnn_fail(err, DNN_EUSAGE,
                                "the name of value %d of a record has a control "
                                "character: byte %d",
                                i, (unsigned char)*c);
    }
    return 0;
}

int dnn_telemetry_write(struct dnn_telemetry *telemetry,
                        const struct dnn_record *record, struct dnn_err *err)
{
    DNN_TRY(check(record, err));
    for (int i = 0; i < telemetry->n; i++)
        DNN_TRY(telemetry->sink[i]->write(telemetry->self[i], record, err));
    if (record->event == DNN_EVENT_EPOCH || record->event == DNN_EVENT_END)
        return dnn_telemetry_flush(telemetry, err);
    return 0;
}

int dnn_telemetry_histogram(struct dnn_telemetry *telemetry, const char *name,
                            int64_t step, const float *value, int64_t n,
                            struct dnn_err *err)
{
    for (int i = 0; i < telemetry->n; i++)
        if (telemetry->sink[i]->histogram != NULL)
            DNN_TRY(telemetry->sink[i]->histogram(telemetry->self[i], name, step, value,
                                                  n, err));
    return 0;
}

int dnn_telemetry_image(struct dnn_telemetry *telemetry, const char *name, int64_t step,
                        int width, int height, const unsigned char *rgb,
                        struct dnn_err *err)
{
    for (int i = 0; i < telemetry->n; i++)
        if (telemetry->sink[i]->image != NULL)
            DNN_TRY(telemetry->sink[i]->image(telemetry->self[i], name, step, width,
                                              height, rgb, err));
    return 0;
}

int dnn_telemetry_flush(struct dnn_telemetry *telemetry, struct dnn_err *err)
{
    for (int i = 0; i < telemetry->n; i++)
        if (telemetry->sink[i]->flush != NULL)
            DNN_TRY(telemetry->sink[i]->flush(telemetry->self[i], err));
    return 0;
}

void dnn_telemetry_hide(struct dnn_telemetry *telemetry)
{
    for (int i = 0; i < telemetry->n; i++)
        if (telemetry->sink[i]->hide != NULL)
            telemetry->sink[i]->hide(telemetry->self[i]);
}

void dnn_telemetry_close(struct dnn_telemetry *telemetry)
{
    if (telemetry == NULL) return;
    for (int i = 0; i < telemetry->n; i++)
        telemetry->sink[i]->close(telemetry->self[i]);
    dnn_free(telemetry->dir);
    dnn_free(telemetry->outfile);
    dnn_free(telemetry);
}
