/* evaluate_labels.c - labels: known numbers, random samples against plain formulas, any
 * order, wrong input.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "evaluate_made.h"

/* ---- known numbers ---- */

static const char *const animal[] = {"cat", "dog", "a \"fox\", red"};

static struct dnn_evaluation *small(void)
{
    static const float p[4][3] = {
        {0.5f,  0.25f,  0.25f },
        {0.25f, 0.625f, 0.125f},
        {0.75f, 0.25f,  0     },
        {0.25f, 0.25f,  0.5f  }
    };
    static const int32_t target[4] = {0, 1, 1, 2};
    static const char *const name[4] = {"a", "b,c", "d\"", "e"};
    struct dnn_evaluate_cfg cfg = {.task = DNN_EVALUATE_LABELS,
                                   .classes = 3,
                                   .channels = 3,
                                   .class_name = animal,
                                   .ignore = -1,
                                   .background = -1,
                                   .bins = 4,
                                   .worst = 2};
    struct dnn_evaluation *e = made_open(&cfg);
    struct dnn_err err = {0};

    for (int i = 3; i >= 0; i--) {
        struct dnn_evaluate_part part = {
            .sample = i, .name = name[i], .output = p[i], .labels = &target[i]};

        if (dnn_evaluate_add(e, &part, &err) < 0) printf("# %s\n", err.text);
    }
    made_combine(e, made_comm());
    return e;
}

static void test_known(void)
{
    struct dnn_evaluation *e = small();
    const struct dnn_evaluate_worst *worst;

    is_near(made_total(e, "samples"), 4, 0, "samples");
    is_near(made_total(e, "accuracy"), 0.75, 0, "accuracy");
    is_near(made_total(e, "top_5"), -1, 0, "three classes have no top 5");
    is_near(made_total(e, "precision"), (0.5 + 1 + 1) / 3, 1e-15, "precision");
    is_near(made_total(e, "recall"), (1 + 0.5 + 1) / 3, 1e-15, "recall");
    is_near(made_total(e, "f1"), (2 / 3. + 2 / 3. + 1) / 3, 1e-15, "f1");
    is_near(made_total(e, "weighted_precision"), (0.5 + 2 + 1) / 4, 1e-15,
            "weighted precision");
    is_near(made_total(e, "nll"), -(log(0.5) + log(0.625) + log(0.25) + log(0.5)) / 4,
            1e-15, "nll");
    is_near(made_total(e, "brier"), (0.375 + 0.21875 + 1.125 + 0.375) / 4, 1e-15,
            "Brier score");
    /* Bins: (0.25, 0.5] has two correct samples, (0.5, 0.75] one of two. */
    is_near(made_total(e, "calibration_error"), (0.5 * 2 + 0.1875 * 2) / 4, 1e-15,
            "expected calibration error");
    is_near(made_total(e, "max_calibration_error"), 0.5, 0, "largest");
    is_near(made_cell(e, 1, "auc"), 0.75, 1e-15, "AUC: a tie is half a pair");
    is_near(made_cell(e, 1, "support"), 2, 0, "support");
    is_int(dnn_evaluate_worst(e, &worst), 2, "two worst samples");
    is_text(worst[0].name, "d\"", "the worst one");
    is_near(worst[0].value, -log(0.25), 1e-15, "... and its loss");
    is_text(worst[0].metric, "nll", "... by nll");
    is_int(worst[1].sample, 0, "of equal ones the first");
    made_json(e);
    dnn_evaluate_close(e);
}

static void test_texts(void)
{
    struct dnn_evaluation *e = small();
    char *text = made_text(e);

    is_text(
        strstr(text, "class,name"),
        "class,name,precision,recall,f1,support,predicted,auc\n"
        "0,cat,0.5,1,0.6666666666666666,1,2,0.6666666666666666\n"
        "1,dog,1,0.5,0.6666666666666666,2,1,0.75\n"
        "2,\"a \"\"fox\"\", red\",1,1,1,1,1,1\n"
        "sample,name,target,output,correct,confidence,target_probability,nll,brier\n"
        "0,a,0,0,1,0.5,0.5,0.6931471805599453,0.375\n"
        "1,\"b,c\",1,1,1,0.625,0.625,0.4700036292457356,0.21875\n"
        "2,\"d\"\"\",1,0,0,0.75,0.25,1.3862943611198906,1.125\n"
        "3,e,2,2,1,0.5,0.5,0.6931471805599453,0.375\n",
        "CSV files");
    free(text);
    text = made_print(e);
    is_text(
        text,
        "  samples                4\n"
        "  accuracy               0.75\n"
        "  precision              0.8333\n"
        "  recall                 0.8333\n"
        "  f1                     0.7778\n"
        "  weighted_precision     0.875\n"
        "  weighted_recall        0.75\n"
        "  weighted_f1            0.75\n"
        "  auc                    0.8056\n"
        "  nll                    0.8106\n"
        "  brier                  0.5234\n"
        "  calibration_error      0.3438\n"
        "  max_calibration_error  0.5\n"
        "\n"
        "  class         precision     recall         f1    support  predicted        "
        "auc\n"
        "  cat                 0.5          1     0.6667          1          2     "
        "0.6667\n"
        "  dog                   1        0.5     0.6667          2          1       "
        "0.75\n"
        "  a \"fox\", red          1          1          1          1          1      "
        "    1\n"
        "\n"
        "  confidence        samples        mean   accuracy\n"
        "  0.250 to 0.500          2         0.5          1\n"
        "  0.500 to 0.750          2      0.6875        0.5\n"
        "\n"
        "  worst samples     number        nll\n"
        "  d\"                     2      1.386\n"
        "  a                      0     0.6931\n",
        "tables for a terminal");
    free(text);
    dnn_evaluate_close(e);
}

/* ---- random samples ---- */

enum { N = 400, MOST = 7 };

struct set {
    int64_t classes, channels;
    float x[N][MOST];
    int32_t target[N];
};

static void make_set(struct set *s, int64_t classes, int64_t channels)
{
    struct dnn_draw draw = dnn_draw_make(3, 1, (uint64_t)classes, (uint64_t)channels);

    s->classes = classes;
    s->channels = channels;
    for (int i = 0; i < N; i++) {
        s->target[i] = (int32_t)dnn_draw_below(&draw, classes);
        for (int64_t c = 0; c < channels; c++)
            s->x[i][c] = (float)(2 * dnn_draw_normal(&draw) +
                                 (s->target[i] == c + classes - channels));
        if (i % 50 == 7) s->target[i] = 99; /* ignored */
    }
}

static struct dnn_evaluation *evaluate(const struct set *s, const int *order)
{
    struct dnn_evaluate_cfg cfg = {.task = DNN_EVALUATE_LABELS,
                                   .classes = s->classes,
                                   .channels = s->channels,
                                   .ignore = 99,
                                   .background = -1,
                                   .logits = true,
                                   .bins = 10,
                                   .worst = 3};
    struct dnn_evaluation *e = made_open(&cfg);
    struct dnn_err err = {0};
    char name[32];

    for (int i = 0; i < N; i++) {
        const int k = order == NULL ? i : order[i];
        struct dnn_evaluate_part part = {
            .sample = k, .name = name, .output = s->x[k], .labels = &s->target[k]};

        snprintf(name, sizeof name, "sample %d", k);
        if (dnn_evaluate_add(e, &part, &err) < 0) printf("# %s\n", err.text);
    }
    made_combine(e, made_comm());
    return e;
}

/* Probabilities of all classes. */
static void softmax(const struct set *s, int i, double *p)
{
    const double x[2] = {0, s->x[i][0]};
    double sum = 0;

    for (int64_t c = 0; c < s->classes; c++)
        sum += p[c] = exp(s->channels == 1 ? x[c] : s->x[i][c]);
    for (int64_t c = 0; c < s->classes; c++)
        p[c] /= sum;
}

static double auc_of(const struct set *s, int64_t class)
{
    double won = 0, pairs = 0;

    for (int i = 0; i < N; i++)
        for (int j = 0; j < N && s->target[i] == class; j++) {
            double p[MOST], q[MOST];

            if (s->target[j] == class || s->target[j] == 99) continue;
            softmax(s, i, p);
            softmax(s, j, q);
            won += p[class] > q[class] ? 1 : p[class] == q[class] ? 0.5 : 0;
            pairs++;
        }
    return won / pairs;
}

static void against_formulas(int64_t classes, int64_t channels)
{
    static struct set s;
    double p[MOST], nll = 0, brier = 0, top = 0, hits = 0, n = 0, error = 0;
    double bin[10][3] = {{0}};

    make_set(&s, classes, channels);
    struct dnn_evaluation *e = evaluate(&s, NULL);
    for (int i = 0; i < N; i++) {
        const int t = s.target[i];
        int best = 0, before = 0;

        if (t == 99) continue;
        softmax(&s, i, p);
        for (int c = 0; c < classes; c++) {
            if (p[c] > p[best]) best = c;
            before += p[c] > p[t];
            brier += pow(p[c] - (c == t), 2) / (classes == 2 ? 2 : 1);
        }
        n++;
        nll -= log(p[t]);
        hits += best == t;
        top += before < 5;
        double *b = bin[(int)ceil(p[best] * 10) - 1];
        b[0]++, b[1] += p[best], b[2] += best == t;
    }
    for (int b = 0; b < 10; b++)
        error += fabs(bin[b][2] - bin[b][1]);
    is_near(made_total(e, "samples"), n, 0, "ignored samples are not counted");
    is_near(made_total(e, "accuracy"), hits / n, 0, "accuracy");
    if (classes > 5) is_near(made_total(e, "top_5"), top / n, 0, "top 5");
    is_near(made_total(e, "nll"), nll / n, 1e-12, "nll");
    is_near(made_total(e, "brier"), brier / n, 1e-12, "Brier score");
    is_near(made_total(e, "calibration_error"), error / n, 1e-12, "calibration error");
    for (int c = 0; c < classes; c++)
        is_near(made_cell(e, c, "auc"), auc_of(&s, c), 3e-4, "AUC of a class");
    dnn_evaluate_close(e);
}

static void test_order(void)
{
    static struct set s;
    struct dnn_draw draw = dnn_draw_make(1, 2, 3, 4);
    int order[N];

    make_set(&s, 5, 5);
    struct dnn_evaluation *a = evaluate(&s, NULL);
    made_order(&draw, order, N);
    struct dnn_evaluation *b = evaluate(&s, order);
    char *first = made_text(a), *second = made_text(b);
    ok(strcmp(first, second) == 0, "any order gives the same bits");
    free(first);
    free(second);
    dnn_evaluate_close(a);
    dnn_evaluate_close(b);
}

/* Equal scores: the first class, as in the metrics; far apart: no overflow. */
static void test_edges(void)
{
    static const float x[3][2] = {
        {1,    1   },
        {900,  -900},
        {-900, 900 }
    };
    static const int32_t target[3] = {0, 0, 0};
    struct dnn_evaluate_cfg cfg = {.task = DNN_EVALUATE_LABELS,
                                   .classes = 2,
                                   .channels = 2,
                                   .ignore = -1,
                                   .logits = true,
                                   .bins = 1};
    struct dnn_evaluation *e = made_open(&cfg);
    struct dnn_err err = {0};

    for (int i = 0; i < 3; i++) {
        struct dnn_evaluate_part part = {
            .sample = i, .output = x[i], .labels = &target[i]};
        if (dnn_evaluate_add(e, &part, &err) < 0) printf("# %s\n", err.text);
    }
    made_combine(e, made_comm());
    is_near(made_total(e, "accuracy"), 2 / 3., 1e-15,
            "of equal scores the first class");
    is_near(made_total(e, "nll"), (log(2) + 0 + 1800) / 3, 1e-9, "nll of far logits");
    is_near(made_total(e, "auc"), NAN, 0, "no AUC of one class");
    is_near(made_cell(e, 1, "recall"), 0, 0, "a class without targets");
    dnn_evaluate_close(e);
}

static void test_nothing(void)
{
    for (int task = DNN_EVALUATE_LABELS; task <= DNN_EVALUATE_VALUES; task++) {
        struct dnn_evaluate_cfg cfg = {.task = (enum dnn_evaluate_task)task,
                                       .classes = 2,
                                       .channels = 2,
                                       .surfaces = true,
                                       .ndim = 3,
                                       .bins = 3,
                                       .worst = 3};
        struct dnn_evaluation *e = made_open(&cfg);
        const struct dnn_evaluate_worst *worst;

        made_combine(e, made_comm());
        is_near(made_total(e, "samples"), 0, 0, "no samples");
        is_near(made_total(e, task == DNN_EVALUATE_VALUES ? "mse" : "accuracy"), NAN, 0,
                "... have no mean");
        is_int(dnn_evaluate_worst(e, &worst), 0, "... and no worst ones");
        made_json(e);
        dnn_evaluate_close(e);
    }
}

static void test_refusals(void)
{
    static const float good[2] = {0.5f, 0.5f}, bad[2] = {0, NAN}, odd[2] = {-2, 3};
    static const int32_t zero = 0, five = 5;
    struct dnn_evaluate_cfg cfg = {.task = DNN_EVALUATE_LABELS,
                                   .classes = 2,
                                   .channels = 2,
                                   .ignore = -1,
                                   .bins = 1};
    struct dnn_evaluate_part part[2] = {
        {.sample = 3, .name = "x", .output = bad,  .labels = &zero},
        {.sample = 3, .name = "x", .output = good, .labels = &zero},
    };
    struct dnn_evaluation *e;
    struct dnn_err err = {0};

    made_cannot(&cfg, part, 1,
                "sample \"x\": the output is NaN, channel 1; it must be finite");
    part[0].output = odd;
    made_cannot(&cfg, part, 1,
                "sample \"x\": the output is -2, channel 0, which is not a probability "
                "between 0 and 1; set inference.activation to sigmoid or softmax");
    part[0].output = good;
    made_cannot(&cfg, part, 2,
                "sample \"x\" (3): was added more than once, or its boxes overlap");
    part[0].labels = &five;
    made_cannot(&cfg, part, 1,
                "sample \"x\": the target is class 5, but there are classes 0 to 1");
    part[0].labels = NULL;
    made_cannot(&cfg, part, 1, "sample \"x\": has no target classes");
    cfg.channels = 0;
    ok(dnn_evaluate_open(&cfg, &e, &err) == DNN_ECONFIG, "channels are needed");
    is_text(
        err.text,
        "the evaluation of 2 classes needs as many channels, or one for two classes, "
        "not 0",
        "... and named");
    cfg.channels = 2, cfg.bins = 0;
    ok(dnn_evaluate_open(&cfg, &e, &err) == DNN_ECONFIG, "bins are needed");
    is_text(err.text, "the calibration needs at least one bin, not 0", "... and named");
}

int main(void)
{
    test_known();
    test_texts();
    against_formulas(7, 7);
    against_formulas(2, 2);
    against_formulas(2, 1);
    test_order();
    test_edges();
    test_nothing();
    test_refusals();
    dnn_comm_close(made_comm());
    return done();
}
