/* stage.h - a network at given extents, the data it runs on, and a replica.
 *
 * A training run is a session and a list of stages, an inference run a session and one
 * stage.  Stages of the same network share its weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_STAGE_STAGE_H
#define DNN_STAGE_STAGE_H

#include "config/run_config.h"
#include "data/feed.h"
#include "replica/replica.h"
#include "session/session.h"

/* A dataset or source, and its columns that the network uses. */
struct dnn_stage_data {
    struct dnn_source *source;   /* owned; NULL: a dataset, or no samples          */
    struct dnn_augment *augment; /* owned; or NULL                                 */
    struct dnn_feed *feed;       /* owned; NULL: no samples                        */
    int64_t batch_size;          /* of all ranks                                   */
    enum dnn_model_role role;    /* EVALUATE: has targets, and they are used       */
    int *input, *target;         /* owned: index of the column of each input, output */
    const struct dnn_batch *batch; /* the current one */
};

/* Fields are read-only. */
struct dnn_stage {
    const struct dnn_config *config;
    struct dnn_session *session;
    enum dnn_config_mode mode;
    struct dnn_stage_data train, eval;
    struct dnn_stage_data separate_test; /* test data, if it is not the same as eval */
    struct dnn_stage_data *test; /* to write outputs of: eval, separate_test or NULL */
    int *target_is; /* owned: enum dnn_loss_target of each output                   */
    char *cache;    /* owned: path of the autotuning cache                          */
    struct dnn_replica *replica; /* owned */
    bool dry_run;
    struct dnn_err unreadable; /* dry run: why there is no data; code 0: there is    */
};

struct dnn_stage_cfg {
    const struct dnn_config *config;
    struct dnn_session *session;
    const char *backend;       /* overrides the configuration; NULL: as configured */
    int kernels;               /* enum dnn_kernel_selection                          */
    struct dnn_replica *owner; /* of the weights; NULL: this stage                   */
    bool test; /* only test data is used, even if there is training data     */
    /* Plan only: the same models and memory, but nothing is allocated or can be run.
     * Data that are not there (DNN_EIO) are not an error: batches then have the
     * configured size. */
    bool dry_run;
    bool inference; /* dry run: only the outputs, whatever the configuration does */
};

/* Collective.  Open the data, make the replica, bind columns to inputs.  The weights
 * are not initialized.  config and session must outlive it.  The caller owns *out:
 * dnn_stage_close(). */
int dnn_stage_open(const struct dnn_stage_cfg *cfg, struct dnn_stage **out,
                   struct dnn_err *err);
void dnn_stage_close(struct dnn_stage *stage); /* NULL is fine */

/* Local.  If "debug" is set: write the network as a graph, network.dot, to the run
 * directory, as rmldnn does. */
int dnn_stage_debug(const struct dnn_stage *stage, struct dnn_err *err);

/* Local.  Bytes of this rank's models and of batches that are read ahead; *batches: of
 * the latter alone, may be NULL. */
size_t dnn_stage_bytes(const struct dnn_stage *stage, size_t *batches);

/* Local.  Open the stage as each of so many ranks would on this machine, without
 * running it, and print how batches are cut, the memory of each rank, and each distinct
 * plan once.  For --explain. */
struct dnn_stage_explain {
    struct dnn_stage_cfg stage; /* without session; always a dry run */
    int ranks;
    FILE *where;
    /* NULL, or called with a model that has all weights, to print more. */
    int (*also)(const void *arg, const struct dnn_model *model, FILE *where,
                struct dnn_err *err);
    const void *arg;
};
int dnn_stage_explain(const struct dnn_stage_explain *what, struct dnn_err *err);

/* Local.  The options of the stage's models as far as they depend on the configuration
 * and not on data; *cache: owned by the caller, dnn_free(). */
int dnn_stage_model_opts(const struct dnn_stage_cfg *cfg, struct dnn_model_opts *out,
                         char **cache, struct dnn_err *err);

/* Local.  A batch of the feed as a batch of the replica, which reads its samples
 * straight from the feed; valid until the next dnn_feed_next(). */
void dnn_stage_batch(struct dnn_stage_data *data, const struct dnn_batch *batch,
                     struct dnn_replica_batch *out);

#endif
