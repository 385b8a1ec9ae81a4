/* data_feed.c - batches of a source: their content, with any number of threads and from
 * any start; error messages for bad samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "data_source.h"
#include "tap.h"

#include "base/mem.h"
#include "base/text.h"
#include "data/feed.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>

static struct dnn_err err;

static struct dnn_feed *open_feed(const struct dnn_feed_cfg *cfg)
{
    struct dnn_feed *feed = NULL;

    err.text[0] = '\0';
    if (dnn_feed_open(NULL, cfg, &feed, &err) < 0) return NULL;
    return feed;
}

/* Whether row i of the batch is that sample, converted. */
static bool row_is(const struct dnn_batch *b, int64_t i, int64_t sample)
{
    const float *image = (const float *)b->data[0] + i * SOURCE_POINTS;
    const int32_t *label = b->data[1], *mask = (const int32_t *)b->data[2] + i * 4;
    const float *values = (const float *)b->data[3] + i * 3;
    bool good = b->sample[i] == sample && label[i] == source_label(sample);

    for (int k = 0; k < SOURCE_POINTS; k++)
        good &= image[k] == (float)source_pixel(sample, k) * (float)(1.0 / 255);
    for (int k = 0; k < 4; k++)
        good &= mask[k] == source_mask(sample, k);
    for (int k = 0; k < 3; k++)
        good &= values[k] == (float)source_value(sample, k);
    return good;
}

/* Read `steps` batches from a position and compare with the order. */
static bool as_ordered(const struct dnn_feed_cfg *cfg, int64_t epoch, int64_t batch,
                       int steps)
{
    struct dnn_feed *feed = open_feed(cfg);
    const int64_t count = cfg->source->count, size = cfg->batch_size;
    struct dnn_order order = {count, 1, count, cfg->shuffle, cfg->seed};
    bool good = feed != NULL && dnn_feed_start(feed, epoch, batch, &err) == 0 &&
                dnn_feed_count(feed) == count &&
                dnn_feed_batches(feed) == (count + size - 1) / size;

    for (int s = 0; s < steps && good; s++) {
        const struct dnn_batch *b = NULL;
        double waited = -1;

        good = dnn_feed_next(feed, &b, &waited, &err) == 0 && waited >= 0 &&
               b->epoch == epoch && b->number == batch && b->first == batch * size &&
               b->n == (count - b->first < size ? count - b->first : size) &&
               b->total == b->n;
        for (int64_t i = 0; good && i < b->n; i++)
            good = row_is(b, i, dnn_order_at(&order, epoch, b->first + i));
        if (++batch == dnn_feed_batches(feed)) {
            batch = 0;
            epoch++;
        }
    }
    if (!good && err.text[0] != '\0') printf("# %s\n", err.text);
    dnn_feed_close(feed);
    return good;
}

static void contents(void)
{
    struct test_source s = test_source_make(23);
    struct dnn_feed_cfg cfg = {.source = &s.source, .batch_size = 5, .seed = 4};
    const struct dnn_column *col;

    struct dnn_feed *feed = open_feed(&cfg);
    is_int(dnn_feed_columns(feed, &col), 4, "four columns");
    ok(col[0].type == DNN_F32 && col[1].type == DNN_I32 && col[2].type == DNN_I32 &&
           col[3].type == DNN_F32,
       "images and values are f32, labels and masks i32");
    ok(dnn_feed_bytes(feed) > 4 * 5 * SOURCE_POINTS * 4, "its memory is reported");
    const struct dnn_batch *b;
    is_int(dnn_feed_next(feed, &b, NULL, &err), DNN_EUSAGE, "not started");
    is_text(err.text, "test: reading was not started", "and its message");
    dnn_feed_close(feed);
    dnn_feed_close(NULL);

    ok(as_ordered(&cfg, 0, 0, 12), "in order, over more than two epochs");
    cfg.shuffle = true;
    for (int threads = 1; threads <= 5; threads += 2)
        for (int ahead = 1; ahead <= 4; ahead += 3) {
            cfg.threads = threads;
            cfg.ahead = ahead;
            ok(as_ordered(&cfg, 0, 0, 14), "shuffled, %d threads, %d ahead", threads,
               ahead);
        }
    bool good = true;
    for (int64_t epoch = 0; epoch < 3; epoch++)
        for (int64_t batch = 0; batch < 5; batch++)
            good &= as_ordered(&cfg, epoch, batch, 7);
    ok(good, "from any batch of any epoch");
    cfg.batch_size = 100;
    ok(as_ordered(&cfg, 2, 0, 3), "a batch larger than the dataset");
    cfg.batch_size = 1;
    ok(as_ordered(&cfg, 0, 20, 6), "batches of one");
    cfg.batch_size = 7;
    cfg.preload = true;
    ok(as_ordered(&cfg, 1, 2, 9), "preloaded: the same");
}

/* A dry run needs the same memory, but has none. */
static void dry_runs(void)
{
    struct test_source s = test_source_make(23);

    for (int preload = 0; preload < 2; preload++) {
        struct dnn_feed_cfg cfg = {
            .source = &s.source, .batch_size = 5, .threads = 2, .preload = preload};
        struct dnn_feed *feed = open_feed(&cfg);

        cfg.dry_run = true;
        struct dnn_feed *dry = open_feed(&cfg);
        is_int((long long)dnn_feed_bytes(dry), (long long)dnn_feed_bytes(feed),
               preload ? "bytes of a dry run, preloaded" : "bytes of a dry run");
        is_int(dnn_feed_batches(dry), dnn_feed_batches(feed), "... its batches");
        is_int(dnn_feed_start(dry, 0, 0, &err), DNN_EUSAGE, "... cannot be started");
        is_text(err.text, "test: a dry run cannot be started", "...");
        dnn_feed_close(dry);
        dnn_feed_close(feed);
    }
}

static void restarts(void)
{
    struct test_source s = test_source_make(40);
    struct dnn_feed_cfg cfg = {.source = &s.source, .batch_size = 4, .shuffle = true};
    struct dnn_feed *feed = open_feed(&cfg);
    const struct dnn_batch *b;
    bool good = true;

    for (int i = 0; i < 20; i++) {
        good &= dnn_feed_start(feed, i, i % 10, &err) == 0;
        for (int k = 0; k < i % 3; k++)
            good &= dnn_feed_next(feed, &b, NULL, &err) == 0 &&
                    b->epoch * 10 + b->number == i * 10 + i % 10 + k;
        if (i % 4 == 0) dnn_feed_stop(feed);
    }
    ok(good, "stopped and started anywhere");
    is_int(dnn_feed_start(feed, 0, 10, &err), DNN_EUSAGE, "a batch out of range");
    is_text(err.text, "test: batch 10 requested, but there are only 0 to 9",
            "and its message");
    is_int(dnn_feed_start(feed, -1, 0, &err), DNN_EUSAGE, "an epoch out of range");
    dnn_feed_close(feed);
}

/* ---- threads ---- */

/* CPU and priority of the reading threads. */
static _Atomic int looks, modest, elsewhere;
static int computing;

static void look(void)
{
    cpu_set_t set;

    looks++;
    modest +=
        getpriority(PRIO_PROCESS, 0) == 19 && sched_getscheduler(0) == SCHED_BATCH;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        elsewhere += CPU_COUNT(&set) == 1 && CPU_ISSET(computing, &set) == 0;
}

static void threads(void)
{
    struct test_source s = test_source_make(40);
    struct dnn_topo *topo = NULL;
    struct dnn_topo_request card;
    struct dnn_slurm slurm = {0};
    struct dnn_place place;
    struct dnn_feed_cfg cfg = {.source = &s.source, .batch_size = 4, .place = &place};

    s.look = look;
    bool good = dnn_topo_open(&topo, &err) == 0 &&
                dnn_topo_make_request(topo, DNN_BIND_AUTO, 1, dnn_slurm_env(), &slurm,
                                      &card, &err) == 0 &&
                dnn_topo_map(topo, &card, 1, 0, &place, &err) == 0;
    ok(good, "cores of this machine");
    /* Two hardware threads, of which the first computes. */
    struct dnn_topo_set two = {0};
    for (int i = 0, n = 0; i < DNN_TOPO_PUS && n < 2; i++)
        if (dnn_topo_has(&card.granted, i)) {
            dnn_topo_add(&two, i);
            if (n++ == 0) computing = i;
        }
    place.pus = two;
    place.threads = 1;
    place.pu[0] = (int16_t)computing;
    cfg.topo = topo;
    ok(as_ordered(&cfg, 0, 0, 10), "batches from bound threads");
    ok(looks >= 40 && modest == looks, "they run at the lowest priority");
    if (dnn_topo_count(&two) == 2)
        is_int(elsewhere, looks, "and on CPUs that do not compute");
    else
        skip("and on CPUs that do not compute", "only one hardware thread");
    dnn_topo_close(topo);
}

/* ---- errors ---- */

/* The first error message, after this many good batches. */
static void fails(struct test_source *s, struct dnn_feed_cfg cfg, int good_ones,
                  const char *want, const char *what)
{
    const struct dnn_batch *b;
    int n = 0;

    cfg.source = &s->source;
    if (cfg.batch_size == 0) cfg.batch_size = 4;
    struct dnn_feed *feed = open_feed(&cfg);
    if (feed != NULL && dnn_feed_start(feed, 0, 0, &err) == 0) {
        while (n < 20 && dnn_feed_next(feed, &b, NULL, &err) == 0)
            n++;
        struct dnn_err again = {0};
        ok(dnn_feed_next(feed, &b, NULL, &again) == DNN_EUSAGE, "%s: returned once",
           what);
    }
    is_text(err.text, want, what);
    is_int(n, good_ones, "batches before it");
    dnn_feed_close(feed);
}

static void bad_samples(void)
{
    struct test_source s = test_source_make(20);
    struct dnn_feed_cfg cfg = {.threads = 3};

    s.nan_at = 13;
    fails(&s, cfg, 3, "test[13] (number 13): values[1] is NaN; values must be finite",
          "NaN");
    s.inf_at = 6;
    fails(&s, cfg, 1,
          "test[6] (number 6): values[2] is infinite; values must be finite",
          "infinity");
    s = test_source_make(20);
    s.class_at = 9;
    fails(&s, cfg, 2,
          "test[9] (number 9): label is 10, but there are 10 classes, 0 to 9",
          "a class out of range");
    s = test_source_make(20);
    s.mask_at = 10;
    fails(&s, cfg, 2,
          "test[10] (number 10): mask[1,0,0] is -1, but there are 3 classes, 0 to 2",
          "a negative class");
    s.source.col[2].classes = 0;
    fails(&s, cfg, 2,
          "test[10] (number 10): mask[1,0,0] is -1; class numbers must be 0 or more",
          "a mask below, classes not known");
}

static void bad_shapes(void)
{
    struct test_source s = test_source_make(20);
    struct dnn_feed_cfg cfg = {.threads = 3};

    s.fail_at = 5;
    fails(&s, cfg, 1, "test: sample 5 cannot be read", "the message of the source");
    cfg.preload = true;
    fails(&s, cfg, 0, "test: sample 5 cannot be read", "preloading");
    s = test_source_make(20);
    cfg.preload = false;
    s.odd_at = 7;
    fails(&s, cfg, 1, "test[7] (number 7): image has shape 3x3x2, expected 3x4x2",
          "a sample of another shape");
    s.source.col[0].shape.dim[1] = DNN_UNKNOWN;
    fails(
        &s, cfg, 1,
        "test[7] (number 7): image is 3x3x2, but 3x4x2 in test[0] (number 0); samples "
        "of a batch must have the same shape: resize, crop or pad",
        "different shapes, unknown before");
}

/* Two bad samples in one batch: the first is reported, also if the other is read first.
 */
static void first_of_two(void)
{
    struct test_source s = test_source_make(20);
    struct dnn_feed_cfg cfg = {.source = &s.source, .threads = 3, .batch_size = 20};
    bool same = true;

    s.nan_at = 6;
    s.class_at = 5;
    for (int i = 0; i < 30; i++) {
        const struct dnn_batch *b;
        struct dnn_feed *feed = open_feed(&cfg);

        same &= dnn_feed_start(feed, 0, 0, &err) == 0 &&
                dnn_feed_next(feed, &b, NULL, &err) == DNN_EDATA &&
                strncmp(err.text, "test[5]", 7) == 0;
        dnn_feed_close(feed);
    }
    ok(same, "the first of two is reported");
}

static void bad_settings(void)
{
    struct test_source s = test_source_make(20), none = test_source_make(0);
    const struct dnn_feed_cfg plain = {0};

    fails(&s, (struct dnn_feed_cfg){.batch_size = -3}, 0,
          "the batch size must be at least 1, not -3", "no batch size");
    fails(&s, (struct dnn_feed_cfg){.threads = -1}, 0,
          "the number of threads must be 0 to 1024, not -1", "no threads");
    fails(&s, (struct dnn_feed_cfg){.ahead = 2000}, 0,
          "the number of batches to prefetch must be 0 to 1024, not 2000", "too many");
    fails(&s, (struct dnn_feed_cfg){.path = "x"}, 0,
          "give either a dataset or a source", "both");
    fails(&none, plain, 0, "test: no samples", "no samples");
    fails(&s, (struct dnn_feed_cfg){.fold = 2}, 0,
          "test: fold 2 requested, but the dataset has no folds; prepare it with "
          "\"folds\"",
          "no folds");
    fails(&s, (struct dnn_feed_cfg){.verify = true}, 0,
          "test: only prepared datasets have checksums", "no checksums");
    fails(&s, (struct dnn_feed_cfg){.memory = 1000, .threads = 1}, 0,
          "test: batches of 4 samples (4 on this rank), 2 in memory, need 1.4 KiB, but "
          "the limit is 1000 B; use a smaller batch, prefetch fewer batches, or raise "
          "the memory limit",
          "no memory");
    fails(&s, (struct dnn_feed_cfg){.memory = 3000, .threads = 1, .preload = true}, 0,
          "test: preload needs 1.4 KiB on each node for 20 samples, which exceeds the "
          "limit of 2.9 KiB per rank",
          "no memory to preload");
}

int main(void)
{
    contents();
    dry_runs();
    restarts();
    threads();
    bad_samples();
    bad_shapes();
    first_of_two();
    bad_settings();
    return done();
}
