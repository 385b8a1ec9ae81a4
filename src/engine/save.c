/* save.c - a network and its weights as files: for Keras 3, and the model file.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "engine/model.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "package/package.h"

#include <stdlib.h>
#include <string.h>

static int get_weights(void *arg, int value, void *to, struct dnn_err *err)
{
    const struct dnn_model *m = arg;

    return dnn_exec_get(m->exec, value, to, err);
}

/* Write a file and add its path to saved. */
static int save(const char *dir, const char *name,
                const struct dnn_package_parts *parts, struct dnn_buf *saved,
                struct dnn_err *err)
{
    char *path = dnn_format("%s/%s", dir, name);
    int rc = strcmp(name, DNN_WEIGHTS_MEMBER) == 0
                 ? dnn_file_write(path, parts->weights, parts->weights_len, err)
                 : dnn_package_write(path, parts, err);

    if (rc == 0) dnn_buf_add(saved, ", %s", path);
    dnn_free(path);
    return rc;
}

/* Write the files that contain weights.  If they cannot be written for a missing
 * library, only a warning is logged. */
static int save_weights(struct dnn_model *m, const char *dir,
                        struct dnn_package_parts *parts, struct dnn_buf *saved,
                        struct dnn_err *err)
{
    static const char *const name[] = {DNN_WEIGHTS_MEMBER, "model.keras", "model.dnn"};
    const struct dnn_graph *g = m->graph;
    const struct dnn_weights_order order = {g->nlayers, g->layer_name, g->layer_class,
                                            g->layer_model};
    char *weights = NULL;
    int rc = dnn_weights_image(DNN_WEIGHTS_MEMBER, m->prog, &order, parts->scaling,
                               get_weights, m, &weights, &parts->weights_len, err);

    parts->weights = weights;
    for (int i = 0; i < 3 && rc == 0; i++)
        if (i != 1 || parts->keras != NULL) rc = save(dir, name[i], parts, saved, err);
    if (rc == DNN_ECONFIG) {
        dnn_log(DNN_WARN, "train", "files of the trained network are missing: %s",
                err->text);
        *err = (struct dnn_err){0};
        rc = 0;
    }
    free(weights);
    return rc;
}

int dnn_model_save(struct dnn_model *model, const char *dir, const char *network,
                   const char *scaling, const struct dnn_package_info *info,
                   struct dnn_err *err)
{
    struct dnn_buf text = {0}, saved = {0};
    struct dnn_err why = {0};
    bool keras = dnn_graph_write(model->graph, &text, &why) == 0;
    struct dnn_package_parts parts = {.info = *info,
                                      .network = keras ? text.text : network,
                                      .keras = keras ? text.text : NULL,
                                      .scaling = scaling};
    char *path = dnn_format("%s/model.json", dir);

    if (!keras)
        dnn_log(DNN_WARN, "train",
                "model.keras is not written, and model.json is the network as it was "
                "given: %s",
                why.text);
    int rc = dnn_file_write(path, parts.network, strlen(parts.network), err);
    if (rc == 0) rc = save_weights(model, dir, &parts, &saved, err);
    if (rc == 0)
        dnn_log(DNN_INFO, "train", "saved the network: %s%s", path,
                saved.text == NULL ? "" : saved.text);
    dnn_free(path);
    dnn_buf_free(&text);
    dnn_buf_free(&saved);
    return rc;
}
