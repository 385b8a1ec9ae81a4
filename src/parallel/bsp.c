/* bsp.c - bulk-synchronous: the gradients of all ranks are added before each update.
 *
 * A bucket's sum starts as soon as the bucket is final and goes on while later ones
 * are computed.  In deterministic mode buckets are first added up, part by part, as
 * exact sums, which travel in their place.
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

enum { AT_ONCE = 4 }; /* vectors that exact sums take best */

struct bsp {
    struct dnn_rule_cfg cfg;
    struct dnn_comm *comm;
    struct dnn_params params;
    struct dnn_bucket_range *bucket; /* owned */
    struct dnn_comm_req **req; /* owned; NULL: none, or finished                    */
    bool alone;      /* there are no other ranks                                      */
    double *sums;    /* owned; deterministic: two per number, bucket by bucket      */
    uint16_t *small; /* owned; compressed                                             */
    float *earlier;  /* owned; what earlier parts of the step gave: added up, or, if
                      * deterministic, those that are not in the sums yet             */
    int *parts;      /* owned; how many of them, by bucket                           */
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
    dnn_free(b->parts);
    free(b->earlier);
    free(b->sums);
    free(b->small);
    dnn_free(b);
}

static void *large(size_t bytes)
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
    bool alone = dnn_comm_size(comm) == 1;
    size_t small = cfg->compress == DNN_COMPRESS_NONE || alone
                       ? 0
                       : (size_t)params->count * sizeof(uint16_t);

    *b = (struct bsp){.cfg = *cfg, .comm = comm, .params = *params, .alone = alone};
    b->bucket = dnn_alloc((n + 1) * sizeof *b->bucket);
    memcpy(b->bucket, params->bucket, n * sizeof *b->bucket);
    b->req = dnn_alloc((n + 1) * sizeof *b->req);
    b->parts = dnn_alloc((n + 1) * sizeof *b->parts);
    if (sums > 0) b->sums = large(sums);
    if (small > 0) b->small = large(small);
    if ((sums > 0 && b->sums == NULL) || (small > 0 && b->small == NULL)) {
        stop(b);
        return dnn_fail(err, DNN_ENOMEM, "exchanging gradients takes %zu MB more",
                        (sums + small) >> 20);
    }
    *self = b;
    return 0;
}

static int need_earlier(struct bsp *b, struct dnn_err *err)
{
    size_t vectors = b->cfg.deterministic ? AT_ONCE - 1 : 1;
    size_t bytes = vectors * (size_t)b->params.count * sizeof *b->earlier;

    if (b->earlier == NULL) b->earlier = large(bytes);
    if (b->earlier == NULL)
        return dnn_fail(err, DNN_ENOMEM,
                        "adding up the parts of a batch takes %zu MB more",
                        bytes >> 20);
    return 0;
}

static void pack(struct bsp *b, int p)
{
    const float *g = b->params.grad + b->bucket[p].first;
    uint16_t *to = b->small + b->bucket[p].first;
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
    const uint16_t *from = b->small + b->bucket[p].first;
    int64_t n = length(b, p);

    if (b->cfg.compress == DNN_COMPRESS_BF16)
        for (int64_t i = 0; i < n; i++)
            g[i] = dnn_bf16_to_f32(from[i]);
    else
        for (int64_t i = 0; i < n; i++)
            g[i] = dnn_f16_to_f32(from[i]);
}

/* Where a bucket's exact sums are: both units side by side, so that one message takes
 * them. */
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
    } else if (b->small != NULL) {
        pack(b, p);
        buf = b->small + b->bucket[p].first;
        type = b->cfg.compress == DNN_COMPRESS_BF16 ? DNN_COMM_BF16 : DNN_COMM_F16;
    }
    if (b->alone) return 0;
    return dnn_comm_start(b->comm, "gradients", buf, n, type, DNN_COMM_SUM, &b->req[p],
                          err);
}

enum { WORTH = 1 << 15 }; /* numbers that are worth waking threads for */

static void copy(float *to, const float *from, int64_t n)
{
#pragma omp parallel for simd schedule(static) if (n > WORTH)
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
#pragma omp parallel for simd schedule(static) if (n > WORTH)
    for (int64_t i = 0; i < n; i++)
        total[i] += from[i];
}

/* Where a part is held back. */
static float *held(const struct bsp *b, int p, int i)
{
    return b->earlier + i * b->params.count + b->bucket[p].first;
}

/* Parts, and those held back before them, to the exact sums; on a rank alone the last
 * ones give what is asked for, and nobody else wants the sums. */
static void add_exactly(struct bsp *b, int p, const float *const *x, int m, bool last)
{
    bool fresh = b->parts[p] < AT_ONCE, good;
    int64_t n = length(b, p);
    double *sums = sums_of(b, p);

    if (last && b->alone) {
        float *grad = b->params.grad + b->bucket[p].first;

        good = dnn_exact_sum(fresh ? NULL : sums, n, x, m, grad, n);
        if (!good) grad[0] = NAN;
        return;
    }
    good = dnn_exact_add(sums, n, x, m, n, fresh);
    /* One that is too large must show on all ranks. */
    if (!good) sums[0] = NAN;
}

/* Parts are held back until there are enough to be added to the exact sums at once. */
static int exactly(struct bsp *b, int p, const float *const *part, int parts, bool last,
                   struct dnn_err *err)
{
    int kept = b->parts[p] % AT_ONCE, m = kept + parts;
    const float **x = dnn_alloc((size_t)m * sizeof *x);
    int rc = 0;

    for (int i = 0; i < m; i++)
        x[i] = i < kept ? held(b, p, i) : part[i - kept] + b->bucket[p].first;
    int now = last ? m : m / AT_ONCE * AT_ONCE;
    if (now > 0) add_exactly(b, p, x, now, last);
    int from = now > kept ? now : kept;
    if (m > from) rc = need_earlier(b, err);
    for (int i = from; i < m && rc == 0; i++)
        copy(held(b, p, i - now), x[i], length(b, p));
    dnn_free(x);
    return rc;
}

/* Of all parts at once, so that nothing is in the sums yet. */
static void piece(void *self, int p, int64_t first, int64_t last,
                  const float *const *part, int n)
{
    struct bsp *b = self;
    float *grad = b->params.grad + first;
    double *sums = sums_of(b, p) + (first - b->bucket[p].first);

    if (b->alone) {
        if (!dnn_exact_sum(NULL, 0, part, n, grad, last - first)) grad[0] = NAN;
    } else if (!dnn_exact_add(sums, length(b, p), part, n, last - first, true)) {
        sums[0] = NAN;
    }
}

/* One part more, or the only one. */
static int plainly(struct bsp *b, int p, const float *from, bool first, bool last,
                   struct dnn_err *err)
{
    float *grad = b->params.grad + b->bucket[p].first;
    int64_t n = length(b, p);

    if (first && last) {
        if (from != grad) copy(grad, from, n);
        return 0;
    }
    DNN_TRY(need_earlier(b, err));
    if (first)
        copy(held(b, p, 0), from, n);
    else
        sum(held(b, p, 0), from, n, b->params.f64);
    if (last) copy(grad, held(b, p, 0), n);
    return 0;
}

/* Add parts to those before them. */
static int bucket(void *self, int p, const float *const *part, int n, bool last,
                  struct dnn_err *err)
{
    struct bsp *b = self;

    if (b->cfg.deterministic && n > 0)
        DNN_TRY(exactly(b, p, part, n, last, err));
    else
        for (int i = 0; i < n; i++)
            DNN_TRY(plainly(b, p, part[i] + b->bucket[p].first, b->parts[p] + i == 0,
                            last && i == n - 1, err));
    b->parts[p] += n;
    return last ? send(b, p, err) : 0;
}

static int poll(void *self, struct dnn_err *err)
{
    struct bsp *b = self;
    int rc = 0;

    /* The oldest first: MPI pushes the others on with it. */
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
        if (b->cfg.deterministic && !b->alone)
            dnn_exact_read(sums_of(b, p), n, b->params.grad + b->bucket[p].first, n);
        else if (b->small != NULL)
            unpack(b, p);
    }
    memset(b->parts, 0, (size_t)b->params.nbuckets * sizeof *b->parts);
    return 0;
}

static int after(void *self, struct dnn_err *err)
{
    (void)self;
    (void)err;
    return 0;
}

const struct dnn_rule dnn_rule_bsp = {
    .name = "bsp",
    .help = "gradients of all ranks are added before each update",
    .start = start,
    .bucket = bucket,
    .piece = piece,
    .poll = poll,
    .before = before,
    .after = after,
    .stop = stop,
};
