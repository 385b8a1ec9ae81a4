/* window_blend.c - blended outputs of tiles against the formulas in doubles; the same
 * bits for any order of tiles and any units; memory; errors.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "base/rng.h"
#include "window/window.h"
#include "tap.h"

#include <math.h>

static struct dnn_err err;
static struct dnn_rng rng;
static uint64_t drawn;

static int64_t draw(int64_t low, int64_t high)
{
    return low + (int64_t)dnn_rng_below(&rng, (struct dnn_rng_at){.index = drawn++},
                                        (uint64_t)(high - low + 1));
}

/* ---- a case ---- */

struct made {
    struct dnn_window_cfg cfg;
    int64_t channels, points, in_tile;
    bool bounded;
    struct dnn_window *w;
    float *value; /* [tiles][in_tile][channels] */
};

static struct made make(const struct dnn_window_cfg *cfg, int64_t channels,
                        bool bounded)
{
    struct made m = {.cfg = *cfg, .channels = channels, .bounded = bounded};
    double size = bounded ? 1 : 1000;

    m.points = m.in_tile = 1;
    for (int a = 0; a < cfg->ndim; a++) {
        m.points *= cfg->full[a];
        m.in_tile *= cfg->tile[a];
    }
    if (dnn_window_make(cfg, &m.w, &err) < 0) return m;
    int64_t n = dnn_window_tiles(m.w) * m.in_tile * channels;
    m.value = dnn_alloc((size_t)n * sizeof *m.value);
    for (int64_t i = 0; i < n; i++)
        m.value[i] =
            (float)(size *
                    (2 * dnn_rng_uniform(&rng, (struct dnn_rng_at){.index = drawn++}) -
                     1));
    return m;
}

static void unmake(struct made *m)
{
    dnn_window_free(m->w);
    dnn_free(m->value);
}

/* A configuration with at most 50000 values in all tiles. */
static struct made make_random(void)
{
    for (;;) {
        struct dnn_window_cfg cfg = {.ndim = (int)draw(1, 3), .sigma = 0.125};
        int64_t channels = draw(0, 2) == 0 ? draw(1, 40) : draw(1, 3), work = channels;

        cfg.blend = draw(0, 1) == 0 ? DNN_WINDOW_CONSTANT : DNN_WINDOW_GAUSSIAN;
        if (draw(0, 3) == 0) cfg.sigma = (double)draw(1, 8) / 16;
        for (int a = 0; a < cfg.ndim; a++) {
            cfg.full[a] = draw(1, cfg.ndim == 1 ? 700 : cfg.ndim == 2 ? 60 : 24);
            cfg.tile[a] = draw(1, cfg.ndim == 1 ? 300 : cfg.ndim == 2 ? 20 : 9);
            cfg.overlap[a] = (double)draw(0, 18) / 20;
            int64_t step = (int64_t)((double)cfg.tile[a] * (1 - cfg.overlap[a]));
            if (step < 1) step = 1;
            work *= cfg.tile[a] * (cfg.full[a] / step + 1);
        }
        if (work > 50000) continue;
        return make(&cfg, channels, draw(0, 1) == 0);
    }
}

/* ---- blending ---- */

/* Boxes that were given to done(). */
struct result {
    const struct made *m;
    float *value;         /* [points][channels] */
    unsigned char *times; /* [points]           */
    bool crossed;         /* a box is in two units */
    int stop;             /* fail after so many boxes; 0: never */
};

static int collect(void *arg, const int64_t start[DNN_WINDOW_DIMS],
                   const int64_t extent[DNN_WINDOW_DIMS], const float *value,
                   struct dnn_err *e)
{
    struct result *r = arg;
    const struct dnn_window_cfg *cfg = &r->m->cfg;
    int64_t c = r->m->channels, i = 0, full[3] = {1, 1, 1};

    if (r->stop > 0 && --r->stop == 0) return dnn_fail(e, DNN_EIO, "disk full");
    for (int a = 0; a < cfg->ndim; a++)
        full[a] = cfg->full[a];
    int64_t end[3];
    for (int a = 0; a < 3; a++)
        end[a] = start[a] + extent[a] - 1;
    r->crossed |=
        dnn_window_unit_at(r->m->w, start) != dnn_window_unit_at(r->m->w, end);
    for (int64_t x = start[0]; x < start[0] + extent[0]; x++)
        for (int64_t y = start[1]; y < start[1] + extent[1]; y++)
            for (int64_t z = start[2]; z < start[2] + extent[2]; z++, i++) {
                int64_t at = (x * full[1] + y) * full[2] + z;

                memcpy(r->value + at * c, value + i * c, (size_t)c * sizeof *value);
                r->times[at]++;
            }
    return 0;
}

static struct result make_result(const struct made *m)
{
    struct result r = {.m = m};

    r.value = dnn_alloc((size_t)(m->points * m->channels) * sizeof *r.value);
    r.times = dnn_alloc((size_t)m->points);
    return r;
}

static void free_result(struct result *r)
{
    dnn_free(r->value);
    dnn_free(r->times);
}

static struct dnn_blend_cfg blend_cfg(const struct made *m, struct result *r)
{
    return (struct dnn_blend_cfg){.window = m->w,
                                  .channels = m->channels,
                                  .bounded = m->bounded,
                                  .done = collect,
                                  .arg = r};
}

/* Adds all tiles of the units that are wanted (NULL: all), in order or shuffled. */
static int blend(const struct made *m, struct result *r, const unsigned char *wanted,
                 bool shuffle, size_t *peak)
{
    struct dnn_blend_cfg cfg = blend_cfg(m, r);
    struct dnn_blend *b = NULL;
    int64_t tiles = dnn_window_tiles(m->w);

    cfg.wanted = wanted;
    int rc = dnn_blend_open(&cfg, &b, &err);
    const struct dnn_perm perm = dnn_rng_perm(drawn++, 0, (uint64_t)tiles);
    for (int64_t i = 0; rc == 0 && i < tiles; i++) {
        int64_t t = shuffle ? (int64_t)dnn_rng_perm_at(&perm, (uint64_t)i) : i;

        if (wanted == NULL || dnn_window_wants(m->w, wanted, t))
            rc = dnn_blend_add(b, t, m->value + t * m->in_tile * m->channels, &err);
    }
    if (rc == 0 && dnn_blend_bytes(b, peak) != 0)
        rc = dnn_fail(&err, DNN_EDATA, "memory remains");
    dnn_blend_close(b);
    return rc;
}

/* ---- the formulas ---- */

static double weight_of(const struct dnn_window_cfg *cfg, const int64_t *in_tile)
{
    double w = 1;

    if (cfg->blend == DNN_WINDOW_CONSTANT) return 1;
    for (int a = 0; a < cfg->ndim; a++) {
        double x = (double)in_tile[a] - (double)(cfg->tile[a] - 1) / 2;
        double s = cfg->sigma * (double)cfg->tile[a];

        w *= exp(-(x * x) / (2 * s * s));
    }
    return w > 1e-3 ? w : 1e-3;
}

/* The largest difference from the weighted mean of all tiles. */
static double difference(const struct made *m, const struct result *r)
{
    const struct dnn_window_cfg *cfg = &m->cfg;
    size_t n = (size_t)(m->points * m->channels);
    double *sum = dnn_alloc(n * sizeof *sum), worst = 0;
    double *total = dnn_alloc((size_t)m->points * sizeof *total);

    for (int64_t t = 0; t < dnn_window_tiles(m->w); t++) {
        int64_t start[3];

        dnn_window_start(m->w, t, start);
        for (int64_t i = 0; i < m->in_tile; i++) {
            int64_t in[3], rest = i, at = 0;
            bool inside = true;

            for (int a = cfg->ndim; a-- > 0; rest /= cfg->tile[a])
                in[a] = rest % cfg->tile[a];
            for (int a = 0; a < cfg->ndim; a++) {
                int64_t x = start[a] + in[a];

                inside = inside && x >= 0 && x < cfg->full[a];
                at = at * cfg->full[a] + x;
            }
            if (!inside) continue;
            double w = weight_of(cfg, in);
            total[at] += w;
            for (int64_t c = 0; c < m->channels; c++)
                sum[at * m->channels + c] +=
                    w * (double)m->value[(t * m->in_tile + i) * m->channels + c];
        }
    }
    for (size_t i = 0; i < n; i++) {
        double want = sum[i] / total[i / (size_t)m->channels];
        double d = fabs(want - (double)r->value[i]);

        if (!(d <= worst)) worst = d;
    }
    dnn_free(total);
    dnn_free(sum);
    return m->bounded ? worst : worst / 1000;
}

/* ---- tests ---- */

struct failures {
    int rc, values, times, crossed, order, units, memory;
};

static void check_case(const struct made *m, struct failures *f)
{
    struct result whole = make_result(m), other = make_result(m);
    size_t bytes = (size_t)(m->points * m->channels) * sizeof *whole.value, peak = 0;
    int64_t units = dnn_window_units(m->w), parts = draw(1, 4);

    f->rc += blend(m, &whole, NULL, false, &peak) != 0;
    f->memory += peak != dnn_blend_estimate(m->w, m->channels, m->bounded);
    f->crossed += whole.crossed;
    for (int64_t i = 0; i < m->points; i++)
        if (whole.times[i] != 1) {
            f->times++;
            break;
        }
    f->values += !(difference(m, &whole) < 1e-6);
    f->rc += blend(m, &other, NULL, true, NULL) != 0;
    f->order += memcmp(whole.value, other.value, bytes) != 0;
    memset(other.value, 0, bytes);
    memset(other.times, 0, (size_t)m->points);
    unsigned char *part = dnn_alloc((size_t)units), *wanted = dnn_alloc((size_t)units);
    for (int64_t u = 0; u < units; u++)
        part[u] = (unsigned char)draw(1, parts);
    for (int64_t p = 1; p <= parts; p++) {
        size_t least;

        for (int64_t u = 0; u < units; u++)
            wanted[u] = part[u] == p;
        f->rc += blend(m, &other, wanted, draw(0, 1) == 0, NULL) != 0;
        f->rc += blend(m, &whole, wanted, false, &least) != 0;
        f->memory += least > peak;
    }
    dnn_free(part);
    dnn_free(wanted);
    for (int64_t i = 0; i < m->points; i++)
        f->units += other.times[i] != 1;
    f->units += memcmp(whole.value, other.value, bytes) != 0;
    free_result(&other);
    free_result(&whole);
}

static void test_random(void)
{
    struct failures f = {0};

    for (int i = 0; i < 2500; i++) {
        struct made m = make_random();

        check_case(&m, &f);
        unmake(&m);
    }
    is_int(f.rc, 0, "2500 random windows are blended");
    is_int(f.times, 0, "each point is given once");
    is_int(f.crossed, 0, "each box is in one unit");
    is_int(f.values, 0, "values are the weighted means of the tiles to 1e-6");
    is_int(f.order, 0, "tiles in any order give the same bits");
    is_int(f.units, 0, "units computed apart give the same bits");
    is_int(f.memory, 0, "in order, memory is what was estimated");
}

/* Values worked out by hand: two tiles of 3 over 4 points. */
static void test_known(void)
{
    struct dnn_window_cfg cfg = {
        .ndim = 1, .full = {4}, .tile = {3}, .overlap = {0.5}, .sigma = 0.125};
    /* Gaussian weights: w, 1, w. */
    const double w = exp(-32.0 / 9);
    const double want[2][4] = {
        {1, 0.5,               -0.5,              -1},
        {1, (1 - w) / (1 + w), (w - 1) / (1 + w), -1}
    };

    for (int k = 0; k < 2; k++) {
        cfg.blend = k == 0 ? DNN_WINDOW_CONSTANT : DNN_WINDOW_GAUSSIAN;
        struct made m = make(&cfg, 1, true);
        struct result r = make_result(&m);
        const float value[6] = {1, 1, k == 0 ? 0 : 1, k == 0 ? 0 : -1, -1, -1};

        memcpy(m.value, value, sizeof value);
        is_int(blend(&m, &r, NULL, false, NULL), 0, "two tiles");
        for (int i = 0; i < 4; i++)
            ok(fabs((double)r.value[i] - want[k][i]) < 1e-6, "%s weights, point %d: %g",
               k == 0 ? "constant" : "Gaussian", i, (double)r.value[i]);
        free_result(&r);
        unmake(&m);
    }
}

/* Weights are a partition of unity, also with many tiles and at the limits of values.
 */
static void test_constant(float x, bool bounded, double tolerance)
{
    struct dnn_window_cfg cfg = {
        .ndim = 2,
        .full = {50,  41  },
        .tile = {20,  30  },
        .overlap = {0.9, 0.95},
        .blend = DNN_WINDOW_GAUSSIAN,
        .sigma = 0.125
    };
    struct made m = make(&cfg, 2, bounded);
    struct result r = make_result(&m);
    double worst = 0;

    for (int64_t i = 0; i < dnn_window_tiles(m.w) * m.in_tile * 2; i++)
        m.value[i] = x;
    is_int(blend(&m, &r, NULL, false, NULL), 0, "a constant");
    for (int64_t i = 0; i < m.points * 2; i++) {
        double d = fabs((double)r.value[i] - (double)x);

        if (d > worst) worst = d;
    }
    ok(worst <= tolerance, "%g remains %g (largest difference %g)", (double)x,
       (double)x, worst);
    free_result(&r);
    unmake(&m);
}

static void test_memory(void)
{
    struct dnn_window_cfg cfg = {
        .ndim = 3,
        .full = {40,  30,  30 },
        .tile = {16,  16,  16 },
        .overlap = {0.5, 0.5, 0.5}
    };
    struct made m = make(&cfg, 3, true);
    size_t short_one = dnn_blend_estimate(m.w, 3, true);
    struct dnn_window *w = NULL;

    cfg.full[0] = 4000;
    dnn_window_make(&cfg, &w, &err);
    ok(dnn_blend_estimate(w, 3, true) == short_one,
       "memory does not grow with the first axis");
    dnn_window_free(w);
    ok(short_one <= (size_t)24 * 30 * 30 * 3 * 4,
       "it is at most that of a tile and a step");
    is_int((long long)dnn_blend_estimate(m.w, 3, false), (long long)short_one * 2,
           "without bounds it is twice that");
    unmake(&m);
}

/* ---- errors ---- */

static void fails(struct made *m, int64_t tile, int64_t at, float x, int code,
                  const char *want)
{
    struct result r = make_result(m);
    struct dnn_blend_cfg cfg = blend_cfg(m, &r);
    struct dnn_blend *b = NULL;

    err = (struct dnn_err){0};
    dnn_blend_open(&cfg, &b, &err);
    float *value = m->value + tile * m->in_tile * m->channels + at, old = *value;
    *value = x;
    is_int(dnn_blend_add(b, tile, value - at, &err), code, "an error");
    is_text(err.text, want, want);
    *value = old;
    dnn_blend_close(b);
    free_result(&r);
}

static void test_values(void)
{
    struct dnn_window_cfg cfg = {
        .ndim = 2, .full = {6, 3},
             .tile = {4, 5}
    };
    struct made m = make(&cfg, 2, true);

    fails(&m, 1, 2 * (1 * 5 + 2) + 1, NAN, DNN_EDATA,
          "the output at (3, 1), channel 1, is NaN");
    fails(&m, 0, 2 * 1, -INFINITY, DNN_EDATA,
          "the output at (0, 0), channel 0, is infinite");
    fails(
        &m, 0, 2 * 3, 1.01f, DNN_EDATA,
        "the output at (0, 2), channel 0, is 1.01; its absolute value must not exceed "
        "1");
    fails(&m, 0, 2 * 3, -1.000001f, 0, "");
    fails(&m, 0, 0, NAN, 0, "");
    m.bounded = false;
    fails(
        &m, 0, 2 * 3, -1073741824.0f, DNN_EDATA,
        "the output at (0, 2), channel 0, is -1.07374e+09; its absolute value must be "
        "below 2^30");
    unmake(&m);
}

static void test_misuse(void)
{
    struct dnn_window_cfg cfg = {.ndim = 1, .full = {8}, .tile = {4}};
    struct made m = make(&cfg, 1, true);
    struct result r = make_result(&m);
    struct dnn_blend_cfg with = blend_cfg(&m, &r);
    struct dnn_blend *b = NULL;

    with.wanted = (const unsigned char[]){1, 0};
    dnn_blend_open(&with, &b, &err);
    is_int(dnn_blend_add(b, 1, m.value, &err), 0, "a tile of other units is ignored");
    is_int(dnn_blend_add(b, 2, m.value, &err), DNN_EDATA, "there are only two");
    is_text(err.text, "tile 2 of a sample that has 2 tiles", "as it says");
    is_int(dnn_blend_add(b, 0, m.value, &err), 0, "the first one");
    is_int(dnn_blend_add(b, 0, m.value, &err), DNN_EDATA, "twice is an error");
    is_text(err.text, "tile 0 is added twice", "as it says");
    dnn_blend_close(b);
    with.channels = 0;
    is_int(dnn_blend_open(&with, &b, &err), DNN_EDATA, "no channels are an error");
    r.stop = 1;
    is_int(blend(&m, &r, NULL, false, NULL), DNN_EIO, "an error of done() is returned");
    is_text(err.text, "disk full", "unchanged");
    dnn_blend_close(NULL);
    free_result(&r);
    unmake(&m);
}

int main(void)
{
    rng = dnn_rng_make(3, 4);
    test_known();
    test_random();
    test_constant(1, true, 1e-6);
    test_constant(-1, true, 1e-6);
    test_constant(0.3f, true, 1e-6);
    test_constant(0x1.fffffp29f, false, 1e-6 * 0x1p30);
    test_constant(-0x1.fffffp29f, false, 1e-6 * 0x1p30);
    test_memory();
    test_values();
    test_misuse();
    return done();
}
