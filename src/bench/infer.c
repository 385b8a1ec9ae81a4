/* infer.c - time the inference of a network, also against PyTorch and ONNX Runtime.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/infer_impl.h"

#include "base/clock.h"

#include <omp.h>
#include <string.h>

/* Keras initializes these to 0 and 1, and then a wrong batch norm or bias would not
 * change the outputs. */
static void vary_vectors(struct dnn_prog *prog)
{
    for (int v = 0; v < prog->nvalues; v++) {
        struct dnn_value *value = &prog->value[v];
        const char *name = value->is.name == NULL ? "" : value->is.name;

        if ((value->role != DNN_WEIGHT && value->role != DNN_STATE) ||
            value->is.shape.ndim != 1)
            continue;
        value->init = (struct dnn_init){DNN_INIT_UNIFORM, .a = -0.2, .b = 0.2};
        if (strcmp(name, "gamma") == 0) value->init.a = 0.5, value->init.b = 1;
        if (strcmp(name, "moving_variance") == 0)
            value->init.a = 0.75, value->init.b = 1.25;
    }
}

static int make(struct dnn_infer *w, struct dnn_err *err)
{
    const struct dnn_bench_infer *cfg = w->cfg;
    const struct dnn_net_size size = {cfg->size, cfg->channels};
    struct dnn_model_opts opts = {
        .batch = cfg->batch,
        .role = DNN_MODEL_INFER,
        .device = {.threads = w->threads,
                   .kernels = (enum dnn_kernel_selection)cfg->kernels,
                   .cache = cfg->cache},
    };

    DNN_TRY(dnn_model_backend(cfg->backend, &opts.backend, err));
    DNN_TRY(dnn_bench_net(&cfg->zoo, cfg->layers, &size, &w->net, err));
    DNN_TRY(dnn_model_make(w->net.graph, &opts, &w->model, err));
    w->flops = dnn_measure_flops(w->model->prog);
    DNN_TRY(dnn_model_start(w->model, err));
    vary_vectors(w->model->prog);
    return dnn_model_fill(w->model, 1, err);
}

/* What dnn_bench_turns() times. */
struct runner {
    struct dnn_infer *work;
    const struct dnn_infer_variant *variant; /* NULL: ours */
};

static int run_once(void *arg, double *seconds, struct dnn_err *err)
{
    const struct runner *r = arg;

    if (r->variant != NULL) return dnn_infer_ask(r->work, r->variant, seconds, err);
    double start = dnn_clock_now();
    DNN_TRY(dnn_model_run(r->work->model, 0, NULL, err));
    *seconds = dnn_clock_now() - start;
    return 0;
}

static int measure(struct dnn_infer *w, struct dnn_err *err)
{
    struct dnn_bench_runner runner[1 + DNN_INFER_VARIANTS] = {{0}};
    struct runner arg[1 + DNN_INFER_VARIANTS];
    struct dnn_progress *progress =
        dnn_progress_start("bench", "measuring", w->cfg->reps, "turns", NULL);

    for (int k = 0; k <= w->nvariants; k++) {
        arg[k] = (struct runner){w, k == 0 ? NULL : &w->variant[k - 1]};
        runner[k] = (struct dnn_bench_runner){.run = run_once, .arg = &arg[k]};
    }
    int rc = dnn_bench_turns(runner, 1 + w->nvariants, w->cfg->reps, progress, 0, err);
    w->ours = runner[0].times;
    for (int k = 0; k < w->nvariants; k++)
        w->times[k] = runner[1 + k].times;
    dnn_progress_stop(progress, rc == 0);
    return rc;
}

int dnn_bench_infer(const struct dnn_bench_infer *cfg, FILE *where, struct dnn_err *err)
{
    struct dnn_infer w = {.cfg = cfg,
                          .threads = cfg->threads > 0 ? (int)cfg->threads
                                                      : omp_get_max_threads()};
    double seconds;

    int rc = make(&w, err);
    if (rc == 0) rc = run_once(&(struct runner){.work = &w}, &seconds, err);
    if (rc == 0) rc = dnn_infer_start(&w, err);
    if (rc == 0) rc = measure(&w, err);
    rc = dnn_infer_stop(&w, rc, err);
    if (rc == 0) (cfg->json ? dnn_infer_print_json : dnn_infer_print)(&w, where);
    dnn_values_free(&w.ours);
    for (int k = 0; k < w.nvariants; k++)
        dnn_values_free(&w.times[k]);
    dnn_model_free(w.model);
    dnn_net_free(&w.net);
    return rc;
}
