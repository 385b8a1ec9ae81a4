/* config_rmldnn.c - configuration files of rmldnn: classification, segmentation,
 * equations, slices, inference.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/file.h"
#include "base/mem.h"
#include "config/run_config.h"
#include "source/source.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct dnn_err err;
static char dir[] = "/tmp/config_rmldnn_XXXXXX";
static struct dnn_config config;

static const char net[] =
    "{\"class_name\": \"Sequential\", \"keras_version\": \"2.8.0\", \"config\": "
    "{\"name\": "
    "\"net\", \"layers\": [{\"class_name\": \"Conv2D\", \"config\": {\"name\": "
    "\"conv\", "
    "\"batch_input_shape\": [null, 16, 16, 1], \"filters\": 3, \"kernel_size\": [3, "
    "3], "
    "\"padding\": \"same\"}}, {\"class_name\": \"Activation\", \"config\": {\"name\": "
    "\"out\", \"activation\": \"log_softmax\"}}]}}";

static char *below(const char *name)
{
    return dnn_format("%s/%s", dir, name);
}

/* Reads keys under neural_network into config. */
static int read_keys(const char *keys)
{
    char *text = dnn_format("{\n  \"neural_network\": {\n    %s\n  }\n}\n", keys);
    char *path = below("config.json");
    int rc = dnn_file_write(path, text, strlen(text), &err);

    if (rc == 0) rc = dnn_config_read_set(path, 0, NULL, &config, &err);
    dnn_free(path);
    dnn_free(text);
    return rc;
}

static bool reads(const char *keys, const char *what)
{
    bool good = ok(read_keys(keys) == 0, "%s", what);

    if (!good) printf("# %s\n", err.text);
    return good;
}

static void is_path(const char *got, const char *want, const char *what)
{
    char *whole = below(want);

    is_text(got == NULL ? "none" : got, whole, what);
    dnn_free(whole);
}

/* Images in class directories. */
static void classification(void)
{
    struct dnn_config_origin train, test;

    if (!reads(
            "\"outfile\": \"out.txt\", \"num_epochs\": 20, \"layers\": \"./net.json\", "
            "\"checkpoints\": {\"save\": \"./kept/\", \"interval\": 5, \"load\": "
            "\"w.h5\"}, \"data\": {\"input_type\": \"images\", \"target_type\": "
            "\"labels\", \"input_path\": \"./digits/training/\", \"test_input_path\": "
            "\"./digits/testing/\", \"batch_size\": 128, \"training_tag\": "
            "\"training\", "
            "\"test_tag\": \"testing\", \"grayscale\": true, \"preload\": true, "
            "\"transforms\": [{\"resize\": [16, 16]}, {\"random_rotate\": 10}]}, "
            "\"optimizer\": {\"type\": \"ADAM\", \"learning_rate\": 1e-4, "
            "\"lr_scheduler\": {\"type\": \"Exponential\", \"gamma\": 0.5, "
            "\"verbose\": "
            "true}}, \"loss\": {\"function\": \"NLL\"}",
            "classification"))
        return;
    is_int(dnn_config_mode(&config), DNN_CONFIG_TRAIN, "is training");
    is_int(config.num_epochs, 20, "epochs");
    is_int(config.batch_size, 128, "the batch");
    is_int(config.data->test_batch_size, 64, "and that of tests");
    ok(config.optimizer.torch && config.optimizer.rate == 1e-4, "PyTorch's Adam");
    ok(config.ckpt->interval == 5 && strcmp(config.ckpt->save, "./kept/") == 0,
       "checkpoints");
    is_path(dnn_config_path(&config, config.ckpt->load), "w.h5", "initial weights");
    ok(config.data->preload && config.has_loss, "other keys");
    is_int(config.ckpt->keep, 0, "all checkpoints are kept");
    dnn_config_origin(&config, DNN_PART_TRAIN, &train);
    dnn_config_origin(&config, DNN_PART_TEST, &test);
    ok(train.from == DNN_FROM_FILES && train.targets && test.targets,
       "files and labels");
    is_path(train.files.input.path, "./digits/training/", "training files");
    is_path(test.files.input.path, "./digits/testing/", "test files");
    ok(train.files.target.path == NULL && train.files.input.gray &&
           train.files.input.kind == DNN_KIND_IMAGE && train.image_scale == 0,
       "grey images, divided by 255");
    ok(train.files.split == NULL && test.files.split == NULL,
       "tags that are part of the paths are ignored");
    struct dnn_augment *augment = NULL;
    is_int(dnn_config_augment(&config, false, &augment, &err), 0, "transforms");
    ok(dnn_augment_random(augment), "of training are random");
    dnn_augment_free(augment);
    is_int(dnn_config_augment(&config, true, &augment, &err), 0, "and those");
    ok(augment != NULL && !dnn_augment_random(augment), "of tests are not");
    dnn_augment_free(augment);
    dnn_config_free(&config);
}

/* Images and masks. */
static void segmentation(void)
{
    static const char keys[] =
        "\"layers\": \"./net.json\", \"data\": {\"type\": \"images\", \"input_path\": "
        "\"in\", \"target_path\": \"mask\", \"test_input_path\": \"t\", "
        "\"test_target_path\": \"tm\", \"target_grayscale\": true, \"target_is_mask\": "
        "true, \"transforms\": [{\"resize\": [16, 16]}%s]}, \"optimizer\": {\"type\": "
        "\"rmsprop\"}, \"loss\": {\"function\": \"Dice\", \"source\": \"log_softmax\"}";
    struct dnn_config_origin train;

    for (int i = 0; i < 2; i++) {
        char *text = dnn_format(
            keys,
            i == 0 ? "" : ", {\"normalize\": {\"mean\": 0.0, \"std\": 0.003921568}}");

        bool good = reads(text, "segmentation");
        dnn_free(text);
        if (!good) return;
        dnn_config_origin(&config, DNN_PART_TRAIN, &train);
        ok(train.files.target.kind == DNN_KIND_MASK && train.files.target.gray &&
               !train.files.input.gray && train.targets,
           "masks are grey");
        ok(i == 0 ? train.mask_scale == 1.0 / 255
                  : train.mask_scale > 0.9999 && train.mask_scale < 1.0001,
           "level %d is class 1", i == 0 ? 255 : 1);
        is_int(config.optimizer.rule, DNN_UPDATE_RMSPROP, "RMSprop");
        dnn_config_free(&config);
    }
}

/* Arrays and boxes cut out of them. */
static void volumes(void)
{
    struct dnn_config_origin train;

    if (!reads(
            "\"layers\": \"./net.json\", \"num_epochs\": 2, \"data\": {\"type\": "
            "\"HDF5\", \"input_path\": \"i.h5\", \"target_path\": \"t.h5\", "
            "\"batch_size\": 16, \"slicers\": [{\"name\": \"samples\", \"sizes\": [64, "
            "64, "
            "256], \"strides\": [64, 64, 17], \"discard_remainders\": true}]}, "
            "\"optimizer\": {\"type\": \"Hessian\", \"max_iterations\": 10}, \"loss\": "
            "{\"function\": \"nll\"}",
            "volumes"))
        return;
    const struct dnn_slicer *slicer = config.data->slicers.objects;
    is_int(config.data->slicers.count, 1, "one set of slices");
    ok(strcmp(slicer->name, "samples") == 0 && slicer->strides.ints[2] == 17 &&
           slicer->discard_remainders,
       "with its numbers");
    dnn_config_origin(&config, DNN_PART_TRAIN, &train);
    ok(train.files.whole && train.files.input.layout == DNN_LAYOUT_FIRST &&
           train.files.target.layout == DNN_LAYOUT_FIRST && train.image_scale == 1 &&
           strcasecmp(train.files.input.format, "hdf5") == 0,
       "one dataset is one sample, channels first, as it is");
    is_int(config.optimizer.rule, DNN_OPTIM_HESSIAN, "second order");
    dnn_config_free(&config);
    if (!reads(
            "\"layers\": \"./net.json\", \"data\": {\"type\": \"numpy\", "
            "\"test_input_path\": \"i.npy\", \"hdf5_outfile\": \"o.h5\", "
            "\"hdf5_precision\": \"half\", \"test_batch_size\": 1, \"slicers\": "
            "[{\"name\": \"a\", \"sizes\": [1, 32, 32]}, {\"name\": \"b\", \"sizes\": "
            "[64, 64, 1]}]}",
            "slices of an array"))
        return;
    is_int(dnn_config_mode(&config), DNN_CONFIG_INFER, "inference");
    is_int(config.data->hdf5_precision, DNN_HDF5_HALF, "in half precision");
    is_int(config.data->slicers.count, 2, "two sets");
    dnn_config_free(&config);
}

static void modes(void)
{
    static const struct {
        const char *data, *loss;
        enum dnn_config_mode mode;
    } is[] = {
        {"\"test_input_path\": \"t\", \"test_output_path\": \"o\"", "",
         DNN_CONFIG_INFER                                                                                                    },
        {"\"test_input_path\": \"t\"",                              ", \"loss\": {\"function\": \"MSE\"}",
         DNN_CONFIG_INFER                                                                                                    },
        {"\"test_input_path\": \"t\", \"test_target_path\": \"u\"", "",
         DNN_CONFIG_INFER                                                                                                    },
        {"\"test_input_path\": \"t\", \"test_target_path\": \"u\"",
         ", \"loss\": {\"function\": \"BCE\", \"source\": \"sigmoid\"}",                                   DNN_CONFIG_EVAL   },
        {"\"test_input_path\": \"t\", \"target_type\": \"labels\"",
         ", \"loss\": {\"function\": \"NLL\"}",                                                            DNN_CONFIG_EVAL   },
        {"\"input_path\": \"t\"",                                   "",                                    DNN_CONFIG_TRAIN  },
        {"\"batch_size\": 3",                                       "",                                    DNN_CONFIG_NOTHING},
        {"\"input_path\": \"t\", \"test_input_path\": \"u\"",       ", \"num_epochs\": 0",
         DNN_CONFIG_INFER                                                                                                    },
        {"\"type\": \"pde\", \"domain_size\": 64, \"num_examples\": 8, "
         "\"bc_frequency\": [2, 4]",                       "",                                    DNN_CONFIG_TRAIN  },
        {"\"type\": \"mnist\", \"test_input_path\": \"t\"",
         ", \"loss\": {\"function\": \"NLL\"}",                                                            DNN_CONFIG_EVAL   },
    };

    for (size_t i = 0; i < sizeof is / sizeof is[0]; i++) {
        char *keys = dnn_format("\"layers\": \"./net.json\", \"data\": {%s}%s",
                                is[i].data, is[i].loss);

        if (reads(keys, is[i].data)) {
            is_int(dnn_config_mode(&config), is[i].mode, "its mode");
            dnn_config_free(&config);
        }
        dnn_free(keys);
    }
    ok(reads("\"layers\": \"./net.json\"", "no data"), "is fine");
    is_int(dnn_config_mode(&config), DNN_CONFIG_NOTHING, "for --explain");
    is_int(config.batch_size, 1, "one sample at a time");
    dnn_config_free(&config);
}

/* Samples of Burgers' equation are generated. */
static void equation(void)
{
    struct dnn_config_origin train, test;
    struct dnn_source *source = NULL;
    struct dnn_sample sample = {0};

    if (!reads("\"layers\": \"./net.json\", \"data\": {\"type\": \"pde\", "
               "\"domain_size\": 64, "
               "\"num_examples\": 8, \"num_test_examples\": 3, \"bc_frequency\": [2.0, "
               "10], \"bc_type\": \"FIXED_uniform\", \"batch_size\": 4}",
               "an equation"))
        return;
    dnn_config_origin(&config, DNN_PART_TRAIN, &train);
    dnn_config_origin(&config, DNN_PART_TEST, &test);
    if (ok(dnn_source_open(&config, &train, &source, &err) == 0, "to train with")) {
        is_int(source->count, 8, "8 samples");
        is_int(dnn_source_read(source, 7, &sample, &err), 0, "the last");
        is_int(dnn_array_count(&sample.col[0]), 64, "of 64 points");
    } else
        printf("# %s\n", err.text);
    dnn_sample_free(&sample);
    dnn_source_close(source);
    is_int(dnn_source_open(&config, &test, &source, &err), 0, "to test with");
    is_int(source->count, 3, "3 samples");
    dnn_source_close(source);
    dnn_config_free(&config);
}

/* Sums of waves. */
static void superposition(void)
{
    static const char keys[] =
        "\"layers\": \"./net.json\", \"data\": {\"type\": \"pde\", \"domain_size\": "
        "64, "
        "\"num_examples\": 1, \"bc_frequency\": [1, 9], \"bc_type\": \"%s\", "
        "\"bc_terms\": %d}";
    struct dnn_config_origin train;
    float highest[2] = {0, 0};

    for (int i = 0; i < 2; i++) {
        struct dnn_source *source = NULL;
        struct dnn_sample sample = {0};
        char *text = dnn_format(keys, "random_uniform", i == 0 ? 1 : 16);
        bool good = reads(text, i == 0 ? "a wave" : "a sum of waves");

        dnn_free(text);
        if (!good) return;
        dnn_config_origin(&config, DNN_PART_TRAIN, &train);
        int rc = dnn_source_open(&config, &train, &source, &err);
        if (rc == 0) rc = dnn_source_read(source, 0, &sample, &err);
        is_int(rc, 0, "its sample");
        for (int k = 0; rc == 0 && k < 64; k++) {
            float x = ((const float *)sample.col[0].data)[k];

            if (x > highest[i]) highest[i] = x;
        }
        dnn_sample_free(&sample);
        dnn_source_close(source);
        dnn_config_free(&config);
    }
    ok(highest[0] > 0.99f && highest[1] < 0.95f && highest[1] > 0.3f,
       "a wave reaches 1, the mean of 16 does not: %g, %g", (double)highest[0],
       (double)highest[1]);
    char *text = dnn_format(keys, "fixed_uniform", 2);
    ok(read_keys(text) < 0, "fixed_uniform needs single waves");
    dnn_free(text);
    ok(strstr(err.text, "data.bc_terms: must be 1 if bc_type is fixed_uniform") != NULL,
       "%s", err.text);
}

int main(void)
{
    if (mkdtemp(dir) == NULL) return 99;
    char *path = below("net.json");
    is_int(dnn_file_write(path, net, strlen(net), &err), 0, "a network");
    dnn_free(path);
    classification();
    segmentation();
    volumes();
    modes();
    equation();
    superposition();
    dnn_file_remove_tree(dir, &err);
    return done();
}
