/* run_config_data.h - the section "data" of a configuration, and where samples come
 * from.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_CONFIG_RUN_CONFIG_DATA_H
#define DNN_CONFIG_RUN_CONFIG_DATA_H

#include "base/field.h"
#include "import/import.h"
#include "transform/slice.h"

struct dnn_config;

enum dnn_hdf5_precision { DNN_HDF5_SINGLE, DNN_HDF5_HALF, DNN_HDF5_DOUBLE };

struct dnn_config_data {
    /* Prepared. */
    const char *dataset, *test_dataset; /* .bp; test_dataset NULL: the same         */
    const char *split, *test_split;     /* test_split NULL: "test", if it exists    */
    const char *validation;             /* JSON: see the two below                  */
    const char *validation_split;       /* or NULL                                  */
    double validation_fraction;         /* 0 to 1: of the training samples          */
    int64_t fold;
    /* Raw files. */
    const char *type, *input_type, *target_type;
    const char *input_path, *target_path, *test_input_path, *test_target_path;
    const struct dnn_import *from, *test_from; /* or NULL                            */
    const char *from_text, *test_from_text;    /* as JSON                            */
    const char *test_preparation; /* a model file, whose preparation is applied to raw
                                   * test files; or NULL                             */
    bool target_is_mask, grayscale, input_grayscale, target_grayscale;
    int input_layout, target_layout; /* enum dnn_layout; AUTO: the type's           */
    const char *training_tag, *testing_tag, *test_tag;
    /* Generated. */
    const char *generate, *test_generate; /* JSON, or NULL                           */
    int64_t domain_size, num_examples, num_test_examples;
    struct dnn_list bc_frequency;
    const char *bc_type;
    int64_t bc_terms;
    /* How they are read. */
    int64_t batch_size, test_batch_size; /* global                                   */
    int64_t batch_size_per_rank;         /* 0: see batch_size                        */
    bool shuffle, preload, verify;
    int64_t window, memory;
    int64_t threads, ahead;
    const char *transforms, *input_transforms, *target_transforms; /* JSON, or NULL   */
    const char *test_transforms, *test_input_transforms, *test_target_transforms;
    struct dnn_list slicers; /* of struct dnn_slicer                                 */
    /* Outputs. */
    const char *test_output_path, *hdf5_outfile;
    int hdf5_precision; /* enum dnn_hdf5_precision                                  */
};
extern const struct dnn_field dnn_config_data_fields[];

/* ---- what the run does ---- */

enum dnn_config_mode {
    DNN_CONFIG_NOTHING, /* there is no data: a network for --explain */
    DNN_CONFIG_TRAIN, /* training, with evaluation if there is data for it           */
    DNN_CONFIG_EVAL,  /* the loss and metrics of test data                           */
    DNN_CONFIG_INFER  /* outputs of test data alone                                  */
};
enum dnn_config_mode dnn_config_mode(const struct dnn_config *config);
/* The same if nothing is trained. */
enum dnn_config_mode dnn_config_test_mode(const struct dnn_config *config);

enum dnn_config_part { DNN_PART_TRAIN, DNN_PART_VALIDATION, DNN_PART_TEST };

enum dnn_config_from {
    DNN_FROM_NOTHING,
    DNN_FROM_DATASET,
    DNN_FROM_FILES,
    DNN_FROM_GENERATOR
};

/* Where the samples of a part are. */
struct dnn_config_origin {
    enum dnn_config_from from;
    enum dnn_config_part part;
    bool targets; /* has targets; without paths: if the data has some               */
    /* A prepared dataset. */
    const char *dataset, *split;
    bool optional; /* the split may be missing; the part is then empty */
    int64_t fold;  /* as in struct dnn_feed_cfg                                       */
    /* Raw files. */
    struct dnn_import files;
    double image_scale; /* as in struct dnn_feed_cfg                                 */
    /* Images whose values are classes, as in rmldnn: class = round(value *
     * mask_scale + mask_shift); scale 0: values are classes as they are. */
    double mask_scale, mask_shift;
    /* Files and generators: fraction (0 to 1) of the samples held out for validation.
     */
    double held_out;
};

/* Where the samples of a part are; from is DNN_FROM_NOTHING if the configuration has
 * none.  Paths are resolved.  Evaluation after an epoch uses VALIDATION or, if that is
 * DNN_FROM_NOTHING, TEST.  Strings live as long as the configuration. */
void dnn_config_origin(const struct dnn_config *config, enum dnn_config_part part,
                       struct dnn_config_origin *out);

#endif
