/* transform_geometry.c - extents and geometry of arrays: known small cases, and random
 * ones against plain loops over the definition.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "transform_cases.h"

#include "transform/transform.h"

#include <inttypes.h>

static struct dnn_err err;
static struct dnn_array out; /* reused, as by callers */

#define EXTENT(...) ((const int64_t[]){__VA_ARGS__})
#define SPACING(...) ((const double[]){__VA_ARGS__})

/* The result, or the message. */
static void is_result(int rc, const char *want, const char *what)
{
    is_text(rc < 0 ? err.text : words(&out), want, what);
}

/* ---- the definition, point by point ---- */

/* Any array as z, y, x, c. */
static void extents_of(const struct dnn_array *a, int64_t n[4])
{
    int skip = 4 - a->shape.ndim;

    for (int k = 0; k < 4; k++)
        n[k] = k < skip ? 1 : a->shape.dim[k - skip];
}

static double point(const struct dnn_array *a, const int64_t at[4], double outside)
{
    int64_t n[4];

    extents_of(a, n);
    for (int k = 0; k < 3; k++)
        if (at[k] < 0 || at[k] >= n[k]) return outside;
    return value_of(a, ((at[0] * n[1] + at[1]) * n[2] + at[2]) * n[3] + at[3]);
}

static double linear(const struct dnn_array *a, const double at[3], int64_t c,
                     double outside)
{
    double sum = 0;

    for (int corner = 0; corner < 8; corner++) {
        int64_t is[4] = {0, 0, 0, c};
        double weight = 1;

        for (int k = 0; k < 3; k++) {
            double part = at[k] - floor(at[k]);

            is[k] = (int64_t)floor(at[k]) + (corner >> k & 1);
            weight *= corner >> k & 1 ? part : 1 - part;
        }
        if (weight > 0) sum += weight * point(a, is, outside);
    }
    return sum;
}

static double nearest(const struct dnn_array *a, const double at[3], int64_t c,
                      double outside)
{
    int64_t is[4] = {0, 0, 0, c};

    for (int k = 0; k < 3; k++)
        is[k] = (int64_t)floor(at[k] + 0.5);
    return point(a, is, outside);
}

/* Whether got is want in this type: rounded if whole, near if real. */
static bool is_near(double got, double want, enum dnn_dtype type)
{
    switch (type) {
    case DNN_F64:
        return fabs(got - want) < 1e-12;
    case DNN_F32:
        return fabs(got - want) < 1e-6;
    case DNN_F16:
        return fabs(got - want) < 1e-3;
    case DNN_BF16:
        return fabs(got - want) < 8e-3;
    default:
        return got == floor(got) && fabs(got - want) <= 0.5 + 1e-4;
    }
}

static char *any_shape(char text[64], int nspace)
{
    int at = 0;

    for (int k = 0; k < nspace; k++)
        at += snprintf(text + at, 64 - (size_t)at, "%dx", (int)draw(9) + 1);
    snprintf(text + at, 64 - (size_t)at, "%d", (int)draw(4) + 1);
    return text;
}

/* ---- resize ---- */

static bool resize_agrees(const struct dnn_array *a, const int64_t *extent,
                          enum dnn_interp how)
{
    int64_t n[4], m[4];

    if (dnn_resize(a, extent, how, &out, &err) < 0 || out.type != a->type) return false;
    extents_of(a, n);
    extents_of(&out, m);
    for (int64_t i = 0; i < dnn_array_count(&out); i++) {
        int64_t place[3] = {i / m[3] / m[2] / m[1], i / m[3] / m[2] % m[1],
                            i / m[3] % m[2]};
        double at[3];

        for (int k = 0; k < 3; k++) {
            at[k] = (double)((2 * place[k] + 1) * n[k]) / (double)(2 * m[k]);
            at[k] = how == DNN_INTERP_NEAREST ? floor(at[k]) : at[k] - 0.5;
            if (at[k] < 0) at[k] = 0;
            if (at[k] > (double)(n[k] - 1)) at[k] = (double)(n[k] - 1);
        }
        double want = how == DNN_INTERP_NEAREST ? nearest(a, at, i % m[3], 0)
                                                : linear(a, at, i % m[3], 0);
        if (!is_near(value_of(&out, i), want, a->type)) {
            printf("# %" PRId64 " is %g, not %g\n", i, value_of(&out, i), want);
            return false;
        }
    }
    return true;
}

static void resize_random(void)
{
    for (enum dnn_dtype type = 0; type < DNN_NDTYPES; type++) {
        bool good = true;

        for (int i = 0; i < 60 && good; i++) {
            char text[64];
            int nspace = 1 + (int)draw(3);
            struct dnn_array a = drawn(type, any_shape(text, nspace));
            int64_t extent[3] = {draw(12) + 1, draw(12) + 1, draw(12) + 1};

            for (int k = 0; k < nspace; k++)
                if (draw(4) == 0) extent[k] = a.shape.dim[k];
            good = resize_agrees(&a, extent, DNN_INTERP_NEAREST) &&
                   resize_agrees(&a, extent, DNN_INTERP_LINEAR);
            if (!good) printf("# %s to %s\n", text, words(&out));
            dnn_array_free(&a);
        }
        ok(good, "resize of %s agrees with the definition", dnn_dtype_name(type));
    }
}

static void resize_known(void)
{
    struct dnn_array a = counted(DNN_F32, "2x2x1"), b = counted(DNN_U8, "3x2");

    is_result(dnn_resize(&a, EXTENT(4, 2), DNN_INTERP_LINEAR, &out, &err),
              "4x2x1: 0 1 0.5 1.5 1.5 2.5 2 3",
              "2 rows to 4: aligned at pixel centers");
    is_result(dnn_resize(&a, EXTENT(1, 1), DNN_INTERP_LINEAR, &out, &err), "1x1x1: 1.5",
              "4 pixels to their mean");
    is_result(dnn_resize(&a, EXTENT(3, 3), DNN_INTERP_NEAREST, &out, &err),
              "3x3x1: 0 1 1 2 3 3 2 3 3",
              "nearest: the pixel that contains the center");
    is_result(dnn_resize(&b, EXTENT(6), DNN_INTERP_LINEAR, &out, &err),
              "6x2: 0 1 0 2 2 2 2 4 4 4 4 5", "bytes: ties to even");
    a.spacing[0] = 1.5;
    a.spacing[1] = 2;
    dnn_resize(&a, EXTENT(4, 1), DNN_INTERP_LINEAR, &out, &err);
    ok(out.spacing[0] == 0.75 && out.spacing[1] == 4, "spacing is scaled");
    is_result(dnn_resample(&a, SPACING(0.75, 2), DNN_INTERP_LINEAR, &out, &err),
              "4x2x1: 0 1 0.5 1.5 1.5 2.5 2 3", "to a spacing");
    is_result(dnn_resample(&a, SPACING(100, 2.2), DNN_INTERP_NEAREST, &out, &err),
              "1x2x1: 2 3", "at least one voxel");
    is_result(dnn_resample(&b, SPACING(1), DNN_INTERP_LINEAR, &out, &err),
              "resample: the voxel spacing of axis 0 is unknown", "no spacing");
    is_result(dnn_resample(&a, SPACING(1, 0), DNN_INTERP_LINEAR, &out, &err),
              "resample: spacing 0 of axis 1 must be more than 0", "spacing 0");
    is_result(dnn_resample(&a, SPACING(1e-12, 1), DNN_INTERP_LINEAR, &out, &err),
              "resample: axis 0 would grow to 3000000000000 from 2; the maximum is "
              "1073741824",
              "too many voxels");
    is_result(dnn_resize(&a, EXTENT(4, 0), DNN_INTERP_LINEAR, &out, &err),
              "resize: size 0 of axis 1 must be 1 to 1073741824", "extent 0");
    dnn_array_free(&a);
    a = blank(DNN_U8, "scalar");
    is_result(dnn_resize(&a, EXTENT(4), DNN_INTERP_LINEAR, &out, &err),
              "resize: the array is scalar; it must have 1 to 3 spatial axes and "
              "channels last",
              "a label has no spatial axes");
    dnn_array_free(&a);
    a = blank(DNN_U8, "4x0x1");
    is_result(dnn_resize(&a, EXTENT(4, 4), DNN_INTERP_LINEAR, &out, &err),
              "resize: the array is 4x0x1; every dimension must be 1 to 1073741824",
              "an empty array");
    dnn_array_free(&a);
    dnn_array_free(&b);
}

/* A constant image, and an image resized to its own size, are bitwise unchanged. */
static void resize_keeps(void)
{
    struct dnn_array a = blank(DNN_F32, "5x6x7x2"), b = drawn(DNN_F32, "5x6x7x2");
    bool same = true;

    for (int64_t i = 0; i < dnn_array_count(&a); i++)
        set_value(&a, i, 0.1);
    dnn_resize(&a, EXTENT(9, 4, 11), DNN_INTERP_LINEAR, &out, &err);
    for (int64_t i = 0; i < dnn_array_count(&out); i++)
        same = same && ((float *)out.data)[i] == 0.1f;
    ok(same, "a constant is unchanged");
    dnn_resize(&b, EXTENT(5, 6, 7), DNN_INTERP_LINEAR, &out, &err);
    ok(same_bytes(&b, &out), "the same size: the same bytes");
    dnn_array_free(&a);
    dnn_array_free(&b);
}

/* ---- crop and pad ---- */

static void crop_and_pad(void)
{
    struct dnn_array a = counted(DNN_I16, "3x4x1"), b = counted(DNN_U8, "2x2x3");
    struct dnn_array v = counted(DNN_F64, "2x3x4x1");

    is_result(dnn_crop(&a, EXTENT(1, 2), EXTENT(2, 2), &out, &err), "2x2x1: 6 7 10 11",
              "crop");
    is_result(dnn_crop(&b, EXTENT(1, 0), EXTENT(1, 1), &out, &err), "1x1x3: 6 7 8",
              "crop keeps channels");
    is_result(dnn_crop(&v, EXTENT(1, 1, 0), EXTENT(1, 2, 1), &out, &err),
              "1x2x1x1: 16 20", "crop of a volume");
    is_result(dnn_crop(&a, EXTENT(2, 0), EXTENT(2, 4), &out, &err),
              "crop: size 2 at offset 2 exceeds axis 0 of size 3",
              "crop beyond the end");
    is_result(dnn_crop(&a, EXTENT(0, -1), EXTENT(2, 2), &out, &err),
              "crop: size 2 at offset -1 exceeds axis 1 of size 4",
              "crop before the beginning");
    is_result(dnn_pad(&a, EXTENT(1, 0), EXTENT(0, 1), DNN_PAD_CONSTANT, -3, &out, &err),
              "4x5x1: -3 -3 -3 -3 -3 0 1 2 3 -3 4 5 6 7 -3 8 9 10 11 -3",
              "pad with a value");
    is_result(dnn_pad(&b, EXTENT(0, 1), EXTENT(0, 0), DNN_PAD_EDGE, 0, &out, &err),
              "2x3x3: 0 1 2 0 1 2 3 4 5 6 7 8 6 7 8 9 10 11", "pad with the edge");
    is_result(
        dnn_pad(&a, EXTENT(0, 2), EXTENT(0, 8), DNN_PAD_REFLECT, 0, &out, &err),
        "3x14x1: 2 1 0 1 2 3 2 1 0 1 2 3 2 1 6 5 4 5 6 7 6 5 4 5 6 7 6 5 10 9 8 9 10 "
        "11 10 9 8 9 10 11 10 9",
        "pad by reflection, back and forth");
    is_result(
        dnn_pad(&b, EXTENT(0, 0), EXTENT(1, 0), DNN_PAD_CONSTANT, 256, &out, &err),
        "pad: the value 256 is out of range of u8", "a value out of range of u8");
    is_result(dnn_pad(&b, EXTENT(0, -1), EXTENT(1, 0), DNN_PAD_EDGE, 0, &out, &err),
              "pad: -1 before and 0 after axis 1: must be 0 or more, and the padded "
              "size at most 1073741824 (the axis has 2)",
              "negative padding");
    is_result(dnn_crop(&v, EXTENT(0, 0, 0), EXTENT(2, 3, 4), &out, &err),
              "2x3x4x1: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23",
              "all of it");
    dnn_array_free(&a);
    dnn_array_free(&b);
    dnn_array_free(&v);
}

/* ---- flip and transpose ---- */

static void flips(void)
{
    struct dnn_array a = counted(DNN_U8, "2x3x1"), b = {0};
    bool good = true;

    is_result(dnn_flip(&a, 1, &out, &err), "2x3x1: 3 4 5 0 1 2", "flip the first axis");
    is_result(dnn_flip(&a, 2, &out, &err), "2x3x1: 2 1 0 5 4 3", "flip the second");
    is_result(dnn_flip(&a, 3, &out, &err), "2x3x1: 5 4 3 2 1 0", "flip both");
    is_result(dnn_flip(&a, 4, &out, &err),
              "flip: axes 0x4: the array has 2 spatial axes", "an axis too many");
    dnn_array_free(&a);
    for (int i = 0; i < 200 && good; i++) {
        char text[64];

        a = drawn((enum dnn_dtype)draw(DNN_NDTYPES), any_shape(text, 3));
        if (i == 0) { /* more than a tile */
            dnn_array_free(&a);
            a = drawn(DNN_F32, "3x40x50x1");
        }
        int64_t n[4], at[4], to[4];
        extents_of(&a, n);
        for (int k = 0; k < 4; k++)
            at[k] = draw(n[k]);
        to[3] = at[3];
        unsigned axes = (unsigned)draw(8);
        good = good && dnn_flip(&a, axes, &out, &err) == 0 &&
               dnn_flip(&out, axes, &b, &err) == 0 && same_bytes(&a, &b);
        for (int k = 0; k < 3; k++)
            to[k] = axes >> k & 1 ? n[k] - 1 - at[k] : at[k];
        good = good && point(&out, to, -9) == point(&a, at, -8);
        dnn_array_free(&a);
    }
    ok(good, "flips are their own inverse, and move pixels correctly");
    dnn_array_free(&b);
}

/* ---- warp ---- */

static bool warp_agrees(const struct dnn_array *a, const struct dnn_warp *w)
{
    int64_t n[4];
    int nspace = a->shape.ndim - 1, skip = 3 - nspace;

    if (dnn_warp(a, w, &out, &err) < 0 || out.type != a->type) return false;
    extents_of(a, n);
    for (int64_t i = 0; i < dnn_array_count(&out); i++) {
        int64_t p = i / n[3], place[3] = {p / n[2] / n[1], p / n[2] % n[1], p % n[2]};
        double at[3] = {0};

        for (int k = 0; k < nspace; k++) {
            at[skip + k] = w->shift[k] + (double)(n[skip + k] - 1) / 2;
            for (int j = 0; j < nspace; j++)
                at[skip + k] += w->matrix[k][j] * ((double)place[skip + j] -
                                                   (double)(n[skip + j] - 1) / 2);
            if (w->displacement != NULL)
                at[skip + k] += (double)w->displacement[p * nspace + k];
        }
        double want = w->how == DNN_INTERP_NEAREST ? nearest(a, at, i % n[3], w->fill)
                                                   : linear(a, at, i % n[3], w->fill);
        if (!is_near(value_of(&out, i), want, a->type)) {
            printf("# %" PRId64 " is %g, not %g\n", i, value_of(&out, i), want);
            return false;
        }
    }
    return true;
}

static void warp_random(void)
{
    for (enum dnn_dtype type = 0; type < DNN_NDTYPES; type++) {
        bool good = true;

        for (int i = 0; i < 60 && good; i++) {
            char text[64];
            int nspace = 1 + (int)draw(3);
            struct dnn_array a = drawn(type, any_shape(text, nspace));
            struct dnn_warp w = {.fill = (double)draw(2), .how = i % 2};
            float *field = malloc((size_t)dnn_array_count(&a) * 3 * sizeof *field);

            for (int64_t k = 0; k < dnn_array_count(&a) * 3; k++)
                field[k] = (float)draw(4001) / 1000 - 2;
            for (int k = 0; k < 3; k++) {
                w.shift[k] = (double)draw(2001) / 1000 - 1;
                for (int j = 0; j < 3; j++)
                    w.matrix[k][j] = (k == j) + (double)draw(1001) / 1000 - 0.5;
            }
            if (draw(2) == 0) w.displacement = field;
            good = warp_agrees(&a, &w);
            if (!good) printf("# %s\n", text);
            free(field);
            dnn_array_free(&a);
        }
        ok(good, "warp of %s agrees with the definition", dnn_dtype_name(type));
    }
}

static void warp_known(void)
{
    struct dnn_array a = counted(DNN_U8, "3x3x1");
    struct dnn_warp w = {
        .matrix = {{1, 0}, {0, 1}},
          .how = DNN_INTERP_LINEAR
    };
    float field[18] = {0};

    dnn_warp(&a, &w, &out, &err);
    ok(same_bytes(&a, &out), "the identity");
    struct dnn_warp turn = {
        .matrix = {{0, 1}, {-1, 0}},
          .how = DNN_INTERP_NEAREST
    };
    is_result(dnn_warp(&a, &turn, &out, &err), "3x3x1: 2 5 8 1 4 7 0 3 6",
              "a quarter turn");
    w.shift[1] = 1;
    w.fill = 9;
    is_result(dnn_warp(&a, &w, &out, &err), "3x3x1: 1 2 9 4 5 9 7 8 9", "a shift");
    w.shift[1] = 0.5;
    w.fill = 12;
    is_result(dnn_warp(&a, &w, &out, &err), "3x3x1: 0 2 7 4 4 8 6 8 10",
              "half a pixel outside is half fill");
    w.shift[1] = 0;
    field[0] = NAN;
    field[3] = INFINITY;
    field[17] = 1e30f;
    w.displacement = field;
    is_result(dnn_warp(&a, &w, &out, &err), "3x3x1: 12 12 2 3 4 5 6 7 12",
              "NaN coordinates are outside");
    w.matrix[1][0] = NAN;
    is_result(dnn_warp(&a, &w, &out, &err), "warp: row 1 of the map is not finite",
              "no map");
    w.matrix[1][0] = 0;
    w.fill = 0.5;
    is_result(dnn_warp(&a, &w, &out, &err), "warp: the value 0.5 is out of range of u8",
              "a fill value out of range of u8");
    dnn_array_free(&a);
}

int main(void)
{
    resize_known();
    resize_keeps();
    resize_random();
    crop_and_pad();
    flips();
    warp_known();
    warp_random();
    dnn_array_free(&out);
    return done();
}
