/* picture.c - PNG files: an image or the middle plane of a volume, its classes, and
 * classes over the input.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "output/output_impl.h"

#include "picture/canvas.h"
#include "picture/png.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The range of n values, except those that are infinite or NaN. */
static void range_of(const float *value, int64_t n, float *low, float *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(value[i])) {
            *low = fminf(*low, value[i]);
            *high = fmaxf(*high, value[i]);
        }
}

/* A value in the range as 0 to 255. */
static unsigned char byte_of(float value, float low, float high)
{
    if (!(value > low)) return 0;
    if (value >= high) return 255;
    /* The difference of two floats may be too large for a float. */
    double part = ((double)value - (double)low) / ((double)high - (double)low);
    return (unsigned char)lrint(255 * part);
}

static void size_of(const struct output_layout *l, int *width, int *height)
{
    *height = (int)l->shape.dim[0];
    *width = (int)l->shape.dim[1];
}

/* ---- input of overlays ---- */

static int check_input(const struct dnn_output *out, int part, int64_t sample,
                       const struct dnn_shape *shape, int64_t plane,
                       struct dnn_err *err)
{
    const struct dnn_shape *is = &out->sample[sample].shape[out->part[part].k];
    char a[DNN_SHAPE_TEXT], b[DNN_SHAPE_TEXT], text[DNN_OUTPUT_NAME];
    bool same = shape->ndim == is->ndim && shape->dim[is->ndim - 1] > 0;

    for (int i = 0; i < is->ndim - 1; i++)
        same = same && shape->dim[i] == is->dim[i];
    if (!same)
        return dnn_fail(err, DNN_EDATA,
                        "%s: an output of %s cannot be drawn over an input of %s; an "
                        "overlay needs the same spatial axes",
                        dnn_output_text(out, sample, text, sizeof text),
                        dnn_shape_text(b, sizeof b, is),
                        dnn_shape_text(a, sizeof a, shape));
    if (plane < 0 || plane == dnn_output_plane(is)) return 0;
    return dnn_fail(err, DNN_EDATA,
                    "%s: plane %" PRId64 " of the input; the overlay needs %" PRId64,
                    dnn_output_text(out, sample, text, sizeof text), plane,
                    dnn_output_plane(is));
}

int dnn_output_below(struct dnn_output *out, int part, int64_t sample,
                     const struct dnn_shape *shape, int64_t plane, const float *value,
                     struct dnn_err *err)
{
    int64_t channels = shape->dim[shape->ndim - 1];
    struct output_store store;
    struct output_layout l;
    float low, high;

    DNN_TRY(check_input(out, part, sample, shape, plane, err));
    dnn_output_layout(out, part, sample, &l);
    int64_t pixels = l.bytes / 3;
    if (plane < 0 && shape->ndim == 4)
        value += dnn_output_plane(shape) * pixels * channels;
    range_of(value, pixels * channels, &low, &high);
    unsigned char *rgb = dnn_alloc((size_t)l.bytes);
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t c = 0; c < 3; c++) /* gray, unless there are colours */
            rgb[3 * i + c] =
                byte_of(value[i * channels + (channels >= 3 ? c : 0)], low, high);
    int rc = dnn_output_take(out, part, sample, &store, err);
    if (rc == 0) {
        rc =
            dnn_output_write(store.fd, store.path, rgb, (size_t)l.bytes, store.at, err);
        dnn_output_give(out, &store);
    }
    dnn_free(rgb);
    return rc;
}

/* ---- files ---- */

static int values_picture(const struct output_layout *l, const char *path,
                          const void *data, struct dnn_err *err)
{
    const float *value = data;
    int64_t n = l->bytes / (int64_t)sizeof *value;
    unsigned char *bytes = dnn_alloc((size_t)n);
    float low, high;
    int width, height;

    size_of(l, &width, &height);
    range_of(value, n, &low, &high);
    for (int64_t i = 0; i < n; i++)
        bytes[i] = byte_of(value[i], low, high);
    int rc = dnn_png_save(path, l->channels == 3 ? DNN_PNG_RGB : DNN_PNG_GREY, width,
                          height, bytes, err);
    dnn_free(bytes);
    return rc;
}

/* Class 0, usually the background, shows the input as it is. */
static void blend(const unsigned char *class, int64_t n, unsigned char *rgb)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t colour = dnn_canvas_class(class[i]);

        for (int c = 0; c < 3 && class[i] != 0; c++)
            rgb[3 * i + c] =
                (unsigned char)((rgb[3 * i + c] + (colour >> (16 - 8 * c) & 255)) / 2);
    }
}

static int overlay_picture(struct dnn_output *out, int part, int64_t sample,
                           const struct output_layout *l, const char *path,
                           const void *classes, struct dnn_err *err)
{
    unsigned char *rgb = dnn_alloc(3 * (size_t)l->bytes);
    int width, height;

    size_of(l, &width, &height);
    /* The input is the next part. */
    int rc =
        dnn_output_read_part(out, part + 1, sample, rgb, 3 * (size_t)l->bytes, err);
    if (rc == 0) {
        blend(classes, l->bytes, rgb);
        rc = dnn_png_save(path, DNN_PNG_RGB, width, height, rgb, err);
    }
    dnn_free(rgb);
    return rc;
}

int dnn_output_picture(struct dnn_output *out, int part, int64_t sample,
                       const char *path, struct dnn_err *err)
{
    const struct output_part *p = &out->part[part];
    struct output_layout l;
    int width, height;

    dnn_output_layout(out, part, sample, &l);
    size_of(&l, &width, &height);
    void *data = dnn_alloc((size_t)l.bytes);
    int rc = dnn_output_read_part(out, part, sample, data, (size_t)l.bytes, err);
    if (rc == 0 && p->format == DNN_OUTPUT_OVERLAY)
        rc = overlay_picture(out, part, sample, &l, path, data, err);
    else if (rc == 0 && p->what == OUTPUT_CLASSES)
        rc = dnn_png_save(path, DNN_PNG_CLASSES, width, height, data, err);
    else if (rc == 0)
        rc = values_picture(&l, path, data, err);
    dnn_free(data);
    return rc;
}
