/* transform_augment_each.c - the result of each transform, and its probability.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "transform_augment.h"

static const int64_t volume[3] = {9, 11, 10}, plane[2] = {12, 9};

/* ---- exactly ---- */

/* Inputs of one channel, and the result as text. */
static char *result(const char *list, const char *shape, const double *x,
                    enum dnn_dtype type)
{
    struct dnn_err err = {0};
    struct dnn_augment *a = read_both(list, &err);
    struct dnn_augment_scratch *s = dnn_augment_scratch_make();
    struct dnn_sample sample = {.ncols = 1, .col = {blank(type, shape)}};
    struct dnn_column col =
        column("input", DNN_ROLE_INPUT, DNN_KIND_IMAGE, &sample.col[0]);
    struct dnn_buf out = {0};
    char text[DNN_SHAPE_TEXT];

    for (int64_t i = 0; i < dnn_array_count(&sample.col[0]); i++)
        set_value(&sample.col[0], i, x == NULL ? (double)i : x[i]);
    if (a == NULL ||
        dnn_augment_apply(a, 1, &col, 0, 0, 0, &sample, NULL, s, &err) < 0) {
        dnn_buf_add(&out, "%s", err.text);
    } else {
        dnn_buf_add(&out, "%s %s:", dnn_dtype_name(sample.col[0].type),
                    dnn_shape_text(text, sizeof text, &sample.col[0].shape));
        for (int64_t i = 0; i < dnn_array_count(&sample.col[0]); i++)
            dnn_buf_add(&out, " %.4g", value_of(&sample.col[0], i));
    }
    dnn_sample_free(&sample);
    dnn_augment_scratch_free(s);
    dnn_augment_free(a);
    return out.text;
}

static void is_result(const char *list, const char *shape, const double *x,
                      enum dnn_dtype type, const char *want)
{
    char *got = result(list, shape, x, type);

    is_text(got, want, list);
    dnn_free(got);
}

static void exact(void)
{
    static const double red[] = {255, 128, 0}, grey[] = {0, 1, 3};

    is_result("[{'rotate': 90}]", "3x3x1", NULL, DNN_F32,
              "f32 3x3x1: 6 3 0 7 4 1 8 5 2");
    is_result("[{'rotate': -90}]", "3x3x1", NULL, DNN_F32,
              "f32 3x3x1: 2 5 8 1 4 7 0 3 6");
    is_result("[{'rotate': 180}]", "2x3x1", NULL, DNN_F32, "f32 2x3x1: 5 4 3 2 1 0");
    is_result("[{'rotate': [0, 0, 180]}]", "2x1x2x1", NULL, DNN_F32,
              "f32 2x1x2x1: 2 3 0 1");
    is_result("[{'random_horizontal_flip': 1}]", "2x3x1", NULL, DNN_U8,
              "u8 2x3x1: 2 1 0 5 4 3");
    is_result("[{'random_vertical_flip': 1}]", "2x3x1", NULL, DNN_U8,
              "u8 2x3x1: 3 4 5 0 1 2");
    is_result("[{'random_vertical_flip': 0}]", "2x3x1", NULL, DNN_U8,
              "u8 2x3x1: 0 1 2 3 4 5");
    is_result("[{'center_crop': [1, 2]}]", "3x4x1", NULL, DNN_F32, "f32 1x2x1: 5 6");
    is_result("[{'resize': [1, 2]}]", "2x4x1", NULL, DNN_F32, "f32 1x2x1: 2.5 4.5");
    is_result("[{'random_crop': {'size': [2, 4], 'pad': true}}]", "1x2x1", red, DNN_F32,
              "f32 2x4x1: 0 255 128 0 0 0 0 0");
    is_result("[{'normalize': {'mean': 1, 'std': 0.5}}]", "1x3x1", NULL, DNN_U8,
              "f32 1x3x1: -2 0 2");
    is_result("[{'normalize': {'mean': [1, 2], 'std': 2}}]", "1x2x2", NULL, DNN_F32,
              "f32 1x2x2: -0.5 -0.5 0.5 0.5");
    is_result("[{'gamma': {'low': 2, 'high': 2}}]", "1x3x1", grey, DNN_F32,
              "f32 1x3x1: 0 0.3333 3");
    is_result("[{'contrast': {'low': 2, 'high': 2}}]", "1x3x1", NULL, DNN_F32,
              "f32 1x3x1: -1 1 3");
    is_result("[{'cutout': {'size': [2, 3], 'value': 9}}]", "2x3x1", NULL, DNN_F32,
              "f32 2x3x1: 9 9 9 9 9 9");
}

static void colors(void)
{
    static const double red[] = {255, 128, 0}, hsv[] = {15, 255, 255};
    static const double unit[] = {0.25, 0.5, 0.75};

    is_result("[{'convert_color': 'BGR2RGB'}]", "1x2x3", NULL, DNN_U8,
              "u8 1x2x3: 2 1 0 5 4 3");
    is_result("[{'convert_color': 'rgb2gray'}]", "1x1x3", red, DNN_U8, "u8 1x1x1: 151");
    is_result("[{'convert_color': 'BGR2GRAY'}]", "1x1x3", unit, DNN_F32,
              "f32 1x1x1: 0.5462");
    is_result("[{'convert_color': 'GRAY2RGB'}]", "1x2x1", NULL, DNN_F32,
              "f32 1x2x3: 0 0 0 1 1 1");
    is_result("[{'convert_color': 'RGB2HSV'}]", "1x1x3", red, DNN_U8,
              "u8 1x1x3: 15 255 255");
    is_result("[{'convert_color': 'HSV2RGB'}]", "1x1x3", hsv, DNN_U8,
              "u8 1x1x3: 255 128 0");
    is_result("[{'convert_color': 'RGB2HSV'}]", "1x1x3", unit, DNN_F32,
              "f32 1x1x3: 210 0.6667 0.75");
    is_result("[{'convert_color': 'RGB2HSV'}, {'convert_color': 'HSV2BGR'}]", "1x1x3",
              unit, DNN_F32, "f32 1x1x3: 0.75 0.5 0.25");
    is_result("[{'convert_color': 'BGRA2RGB'}]", "1x1x4", NULL, DNN_F32,
              "f32 1x1x3: 2 1 0");
    is_result("[{'convert_color': 'RGB2RGBA'}]", "1x1x3", NULL, DNN_U8,
              "u8 1x1x4: 0 1 2 255");
}

/* A rotation by 90 degrees with anisotropic spacing. */
static void spacing(void)
{
    struct dnn_err err = {0};
    struct dnn_augment *a = read_both("[{'rotate': 90}]", &err);
    struct dnn_augment_scratch *s = dnn_augment_scratch_make();
    const int64_t n[2] = {5, 9};
    struct place p = place_make(2, n);

    for (int c = 0; c < 2; c++) {
        p.sample.col[c].spacing[0] = 2;
        p.sample.col[c].spacing[1] = 1;
    }
    bool good = a != NULL && apply(a, 0, 0, &p, s, &err);
    const float *x = (const float *)p.sample.col[0].data + 4 * (3 * 9 + 4);
    ok(good && x[1] == 2 && x[2] == 6, "rotate: in space, where spacing is known");
    x = (const float *)p.sample.col[0].data + 4 * (2 * 9 + 6);
    ok(good && x[1] == 1 && x[2] == 4, "rotate: in the other direction");
    ok(p.sample.col[0].spacing[0] == 2, "rotate: spacing is kept");
    place_free(&p);
    dnn_augment_scratch_free(s);
    dnn_augment_free(a);
}

/* Values of images change, classes of masks do not; targets have their own lists. */
static void sides(void)
{
    struct dnn_err err = {0};
    struct dnn_augment *a =
        read_lists("{'transforms': [{'normalize': {'std': 2}}, {'noise': 1}], "
                   "'input_transforms': [{'resize': [6, 4]}], "
                   "'target_transforms': [{'resize': [3, 2]}]}",
                   &err);
    struct dnn_augment_scratch *s = dnn_augment_scratch_make();
    struct place p = place_make(2, plane);
    struct dnn_column col[3];
    char one[DNN_SHAPE_TEXT], two[DNN_SHAPE_TEXT];
    bool good = a != NULL && dnn_augment_columns(a, 3, p.col, col, &err) == 0 &&
                apply(a, 0, 0, &p, s, &err);

    ok(good, "transforms of both, of inputs and of targets");
    if (good) {
        is_text(dnn_shape_text(one, sizeof one, &p.sample.col[0].shape), "6x4x4",
                "the input has its own size");
        is_text(dnn_shape_text(two, sizeof two, &p.sample.col[1].shape), "3x2x1",
                "the target has its own");
        is_int(((int32_t *)p.sample.col[1].data)[0], 20 + 1, "classes are not changed");
        ok(dnn_shape_equal(&col[0].shape, &p.sample.col[0].shape) &&
               dnn_shape_equal(&col[1].shape, &p.sample.col[1].shape) &&
               col[1].type == DNN_I32 && col[2].shape.ndim == 0,
           "the columns have these shapes");
    } else {
        printf("# %s\n", err.text);
    }
    place_free(&p);
    dnn_augment_scratch_free(s);
    dnn_augment_free(a);
}

/* ---- random transforms ---- */

static void foreground(void)
{
    struct dnn_err err = {0};
    struct dnn_augment *a = read_both(
        "[{'random_crop': {'size': [3, 4, 5], 'foreground': 1, 'class': 496}}]", &err);
    struct dnn_augment_scratch *s = dnn_augment_scratch_make();
    bool good = a != NULL;

    for (int k = 0; good && k < 10; k++) {
        struct place p = place_make(3, volume);
        bool there = false;

        good = apply(a, 0, k, &p, s, &err);
        const int32_t *m = p.sample.col[1].data;
        for (int64_t i = 0; good && i < 60; i++)
            there = there || m[i] == 496;
        good = good && there && m[1 * 20 + 2 * 5 + 2] == 496;
        place_free(&p);
    }
    ok(good, "random_crop: around the only point of the class");
    dnn_augment_free(a);

    a = read_both("[{'random_crop': {'size': 3, 'foreground': 1, 'class': 5000}}]",
                  &err);
    struct place p = place_make(3, volume);
    ok(a != NULL && apply(a, 0, 0, &p, s, &err),
       "random_crop: anywhere in a sample without the class");
    place_free(&p);
    dnn_augment_free(a);
    dnn_augment_scratch_free(s);
}

static void patches(void)
{
    struct dnn_err err = {0};
    struct dnn_augment *a =
        read_both("[{'random_patches': {'number': 3, 'size': 3}}]", &err);
    struct dnn_augment_scratch *s = dnn_augment_scratch_make();
    struct place p = place_make(2, plane), q = place_make(2, plane);
    struct dnn_column col[3];
    bool good = a != NULL && apply(a, 1, 1, &p, s, &err) &&
                dnn_augment_columns(a, 3, p.col, col, &err) == 0;
    int64_t cut = 0;

    ok(good && col[1].kind == DNN_KIND_IMAGE && col[1].classes == 0 &&
           dnn_shape_equal(&col[1].shape, &p.sample.col[1].shape) &&
           dnn_shape_equal(&p.sample.col[0].shape, &p.sample.col[1].shape),
       "random_patches: the target becomes an image like the input");
    if (good) {
        const float *in = p.sample.col[0].data, *out = p.sample.col[1].data;
        const float *was = q.sample.col[0].data;
        bool sum = true;

        for (int64_t i = 0; i < 12 * 9 * 4; i++) {
            sum = sum && in[i] + out[i] == was[i];
            if (i % 4 == 3) cut += out[i] == 1;
        }
        ok(sum, "random_patches: input and target together are the image");
        ok(cut > 9 && cut <= 27, "random_patches: of three boxes of 3x3");
    }
    place_free(&p);
    place_free(&q);
    dnn_augment_scratch_free(s);
    dnn_augment_free(a);
}

static void mixup(void)
{
    struct dnn_err err = {0};
    struct dnn_augment *a = read_both("[{'mixup': 1}]", &err);
    struct dnn_augment_scratch *s = dnn_augment_scratch_make();
    bool good = a != NULL && dnn_augment_mixes(a), spread = true, other = true;
    double mean = 0;

    for (int k = 0; good && k < 400; k++) {
        const int64_t n[1] = {2};
        struct place p = place_make(1, n), q = place_make(1, n);
        int64_t with = dnn_augment_partner(a, 1, 0, k % 10, 10);

        other = other && with != k % 10 && with >= 0 && with < 10;
        ((int32_t *)q.sample.col[2].data)[0] = 2;
        ((float *)q.sample.col[0].data)[2] = 4;
        good =
            dnn_augment_apply(a, 3, p.col, 1, 0, k, &p.sample, &q.sample, s, &err) == 0;
        if (good) {
            const float *x = p.sample.col[0].data, *y = p.sample.col[2].data;

            good = dnn_array_count(&p.sample.col[2]) == 3 &&
                   p.sample.col[2].type == DNN_F32 && y[1] == 0 &&
                   fabsf(y[0] + y[2] - 1) < 1e-6f && fabsf(x[2] - 4 * y[2]) < 1e-5f;
            mean += y[2] / 400;
            spread = spread && y[2] >= 0 && y[2] <= 1;
        }
        place_free(&p);
        place_free(&q);
    }
    ok(good && spread && fabs(mean - 0.5) < 0.06,
       "mixup: inputs and one-hot labels with the same ratio");
    ok(other, "mixup: with another sample");
    if (!good) printf("# %s, mean %g\n", err.text, mean);
    is_int(dnn_augment_partner(a, 1, 0, 0, 1), 0,
           "mixup: the partner of a single sample is itself");
    dnn_augment_scratch_free(s);
    dnn_augment_free(a);
}

/* Probability and standard deviation. */
static void shares(void)
{
    struct dnn_err err = {0};
    struct dnn_augment *flip = read_both("[{'random_horizontal_flip': 0.3}]", &err);
    struct dnn_augment *noise = read_both("[{'noise': 0.5}]", &err);
    struct dnn_augment_scratch *s = dnn_augment_scratch_make();
    const int64_t n[2] = {2, 3};
    double flips = 0, square = 0;

    for (int k = 0; k < 1000; k++) {
        struct place p = place_make(2, n), q = place_make(2, n);

        apply(flip, 0, k, &p, s, &err);
        flips += ((int32_t *)p.sample.col[1].data)[0] != 1;
        apply(noise, 0, k, &q, s, &err);
        double x = ((float *)q.sample.col[0].data)[3] - 1;
        square += x * x;
        place_free(&p);
        place_free(&q);
    }
    ok(fabs(flips / 1000 - 0.3) < 0.05, "random_horizontal_flip: probability 0.3");
    ok(fabs(sqrt(square / 1000) - 0.5) < 0.04, "noise: its standard deviation");
    dnn_augment_scratch_free(s);
    dnn_augment_free(flip);
    dnn_augment_free(noise);
}

int main(void)
{
    exact();
    colors();
    spacing();
    sides();
    foreground();
    patches();
    mixup();
    shares();
    return done();
}
