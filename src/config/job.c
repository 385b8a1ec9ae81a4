/* job.c - read a job.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config/job.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

const struct dnn_choice dnn_job_recomputes[] = {
    {"false", DNN_RECOMPUTE_NEVER},
    {"cheap", DNN_RECOMPUTE_CHEAP},
    {"auto",  DNN_RECOMPUTE_AUTO },
    {"true",  DNN_RECOMPUTE_ALL  },
    {NULL,    0                  }
};

/* What rmldnn calls them, too.  Its NLL takes logarithms of probabilities, of which
 * the softmax is the probabilities: the same number. */
static const struct dnn_choice losses[] = {
    {"mse",           DNN_OP_MSE },
    {"xent",          DNN_OP_XENT},
    {"cross_entropy", DNN_OP_XENT},
    {"nll",           DNN_OP_XENT},
    {NULL,            0          }
};

#define AT(f) offsetof(struct dnn_job, f)
#define OTHER(key, def, help) {key, DNN_F_OTHER, 0, def, 0, 0, NULL, help, NULL}
#define INT(key, at, def, min, max, help)                                              \
    {key, DNN_F_INT, at, def, min, max, NULL, help, NULL}
#define TEXT(key, at, def, help) {key, DNN_F_TEXT, at, def, 0, 0, NULL, help, NULL}
#define IGNORED(key, help) {key, DNN_F_IGNORED, 0, "null", 0, 0, NULL, help, NULL}
static const struct dnn_sub input_sub = {.min = 0, .max = DNN_MAX_DIMS - 1};
const struct dnn_field dnn_job_fields[] = {
    OTHER("layers", NULL,
          "the network: a Keras JSON file, {\"zoo\": NAME, ...}, or layers"),
    {"input", DNN_F_INTS, AT(input), "[]", 1, 1 << 30, NULL,
       "extents of the data without the batch, channels last, instead of the network's", &input_sub},
    INT("batch_size", AT(batch_size), "1", 1, 1 << 20, "samples per step"),
    OTHER("loss", "mse", "what training makes small: mse or xent"),
    OTHER("optimizer", "adam",
          "how weights follow their gradients: a name, or {\"name\": \"sgd\", "
          "\"learning_rate\": 0.01, ...}"),
    OTHER("recompute", "cheap",
          "compute activations again instead of keeping them: cheap (norms and "
          "functions, of large networks), auto (as much as the memory limit demands), "
          "true (all that helps), false (nothing)"),
    OTHER("memory_limit", "null",
          "memory to take at most, \"16GiB\"; null: what the system has"),
    TEXT("backend", AT(backend), "null",
         "what computes: cpu or ref; null: the fastest that is built"),
    INT("threads", AT(threads), "0", 0, 1024, "0: OMP_NUM_THREADS, else one per CPU"),
    IGNORED("num_epochs", "how long to train"),
    IGNORED("outfile", "where losses are written"),
    IGNORED("checkpoints", "where weights are kept"),
    IGNORED("data", "what to train on"),
    IGNORED("debug", "write the network's graph"),
    IGNORED("debug_interval", "how often"),
    {NULL,    0,          0,         NULL, 0, 0,       NULL, NULL,                     NULL      },
};

/* ---- single keys ---- */

static int read_limit(const struct dnn_jobj *top, struct dnn_job *job,
                      struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(top, "memory_limit");
    char quote[DNN_JSON_QUOTE];
    unsigned long long bytes;
    const char *text;

    switch (dnn_json_type(&at)) {
    case DNN_J_ABSENT:
    case DNN_J_NULL:
        return 0;
    case DNN_J_NUMBER:
        DNN_TRY(dnn_json_int(&at, &job->memory_limit, err));
        if (job->memory_limit > 0) return 0;
        break;
    case DNN_J_TEXT:
        DNN_TRY(dnn_json_string(&at, &text, err));
        if (dnn_text_size(text, &bytes) && bytes > 0 && bytes <= INT64_MAX) {
            job->memory_limit = (int64_t)bytes;
            return 0;
        }
        break;
    default:
        break;
    }
    return dnn_json_fail(&at, err, "must be a size such as \"16GiB\", not %s",
                         dnn_json_quote(quote, &at));
}

static int read_word(const struct dnn_jobj *at, const struct dnn_choice *choices,
                     int *out, struct dnn_err *err)
{
    struct dnn_err why;
    const char *text;

    DNN_TRY(dnn_json_string(at, &text, err));
    if (dnn_choice_find(choices, text, out, &why) == 0) return 0;
    return dnn_json_fail(at, err, "%s", why.text);
}

static int read_recompute(const struct dnn_jobj *top, struct dnn_job *job,
                          struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(top, "recompute");
    bool yes;

    job->recompute = DNN_RECOMPUTE_CHEAP;
    if (dnn_json_type(&at) == DNN_J_ABSENT) return 0;
    if (dnn_json_type(&at) != DNN_J_BOOL)
        return read_word(&at, dnn_job_recomputes, &job->recompute, err);
    DNN_TRY(dnn_json_bool(&at, &yes, err));
    job->recompute = yes ? DNN_RECOMPUTE_ALL : DNN_RECOMPUTE_NEVER;
    return 0;
}

/* A word, or an object that has it under "function". */
static int read_loss(const struct dnn_jobj *top, struct dnn_job *job,
                     struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(top, "loss");

    job->loss = DNN_OP_MSE;
    if (dnn_json_type(&at) == DNN_J_ABSENT) return 0;
    if (dnn_json_type(&at) != DNN_J_OBJECT)
        return read_word(&at, losses, &job->loss, err);
    struct dnn_jobj function = dnn_json_sub(&at, "function");
    for (struct dnn_jobj it = dnn_json_first(&at); it.val != NULL;
         it = dnn_json_next(&it))
        if (strcmp(it.name, "function") != 0)
            return dnn_json_fail(&it, err, "unknown key; a loss has function");
    return read_word(&function, losses, &job->loss, err);
}

/* A word, or an object. */
static int read_optimizer(const struct dnn_jobj *top, struct dnn_job *job,
                          struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(top, "optimizer");
    int rule = DNN_UPDATE_ADAM;

    if (dnn_json_type(&at) == DNN_J_TEXT)
        DNN_TRY(read_word(&at, dnn_optim_fields[0].choices, &rule, err));
    job->optimizer = dnn_optim_defaults((enum dnn_update)rule);
    if (dnn_json_type(&at) != DNN_J_ABSENT && dnn_json_type(&at) != DNN_J_TEXT)
        DNN_TRY(dnn_field_fill(&at, dnn_optim_fields, NULL, &job->optimizer, err));
    job->optimizer.rate = dnn_optim_rate(&job->optimizer);
    return 0;
}

/* rmldnn has the batch in "data". */
static int read_data(const struct dnn_jobj *top, struct dnn_job *job,
                     struct dnn_err *err)
{
    struct dnn_jobj data = dnn_json_sub(top, "data");
    struct dnn_jobj batch = dnn_json_sub(&data, "batch_size");
    struct dnn_jobj own = dnn_json_sub(top, "batch_size");

    if (dnn_json_type(&batch) == DNN_J_ABSENT || dnn_json_type(&own) != DNN_J_ABSENT)
        return 0;
    DNN_TRY(dnn_json_int(&batch, &job->batch_size, err));
    if (job->batch_size < 1 || job->batch_size > 1 << 20)
        return dnn_json_fail(&batch, err, "must be between 1 and %d, not %" PRId64,
                             1 << 20, job->batch_size);
    return 0;
}

/* A filled struct as JSON without its last line's end; the caller's: dnn_free(). */
static char *print_fields(const struct dnn_field *fields, const void *in)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    if (to == NULL) return dnn_strdup("{}");
    dnn_field_print(fields, in, to);
    fclose(to);
    text[strlen(text) - 1] = '\0';
    return text;
}

/* Where the network is from, with the zoo's own numbers filled in. */
static int note_layers(const struct dnn_jobj *at, struct dnn_job *job,
                       struct dnn_err *err)
{
    struct dnn_jobj zoo = dnn_json_sub(at, "zoo");
    struct dnn_zoo_opts opts;
    const char *path;

    if (dnn_json_type(at) == DNN_J_TEXT) {
        DNN_TRY(dnn_json_string(at, &path, err));
        job->layers = dnn_format("\"%s\"", path);
        return 0;
    }
    if (dnn_json_type(&zoo) == DNN_J_ABSENT) {
        job->layers = dnn_strdup("[\"given here\"]");
        return 0;
    }
    DNN_TRY(dnn_field_fill(at, dnn_zoo_fields, NULL, &opts, err));
    job->layers = print_fields(dnn_zoo_fields, &opts);
    return 0;
}

/* ---- the whole ---- */

static int read_keys(const struct dnn_jobj *top, const char *dir, struct dnn_job *job,
                     struct dnn_err *err)
{
    DNN_TRY(dnn_field_fill(top, dnn_job_fields, NULL, job, err));
    DNN_TRY(read_limit(top, job, err));
    DNN_TRY(read_recompute(top, job, err));
    DNN_TRY(read_loss(top, job, err));
    DNN_TRY(read_optimizer(top, job, err));
    DNN_TRY(read_data(top, job, err));
    struct dnn_jobj layers = dnn_json_sub(top, "layers");
    DNN_TRY(note_layers(&layers, job, err));
    return dnn_net_job(&layers, dir, &job->input, &job->net, err);
}

int dnn_job_read(const char *path, struct dnn_job *out, struct dnn_err *err)
{
    const char *slash = strrchr(path, '/');
    struct dnn_json *file;

    *out = (struct dnn_job){0};
    DNN_TRY(dnn_json_read(path, &file, err));
    char *dir = dnn_strndup(path, slash == NULL ? 0 : (size_t)(slash - path) + 1);
    struct dnn_jobj top = dnn_json_top(file);
    struct dnn_jobj inner = dnn_json_sub(&top, "neural_network");
    bool wrapped = dnn_json_type(&inner) == DNN_J_OBJECT && dnn_json_count(&top) == 1;
    int rc = read_keys(wrapped ? &inner : &top, dir, out, err);
    dnn_free(dir);
    out->file = file;
    if (rc < 0) dnn_job_free(out);
    return rc;
}

void dnn_job_free(struct dnn_job *job)
{
    dnn_net_free(&job->net);
    dnn_json_free(job->file);
    dnn_free(job->layers);
    *job = (struct dnn_job){0};
}

/* A field of several lines, indented. */
static void print_block(const char *text, FILE *where)
{
    for (; *text != '\0'; text++)
        fprintf(where, *text == '\n' ? "%c    " : "%c", *text);
}

void dnn_job_print(const struct dnn_job *job, FILE *where)
{
    const char *again = dnn_choice_name(dnn_job_recomputes, job->recompute);
    bool word = strcmp(again, "true") != 0 && strcmp(again, "false") != 0;
    char *rule = print_fields(dnn_optim_fields, &job->optimizer);

    fputs("{\n    \"layers\": ", where);
    print_block(job->layers, where);
    fputs(",\n    \"input\": [", where);
    for (int64_t i = 0; i < job->input.count; i++)
        fprintf(where, "%s%" PRId64, i == 0 ? "" : ", ", job->input.ints[i]);
    fprintf(where, "],\n    \"batch_size\": %" PRId64 ",\n", job->batch_size);
    fprintf(where, "    \"loss\": \"%s\",\n", dnn_choice_name(losses, job->loss));
    fputs("    \"optimizer\": ", where);
    print_block(rule, where);
    fprintf(where, ",\n    \"recompute\": %s%s%s,\n", word ? "\"" : "", again,
            word ? "\"" : "");
    if (job->memory_limit > 0)
        fprintf(where, "    \"memory_limit\": %" PRId64 ",\n", job->memory_limit);
    else
        fprintf(where, "    \"memory_limit\": null,\n");
    if (job->backend != NULL)
        fprintf(where, "    \"backend\": \"%s\",\n", job->backend);
    else
        fprintf(where, "    \"backend\": null,\n");
    fprintf(where, "    \"threads\": %" PRId64 "\n}\n", job->threads);
    dnn_free(rule);
}
