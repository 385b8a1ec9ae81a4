/* bsp.c - bulk-synchronous data parallelism: gradients are summed over all ranks before
 * each update.
 *
 * The all-reduce of a bucket starts as soon as the bucket is final and overlaps with
 * the computation of later ones.  Deterministic: micro-batches are added to exact sums,
 * and the exact sums are all-reduced.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "parallel/rule_impl.h"

#include "base/mem.h"
#include "base/tensor.h"
#include "parallel/exact.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 4 }; /* micro-batches added to exact sums in one pass */

struct bsp {
    struct dnn_rule_cfg cfg;
    struct dnn_comm *comm;
    struct dnn_params params;
    struct dnn_bucket_range *bucket; /* owned */
    struct dnn_comm_req **req;       /* owned, by bucket; NULL: none, or finished */
    bool single_rank;                /* the communicator has one rank */
    double *sums;         /* owned; deterministic: two per element, bucket by bucket */
    uint16_t *compressed; /* owned: compressed gradients */
    /* Owned: the sum of the earlier micro-batches of the step; deterministic: those
     * that are not yet added to sums. */
    float *earlier;
    int *nadded; /* owned, by bucket: number of micro-batches so far */
};

static int64_t length(const struct bsp *b, int p)
{
    return b->bucket[p].last - b->bucket[p].first;
}

static void stop(void *self)
{
    struct bsp *b = self;

    if (b == NULL) return;
    dnn_free(b->bucket);
    dnn_free(b->req);
    dnn_free(b->nadded);
    free(b->earlier);
    free(b->sums);
    free(b->compressed);
    dnn_free(b);
}

static void *alloc_aligned(size_t bytes)
{
    void *mem;

    return posix_memalign(&mem, 64, bytes == 0 ? 64 : bytes) == 0 ? mem : NULL;
}

static int start(const struct dnn_rule_cfg *cfg, struct dnn_comm *comm,
                 const struct dnn_params *params, void **self, struct dnn_err *err)
{
    struct bsp *b = dnn_alloc(sizeof *b);
    size_t n = (size_t)params->nbuckets;
    size_t sums = cfg->deterministic ? 2 * (size_t)params->count * sizeof(double) : 0;
    bool single_rank = dnn_comm_size(comm) == 1;
    size_t compressed = cfg->compress == DNN_COMPRESS_NONE || single_rank
                            ? 0
                            : (size_t)params->count * sizeof(uint16_t);

    *b = (struct bsp){
        .cfg = *cfg, .comm = comm, .params = *params, .single_rank = single_rank};
    b->bucket = dnn_alloc((n + 1) * sizeof *b->bucket);
    memcpy(b->bucket, params->bucket, n * sizeof *b->bucket);
    b->req = dnn_alloc((n + 1) * sizeof *b->req);
    b->nadded = dnn_alloc((n + 1) * sizeof *b->nadded);
    if (sums > 0) b->sums = alloc_aligned(sums);
    if (compressed > 0) b->compressed = alloc_aligned(compressed);
    if ((sums > 0 && b->sums == NULL) || (compressed > 0 && b->compressed == NULL)) {
        stop(b);
        return dnn_fail(err, DNN_ENOMEM,
                        "the exchange of gradients needs %zu MB more memory, which is "
                        "not available",
                        (sums + compressed) >> 20);
    }
    *self = b;
    return 0;
}

static int alloc_earlier(struct bsp *b, struct dnn_err *err)
{
    size_t vectors = b->cfg.deterministic ? AT_ONCE - 1 : 1;
    size_t bytes = vectors * (size_t)b->params.count * sizeof *b->earlier;

    if (b->earlier == NULL) b->earlier = alloc_aligned(bytes);
    if (b->earlier == NULL)
        return dnn_fail(
            err, DNN_ENOMEM,
            "summing micro-batches needs %zu MB more memory, which is not available",
            bytes >> 20);
    return 0;
}

static void pack(struct bsp *b, int p)
{
    const float *g = b->params.grad + b->bucket[p].first;
    uint16_t *to = b->compressed + b->bucket[p].first;
    int64_t n = length(b, p);

    if (b->cfg.compress == DNN_COMPRESS_BF16)
        for (int64_t i = 0; i < n; i++)
            to[i] = dnn_bf16_from_f32(g[i]);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = dnn_f16_from_f32(g[i]);
}

static void unpack(struct bsp *b, int p)
{
    float *g = b->params.grad + b->bucket[p].first;
    const uint16_t *from = b->compressed + b->bucket[p].first;
    int64_t n = length(b, p);

    if (b->cfg.compress == DNN_COMPRESS_BF16)
        for (int64_t i = 0; i < n; i++)
            g[i] = dnn_bf16_to_f32(from[i]);
    else
        for (int64_t i = 0; i < n; i++)
            g[i] = dnn_f16_to_f32(from[i]);
}

/* The exact sums of a bucket, both units in one message. */
static double *sums_of(const struct bsp *b, int p)
{
    return b->sums + 2 * b->bucket[p].first;
}

static int send(struct bsp *b, int p, struct dnn_err *err)
{
    int64_t n = length(b, p);
    void *buf = b->params.grad + b->bucket[p].first;
    enum dnn_comm_type type = b->params.f64 ? DNN_COMM_F64 : DNN_COMM_F32;

    if (b->params.f64) n /= 2;
    if (b->cfg.deterministic) {
        buf = sums_of(b, p);
        type = DNN_COMM_F64;
        n *= 2;
    } else if (b->compressed != NULL) {
        pack(b, p);
        buf = b->compressed + b->bucket[p].first;
        type = b->cfg.compress == DNN_COMPRESS_BF16 ? DNN_COMM_BF16 : DNN_COMM_F16;
    }
    if (b->single_rank) return 0;
    return dnn_comm_start(b->comm, "gradients", buf, n, type, DNN_COMM_SUM, &b->req[p],
                          err);
}

enum { MIN_PARALLEL = 1 << 15 }; /* minimum elements of a parallel loop */

static void copy(float *to, const float *from, int64_t n)
{
#pragma omp parallel for simd schedule(static) if (n > MIN_PARALLEL)
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i];
}

/* total += from */
static void sum(float *total, const float *from, int64_t n, bool f64)
{
    if (f64) {
        double *to = (double *)(void *)total;
        const double *x = (const double *)(const void *)from;

        for (int64_t i = 0; i < n / 2; i++)
            to[i] += x[i];
        return;
    }
#pragma omp parallel for simd schedule(static) if (n > MIN_PARALLEL)
    for (int64_t i = 0; i < n; i++)
        total[i] += from[i];
}

/* The i-th stored micro-batch of a bucket. */
static float *earlier_at(const struct bsp *b, int p, int i)
{
    return b->earlier + i * b->params.count + b->bucket[p].first;
}

/* Add micro-batches to the exact sums; on a single rank, adding the last ones gives the
 * gradient directly. */
static void add_vectors(struct bsp *b, int p, const float *const *x, int m, bool last)
{
    bool fresh = b->nadded[p] < AT_ONCE, good;
    int64_t n = length(b, p);
    double *sums = sums_of(b, p);

    if (last && b->single_rank) {
        float *grad = b->params.grad + b->bucket[p].first;

        good = dnn_exact_sum(fresh ? NULL : sums, n, x, m, grad, n);
        if (!good) grad[0] = NAN;
        return;
    }
    good = dnn_exact_add(sums, n, x, m, n, fresh);
    /* With NaN in the sum, all ranks detect that a gradient is too large. */
    if (!good) sums[0] = NAN;
}

/* Store micro-batches until AT_ONCE can be added in one pass. */
static int add_exact(struct bsp *b, int p, const float *const *grads, int n, bool last,
                     struct dnn_err *err)
{
    int nearlier = b->nadded[p] % AT_ONCE, m = nearlier + n;
    const float **x = dnn_alloc((size_t)m * sizeof *x);
    int rc = 0;

    for (int i = 0; i < m; i++)
        x[i] = i < nearlier ? earlier_at(b, p, i)
                            : grads[i - nearlier] + b->bucket[p].first;
    int now = last ? m : m / AT_ONCE * AT_ONCE;
    if (now > 0) add_vectors(b, p, x, now, last);
    int from = now > nearlier ? now : nearlier;
    if (m > from) rc = alloc_earlier(b, err);
    for (int i = from; i < m && rc == 0; i++)
        copy(earlier_at(b, p, i - now), x[i], length(b, p));
    dnn_free(x);
    return rc;
}

/* Sum a slice over all micro-batches; nothing has been added to the sums before. */
static void slice(void *self, int p, int64_t first, int64_t last,
                  const float *const *grads, int n)
{
    struct bsp *b = self;
    float *grad = b->params.grad + first;
    double *sums = sums_of(b, p) + (first - b->bucket[p].first);

    if (b->single_rank) {
        if (!dnn_exact_sum(NULL, 0, grads, n, grad, last - first)) grad[0] = NAN;
    } else if (!dnn_exact_add(sums, length(b, p), grads, n, last - first, true)) {
        sums[0] = NAN;
    }
}

/* Add one micro-batch. */
static int add_f32(struct bsp *b, int p, const float *from, bool first, bool last,
                   struct dnn_err *err)
{
    float *grad = b->params.grad + b->bucket[p].first;
    int64_t n = length(b, p);

    if (first && last) {
        if (from != grad) copy(grad, from, n);
        return 0;
    }
    DNN_TRY(alloc_earlier(b, err));
    if (first)
        copy(earlier_at(b, p, 0), from, n);
    else
        sum(earlier_at(b, p, 0), from, n, b->params.f64);
    if (last) copy(grad, earlier_at(b, p, 0), n);
    return 0;
}

/* Add micro-batches to the earlier ones. */
static int bucket(void *self, int p, const float *const *grads, int n, bool last,
                  struct dnn_err *err)
{
    struct bsp *b = self;

    if (b->cfg.deterministic && n > 0)
        DNN_TRY(add_exact(b, p, grads, n, last, err));
    else
        for (int i = 0; i < n; i++)
            DNN_TRY(add_f32(b, p, grads[i] + b->bucket[p].first, b->nadded[p] + i == 0,
                            last && i == n - 1, err));
    b->nadded[p] += n;
    return last ? send(b, p, err) : 0;
}

static int poll(void *self, struct dnn_err *err)
{
    struct bsp *b = self;
    int rc = 0;

    /* It is enough to test the oldest: MPI makes progress on the others, too. */
    for (int p = 0; p < b->params.nbuckets && rc == 0; p++) {
        bool finished = false;

        if (b->req[p] == NULL) continue;
        rc = dnn_comm_test(b->req[p], &finished, err);
        if (!finished) break;
    }
    return rc;
}

static int before(void *self, struct dnn_err *err)
{
    struct bsp *b = self;

    for (int p = 0; p < b->params.nbuckets; p++) {
        int64_t n = length(b, p);

        DNN_TRY(dnn_comm_wait(b->req[p], err));
        b->req[p] = NULL;
        if (b->cfg.deterministic && !b->single_rank)
            dnn_exact_read(sums_of(b, p), n, b->params.grad + b->bucket[p].first, n);
        else if (b->compressed != NULL)
            unpack(b, p);
    }
    memset(b->nadded, 0, (size_t)b->params.nbuckets * sizeof *b->nadded);
    return 0;
}

const struct dnn_rule dnn_rule_bsp = {
    .name = "bsp",
    .help = "gradients of all ranks are added before each update",
    .start = start,
    .bucket = bucket,
    .slice = slice,
    .poll = poll,
    .before = before,
    .stop = stop,
};
