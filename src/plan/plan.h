/* plan.h - the memory plan: where every value of a program is.
 *
 * Made before anything is allocated: a few blocks, one per purpose, and an offset in
 * one of them for each value. Two values share bytes only if one is a view or a part
 * of the other, if an op may overwrite its input, or if they are never alive at the
 * same time.
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

/* Where a value is, and its lifetime. */
struct dnn_spot {
    enum dnn_block block;
    int base; /* the value whose bytes it uses; itself unless it shares */
    size_t offset, bytes;
    /* Elements from one row (all but the last axis) to the next in memory, when the
     * value is a part of another one's channels; 0: its rows are contiguous. */
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

/* Options of a plan. */
struct dnn_plan_opts {
    int nkeep; /* values needed after the program has run: outputs, a loss */
    const int *keep;
    /* Whether the rows of input i of an op (output, if out) may have a pitch. Then
     * inputs of a concatenation are written into it and slices are read in place, at
     * any multiple of an element, not only of a cache line. NULL: no. */
    bool (*pitch)(void *arg, const struct dnn_prog *prog, int op, bool out, int i);
    void *arg;
};

/* Plan a program. Values that no op reads and nobody keeps are not stored. Fails
 * only when a size exceeds the address space. The caller owns *out: dnn_plan_free(). */
int dnn_plan_make(const struct dnn_prog *prog, const struct dnn_plan_opts *opts,
                  struct dnn_plan **out, struct dnn_err *err);
void dnn_plan_free(struct dnn_plan *plan); /* NULL is fine */

/* Bytes of all blocks. */
size_t dnn_plan_bytes(const struct dnn_plan *plan);

/* Whether op o has nothing to do: its output is a view of its input, or the parts it
 * concatenates or splits are in place. A CONCAT of which only some inputs are in
 * place still runs; for those the input is already in its output. */
bool dnn_plan_idle(const struct dnn_plan *plan, int o);

/* A line per block, the op with the peak, and the lower bound for temps. */
void dnn_plan_print(const struct dnn_plan *plan, FILE *where);

/* ---- gradient buckets ---- */

/* Bytes [first, last) of the block of gradients, and all buckets before, are final
 * once op has run. */
struct dnn_bucket {
    size_t first, last;
    int op;
};

/* Cut the gradients into buckets of at most so many bytes (a single larger gradient
 * is a bucket of its own), from the end of the block, which is about the order in
 * which they become final: the same buckets for every program of a network, whatever
 * it recomputes. Returns their number. Alignment gaps between gradients belong to no
 * bucket or to one around them. The caller owns *out: dnn_free(). */
int dnn_plan_buckets(const struct dnn_plan *plan, size_t bytes,
                     struct dnn_bucket **out);

/* ---- recomputing instead of storing ---- */

enum dnn_recompute {
    DNN_RECOMPUTE_NEVER,
    DNN_RECOMPUTE_CHEAP, /* memory-bound ops: norms, activations, sums */
    DNN_RECOMPUTE_AUTO,  /* that, and as much as the limit demands                 */
    DNN_RECOMPUTE_ALL    /* whatever lowers the peak                               */
};

struct dnn_recompute_opts {
    struct dnn_plan_opts plan;
    enum dnn_recompute how;
    size_t limit; /* AUTO: allowed bytes of all blocks */
    size_t least; /* bytes of temps below which cheap ones do not pay off */
};

/* The result. Bytes are of all blocks, costs in FLOPs, where a byte moved counts as
 * ten. */
struct dnn_recomputed {
    int ops;              /* that are done twice        */
    size_t before, after; /* bytes                      */
    double flops, extra;  /* of convolutions and products: all, and of those again */
    double cost, added;   /* with memory's: all, and of those done again           */
};

/* The program that recomputes some values of its forward part right before the
 * backward part needs them, instead of storing them: no convolution or product more
 * than once, and never statistics, exchanges or losses. The same ops on the same
 * numbers, so results are bitwise the same. Values keep their numbers, new ones
 * follow; prog must outlive *out, which the caller owns: dnn_prog_free(). A limit
 * that cannot be met is not an error: check what->after. what may be NULL. */
int dnn_plan_recompute(const struct dnn_prog *prog,
                       const struct dnn_recompute_opts *opts, struct dnn_prog **out,
                       struct dnn_recomputed *what, struct dnn_err *err);

/* Multiplications and additions of a convolution or product, in any pass; 0 for all
 * other kinds. */
double dnn_plan_flops(const struct dnn_prog *prog, const struct dnn_op *op);

/* Prints "recompute 3 ops: 3.0 MiB instead of 4.0 MiB; 5.0 % more FLOPs, about 20.0
 * % more time". */
void dnn_plan_print_recompute(const struct dnn_recomputed *what, FILE *where);

/* ---- memory limit ---- */

struct dnn_plan_memory {
    const struct dnn_plan *plan;
    size_t workspace; /* bytes beside the plan: workspace, packed weights */
    size_t limit;     /* allowed bytes in total */
    int64_t batch;    /* samples per step here; 0: there is no such number */
    /* The program before recomputing and its options: used to estimate how much
     * "recompute" would help. NULL: it is in use already. */
    const struct dnn_prog *plain;
    const struct dnn_plan_opts *opts;
};

/* 0, or DNN_ENOMEM and a message with the bytes per purpose, the limit, and which
 * changes would make it fit. Smaller batches are estimated: data and temps in
 * proportion. */
int dnn_plan_check_memory(const struct dnn_plan_memory *fit, struct dnn_err *err);

/* ---- packing ---- */

/* Bytes that are needed from time first to time last, both included. */
struct dnn_span {
    size_t bytes;
    int first, last;
    size_t offset; /* set by dnn_plan_pack(), a multiple of DNN_PLAN_ALIGN */
};

/* Place n spans so that those needed at the same time do not overlap; returns their
 * total bytes. Pure: the same spans give the same offsets. */
size_t dnn_plan_pack(struct dnn_span *spans, int n);

#endif
