/* direct_weights.c - runs the planned gradient of the weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/direct_impl.h"

#include <omp.h>
#include <string.h>

struct task {
    struct dnn_direct_plan p;
    const float *unpadded, *a, *b, *dy;
    float *dw, *db, *work;
};

/* A block of output positions, and the region of the input it reads. */
struct block {
    int64_t n, from[3], to[3];
    int64_t lo[3], size[3]; /* start and extents of the region */
    float *pack_a, *pack_b;
};

/* ---- first: the padded copy, and the offsets of the taps in it ---- */

static void copy_row(float *to, const float *from, int64_t count, int64_t c,
                     int64_t pitch)
{
    if (pitch == c) {
        memcpy(to, from, (size_t)(count * c) * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * c, from + i * pitch, (size_t)c * sizeof *to);
}

/* One padded plane (of n * padded[0]). */
static void pad_plane(const struct task *j, int64_t plane)
{
    const struct dnn_direct_conv *v = &j->p.from;
    const int64_t *size = j->p.padded;
    int64_t n = plane / size[0], d = plane % size[0] - v->before[0];
    int64_t row = size[2] * v->c, left = v->before[2], from = left < 0 ? -left : 0;
    int64_t to = v->in[2] < size[2] - left ? v->in[2] : size[2] - left;
    float *out = j->work + j->p.pad_at + plane * size[1] * row;

    memset(out, 0, (size_t)(size[1] * row) * sizeof *out);
    if (d < 0 || d >= v->in[0] || to <= from) return;
    for (int64_t h = 0; h < size[1]; h++, out += row) {
        int64_t y = h - v->before[1];

        if (y < 0 || y >= v->in[1]) continue;
        copy_row(out + (from + left) * v->c,
                 j->unpadded +
                     (((n * v->in[0] + d) * v->in[1] + y) * v->in[2] + from) * v->pitch,
                 to - from, v->c, v->pitch);
    }
}

static void list_offsets(const struct task *j)
{
    const struct dnn_direct_conv *v = &j->p.from;
    int64_t *off = (int64_t *)(void *)(j->work + j->p.off_at);

    for (int64_t d = 0; d < v->kernel[0]; d++)
        for (int64_t h = 0; h < v->kernel[1]; h++)
            for (int64_t w = 0; w < v->kernel[2]; w++)
                for (int64_t c = 0; c < v->c; c++)
                    *off++ =
                        ((d * v->dilation[0] * j->p.padded[1] + h * v->dilation[1]) *
                             j->p.padded[2] +
                         w * v->dilation[2]) *
                            v->c +
                        c;
}

/* ---- a block: packed in the order in which tiles read it ---- */

static struct block block_at(const struct task *j, int64_t index, float *pack)
{
    const struct dnn_direct_plan *p = &j->p;
    struct block k = {.pack_a = pack, .pack_b = pack + p->pack_b_at};

    for (int i = 2; i >= 0; i--) {
        int64_t part = index % p->parts[i], end;

        index /= p->parts[i];
        k.from[i] = dnn_direct_cut(p->conv.out[i], p->parts[i], part);
        k.to[i] = dnn_direct_cut(p->conv.out[i], p->parts[i], part + 1);
        dnn_direct_reach(&p->conv, i, k.from[i], k.to[i], &k.lo[i], &end);
        k.size[i] = end - k.lo[i];
    }
    k.n = index;
    return k;
}

/* Gather count pieces of `floats` floats; from one to the next it is `apart` floats. */
static inline __attribute__((always_inline)) void
gather_exact(float *to, const float *from, int64_t count, int64_t apart, int64_t floats)
{
    for (int64_t i = 0; i < count; i++, from += apart, to += floats)
        memcpy(to, from, (size_t)floats * sizeof *to);
}

static void gather_padded(float *to, const float *from, int64_t count, int64_t apart,
                          int64_t floats, int64_t piece)
{
    for (int64_t i = 0; i < count; i++, from += apart, to += piece)
        for (int64_t f = 0; f < piece; f++)
            to[f] = f < floats ? from[f] : 0;
}

#define GATHER(size)                                                                   \
    case size:                                                                         \
        gather_exact(to, from, count, apart, size);                                    \
        break

/* The same, with each piece padded with zeros to piece floats. Common sizes are
 * compile-time constants: a copy then is a few moves. */
static void gather(float *to, const float *from, int64_t count, int64_t apart,
                   int64_t floats, int64_t piece)
{
    switch (floats == piece ? piece : 0) {
        GATHER(4);
        GATHER(5);
        GATHER(6);
        GATHER(7);
        GATHER(8);
        GATHER(9);
        GATHER(10);
        GATHER(11);
        GATHER(12);
        GATHER(16);
        GATHER(32);
    default:
        gather_padded(to, from, count, apart, floats, piece);
    }
}

static void pack_a(const struct task *j, const struct block *k)
{
    const struct dnn_direct_conv *v = &j->p.conv;
    int64_t tiles = j->p.row_tiles[j->p.wide > 0 ? 2 : 1];
    int64_t positions = k->size[0] * k->size[1] * k->size[2];

    for (int64_t d = 0; d < k->size[0]; d++)
        for (int64_t h = 0; h < k->size[1]; h++) {
            int64_t at = ((k->n * v->in[0] + k->lo[0] + d) * v->in[1] + k->lo[1] + h) *
                             v->in[2] +
                         k->lo[2];
            int64_t to = (d * k->size[1] + h) * k->size[2];

            for (int64_t t = 0; t < tiles; t++) {
                int64_t c = dnn_direct_cut(v->c, tiles, t);
                int64_t rows = dnn_direct_cut(v->c, tiles, t + 1) - c;

                gather(k->pack_a + c * positions + to * rows, j->a + at * v->pitch + c,
                       k->size[2], v->pitch, rows, rows);
            }
        }
}

/* Column tiles first to last, inclusive. */
static void pack_b(const struct task *j, const struct block *k, int64_t first,
                   int64_t last)
{
    const struct dnn_direct_conv *v = &j->p.conv;
    int64_t size[3], wide = 2 * j->p.isa->lanes;

    for (int i = 0; i < 3; i++)
        size[i] = k->to[i] - k->from[i];
    for (int64_t d = 0; d < size[0]; d++)
        for (int64_t h = 0; h < size[1]; h++) {
            int64_t at =
                ((k->n * v->out[0] + k->from[0] + d) * v->out[1] + k->from[1] + h) *
                    v->out[2] +
                k->from[2];
            int64_t to = (d * size[1] + h) * size[2];

            for (int64_t t = first; t <= last; t++) {
                int64_t col = t * wide, piece = t < j->p.wide ? wide : wide / 2;
                int64_t floats = v->m - col < piece ? v->m - col : piece;

                gather(k->pack_b + col * size[0] * size[1] * size[2] + to * piece,
                       j->b + at * v->m + col, size[2], v->m, floats, piece);
            }
        }
}

/* ---- a block: its tiles ---- */

/* Set counts and steps of the positions that a tap has in the block; *at_a and *at_b
 * become the first position, in the arrays or in the packed block. */
static void find_positions(const struct task *j, const struct block *k, int64_t tap,
                           struct dnn_direct_tile *t, int64_t *at_a, int64_t *at_b)
{
    const struct dnn_direct_conv *v = &j->p.conv;
    int64_t index[3] = {tap / (v->kernel[1] * v->kernel[2]),
                        tap / v->kernel[2] % v->kernel[1], tap % v->kernel[2]};
    int64_t step_a = 1, step_b = 1;

    *at_a = *at_b = 0;
    for (int i = 2; i >= 0; i--) {
        int64_t lo, hi;

        dnn_direct_range(v, i, index[i], k->from[i], k->to[i], &lo, &hi);
        int64_t in = lo * v->stride[i] + index[i] * v->dilation[i] - v->before[i];
        t->count[i] = hi - lo;
        t->a_step[i] = step_a * v->stride[i];
        t->b_step[i] = step_b;
        *at_a += step_a * (j->p.pack_a ? in - k->lo[i] : in);
        *at_b += step_b * (j->p.pack_b ? lo - k->from[i] : lo);
        step_a *= j->p.pack_a ? k->size[i] : v->in[i];
        step_b *= j->p.pack_b ? k->to[i] - k->from[i] : v->out[i];
    }
    if (!j->p.pack_a) *at_a += step_a * k->n;
    if (!j->p.pack_b) *at_b += step_b * k->n;
    if (t->count[0] == 0 || t->count[1] == 0 || t->count[2] == 0) t->count[0] = 0;
}

/* Row tile r of a tap and column tile c; where: at_a and at_b of find_positions(). */
static void run_tile(const struct task *j, const struct block *k,
                     struct dnn_direct_tile t, const int64_t where[2], int64_t r,
                     int64_t c)
{
    const struct dnn_direct_plan *p = &j->p;
    int64_t row = dnn_direct_cut(p->rows, p->row_tiles[t.vecs], r);
    int64_t rows = dnn_direct_cut(p->rows, p->row_tiles[t.vecs], r + 1) - row;
    int64_t col = c * 2 * p->isa->lanes, piece = (int64_t)t.vecs * p->isa->lanes;
    int64_t gap_a = p->pack_a ? rows : p->conv.pitch,
            gap_b = p->pack_b ? piece : p->conv.m;

    if (t.count[0] == 0 && !t.first) return;
    t.rows = (int)rows;
    t.d += row * p->cols + col;
    t.d_step = p->cols;
    for (int i = 0; i < 3; i++) {
        t.a_step[i] *= gap_a;
        t.b_step[i] *= gap_b;
    }
    if (t.count[0] > 0) {
        t.a = p->pack_a ? k->pack_a + row * k->size[0] * k->size[1] * k->size[2]
                        : j->a + (p->spread ? 0 : row);
        t.b = p->pack_b
                  ? k->pack_b + col * (k->to[0] - k->from[0]) *
                                    (k->to[1] - k->from[1]) * (k->to[2] - k->from[2])
                  : j->b + col;
        t.a += where[0] * gap_a;
        t.b += where[1] * gap_b;
    }
    if (p->spread) t.off = (int64_t *)(void *)(j->work + p->off_at) + row;
    p->isa->tile(&t);
}

/* Items are ordered by column tile, then tap, then row tile. */
static void run_items(const struct task *j, const struct block *k, float *d,
                      int64_t item, int64_t end, bool first)
{
    const struct dnn_direct_plan *p = &j->p;
    int64_t wides = p->wide * p->taps * p->row_tiles[2];

    while (item < end) {
        struct dnn_direct_tile t = {.vecs = item < wides ? 2 : 1, .first = first};
        int64_t of = p->row_tiles[t.vecs], index = item < wides ? item : item - wides;
        int64_t tap = index / of % p->taps, r = index % of, where[2];
        int64_t col = item < wides ? index / of / p->taps : p->wide;

        find_positions(j, k, tap, &t, &where[0], &where[1]);
        t.d = d + tap * p->rows * p->cols;
        for (; r < of && item < end; r++, item++)
            run_tile(j, k, t, where, r, col);
    }
}

static int64_t column_of(const struct dnn_direct_plan *p, int64_t item)
{
    int64_t each = p->taps * p->row_tiles[2], col = item / each;

    return col < p->wide ? col : p->wide;
}

static void sum_bias(const struct task *j, const struct block *k, float *sum)
{
    const struct dnn_direct_conv *v = &j->p.conv;

    for (int64_t d = k->from[0]; d < k->to[0]; d++)
        for (int64_t h = k->from[1]; h < k->to[1]; h++)
            j->p.isa->columns(
                j->dy + (((k->n * v->out[0] + d) * v->out[1] + h) * v->out[2] +
                         k->from[2]) *
                            v->m,
                k->to[2] - k->from[2], v->m, v->m, sum);
}

/* With swapped sides dy is a, and blocks are not over its positions: sum them
 * separately. */
static void sum_bias_swapped(const struct task *j, int64_t from, int64_t to, float *sum)
{
    const struct dnn_direct_conv *v = &j->p.from;

    for (; from < to; from += 1024)
        j->p.isa->columns(j->dy + from * v->c, to - from < 1024 ? to - from : 1024,
                          v->c, v->c, sum);
}

/* The work of member t of the team. */
static void run_member(const struct task *j, int t)
{
    const struct dnn_direct_plan *p = &j->p;
    int tb = t / p->over_items, ti = t % p->over_items;
    int64_t blk = dnn_direct_cut(p->blocks, p->over_blocks, tb);
    int64_t end = dnn_direct_cut(p->blocks, p->over_blocks, tb + 1);
    int64_t item = dnn_direct_cut(p->items, p->over_items, ti);
    int64_t last = dnn_direct_cut(p->items, p->over_items, ti + 1);
    int64_t outputs = p->swap ? p->conv.c : p->conv.m;
    float *d =
        p->direct ? j->dw : j->work + p->copy_at + tb * ((p->size + 15) / 16 * 16);
    float *bias = j->work + p->bias_at + t * ((outputs + 15) / 16 * 16);
    float *pack = j->work + p->pack_at + t * p->pack_size;
    bool first = true;

    memset(bias, 0, (size_t)outputs * sizeof *bias);
    for (; blk < end; blk++, first = false) {
        struct block k = block_at(j, blk, pack);

        if (j->db != NULL && !p->swap && blk % p->over_items == ti)
            sum_bias(j, &k, bias);
        if (p->pack_a) pack_a(j, &k);
        if (p->pack_b) pack_b(j, &k, column_of(p, item), column_of(p, last - 1));
        run_items(j, &k, d, item, last, first);
    }
    if (j->db != NULL && p->swap) {
        int64_t all = p->from.n * p->from.in[0] * p->from.in[1] * p->from.in[2];
        int64_t team = (int64_t)p->over_blocks * p->over_items;

        sum_bias_swapped(j, dnn_direct_cut(all, team, t),
                         dnn_direct_cut(all, team, t + 1), bias);
    }
}

/* ---- last: add the private sums, always in the same order ---- */

static void add_row(const struct task *j, int64_t row)
{
    const struct dnn_direct_plan *p = &j->p;
    int64_t size = (p->size + 15) / 16 * 16, m = p->conv.m;
    float *d = j->work + p->copy_at + row * p->cols;

    for (int i = 1; i < p->over_blocks; i++)
        for (int64_t c = 0; c < m; c++)
            d[c] += d[i * size + c];
    if (!p->swap) {
        memcpy(j->dw + row * m, d, (size_t)m * sizeof *d);
        return;
    }
    /* Rows are (tap, output), taps in reverse order; columns are inputs. */
    int64_t outputs = p->conv.c, taps = p->rows / outputs;
    float *to = j->dw + (taps - 1 - row / outputs) * m * outputs + row % outputs;
    for (int64_t c = 0; c < m; c++)
        to[c * outputs] = d[c];
}

static void add_bias(const struct task *j)
{
    int64_t outputs = j->p.swap ? j->p.conv.c : j->p.conv.m;
    const float *bias = j->work + j->p.bias_at;

    memcpy(j->db, bias, (size_t)outputs * sizeof *bias);
    for (int t = 1; t < j->p.over_blocks * j->p.over_items; t++)
        for (int64_t i = 0; i < outputs; i++)
            j->db[i] += bias[t * ((outputs + 15) / 16 * 16) + i];
}

/* One thread's work, with as few barriers as possible. Work is planned for a number of
 * members, which are distributed to the threads: a team that is smaller than requested
 * gives the same result. */
static void run_thread(const struct task *j, int self, int threads)
{
    const struct dnn_direct_plan *p = &j->p;
    int64_t planes = p->pad ? p->from.n * p->padded[0] : 0;
    int64_t rows = p->direct ? 0 : p->taps * p->rows;

    for (int64_t i = dnn_direct_cut(planes, threads, self);
         i < dnn_direct_cut(planes, threads, self + 1); i++)
        pad_plane(j, i);
    if (self == 0 && p->spread) list_offsets(j);
    if (p->spread) {
#pragma omp barrier
    }
    for (int t = self; t < p->over_blocks * p->over_items; t += threads)
        run_member(j, t);
    if (rows == 0 && j->db == NULL) return;
#pragma omp barrier
    for (int64_t i = dnn_direct_cut(rows, threads, self);
         i < dnn_direct_cut(rows, threads, self + 1); i++)
        add_row(j, i);
    if (self == 0 && j->db != NULL) add_bias(j);
}

void dnn_direct_weights(const struct dnn_direct_conv *conv, const float *x,
                        const float *dy, float *dw, float *db, void *work, int threads)
{
    struct task j = {.p = dnn_direct_plan(conv, threads), .dy = dy, .dw = dw, .db = db};

    j.work = (float *)(void *)(((uintptr_t)work + 63) & ~(uintptr_t)63);
    j.unpadded = j.p.swap ? dy : x;
    j.a = j.p.pad ? j.work + j.p.pad_at : j.unpadded;
    j.b = j.p.swap ? x : dy;
#pragma omp parallel num_threads(threads < 1 ? 1 : threads)
    run_thread(&j, omp_get_thread_num(), omp_get_num_threads());
}
