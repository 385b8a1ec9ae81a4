/* exec.h - a plan on a device: memory, prepared steps, and running them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_RUN_EXEC_H
#define DNN_RUN_EXEC_H

#include "backend/backend.h"
#include "plan/plan.h"

#include <stdbool.h>

struct dnn_exec;

/* A plan's pitch(): what the device answers; arg is a struct dnn_exec_on. */
struct dnn_exec_on {
    const struct dnn_backend *backend;
    struct dnn_dev *dev;
};
bool dnn_exec_pitch(void *arg, const struct dnn_prog *prog, int o, bool out, int i);

/* Local.  Ask an open device about every step of a plan: whether it can do it, with
 * which kernel (this is when kernels are measured), and how much memory that takes
 * beside the plan's.  Nothing is allocated that stays.  Plan and device must outlive
 * it.  The caller owns *out: dnn_exec_close(). */
int dnn_exec_make(const struct dnn_plan *plan, const struct dnn_backend *backend,
                  struct dnn_dev *dev, struct dnn_exec **out, struct dnn_err *err);
/* Local.  Before it starts: use the memory of owner, which has started, for weights,
 * slots and states, so that both see the same ones; and that of partner, unless NULL,
 * for temps and workspace as far as they fit there, so that what one left is gone when
 * the other has run, and for gradients if partner is owner.  All must have been planned
 * from the same network: what disagrees is named.  Both must outlive exec. */
int dnn_exec_share(struct dnn_exec *exec, struct dnn_exec *owner,
                   struct dnn_exec *partner, struct dnn_err *err);
/* Local.  Allocate what is not shared, fill in constants, prepare every step. */
int dnn_exec_start(struct dnn_exec *exec, struct dnn_err *err);
void dnn_exec_close(struct dnn_exec *exec); /* NULL is fine */

/* Bytes it takes when it has started: the plan's blocks, the steps' common workspace
 * and what they keep; without what is shared. */
struct dnn_exec_bytes {
    size_t blocks, work, keep, all;
};
struct dnn_exec_bytes dnn_exec_bytes(const struct dnn_exec *exec);

/* What does op o, as the backend says; NULL: nothing needs to.  Once started. */
const char *dnn_exec_describe(const struct dnn_exec *exec, int o);

/* Local.  Copy a value in or out, in its own type; temps hold what was last written
 * to their place. */
int dnn_exec_put(struct dnn_exec *exec, int value, const void *from,
                 struct dnn_err *err);
int dnn_exec_get(struct dnn_exec *exec, int value, void *to, struct dnn_err *err);

/* A block of the plan as it lies in memory, for whoever exchanges weights and gradients
 * as flat arrays; NULL if it is empty. */
void *dnn_exec_block(const struct dnn_exec *exec, enum dnn_block block);
/* To be called after weights were changed through such a pointer. */
void dnn_exec_changed(struct dnn_exec *exec);

/* Fill weights and states by their initializers: a pure function of the seed and of
 * the weight's place in the program. */
int dnn_exec_init(struct dnn_exec *exec, uint64_t seed, struct dnn_err *err);

/* Collective if the program exchanges.  Run ops first to last - 1 and wait for
 * them.  now->weights is counted here. */
int dnn_exec_run(struct dnn_exec *exec, int first, int last, const struct dnn_now *now,
                 struct dnn_err *err);

/* The same, op by op: adds the seconds each took to seconds[o]. */
int dnn_exec_profile(struct dnn_exec *exec, int first, int last,
                     const struct dnn_now *now, double *seconds, struct dnn_err *err);

/* Local.  Op o alone: nothing reaches other ranks, unless o is itself an exchange. */
int dnn_exec_try(struct dnn_exec *exec, int o, const struct dnn_now *now,
                 struct dnn_err *err);

/* Local.  Instead of running op o: keep what its first result is made of, to make rows
 * of it later.  Bytes of what is kept, 0: it cannot be.  See dnn_backend.held(). */
size_t dnn_exec_defer_bytes(const struct dnn_exec *exec, int o);
void dnn_exec_defer(struct dnn_exec *exec, int o, void *to);
void dnn_exec_deferred_rows(const struct dnn_exec *exec, int o, const void *held,
                            int64_t first, int64_t n, float *to);

/* Whether one thread alone may run all of it: see dnn_backend.alone(). */
bool dnn_exec_single_threaded(const struct dnn_exec *exec);

/* Local.  The exchange that begins as soon as op o has run, well before its own turn;
 * DNN_NONE: none. */
int dnn_exec_begins(const struct dnn_exec *exec, int o);

#endif
