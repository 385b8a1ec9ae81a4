/* config_override.c - keys of a configuration changed with --set.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "config/run_config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct dnn_err err;
static char path[] = "/tmp/config_override_XXXXXX";

#define NET "\"layers\": {\"zoo\": \"simplecnn\"}"
static const char plain[] = "{" NET ",\n\"num_epochs\": 3,\n\"loss\": \"xent\"}";
static const char wrapped[] =
    "{\"neural_network\": {" NET
    ",\n\"data\": {\"type\": \"images\", \"input_path\": \"x\",\n\"transforms\": "
    "[{\"resize\": [8, 8]}]},\n\"optimizer\": \"sgd\"}}";

static int read_set(const char *text, int n, const char *const *set,
                    struct dnn_config *config)
{
    if (dnn_file_write(path, text, strlen(text), &err) < 0) return DNN_EIO;
    return dnn_config_read_set(path, n, set, config, &err);
}

static void changed(void)
{
    static const char *const set[] = {
        "num_epochs=7",
        "batch_size=5",
        "outfile=out put.txt",
        "backend=ref",
        "recompute=true",
        "memory_limit=1GiB",
        "optimizer.type=AdamW",
        "optimizer.learning_rate=1e-4",
        "checkpoints.resume=false",
        "checkpoints.load=\"1\"",
        "layers.base=8",
        "input=[32, 32, 1]",
        "data.dataset=x.bp",
        "data.slicers[0].sizes=[4,4]",
        "data.slicers[1]={\"sizes\": [2, 2]}",
        "num_epochs=8",
        "seed=",
    };
    enum { N = sizeof set / sizeof set[0] - 1 };
    struct dnn_config config;

    if (!ok(read_set(plain, N, set, &config) == 0, "all of them")) {
        printf("# %s\n", err.text);
        return;
    }
    is_int(config.num_epochs, 8, "the last of two is used");
    is_int(config.batch_size, 5, "a new key");
    is_text(config.outfile, "out put.txt", "a word without quotes is a string");
    is_int(config.recompute, DNN_RECOMPUTE_ALL, "true is not a string");
    is_int(config.memory_limit, 1 << 30, "a size");
    is_int(config.optimizer.rule, DNN_UPDATE_ADAMW, "a new object");
    ok(config.optimizer.rate == 1e-4, "and another key of it");
    is_int(config.ckpt->resume, DNN_RESUME_NO, "false, too");
    is_text(config.ckpt->load, "1", "quotes make a text of a number");
    is_text(config.data->dataset, "x.bp", "the data");
    is_int(config.data->slicers.count, 2, "a list that grows");
    const struct dnn_shape *in =
        &config.net.graph->node[config.net.graph->input[0]].out;
    is_int(in->dim[1], 32, "a list");
    dnn_config_free(&config);
    ok(read_set(plain, 1, &set[N], &config) < 0, "an empty value is a string");
    is_text(err.text, "--set seed=: must be a whole number, not \"\"", "not a number");
}

/* rmldnn's form: the outer key need not be written. */
static void inside(void)
{
    static const char *const set[] = {"data.input_path=y", "data.test_input_path=z",
                                      "data.transforms[0].resize[1]=16",
                                      "neural_network.num_epochs=4"};
    struct dnn_config config;

    is_int(read_set(wrapped, 4, set, &config), 0, "with and without the outer key");
    is_text(config.data->input_path, "y", "a path");
    is_text(config.data->test_input_path, "z", "another");
    is_text(config.data->transforms, "[{\"resize\": [8, 16]}]", "deep in a list");
    is_int(config.num_epochs, 4, "with it");
    dnn_config_free(&config);
}

static const struct {
    const char *text, *set, *want;
} wrong[] = {
    {plain,   "num_epochs",                   "--set num_epochs: must be KEY=VALUE"                     },
    {plain,   "dir=r\xe9sum",
     "--set dir=r\xe9sum: must be UTF-8, as all of a configuration"                                     },
    {plain,   "=3",
     "--set =3: must be KEY=VALUE, where KEY is, for example, data.batch_size or "
     "data.slicers[0].sizes"                                                                            },
    {plain,   "a..b=3",
     "--set a..b=3: must be KEY=VALUE, where KEY is, for example, data.batch_size or "
     "data.slicers[0].sizes"                                                                            },
    {plain,   "a[x]=3",
     "--set a[x]=3: must be KEY=VALUE, where KEY is, for example, data.batch_size or "
     "data.slicers[0].sizes"                                                                            },
    {plain,   "a]=3",
     "--set a]=3: must be KEY=VALUE, where KEY is, for example, data.batch_size or "
     "data.slicers[0].sizes"                                                                            },
    {plain,   "num_epochs=many",
     "--set num_epochs=many: must be a whole number, not \"many\""                                      },
    {plain,   "num_epochs=.5",
     "--set num_epochs=.5: the value is not valid JSON: a number needs a digit before "
     "the decimal point"                                                                                },
    {plain,   "input=[1,",
     "--set input=[1,: the value is not valid JSON: unexpected end: the \"[\" in line "
     "1 is not closed"                                                                                  },
    {plain,   "num_epoch=1",
     "--set num_epoch=1: unknown key; did you mean \"num_epochs\"?"                                     },
    {plain,   "batch_size=0",                 "--set batch_size=0: must be between 1 and 1048576, not 0"},
    {plain,   "data={\"batchsize\": 3}",
     "--set data={\"batchsize\": 3}: data.batchsize: unknown key; did you mean "
     "\"batch_size\"?"                                                                                  },
    {plain,   "loss.function=mse",
     "--set loss.function=mse: cannot set the key \"function\" of \"xent\", which is "
     "not an object"                                                                                    },
    {wrapped, "optimizer.learning_rate=1",
     "--set optimizer.learning_rate=1: cannot set the key \"learning_rate\" of "
     "\"sgd\", which is not an object"                                                                  },
    {wrapped, "data.batch_size=x",
     "--set data.batch_size=x: must be a whole number, not \"x\""                                       },
    {wrapped, "data.transforms[2]=1",
     "--set data.transforms[2]=1: the list has 1 elements; the next one is [1], not "
     "[2]"                                                                                              },
    {wrapped, "data.transforms[0].resize=-1",
     "--set data.transforms[0].resize=-1: must be between 1 and 1073741824, not -1"                     },
};

static void refused(void)
{
    struct dnn_config config;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ok(read_set(wrong[i].text, 1, &wrong[i].set, &config) < 0, "%s is refused",
           wrong[i].set);
        is_text(err.text, wrong[i].want, "and its message");
    }
    /* Errors in the file have its name and line. */
    static const char *const set[] = {"layers={\"zoo\": \"simplecnn\"}",
                                      "input=[28, 28, 1]"};
    ok(read_set("{" NET ",\n\n\"num_epochs\": -1}", 2, set, &config) < 0,
       "an error in the file");
    char *want =
        dnn_format("%s:3: num_epochs: must be between 0 and 1000000000, not -1", path);
    is_text(err.text, want, "has file and line");
    dnn_free(want);
}

/* For any key and value, the file stays valid, or nothing changes. */
static void anything(void)
{
    static const char *const part[] = {"a",  "b",  ".",    "[0]", "[1]",        "[",
                                       "]",  "=",  "1",    "{}",  "[1, 2]",     "\"x\"",
                                       "\\", "\"", "null", "{",   "{\"a\":[]}", "\n"};
    enum { PARTS = sizeof part / sizeof part[0], ROUNDS = 20000 };
    static const char start[] = "{\"a\": [1,\n{}],\n\"b\": {}}";
    struct dnn_rng rng = dnn_rng_make(3, 0);
    struct dnn_json *file = NULL, *back = NULL;
    int done_well = 0, bad = 0;

    for (uint32_t i = 0; i < ROUNDS; i++) {
        char set[128] = "";

        if (i % 50 == 0) {
            dnn_json_free(file);
            if (dnn_json_text("f", start, sizeof start - 1, &file, &err) < 0) break;
        }
        for (uint32_t k = 0; k < 9; k++) {
            uint64_t which =
                dnn_rng_below(&rng, (struct dnn_rng_at){i, k, 0}, PARTS + 3);

            /* Most have the right form. */
            strcat(set, k == 0 ? part[which % 2] : which < PARTS ? part[which] : "");
            if (k == 3) strcat(set, "=");
        }
        if (dnn_config_set(file, set, &err) == 0) done_well++;
        struct dnn_jobj top = dnn_json_top(file);
        char *text = dnn_json_compact(&top);
        if (dnn_json_text("g", text, strlen(text), &back, &err) < 0)
            bad++;
        else
            dnn_json_free(back);
        dnn_free(text);
    }
    dnn_json_free(file);
    ok(bad == 0 && done_well > ROUNDS / 20, "%d of %d changes made, %d bad", done_well,
       (int)ROUNDS, bad);
}

int main(void)
{
    int fd = mkstemp(path);

    if (fd < 0) return 99;
    close(fd);
    changed();
    inside();
    refused();
    anything();
    unlink(path);
    return done();
}
