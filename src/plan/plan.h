/* plan.h - where every value of a program lies in memory.
 *
 * Made before anything is allocated: a few blocks, one per purpose, and an offset
 * in one of them for each value.  Two values share bytes only if one is a view of
 * the other or a part of it, if an op may overwrite its input, or if they are never
 * alive together.
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
    DNN_BLOCK_SLOTS,     /* the optimizer's                                        */
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
    /* Elements from one row (all but the last axis) to the next in memory, when the
     * value is a part of another one's channels; 0: its rows lie side by side. */
    int64_t pitch;
    int first, last; /* ops; DNN_NONE: before the first, nops: after the last */
};

struct dnn_plan {
    struct dnn_arena *arena;     /* owned */
    const struct dnn_prog *prog; /* must outlive the plan */
    struct dnn_spot *spot;       /* of each value */
    size_t bytes[DNN_BLOCKS];
    size_t peak; /* bytes of temps alive at the same time, at most: a lower bound of
                    what any packing needs */
    int peak_op; /* where that is */
};

/* What to plan for. */
struct dnn_plan_opts {
    int nkeep; /* values still wanted when the program has run: outputs, a loss */
    const int *keep;
    /* May the rows of an op's input i (output, if out) be apart?  Then parts are put
     * where they will be joined, and cut where they lie: at any multiple of an
     * element, not only at whole lines.  NULL: no. */
    bool (*pitch)(void *arg, const struct dnn_prog *prog, int op, bool out, int i);
    void *arg;
};

/* Plan a program.  What no op reads and nobody keeps is not kept.  Fails only when
 * a size is beyond what memory can be addressed with.  The caller owns *out:
 * dnn_plan_free(). */
int dnn_plan_make(const struct dnn_prog *prog, const struct dnn_plan_opts *opts,
                  struct dnn_plan **out, struct dnn_err *err);
void dnn_plan_free(struct dnn_plan *plan); /* NULL is fine */

/* Bytes of all blocks. */
size_t dnn_plan_bytes(const struct dnn_plan *plan);

/* Whether op o has nothing to do: its output is a view of its input, or the parts it
 * joins or cuts lie in place.  A CONCAT of which only some do is still to be done;
 * for those its input is the very place in its output. */
bool dnn_plan_idle(const struct dnn_plan *plan, int o);

/* A line per block, the worst op, and how near the temps are to what cannot be
 * undercut. */
void dnn_plan_print(const struct dnn_plan *plan, FILE *where);

/* ---- gradients, bucket by bucket ---- */

/* Bytes [first, last) of the block of gradients, and all buckets before, are final
 * once op has run. */
struct dnn_bucket {
    size_t first, last;
    int op;
};

/* Cut the gradients into buckets of at most so many bytes (a single larger gradient is
 * a bucket of its own), the last of the block first, which is about the order in which
 * they become final: the same buckets for every program of a network, whatever is
 * computed again in it.  Returns how many.
 * What lies between gradients for alignment belongs to no bucket or to one around it.
 * The caller owns *out: dnn_free(). */
int dnn_plan_buckets(const struct dnn_plan *plan, size_t bytes,
                     struct dnn_bucket **out);

/* ---- computing again instead of keeping ---- */

enum dnn_recompute {
    DNN_RECOMPUTE_NEVER,
    DNN_RECOMPUTE_CHEAP, /* what costs a pass over memory: norms, functions, sums  */
    DNN_RECOMPUTE_AUTO,  /* that, and as much as the limit demands                 */
    DNN_RECOMPUTE_ALL    /* whatever lowers the peak                               */
};

struct dnn_recompute_opts {
    struct dnn_plan_opts plan;
    enum dnn_recompute how;
    size_t limit; /* AUTO: bytes of all blocks that there may be               */
    size_t least; /* bytes of temps below which cheap ones are not worth while */
};

/* What it came to.  Bytes are of all blocks, costs in floating-point operations, a
 * byte that is moved counted as ten of them. */
struct dnn_recomputed {
    int ops;              /* that are done twice        */
    size_t before, after; /* bytes                      */
    double flops, extra;  /* of convolutions and products: all, and of those again */
    double cost, added;   /* with memory's: all, and of those done again           */
};

/* The program that makes some values of its forward part again, right before the
 * backward part needs them, instead of keeping them: no convolution or product more
 * than once, and never statistics, exchanges or losses.  The same ops on the same
 * numbers, so every bit stays.  Values keep their numbers, new ones follow; prog must
 * outlive *out, which the caller owns: dnn_prog_free().  A limit that cannot be met is
 * not an error: look at what->after.  what may be NULL. */
int dnn_plan_recompute(const struct dnn_prog *prog,
                       const struct dnn_recompute_opts *opts, struct dnn_prog **out,
                       struct dnn_recomputed *what, struct dnn_err *err);

/* Multiplications and additions of a convolution or product, in any pass; 0 for all
 * other kinds. */
double dnn_plan_flops(const struct dnn_prog *prog, const struct dnn_op *op);

/* "recompute   3 of 120 ops again, 2.1 % more work, 1.2 GiB instead of 1.9 GiB". */
void dnn_plan_print_recompute(const struct dnn_recomputed *what, FILE *where);

/* ---- does it fit? ---- */

struct dnn_plan_memory {
    const struct dnn_plan *plan;
    size_t beside; /* what the steps need beside the plan: workspace, packed weights */
    size_t limit;  /* bytes there may be in all */
    int64_t batch; /* samples per step here; 0: there is no such number */
    /* The program before anything is recomputed and what to plan it for: then it is
     * tried how much "recompute" would help.  NULL: that is already in use. */
    const struct dnn_prog *plain;
    const struct dnn_plan_opts *opts;
};

/* 0, or DNN_ENOMEM and a text that says what is needed for what, how much there may
 * be, and which changes would make it fit.  Smaller batches are reckoned: data and
 * temps in proportion to it. */
int dnn_plan_check_memory(const struct dnn_plan_memory *fit, struct dnn_err *err);

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
