/* plane.c - what is drawn of a sample in tiles: its middle plane, or all of a picture.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "infer/volume_impl.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const int64_t most = 256 << 20; /* bytes of an input or output that is drawn */

void dnn_infer_plane_of(const struct infer_about *about, struct infer_plane *out)
{
    *out = (struct infer_plane){
        .ndim = about->shape.ndim - 1, .extent = {1, 1, 1},
               .points = 1
    };
    for (int d = 0; d < out->ndim; d++)
        out->extent[d] = about->shape.dim[d];
    if (out->ndim == 3) {
        out->start[0] = out->extent[0] / 2;
        out->extent[0] = 1;
    }
    for (int d = 0; d < DNN_WINDOW_DIMS; d++)
        out->points *= out->extent[d];
}

bool dnn_infer_plane_alloc(struct infer_plane *p, const struct infer_about *about)
{
    const int64_t in = about->shape.dim[p->ndim], out = p->channels;
    const int64_t bytes =
        p->points * (in > out ? in : out) * (int64_t)sizeof *p->output;

    p->output = bytes > most ? NULL : malloc((size_t)bytes);
    if (p->output == NULL)
        dnn_log_all(DNN_WARN, "infer",
                    "%s: no picture of it is drawn, which would need %" PRId64
                    " MiB of memory; the limit is %" PRId64 " MiB",
                    about->name, bytes >> 20, most >> 20);
    return p->output != NULL;
}

bool dnn_infer_plane_in(const struct infer_plane *p, const int64_t *start,
                        const int64_t *extent)
{
    /* Along the other axes it has all points. */
    return p->start[0] < start[0] + extent[0] && p->start[0] + p->extent[0] > start[0];
}

int dnn_infer_plane_input(const struct infer_plane *p, struct infer_input *in,
                          int64_t sample, int64_t channels, float **out,
                          struct dnn_err *err)
{
    size_t bytes = (size_t)(p->points * channels) * sizeof **out;

    *out = malloc(bytes);
    if (*out == NULL)
        return dnn_fail(err, DNN_ENOMEM,
                        "the %zu MB of an input that is drawn do not fit into memory",
                        bytes >> 20);
    return dnn_infer_input_box(in, sample, p->start, p->extent, *out, err);
}

void dnn_infer_plane_keep(struct infer_plane *p, const int64_t *start,
                          const int64_t *extent, const float *value)
{
    const int64_t depth = p->ndim == 3 ? extent[2] : 1;
    const int64_t at = p->ndim == 3 ? start[2] : 0, line = depth * p->channels;

    for (int64_t i = 0; i < extent[0]; i++) {
        const int64_t plane = start[0] + i - p->start[0];

        if (plane < 0 || plane >= p->extent[0]) continue;
        for (int64_t j = 0; j < extent[1]; j++) {
            const int64_t row = plane * p->extent[1] + start[1] + j;

            memcpy(p->output + (row * p->extent[2] + at) * p->channels,
                   value + (i * extent[1] + j) * line, (size_t)line * sizeof *value);
        }
    }
}

int dnn_infer_plane_draw(const struct infer_plane *p, struct infer_input *in,
                         const struct infer_about *about, struct infer_worst *worst,
                         int i, struct dnn_err *err)
{
    const int64_t number = worst->list[i].sample;
    struct dnn_figure_sample sample = {.input_shape = about->shape,
                                       .output = p->output,
                                       .count = p->points * p->channels};
    const struct dnn_array *target;
    float *input = NULL;

    memcpy(sample.input_shape.dim, p->extent, (size_t)p->ndim * sizeof *p->extent);
    sample.target_shape = sample.input_shape;
    sample.target_shape.dim[p->ndim] =
        worst->r->task == DNN_EVALUATE_VALUES ? p->channels : 1;
    int rc = dnn_infer_target_box(in, number, p->start, p->extent, &target, err);
    if (rc == 0)
        rc = dnn_infer_plane_input(p, in, number, about->shape.dim[p->ndim], &input,
                                   err);
    if (rc == 0) {
        sample.input = input;
        if (worst->r->task == DNN_EVALUATE_VALUES)
            sample.value = target->data;
        else
            sample.label = target->data;
        dnn_infer_worst_save(worst, i, &sample);
    }
    free(input);
    return rc;
}
