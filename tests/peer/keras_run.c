/* keras_run.c - a network's outputs, for comparison with Keras: keras_run NET.json DIR
 * [WEIGHTS].
 *
 * Inputs are DIR/input_0.f32 and so on, raw numbers; if there are none, random ones are
 * written.  Without WEIGHTS, weights and moving statistics are random, and the network
 * is written to DIR as by dnn-train: model.dnn, model.json, model.weights.h5 and
 * model.keras.
 * Outputs are written to DIR/output_0.f32 and so on.  One rank, one thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "engine/model.h"
#include "package/package.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t count(const struct dnn_model *m, int value)
{
    int64_t n = 0;

    dnn_shape_count(&m->prog->value[value].is.shape, &n, NULL);
    return n;
}

/* Random numbers: factors and variances near 1, others near 0. */
static int shake(struct dnn_model *m, struct dnn_err *err)
{
    for (int v = 0; v < m->prog->nvalues; v++) {
        const struct dnn_value *value = &m->prog->value[v];
        struct dnn_rng rng = dnn_rng_make(7, (uint64_t)v);
        const char *name = value->is.name;

        if (value->role != DNN_STATE &&
            (value->role != DNN_WEIGHT || value->is.shape.ndim != 1))
            continue;
        bool one = strcmp(name, "gamma") == 0 || strstr(name, "variance") != NULL;
        float *x = dnn_alloc((size_t)count(m, v) * sizeof *x + 1);
        for (int64_t i = 0; i < count(m, v); i++) {
            double r = dnn_rng_normal(&rng, (struct dnn_rng_at){.index = (uint64_t)i});

            x[i] = (float)(one ? exp(0.2 * r) : 0.1 * r);
        }
        int rc = dnn_exec_put(m->exec, v, x, err);
        dnn_free(x);
        DNN_TRY(rc);
    }
    return 0;
}

static int load(struct dnn_model *m, const char *path, struct dnn_err *err)
{
    const struct dnn_graph *g = m->graph;
    const struct dnn_weights_order order = {g->nlayers, g->layer_name, g->layer_class,
                                            g->layer_model};
    struct dnn_weights *file = NULL;
    struct dnn_weights_match *match = NULL;

    DNN_TRY(dnn_weights_open(path, &file, err));
    int rc = dnn_weights_match(file, m->prog, &order, &match, err);
    if (rc == 0 && (match->filled != match->wanted || match->nskipped > 0)) {
        dnn_weights_print(match, stderr);
        rc = dnn_fail(err, DNN_EDATA, "%s: not all weights match", path);
    }
    for (int v = 0; rc == 0 && v < m->prog->nvalues; v++) {
        if (match->array[v] == DNN_NONE) continue;
        float *x = dnn_alloc((size_t)count(m, v) * sizeof *x + 1);
        rc = dnn_weights_get(file, match->array[v], DNN_F32, x, err);
        if (rc == 0) rc = dnn_exec_put(m->exec, v, x, err);
        dnn_free(x);
    }
    dnn_weights_match_free(match);
    dnn_weights_close(file);
    return rc;
}

/* Write the network; its inputs are described by their shapes only. */
static int save(struct dnn_model *m, const char *dir, struct dnn_err *err)
{
    const struct dnn_graph *g = m->graph;
    struct dnn_package_input *in = dnn_alloc((size_t)g->ninputs * sizeof *in);
    const struct dnn_package_info info = {
        .inputs = {.count = g->ninputs, .objects = in}
    };

    for (int i = 0; i < g->ninputs; i++) {
        const struct dnn_graph_node *node = &g->node[g->input[i]];

        in[i].name = node->name;
        in[i].shape =
            (struct dnn_list){.count = node->out.ndim - 1, .ints = node->out.dim + 1};
    }
    int rc = dnn_model_save(m, dir, "", NULL, &info, err);
    dnn_free(in);
    return rc;
}

static int put_input(struct dnn_model *m, int i, const char *dir, struct dnn_err *err)
{
    size_t len = (size_t)count(m, m->input[i]) * sizeof(float), have = 0;
    char *path = dnn_format("%s/input_%d.f32", dir, i), *bytes = NULL;
    int rc = 0;

    if (dnn_file_read(path, len, &bytes, &have, NULL) < 0) {
        struct dnn_rng rng = dnn_rng_make(3, (uint64_t)i);

        bytes = dnn_alloc(len + 1);
        for (size_t k = 0; k < len / sizeof(float); k++)
            ((float *)(void *)bytes)[k] =
                (float)dnn_rng_normal(&rng, (struct dnn_rng_at){.index = k});
        rc = dnn_file_write(path, bytes, len, err);
    } else if (have != len)
        rc = dnn_fail(err, DNN_EDATA, "%s: has %zu bytes, not %zu", path, have, len);
    if (rc == 0) rc = dnn_exec_put(m->exec, m->input[i], bytes, err);
    dnn_free(bytes);
    dnn_free(path);
    return rc;
}

static int get_output(struct dnn_model *m, int i, const char *dir, struct dnn_err *err)
{
    size_t len = (size_t)count(m, m->output[i]) * sizeof(float);
    char *path = dnn_format("%s/output_%d.f32", dir, i), *bytes = dnn_alloc(len + 1);
    int rc = dnn_exec_get(m->exec, m->output[i], bytes, err);

    if (rc == 0) rc = dnn_file_write(path, bytes, len, err);
    dnn_free(bytes);
    dnn_free(path);
    return rc;
}

static int work(const char *net, const char *dir, const char *weights,
                struct dnn_graph **graph, struct dnn_model **model, struct dnn_err *err)
{
    struct dnn_model_opts opts = {
        .batch = 2,
        .no_fusion = true,
        .device = {.threads = 1, .kernels = DNN_KERNELS_HEURISTIC}
    };

    DNN_TRY(dnn_graph_read(net, NULL, graph, err));
    DNN_TRY(dnn_model_backend(NULL, &opts.backend, err));
    DNN_TRY(dnn_model_make(*graph, &opts, model, err));
    struct dnn_model *m = *model;
    DNN_TRY(dnn_model_start(m, err));
    DNN_TRY(dnn_exec_init(m->exec, 1, err));
    DNN_TRY(weights == NULL ? shake(m, err) : load(m, weights, err));
    if (weights == NULL) DNN_TRY(save(m, dir, err));
    for (int i = 0; i < m->ninputs; i++)
        DNN_TRY(put_input(m, i, dir, err));
    DNN_TRY(dnn_model_run(m, 0, NULL, err));
    for (int i = 0; i < m->noutputs; i++)
        DNN_TRY(get_output(m, i, dir, err));
    return 0;
}

int main(int argc, char **argv)
{
    struct dnn_err err = {0};
    struct dnn_graph *graph = NULL;
    struct dnn_model *model = NULL;

    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: keras_run NETWORK.json DIR [WEIGHTS]\n");
        return 2;
    }
    int rc = work(argv[1], argv[2], argc == 4 ? argv[3] : NULL, &graph, &model, &err);
    if (rc < 0) fprintf(stderr, "%s\n", err.text);
    dnn_model_free(model);
    dnn_graph_free(graph);
    return dnn_exit_status(rc);
}
