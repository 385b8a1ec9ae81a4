/* figure.h - a drawing of one sample: input, target and prediction side by side.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PICTURE_FIGURE_H
#define DNN_PICTURE_FIGURE_H

#include "base/shape.h"
#include "picture/canvas.h"

/* One array of a sample; of a volume the middle slice is drawn. */
struct dnn_view {
    int64_t height, width, channels;
    const float *value;   /* [height][width][channels]; or NULL                     */
    const int32_t *class; /* [height][width]; or NULL                               */
};

/* The image or middle slice of an array of this shape, channels last; false: not an
 * image.  data NULL: only find out whether it is one. */
bool dnn_figure_view(const struct dnn_shape *shape, const void *data, bool classes,
                     struct dnn_view *out);
/* The predicted class of n scores and its probability; scores are logits,
 * log-probabilities or probabilities. */
int64_t dnn_figure_class(const float *score, int64_t n, double *probability);

struct dnn_figure {
    const struct dnn_view *input, *target, *output; /* each may be NULL            */
    bool classes;     /* target and output are classes                           */
    int64_t nclasses; /* 0: unknown                                              */
    const char *const *class_name; /* or NULL                                        */
    const char *line[2];           /* text below the panels, or NULL                 */
    int correct; /* colour of the second line: 1 green, -1 red, 0 default */
};
int dnn_figure_draw(const struct dnn_figure *figure, struct dnn_canvas *out,
                    struct dnn_err *err);

/* An evaluated sample; arrays are channels last. */
struct dnn_figure_sample {
    struct dnn_shape input_shape, target_shape;
    const float *input;            /* or NULL                                        */
    const int32_t *label;          /* the target: classes, or                        */
    const float *value;            /* values, or a score per class                   */
    const float *output;           /* has the spatial axes of the target             */
    int64_t count;                 /* elements of the output                         */
    bool classes;                  /* the output has scores of classes               */
    int64_t nclasses;              /* 0: unknown                                     */
    const char *const *class_name; /* [nclasses], or NULL                            */
};
enum { DNN_FIGURE_CAPTION = 280 };
/* Draw a sample, with a caption such as "target 3, predicted 5 (0.61)".  If neither its
 * input nor its output is an image, nothing is drawn and *out is unchanged. */
int dnn_figure_draw_sample(const struct dnn_figure_sample *sample,
                           struct dnn_canvas *out, char caption[DNN_FIGURE_CAPTION],
                           struct dnn_err *err);

#endif
