/* origin.c - what a run does, and where the samples of each part are.
 *
 * rmldnn's types of data: images are divided by 255, arrays have their
 * channels first and one file is one sample, labels are names of directories.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config/run_config_impl.h"

#include <math.h>
#include <string.h>

/* ---- one side of raw files ---- */

/* The keys for the files of a part. */
struct files {
    const char *input, *target, *tag;
    bool test;
};

static bool is_array(const char *type)
{
    return dnn_config_type_is(type, "numpy") || dnn_config_type_is(type, "hdf5");
}

static bool is_picture(const char *type)
{
    return dnn_config_type_is(type, "images") || dnn_config_type_is(type, "masks");
}

/* The importer's name; NULL: by suffix and content, as with images and NumPy, which
 * are of more than one. */
static const char *format_of(const char *type)
{
    if (type == NULL || is_picture(type) || dnn_config_type_is(type, "numpy") ||
        dnn_config_type_is(type, "labels"))
        return NULL;
    return dnn_config_type_is(type, "mnist") ? "idx" : type;
}

static int layout_of(const char *type, int layout)
{
    if (layout != DNN_LAYOUT_AUTO) return layout;
    return is_array(type) ? DNN_LAYOUT_FIRST : DNN_LAYOUT_AUTO;
}

static int target_kind(const char *type, const struct dnn_config_data *data)
{
    if (dnn_config_type_is(type, "labels")) return DNN_KIND_LABEL;
    if (data->target_is_mask || dnn_config_type_is(type, "masks")) return DNN_KIND_MASK;
    return dnn_config_type_is(type, "images") ? DNN_KIND_IMAGE : -1;
}

/* Whether a directory of this name is on a path. */
static bool on_path(const char *path, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = path; *at != '\0';) {
        size_t part = strcspn(at, "/");

        if (part == len && strncmp(at, name, len) == 0) return true;
        at += part + (at[part] == '/' ? 1 : 0);
    }
    return false;
}

/* A tag below the path selects files; one that is part of the path changes nothing. */
static const char *split_of(const char *type, const struct files *files)
{
    if (dnn_config_type_is(type, "mnist")) return files->test ? "test" : "train";
    if (files->tag == NULL || on_path(files->input, files->tag)) return NULL;
    return files->tag;
}

/* ---- masks that are images ---- */

static double number(const struct dnn_jobj *obj, const char *key, double none)
{
    struct dnn_jobj at = dnn_json_sub(obj, key);
    struct dnn_jobj first = dnn_json_first(&at);
    double x = none;

    if (dnn_json_type(&at) == DNN_J_LIST) at = first;
    return dnn_json_real(&at, &x, NULL) < 0 ? none : x;
}

/* A list's normalisations, one after the other: x becomes (x - mean) / std. */
static void normalise(const struct dnn_jobj *data, const char *key, double *scale,
                      double *shift)
{
    struct dnn_jobj list = dnn_json_sub(data, key);

    for (struct dnn_jobj it = dnn_json_first(&list); it.val != NULL;
         it = dnn_json_next(&it)) {
        struct dnn_jobj how = dnn_json_sub(&it, "normalize");
        double std = number(&how, "std", 1);

        if (how.val == NULL || std == 0) continue;
        *shift = (*shift - number(&how, "mean", 0)) / std;
        *scale /= std;
    }
}

/* Masks that are images have classes only after the division by 255 and
 * normalisations: black and white are 0 and 1, and grey levels 0, 1, 2 are made classes
 * by a normalisation with 1/255.  Nothing is interpolated, so it is done at once. */
static void find_classes(const struct dnn_config *config, bool test,
                         struct dnn_config_origin *out)
{
    const struct dnn_config_data *data = config->data;
    bool own =
        test && (data->test_transforms != NULL || data->test_input_transforms != NULL ||
                 data->test_target_transforms != NULL);
    struct dnn_config_at at;

    dnn_config_find(config, &at);
    out->mask_scale = 1.0 / 255;
    normalise(&at.data, own ? "test_transforms" : "transforms", &out->mask_scale,
              &out->mask_shift);
    normalise(&at.data, own ? "test_target_transforms" : "target_transforms",
              &out->mask_scale, &out->mask_shift);
}

/* ---- raw files ---- */

static void from_paths(const struct dnn_config *config, const struct files *files,
                       struct dnn_config_origin *out)
{
    const struct dnn_config_data *data = config->data;
    const char *input = data->input_type != NULL ? data->input_type : data->type;
    const char *target = data->target_type != NULL ? data->target_type : data->type;
    bool labels = dnn_config_type_is(target, "labels");

    out->from = DNN_FROM_FILES;
    out->files = (struct dnn_import){
        .input = {.path = dnn_config_path(config, files->input),
                  .format = format_of(input),
                  .kind = is_picture(input) ? DNN_KIND_IMAGE : -1,
                  .layout = layout_of(input, data->input_layout),
                  .gray = data->grayscale || data->input_grayscale},
        /* Labels are the names of the input's directories. */
        .target = {.path = labels ? NULL : dnn_config_path(config, files->target),
                  .format = format_of(target),
                  .kind = target_kind(target, data),
                  .layout = layout_of(target, data->target_layout),
                  .gray = data->grayscale || data->target_grayscale},
        .whole = is_array(input),
        .split = split_of(input, files),
    };
    /* Training with images in directories: the directories are classes. */
    out->targets = files->target != NULL || labels || !files->test ||
                   dnn_config_type_is(input, "mnist");
    out->image_scale = is_array(input) ? 1 : 0;
    if (files->target != NULL && dnn_config_type_is(target, "images") &&
        data->target_is_mask)
        find_classes(config, files->test, out);
}

/* Files described by an object, as under "from" of dnn-prepare. */
static void from_described(const struct dnn_config *config,
                           const struct dnn_import *how, struct dnn_config_origin *out)
{
    out->from = DNN_FROM_FILES;
    out->files = *how;
    out->files.input.path = dnn_config_path(config, how->input.path);
    out->files.target.path = dnn_config_path(config, how->target.path);
    out->files.object_dir = dnn_config_path(config, how->object_dir);
    out->targets = true;
}

/* ---- the parts ---- */

static void from_dataset(const struct dnn_config *config, const char *path,
                         const char *split, bool optional, int64_t fold,
                         struct dnn_config_origin *out)
{
    out->from = DNN_FROM_DATASET;
    out->image_scale = 1; /* as stored, or scaled as the dataset says */
    out->dataset = dnn_config_path(config, path);
    out->split = split;
    out->optional = optional;
    out->fold = fold;
    out->targets = true;
}

static void from_generator(struct dnn_config_origin *out)
{
    out->from = DNN_FROM_GENERATOR;
    out->targets = true;
}

static void train(const struct dnn_config *config, struct dnn_config_origin *out)
{
    const struct dnn_config_data *data = config->data;
    const struct files files = {data->input_path, data->target_path, data->training_tag,
                                false};

    if (data->dataset != NULL)
        from_dataset(config, data->dataset, data->split, false, data->fold, out);
    else if (data->from != NULL)
        from_described(config, data->from, out);
    else if (data->generate != NULL || data->num_examples > 0)
        from_generator(out);
    else if (data->input_path != NULL)
        from_paths(config, &files, out);
    if (out->from != DNN_FROM_NOTHING) out->held_out = data->validation_fraction;
}

static void test(const struct dnn_config *config, struct dnn_config_origin *out)
{
    const struct dnn_config_data *data = config->data;
    const struct files files = {data->test_input_path, data->test_target_path,
                                data->testing_tag, true};

    if (data->test_dataset != NULL || data->dataset != NULL)
        from_dataset(config,
                     data->test_dataset != NULL ? data->test_dataset : data->dataset,
                     data->test_split != NULL ? data->test_split : "test",
                     data->test_split == NULL && data->test_dataset == NULL, 0, out);
    else if (data->test_from != NULL)
        from_described(config, data->test_from, out);
    else if (data->test_generate != NULL || data->num_test_examples > 0)
        from_generator(out);
    else if (data->test_input_path != NULL)
        from_paths(config, &files, out);
}

/* A fold, a split, or a held-out part of the training samples. */
static void validation(const struct dnn_config *config, struct dnn_config_origin *out)
{
    const struct dnn_config_data *data = config->data;
    const char *split = data->validation_split;

    if (data->dataset != NULL && data->fold != 0)
        from_dataset(config, data->dataset, data->split, false, -data->fold, out);
    else if (data->dataset != NULL)
        from_dataset(config, data->dataset, split != NULL ? split : "validation",
                     split == NULL, 0, out);
    else if (data->validation_fraction > 0)
        train(config, out);
}

void dnn_config_origin(const struct dnn_config *config, enum dnn_config_part part,
                       struct dnn_config_origin *out)
{
    static void (*const find[])(const struct dnn_config *config,
                                struct dnn_config_origin *out) = {
        [DNN_PART_TRAIN] = train,
        [DNN_PART_VALIDATION] = validation,
        [DNN_PART_TEST] = test,
    };

    *out = (struct dnn_config_origin){.part = part};
    if (config->data != NULL) find[part](config, out);
}

enum dnn_config_mode dnn_config_mode(const struct dnn_config *config)
{
    struct dnn_config_origin train_on;

    dnn_config_origin(config, DNN_PART_TRAIN, &train_on);
    if (train_on.from != DNN_FROM_NOTHING && config->num_epochs > 0)
        return DNN_CONFIG_TRAIN;
    return dnn_config_test_mode(config);
}

enum dnn_config_mode dnn_config_test_mode(const struct dnn_config *config)
{
    struct dnn_config_origin test_on;

    dnn_config_origin(config, DNN_PART_TEST, &test_on);
    if (test_on.from == DNN_FROM_NOTHING) return DNN_CONFIG_NOTHING;
    return test_on.targets && config->has_loss ? DNN_CONFIG_EVAL : DNN_CONFIG_INFER;
}
