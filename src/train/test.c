/* test.c - runs without training: evaluation, and inference with outputs as
 * files.
 *
 * Rank 0 gathers the outputs of a batch and writes them in the order of the samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/train_impl.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "comm/collect.h"
#include "engine/load.h"
#include "train/outputs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- outputs ---- */

struct writer {
    struct dnn_trainer *t;
    struct dnn_outputs *out; /* on rank 0 */
    int noutputs;
    float **own;             /* owned: outputs of this rank's samples of a batch */
    int64_t n;               /* number of these samples */
    struct dnn_shape *shape; /* owned: for one sample */
    const char **name;       /* owned */
    int64_t done;            /* samples written */
    struct dnn_stage_watch watch; /* of the run */
};

static int64_t elements(const struct dnn_shape *shape)
{
    int64_t count = 1;

    for (int d = 0; d < shape->ndim; d++)
        count *= shape->dim[d];
    return count;
}

/* Rank 0: write the outputs of a batch. */
static int write_batch(struct writer *w, float *const *all, int64_t total,
                       struct dnn_err *err)
{
    const float **one = dnn_alloc(((size_t)w->noutputs + 1) * sizeof *one);
    int rc = 0;

    for (int64_t i = 0; i < total && rc == 0; i++) {
        for (int k = 0; k < w->noutputs; k++) {
            one[k] = all[k] + i * elements(&w->shape[k]);
        }
        rc = dnn_outputs_add(w->out, w->done + i, one, err);
    }
    dnn_free(one);
    return rc;
}

static int keep_outputs(void *arg, const struct dnn_stage_seen *seen,
                        struct dnn_err *err)
{
    struct writer *w = arg;

    for (int k = 0; k < w->noutputs; k++) {
        int64_t count = elements(&w->shape[k]);

        if (w->own[k] == NULL)
            w->own[k] = malloc((size_t)(seen->batch->n * count) * sizeof(float) + 64);
        if (w->own[k] == NULL)
            return dnn_fail(err, DNN_ENOMEM,
                            "outputs of %lld samples do not fit into memory; reduce "
                            "data.test_batch_size",
                            (long long)seen->batch->n);
        memcpy(w->own[k] + seen->skip * count, seen->output[k],
               (size_t)(seen->n * count) * sizeof(float));
    }
    w->n += seen->n;
    if (w->watch.seen != NULL) return w->watch.seen(w->watch.arg, seen, err);
    return 0;
}

static bool stop_asked(void *arg)
{
    struct writer *w = arg;

    return w->watch.stop(w->watch.arg);
}

static int gather_batch(void *arg, int64_t done, struct dnn_err *err)
{
    struct writer *w = arg;
    struct dnn_trainer *t = w->t;
    float **all = dnn_alloc(((size_t)w->noutputs + 1) * sizeof *all);
    size_t total = 0;
    int64_t samples = 0;
    int rc = 0;

    for (int k = 0; k < w->noutputs && rc == 0; k++) {
        int64_t count = elements(&w->shape[k]);
        void *mem = NULL;

        rc = dnn_comm_collect(t->run.comm, "outputs", w->own[k],
                              (size_t)(w->n * count) * sizeof(float), &mem, &total,
                              err);
        all[k] = mem;
        samples = (int64_t)(total / sizeof(float)) / count;
    }
    if (rc == 0 && t->run.root) rc = write_batch(w, all, samples, err);
    w->done += samples;
    w->n = 0;
    for (int k = 0; k < w->noutputs; k++)
        dnn_free(all[k]);
    dnn_free(all);
    DNN_TRY(dnn_comm_agree(t->run.comm, rc, err));
    return w->watch.batch(w->watch.arg, done, err);
}

static void find_shapes(struct writer *w)
{
    const struct dnn_model *m = dnn_replica_model(w->t->run.stage->replica);
    const struct dnn_graph *graph = w->t->run.config->net.graph;

    w->noutputs = m->noutputs;
    w->own = dnn_alloc(((size_t)m->noutputs + 1) * sizeof *w->own);
    w->shape = dnn_alloc(((size_t)m->noutputs + 1) * sizeof *w->shape);
    w->name = dnn_alloc(((size_t)m->noutputs + 1) * sizeof *w->name);
    for (int k = 0; k < m->noutputs; k++) {
        struct dnn_shape *s = &w->shape[k];

        *s = *dnn_prog_shape(m->prog, m->output[k]);
        memmove(s->dim, s->dim + 1, sizeof s->dim - sizeof *s->dim);
        s->dim[DNN_MAX_DIMS - 1] = 0;
        s->ndim--;
        w->name[k] = graph->node[graph->output[k]].name;
    }
}

static int open_writer(struct writer *w, int64_t number, struct dnn_err *err)
{
    static const enum dnn_dtype types[] = {[DNN_HDF5_SINGLE] = DNN_F32,
                                           [DNN_HDF5_HALF] = DNN_F16,
                                           [DNN_HDF5_DOUBLE] = DNN_F64};
    const struct dnn_config *config = w->t->run.config;
    const struct dnn_config_data *d = config->data;
    struct dnn_config_origin origin;

    find_shapes(w);
    if (!w->t->run.root) return 0;
    dnn_config_origin(config, DNN_PART_TEST, &origin);
    /* The default is the run directory. */
    const char *dir = d->test_output_path != NULL
                          ? dnn_config_path(config, d->test_output_path)
                      : d->hdf5_outfile == NULL ? dnn_config_dir(config)
                                                : NULL;
    size_t len = dir == NULL ? 0 : strlen(dir);

    while (len > 1 && dir[len - 1] == '/')
        len--;
    char *default_path =
        dir == NULL ? NULL
                    : dnn_format("%.*s/output_%" PRId64 ".h5", (int)len, dir, number);
    const struct dnn_outputs_cfg cfg = {
        .path = {default_path, dnn_config_path(config, d->hdf5_outfile)},
        .type = types[d->hdf5_precision],
        .feed = w->t->run.stage->test->feed,
        .source = w->t->run.stage->test->source,
        .from = origin.from == DNN_FROM_FILES ? origin.files.input.path : NULL,
        .noutputs = w->noutputs,
        .name = w->name,
        .shape = w->shape
    };
    int rc = dnn_outputs_open(&cfg, &w->out, err);
    for (int i = 0; rc == 0 && i < DNN_OUTPUTS_FILES; i++)
        if (cfg.path[i] != NULL)
            dnn_log(DNN_INFO, "train", "writing outputs to %s", cfg.path[i]);
    dnn_free(default_path);
    return rc;
}

int dnn_trainer_outputs(struct dnn_trainer *t, int64_t number,
                        struct train_value *value, int *n, struct dnn_err *err)
{
    struct writer w = {.t = t, .watch = dnn_trainer_watch(t)};
    const struct dnn_stage_watch watch = {keep_outputs, gather_batch, stop_asked, &w};
    bool evaluated = t->run.stage->test == &t->run.stage->eval && t->run.eval != NULL;
    double loss = 0;

    *n = 0;
    if (t->run.stage->test == NULL) return 0;
    if (evaluated) dnn_trainer_pictures_start(&t->log.pictures);
    if (!evaluated) w.watch.seen = NULL;
    int rc = dnn_comm_agree(t->run.comm, open_writer(&w, number, err), err);
    if (rc == 0)
        rc = dnn_stage_run(t->run.stage, t->run.stage->test, evaluated ? t->run.eval : NULL, &watch, 0,
                           &loss, err);
    if (rc == 0 && evaluated) {
        dnn_trainer_values(&t->run, loss, value, n);
        rc = dnn_trainer_pictures_end(&t->log.pictures, err);
    }
    if (rc == 0 && w.out != NULL) {
        rc = dnn_outputs_commit(w.out, err);
        w.out = NULL;
    }
    dnn_outputs_abandon(w.out);
    for (int k = 0; k < w.noutputs; k++)
        free(w.own[k]);
    dnn_free(w.own);
    dnn_free(w.shape);
    dnn_free(w.name);
    return dnn_comm_agree(t->run.comm, rc, err);
}

/* ---- weights ---- */

int dnn_trainer_load_newest(struct dnn_trainer *t, struct dnn_err *err)
{
    char *dir = dnn_trainer_ckpt_dir(&t->run), *found = NULL;
    int64_t exists = t->run.root && access(dir, F_OK) == 0 &&
                     dnn_ckpt_find(dir, NULL, &found, NULL) == 0;
    int rc = dnn_comm_bcast(t->run.comm, "search for a checkpoint", &exists, sizeof exists,
                            0, err);

    dnn_free(found);
    if (rc == 0 && exists != 0)
        rc = dnn_load_weights(dnn_replica_model(t->run.stage->replica), t->run.comm, dir, err);
    else if (rc == 0 && t->run.root)
        dnn_log(
            DNN_WARN, "train",
            "the network is not trained: checkpoints.load is not set, and there is no "
            "checkpoint in %s",
            dir);
    dnn_free(dir);
    return rc;
}

/* ---- the run ---- */

static void log_values(const struct dnn_trainer *t, const struct train_value *value,
                       int n)
{
    struct dnn_buf text = {0};
    char took[32];

    for (int i = 0; i < n; i++)
        if (value[i].main)
            dnn_buf_add(&text, ", %s %.6g", value[i].name, value[i].value);
    dnn_log(DNN_INFO, "train", "test: %" PRId64 " samples in %s%s",
            dnn_feed_count(t->run.stage->eval.feed),
            dnn_text_seconds(took, sizeof took, dnn_clock_now() - t->at.began),
            text.text == NULL ? "" : text.text);
    dnn_buf_free(&text);
}

/* Write test.json, so that the files of the training run are not replaced. */
static int record(struct dnn_trainer *t, const struct train_value *value, int n,
                  struct dnn_err *err)
{
    struct dnn_buf text = {0};
    char *path = dnn_format("%s/test.json", dnn_config_dir(t->run.config));

    dnn_buf_add(&text, "{\"samples\": %" PRId64, dnn_feed_count(t->run.stage->eval.feed));
    for (int i = 0; i < n; i++) {
        const char *name = value[i].name;

        if (strncmp(name, "val_", 4) == 0) name += 4;
        dnn_buf_add(&text, ", ");
        dnn_json_quoted(&text, name);
        if (isfinite(value[i].value))
            dnn_buf_add(&text, ": %.17g", value[i].value);
        else
            dnn_buf_add(&text, ": null");
    }
    dnn_buf_add(&text, "}\n");
    int rc = dnn_file_write(path, text.text, text.len, err);
    dnn_buf_free(&text);
    dnn_free(path);
    if (rc == 0) log_values(t, value, n);
    return rc == 0 ? dnn_trainer_log_test(&t->log, value, n, err) : rc;
}

int dnn_trainer_test(struct dnn_trainer *t, struct dnn_err *err)
{
    const struct dnn_config_data *d = t->run.config->data;
    struct train_value value[TRAIN_VALUES];
    int n = 0;

    if (t->run.stage->mode == DNN_CONFIG_INFER || d->test_output_path != NULL ||
        d->hdf5_outfile != NULL)
        DNN_TRY(dnn_trainer_outputs(t, 1, value, &n, err));
    else
        DNN_TRY(dnn_trainer_evaluate(t, value, &n, err));
    return dnn_comm_agree(t->run.comm, t->run.root ? record(t, value, n, err) : 0, err);
}
