/* wino.c - convolutions with three taps along the last axis in half the
 * multiplications, or along the last two in a quarter, forward and backward data.
 *
 * Four outputs of a row, or a square of them, are a tile (wino_impl.h).  A block of
 * tiles, some rows high and some tiles wide, is done for one output plane after
 * another: its inputs' values at the six points are kept for as many planes as the
 * kernel is deep, so each input is transformed about once; at each point a block is
 * then a matrix product over the other axes' taps and all channels.  Backward data is
 * the same with the kernel mirrored.
 *
 * The bits of the result depend on the shape and the instruction set alone: whichever
 * the blocks, each sum has the same order.
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
    NEAR = 400 * 1024,         /* bytes of values at the points that stay near       */
    NEAR_SQUARE = 1280 * 1024, /* of squares: each is read less often                */
    SUMS = 72,                 /* tiles whose sums stay near                         */
    WIDEST = 48                /* floats of a panel                                  */
};

/* ---- planning ---- */

/* Backward data: a convolution of dy with the kernel mirrored on every axis. */
static struct dnn_direct_conv mirrored(const struct dnn_direct_conv *v)
{
    struct dnn_direct_conv b = *v;

    b.c = v->m;
    b.m = v->c;
    for (int i = 0; i < 3; i++) {
        b.in[i] = v->out[i];
        b.out[i] = v->in[i];
        b.before[i] = v->kernel[i] - 1 - v->before[i];
    }
    return b;
}

static int64_t parts_of(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

/* What such blocks cost, about, in cycles of a core with 8 lanes. */
static double cost(const struct dnn_wino *s, int64_t across, int64_t down, int64_t deep,
                   int threads)
{
    const struct dnn_direct_conv *v = &s->v;
    double wide = (double)parts_of(s->tiles, across);
    double high = (double)parts_of(s->stacks, down), rows = high + (double)s->lines - 1;
    double values = s->points * wide * rows * (double)v->c, planes = (double)deep;
    double weights = (double)(s->vecs * s->lanes * s->rows * s->points);
    double sums = wide * high * planes * weights / 16;
    double groups = ceil(wide * high * planes / SUMS);
    int64_t units = v->n * parts_of(v->out[0], deep) * across * down;
    double turns = (double)parts_of(units, (int64_t)threads);
    double kept = values * (double)(v->kernel[0] + deep - 1) * sizeof(float);

    if (kept > (s->tall == 1 ? NEAR : NEAR_SQUARE)) sums *= 1.1;
    return turns * (sums + values * planes * (0.4 + 0.4 / wide) + groups * weights / 4);
}

/* The blocks that cost least.  Where a plane is small, several share the weights while
 * they are near. */
static void cut(struct dnn_wino *s, int threads)
{
    double least = INFINITY;

    for (int64_t a = 1; a <= s->tiles; a += 1 + a / 8)
        for (int64_t d = 1; d <= s->stacks; d += 1 + d / 8) {
            int64_t most = a * d > 1 ? 1 : SUMS / (s->tiles * s->stacks);

            if (most > s->v.out[0]) most = s->v.out[0];
            for (int64_t deep = 1; deep == 1 || deep <= most; deep++) {
                double now = cost(s, a, d, deep, threads);

                if (now >= least) continue;
                least = now;
                s->across = a;
                s->down = d;
                s->deep = deep;
            }
        }
    s->wide = parts_of(s->tiles, s->across);
    s->high = parts_of(s->stacks, s->down);
    s->layers = parts_of(s->v.out[0], s->deep);
    s->units = s->v.n * s->across * s->down * s->layers;
}

/* Samples are planes of one where planes have nothing to do with each other. */
static void fold(struct dnn_direct_conv *v)
{
    if (v->kernel[0] != 1 || v->before[0] != 0 || v->in[0] != v->out[0]) return;
    v->in[0] *= v->n;
    v->out[0] *= v->n;
    v->n = 1;
}

static struct dnn_wino plan(const struct dnn_step *step, int tall, int threads)
{
    const struct dnn_op_unary *post = step->op->post;
    struct cpu_window g = dnn_cpu_window(step);
    struct dnn_wino s = {
        .v = g.conv, .back = step->op->pass == DNN_BWD_DATA, .tall = tall};

    if (s.back) s.v = mirrored(&g.conv);
    fold(&s.v);
    s.isa = dnn_wino_find();
    s.lanes = s.isa->is->lanes;
    s.points = dnn_wino_lines(tall) * DNN_WINO_POINTS;
    s.lines = tall == 1 ? s.v.kernel[1] : 1;
    s.taps = s.v.kernel[0] * s.lines;
    s.stacks = parts_of(s.v.out[1], tall);
    s.vecs = parts_of(s.v.m, s.lanes);
    s.panels = s.vecs == 1 ? 1 : s.vecs / 2;
    s.rows = s.taps * s.v.c;
    s.tiles = parts_of(s.v.out[2], OUT);
    cut(&s, threads);
    /* Not a power of two apart, which caches do not like. */
    s.ring = s.v.kernel[0] + s.deep - 1;
    s.v_step = s.ring * (s.high + s.lines - 1) * s.wide * s.v.c + 16;
    s.group = SUMS;
    if (s.group > s.high * s.wide * s.deep) s.group = s.high * s.wide * s.deep;
    s.m_step = s.group * dnn_wino_vecs(&s, s.panels - 1) * s.lanes + 16;
    s.size = parts_of(s.points * (s.v_step + s.m_step), 16) * 16;
    s.relu = post != NULL && post->fn == DNN_RELU && post->threshold == 0 &&
             isinf(post->max_value);
    s.alpha = s.relu ? (float)post->alpha : 0;
    return s;
}

/* ---- packing ---- */

/* Mirrored rows of taps, from row on, of neighbours that are far apart, side by side.
 */
static void gather(const struct dnn_wino *s, const float *w, int64_t row, int64_t first,
                   int64_t k, int64_t cols, float *to)
{
    int64_t taps = s->v.kernel[0] * s->v.kernel[1] * 3;

    for (int64_t j = 0; j < (s->tall == 1 ? 3 : 9); j++) {
        const float *from =
            w + ((taps - 1 - row * 3 - j) * s->v.m + first) * s->v.c + k;

        for (int64_t i = 0; i < cols; i++)
            to[j * WIDEST + i] = from[i * s->v.c];
    }
}

static void pack_tap(const struct dnn_wino *s, const float *w, int64_t panel,
                     int64_t tap, float *to)
{
    int64_t first = panel * 2 * s->lanes, row = s->tall == 1 ? tap : 3 * tap;
    int vecs = dnn_wino_vecs(s, panel);
    int64_t width = vecs * s->lanes, left = s->v.m - first;
    float near[9 * WIDEST];
    struct dnn_wino_filter now = {.tall = s->tall,
                                  .step = s->back ? WIDEST : s->v.c * s->v.m,
                                  .cols = left < width ? left : width,
                                  .vecs = vecs,
                                  .u_step = dnn_wino_sheet(s, panel)};

    now.row = 3 * now.step;
    for (int64_t k = 0; k < s->v.c; k++) {
        now.g = w + (row * 3 * s->v.c + k) * s->v.m + first;
        if (s->back) {
            gather(s, w, row, first, k, now.cols, near);
            now.g = near;
        }
        now.u = to + (tap * s->v.c + k) * width;
        s->isa->filter(&now);
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
    if (!s->fresh || s->weights != c->now.weights) pack(s, c);
    s->fresh = true;
    s->weights = c->now.weights;
    /* Neighbouring units share inputs: one thread alone does them in one go. */
    int threads = omp_in_parallel() ? 1 : c->threads;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int i = 0; i < threads; i++) {
        int64_t from, to;

        dnn_cpu_share(s->units, threads, i, &from, &to);
        dnn_wino_walk(s, c, from, to, (float *)c->work + i * s->size);
    }
    if (!s->relu) dnn_cpu_post(c);
    return 0;
}

/* ---- the algo ---- */

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
           v->kernel[0] * v->kernel[1] <= DNN_WINO_MOST && v->c >= 8 && v->m >= 8 &&
           v->in[2] >= OUT && v->out[2] >= OUT && dnn_cpu_post_can(step);
}

static bool can_square(const struct dnn_step *step)
{
    struct cpu_window g = dnn_cpu_window(step);

    return can(step) && g.conv.kernel[1] == DNN_WINO_TAPS && g.conv.in[1] >= OUT &&
           g.conv.out[1] >= OUT;
}

/* Below that the transforms are too large a part of the work, or tiles of four by four
 * hang over the edges too far.  Found by measuring networks from the zoo. */
static bool best_square(const struct dnn_step *step)
{
    struct cpu_window g = dnn_cpu_window(step);
    const struct dnn_direct_conv *v = &g.conv;
    int64_t work = v->c * v->m * v->kernel[0], least_work = 192;

    if (v->out[1] < 4 * OUT || v->out[2] < 4 * OUT) least_work = 2048;
    return work >= least_work && v->out[1] >= 2 * OUT && v->out[2] >= 2 * OUT;
}

static bool best_row(const struct dnn_step *step)
{
    struct cpu_window g = dnn_cpu_window(step);

    return g.conv.kernel[1] > 1 && g.conv.out[2] >= 2 * OUT;
}

static void need_of(const struct dnn_wino *s, int threads, struct dnn_need *need)
{
    int64_t last = s->panels - 1, sheets = s->points * dnn_wino_sheet(s, last);

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

const struct dnn_wino_isa *dnn_wino_find(void)
{
    static const struct dnn_wino_isa *const isas[] = {
        &dnn_wino_plain,
#if defined(__x86_64__)
        &dnn_wino_avx2,
        &dnn_wino_avx512,
#endif
    };
    const struct dnn_direct_isa *is = dnn_direct_find();
    size_t i = 0;

    while (isas[i]->is != is)
        i++;
    return isas[i];
}

#define WAY(variable, title, fits, wins, needs, prepares)                              \
    const struct cpu_algo variable = {.name = title,                                   \
                                      .can = fits,                                     \
                                      .best = wins,                                    \
                                      .in_pitch = 1,                                   \
                                      .out_pitch = 1,                                  \
                                      .need = needs,                                   \
                                      .prepare = prepares,                             \
                                      .run = run,                                      \
                                      .discard = dnn_free,                             \
                                      .by_isa = true}

WAY(dnn_cpu_wino_rows, "wino 1x4", can, best_row, need, prepare);
WAY(dnn_cpu_wino_squares, "wino 4x4", can_square, best_square, need_square,
    prepare_square);
