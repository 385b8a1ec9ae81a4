/* blobs3d.c - random ellipsoids (or ellipses) in noise, and their mask.
 *
 * A simple segmentation problem, to test a network or an installation.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "generate/generate_impl.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

struct opts {
    int64_t space, classes;
    struct dnn_list size, number, radius;
    double contrast, noise;
};

struct blobs {
    struct dnn_gen gen;
    struct opts opts;
    int64_t extent[3]; /* the first is 1 with two axes */
};

#define AT(f) offsetof(struct opts, f)
static const struct dnn_sub pair = {.min = 2, .max = 2};
static const struct dnn_sub axes = {.min = 1, .max = 3, .single = true};
static const struct dnn_field fields[] = {
    {"space",    DNN_F_INT,   AT(space),    "3",            2,     3,    NULL, "number of spatial axes, 2 or 3",
     NULL                                                                                                             },
    {"size",     DNN_F_INTS,  AT(size),     "32",           4,     4096, NULL,
     "size of all axes, or one per axis",                                                                        &axes},
    {"classes",  DNN_F_INT,   AT(classes),  "1",            1,     254,  NULL,
     "number of blob classes, distinguished by intensity; the background is class 0 in "
     "addition",                                                                                                 NULL },
    {"number",   DNN_F_INTS,  AT(number),   "[2, 6]",       1,     4096, NULL,
     "number of blobs per sample: minimum, maximum",                                                             &pair},
    {"radius",   DNN_F_REALS, AT(radius),   "[0.08, 0.25]", 0.001, 1,    NULL,
     "half-axes as a fraction of the shortest axis: minimum, maximum",                                           &pair},
    {"contrast", DNN_F_REAL,  AT(contrast), "1",            0,     1,    NULL,
     "intensity difference between classes; 0: none",                                                            NULL },
    {"noise",    DNN_F_REAL,  AT(noise),    "0.2",          0,     100,  NULL,
     "standard deviation of the noise",                                                                          NULL },
    {NULL,       0,           0,            NULL,           0,     0,    NULL, NULL,                             NULL },
};

static int make(struct dnn_gen *gen, const struct dnn_jobj *obj, struct dnn_err *err)
{
    struct blobs *b = (struct blobs *)gen;
    const struct opts *o = &b->opts;
    const int space = (int)o->space;
    int64_t *extent = b->extent + 3 - space;

    DNN_TRY(dnn_gen_range_int(obj, "number", &o->number, err));
    DNN_TRY(dnn_gen_range_real(obj, "radius", &o->radius, err));
    b->extent[0] = 1;
    DNN_TRY(dnn_gen_extents(obj, "size", &o->size, space, extent, err));
    DNN_TRY(dnn_gen_input(gen, space, extent, err));
    return dnn_gen_mask(gen, space, extent, o->classes + 1, err);
}

struct blob {
    double at[3], to_ball[3][3]; /* to_ball: maps the blob to the unit ball */
    double max_radius;
    uint8_t class;
};

/* With two axes, the blob is the central slice of an ellipsoid along the first axis. */
static struct blob draw_blob(const struct blobs *b, struct dnn_draw *draw)
{
    const bool flat = b->opts.space == 2;
    double shortest = (double)b->extent[2];
    struct blob blob = {0};

    for (int c = flat ? 1 : 0; c < 3; c++)
        if ((double)b->extent[c] < shortest) shortest = (double)b->extent[c];
    blob.class = (uint8_t)(1 + dnn_draw_below(draw, b->opts.classes));
    dnn_gen_rotation(draw, blob.to_ball);
    if (flat) {
        double c = blob.to_ball[1][1], s = blob.to_ball[1][2],
               len = sqrt(c * c + s * s);

        c = len > 0 ? c / len : 1;
        s = len > 0 ? s / len : 0;
        memset(blob.to_ball, 0, sizeof blob.to_ball);
        blob.to_ball[0][0] = 1;
        blob.to_ball[1][1] = blob.to_ball[2][2] = c;
        blob.to_ball[1][2] = s;
        blob.to_ball[2][1] = -s;
    }
    for (int r = 0; r < 3; r++) {
        double half = shortest * dnn_draw_real(draw, b->opts.radius.reals[0],
                                               b->opts.radius.reals[1]);

        if (half > blob.max_radius) blob.max_radius = half;
        for (int c = 0; c < 3; c++)
            blob.to_ball[r][c] /= half;
        blob.at[r] = dnn_draw_real(draw, 0, (double)b->extent[r]);
    }
    if (flat) blob.at[0] = 0.5;
    return blob;
}

static void draw_mask(const struct blobs *b, const struct blob *blob, uint8_t *mask)
{
    int64_t low[3], high[3];

    for (int c = 0; c < 3; c++) {
        low[c] = (int64_t)fmax(0, floor(blob->at[c] - blob->max_radius));
        high[c] =
            (int64_t)fmin((double)b->extent[c], ceil(blob->at[c] + blob->max_radius));
    }
    for (int64_t z = low[0]; z < high[0]; z++)
        for (int64_t y = low[1]; y < high[1]; y++)
            for (int64_t x = low[2]; x < high[2]; x++) {
                const double d[3] = {(double)z + 0.5 - blob->at[0],
                                     (double)y + 0.5 - blob->at[1],
                                     (double)x + 0.5 - blob->at[2]};
                double square = 0;

                for (int r = 0; r < 3; r++) {
                    double t = blob->to_ball[r][0] * d[0] + blob->to_ball[r][1] * d[1] +
                               blob->to_ball[r][2] * d[2];

                    square += t * t;
                }
                if (square <= 1)
                    mask[(z * b->extent[1] + y) * b->extent[2] + x] = blob->class;
            }
}

static int read(const struct dnn_source *source, int64_t i, struct dnn_sample *out,
                struct dnn_err *err)
{
    const struct blobs *b = (const struct blobs *)source;
    struct dnn_draw draw = dnn_gen_draw(&b->gen, i);

    DNN_TRY(dnn_gen_arrays(source, out, err));
    const int64_t count = dnn_array_count(&out->col[1]);
    uint8_t *mask = out->col[1].data;
    memset(mask, 0, (size_t)count);
    for (int64_t left = dnn_gen_pick(&draw, &b->opts.number); left > 0; left--) {
        struct blob blob = draw_blob(b, &draw);

        draw_mask(b, &blob, mask);
    }
    dnn_gen_intensity(&b->gen, i, mask, count, b->opts.classes, b->opts.contrast,
                      b->opts.noise, out->col[0].data);
    return 0;
}

const struct dnn_generator dnn_gen_blobs3d = {
    .help = "ellipsoids (or ellipses) in noise, with a mask",
    .fields = fields,
    .size = sizeof(struct blobs),
    .opts = offsetof(struct blobs, opts),
    .type = {.name = "blobs3d", .read = read, .close = dnn_gen_close},
    .make = make,
};
