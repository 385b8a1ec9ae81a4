/* plan_impl.h - declarations shared by the files of the memory plan.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PLAN_PLAN_IMPL_H
#define DNN_PLAN_PLAN_IMPL_H

#include "plan/plan.h"

/* Bytes of a value in a block, rounded up to cache lines. */
static inline size_t dnn_plan_round(size_t bytes)
{
    return (bytes + DNN_PLAN_ALIGN - 1) / DNN_PLAN_ALIGN * DNN_PLAN_ALIGN;
}

/* The extent of the last axis; the distance of rows in memory, in elements. */
static inline int64_t dnn_plan_row(const struct dnn_prog *prog, int v)
{
    const struct dnn_shape *shape = &prog->value[v].is.shape;

    return shape->ndim == 0 ? 1 : shape->dim[shape->ndim - 1];
}

static inline int64_t dnn_plan_pitch(const struct dnn_plan *plan, int v)
{
    int64_t pitch = plan->spot[v].pitch;

    return pitch != 0 ? pitch : dnn_plan_row(plan->prog, v);
}

/* Whether op is a CONCAT along the last axis, or its backward pass: each input is a
 * range of every row. */
static inline bool dnn_plan_by_rows(const struct dnn_prog *prog,
                                    const struct dnn_op *op)
{
    return op->kind == DNN_OP_CONCAT &&
           op->attr.concat.axis == prog->value[op->in[0]].is.shape.ndim - 1;
}

/* Set the base and pitch of values that share memory.  Offsets are relative to the
 * base; life[], indexed by base, includes the lifetimes of all values that share it. */
struct dnn_plan_life {
    int first, last;
};
void dnn_plan_alias(struct dnn_plan *plan, const struct dnn_plan_opts *opts,
                    struct dnn_plan_life *life);

/* Plan without packing: plan->peak and plan->peak_op are set, offsets and the bytes of
 * temps are not. */
int dnn_plan_survey(const struct dnn_prog *prog, const struct dnn_plan_opts *opts,
                    struct dnn_plan **out, struct dnn_plan_life **life,
                    struct dnn_err *err);

/* ---- recompute.c: rewrite a program, and the cost ---- */

/* Whether the first output of a forward op can be recomputed; cheap: without
 * convolutions and products. */
bool dnn_plan_recomputable(const struct dnn_prog *prog, int o, bool cheap);

/* Make the program in which forward values v with drop[v] are recomputed where the
 * backward pass needs them.  often: recompute cheap values at each use, if it is far
 * from the last use.  NULL if a weight they depend on has changed by then.  *origin,
 * unless origin is NULL, is the old op of each new one; it is owned by the program. */
struct dnn_prog *dnn_plan_rewrite(const struct dnn_prog *prog, const bool *drop,
                                  bool often, int **origin);

double dnn_plan_cost(const struct dnn_prog *prog, const struct dnn_op *op);

#endif
