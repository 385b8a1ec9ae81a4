/* shapes_loss.c - shape rules of losses.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "op/shapes_impl.h"

#include <assert.h>

static void expect(bool fits)
{
    assert(fits);
    (void)fits;
}

static const struct dnn_tensor scalar = {.dtype = DNN_F64, .shape = {.ndim = 0}};

static int64_t last(const struct dnn_tensor *x)
{
    return x->shape.dim[x->shape.ndim - 1];
}

/* A target has x's shape, or one label per row. */
static void expect_target(const struct dnn_tensor *x, const struct dnn_tensor *t)
{
    expect(t->shape.ndim == x->shape.ndim || t->shape.ndim == x->shape.ndim - 1);
    for (int i = 0; i < t->shape.ndim; i++)
        expect(t->shape.dim[i] == x->shape.dim[i]);
}

static void expect_weights(int nin, const struct dnn_tensor *const *in, int i,
                           int64_t classes)
{
    if (nin <= i || in[i] == NULL) return;
    expect(in[i]->shape.ndim == 1 && in[i]->shape.dim[0] == classes);
    (void)classes;
}

int dnn_shape_loss(const union dnn_attr *attr, int nin,
                   const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    (void)attr;
    expect(nin == 2 || nin == 4);
    expect_target(in[0], in[1]);
    if (nin > 2) expect_weights(nin, in, 2, last(in[0]));
    expect(nin < 4 || in[3] == NULL || in[3]->shape.dim[0] == 2);
    out[0] = scalar;
    return 1;
}

int dnn_shape_weigh(const union dnn_attr *attr, int nin,
                    const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    expect(nin == 2 && attr->loss.classes > 0);
    expect_weights(nin, in, 1, attr->loss.classes);
    out[0] = (struct dnn_tensor){
        .dtype = DNN_F64, .shape = {.ndim = 1, .dim = {2}}
    };
    return 1;
}

int dnn_shape_overlap(const union dnn_attr *attr, int nin,
                      const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    bool whole = attr->overlap.whole;

    expect(nin == 2 && in[0]->shape.ndim >= 2);
    expect_target(in[0], in[1]);
    out[0] = (struct dnn_tensor){
        .dtype = DNN_F64,
        .shape = {.ndim = 3,
                  .dim = {whole ? 1 : in[0]->shape.dim[0], last(in[0]) + whole, 3}}
    };
    return 1;
}

int dnn_shape_ratio(const union dnn_attr *attr, int nin,
                    const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    expect(nin == 3 && in[0]->shape.ndim == 3);
    expect(dnn_shape_equal(&in[0]->shape, &in[1]->shape));
    expect_weights(nin, in, 2, in[0]->shape.dim[1] - attr->ratio.whole);
    out[0] = scalar;
    return 1;
}

int dnn_shape_lovasz(const union dnn_attr *attr, int nin,
                     const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    expect(nin == 2 && in[0]->shape.ndim >= 2);
    expect(attr->overlap.source != DNN_HEAD_HINGE || last(in[0]) == 1);
    (void)attr;
    expect_target(in[0], in[1]);
    out[0] = scalar;
    out[1] = (struct dnn_tensor){.dtype = in[0]->dtype, .shape = in[0]->shape};
    return 2;
}
