/* plan_bucket.c - every gradient is in exactly one bucket, and final when the bucket
 * is.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/json.h"
#include "base/mem.h"
#include "graph/zoo.h"
#include "engine/model.h"

#include <string.h>

static struct dnn_err err;

static struct dnn_model *model_of(const char *name, struct dnn_graph **graph)
{
    struct dnn_zoo_opts zoo = dnn_zoo_defaults(name);
    struct dnn_model_opts opts = {.batch = 2,
                                  .role = DNN_MODEL_TRAIN,
                                  .optim = dnn_optim_defaults(DNN_UPDATE_ADAM),
                                  .dry_run = true};
    struct dnn_model *model = NULL;
    struct dnn_json *file = NULL;
    char *text = NULL;

    int rc = dnn_zoo_text(&zoo, &text, &err);
    if (rc == 0) rc = dnn_json_text("net", text, strlen(text), &file, &err);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(file);
        rc = dnn_graph_read_json(&top, NULL, graph, &err);
    }
    if (rc == 0) rc = dnn_model_backend("ref", &opts.backend, &err);
    if (rc == 0) rc = dnn_model_make(*graph, &opts, &model, &err);
    if (rc < 0) printf("# %s\n", err.text);
    dnn_json_free(file);
    dnn_free(text);
    return model;
}

/* The bucket of a gradient; -1: none, only a part of it, or two. */
static int holder(const struct dnn_bucket *b, int n, const struct dnn_spot *s)
{
    int found = -1;

    for (int i = 0; i < n; i++) {
        if (b[i].last <= s->offset || b[i].first >= s->offset + s->bytes) continue;
        if (found >= 0 || b[i].first > s->offset || b[i].last < s->offset + s->bytes)
            return -1;
        found = i;
    }
    return found;
}

static void sound(const struct dnn_model *m, size_t bytes, const char *what)
{
    struct dnn_bucket *b;
    int n = dnn_plan_buckets(m->plan, bytes, &b), lost = 0, early = 0, large = 0;
    int order = 0, ngrads = 0;

    for (int v = 0; v < m->prog->nvalues; v++) {
        const struct dnn_value *w = &m->prog->value[v];

        if (w->role != DNN_WEIGHT || w->grad == DNN_NONE) continue;
        int i = holder(b, n, &m->plan->spot[w->grad]);
        ngrads++;
        lost += i < 0;
        for (int o = i < 0 ? m->prog->nops : b[i].op + 1; o < m->update; o++)
            for (int k = 0; k < m->prog->op[o].nout; k++)
                early += m->prog->op[o].out[k] == w->grad;
        large += i >= 0 && b[i].last - b[i].first > bytes &&
                 b[i].last - b[i].first > m->plan->spot[w->grad].bytes;
    }
    for (int i = 1; i < n; i++)
        order += b[i].op < b[i - 1].op;
    ok(ngrads > 4 && lost == 0, "%s: each gradient is in one bucket", what);
    ok(early == 0, "%s: nothing is written after a bucket is final", what);
    ok(large == 0, "%s: buckets are not larger than the given size", what);
    ok(order == 0, "%s: they are in the order in which they are final", what);
    ok(bytes < (size_t)1 << 30 ? n >= 1 : n == 1, "%s: %d buckets", what, n);
    dnn_free(b);
}

int main(void)
{
    static const char *const nets[] = {"simplecnn", "unet3d", "resnet50"};

    for (int i = 0; i < 3; i++) {
        struct dnn_graph *graph = NULL;
        struct dnn_model *model = model_of(nets[i], &graph);

        if (!ok(model != NULL, "%s", nets[i])) continue;
        sound(model, 4 << 10, nets[i]);
        sound(model, 1 << 20, nets[i]);
        sound(model, (size_t)1 << 40, nets[i]);
        dnn_model_free(model);
        dnn_graph_free(graph);
    }
    return done();
}
