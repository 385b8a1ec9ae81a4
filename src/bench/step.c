/* step.c - time a training step and inference of a network.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/bench_impl.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/progress.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* OpenMP's threads wait with open eyes for a moment after their work; the next one to
 * be measured should not share the cores with them. */
static const double breath = 0.02;

/* How long a turn lasts if steps are short, and how many there are in it at most. */
static const double moment = 0.15;
enum { MOST = 200 };

/* ---- memory of this process, as the system counts it ---- */

/* "VmRSS:", "VmHWM:" in bytes; 0 if the system does not tell. */
static double resident(const char *which)
{
    char *text = NULL;
    uint64_t kib = 0;

    if (dnn_file_read_text("/proc/self/status", 1 << 20, &text, NULL) < 0) return 0;
    const char *at = strstr(text, which);
    if (at != NULL && sscanf(at + strlen(which), " %" SCNu64, &kib) != 1) kib = 0;
    dnn_free(text);
    return (double)kib * 1024;
}

/* From now on the high-water mark is a new one, if the system lets us. */
static void reset_mark(void)
{
    malloc_trim(0);
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

    if (fd < 0) return;
    /* Refused: then the mark stays, and is at most the figure of the run before. */
    if (write(fd, "5", 1) != 1) dnn_clock_sleep(0);
    close(fd);
}

/* ---- one side ---- */

struct work {
    const struct dnn_bench_step *cfg;
    struct dnn_net net;    /* owned */
    struct dnn_loss *loss; /* owned */
    const struct dnn_backend *backend;
    int threads;
    size_t limit;
    struct dnn_bench_side side[DNN_BENCH_SIDES];
    struct dnn_rival *rival[DNN_RIVALS]; /* owned; NULL: nobody */
};

static int make(struct work *w, int which, struct dnn_err *err)
{
    const struct dnn_bench_step *cfg = w->cfg;
    struct dnn_bench_side *side = &w->side[which];
    const struct dnn_model_opts opts = {
        .batch = cfg->batch,
        .training = which == DNN_BENCH_TRAIN,
        .loss = w->loss,
        .optim = dnn_optim_defaults((enum dnn_update)cfg->optimizer),
        .recompute = (enum dnn_recompute)cfg->recompute,
        .limit = w->limit,
        .no_fusion = !cfg->fuse,
        .backend = w->backend,
        .device = {.threads = w->threads,
                   .kernels = (enum dnn_kernel_selection)cfg->kernels,
                   .cache = cfg->cache},
    };

    DNN_TRY(dnn_model_make(w->net.graph, &opts, &side->model, err));
    side->predicted = (double)dnn_model_bytes(side->model).all;
    side->flops = dnn_measure_flops(
        side->model->original != NULL ? side->model->original : side->model->prog);
    reset_mark();
    side->measured = -resident("VmRSS:");
    DNN_TRY(dnn_model_start(side->model, err));
    DNN_TRY(dnn_model_fill(side->model, 1, err));
    /* Filling took memory for a while that a step does not. */
    reset_mark();
    return 0;
}

static int once(struct dnn_bench_side *side, double *seconds, struct dnn_err *err)
{
    double start = dnn_clock_now();

    DNN_TRY(dnn_model_run(side->model, dnn_optim_rate(&side->model->opts.optim), NULL,
                          err));
    *seconds = dnn_clock_now() - start;
    return 0;
}

/* The first runs find their pages and caches; short ones need a few. */
static int warm_up(struct dnn_bench_side *side, struct dnn_err *err)
{
    double seconds, all = 0;

    for (int i = 0; i < 3 && all < 2; i++) {
        DNN_TRY(once(side, &seconds, err));
        all += seconds;
    }
    return 0;
}

/* Times of everybody who takes part: ours, then the rivals'. */
struct times {
    double *of[1 + DNN_RIVALS]; /* owned */
    long n;
};

/* One step of ours (rival NULL) or theirs. */
static int step(struct work *w, int which, struct dnn_rival *rival, double *seconds,
                struct dnn_err *err)
{
    return rival == NULL ? once(&w->side[which], seconds, err)
                         : dnn_rival_run(rival, which == DNN_BENCH_TRAIN, seconds, err);
}

/* Somebody's turn: one step, or if steps are short as many as fit in a moment, of which
 * the first only wakes the threads up.  Gives the median. */
static int stint(struct work *w, int which, struct dnn_rival *rival, double *seconds,
                 struct dnn_err *err)
{
    double each[MOST], all = 0;
    int n = 0;

    while (n < MOST && (n == 0 || all < moment)) {
        DNN_TRY(step(w, which, rival, &each[n], err));
        all += each[n++];
    }
    *seconds = n == 1 ? each[0] : dnn_bench_median(each + 1, n - 1);
    return 0;
}

/* In turns, so that whatever else the machine does hits all alike. */
static int turn(struct work *w, int which, struct times *t, struct dnn_err *err)
{
    DNN_TRY(stint(w, which, NULL, &t->of[0][t->n], err));
    for (int r = 0; r < DNN_RIVALS; r++) {
        if (w->rival[r] == NULL) continue;
        dnn_clock_sleep(breath);
        DNN_TRY(stint(w, which, w->rival[r], &t->of[1 + r][t->n], err));
        dnn_clock_sleep(breath);
    }
    t->n++;
    return 0;
}

static int judge(struct work *w, int which, struct times *t, struct dnn_err *err)
{
    struct dnn_bench_side *side = &w->side[which];

    side->seconds = dnn_bench_median(t->of[0], (int)t->n);
    for (int r = 0; r < DNN_RIVALS; r++) {
        if (w->rival[r] == NULL) continue;
        double seconds = dnn_bench_median(t->of[1 + r], (int)t->n);

        side->rival_each[r] = seconds;
        if (side->rival_format != NULL && seconds >= side->rival_seconds) continue;
        side->rival_seconds = seconds;
        side->rival_format = dnn_rival_formats[r];
        if (which == DNN_BENCH_TRAIN)
            DNN_TRY(dnn_rival_memory(w->rival[r], &side->rival_bytes, err));
    }
    return 0;
}

/* The rivals have warmed up for training when they started. */
static int warm_rivals(struct work *w, int which, struct dnn_err *err)
{
    double seconds;

    for (int r = 0; r < DNN_RIVALS && which == DNN_BENCH_INFER; r++)
        if (w->rival[r] != NULL)
            DNN_TRY(dnn_rival_run(w->rival[r], false, &seconds, err));
    return 0;
}

static int repeat(struct work *w, int which, struct dnn_progress *progress,
                  struct dnn_err *err)
{
    long reps = w->cfg->reps;
    struct times t = {.n = 0};

    for (int i = 0; i < 1 + DNN_RIVALS; i++)
        t.of[i] = dnn_alloc((size_t)reps * sizeof(double));
    int rc = warm_rivals(w, which, err);
    if (rc == 0) rc = warm_up(&w->side[which], err);
    for (long i = 0; i < reps && rc == 0; i++) {
        rc = turn(w, which, &t, err);
        dnn_progress_at(progress, which * reps + i + 1);
    }
    if (rc == 0) rc = judge(w, which, &t, err);
    for (int i = 0; i < 1 + DNN_RIVALS; i++)
        dnn_free(t.of[i]);
    return rc;
}

/* Op by op, which takes a little longer than all at once; scaled to the median. */
static int profile(struct dnn_bench_side *side, struct dnn_err *err)
{
    int n = side->model->prog->nops, runs = side->seconds < 0.5 ? 5 : 1;
    double sum = 0;

    side->op_seconds = dnn_alloc(((size_t)n + 1) * sizeof(double));
    for (int i = 0; i < runs; i++)
        DNN_TRY(dnn_model_run(side->model, dnn_optim_rate(&side->model->opts.optim),
                              side->op_seconds, err));
    for (int o = 0; o < n; o++)
        sum += side->op_seconds[o];
    for (int o = 0; o < n; o++)
        side->op_seconds[o] *= sum > 0 ? side->seconds / sum : 0;
    return 0;
}

static int measure(struct work *w, int which, struct dnn_progress *progress,
                   struct dnn_err *err)
{
    struct dnn_bench_side *side = &w->side[which];

    DNN_TRY(make(w, which, err));
    DNN_TRY(repeat(w, which, progress, err));
    double most = resident("VmHWM:");
    side->measured = most == 0 ? 0 : side->measured + most;
    return w->cfg->json ? 0 : profile(side, err);
}

/* ---- both ---- */

static int read_limit(struct work *w, struct dnn_err *err)
{
    const char *text = w->cfg->limit;
    unsigned long long bytes = 0;

    if (text != NULL && (!dnn_text_size(text, &bytes) || bytes == 0))
        return dnn_fail(err, DNN_EUSAGE,
                        "--memory-limit: must be a size such as 16GiB, not \"%.40s\"",
                        text);
    w->limit = (size_t)bytes;
    return 0;
}

static int open_net(struct work *w, struct dnn_err *err)
{
    const struct dnn_bench_step *cfg = w->cfg;
    const struct dnn_net_size size = {cfg->size, cfg->channels};

    if ((cfg->layers == NULL) == (cfg->zoo.zoo == NULL))
        return dnn_fail(err, DNN_EUSAGE,
                        "which network? give --model NAME or --layers FILE, one of "
                        "them");
    if (cfg->layers != NULL) return dnn_net_file(cfg->layers, &size, &w->net, err);
    return dnn_net_zoo(&cfg->zoo, &size, &w->net, err);
}

/* The network as a file for others; the caller removes it. */
static int write_net(const struct work *w, char path[64], struct dnn_err *err)
{
    const char *dir = getenv("TMPDIR");

    snprintf(path, 64, "%.40s/dnn-bench-XXXXXX",
             dir != NULL && strlen(dir) <= 40 ? dir : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0) return dnn_fail(err, DNN_EIO, "%s: %s", path, strerror(errno));
    close(fd);
    return dnn_file_write(path, w->net.text, strlen(w->net.text), err);
}

static int start_rivals(struct work *w, struct dnn_err *err)
{
    const struct dnn_bench_step *cfg = w->cfg;
    char path[64] = "";
    int rc = 0;

    if (cfg->against == DNN_AGAINST_NOBODY) return 0;
    if (w->net.text != NULL)
        rc = write_net(w, path, err);
    else if (cfg->size != NULL || cfg->channels > 0)
        rc = dnn_fail(err, DNN_EUSAGE,
                      "--against torch takes a file's own size; write it there instead "
                      "of --size");
    if (cfg->loss != 0 || cfg->optimizer != DNN_UPDATE_ADAM)
        rc = dnn_fail(err, DNN_EUSAGE,
                      "--against torch knows the loss mse and the optimizer adam only");
    for (int r = 0; r < DNN_RIVALS && rc == 0; r++) {
        const struct dnn_rival_opts opts = {.layers = path[0] ? path : cfg->layers,
                                            .format = dnn_rival_formats[r],
                                            .batch = cfg->batch,
                                            .threads = w->threads};

        rc = dnn_rival_start(&opts, &w->rival[r], err);
    }
    if (path[0] != '\0') unlink(path);
    return rc;
}

static int go(struct work *w, double *sgemm, FILE *where, struct dnn_err *err)
{
    const struct dnn_bench_step *cfg = w->cfg;
    struct dnn_progress *progress = dnn_progress_start(
        "bench", "measuring", DNN_BENCH_SIDES * cfg->reps, "steps", NULL);
    int rc = start_rivals(w, err);

    *sgemm = rc < 0 ? 0 : dnn_bench_sgemm(w->threads);
    for (int i = 0; i < DNN_BENCH_SIDES && rc == 0; i++) {
        rc = measure(w, i, progress, err);
        dnn_progress_hide(progress);
        double again = rc < 0 ? 0 : dnn_bench_sgemm(w->threads);
        if (again > *sgemm) *sgemm = again;
        if (rc == 0 && !cfg->json)
            dnn_bench_print_side(cfg, i, &w->side[i], *sgemm, where);
        dnn_model_free(w->side[i].model);
        w->side[i].model = NULL;
    }
    dnn_progress_stop(progress, rc == 0);
    return rc;
}

int dnn_bench_step(const struct dnn_bench_step *cfg, FILE *where, struct dnn_err *err)
{
    struct work w = {.cfg = cfg,
                     .threads =
                         cfg->threads > 0 ? (int)cfg->threads : omp_get_max_threads()};
    double sgemm = 0;

    int rc = dnn_model_backend(cfg->backend, &w.backend, err);
    if (rc == 0) rc = read_limit(&w, err);
    if (rc == 0) rc = open_net(&w, err);
    if (rc == 0)
        rc = dnn_loss_make(dnn_choice_name(dnn_loss_names, cfg->loss), &w.loss, err);
    if (rc == 0) rc = go(&w, &sgemm, where, err);
    if (rc == 0 && cfg->json) dnn_bench_print_json(cfg, w.side, sgemm, where);
    for (int i = 0; i < DNN_BENCH_SIDES; i++) {
        dnn_model_free(w.side[i].model);
        dnn_free(w.side[i].op_seconds);
    }
    for (int r = 0; r < DNN_RIVALS; r++)
        dnn_rival_stop(w.rival[r]);
    dnn_loss_free(w.loss);
    dnn_net_free(&w.net);
    return rc;
}
