/* config_data.c - the section "data": sources of samples, and errors.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config_made.h"
#include "source/source.h"

#include <stdlib.h>
#include <string.h>

static void is_path(const char *got, const char *want, const char *what)
{
    char *whole = below(want);

    is_text(got == NULL ? "none" : got, whole, what);
    dnn_free(whole);
}

/* ---- prepared ---- */

static void is_split(enum dnn_config_part part, const char *set, const char *split,
                     bool maybe, int64_t fold)
{
    struct dnn_config_origin at;

    dnn_config_origin(&config, part, &at);
    is_int(at.from, DNN_FROM_DATASET, "a dataset");
    is_path(at.dataset, set, "which");
    is_text(at.split, split, "its split");
    ok(at.optional == maybe && at.fold == fold && at.targets, "its options");
}

static void datasets(void)
{
    if (reads("\"dataset\": \"a.bp\"")) {
        is_split(DNN_PART_TRAIN, "a.bp", "train", false, 0);
        is_split(DNN_PART_VALIDATION, "a.bp", "validation", true, 0);
        is_split(DNN_PART_TEST, "a.bp", "test", true, 0);
        is_int(config.batch_size, 64, "the default batch size");
        is_int(dnn_config_mode(&config), DNN_CONFIG_TRAIN, "training");
        dnn_config_free(&config);
    }
    if (reads("\"dataset\": \"a.bp\", \"split\": \"s\", \"validation\": \"v\", "
              "\"test_split\": \"t\", \"test_dataset\": \"b.bp\"")) {
        is_split(DNN_PART_TRAIN, "a.bp", "s", false, 0);
        is_split(DNN_PART_VALIDATION, "a.bp", "v", false, 0);
        is_split(DNN_PART_TEST, "b.bp", "t", false, 0);
        dnn_config_free(&config);
    }
    if (reads("\"type\": \"Dataset\", \"input_path\": \"a.bp\", \"fold\": 2")) {
        is_split(DNN_PART_TRAIN, "a.bp", "train", false, 2);
        is_split(DNN_PART_VALIDATION, "a.bp", "train", false, -2);
        dnn_config_free(&config);
    }
    if (reads("\"test_dataset\": \"/b.bp\"")) {
        struct dnn_config_origin at;

        is_int(dnn_config_mode(&config), DNN_CONFIG_INFER, "only test data");
        dnn_config_origin(&config, DNN_PART_TEST, &at);
        is_text(at.dataset, "/b.bp", "an absolute path");
        dnn_config_origin(&config, DNN_PART_TRAIN, &at);
        is_int(at.from, DNN_FROM_NOTHING, "no training data");
        dnn_config_free(&config);
    }
}

/* ---- files ---- */

static void tags(void)
{
    struct dnn_config_origin at;

    if (!reads(
            "\"input_type\": \"images\", \"target_type\": \"labels\", \"input_path\": "
            "\"all\", \"test_input_path\": \"all/test\", \"training_tag\": \"train\", "
            "\"testing_tag\": \"test\""))
        return;
    dnn_config_origin(&config, DNN_PART_TRAIN, &at);
    is_text(at.files.split, "train", "a tag selects a directory below the path");
    dnn_config_origin(&config, DNN_PART_TEST, &at);
    ok(at.files.split == NULL, "a tag that is part of the path does not");
    dnn_config_free(&config);
    if (!reads(
            "\"type\": \"MNIST\", \"input_path\": \"m\", \"test_input_path\": \"m\""))
        return;
    dnn_config_origin(&config, DNN_PART_TRAIN, &at);
    ok(strcmp(at.files.split, "train") == 0 &&
           strcmp(at.files.input.format, "idx") == 0,
       "MNIST's own files");
    dnn_config_origin(&config, DNN_PART_TEST, &at);
    is_text(at.files.split, "test", "both parts in one directory");
    dnn_config_free(&config);
}

static void described(void)
{
    struct dnn_config_origin at;

    if (!reads("\"from\": {\"input_path\": \"v.raw\", \"input_shape\": [4, 4, 1], "
               "\"input_dtype\": \"f32\", \"target_path\": \"/t.npy\"}"))
        return;
    dnn_config_origin(&config, DNN_PART_TRAIN, &at);
    is_int(at.from, DNN_FROM_FILES, "files");
    is_path(at.files.input.path, "v.raw", "from the directory of the configuration");
    is_text(at.files.target.path, "/t.npy", "or an absolute path");
    is_int(at.files.input.shape.count, 3, "described as for dnn-prepare");
    dnn_config_free(&config);
}

/* ---- parts ---- */

static void aside(void)
{
    struct dnn_config_origin train, validation;
    struct dnn_source *a = NULL, *b = NULL;
    char name[DNN_SAMPLE_NAME];
    int seen[20] = {0};

    if (!reads("\"generate\": {\"type\": \"blobs3d\", \"samples\": 20, \"size\": 8}, "
               "\"validation\": 0.27"))
        return;
    dnn_config_origin(&config, DNN_PART_TRAIN, &train);
    dnn_config_origin(&config, DNN_PART_VALIDATION, &validation);
    is_int(dnn_source_open(&config, &train, &a, &err), 0, "the training samples");
    is_int(dnn_source_open(&config, &validation, &b, &err), 0, "the held-out samples");
    if (a != NULL && b != NULL) {
        is_int(a->count, 15, "15 samples");
        is_int(b->count, 5, "5 samples");
        for (int64_t i = 0; i < 20; i++) {
            dnn_source_label(i < 15 ? a : b, i < 15 ? i : i - 15, name);
            seen[atoi(name) % 20]++;
        }
        bool once = true;
        for (int i = 0; i < 20; i++)
            once = once && seen[i] == 1;
        ok(once, "each sample is in one of them");
        struct dnn_sample sample = {0};
        is_int(dnn_source_read(b, 4, &sample, &err), 0, "and can be read");
        ok(dnn_source_read(b, 5, &sample, &err) < 0, "no further one");
        dnn_sample_free(&sample);
    } else
        printf("# %s\n", err.text);
    dnn_source_close(a);
    dnn_source_close(b);
    dnn_config_free(&config);
    if (!reads("\"generate\": {\"type\": \"blobs3d\", \"samples\": 1, \"size\": 8}, "
               "\"validation\": 0.5"))
        return;
    dnn_config_origin(&config, DNN_PART_TRAIN, &train);
    ok(dnn_source_open(&config, &train, &a, &err) < 0, "of one");
    is_text(err.text,
            "data.validation: there is only one sample, so none can be held out",
            "nothing can be held out");
    dnn_config_free(&config);
}

/* ---- errors ---- */

static const struct {
    const char *data, *want; /* behind "PATH:2: " */
} wrong[] = {
    {"\"input\": \"x\"",                                  "data.input: unknown key"                              },
    {"\"input_pth\": \"x\"",
     "data.input_pth: unknown key; did you mean \"input_path\"?"                                                 },
    {"\"type\": \"image\"",                               "data.type: must be one of images, masks, labels, numpy, "
                            "hdf5, mnist, pde, dataset, "
                            "png, jpeg, tiff, nifti, npy, npz, bp, tfrecord, idx, "
                            "cifar, csv, raw, not \"image\"; "
                            "did you mean \"images\"?"                                },
    {"\"type\": \"labels\"",
     "data.type: labels can only be targets; give input_type and target_type instead"                            },
    {"\"input_type\": \"labels\"",
     "data.input_type: labels can be targets, but not inputs"                                                    },
    {"\"input_path\": \"x\", \"dataset\": \"y\"",
     "data.input_path: cannot be combined with \"dataset\"; give one of them"                                    },
    {"\"test_input_path\": \"x\", \"test_generate\": {}",
     "data.test_generate: cannot be combined with \"test_input_path\"; give one of "
     "them"                                                                                                      },
    {"\"target_path\": \"x\"",
     "data.target_path: needs \"input_path\", which is missing"                                                  },
    {"\"test_target_path\": \"x\"",
     "data.test_target_path: needs \"test_input_path\", which is missing"                                        },
    {"\"input_path\": \"x\", \"validation\": \"v\"",
     "data.validation: only a dataset has named splits; for files, give the fraction "
     "of samples to hold out, such as 0.1"                                                                       },
    {"\"dataset\": \"x\", \"validation\": 0.1",
     "data.validation: must be the name of a split of the dataset; dnn-prepare makes "
     "splits"                                                                                                    },
    {"\"input_path\": \"x\", \"validation\": 1.5",
     "data.validation: must be the name of a split or a fraction between 0 and 1, not "
     "1.5"                                                                                                       },
    {"\"validation\": []",                                "data.validation: must be the name of a split or a fraction "
                           "between 0 and 1, not []"                                   },
    {"\"test_tag\": \"a\", \"testing_tag\": \"b\"",
     "data.test_tag: is an alias of testing_tag, which is \"b\"; give one of them"                               },
    {"\"batch_size\": 0",                                 "data.batch_size: must be between 1 and 1048576, not 0"},
    {"\"bc_frequency\": [1, 2, 3]",                       "data.bc_frequency: must have 2 elements, not 3"       },
    {"\"transforms\": {}",                                "data.transforms: must be a list of transforms, not {}"},
    {"\"transforms\": [{\"resize\": \"x\"}]",
     "data.transforms[0].resize: must be a whole number, not \"x\""                                              },
    {"\"slicers\": [{\"name\": \"x\"}]",
     "data.slicers[0]: the key \"sizes\" is missing"                                                             },
    {"\"memory\": \"much\"",
     "data.memory: must be a size such as \"16GiB\", not \"much\""                                               },
    {"\"hdf5_precision\": \"quarter\"",
     "data.hdf5_precision: must be one of single, half, double, not \"quarter\""                                 },
    {"\"from\": {}",                                      "data.from: the key \"input_path\" is missing"         },
};

static void refused(void)
{
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char *want = dnn_format("%s:2: %s", path, wrong[i].want);

        ok(read_data(wrong[i].data) < 0, "%s", wrong[i].data);
        is_text(err.text, want, "is refused");
        dnn_free(want);
    }
    /* A missing key has the line of its object, which begins a line before. */
    char *want = dnn_format(
        "%s:1: data: the key \"domain_size\" is missing: number of grid points", path);
    ok(read_data("\"type\": \"pde\", \"num_examples\": 3") < 0, "no domain_size");
    is_text(err.text, want, "is refused");
    dnn_free(want);
}

int main(void)
{
    made_start();
    ok(dnn_field_check(dnn_config_data_fields, &err) == 0,
       "the table of keys is valid");
    datasets();
    tags();
    described();
    aside();
    refused();
    return made_end();
}
