/* io.c - how fast datasets are read, and whether a network would have to wait.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/io_impl.h"
#include "bench/turns_impl.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/progress.h"
#include "data/dataset.h"
#include "data/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = 16, SMALL = 1000000, PNGS = 512, WORKERS = 2 };

/* MLPerf Storage 2.0, one H100: what a step of so many samples takes. */
static const double unet_seconds = 0.323, unet_batch = 7, unet_sample = 146.6e6;
static const double resnet_seconds = 0.224, resnet_batch = 400;

struct work {
    const struct dnn_bench_io *cfg;
    struct dnn_io_all all;
    char *dir, *npy, *png, *small; /* owned */
    bool own;                      /* dir is ours: it goes afterwards */
    struct dnn_rival *rival;
    double pngs; /* images it has as PNG files */
    struct dnn_progress *progress;
};

/* ---- a place ---- */

static int make_dir(struct work *w, struct dnn_err *err)
{
    const char *tmp = getenv("TMPDIR");

    if (w->cfg->dir != NULL) DNN_TRY(dnn_file_make_dirs(w->cfg->dir, err));
    w->dir = dnn_format("%s/dnn-bench-io-XXXXXX", w->cfg->dir != NULL ? w->cfg->dir
                                                  : tmp != NULL       ? tmp
                                                                      : "/tmp");
    if (mkdtemp(w->dir) == NULL)
        return dnn_fail(err, DNN_EIO, "%s: %s", w->dir, strerror(errno));
    w->own = true;
    w->all.set[DNN_IO_VOLUMES].path = dnn_format("%s/volumes.bp", w->dir);
    w->all.set[DNN_IO_IMAGES].path = dnn_format("%s/images.bp", w->dir);
    w->npy = dnn_format("%s/images.npy", w->dir);
    w->png = dnn_format("%s/png", w->dir);
    w->small = dnn_format("%s/small.bp", w->dir);
    return 0;
}

static int make_sets(struct work *w, struct dnn_err *err)
{
    const struct dnn_bench_io *cfg = w->cfg;
    struct dnn_io_set *volumes = &w->all.set[DNN_IO_VOLUMES];
    struct dnn_io_set *images = &w->all.set[DNN_IO_IMAGES];

    volumes->name = "volumes";
    volumes->count = cfg->volumes;
    volumes->batch = cfg->volume_batch;
    images->name = "images";
    images->count = cfg->images;
    images->batch = cfg->image_batch;
    DNN_TRY(dnn_io_make_volumes(volumes, cfg->extent, err));
    dnn_progress_at(w->progress, 1);
    DNN_TRY(dnn_io_make_images(images, cfg->pixels,
                               cfg->against == DNN_AGAINST_TORCH ? w->npy : NULL, err));
    dnn_progress_at(w->progress, 2);
    volumes->compute = images->compute = cfg->compute;
    volumes->why = images->why = "as asked for";
    if (cfg->compute > 0) return 0;
    volumes->compute = (double)volumes->batch * volumes->sample * unet_seconds /
                       unet_batch / unet_sample;
    volumes->why =
        "as many bytes a second as MLPerf Storage's 3D U-Net on an H100 (7 of "
        "146.6 MB in 0.323 s)";
    images->compute = (double)images->batch * resnet_seconds / resnet_batch;
    images->why =
        "as many images a second as MLPerf Storage's ResNet50 on an H100 (400 "
        "in 0.224 s)";
    return 0;
}

/* ---- the feed ---- */

static int forget(struct work *w, const struct dnn_io_set *set, struct dnn_err *err)
{
    double left;

    if (!w->cfg->cold) return 0;
    DNN_TRY(dnn_io_forget(set->path, &left, err));
    if (left > w->all.left) w->all.left = left;
    return 0;
}

static int open_feed(struct work *w, struct dnn_io_set *set, bool stored,
                     struct dnn_feed **out, struct dnn_err *err)
{
    const struct dnn_feed_cfg cfg = {.path = set->path,
                                     .batch_size = set->batch,
                                     .shuffle = true,
                                     .seed = 1,
                                     .stored = stored,
                                     .threads = w->all.threads};

    DNN_TRY(dnn_feed_open(NULL, &cfg, out, err));
    set->memory = (double)dnn_feed_bytes(*out);
    const struct dnn_column *col;
    int n = dnn_feed_columns(*out, &col);
    set->made = 0;
    for (int k = 0; k < n; k++) {
        int64_t count;

        DNN_TRY(dnn_shape_count(&col[k].shape, &count, err));
        set->made += (double)count * 4;
    }
    return 0;
}

/* Touch the feed's memory: what the system takes to provide it is paid once in a run of
 * many epochs.  Small samples stay in it, so for them this would be half the work. */
static int warm_up(struct dnn_feed *feed, const struct dnn_io_set *set,
                   struct dnn_err *err)
{
    const struct dnn_batch *batch;

    if (set->sample < 65536) return 0;
    DNN_TRY(dnn_feed_start(feed, 0, 0, err));
    for (int i = 0; i < 5; i++)
        DNN_TRY(dnn_feed_next(feed, &batch, NULL, err));
    dnn_feed_stop(feed);
    return 0;
}

/* An epoch; compute > 0: with a pause after each batch, and what part of the time after
 * the first batch the pauses are. */
static int run_epoch(struct dnn_feed *feed, double compute, double *seconds,
                     double *share, struct dnn_err *err)
{
    int64_t n = dnn_feed_batches(feed);
    double start = dnn_clock_now(), first = start, computed = 0;
    const struct dnn_batch *batch;

    DNN_TRY(dnn_feed_start(feed, 0, 0, err));
    for (int64_t i = 0; i < n; i++) {
        DNN_TRY(dnn_feed_next(feed, &batch, NULL, err));
        double now = dnn_clock_now();
        if (i == 0) first = now;
        if (compute <= 0) continue;
        dnn_clock_sleep(compute);
        computed += dnn_clock_now() - now;
    }
    double end = dnn_clock_now();
    dnn_feed_stop(feed);
    *seconds = end - start;
    *share = end > first ? computed / (end - first) : 0;
    return 0;
}

static int feed_turn(struct work *w, struct dnn_io_set *set, bool stored,
                     double compute, double *seconds, double *share,
                     struct dnn_err *err)
{
    struct dnn_feed *feed;

    DNN_TRY(open_feed(w, set, stored, &feed, err));
    int rc = warm_up(feed, set, err);
    if (rc == 0) rc = forget(w, set, err);
    if (rc == 0) rc = run_epoch(feed, compute, seconds, share, err);
    dnn_feed_close(feed);
    return rc;
}

/* ---- the rival ---- */

static int start_rival(struct work *w, struct dnn_err *err)
{
    char batch[24], workers[24], pngs[24];
    double number[2];

    if (w->cfg->against != DNN_AGAINST_TORCH) return 0;
    snprintf(batch, sizeof batch, "%ld", w->cfg->image_batch);
    snprintf(workers, sizeof workers, "%d", WORKERS);
    snprintf(pngs, sizeof pngs, "%d", PNGS);
    const char *const args[] = {"--npy",     w->npy,  "--png",   w->png, "--pngs", pngs,
                                "--workers", workers, "--batch", batch,  NULL};
    DNN_TRY(dnn_rival_open("torch_io.py", args, (const char *const[]){"pngs", NULL},
                           number, &w->rival, err));
    w->pngs = number[0];
    return 0;
}

/* Samples per second, of images from NumPy's file or from PNG files. */
static int rival_turn(struct work *w, int which, double *rate, struct dnn_err *err)
{
    double number[2];

    DNN_TRY(dnn_rival_ask(w->rival, which == DNN_IO_NPY ? "npy" : "png",
                          (const char *const[]){"seconds", "samples"}, number, err));
    *rate = number[0] > 0 ? number[1] / number[0] : 0;
    return 0;
}

/* ---- turns ---- */

struct times {
    double feed[TURNS], made[TURNS], plain[TURNS], share[TURNS],
        rival[DNN_IO_RIVALS][TURNS];
};

static int turn(struct work *w, struct dnn_io_set *set, struct times *t, int i,
                struct dnn_err *err)
{
    double bytes, seconds, none;

    DNN_TRY(forget(w, set, err));
    DNN_TRY(dnn_io_read_plain(set->path, &bytes, &seconds, err));
    t->plain[i] = bytes / seconds;
    DNN_TRY(feed_turn(w, set, true, 0, &seconds, &none, err));
    t->feed[i] = set->bytes / seconds;
    DNN_TRY(feed_turn(w, set, false, 0, &seconds, &none, err));
    t->made[i] = (double)set->count / seconds;
    DNN_TRY(feed_turn(w, set, false, set->compute, &seconds, &t->share[i], err));
    if (w->rival == NULL || set != &w->all.set[DNN_IO_IMAGES]) return 0;
    for (int r = 0; r < DNN_IO_RIVALS; r++)
        if (r == DNN_IO_NPY || w->pngs > 0)
            DNN_TRY(rival_turn(w, r, &t->rival[r][i], err));
    return 0;
}

static int measure(struct work *w, struct dnn_io_set *set, struct dnn_err *err)
{
    struct times *t = dnn_alloc(sizeof *t);
    int n = (int)w->cfg->reps, rc = 0;
    double bytes, seconds;

    /* Once, so that all are warm alike. */
    if (!w->cfg->cold) rc = dnn_io_read_plain(set->path, &bytes, &seconds, err);
    for (int i = 0; i < n && rc == 0; i++)
        rc = turn(w, set, t, i, err);
    if (rc == 0) {
        set->plain = dnn_bench_median(t->plain, n);
        set->feed = dnn_bench_median(t->feed, n);
        set->rate = dnn_bench_median(t->made, n);
        set->utilisation = dnn_bench_median(t->share, n);
        for (int r = 0; r < DNN_IO_RIVALS; r++)
            set->rival[r] = dnn_bench_median(t->rival[r], n);
    }
    dnn_free(t);
    return rc;
}

static int open_many(struct work *w, struct dnn_err *err)
{
    double seconds[3];

    DNN_TRY(dnn_io_make_small(w->small, SMALL, err));
    for (int i = 0; i < 3; i++) {
        struct dnn_dataset *set;
        double start = dnn_clock_now();

        DNN_TRY(dnn_dataset_open(NULL, w->small, 1, &set, err));
        seconds[i] = dnn_clock_now() - start;
        dnn_dataset_close(set);
    }
    w->all.opened = dnn_bench_median(seconds, 3);
    return 0;
}

static int go(struct work *w, struct dnn_err *err)
{
    DNN_TRY(make_dir(w, err));
    DNN_TRY(make_sets(w, err));
    DNN_TRY(start_rival(w, err));
    for (int i = 0; i < DNN_IO_SETS; i++) {
        DNN_TRY(measure(w, &w->all.set[i], err));
        dnn_progress_at(w->progress, 3 + i);
    }
    return w->cfg->million ? open_many(w, err) : 0;
}

int dnn_bench_io(const struct dnn_bench_io *cfg, FILE *where, struct dnn_err *err)
{
    struct work w = {.cfg = cfg};
    struct dnn_err second = {0};

    w.all.threads = cfg->threads > 0 ? (int)cfg->threads : 2;
    w.all.left = cfg->cold ? 0 : -1;
    w.progress = dnn_progress_start("bench", "measuring", 4, "datasets", NULL);
    int rc = go(&w, err);
    dnn_progress_stop(w.progress, rc == 0);
    dnn_rival_stop(w.rival);
    if (rc == 0) dnn_io_print(cfg, &w.all, where);
    if (w.own) {
        int gone = dnn_file_remove_tree(w.dir, &second);

        if (rc == 0 && gone < 0) {
            rc = gone;
            if (err != NULL) *err = second;
        }
    }
    for (int i = 0; i < DNN_IO_SETS; i++)
        dnn_free(w.all.set[i].path);
    dnn_free(w.dir);
    dnn_free(w.npy);
    dnn_free(w.png);
    dnn_free(w.small);
    return rc;
}
