/* engine_model.c - models: the same results fused or not, recomputed or not; a model
 * that does not fit into memory is refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/json.h"
#include "base/mem.h"
#include "graph/zoo.h"
#include "engine/measure.h"
#include "engine/model.h"

#include <math.h>
#include <string.h>

static struct dnn_err err;

static struct dnn_graph *read_text(const char *text)
{
    struct dnn_json *file = NULL;
    struct dnn_graph *graph = NULL;

    if (dnn_json_text("net", text, strlen(text), &file, &err) == 0) {
        struct dnn_jobj top = dnn_json_top(file);

        dnn_graph_read_json(&top, NULL, &graph, &err);
    }
    dnn_json_free(file);
    if (graph == NULL) printf("# %s\n", err.text);
    return graph;
}

/* A small U-Net with everything in it: norms, pooling, joins, dropout. */
static struct dnn_graph *unet(int64_t classes)
{
    static const int64_t input[] = {16, 12, 2};
    struct dnn_zoo_opts opts = dnn_zoo_defaults("unet2d");
    char *text = NULL;

    opts.base = 4;
    opts.depth = 2;
    opts.classes = classes;
    opts.dropout = 0.25;
    opts.input = (struct dnn_list){.count = 3, .ints = input};
    if (dnn_zoo_text(&opts, &text, &err) < 0) printf("# %s\n", err.text);
    struct dnn_graph *graph = read_text(text);
    dnn_free(text);
    return graph;
}

static struct dnn_model_opts usual(const struct dnn_backend *backend)
{
    return (struct dnn_model_opts){
        .batch = 2,
        .role = DNN_MODEL_TRAIN,
        .optim = dnn_optim_defaults(DNN_UPDATE_ADAM),
        .backend = backend,
        .device = {.threads = 2, .kernels = DNN_KERNELS_HEURISTIC}
    };
}

/* The loss of the last of some steps; NAN on failure. */
static double train(const struct dnn_graph *graph, const struct dnn_model_opts *opts,
                    int steps, size_t *bytes)
{
    struct dnn_model *model = NULL;
    double loss = NAN, sum = 0, one;

    if (dnn_model_make(graph, opts, &model, &err) == 0 &&
        dnn_model_start(model, &err) == 0 && dnn_model_fill(model, 3, &err) == 0) {
        int rc = 0;

        for (int i = 0; i < steps && rc == 0; i++)
            rc = dnn_model_run(model, 0.01, NULL, &err);
        for (int i = 0; i < model->nlosses && rc == 0; i++) {
            rc = dnn_exec_get(model->exec, model->loss[i], &one, &err);
            sum += one;
        }
        if (rc == 0) loss = sum;
        if (bytes != NULL) *bytes = dnn_model_bytes(model).all;
    }
    if (isnan(loss)) printf("# %s\n", err.text);
    dnn_model_free(model);
    return loss;
}

static void near(double got, double want, double far, const char *what)
{
    if (!ok(fabs(got - want) <= far * fabs(want), "%s", what))
        printf("# got %.9g, want %.9g\n", got, want);
}

static void same_numbers(const struct dnn_backend *backend)
{
    struct dnn_graph *graph = unet(1);
    struct dnn_model_opts opts = usual(backend);
    size_t whole = 0, less = 0;

    double fused = train(graph, &opts, 4, &whole);
    ok(train(graph, &opts, 4, NULL) == fused, "%s: same threads, same bits",
       backend->name);
    opts.recompute = DNN_RECOMPUTE_ALL;
    double again = train(graph, &opts, 4, &less);
    ok(fused == again, "%s: recomputing changes no bit", backend->name);
    ok(less < whole, "%s: and takes less memory", backend->name);
    opts.recompute = DNN_RECOMPUTE_NEVER;
    opts.no_fusion = true;
    near(train(graph, &opts, 4, NULL), fused, 1e-4, "one op at a time: the same loss");
    ok(train(graph, &opts, 30, NULL) < 0.98 * train(graph, &opts, 1, NULL),
       "%s: the loss becomes smaller", backend->name);
    dnn_graph_free(graph);
}

static void labels(const struct dnn_backend *backend)
{
    struct dnn_graph *graph = unet(3), *one = unet(1);
    struct dnn_model_opts opts = usual(backend);
    struct dnn_model *model = NULL;
    struct dnn_loss *xent = NULL;

    if (dnn_loss_make("xent", &xent, &err) < 0) printf("# %s\n", err.text);
    opts.loss = xent;
    double first = train(graph, &opts, 1, NULL);
    ok(first > 0.5 && first < 3, "cross-entropy of three classes begins near log 3");
    ok(train(graph, &opts, 30, NULL) < first, "and becomes smaller");
    is_int(dnn_model_make(one, &opts, &model, &err), DNN_ECONFIG,
           "cross-entropy of one class is refused");
    ok(strstr(err.text, "two or more classes") != NULL, "%s: %s", "its message",
       err.text);
    dnn_loss_free(xent);
    dnn_graph_free(graph);
    dnn_graph_free(one);
}

/* The first output; before: first run with other weights, then twice with these. */
static float *infer(const struct dnn_graph *graph, const struct dnn_model_opts *opts,
                    bool before, int64_t *n)
{
    struct dnn_model *model = NULL;
    float *out = NULL;

    if (dnn_model_make(graph, opts, &model, &err) == 0 &&
        dnn_model_start(model, &err) == 0 &&
        (!before || (dnn_model_fill(model, 4, &err) == 0 &&
                     dnn_model_run(model, 0, NULL, &err) == 0)) &&
        dnn_model_fill(model, 3, &err) == 0 &&
        dnn_model_run(model, 0, NULL, &err) == 0 &&
        (!before || dnn_model_run(model, 0, NULL, &err) == 0) &&
        dnn_shape_count(dnn_prog_shape(model->prog, model->output[0]), n, &err) == 0) {
        out = dnn_alloc((size_t)*n * sizeof *out);
        dnn_exec_get(model->exec, model->output[0], out, &err);
    }
    dnn_model_free(model);
    return out;
}

/* Models with another batch size and for inference share the weights of a training
 * model. */
static void shared(const struct dnn_backend *backend)
{
    struct dnn_graph *graph = unet(3);
    struct dnn_model_opts opts = usual(backend), half = opts, look = opts;
    struct dnn_model *model = NULL, *small = NULL, *eval = NULL, *alone = NULL;
    float *x = dnn_alloc(16 * 12 * 2 * 2 * sizeof *x), seen[2][16 * 12 * 3];

    opts.recompute = DNN_RECOMPUTE_ALL;
    for (int i = 0; i < 16 * 12 * 2 * 2; i++)
        x[i] = (float)(i % 29) / 29;
    int rc = dnn_model_make(graph, &opts, &model, &err);
    if (rc == 0) rc = dnn_model_start(model, &err);
    if (rc == 0) rc = dnn_model_fill(model, 3, &err);
    half.batch = look.batch = 1;
    look.role = DNN_MODEL_INFER;
    half.owner = look.owner = model;
    half.memory = DNN_MODEL_SEPARATE;
    if (rc == 0) rc = dnn_model_make(graph, &half, &small, &err);
    if (rc == 0) rc = dnn_model_start(small, &err);
    if (rc == 0) rc = dnn_model_make(graph, &look, &eval, &err);
    if (rc == 0) rc = dnn_model_start(eval, &err);
    if (!ok(rc == 0, "%s: two models share the weights of a third", backend->name))
        printf("# %s\n", err.text);
    ok(rc == 0 && dnn_model_bytes(eval).all < dnn_model_bytes(model).all / 2,
       "and take less memory");
    ok(model->prog->op[model->update].kind == DNN_OP_UPDATE &&
           model->prog->op[model->update - 1].kind != DNN_OP_UPDATE,
       "the first op of the optimizer is known");
    for (int i = 0; i < 3 && rc == 0; i++) {
        rc = dnn_model_run(model, 0.01, NULL, &err);
        if (rc == 0) rc = dnn_exec_put(small->exec, small->input[0], x, &err);
        if (rc == 0) rc = dnn_model_run(small, 0.01, NULL, &err);
    }
    /* Inference uses the weights that the two models have updated. */
    if (rc == 0) rc = dnn_exec_put(eval->exec, eval->input[0], x, &err);
    if (rc == 0) rc = dnn_model_run(eval, 0, NULL, &err);
    if (rc == 0) rc = dnn_exec_get(eval->exec, eval->output[0], seen[0], &err);
    look.owner = NULL;
    if (rc == 0) rc = dnn_model_make(graph, &look, &alone, &err);
    if (rc == 0) rc = dnn_model_start(alone, &err);
    for (int v = 0, u = 0; rc == 0 && v < alone->prog->nvalues; v++) {
        enum dnn_role role = alone->prog->value[v].role;
        void *mem = dnn_alloc(alone->plan->spot[v].bytes + 1);

        if (role == DNN_WEIGHT || role == DNN_STATE) {
            while (model->prog->value[u].role != DNN_WEIGHT &&
                   model->prog->value[u].role != DNN_STATE)
                u++;
            rc = dnn_exec_get(model->exec, u++, mem, &err);
            if (rc == 0) rc = dnn_exec_put(alone->exec, v, mem, &err);
        }
        dnn_free(mem);
    }
    if (rc == 0) rc = dnn_exec_put(alone->exec, alone->input[0], x, &err);
    if (rc == 0) rc = dnn_model_run(alone, 0, NULL, &err);
    if (rc == 0) rc = dnn_exec_get(alone->exec, alone->output[0], seen[1], &err);
    ok(rc == 0 && memcmp(seen[0], seen[1], sizeof seen[0]) == 0,
       "inference between steps uses the current weights");
    dnn_free(x);
    dnn_model_free(alone);
    dnn_model_free(eval);
    dnn_model_free(small);
    dnn_model_free(model);
    dnn_graph_free(graph);
}

static void inference(const struct dnn_backend *backend)
{
    struct dnn_graph *graph = unet(3);
    struct dnn_model_opts opts = usual(backend);
    double far = 0, size = 0;
    int64_t n = 0;

    opts.role = DNN_MODEL_INFER;
    float *fused = infer(graph, &opts, false, &n);
    float *again = infer(graph, &opts, true, &n);
    opts.no_fusion = true;
    float *plain = infer(graph, &opts, false, &n);
    for (int64_t i = 0; fused != NULL && plain != NULL && i < n; i++) {
        far += pow((double)fused[i] - (double)plain[i], 2);
        size += pow(plain[i], 2);
    }
    ok(size > 0 && sqrt(far) <= 1e-5 * sqrt(size), "%s: inference, fused or not: %g",
       backend->name, sqrt(far / size));
    ok(fused != NULL && again != NULL &&
           memcmp(fused, again, (size_t)n * sizeof *fused) == 0,
       "the norms are folded again when the weights have changed, and kept otherwise");
    dnn_free(again);
    dnn_free(fused);
    dnn_free(plain);
    dnn_graph_free(graph);
}

static void limits(const struct dnn_backend *backend)
{
    struct dnn_graph *graph = unet(1);
    struct dnn_model_opts opts = usual(backend);
    struct dnn_model *model = NULL;
    size_t whole = 0;

    train(graph, &opts, 1, &whole);
    opts.limit = whole;
    is_int(dnn_model_make(graph, &opts, &model, &err), 0, "exactly enough memory");
    dnn_model_free(model);
    opts.limit = whole - 64;
    is_int(dnn_model_make(graph, &opts, &model, &err), DNN_ENOMEM,
           "slightly less is refused");
    ok(strstr(err.text, "recompute") != NULL, "%s: %s", "with what to do", err.text);
    opts.recompute = DNN_RECOMPUTE_AUTO;
    is_int(dnn_model_make(graph, &opts, &model, &err), 0, "auto makes it fit");
    if (model != NULL) {
        ok(dnn_model_bytes(model).all <= opts.limit, "within the limit");
        ok(model->original != NULL && model->recompute.ops > 0, "by recomputing");
    }
    dnn_model_free(model);
    opts.limit = 4096;
    is_int(dnn_model_make(graph, &opts, &model, &err), DNN_ENOMEM,
           "but not into one page");
    dnn_graph_free(graph);
}

static void looking(const struct dnn_backend *backend)
{
    static const char huge[] =
        "{\"class_name\": \"Sequential\", \"config\": {\"layers\": ["
        "{\"class_name\": \"Conv3D\", \"config\": {\"batch_input_shape\": [null, 1024, "
        "1024, 1024, 4], \"filters\": 8, \"kernel_size\": 3, \"padding\": \"same\", "
        "\"use_bias\": false}}]}}";
    struct dnn_graph *graph = read_text(huge);
    struct dnn_model_opts opts = usual(backend);
    struct dnn_model *model = NULL;

    opts.dry_run = true;
    is_int(dnn_model_make(graph, &opts, &model, &err), 0, "planned without allocation");
    if (model != NULL && ok(dnn_model_start(model, &err) == 0, "%s", "prepared")) {
        ok(dnn_model_bytes(model).all > (size_t)100 << 30, "more than 100 GiB");
        ok(dnn_exec_describe(model->exec, 0) != NULL, "its kernels have names");
        is_int(dnn_model_run(model, 0, NULL, &err), DNN_EDEVICE, "but it does not run");
        double positions = 2 * pow(1024, 3), weights = 27.0 * 4 * 8;
        ok(dnn_measure_flops(model->prog) == 2 * (2 * positions * weights),
           "operations are counted: forward and of weights");
    }
    dnn_model_free(model);
    dnn_graph_free(graph);
}

/* Rows add up to the whole. */
static void rows(const struct dnn_backend *backend)
{
    struct dnn_graph *graph = unet(1);
    struct dnn_model_opts opts = usual(backend);
    struct dnn_model *model = NULL;
    struct dnn_measure_row *row;
    double sum = 0, flops = 0, all = 0;

    dnn_model_make(graph, &opts, &model, &err);
    double *seconds = dnn_alloc((size_t)model->prog->nops * sizeof *seconds);
    for (int o = 0; o < model->prog->nops; o++)
        all += seconds[o] = o + 1;
    for (int kinds = 0; kinds < 2; kinds++) {
        int n = dnn_measure_rows(model->prog, seconds, kinds == 1, &row), ops = 0;

        sum = flops = 0;
        for (int i = 0; i < n; i++) {
            sum += row[i].all;
            flops += row[i].flops;
            ops += row[i].ops;
        }
        is_int(ops, model->prog->nops, "every op is in a row");
        near(sum, all, 1e-12, "and all of the time");
        near(flops, dnn_measure_flops(model->prog), 1e-12, "and of the work");
        ok(row[0].all >= row[n - 1].all, "the slowest first");
        dnn_free(row);
    }
    dnn_free(seconds);
    dnn_model_free(model);
    dnn_graph_free(graph);
}

int main(void)
{
    for (int i = 0; dnn_backend_at(i) != NULL; i++) {
        const struct dnn_backend *backend = dnn_backend_at(i);

        same_numbers(backend);
        labels(backend);
        inference(backend);
        shared(backend);
        limits(backend);
        looking(backend);
        rows(backend);
    }
    return done();
}
