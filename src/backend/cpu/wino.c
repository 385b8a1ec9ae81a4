/* wino.c - Winograd convolutions with three taps along the last axis (half the
 * multiplications) or the last two (a quarter), forward and backward data.
 *
 * A tile is four outputs of a row, or 4 x 4 outputs (wino_impl.h). A block of tiles is
 * computed plane by plane: the transformed inputs are kept for as many planes as the
 * kernel has, so that each input is transformed about once; at each point a block is
 * then a matrix product over the taps of the other axes and all channels. Backward data
 * is the same with the kernel mirrored.
 *
 * Results depend only on the shape and the instruction set: each sum is added in the
 * same order for all sizes of blocks.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/wino_impl.h"
#include "base/mem.h"

#include <math.h>
#include <omp.h>

enum {
    OUT = DNN_WINO_OUT,
    CACHE_BYTES = 400 * 1024, /* bytes of values at the points that stay in the cache */
    CACHE_BYTES_4X4 =
        1280 * 1024,    /* the same for 4 x 4 tiles: values are read less often */
    MAX_SUM_TILES = 72, /* tiles whose sums stay in the cache                         */
    MAX_PANEL = 48      /* maximum floats of a row of a panel                 */
};

/* ---- planning ---- */

static int64_t ceil_div(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

/* Estimated cost of a division into blocks, in cycles of a core with 8 lanes. */
static double cost(const struct dnn_wino *s, int64_t across, int64_t down, int64_t deep,
                   int threads)
{
    const struct dnn_direct_conv *v = &s->v;
    double wide = (double)ceil_div(s->tiles, across);
    double high = (double)ceil_div(s->tile_rows, down),
           rows = high + (double)s->lines - 1;
    double values = s->points * wide * rows * (double)v->c, planes = (double)deep;
    double weights = (double)(s->vecs * s->lanes * s->rows * s->points);
    double sums = wide * high * planes * weights / 16;
    double groups = ceil(wide * high * planes / MAX_SUM_TILES);
    int64_t units = v->n * ceil_div(v->out[0], deep) * across * down;
    double rounds = (double)ceil_div(units, (int64_t)threads);
    double kept = values * (double)(v->kernel[0] + deep - 1) * sizeof(float);

    if (kept > (s->height == 1 ? CACHE_BYTES : CACHE_BYTES_4X4)) sums *= 1.1;
    return rounds *
           (sums + values * planes * (0.4 + 0.4 / wide) + groups * weights / 4);
}

/* Choose the blocks with the least cost.  Blocks of several small planes use the
 * weights while they are in the cache. */
static void choose_blocks(struct dnn_wino *s, int threads)
{
    double least_cost = INFINITY;

    for (int64_t a = 1; a <= s->tiles; a += 1 + a / 8)
        for (int64_t d = 1; d <= s->tile_rows; d += 1 + d / 8) {
            int64_t max = a * d > 1 ? 1 : MAX_SUM_TILES / (s->tiles * s->tile_rows);

            if (max > s->v.out[0]) max = s->v.out[0];
            for (int64_t deep = 1; deep == 1 || deep <= max; deep++) {
                double cycles = cost(s, a, d, deep, threads);

                if (cycles >= least_cost) continue;
                least_cost = cycles;
                s->across = a;
                s->down = d;
                s->deep = deep;
            }
        }
    s->wide = ceil_div(s->tiles, s->across);
    s->high = ceil_div(s->tile_rows, s->down);
    s->layers = ceil_div(s->v.out[0], s->deep);
    s->units = s->v.n * s->across * s->down * s->layers;
}

/* If the kernel has depth 1, treat all samples as planes of a single one. */
static void fold(struct dnn_direct_conv *v)
{
    if (v->kernel[0] != 1 || v->before[0] != 0 || v->in[0] != v->out[0]) return;
    v->in[0] *= v->n;
    v->out[0] *= v->n;
    v->n = 1;
}

static struct dnn_wino plan(const struct dnn_step *step, int height, int threads)
{
    const struct dnn_op_unary *post = step->op->post;
    struct cpu_window g = dnn_cpu_window(step);
    struct dnn_wino s = {
        .v = g.conv, .back = step->op->pass == DNN_BWD_DATA, .height = height};

    if (s.back) s.v = dnn_cpu_mirrored(&g.conv);
    fold(&s.v);
    s.isa = dnn_wino_find();
    s.lanes = s.isa->direct->lanes;
    s.points = dnn_wino_lines(height) * DNN_WINO_POINTS;
    s.lines = height == 1 ? s.v.kernel[1] : 1;
    s.taps = s.v.kernel[0] * s.lines;
    s.tile_rows = ceil_div(s.v.out[1], height);
    s.vecs = ceil_div(s.v.m, s.lanes);
    s.panels = s.vecs == 1 ? 1 : s.vecs / 2;
    s.rows = s.taps * s.v.c;
    s.tiles = ceil_div(s.v.out[2], OUT);
    choose_blocks(&s, threads);
    /* + 16: distances of a power of two cause cache conflicts. */
    s.ring = s.v.kernel[0] + s.deep - 1;
    s.v_step = s.ring * (s.high + s.lines - 1) * s.wide * s.v.c + 16;
    s.group = MAX_SUM_TILES;
    if (s.group > s.high * s.wide * s.deep) s.group = s.high * s.wide * s.deep;
    s.m_step = s.group * dnn_wino_vecs(&s, s.panels - 1) * s.lanes + 16;
    s.size = ceil_div(s.points * (s.v_step + s.m_step), 16) * 16;
    s.relu = post != NULL && post->fn == DNN_RELU && post->threshold == 0 &&
             isinf(post->max_value);
    s.alpha = s.relu ? (float)post->alpha : 0;
    return s;
}

/* ---- packing ---- */

/* Gather the mirrored taps of cols neighbouring channels, from row of taps row on. */
static void gather_taps(const struct dnn_wino *s, const float *w, int64_t row,
                        int64_t first, int64_t k, int64_t cols, float *to)
{
    int64_t taps = s->v.kernel[0] * s->v.kernel[1] * 3;

    for (int64_t j = 0; j < (s->height == 1 ? 3 : 9); j++) {
        const float *from =
            w + ((taps - 1 - row * 3 - j) * s->v.m + first) * s->v.c + k;

        for (int64_t i = 0; i < cols; i++)
            to[j * MAX_PANEL + i] = from[i * s->v.c];
    }
}

static void pack_tap(const struct dnn_wino *s, const float *w, int64_t panel,
                     int64_t tap, float *to)
{
    int64_t first = panel * 2 * s->lanes, row = s->height == 1 ? tap : 3 * tap;
    int vecs = dnn_wino_vecs(s, panel);
    int64_t width = vecs * s->lanes, left = s->v.m - first;
    float buf[9 * MAX_PANEL];
    struct dnn_wino_filter f = {.height = s->height,
                                .step = s->back ? MAX_PANEL : s->v.c * s->v.m,
                                .cols = left < width ? left : width,
                                .vecs = vecs,
                                .u_step = dnn_wino_panel_size(s, panel)};

    f.row = 3 * f.step;
    for (int64_t k = 0; k < s->v.c; k++) {
        f.g = w + (row * 3 * s->v.c + k) * s->v.m + first;
        if (s->back) {
            gather_taps(s, w, row, first, k, f.cols, buf);
            f.g = buf;
        }
        f.u = to + (tap * s->v.c + k) * width;
        s->isa->filter(&f);
    }
}

static void pack(const struct dnn_wino *s, const struct cpu_call *c)
{
    const float *bias = !s->back && c->op->nin > 2 ? c->in[2].mem : NULL;
    float *keep = c->keep;

    for (int64_t i = 0; i < dnn_wino_bias(s); i++)
        keep[i] = bias != NULL && i < s->v.m ? bias[i] : 0;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t i = 0; i < s->panels * s->taps; i++)
        pack_tap(s, c->in[1].mem, i / s->taps, i % s->taps,
                 keep + dnn_wino_panel(s, i / s->taps));
}

/* ---- running ---- */

static int run(struct dnn_dev *dev, const struct cpu_call *c, void *state,
               struct dnn_err *err)
{
    struct dnn_wino *s = state;

    (void)dev, (void)err;
    if (cpu_pack_needed(&s->packed, c)) pack(s, c);
    /* Inside a parallel region one thread runs all units together: neighbouring units
     * share inputs. */
    int threads = omp_in_parallel() ? 1 : c->threads;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int i = 0; i < threads; i++) {
        int64_t from, to;

        dnn_cpu_share(s->units, threads, i, &from, &to);
        dnn_wino_run(s, c, from, to, (float *)c->work + i * s->size);
    }
    if (!s->relu) dnn_cpu_post(c);
    return 0;
}

/* ---- the kernels ---- */

static bool can(const struct dnn_step *step)
{
    struct cpu_window g = dnn_cpu_window(step);
    const struct dnn_direct_conv *v = &g.conv;

    for (int i = 0; i < 3; i++)
        if (v->stride[i] != 1 || v->dilation[i] != 1 || v->before[i] < 0 ||
            v->in[i] < 1 || v->out[i] < 1)
            return false;
    return g.groups == 1 && v->n > 0 && v->kernel[2] == DNN_WINO_TAPS &&
           v->before[2] < DNN_WINO_TAPS &&
           v->kernel[0] * v->kernel[1] <= DNN_WINO_MAX_TAPS && v->c >= 8 && v->m >= 8 &&
           v->in[2] >= OUT && v->out[2] >= OUT && dnn_cpu_post_can(step);
}

static bool can_square(const struct dnn_step *step)
{
    struct cpu_window g = dnn_cpu_window(step);

    return can(step) && g.conv.kernel[1] == DNN_WINO_TAPS && g.conv.in[1] >= OUT &&
           g.conv.out[1] >= OUT;
}

/* Below these limits the transforms take too large a part of the time, or too much of
 * the 4 x 4 tiles is beyond the edges.  From measurements with networks of the zoo. */
static bool best_square(const struct dnn_step *step)
{
    struct cpu_window g = dnn_cpu_window(step);
    const struct dnn_direct_conv *v = &g.conv;
    int64_t work = v->c * v->m * v->kernel[0], min_work = 192;

    if (v->out[1] < 4 * OUT || v->out[2] < 4 * OUT) min_work = 2048;
    return work >= min_work && v->out[1] >= 2 * OUT && v->out[2] >= 2 * OUT;
}

static bool best_row(const struct dnn_step *step)
{
    struct cpu_window g = dnn_cpu_window(step);

    return g.conv.kernel[1] > 1 && g.conv.out[2] >= 2 * OUT;
}

static void need_of(const struct dnn_wino *s, int threads, struct dnn_need *need)
{
    int64_t last = s->panels - 1, sheets = s->points * dnn_wino_panel_size(s, last);

    *need = (struct dnn_need){.work = (size_t)(threads * s->size) * sizeof(float),
                              .keep = (size_t)(dnn_wino_panel(s, last) + sheets) *
                                      sizeof(float)};
}

static int need(struct dnn_dev *dev, const struct dnn_step *step, struct dnn_need *need,
                struct dnn_err *err)
{
    struct dnn_wino s = plan(step, 1, dev->threads);

    (void)err;
    need_of(&s, dev->threads, need);
    return 0;
}

static int need_square(struct dnn_dev *dev, const struct dnn_step *step,
                       struct dnn_need *need, struct dnn_err *err)
{
    struct dnn_wino s = plan(step, OUT, dev->threads);

    (void)err;
    need_of(&s, dev->threads, need);
    return 0;
}

static struct dnn_wino *state_of(struct dnn_wino s)
{
    struct dnn_wino *state = dnn_alloc(sizeof *state);

    *state = s;
    return state;
}

static int prepare(struct dnn_dev *dev, const struct dnn_step *step,
                   const struct cpu_call *call, void **state, struct dnn_err *err)
{
    (void)call, (void)err;
    *state = state_of(plan(step, 1, dev->threads));
    return 0;
}

static int prepare_square(struct dnn_dev *dev, const struct dnn_step *step,
                          const struct cpu_call *call, void **state,
                          struct dnn_err *err)
{
    (void)call, (void)err;
    *state = state_of(plan(step, OUT, dev->threads));
    return 0;
}

static const struct cpu_packed *packed(const void *state)
{
    return &((const struct dnn_wino *)state)->packed;
}

const struct dnn_wino_isa *dnn_wino_find(void)
{
    static const struct dnn_wino_isa *const isas[] = {
        &dnn_wino_plain,
#if defined(__x86_64__)
        &dnn_wino_avx2,
        &dnn_wino_avx512,
#endif
    };

    return isas[dnn_direct_level()];
}

#define ALGO(variable, title, fits, is_best, needs, prepares)                          \
    const struct cpu_algo variable = {.name = title,                                   \
                                      .can = fits,                                     \
                                      .best = is_best,                                 \
                                      .in_pitch = 1,                                   \
                                      .out_pitch = 1,                                  \
                                      .need = needs,                                   \
                                      .prepare = prepares,                             \
                                      .run = run,                                      \
                                      .discard = dnn_free,                             \
                                      .packed = packed,                                \
                                      .by_isa = true}

ALGO(dnn_cpu_wino_rows, "wino 1x4", can, best_row, need, prepare);
ALGO(dnn_cpu_wino_squares, "wino 4x4", can_square, best_square, need_square,
     prepare_square);
