/* plan.h - the memory plan: block and offset of every value of a program.
 *
 * It is made before anything is allocated.  There are a few blocks of memory, one per
 * purpose, and each value has an offset in one of them.  Two values share memory only
 * if one is a view or a slice of the other, if an op overwrites its input, or if they
 * are never alive at the same time.
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

enum { DNN_PLAN_ALIGN = 64 }; /* bytes: a cache line, and at least a vector register */

enum dnn_block {
    DNN_BLOCK_DATA,      /* inputs and targets                                     */
    DNN_BLOCK_WEIGHTS,   /* one flat vector: trainable weights first, in order     */
    DNN_BLOCK_GRADS,     /* of the trainable weights, at the same offsets          */
    DNN_BLOCK_SLOTS,     /* state of the optimizer                                 */
    DNN_BLOCK_STATES,    /* moving means, moving variances...                      */
    DNN_BLOCK_CONSTANTS, /* constants of the program, biases of FOLD               */
    DNN_BLOCK_TEMPS,     /* everything else, packed by lifetime                    */
    DNN_BLOCKS
};

/* Where a value is, and its lifetime. */
struct dnn_spot {
    enum dnn_block block;
    int base; /* the value whose memory it uses; itself unless shared */
    size_t offset, bytes;
    /* Distance of rows (of the last axis) in memory, in elements, if the value is a
     * range of the channels of another one; 0: its rows are contiguous. */
    int64_t pitch;
    /* Lifetime in ops; DNN_NONE: before the first, nops: after the last. */
    int first, last;
};

struct dnn_plan {
    struct dnn_arena *arena;     /* owned */
    const struct dnn_prog *prog; /* must outlive the plan */
    struct dnn_spot *spot;       /* of each value */
    size_t bytes[DNN_BLOCKS];
    size_t peak; /* maximum bytes of temps alive at the same time: a lower bound for any
                    packing */
    int peak_op; /* the op with this peak */
};

/* Options of a plan. */
struct dnn_plan_opts {
    int nkeep; /* values needed after the program has run: outputs, a loss */
    const int *keep;
    /* Whether the rows of input i (output i, if out) of an op may have a pitch.  Then
     * inputs of a concatenation are written into its output and slices are read in
     * place; they are aligned to elements only, not to cache lines.  NULL: never. */
    bool (*pitch)(void *arg, const struct dnn_prog *prog, int op, bool out, int i);
    void *arg;
};

/* Plan a program.  Values that no op reads and that are not in opts->keep are not
 * stored.  Fails only if a size exceeds the address space.  The caller owns *out:
 * dnn_plan_free(). */
int dnn_plan_make(const struct dnn_prog *prog, const struct dnn_plan_opts *opts,
                  struct dnn_plan **out, struct dnn_err *err);
void dnn_plan_free(struct dnn_plan *plan); /* NULL is fine */

/* Bytes of all blocks. */
size_t dnn_plan_bytes(const struct dnn_plan *plan);

/* Whether op o need not run: its output is a view of its input, or the values that it
 * concatenates or splits are in place.  A CONCAT with only some inputs in place still
 * runs; these inputs are already in its output. */
bool dnn_plan_idle(const struct dnn_plan *plan, int o);

/* Print a line per block, the op with the peak, and the lower bound for temps. */
void dnn_plan_print(const struct dnn_plan *plan, FILE *where);

/* ---- gradient buckets ---- */

/* Bytes [first, last) of the block of gradients.  This and all previous buckets are
 * final after op. */
struct dnn_bucket {
    size_t first, last;
    int op;
};

/* Split the gradients into buckets of at most `bytes` (a larger gradient is a bucket of
 * its own).  Buckets start at the end of the block, which is approximately the order in
 * which gradients become final.  All programs of a network have the same buckets,
 * whatever they recompute.  Alignment gaps between gradients belong to no bucket or to
 * the one around them.  Returns the number of buckets.  The caller owns *out:
 * dnn_free(). */
int dnn_plan_buckets(const struct dnn_plan *plan, size_t bytes,
                     struct dnn_bucket **out);

/* ---- recomputing instead of storing ---- */

enum dnn_recompute {
    DNN_RECOMPUTE_NEVER,
    DNN_RECOMPUTE_CHEAP, /* memory-bound ops: norms, activations, sums */
    DNN_RECOMPUTE_AUTO,  /* these, and as much as the limit requires           */
    DNN_RECOMPUTE_ALL    /* all ops that reduce the peak                       */
};

struct dnn_recompute_opts {
    struct dnn_plan_opts plan;
    enum dnn_recompute how;
    size_t limit; /* AUTO: allowed bytes of all blocks */
    size_t least; /* with fewer bytes of temps, cheap ops are not recomputed */
};

/* The result.  Bytes are of all blocks.  Costs are in FLOPs; a byte read or written
 * counts as ten FLOPs. */
struct dnn_recomputed {
    int ops;              /* number of recomputed ops   */
    size_t before, after; /* bytes of memory            */
    double flops, extra;  /* of convolutions and products: before, and in addition */
    double cost, added;   /* the same with memory traffic */
};

/* Make a program that recomputes some values of the forward pass right before the
 * backward pass needs them, instead of storing them.  A convolution or product is
 * recomputed at most once; statistics, exchanges and losses never.  The same ops run on
 * the same values, so results are bitwise the same.  Values keep their indices, new
 * ones are appended.  prog must outlive *out, which the caller owns: dnn_prog_free(). A
 * limit that cannot be met is not an error: check what->after.  what may be NULL. */
int dnn_plan_recompute(const struct dnn_prog *prog,
                       const struct dnn_recompute_opts *opts, struct dnn_prog **out,
                       struct dnn_recomputed *what, struct dnn_err *err);

/* Multiplications and additions of a convolution or product, in any pass; 0 for all
 * other kinds of ops. */
double dnn_plan_flops(const struct dnn_prog *prog, const struct dnn_op *op);

/* Prints "recompute 3 ops: 3.0 MiB instead of 4.0 MiB; 5.0 % more FLOPs, about 20.0
 * % more time". */
void dnn_plan_print_recompute(const struct dnn_recomputed *what, FILE *where);

/* ---- memory limit ---- */

struct dnn_plan_memory {
    const struct dnn_plan *plan;
    size_t workspace; /* bytes in addition to the plan: workspace, packed weights */
    bool shared[DNN_BLOCKS]; /* blocks in memory of other models */
    size_t others;           /* bytes of other models */
    size_t limit;            /* allowed bytes in total */
    int64_t batch;           /* samples per step on this rank; 0: not defined */
    /* The program without recomputation, and the options of its plan: used to estimate
     * the effect of "recompute".  NULL: it is set already. */
    const struct dnn_prog *plain;
    const struct dnn_plan_opts *opts;
};

/* 0, or DNN_ENOMEM and a message with the bytes per purpose, the limit, and changes
 * that would make it fit.  Smaller batches are estimated: data and temps are
 * proportional to the batch size. */
int dnn_plan_check_memory(const struct dnn_plan_memory *fit, struct dnn_err *err);

/* ---- packing ---- */

/* Bytes that are needed from time first to time last, both included. */
struct dnn_span {
    size_t bytes;
    int first, last;
    size_t offset; /* set by dnn_plan_pack(), a multiple of DNN_PLAN_ALIGN */
};

/* Set the offsets of n spans so that those needed at the same time do not overlap;
 * returns their total bytes.  The same spans always give the same offsets. */
size_t dnn_plan_pack(struct dnn_span *spans, int n);

#endif
