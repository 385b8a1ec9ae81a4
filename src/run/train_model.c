/* train_model.c - the trained network as files: model.json, model.weights.h5.
 *
 * Both are what Keras reads, and what another job takes as "layers" and
 * checkpoints.load.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/train_impl.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "weights/weights.h"

#include <string.h>

static int source(void *arg, int value, void *to, struct dnn_err *err)
{
    const struct dnn_model *m = arg;

    return dnn_exec_get(m->exec, value, to, err);
}

static int write_both(const struct dnn_trainer *t, const char *net, const char *weights,
                      struct dnn_err *err)
{
    struct dnn_model *m = dnn_replica_model(t->replica);
    const struct dnn_graph *g = m->graph;
    const struct dnn_weights_order order = {g->nlayers, g->layer_name, g->layer_class,
                                            g->layer_model};

    DNN_TRY(dnn_file_write(net, t->network, strlen(t->network), err));
    int rc = dnn_weights_save(weights, m->prog, &order, source, m, err);
    if (rc == DNN_ECONFIG) {
        dnn_log(DNN_WARN, "train", "the weights are in the last checkpoint alone: %s",
                err->text);
        *err = (struct dnn_err){0};
        return 0;
    }
    DNN_TRY(rc);
    dnn_log(DNN_INFO, "train", "the trained network is %s, its weights%s are in %s",
            net, t->ema_in_use ? ", their running mean," : "", weights);
    return 0;
}

int dnn_trainer_write_model(struct dnn_trainer *t, struct dnn_err *err)
{
    int rc = 0;

    if (t->root) {
        char *net = dnn_format("%s/model.json", dnn_job_dir(t->job));
        char *weights = dnn_format("%s/model.weights.h5", dnn_job_dir(t->job));

        rc = write_both(t, net, weights, err);
        dnn_free(net);
        dnn_free(weights);
    }
    return dnn_comm_agree(t->comm, rc, err);
}
