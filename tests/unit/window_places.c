/* window_places.c - places of tiles and units: hand-worked cases, a plain scan for
 * random ones, errors.
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

static struct dnn_window *make(struct dnn_window_cfg cfg)
{
    struct dnn_window *w = NULL;

    err = (struct dnn_err){0};
    return dnn_window_make(&cfg, &w, &err) == 0 ? w : NULL;
}

/* The starts along one axis as text. */
static void is_starts(int64_t full, int64_t tile, double overlap, const char *want)
{
    struct dnn_window *w = make((struct dnn_window_cfg){
        .ndim = 1, .full = {full}, .tile = {tile}, .overlap = {overlap}});
    char text[256] = "", what[96];
    int len = 0;

    for (int64_t t = 0; w != NULL && t < dnn_window_tiles(w); t++) {
        int64_t start[DNN_WINDOW_DIMS];

        dnn_window_start(w, t, start);
        len += snprintf(text + len, sizeof text - (size_t)len, "%s%d", t > 0 ? " " : "",
                        (int)start[0]);
    }
    snprintf(what, sizeof what, "tiles of %d with overlap %g over %d points", (int)tile,
             overlap, (int)full);
    is_text(text, want, what);
    dnn_window_free(w);
}

static void test_known(void)
{
    is_starts(10, 4, 0.5, "0 2 4 6");
    is_starts(11, 4, 0.5, "0 2 4 6 7");
    is_starts(10, 4, 0, "0 4 6");
    is_starts(12, 4, 0, "0 4 8");
    is_starts(8, 8, 0.5, "0");
    is_starts(9, 8, 0.25, "0 1");
    is_starts(5, 8, 0.5, "-1");
    is_starts(7, 8, 0, "0");
    is_starts(6, 3, 0.9, "0 1 2 3");
    is_starts(100, 64, 0.25, "0 36");
    is_starts(160, 96, 0.5, "0 48 64");
    /* 10 * (1 - 0.9) is a little less than 1 in doubles. */
    is_starts(12, 10, 0.9, "0 1 2");
    is_starts(1, 1, 0.5, "0");
}

static void test_order(void)
{
    struct dnn_window *w = make((struct dnn_window_cfg){
        .ndim = 3, .full = {8,   3,   6},
             .tile = {4,   4,   4},
             .overlap = {0.5, 0.5, 0}
    });
    int64_t start[3];

    is_int(dnn_window_tiles(w), 6, "3 x 1 x 2 tiles");
    dnn_window_start(w, 3, start);
    ok(start[0] == 2 && start[1] == 0 && start[2] == 2,
       "the last axis is the fastest: tile 3 is at (2, 0, 2)");
    is_int(dnn_window_cfg(w)->full[2], 6, "the configuration is kept");
    is_int(dnn_window_row(w), 2, "2 in a row");
    int64_t extent[3];
    is_int(dnn_window_units(w), 3, "3 units, as the other axes are short");
    dnn_window_unit(w, 2, start, extent);
    ok(start[0] == 4 && extent[0] == 4 && extent[1] == 3 && extent[2] == 6,
       "the last one is planes 4 to 7");
    is_int(dnn_window_unit_tiles(w, 1), 4, "planes 2 and 3 are in 4 tiles");
    const unsigned char wanted[3] = {0, 0, 1};
    ok(!dnn_window_wants(w, wanted, 1) && dnn_window_wants(w, wanted, 2),
       "planes 4 to 7 are in tile 2, not in tile 1");
    dnn_window_free(w);
    dnn_window_free(NULL);
}

static int64_t units(int64_t a, int64_t b, int64_t c, int64_t tile, double overlap)
{
    struct dnn_window *w = make((struct dnn_window_cfg){
        .ndim = 3,
        .full = {a,       b,       c      },
        .tile = {tile,    tile,    tile   },
        .overlap = {overlap, overlap, overlap}
    });
    int64_t n = dnn_window_units(w);

    dnn_window_free(w);
    return n;
}

static void test_units(void)
{
    is_int(units(512, 512, 512, 96, 0.25), 343, "a volume has 7 x 7 x 7 units");
    is_int(units(32, 8192, 8192, 32, 0.25), 1023, "a flat one 1 x 341 x 3");
    is_int(units(4000, 512, 512, 32, 0.5), 996, "a long one 249 x 4 x 1");
}

/* ---- random ---- */

static struct dnn_rng rng;
static uint64_t drawn;

static int64_t draw(int64_t low, int64_t high)
{
    return low + (int64_t)dnn_rng_below(&rng, (struct dnn_rng_at){.index = drawn++},
                                        (uint64_t)(high - low + 1));
}

/* Scans one axis: the rule of MONAI, word by word. */
static int scan(int64_t full, int64_t tile, double overlap, int64_t start[128])
{
    int64_t padded = full > tile ? full : tile, step = tile;
    int n = 0;

    if (tile != padded) {
        step = (int64_t)((double)tile * (1 - overlap));
        if (step == 0) step = 1;
    }
    for (int64_t at = 0;; at += step) {
        bool end = at + tile >= padded;

        start[n++] = (end ? padded - tile : at) - (padded - full) / 2;
        if (end) return n;
    }
}

static bool same_places(const struct dnn_window *w, const struct dnn_window_cfg *cfg)
{
    int64_t start[3][128], at[3], tile = 0;
    int n[3] = {1, 1, 1};

    for (int a = 0; a < 3; a++) {
        start[a][0] = 0;
        if (a < cfg->ndim)
            n[a] = scan(cfg->full[a], cfg->tile[a], cfg->overlap[a], start[a]);
    }
    if (dnn_window_tiles(w) != (int64_t)n[0] * n[1] * n[2]) return false;
    for (int i = 0; i < n[0]; i++)
        for (int j = 0; j < n[1]; j++)
            for (int k = 0; k < n[2]; k++) {
                dnn_window_start(w, tile++, at);
                if (at[0] != start[0][i] || at[1] != start[1][j] ||
                    at[2] != start[2][k])
                    return false;
            }
    return true;
}

/* Units cover all points, each with a face of the one before; the tiles of a unit are
 * those that overlap it. */
static bool good_units(const struct dnn_window *w, const struct dnn_window_cfg *cfg)
{
    int64_t n = dnn_window_units(w), points = 0, all = 1, before[3] = {0}, at[3];
    unsigned char *wanted = dnn_alloc((size_t)n);
    bool good = true;

    for (int a = 0; a < cfg->ndim; a++)
        all *= cfg->full[a];
    for (int64_t u = 0; u < n; u++) {
        int64_t start[3], extent[3], tiles = 0;
        int moved = 0;

        dnn_window_unit(w, u, start, extent);
        wanted[u] = 1;
        for (int a = 0; a < 3; a++)
            moved += u > 0 && start[a] != before[a];
        good = good && (u == 0 || moved == 1) && dnn_window_unit_at(w, start) == u;
        for (int64_t t = 0; t < dnn_window_tiles(w); t++) {
            bool in = true;

            dnn_window_start(w, t, at);
            for (int a = 0; a < cfg->ndim; a++)
                in = in && at[a] < start[a] + extent[a] &&
                     at[a] + cfg->tile[a] > start[a];
            tiles += in;
            good = good && in == dnn_window_wants(w, wanted, t);
        }
        good = good && tiles == dnn_window_unit_tiles(w, u);
        points += extent[0] * extent[1] * extent[2];
        memcpy(before, start, sizeof before);
        wanted[u] = 0;
    }
    dnn_free(wanted);
    return good && points == all;
}

static void test_random(void)
{
    int bad_places = 0, bad_units = 0;

    rng = dnn_rng_make(1, 2);
    for (int i = 0; i < 3000; i++) {
        struct dnn_window_cfg cfg = {.ndim = (int)draw(1, 3)};

        for (int a = 0; a < cfg.ndim; a++) {
            cfg.full[a] = draw(1, cfg.ndim == 3 ? 36 : 80);
            cfg.tile[a] = draw(1, cfg.ndim == 3 ? 8 : 20);
            cfg.overlap[a] = (double)draw(0, 18) / 20;
        }
        struct dnn_window *w = make(cfg);
        bad_places += !same_places(w, &cfg);
        bad_units += !good_units(w, &cfg);
        dnn_window_free(w);
    }
    is_int(bad_places, 0, "3000 random windows: tiles are where a scan finds them");
    is_int(bad_units, 0,
           "units are neighbours that cover the sample; so are their tiles");
}

/* ---- errors ---- */

static void fails(struct dnn_window_cfg cfg, int code, const char *want)
{
    struct dnn_window *w = make(cfg);

    is_text(w == NULL ? err.text : "", want, want);
    is_int(err.code, code, "its code");
    dnn_window_free(w);
}

static void test_errors(void)
{
    const struct dnn_window_cfg good = {
        .ndim = 2, .full = {9, 9},
             .tile = {4, 4}
    };
    struct dnn_window_cfg cfg = good;

    cfg.ndim = 4;
    fails(cfg, DNN_ECONFIG,
          "a sample with 4 spatial axes cannot be cut into tiles; it must have 1 to 3");
    cfg = good;
    cfg.full[1] = 0;
    fails(cfg, DNN_EDATA,
          "axis 1 of a sample has extent 0; tiles need 1 to 1099511627776");
    cfg = good;
    cfg.tile[0] = -2;
    fails(cfg, DNN_ECONFIG,
          "inference.tile: axis 0 is -2; it must be between 1 and 16777216");
    cfg = good;
    cfg.overlap[1] = 1;
    fails(cfg, DNN_ECONFIG,
          "inference.overlap: axis 1 is 1; it must be at least 0 and less than 1, as a "
          "fraction of a tile");
    cfg.overlap[1] = NAN;
    ok(make(cfg) == NULL, "an overlap that is NaN is an error");
    cfg = good;
    cfg.blend = DNN_WINDOW_GAUSSIAN;
    fails(cfg, DNN_ECONFIG,
          "inference.sigma: is 0; it must be above 0, as a fraction of a tile (usual: "
          "0.125)");
    cfg = good;
    cfg.full[0] = cfg.full[1] = (int64_t)1 << 40;
    fails(cfg, DNN_EDATA, "a sample or a tile has too many points");
}

int main(void)
{
    test_known();
    test_order();
    test_units();
    test_random();
    test_errors();
    return done();
}
