/* copy.c - upsample, pad, concatenate, reshape, transpose.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/ref/ref_impl.h"

#include <math.h>
#include <string.h>

enum { CORNERS = 1 << DNN_MAX_SPATIAL };

/* The input elements that contribute to output element e, and their weights; returns
 * their number. Pixel i has its centre at i + 0.5. */
static int corners(const struct dnn_op_upsample *u, const struct dnn_shape *in,
                   int64_t e, int64_t at[CORNERS], double weight[CORNERS])
{
    int64_t step = 1;
    int n = 1;

    at[0] = 0;
    weight[0] = 1;
    for (int axis = in->ndim - 1; axis >= 0; axis--) {
        bool spatial = axis >= 1 && axis <= u->nspatial;
        int64_t f = spatial ? u->factor[axis - 1] : 1;
        int64_t o = e % (in->dim[axis] * f), low = o / f;
        double frac = 0;
        e /= in->dim[axis] * f;
        if (u->fn == DNN_UP_LINEAR && f > 1) {
            double position = ((double)o + 0.5) / (double)f - 0.5;
            low = (int64_t)floor(position);
            frac = position - (double)low;
            if (low < 0 || low == in->dim[axis] - 1) frac = 0;
            if (low < 0) low = 0;
        }
        for (int i = 0; i < n; i++) {
            if (frac > 0) {
                at[n + i] = at[i] + (low + 1) * step;
                weight[n + i] = weight[i] * frac;
            }
            at[i] += low * step;
            weight[i] *= 1 - frac;
        }
        if (frac > 0) n *= 2;
        step *= in->dim[axis];
    }
    return n;
}

void dnn_ref_upsample(const struct ref_call *c)
{
    const struct ref_array *x = &c->in[0], *y = &c->out[0];
    int64_t at[CORNERS];
    double weight[CORNERS];

    for (int64_t e = 0; e < y->count; e++) {
        int n = corners(&c->op->attr.upsample, &x->shape, e, at, weight);
        double sum = 0;
        for (int i = 0; i < n; i++)
            sum += weight[i] * get(x, at[i]);
        set(y, e, sum);
    }
}

void dnn_ref_upsample_data(const struct ref_call *c)
{
    const struct ref_array *dy = &c->in[0], *dx = &c->out[0];
    int64_t at[CORNERS];
    double weight[CORNERS];

    clear(c->work, dx->count);
    for (int64_t e = 0; e < dy->count; e++) {
        int n = corners(&c->op->attr.upsample, &dx->shape, e, at, weight);
        for (int i = 0; i < n; i++)
            c->work[at[i]] += weight[i] * get(dy, e);
    }
    store(dx, c->work);
}

/* b is a with padding of sign * before at the start of each axis (negative: cropped).
 * *at becomes the position in a of element e of b; false: outside a. */
static bool inside(const struct dnn_shape *b, const struct dnn_shape *a,
                   const int64_t *before, int sign, int64_t e, int64_t *at)
{
    int64_t step = 1;

    *at = 0;
    for (int i = b->ndim - 1; i >= 0; i--) {
        int64_t from = e % b->dim[i] - sign * before[i];
        e /= b->dim[i];
        if (from < 0 || from >= a->dim[i]) return false;
        *at += from * step;
        step *= a->dim[i];
    }
    return true;
}

void dnn_ref_pad(const struct ref_call *c)
{
    const struct ref_array *x = &c->in[0], *y = &c->out[0];
    int64_t at;

    for (int64_t e = 0; e < y->count; e++) {
        bool in = inside(&y->shape, &x->shape, c->op->attr.pad.before, 1, e, &at);
        set(y, e, in ? get(x, at) : 0);
    }
}

void dnn_ref_pad_data(const struct ref_call *c)
{
    const struct ref_array *dy = &c->in[0], *dx = &c->out[0];
    int64_t at;

    for (int64_t e = 0; e < dx->count; e++) {
        bool in = inside(&dx->shape, &dy->shape, c->op->attr.pad.before, -1, e, &at);
        set(dx, e, in ? get(dy, at) : 0);
    }
}

/* Copy between whole and part, which is its slice from start on along an axis; out:
 * from whole to part. */
static void copy_slice(const struct ref_array *whole, const struct ref_array *part,
                       int axis, int64_t start, bool out)
{
    struct ref_axis w = dnn_ref_axis(&whole->shape, axis);
    struct ref_axis p = dnn_ref_axis(&part->shape, axis);

    for (int64_t e = 0; e < part->count; e++) {
        int64_t inner = e % p.inner, j = e / p.inner % p.n, outer = e / p.inner / p.n;
        int64_t at = (outer * w.n + start + j) * w.inner + inner;
        if (out)
            set(part, e, get(whole, at));
        else
            set(whole, at, get(part, e));
    }
}

void dnn_ref_concat(const struct ref_call *c)
{
    int axis = c->op->attr.concat.axis;
    int64_t start = 0;

    for (int i = 0; i < c->op->nin; i++) {
        copy_slice(&c->out[0], &c->in[i], axis, start, false);
        start += c->in[i].shape.dim[axis];
    }
}

void dnn_ref_concat_data(const struct ref_call *c)
{
    const struct dnn_op_concat *a = &c->op->attr.concat;

    copy_slice(&c->in[0], &c->out[0], a->axis, a->start, true);
}

void dnn_ref_reshape(const struct ref_call *c)
{
    const struct ref_array *x = &c->in[0], *y = &c->out[0];

    if (x->mem != y->mem && x->count > 0)
        memcpy(y->mem, x->mem, (size_t)x->count * dnn_dtype_size(x->dtype));
}

void dnn_ref_transpose(const struct ref_call *c)
{
    const struct ref_array *x = &c->in[0], *y = &c->out[0];
    struct ref_map own = dnn_ref_without(&x->shape, 0);
    struct ref_map map = {.big = y->shape};

    for (int i = 0; i < y->shape.ndim; i++)
        map.step[i] = own.step[c->op->attr.transpose.perm[i]];
    for (int64_t e = 0; e < y->count; e++)
        set(y, e, get(x, dnn_ref_at(&map, e)));
}
