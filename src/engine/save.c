/* save.c - a network and its weights as files for Keras 3.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "engine/model.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "weights/weights.h"

#include <string.h>

static int get_weights(void *arg, int value, void *to, struct dnn_err *err)
{
    const struct dnn_model *m = arg;

    return dnn_exec_get(m->exec, value, to, err);
}

/* Write a file of weights and add its path to saved.  If it cannot be written for a
 * missing feature or library, only a warning is logged. */
static int save(struct dnn_model *m, const char *dir, const char *name,
                const struct dnn_weights_about *about, struct dnn_buf *saved,
                struct dnn_err *err)
{
    const struct dnn_graph *g = m->graph;
    const struct dnn_weights_order order = {g->nlayers, g->layer_name, g->layer_class,
                                            g->layer_model};
    char *path = dnn_format("%s/%s", dir, name);
    int rc = dnn_weights_save(path, m->prog, &order, about, get_weights, m, err);

    if (rc == 0) dnn_buf_add(saved, ", %s", path);
    if (rc == DNN_ECONFIG) {
        dnn_log(DNN_WARN, "train", "%s is not written: %s", name, err->text);
        *err = (struct dnn_err){0};
        rc = 0;
    }
    dnn_free(path);
    return rc;
}

int dnn_model_save(struct dnn_model *model, const char *dir, const char *network,
                   const char *scaling, struct dnn_err *err)
{
    struct dnn_buf text = {0}, saved = {0};
    struct dnn_err why = {0};
    bool keras = dnn_graph_write(model->graph, &text, &why) == 0;
    const struct dnn_weights_about about = {keras ? text.text : NULL, scaling};
    char *path = dnn_format("%s/model.json", dir);

    if (!keras)
        dnn_log(DNN_WARN, "train",
                "model.keras is not written, and model.json is the network as it was "
                "given: %s",
                why.text);
    if (keras) network = text.text;
    int rc = dnn_file_write(path, network, strlen(network), err);
    if (rc == 0) rc = save(model, dir, "model.weights.h5", &about, &saved, err);
    if (rc == 0 && keras) rc = save(model, dir, "model.keras", &about, &saved, err);
    if (rc == 0)
        dnn_log(DNN_INFO, "train", "saved the network: %s%s", path,
                saved.text == NULL ? "" : saved.text);
    dnn_free(path);
    dnn_buf_free(&text);
    dnn_buf_free(&saved);
    return rc;
}
