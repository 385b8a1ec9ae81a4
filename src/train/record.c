/* record.c - run.json: everything needed to repeat a run, and its results.
 *
 * Written at the start and at the end of a run; the status of a killed run stays
 * "running".
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "train/log_impl.h"

#include "base/clock.h"
#include "base/crc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "bp/bp.h"
#include "data/dataset.h"
#include "stage/stage.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Add a JSON string, or null. */
static void add_string(struct dnn_buf *out, const char *text)
{
    if (text == NULL)
        dnn_buf_add(out, "null");
    else
        dnn_json_quoted(out, text);
}

static void add_text(struct dnn_buf *out, const char *key, const char *text)
{
    dnn_buf_add(out, "  \"%s\": ", key);
    add_string(out, text);
    dnn_buf_add(out, ",\n");
}

static void add_int(struct dnn_buf *out, const char *key, int64_t value)
{
    dnn_buf_add(out, "  \"%s\": %" PRId64 ",\n", key, value);
}

static void add_real(struct dnn_buf *out, double value)
{
    if (isfinite(value))
        dnn_buf_add(out, "%.9g", value);
    else
        dnn_buf_add(out, "null");
}

static char *utc_now(void)
{
    char text[DNN_CLOCK_TEXT];

    return dnn_strdup(dnn_clock_utc(text, sizeof text, time(NULL)));
}

static char *path_of(const struct train_record *record)
{
    return dnn_format("%s/run.json", dnn_config_dir(record->run->config));
}

/* ---- the data ---- */

/* Write the splits and the hash of a dataset. */
static int describe_dataset(struct train_record *record, const char *path,
                            struct dnn_buf *out, struct dnn_err *err)
{
    struct dnn_dataset *set;

    DNN_TRY(dnn_dataset_open(NULL, path, 1, &set, err));
    const struct dnn_dataset_info *info = dnn_dataset_info(set);
    dnn_buf_add(out, "%s (", path);
    for (int i = 0; i < info->nsplits; i++)
        dnn_buf_add(out, "%s%s %" PRId64, i == 0 ? "" : ", ", info->split[i].name,
                    info->split[i].count);
    dnn_buf_add(out, " samples)");
    snprintf(record->hash, sizeof record->hash, "%s", info->hash);
    dnn_dataset_close(set);
    return 0;
}

static int describe_data(struct train_record *record, struct dnn_err *err)
{
    struct dnn_config_origin o;
    struct dnn_buf out = {0};
    int rc = 0;

    dnn_config_origin(record->run->config, DNN_PART_TRAIN, &o);
    if (o.from == DNN_FROM_DATASET)
        rc = describe_dataset(record, o.dataset, &out, err);
    else if (o.from == DNN_FROM_FILES)
        dnn_buf_add(&out, "files %s", o.files.input.path);
    else
        dnn_buf_add(&out, "generated samples");
    dnn_buf_add(&out, "; ");
    dnn_train_shapes(record->run, &out);
    record->dataset = out.text;
    return rc;
}

static void add_data(const struct train_record *record, struct dnn_buf *out)
{
    const struct train_run *run = record->run;
    struct dnn_config_origin o;
    struct dnn_buf shapes = {0};
    const char *path;

    dnn_config_origin(run->config, DNN_PART_TRAIN, &o);
    path = o.from == DNN_FROM_DATASET ? o.dataset
           : o.from == DNN_FROM_FILES ? o.files.input.path
                                      : NULL;
    dnn_train_shapes(run, &shapes);
    dnn_buf_add(out, "  \"data\": {\"path\": ");
    add_string(out, path);
    dnn_buf_add(out, ", \"split\": ");
    dnn_json_quoted(out, o.split != NULL ? o.split : "");
    if (record->hash[0] != '\0') dnn_buf_add(out, ", \"hash\": \"%s\"", record->hash);
    dnn_buf_add(out, ", \"columns\": ");
    dnn_json_quoted(out, shapes.text);
    dnn_buf_add(out, ", \"training_samples\": %" PRId64,
                dnn_feed_count(run->stage->train.feed));
    dnn_buf_add(out, ", \"evaluation_samples\": %" PRId64 "},\n",
                dnn_train_eval_samples(run));
    dnn_buf_free(&shapes);
}

/* ---- the network ---- */

/* Checksum of the description of the network: the JSON of a zoo network, the content of
 * the file, or the layers in the configuration. */
static uint32_t checksum(const struct dnn_config *config, const char *layers)
{
    char *text = NULL;
    size_t len = 0;
    uint32_t sum = 0;

    if (config->net.text != NULL)
        sum = dnn_crc_record(config->net.text, strlen(config->net.text));
    else if (layers == NULL || layers[0] != '"')
        sum = layers == NULL ? 0 : dnn_crc_record(layers, strlen(layers));
    else if (dnn_file_read(config->net.graph->file, DNN_JSON_LIMIT, &text, &len,
                           NULL) == 0)
        sum = dnn_crc_record(text, len);
    dnn_free(text);
    return sum;
}

static void add_network(const struct train_run *run, struct dnn_buf *out)
{
    const struct dnn_config *config = run->config;
    const struct dnn_graph *g = config->net.graph;
    struct dnn_jobj top = dnn_json_top(config->file);
    struct dnn_jobj inner = dnn_json_sub(&top, "neural_network");
    struct dnn_jobj at = dnn_json_sub(config->wrapped ? &inner : &top, "layers");
    char *layers = dnn_json_compact(&at);

    dnn_buf_add(out, "  \"network\": {\"name\": ");
    dnn_json_quoted(out, g->name);
    dnn_buf_add(out,
                ", \"parameters\": %" PRId64 ", \"trainable\": %" PRId64
                ", \"checksum\": \"%08" PRIx32 "\", \"layers\": %s},\n",
                g->params, g->trainable, checksum(config, layers),
                layers == NULL ? "null" : layers);
    dnn_free(layers);
}

/* ---- the constant part ---- */

static void add_job(const struct train_run *run, struct dnn_buf *out)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    if (f == NULL) return;
    dnn_config_print(run->config, f);
    fclose(f);
    while (len > 0 && text[len - 1] == '\n')
        len--;
    dnn_buf_add(out, "  \"config\": ");
    dnn_buf_bytes(out, text, len);
    dnn_buf_add(out, ",\n");
    free(text);
}

static void add_machine(const struct train_run *run, struct dnn_buf *out)
{
    const struct dnn_backend *backend = &dnn_train_model(run)->backend;
    const struct dnn_session *session = run->session;
    struct dnn_buf text = {0};

    dnn_train_hosts(run, &text);
    add_text(out, "hosts", text.text);
    dnn_buf_free(&text);
    add_int(out, "nodes", dnn_comm_nodes(run->comm));
    add_int(out, "ranks", session->size);
    add_int(out, "threads", session->place.threads);
    dnn_train_binding(run, &text);
    add_text(out, "binding", text.text);
    dnn_buf_free(&text);
    add_text(out, "mpi",
             session->size > 1 || strcmp(dnn_comm_kind(run->comm), "mpi") == 0
                 ? dnn_comm_version(run->comm)
                 : NULL);
    if (session->slurm.where != DNN_SLURM_NONE) {
        add_int(out, "slurm_job", session->slurm.job);
        add_int(out, "slurm_restarts", session->slurm.restarts);
    }
    add_text(out, "backend", backend->name);
    add_text(out, "libraries",
             backend->libraries == NULL ? NULL : backend->libraries());
    add_text(out, "adios2", dnn_bp_version());
    add_int(out, "micro_batches",
            dnn_replica_parts(run->stage->replica, DNN_MODEL_TRAIN));
    add_int(out, "memory_per_rank", (int64_t)dnn_stage_bytes(run->stage, NULL));
}

static void describe(struct train_record *record)
{
    const struct train_run *run = record->run;
    struct dnn_buf *out = &record->about;
    char *cwd = getcwd(NULL, 0);

    add_text(out, "version", PACKAGE_VERSION);
    add_text(out, "build", DNN_BUILT_WITH);
    add_text(out, "command", run->opts->command);
    add_text(out, "directory", cwd);
    add_text(out, "config_file", dnn_json_name(run->config->file));
    add_job(run, out);
    add_int(out, "seed", run->config->seed);
    add_data(record, out);
    add_network(run, out);
    add_machine(run, out);
    add_int(out, "batch_size", run->config->batch_size);
    free(cwd);
}

/* ---- a resumed run ---- */

static void read_old(const struct dnn_json *old, struct train_record *record)
{
    struct dnn_jobj top = dnn_json_top(old), at = dnn_json_sub(&top, "started");
    const char *started = NULL;

    if (dnn_json_string(&at, &started, NULL) == 0)
        record->started = dnn_strdup(started);
    at = dnn_json_sub(&top, "metrics");
    if (dnn_json_type(&at) == DNN_J_OBJECT) record->metrics = dnn_json_compact(&at);
    at = dnn_json_sub(&top, "resumed");
    for (struct dnn_jobj it = dnn_json_first(&at); it.val != NULL;
         it = dnn_json_next(&it)) {
        char *text = dnn_json_compact(&it);

        dnn_buf_add(&record->resumed, "%s%s", record->resumed.len > 0 ? ", " : "",
                    text);
        dnn_free(text);
    }
}

/* Read run.json of an interrupted run; it is not needed to resume. */
static void resume_record(struct train_record *record)
{
    const struct train_progress *at = record->at;
    char *path = path_of(record);
    struct dnn_json *old = NULL;
    struct dnn_err err = {0};
    char *now = utc_now();

    if (at->step > 0 && access(path, F_OK) == 0) {
        if (dnn_json_read(path, &old, &err) == 0)
            read_old(old, record);
        else
            dnn_log(DNN_WARN, "train", "%s; overwriting it", err.text);
        dnn_json_free(old);
    }
    if (at->step > 0)
        dnn_buf_add(&record->resumed,
                    "%s{\"step\": %" PRId64 ", \"epoch\": %" PRId64
                    ", \"time\": \"%s\", \"ranks\": %d}",
                    record->resumed.len > 0 ? ", " : "", at->step, at->epoch, now,
                    record->run->session->size);
    if (record->started == NULL) record->started = dnn_strdup(now);
    dnn_free(path);
    dnn_free(now);
}

int dnn_train_record_open(struct train_record *record, const struct train_run *run,
                          const struct train_progress *at, struct dnn_err *err)
{
    record->run = run;
    record->at = at;
    DNN_TRY(describe_data(record, err));
    resume_record(record);
    describe(record);
    return dnn_train_record(record, "running", NULL, err);
}

void dnn_train_record_close(struct train_record *record)
{
    dnn_buf_free(&record->about);
    dnn_buf_free(&record->resumed);
    dnn_free(record->started);
    dnn_free(record->metrics);
    dnn_free(record->dataset);
}

/* ---- writing ---- */

static void add_metrics(const struct train_record *record, struct dnn_buf *out)
{
    dnn_buf_add(out, "  \"metrics\": ");
    if (record->nvalues == 0) {
        dnn_buf_add(out, "%s\n", record->metrics != NULL ? record->metrics : "{}");
        return;
    }
    dnn_buf_add(out, "{");
    for (int i = 0; i < record->nvalues; i++) {
        if (i > 0) dnn_buf_add(out, ", ");
        dnn_json_quoted(out, record->value[i].name);
        dnn_buf_add(out, ": ");
        add_real(out, record->value[i].value);
    }
    dnn_buf_add(out, "}\n");
}

void dnn_train_record_text(const struct train_record *record, const char *status,
                           const char *why, struct dnn_buf *out)
{
    const struct train_progress *at = record->at;
    const bool ended = strcmp(status, "running") != 0;
    char *now = utc_now();

    dnn_buf_add(out, "{\n  \"program\": \"dnn-train\",\n");
    add_text(out, "status", status);
    if (why != NULL) add_text(out, "error", why);
    add_text(out, "started", record->started);
    add_text(out, "ended", ended ? now : NULL);
    dnn_buf_add(out, "  \"seconds\": ");
    add_real(out, ended ? dnn_train_seconds(at) : at->seconds);
    dnn_buf_add(out, ",\n");
    dnn_buf_bytes(out, record->about.text, record->about.len);
    add_int(out, "bucket_size",
            (int64_t)dnn_replica_bucket_size(record->run->stage->replica));
    dnn_buf_add(out, "  \"resumed\": [%s],\n",
                record->resumed.text == NULL ? "" : record->resumed.text);
    add_int(out, "epochs", at->epoch);
    add_int(out, "steps", at->step);
    add_metrics(record, out);
    dnn_buf_add(out, "}\n");
    dnn_free(now);
}

int dnn_train_record(const struct train_record *record, const char *status,
                     const char *why, struct dnn_err *err)
{
    struct dnn_buf out = {0};
    char *path = path_of(record);

    dnn_train_record_text(record, status, why, &out);
    int rc = dnn_file_write(path, out.text, out.len, err);
    dnn_buf_free(&out);
    dnn_free(path);
    return rc;
}
