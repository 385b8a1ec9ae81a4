/* evaluate_masks.c - masks: known numbers, random masks against plain loops, any boxes
 * in any order, wrong input.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "evaluate/evaluate_impl.h"
#include "evaluate_made.h"

enum { MOST_POINTS = 14 * 12 * 11, MOST_BOXES = 64 };

/* A sample whose scores are 1 for a class and 0 for the others. */
struct mask {
    int ndim;
    int64_t full[3];
    double spacing[3];
    int64_t classes;
    int32_t target[MOST_POINTS], output[MOST_POINTS];
};

static int64_t points_of(const struct mask *m)
{
    return dnn_evaluate_points(m->full);
}

/* Add the box of a mask. */
static int add_box(struct dnn_evaluation *e, const struct mask *m, int64_t sample,
                   const int64_t *start, const int64_t *extent, struct dnn_err *err)
{
    const int64_t n = dnn_evaluate_points(extent), c = m->classes;
    struct dnn_evaluate_part part = {.sample = sample, .name = "scan"};
    float *x = dnn_alloc((size_t)(n * c) * sizeof *x);
    int32_t *labels = dnn_alloc((size_t)n * sizeof *labels);

    for (int64_t i = 0; i < n; i++) {
        const int64_t z = start[0] + i / (extent[1] * extent[2]);
        const int64_t y = start[1] + i / extent[2] % extent[1];
        const int64_t at = (z * m->full[1] + y) * m->full[2] + start[2] + i % extent[2];

        labels[i] = m->target[at];
        x[i * c + m->output[at]] = 1;
    }
    memcpy(part.full, m->full, sizeof part.full);
    memcpy(part.spacing, m->spacing, sizeof part.spacing);
    memcpy(part.start, start, sizeof part.start);
    memcpy(part.extent, extent, sizeof part.extent);
    part.output = x;
    part.labels = labels;
    int rc = dnn_evaluate_add(e, &part, err);
    dnn_free(x);
    dnn_free(labels);
    return rc;
}

static struct dnn_evaluate_cfg cfg_of(const struct mask *m)
{
    return (struct dnn_evaluate_cfg){.task = DNN_EVALUATE_MASKS,
                                     .classes = m->classes,
                                     .channels = m->classes,
                                     .ignore = 200,
                                     .background = 0,
                                     .surfaces = true,
                                     .ndim = m->ndim,
                                     .worst = 2};
}

static void add_whole(struct dnn_evaluation *e, const struct mask *m, int64_t sample)
{
    static const int64_t start[3];
    struct dnn_err err = {0};

    if (add_box(e, m, sample, start, m->full, &err) < 0) printf("# %s\n", err.text);
}

/* ---- known numbers ---- */

/* Two 4 x 4 squares in a plane of 10 x 12, one shifted by (1, 3); rows are 2 apart. */
static void test_known(void)
{
    static struct mask m = {
        .ndim = 2, .full = {10, 12, 1},
             .spacing = {2,  1,  0},
             .classes = 2
    };
    struct dnn_evaluate_cfg cfg = cfg_of(&m);
    const struct dnn_evaluate_worst *worst;

    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 4; x++) {
            m.target[(y + 2) * 12 + x + 2] = 1;
            m.output[(y + 3) * 12 + x + 5] = 1;
        }
    struct dnn_evaluation *e = made_open(&cfg);
    add_whole(e, &m, 4);
    made_combine(e, made_comm());
    is_near(made_total(e, "dice"), 2 * 3 / 32., 1e-15, "Dice of 3 common points");
    is_near(made_total(e, "iou"), 3 / 29., 1e-15, "IoU");
    is_near(made_total(e, "precision"), 3 / 16., 1e-15, "precision");
    is_near(made_total(e, "accuracy"), 1 - 26 / 120., 1e-15, "accuracy");
    is_near(made_cell(e, 1, "target_points"), 16, 0, "volume of the target");
    is_near(made_cell(e, 0, "output_points"), 104, 0, "volume of the background");
    /* Both surfaces have 12 points; the farthest are a corner's diagonal away. */
    is_near(made_total(e, "hausdorff95"), sqrt(9) + (sqrt(13) - 3) * (0.95 * 11 - 10),
            1e-6, "95th percentile");
    is_int(dnn_evaluate_worst(e, &worst), 1, "one sample");
    is_text(worst[0].metric, "dice", "sorted by Dice");
    is_near(dnn_evaluate_confusion(e)[1], 13, 0,
            "confusion: background predicted as 1");
    is_near(dnn_evaluate_confusion(e)[2], 13, 0, "1 predicted as background");
    made_json(e);
    dnn_evaluate_close(e);
}

/* ---- random masks against plain loops ---- */

/* Random blobs: a few balls per class, with classes in the order of painting. */
static void make_mask(struct mask *m, uint64_t seed, int ndim, int64_t classes,
                      bool ignored)
{
    static const int64_t full[3] = {14, 12, 11};
    struct dnn_draw draw = dnn_draw_make(5, 6, seed, 0);

    *m = (struct mask){
        .ndim = ndim, .full = {1, 1, 1},
             .classes = classes
    };
    for (int d = 0; d < ndim; d++) {
        m->full[d] = full[d];
        m->spacing[d] = dnn_draw_real(&draw, 0.4, 2.5);
    }
    for (int k = 0; k < 8; k++) {
        int32_t *map = k % 2 == 0 ? m->target : m->output;
        const int32_t class = (int32_t)dnn_draw_below(&draw, classes);
        double at[3], r = dnn_draw_real(&draw, 1, 5);

        for (int d = 0; d < 3; d++)
            at[d] = d < ndim ? dnn_draw_real(&draw, 0, (double)full[d]) : 0;
        for (int64_t i = 0; i < points_of(m); i++) {
            double dz = (double)(i / (m->full[1] * m->full[2])) - at[0];
            double dy = (double)(i / m->full[2] % m->full[1]) - at[1];
            double dx = (double)(i % m->full[2]) - at[2];

            if (dz * dz + dy * dy + dx * dx < r * r) map[i] = class;
        }
    }
    for (int64_t i = 0; i < points_of(m) && ignored; i++)
        if (dnn_draw_below(&draw, 30) == 0) m->target[i] = 200;
}

static bool has(const struct mask *m, const int32_t *map, const int64_t *at, int class)
{
    for (int d = 0; d < m->ndim; d++)
        if (at[d] < 0 || at[d] >= m->full[d]) return false;
    int64_t i = (at[0] * m->full[1] + at[1]) * m->full[2] + at[2];
    return m->target[i] != 200 && map[i] == class;
}

/* The points of a surface; returns their number. */
static int64_t surface(const struct mask *m, const int32_t *map, int class,
                       int64_t (*out)[3])
{
    int64_t n = 0;

    for (int64_t i = 0; i < points_of(m); i++) {
        int64_t at[3] = {i / (m->full[1] * m->full[2]), i / m->full[2] % m->full[1],
                         i % m->full[2]};
        bool inside = has(m, map, at, class), edge = false;

        for (int d = 0; d < m->ndim && inside; d++)
            for (int k = -1; k <= 1; k += 2) {
                at[d] += k;
                edge = edge || !has(m, map, at, class);
                at[d] -= k;
            }
        if (edge) memcpy(out[n++], at, sizeof at);
    }
    return n;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Directed distances; returns their 95th percentile, adds their sum. */
static double directed(const struct mask *m, int64_t (*from)[3], int64_t n,
                       int64_t (*to)[3], int64_t nto, double *sum)
{
    static double d[MOST_POINTS];

    for (int64_t i = 0; i < n; i++) {
        d[i] = INFINITY;
        for (int64_t j = 0; j < nto; j++) {
            double all = 0;

            for (int k = 0; k < m->ndim; k++)
                all += pow((double)(from[i][k] - to[j][k]) * m->spacing[k], 2);
            d[i] = fmin(d[i], sqrt(all));
        }
        *sum += d[i];
    }
    qsort(d, (size_t)n, sizeof *d, ascending);
    double at = 0.95 * (double)(n - 1), low = floor(at);
    return d[(int)low] + (d[(int)ceil(at)] - d[(int)low]) * (at - low);
}

static int against_loops(uint64_t seed, int ndim, int64_t classes, bool ignored)
{
    static int64_t t[MOST_POINTS][3], o[MOST_POINTS][3];
    static struct mask m;
    int bad = 0, measured = 0;

    make_mask(&m, seed, ndim, classes, ignored);
    struct dnn_evaluate_cfg cfg = cfg_of(&m);
    cfg.background = -1;
    struct dnn_evaluation *e = made_open(&cfg);
    add_whole(e, &m, 0);
    made_combine(e, made_comm());
    for (int c = 0; c < classes; c++) {
        const int64_t nt = surface(&m, m.target, c, t),
                      no = surface(&m, m.output, c, o);
        double hits = 0, targets = 0, outputs = 0, sum = 0;

        for (int64_t i = 0; i < points_of(&m); i++) {
            if (m.target[i] == 200) continue;
            hits += m.target[i] == c && m.output[i] == c;
            targets += m.target[i] == c;
            outputs += m.output[i] == c;
        }
        const double dice = made_cell(e, c, "dice"),
                     got = made_cell(e, c, "hausdorff95");
        if (targets + outputs == 0)
            bad += !isnan(dice);
        else
            bad += fabs(dice - 2 * hits / (targets + outputs)) > 1e-14;
        bad += made_cell(e, c, "target_points") != targets;
        bad += made_cell(e, c, "unmatched") != ((targets > 0) != (outputs > 0));
        if (nt == 0 || no == 0) {
            bad += !isnan(got);
            continue;
        }
        measured++;
        const double a = directed(&m, t, nt, o, no, &sum);
        const double b = directed(&m, o, no, t, nt, &sum);
        bad += fabs(got - fmax(a, b)) > 1e-6;
        bad +=
            fabs(made_cell(e, c, "surface_distance") - sum / (double)(nt + no)) > 1e-6;
    }
    dnn_evaluate_close(e);
    if (bad > 0) printf("# seed %d, %d axes: %d differences\n", (int)seed, ndim, bad);
    return bad > 0 ? -1000 : measured;
}

static void test_random(void)
{
    for (int ndim = 1; ndim <= 3; ndim++) {
        int measured = 0;

        for (uint64_t seed = 0; seed < 30; seed++)
            measured += against_loops(seed, ndim, 3, seed % 3 == 0);
        ok(measured > 20, "%d axes: overlap and surface distances of %d random masks",
           ndim, measured);
    }
    ok(against_loops(7, 3, 300, true) >= 0, "300 classes: two bytes per point");
}

/* ---- distances ---- */

static void test_distance(void)
{
    static const int64_t extent[3] = {9, 7, 13};
    static const double spacing[3] = {1.5, 0.25, 1};
    static float d[9 * 7 * 13];
    struct dnn_draw draw = dnn_draw_make(9, 9, 9, 9);
    int seed[6], bad = 0;

    for (int i = 0; i < 9 * 7 * 13; i++)
        d[i] = INFINITY;
    dnn_evaluate_distance(d, extent, spacing);
    ok(isinf(d[0]) && isinf(d[400]), "no points: infinite distances");
    for (int k = 0; k < 6; k++)
        d[seed[k] = (int)dnn_draw_below(&draw, 9 * 7 * 13)] = 0;
    dnn_evaluate_distance(d, extent, spacing);
    for (int i = 0; i < 9 * 7 * 13; i++) {
        double best = INFINITY;

        for (int k = 0; k < 6; k++) {
            const double z = (i / 91 - seed[k] / 91) * spacing[0];
            const double y = (i / 13 % 7 - seed[k] / 13 % 7) * spacing[1];
            const double x = (i % 13 - seed[k] % 13) * spacing[2];

            best = fmin(best, z * z + y * y + x * x);
        }
        bad += fabs(d[i] - best) > 1e-5;
    }
    is_int(bad, 0, "squared distances to the nearest of 6 points");
}

/* ---- boxes ---- */

struct box {
    int64_t sample, start[3], extent[3];
};

/* Cut a sample at random places. */
static int cut(const struct mask *m, int64_t sample, struct dnn_draw *draw,
               struct box *box)
{
    int64_t at[3][4];
    int n[3], k = 0;

    for (int d = 0; d < 3; d++) {
        n[d] = m->full[d] == 1 ? 1 : 1 + (int)dnn_draw_below(draw, 3);
        at[d][0] = 0;
        for (int i = 1; i < n[d]; i++)
            at[d][i] = at[d][i - 1] + 1 + dnn_draw_below(draw, 3);
        at[d][n[d]] = m->full[d];
    }
    for (int z = 0; z < n[0]; z++)
        for (int y = 0; y < n[1]; y++)
            for (int x = 0; x < n[2]; x++, k++) {
                const int i[3] = {z, y, x};

                box[k].sample = sample;
                for (int d = 0; d < 3; d++) {
                    box[k].start[d] = at[d][i[d]];
                    box[k].extent[d] = at[d][i[d] + 1] - at[d][i[d]];
                }
            }
    return k;
}

enum { SAMPLES = 5 };

static void test_boxes(void)
{
    static struct mask m[SAMPLES];
    struct box box[SAMPLES * MOST_BOXES];
    int order[SAMPLES * MOST_BOXES], n = 0;
    struct dnn_draw draw = dnn_draw_make(1, 1, 1, 1);
    struct dnn_err err = {0};

    for (int i = 0; i < SAMPLES; i++) {
        make_mask(&m[i], 100 + (uint64_t)i, 3, 4, true);
        n += cut(&m[i], i, &draw, box + n);
    }
    struct dnn_evaluate_cfg cfg = cfg_of(&m[0]);
    struct dnn_evaluation *whole = made_open(&cfg);
    for (int i = 0; i < SAMPLES; i++)
        add_whole(whole, &m[i], i);
    made_combine(whole, made_comm());
    char *want = made_text(whole);
    ok(strstr(want, "hausdorff95_3") != NULL,
       "samples.csv has the distances of classes");
    for (int turn = 0; turn < 3; turn++) {
        struct dnn_evaluation *e = made_open(&cfg);

        made_order(&draw, order, n);
        for (int i = 0; i < n; i++) {
            const struct box *b = &box[order[i]];

            if (add_box(e, &m[b->sample], b->sample, b->start, b->extent, &err) < 0)
                printf("# %s\n", err.text);
        }
        made_combine(e, made_comm());
        char *got = made_text(e);
        ok(strcmp(got, want) == 0, "%d boxes in any order give the same bits", n);
        free(got);
        dnn_evaluate_close(e);
    }
    free(want);
    dnn_evaluate_close(whole);
}

/* ---- one channel, wrong input ---- */

static void test_one_channel(void)
{
    static const float x[4] = {3, -1, 2, -2};
    static const int32_t target[4] = {1, 1, 0, 0};
    struct dnn_evaluate_cfg cfg = {.task = DNN_EVALUATE_MASKS,
                                   .classes = 2,
                                   .channels = 1,
                                   .ignore = -1,
                                   .background = -1,
                                   .logits = true,
                                   .ndim = 1};
    struct dnn_evaluate_part part = {
        .full = {4}, .extent = {4}, .output = x, .labels = target};
    struct dnn_evaluation *e = made_open(&cfg);
    struct dnn_err err = {0};

    ok(dnn_evaluate_add(e, &part, &err) == 0, "one channel");
    made_combine(e, made_comm());
    is_near(made_total(e, "dice"), 0.5, 0, "averages are of class 1");
    is_near(made_cell(e, 0, "dice"), 0.5, 0, "class 0 has a row, too");
    is_near(made_total(e, "hausdorff95"), -1, 0, "surface distances were not wanted");
    dnn_evaluate_close(e);
}

static void test_refusals(void)
{
    static const float x[8] = {0, 1, 0, 1, INFINITY, 0, 1, 0}, good[8];
    static const int32_t target[4] = {0, 1, -3, 1};
    struct dnn_evaluate_cfg cfg = {.task = DNN_EVALUATE_MASKS,
                                   .classes = 2,
                                   .channels = 2,
                                   .ignore = -1,
                                   .ndim = 2};
    struct dnn_evaluate_part part[2] = {
        {.name = "s",
         .full = {4, 2},
         .start = {2, 0},
         .extent = {2, 2},
         .output = x,
         .labels = target}
    };

    made_cannot(&cfg, part, 1,
                "sample \"s\": the output is infinite at (3, 0), channel 0; it must be "
                "finite");
    part[0].output = good;
    made_cannot(
        &cfg, part, 1,
        "sample \"s\": the target is class -3 at (3, 0), but there are classes 0 "
        "to 1");
    cfg.ignore = 1;
    part[0].extent[0] = 1;
    made_cannot(&cfg, part, 1,
                "sample \"s\" (0): only 2 of its 8 points were evaluated");
    part[0].start[0] = 4;
    made_cannot(
        &cfg, part, 1,
        "sample \"s\": a box from 4 with extent 1 is not in the extent 4 of axis "
        "0");
    part[0].start[0] = 0;
    part[1] = part[0];
    part[1].full[0] = 5;
    made_cannot(&cfg, part, 2, "sample \"s\": its boxes disagree about its extents");
    part[0].spacing[1] = -1;
    made_cannot(&cfg, part, 1,
                "sample \"s\": the spacing of axis 1 must be positive, not -1");
}

int main(void)
{
    test_known();
    test_random();
    test_distance();
    test_boxes();
    test_one_channel();
    test_refusals();
    dnn_comm_close(made_comm());
    return done();
}
