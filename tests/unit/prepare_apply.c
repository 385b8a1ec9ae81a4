/* prepare_apply.c - the preparation of a dataset applied to raw files: the same bits as
 * in the dataset; what is left out; errors.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare_run.h"

#include "base/rng.h"
#include "data/feed.h"
#include "prepare/apply.h"

static struct dnn_err err;

/* ---- files ---- */

enum { TRAIN = 7, TEST = 4, POINTS = 4 * 6 * 5 };

/* Images and volumes of several types with 2 channels, and their targets. */
static void make_part(const char *part, int n, uint64_t stream)
{
    enum { MOST = TRAIN * POINTS * 2 };
    unsigned char u[MOST], mask[MOST];
    int16_t s[MOST];
    float f[MOST];
    int64_t label[TRAIN];
    const struct dnn_rng rng = dnn_rng_make(5, stream);
    int count = n * POINTS * 2;
    char name[32], shape[64], points[64];

    for (int i = 0; i < count; i++) {
        double x = dnn_rng_normal(&rng, (struct dnn_rng_at){.index = (uint64_t)i});

        u[i] = (unsigned char)(128 + 12 * x);
        s[i] = (int16_t)(900 * x - 30);
        f[i] = (float)(3 * x + 5 + i % 2);
        mask[i] = (unsigned char)(x > 0);
    }
    for (int i = 0; i < n; i++)
        label[i] = (i + (int64_t)stream) % 3;
    snprintf(shape, sizeof shape, "(%d, 4, 6, 5, 2)", n);
    snprintf(points, sizeof points, "(%d, 4, 6, 5, 1)", n);
#define WRITE(which, descr, shape, data, bytes)                                        \
    snprintf(name, sizeof name, "%s-" which ".npy", part);                             \
    write_npy(name, descr, shape, data, (size_t)(bytes))
    WRITE("u", "|u1", shape, u, count);
    WRITE("s", "<i2", shape, s, count * 2);
    WRITE("f", "<f4", shape, f, count * 4);
    WRITE("mask", "|u1", points, mask, count / 2);
    snprintf(shape, sizeof shape, "(%d,)", n);
    WRITE("label", "<i8", shape, label, n * 8);
}

/* A dataset with the splits train and test; input: u, s or f; target: mask or label. */
static bool make_dataset(const char *input, const char *target, const char *rest)
{
    struct dnn_buf text = {0};

    dnn_buf_add(&text, "{\"to\": \"%%s/out.bp\", \"sources\": [");
    for (int i = 0; i < 2; i++) {
        const char *part = i == 0 ? "train" : "test";

        dnn_buf_add(&text,
                    "%s{\"split\": \"%s\", \"from\": {\"input_path\": "
                    "\"%%s/%s-%s.npy\", \"input_kind\": \"image\", \"target_path\": "
                    "\"%%s/%s-%s.npy\", \"target_kind\": \"%s\"}}",
                    i > 0 ? ", " : "", part, part, input, part, target, target);
    }
    dnn_buf_add(&text, "], %s}", rest);
    const char *message = prepare(true, text.text);
    if (*message != '\0') printf("# %s\n", message);
    dnn_buf_free(&text);
    return *message == '\0' && open_dataset("out.bp") != NULL;
}

/* ---- raw files with the record of the dataset ---- */

struct raw {
    struct dnn_json *how;
    struct dnn_source *source; /* after the steps */
};

/* target: NULL: none. */
static int open_raw(struct raw *raw, const char *input, const char *target,
                    const char *record)
{
    struct dnn_buf text = {0};
    struct dnn_import how;
    struct dnn_source *from = NULL;

    memset(raw, 0, sizeof *raw);
    memset(&err, 0, sizeof err);
    dnn_buf_add(&text, "{\"input_path\": \"%s/test-%s.npy\", \"input_kind\": \"image\"",
                scratch, input);
    if (target != NULL)
        dnn_buf_add(&text,
                    ", \"target_path\": \"%s/test-%s.npy\", \"target_kind\": \"%s\"",
                    scratch, target, target);
    dnn_buf_add(&text, "}");
    int rc = dnn_json_text("raw", text.text, text.len, &raw->how, &err);
    dnn_buf_free(&text);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(raw->how);

        rc = dnn_field_fill(&top, dnn_import_fields, NULL, &how, &err);
    }
    if (rc == 0) rc = dnn_import_open(&how, &from, &err);
    if (rc == 0)
        rc = dnn_prepare_apply(record, strlen(record), from, &raw->source, &err);
    return rc;
}

static void close_raw(struct raw *raw)
{
    dnn_source_close(raw->source);
    dnn_json_free(raw->how);
}

/* All values of a column that a network gets; -1 if there are none. */
static int64_t gather(struct dnn_feed_cfg cfg, const char *column, struct dnn_buf *out)
{
    const struct dnn_column *col;
    struct dnn_feed *feed = NULL;
    const struct dnn_batch *batch;
    int64_t each = 0;
    int rc = 0, k = -1;

    cfg.batch_size = 1;
    cfg.threads = 1;
    if (dnn_feed_open(NULL, &cfg, &feed, &err) < 0) return -1;
    for (int i = dnn_feed_columns(feed, &col); i-- > 0;)
        if (strcmp(col[i].name, column) == 0) k = i;
    int64_t n = dnn_feed_batches(feed);
    if (k >= 0) dnn_shape_count(&col[k].shape, &each, NULL);
    if (dnn_feed_start(feed, 0, 0, &err) < 0) n = 0;
    for (int64_t i = 0; i < n && rc == 0 && k >= 0; i++) {
        rc = dnn_feed_next(feed, &batch, NULL, &err);
        if (rc == 0) dnn_buf_bytes(out, batch->data[k], (size_t)each * 4);
    }
    dnn_feed_close(feed);
    return rc == 0 && k >= 0 ? (int64_t)out->len / 4 : -1;
}

static void same_column(const struct raw *raw, const char *column, const char *what)
{
    char *path = dnn_format("%s/out.bp", scratch);
    struct dnn_buf want = {0}, got = {0};
    int64_t n =
        gather((struct dnn_feed_cfg){.path = path, .split = "test"}, column, &want);
    int64_t m = gather((struct dnn_feed_cfg){.source = raw->source}, column, &got);

    if (!ok(n > 0 && n == m && memcmp(want.text, got.text, want.len) == 0,
            "%s: the same bits of column %s", what, column)) {
        printf("#   %d and %d values; %s\n", (int)n, (int)m, err.text);
        for (int64_t i = 0; i < n && i < m; i++) {
            float x, y;

            memcpy(&x, want.text + i * 4, 4);
            memcpy(&y, got.text + i * 4, 4);
            if (memcmp(&x, &y, 4) == 0) continue;
            printf("#   value %d: %.9g, expected %.9g\n", (int)i, (double)y, (double)x);
            break;
        }
    }
    dnn_buf_free(&want);
    dnn_buf_free(&got);
    dnn_free(path);
}

/* ---- the same values ---- */

/* A box of a column and the shape of the sample: as a complete read gives them, but
 * without it if the steps act on each point alone. */
static void same_box(const struct raw *raw, int c, bool pointwise)
{
    struct dnn_sample sample = {0};
    struct dnn_array got = {0}, want = {0};
    struct dnn_shape shape;
    int64_t start[DNN_MAX_DIMS] = {1, 2, 1}, extent[DNN_MAX_DIMS] = {2, 1, 2};

    is_int(dnn_source_read(raw->source, 1, &sample, &err), 0, "a sample is read");
    const struct dnn_array *all = &sample.col[c];
    if (all->shape.ndim < 2) start[0] = 0;
    if (all->shape.ndim > 0)
        extent[all->shape.ndim < 2 ? 0 : 3] = all->shape.dim[all->shape.ndim - 1];
    is_int(dnn_source_try_box(raw->source, 1, c, start, extent, &got, &err),
           pointwise ? 0 : DNN_SOURCE_WHOLE, "whether a part of it can be");
    dnn_array_box(all, start, extent, &want, &err);
    ok(!pointwise ||
           (got.type == want.type && dnn_shape_equal(&got.shape, &want.shape) &&
            memcmp(got.data, want.data, dnn_array_bytes(&want)) == 0),
       "with the same bits of column %d", c);
    if (all->shape.ndim > 1) raw->source->col[c].shape.dim[0] = DNN_UNKNOWN;
    is_int(dnn_source_try_shape(raw->source, 1, c, &shape, &err), 0,
           "its shape is known without reading it");
    ok(dnn_shape_equal(&shape, &all->shape), "the same shape");
    dnn_array_free(&got);
    dnn_array_free(&want);
    dnn_sample_free(&sample);
}

static void same(const char *input, const char *target, const char *rest,
                 bool pointwise)
{
    struct raw raw;

    if (!ok(make_dataset(input, target, rest), "%s", rest)) return;
    char *record = dnn_strdup(dnn_dataset_info(dataset)->provenance);
    dnn_dataset_close(dataset);
    if (!is_int(open_raw(&raw, input, target, record), 0, "its record is applied"))
        printf("# %s\n", err.text);
    else {
        same_column(&raw, "input", "with targets");
        same_column(&raw, "target", "with targets");
        same_box(&raw, 0, pointwise);
        if (pointwise) same_box(&raw, 1, true);
    }
    close_raw(&raw);
    is_int(open_raw(&raw, input, NULL, record), 0, "without targets, too");
    if (raw.source != NULL) same_column(&raw, "input", "without targets");
    close_raw(&raw);
    dnn_free(record);
}

static void test_same(void)
{
    same("u", "mask", "\"steps\": []", true);
    same("u", "mask", "\"scale\": 1", true);
    same("s", "mask", "\"scale\": 0.003", true);
    same("u", "mask", "\"steps\": [{\"normalise\": \"channel\"}]", true);
    same("s", "mask", "\"steps\": [{\"normalise\": \"dataset\"}]", true);
    same("f", "mask",
         "\"steps\": [{\"normalise\": \"channel\"}, {\"clip\": [-1, 1.5]}]", true);
    same("f", "label",
         "\"steps\": [{\"normalise\": \"minmax\"}, {\"remap\": [2, 0, 1]}, "
         "{\"one_hot\": "
         "true}]",
         true);
    same(
        "s", "label",
        "\"steps\": [{\"normalise\": {\"mode\": \"percentiles\", \"low\": 5, \"high\": "
        "90}}, {\"one_hot\": {\"columns\": [\"target\"]}}]",
        true);
    same("f", "mask", "\"steps\": [{\"type\": \"u8\"}, {\"one_hot\": true}]", true);
    same("f", "mask",
         "\"steps\": [{\"normalise\": {\"mean\": 5, \"std\": 3}}, {\"type\": \"f16\"}]",
         true);
    same(
        "u", "mask",
        "\"steps\": [{\"resize\": [8, 7, 6]}, {\"normalise\": \"channel\"}, {\"crop\": "
        "[6, 5, 5]}, {\"pad\": {\"size\": [8, 8, 5], \"value\": 2}}]",
        false);
    same("f", "mask",
         "\"steps\": [{\"crop\": {\"columns\": [\"target\", \"input\"], \"size\": [3, "
         "3, "
         "3]}}, {\"normalise\": \"volume\"}]",
         false);
    same("s", "label",
         "\"steps\": [{\"normalise\": {\"mode\": \"minmax\", \"per\": "
         "\"volume\"}}]",
         false);
    /* Planes along the first axis have the order of the volume. */
    same("u", "mask",
         "\"steps\": [{\"slice\": {\"sizes\": [1, 6, 5]}}, {\"normalise\": "
         "\"channel\"}]",
         true);
    same("f", "label", "\"steps\": [{\"balance\": true}, {\"normalise\": \"dataset\"}]",
         true);
}

/* The numbers are in the record, as words of the field. */
static void test_record(void)
{
    ok(make_dataset("s", "label",
                    "\"steps\": [{\"normalise\": \"dataset\"}, {\"one_hot\": {}}]"),
       "a dataset");
    const char *text = dnn_dataset_info(dataset)->provenance;
    ok(strstr(text,
              "\"columns\": [{\"name\": \"input\", \"role\": \"input\", \"kind\": "
              "\"image\", \"type\": \"i16\", \"classes\": 0}, {\"name\": "
              "\"target\", \"role\": \"target\", \"kind\": \"label\"") != NULL,
       "the record has the columns");
    ok(strstr(text, "\"fitted\": [{\"step\": 0, \"column\": \"input\", \"mean\": [") !=
           NULL,
       "and mean and standard deviation");
    ok(strstr(text, "{\"step\": 1, \"column\": \"target\", \"classes\": [3]}]") != NULL,
       "and the number of classes that were found");
    dnn_dataset_close(dataset);
}

/* ---- errors ---- */

static void fails_with(const char *input, const char *target, const char *record,
                       const char *want)
{
    struct raw raw;

    is_int(open_raw(&raw, input, target, record), DNN_ECONFIG, "an error");
    is_text(err.text, want, "with this message");
    close_raw(&raw);
}

/* The record of a dataset with some text replaced. */
static char *record_with(const char *rest, const char *old, const char *new)
{
    if (!make_dataset("u", "mask", rest)) return dnn_strdup("");
    const char *text = dnn_dataset_info(dataset)->provenance;
    const char *at = strstr(text, old);
    char *out = at == NULL ? dnn_strdup("")
                           : dnn_format("%.*s%s%s", (int)(at - text), text, new,
                                        at + strlen(old));

    dnn_dataset_close(dataset);
    return out;
}

static void fails(const char *rest, const char *old, const char *new, const char *want)
{
    char *record = record_with(rest, old, new);

    fails_with("u", NULL, record, want);
    dnn_free(record);
}

#define NORMALISE "\"steps\": [{\"normalise\": \"channel\"}]"

static void test_errors(void)
{
    fails(
        NORMALISE, "\"fitted\"", "\"fitting\"",
        "preparation of the dataset:1: config.steps[0].normalise: the dataset's record "
        "has no statistics of the column \"input\"; it cannot be applied to other "
        "samples");
    fails(NORMALISE, "\"columns\"", "\"colums\"",
          "the dataset's record of its preparation has no \"columns\"; it was not made "
          "by "
          "this version of dnn-prepare: prepare it again");
    fails(NORMALISE, "\"std\"", "\"sdt\"",
          "preparation of the dataset:1: fitted[0]: \"std\" must be a list of numbers");
    fails(
        NORMALISE, "\"std\": [", "\"std\": [1, ",
        "preparation of the dataset:1: fitted[0]: mean and std have different lengths");
    fails(
        NORMALISE, "\"name\": \"input\"", "\"name\": \"scan\"",
        "the dataset was made from samples with an input \"scan\", which these samples "
        "do not have");
    fails(
        NORMALISE, "\"kind\": \"image\"", "\"kind\": \"values\"",
        "the column \"input\" of these samples is of kind image; those of the dataset "
        "were of kind values");
    fails("\"steps\": [{\"slice\": {\"sizes\": [2, 6, 5]}}, {\"resize\": [4, 4, 4]}]",
          "\"version\"", "\"version\"",
          "preparation of the dataset:1: config.steps[1].resize: the dataset's samples "
          "are slices of volumes; this step was applied to each slice and cannot be "
          "applied to whole volumes");
    fails_with("u", NULL, "{}",
               "the dataset's record of its preparation has no \"config\"; it was not "
               "made by this version of dnn-prepare: prepare it again");
    char *record = record_with(NORMALISE, "\"version\"", "\"version\"");
    fails_with("f", NULL, record,
               "the column \"input\" of these samples is f32 and read as 1 times its "
               "elements; that of the dataset was u8 and read as 0.00392157 times its "
               "elements");
    dnn_free(record);
    record =
        record_with("\"steps\": [{\"type\": \"i8\"}]", "\"version\"", "\"version\"");
    fails_with(
        "mask", NULL, record,
        "preparation of the dataset:1: config.steps[0].type: the column \"input\" "
        "of these samples has 1 channels; that of the dataset had 2");
    char *cut = dnn_strndup(record, 40);
    struct raw raw;
    ok(open_raw(&raw, "u", NULL, cut) < 0 &&
           strstr(err.text, "preparation of the") != NULL,
       "a record that is cut off is an error: %s", err.text);
    close_raw(&raw);
    dnn_free(cut);
    dnn_free(record);
    record =
        record_with(NORMALISE, "\"kind\": \"mask\", \"type\": \"u8\", \"classes\": 0",
                    "\"kind\": \"mask\", \"type\": \"u8\", \"classes\": 1");
    is_int(open_raw(&raw, "u", "mask", record), 0, "classes of the dataset are used");
    struct dnn_sample sample = {0};
    is_int(dnn_source_read(raw.source, 2, &sample, &err), DNN_EDATA,
           "so a class beyond them is an error");
    ok(strstr(err.text, "test-u.npy[2]: target: class 1, but there are 1 classes") !=
           NULL,
       "with the sample and column: %s", err.text);
    dnn_sample_free(&sample);
    close_raw(&raw);
    dnn_free(record);
}

/* A source that cannot read boxes keeps its last sample, which belongs to it alone. */
static void test_last_sample(void)
{
    const int64_t start[4] = {1, 2, 3, 0}, extent[4] = {1, 1, 1, 2};
    struct dnn_array first = {0}, second = {0};
    struct dnn_source *twice = NULL;
    struct raw raw;

    ok(make_dataset("f", "mask", "\"steps\": []"), "a dataset");
    char *record = dnn_strdup(dnn_dataset_info(dataset)->provenance);
    dnn_dataset_close(dataset);
    is_int(open_raw(&raw, "f", NULL, record), 0, "a source");
    is_int(dnn_source_read_box(raw.source, 0, 0, start, extent, &first, &err), 0,
           "of which a box was read");
    is_int(dnn_prepare_apply(record, strlen(record), raw.source, &twice, &err), 0,
           "can be prepared");
    is_int(dnn_source_read_box(twice, 0, 0, start, extent, &second, &err), 0,
           "and read again");
    ok(memcmp(first.data, second.data, 2 * sizeof(float)) == 0, "with the same values");
    dnn_array_free(&first);
    dnn_array_free(&second);
    dnn_source_close(twice);
    dnn_json_free(raw.how);
    dnn_free(record);
}

int main(void)
{
    scratch_begin();
    make_part("train", TRAIN, 1);
    make_part("test", TEST, 2);
    test_same();
    test_record();
    test_last_sample();
    test_errors();
    return scratch_end();
}
