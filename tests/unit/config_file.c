/* config_file.c - the configuration file: keys, defaults, and printing it again.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/file.h"
#include "base/mem.h"
#include "config/run_config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct dnn_err err;
static char path[] = "/tmp/config_file_XXXXXX";

static int read_config(const char *text, struct dnn_config *config)
{
    *config = (struct dnn_config){0};
    if (dnn_file_write(path, text, strlen(text), &err) < 0) return DNN_EIO;
    return dnn_config_read_set(path, 0, NULL, config, &err);
}

static void is_loss(const struct dnn_config *config, const char *want, const char *what)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    dnn_loss_print(config->loss, to);
    fclose(to);
    is_text(text, want, what);
    dnn_free(text);
}

static void unsaid(void)
{
    struct dnn_config config;

    is_int(read_config("{\"layers\": {\"zoo\": \"simplecnn\"}}", &config), 0,
           "only layers is required");
    is_int(config.batch_size, 1, "a batch of one");
    is_int(config.threads, 0, "default threads");
    is_loss(&config, "\"mse\"", "mean squared error");
    is_int(config.optimizer.rule, DNN_UPDATE_ADAM, "Adam");
    ok(config.optimizer.rate == 0.001 && config.optimizer.beta2 == 0.999,
       "with its default parameters");
    is_int(config.recompute, DNN_RECOMPUTE_CHEAP, "cheap ops are recomputed");
    is_int(config.memory_limit, 0, "no limit");
    ok(config.backend == NULL, "the fastest backend");
    is_text(config.net.graph->name, "simplecnn", "the network");
    ok(config.net.text != NULL, "and its text");
    ok(config.num_epochs == 1 && config.seed == 1 && config.accumulate == 1 &&
           config.ema == 0,
       "one epoch, other defaults");
    ok(config.data == NULL && config.early == NULL && config.goal == NULL, "no data");
    ok(config.ckpt->interval == 1 && config.ckpt->keep == 3 &&
           config.ckpt->resume == DNN_RESUME_AUTO && config.ckpt->save == NULL,
       "default checkpoints");
    ok(strcmp(config.parallel->rule, "bsp") == 0 && !config.deterministic,
       "synchronous ranks");
    ok(config.telemetry->csv && config.telemetry->report &&
           !config.telemetry->tensorboard,
       "a table and a report");
    dnn_config_free(&config);
}

static const char *const forms[] = {
    "{\"layers\": {\"zoo\": \"unet2d\", \"base\": 4}, \"batch_size\": 3, \"loss\": "
    "\"MSE\", \"optimizer\": {\"name\": \"SGD\", \"momentum\": 0.5}, \"recompute\": "
    "\"Auto\", \"memory_limit\": \"2KiB\", \"backend\": \"ref\", \"threads\": 2, "
    "\"input\": [32, 16, 2]}",
    "{\"neural_network\": {\"layers\": {\"zoo\": \"unet2d\", \"base\": 4, \"input\": "
    "[32, 16, 2]}, \"data\": {\"batch_size\": 3, \"input_path\": \"x\"}, \"loss\": "
    "{\"function\": \"mse\"}, \"optimizer\": {\"name\": \"sgd\", \"momentum\": 0.5}, "
    "\"recompute\": \"auto\", \"memory_limit\": 2048, \"backend\": \"ref\", "
    "\"threads\": 2, \"num_epochs\": 7, \"outfile\": \"out.txt\"}}",
    NULL};

static void check(const struct dnn_config *config, const char *what)
{
    const struct dnn_shape *in =
        &config->net.graph->node[config->net.graph->input[0]].out;

    ok(config->batch_size == 3 && config->threads == 2 &&
           config->memory_limit == 2048 && config->recompute == DNN_RECOMPUTE_AUTO &&
           config->optimizer.rule == DNN_UPDATE_SGD &&
           config->optimizer.momentum == 0.5 && config->optimizer.rate == 0.01 &&
           strcmp(config->backend, "ref") == 0,
       "%s: every key", what);
    is_loss(config, "\"mse\"", what);
    ok(in->dim[1] == 32 && in->dim[2] == 16 && in->dim[3] == 2, "%s: the data", what);
}

/* Both forms give the same configuration, and so does the printed one. */
static void everything(void)
{
    for (int i = 0; forms[i] != NULL; i++) {
        struct dnn_config config, back;
        char *text = NULL;
        size_t size;

        if (!ok(read_config(forms[i], &config) == 0, "form %d", i)) {
            printf("# %s\n", err.text);
            continue;
        }
        check(&config, "read");
        FILE *to = open_memstream(&text, &size);
        dnn_config_print(&config, to);
        fclose(to);
        if (ok(read_config(text, &back) == 0, "the printed configuration can be read"))
            check(&back, "read back");
        else
            printf("# %s\n%s\n", err.text, text);
        dnn_config_free(&back);
        dnn_config_free(&config);
        dnn_free(text);
    }
}

/* Printed as JSON and read again, it is the same. */
static void round_trip(const char *text, const char *what)
{
    char *first = NULL, *second = NULL;
    struct dnn_config config;
    size_t size;

    for (int i = 0; i < 2; i++) {
        if (!ok(read_config(i == 0 ? text : first, &config) == 0, "%s", what)) {
            printf("# %s\n", err.text);
            break;
        }
        FILE *to = open_memstream(i == 0 ? &first : &second, &size);
        dnn_config_print(&config, to);
        fclose(to);
        dnn_config_free(&config);
    }
    if (second != NULL) is_text(second, first, "printed and read, it is the same");
    dnn_free(first);
    dnn_free(second);
}

static const char full[] =
    "{\"layers\": {\"zoo\": \"simplecnn\"}, \"num_epochs\": 5, \"seed\": 7, \"loss\": "
    "[{\"function\": \"NLL\"}], \"metrics\": [\"accuracy\", {\"type\": "
    "\"f1\"}], \"optimizer\": {\"type\": \"AdamW\", \"weight_decay\": 0.1, "
    "\"lr_scheduler\": [{\"type\": \"Warmup\", \"num_epochs\": 1, \"start_factor\": "
    "0.1}]}, \"clip_norm\": 1, \"accumulate\": 2, \"ema\": 0.99, \"early_stopping\": "
    "{\"metric\": \"val_accuracy\", \"patience\": 4}, \"target_metric\": "
    "\"val_accuracy,>,0.97\", \"data\": {\"dataset\": \"d.bp\", \"transforms\": "
    "[{\"random_rotate\": 5}], \"memory\": \"1GiB\"}, \"checkpoints\": {\"resume\": "
    "true, "
    "\"minutes\": 30}, \"dir\": \"out\", \"telemetry\": {\"tensorboard\": true}, "
    "\"deterministic\": true, \"parallel\": {\"micro_batches\": 16}, \"precision\": "
    "\"float32\", "
    "\"recompute\": false}";

static void training(void)
{
    struct dnn_config config;

    if (!ok(read_config(full, &config) == 0, "a configuration that trains")) {
        printf("# %s\n", err.text);
        return;
    }
    ok(config.seed == 7 && config.clip_norm == 1 && config.accumulate == 2 &&
           config.ema == 0.99,
       "its values");
    ok(config.schedule != NULL, "the schedule");
    is_text(config.early->metric, "val_accuracy", "early stopping: metric");
    is_int(config.early->patience, 4, "and patience");
    ok(config.goal->has_target && config.goal->target == 0.97, "target_metric");
    is_int(config.ckpt->resume, DNN_RESUME_YES, "resume");
    is_int(config.parallel->micro_batches, 16, "micro_batches");
    is_int(config.data->memory, 1 << 30, "memory");
    is_int(config.batch_size, 64, "data.batch_size");
    struct dnn_metrics *metrics = NULL;
    const struct dnn_metric_value *value;
    is_int(dnn_config_metrics(&config, NULL, 10, &metrics, &err), 0, "metrics");
    ok(dnn_metrics_values(metrics, &value) >= 2, "at least two values");
    is_text(value[0].name, "accuracy", "the first");
    dnn_metrics_free(metrics);
    is_text(dnn_config_dir(&config), "/tmp/out", "the output directory");
    dnn_config_free(&config);
}

static void places(void)
{
    struct dnn_config config;

    is_int(read_config("{\"layers\": {\"zoo\": \"simplecnn\"}}", &config), 0,
           "by default");
    char *want = dnn_format("/tmp/run-%s", path + 5);
    is_text(dnn_config_dir(&config), want,
            "the output directory is next to the configuration file");
    is_text(dnn_config_path(&config, "a/b"), "/tmp/a/b",
            "paths are relative to the configuration file");
    is_text(dnn_config_path(&config, "/a/b"), "/a/b", "unless absolute");
    ok(dnn_config_path(&config, NULL) == NULL, "or none");
    dnn_free(want);
    dnn_config_free(&config);
}

#define NET "{\"layers\": {\"zoo\": \"simplecnn\"},\n"
static const struct {
    const char *text, *want; /* behind the path */
} wrong[] = {
    {"[]",                                                                              ":1: must be an object, not []"           },
    {"{}",                                                                              ":1: the key \"layers\" is missing"       },
    {NET "\"micro_batches\": 4}",
     ":2: micro_batches: unknown key here; it belongs in \"parallel\""                                                            },
    {NET "\"num_epoch\": 3}",
     ":2: num_epoch: unknown key; did you mean \"num_epochs\"?"                                                                   },
    {NET "\"num_epochs\": \"3\"}",
     ":2: num_epochs: must be a whole number, not \"3\"; remove the quotes"                                                       },
    {NET "\"checkpoints\": {\"intervall\": 3}}",
     ":2: checkpoints.intervall: unknown key; did you mean \"interval\"?"                                                         },
    {NET "\"checkpoints\": {\"resume\": \"maybe\"}}",
     ":2: checkpoints.resume: must be one of false, true, auto, not \"maybe\""                                                    },
    {NET "\"checkpoints\": {\"keep\": -1}}",
     ":2: checkpoints.keep: must be between 0 and 1000000, not -1"                                                                },
    {NET "\"metrics\": \"acuracy\"}",                                                   NULL                                      },
    {NET "\"parallel\": {\"compress\": \"zip\"}}",
     ":2: parallel.compress: must be one of none, bf16, fp16, not \"zip\""                                                        },
    {NET "\"deterministic\": true, \"parallel\": {\"compress\": \"bf16\"}}",
     ":2: parallel.compress: cannot be combined with \"deterministic\": rounding would "
     "depend on the number of ranks"                                                                                              },
    {NET "\"target_metric\": \"val_acc\"}",
     ":2: target_metric: must be \"METRIC,>,NUMBER\" (or <), or \"METRIC,~<,EPOCHS\" "
     "(or "
     "~>), not \"val_acc\""                                                                                                       },
    {NET "\"early_stopping\": {\"patients\": 3}}",
     ":2: early_stopping.patients: unknown key; did you mean \"patience\"?"                                                       },
    {NET "\"optimizer\": {\"type\": \"SGD\", \"lr_scheduler\": {\"type\": "
         "\"Step\"}}}",                                                            NULL                                      },
    {NET "\"batch_size\": 3, \"data\": {\"batch_size\": 4}}",
     ":2: data.batch_size: is 4, but the top-level batch_size is 3; give one of them"                                             },
    {NET "\"batch_size\": 3, \"data\": {\"batch_size_per_rank\": 4}}",
     ":2: data.batch_size_per_rank: cannot be combined with \"batch_size\"; give one "
     "of them"                                                                                                                    },
    {NET "\"deterministic\": true, \"data\": {\"batch_size_per_rank\": 4}}",
     ":2: data.batch_size_per_rank: cannot be combined with \"deterministic\": results "
     "would depend on the number of ranks"                                                                                        },
    {NET "\"deterministic\": true, \"learning_rate_scaling\": true}",
     ":2: learning_rate_scaling: cannot be combined with \"deterministic\": results "
     "would "
     "depend on the number of ranks"                                                                                              },
    {NET "\"telemetry\": []}",                                                          ":2: telemetry: must be an object, not []"},
    {NET "\"precision\": \"f16\"}",
     ":2: precision: must be one of f32, f64, float32, float64, not \"f16\""                                                      },
    {"{\"neural_network\": {\"layers\": {\"zoo\": \"simplecnn\"},\n\"debugg\": true}}",
     ":2: neural_network.debugg: unknown key; did you mean \"debug\"?"                                                            },
};

static void refused(void)
{
    struct dnn_config config;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char *want =
            dnn_format("%s%s", path, wrong[i].want == NULL ? ":2: " : wrong[i].want);

        ok(read_config(wrong[i].text, &config) < 0, "case %zu", i);
        /* Messages of other components are tested with them. */
        if (wrong[i].want == NULL) err.text[strlen(want)] = '\0';
        is_text(err.text, want, "is refused");
        dnn_free(want);
    }
}

/* Keys that depend on the number of ranks. */
static void ranks(void)
{
    static const char text[] =
        NET "\"optimizer\": {\"type\": \"SGD\", \"learning_rate\": 0.25}, "
            "\"learning_rate_scaling\": true, \"data\": {\"input_path\": \"x\", "
            "\"batch_size_per_rank\": 8}}";
    struct dnn_config config, back;
    char *printed = NULL;
    size_t size;

    if (!ok(read_config(text, &config) == 0, "a batch size per rank")) return;
    is_int(config.batch_size, 8, "is that of one rank");
    is_int(dnn_config_set_ranks(&config, 4, &err), 0, "on four");
    is_int(config.batch_size, 32, "the global batch size is four times as large");
    is_int(config.data->batch_size, 32, "in the data, too");
    ok(config.optimizer.rate == 1, "and four times the learning rate");
    FILE *to = open_memstream(&printed, &size);
    dnn_config_print(&config, to);
    fclose(to);
    if (ok(read_config(printed, &back) == 0, "the printed configuration can be read")) {
        is_int(dnn_config_set_ranks(&back, 4, &err), 0, "on four ranks");
        ok(back.batch_size == 32 && back.optimizer.rate == 1, "it is the same");
        dnn_config_free(&back);
    } else
        printf("# %s\n", err.text);
    dnn_free(printed);
    dnn_config_free(&config);
    if (read_config(text, &config) < 0) return;
    ok(dnn_config_set_ranks(&config, 1 << 18, &err) == DNN_ECONFIG, "too many");
    is_text(err.text,
            "data.batch_size_per_rank: 8 on 262144 ranks is more than 1048576 samples; "
            "make it smaller",
            "is refused");
    dnn_config_free(&config);
}

/* NNLO's environment variable. */
static void short_epochs(void)
{
    struct dnn_config config;

    setenv("NNLO_SHORT_BATCHES", "7", 1);
    if (ok(read_config("{\"layers\": {\"zoo\": \"simplecnn\"}}", &config) == 0,
           "read")) {
        is_int(config.steps_per_epoch, 7, "steps of an epoch from the environment");
        dnn_config_free(&config);
    }
    if (ok(read_config(NET "\"steps_per_epoch\": 9}", &config) == 0, "read")) {
        is_int(config.steps_per_epoch, 9, "the key overrides it");
        dnn_config_free(&config);
    }
    setenv("NNLO_SHORT_BATCHES", "few", 1);
    ok(read_config("{\"layers\": {\"zoo\": \"simplecnn\"}}", &config) == DNN_EUSAGE,
       "text");
    is_text(err.text,
            "NNLO_SHORT_BATCHES: must be a whole number of at least 0, not \"few\"",
            "is refused");
    unsetenv("NNLO_SHORT_BATCHES");
}

/* docs/config.md is what the program prints; GOLDEN=write writes it. */
static void manual(void)
{
    const char *srcdir = getenv("srcdir"), *golden = getenv("GOLDEN");
    char *name = dnn_format("%s/docs/config.md", srcdir == NULL ? "." : srcdir);
    char *text = NULL, *file = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);

    dnn_config_docs(to);
    fclose(to);
    if (golden != NULL && strcmp(golden, "write") == 0)
        is_int(dnn_file_write(name, text, len, &err), 0, "docs/config.md is written");
    if (dnn_file_read_text(name, 1 << 20, &file, &err) < 0)
        is_text(err.text, "", "docs/config.md can be read");
    else
        ok(strcmp(file, text) == 0,
           "docs/config.md is up to date (GOLDEN=write writes it)");
    dnn_free(file);
    dnn_free(name);
    dnn_free(text);
}

static void sizes(void)
{
    struct dnn_zoo_opts opts = dnn_zoo_defaults("unet3d");
    struct dnn_net net;

    opts.base = 2;
    opts.depth = 1;
    is_int(dnn_net_zoo(&opts, &(struct dnn_net_size){"8", 0}, &net, &err), 0,
           "one extent for all axes");
    const struct dnn_shape *in = &net.graph->node[net.graph->input[0]].out;
    ok(in->dim[1] == 8 && in->dim[3] == 8 && in->dim[4] == 1, "8x8x8x1");
    dnn_net_free(&net);
    is_int(dnn_net_zoo(&opts, &(struct dnn_net_size){"4x6x10", 5}, &net, &err), 0,
           "one for each");
    in = &net.graph->node[net.graph->input[0]].out;
    ok(in->dim[1] == 4 && in->dim[3] == 10 && in->dim[4] == 5, "4x6x10x5");
    dnn_net_free(&net);
    static const char *const bad[] = {"8x8", "", "8x", "0", "8x8x8x8", "x", "-8", NULL};
    for (int i = 0; bad[i] != NULL; i++)
        ok(dnn_net_zoo(&opts, &(struct dnn_net_size){bad[i], 0}, &net, &err) < 0,
           "\"%s\" is invalid: %s", bad[i], err.text);
}

int main(void)
{
    int fd = mkstemp(path);

    if (fd < 0) return 99;
    close(fd);
    ok(dnn_field_check(dnn_config_fields, &err) == 0, "the table of keys is valid");
    unsaid();
    everything();
    training();
    places();
    round_trip(full, "everything");
    round_trip("{\"layers\": {\"zoo\": \"simplecnn\"}}", "nothing");
    refused();
    ranks();
    short_epochs();
    manual();
    sizes();
    unlink(path);
    return done();
}
