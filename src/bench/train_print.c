/* train_print.c - print the results of dnn-bench train, as text and as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/train_impl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- results and their targets ---- */

struct result {
    const char *key; /* key in JSON */
    char text[200];
    double value, target;
    double median; /* value from medians instead of the fastest epochs; 0: undefined */
    bool at_most;  /* the target is an upper limit */
    bool percent;
};

struct results {
    int n;
    struct result r[12];
};

/* The speed of the fastest epoch: other load on the machine makes epochs slower. */
static double fastest(const struct dnn_train_setup *s, bool total)
{
    return dnn_values_max(total ? &s->total : &s->rate);
}

static double median(const struct dnn_train_setup *s, bool total)
{
    return dnn_values_median(total ? &s->total : &s->rate);
}

static const char *layout(char out[64], const struct dnn_train_setup *s)
{
    snprintf(out, 64, "%d %s%s x %d thread%s", s->ranks,
             s->torch && s->ranks == 1 ? "process" : "rank", s->ranks == 1 ? "" : "s",
             s->threads, s->threads == 1 ? "" : "s");
    return out;
}

static const struct dnn_train_setup *find(const struct dnn_train *t, const char *net,
                                          const char *setup)
{
    for (int i = 0; i < t->nnets; i++)
        for (int k = 0; k < t->net[i].nsetups; k++)
            if (strcmp(t->net[i].key, net) == 0 &&
                strcmp(t->net[i].setup[k].key, setup) == 0)
                return &t->net[i].setup[k];
    return NULL;
}

static void add_result(struct results *all, struct result r)
{
    if (isfinite(r.value)) all->r[all->n++] = r;
}

/* Add the ratio of the speeds of two setups. */
static void compare(struct results *all, const char *key, const char *title,
                    const struct dnn_train_setup *a, const struct dnn_train_setup *b,
                    bool total, double target)
{
    struct result r = {.key = key, .target = target};
    char one[64], other[64];

    if (a == NULL || b == NULL) return;
    r.value = fastest(a, total) / fastest(b, total);
    r.median = median(a, total) / median(b, total);
    snprintf(r.text, sizeof r.text, "%s%s, %s / %s, %s%s", title, a->name,
             layout(one, a), b->name, layout(other, b),
             total ? ", with validation" : "");
    add_result(all, r);
}

static void add_unet(const struct dnn_train *t, struct results *to)
{
    const struct dnn_train_setup *one = find(t, "unet", "one");
    const struct dnn_train_setup *ranks = find(t, "unet", "ranks");
    const struct dnn_train_setup *saves = find(t, "unet", "checkpoints");

    compare(to, "ratio_ranks", "", ranks, one, false, 0.97);
    compare(to, "ratio_ddp", "", ranks, find(t, "unet", "torch_ranks"), false, 2.5);
    if (ranks != NULL) {
        struct result r = {.key = "comm_share",
                           .value = dnn_values_median(&ranks->bare),
                           .target = 0.03,
                           .at_most = true,
                           .percent = true};

        snprintf(r.text, sizeof r.text,
                 "exposed communication of %d ranks, share of the step (besides, "
                 "waiting for a straggler: %.2f %%)",
                 ranks->ranks, 100 * dnn_values_median(&ranks->straggler));
        add_result(to, r);
    }
    compare(to, "ratio_deterministic_one", "", find(t, "unet", "one_deterministic"),
            one, false, 0.9);
    compare(to, "ratio_deterministic_ranks", "", find(t, "unet", "ranks_deterministic"),
            ranks, false, 0.9);
    if (saves == NULL) return;
    const struct dnn_train_setup *plain = saves->ranks > 1 ? ranks : one;
    double excess =
        dnn_values_median(&saves->excess) - dnn_values_median(&plain->excess);
    struct result r = {.key = "checkpoint_share",
                       .value = excess / 60,
                       .target = 0.01,
                       .at_most = true,
                       .percent = true};
    snprintf(r.text, sizeof r.text,
             "one checkpoint per minute (it delays steps by %.3f s), share of the time",
             excess);
    add_result(to, r);
}

static void add_cnn(const struct dnn_train *t, struct results *to)
{
    const struct dnn_train_setup *one = find(t, "cnn", "one");

    compare(to, "ratio_cnn", "CNN: ", one, find(t, "cnn", "torch_one"), true, 3);
    compare(to, "ratio_deterministic_cnn", "CNN: ", find(t, "cnn", "one_deterministic"),
            one, false, 0.9);
    if (one == NULL || one->start.n == 0) return;
    add_result(to, (struct result){
                       .key = "start_s",
                       .text = "CNN: seconds from start to first step of the first "
                               "run, with autotuning",
                       .value = one->start.value[0],
                       .target = 3,
                       .at_most = true});
}

/* ---- text ---- */

/* Print a number, or a dash, with this width. */
static void cell(FILE *where, const char *fmt, int width, double x)
{
    if (isfinite(x))
        fprintf(where, fmt, x);
    else
        fprintf(where, "  %*s", width, "-");
}

static void print_setup(const struct dnn_train_setup *s, FILE *where)
{
    struct dnn_values later = s->start;
    char place[64], name[80];

    snprintf(name, sizeof name, "%s", s->name);
    if (s->torch)
        snprintf(name, sizeof name, "%s, %s, %s, %s", s->name, s->format, s->reader,
                 s->mode);
    fprintf(where, "  %-44s %-22s %10.2f  %10.2f", name, layout(place, s),
            fastest(s, false), fastest(s, true));
    cell(where, "  %7.2f %%", 9, 100 * dnn_values_median(&s->comm));
    cell(where, "  %8.2f s", 10, s->start.n > 0 ? s->start.value[0] : NAN);
    later.value++;
    later.n--;
    cell(where, "  %8.2f s", 10, later.n > 0 ? dnn_values_median(&later) : NAN);
    fputc('\n', where);
}

static void print_net(const struct dnn_train *t, const struct dnn_train_net *net,
                      FILE *where)
{
    const struct dnn_bench_train *cfg = &t->cfg;

    if (net->period > 0)
        fprintf(where,
                "3D U-Net: base %ld, depth %ld; %" PRId64 " training and %" PRId64
                " validation volumes of %ldx%ldx%ldx1, batch %" PRId64
                "; checkpoints, if any, every %d steps\n",
                cfg->base, cfg->depth, net->samples, net->tests, cfg->size, cfg->size,
                cfg->size, net->batch, net->period);
    else
        fprintf(where,
                "simplecnn: %" PRId64 " training and %" PRId64
                " validation images of 28x28x1 (%s), batch %" PRId64 "\n",
                net->samples, net->tests, net->images, net->batch);
    fprintf(where, "  %-44s %-22s %10s  %10s  %9s  %10s  %10s\n", "", "", "training",
            "with valid.", "waits for", "first step", "later");
    fprintf(where, "  %-44s %-22s %10s  %10s  %9s  %10s  %10s\n", "", "", "samples/s",
            "samples/s", "ranks", "of 1st run", "runs");
    for (int i = 0; i < net->nsetups; i++)
        print_setup(&net->setup[i], where);
    fputc('\n', where);
}

static void print_text(const struct dnn_train *t, const struct results *results,
                       FILE *where)
{
    char text[DNN_TORCH_TEXT];

    for (int i = 0; i < t->nnets; i++)
        print_net(t, &t->net[i], where);
    fprintf(where,
            "fastest of %ld epochs after the first of each run, %ld run%s of each in "
            "turns; Adam, cross-entropy, a record of each step\n",
            t->cfg.epochs, t->cfg.reps, t->cfg.reps == 1 ? "" : "s");
    if (t->info.version[0] != '\0')
        fprintf(where, "against %s\n", dnn_torch_text(text, &t->info));
    if (find(t, "unet", "torch_ranks") != NULL)
        fprintf(where, "PyTorch's batch norm uses the samples of each rank, ours those "
                       "of all ranks\n");
    if (t->rank_error.code != 0)
        fprintf(where, "several ranks are not measured: %s\n", t->rank_error.text);
    if (t->torch_error.code != 0)
        fprintf(where, "PyTorch is not measured: %s\n", t->torch_error.text);
    for (int i = 0; i < results->n; i++) {
        const struct result *r = &results->r[i];
        double scale = r->percent ? 100 : 1;
        const char *unit = r->percent ? " %" : "";

        fprintf(where, "%s: %.2f%s", r->text, scale * r->value, unit);
        if (r->median > 0) fprintf(where, ", by medians %.2f", r->median);
        fprintf(where, " (target: at %s %.4g%s)\n", r->at_most ? "most" : "least",
                scale * r->target, unit);
    }
}

/* ---- JSON ---- */

static void json_number(const char *key, double value, FILE *where)
{
    if (isfinite(value)) fprintf(where, ", \"%s\": %.6g", key, value);
}

static void json_setup(const struct dnn_train_setup *s, FILE *where)
{
    fprintf(where, ", \"%s\": {\"ranks\": %d, \"threads\": %d", s->key, s->ranks,
            s->threads);
    json_number("samples_s", fastest(s, false), where);
    json_number("total_samples_s", fastest(s, true), where);
    json_number("median_samples_s", median(s, false), where);
    json_number("median_total_samples_s", median(s, true), where);
    json_number("comm", dnn_values_median(&s->comm), where);
    json_number("straggler", dnn_values_median(&s->straggler), where);
    json_number("first_start_s", s->start.n > 0 ? s->start.value[0] : NAN, where);
    json_number("start_s", dnn_values_median(&s->start), where);
    if (s->torch)
        fprintf(where, ", \"format\": \"%s\", \"reader\": \"%s\", \"mode\": \"%s\"",
                s->format, s->reader, s->mode);
    fputc('}', where);
}

static void print_json(const struct dnn_train *t, const struct results *results,
                       FILE *where)
{
    fputc('{', where);
    for (int i = 0; i < t->nnets; i++) {
        const struct dnn_train_net *net = &t->net[i];

        fprintf(where, "\"%s\": {\"samples\": %" PRId64 ", \"batch\": %" PRId64,
                net->key, net->samples, net->batch);
        for (int k = 0; k < net->nsetups; k++)
            json_setup(&net->setup[k], where);
        fprintf(where, "}, ");
    }
    if (t->info.version[0] != '\0')
        fprintf(where, "\"torch\": \"%s\", \"torch_mkl\": %s, ", t->info.version,
                t->info.mkl ? "true" : "false");
    fprintf(where, "\"epochs\": %ld, \"reps\": %ld", t->cfg.epochs, t->cfg.reps);
    for (int i = 0; i < results->n; i++) {
        char key[64];

        json_number(results->r[i].key, results->r[i].value, where);
        snprintf(key, sizeof key, "%s_median", results->r[i].key);
        if (results->r[i].median > 0) json_number(key, results->r[i].median, where);
    }
    fprintf(where, "}\n");
}

void dnn_train_print(const struct dnn_train *t, FILE *where)
{
    struct results results = {0};

    add_unet(t, &results);
    add_cnn(t, &results);
    if (t->cfg.json)
        print_json(t, &results, where);
    else
        print_text(t, &results, where);
}
