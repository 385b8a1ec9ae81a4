/* exec.h - execution of a plan on a device: memory and kernels.
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

/* The pitch() callback of a plan; arg is a struct dnn_exec_on. */
struct dnn_exec_on {
    const struct dnn_backend *backend;
    struct dnn_dev *dev;
};
bool dnn_exec_pitch(void *arg, const struct dnn_prog *prog, int o, bool out, int i);

/* Local.  Check that the device supports every op of a plan, select kernels (autotuning
 * happens here), and find the memory they need besides the plan's.  Nothing stays
 * allocated.  Plan and device must outlive it.  The caller owns *out: dnn_exec_close().
 */
int dnn_exec_make(const struct dnn_plan *plan, const struct dnn_backend *backend,
                  struct dnn_dev *dev, struct dnn_exec **out, struct dnn_err *err);
/* Local.  Before it starts: share the weights, slots and states of owner, which has
 * started; and the temporaries and workspace of partner, unless NULL, as far as they
 * fit, and its gradients if partner is owner.  All must be planned from the same
 * network.  Both must outlive exec. */
int dnn_exec_share(struct dnn_exec *exec, struct dnn_exec *owner,
                   struct dnn_exec *partner, struct dnn_err *err);
/* Local.  Allocate what is not shared, write constants, prepare all kernels. */
int dnn_exec_start(struct dnn_exec *exec, struct dnn_err *err);
void dnn_exec_close(struct dnn_exec *exec); /* NULL is fine */

/* Bytes it needs when started, without shared memory: blocks of the plan, the common
 * workspace, and what kernels store between calls. */
struct dnn_exec_bytes {
    size_t blocks, work, keep, all;
};
struct dnn_exec_bytes dnn_exec_bytes(const struct dnn_exec *exec);

/* Description of the kernel of op o; NULL: no kernel is needed.  Once started. */
const char *dnn_exec_describe(const struct dnn_exec *exec, int o);

/* Local.  Copy a value in or out, in its own type; memory of temporaries is reused. */
int dnn_exec_put(struct dnn_exec *exec, int value, const void *from,
                 struct dnn_err *err);
int dnn_exec_get(struct dnn_exec *exec, int value, void *to, struct dnn_err *err);

/* Memory of a block of the plan, to access weights and gradients as flat arrays; NULL:
 * empty. */
void *dnn_exec_block(const struct dnn_exec *exec, enum dnn_block block);
/* Call this after changing weights through such a pointer. */
void dnn_exec_changed(struct dnn_exec *exec);

/* Initialize weights and states: a pure function of the seed and of their order in the
 * program. */
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

/* Local.  Deferred gradients: instead of running op o store its operands, to compute
 * rows of its first result later.  Bytes of the operands, 0: not possible.  See
 * dnn_backend.held(). */
size_t dnn_exec_defer_bytes(const struct dnn_exec *exec, int o);
void dnn_exec_defer(struct dnn_exec *exec, int o, void *to);
void dnn_exec_deferred_rows(const struct dnn_exec *exec, int o, const void *held,
                            int64_t first, int64_t n, float *to);

/* Whether one thread may run all of it: see dnn_backend.alone(). */
bool dnn_exec_single_threaded(const struct dnn_exec *exec);

/* Local.  The exchange that is started right after op o, earlier than its own position;
 * DNN_NONE: none. */
int dnn_exec_begins(const struct dnn_exec *exec, int o);

#endif
