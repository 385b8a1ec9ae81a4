/* rule.h - how ranks that train together exchange what they learned.
 *
 * One file per rule, one list in rules.c.  A rule sees flat arrays cut into buckets;
 * it never meets a layer.  It is told when a bucket of the gradients is final, so that
 * it can begin to exchange it while the rest is still being computed.
 *
 * In a step, for each part of the batch this rank computes (usually one): start of the
 * part, bucket after bucket, end of the part; then before the update, and after it.
 *
 * Collective: every rank makes the same calls in the same order; one without samples
 * gives zeros.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PARALLEL_RULE_H
#define DNN_PARALLEL_RULE_H

#include "base/choice.h"
#include "base/err.h"
#include "comm/comm.h"

/* What a rule may touch, in elements of the flat arrays. */
struct dnn_bucket_range {
    int64_t first, last;
};

struct dnn_params {
    float *weight, *grad;
    int64_t count;
    bool f64;     /* they hold f64, each of which takes two of their elements */
    int nbuckets; /* in the order in which they become final */
    const struct dnn_bucket_range *bucket;
};

enum dnn_compress { DNN_COMPRESS_NONE, DNN_COMPRESS_BF16, DNN_COMPRESS_F16 };
extern const struct dnn_choice dnn_compress_choices[]; /* none, bf16, fp16 */

struct dnn_rule_cfg {
    bool deterministic; /* sums that do not depend on the number of ranks          */
    int compress;       /* enum dnn_compress: what travels; not with deterministic */
};

struct dnn_rule {
    const char *name, *help;
    int (*start)(const struct dnn_rule_cfg *cfg, struct dnn_comm *comm,
                 const struct dnn_params *params, void **self, struct dnn_err *err);
    /* Portion p of n parts is final: it is in part[0] to part[n - 1], each a flat array
     * like params->grad or that itself.  last: no further part follows in this step.
     * All buckets of a part come before those of the next, or bucket p of all parts
     * before bucket p + 1 of any. */
    int (*bucket)(void *self, int p, const float *const *part, int n, bool last,
                  struct dnn_err *err);
    /* Elements first to last - 1 of bucket p of all parts of this step: part[i] begins
     * with the first of them.  Any thread may call it, for all of the bucket in the
     * end; then bucket() with n 0 and last. */
    void (*piece)(void *self, int p, int64_t first, int64_t last,
                  const float *const *part, int n);
    /* Push on what is under way; cheap, call it often. */
    int (*poll)(void *self, struct dnn_err *err);
    /* All is computed.  On return grad holds what the update is to use: a NaN, on all
     * ranks, where some number was too large to be added. */
    int (*before)(void *self, struct dnn_err *err);
    /* The update has been made. */
    int (*after)(void *self, struct dnn_err *err);
    void (*stop)(void *self); /* NULL is fine */
};

/* The rule of a name; else NULL and the names there are. */
const struct dnn_rule *dnn_rule_find(const char *name, struct dnn_err *err);
const struct dnn_rule *dnn_rule_at(int index); /* NULL past the end */

#endif
