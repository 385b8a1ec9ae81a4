/* run_config_data.c - the section "data" of a configuration: its keys and their checks.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config/run_config_impl.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

static const struct dnn_choice precisions[] = {
    {"single", DNN_HDF5_SINGLE},
    {"half",   DNN_HDF5_HALF  },
    {"double", DNN_HDF5_DOUBLE},
    {NULL,     0              }
};

static const struct dnn_sub slicer_sub = {dnn_slicer_fields, sizeof(struct dnn_slicer),
                                          0, 0, false};
static const struct dnn_sub pair = {.min = 2, .max = 2};

#define AT(f) offsetof(struct dnn_config_data, f)
/* clang-format off */
const struct dnn_field dnn_config_data_fields[] = {
    TEXT("dataset", AT(dataset), "null", "training data: a dataset made by dnn-prepare (.bp)"),
    TEXT("test_dataset", AT(test_dataset), "null",
         "test data: another dataset; null: the same one.  Without dataset: no training"),
    TEXT("split", AT(split), "train", "split of the dataset to train on"),
    TEXT("test_split", AT(test_split), "null",
         "split of the dataset to test on; null: test, if there is one"),
    JSON("validation", AT(validation), "null",
         "data to evaluate after each epoch: a split of the dataset or, for files and "
         "generators, a fraction of the training samples to hold out, such as 0.1; null: the "
         "split validation, if there is one, else the test data"),
    INT("fold", AT(fold), "0", 0, 1e6,
        "cross-validation: train without fold k of the dataset and validate on it; 0: no folds"),
    TEXT("type", AT(type), "null",
         "type of inputs and targets: images, masks, labels, numpy, hdf5, mnist, pde, "
         "dataset, or a format of dnn-prepare; null: detected from suffix and content"),
    TEXT("input_type", AT(input_type), "null", "the same for inputs only"),
    TEXT("target_type", AT(target_type), "null",
         "the same for targets only; labels: the name of the directory an input is in"),
    TEXT("input_path", AT(input_path), "null",
         "training inputs: a file, a directory, or a text file that lists files; null: no "
         "training"),
    TEXT("target_path", AT(target_path), "null", "training targets, matched to inputs by file name"),
    TEXT("test_input_path", AT(test_input_path), "null",
         "test inputs, for evaluation or inference; null: none"),
    TEXT("test_target_path", AT(test_target_path), "null",
         "test targets; null: inference without a loss"),
    JSON("from", AT(from_text), "null",
         "instead of input_path: files described by an object, as for dnn-prepare; see below"),
    JSON("test_from", AT(test_from_text), "null", "the same instead of test_input_path"),
    TEXT("test_preparation", AT(test_preparation), "null",
         "a model file (model.dnn): the preparation of its training data is applied to the "
         "raw test files, with the same statistics"),
    FLAG("target_is_mask", AT(target_is_mask), "false",
         "targets are segmentation masks (class indices): never interpolate them"),
    FLAG("grayscale", AT(grayscale), "false", "convert images to grey, inputs and targets"),
    FLAG("input_grayscale", AT(input_grayscale), "false", "inputs only"),
    FLAG("target_grayscale", AT(target_grayscale), "false", "targets only"),
    WORD("input_layout", AT(input_layout), "auto", dnn_layout_choices,
         "channel axis of arrays; auto: first for the types numpy and hdf5"),
    WORD("target_layout", AT(target_layout), "auto", dnn_layout_choices, "the same for targets"),
    TEXT("training_tag", AT(training_tag), "null",
         "directory that holds one subdirectory per class, for training"),
    TEXT("testing_tag", AT(testing_tag), "null", "the same for testing"),
    TEXT("test_tag", AT(test_tag), "null", "alias of testing_tag"),
    JSON("generate", AT(generate), "null",
         "generated training data instead of files: {\"type\": \"fractals3d\", \"samples\": 64, ...}"),
    JSON("test_generate", AT(test_generate), "null", "the same for test data"),
    INT("domain_size", AT(domain_size), "0", 0, 1 << 24, "type pde: number of grid points"),
    INT("num_examples", AT(num_examples), "0", 0, 1e12,
        "type pde: number of training samples; 0: no training"),
    INT("num_test_examples", AT(num_test_examples), "0", 0, 1e12, "type pde: number of test samples"),
    {"bc_frequency", DNN_F_REALS, AT(bc_frequency), "null", 0, 1e6, NULL,
     "type pde: range of frequencies, [lowest, highest]", &pair},
    TEXT("bc_type", AT(bc_type), "random_uniform",
         "type pde: random_uniform (frequencies drawn at random) or fixed_uniform (evenly "
         "spaced)"),
    INT("bc_terms", AT(bc_terms), "1", 1, 64,
        "type pde: number of superposed waves per sample, with random weights"),
    INT("batch_size", AT(batch_size), "64", 1, DNN_CONFIG_BATCH, "global batch size (all ranks together)"),
    INT("batch_size_per_rank", AT(batch_size_per_rank), "0", 0, DNN_CONFIG_BATCH,
        "instead of batch_size: batch size of each rank; not with deterministic; 0: use "
        "batch_size"),
    INT("test_batch_size", AT(test_batch_size), "64", 1, DNN_CONFIG_BATCH,
        "global batch size of validation and test"),
    FLAG("shuffle", AT(shuffle), "true", "shuffle training samples every epoch"),
    BYTES("window", AT(window), "null", "size of the shuffle buffer; null: 512 MiB"),
    FLAG("preload", AT(preload), "false", "load all samples into memory first"),
    FLAG("verify", AT(verify), "false", "check the checksum of each sample when it is read"),
    INT("threads", AT(threads), "0", 0, 1024, "threads that read data; 0: chosen from the machine"),
    INT("ahead", AT(ahead), "0", 0, 1024, "number of batches to prefetch; 0: 3"),
    BYTES("memory", AT(memory), "null",
          "memory for reading; null: one eighth of what the job has on a node"),
    JSON("transforms", AT(transforms), "null",
         "transforms and random augmentation of inputs and targets, applied each time a "
         "sample is read"),
    JSON("input_transforms", AT(input_transforms), "null", "the same for inputs only"),
    JSON("target_transforms", AT(target_transforms), "null", "the same for targets only"),
    JSON("test_transforms", AT(test_transforms), "null",
         "transforms of test data; if neither this nor the next two are given: those of "
         "training without the random ones"),
    JSON("test_input_transforms", AT(test_input_transforms), "null", "the same for test inputs only"),
    JSON("test_target_transforms", AT(test_target_transforms), "null", "the same for test targets only"),
    {"slicers", DNN_F_OBJECTS, AT(slicers), "[]", 0, 0, NULL,
     "cut volumes into boxes, and assemble the outputs again", &slicer_sub},
    TEXT("test_output_path", AT(test_output_path), "null", "directory for outputs; their formats: inference.formats"),
    TEXT("hdf5_outfile", AT(hdf5_outfile), "null",
         "file for outputs assembled from slices, one HDF5 dataset per slicer"),
    WORD("hdf5_precision", AT(hdf5_precision), "single", precisions, "precision of values in HDF5, BP5 and NPY files"),
    END,
};
/* clang-format on */

/* ---- types ---- */

static const char *const type_names[] = {"images", "masks", "labels",  "numpy", "hdf5",
                                         "mnist",  "pde",   "dataset", NULL};

bool dnn_config_type_is(const char *type, const char *word)
{
    return type != NULL && strcasecmp(type, word) == 0;
}

static int check_type(const struct dnn_jobj *data, const char *key, const char *type,
                      struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(data, key);
    struct dnn_importer_info info;
    const char *known[64] = {NULL};
    struct dnn_buf list = {0};
    char hint[128];
    int n = 0;

    if (type == NULL) return 0;
    for (int i = 0; type_names[i] != NULL; i++)
        known[n++] = type_names[i];
    for (int i = 0; n < 63 && dnn_import_info(i, &info); i++)
        if (strcmp(info.name, "hdf5") != 0) known[n++] = info.name;
    for (int i = 0; i < n; i++)
        if (strcasecmp(known[i], type) == 0) return 0;
    for (int i = 0; i < n; i++)
        dnn_buf_add(&list, "%s%s", i == 0 ? "" : ", ", known[i]);
    int rc = dnn_json_fail(&at, err, "must be one of %s, not \"%s\"%s", list.text, type,
                           dnn_text_hint(hint, sizeof hint, type, known));
    dnn_buf_free(&list);
    return rc;
}

static int check_types(const struct dnn_jobj *at, const struct dnn_config_data *data,
                       struct dnn_err *err)
{
    struct dnn_jobj both = dnn_json_sub(at, "type");
    struct dnn_jobj input = dnn_json_sub(at, "input_type");
    struct dnn_jobj domain = dnn_json_sub(at, "domain_size");
    struct dnn_jobj frequency = dnn_json_sub(at, "bc_frequency");
    struct dnn_jobj terms = dnn_json_sub(at, "bc_terms");

    DNN_TRY(check_type(at, "type", data->type, err));
    DNN_TRY(check_type(at, "input_type", data->input_type, err));
    DNN_TRY(check_type(at, "target_type", data->target_type, err));
    if (dnn_config_type_is(data->input_type, "labels"))
        return dnn_json_fail(&input, err, "labels can be targets, but not inputs");
    if (dnn_config_type_is(data->type, "labels") && data->input_type == NULL)
        return dnn_json_fail(&both, err,
                             "labels can only be targets; give input_type and "
                             "target_type instead");
    if (data->num_examples == 0 && data->num_test_examples == 0) return 0;
    if (data->domain_size < 2)
        return dnn_json_fail(
            &domain, err, "the key \"domain_size\" is missing: number of grid points");
    if (data->bc_frequency.count == 0)
        return dnn_json_fail(&frequency, err,
                             "the key \"bc_frequency\" is missing: [lowest, highest]");
    if (data->bc_terms > 1 && strcasecmp(data->bc_type, "fixed_uniform") == 0)
        return dnn_json_fail(&terms, err, "must be 1 if bc_type is fixed_uniform");
    return 0;
}

/* ---- keys that exclude or need each other ---- */

/* Neither absent nor null nor 0. */
static bool given(const struct dnn_jobj *at, const char *key)
{
    struct dnn_jobj it = dnn_json_sub(at, key);
    double x;

    if (dnn_json_type(&it) == DNN_J_NUMBER)
        return dnn_json_real(&it, &x, NULL) == 0 && x != 0;
    return it.val != NULL && dnn_json_type(&it) != DNN_J_NULL;
}

/* At most one of these keys may be given; the list is NULL-ended. */
static int check_one_of(const struct dnn_jobj *at, const char *const *keys,
                        struct dnn_err *err)
{
    const char *first = NULL;

    for (int i = 0; keys[i] != NULL; i++) {
        if (!given(at, keys[i])) continue;
        if (first != NULL) {
            struct dnn_jobj it = dnn_json_sub(at, keys[i]);

            return dnn_json_fail(
                &it, err, "cannot be combined with \"%s\"; give one of them", first);
        }
        first = keys[i];
    }
    return 0;
}

static int check_pairs(const struct dnn_jobj *at, struct dnn_err *err)
{
    static const char *const train[] = {"dataset",  "input_path",   "from",
                                        "generate", "num_examples", NULL};
    static const char *const test[] = {"test_dataset",      "test_input_path",
                                       "test_from",         "test_generate",
                                       "num_test_examples", NULL};
    static const char *const needs[][2] = {
        {"target_path",      "input_path"     },
        {"test_target_path", "test_input_path"},
    };

    DNN_TRY(check_one_of(at, train, err));
    DNN_TRY(check_one_of(at, test, err));
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        struct dnn_jobj it = dnn_json_sub(at, needs[i][0]);

        if (given(at, needs[i][0]) && !given(at, needs[i][1]))
            return dnn_json_fail(&it, err, "needs \"%s\", which is missing",
                                 needs[i][1]);
    }
    return 0;
}

/* ---- values that need more than a table ---- */

static int read_validation(const struct dnn_jobj *data, struct dnn_config_data *out,
                           struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(data, "validation");
    char quote[DNN_JSON_QUOTE];

    if (!given(data, "validation")) return 0;
    if (dnn_json_type(&at) == DNN_J_TEXT) {
        if (out->dataset == NULL)
            return dnn_json_fail(&at, err,
                                 "only a dataset has named splits; for files, give the "
                                 "fraction of samples to hold out, such as 0.1");
        return dnn_json_string(&at, &out->validation_split, err);
    }
    if (dnn_json_type(&at) == DNN_J_NUMBER && out->dataset != NULL)
        return dnn_json_fail(&at, err,
                             "must be the name of a split of the dataset; dnn-prepare "
                             "makes splits");
    if (dnn_json_type(&at) == DNN_J_NUMBER) {
        DNN_TRY(dnn_json_real(&at, &out->validation_fraction, err));
        if (out->validation_fraction > 0 && out->validation_fraction < 1) return 0;
    }
    return dnn_json_fail(
        &at, err, "must be the name of a split or a fraction between 0 and 1, not %s",
        dnn_json_quote(quote, &at));
}

/* Files that are described as for dnn-prepare; NULL if there are none. */
static int read_from(const struct dnn_jobj *data, const char *key,
                     const struct dnn_import **out, struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(data, key);

    *out = NULL;
    if (!given(data, key)) return 0;
    struct dnn_import *how = dnn_arena_alloc(dnn_json_arena(at.file), sizeof *how);
    DNN_TRY(dnn_field_fill(&at, dnn_import_fields, NULL, how, err));
    *out = how;
    return 0;
}

static int read_tags(const struct dnn_jobj *at, struct dnn_config_data *data,
                     struct dnn_err *err)
{
    struct dnn_jobj tag = dnn_json_sub(at, "test_tag");

    if (data->test_tag == NULL) return 0;
    if (data->testing_tag != NULL && strcmp(data->test_tag, data->testing_tag) != 0)
        return dnn_json_fail(
            &tag, err, "is an alias of testing_tag, which is \"%s\"; give one of them",
            data->testing_tag);
    data->testing_tag = data->test_tag;
    return 0;
}

/* The batch size may be given here or at the top level. */
static int read_batch(const struct dnn_jobj *top, const struct dnn_jobj *at,
                      struct dnn_config *config, struct dnn_config_data *data,
                      struct dnn_err *err)
{
    struct dnn_jobj batch = dnn_json_sub(at, "batch_size");
    struct dnn_jobj each = dnn_json_sub(at, "batch_size_per_rank");

    if (data->batch_size_per_rank > 0) {
        if (given(top, "batch_size") || given(at, "batch_size"))
            return dnn_json_fail(&each, err,
                                 "cannot be combined with \"batch_size\"; give one of "
                                 "them");
        if (config->deterministic)
            return dnn_json_fail(&each, err,
                                 "cannot be combined with \"deterministic\": results "
                                 "would depend on the number of ranks");
        data->batch_size = data->batch_size_per_rank;
    }
    if (!given(top, "batch_size")) {
        config->batch_size = data->batch_size;
        return 0;
    }
    if (batch.val != NULL && data->batch_size != config->batch_size)
        return dnn_json_fail(&batch, err,
                             "is %" PRId64 ", but the top-level batch_size is %" PRId64
                             "; give one of them",
                             data->batch_size, config->batch_size);
    data->batch_size = config->batch_size;
    return 0;
}

/* "type": "dataset" with a path is the same as "dataset". */
static void take_datasets(struct dnn_config_data *data)
{
    const char *type = data->input_type != NULL ? data->input_type : data->type;

    if (!dnn_config_type_is(type, "dataset")) return;
    if (data->input_path != NULL) data->dataset = data->input_path;
    if (data->test_input_path != NULL) data->test_dataset = data->test_input_path;
    data->input_path = data->test_input_path = NULL;
}

int dnn_config_read_data(const struct dnn_jobj *top, struct dnn_config *config,
                         struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(top, "data");
    struct dnn_config_data *data = (struct dnn_config_data *)config->data;

    if (data == NULL) return 0;
    DNN_TRY(check_types(&at, data, err));
    DNN_TRY(check_pairs(&at, err));
    take_datasets(data);
    DNN_TRY(read_validation(&at, data, err));
    DNN_TRY(read_from(&at, "from", &data->from, err));
    DNN_TRY(read_from(&at, "test_from", &data->test_from, err));
    DNN_TRY(read_tags(&at, data, err));
    return read_batch(top, &at, config, data, err);
}
