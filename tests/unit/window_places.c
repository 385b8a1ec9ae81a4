/* window_places.c - places of tiles and slabs: hand-worked cases, a plain scan for
 * random ones, errors.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
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
    int64_t first, n, last;
    is_int(dnn_window_slabs(w), 4, "slabs of 2 planes");
    dnn_window_slab(w, 3, &first, &n);
    ok(first == 6 && n == 2, "the last one is planes 6 and 7");
    dnn_window_slab_tiles(w, 1, 2, &first, &last);
    ok(first == 0 && last == 4, "planes 2 and 3 are in tiles 0 to 3");
    dnn_window_slab_tiles(w, 3, 4, &first, &last);
    ok(first == 4 && last == 6, "planes 6 and 7 are in tiles 4 and 5");
    dnn_window_slab_tiles(w, 2, 2, &first, &last);
    is_int(last - first, 0, "no slab, no tile");
    dnn_window_free(w);
    dnn_window_free(NULL);
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
static int scan(int64_t full, int64_t tile, double overlap, int64_t start[64])
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
    int64_t start[3][64], at[3], tile = 0;
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

/* Slabs are all planes in order; the tiles of every range are those that overlap it. */
static bool good_slabs(const struct dnn_window *w, const struct dnn_window_cfg *cfg)
{
    int64_t slabs = dnn_window_slabs(w), plane = 0, first, n, last, at[3];

    for (int64_t s = 0; s < slabs; s++) {
        dnn_window_slab(w, s, &first, &n);
        if (first != plane || n < 1) return false;
        plane += n;
    }
    if (plane != cfg->full[0]) return false;
    for (int64_t from = 0; from < slabs; from++)
        for (int64_t to = from + 1; to <= slabs; to++) {
            int64_t low, high;

            dnn_window_slab(w, from, &low, &n);
            dnn_window_slab(w, to - 1, &high, &n);
            high += n;
            dnn_window_slab_tiles(w, from, to, &first, &last);
            for (int64_t t = 0; t < dnn_window_tiles(w); t++) {
                dnn_window_start(w, t, at);
                bool in = at[0] < high && at[0] + cfg->tile[0] > low;
                if (in != (t >= first && t < last)) return false;
            }
        }
    return true;
}

static void test_random(void)
{
    int bad_places = 0, bad_slabs = 0;

    rng = dnn_rng_make(1, 2);
    for (int i = 0; i < 3000; i++) {
        struct dnn_window_cfg cfg = {.ndim = (int)draw(1, 3)};

        for (int a = 0; a < cfg.ndim; a++) {
            cfg.full[a] = draw(1, cfg.ndim == 3 ? 12 : 40);
            cfg.tile[a] = draw(1, cfg.ndim == 3 ? 8 : 20);
            cfg.overlap[a] = (double)draw(0, 18) / 20;
        }
        struct dnn_window *w = make(cfg);
        bad_places += !same_places(w, &cfg);
        bad_slabs += !good_slabs(w, &cfg);
        dnn_window_free(w);
    }
    is_int(bad_places, 0, "3000 random windows: tiles are where a scan finds them");
    is_int(bad_slabs, 0, "slabs cover the sample, and their tiles overlap them");
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
    fails(cfg, DNN_ECONFIG, "axis 0 of a tile has extent -2; it must be 1 to 16777216");
    cfg = good;
    cfg.overlap[1] = 1;
    fails(cfg, DNN_ECONFIG,
          "the overlap of tiles along axis 1 is 1; it must be a fraction of a tile, at "
          "least 0 and less than 1");
    cfg.overlap[1] = NAN;
    ok(make(cfg) == NULL, "an overlap that is NaN is an error");
    cfg = good;
    cfg.blend = DNN_WINDOW_GAUSSIAN;
    fails(cfg, DNN_ECONFIG,
          "sigma of Gaussian weights is 0; it must be above 0, as a fraction of a tile "
          "(usual: 0.125)");
    cfg = good;
    cfg.full[0] = cfg.full[1] = (int64_t)1 << 40;
    fails(cfg, DNN_EDATA, "a sample or a tile has too many points");
}

int main(void)
{
    test_known();
    test_order();
    test_random();
    test_errors();
    return done();
}
