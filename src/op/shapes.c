/* shapes.c - shape inference: the outputs of each kind of op from its inputs.
 *
 * Layers have rejected wrong shapes with a message; here a mismatch is a bug and
 * asserts.
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

static struct dnn_tensor like(const struct dnn_tensor *x)
{
    return (struct dnn_tensor){.dtype = x->dtype, .shape = x->shape};
}

int dnn_shape_same(const union dnn_attr *attr, int nin,
                   const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    (void)attr;
    expect(nin >= 1);
    out[0] = like(in[0]);
    return 1;
}

/* A bias must have one element per channel of the result. */
static void expect_bias(int nin, const struct dnn_tensor *const *in,
                        const struct dnn_tensor *y)
{
    if (nin < 3 || in[2] == NULL) return;
    expect(in[2]->shape.ndim == 1 &&
           in[2]->shape.dim[0] == y->shape.dim[y->shape.ndim - 1]);
}

int dnn_shape_matmul(const union dnn_attr *attr, int nin,
                     const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    const struct dnn_shape *w = &in[1]->shape;

    (void)attr;
    expect((nin == 2 || nin == 3) && w->ndim == 2 && in[0]->shape.ndim >= 1);
    out[0] = like(in[0]);
    int64_t *last = &out[0].shape.dim[out[0].shape.ndim - 1];
    expect(*last == w->dim[0]);
    *last = w->dim[1];
    expect_bias(nin, in, out);
    return 1;
}

int dnn_shape_conv(const union dnn_attr *attr, int nin,
                   const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    const struct dnn_op_window *a = &attr->window;
    const struct dnn_shape *w = &in[1]->shape;
    int n = a->nspatial;

    expect((nin == 2 || nin == 3) && n >= 1 && n <= DNN_MAX_SPATIAL);
    expect(in[0]->shape.ndim == n + 2 && w->ndim == n + 2);
    out[0] = like(in[0]);
    struct dnn_shape *y = &out[0].shape;
    for (int i = 0; i < n; i++) {
        expect(w->dim[i] == a->kernel[i]);
        y->dim[i + 1] = dnn_op_window_out(y->dim[i + 1], a->kernel[i], a->stride[i],
                                          a->dilation[i], a->before[i], a->after[i]);
        expect(y->dim[i + 1] > 0);
    }
    int64_t c = y->dim[n + 1];
    expect(a->groups > 0 && c % a->groups == 0);
    expect(w->dim[n] == c / a->groups || (a->groups == c && w->dim[n] == c));
    /* Both layouts of a depthwise kernel have the same number of elements. */
    y->dim[n + 1] = w->dim[n] * w->dim[n + 1] * a->groups / c;
    expect_bias(nin, in, out);
    return 1;
}

int dnn_shape_deconv(const union dnn_attr *attr, int nin,
                     const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    const struct dnn_op_window *a = &attr->window;
    const struct dnn_shape *w = &in[1]->shape;
    int n = a->nspatial;

    expect((nin == 2 || nin == 3) && n >= 1 && n <= DNN_MAX_SPATIAL);
    expect(a->groups == 1);
    expect(in[0]->shape.ndim == n + 2 && w->ndim == n + 2);
    out[0] = like(in[0]);
    struct dnn_shape *y = &out[0].shape;
    for (int i = 0; i < n; i++) {
        expect(w->dim[i] == a->kernel[i]);
        y->dim[i + 1] =
            dnn_op_transposed_out(y->dim[i + 1], a->kernel[i], a->stride[i],
                                  a->dilation[i], a->before[i], a->after[i]);
        expect(y->dim[i + 1] > 0);
    }
    expect(w->dim[n + 1] == y->dim[n + 1]);
    y->dim[n + 1] = w->dim[n];
    expect_bias(nin, in, out);
    return 1;
}

int dnn_shape_pool(const union dnn_attr *attr, int nin,
                   const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    const struct dnn_op_window *a = &attr->pool.win;
    int64_t taps = 1;

    expect(nin == 1 && in[0]->shape.ndim == a->nspatial + 2);
    out[0] = like(in[0]);
    for (int i = 0; i < a->nspatial; i++) {
        int64_t *d = &out[0].shape.dim[i + 1];
        expect(a->dilation[i] == 1);
        expect(a->before[i] < a->kernel[i] && a->after[i] < a->kernel[i]);
        *d = dnn_op_window_out(*d, a->kernel[i], a->stride[i], 1, a->before[i],
                               a->after[i]);
        expect(*d > 0);
        taps *= a->kernel[i];
    }
    if (attr->pool.fn != DNN_POOL_MAX || !attr->pool.index) return 1;
    out[1] = out[0];
    out[1].dtype = taps <= 256 ? DNN_U8 : taps <= 65536 ? DNN_U16 : DNN_I32;
    return 2;
}

int dnn_shape_upsample(const union dnn_attr *attr, int nin,
                       const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    expect(nin == 1 && in[0]->shape.ndim == attr->upsample.nspatial + 2);
    out[0] = like(in[0]);
    for (int i = 0; i < attr->upsample.nspatial; i++) {
        expect(attr->upsample.factor[i] > 0);
        out[0].shape.dim[i + 1] *= attr->upsample.factor[i];
    }
    return 1;
}

int dnn_shape_pad(const union dnn_attr *attr, int nin,
                  const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    expect(nin == 1);
    out[0] = like(in[0]);
    for (int i = 0; i < out[0].shape.ndim; i++) {
        out[0].shape.dim[i] += attr->pad.before[i] + attr->pad.after[i];
        expect(out[0].shape.dim[i] > 0);
    }
    return 1;
}

int dnn_shape_combine(const union dnn_attr *attr, int nin,
                      const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    expect(nin >= 1 && (attr->combine.fn != DNN_SUBTRACT || nin == 2));
    out[0] = like(in[0]);
    for (int i = 1; i < nin; i++) {
        struct dnn_shape both;
        bool fits = dnn_op_broadcast(&out[0].shape, &in[i]->shape, &both);
        expect(fits);
        if (fits) out[0].shape = both;
    }
    return 1;
}

int dnn_shape_concat(const union dnn_attr *attr, int nin,
                     const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    int axis = attr->concat.axis;

    expect(nin >= 1 && axis >= 0 && axis < in[0]->shape.ndim);
    out[0] = like(in[0]);
    for (int i = 1; i < nin; i++) {
        expect(in[i]->shape.ndim == in[0]->shape.ndim);
        for (int j = 0; j < in[0]->shape.ndim; j++)
            expect(j == axis || in[i]->shape.dim[j] == in[0]->shape.dim[j]);
        out[0].shape.dim[axis] += in[i]->shape.dim[axis];
    }
    return 1;
}

int dnn_shape_reshape(const union dnn_attr *attr, int nin,
                      const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    int64_t before = 0, after = 0;

    expect(nin == 1);
    out[0] = like(in[0]);
    out[0].shape = attr->reshape.shape;
    if (dnn_shape_count(&in[0]->shape, &before, NULL) == 0 &&
        dnn_shape_count(&out[0].shape, &after, NULL) == 0)
        expect(before == after);
    return 1;
}

int dnn_shape_transpose(const union dnn_attr *attr, int nin,
                        const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    unsigned seen = 0;

    expect(nin == 1);
    out[0] = like(in[0]);
    for (int i = 0; i < out[0].shape.ndim; i++) {
        int from = attr->transpose.perm[i];
        expect(from >= 0 && from < out[0].shape.ndim && (seen >> from & 1) == 0);
        seen |= 1u << from;
        out[0].shape.dim[i] = in[0]->shape.dim[from];
    }
    return 1;
}

int dnn_shape_reduce(const union dnn_attr *attr, int nin,
                     const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    const struct dnn_shape *x = &in[0]->shape;
    struct dnn_shape y = {0};

    expect(nin == 1);
    for (int i = 0; i < x->ndim; i++) {
        bool over = attr->reduce.axes >> i & 1;
        if (!over) y.dim[y.ndim++] = x->dim[i];
        if (over && attr->reduce.keepdims) y.dim[y.ndim++] = 1;
    }
    out[0] = like(in[0]);
    out[0].shape = y;
    return 1;
}

int dnn_shape_bn_stats(const union dnn_attr *attr, int nin,
                       const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    expect(nin == 1 && attr->batchnorm.axis < in[0]->shape.ndim);
    out[0] = (struct dnn_tensor){
        .dtype = DNN_F64,
        .shape = {.ndim = 1, .dim = {2 * in[0]->shape.dim[attr->batchnorm.axis] + 1}}
    };
    return 1;
}

int dnn_shape_none(const union dnn_attr *attr, int nin,
                   const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    (void)attr, (void)nin, (void)in, (void)out;
    return 0;
}

int dnn_shape_groupnorm(const union dnn_attr *attr, int nin,
                        const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    const struct dnn_op_groupnorm *a = &attr->groupnorm;
    const struct dnn_shape *x = &in[0]->shape;
    int64_t n = a->groups;

    expect(nin == 3 && a->groups > 0 && x->dim[x->ndim - 1] % a->groups == 0);
    expect(a->groups == 1 || a->axes >> (x->ndim - 1) & 1);
    out[0] = like(in[0]);
    if (!a->save) return 1;
    for (int i = 0; i < x->ndim; i++)
        if ((a->axes >> i & 1) == 0) n *= x->dim[i];
    out[1] = like(in[0]);
    out[1].shape = (struct dnn_shape){
        .ndim = 2, .dim = {2, n}
    };
    return 2;
}

int dnn_shape_activity(const union dnn_attr *attr, int nin,
                       const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    (void)attr;
    expect(nin == 1);
    out[0] = like(in[0]);
    out[1] = like(in[0]);
    out[1].shape = (struct dnn_shape){.ndim = 0};
    return 2;
}

/* Folded weights of the same shape, and a bias for the channels of the result. */
int dnn_shape_fold(const union dnn_attr *attr, int nin,
                   const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    const struct dnn_shape *w = &in[0]->shape;
    int64_t c = attr->fold.depthwise ? w->dim[w->ndim - 2] * w->dim[w->ndim - 1]
                                     : w->dim[attr->fold.axis];

    expect(nin == 6 && in[2]->shape.ndim == 1 && in[2]->shape.dim[0] == c);
    (void)c;
    out[0] = like(in[0]);
    out[1] = like(in[0]);
    out[1].shape = in[2]->shape;
    return 2;
}

int dnn_shape_penalty(const union dnn_attr *attr, int nin,
                      const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    (void)attr, (void)in;
    expect(nin == 1);
    out[0] = (struct dnn_tensor){.dtype = DNN_F64, .shape = {.ndim = 0}};
    return 1;
}

int dnn_shape_unary(const union dnn_attr *attr, int nin,
                    const struct dnn_tensor *const *in, struct dnn_tensor *out)
{
    int64_t n = 1;

    expect(nin == 1);
    out[0] = like(in[0]);
    if (!attr->unary.mask) return 1;
    expect(attr->unary.fn == DNN_RELU && attr->unary.threshold == 0);
    for (int i = 0; i < in[0]->shape.ndim; i++)
        n *= in[0]->shape.dim[i];
    out[1] = (struct dnn_tensor){
        .dtype = DNN_U8, .shape = {.ndim = 1, .dim = {(n + 7) / 8}}
    };
    return 2;
}
