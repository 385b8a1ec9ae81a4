/* stage_dry.c - a dry run of a stage, as each rank, has the models and the bytes of a
 * real stage on that rank.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/mem.h"
#include "ranks.h"
#include "stage/stage.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct dnn_err err;

/* 13 training samples and 3 for validation: ranks have different shares of all batches.
 */
static const char text[] =
    "{\"layers\": {\"zoo\": \"unet3d\", \"base\": 2, \"depth\": 1, \"norm\": \"batch\","
    " \"classes\": 2, \"input\": [8, 8, 8, 1]},"
    " \"data\": {\"generate\": {\"type\": \"blobs3d\", \"samples\": 16, \"size\": 8},"
    " \"validation\": 0.2, \"batch_size\": 9, \"threads\": 2},"
    " \"threads\": 1, \"loss\": \"cross_entropy\"}";

static int open_stage(const struct dnn_config *config, struct dnn_session *session,
                      bool dry, struct dnn_stage **out)
{
    const struct dnn_stage_cfg cfg = {.config = config,
                                      .session = session,
                                      .kernels = DNN_KERNELS_HEURISTIC,
                                      .dry_run = dry};

    return dnn_stage_open(&cfg, out, &err);
}

/* Whether both have the same models in the same order. */
static bool same_models(const struct dnn_stage *a, const struct dnn_stage *b)
{
    for (int i = 0;; i++) {
        const struct dnn_model *x = dnn_replica_nth_model(a->replica, i);
        const struct dnn_model *y = dnn_replica_nth_model(b->replica, i);

        if (x == NULL || y == NULL) return x == y && i > 0;
        if (x->opts.role != y->opts.role || x->opts.batch != y->opts.batch ||
            x->opts.total != y->opts.total || x->prog->nops != y->prog->nops ||
            dnn_model_bytes(x).all != dnn_model_bytes(y).all)
            return false;
    }
}

/* Whether models of so many bytes are just within the limit. */
static bool just_fits(struct dnn_config *config, struct dnn_session *session,
                      size_t bytes)
{
    struct dnn_stage *enough = NULL, *less = NULL;

    config->memory_limit = (int64_t)bytes;
    int good = open_stage(config, session, true, &enough);
    config->memory_limit--;
    int bad = open_stage(config, session, true, &less);
    dnn_stage_close(enough);
    dnn_stage_close(less);
    return good == 0 && bad == DNN_ENOMEM;
}

static void compare(struct dnn_session *session, const char *path, const char *set)
{
    struct dnn_session pretended;
    struct dnn_config config = {0};
    struct dnn_stage *real = NULL, *dry = NULL;
    struct dnn_comm *comm = session->comm;
    size_t batches, dry_batches;

    int rc = dnn_config_read_set(path, 1, &set, &config, &err);
    if (rc == 0) rc = open_stage(&config, session, false, &real);
    all_ok(comm, rc == 0, "%s: a real stage %s", set, err.text);
    rc = dnn_session_pretend(1, session->size, &pretended, &err);
    if (rc == 0) {
        dnn_session_pretend_rank(&pretended, dnn_comm_rank(comm));
        rc = open_stage(&config, &pretended, true, &dry);
    }
    all_ok(comm, rc == 0, "%s: a dry one %s", set, err.text);
    if (real != NULL && dry != NULL) {
        all_ok(comm, same_models(real, dry), "%s: the same models", set);
        size_t all = dnn_stage_bytes(real, &batches);
        all_ok(comm, all == dnn_stage_bytes(dry, &dry_batches), "%s: the same bytes",
               set);
        all_ok(comm, batches == dry_batches, "%s: of them for batches", set);
        all_ok(comm, just_fits(&config, &pretended, all - batches),
               "%s: memory_limit is for all models together", set);
    }
    dnn_stage_close(dry);
    dnn_stage_close(real);
    dnn_session_close(&pretended);
    dnn_config_free(&config);
}

/* With several models, recompute auto needs as little memory as recompute true. */
static void automatic(struct dnn_session *session, const char *path)
{
    const char *set[] = {"deterministic=true", "recompute=true"};
    struct dnn_comm *comm = session->comm;
    struct dnn_session pretended;
    size_t bytes = 0;

    int rc = dnn_session_pretend(1, session->size, &pretended, &err);
    if (rc == 0) dnn_session_pretend_rank(&pretended, dnn_comm_rank(comm));
    for (int i = 0; i < 2 && rc == 0; i++) {
        struct dnn_config config = {0};
        struct dnn_stage *stage = NULL;

        rc = dnn_config_read_set(path, 2, set, &config, &err);
        config.memory_limit = (int64_t)bytes;
        if (rc == 0) rc = open_stage(&config, &pretended, true, &stage);
        if (rc == 0) bytes = dnn_replica_bytes(stage->replica);
        dnn_stage_close(stage);
        dnn_config_free(&config);
        set[1] = "recompute=auto";
    }
    all_ok(comm, rc == 0, "recompute auto of several models %s", err.text);
    dnn_session_close(&pretended);
}

int main(void)
{
    static const char *const sets[] = {"accumulate=1", "accumulate=2",
                                       "deterministic=true", "precision=f64",
                                       "data.preload=true"};
    struct dnn_session session;
    char path[] = "stage_dry.XXXXXX";

    if (dnn_session_open(1, DNN_BIND_OFF, &session, &err) < 0) return 1;
    int fd = mkstemp(path);
    bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) close(fd);
    all_ok(session.comm, good, "a configuration is written");
    for (size_t i = 0; i < sizeof sets / sizeof *sets && good; i++)
        compare(&session, path, sets[i]);
    automatic(&session, path);
    unlink(path);
    struct dnn_comm *comm = session.comm;
    session.comm = NULL;
    dnn_session_close(&session);
    return all_done(comm);
}
