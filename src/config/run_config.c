/* run_config.c - read a configuration file.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config/run_config_impl.h"

#include "base/file.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct dnn_choice dnn_config_recomputes[] = {
    {"false", DNN_RECOMPUTE_NEVER},
    {"cheap", DNN_RECOMPUTE_CHEAP},
    {"auto",  DNN_RECOMPUTE_AUTO },
    {"true",  DNN_RECOMPUTE_ALL  },
    {NULL,    0                  }
};

static const struct dnn_choice precisions[] = {
    {"f32",     DNN_F32},
    {"f64",     DNN_F64},
    {"float32", DNN_F32},
    {"float64", DNN_F64},
    {NULL,      0      }
};

static const struct dnn_sub input_sub = {.min = 0, .max = DNN_MAX_DIMS - 1};
static const struct dnn_sub ckpt_sub = {dnn_config_ckpt_fields,
                                        sizeof(struct dnn_config_ckpt), 0, 0, false};
static const struct dnn_sub parallel_sub = {
    dnn_config_parallel_fields, sizeof(struct dnn_config_parallel), 0, 0, false};
static const struct dnn_sub infer_sub = {dnn_config_infer_fields,
                                         sizeof(struct dnn_config_infer), 0, 0, false};
static const struct dnn_sub telemetry_sub = {
    dnn_config_telemetry_fields, sizeof(struct dnn_config_telemetry), 0, 0, false};
static const struct dnn_field kernels_fields[] = {
    TEXT("conv", offsetof(struct dnn_config_kernels, conv), "null",
         "algorithm for convolutions: gemm (also i2c, im2col), winograd, direct or "
         "onednn; used wherever it supports the shape; null: any"),
    END,
};
static const struct dnn_sub kernels_sub = {
    kernels_fields, sizeof(struct dnn_config_kernels), 0, 0, false};
static const struct dnn_sub data_sub = {dnn_config_data_fields,
                                        sizeof(struct dnn_config_data), 0, 0, false};

#define AT(f) offsetof(struct dnn_config, f)
/* clang-format off */
const struct dnn_field dnn_config_fields[] = {
    JSON("layers", AT(layers), NULL,
         "the network: a Keras JSON file, {\"zoo\": NAME, ...}, or layers"),
    {"input", DNN_F_INTS, AT(input), "[]", 1, 1 << 30, NULL,
     "input shape without the batch axis, channels last; default: the network's own",
     &input_sub},
    INT("num_epochs", AT(num_epochs), "1", 0, 1e9, "number of epochs; 0: no training"),
    INT("steps_per_epoch", AT(steps_per_epoch), "0", 0, 1e15,
        "end an epoch after this many steps; 0: all batches"),
    INT("batch_size", AT(batch_size), "1", 1, DNN_CONFIG_BATCH,
        "global batch size (all ranks together); default: data.batch_size"),
    INT("seed", AT(seed), "1", 0, INFINITY, "seed of all random numbers"),
    JSON("loss", AT(loss_text), "\"mse\"",
         "the loss to minimise: a name, {\"function\": \"dice\", \"source\": "
         "\"softmax\", ...}, or a list of these, which are summed"),
    JSON("metrics", AT(metrics_text), "null",
         "metrics to report: a name, {\"type\": \"dice\", ...}, or a list of these; "
         "null: chosen to fit the loss"),
    JSON("optimizer", AT(optimizer_text), "\"adam\"",
         "the optimizer: a name, or {\"type\": \"SGD\", "
         "\"learning_rate\": 0.01, \"lr_scheduler\": {...}, ...}"),
    FLAG("learning_rate_scaling", AT(learning_rate_scaling), "false",
         "multiply the learning rate by the number of ranks; not with deterministic"),
    REAL("clip_norm", AT(clip_norm), "0", 0, INFINITY,
         "clip the global gradient norm to this value; 0: no clipping"),
    REAL("clip_value", AT(clip_value), "0", 0, INFINITY,
         "clip each element of a gradient to [-value, value]; 0: no clipping"),
    INT("accumulate", AT(accumulate), "1", 1, DNN_CONFIG_BATCH,
        "gradient accumulation: number of steps in which a rank computes its share of a "
        "batch, to save memory"),
    REAL("ema", AT(ema), "0", 0, 1,
         "decay of an exponential moving average (EMA) of the weights, which is then "
         "evaluated and saved; 0: no EMA"),
    JSON("early_stopping", AT(early_text), "null",
         "early stopping: {\"metric\": \"val_loss\", \"patience\": 10, "
         "...}, or a string such as \"val_loss,~<,4\""),
    JSON("target_metric", AT(goal_text), "null",
         "stop when a metric reaches this value: a string such as \"val_accuracy,>,0.97\""),
    OBJECT("data", AT(data), "null", &data_sub, "training, validation and test data"),
    OBJECT("checkpoints", AT(ckpt), "{}", &ckpt_sub, "saving and loading of checkpoints"),
    TEXT("dir", AT(run_dir), "null",
         "run directory; null: run-NAME next to the configuration file NAME.json"),
    TEXT("outfile", AT(outfile), "null",
         "X.txt: also write losses to X_train.txt and X_test.txt"),
    OBJECT("inference", AT(infer), "{}", &infer_sub,
           "outputs of dnn-infer: formats, tiles of large samples, evaluation"),
    OBJECT("telemetry", AT(telemetry), "{}", &telemetry_sub, "logs, metric files and the report"),
    FLAG("debug", AT(debug), "false", "write the network's graph as a .dot file"),
    {"debug_interval", DNN_F_IGNORED, 0, "null", 0, 0, NULL,
     "ignored: the graph is written once, because it does not change", NULL},
    FLAG("deterministic", AT(deterministic), "false",
         "bitwise identical results for any number of ranks"),
    OBJECT("parallel", AT(parallel), "{}", &parallel_sub, "data parallelism"),
    WORD("recompute", AT(recompute), "cheap", dnn_config_recomputes,
         "recompute activations in the backward pass instead of storing them: cheap "
         "(norms and activation functions of large networks), auto (as much as "
         "memory_limit requires), true (wherever it saves memory), false (never)"),
    FLAG("fuse", AT(fuse), "true",
         "fuse ops, such as a convolution with its bias and activation"),
    OBJECT("kernels", AT(kernels), "{}", &kernels_sub,
           "restrict the kernel selection of the backend cpu"),
    WORD("precision", AT(precision), "f32", precisions, "floating-point type of all computations"),
    BYTES("memory_limit", AT(memory_limit), "null",
          "most memory of the models of a rank; null: all the system has"),
    TEXT("backend", AT(backend), "null",
         "cpu or ref (slow reference loops); null: the fastest one built"),
    INT("threads", AT(threads), "0", 0, 1024, "threads per rank; 0: OMP_NUM_THREADS, else one per core"),
    END,
};
/* clang-format on */

void dnn_config_find(const struct dnn_config *config, struct dnn_config_at *out)
{
    out->file = dnn_json_top(config->file);
    out->inner = dnn_json_sub(&out->file, "neural_network");
    out->top = config->wrapped ? &out->inner : &out->file;
    out->data = dnn_json_sub(out->top, "data");
}

/* ---- the network ---- */

struct table {
    const struct dnn_field *fields;
    const void *in;
};

static void print_table(const void *what, FILE *where)
{
    const struct table *table = what;

    dnn_field_print(table->fields, table->in, where);
}

const char *dnn_config_printed(const struct dnn_config *config,
                               void (*print)(const void *what, FILE *where),
                               const void *what)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    if (to == NULL) return "null";
    print(what, to);
    fclose(to);
    while (size > 0 && text[size - 1] == '\n')
        text[--size] = '\0';
    const char *kept = dnn_arena_strdup(dnn_json_arena(config->file), text);
    dnn_free(text);
    return kept;
}

/* The text printed for "layers": options of the zoo with their defaults; layers written
 * in the file itself are replaced by a placeholder. */
static int set_layers_text(const struct dnn_jobj *at, struct dnn_config *config,
                           struct dnn_err *err)
{
    struct dnn_jobj zoo = dnn_json_sub(at, "zoo");
    struct dnn_zoo_opts opts;

    if (dnn_json_type(at) == DNN_J_TEXT) return 0;
    if (dnn_json_type(&zoo) == DNN_J_ABSENT) {
        config->layers = "[\"given here\"]";
        return 0;
    }
    DNN_TRY(dnn_field_fill(at, dnn_zoo_fields, NULL, &opts, err));
    config->layers =
        dnn_config_printed(config, print_table, &(struct table){dnn_zoo_fields, &opts});
    return 0;
}

/* ---- reading ---- */

/* The directory of the file, with its slash, or "". */
static char *directory(const char *path)
{
    const char *slash = strrchr(path, '/');

    return dnn_strndup(path, slash == NULL ? 0 : (size_t)(slash - path) + 1);
}

/* NNLO's environment variable sets steps_per_epoch if the key is not given. */
static int read_steps(const struct dnn_jobj *top, struct dnn_config *config,
                      struct dnn_err *err)
{
    const char *text = getenv("NNLO_SHORT_BATCHES");
    long long steps;

    if (text == NULL || dnn_json_sub(top, "steps_per_epoch").val != NULL) return 0;
    if (!dnn_text_int(text, &steps) || steps < 0)
        return dnn_fail(err, DNN_EUSAGE,
                        "NNLO_SHORT_BATCHES: must be a whole number of at least 0, not "
                        "\"%.40s\"",
                        text);
    config->steps_per_epoch = steps;
    return 0;
}

int dnn_config_net(const struct dnn_config *config, const struct dnn_list *input,
                   struct dnn_net *out, struct dnn_err *err)
{
    char *dir = directory(dnn_json_name(config->file));
    struct dnn_config_at at;

    dnn_config_find(config, &at);
    struct dnn_jobj layers = dnn_json_sub(at.top, "layers");
    int rc = dnn_net_layers(&layers, dir, input, out, err);
    dnn_free(dir);
    return rc;
}

static int read_keys(struct dnn_config *config, struct dnn_err *err)
{
    struct dnn_config_at at;

    dnn_config_find(config, &at);
    DNN_TRY(dnn_field_fill(at.top, dnn_config_fields, NULL, config, err));
    DNN_TRY(read_steps(at.top, config, err));
    /* rmldnn keeps all checkpoints. */
    struct dnn_jobj ckpt = dnn_json_sub(at.top, "checkpoints");
    if (config->wrapped && dnn_json_sub(&ckpt, "keep").val == NULL)
        ((struct dnn_config_ckpt *)config->ckpt)->keep = 0;
    DNN_TRY(dnn_config_read_data(at.top, config, err));
    DNN_TRY(dnn_config_read_sections(at.top, config, err));
    struct dnn_jobj layers = dnn_json_sub(at.top, "layers");
    DNN_TRY(set_layers_text(&layers, config, err));
    DNN_TRY(dnn_config_net(config, &config->input, &config->net, err));
    return dnn_config_check_metrics(config, err);
}

/* Takes ownership of file, also on failure. */
static int read_file(struct dnn_json *file, int n, const char *const *set,
                     struct dnn_config *out, struct dnn_err *err)
{
    int rc = 0;

    *out = (struct dnn_config){.file = file};
    for (int i = 0; rc == 0 && i < n; i++)
        rc = dnn_config_set(out->file, set[i], err);
    struct dnn_jobj top = dnn_json_top(out->file);
    struct dnn_jobj inner = dnn_json_sub(&top, "neural_network");
    out->wrapped = dnn_json_type(&inner) == DNN_J_OBJECT && dnn_json_count(&top) == 1;
    if (rc == 0) rc = read_keys(out, err);
    if (rc < 0) dnn_config_free(out);
    return rc;
}

int dnn_config_read_set(const char *path, int n, const char *const *set,
                        struct dnn_config *out, struct dnn_err *err)
{
    struct dnn_json *file;

    *out = (struct dnn_config){0};
    DNN_TRY(dnn_json_read(path, &file, err));
    return read_file(file, n, set, out, err);
}

int dnn_config_read_text(const char *name, const char *text, size_t len, int n,
                         const char *const *set, struct dnn_config *out,
                         struct dnn_err *err)
{
    struct dnn_json *file;

    *out = (struct dnn_config){0};
    DNN_TRY(dnn_json_text(name, text, len, &file, err));
    return read_file(file, n, set, out, err);
}

void dnn_config_free(struct dnn_config *config)
{
    dnn_net_free(&config->net);
    dnn_loss_free(config->loss);
    dnn_schedule_free(config->schedule);
    dnn_json_free(config->file);
    *config = (struct dnn_config){0};
}

void dnn_config_print(const struct dnn_config *config, FILE *where)
{
    dnn_field_print(dnn_config_fields, config, where);
}

/* ---- paths ---- */

static const char *keep(const struct dnn_config *config, char *text)
{
    const char *kept = dnn_arena_strdup(dnn_json_arena(config->file), text);

    dnn_free(text);
    return kept;
}

const char *dnn_config_path(const struct dnn_config *config, const char *path)
{
    if (path == NULL || path[0] == '/') return path;
    char *dir = directory(dnn_json_name(config->file));
    char *whole = dnn_format("%s%s", dir, path);
    dnn_free(dir);
    return keep(config, whole);
}

const char *dnn_config_dir(const struct dnn_config *config)
{
    const char *name = dnn_json_name(config->file);
    const char *slash = strrchr(name, '/');

    if (config->run_dir != NULL) return dnn_config_path(config, config->run_dir);
    if (slash != NULL) name = slash + 1;
    size_t len = strlen(name);
    if (len > 5 && strcmp(name + len - 5, ".json") == 0) len -= 5;
    char *dir = dnn_format("run-%.*s", (int)len, name);
    const char *whole = dnn_config_path(config, dir);
    dnn_free(dir);
    return whole;
}

const char *dnn_config_ckpt_dir(const struct dnn_config *config)
{
    const char *save = config->ckpt->save;

    if (save != NULL) return dnn_config_path(config, save);
    return keep(config, dnn_format("%s/checkpoints", dnn_config_dir(config)));
}

int dnn_config_network(const struct dnn_config *config, char **out, struct dnn_err *err)
{
    struct dnn_config_at at;
    const char *path;

    if (config->net.text != NULL) {
        *out = dnn_strdup(config->net.text);
        return 0;
    }
    dnn_config_find(config, &at);
    struct dnn_jobj layers = dnn_json_sub(at.top, "layers");
    if (dnn_json_type(&layers) != DNN_J_TEXT) {
        *out = dnn_json_compact(&layers);
        return 0;
    }
    DNN_TRY(dnn_json_string(&layers, &path, err));
    return dnn_file_read_text(dnn_config_path(config, path), DNN_JSON_LIMIT, out, err);
}
