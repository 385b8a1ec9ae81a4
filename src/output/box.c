/* box.c - conversion of a box, written where its values are.
 *
 * The values are converted in the order of the file into a small buffer, which is
 * written when the next value has another place: the memory does not depend on the size
 * of the box.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "output/output_impl.h"

#include <string.h>

enum { BUFFER = 1 << 20 };

/* An axis of a box: of the spatial axes and channels, those with more than one point.
 */
struct axis {
    int64_t n, from, to; /* points; strides in the box and in the file, in elements  */
};

struct box {
    const float *value;
    struct axis axis[DNN_MAX_DIMS]; /* the slowest in the file first                 */
    int naxes;
    int64_t first;    /* place of the first element                                  */
    int64_t channels; /* of the output                                               */
    bool classes;
    double threshold;
    enum dnn_dtype type;
};

/* What is not yet written. */
struct sink {
    const struct output_store *store;
    unsigned char *bytes; /* cap bytes                                               */
    size_t fill, cap;
    int64_t at; /* place of the first byte                                           */
};

/* ---- values ---- */

static int64_t class_of(const struct box *b, const float *x)
{
    int64_t best = 0;

    if (b->channels == 1) return (double)x[0] > b->threshold;
    for (int64_t c = 1; c < b->channels; c++)
        if (x[c] > x[best]) best = c;
    return best;
}

static void store_classes(const struct box *b, const float *x, int64_t stride,
                          int64_t n, void *to)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t class = class_of(b, x + i * stride);

        if (b->type == DNN_U8)
            ((uint8_t *)to)[i] = (uint8_t)class;
        else if (b->type == DNN_U16)
            ((uint16_t *)to)[i] = (uint16_t)class;
        else
            ((int32_t *)to)[i] = (int32_t)class;
    }
}

static void store_values(const struct box *b, const float *x, int64_t stride, int64_t n,
                         void *to)
{
    if (b->classes)
        store_classes(b, x, stride, n, to);
    else if (b->type == DNN_F16)
        for (int64_t i = 0; i < n; i++)
            ((uint16_t *)to)[i] = dnn_f16_from_f32(x[i * stride]);
    else if (b->type == DNN_F64)
        for (int64_t i = 0; i < n; i++)
            ((double *)to)[i] = (double)x[i * stride];
    else if (stride == 1)
        memcpy(to, x, (size_t)n * sizeof *x);
    else
        for (int64_t i = 0; i < n; i++)
            ((float *)to)[i] = x[i * stride];
}

/* ---- writing ---- */

static int flush(struct sink *s, struct dnn_err *err)
{
    size_t n = s->fill;

    s->fill = 0;
    return dnn_output_write(s->store->fd, s->store->path, s->bytes, n, s->at, err);
}

/* Add n elements that are contiguous in the file from place (in elements). */
static int add_run(const struct box *b, struct sink *s, const float *x, int64_t stride,
                   int64_t n, int64_t place, struct dnn_err *err)
{
    size_t size = dnn_dtype_size(b->type);

    while (n > 0) {
        int64_t at = s->store->at + place * (int64_t)size;
        int64_t fits = (int64_t)((s->cap - s->fill) / size);

        if (s->fill > 0 && (at != s->at + (int64_t)s->fill || fits == 0)) {
            DNN_TRY(flush(s, err));
            continue;
        }
        if (s->fill == 0) s->at = at;
        if (fits > n) fits = n;
        store_values(b, x, stride, fits, s->bytes + s->fill);
        s->fill += (size_t)fits * size;
        x += fits * stride;
        place += fits;
        n -= fits;
    }
    return 0;
}

static int write_axes(const struct box *b, int axis, const float *x, int64_t place,
                      struct sink *s, struct dnn_err *err)
{
    const struct axis *a = &b->axis[axis];

    if (axis == b->naxes) return add_run(b, s, x, 1, 1, place, err);
    if (axis == b->naxes - 1 && a->to == 1)
        return add_run(b, s, x, a->from, a->n, place, err);
    for (int64_t i = 0; i < a->n; i++)
        DNN_TRY(write_axes(b, axis + 1, x + i * a->from, place + i * a->to, s, err));
    return 0;
}

/* ---- axes ---- */

static void add_axis(struct box *b, int64_t n, int64_t from, int64_t to)
{
    int at = b->naxes;

    if (n == 1) return;
    for (; at > 0 && b->axis[at - 1].to < to; at--)
        b->axis[at] = b->axis[at - 1];
    b->axis[at] = (struct axis){n, from, to};
    b->naxes++;
}

/* Join axes that are one in the box and in the file. */
static void join_axes(struct box *b)
{
    int n = 0;

    for (int i = 1; i < b->naxes; i++) {
        struct axis *a = &b->axis[n];
        const struct axis *next = &b->axis[i];

        if (a->to == next->to * next->n && a->from == next->from * next->n)
            *a = (struct axis){a->n * next->n, next->from, next->to};
        else
            b->axis[++n] = *next;
    }
    if (b->naxes > 0) b->naxes = n + 1;
}

/* Only a plane of the box; false: it is not in the box. */
static bool take_plane(struct box *b, const struct dnn_shape *shape,
                       const int64_t *start, const int64_t *extent)
{
    int64_t plane = dnn_output_plane(shape) - start[0], size = b->channels;

    if (plane < 0 || plane >= extent[0]) return false;
    for (int i = 1; i < shape->ndim - 1; i++)
        size *= extent[i];
    b->value += plane * size;
    return true;
}

int dnn_output_box(struct dnn_output *out, int part, int64_t sample,
                   const int64_t *start, const int64_t *extent, const float *value,
                   struct dnn_err *err)
{
    const struct output_part *p = &out->part[part];
    const struct dnn_shape *shape = &out->sample[sample].shape[p->k];
    struct output_store store;
    struct output_layout l;

    dnn_output_layout(out, part, sample, &l);
    struct box b = {.value = value,
                    .channels = shape->dim[shape->ndim - 1],
                    .classes = p->what == OUTPUT_CLASSES,
                    .threshold = out->o.threshold,
                    .type = l.type};
    int64_t from = b.channels;
    int skipped = shape->ndim - 1 - l.nspace;
    if (skipped && !take_plane(&b, shape, start, extent)) return 0;
    for (int i = l.nspace - 1; i >= 0; i--) {
        add_axis(&b, extent[i + skipped], from, l.stride[i]);
        b.first += start[i + skipped] * l.stride[i];
        from *= extent[i + skipped];
    }
    if (!b.classes) add_axis(&b, b.channels, 1, l.stride[l.nspace]);
    join_axes(&b);
    DNN_TRY(dnn_output_take(out, part, sample, &store, err));
    size_t cap = l.bytes < BUFFER ? (size_t)l.bytes : BUFFER;
    struct sink sink = {.store = &store, .bytes = dnn_alloc(cap), .cap = cap};
    int rc = write_axes(&b, 0, b.value, b.first, &sink, err);
    if (rc == 0) rc = flush(&sink, err);
    dnn_free(sink.bytes);
    dnn_output_give(out, &store);
    return rc;
}
