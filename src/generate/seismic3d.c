/* seismic3d.c - synthetic seismic volumes of folded and faulted layers.
 *
 * The last axis is depth.  The model is a sequence of packages in the order of the
 * classes (facies).  A package is a sequence of layers whose impedance alternates; the
 * thickness of the layers and the contrast between them depend on the class and form
 * its texture.  The position of a voxel in the sequence is its depth, minus the folds
 * (a tilt, waves and bumps that grow with depth), minus the throws of the faults
 * (almost vertical planes) that it lies behind.  The input is the reflectivity between
 * each voxel and the next, convolved along depth with a Ricker wavelet, scaled to a
 * mean square of 1, plus noise.  The mask is the class.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "generate/generate_impl.h"

#include <math.h>
#include <stddef.h>

static const double pi = 3.14159265358979323846;

enum { WAVES = 3, MAX_FAULTS = 16, STEPS = 4, MAX_HALF = 256 };

struct opts {
    int64_t classes;
    struct dnn_list size, packages, faults;
    double fold, throw, frequency, noise;
};

struct seismic {
    struct dnn_gen gen;
    struct opts opts;
    int64_t extent[3];
    double wavelet[2 * MAX_HALF + 1];
    int half; /* half length of the wavelet */
};

#define AT(f) offsetof(struct opts, f)
static const struct dnn_sub pair = {.min = 2, .max = 2};
static const struct dnn_sub axes = {.min = 1, .max = 3, .single = true};
static const struct dnn_field fields[] = {
    {"size",      DNN_F_INTS, AT(size),      "64",     8,     4096,       NULL,
     "size of all axes, or one per axis; the last is depth",                          &axes},
    {"classes",   DNN_F_INT,  AT(classes),   "4",      2,     64,         NULL,
     "number of facies; the first is class 0",                                        NULL },
    {"packages",  DNN_F_INTS, AT(packages),  "[4, 7]", 1,     1000,       NULL,
     "number of layer packages of one facies from top to bottom: minimum, maximum",   &pair},
    {"faults",    DNN_F_INTS, AT(faults),    "[1, 4]", 0,     MAX_FAULTS, NULL,
     "number of faults: minimum, maximum",                                            &pair},
    {"throw",     DNN_F_REAL, AT(throw),     "0.1",    0,     1,          NULL,
     "maximum throw of a fault as a fraction of the depth",                           NULL },
    {"fold",      DNN_F_REAL, AT(fold),      "0.1",    0,     1,          NULL,
     "height of the folds as a fraction of the depth",                                NULL },
    {"frequency", DNN_F_REAL, AT(frequency), "0.1",    0.005, 0.5,        NULL,
     "peak frequency of the wavelet, in cycles per voxel",                            NULL },
    {"noise",     DNN_F_REAL, AT(noise),     "0.1",    0,     100,        NULL,
     "standard deviation of the noise; that of the signal is 1",                      NULL },
    {NULL,        0,          0,             NULL,     0,     0,          NULL, NULL, NULL },
};

static int make(struct dnn_gen *gen, const struct dnn_jobj *obj, struct dnn_err *err)
{
    struct seismic *s = (struct seismic *)gen;
    const struct opts *o = &s->opts;

    DNN_TRY(dnn_gen_range_int(obj, "packages", &o->packages, err));
    DNN_TRY(dnn_gen_range_int(obj, "faults", &o->faults, err));
    DNN_TRY(dnn_gen_extents(obj, "size", &o->size, 3, s->extent, err));
    /* Beyond 1.3 periods of the peak frequency, the wavelet is almost 0. */
    s->half = (int)ceil(1.3 / o->frequency);
    if (s->half > MAX_HALF) s->half = MAX_HALF;
    for (int k = -s->half; k <= s->half; k++) {
        double a = pi * o->frequency * k;

        s->wavelet[k + s->half] = (1 - 2 * a * a) * exp(-a * a);
    }
    DNN_TRY(dnn_gen_input(gen, 3, s->extent, err));
    return dnn_gen_mask(gen, 3, s->extent, o->classes, err);
}

/* ---- the layers ---- */

struct fault {
    double normal[3], at[3], throw;
};

struct model {
    int64_t start, count; /* the layers: STEPS per voxel, beginning at start       */
    float *impedance;
    uint8_t *class;
    double tilt[2];
    struct {
        double height, direction[2], phase;
        double bump; /* width of a bump; 0: a wave                                 */
    } wave[WAVES];
    struct fault fault[MAX_FAULTS];
    int64_t nfaults;
};

/* Mean thickness of layers of a class in voxels, and contrast between them; they differ
 * between consecutive classes. */
static double thickness(int64_t class, int64_t classes)
{
    int64_t rank = class % 2 == 0 ? class / 2 : (classes + 1) / 2 + class / 2;

    return 2 + 5 * (double)rank / (double)(classes - 1);
}

static double strength(int64_t class, int64_t classes)
{
    return 0.15 + 0.85 * (double)class / (double)(classes - 1);
}

/* Make the sequence of layers. */
static void make_layers(const struct seismic *s, struct dnn_draw *draw, struct model *e)
{
    const int64_t classes = s->opts.classes;
    const double depth = (double)s->extent[2];
    const double mean = depth / (double)dnn_gen_pick(draw, &s->opts.packages);
    int64_t class = dnn_draw_below(draw, classes), sign = 1;
    double package = mean * dnn_draw_real(draw, 0, 1), layer = 0, impedance = 0;

    for (int64_t k = 0; k < e->count; k++) {
        if (package <= 0) {
            package = mean * dnn_draw_real(draw, 0.7, 1.3);
            class = (class + 1) % classes;
            layer = 0;
        }
        if (layer <= 0) {
            layer = thickness(class, classes) * dnn_draw_real(draw, 0.6, 1.4);
            sign = -sign;
            impedance = 2 + 0.5 * (double)sign * strength(class, classes) *
                                dnn_draw_real(draw, 0.6, 1);
        }
        e->impedance[k] = (float)impedance;
        e->class[k] = (uint8_t)class;
        layer -= 1.0 / STEPS;
        package -= 1.0 / STEPS;
    }
}

static void make_structure(const struct seismic *s, struct dnn_draw *draw,
                           struct model *e)
{
    const double depth = (double)s->extent[2], high = s->opts.fold * depth;

    for (int k = 0; k < 2; k++)
        e->tilt[k] = dnn_draw_real(draw, -high, high) * 0.5;
    for (int k = 0; k < WAVES; k++) {
        e->wave[k].height = dnn_draw_real(draw, -high, high) / WAVES;
        e->wave[k].direction[0] = dnn_draw_real(draw, -2, 2);
        e->wave[k].direction[1] = dnn_draw_real(draw, -2, 2);
        e->wave[k].phase = dnn_draw_real(draw, 0, 1);
        e->wave[k].bump = k == 0 ? dnn_draw_real(draw, 0.15, 0.4) : 0;
    }
    e->nfaults = dnn_gen_pick(draw, &s->opts.faults);
    for (int64_t f = 0; f < e->nfaults; f++) {
        struct fault *to = &e->fault[f];
        double rotation[3][3];

        dnn_gen_rotation(draw, rotation);
        to->normal[0] = rotation[0][0];
        to->normal[1] = rotation[0][1];
        to->normal[2] = 0.35 * rotation[0][2]; /* almost vertical */
        for (int k = 0; k < 3; k++)
            to->at[k] = dnn_draw_real(draw, 0.15, 0.85);
        to->throw = dnn_draw_real(draw, 0.3, 1) * s->opts.throw *depth;
        if (dnn_draw_below(draw, 2) == 1) to->throw = -to->throw;
    }
}

/* The height of the folds at (x, y), both in [0, 1]. */
static double fold_at(const struct model *e, double x, double y)
{
    double sum = e->tilt[0] * (x - 0.5) + e->tilt[1] * (y - 0.5);

    for (int k = 0; k < WAVES; k++) {
        const double *direction = e->wave[k].direction, w = e->wave[k].bump;

        if (w > 0) {
            double dx = x - 0.5 - 0.25 * direction[0],
                   dy = y - 0.5 - 0.25 * direction[1];

            sum += 3 * e->wave[k].height * exp(-(dx * dx + dy * dy) / (2 * w * w));
        } else {
            sum +=
                e->wave[k].height *
                cos(2 * pi * (direction[0] * x + direction[1] * y + e->wave[k].phase));
        }
    }
    return sum;
}

/* The index of the scaled position p in the sequence of layers. */
static int64_t layer_index(const struct seismic *s, const struct model *e, double fold,
                           const double p[3])
{
    double u = p[2] * (double)s->extent[2] - fold * (0.5 + 0.5 * p[2]);

    for (int64_t f = 0; f < e->nfaults; f++) {
        const struct fault *at = &e->fault[f];
        double side = 0;

        for (int k = 0; k < 3; k++)
            side += at->normal[k] * (p[k] - at->at[k]);
        if (side > 0) u -= at->throw;
    }
    int64_t k = (int64_t)floor(u * STEPS) - e->start;
    return k < 0 ? 0 : k >= e->count ? e->count - 1 : k;
}

/* ---- the volume ---- */

/* Compute classes and trace of a column of voxels.  buffer is for two columns. */
static void make_trace(const struct seismic *s, const struct model *e,
                       const double at[2], double *buffer, uint8_t *mask, float *trace)
{
    const int64_t n = s->extent[2];
    double *impedance = buffer, *jump = buffer + n + 1;
    const double fold = fold_at(e, at[0], at[1]);

    for (int64_t z = 0; z <= n; z++) {
        const double p[3] = {at[0], at[1], ((double)z + 0.5) / (double)n};
        int64_t k = layer_index(s, e, fold, p);

        impedance[z] = e->impedance[k];
        if (z < n) mask[z] = e->class[k];
    }
    for (int64_t z = 0; z < n; z++)
        jump[z] = (impedance[z + 1] - impedance[z]) / (impedance[z + 1] + impedance[z]);
    for (int64_t z = 0; z < n; z++) {
        int64_t low = z - s->half < 0 ? 0 : z - s->half;
        int64_t high = z + s->half >= n ? n - 1 : z + s->half;
        double sum = 0;

        for (int64_t k = low; k <= high; k++)
            sum += jump[k] * s->wavelet[k - z + s->half];
        trace[z] = (float)sum;
    }
}

static void make_volume(const struct seismic *s, const struct model *e, double *buffer,
                        struct dnn_sample *out)
{
    const int64_t nx = s->extent[0], ny = s->extent[1], nz = s->extent[2];
    float *trace = out->col[0].data;
    uint8_t *mask = out->col[1].data;
    double square = 0;

    for (int64_t x = 0; x < nx; x++)
        for (int64_t y = 0; y < ny; y++) {
            const double at[2] = {((double)x + 0.5) / (double)nx,
                                  ((double)y + 0.5) / (double)ny};
            const int64_t k = (x * ny + y) * nz;

            make_trace(s, e, at, buffer, mask + k, trace + k);
        }
    for (int64_t k = 0; k < nx * ny * nz; k++)
        square += (double)trace[k] * trace[k];
    double scale = square > 0 ? sqrt((double)(nx * ny * nz) / square) : 1;
    for (int64_t k = 0; k < nx * ny * nz; k++)
        trace[k] = (float)(trace[k] * scale);
}

static int read(const struct dnn_source *source, int64_t i, struct dnn_sample *out,
                struct dnn_err *err)
{
    const struct seismic *s = (const struct seismic *)source;
    struct dnn_draw draw = dnn_gen_draw(&s->gen, i);
    const int64_t nz = s->extent[2];
    struct model e = {.start = -2 * nz * STEPS, .count = 5 * nz * STEPS};

    DNN_TRY(dnn_gen_arrays(source, out, err));
    e.impedance = dnn_alloc((size_t)e.count * sizeof *e.impedance);
    e.class = dnn_alloc((size_t)e.count);
    double *buffer = dnn_alloc((size_t)(2 * nz + 2) * sizeof *buffer);
    make_layers(s, &draw, &e);
    make_structure(s, &draw, &e);
    make_volume(s, &e, buffer, out);
    dnn_gen_noise(&s->gen, i, s->opts.noise, out->col[0].data,
                  dnn_array_count(&out->col[0]));
    dnn_free(e.impedance);
    dnn_free(e.class);
    dnn_free(buffer);
    return 0;
}

const struct dnn_generator dnn_gen_seismic3d = {
    .help = "folded and faulted layers as seismic amplitudes, with a facies mask",
    .fields = fields,
    .size = sizeof(struct seismic),
    .opts = offsetof(struct seismic, opts),
    .type = {.name = "seismic3d", .read = read, .close = dnn_gen_close},
    .make = make,
};
