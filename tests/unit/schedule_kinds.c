/* schedule_kinds.c - learning rates over whole runs against numbers computed by hand;
 * chained schedules; printed texts; error messages.  Schedules that PyTorch has are
 * compared in tests/peer/torch_schedule.py.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/mem.h"
#include "schedule/schedule.h"

#include <math.h>
#include <string.h>

static struct dnn_err err;

static int read_text(const char *text, struct dnn_schedule **out)
{
    struct dnn_json *file;

    *out = NULL;
    DNN_TRY(dnn_json_text("train.json", text, strlen(text), &file, &err));
    struct dnn_jobj top = dnn_json_top(file), at = dnn_json_sub(&top, "s");
    int rc = dnn_schedule_read(&at, out, &err);
    dnn_json_free(file);
    return rc;
}

enum { EPOCHS = 12, UPDATES = 4 };

/* The rates at the first update of each epoch, with a loss after each. */
static void gives(const char *text, const double *loss, int64_t ranks,
                  const double *want, const char *print)
{
    struct dnn_schedule_state memory = {0};
    struct dnn_schedule_at at = {
        .per_epoch = UPDATES, .total = EPOCHS * UPDATES, .ranks = ranks};
    struct dnn_schedule *s;
    double far = 0, got[EPOCHS];
    char *printed = NULL;
    size_t size;

    if (!ok(read_text(text, &s) == 0, "%s", text)) {
        printf("# %s\n", err.text);
        return;
    }
    for (; at.epoch < EPOCHS; at.epoch++, at.step += UPDATES) {
        const struct dnn_named named[] = {
            {"loss",     0                                },
            {"val_dice", loss == NULL ? 0 : loss[at.epoch]}
        };

        got[at.epoch] = dnn_schedule_rate(s, &memory, 0.5, &at);
        far = fmax(far, fabs(got[at.epoch] - want[at.epoch]));
        if (dnn_schedule_epoch(s, &memory, 2, named, &err) < 0) far = INFINITY;
    }
    if (!ok(far <= 1e-15, "the rates"))
        for (int e = 0; e < EPOCHS; e++)
            printf("# epoch %d: got %.17g, want %.17g\n", e, got[e], want[e]);
    FILE *to = open_memstream(&printed, &size);
    dnn_schedule_print(s, to);
    fclose(to);
    is_text(printed, print, "the printed text");
    dnn_free(printed);
    dnn_schedule_free(s);
}

#define RATES(...) ((const double[EPOCHS]){__VA_ARGS__})

static void kinds(void)
{
    gives("{}", NULL, 0, RATES(.5, .5, .5, .5, .5, .5, .5, .5, .5, .5, .5, .5),
          "constant: the learning rate does not change\n");
    gives("{\"s\": null}", NULL, 0,
          RATES(.5, .5, .5, .5, .5, .5, .5, .5, .5, .5, .5, .5),
          "constant: the learning rate does not change\n");
    gives("{\"s\": []}", NULL, 0, RATES(.5, .5, .5, .5, .5, .5, .5, .5, .5, .5, .5, .5),
          "constant: the learning rate does not change\n");
    gives("{\"s\": {\"type\": \"step\", \"gamma\": 0.5, \"step_size\": 5}}", NULL, 0,
          RATES(.5, .5, .5, .5, .5, .25, .25, .25, .25, .25, .125, .125),
          "Step: x 0.5 every 5 epochs\n");
    gives("{\"s\": {\"type\": \"MULTISTEP\", \"gamma\": 0.5, \"milestones\": [2, 7]}}",
          NULL, 0, RATES(.5, .5, .25, .25, .25, .25, .25, .125, .125, .125, .125, .125),
          "MultiStep: x 0.5 after epoch 2, 7\n");
    gives("{\"s\": {\"type\": \"Exponential\", \"gamma\": 2, \"to\": 3}}", NULL, 0,
          RATES(.5, 1, 2, .5, .5, .5, .5, .5, .5, .5, .5, .5),
          "Exponential: x 2 every epoch, to epoch 3\n");
    gives("{\"s\": {\"type\": \"Warmup\", \"num_epochs\": 4, \"start_factor\": 0.5}}",
          NULL, 0, RATES(.25, .3125, .375, .4375, .5, .5, .5, .5, .5, .5, .5, .5),
          "Warmup: from x 0.5 to the full rate in 4 epochs\n");
    gives("{\"s\": {\"type\": \"cosine\", \"T_0\": 2, \"minimum\": 0.1}}", NULL, 0,
          RATES(.5, .3, .5, .3, .5, .3, .5, .3, .5, .3, .5, .3),
          "cosine: to 0.1 along a cosine of 2 epochs, with restarts\n");
    gives("{\"s\": {\"type\": \"cosine\", \"T_max\": 2, \"minimum\": 0.1}}", NULL, 0,
          RATES(.5, .3, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1),
          "cosine: to 0.1 along a cosine of 2 epochs\n");
    gives(
        "{\"s\": {\"type\": \"polynomial\", \"epochs\": 4, \"power\": 2, \"minimum\": "
        "0.1}}",
        NULL, 0,
        RATES(.5, .1 + .4 * .5625, .1 + .4 * .25, .1 + .4 * .0625, .1, .1, .1, .1, .1,
              .1, .1, .1),
        "polynomial: to 0.1 with power 2 in 4 epochs\n");
}

/* PyDTNN's. */
static void others(void)
{
    gives("{\"s\": {\"type\": \"warm_up\", \"epochs\": 4}}", NULL, 4,
          RATES(.125, .125 + .375 / 4, .125 + .375 / 2, .125 + .375 * .75, .5, .5, .5,
                .5, .5, .5, .5, .5),
          "warm_up: from the rate / number of ranks to the full rate in 4 epochs\n");
    gives("{\"s\": \"warm_up\"}", NULL, 0,
          RATES(.5, .5, .5, .5, .5, .5, .5, .5, .5, .5, .5, .5),
          "warm_up: from the rate / number of ranks to the full rate in 5 epochs\n");
    gives("{\"s\": {\"type\": \"warm_up\", \"batches\": 16}}", NULL, 4,
          RATES(.5 / 16, 2.5 / 16, 4.5 / 16, 6.5 / 16, .5, .5, .5, .5, .5, .5, .5, .5),
          "warm_up: from 0 to the full rate in 16 batches\n");
    /* Theano-MPI's. */
    gives("{\"s\": {\"type\": \"scale_up\", \"epochs\": 2}}", NULL, 4,
          RATES(.5, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2),
          "scale_up: x ranks^(1/2) after each of 2 epochs\n");
    gives("{\"s\": \"scale_up\"}", NULL, 0,
          RATES(.5, .5, .5, .5, .5, .5, .5, .5, .5, .5, .5, .5),
          "scale_up: x ranks^(1/5) after each of 5 epochs\n");
    gives("{\"s\": {\"type\": \"reduce_lr_every_nepochs\", \"nepochs\": 2, \"factor\": "
          "0.5, \"min_lr\": 0.1}}",
          NULL, 0,
          RATES(.5, .5, .25, .25, .125, .125, .125, .125, .125, .125, .125, .125),
          "reduce_lr_every_nepochs: x 0.5 every 2 epochs, not below 0.1\n");
    /* Larger is better; the third and fourth are not better than the second. */
    gives("{\"s\": {\"type\": \"reduce_lr_on_plateau\", \"metric\": \"val_dice\", "
          "\"patience\": 2, \"factor\": 0.5, \"min_lr\": 0.1}}",
          (const double[EPOCHS]){.1, .2, .2, .2, .3, .1, .1, .4, .4, .4, .4, .4}, 0,
          RATES(.5, .5, .5, .5, .25, .25, .25, .125, .125, .125, .125, .125),
          "reduce_lr_on_plateau: x 0.5 when val_dice has not increased for 2 "
          "epochs, not below 0.1\n");
    /* More than one epoch without improvement; cooldown of two epochs. */
    gives("{\"s\": {\"type\": \"plateau\", \"metric\": \"val_dice\", \"patience\": 1, "
          "\"factor\": 0.5, \"cooldown\": 2, \"min_rate\": 0.2}}",
          (const double[EPOCHS]){.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1}, 0,
          RATES(.5, .5, .5, .25, .25, .25, .25, .2, .2, .2, .2, .2),
          "plateau: x 0.5 when val_dice has not increased for more than 1 epochs, "
          "not within 2 epochs, not below 0.2\n");
}

static void rows(void)
{
    gives("{\"s\": [{\"type\": \"Warmup\", \"num_epochs\": 2, \"start_factor\": 0.5}, "
          "{\"type\": \"Step\", \"step_size\": 2, \"gamma\": 0.5}]}",
          NULL, 0,
          RATES(.25, .375, .25, .25, .125, .125, .0625, .0625, .03125, .03125, .015625,
                .015625),
          "Warmup: from x 0.5 to the full rate in 2 epochs\nStep: x 0.5 every 2 "
          "epochs\n");
    gives(
        "{\"s\": [{\"type\": \"constant\", \"factor\": 0.5, \"to\": 2}, {\"type\": "
        "\"Exponential\", \"gamma\": 0.5, \"from\": 2, \"to\": 5}, {\"type\": "
        "\"constant\", \"factor\": 0.125, \"from\": 5}]}",
        NULL, 0,
        RATES(.25, .25, .5, .25, .125, .0625, .0625, .0625, .0625, .0625, .0625, .0625),
        "constant: x 0.5, to epoch 2\nExponential: x 0.5 every epoch, from epoch 2, to "
        "epoch 5\nconstant: x 0.125, from epoch 5\n");
    /* Only epochs between from and to count. */
    gives("{\"s\": [\"constant\", {\"type\": \"plateau\", \"metric\": \"val_dice\", "
          "\"patience\": 0, \"factor\": 0.5, \"from\": 9}]}",
          (const double[EPOCHS]){.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1}, 0,
          RATES(.5, .5, .5, .5, .5, .5, .5, .5, .5, .5, .5, .25),
          "constant: the learning rate does not change\nplateau: x 0.5 when val_dice "
          "has not "
          "increased for more than 0 epochs, from epoch 9\n");
}

/* One cycle changes with every step, between from and to. */
static void cycle(void)
{
    struct dnn_schedule *s;
    struct dnn_schedule_state memory = {0};
    struct dnn_schedule_at at = {.per_epoch = 5, .total = 100};

    if (!ok(read_text("{\"s\": {\"type\": \"one_cycle\", \"pct_start\": 0.41, "
                      "\"from\": 10}}",
                      &s) == 0,
            "one_cycle"))
        return;
    ok(dnn_schedule_rate(s, &memory, 2, &at) == 2, "before from");
    at.step = 50;
    at.epoch = 10;
    ok(fabs(dnn_schedule_rate(s, &memory, 2, &at) - 0.08) < 1e-15, "1/25 at first");
    at.step = 50 + 19;
    at.epoch = 13;
    ok(dnn_schedule_rate(s, &memory, 2, &at) < 2, "still growing");
    at.step = 99;
    at.epoch = 19;
    ok(fabs(dnn_schedule_rate(s, &memory, 2, &at) - 8e-6) < 1e-15, "1/250000 at last");
    at.step = 400;
    at.epoch = 80;
    ok(fabs(dnn_schedule_rate(s, &memory, 2, &at) - 8e-6) < 1e-15, "and past the end");
    dnn_schedule_free(s);
}

static void refuses(const char *text, const char *want)
{
    struct dnn_schedule *s;
    int rc = read_text(text, &s);

    is_text(rc == DNN_ECONFIG ? err.text : "it was read", want, want);
    dnn_schedule_free(s);
}

static void refusals(void)
{
    refuses("{\"s\": {\"gamma\": 0.5}}",
            "train.json:1: s: the key \"type\" is missing");
    refuses(
        "{\"s\": {\"type\": \"stepp\"}}",
        "train.json:1: s.type: must be one of constant, Step, MultiStep, Exponential, "
        "Warmup, cosine, polynomial, one_cycle, plateau, warm_up, "
        "reduce_lr_on_plateau, reduce_lr_every_nepochs, scale_up, not \"stepp\"; did "
        "you mean "
        "\"Step\"?");
    refuses("{\"s\": {\"type\": 3}}", "train.json:1: s.type: must be a string, not 3");
    refuses("{\"s\": 3}", "train.json:1: s: must be a schedule {\"type\": ...}, not 3");
    refuses("{\"s\": [{\"type\": \"constant\"},\n 4]}",
            "train.json:2: s[1]: must be a schedule {\"type\": ...}, not 4");
    refuses("{\"s\": {\"type\": \"Step\"}}",
            "train.json:1: s: the key \"step_size\" is missing");
    refuses("{\"s\": \"Step\"}", "train.json:1: s: needs keys: write {\"type\": "
                                 "\"Step\", ...}");
    refuses("{\"s\": \"stop\"}",
            "train.json:1: s: must be one of constant, Step, MultiStep, Exponential, "
            "Warmup, cosine, polynomial, one_cycle, plateau, warm_up, "
            "reduce_lr_on_plateau, reduce_lr_every_nepochs, scale_up, not \"stop\"; "
            "did you mean "
            "\"Step\"?");
    refuses("{\"s\": {\"type\": \"Step\", \"step_size\": 0}}",
            "train.json:1: s.step_size: must be at least 1, not 0");
    refuses("{\"s\": {\"type\": \"Step\", \"step_size\": 2, \"gama\": 1}}",
            "train.json:1: s.gama: unknown key; did you mean \"gamma\"?");
    refuses("{\"s\": {\"type\": \"MultiStep\", \"milestones\": []}}",
            "train.json:1: s.milestones: must have at least 1 element, not 0");
    refuses("{\"s\": {\"type\": \"Warmup\", \"num_epochs\": 3, \"start_factor\": 2}}",
            "train.json:1: s.start_factor: must be between 0 and 1, not 2");
    refuses("{\"s\": {\"type\": \"Warmup\", \"num_epochs\": 3, \"start_factor\": 0}}",
            "train.json:1: s.start_factor: must be above 0, or nothing is learned at "
            "first");
    refuses("{\"s\": {\"type\": \"cosine\", \"T_0\": 3, \"T_max\": 5}}",
            "train.json:1: s.T_max: is without restarts, T_0 with restarts; give only "
            "one of "
            "them");
    refuses("{\"s\": {\"type\": \"cosine\", \"T_mult\": 2}}",
            "train.json:1: s.T_mult: needs T_0");
    refuses("{\"s\": {\"type\": \"constant\", \"from\": 4, \"to\": 4}}",
            "train.json:1: s.to: must be above from, 4, not 4");
    refuses("{\"s\": [\"plateau\", \"plateau\", \"plateau\", \"plateau\", \"plateau\", "
            "\"plateau\", \"plateau\", \"plateau\", {\"type\": \"plateau\"}]}",
            "train.json:1: s[8]: at most 8 schedules may depend on a metric");
}

static void metrics(void)
{
    const struct dnn_named named[] = {
        {"loss",     1},
        {"val_loss", 2}
    };
    struct dnn_schedule_state memory = {0};
    struct dnn_schedule *s;

    if (read_text("{\"s\": {\"type\": \"plateau\", \"metric\": \"val_los\"}}", &s) < 0)
        return;
    is_int(dnn_schedule_epoch(s, &memory, 2, named, &err), DNN_ECONFIG,
           "no such metric");
    is_text(err.text,
            "plateau: unknown metric \"val_los\"; available: loss, val_loss; did you "
            "mean \"val_loss\"?",
            "its message");
    is_int(dnn_schedule_epoch(s, &memory, 0, NULL, &err), DNN_ECONFIG, "no metrics");
    is_text(err.text, "plateau: unknown metric \"val_los\"; available: none",
            "its message");
    dnn_schedule_free(s);
}

static void tables(void)
{
    const struct dnn_field *fields;
    const char *name, *help;
    int n = 0;

    for (; (name = dnn_schedule_info(n, &help, &fields)) != NULL; n++)
        ok(dnn_field_check(fields, &err) == 0 && help[0] != '\0', "%s: its table",
           name);
    is_int(n, 13, "kinds");
    is_int(dnn_field_check(dnn_schedule_common, &err), 0, "the common keys");
    dnn_schedule_free(NULL);
}

int main(void)
{
    kinds();
    others();
    rows();
    cycle();
    refusals();
    metrics();
    tables();
    return done();
}
