/* exec.h - a plan on a device: memory, prepared steps, and running them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_RUN_EXEC_H
#define DNN_RUN_EXEC_H

#include "backend/backend.h"
#include "plan/plan.h"

struct dnn_exec;

/* Local.  Allocate the plan's blocks, clear them, fill in constants, and prepare every
 * step.  exchange as for the backend.  The plan must outlive it.  The caller owns
 * *out: dnn_exec_close(). */
int dnn_exec_open(const struct dnn_plan *plan, const struct dnn_backend *backend,
                  int device, const struct dnn_exchange *exchange,
                  struct dnn_exec **out, struct dnn_err *err);
void dnn_exec_close(struct dnn_exec *exec); /* NULL is fine */

/* Bytes taken: the plan's blocks and the steps' common workspace. */
size_t dnn_exec_bytes(const struct dnn_exec *exec);

/* Local.  Copy a value in or out, in its own type; temps hold what was last written
 * to their place. */
int dnn_exec_put(struct dnn_exec *exec, int value, const void *from,
                 struct dnn_err *err);
int dnn_exec_get(struct dnn_exec *exec, int value, void *to, struct dnn_err *err);

/* Fill weights and states by their initializers: a pure function of the seed and of
 * the weight's place in the program. */
int dnn_exec_init(struct dnn_exec *exec, uint64_t seed, struct dnn_err *err);

/* Collective if the program exchanges.  Run ops first to last - 1 and wait for
 * them. */
int dnn_exec_run(struct dnn_exec *exec, int first, int last, const struct dnn_now *now,
                 struct dnn_err *err);

#endif
