/* data_feed_set.c - batches of a prepared dataset: by chunks, one by one, preloaded,
 * with folds and checksums; always the same numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "data_set.h"

#include "base/file.h"

#include <math.h>
#include <unistd.h>

static char dir[] = "/tmp/dnn-feed-XXXXXX";
static char *small, *large;

static float voxel(int64_t i, int64_t k)
{
    return (float)(i * 1000 + k % 977);
}

/* ---- writing ---- */

enum { EXTENT = 26, VOXELS = EXTENT * EXTENT * EXTENT, VOLUMES = 9 };

static void write_large(void)
{
    struct dnn_dataset_info *info = info_of("all", VOLUMES, 1);
    struct dnn_split *split = &info->split[0];
    struct dnn_dataset_writer *w = NULL;
    float *x = dnn_alloc(VOXELS * sizeof *x);
    int16_t *mask = dnn_alloc(VOXELS * sizeof *mask);

    split->ncols = 2;
    column(&split->col[0], "input", DNN_ROLE_INPUT, DNN_KIND_IMAGE, DNN_F32,
           "26x26x26x1");
    column(&split->col[1], "mask", DNN_ROLE_TARGET, DNN_KIND_MASK, DNN_I16,
           "26x26x26x1");
    split->col[1].column.classes = 5;
    int rc = dnn_dataset_create(NULL, large, info, NULL, &w, &err);
    for (int64_t i = 0; i < VOLUMES && rc == 0; i++) {
        char text[16];

        snprintf(text, sizeof text, "v%" PRId64, i);
        for (int64_t k = 0; k < VOXELS; k++) {
            x[k] = voxel(i, k);
            mask[k] = (int16_t)((i + k) % 5);
        }
        if (i == 8) x[26 * 26 * 2 + 26 * 3 + 4] = NAN;
        rc = dnn_dataset_put(w, 0, i, 1, (const void *const[]){x, mask},
                             (const char *const[]){text}, NULL, NULL, &err);
    }
    finish(info, w, rc);
    dnn_free(x);
    dnn_free(mask);
}

/* ---- reading ---- */

static bool small_row(const struct dnn_batch *b, int64_t i, int64_t sample)
{
    const float *x = (const float *)b->data[0] + i * POINTS;
    const int32_t *label = b->data[1], *id = b->data[2];
    bool good = b->sample[i] == sample && label[i] == sample % 7 && id[i] == -sample;

    for (int k = 0; k < POINTS; k++)
        good &= x[k] ==
                (float)pixel(sample, k) * (float)scale[k % 3] + (float)offset[k % 3];
    return good;
}

static bool large_row(const struct dnn_batch *b, int64_t i, int64_t sample)
{
    const float *x = (const float *)b->data[0] + i * VOXELS;
    const int32_t *mask = (const int32_t *)b->data[1] + i * VOXELS;
    bool good = b->sample[i] == sample;

    for (int64_t k = 0; k < VOXELS; k++)
        good &= x[k] == voxel(sample, k) && mask[k] == (sample + k) % 5;
    return good;
}

/* The selected samples, in order. */
static int64_t picked(const struct dnn_feed_cfg *cfg, int64_t *out)
{
    int64_t n = 0, fold = cfg->fold;

    for (int64_t i = 0; i < COUNT; i++)
        if (fold == 0 || (fold > 0 && fold_of(i) != fold - 1) ||
            (fold < 0 && fold_of(i) == -fold - 1))
            out[n++] = i;
    return n;
}

/* Read the small dataset from a position, and compare with the order. */
static bool as_ordered(const struct dnn_feed_cfg *cfg, int64_t epoch, int64_t batch,
                       int steps)
{
    int64_t pick[COUNT], count = picked(cfg, pick);
    int64_t bytes = cfg->window > 0 ? cfg->window : (int64_t)512 << 20;
    int64_t window = bytes / STORED < CHUNK ? CHUNK : bytes / STORED;
    const struct dnn_order order = {count, CHUNK, window, cfg->shuffle, cfg->seed};
    struct dnn_feed *feed = NULL;
    bool good = dnn_feed_open(NULL, cfg, &feed, &err) == 0 &&
                dnn_feed_start(feed, epoch, batch, &err) == 0 &&
                dnn_feed_count(feed) == count;

    for (int s = 0; s < steps && good; s++) {
        const struct dnn_batch *b = NULL;

        good = dnn_feed_next(feed, &b, NULL, &err) == 0 && b->epoch == epoch &&
               b->number == batch;
        for (int64_t i = 0; good && i < b->n; i++)
            good = small_row(b, i, pick[dnn_order_at(&order, epoch, b->first + i)]);
        if (++batch == dnn_feed_batches(feed)) {
            batch = 0;
            epoch++;
        }
    }
    if (!good && err.text[0] != '\0') printf("# %s\n", err.text);
    dnn_feed_close(feed);
    return good;
}

static void by_chunks(void)
{
    struct dnn_feed_cfg cfg = {.path = small, .batch_size = 8, .seed = 3};

    ok(as_ordered(&cfg, 0, 0, 30), "in order");
    cfg.shuffle = true;
    ok(as_ordered(&cfg, 0, 0, 30), "shuffled as a whole");
    for (int threads = 1; threads <= 4; threads++)
        for (int64_t chunks = 1; chunks <= 7; chunks += 2) {
            cfg.threads = threads;
            cfg.window = chunks * CHUNK * STORED;
            ok(as_ordered(&cfg, 0, 0, 45), "windows of %" PRId64 " chunks, %d threads",
               chunks, threads);
        }
    bool good = true;
    cfg.window = 3 * CHUNK * STORED;
    for (int64_t epoch = 0; epoch < 2; epoch++)
        for (int64_t batch = 0; batch < 13; batch++)
            good &= as_ordered(&cfg, epoch, batch, 9);
    ok(good, "from any batch of any epoch");
    cfg.batch_size = 64;
    ok(as_ordered(&cfg, 0, 0, 5), "batches larger than windows");
    cfg.batch_size = 5;
    cfg.ahead = 2;
    cfg.window = 60 * STORED;
    cfg.memory = memory_of(&cfg) - 1;
    ok(as_ordered(&cfg, 0, 0, 45), "too little memory for windows: one by one");
    cfg.memory = cfg.ahead = 0;
    cfg.preload = true;
    ok(as_ordered(&cfg, 0, 7, 45), "preloaded");
    cfg.verify = true;
    ok(as_ordered(&cfg, 0, 7, 45), "preloaded and verified");
    cfg.preload = false;
    ok(as_ordered(&cfg, 0, 7, 45), "verified");
}

static void folds(void)
{
    struct dnn_feed_cfg cfg = {.path = small, .batch_size = 7, .seed = 9};

    for (int64_t fold = -3; fold <= 3; fold++) {
        cfg.fold = fold;
        cfg.shuffle = false;
        cfg.window = 0;
        cfg.preload = false;
        bool good = as_ordered(&cfg, 0, 0, 20);
        cfg.shuffle = true;
        good &= as_ordered(&cfg, 0, 1, 20);
        cfg.window = 4 * CHUNK * STORED;
        good &= as_ordered(&cfg, 1, 1, 20);
        cfg.preload = true;
        good &= as_ordered(&cfg, 1, 0, 20);
        ok(good, "fold %" PRId64, fold);
    }
}

static void one_by_one(void)
{
    for (int threads = 1; threads < 4; threads++) {
        struct dnn_feed_cfg cfg = {
            .path = large, .batch_size = 3, .threads = threads, .verify = threads == 2};
        struct dnn_feed *feed = NULL;
        const struct dnn_batch *b;
        bool good = dnn_feed_open(NULL, &cfg, &feed, &err) == 0 &&
                    dnn_feed_start(feed, 0, 0, &err) == 0;

        for (int64_t s = 0; s < 2 && good; s++) {
            good = dnn_feed_next(feed, &b, NULL, &err) == 0 && b->n == 3;
            for (int64_t i = 0; good && i < 3; i++)
                good = large_row(b, i, s * 3 + i);
        }
        ok(good, "volumes are read one by one, %d threads", threads);
        is_int(dnn_feed_next(feed, &b, NULL, &err), DNN_EDATA, "a NaN in one");
        char *want = dnn_format(
            "%s: all[8] (v8): input[2,3,4,0] is NaN; values must be finite", large);
        is_text(err.text, want, "and where");
        dnn_free(want);
        dnn_feed_close(feed);
    }
}

/* ---- errors ---- */

static void fails(struct dnn_feed_cfg cfg, const char *fmt, const char *path,
                  const char *what)
{
    struct dnn_feed *feed = NULL;
    char *want = dnn_format("%s: %s", path, fmt);
    const struct dnn_batch *b;

    cfg.path = path;
    cfg.batch_size = 5;
    err.text[0] = '\0';
    if (dnn_feed_open(NULL, &cfg, &feed, &err) == 0 &&
        dnn_feed_start(feed, 0, 0, &err) == 0)
        for (int64_t i = 0; i < dnn_feed_batches(feed); i++)
            if (dnn_feed_next(feed, &b, NULL, &err) < 0) break;
    is_text(err.text, want, what);
    dnn_free(want);
    dnn_feed_close(feed);
}

/* Change a byte of sample 42 where it is stored. */
static bool damage(void)
{
    uint8_t row[POINTS];
    char *path = dnn_format("%s/data.0", small), *bytes = NULL;
    size_t len = 0;

    for (int k = 0; k < POINTS; k++)
        row[k] = pixel(42, k);
    bool good = dnn_file_read(path, 1 << 28, &bytes, &len, &err) == 0;
    char *at = good ? memmem(bytes, len, row, sizeof row) : NULL;
    if (at != NULL) at[17] ^= 4;
    good = at != NULL && dnn_file_write(path, bytes, len, &err) == 0;
    dnn_free(bytes);
    dnn_free(path);
    return good;
}

static void write_small_again(void)
{
    dnn_file_remove_tree(small, NULL);
    write_small(small);
}

/* The file is truncated after it was opened. */
static void cut_off(void)
{
    char *path = dnn_format("%s/data.0", small);
    struct dnn_feed_cfg cfg = {.path = small, .batch_size = 5};

    for (int shuffle = 0; shuffle < 2; shuffle++) {
        struct dnn_feed *feed = NULL;
        const struct dnn_batch *b;
        int rc = 0;

        cfg.shuffle = shuffle;
        bool good = dnn_feed_open(NULL, &cfg, &feed, &err) == 0 &&
                    truncate(path, 1000) == 0 && dnn_feed_start(feed, 0, 0, &err) == 0;
        for (int i = 0; i < 25 && good && rc == 0; i++)
            rc = dnn_feed_next(feed, &b, NULL, &err);
        ok(good && rc < 0 && strncmp(err.text, small, strlen(small)) == 0,
           "a truncated file: %s", rc < 0 ? "an error" : "not detected");
        is_int(good ? dnn_feed_next(feed, &b, NULL, &err) : 0, DNN_EUSAGE, "once");
        dnn_feed_close(feed);
        write_small_again();
    }
    dnn_free(path);
}

/* Batches as stored, converted afterwards, are the same as converted ones. */
static void as_stored(const char *path, const char *what)
{
    struct dnn_feed_cfg cfg = {
        .path = path, .batch_size = 7, .shuffle = true, .seed = 4};
    struct dnn_feed *plain = NULL, *stored = NULL;
    const struct dnn_column *col = NULL, *same = NULL;
    const struct dnn_batch *a, *b;
    bool good = dnn_feed_open(NULL, &cfg, &plain, &err) == 0;
    int64_t bytes[DNN_MAX_COLUMNS] = {0}, differ = 0;

    cfg.stored = true;
    good = good && dnn_feed_open(NULL, &cfg, &stored, &err) == 0;
    int ncols = good ? dnn_feed_columns(plain, &col) : 0;
    ok(good && dnn_feed_columns(stored, &same) == ncols &&
           same[0].type == col[0].type &&
           dnn_feed_bytes(stored) <= dnn_feed_bytes(plain),
       "%s: batches as stored have the same columns, with no more memory", what);
    good = good && dnn_feed_start(plain, 1, 1, &err) == 0 &&
           dnn_feed_start(stored, 1, 1, &err) == 0;
    for (int k = 0; k < ncols; k++)
        good = good && dnn_shape_count(&col[k].shape, &bytes[k], &err) == 0;
    for (int i = 0; i < 20 && good; i++) {
        struct dnn_err early = {0}, later = {0};

        dnn_feed_next(plain, &a, NULL, &early);
        good = dnn_feed_next(stored, &b, NULL, &err) == 0;
        for (int k = 0; k < ncols && good && later.code == 0; k++) {
            size_t row = (size_t)bytes[k] * 4;
            char *to = dnn_alloc((size_t)b->n * row + 1);

            /* In two calls, as for parts of a batch. */
            dnn_feed_values(stored, b, k, 0, b->n / 2, to, &later);
            if (later.code == 0)
                dnn_feed_values(stored, b, k, b->n / 2, b->n - b->n / 2,
                                to + (size_t)(b->n / 2) * row, &later);
            if (early.code == 0)
                differ += memcmp(to, a->data[k], (size_t)b->n * row) != 0;
            dnn_free(to);
        }
        /* Both find an invalid number. */
        differ += strcmp(early.text, later.text) != 0;
        if (early.code != 0) break;
    }
    if (!ok(good && differ == 0, "%s: and give the same values", what))
        printf("# %s\n", good ? "they differ" : err.text);
    dnn_feed_close(plain);
    dnn_feed_close(stored);
}

static void wrong(void)
{
    fails((struct dnn_feed_cfg){.split = "test"},
          "there is no split \"test\"; available: train", small, "no such split");
    fails((struct dnn_feed_cfg){.fold = 4},
          "train: the dataset has 3 folds: give 1 to 3 (all but that one) or -1 to -3 "
          "(only that one), not 4",
          small, "no such fold");
    fails((struct dnn_feed_cfg){.fold = 1},
          "all: fold 1 requested, but the dataset has no folds; prepare it with "
          "\"folds\"",
          large, "no folds");
    ok(damage(), "a byte is changed");
    static const char want[] =
        "train[42] (s042): checksum mismatch in input; the file is damaged";
    fails((struct dnn_feed_cfg){.verify = true}, want, small, "verify finds it");
    fails((struct dnn_feed_cfg){.verify = true, .shuffle = true}, want, small,
          "verify finds it, shuffled");
    fails((struct dnn_feed_cfg){.verify = true, .preload = true}, want, small,
          "verify finds it, preloaded");
    struct dnn_feed *feed = NULL;
    ok(dnn_feed_open(NULL, &(struct dnn_feed_cfg){.path = dir, .batch_size = 1}, &feed,
                     &err) < 0,
       "no dataset: %s", strncmp(err.text, dir, strlen(dir)) == 0 ? "named" : err.text);
}

int main(void)
{
    if (mkdtemp(dir) == NULL) return 1;
    small = dnn_format("%s/small.bp", dir);
    large = dnn_format("%s/large.bp", dir);
    write_small(small);
    write_large();
    by_chunks();
    folds();
    one_by_one();
    as_stored(small, "small samples");
    as_stored(large, "large samples");
    cut_off();
    wrong();
    dnn_file_remove_tree(dir, NULL);
    dnn_free(small);
    dnn_free(large);
    return done();
}
