/* backend.h - what a device must be able to do.  A backend sees ops and memory;
 * it never sees a graph, a file or another rank.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_BACKEND_H
#define DNN_BACKEND_BACKEND_H

#include "base/err.h"
#include "op/op.h"

#include <stddef.h>

struct dnn_dev;    /* an open device; each backend defines its own */
struct dnn_kernel; /* a prepared step, e.g. a oneDNN primitive     */

/* One op, what its operands are, and where they lie in device memory.  Pointers
 * to absent operands are NULL; supports() and work_size() do not look at mem. */
struct dnn_step {
    const struct dnn_op *op;
    const struct dnn_tensor *const *in;  /* op->nin of them  */
    const struct dnn_tensor *const *out; /* op->nout of them */
    void *const *in_mem;
    void *const *out_mem;
    void *work; /* work_size() bytes, aligned to 64; NULL if that is 0 */
};

/* Where in the run we are: what random numbers depend on. */
struct dnn_now {
    uint64_t seed;
    uint32_t step;
    uint32_t sample; /* in the global batch: the first one held here */
};

/* How DNN_OP_EXCHANGE reaches the other ranks: add n numbers over all of them, in
 * place, in device memory.  Whoever opens the device gives it. */
struct dnn_exchange {
    int (*sum)(void *arg, double *data, int64_t n, struct dnn_err *err);
    void *arg;
};

struct dnn_backend {
    const char *name;

    /* exchange NULL: there is one rank; else it is copied and arg must outlive
     * the device. */
    int (*open)(int device, const struct dnn_exchange *exchange, struct dnn_dev **out,
                struct dnn_err *err);
    void (*close)(struct dnn_dev *dev); /* NULL is fine */

    /* Memory, aligned to 64 bytes, not cleared.  The plan asks for a few large
     * blocks, never one per tensor.  put() and get() copy n bytes to and from the
     * host and have finished when they return. */
    int (*alloc)(struct dnn_dev *dev, size_t bytes, void **out, struct dnn_err *err);
    void (*release)(struct dnn_dev *dev, void *mem);
    int (*put)(struct dnn_dev *dev, void *dst, const void *src, size_t n,
               struct dnn_err *err);
    int (*get)(struct dnn_dev *dev, void *dst, const void *src, size_t n,
               struct dnn_err *err);

    /* Planning.  Both are pure: they look and answer.  The caller puts the layer
     * and its line in front of the message. */
    int (*supports)(struct dnn_dev *dev, const struct dnn_step *step,
                    struct dnn_err *why);
    int (*work_size)(struct dnn_dev *dev, const struct dnn_step *step, size_t *bytes,
                     struct dnn_err *err);

    /* Running.  prepare() once per step, run() every iteration; run() queues and
     * returns, sync() waits for everything.  step->op, the tensors in[i] and out[i]
     * point to, and the memory must outlive the kernel; the arrays are copied. */
    int (*prepare)(struct dnn_dev *dev, const struct dnn_step *step,
                   struct dnn_kernel **out, struct dnn_err *err);
    int (*run)(struct dnn_dev *dev, struct dnn_kernel *kernel,
               const struct dnn_now *now, struct dnn_err *err);
    void (*discard)(struct dnn_dev *dev, struct dnn_kernel *kernel); /* NULL is fine */
    int (*sync)(struct dnn_dev *dev, struct dnn_err *err);

    /* Optional (both NULL: run() finishes before it returns).  mark() makes an
     * event that fires when all queued so far is done, await() holds the queue
     * until one has fired.  So the allreduce of a bucket runs while later gradients
     * are still being computed. */
    int (*mark)(struct dnn_dev *dev, void **event, struct dnn_err *err);
    int (*await)(struct dnn_dev *dev, void *event, struct dnn_err *err);
};

/* The backend of a name; NULL, with a message that lists what is built, if there
 * is none. */
const struct dnn_backend *dnn_backend_find(const char *name, struct dnn_err *err);
/* Every backend built; NULL past the end. */
const struct dnn_backend *dnn_backend_at(int index);

#endif
