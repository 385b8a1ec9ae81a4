/* rule.h - parallel training rules: how ranks exchange gradients.
 *
 * There is one file per rule; rules.c lists them.  A rule has no access to layers, only
 * to flat arrays that are split into buckets.  It is called when a gradient bucket is
 * final, so that it can start the exchange while later buckets are computed.
 *
 * Calls in a step: bucket() for each bucket of each micro-batch of this rank, then
 * before().
 *
 * Collective: every rank makes the same calls in the same order; a rank without samples
 * passes zeros.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PARALLEL_RULE_H
#define DNN_PARALLEL_RULE_H

#include "base/choice.h"
#include "base/err.h"
#include "comm/comm.h"

/* Elements [first, last) of the flat arrays. */
struct dnn_bucket_range {
    int64_t first, last;
};

struct dnn_params {
    float *weight, *grad;
    int64_t count;
    bool f64;     /* gradients are f64: each is two elements */
    int nbuckets; /* in the order in which they become final */
    const struct dnn_bucket_range *bucket;
};

enum dnn_compress { DNN_COMPRESS_NONE, DNN_COMPRESS_BF16, DNN_COMPRESS_F16 };
extern const struct dnn_choice dnn_compress_choices[]; /* none, bf16, fp16 */

struct dnn_rule_cfg {
    bool deterministic; /* sums independent of the number of ranks                 */
    int compress;       /* enum dnn_compress; not with deterministic               */
};

struct dnn_rule {
    const char *name, *help;
    int (*start)(const struct dnn_rule_cfg *cfg, struct dnn_comm *comm,
                 const struct dnn_params *params, void **self, struct dnn_err *err);
    /* Bucket p of n micro-batches is final; grads[0] to grads[n - 1] are their flat
     * gradients.  last: no more micro-batches follow in this step.  The order of calls
     * is either all buckets of a micro-batch, then those of the next one, or bucket p
     * of all micro-batches, then bucket p + 1. */
    int (*bucket)(void *self, int p, const float *const *grads, int n, bool last,
                  struct dnn_err *err);
    /* Elements first to last - 1 of bucket p are final for all n micro-batches of this
     * step: grads[i] points to element first of micro-batch i.  Any thread may call it.
     * When all elements of the bucket are passed, bucket() is called with n = 0 and
     * last. */
    void (*slice)(void *self, int p, int64_t first, int64_t last,
                  const float *const *grads, int n);
    /* Make progress on running operations; cheap, to be called often. */
    int (*poll)(void *self, struct dnn_err *err);
    /* Before the update.  On return, grad is the sum over ranks and micro-batches, with
     * NaN on all ranks if an element was too large. */
    int (*before)(void *self, struct dnn_err *err);
    void (*stop)(void *self); /* NULL is fine */
};

/* Find a rule by name; NULL: unknown, the error lists all names. */
const struct dnn_rule *dnn_rule_find(const char *name, struct dnn_err *err);
const struct dnn_rule *dnn_rule_at(int index); /* NULL past the end */

#endif
