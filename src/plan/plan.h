/* plan.h - where every value of a program lies in memory.
 *
 * Made before anything is allocated: a few blocks, one per purpose, and an offset
 * in one of them for each value.  Two values share bytes only if one is a view of
 * the other, if an op may overwrite its input, or if they are never alive together.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PLAN_PLAN_H
#define DNN_PLAN_PLAN_H

#include "base/err.h"
#include "op/prog.h"

#include <stddef.h>
#include <stdio.h>

enum { DNN_PLAN_ALIGN = 64 }; /* bytes: a cache line, and any vector register */

enum dnn_block {
    DNN_BLOCK_DATA,      /* inputs and targets                                     */
    DNN_BLOCK_WEIGHTS,   /* one flat vector: the trainable ones first, in order    */
    DNN_BLOCK_GRADS,     /* theirs, at the same offsets                            */
    DNN_BLOCK_STATES,    /* moving means and the like                              */
    DNN_BLOCK_CONSTANTS, /* known when the program was made                        */
    DNN_BLOCK_TEMPS,     /* everything else, packed by lifetime                    */
    DNN_BLOCKS
};

/* Where a value lies, and from which op to which it is needed. */
struct dnn_spot {
    enum dnn_block block;
    int base; /* the value whose bytes it uses; itself unless it shares */
    size_t offset, bytes;
    int first, last; /* ops; DNN_NONE: before the first, nops: after the last */
};

struct dnn_plan {
    struct dnn_arena *arena;     /* owned */
    const struct dnn_prog *prog; /* must outlive the plan */
    struct dnn_spot *spot;       /* of each value */
    size_t bytes[DNN_BLOCKS];
    size_t live; /* bytes of temps that are alive together at the worst op: no plan
                    can need less for them */
    int worst;   /* that op */
};

/* Plan a program.  The values in keep[] are still wanted when it has run (outputs,
 * a loss); what no op reads is not.  Fails only when a size is beyond what memory
 * can be addressed with.  The caller owns *out: dnn_plan_free(). */
int dnn_plan_make(const struct dnn_prog *prog, int nkeep, const int *keep,
                  struct dnn_plan **out, struct dnn_err *err);
void dnn_plan_free(struct dnn_plan *plan);

/* Bytes of all blocks. */
size_t dnn_plan_bytes(const struct dnn_plan *plan);

/* A line per block, and how near the temps are to what cannot be undercut. */
void dnn_plan_print(const struct dnn_plan *plan, FILE *where);

/* ---- the packing, by itself ---- */

/* Bytes that are needed from time first to time last, both included. */
struct dnn_span {
    size_t bytes;
    int first, last;
    size_t offset; /* set by dnn_plan_pack(), a multiple of DNN_PLAN_ALIGN */
};

/* Place n spans so that those needed at the same time do not overlap; returns how
 * many bytes they take together.  Pure: the same spans give the same offsets. */
size_t dnn_plan_pack(struct dnn_span *spans, int n);

#endif
