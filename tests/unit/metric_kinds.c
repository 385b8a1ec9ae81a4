/* metric_kinds.c - every metric on numbers computed by hand; additive sums; error
 * messages.
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

    if (dnn_json_text("train.json", list, strlen(list), &json, err) < 0) return NULL;
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
    is_int(n, 3 * 3 + 2 + 2 + 9, "metrics share their sums");
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

/* The same as one-hot targets; a row of zeros has no class. */
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

/* ---- binary, one or several channels ---- */

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

/* Two samples of two positions: Dice 1 and 2/3. */
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

/* ---- sums add up for any threads and parts ---- */

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
       "counts: the same bits with one thread or four, whole or in halves");
    bool whole = true;
    for (int64_t i = 0; i < n; i++)
        whole = whole && a[i] == rint(a[i]);
    ok(whole, "they are whole numbers");
    dnn_metrics_free(one);
    dnn_metrics_free(parts);
    b.labels = NULL;
    b.values = x + 1; /* any value */
    b.n = 1;
    omp_set_num_threads(1);
    one = counted("[\"mse\", \"r2\"]", &b);
    omp_set_num_threads(3);
    parts = counted("[\"mse\", \"r2\"]", &b);
    a = dnn_metrics_sums(one, &n), c = dnn_metrics_sums(parts, &n);
    ok(memcmp(a, c, (size_t)n * sizeof *a) == 0,
       "floats: the same bits with one thread or three");
    dnn_metrics_free(one);
    dnn_metrics_free(parts);
    dnn_free(x);
    dnn_free(t);
}

/* ---- probabilities ---- */

static void test_probabilities(void)
{
    static const float p[] = {.5f, .25f, .25f, 0, 1, 0, .25f, .25f, .5f};
    static const int32_t label[] = {0, 1, 0};
    const struct dnn_metric_batch b = {3, 1, 3, p, label, NULL, -1, false};
    struct dnn_metrics *m = counted("[\"categorical_hinge\", \"categorical_mse\", "
                                    "\"categorical_mae\"]",
                                    &b);

    is_value(m, "categorical_hinge", (.75 + 0 + 1.25) / 3);
    is_value(m, "categorical_mse", (.25 + 0 + .5625) / 3);
    is_value(m, "categorical_mae", (.5 + 0 + .75) / 3);
    dnn_metrics_free(m);
    static const float logit[] = {0, 3, 40, -40}; /* of sigmoids: 0.5, 0.95, 1, 0 */
    const struct dnn_metric_batch s = {2,     1,    2,  logit,
                                       label, NULL, -1, DNN_LOGITS_SIGMOID};
    m = counted("[\"categorical_mse\", \"auc\"]", &s);
    is_value(m, "categorical_mse", (.25 + 1) / 2);
    is_value(m, "auc_0", 0);
    dnn_metrics_free(m);
    static const float even[] = {.5f, .5f}, share[] = {.25f, .75f};
    const struct dnn_metric_batch k = {1, 1, 2, share, NULL, even, -1, false};
    m = counted("\"kl_divergence_metric\"", &k);
    is_value(m, "kl_divergence", .5 * log(.5 / .25) + .5 * log(.5 / .75));
    dnn_metrics_free(m);
}

/* ---- errors ---- */

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

    refuses(
        "[\"acuracy\"]", 3,
        "train.json:1: [0]: unknown metric \"acuracy\"; did you mean \"accuracy\"?; "
        "use one of accuracy, top_k, dice, iou, precision, recall, f1, confusion, "
        "auc, mse, rmse, mae, r2, rel_l2, categorical_hinge, categorical_mse, "
        "categorical_mae, kl_divergence");
    refuses("[7]", 3,
            "train.json:1: [0]: must be the name of a metric or an object with its "
            "\"type\", not 7");
    refuses("[\"acc\", \"categorical_accuracy\"]", 3,
            "train.json:1: [1]: metric \"accuracy\" is given twice; give one of them "
            "another \"name\"");
    refuses(
        "\"kl_divergence\"", 1,
        "train.json:1: kl_divergence: needs one channel per class, but the output has "
        "only one channel");
    refuses("[\"top_5\"]", 3,
            "train.json:1: [0]: top_5: k is 5, but the output has only 3 classes");
    refuses(
        "\"top_k\"", 3,
        "train.json:1: top_k: k is missing; write \"top_5\" or {\"type\": \"top_k\", "
        "\"k\": 5}");
    refuses(
        "[\"dice\", {\"type\": \"dice\", \"ignore\": 0}]", 3,
        "train.json:1: [1]: metric \"dice\" is given twice; give one of them another "
        "\"name\"");
    refuses("[{\"type\": \"dice\", \"background\": 3}]", 3,
            "train.json:1: [0]: dice: background must be one of the classes 0 to 2, "
            "not 3");
    refuses(
        "[{\"type\": \"accuracy\", \"scores\": \"classes\"}]", 1,
        "train.json:1: [0]: accuracy: scores \"classes\" need one channel per class, "
        "but the output has only one channel");
    refuses("[\"auc\"]", 100,
            "train.json:1: [0]: auc: supports at most 64 classes, but the output "
            "has 100");
    refuses("[{\"type\": \"confusion\", \"scores\": \"binary\"}]", 3,
            "train.json:1: [0]: confusion: is not defined for binary scores of 3 "
            "channels");
    refuses("[\"confusion\"]", 5000,
            "train.json:1: [0]: confusion: supports at most 4096 classes, but the "
            "output has 5000");
    is_int(dnn_metrics_read(NULL, usual, 10, &m, &err), 0,
           "the default metrics of the loss");
    const struct dnn_metric_value *v;
    int n = dnn_metrics_values(m, &v);
    ok(n == 2 && strcmp(v[1].name, "top_5") == 0, "are used");
    dnn_metrics_free(m);
    dnn_metrics_read(NULL, wrong, 10, &m, &err);
    is_text(
        err.text,
        "metrics: unknown metric \"acuracy\"; did you mean \"accuracy\"?; use one of "
        "accuracy, top_k, dice, iou, precision, recall, f1, confusion, auc, mse, "
        "rmse, mae, r2, rel_l2, categorical_hinge, categorical_mse, "
        "categorical_mae, kl_divergence",
        "an unknown metric of the loss");
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
           "metric dice: sample 2 of the batch, position 0: label 3 is not a class "
           "number from 0 to 2; set \"ignore\" for labels that do not count");
    cannot("\"mse\"", &b,
           "metric mse: the targets are class numbers, but the output has 3 channels; "
           "targets must be values of the output's shape");
    cannot("{\"type\": \"iou\", \"scores\": \"binary\"}", &b,
           "metric iou: the targets are class numbers, but the output has 3 channels; "
           "binary scores need a mask for each channel");
    b = (struct dnn_metric_batch){2, 1, 3, odds, wrong, NULL, -1, false};
    cannot("\"auc\"", &b,
           "metric auc: sample 1 of the batch has the output 1.5, which is not a "
           "probability between 0 and 1; end the network in sigmoid or softmax");
    b.channels = 2;
    cannot("\"accuracy\"", &b,
           "metric accuracy: the output has 2 channels, but 3 were expected");
    b = (struct dnn_metric_batch){2, 1, 3, odds, NULL, NULL, -1, false};
    cannot("\"accuracy\"", &b, "metric accuracy: the data has no targets");
    b.positions = INT64_MAX;
    cannot("\"accuracy\"", &b,
           "metric accuracy: a batch of 2 samples of 9223372036854775807 x 3 values "
           "is too large");
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
    test_probabilities();
    test_reading();
    test_batches();
    return done();
}
