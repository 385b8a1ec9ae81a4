/* exec.h - execution of a plan on a device: memory and kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_ENGINE_EXEC_H
#define DNN_ENGINE_EXEC_H

#include "backend/backend.h"
#include "plan/plan.h"

#include <stdbool.h>

struct dnn_exec;

/* The pitch() callback of a plan; arg is a struct dnn_exec_pitch_arg. */
struct dnn_exec_pitch_arg {
    const struct dnn_backend *backend;
    struct dnn_dev *dev;
};
bool dnn_exec_pitch(void *arg, const struct dnn_prog *prog, int o, bool out, int i);

/* Local.  Check that the device supports every op of a plan, select kernels (autotuning
 * happens here), and compute the memory they need in addition to the plan's.  Allocates
 * no device memory.  Plan and device must outlive it.  The caller owns *out:
 * dnn_exec_close(). */
int dnn_exec_make(const struct dnn_plan *plan, const struct dnn_backend *backend,
                  struct dnn_dev *dev, struct dnn_exec **out, struct dnn_err *err);
/* Local.  Call it before dnn_exec_start().  Share the weights, slots and states of
 * owner; if partner is not NULL, share its temporaries and workspace if they are large
 * enough; if partner is owner, share its gradients, too.  All must be planned from the
 * same network.  Both must be started before exec, and outlive it. */
int dnn_exec_share(struct dnn_exec *exec, struct dnn_exec *owner,
                   struct dnn_exec *partner, struct dnn_err *err);
/* Local.  Allocate the memory that is not shared, write constants, prepare all
 * kernels. */
int dnn_exec_start(struct dnn_exec *exec, struct dnn_err *err);
void dnn_exec_close(struct dnn_exec *exec); /* NULL is fine */

/* Bytes allocated by dnn_exec_start(), without shared memory: blocks of the plan, the
 * common workspace, and data that kernels keep between calls. */
struct dnn_exec_bytes {
    size_t blocks, work, keep, all;
    bool shared[DNN_BLOCKS]; /* blocks in memory of other models */
};
struct dnn_exec_bytes dnn_exec_bytes(const struct dnn_exec *exec);

/* Description of the kernel of op o; NULL: no kernel is needed.  Only after
 * dnn_exec_start(). */
const char *dnn_exec_describe(const struct dnn_exec *exec, int o);

/* Local.  Write or read a value, in its own type.  Other ops may overwrite
 * temporaries. */
int dnn_exec_put(struct dnn_exec *exec, int value, const void *from,
                 struct dnn_err *err);
int dnn_exec_get(struct dnn_exec *exec, int value, void *to, struct dnn_err *err);

/* Write a value through a callback, which gets memory for all its elements, dense: f32
 * for an f64 value, else in its own type.  If the host can access the value, this is
 * its own memory, so nothing is copied. */
typedef int dnn_exec_filler(void *arg, void *to, struct dnn_err *err);
int dnn_exec_fill(struct dnn_exec *exec, int value, dnn_exec_filler *fill, void *arg,
                  struct dnn_err *err);
/* The elements of an f32 or f64 value, dense, as f32: its own memory if possible, else
 * a copy in *buffer, which is allocated if it is NULL; the caller frees it: free().
 * NULL on failure. */
const float *dnn_exec_view(struct dnn_exec *exec, int value, float **buffer,
                           struct dnn_err *err);

/* Memory of a block of the plan, to access weights and gradients as flat arrays; NULL
 * if the block is empty. */
void *dnn_exec_block(const struct dnn_exec *exec, enum dnn_block block);
/* Call this after changing weights through such a pointer. */
void dnn_exec_changed(struct dnn_exec *exec);

/* Initialize weights and states.  Their values depend only on the seed and on their
 * order in the program. */
int dnn_exec_init(struct dnn_exec *exec, uint64_t seed, struct dnn_err *err);

/* Collective if the program has exchanges.  Run ops first to last - 1 and wait for
 * them.  now->weights is ignored: it is counted internally. */
int dnn_exec_run(struct dnn_exec *exec, int first, int last, const struct dnn_now *now,
                 struct dnn_err *err);

/* The same op by op; adds the time of op o in seconds to seconds[o]. */
int dnn_exec_profile(struct dnn_exec *exec, int first, int last,
                     const struct dnn_now *now, double *seconds, struct dnn_err *err);

/* Local, unless op o is an exchange.  Run only op o: an exchange of its result is not
 * started. */
int dnn_exec_run_op(struct dnn_exec *exec, int o, const struct dnn_now *now,
                    struct dnn_err *err);

/* Local.  Deferred gradients: instead of running op o, store its operands, and compute
 * rows of its first result later.  dnn_exec_defer_bytes() returns the bytes of the
 * operands; 0: not possible.  See dnn_backend.deferred_bytes(). */
size_t dnn_exec_defer_bytes(const struct dnn_exec *exec, int o);
void dnn_exec_defer(struct dnn_exec *exec, int o, void *to);
void dnn_exec_deferred_rows(const struct dnn_exec *exec, int o, const void *held,
                            int64_t first, int64_t n, float *to);

/* Whether a single thread may run all ops: see dnn_backend.single_threaded(). */
bool dnn_exec_single_threaded(const struct dnn_exec *exec);

/* Local.  The exchange that starts right after op o, before its position in the
 * program; DNN_NONE: none. */
int dnn_exec_exchange_after(const struct dnn_exec *exec, int o);

#endif
