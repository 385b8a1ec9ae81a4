/* telemetry_made.h - records and a directory for tests of telemetry.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_TELEMETRY_MADE_H
#define DNN_TESTS_TELEMETRY_MADE_H

#include "base/file.h"
#include "base/mem.h"
#include "tap.h"
#include "telemetry/record.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static char made_dir[64];

static inline void made_begin(void)
{
    strcpy(made_dir, "/tmp/dnn-telemetry-XXXXXX");
    if (mkdtemp(made_dir) == NULL) exit(99);
}

static inline void made_end(void)
{
    struct dnn_err err;

    dnn_file_remove_tree(made_dir, &err);
}

/* A path in the directory; valid until the fourth call after it. */
static inline const char *made_path(const char *name)
{
    static char path[4][128];
    static int turn;

    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", made_dir, name);
    return path[turn];
}

static inline void made_file(const char *name, const char *text)
{
    struct dnn_err err = {0};

    if (dnn_file_write(made_path(name), text, strlen(text), &err) < 0) {
        printf("# %s\n", err.text);
        exit(99);
    }
}

static inline void is_file(const char *name, const char *want, const char *what)
{
    struct dnn_err err = {0};
    char *text = NULL;
    size_t len;

    if (dnn_file_read(made_path(name), 1 << 24, &text, &len, &err) < 0)
        is_text(err.text, want, what);
    else
        is_text(text, want, what);
    dnn_free(text);
}

/* Compare a message, with the name of the directory replaced. */
static inline void is_said(const struct dnn_err *err, const char *want,
                           const char *what)
{
    const char *at = strstr(err->text, made_dir);
    char text[sizeof err->text];

    snprintf(text, sizeof text, "%s", err->text);
    if (at != NULL)
        snprintf(text, sizeof text, "%.*sDIR%s", (int)(at - err->text), err->text,
                 at + strlen(made_dir));
    is_text(text, want, what);
}

/* Step 4 is the second of epoch 2, and so on. */
static inline struct dnn_record made_record(enum dnn_event moment, int64_t step)
{
    struct dnn_record r = {.event = moment,
                           .epoch = (step + 1) / 2,
                           .epochs = 3,
                           .batch = (step + 1) % 2 + 1,
                           .batches = 2,
                           .step = step,
                           .seconds = 0.5 * (double)step,
                           .samples_per_second = 64,
                           .data = 0.25,
                           .compute = 0.5,
                           .comm = 0.25,
                           .straggler = 0.125,
                           .grad_norm = NAN,
                           .rate = 0.1};

    r.value[r.n].name = "loss";
    r.value[r.n].main = true;
    r.value[r.n++].value = 1.0 / (double)step;
    return r;
}

static inline void made_add(struct dnn_record *r, const char *name, double value)
{
    r->value[r->n].name = name;
    r->value[r->n].main = true;
    r->value[r->n++].value = value;
}

#endif
