/* labels.c - a class per sample: accuracy, ratios per class, AUC, calibration.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "evaluate/evaluate_impl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    TOP = 5,
    MOST_CELLS = 1 << 23, /* of histograms: 64 MiB */
    MOST_BINS = 1 << 16,
    LEAST_BINS = 1 << 6
};
enum { TARGET, OUTPUT, RANK, NCOUNTS };
enum { CONFIDENCE, PROBABILITY, NLL, BRIER, NVALUES };
/* Probabilities below this count as this, as those of f32 that were rounded to 0. */
static const double least_probability = 0x1p-23;

/* ---- scores of one sample ---- */

/* Log-odds of a probability. */
static double odds_of(double p)
{
    return p <= 0 ? -INFINITY : p >= 1 ? INFINITY : log(p / (1 - p));
}

/* Set probabilities and log-odds by a softmax of the scores; returns -log p of the
 * target. The sum of all classes but the largest is not computed as a difference: it
 * would cancel. */
static double from_logits(const float *x, int64_t n, int64_t target, double *p,
                          double *odds)
{
    double others = 0;
    int64_t top = 0;

    for (int64_t c = 1; c < n; c++)
        if (x[c] > x[top]) top = c;
    for (int64_t c = 0; c < n; c++) {
        p[c] = exp((double)x[c] - x[top]);
        if (c != top) others += p[c];
    }
    for (int64_t c = 0; c < n; c++) {
        odds[c] = (double)x[c] - x[top] - log(c == top ? others : 1 + others - p[c]);
        p[c] /= 1 + others;
    }
    return log1p(others) + ((double)x[top] - x[target]);
}

/* The same for one score: that of class 1. */
static double from_logit(double x, int64_t target, double *p, double *odds)
{
    const double z = target == 1 ? -x : x;

    odds[0] = -x, odds[1] = x;
    p[0] = 1 / (1 + exp(x)), p[1] = 1 / (1 + exp(-x));
    return fmax(z, 0) + log1p(exp(-fabs(z)));
}

/* Set probabilities and log-odds of all classes; returns -log p of the target. */
static double read_scores(const struct dnn_evaluation *e, const float *x,
                          int64_t target, double *p, double *odds)
{
    const int64_t first = e->cfg.classes - e->cfg.channels;

    if (e->cfg.logits)
        return e->cfg.channels == 1 ? from_logit(x[0], target, p, odds)
                                    : from_logits(x, e->cfg.classes, target, p, odds);
    for (int64_t c = first; c < e->cfg.classes; c++) {
        p[c] = fmin(fmax(x[c - first], 0), 1);
        odds[c] = odds_of(p[c]);
    }
    if (first == 1) {
        p[0] = 1 - p[1];
        odds[0] = -odds[1];
    }
    return -log(fmax(p[target], least_probability));
}

/* The number of classes before this one in descending order of scores; of equal scores
 * the first class is before. */
static int64_t rank_of(const struct dnn_evaluation *e, const float *x, int64_t class)
{
    const float two[2] = {e->cfg.logits ? 0 : 0.5f, x[0]};
    const float *score = e->cfg.channels == 1 ? two : x;
    int64_t before = 0;

    for (int64_t c = 0; c < e->cfg.classes; c++)
        before += score[c] > score[class] || (score[c] == score[class] && c < class);
    return before;
}

/* ---- AUC ---- */

/* Histograms of the log-odds x of positives and negatives of each class, so that they
 * can be added over ranks.  Bins are equally wide in log(1 + |x|). */
static int64_t bins_of(const struct dnn_evaluation *e)
{
    int64_t bins = MOST_BINS;

    while (bins > LEAST_BINS && 2 * bins * e->cfg.channels > MOST_CELLS)
        bins /= 2;
    return bins;
}

static int64_t bin_of(double odds, int64_t bins)
{
    const double reach = 128; /* the smallest f32 has log-odds -103 */
    const double at = copysign(log1p(fabs(odds)) / log1p(reach), odds);
    const double bin = (at + 1) * (double)(bins / 2);

    if (!(bin > 0)) return 0;
    return bin < (double)bins ? (int64_t)bin : bins - 1;
}

/* One channel has one histogram: of class 1. */
static void add_odds(struct dnn_evaluation *e, int64_t target, const double *odds)
{
    const int64_t bins = bins_of(e), first = e->cfg.classes - e->cfg.channels;

    for (int64_t k = 0; k < e->cfg.channels; k++) {
        int64_t *cell = e->cell + 2 * k * bins + (target == k + first ? bins : 0);

        cell[bin_of(odds[k + first], bins)]++;
    }
}

/* The fraction of pairs of a positive and a negative in which the positive has the
 * higher score; a pair in the same bin counts half. */
static double area(const struct dnn_evaluation *e, int64_t c)
{
    const int64_t bins = bins_of(e);
    const int64_t *negative = e->cell + (e->cfg.channels == 1 ? 0 : 2 * c * bins);
    double below = 0, won = 0, positives = 0;

    for (int64_t i = 0; i < bins; i++) {
        const double p = (double)negative[bins + i], n = (double)negative[i];

        won += p * (below + n / 2);
        below += n;
        positives += p;
    }
    return positives == 0 || below == 0 ? NAN : won / positives / below;
}

/* ---- adding ---- */

static void sizes(struct dnn_evaluation *e)
{
    e->ncount = NCOUNTS;
    e->nvalue = NVALUES;
    e->ncell = 2 * bins_of(e) * e->cfg.channels;
}

static int add(struct dnn_evaluation *e, const struct dnn_evaluate_part *part,
               int64_t n, struct evaluate_row *row, struct dnn_err *err)
{
    double *p = e->number, *odds = p + e->cfg.classes;
    int64_t target = part->labels[0], top;

    if (!e->cfg.logits) DNN_TRY(dnn_evaluate_probabilities(e, part, n, err));
    int counted = dnn_evaluate_target(e, part, 0, err);
    if (counted < 0) return counted;
    row->count[TARGET] = counted ? target : -1;
    const double nll = read_scores(e, part->output, counted ? target : 0, p, odds);
    top = dnn_evaluate_class(e, part->output);
    row->count[OUTPUT] = top;
    row->value[CONFIDENCE] = p[top];
    if (!counted) return 0;
    double brier = 0;
    for (int64_t c = 0; c < e->cfg.classes; c++) {
        const double d = p[c] - (c == target);

        brier += d * d;
    }
    row->count[RANK] = rank_of(e, part->output, target);
    row->value[PROBABILITY] = p[target];
    row->value[NLL] = nll;
    row->value[BRIER] = e->cfg.classes == 2 ? brier / 2 : brier;
    add_odds(e, target, odds);
    return 0;
}

/* ---- results ---- */

/* Counts per class. */
struct tally {
    int64_t *hits, *targets, *outputs; /* owned by hits */
    int64_t n, top;
    struct evaluate_mean nll, brier;
};

static void count_rows(struct dnn_evaluation *e, struct tally *t)
{
    const int64_t classes = e->cfg.classes;
    double *confusion = e->results.confusion;

    for (size_t i = 0; i < e->nrows; i++) {
        const struct evaluate_row *row = &e->row[i];
        const int64_t target = row->count[TARGET], output = row->count[OUTPUT];

        if (target < 0) continue;
        t->n++;
        t->top += row->count[RANK] < TOP;
        t->hits[target] += target == output;
        t->targets[target]++;
        t->outputs[output]++;
        if (confusion != NULL) confusion[target * classes + output]++;
        dnn_evaluate_mean_add(&t->nll, row->value[NLL]);
        dnn_evaluate_mean_add(&t->brier, row->value[BRIER]);
    }
}

/* Bin b has confidences from b / bins (exclusive) to (b + 1) / bins.  Sets the expected
 * and the maximum calibration error. */
static void calibrate(struct dnn_evaluation *e, double *expected, double *largest)
{
    struct evaluate_results *r = &e->results;
    int64_t all = 0;

    r->nbins = e->cfg.bins;
    r->bin = dnn_alloc((size_t)r->nbins * sizeof *r->bin);
    for (size_t i = 0; i < e->nrows; i++) {
        const struct evaluate_row *row = &e->row[i];
        const double confidence = row->value[CONFIDENCE];
        int b = (int)ceil(confidence * r->nbins) - 1;

        if (row->count[TARGET] < 0) continue;
        b = b < 0 ? 0 : b >= r->nbins ? r->nbins - 1 : b;
        r->bin[b].count++;
        r->bin[b].confidence += confidence;
        r->bin[b].accuracy += row->count[TARGET] == row->count[OUTPUT];
        all++;
    }
    *expected = all == 0 ? NAN : 0;
    *largest = all == 0 ? NAN : 0;
    for (int b = 0; b < r->nbins; b++) {
        struct dnn_evaluate_bin *bin = &r->bin[b];

        bin->low = (double)b / r->nbins;
        bin->high = (double)(b + 1) / r->nbins;
        bin->confidence = bin->count == 0 ? NAN : bin->confidence / (double)bin->count;
        bin->accuracy = bin->count == 0 ? NAN : bin->accuracy / (double)bin->count;
        if (bin->count == 0) continue;
        const double gap = fabs(bin->accuracy - bin->confidence);
        *expected += gap * (double)bin->count / (double)all;
        *largest = fmax(*largest, gap);
    }
}

enum { PRECISION, RECALL, F1, SUPPORT, PREDICTED, AUC, NCOLUMNS };
static const char *const column[NCOLUMNS] = {"precision", "recall",    "f1",
                                             "support",   "predicted", "auc"};

static void add_classes(struct dnn_evaluation *e, const struct tally *t)
{
    dnn_evaluate_table(e, column, NCOLUMNS);
    for (int64_t c = 0; c < e->cfg.classes; c++) {
        struct evaluate_ratios r =
            dnn_evaluate_ratios(t->hits[c], t->targets[c], t->outputs[c]);
        const double all[NCOLUMNS] = {
            r.precision,           r.recall,  r.f1, (double)t->targets[c],
            (double)t->outputs[c], area(e, c)};

        memcpy(dnn_evaluate_cell(e, c, 0), all, sizeof all);
    }
}

static void results(struct dnn_evaluation *e)
{
    static const char *const weighted[] = {"weighted_precision", "weighted_recall",
                                           "weighted_f1"};
    const int64_t classes = e->cfg.classes;
    struct tally t = {.hits = dnn_alloc((size_t)classes * 3 * sizeof *t.hits)};
    double expected, largest;
    int64_t hits = 0;

    t.targets = t.hits + classes;
    t.outputs = t.targets + classes;
    if (classes <= EVALUATE_CONFUSION)
        e->results.confusion =
            dnn_alloc((size_t)(classes * classes) * sizeof *e->results.confusion);
    count_rows(e, &t);
    add_classes(e, &t);
    calibrate(e, &expected, &largest);
    for (int64_t c = 0; c < classes; c++)
        hits += t.hits[c];
    const double n = t.n == 0 ? NAN : (double)t.n;
    dnn_evaluate_total(e, "samples", (double)t.n);
    dnn_evaluate_total(e, "accuracy", (double)hits / n);
    if (classes > TOP) dnn_evaluate_total(e, "top_5", (double)t.top / n);
    for (int k = PRECISION; k <= F1; k++)
        dnn_evaluate_total(e, column[k], dnn_evaluate_average(e, k, -1));
    for (int k = PRECISION; k <= F1; k++)
        dnn_evaluate_total(e, weighted[k], dnn_evaluate_average(e, k, SUPPORT));
    dnn_evaluate_total(e, "auc", dnn_evaluate_average(e, AUC, -1));
    dnn_evaluate_total(e, "nll", dnn_evaluate_mean(&t.nll));
    dnn_evaluate_total(e, "brier", dnn_evaluate_mean(&t.brier));
    dnn_evaluate_total(e, "calibration_error", expected);
    dnn_evaluate_total(e, "max_calibration_error", largest);
    dnn_free(t.hits);
}

static double badness(const struct dnn_evaluation *e, const struct evaluate_row *row)
{
    (void)e;
    return row->value[NLL];
}

static void columns(const struct dnn_evaluation *e, struct dnn_buf *out)
{
    (void)e;
    dnn_buf_add(out, ",target,output,correct,confidence,target_probability,nll,brier");
}

static void cells(const struct dnn_evaluation *e, const struct evaluate_row *row,
                  struct dnn_buf *out)
{
    const int64_t t = row->count[TARGET], o = row->count[OUTPUT];

    (void)e;
    dnn_evaluate_csv_number(out, t < 0 ? NAN : (double)t);
    dnn_evaluate_csv_number(out, (double)o);
    dnn_evaluate_csv_number(out, t < 0 ? NAN : t == o);
    for (int k = 0; k < NVALUES; k++)
        dnn_evaluate_csv_number(out, row->value[k]);
}

const struct evaluate_kind dnn_evaluate_labels = {.name = "labels",
                                                  .worst = "nll",
                                                  .descending = true,
                                                  .sizes = sizes,
                                                  .add = add,
                                                  .results = results,
                                                  .badness = badness,
                                                  .columns = columns,
                                                  .cells = cells};
