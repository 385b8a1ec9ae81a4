/* telemetry_make.c - write the files of a run, for telemetry.py.
 *
 *   telemetry_make DIR           ten epochs, interrupted in the sixth and resumed
 * after the fifth, with histograms, pictures and a report telemetry_make DIR FROM TO
 * records of the steps after FROM up to TO
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "report/report.h"
#include "base/file.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EPOCHS = 10, STEPS = 120, CLASSES = 4, SIDE = 24 };

static int failed(const struct dnn_err *err)
{
    fprintf(stderr, "%s\n", err->text);
    return 1;
}

static void put(struct dnn_record *r, const char *name, double value, bool main)
{
    r->value[r->n].name = name;
    r->value[r->n].value = value;
    r->value[r->n++].main = main;
}

static struct dnn_record record_at(enum dnn_event moment, int64_t step)
{
    static const char *const dice[] = {"val_dice_0", "val_dice_1", "val_dice_2",
                                       "val_dice_3"};
    const double t = (double)step;
    struct dnn_record r = {.event = moment,
                           .epoch = (step - 1) / STEPS + 1,
                           .epochs = EPOCHS,
                           .batch = (step - 1) % STEPS + 1,
                           .batches = STEPS,
                           .step = step,
                           .seconds = 0.25 * t,
                           .samples_per_second = 480 + 20 * sin(t),
                           .data = 0.05,
                           .compute = 0.85,
                           .comm = 0.10,
                           .grad_norm = 3 * exp(-t / 500) + 0.1,
                           .rate = 0.01 * exp(-t / 400)};

    put(&r, "loss", 2.5 * exp(-t / 250) + 0.05 * (1.2 + sin(t * 7.7)), true);
    if (moment != DNN_EVENT_EPOCH) return r;
    put(&r, "accuracy", 1 - 0.8 * exp(-t / 300), true);
    put(&r, "val_loss", 2.6 * exp(-t / 250) + 0.12 + 0.00005 * t, true);
    put(&r, "val_accuracy", 1 - 0.8 * exp(-t / 280) - 0.02, true);
    put(&r, "val_dice", 0.9 - 0.6 * exp(-t / 300), true);
    for (int c = 0; c < CLASSES; c++)
        put(&r, dice[c], 0.95 - 0.05 * c - 0.6 * exp(-t / (200 + 60 * c)), false);
    return r;
}

static int run(const char *dir, int64_t from, int64_t to, struct dnn_err *err)
{
    struct dnn_telemetry_cfg cfg = {.dir = dir,
                                    .csv = true,
                                    .jsonl = true,
                                    .tensorboard = true,
                                    .resumed_step = from,
                                    .every = 1};
    struct dnn_telemetry *t = NULL;
    float weight[1000];
    unsigned char rgb[SIDE * SIDE * 3];
    char *outfile = dnn_format("%s/out", dir);
    int rc;

    cfg.outfile = outfile;
    rc = dnn_telemetry_open(&cfg, &t, err);
    for (int64_t step = from + 1; rc == 0 && step <= to; step++) {
        struct dnn_record r = record_at(DNN_EVENT_STEP, step);

        rc = dnn_telemetry_write(t, &r, err);
        if (step % STEPS != 0 || rc < 0) continue;
        for (int i = 0; i < 1000; i++)
            weight[i] = (float)(sin(i * 0.7) * (double)step / 100);
        weight[7] = NAN;
        for (int i = 0; i < SIDE * SIDE * 3; i++)
            rgb[i] = (unsigned char)(i * 5 + (int)step);
        r = record_at(DNN_EVENT_EPOCH, step);
        rc = dnn_telemetry_write(t, &r, err);
        if (rc == 0)
            rc = dnn_telemetry_histogram(t, "conv1/kernel", step, weight, 1000, err);
        if (rc == 0)
            rc = dnn_telemetry_image(t, "prediction", step, SIDE, SIDE, rgb, err);
    }
    dnn_telemetry_close(t);
    dnn_free(outfile);
    return rc;
}

/* An incomplete line, as from a killed process. */
static int cut_off(const char *dir, const char *file, const char *half)
{
    char *path = dnn_format("%s/%s", dir, file);
    FILE *to = fopen(path, "a");

    dnn_free(path);
    if (to == NULL) return -1;
    fputs(half, to);
    return fclose(to);
}

static int report(const char *dir, struct dnn_err *err)
{
    static const double confusion[CLASSES * CLASSES] = {
        950, 20, 10, 0, 35, 880, 60, 5, 0, 42, 910, 18, 3, 0, 77, 640};
    static const char *const name[] = {"background", "liver", "tumor <1 cm",
                                       "\"other\""};
    char *csv = dnn_format("%s/metrics.csv", dir), *png = dnn_format("%s/p.png", dir);
    char *steps = dnn_format("%s/steps.csv", dir),
         *html = dnn_format("%s/report.html", dir);
    const struct dnn_report_image image[] = {
        {"sample 3: image, target, output", png},
        {"a & b <c>",                       png}
    };
    struct dnn_report r = {.title = "unet3d <on> \"liver\" & more",
                           .csv = csv,
                           .steps = steps,
                           .facts =
                               "version\tdnn-toolkit 0.1.0\nnetwork\tunet3d, 1.2 "
                               "million weights\nhosts\tn001 to n004, 8 "
                               "ranks\nodd\t<script>alert('&')</script> \xff\x01\n",
                           .log = "epoch 1/10: loss 0.5 <ok>\nepoch 2/10: loss 0.3\n",
                           .classes = CLASSES,
                           .confusion = confusion,
                           .class_name = name,
                           .image = image,
                           .nimages = access(png, R_OK) == 0 ? 2 : 0};
    int rc = dnn_report_write(html, &r, err);

    dnn_free(csv);
    dnn_free(png);
    dnn_free(steps);
    dnn_free(html);
    return rc;
}

int main(int argc, char **argv)
{
    struct dnn_err err = {0};

    if (argc == 4)
        return run(argv[1], atoll(argv[2]), atoll(argv[3]), &err) < 0 ? failed(&err)
                                                                      : 0;
    if (argc != 2) return 2;
    if (run(argv[1], 0, 5 * STEPS + 30, &err) < 0) return failed(&err);
    if (cut_off(argv[1], "metrics.csv", "6,120,7") != 0 ||
        cut_off(argv[1], "steps.csv", "6,31,631,15") != 0 ||
        cut_off(argv[1], "metrics.jsonl", "{\"event\": \"st") != 0 ||
        cut_off(argv[1], "out_train.txt", "157.75 6 3") != 0)
        return 1;
    if (run(argv[1], 5 * STEPS, EPOCHS * STEPS, &err) < 0) return failed(&err);
    return report(argv[1], &err) < 0 ? failed(&err) : 0;
}
