/* fractals3d.c - volumes with fractals of several classes, for segmentation.
 *
 * A class of fractals is a random iterated function system: a few contracting affine
 * maps, which depend on (seed, class).  Its invariant set is computed by the chaos
 * game: a point is mapped repeatedly by randomly selected maps.  A sample contains
 * several of these sets, of as many different classes as possible, each with a random
 * rotation, scale and position; later ones overwrite earlier ones.  The mask is the
 * class of each voxel, 0 for the background.  The input has one level per class (1 for
 * the last one, 1 / classes for the first one if contrast is 1), with normal noise.
 *
 * With contrast 1 and the default noise (0.03), the intensity of a voxel determines its
 * class in most cases, and its neighbors resolve the rest; with contrast 0, classes
 * differ only in shape.  The default number of points makes the sets solid with the
 * default dilation of one voxel.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "generate/generate_impl.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { MAX_MAPS = 16, BURN_IN = 64, TRIAL_POINTS = 4096, TRIES = 64, TRIAL_GRID = 16 };

struct opts {
    int64_t size, classes, maps, points, dilate;
    struct dnn_list instances, scale;
    double contrast, noise;
};

struct fractals {
    struct dnn_gen gen;
    struct opts opts;
    int64_t n;       /* voxels along each axis                                     */
    int64_t npoints; /* of each class                                              */
    float **point;   /* of each class: x, y, z, inside the unit ball around 0      */
    int64_t (*offset)[3]; /* of the voxels of a dilated point                      */
    int64_t noffsets;
};

#define AT(f) offsetof(struct opts, f)
static const struct dnn_sub pair = {.min = 2, .max = 2};
static const struct dnn_field fields[] = {
    {"size",      DNN_F_INT,   AT(size),      "5",           3,    10,       NULL,
     "size of the cube as a power of two: 5 is 32x32x32",                                NULL },
    {"classes",   DNN_F_INT,   AT(classes),   "5",           1,    254,      NULL,
     "number of fractal classes; the background is class 0 in addition",                 NULL },
    {"instances", DNN_F_INTS,  AT(instances), "[4, 8]",      1,    64,       NULL,
     "number of fractals per sample: minimum, maximum",                                  &pair},
    {"scale",     DNN_F_REALS, AT(scale),     "[0.2, 0.35]", 0.01, 1,        NULL,
     "radius of a fractal as a fraction of the size: minimum, maximum",                  &pair},
    {"maps",      DNN_F_INT,   AT(maps),      "4",           2,    MAX_MAPS, NULL,
     "number of maps in the iterated function system of a class",                        NULL },
    {"points",    DNN_F_INT,   AT(points),    "0",           0,    1 << 24,  NULL,
     "number of points per fractal; 0: 16 per voxel of a face of the cube, at most "
     "2^20",                                                                             NULL },
    {"dilate",    DNN_F_INT,   AT(dilate),    "1",           0,    4,        NULL,
     "number of voxels by which each point is dilated along the axes",                   NULL },
    {"contrast",  DNN_F_REAL,  AT(contrast),  "1",           0,    1,        NULL,
     "intensity difference between classes; 0: none",                                    NULL },
    {"noise",     DNN_F_REAL,  AT(noise),     "0.03",        0,    100,      NULL,
     "standard deviation of the noise",                                                  NULL },
    {NULL,        0,           0,             NULL,          0,    0,        NULL, NULL, NULL },
};

/* ---- a class ---- */

struct map {
    double a[3][3], b[3];
    double cumulative; /* cumulative probability of the maps up to this one */
};

/* Maps are selected with probabilities proportional to their volume factors, which
 * distributes the points evenly. */
static void make_maps(struct dnn_draw *draw, int64_t n, struct map *maps)
{
    double sum = 0;

    for (int64_t k = 0; k < n; k++) {
        double volume = 1;

        dnn_gen_rotation(draw, maps[k].a);
        for (int c = 0; c < 3; c++) {
            double s = dnn_draw_real(draw, 0.4, 0.75);

            volume *= s;
            for (int r = 0; r < 3; r++)
                maps[k].a[r][c] *= s;
            maps[k].b[c] = dnn_draw_real(draw, -1, 1);
        }
        maps[k].cumulative = sum += volume;
    }
    for (int64_t k = 0; k < n; k++)
        maps[k].cumulative /= sum;
}

static void apply_map(const struct map *m, double x[3])
{
    double y[3];

    for (int r = 0; r < 3; r++)
        y[r] = m->b[r] + m->a[r][0] * x[0] + m->a[r][1] * x[1] + m->a[r][2] * x[2];
    memcpy(x, y, sizeof y);
}

/* The chaos game.  It uses the random words of draw, which nothing else uses. */
static void chaos_game(struct dnn_draw draw, const struct map *maps, int64_t npoints,
                       float *out)
{
    double x[3] = {0};
    uint32_t word[4] = {0};

    for (int64_t k = -BURN_IN; k < npoints; k++) {
        int j = (int)((k + BURN_IN) % 4), m = 0;

        if (j == 0) {
            dnn_rng_words(&draw.rng, draw.at, word);
            draw.at.index++;
        }
        while (word[j] * 0x1p-32 >= maps[m].cumulative && maps[m].cumulative < 1)
            m++;
        apply_map(&maps[m], x);
        for (int c = 0; c < 3 && k >= 0; c++)
            out[3 * k + c] = (float)x[c];
    }
}

/* Move and scale the points into the unit ball around 0. */
static void normalize(float *point, int64_t n)
{
    double mean[3] = {0}, most = 0;

    for (int64_t k = 0; k < 3 * n; k++)
        mean[k % 3] += point[k];
    for (int64_t k = 0; k < n; k++) {
        double square = 0;

        for (int c = 0; c < 3; c++) {
            double x = point[3 * k + c] - mean[c] / (double)n;

            point[3 * k + c] = (float)x;
            square += x * x;
        }
        if (square > most) most = square;
    }
    double scale = most > 0 ? 1 / sqrt(most) : 0;
    for (int64_t k = 0; k < 3 * n; k++)
        point[k] = (float)(point[k] * scale);
}

/* The number of grid cells that contain points: small for sets that are almost a line
 * or a point, which are not used. */
static int64_t count_cells(const float *point, int64_t n)
{
    static const int g = TRIAL_GRID;
    bool hit[TRIAL_GRID * TRIAL_GRID * TRIAL_GRID] = {false};
    int64_t count = 0;

    for (int64_t k = 0; k < n; k++) {
        int cell = 0;

        for (int c = 0; c < 3; c++) {
            int i = (int)((point[3 * k + c] + 1) * 0.5f * g);

            cell = cell * g + (i < 0 ? 0 : i >= g ? g - 1 : i);
        }
        count += !hit[cell];
        hit[cell] = true;
    }
    return count;
}

/* Use the first of several random systems that fills enough cells, or the best one. */
static void make_class(struct fractals *f, int64_t class, float *out)
{
    struct map maps[MAX_MAPS];
    float trial[3 * TRIAL_POINTS];
    struct dnn_draw best = {0};
    int64_t most = -1;

    for (int t = 0; t < TRIES && most < 300; t++) {
        struct dnn_draw draw =
            dnn_draw_make(f->gen.seed, DNN_GEN_SET, (uint64_t)t, (uint64_t)class);
        struct dnn_draw start = draw;

        make_maps(&draw, f->opts.maps, maps);
        chaos_game(draw, maps, TRIAL_POINTS, trial);
        normalize(trial, TRIAL_POINTS);
        int64_t cells = count_cells(trial, TRIAL_POINTS);
        if (cells <= most) continue;
        most = cells;
        best = start;
    }
    make_maps(&best, f->opts.maps, maps);
    chaos_game(best, maps, f->npoints, out);
    normalize(out, f->npoints);
}

/* ---- the dataset ---- */

static void make_offsets(struct fractals *f)
{
    const int64_t r = f->opts.dilate;

    f->offset = dnn_arena_alloc(f->gen.arena,
                                (size_t)((2 * r + 1) * (2 * r + 1) * (2 * r + 1)) *
                                    sizeof f->offset[0]);
    for (int64_t z = -r; z <= r; z++)
        for (int64_t y = -r; y <= r; y++)
            for (int64_t x = -r; x <= r; x++) {
                int64_t distance =
                    (z < 0 ? -z : z) + (y < 0 ? -y : y) + (x < 0 ? -x : x);

                if (distance > r) continue;
                int64_t *to = f->offset[f->noffsets++];
                to[0] = z;
                to[1] = y;
                to[2] = x;
            }
}

static int make(struct dnn_gen *gen, const struct dnn_jobj *obj, struct dnn_err *err)
{
    struct fractals *f = (struct fractals *)gen;
    const struct opts *o = &f->opts;

    DNN_TRY(dnn_gen_range_int(obj, "instances", &o->instances, err));
    DNN_TRY(dnn_gen_range_real(obj, "scale", &o->scale, err));
    f->n = (int64_t)1 << o->size;
    f->npoints = o->points;
    if (f->npoints == 0) f->npoints = 16 * f->n * f->n;
    if (o->points == 0 && f->npoints > 1 << 20) f->npoints = 1 << 20;
    const int64_t extent[3] = {f->n, f->n, f->n};
    DNN_TRY(dnn_gen_input(gen, 3, extent, err));
    DNN_TRY(dnn_gen_mask(gen, 3, extent, o->classes + 1, err));

    make_offsets(f);
    f->point = dnn_arena_alloc(gen->arena, (size_t)o->classes * sizeof *f->point);
    for (int64_t c = 0; c < o->classes; c++) {
        f->point[c] =
            dnn_arena_alloc(gen->arena, (size_t)f->npoints * 3 * sizeof **f->point);
        make_class(f, c, f->point[c]);
    }
    return 0;
}

/* ---- a sample ---- */

/* Draw a fractal of this class into the mask. */
static void draw_mask(const struct fractals *f, struct dnn_draw *draw, int64_t class,
                      uint8_t *mask)
{
    const int64_t n = f->n;
    const double radius =
        (double)n * dnn_draw_real(draw, f->opts.scale.reals[0], f->opts.scale.reals[1]);
    const double edge = 0.6 * radius < 0.5 * (double)n ? 0.6 * radius : 0.5 * (double)n;
    const float *x = f->point[class];
    double matrix[3][3], at[3];

    dnn_gen_rotation(draw, matrix);
    for (int c = 0; c < 3; c++) {
        at[c] = dnn_draw_real(draw, edge, (double)n - edge);
        for (int k = 0; k < 3; k++)
            matrix[c][k] *= radius;
    }
    for (int64_t k = 0; k < f->npoints; k++, x += 3) {
        int64_t p[3];

        for (int c = 0; c < 3; c++)
            p[c] = (int64_t)floor(at[c] + matrix[c][0] * x[0] + matrix[c][1] * x[1] +
                                  matrix[c][2] * x[2]);
        for (int64_t d = 0; d < f->noffsets; d++) {
            const int64_t z = p[0] + f->offset[d][0], y = p[1] + f->offset[d][1],
                          w = p[2] + f->offset[d][2];

            if (z >= 0 && z < n && y >= 0 && y < n && w >= 0 && w < n)
                mask[(z * n + y) * n + w] = (uint8_t)(class + 1);
        }
    }
}

/* A random order of the classes, which read() repeats, so that a sample contains as
 * many classes as possible. */
static void shuffle(const struct fractals *f, struct dnn_draw *draw, uint8_t *class)
{
    for (int64_t k = 0; k < f->opts.classes; k++) {
        int64_t j = dnn_draw_below(draw, k + 1);

        class[k] = class[j];
        class[j] = (uint8_t)k;
    }
}

static int read(const struct dnn_source *source, int64_t i, struct dnn_sample *out,
                struct dnn_err *err)
{
    const struct fractals *f = (const struct fractals *)source;
    struct dnn_draw draw = dnn_gen_draw(&f->gen, i);
    uint8_t class[256] = {0};

    DNN_TRY(dnn_gen_arrays(source, out, err));
    const int64_t count = f->n * f->n * f->n;
    uint8_t *mask = out->col[1].data;
    memset(mask, 0, (size_t)count);
    shuffle(f, &draw, class);
    const int64_t number = dnn_gen_pick(&draw, &f->opts.instances);
    for (int64_t k = 0; k < number; k++)
        draw_mask(f, &draw, class[k % f->opts.classes], mask);
    dnn_gen_intensity(&f->gen, i, mask, count, f->opts.classes, f->opts.contrast,
                      f->opts.noise, out->col[0].data);
    return 0;
}

const struct dnn_generator dnn_gen_fractals3d = {
    .help = "volumes with fractals of several classes, with a mask",
    .fields = fields,
    .size = sizeof(struct fractals),
    .opts = offsetof(struct fractals, opts),
    .type = {.name = "fractals3d", .read = read, .close = dnn_gen_close},
    .make = make,
};
