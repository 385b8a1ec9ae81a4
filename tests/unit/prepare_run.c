/* prepare_run.c - preparations of small arrays: every number of the dataset; splits,
 * order, slices, stored types; errors.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare_run.h"

#define XY                                                                             \
    "{\"from\": {\"input_path\": \"%s/x.npy\", \"input_kind\": \"image\", "            \
    "\"target_path\": \"%s/y.npy\", \"target_kind\": \"label\"}, \"to\": "             \
    "\"%s/out.bp\""

/* 12 images of 2x2x1: image i is 4 i, 4 i + 1...; label i % 3. */
static void make_files(void)
{
    unsigned char x[48];
    float v[48];
    int64_t y[12];

    for (int i = 0; i < 48; i++) {
        x[i] = (unsigned char)i;
        v[i] = (float)i / 2;
    }
    for (int i = 0; i < 12; i++)
        y[i] = i % 3;
    write_npy("x.npy", "|u1", "(12, 2, 2, 1)", x, sizeof x);
    write_npy("y.npy", "<i8", "(12,)", y, sizeof y);
    write_npy("v.npy", "<f4", "(12, 2, 2, 1)", v, sizeof v);
}

static void test_plain(void)
{
    is_text(prepare(false, XY ", \"scale\": 1}"), "", "two arrays become a dataset");
    const struct dnn_dataset_info *info = open_dataset("out.bp");
    if (!ok(info != NULL, "it opens")) return;
    is_int(info->nsplits, 1, "one split");
    is_text(info->split[0].name, "all", "of all samples");
    is_int(info->split[0].count, 12, "12 of them");
    is_text(info->split[0].col[0].column.name, "input", "an input");
    is_text(info->split[0].col[1].column.name, "target", "a target");
    is_int(info->split[0].col[1].column.classes, 3, "whose classes were counted");
    has_values(0, 0, 1, 2, "4 5 6 7 8 9 10 11", "values are those of the file");
    has_values(0, 1, 0, 5, "0 1 2 0 1", "labels too");
    is_int(dnn_dataset_verify(dataset, 0, 0, 12, NULL), 0, "checksums are right");
    ok(strstr(info->provenance, "\"command\": \"test\"") != NULL &&
           strstr(info->provenance, "/x.npy\", \"bytes\": 176, \"xxh128\": \"") != NULL,
       "the record names command and files");
    dnn_dataset_close(dataset);
    is_text(prepare(false, XY ", \"scale\": 1}"), "",
            "the same again: nothing is done");
    is_text(prepare(false, XY "}"),
            "out.bp: exists already and was made by another configuration or from "
            "other files; use --replace to replace it",
            "another configuration does not replace it");
    is_text(prepare(true, XY "}"), "", "unless with --replace");
    open_dataset("out.bp");
    has_values(0, 0, 11, 1, "0.1725 0.1765 0.1804 0.1843",
               "images of 8 bits are read as 0 to 1");
    dnn_dataset_close(dataset);
}

static void test_splits(void)
{
    int64_t count[3] = {0}, n, seen = 0;

    is_text(prepare(true, XY ", \"scale\": 1, \"seed\": 4, \"steps\": [{\"split\": "
                             "{\"train\": 0.5, \"validation\": 0.25, \"test\": 0.25, "
                             "\"stratify\": true, \"folds\": 2}}]}"),
            "", "split by shares, stratified, with folds");
    const struct dnn_dataset_info *info = open_dataset("out.bp");
    if (!ok(info != NULL, "it opens")) return;
    for (int p = 0; p < info->nsplits; p++) {
        double *y = values(p, 1, 0, info->split[p].count, &n);
        double *x = values(p, 0, 0, info->split[p].count, &n);

        count[p] = info->split[p].count;
        for (int64_t i = 0; i < count[p]; i++)
            seen |= (int64_t)1 << (int)(x[4 * i] / 4);
        int classes[3] = {0};
        for (int64_t i = 0; i < count[p]; i++)
            classes[(int)y[i]]++;
        ok(classes[0] == classes[1] && classes[1] == classes[2],
           "%s has as many of each class", info->split[p].name);
        dnn_free(x);
        dnn_free(y);
    }
    ok(count[0] == 6 && count[1] == 3 && count[2] == 3, "6, 3 and 3 samples");
    is_int(seen, 4095, "every sample is in one of them");
    int32_t fold[6];
    dnn_dataset_metadata(dataset, 0, 0, 6, NULL, fold, NULL, NULL);
    int zeros = 0;
    for (int i = 0; i < 6; i++)
        zeros += fold[i] == 0;
    ok(info->split[0].folds == 2 && zeros == 3, "two folds of three");
    dnn_dataset_close(dataset);

    char *path = dnn_format("%s/test.txt", scratch);
    dnn_file_write(path, "x.npy[3]\n# a comment\nx.npy[7]\r\n", 31, NULL);
    is_text(prepare(true, XY ", \"scale\": 1, \"steps\": [{\"split\": {\"test\": "
                             "\"%s/test.txt\", \"train\": 1}}]}"),
            "", "split by a list");
    open_dataset("out.bp");
    int test = dnn_dataset_find(dataset, "test");
    has_values(test, 0, 0, 2, "12 13 14 15 28 29 30 31", "it has the listed samples");
    dnn_dataset_close(dataset);
    dnn_file_write(path, "x.npy[3]\nx.npy[77]\n", 19, NULL);
    is_text(
        prepare(true, XY ", \"steps\": [{\"split\": {\"test\": \"%s/test.txt\", "
                         "\"train\": 1}}]}"),
        "test.txt:2: there is no sample or group \"x.npy[77]\"; the first sample is "
        "\"x.npy[0]\"",
        "an unknown name");
    dnn_free(path);
}

static void test_balance(void)
{
    int64_t y[12] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2}, n;
    int classes[3] = {0};

    write_npy("b.npy", "<i8", "(12,)", y, sizeof y);
    is_text(prepare(true,
                    "{\"from\": {\"input_path\": \"%s/x.npy\", \"target_path\": "
                    "\"%s/b.npy\", \"target_kind\": \"label\"}, \"to\": \"%s/out.bp\", "
                    "\"steps\": [{\"split\": {\"train\": 1}}, {\"balance\": true}]}"),
            "", "balanced");
    const struct dnn_dataset_info *info = open_dataset("out.bp");
    if (!ok(info != NULL, "it opens")) return;
    is_int(info->split[0].count, 18, "rare classes are repeated");
    double *got = values(0, 1, 0, 18, &n);
    for (int i = 0; i < 18; i++)
        classes[(int)got[i]]++;
    ok(classes[0] == 6 && classes[1] == 6 && classes[2] == 6, "six of each");
    dnn_free(got);
    dnn_dataset_close(dataset);
}

static void test_stored(void)
{
    const struct dnn_dataset_info *info;
    int64_t n;

    is_text(
        prepare(true, XY ", \"scale\": 1, \"steps\": [{\"normalise\": \"channel\"}]}"),
        "", "normalised");
    info = open_dataset("out.bp");
    is_int(info->split[0].col[0].column.type, DNN_U8, "bytes are still bytes");
    /* 0..47: mean 23.5, variance (48^2 - 1) / 12. */
    has_values(0, 0, 0, 1, "-1.696 -1.624 -1.552 -1.48",
               "but scaled to the normalised values");
    double std = dnn_stats_std(info->split[0].col[0].stats, 0);
    ok(fabs(info->split[0].col[0].stats->mean[0]) < 1e-6 && fabs(std - 1) < 1e-6,
       "statistics are of the values");
    dnn_dataset_close(dataset);

    is_text(prepare(true, "{\"from\": {\"input_path\": \"%s/v.npy\"}, \"to\": "
                          "\"%s/out.bp\", \"steps\": [{\"normalise\": \"minmax\"}, "
                          "{\"type\": \"i16\"}]}"),
            "", "reals as i16");
    info = open_dataset("out.bp");
    is_int(info->split[0].col[0].column.type, DNN_I16, "are stored as i16");
    double *x = values(0, 0, 0, 12, &n), worst = 0;
    for (int64_t i = 0; i < n; i++)
        worst = fmax(worst, fabs(x[i] - (double)i / 47));
    ok(n == 48 && worst < 1e-5, "and read to 1e-5 (%g)", worst);
    dnn_free(x);
    dnn_dataset_close(dataset);

    is_text(prepare(true, "{\"from\": {\"input_path\": \"%s/v.npy\"}, \"to\": "
                          "\"%s/out.bp\", \"steps\": [{\"normalise\": \"volume\"}, "
                          "{\"type\": \"f16\"}]}"),
            "", "each sample by itself, as f16");
    open_dataset("out.bp");
    has_values(0, 0, 5, 1, "-1.342 -0.4473 0.4473 1.342", "has mean 0 and deviation 1");
    dnn_dataset_close(dataset);

    is_text(prepare(true, "{\"from\": {\"input_path\": \"%s/v.npy\"}, \"to\": "
                          "\"%s/out.bp\", \"steps\": [{\"normalise\": {\"mode\": "
                          "\"percentiles\", \"low\": 25, \"high\": 75}}]}"),
            "", "between percentiles");
    open_dataset("out.bp");
    x = values(0, 0, 0, 12, &n);
    ok(x[0] == 0 && x[47] == 1 && fabs(x[24] - 0.5) < 0.05,
       "values outside are clipped (%g %g %g)", x[0], x[24], x[47]);
    dnn_free(x);
    dnn_dataset_close(dataset);
}

static void test_shapes(void)
{
    is_text(prepare(true,
                    XY ", \"scale\": 1, \"steps\": [{\"pad\": [4, 3]}, {\"crop\": "
                       "{\"size\": [2, 3], \"start\": [1, 0]}}, {\"remap\": {\"map\": "
                       "{\"0\": 1, \"1\": 0}, \"other\": 0}}, {\"one_hot\": true}]}"),
            "", "padded, cropped, remapped, one-hot");
    open_dataset("out.bp");
    has_values(0, 0, 1, 1, "4 5 0 6 7 0", "the odd pixel is at the end");
    has_values(0, 1, 0, 3, "0 1 1 0 1 0", "vectors");
    dnn_dataset_close(dataset);

    is_text(prepare(true,
                    XY ", \"scale\": 1, \"steps\": [{\"slice\": {\"sizes\": [1, 2], "
                       "\"name\": \"rows\"}}]}"),
            "", "sliced");
    const struct dnn_dataset_info *info = open_dataset("out.bp");
    is_int(info->split[0].count, 24, "two of each");
    has_values(0, 0, 2, 2, "4 5 6 7", "the rows");
    has_values(0, 1, 2, 2, "1 1", "both have the label");
    has_names(0, 2, 2, "x.npy[1][0,0] x.npy[1][1,0]", "names have the index");
    char **group = NULL;
    dnn_dataset_metadata(dataset, 0, 2, 2, NULL, NULL, &group, NULL);
    ok(group != NULL && strcmp(group[0], group[1]) == 0 &&
           strcmp(without_scratch(group[0]), "x.npy[1]") == 0,
       "the group is the original sample");
    dnn_free(group);
    dnn_dataset_close(dataset);
}

static void test_sets(void)
{
    is_text(prepare(true,
                    XY ", \"scale\": 1, \"steps\": [{\"slice\": [{\"sizes\": [1, 2], "
                       "\"name\": \"rows\"}, {\"sizes\": [2, 1], \"name\": "
                       "\"columns\"}]}]}"),
            "", "two sets of slices");
    const struct dnn_dataset_info *info = open_dataset("out.bp");
    is_int(info->split[0].count, 48, "four of each");
    has_values(0, 0, 4, 4, "4 5 6 7 4 6 5 7", "rows, then columns");
    has_names(0, 5, 2, "x.npy[1][rows:1,0] x.npy[1][columns:0,0]",
              "names have the set");
    dnn_dataset_close(dataset);
    is_text(prepare(true, XY
                    ", \"steps\": [{\"slice\": [{\"sizes\": [1, 2]}, {\"sizes\": [2, "
                    "2]}]}]}"),
            "c:1: steps[0].slice: boxes of the first set are 2x1, but of set 2 2x2x1; "
            "all samples of a dataset must have the same shape",
            "boxes of different shapes");
}

static void test_sources(void)
{
    is_text(
        prepare(true,
                "{\"sources\": [{\"split\": \"train\", \"from\": \"%s/x.npy\"}, "
                "{\"split\": \"final\", \"from\": {\"input_path\": \"%s/x.npy\"}}], "
                "\"to\": \"%s/out.bp\", \"scale\": 1, \"steps\": [{\"split\": "
                "{\"train\": 0.75, \"validation\": 0.25}}]}"),
        "", "two sources with splits of their own");
    const struct dnn_dataset_info *info = open_dataset("out.bp");
    if (!ok(info != NULL, "it opens")) return;
    int train = dnn_dataset_find(dataset, "train"),
        final = dnn_dataset_find(dataset, "final");
    int validation = dnn_dataset_find(dataset, "validation");
    ok(train >= 0 && info->split[train].count == 9 && validation >= 0 &&
           info->split[validation].count == 3,
       "train samples are split");
    ok(final >= 0 && info->split[final].count == 12, "test samples are not");
    dnn_dataset_close(dataset);
    is_text(
        prepare(true, "{\"sources\": [{\"from\": \"%s/x.npy\"}, {\"from\": "
                      "\"%s/v.npy\"}], \"to\": \"%s/out.bp\"}"),
        "the column \"input\" of source 1 has kind image (f32 2x2x1, 0 classes), but "
        "in the first source it is \"input\" of kind image (u8 2x2x1, 0 classes)",
        "sources with different columns");
}

/* ---- errors ---- */

static void test_refused(void)
{
    float nan[2] = {1, NAN};
    int64_t far[2] = {0, 5}, below[2] = {0, -1};

    write_npy("nan.npy", "<f4", "(2, 1)", nan, sizeof nan);
    write_npy("far.npy", "<i8", "(2,)", far, sizeof far);
    write_npy("below.npy", "<i8", "(2,)", below, sizeof below);
    refuses("{\"from\": \"%s/nan.npy\", \"to\": \"%s/no.bp\"}",
            "nan.npy[1]: input: value 0 is NaN; set \"allow_nan\": true to accept it");
    refuses("{\"from\": {\"input_path\": \"%s/nan.npy\", \"target_path\": "
            "\"%s/below.npy\", "
            "\"target_kind\": \"label\"}, \"allow_nan\": true, \"to\": \"%s/no.bp\"}",
            "nan.npy[1]: target: class -1; class numbers must be 0 or more");
    refuses(
        "{\"from\": {\"input_path\": \"%s/nan.npy\", \"target_path\": \"%s/far.npy\", "
        "\"target_kind\": \"label\"}, \"allow_nan\": true, \"to\": \"%s/no.bp\", "
        "\"steps\": [{\"remap\": [1, 0]}]}",
        "nan.npy[1]: target: remap: element 0 is 5; classes are 0 to 1");
    refuses(XY ", \"steps\": [{\"resize\": [4]}]}",
            "c:1: steps[0].resize: 1 numbers given, but the column \"input\" has 2 "
            "spatial axes");
    refuses(
        XY ", \"steps\": [{\"resize\": {\"size\": [4, 4], \"columns\": [\"inptu\"]}}]}",
        "c:1: steps[0].resize: there is no column \"inptu\"; did you mean \"input\"?");
    refuses(
        XY
        ", \"steps\": [{\"resize\": {\"size\": [4, 4], \"columns\": [\"target\"]}}]}",
        "c:1: steps[0].resize: cannot be applied to the column \"target\" of kind "
        "label");
    refuses(XY ", \"steps\": [{\"crop\": [4, 4]}]}",
            "x.npy[0]: input: crop: axis 0 has size 2, smaller than the crop size 4; "
            "pad first");
    refuses(XY ", \"steps\": [{\"split\": {\"train\": 0.99, \"test\": 0.01}}]}",
            "the split \"test\" would be empty: it gets none of the 12 samples");
    refuses(XY ", \"steps\": [{\"split\": {\"train\": 1, \"group\": true}}]}",
            "the step \"split\" needs groups, but no source has any; set \"group\" "
            "under \"from\"");
    refuses("{\"from\": \"%s/x.npy\", \"to\": \"%s/no.bp\", \"steps\": [{\"split\": "
            "{\"train\": 1, \"stratify\": true}}]}",
            "stratify and balance need class labels, one per sample; these targets are "
            "not labels");
    refuses("{\"from\": \"%s/none.npy\", \"to\": \"%s/no.bp\"}",
            "none.npy: cannot be read: No such file or directory");
    char *path = dnn_format("%s/no.bp", scratch);
    struct stat st;
    ok(stat(path, &st) != 0, "none of these left a dataset");
    dnn_free(path);
}

int main(void)
{
    scratch_begin();
    make_files();
    test_plain();
    test_splits();
    test_balance();
    test_stored();
    test_shapes();
    test_sets();
    test_sources();
    test_refused();
    return scratch_end();
}
