/* infer_peer.c - PyTorch and ONNX Runtime with the network of dnn-bench infer.
 *
 * They read the network, its weights and its inputs from files in a temporary
 * directory, and compare their outputs with ours, which are also there.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/infer_impl.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "weights/weights.h"

#include <string.h>

const struct dnn_choice dnn_bench_infer_peers[] = {
    {"none",        DNN_AGAINST_NONE                    },
    {"torch",       DNN_AGAINST_TORCH                   },
    {"onnxruntime", DNN_AGAINST_ONNX                    },
    {"both",        DNN_AGAINST_TORCH | DNN_AGAINST_ONNX},
    {NULL,          0                                   }
};

static const char *const kinds[DNN_INFER_PEERS] = {"contiguous", "channels_last",
                                                   "onnxruntime"};

/* ---- files ---- */

enum { MAX_NET = 1 << 30 }; /* bytes of a network */

static int get_weight(void *arg, int value, void *to, struct dnn_err *err)
{
    const struct dnn_model *m = arg;

    return dnn_exec_get(m->exec, value, to, err);
}

/* A network of the zoo as a file, or the user's. */
static int write_net(const struct dnn_infer *w, const char *path, struct dnn_err *err)
{
    char *text = NULL;

    if (w->net.text != NULL)
        return dnn_file_write(path, w->net.text, strlen(w->net.text), err);
    if (w->cfg->size != NULL || w->cfg->channels > 0)
        return dnn_fail(err, DNN_EUSAGE,
                        "--against uses the size in the file; change it there instead "
                        "of --size and --channels");
    DNN_TRY(dnn_file_read_text(w->cfg->layers, MAX_NET, &text, err));
    int rc = dnn_file_write(path, text, strlen(text), err);
    dnn_free(text);
    return rc;
}

static int write_weights(const struct dnn_infer *w, const char *path,
                         struct dnn_err *err)
{
    const struct dnn_graph *g = w->net.graph;
    const struct dnn_weights_order order = {g->nlayers, g->layer_name, g->layer_class,
                                            g->layer_model};

    return dnn_weights_save(path, w->model->prog, &order, NULL, get_weight, w->model,
                            err);
}

/* Write values as f32, channels last: input0.f32, ... */
static int write_values(const struct dnn_infer *w, const char *name, int n,
                        const int *value, struct dnn_err *err)
{
    int rc = 0;

    for (int i = 0; i < n && rc == 0; i++) {
        char *path = dnn_format("%s/%s%d.f32", w->dir, name, i);
        float *copy = NULL;
        const float *at = dnn_exec_view(w->model->exec, value[i], &copy, err);
        int64_t count = 0;

        rc = at == NULL ? err->code : 0;
        if (rc == 0)
            rc = dnn_shape_count(dnn_prog_shape(w->model->prog, value[i]), &count, err);
        if (rc == 0) rc = dnn_file_write(path, at, (size_t)count * sizeof *at, err);
        dnn_free(copy);
        dnn_free(path);
    }
    return rc;
}

static int write_files(struct dnn_infer *w, struct dnn_err *err)
{
    const struct dnn_model *m = w->model;

    DNN_TRY(dnn_bench_make_dir(NULL, &w->dir, err));
    char *net = dnn_format("%s/net.json", w->dir);
    char *weights = dnn_format("%s/net.weights.h5", w->dir);
    int rc = write_net(w, net, err);

    if (rc == 0) rc = write_weights(w, weights, err);
    if (rc == 0) rc = write_values(w, "input", m->ninputs, m->input, err);
    if (rc == 0) rc = write_values(w, "output", m->noutputs, m->output, err);
    dnn_free(net);
    dnn_free(weights);
    return rc;
}

/* ---- processes ---- */

static void add_variant(struct dnn_infer *w, int process, const char *mode)
{
    w->variant[w->nvariants++] = (struct dnn_infer_variant){
        .process = process, .format = kinds[process], .mode = mode};
}

/* *seconds: of one inference. */
static int start_peer(struct dnn_infer *w, int i, double *seconds, struct dnn_err *err)
{
    char batch[24], threads[24];
    const char *const args[] = {"--dir", w->dir,   "--batch", batch, "--threads",
                                threads, "--with", kinds[i],  NULL};
    struct dnn_json *first;

    snprintf(batch, sizeof batch, "%ld", w->cfg->batch);
    snprintf(threads, sizeof threads, "%d", w->threads);
    DNN_TRY(
        dnn_torch_start("torch_infer.py", args, &w->info, &first, &w->peer[i], err));
    *seconds = dnn_proc_number(first, "seconds");
    if (i == DNN_INFER_ONNX)
        snprintf(w->onnx, sizeof w->onnx, "%s", dnn_proc_text(first, "onnxruntime"));
    dnn_json_free(first);
    add_variant(w, i, i == DNN_INFER_ONNX ? "session" : "eager");
    return 0;
}

/* Send a request; the caller owns *reply: dnn_json_free(). */
static int ask(struct dnn_infer *w, int process, struct dnn_json **reply,
               struct dnn_err *err, const char *verb, const char *word)
{
    char request[64];

    snprintf(request, sizeof request, "%s %s\n", verb, word);
    return dnn_proc_ask(w->peer[process], request, reply, err);
}

static int compile(struct dnn_infer *w, int process, struct dnn_err *err)
{
    struct dnn_json *reply;
    char seconds[24];

    snprintf(seconds, sizeof seconds, "%ld", w->cfg->compile);
    DNN_TRY(ask(w, process, &reply, err, "compile", seconds));
    const char *reason = dnn_proc_text(reply, "reason");
    if (reason[0] != '\0')
        dnn_log(DNN_WARN, "bench", "torch.compile is not measured: %s", reason);
    else
        add_variant(w, process, "compile");
    dnn_json_free(reply);
    return 0;
}

static int compare(struct dnn_infer *w, struct dnn_infer_variant *v,
                   struct dnn_err *err)
{
    struct dnn_json *reply;

    DNN_TRY(ask(w, v->process, &reply, err, "compare", v->mode));
    v->error = dnn_proc_number(reply, "error");
    dnn_json_free(reply);
    if (v->error <= w->cfg->bound) return 0;
    return dnn_fail(
        err, DNN_EDEVICE,
        "the outputs differ from those of %s (%s, %s) by %.2g of the largest "
        "one, more than --bound %.2g; no time is printed",
        v->process == DNN_INFER_ONNX ? "ONNX Runtime" : "PyTorch", v->format, v->mode,
        v->error, w->cfg->bound);
}

int dnn_infer_start(struct dnn_infer *w, struct dnn_err *err)
{
    double seconds, best = 0;
    int faster = 0;

    if (w->cfg->against == DNN_AGAINST_NONE) return 0;
    DNN_TRY(write_files(w, err));
    for (int i = 0; i < DNN_INFER_PEERS; i++) {
        int peer = i == DNN_INFER_ONNX ? DNN_AGAINST_ONNX : DNN_AGAINST_TORCH;

        if ((w->cfg->against & peer) == 0) continue;
        DNN_TRY(start_peer(w, i, &seconds, err));
        if (i == 0 || (i < DNN_TORCH_FORMATS && seconds < best)) {
            faster = i;
            best = seconds;
        }
    }
    if ((w->cfg->against & DNN_AGAINST_TORCH) != 0 && w->cfg->compile > 0)
        DNN_TRY(compile(w, faster, err));
    for (int k = 0; k < w->nvariants; k++)
        DNN_TRY(compare(w, &w->variant[k], err));
    return 0;
}

int dnn_infer_ask(struct dnn_infer *w, const struct dnn_infer_variant *v,
                  double *seconds, struct dnn_err *err)
{
    struct dnn_json *reply;

    DNN_TRY(ask(w, v->process, &reply, err, "run", v->mode));
    *seconds = dnn_proc_number(reply, "seconds");
    dnn_json_free(reply);
    return 0;
}

int dnn_infer_stop(struct dnn_infer *w, int rc, struct dnn_err *err)
{
    for (int i = 0; i < DNN_INFER_PEERS; i++)
        dnn_proc_stop(w->peer[i]);
    rc = dnn_bench_remove_dir(w->dir, rc, err);
    dnn_free(w->dir);
    return rc;
}
