/* wino_weights.c - runs the planned Winograd gradient of the weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/wino_weights_impl.h"

#include <omp.h>
#include <string.h>

enum {
    POINTS = DNN_WINO_WEIGHTS_POINTS,
    OUT = DNN_WINO_WEIGHTS_OUT,
    TAPS = DNN_WINO_WEIGHTS_TAPS,
    PREFETCH_CHANNELS = 32 /* with more the hardware prefetcher does not work */
};

/* The computation of one gradient. */
struct task {
    struct dnn_wino_weights_plan p;
    const float *x, *dy;
    float *dw, *db, *work;
};

/* A block of outputs, in pieces on the last axis; lo and size: start and number of the
 * planes and rows of x it reads. */
struct block {
    int64_t n, from[3], to[3];
    int64_t lo[2], size[2];
    int64_t column; /* the same for blocks that follow each other along planes */
    float *own;     /* workspace of the team member */
};

/* Number of pieces of a block in its transformed dy. */
static int64_t pieces_of(const struct block *k)
{
    return (k->to[0] - k->from[0]) * (k->to[1] - k->from[1]) * (k->to[2] - k->from[2]);
}

/* Number of vectors of column tile t. */
static int vecs_of(const struct dnn_wino_weights_plan *p, int64_t t)
{
    int64_t left = p->cols / p->lanes - t * p->vecs;

    return (int)(left < p->vecs ? left : p->vecs);
}

static struct block block_at(const struct task *j, int64_t index, float *own)
{
    const struct dnn_wino_weights_plan *p = &j->p;
    struct block k = {.column = index / p->parts[0], .own = own};

    for (int i = 0; i < 3; i++) {
        int64_t out = i == 2 ? p->pieces : p->conv.out[i], part = index % p->parts[i];

        index /= p->parts[i];
        k.from[i] = dnn_direct_cut(out, p->parts[i], part);
        k.to[i] = dnn_direct_cut(out, p->parts[i], part + 1);
        if (i == 2) continue;
        int64_t end;
        dnn_direct_reach(&p->conv, i, k.from[i], k.to[i], &k.lo[i], &end);
        k.size[i] = end - k.lo[i];
    }
    k.n = index;
    return k;
}

/* ---- transforming ---- */

/* Transform count consecutive pieces of x and store them from `piece` on in the plane
 * in a slot. */
static void put_x(const struct task *j, const struct block *k, const float *x,
                  int64_t pitch, int64_t count, int64_t slot, int64_t piece)
{
    const struct dnn_wino_weights_plan *p = &j->p;

    for (int64_t r = 0; r < p->row_tiles; r++) {
        int64_t rows, plane, at = dnn_wino_weights_x_at(p, r, &rows, &plane);

        p->isa->x(&(struct dnn_wino_weights_x){
            .count = count,
            .pitch = pitch,
            .rows = rows,
            .point_step = p->x_step,
            .x = x + dnn_direct_cut(p->conv.c, p->row_tiles, r),
            .to = k->own + p->x_in + at + slot * plane + piece * rows});
    }
}

/* A piece at the edge of a row, which has padding, or at the end of the array, which
 * must not be read past its end: uses a copy. */
static void put_x_edge(const struct task *j, const struct block *k, const float *row,
                       int64_t at, int64_t slot, int64_t piece)
{
    const struct dnn_direct_conv *v = &j->p.conv;
    int64_t pitch = v->c + DNN_WINO_WEIGHTS_SLACK;
    float *edge = k->own + j->p.edge_in;

    memset(edge, 0, (size_t)(POINTS * pitch) * sizeof *edge);
    for (int i = 0; i < POINTS; i++)
        if (at + i >= 0 && at + i < v->in[2])
            memcpy(edge + i * pitch, row + (at + i) * v->pitch,
                   (size_t)v->c * sizeof *row);
    put_x(j, k, edge, pitch, 1, slot, piece);
}

static void make_x_row(const struct task *j, const struct block *k, int64_t d,
                       int64_t h)
{
    const struct dnn_direct_conv *v = &j->p.conv;
    int64_t pos = ((k->n * v->in[0] + d) * v->in[1] + h) * v->in[2];
    int64_t after = v->n * v->in[0] * v->in[1] * v->in[2] - pos -
                    (DNN_WINO_WEIGHTS_SLACK + v->c - 1) / v->c;
    int64_t last = (after < v->in[2] ? after : v->in[2]) - POINTS;
    int64_t slot = d % j->p.ring, count = k->to[2] - k->from[2];
    int64_t to = (h - k->lo[1]) * count;
    const float *row = j->x + pos * v->pitch;

    for (int64_t i = 0; i < count;) {
        int64_t at = (k->from[2] + i) * OUT - v->before[2];

        if (at < 0 || at > last) {
            put_x_edge(j, k, row, at, slot, to + i++);
            continue;
        }
        int64_t run = (last - at) / OUT + 1;
        if (run > count - i) run = count - i;
        put_x(j, k, row + at * v->pitch, v->pitch, run, slot, to + i);
        i += run;
    }
}

/* Transform the planes of x that the block reads; planes before `done` are already
 * transformed. */
static void make_x(const struct task *j, const struct block *k, int64_t done)
{
    for (int64_t d = done > k->lo[0] ? done : k->lo[0]; d < k->lo[0] + k->size[0]; d++)
        for (int64_t h = k->lo[1]; h < k->lo[1] + k->size[1]; h++)
            make_x_row(j, k, d, h);
}

static void put_y(const struct task *j, const struct block *k, const float *y,
                  int64_t pitch, int64_t count, int64_t piece)
{
    const struct dnn_wino_weights_plan *p = &j->p;
    int64_t all = pieces_of(k);

    for (int64_t t = 0; t < p->col_tiles; t++) {
        int64_t col = t * p->vecs * p->lanes;
        int vecs = vecs_of(p, t);

        p->isa->y(&(struct dnn_wino_weights_y){.count = count,
                                               .pitch = pitch,
                                               .point_step = p->y_step,
                                               .vecs = vecs,
                                               .y = y + col,
                                               .to = k->own + p->y_in + col * all +
                                                     piece * vecs * p->lanes});
    }
}

static void make_y_row(const struct task *j, const struct block *k, int64_t d,
                       int64_t h)
{
    const struct dnn_direct_conv *v = &j->p.conv;
    int64_t row = ((k->n * v->out[0] + d) * v->out[1] + h) * v->out[2];
    int64_t count = k->to[2] - k->from[2], inside = v->out[2] / OUT - k->from[2];
    int64_t to = ((d - k->from[0]) * (k->to[1] - k->from[1]) + h - k->from[1]) * count;
    const float *y = j->dy + (row + k->from[2] * OUT) * v->m;
    float *edge = k->own + j->p.edge_in;

    /* Channels that do not fill vectors: use copies for all pieces. */
    if (v->m != j->p.cols) inside = 0;
    if (inside > count) inside = count;
    if (inside > 0) put_y(j, k, y, v->m, inside, to);
    for (int64_t i = inside; i < count; i++) {
        memset(edge, 0, (size_t)(OUT * j->p.cols) * sizeof *edge);
        for (int64_t o = 0; o < OUT && (k->from[2] + i) * OUT + o < v->out[2]; o++)
            memcpy(edge + o * j->p.cols, y + (i * OUT + o) * v->m,
                   (size_t)v->m * sizeof *y);
        put_y(j, k, edge, j->p.cols, 1, to + i);
    }
}

static void make_y(const struct task *j, const struct block *k)
{
    for (int64_t d = k->from[0]; d < k->to[0]; d++)
        for (int64_t h = k->from[1]; h < k->to[1]; h++)
            make_y_row(j, k, d, h);
}

/* Prefetch part number part of the first floats of each of some planes, step apart. */
static void prefetch_part(const float *from, int64_t planes, int64_t step,
                          int64_t floats, int64_t part, int64_t parts)
{
    int64_t end = dnn_direct_cut(floats, parts, part + 1);

    for (; planes > 0; planes--, from += step)
        for (int64_t i = dnn_direct_cut(floats, parts, part); i < end; i += 16)
            __builtin_prefetch(from + i, 0, 2);
}

/* Prefetch a part of the arrays that a block will transform, if the hardware prefetcher
 * does not. */
static void prefetch(const struct task *j, const struct block *k, int64_t done,
                     int64_t part, int64_t parts)
{
    const struct dnn_direct_conv *v = &j->p.conv;
    int64_t d = done > k->lo[0] ? done : k->lo[0], end = k->lo[0] + k->size[0];
    int64_t row = v->in[2] * v->pitch, first = k->from[2] * OUT, last = k->to[2] * OUT;
    int64_t x = first < v->in[2] ? first : v->in[2];
    int64_t x_end = last < v->in[2] ? last : v->in[2];

    if (end > d && k->size[1] > 0 && v->pitch > PREFETCH_CHANNELS)
        prefetch_part(j->x + ((k->n * v->in[0] + d) * v->in[1] + k->lo[1]) * row +
                          x * v->pitch,
                      end - d, v->in[1] * row,
                      (k->size[1] - 1) * row + (x_end - x) * v->pitch, part, parts);
    row = v->out[2] * v->m;
    if (last > v->out[2]) last = v->out[2];
    if (v->m > PREFETCH_CHANNELS)
        prefetch_part(
            j->dy + ((k->n * v->out[0] + k->from[0]) * v->out[1] + k->from[1]) * row +
                first * v->m,
            k->to[0] - k->from[0], v->out[1] * row,
            (k->to[1] - k->from[1] - 1) * row + (last - first) * v->m, part, parts);
}

static void sum_bias(const struct task *j, const struct block *k, float *sum)
{
    const struct dnn_direct_conv *v = &j->p.conv;
    int64_t from = k->from[2] * OUT, to = k->to[2] * OUT;

    if (to > v->out[2]) to = v->out[2];
    for (int64_t d = k->from[0]; d < k->to[0]; d++)
        for (int64_t h = k->from[1]; h < k->to[1]; h++)
            j->p.isa->direct->columns(
                j->dy + (((k->n * v->out[0] + d) * v->out[1] + h) * v->out[2] + from) *
                            v->m,
                to - from, v->m, v->m, sum);
}

/* ---- products ---- */

/* The pieces that each tap has in the block. */
static struct dnn_wino_weights_tap *find_taps(const struct task *j,
                                              const struct block *k)
{
    const struct dnn_direct_conv *v = &j->p.conv;
    struct dnn_wino_weights_tap *taps = (void *)(k->own + j->p.taps_in);
    int64_t row = k->to[2] - k->from[2], plane = (k->to[1] - k->from[1]) * row;

    for (int64_t t = 0; t < j->p.taps; t++) {
        int64_t index[2] = {t / v->kernel[1], t % v->kernel[1]}, lo[2], hi[2], in[2];

        for (int i = 0; i < 2; i++) {
            dnn_direct_range(v, i, index[i], k->from[i], k->to[i], &lo[i], &hi[i]);
            in[i] = lo[i] + index[i] - v->before[i];
        }
        taps[t] = (struct dnn_wino_weights_tap){
            .planes = hi[1] > lo[1] ? hi[0] - lo[0] : 0,
            .count = (hi[1] - lo[1]) * row,
            .slot = hi[0] > lo[0] ? in[0] % j->p.ring : 0,
            .at_x = (in[1] - k->lo[1]) * row,
            .at_y = (lo[0] - k->from[0]) * plane + (lo[1] - k->from[1]) * row};
        if (taps[t].planes == 0) taps[t].at_x = taps[t].at_y = 0;
    }
    return taps;
}

/* The sums of an item (point, column tile, row tile), for all taps. */
static void run_item(const struct task *j, const struct block *k, float *sums,
                     int64_t item, const struct dnn_wino_weights_tap *taps, bool first)
{
    const struct dnn_wino_weights_plan *p = &j->p;
    int64_t r = item % p->row_tiles, c = item / p->row_tiles % p->col_tiles;
    int64_t point = item / p->row_tiles / p->col_tiles;
    int64_t col = c * p->vecs * p->lanes,
            row = dnn_direct_cut(p->conv.c, p->row_tiles, r);
    int64_t rows, plane, at = dnn_wino_weights_x_at(p, r, &rows, &plane);
    struct dnn_wino_weights_tile t = {
        .vecs = vecs_of(p, c), .rows = (int)rows, .first = first};
    int64_t wide = t.vecs * p->lanes;
    const float *x = k->own + p->x_in + point * p->x_step + at;
    const float *y = k->own + p->y_in + point * p->y_step + col * pieces_of(k);

    t.ring = p->ring;
    t.a_plane = plane;
    t.b_plane = (k->to[1] - k->from[1]) * (k->to[2] - k->from[2]) * wide;
    t.sums = sums + point * p->size + p->taps * (p->conv.c * col + row * wide);
    for (int64_t i = 0; i < p->taps; i++, t.sums += rows * wide) {
        if (taps[i].planes == 0 && !first) continue;
        t.planes = taps[i].planes;
        t.count = taps[i].count;
        t.slot = taps[i].slot;
        t.a = x + taps[i].at_x * rows;
        t.b = y + taps[i].at_y * wide;
        p->isa->tile(&t);
    }
}

/* The work of member t of the team. */
static void run_member(const struct task *j, int t)
{
    const struct dnn_wino_weights_plan *p = &j->p;
    int tb = t / p->over_items, ti = t % p->over_items;
    int64_t blk = dnn_direct_cut(p->blocks, p->over_blocks, tb);
    int64_t end = dnn_direct_cut(p->blocks, p->over_blocks, tb + 1);
    int64_t from = dnn_direct_cut(p->items, p->over_items, ti);
    int64_t to = dnn_direct_cut(p->items, p->over_items, ti + 1);
    int64_t column = -1, done = 0;
    float *own = j->work + p->own_at + t * p->own_size;
    bool first = true;

    memset(own + p->bias_in, 0, (size_t)p->conv.m * sizeof *own);
    for (; blk < end; blk++, first = false) {
        struct block k = block_at(j, blk, own);
        const struct dnn_wino_weights_tap *taps = find_taps(j, &k);

        make_x(j, &k, k.column == column ? done : 0);
        make_y(j, &k);
        column = k.column;
        done = k.lo[0] + k.size[0];
        if (j->db != NULL && blk % p->over_items == ti)
            sum_bias(j, &k, own + p->bias_in);
        struct block next = block_at(j, blk + 1 < end ? blk + 1 : blk, own);
        for (int64_t i = from; i < to; i++) {
            if (blk + 1 < end)
                prefetch(j, &next, next.column == column ? done : 0, i - from,
                         to - from);
            run_item(j, &k, j->work + tb * p->sums_size, i, taps, first);
        }
    }
}

/* ---- last: add the private sums, always in the same order ---- */

/* Row tile r of a tap. */
static void end_tile(const struct task *j, int64_t tap, int64_t r)
{
    const struct dnn_wino_weights_plan *p = &j->p;
    int64_t c = p->conv.c, m = p->conv.m, row = dnn_direct_cut(c, p->row_tiles, r);
    int64_t rows = dnn_direct_cut(c, p->row_tiles, r + 1) - row;

    for (int64_t t = 0; t < p->col_tiles; t++) {
        int64_t col = t * p->vecs * p->lanes, wide = vecs_of(p, t) * p->lanes;
        const float *sums =
            j->work + p->taps * (c * col + row * wide) + tap * rows * wide;

        for (int64_t i = 0; i < rows; i++)
            p->isa->end(&(struct dnn_wino_weights_end){
                .copies = p->over_blocks,
                .copy_step = p->sums_size,
                .point_step = p->size,
                .cols = m - col < wide ? m - col : wide,
                .to_step = c * m,
                .sums = sums + i * wide,
                .to = j->dw + (tap * TAPS * c + row + i) * m + col});
    }
}

static void end_bias(const struct task *j)
{
    const struct dnn_wino_weights_plan *p = &j->p;
    const float *bias = j->work + p->own_at + p->bias_in;

    memcpy(j->db, bias, (size_t)p->conv.m * sizeof *bias);
    for (int t = 1; t < p->over_blocks * p->over_items; t++)
        for (int64_t i = 0; i < p->conv.m; i++)
            j->db[i] += bias[t * p->own_size + i];
}

/* One thread's work. Work is planned for a number of members, which are distributed to
 * the threads: a team that is smaller than requested gives the same result. */
static void run_thread(const struct task *j, int self, int threads)
{
    const struct dnn_wino_weights_plan *p = &j->p;
    int64_t tiles = p->taps * p->row_tiles;

    for (int t = self; t < p->over_blocks * p->over_items; t += threads)
        run_member(j, t);
#pragma omp barrier
    for (int64_t i = dnn_direct_cut(tiles, threads, self);
         i < dnn_direct_cut(tiles, threads, self + 1); i++)
        end_tile(j, i / p->row_tiles, i % p->row_tiles);
    if (self == 0 && j->db != NULL) end_bias(j);
}

void dnn_wino_weights(const struct dnn_direct_conv *conv, const float *x,
                      const float *dy, float *dw, float *db, void *work, int threads)
{
    struct task j = {
        .p = dnn_wino_weights_plan(conv, threads), .x = x, .dy = dy, .dw = dw};

    j.db = db;
    j.work = (float *)(void *)(((uintptr_t)work + 63) & ~(uintptr_t)63);
#pragma omp parallel num_threads(threads < 1 ? 1 : threads)
    run_thread(&j, omp_get_thread_num(), omp_get_num_threads());
}
