/* metric_kinds.c - every metric on numbers worked out by hand; sums that add; words
 * that cannot be.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "metric/metric.h"
#include "base/mem.h"
#include "tap.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>

static struct dnn_metrics *make(const char *list, int64_t classes, struct dnn_err *err)
{
    struct dnn_metrics *m = NULL;
    struct dnn_json *json = NULL;

    if (dnn_json_text("job.json", list, strlen(list), &json, err) < 0) return NULL;
    struct dnn_jobj top = dnn_json_top(json);
    if (dnn_metrics_read(&top, NULL, classes, &m, err) < 0) m = NULL;
    dnn_json_free(json);
    return m;
}

static double value_of(const struct dnn_metrics *m, const char *name)
{
    const struct dnn_metric_value *v;
    int n = dnn_metrics_values(m, &v);

    for (int i = 0; i < n; i++)
        if (strcmp(v[i].name, name) == 0) return v[i].value;
    printf("# no value %s\n", name);
    return -1;
}

static void is_value(const struct dnn_metrics *m, const char *name, double want)
{
    double got = value_of(m, name);
    bool same = isnan(want) ? isnan(got) : fabs(got - want) <= 1e-12;

    if (!ok(same, "%s is %.6g", name, want)) printf("# got: %.17g\n", got);
}

static struct dnn_metrics *counted(const char *list, const struct dnn_metric_batch *b)
{
    struct dnn_err err = {0};
    struct dnn_metrics *m = make(list, b->channels, &err);

    if (m == NULL || dnn_metrics_add(m, b, &err) < 0) {
        ok(false, "%s: %s", list, err.text);
        exit(1);
    }
    return m;
}

/* ---- classes ---- */

/* Targets 0 0 1 1 2 and 255; outputs 0 1 1 1 0 and 2. */
static const int32_t labels[] = {0, 0, 1, 1, 2, 255};
static const float scores[] = {.7f, .2f, .1f, .1f, .8f, .1f, .2f, .5f, .3f,
                               .0f, .9f, .1f, .5f, .1f, .4f, .1f, .1f, .8f};

static void test_classes(void)
{
    struct dnn_metric_batch b = {6, 1, 3, scores, labels, NULL, 255, false};
    struct dnn_metrics *m =
        counted("[\"accuracy\", \"top_2\", \"dice\", \"iou\", \"precision\", "
                "\"recall\", \"f1\", \"confusion\"]",
                &b);
    int64_t n = 0, classes = 0;

    is_value(m, "accuracy", 3 / 5.0);
    is_value(m, "top_2", 1);
    is_value(m, "dice_0", 2 * 1 / 4.0);
    is_value(m, "dice_1", 2 * 2 / 5.0);
    is_value(m, "dice_2", 0);
    is_value(m, "dice", (0.5 + 0.8 + 0) / 3);
    is_value(m, "iou", (1 / 3.0 + 2 / 3.0 + 0) / 3);
    is_value(m, "precision", (1 / 2.0 + 2 / 3.0 + 0) / 3);
    is_value(m, "recall", (1 / 2.0 + 1 + 0) / 3);
    is_value(m, "f1", (0.5 + 0.8 + 0) / 3);
    const double *c = dnn_metrics_confusion(m, &classes);
    static const double want[] = {1, 1, 0, 0, 2, 0, 1, 0, 0};
    ok(classes == 3 && memcmp(c, want, sizeof want) == 0, "the matrix");
    dnn_metrics_sums(m, &n);
    is_int(n, 3 * 3 + 2 + 2 + 9, "what counts the same is counted once");
    const struct dnn_metric_value *v;
    n = dnn_metrics_values(m, &v);
    bool ordered = n == 7 + 5 * 3;
    for (int i = 0; i < n; i++)
        ordered = ordered && v[i].main == (i < 7);
    ok(ordered, "main values come first");
    dnn_metrics_start(m);
    is_value(m, "accuracy", NAN);
    is_value(m, "dice", NAN);
    dnn_metrics_free(m);
}

/* The same as one-hot targets; a row of zeros belongs to nobody. */
static void test_one_hot(void)
{
    static const float hot[] = {1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0};
    struct dnn_metric_batch b = {6, 1, 3, scores, NULL, hot, -1, false};
    struct dnn_metrics *m = counted(
        "[\"accuracy\", \"dice\", {\"type\": \"dice\", \"name\": \"front\", "
        "\"background\": 0}, {\"type\": \"iou\", \"name\": \"rest\", \"ignore\": 2}]",
        &b);

    is_value(m, "accuracy", 3 / 5.0);
    is_value(m, "dice", (0.5 + 0.8 + 0) / 3);
    is_value(m, "front", (0.8 + 0) / 2);
    is_value(m, "rest", (1 / 2.0 + 2 / 3.0) / 2);
    is_value(m, "rest_2", NAN);
    dnn_metrics_free(m);
}

static void test_nan(void)
{
    static const float bad[] = {NAN, .1f, .2f, .1f, .2f, .7f};
    static const int32_t is[] = {0, 2};
    struct dnn_metric_batch b = {2, 1, 3, bad, is, NULL, -1, false};
    struct dnn_metrics *m = counted("[\"accuracy\", \"top_3\", \"recall\"]", &b);

    is_value(m, "accuracy", 0.5);
    is_value(m, "top_3", 0.5);
    is_value(m, "recall_0", 0);
    dnn_metrics_free(m);
}

/* ---- one question, or several ---- */

static void test_binary(void)
{
    static const float p[] = {.9f, .6f, .4f, .1f, .8f, .2f, .3f, .5f};
    static const float mask[] = {1, 0, 1, 0, 1, 0, 0, 0};
    struct dnn_metric_batch b = {2, 4, 1, p, NULL, mask, -1, false};
    struct dnn_metrics *m = counted(
        "[\"accuracy\", \"dice\", \"iou\", \"precision\", \"recall\", \"confusion\", "
        "\"auc\", {\"type\": \"dice\", \"name\": \"low\", \"threshold\": 0.35}]",
        &b);
    int64_t n;

    is_value(m, "accuracy", 6 / 8.0);
    is_value(m, "dice", 2 * 2 / 6.0);
    is_value(m, "iou", 2 / 4.0);
    is_value(m, "precision", 2 / 3.0);
    is_value(m, "recall", 2 / 3.0);
    is_value(m, "auc", 13 / 15.0);
    is_value(m, "low", 2 * 3 / 8.0);
    static const double want[] = {4, 1, 1, 2};
    const double *c = dnn_metrics_confusion(m, &n);
    ok(n == 2 && memcmp(c, want, sizeof want) == 0, "the matrix of two");
    dnn_metrics_free(m);

    static const float odds[] = {2, -1, 1, -2};
    static const int32_t is[] = {1, 0, 0, 0};
    b = (struct dnn_metric_batch){4, 1, 1, odds, is, NULL, -1, true};
    m = counted("[\"accuracy\", \"auc\"]", &b);
    is_value(m, "accuracy", 3 / 4.0);
    is_value(m, "auc", 1);
    dnn_metrics_free(m);
}

static void test_several(void)
{
    static const float p[] = {.9f, .1f, .8f, .7f, .2f, .3f};
    static const float mask[] = {1, 0, 0, 1, 0, 0};
    struct dnn_metric_batch b = {3, 1, 2, p, NULL, mask, -1, false};
    struct dnn_metrics *m =
        counted("[{\"type\": \"dice\", \"scores\": \"binary\"}, {\"type\": "
                "\"accuracy\", \"scores\": \"binary\"}]",
                &b);

    is_value(m, "dice_0", 2 / 3.0);
    is_value(m, "dice_1", 1);
    is_value(m, "dice", (2 / 3.0 + 1) / 2);
    is_value(m, "accuracy", 5 / 6.0);
    dnn_metrics_free(m);
}

/* Two samples of two places: 1 and, in the other, 2/3. */
static void test_samples(void)
{
    static const float p[] = {.9f, .1f, .9f, .9f};
    static const float mask[] = {1, 0, 1, 0};
    struct dnn_metric_batch b = {2, 2, 1, p, NULL, mask, -1, false};
    struct dnn_metrics *m =
        counted("{\"type\": \"dice\", \"average\": \"samples\"}", &b);

    ok(fabs(value_of(m, "dice") - 5 / 6.0) < 1e-9, "the mean of samples' ratios");
    dnn_metrics_free(m);
}

/* ---- numbers ---- */

static void test_values(void)
{
    static const float out[] = {1, 10, 2, 10, 4, 13}, t[] = {1, 10, 3, 12, 5, 14};
    struct dnn_metric_batch b = {3, 1, 2, out, NULL, t, -1, false};
    struct dnn_metrics *m =
        counted("[\"mse\", \"rmse\", \"mae\", \"r2\", \"rel_l2\"]", &b);
    int64_t n;

    is_value(m, "mse", 7 / 6.0);
    is_value(m, "rmse", sqrt(7 / 6.0));
    is_value(m, "mae", 5 / 6.0);
    is_value(m, "r2_0", 1 - 2 / 8.0);
    is_value(m, "r2_1", 1 - 5 / 8.0);
    is_value(m, "r2", 1 - 7 / 16.0);
    is_value(m, "rel_l2", sqrt(7 / (1 + 9 + 25 + 100 + 144 + 196.0)));
    dnn_metrics_sums(m, &n);
    is_int(n, 10, "all are made of the same sums");
    dnn_metrics_free(m);
    static const float flat[] = {0.1f, 0.1f, 0.1f};
    b = (struct dnn_metric_batch){3, 1, 1, out, NULL, flat, -1, false};
    m = counted("[\"r2\"]", &b);
    is_value(m, "r2", NAN);
    dnn_metrics_free(m);
}

/* ---- sums add, whatever the threads and parts ---- */

enum { SIDE = 40, ROWS = SIDE * SIDE * SIDE, CHANNELS = 3 };

static const char all[] = "[\"accuracy\", \"top_2\", \"dice\", \"confusion\", \"auc\", "
                          "{\"type\": \"iou\", \"average\": \"samples\"}]";

static void test_parts(void)
{
    float *x = dnn_alloc(2 * ROWS * CHANNELS * sizeof *x);
    int32_t *t = dnn_alloc(2 * ROWS * sizeof *t);
    uint32_t state = 1;
    struct dnn_err err = {0};
    int64_t n, nparts;

    for (int i = 0; i < 2 * ROWS * CHANNELS; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) / 16777216.0f;
        t[i / CHANNELS] = (int32_t)(state >> 20) % CHANNELS;
    }
    struct dnn_metric_batch b = {2, ROWS, CHANNELS, x, t, NULL, -1, false};
    omp_set_num_threads(1);
    struct dnn_metrics *one = counted(all, &b), *parts = make(all, CHANNELS, &err);
    omp_set_num_threads(4);
    for (int s = 0; s < 2; s++) {
        struct dnn_metric_batch half = b;

        half.n = 1;
        half.output += s * ROWS * CHANNELS;
        half.labels += s * ROWS;
        dnn_metrics_add(parts, &half, &err);
    }
    double *a = dnn_metrics_sums(one, &n), *c = dnn_metrics_sums(parts, &nparts);
    ok(n == nparts && memcmp(a, c, (size_t)n * sizeof *a) == 0,
       "counts: one thread or four, whole or in halves, to the last bit");
    bool whole = true;
    for (int64_t i = 0; i < n; i++)
        whole = whole && a[i] == rint(a[i]);
    ok(whole, "they are whole numbers");
    dnn_metrics_free(one);
    dnn_metrics_free(parts);
    b.labels = NULL;
    b.values = x + 1; /* any will do */
    b.n = 1;
    omp_set_num_threads(1);
    one = counted("[\"mse\", \"r2\"]", &b);
    omp_set_num_threads(3);
    parts = counted("[\"mse\", \"r2\"]", &b);
    a = dnn_metrics_sums(one, &n), c = dnn_metrics_sums(parts, &n);
    ok(memcmp(a, c, (size_t)n * sizeof *a) == 0,
       "reals: one thread or three, to the last bit");
    dnn_metrics_free(one);
    dnn_metrics_free(parts);
    dnn_free(x);
    dnn_free(t);
}

/* ---- what cannot be ---- */

static void refuses(const char *list, int64_t classes, const char *want)
{
    struct dnn_err err = {0};
    struct dnn_metrics *m = make(list, classes, &err);

    is_text(m == NULL ? err.text : "(read)", want, want);
    dnn_metrics_free(m);
}

static void test_reading(void)
{
    static const char *const usual[] = {"accuracy", "top_5", NULL};
    static const char *const wrong[] = {"acuracy", NULL};
    struct dnn_metrics *m = NULL;
    struct dnn_err err = {0};

    refuses("[\"acuracy\"]", 3,
            "job.json:1: [0]: \"acuracy\" is no metric; did you mean \"accuracy\"?; "
            "there are accuracy, top_k, dice, iou, precision, recall, f1, confusion, "
            "auc, mse, rmse, mae, r2, rel_l2");
    refuses("[7]", 3,
            "job.json:1: [0]: must be the name of a metric or an object with its "
            "\"type\", not 7");
    refuses("[\"top_5\"]", 3,
            "job.json:1: [0]: top_5: k is 5, and the output has 3 classes");
    refuses("\"top_k\"", 3,
            "job.json:1: top_k needs its k: \"top_5\" or {\"type\": \"top_k\", \"k\": "
            "5}");
    refuses("[\"dice\", {\"type\": \"dice\", \"ignore\": 0}]", 3,
            "job.json:1: [1]: there is a metric \"dice\" already; give one of them a "
            "\"name\"");
    refuses("[{\"type\": \"dice\", \"background\": 3}]", 3,
            "job.json:1: [0]: dice: background 3 is none of the output's 3 classes, "
            "which are counted from 0");
    refuses("[{\"type\": \"accuracy\", \"scores\": \"classes\"}]", 1,
            "job.json:1: [0]: accuracy: scores of classes want a channel for each, and "
            "the output has one channel");
    refuses("[\"auc\"]", 100,
            "job.json:1: [0]: auc: it is made of at most 64 classes, and the output "
            "has 100");
    refuses("[{\"type\": \"confusion\", \"scores\": \"binary\"}]", 3,
            "job.json:1: [0]: confusion: binary scores of 3 channels have no such "
            "matrix");
    refuses("[\"confusion\"]", 5000,
            "job.json:1: [0]: confusion: a matrix of 5000 classes is too large; at "
            "most 4096 can be");
    is_int(dnn_metrics_read(NULL, usual, 10, &m, &err), 0, "what suits the loss");
    const struct dnn_metric_value *v;
    int n = dnn_metrics_values(m, &v);
    ok(n == 2 && strcmp(v[1].name, "top_5") == 0, "is what was said");
    dnn_metrics_free(m);
    dnn_metrics_read(NULL, wrong, 10, &m, &err);
    is_text(err.text,
            "metrics: \"acuracy\" is no metric; did you mean \"accuracy\"?; there are "
            "accuracy, top_k, dice, iou, precision, recall, f1, confusion, auc, mse, "
            "rmse, mae, r2, rel_l2",
            "a wrong word from the loss");
    const char *help;
    const struct dnn_field *fields;
    for (int i = 0; dnn_metric_info(i, &help, &fields) != NULL; i++)
        if (!ok(dnn_field_check(fields, &err) == 0, "table of %s",
                dnn_metric_info(i, &help, &fields)))
            printf("# %s\n", err.text);
}

static void cannot(const char *list, const struct dnn_metric_batch *b, const char *want)
{
    struct dnn_err err = {0};
    struct dnn_metrics *m = make(list, 3, &err);
    int rc = m == NULL ? 0 : dnn_metrics_add(m, b, &err);

    is_text(rc < 0 ? err.text : "(added)", want, want);
    dnn_metrics_free(m);
}

static void test_batches(void)
{
    static const int32_t wrong[] = {0, 1, 2, 1, 3, 0};
    static const float odds[] = {.1f, .2f, .3f, .4f, 1.5f, .2f};
    struct dnn_metric_batch b = {3, 2, 3, scores, wrong, NULL, -1, false};

    cannot("\"dice\"", &b,
           "metric dice: sample 2 of the batch, place 0: label 3 is no class: they are "
           "0 to 2, and what is to be ignored must be said");
    cannot("\"mse\"", &b,
           "metric mse: the targets are class numbers and the output has 3 channels; "
           "it wants values of the output's shape");
    cannot("{\"type\": \"iou\", \"scores\": \"binary\"}", &b,
           "metric iou: the targets are class numbers and the output has 3 channels; "
           "binary scores want a mask for each channel");
    b = (struct dnn_metric_batch){2, 1, 3, odds, wrong, NULL, -1, false};
    cannot("\"auc\"", &b,
           "metric auc: sample 1 of the batch has the score 1.5, and scores must be "
           "probabilities, 0 to 1; should the network end in a sigmoid or softmax?");
    b.channels = 2;
    cannot("\"accuracy\"", &b,
           "metric accuracy: the output has 2 channels, and 3 were expected");
    b = (struct dnn_metric_batch){2, 1, 3, odds, NULL, NULL, -1, false};
    cannot("\"accuracy\"", &b, "metric accuracy: there are no targets to compare with");
    b.places = INT64_MAX;
    cannot("\"accuracy\"", &b,
           "metric accuracy: a batch of 2 samples of 9223372036854775807 x 3 numbers "
           "cannot be");
}

int main(void)
{
    test_classes();
    test_one_hot();
    test_nan();
    test_binary();
    test_several();
    test_samples();
    test_values();
    test_parts();
    test_reading();
    test_batches();
    return done();
}
