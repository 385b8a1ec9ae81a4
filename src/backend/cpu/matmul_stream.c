/* matmul_stream.c - matrix products of a few rows, limited by memory bandwidth.
 *
 * A small batch uses each weight only a few times, so it is best to read the weights
 * (or to write their gradient) once and in order. A GEMM would copy them first.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/direct_impl.h"
#include "backend/cpu/onednn_impl.h"

#include <string.h>

enum {
    CACHE_COLUMNS = 1024, /* columns of a row that stay in the cache              */
    L1_FLOATS = 4096,     /* floats that stay in the L1 cache                     */
    BAND_ROWS = 24,       /* rows of w whose results stay in the L1 cache         */
    LARGE = 16 << 20,     /* larger results (bytes) use non-temporal stores       */
};

/* x(rows, k) w(k, n). With more than DNN_DIRECT_MAX_ROWS rows a GEMM is faster. */
struct extents {
    const struct dnn_direct_isa *isa;
    int64_t rows, k, n;
    int64_t chunk, chunks; /* columns of a chunk; number of chunks */
};

static struct extents extents(int64_t rows, const struct dnn_shape *w)
{
    struct extents e = {.isa = dnn_direct_find(),
                        .rows = rows,
                        .k = w->dim[w->ndim - 2],
                        .n = w->dim[w->ndim - 1]};

    e.chunk = 2 * e.isa->lanes;
    e.chunks = (e.n + e.chunk - 1) / e.chunk;
    return e;
}

static struct extents extents_of(const struct dnn_step *step)
{
    bool weights = step->op->pass == DNN_BWD_WEIGHTS;

    return extents(dnn_cpu_array(step->in[0], NULL, 0).rows,
                   weights ? &step->out[0]->shape : &step->in[1]->shape);
}

static bool can(const struct dnn_step *step)
{
    struct extents e = extents_of(step);

    return e.rows > 0 && e.rows <= DNN_DIRECT_MAX_ROWS && e.k > 0 && e.n > 0 &&
           dnn_cpu_post_can(step);
}

/* ---- forward: x is transposed, then each thread computes some columns ---- */

static size_t forward_work(const struct dnn_step *step, int threads)
{
    struct extents e = extents_of(step);

    (void)threads;
    return (size_t)(e.rows * (e.k + 16 + e.chunks * e.chunk)) * sizeof(float);
}

static void transpose(const struct extents *e, const float *x, float *to, int64_t from,
                      int64_t end)
{
    for (int64_t k = from; k < end; k++)
        for (int64_t r = 0; r < e->rows; r++)
            to[k * e->rows + r] = x[r * e->k + k];
}

/* Chunks first ... last - 1. */
static void forward_part(const struct cpu_call *c, const struct extents *e,
                         const float *x, float *sum, int64_t first, int64_t last)
{
    int64_t col = first * e->chunk, cols = dnn_min64(last * e->chunk, e->n) - col;
    int64_t size = e->rows * e->chunk;
    const float *w = (const float *)c->in[1].mem + col;
    const float *bias = c->op->nin > 2 ? c->in[2].mem : NULL;
    float *y = c->out[0].mem;

    /* Rows of w per call: they should stay in the L1 cache for all tiles of x, but
     * fewer than 8 rows do not amortize loading and storing the sums. */
    int64_t depth =
        dnn_min64(DNN_DIRECT_DEPTH, L1_FLOATS / cols < 8 ? 8 : L1_FLOATS / cols);

    memset(sum + first * size, 0, (size_t)((last - first) * size) * sizeof *sum);
    for (int64_t k = 0; k < e->k; k += depth)
        e->isa->stream.add(x + k * e->rows, e->rows, w + k * e->n, e->n,
                           (int)dnn_min64(depth, e->k - k), cols, sum + first * size);
    for (int64_t i = col; i < col + cols; i++)
        for (int64_t r = 0; r < e->rows; r++)
            y[r * e->n + i] = sum[i / e->chunk * size + r * e->chunk + i % e->chunk] +
                              (bias == NULL ? 0 : bias[i]);
}

static void forward(const struct cpu_call *c)
{
    struct extents e = extents(c->in[0].rows, &c->in[1].shape);
    float *x = c->work, *sum = x + (e.rows * e.k + 15) / 16 * 16;

#pragma omp parallel num_threads(c->threads)
    {
#pragma omp for schedule(static)
        for (int i = 0; i < c->threads; i++) {
            int64_t first, last;

            dnn_cpu_share(e.k, c->threads, i, &first, &last);
            transpose(&e, c->in[0].mem, x, first, last);
        }
#pragma omp for schedule(static)
        for (int i = 0; i < c->threads; i++) {
            int64_t first, last;

            dnn_cpu_share(e.chunks, c->threads, i, &first, &last);
            if (first < last) forward_part(c, &e, x, sum, first, last);
        }
    }
    dnn_cpu_post(c);
}

/* ---- backward data: each thread reads some rows of w ---- */

/* Vectors run along the rows of dy: their number rounded up to whole vectors; 0: too
 * few to fill one. */
static int64_t padded(const struct extents *e)
{
    int lanes = e->isa->lanes;

    return e->rows < lanes ? 0 : (e->rows + lanes - 1) / lanes * lanes;
}

static size_t data_work(const struct dnn_step *step, int threads)
{
    struct extents e = extents_of(step);

    (void)threads;
    return (size_t)(padded(&e) * e.n) * sizeof(float);
}

static void transpose_padded(const struct extents *e, const float *dy, float *to,
                             int64_t i)
{
    int64_t rows = padded(e);

    for (int64_t r = 0; r < rows; r++)
        to[i * rows + r] = r < e->rows ? dy[r * e->n + i] : 0;
}

/* dx for up to BAND rows of w from row k on. */
static void data_band(const struct cpu_call *c, const struct extents *e, int64_t k)
{
    int64_t rows = padded(e), n = dnn_min64(BAND_ROWS, e->k - k);
    const float *w = (const float *)c->in[1].mem + k * e->n;
    float *dx = (float *)c->out[0].mem + k, buf[BAND_ROWS * DNN_DIRECT_MAX_ROWS];

    for (int64_t i = 0; i < n; i += DNN_DIRECT_ROWS)
        e->isa->stream.across(w + i * e->n, e->n,
                              (int)dnn_min64(DNN_DIRECT_ROWS, n - i), c->work, rows,
                              e->n, buf + i * rows);
    for (int64_t r = 0; r < e->rows; r++)
        for (int64_t i = 0; i < n; i++)
            dx[r * e->k + i] = buf[i * rows + r];
}

/* The same for few rows of dy, and up to DNN_DIRECT_DOTS rows of w. */
static void data_dots(const struct cpu_call *c, const struct extents *e, int64_t k)
{
    const float *dy = c->in[0].mem, *w = (const float *)c->in[1].mem + k * e->n;
    float *dx = (float *)c->out[0].mem + k;
    int n = (int)dnn_min64(DNN_DIRECT_DOTS, e->k - k);

    for (int64_t r = 0; r < e->rows; r++)
        for (int i = 0; i < n; i++)
            dx[r * e->k + i] = 0;
    for (int64_t col = 0; col < e->n; col += CACHE_COLUMNS)
        for (int64_t r = 0; r < e->rows; r += DNN_DIRECT_DOT_ROWS)
            e->isa->stream.dots(dy + r * e->n + col, e->n,
                                (int)dnn_min64(DNN_DIRECT_DOT_ROWS, e->rows - r),
                                w + col, e->n, n, dnn_min64(CACHE_COLUMNS, e->n - col),
                                dx + r * e->k, e->k);
}

static void data(const struct cpu_call *c)
{
    struct extents e = extents(c->in[0].rows, &c->in[1].shape);

    if (padded(&e) == 0) {
#pragma omp parallel for num_threads(c->threads) schedule(static)
        for (int64_t k = 0; k < e.k; k += DNN_DIRECT_DOTS)
            data_dots(c, &e, k);
        return;
    }
#pragma omp parallel num_threads(c->threads)
    {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < e.n; i++)
            transpose_padded(&e, c->in[0].mem, c->work, i);
#pragma omp for schedule(static)
        for (int64_t k = 0; k < e.k; k += BAND_ROWS)
            data_band(c, &e, k);
    }
}

/* ---- backward weights: dy in chunks, then each thread computes rows of dw ---- */

static size_t chunked_bytes(const struct extents *e)
{
    return (size_t)(e->rows * e->chunks * e->chunk) * sizeof(float);
}

static size_t weights_work(const struct dnn_step *step, int threads)
{
    struct extents e = extents_of(step);
    const struct dnn_tensor *db = dnn_cpu_out(step, 1);

    return chunked_bytes(&e) +
           (db == NULL ? 0 : dnn_cpu_sums_work(db->shape.dim[0], threads));
}

static void to_chunk(const struct extents *e, const float *dy, float *to, int64_t chunk)
{
    int64_t col = chunk * e->chunk, cols = dnn_min64(e->chunk, e->n - col);

    to += chunk * e->rows * e->chunk;
    for (int64_t r = 0; r < e->rows; r++, to += e->chunk)
        for (int64_t i = 0; i < e->chunk; i++)
            to[i] = i < cols ? dy[r * e->n + col + i] : 0;
}

static void sum_bias(const struct cpu_call *c, const struct extents *e)
{
    if (c->op->nout > 1 && c->out[1].mem != NULL)
        dnn_cpu_sums(&c->in[1], c->out[1].mem, (char *)c->work + chunked_bytes(e),
                     c->threads);
}

static void weights(const struct cpu_call *c)
{
    struct extents e = extents(c->in[0].rows, &c->out[0].shape);
    const float *x = c->in[0].mem;
    float *dy = c->work, *dw = c->out[0].mem;
    bool stream = c->out[0].count * (int64_t)sizeof *dw > LARGE && e.n % 16 == 0 &&
                  (uintptr_t)dw % 64 == 0;

#pragma omp parallel num_threads(c->threads)
    {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < e.chunks; i++)
            to_chunk(&e, c->in[1].mem, dy, i);
#pragma omp for schedule(static)
        for (int64_t k = 0; k < e.k; k += DNN_DIRECT_ROWS)
            e.isa->stream.outer(x + k, e.k, e.rows, dy,
                                (int)dnn_min64(DNN_DIRECT_ROWS, e.k - k), e.n,
                                dw + k * e.n, e.n, stream);
        e.isa->stream.fence();
    }
    sum_bias(c, &e);
}

/* ---- deferred backward weights: dy in chunks and x are stored ---- */

static size_t deferred_bytes(const struct cpu_call *c)
{
    struct extents e = extents(c->in[0].rows, &c->out[0].shape);

    return chunked_bytes(&e) + (size_t)(e.rows * e.k) * sizeof(float);
}

static void store_operands(const struct cpu_call *c, void *to)
{
    struct extents e = extents(c->in[0].rows, &c->out[0].shape);

    for (int64_t i = 0; i < e.chunks; i++)
        to_chunk(&e, c->in[1].mem, to, i);
    memcpy((char *)to + chunked_bytes(&e), c->in[0].mem,
           (size_t)(e.rows * e.k) * sizeof(float));
    sum_bias(c, &e);
}

static void deferred_rows(const struct cpu_call *c, const void *stored, int64_t first,
                          int64_t n, float *to)
{
    struct extents e = extents(c->in[0].rows, &c->out[0].shape);
    const float *dy = stored, *x = dy + chunked_bytes(&e) / sizeof *dy + first;

    for (int64_t k = 0; k < n; k += DNN_DIRECT_ROWS)
        e.isa->stream.outer(x + k, e.k, e.rows, dy,
                            (int)dnn_min64(DNN_DIRECT_ROWS, n - k), e.n, to + k * e.n,
                            e.n, false);
}

static const struct cpu_deferred deferred = {
    .bytes = deferred_bytes, .store = store_operands, .rows = deferred_rows};

const struct cpu_algo dnn_cpu_stream = {
    .name = "stream", .can = can, .fn = forward, .work = forward_work};
const struct cpu_algo dnn_cpu_stream_data = {
    .name = "stream", .can = can, .fn = data, .work = data_work};
const struct cpu_algo dnn_cpu_stream_weights = {.name = "stream",
                                                .can = can,
                                                .fn = weights,
                                                .work = weights_work,
                                                .deferred = &deferred};
