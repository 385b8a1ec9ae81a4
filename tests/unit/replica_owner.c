/* replica_owner.c - two replicas of one network at different extents share its weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

#include "base/json.h"
#include "base/mem.h"
#include "graph/zoo.h"
#include "replica/replica.h"

#include <string.h>

enum { BATCH = 2, STEPS = 4 };

static struct dnn_err err;

static struct dnn_graph *unet(int64_t extent)
{
    const int64_t input[] = {extent, extent, 1};
    struct dnn_zoo_opts opts = dnn_zoo_defaults("unet2d");
    struct dnn_graph *graph = NULL;
    struct dnn_json *file = NULL;
    char *text = NULL;

    opts.base = 4;
    opts.depth = 1;
    opts.classes = 2;
    opts.input = (struct dnn_list){.count = 3, .ints = input};
    if (dnn_zoo_text(&opts, &text, &err) == 0 &&
        dnn_json_text("net", text, strlen(text), &file, &err) == 0) {
        struct dnn_jobj top = dnn_json_top(file);

        dnn_graph_read_json(&top, NULL, &graph, &err);
    }
    dnn_json_free(file);
    dnn_free(text);
    return graph;
}

/* The input is a pattern, the target zeros; arg: elements of a sample. */
static int read_samples(void *arg, bool target, int i, int64_t skip, int64_t count,
                        void *to, struct dnn_err *unused)
{
    const int64_t each = *(const int64_t *)arg;

    (void)i, (void)unused;
    for (int64_t k = 0; k < count * each; k++)
        ((float *)to)[k] = target ? 0 : (float)((skip * each + k) % 29) / 29;
    return 0;
}

static struct dnn_replica *make(struct dnn_comm *comm, const struct dnn_graph *graph,
                                struct dnn_replica *owner)
{
    const struct dnn_replica_batches batches = {.size = BATCH};
    struct dnn_replica_cfg cfg = {
        .graph = graph,
        .comm = comm,
        .owner = owner,
        .batches = {[DNN_MODEL_EVALUATE] = batches,               [DNN_MODEL_TRAIN] = batches},
        .model = {.optim = dnn_optim_defaults(DNN_UPDATE_ADAM),
                    .device = {.threads = 1, .kernels = DNN_KERNELS_HEURISTIC}               }
    };
    struct dnn_replica *r = NULL;

    if (dnn_model_backend("ref", &cfg.model.backend, &err) < 0 ||
        dnn_replica_make(&cfg, &r, &err) < 0)
        printf("# %s\n", err.text);
    return r;
}

/* Copy weights and all that is updated with them. */
static void copy(struct dnn_replica *from, struct dnn_replica *to)
{
    const enum dnn_block blocks[] = {DNN_BLOCK_WEIGHTS, DNN_BLOCK_SLOTS,
                                     DNN_BLOCK_STATES};
    struct dnn_model *a = dnn_replica_model(from), *b = dnn_replica_model(to);

    for (int i = 0; i < 3; i++)
        if (a->plan->bytes[blocks[i]] > 0)
            memcpy(dnn_exec_block(b->exec, blocks[i]),
                   dnn_exec_block(a->exec, blocks[i]), a->plan->bytes[blocks[i]]);
    dnn_exec_changed(b->exec);
}

/* Steps of two replicas in turns, then the loss of both.  Not shared: what one has
 * changed is copied to the other. */
static bool train(struct dnn_comm *comm, struct dnn_graph *const graph[2], bool shared,
                  double loss[2])
{
    struct dnn_replica *r[2];
    int64_t each[2];
    int rc = 0;

    r[0] = make(comm, graph[0], NULL);
    r[1] = r[0] == NULL ? NULL : make(comm, graph[1], shared ? r[0] : NULL);
    if (r[1] != NULL) rc = dnn_exec_init(dnn_replica_model(r[0])->exec, 7, &err);
    for (int s = 0; s < STEPS + 2 && r[1] != NULL && rc == 0; s++) {
        struct dnn_replica *now = r[s % 2];
        struct dnn_replica_step step = {.rate = 0.01, .step = (uint64_t)s};
        const struct dnn_model *m = dnn_replica_model(now);
        const struct dnn_replica_batch batch = {
            .total = BATCH, .n = BATCH, .read = read_samples, .arg = &each[s % 2]};

        each[s % 2] = (int64_t)m->plan->spot[m->input[0]].bytes / 4 / BATCH;
        if (!shared && s > 0) copy(r[1 - s % 2], now);
        if (s < STEPS) {
            rc = dnn_replica_run(now, &batch, &step, NULL, 0, &err);
            continue;
        }
        dnn_replica_eval_start(now);
        rc = dnn_replica_eval(now, DNN_MODEL_EVALUATE, &batch, NULL, NULL, &err);
        if (rc == 0) rc = dnn_replica_eval_loss(now, &loss[s % 2], &err);
    }
    bool good = r[1] != NULL && rc == 0;
    if (rc < 0) printf("# %s\n", err.text);
    if (good && shared)
        ok(dnn_replica_bytes(r[1]) < dnn_replica_bytes(r[0]) / 2,
           "the smaller replica needs little memory");
    dnn_replica_free(r[1]);
    dnn_replica_free(r[0]);
    return good;
}

int main(void)
{
    struct dnn_graph *graph[2] = {unet(16), unet(8)};
    double shared[2] = {1, 1}, copied[2] = {2, 2};
    struct dnn_comm *comm = NULL;

    dnn_comm_open(NULL, &comm, &err);
    if (ok(comm != NULL && graph[0] != NULL && graph[1] != NULL, "two networks")) {
        ok(train(comm, graph, true, shared), "steps in turns with shared weights");
        ok(train(comm, graph, false, copied), "and with weights that are copied");
        ok(shared[0] == copied[0] && shared[1] == copied[1],
           "the losses are the same: %g and %g", shared[0], shared[1]);
    }
    dnn_comm_close(comm);
    dnn_graph_free(graph[0]);
    dnn_graph_free(graph[1]);
    return done();
}
