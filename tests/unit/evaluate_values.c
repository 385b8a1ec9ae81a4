/* evaluate_values.c - values: known numbers, exact sums, random fields against plain
 * formulas, any boxes in any order, wrong input.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "evaluate/evaluate_impl.h"
#include "evaluate_made.h"

/* ---- exact sums ---- */

static double sum_of(const double *x, int n)
{
    struct evaluate_sum sum = {{0}, 0};

    for (int i = 0; i < n; i++)
        dnn_evaluate_sum_add(&sum, x[i]);
    return dnn_evaluate_sum_value(&sum);
}

static void test_sums(void)
{
    static const double cancel[] = {1e60, 1, -1e60, 0x1p-298, -1};
    static const double even[] = {0x1p53, 1}, above[] = {0x1p53, 1, 0x1p-200};
    static const double below[] = {-0x1p53, -1, -0x1p-200}, odd[] = {0x1.8p-149, -0.25};
    struct dnn_draw draw = dnn_draw_make(4, 4, 4, 4);
    struct evaluate_sum a = {{0}, 0}, b = {{0}, 0}, c = {{0}, 0};
    long double plain = 0;

    is_near(sum_of(cancel, 5), 0x1p-298, 0, "large terms cancel without rounding");
    is_near(sum_of(even, 2), 0x1p53, 0, "a tie is rounded to even");
    is_near(sum_of(above, 3), 0x1p53 + 2, 0, "a small term above a tie decides");
    is_near(sum_of(below, 3), -0x1p53 - 2, 0, "also of negative numbers");
    is_near(sum_of(odd, 2), -0.25, 1e-40, "a small term");
    is_near(sum_of(NULL, 0), 0, 0, "no terms");
    for (int i = 0; i < 100000; i++) {
        double x = dnn_draw_normal(&draw) * (i % 2 == 0 ? 1e-3 : 1e3);

        dnn_evaluate_sum_add(&a, x);
        dnn_evaluate_sum_add(i % 3 == 0 ? &b : &c, x);
        plain += x;
    }
    dnn_evaluate_sum_merge(&b, &c);
    is_near(dnn_evaluate_sum_value(&a), (double)plain, 1e-10, "100000 terms");
    is_near(dnn_evaluate_sum_value(&b), dnn_evaluate_sum_value(&a), 0,
            "the same in two parts");
}

/* ---- known numbers ---- */

static void test_known(void)
{
    static const float x[2][4] = {
        {1, 10, 2, 20},
        {3, 30, 5, 20}
    };
    static const float t[2][4] = {
        {1, 10, 3, 20},
        {3, 30, 3, 20}
    };
    struct dnn_evaluate_cfg cfg = {.task = DNN_EVALUATE_VALUES,
                                   .classes = 2,
                                   .channels = 2,
                                   .ignore = -1,
                                   .ndim = 1,
                                   .worst = 5};
    struct dnn_evaluation *e = made_open(&cfg);
    const struct dnn_evaluate_worst *worst;
    struct dnn_err err = {0};

    for (int i = 0; i < 2; i++) {
        struct dnn_evaluate_part part = {.sample = i,
                                         .name = i == 0 ? "first" : "second",
                                         .full = {2},
                                         .extent = {2},
                                         .output = x[i],
                                         .values = t[i]};
        if (dnn_evaluate_add(e, &part, &err) < 0) printf("# %s\n", err.text);
    }
    made_combine(e, made_comm());
    is_near(made_total(e, "mse"), 5 / 8., 1e-15, "mse");
    is_near(made_total(e, "mae"), 3 / 8., 1e-15, "mae");
    is_near(made_total(e, "rmse"), sqrt(5 / 8.), 1e-15, "rmse");
    is_near(made_cell(e, 0, "r2"), 1 - 5 / 3., 1e-15, "R2 of a channel");
    is_near(made_total(e, "r2"), (1 - 5 / 3. + 1) / 2, 1e-15, "mean R2");
    is_near(made_total(e, "rel_l2"), sqrt(5 / (28. + 1800)), 1e-15, "relative L2");
    is_near(made_total(e, "sample_rel_l2"), (sqrt(1 / 510.) + sqrt(4 / 1318.)) / 2,
            1e-15, "mean relative L2 of samples");
    is_near(made_total(e, "largest_error"), 2, 0, "largest error");
    is_near(made_cell(e, 1, "largest_error"), 0, 0, "... of a channel");
    is_int(dnn_evaluate_worst(e, &worst), 2, "both samples");
    is_text(worst[0].name, "second", "the worst one");
    is_near(worst[0].value, 1, 0, "... and its rmse");
    made_json(e);
    dnn_evaluate_close(e);
}

/* ---- random fields ---- */

enum { Y = 40, X = 300, CHANNELS = 3, SAMPLES = 3 };

struct field {
    float x[Y][X][CHANNELS], t[Y][X][CHANNELS];
};

static void make_fields(struct field *f)
{
    for (int s = 0; s < SAMPLES; s++) {
        struct dnn_draw draw = dnn_draw_make(8, 8, 8, (uint64_t)s);

        for (int i = 0; i < Y * X * CHANNELS; i++) {
            double t = 100 + exp(3 * dnn_draw_normal(&draw));

            (&f[s].t[0][0][0])[i] = (float)t;
            (&f[s].x[0][0][0])[i] = (float)(t + dnn_draw_normal(&draw));
        }
    }
}

static void add_rows(struct dnn_evaluation *e, const struct field *f, int64_t sample,
                     int first, int n)
{
    struct dnn_evaluate_part part = {
        .sample = sample,
        .name = "field",
        .full = {Y,     X},
        .start = {first, 0},
        .extent = {n,     X},
        .output = f[sample].x[first][0],
        .values = f[sample].t[first][0]
    };
    struct dnn_err err = {0};

    if (dnn_evaluate_add(e, &part, &err) < 0) printf("# %s\n", err.text);
}

static const struct dnn_evaluate_cfg cfg_fields = {.task = DNN_EVALUATE_VALUES,
                                                   .classes = CHANNELS,
                                                   .channels = CHANNELS,
                                                   .ndim = 2,
                                                   .worst = 2};

static void test_formulas(const struct field *f)
{
    struct dnn_evaluation *e = made_open(&cfg_fields);
    const long double n = (long double)SAMPLES * Y * X;
    long double all = 0;

    for (int s = 0; s < SAMPLES; s++)
        add_rows(e, f, s, 0, Y);
    made_combine(e, made_comm());
    for (int c = 0; c < CHANNELS; c++) {
        long double squared = 0, mean = 0, spread = 0, largest = 0;

        for (int s = 0; s < SAMPLES; s++)
            for (int i = 0; i < Y * X; i++)
                mean += (&f[s].t[0][0][0])[i * CHANNELS + c] / n;
        for (int s = 0; s < SAMPLES; s++)
            for (int i = 0; i < Y * X; i++) {
                const long double t = (&f[s].t[0][0][0])[i * CHANNELS + c];
                const long double d = (&f[s].x[0][0][0])[i * CHANNELS + c] - t;

                squared += d * d;
                spread += (t - mean) * (t - mean);
                largest = fmaxl(largest, fabsl(d));
            }
        all += squared;
        is_near(made_cell(e, c, "mse"), (double)(squared / n), 1e-14,
                "mse of a channel");
        is_near(made_cell(e, c, "r2"), (double)(1 - squared / spread), 1e-12, "R2");
        is_near(made_cell(e, c, "largest_error"), (double)largest, 0, "largest error");
    }
    is_near(made_total(e, "rmse"), (double)sqrtl(all / n / CHANNELS), 1e-14, "rmse");
    dnn_evaluate_close(e);
}

static void test_boxes(const struct field *f)
{
    struct dnn_draw draw = dnn_draw_make(2, 2, 2, 2);
    struct dnn_evaluation *whole = made_open(&cfg_fields);
    int order[SAMPLES * 8];

    for (int s = 0; s < SAMPLES; s++)
        add_rows(whole, f, s, 0, Y);
    made_combine(whole, made_comm());
    char *want = made_text(whole);
    for (int turn = 0; turn < 3; turn++) {
        struct dnn_evaluation *e = made_open(&cfg_fields);

        made_order(&draw, order, SAMPLES * 8);
        for (int i = 0; i < SAMPLES * 8; i++)
            add_rows(e, f, order[i] % SAMPLES, order[i] / SAMPLES * 5, 5);
        made_combine(e, made_comm());
        char *got = made_text(e);
        ok(strcmp(got, want) == 0, "boxes in any order give the same bits");
        free(got);
        dnn_evaluate_close(e);
    }
    free(want);
    dnn_evaluate_close(whole);
}

static void test_refusals(void)
{
    static const float good[4] = {1, 2, 3, 4}, bad[4] = {1, 2, -INFINITY, 4};
    struct dnn_evaluate_cfg cfg = {
        .task = DNN_EVALUATE_VALUES, .classes = 1, .channels = 1, .ndim = 2};
    struct dnn_evaluate_part part = {
        .name = "v", .full = {2, 2},
             .extent = {2, 2},
             .output = good, .values = bad
    };

    made_cannot(&cfg, &part, 1,
                "sample \"v\": the target is infinite at (1, 0), channel 0; it must be "
                "finite");
    part.values = NULL;
    made_cannot(&cfg, &part, 1, "sample \"v\": has no target values");
}

int main(void)
{
    static struct field f[SAMPLES];

    make_fields(f);
    test_sums();
    test_known();
    test_formulas(f);
    test_boxes(f);
    test_refusals();
    dnn_comm_close(made_comm());
    return done();
}
