/* train_print.c - the figures of training, for people and for programs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/train_impl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- what was wanted ---- */

/* A figure and what it should be. */
struct verdict {
    const char *key; /* for programs */
    char text[160];  /* for people   */
    double value, wanted;
    double middle; /* the same by medians instead of the fastest; 0: there is no such */
    bool most;     /* no more than that is wanted; else no less */
    bool percent;  /* shown so                                  */
    const char *unit;
};

enum { VERDICTS = 12 };

struct verdicts {
    int n;
    struct verdict v[VERDICTS];
};

/* That of the fastest epoch: whatever else goes on on a machine, and on its neighbours,
 * for seconds or for minutes, only makes it slower. */
static double rate(const struct dnn_train_way *way, bool whole)
{
    return dnn_train_most(whole ? &way->whole : &way->rate);
}

static double middle(const struct dnn_train_way *way, bool whole)
{
    return dnn_train_median(whole ? &way->whole : &way->rate);
}

static const char *layout(char out[64], const struct dnn_train_way *way)
{
    snprintf(out, 64, "%d %s%s x %d thread%s", way->ranks,
             way->rival && way->ranks == 1 ? "process" : "rank",
             way->ranks == 1 ? "" : "s", way->threads, way->threads == 1 ? "" : "s");
    return out;
}

static struct verdict *put(struct verdicts *all, const char *key, double value,
                           double wanted)
{
    static struct verdict none;

    if (!isfinite(value) || all->n == VERDICTS) return &none;
    struct verdict *v = &all->v[all->n++];
    *v = (struct verdict){.key = key, .value = value, .wanted = wanted, .unit = ""};
    return v;
}

/* How many times as fast a way is as another. */
static void compare(struct verdicts *all, const char *key, const char *title,
                    const struct dnn_train_way *a, const struct dnn_train_way *b,
                    bool whole, double wanted)
{
    char one[64], other[64];

    if (a == NULL || b == NULL) return;
    struct verdict *v = put(all, key, rate(a, whole) / rate(b, whole), wanted);
    v->middle = middle(a, whole) / middle(b, whole);
    snprintf(v->text, sizeof v->text, "%s%s, %s / %s, %s%s", title, a->name,
             layout(one, a), b->name, layout(other, b),
             whole ? ", with validation" : "");
}

static void judge_unet(const struct dnn_train_all *all, struct verdicts *to)
{
    const struct dnn_train_way *one = dnn_train_find(all, "unet", "one");
    const struct dnn_train_way *ranks = dnn_train_find(all, "unet", "ranks");
    const struct dnn_train_way *saves = dnn_train_find(all, "unet", "saves");

    compare(to, "ratio_ranks", "", ranks, one, false, 0.97);
    compare(to, "ratio_ddp", "", ranks, dnn_train_find(all, "unet", "torch_ranks"),
            false, 2.5);
    if (ranks != NULL) {
        struct verdict *v = put(to, "comm_share", dnn_train_median(&ranks->bare), 0.03);

        snprintf(v->text, sizeof v->text,
                 "exposed communication of %d ranks, share of the step (besides, "
                 "waiting for a later rank: %.2f %%)",
                 ranks->ranks, 100 * dnn_train_median(&ranks->late));
        v->most = v->percent = true;
    }
    compare(to, "ratio_same_one", "", dnn_train_find(all, "unet", "one_same"), one,
            false, 0.9);
    compare(to, "ratio_same_ranks", "", dnn_train_find(all, "unet", "ranks_same"),
            ranks, false, 0.9);
    if (saves == NULL) return;
    const struct dnn_train_way *plain = saves->ranks > 1 ? ranks : one;
    double lost = dnn_train_median(&saves->extra) - dnn_train_median(&plain->extra);
    struct verdict *v = put(to, "checkpoint_share", lost / 60, 0.01);
    snprintf(v->text, sizeof v->text,
             "a checkpoint a minute (one takes %.3f s of the steps), share of the time",
             lost);
    v->most = v->percent = true;
}

static void judge_cnn(const struct dnn_train_all *all, struct verdicts *to)
{
    const struct dnn_train_way *one = dnn_train_find(all, "cnn", "one");

    compare(to, "ratio_cnn", "CNN: ", one, dnn_train_find(all, "cnn", "torch_one"),
            true, 3);
    compare(to, "ratio_same_cnn", "CNN: ", dnn_train_find(all, "cnn", "one_same"), one,
            false, 0.9);
    if (one == NULL || one->start.n == 0) return;
    struct verdict *v = put(to, "start_s", one->start.value[0], 3);
    snprintf(v->text, sizeof v->text,
             "seconds from start to first step, the first time, kernels are measured");
    v->most = true;
}

/* ---- for people ---- */

static void print_seconds(double seconds, FILE *where)
{
    if (isfinite(seconds))
        fprintf(where, "  %8.2f s", seconds);
    else
        fprintf(where, "  %10s", "-");
}

static void print_way(const struct dnn_train_way *way, FILE *where)
{
    char where_to[64], name[80];
    struct dnn_train_values later = way->start;
    double comm = dnn_train_median(&way->comm);

    snprintf(name, sizeof name, "%s%s%s%s%s", way->name, way->rival ? ", " : "",
             way->format, way->rival ? ", " : "", way->reader);
    fprintf(where, "  %-44s %-22s %10.2f  %10.2f", name, layout(where_to, way),
            rate(way, false), rate(way, true));
    if (isfinite(comm))
        fprintf(where, "  %7.2f %%", 100 * comm);
    else
        fprintf(where, "  %9s", "-");
    print_seconds(later.n > 0 ? later.value[0] : NAN, where);
    later.value++;
    later.n--;
    print_seconds(later.n > 0 ? dnn_train_median(&later) : NAN, where);
    fputc('\n', where);
}

static void print_work(const struct dnn_train_all *all, const struct dnn_train_work *w,
                       FILE *where)
{
    const struct dnn_bench_train *use = &all->use;

    if (w->period > 0)
        fprintf(where,
                "3D U-Net: base %ld, depth %ld; %" PRId64 " volumes of %ldx%ldx%ldx1 "
                "to train and %" PRId64 " to validate with, batch %" PRId64
                "; checkpoints, if any, every %d steps\n",
                use->base, use->depth, w->samples, use->size, use->size, use->size,
                w->tests, w->batch, w->period);
    else
        fprintf(where,
                "simplecnn: %" PRId64 " images of 28x28x1 to train and %" PRId64
                " to validate with (%s), batch %" PRId64 "\n",
                w->samples, w->tests, w->note, w->batch);
    fprintf(where, "  %-44s %-22s %10s  %10s  %9s  %10s  %10s\n", "", "", "training",
            "with valid.", "waits for", "first step", "later");
    fprintf(where, "  %-44s %-22s %10s  %10s  %9s  %10s  %10s\n", "", "", "samples/s",
            "samples/s", "ranks", "of 1st run", "runs");
    for (int i = 0; i < w->nways; i++)
        print_way(&w->way[i], where);
    fputc('\n', where);
}

static void print_verdict(const struct verdict *v, FILE *where)
{
    const char *word = v->most ? "at most" : "at least";

    if (v->percent)
        fprintf(where, "%s: %.2f %% (wanted: %s %.0f %%)\n", v->text, 100 * v->value,
                word, 100 * v->wanted);
    else if (v->middle > 0)
        fprintf(where, "%s: %.2f, by medians %.2f (wanted: %s %.4g)\n", v->text,
                v->value, v->middle, word, v->wanted);
    else
        fprintf(where, "%s: %.2f (wanted: %s %.4g)\n", v->text, v->value, word,
                v->wanted);
}

static void print_text(const struct dnn_train_all *all, const struct verdicts *verdicts,
                       FILE *where)
{
    for (int i = 0; i < all->nworks; i++)
        print_work(all, &all->work[i], where);
    fprintf(where,
            "the fastest of %ld epochs after the first of each run, %ld run%s of each "
            "in turns; Adam, cross-entropy, a record of each step\n",
            all->use.epochs, all->use.reps, all->use.reps == 1 ? "" : "s");
    if (dnn_train_find(all, "unet", "torch_ranks") != NULL)
        fprintf(where, "PyTorch's batch norm is of each rank alone; ours is of the "
                       "whole batch\n");
    if (all->no_ranks != NULL)
        fprintf(where, "several ranks were not measured: %s\n", all->no_ranks);
    if (all->no_torch != NULL)
        fprintf(where, "PyTorch was not measured: %s\n", all->no_torch);
    for (int i = 0; i < verdicts->n; i++)
        print_verdict(&verdicts->v[i], where);
}

/* ---- for programs ---- */

static void json_number(const char *key, double value, FILE *where)
{
    if (isfinite(value)) fprintf(where, ", \"%s\": %.6g", key, value);
}

static void json_way(const struct dnn_train_way *way, FILE *where)
{
    fprintf(where, "\"%s\": {\"ranks\": %d, \"threads\": %d", way->key, way->ranks,
            way->threads);
    json_number("samples_s", rate(way, false), where);
    json_number("whole_samples_s", rate(way, true), where);
    json_number("median_samples_s", middle(way, false), where);
    json_number("median_whole_samples_s", middle(way, true), where);
    json_number("comm", dnn_train_median(&way->comm), where);
    json_number("late", dnn_train_median(&way->late), where);
    json_number("first_start_s", way->start.n > 0 ? way->start.value[0] : NAN, where);
    json_number("start_s", dnn_train_median(&way->start), where);
    if (way->rival)
        fprintf(where, ", \"format\": \"%s\", \"reader\": \"%s\"", way->format,
                way->reader);
    fputc('}', where);
}

static void print_json(const struct dnn_train_all *all, const struct verdicts *verdicts,
                       FILE *where)
{
    fputc('{', where);
    for (int i = 0; i < all->nworks; i++) {
        const struct dnn_train_work *w = &all->work[i];

        fprintf(where, "\"%s\": {\"samples\": %" PRId64 ", \"batch\": %" PRId64, w->key,
                w->samples, w->batch);
        for (int k = 0; k < w->nways; k++) {
            fprintf(where, ", ");
            json_way(&w->way[k], where);
        }
        fprintf(where, "}, ");
    }
    fprintf(where, "\"epochs\": %ld, \"reps\": %ld", all->use.epochs, all->use.reps);
    for (int i = 0; i < verdicts->n; i++)
        json_number(verdicts->v[i].key, verdicts->v[i].value, where);
    fprintf(where, "}\n");
}

void dnn_train_print(const struct dnn_train_all *all, FILE *where)
{
    struct verdicts verdicts = {0};

    judge_unet(all, &verdicts);
    judge_cnn(all, &verdicts);
    if (all->cfg->json)
        print_json(all, &verdicts, where);
    else
        print_text(all, &verdicts, where);
}
