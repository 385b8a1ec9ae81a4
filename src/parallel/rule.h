/* rule.h - parallel training rules: how ranks exchange gradients.
 *
 * One file per rule, one list in rules.c.  A rule sees flat arrays cut into buckets, no
 * layers.  It is called when a gradient bucket is final, so that it can start to
 * exchange it while later ones are computed.
 *
 * In a step: bucket after bucket of each micro-batch of this rank; then before the
 * update, and after it.
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

/* Elements [first, last) of the flat arrays. */
struct dnn_bucket_range {
    int64_t first, last;
};

struct dnn_params {
    float *weight, *grad;
    int64_t count;
    bool f64;     /* they are f64: two elements each */
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
    /* Bucket p of n micro-batches is final, in the flat arrays part[0] to part[n - 1].
     * last: no further micro-batch follows in this step.  Either all buckets of a
     * micro-batch come before those of the next, or bucket p of all before bucket p
     * + 1. */
    int (*bucket)(void *self, int p, const float *const *part, int n, bool last,
                  struct dnn_err *err);
    /* Elements first to last - 1 of bucket p of all micro-batches of this step: part[i]
     * points to the first of them.  Any thread may call it; when the bucket is
     * complete, bucket() follows with n 0 and last. */
    void (*piece)(void *self, int p, int64_t first, int64_t last,
                  const float *const *part, int n);
    /* Make progress on running operations; cheap, call it often. */
    int (*poll)(void *self, struct dnn_err *err);
    /* Before the update.  On return grad is the sum; a NaN, on all ranks, where a
     * number was too large. */
    int (*before)(void *self, struct dnn_err *err);
    /* After the update. */
    int (*after)(void *self, struct dnn_err *err);
    void (*stop)(void *self); /* NULL is fine */
};

/* Find a rule by name; NULL: unknown, the error lists all names. */
const struct dnn_rule *dnn_rule_find(const char *name, struct dnn_err *err);
const struct dnn_rule *dnn_rule_at(int index); /* NULL past the end */

#endif
