/* io.c - measure how fast datasets are read, and whether a network would wait for data.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/io_impl.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/progress.h"
#include "data/dataset.h"
#include "data/feed.h"

enum { SMALL = 1000000, PNGS = 512, WORKERS = 2 };

/* MLPerf Storage 2.0, one H100: seconds and samples of a step, bytes of a sample. */
static const double unet_seconds = 0.323, unet_batch = 7, unet_sample = 146.6e6;
static const double resnet_seconds = 0.224, resnet_batch = 400;

struct work {
    const struct dnn_bench_io *cfg;
    struct dnn_io_all all;
    char *dir, *npy, *png, *small; /* owned */
    struct dnn_proc *torch;        /* owned; NULL: none          */
    double pngs;                   /* number of PNG files it reads */
    struct dnn_progress *progress;
};

static int make_sets(struct work *w, struct dnn_err *err)
{
    const struct dnn_bench_io *cfg = w->cfg;
    struct dnn_io_set *volumes = &w->all.set[DNN_IO_VOLUMES];
    struct dnn_io_set *images = &w->all.set[DNN_IO_IMAGES];
    const struct dnn_io_data data[DNN_IO_SETS] = {
        {.path = volumes->path,
         .volumes = true,
         .extent = cfg->extent,
         .classes = 4,
         .count = cfg->volumes},
        {.path = images->path,
         .npy = cfg->against == DNN_AGAINST_TORCH ? w->dir : NULL,
         .extent = cfg->pixels,
         .channels = 3,
         .classes = 1000,
         .count = cfg->images},
    };

    volumes->name = "volumes";
    volumes->batch = cfg->volume_batch;
    volumes->shape = (struct dnn_shape){
        4, {cfg->extent, cfg->extent, cfg->extent, 1}
    };
    images->name = "images";
    images->batch = cfg->image_batch;
    images->shape = (struct dnn_shape){
        3, {cfg->pixels, cfg->pixels, 3}
    };
    for (int i = 0; i < DNN_IO_SETS; i++) {
        struct dnn_io_set *set = &w->all.set[i];

        DNN_TRY(dnn_io_make(&data[i], &set->sample, err));
        set->count = data[i].count;
        set->bytes = set->sample * (double)set->count;
        dnn_progress_at(w->progress, i + 1);
    }
    volumes->compute = images->compute = cfg->compute;
    volumes->why = images->why = "--compute";
    if (cfg->compute > 0) return 0;
    volumes->compute = (double)volumes->batch * volumes->sample * unet_seconds /
                       unet_batch / unet_sample;
    volumes->why =
        "bytes per second of MLPerf Storage's 3D U-Net on an H100 (7 of 146.6 MB in "
        "0.323 s)";
    images->compute = (double)images->batch * resnet_seconds / resnet_batch;
    images->why =
        "images per second of MLPerf Storage's ResNet50 on an H100 (400 in 0.224 s)";
    return 0;
}

/* ---- the feed ---- */

static int drop_cache(struct work *w, const struct dnn_io_set *set, struct dnn_err *err)
{
    double cached;

    if (!w->cfg->cold) return 0;
    DNN_TRY(dnn_io_drop_cache(set->path, &cached, err));
    if (cached > w->all.cached) w->all.cached = cached;
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

/* Access the memory of the feed before the measurement: page faults occur only once in
 * a run of many epochs.  Not for small samples: they remain in this memory, and half of
 * the work would not be measured. */
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

/* Read an epoch; compute > 0: with a pause of so many seconds after each batch.
 * *share: fraction of the time after the first batch that is spent in pauses. */
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
    if (rc == 0) rc = drop_cache(w, set, err);
    if (rc == 0) rc = run_epoch(feed, compute, seconds, share, err);
    dnn_feed_close(feed);
    return rc;
}

/* ---- PyTorch ---- */

static int start_torch(struct work *w, struct dnn_err *err)
{
    char batch[24], workers[24], pngs[24];
    struct dnn_json *first;

    if (w->cfg->against != DNN_AGAINST_TORCH) return 0;
    snprintf(batch, sizeof batch, "%ld", w->cfg->image_batch);
    snprintf(workers, sizeof workers, "%d", WORKERS);
    snprintf(pngs, sizeof pngs, "%d", PNGS);
    const char *const args[] = {"--npy",     w->npy,  "--png",   w->png, "--pngs", pngs,
                                "--workers", workers, "--batch", batch,  NULL};
    DNN_TRY(dnn_torch_start("torch_io.py", args, &w->all.info, &first, &w->torch, err));
    w->pngs = dnn_proc_number(first, "pngs");
    dnn_json_free(first);
    return 0;
}

/* ---- repetitions ---- */

static int run_turn(struct work *w, struct dnn_io_set *set, struct dnn_err *err)
{
    static const char *const request[DNN_IO_PEERS] = {"npy\n", "png\n"};
    double bytes, seconds, share;
    struct dnn_json *reply;

    DNN_TRY(drop_cache(w, set, err));
    DNN_TRY(dnn_io_read_plain(set->path, &bytes, &seconds, err));
    dnn_values_add(&set->plain, bytes / seconds);
    DNN_TRY(feed_turn(w, set, true, 0, &seconds, &share, err));
    dnn_values_add(&set->feed, set->bytes / seconds);
    DNN_TRY(feed_turn(w, set, false, 0, &seconds, &share, err));
    dnn_values_add(&set->rate, (double)set->count / seconds);
    DNN_TRY(feed_turn(w, set, false, set->compute, &seconds, &share, err));
    dnn_values_add(&set->utilisation, share);
    if (w->torch == NULL || set != &w->all.set[DNN_IO_IMAGES]) return 0;
    for (int i = 0; i < DNN_IO_PEERS; i++) {
        if (i == DNN_IO_PNG && w->pngs <= 0) continue;
        DNN_TRY(dnn_proc_ask(w->torch, request[i], &reply, err));
        dnn_values_add(&set->torch[i], dnn_proc_number(reply, "samples") /
                                           dnn_proc_number(reply, "seconds"));
        dnn_json_free(reply);
    }
    return 0;
}

static int measure(struct work *w, struct dnn_io_set *set, struct dnn_err *err)
{
    double bytes, seconds;

    /* Read all files once, so that they are in the page cache in all repetitions. */
    if (!w->cfg->cold) DNN_TRY(dnn_io_read_plain(set->path, &bytes, &seconds, err));
    for (long i = 0; i < w->cfg->reps; i++)
        DNN_TRY(run_turn(w, set, err));
    return 0;
}

static int open_many(struct work *w, struct dnn_err *err)
{
    const struct dnn_io_data data = {
        .path = w->small, .extent = 8, .channels = 1, .classes = 1000, .count = SMALL};
    double bytes;

    DNN_TRY(dnn_io_make(&data, &bytes, err));
    for (int i = 0; i < 3; i++) {
        struct dnn_dataset *set;
        double start = dnn_clock_now();

        DNN_TRY(dnn_dataset_open(NULL, w->small, 1, &set, err));
        dnn_values_add(&w->all.opened, dnn_clock_now() - start);
        dnn_dataset_close(set);
    }
    return 0;
}

static int run(struct work *w, struct dnn_err *err)
{
    DNN_TRY(dnn_bench_make_dir(w->cfg->dir, &w->dir, err));
    w->all.set[DNN_IO_VOLUMES].path = dnn_format("%s/volumes.bp", w->dir);
    w->all.set[DNN_IO_IMAGES].path = dnn_format("%s/images.bp", w->dir);
    w->npy = dnn_format("%s/train_x.npy", w->dir);
    w->png = dnn_format("%s/png", w->dir);
    w->small = dnn_format("%s/small.bp", w->dir);
    DNN_TRY(make_sets(w, err));
    DNN_TRY(start_torch(w, err));
    for (int i = 0; i < DNN_IO_SETS; i++) {
        DNN_TRY(measure(w, &w->all.set[i], err));
        dnn_progress_at(w->progress, 3 + i);
    }
    return w->cfg->million ? open_many(w, err) : 0;
}

int dnn_bench_io(const struct dnn_bench_io *cfg, FILE *where, struct dnn_err *err)
{
    struct work w = {.cfg = cfg};

    w.all.threads = cfg->threads > 0 ? (int)cfg->threads : 2;
    w.all.cached = cfg->cold ? 0 : -1;
    w.progress = dnn_progress_start("bench", "measuring", 4, "datasets", NULL);
    int rc = run(&w, err);
    dnn_progress_stop(w.progress, rc == 0);
    dnn_proc_stop(w.torch);
    if (rc == 0) dnn_io_print(cfg, &w.all, where);
    rc = dnn_bench_remove_dir(w.dir, rc, err);
    for (int i = 0; i < DNN_IO_SETS; i++) {
        struct dnn_io_set *set = &w.all.set[i];

        dnn_free(set->path);
        dnn_values_free(&set->feed);
        dnn_values_free(&set->plain);
        dnn_values_free(&set->rate);
        dnn_values_free(&set->utilisation);
        for (int k = 0; k < DNN_IO_PEERS; k++)
            dnn_values_free(&set->torch[k]);
    }
    dnn_values_free(&w.all.opened);
    dnn_free(w.dir);
    dnn_free(w.npy);
    dnn_free(w.png);
    dnn_free(w.small);
    return rc;
}
