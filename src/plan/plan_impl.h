/* plan_impl.h - what the files of this room share.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PLAN_PLAN_IMPL_H
#define DNN_PLAN_PLAN_IMPL_H

#include "plan/plan.h"

/* What a value takes in a block: whole lines. */
static inline size_t dnn_plan_round(size_t bytes)
{
    return (bytes + DNN_PLAN_ALIGN - 1) / DNN_PLAN_ALIGN * DNN_PLAN_ALIGN;
}

/* The extent of the last axis, and the elements from one row to the next. */
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

/* A CONCAT, or the cutting of one, whose parts are ranges of every row. */
static inline bool dnn_plan_by_rows(const struct dnn_prog *prog,
                                    const struct dnn_op *op)
{
    return op->kind == DNN_OP_CONCAT &&
           op->attr.concat.axis == prog->value[op->in[0]].is.shape.ndim - 1;
}

/* Give values that may share bytes the same base, and set pitches.  Offsets are left
 * relative to the base; first and last of a base cover all who share it in span[],
 * indexed by value. */
struct dnn_plan_life {
    int first, last;
};
void dnn_plan_alias(struct dnn_plan *plan, const struct dnn_plan_opts *opts,
                    struct dnn_plan_life *life);

/* Everything but the packing: plan->peak and plan->peak_op are set, offsets and the
 * bytes of temps are not. */
int dnn_plan_survey(const struct dnn_prog *prog, const struct dnn_plan_opts *opts,
                    struct dnn_plan **out, struct dnn_plan_life **life,
                    struct dnn_err *err);

/* ---- recompute.c: the rewriting, and its costs ---- */

/* Whether the first output of a forward op can be made again at all; cheap: without
 * convolutions and products. */
bool dnn_plan_recomputable(const struct dnn_prog *prog, int o, bool cheap);

/* The program in which forward values v with drop[v] are made again where the
 * backward part needs them; often: cheap ones wherever it does, if that is far from
 * the last time.  NULL if a weight they are made of has changed by then.  *origin,
 * unless origin is NULL, says which old op each new one does; it is the program's. */
struct dnn_prog *dnn_plan_rewrite(const struct dnn_prog *prog, const bool *drop,
                                  bool often, int **origin);

double dnn_plan_cost(const struct dnn_prog *prog, const struct dnn_op *op);

#endif
