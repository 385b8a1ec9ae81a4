/* model.c - the trained network as files: model.json, model.weights.h5 and
 * model.keras.
 *
 * Keras can read them, and another run can use them as "layers" and checkpoints.load.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/train_impl.h"

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "data/dataset.h"

#include <string.h>

static void put_numbers(struct dnn_buf *out, const char *key, int n, const double *x)
{
    dnn_buf_add(out, ", \"%s\": [", key);
    for (int k = 0; k < n; k++)
        dnn_buf_add(out, "%s%.17g", k == 0 ? "" : ", ", x[k]);
    dnn_buf_add(out, "]");
}

/* Write the steps by which the dataset was prepared. */
static void put_steps(struct dnn_buf *out, const char *provenance)
{
    struct dnn_json *file = NULL;

    if (provenance == NULL ||
        dnn_json_text("dataset", provenance, strlen(provenance), &file, NULL) < 0)
        return;
    struct dnn_jobj top = dnn_json_top(file);
    struct dnn_jobj steps = dnn_json_sub(&top, "steps");
    char *text = dnn_json_compact(&steps);
    if (text != NULL) dnn_buf_add(out, ", \"preparation\": %s", text);
    dnn_free(text);
    dnn_json_free(file);
}

/* How the inputs of the network were scaled, as JSON (docs/run-directory.md); the
 * caller owns it: dnn_free().  NULL: the samples are not from a dataset. */
static char *scaling(const struct train_run *t)
{
    struct dnn_model *m = dnn_replica_model(t->stage->replica);
    const struct dnn_split *split =
        t->stage->train.feed == NULL ? NULL : dnn_feed_split(t->stage->train.feed);
    struct dnn_buf out = {0};

    if (split == NULL) return NULL;
    dnn_buf_add(&out, "{\"inputs\": {");
    for (int i = 0; i < m->ninputs; i++) {
        const struct dnn_stored *is = &split->col[t->stage->train.input[i]];
        const double one = 1, zero = 0;

        dnn_buf_add(&out, "%s", i == 0 ? "" : ", ");
        dnn_json_quoted(&out, m->graph->node[m->graph->input[i]].name);
        dnn_buf_add(&out, ": {\"column\": ");
        dnn_json_quoted(&out, is->column.name);
        dnn_buf_add(&out, ", \"stored\": \"%s\"", dnn_dtype_name(is->column.type));
        put_numbers(&out, "scale", is->nscale == 0 ? 1 : is->nscale,
                    is->nscale == 0 ? &one : is->scale);
        put_numbers(&out, "offset", is->nscale == 0 ? 1 : is->nscale,
                    is->nscale == 0 ? &zero : is->offset);
        dnn_buf_add(&out, "}");
    }
    dnn_buf_add(&out, "}");
    put_steps(&out, dnn_feed_provenance(t->stage->train.feed));
    dnn_buf_add(&out, "}");
    return out.text;
}

int dnn_trainer_write_model(const struct train_run *t, bool ema, struct dnn_err *err)
{
    int rc = 0;

    if (t->root) {
        char *inputs = scaling(t);

        if (ema)
            dnn_log(DNN_INFO, "train",
                    "the saved weights are their exponential moving average (EMA)");
        rc = dnn_model_save(dnn_replica_model(t->stage->replica), dnn_config_dir(t->config),
                            t->network, inputs, err);
        dnn_free(inputs);
    }
    return dnn_comm_agree(t->comm, rc, err);
}
