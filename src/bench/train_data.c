/* train_data.c - datasets and configuration files for dnn-bench train.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/io_impl.h"
#include "bench/train_impl.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "data/dataset.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { CLASSES = 4, PIXELS = 28, DIGITS = 10, TEST_IMAGES = 500 };

static const char fashion[] = "/usr/share/datasets/fashion-mnist";

static int generate(struct dnn_train_net *net, struct dnn_io_data data,
                    struct dnn_err *err)
{
    char *path = dnn_format("%s/data.bp", net->dir);
    double bytes;

    data.path = path;
    data.npy = net->dir;
    data.count = net->samples;
    data.tests = net->tests;
    int rc = dnn_io_make(&data, &bytes, err);
    dnn_free(path);
    return rc;
}

/* Convert a directory of images to a dataset, and get its number of samples. */
static int prepare(const struct dnn_train *t, struct dnn_train_net *net,
                   struct dnn_err *err)
{
    char *path = dnn_format("%s/data.bp", net->dir);
    const char *const argv[] = {t->prepare, "--quiet", "--replace", "--from",
                                net->data,  "--to",    path,        NULL};
    struct dnn_dataset *set;
    int rc = dnn_proc_run(argv, NULL, err);

    if (rc == 0) rc = dnn_dataset_open(NULL, path, 1, &set, err);
    dnn_free(path);
    if (rc < 0) return rc;
    int train = dnn_dataset_find(set, "train"), test = dnn_dataset_find(set, "test");
    if (train >= 0) net->samples = dnn_dataset_info(set)->split[train].count;
    if (test >= 0) net->tests = dnn_dataset_info(set)->split[test].count;
    if (train < 0 || test < 0)
        rc = dnn_fail(err, DNN_EDATA, "%s: needs training and test images", net->data);
    dnn_dataset_close(set);
    return rc;
}

/* Write the configuration file, and the network as a Keras file for PyTorch. */
static int write_config(const struct dnn_train *t, const struct dnn_train_net *net,
                        const char *layers, const char *more, struct dnn_err *err)
{
    char *config = dnn_format("%s/config.json", net->dir);
    char *keras = dnn_format("%s/net.json", net->dir);
    const char *const argv[] = {t->train, "--quiet", "--export", keras, config, NULL};
    struct dnn_buf text = {0};

    dnn_buf_add(&text,
                "{\n    \"layers\": %s,\n    \"data\": {\"dataset\": \"data.bp\", "
                "\"batch_size\": %" PRId64 ", \"test_batch_size\": %" PRId64
                "},\n    \"num_epochs\": %ld,\n    \"loss\": \"cross_entropy\",\n"
                "    \"optimizer\": {\"type\": \"Adam\", \"learning_rate\": 0.001},\n"
                "%s    \"telemetry\": {\"steps\": 1}\n}\n",
                layers, net->batch, net->test_batch, t->cfg.epochs + 1, more);
    int rc = dnn_file_write(config, text.text, text.len, err);
    if (rc == 0) rc = dnn_proc_run(argv, NULL, err);
    dnn_buf_free(&text);
    dnn_free(config);
    dnn_free(keras);
    return rc;
}

int dnn_train_make_unet(const struct dnn_train *t, struct dnn_train_net *net,
                        struct dnn_err *err)
{
    const struct dnn_bench_train *cfg = &t->cfg;
    const struct dnn_io_data data = {
        .volumes = true, .extent = cfg->size, .classes = CLASSES};
    char layers[160];

    net->samples = cfg->volumes;
    net->tests = cfg->volumes < 4 ? 1 : cfg->volumes / 4;
    net->batch = net->test_batch = cfg->batch;
    net->data = dnn_strdup(net->dir);
    DNN_TRY(generate(net, data, err));
    snprintf(layers, sizeof layers,
             "{\"zoo\": \"unet3d\", \"base\": %ld, \"depth\": %ld, \"classes\": %d, "
             "\"input\": [%ld, %ld, %ld, 1]}",
             cfg->base, cfg->depth, CLASSES, cfg->size, cfg->size, cfg->size);
    /* Checkpoints are enabled only in their own setup. */
    return write_config(t, net, layers, "    \"checkpoints\": {\"interval\": 0},\n",
                        err);
}

int dnn_train_make_cnn(const struct dnn_train *t, struct dnn_train_net *net,
                       struct dnn_err *err)
{
    const struct dnn_bench_train *cfg = &t->cfg;
    const struct dnn_io_data data = {
        .extent = PIXELS, .channels = 1, .classes = DIGITS};
    const char *from = cfg->images != NULL ? cfg->images : fashion;
    bool made = cfg->count > 0 || (cfg->images == NULL && access(from, R_OK) != 0);

    net->batch = cfg->image_batch;
    net->test_batch = TEST_IMAGES;
    net->samples = cfg->count > 0 ? cfg->count : 60000;
    net->tests = (net->samples + 5) / 6;
    net->images = made ? "generated" : cfg->images != NULL ? from : "Fashion-MNIST";
    net->data = dnn_strdup(made ? net->dir : from);
    DNN_TRY(made ? generate(net, data, err) : prepare(t, net, err));
    return write_config(t, net,
                        "{\"zoo\": \"simplecnn\", \"classes\": 10, \"input\": [28, 28, "
                        "1]}",
                        "", err);
}
