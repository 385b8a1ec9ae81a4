/* augment_mixup.c - mix two samples and their targets.
 *
 * Every input and target becomes l a + (1 - l) b, with l from the Beta distribution
 * with parameters (alpha, alpha).  Class numbers are converted first: a label to a
 * vector, a mask to one channel per class.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform/augment_impl.h"

#include <math.h>
#include <stddef.h>

struct opts {
    double alpha;
};

static const struct dnn_field fields[] = {
    {"alpha", DNN_F_REAL, offsetof(struct opts, alpha), "0.2", 0.001, 1000, NULL,
     "parameter of the Beta distribution; small: mostly one of the two samples; 1: "
     "uniform", NULL},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

static bool has_classes(const struct dnn_column *col)
{
    return col->kind == DNN_KIND_LABEL || col->kind == DNN_KIND_MASK;
}

static int columns(const struct dnn_aug_step *step, int ncols, struct dnn_column *col,
                   struct dnn_err *err)
{
    if (step->side != DNN_AUG_BOTH)
        return dnn_aug_fail(step, err,
                            "list it under \"transforms\", for inputs and targets "
                            "together: it mixes whole samples");
    DNN_TRY(dnn_aug_become_f32(step, ncols, col, err));
    for (int c = 0; c < ncols; c++) {
        if (!dnn_aug_touches(step, &col[c]) || !has_classes(&col[c])) continue;
        if (col[c].classes < 1)
            return dnn_aug_fail(
                step, err,
                "'%s' contains class numbers, but the number of classes is unknown",
                col[c].name);
        if (col[c].shape.ndim == 0) col[c].shape.ndim = 1;
        col[c].shape.dim[col[c].shape.ndim - 1] = col[c].classes;
        col[c].kind = col[c].kind == DNN_KIND_MASK ? DNN_KIND_IMAGE : DNN_KIND_VALUES;
    }
    return 0;
}

/* A random number of the Gamma distribution, by the method of Marsaglia and Tsang. */
static double draw_gamma(struct dnn_draw *draw, double alpha)
{
    const double boost = alpha < 1 ? alpha + 1 : alpha;
    const double d = boost - 1.0 / 3, c = 1 / sqrt(9 * d);

    for (;;) {
        double x = dnn_draw_normal(draw), u = 1 - dnn_draw_real(draw, 0, 1);
        double v = 1 + c * x, less = 1 - dnn_draw_real(draw, 0, 1);

        v = v * v * v;
        if (v <= 0 || log(u) >= 0.5 * x * x + d - d * v + d * log(v)) continue;
        return alpha < 1 ? d * v * pow(less, 1 / alpha) : d * v;
    }
}

static double draw_beta(struct dnn_draw *draw, double alpha)
{
    double a = draw_gamma(draw, alpha), b = draw_gamma(draw, alpha);

    /* For small alpha, both may underflow to 0. */
    return a + b > 0 ? a / (a + b) : (double)dnn_draw_below(draw, 2);
}

/* Convert to f32, and class numbers to one-hot vectors. */
static int to_floats(struct dnn_aug_run *run, int c, struct dnn_array *array,
                     struct dnn_err *err)
{
    if (!has_classes(&run->col[c]))
        return dnn_array_convert(array, DNN_F32, false, err);
    DNN_TRY(dnn_one_hot(array, run->col[c].classes, &run->scratch->spare, err));
    dnn_array_swap(array, &run->scratch->spare);
    return 0;
}

static int apply(const struct dnn_aug_step *step, struct dnn_aug_run *run,
                 struct dnn_err *err)
{
    const struct opts *o = step->opts;
    const double share = draw_beta(&run->draw, o->alpha);

    for (int c = 0; c < run->ncols; c++) {
        struct dnn_array *a = &run->sample->col[c], *b = &run->partner->col[c];
        char one[DNN_SHAPE_TEXT], two[DNN_SHAPE_TEXT];

        if (!dnn_aug_touches(step, &run->col[c])) continue;
        DNN_TRY(to_floats(run, c, a, err));
        DNN_TRY(to_floats(run, c, b, err));
        if (!dnn_shape_equal(&a->shape, &b->shape))
            return dnn_aug_fail(step, err,
                                "'%s' is %s in one sample and %s in the other; resize "
                                "or crop them first",
                                run->col[c].name,
                                dnn_shape_text(one, sizeof one, &a->shape),
                                dnn_shape_text(two, sizeof two, &b->shape));
        float *x = a->data;
        const float *y = b->data;
        for (int64_t k = 0; k < dnn_array_count(a); k++)
            x[k] = (float)(share * x[k] + (1 - share) * y[k]);
    }
    return 0;
}

const struct dnn_aug_kind dnn_aug_mixup = {
    .name = "mixup",
    .params = "alpha",
    .help = "mix with another sample at a random ratio",
    .main = "alpha",
    .scope = DNN_AUG_ALL,
    .random = true,
    .size = sizeof(struct opts),
    .fields = fields,
    .columns = columns,
    .apply = apply,
};
