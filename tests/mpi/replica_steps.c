/* replica_steps.c - a few training steps on any number of ranks.
 *
 *   replica_steps BACKEND NET BATCH LAST STEPS [deterministic|bf16|fp16|accumulate|-]
 *                 [LOSS]
 *
 * Prints the loss of each step and a sum of the weights' bits, for replica.t to
 * compare.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "graph/zoo.h"
#include "data/order.h"
#include "replica/replica.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

static struct dnn_err err;

static int net(const char *name, struct dnn_graph **out)
{
    static const int64_t flat[] = {16, 12, 2};
    struct dnn_zoo_opts zoo = dnn_zoo_defaults(name);
    struct dnn_json *file = NULL;
    char *text = NULL;

    if (strcmp(name, "unet2d") == 0) {
        zoo.base = 4;
        zoo.depth = 2;
        zoo.dropout = 0.25;
        zoo.input = (struct dnn_list){.count = 3, .ints = flat};
    }
    zoo.classes = 3;
    DNN_TRY(dnn_zoo_text(&zoo, &text, &err));
    int rc = dnn_json_text(name, text, strlen(text), &file, &err);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(file);
        rc = dnn_graph_read_json(&top, NULL, out, &err);
    }
    dnn_json_free(file);
    dnn_free(text);
    return rc;
}

/* Sample i of batch b, the same on all ranks. */
static void fill(float *x, int64_t each, int64_t first, int64_t n, uint32_t b,
                 int32_t *labels, int64_t places)
{
    struct dnn_rng rng = dnn_rng_make(5, 2);

    for (int64_t i = 0; i < n; i++) {
        struct dnn_rng_at at = {.step = b, .sample = (uint32_t)(first + i)};

        for (at.index = 0; at.index < (uint64_t)each; at.index++)
            x[i * each + (int64_t)at.index] = (float)dnn_rng_normal(&rng, at);
        for (int64_t p = 0; p < places; p++, at.index++)
            labels[i * places + p] = (int32_t)dnn_rng_below(&rng, at, 3);
    }
}

static uint64_t bits(struct dnn_model *m)
{
    const unsigned char *w = dnn_exec_block(m->exec, DNN_BLOCK_WEIGHTS);
    const unsigned char *s = dnn_exec_block(m->exec, DNN_BLOCK_STATES);
    uint64_t h = 14695981039346656037u;

    for (size_t i = 0; i < m->plan->bytes[DNN_BLOCK_WEIGHTS]; i++)
        h = (h ^ w[i]) * 1099511628211u;
    for (size_t i = 0; i < m->plan->bytes[DNN_BLOCK_STATES]; i++)
        h = (h ^ s[i]) * 1099511628211u;
    return h;
}

/* The samples of a batch; elements of a sample. */
struct samples {
    const float *x;
    const int32_t *t;
    int64_t each, places;
};

static int read_samples(void *arg, bool target, int i, int64_t skip, int64_t count,
                        void *to, struct dnn_err *unused)
{
    const struct samples *s = arg;

    (void)i, (void)unused;
    if (target)
        memcpy(to, s->t + skip * s->places, (size_t)(count * s->places) * 4);
    else
        memcpy(to, s->x + skip * s->each, (size_t)(count * s->each) * 4);
    return 0;
}

static int train(struct dnn_comm *comm, const struct dnn_replica_cfg *cfg, int steps)
{
    struct dnn_replica *r = NULL;

    DNN_TRY(dnn_replica_make(cfg, &r, &err));
    struct dnn_model *m = dnn_replica_model(r);
    int rc = dnn_exec_init(m->exec, 11, &err);
    int64_t each =
        (int64_t)(m->plan->spot[m->input[0]].bytes / sizeof(float)) / m->opts.batch;
    int64_t places =
        (int64_t)(m->plan->spot[m->target[0]].bytes / sizeof(int32_t)) / m->opts.batch;

    const struct dnn_replica_batches *batches = &cfg->batches[DNN_MODEL_TRAIN];

    for (int s = 0; s < steps && rc == 0; s++) {
        struct samples samples = {.each = each, .places = places};
        struct dnn_replica_batch b = {
            .total = batches->last > 0 && s % 3 == 2 ? batches->last : batches->size,
            .read = read_samples,
            .arg = &samples};
        struct dnn_replica_step step = {
            .rate = 0.01, .seed = 3, .step = (uint64_t)s, .clip_norm = 1};

        dnn_order_micro_batches(
            b.total, b.total, 0,
            dnn_replica_micro_batches(comm, cfg->how.deterministic, batches),
            dnn_comm_rank(comm), dnn_comm_size(comm), &b.first, &b.n);
        float *x = dnn_alloc((size_t)(b.n * each + 1) * sizeof *x);
        int32_t *t = dnn_alloc((size_t)(b.n * places + 1) * sizeof *t);
        fill(x, each, b.first, b.n, (uint32_t)s, t, places);
        samples.x = x;
        samples.t = t;
        double extra[2] = {(double)b.n, 1};
        rc = dnn_replica_run(r, &b, &step, extra, 2, &err);
        if (rc == 0 && (extra[0] != (double)b.total || extra[1] != dnn_comm_size(comm)))
            rc = dnn_fail(&err, DNN_ECOMM, "the extra numbers are wrong");
        if (rc == 0 && dnn_comm_rank(comm) == 0)
            printf("step %d loss %.17g norm %.17g\n", s, step.loss, step.grad_norm);
        dnn_free(x);
        dnn_free(t);
    }
    if (rc == 0) {
        uint64_t mine = bits(m), *all = dnn_alloc((size_t)dnn_comm_size(comm) * 8);
        rc = dnn_comm_allgather(comm, "bits", &mine, sizeof mine, all, &err);
        for (int i = 0; i < dnn_comm_size(comm) && rc == 0; i++)
            if (all[i] != mine) rc = dnn_fail(&err, DNN_ECOMM, "weights differ");
        if (rc == 0 && dnn_comm_rank(comm) == 0)
            printf("weights %016llx\n", (unsigned long long)mine);
        dnn_free(all);
    }
    dnn_replica_free(r);
    return rc;
}

static int read_loss(const char *text, struct dnn_loss **out)
{
    struct dnn_json *file;

    DNN_TRY(dnn_json_text("loss", text, strlen(text), &file, &err));
    struct dnn_jobj top = dnn_json_top(file);
    int rc = dnn_loss_read(&top, out, &err);
    dnn_json_free(file);
    return rc;
}

int main(int argc, char **argv)
{
    struct dnn_comm *comm = NULL;
    struct dnn_graph *graph = NULL;
    struct dnn_loss *loss = NULL;
    struct dnn_replica_cfg cfg = {0};

    if (argc < 6) return 2;
    const char *how = argc > 6 ? argv[6] : "";
    int rc = dnn_comm_open(NULL, &comm, &err);
    if (rc == 0) rc = net(argv[2], &graph);
    cfg.graph = graph;
    cfg.comm = comm;
    cfg.batches[DNN_MODEL_TRAIN] = (struct dnn_replica_batches){
        .size = atoi(argv[3]),
        .last = atoi(argv[4]),
        .micro_batches = strcmp(how, "accumulate") == 0 ? 3 : 0};
    cfg.how.deterministic = strcmp(how, "deterministic") == 0;
    cfg.how.compress = strcmp(how, "bf16") == 0   ? DNN_COMPRESS_BF16
                       : strcmp(how, "fp16") == 0 ? DNN_COMPRESS_F16
                                                  : DNN_COMPRESS_NONE;
    cfg.bucket = 4096;
    if (rc == 0) rc = read_loss(argc > 7 ? argv[7] : "\"xent\"", &loss);
    cfg.model.loss = loss;
    cfg.model.optim = dnn_optim_defaults(DNN_UPDATE_ADAM);
    cfg.model.device.threads = omp_get_max_threads();
    cfg.model.device.kernels = DNN_KERNELS_HEURISTIC;
    if (rc == 0) rc = dnn_model_backend(argv[1], &cfg.model.backend, &err);
    if (rc == 0) rc = train(comm, &cfg, atoi(argv[5]));
    if (rc < 0) fprintf(stderr, "replica_steps: %s\n", err.text);
    dnn_loss_free(loss);
    dnn_graph_free(graph);
    dnn_comm_close(comm);
    return dnn_exit_status(rc);
}
