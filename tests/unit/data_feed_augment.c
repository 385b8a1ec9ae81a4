/* data_feed_augment.c - augmented batches: the same with any number of threads and from
 * any source.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "data_set.h"
#include "data_source.h"

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

#include <unistd.h>

static struct dnn_augment *read_list(const char *list)
{
    char *json = dnn_format("{\"transforms\": %s}", list);
    struct dnn_json *file = NULL;
    struct dnn_augment *out = NULL;

    if (dnn_json_text("train.json", json, strlen(json), &file, &err) == 0) {
        struct dnn_jobj top = dnn_json_top(file),
                        both = dnn_json_sub(&top, "transforms");
        struct dnn_jobj none = dnn_json_sub(&top, "none");

        dnn_augment_read(&both, &none, &none, &out, &err);
    }
    if (out == NULL) printf("# %s\n", err.text);
    dnn_json_free(file);
    dnn_free(json);
    return out;
}

/* All numbers of some batches, concatenated; NULL on failure. */
static float *numbers(const struct dnn_feed_cfg *cfg, int64_t epoch, int64_t batch,
                      int steps, size_t *n)
{
    struct dnn_feed *feed = NULL;
    const struct dnn_column *col;
    struct dnn_buf all = {0};
    int rc = dnn_feed_open(NULL, cfg, &feed, &err);

    err.text[0] = '\0';
    if (rc == 0) rc = dnn_feed_start(feed, epoch, batch, &err);
    for (int s = 0; s < steps && rc == 0; s++) {
        const struct dnn_batch *b;

        rc = dnn_feed_next(feed, &b, NULL, &err);
        for (int k = 0; rc == 0 && k < dnn_feed_columns(feed, &col); k++) {
            int64_t count;

            dnn_shape_count(&col[k].shape, &count, &err);
            dnn_buf_bytes(&all, b->data[k], (size_t)(b->n * count) * 4);
        }
    }
    dnn_feed_close(feed);
    if (rc < 0) {
        printf("# %s\n", err.text);
        dnn_buf_free(&all);
        return NULL;
    }
    *n = all.len;
    return (float *)all.text;
}

static bool same_numbers(const struct dnn_feed_cfg *a, const struct dnn_feed_cfg *b,
                         int64_t skip)
{
    size_t na = 0, nb = 0;
    /* b starts later: compare with the end of a. */
    float *x = numbers(a, 0, 0, 30, &na);
    float *y = numbers(b, skip / 13, skip % 13, (int)(30 - skip), &nb);
    bool same = x != NULL && y != NULL && nb <= na && nb > 0 &&
                memcmp((char *)x + na - nb, y, nb) == 0;

    dnn_free(x);
    dnn_free(y);
    return same;
}

static void everywhere(const char *path, const char *list)
{
    struct dnn_augment *augment = read_list(list);
    struct dnn_feed_cfg cfg = {.path = path,
                               .batch_size = 8,
                               .shuffle = true,
                               .seed = 5,
                               .augment = augment,
                               .threads = 1,
                               .window = 4 * CHUNK * STORED};

    struct dnn_feed_cfg other = cfg;
    other.threads = 3;
    ok(same_numbers(&cfg, &other, 0), "%s: with three threads", list);
    ok(same_numbers(&cfg, &other, 17), "%s: from the middle on", list);
    other.preload = true;
    ok(same_numbers(&cfg, &other, 0), "%s: preloaded", list);
    other.preload = false;
    other.ahead = 1;
    other.memory = memory_of(&other) - 1; /* too little for windows */
    ok(same_numbers(&cfg, &other, 3), "%s: with little memory", list);
    other = cfg;
    other.seed = 6;
    ok(!same_numbers(&cfg, &other, 0), "%s: another seed", list);
    dnn_augment_free(augment);
}

/* Mixup: x of one sample and 1 - x of its partner. */
static void mixed(const char *path)
{
    struct dnn_augment *augment = read_list("[{\"mixup\": 1}]");
    struct dnn_feed_cfg cfg = {
        .path = path, .batch_size = 10, .seed = 5, .augment = augment};
    struct dnn_feed *feed = NULL;
    const struct dnn_batch *b;
    bool good = dnn_feed_open(NULL, &cfg, &feed, &err) == 0 &&
                dnn_feed_start(feed, 2, 0, &err) == 0;

    for (int s = 0; s < 10 && good; s++) {
        good = dnn_feed_next(feed, &b, NULL, &err) == 0;
        for (int64_t i = 0; good && i < b->n; i++) {
            const float *x = (const float *)b->data[0] + i * POINTS;
            const float *label = (const float *)b->data[1] + i * 7;
            int64_t one = b->sample[i];
            int64_t two = dnn_augment_partner(augment, 5, 2, one, COUNT);
            double share = label[one % 7];

            for (int k = 0; k < POINTS; k++) {
                double a = pixel(one, k) * scale[k % 3] + offset[k % 3];
                double c = pixel(two, k) * scale[k % 3] + offset[k % 3];
                double want = share * a + (1 - share) * c;

                if (one % 7 != two % 7)
                    good &= x[k] > want - 1e-3 && x[k] < want + 1e-3;
            }
        }
    }
    ok(good, "mixup takes the right partner%s%s", good ? "" : ": ",
       good ? "" : err.text);
    dnn_feed_close(feed);
    dnn_augment_free(augment);
}

/* A source whose shapes differ, made equal. */
static void resized(void)
{
    struct test_source s = test_source_make(20);
    struct dnn_augment *augment = read_list("[{\"resize\": [5, 6]}]");
    struct dnn_feed_cfg cfg = {
        .source = &s.source, .batch_size = 4, .augment = augment};
    const struct dnn_column *col;
    struct dnn_feed *feed = NULL;
    char text[DNN_SHAPE_TEXT];
    size_t n = 0;

    /* The mask's shape is another: only images may be resized together. */
    s.odd_at = 7;
    s.source.col[0].shape.dim[1] = DNN_UNKNOWN;
    s.source.col[2].role = DNN_ROLE_EXTRA;
    ok(dnn_feed_open(NULL, &cfg, &feed, &err) == 0, "unknown shapes and a resize");
    if (feed != NULL && dnn_feed_columns(feed, &col) == 4)
        is_text(dnn_shape_text(text, sizeof text, &col[0].shape), "5x6x2",
                "the shape after it");
    dnn_feed_close(feed);
    float *x = numbers(&cfg, 0, 0, 5, &n);
    ok(x != NULL && n == 20 * (5 * 6 * 2 + 1 + 4 + 3) * 4, "all are read");
    dnn_free(x);
    dnn_augment_free(augment);
}

int main(void)
{
    char dir[] = "/tmp/dnn-feed-XXXXXX";

    if (mkdtemp(dir) == NULL) return 1;
    char *path = dnn_format("%s/small.bp", dir);
    write_small(path);
    everywhere(path, "[{\"random_flip\": {\"p\": 0.5}}]");
    everywhere(path, "[{\"noise\": 0.1}, \"mixup\"]");
    mixed(path);
    resized();
    dnn_file_remove_tree(dir, NULL);
    dnn_free(path);
    return done();
}
