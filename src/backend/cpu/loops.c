/* loops.c - the plain, slow loops of the ref backend, for steps without another kernel.
 * The output of --explain contains them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/cpu_impl.h"

#include "base/mem.h"

extern const struct dnn_backend dnn_backend_ref;

struct loops {
    struct dnn_dev *ref;
    struct dnn_kernel *kernel;
};

static int need(struct dnn_dev *dev, const struct dnn_step *step, struct dnn_need *need,
                struct dnn_err *err)
{
    return dnn_backend_ref.need(dev->ref, step, need, err);
}

static int prepare(struct dnn_dev *dev, const struct dnn_step *step,
                   const struct cpu_call *call, void **state, struct dnn_err *err)
{
    struct dnn_kernel *kernel;

    (void)call;
    DNN_TRY(dnn_backend_ref.prepare(dev->ref, step, &kernel, err));
    struct loops *l = dnn_alloc(sizeof *l);
    l->ref = dev->ref;
    l->kernel = kernel;
    *state = l;
    return 0;
}

static int run(struct dnn_dev *dev, const struct cpu_call *call, void *state,
               struct dnn_err *err)
{
    struct loops *l = state;

    return dnn_backend_ref.run(dev->ref, l->kernel, &call->now, err);
}

static void discard(void *state)
{
    struct loops *l = state;

    dnn_backend_ref.discard(l->ref, l->kernel);
    dnn_free(l);
}

const struct cpu_algo dnn_cpu_loops = {
    .name = "plain loops",
    .in_pitch = ~0u,
    .out_pitch = ~0u,
    .need = need,
    .prepare = prepare,
    .run = run,
    .discard = discard,
};
