/* figure.c - samples of a run as figures: input, target and output.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "stage/eval.h"

#include "base/mem.h"

/* Find the first input that is an image, of sample `at` of this rank. */
static int find_input(const struct dnn_stage *stage, const struct dnn_stage_data *data,
                      int64_t at, struct dnn_figure_sample *out, float **input,
                      struct dnn_err *err)
{
    const struct dnn_model *m = dnn_replica_model(stage->replica);
    const struct dnn_column *col;
    int64_t count;

    dnn_feed_columns(data->feed, &col);
    for (int k = 0; k < m->ninputs; k++) {
        const struct dnn_column *c = &col[data->input[k]];
        struct dnn_view view;

        if (c->type != DNN_F32 || !dnn_figure_view(&c->shape, NULL, true, &view))
            continue;
        DNN_TRY(dnn_shape_count(&c->shape, &count, err));
        *input = dnn_alloc((size_t)(count + 1) * sizeof **input);
        out->input = *input;
        out->input_shape = c->shape;
        return dnn_feed_values(data->feed, data->batch, data->input[k], at, 1, *input,
                               err);
    }
    return 0;
}

int dnn_stage_figure(const struct dnn_stage *stage, const struct dnn_stage_data *data,
                     const struct dnn_stage_seen *seen, int64_t i,
                     struct dnn_figure_sample *out, float **input, struct dnn_err *err)
{
    const struct dnn_metric_batch *view = &seen->view;
    const struct dnn_column *col;

    dnn_feed_columns(data->feed, &col);
    col += data->target[0];
    *out = (struct dnn_figure_sample){
        .target_shape = col->shape,
        .count = view->positions * view->channels,
        .nclasses = col->classes > 0 ? col->classes : view->channels,
        .class_name = col->classes > 0 ? col->class_name : NULL};
    out->output = view->output + i * out->count;
    if (view->labels != NULL)
        out->label = view->labels + i * view->positions;
    else
        out->value = view->values + i * out->count;
    return find_input(stage, data, seen->skip + i, out, input, err);
}
