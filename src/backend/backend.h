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

/* How DNN_OP_EXCHANGE reaches the other ranks: add n numbers over all of them, in
 * place, in device memory.  Whoever opens the device gives it. */
struct dnn_exchange {
    int (*sum)(void *arg, double *data, int64_t n, struct dnn_err *err);
    void *arg;
    /* The same in two halves, for work in between; NULL: only as a whole.  data is
     * copied; finish() writes as many to sum, and always ends what start() began. */
    int (*start)(void *arg, const double *data, int64_t n, void **begun,
                 struct dnn_err *err);
    int (*finish)(void *arg, void *begun, double *sum, struct dnn_err *err);
};

/* How a backend picks among several kernels that can do a step. */
enum dnn_kernel_selection {
    DNN_KERNELS_AUTOTUNE, /* the fastest on this machine, once measured remembered */
    DNN_KERNELS_HEURISTIC /* by rules alone: the same on every machine of a kind   */
};

/* Which device, and how to use it.  All zero is a good start. */
struct dnn_device {
    int index;
    int threads; /* cpu; 0: as many as OpenMP would take                           */
    enum dnn_kernel_selection kernels;
    const char *cache; /* the file measured choices are kept in; NULL: nowhere     */
    const char *conv; /* cpu: algorithm for convolutions, one of gemm, winograd, direct,
                       * onednn, wherever it supports the shape; NULL: any         */
    struct dnn_exchange exchange; /* sum NULL: there is one rank; arg must outlive
                                     the device                                    */
};

/* One op, what its operands are, and where they lie in device memory.  Pointers
 * to absent operands are NULL; supports() and need() do not look at memory. */
struct dnn_step {
    const struct dnn_op *op;
    const struct dnn_tensor *const *in;  /* op->nin of them  */
    const struct dnn_tensor *const *out; /* op->nout of them */
    void *const *in_mem;
    void *const *out_mem;
    /* Elements from one row (all axes but the last) to the next, 0 where rows lie
     * side by side.  NULL: they do everywhere. */
    const int64_t *in_pitch, *out_pitch;
    void *work; /* need()'s work bytes, aligned to 64, shared by all steps */
    void *keep; /* need()'s keep bytes, aligned to 64, this step's alone: e.g. packed
                   weights.  NULL if none. */
};

/* Memory a step wants beside its operands. */
struct dnn_need {
    size_t work; /* while it runs                          */
    size_t keep; /* as long as it is prepared              */
};

/* Where in the run we are: what random numbers and updates depend on. */
struct dnn_now {
    uint64_t seed;
    uint32_t step;
    uint32_t sample;  /* in the global batch: the first one held here             */
    uint64_t weights; /* changes whenever weights or states have: a kernel that
                         keeps something made of them makes it again              */
    double rate;      /* UPDATE: the learning rate                                */
    uint64_t updates; /* UPDATE: how many there have been, this one included      */
};

struct dnn_backend {
    const char *name;
    /* What it stands on, with versions: "oneDNN 3.7.1, OpenBLAS 0.3.29 ..."; NULL:
     * nothing of others. */
    const char *(*libraries)(void);

    int (*open)(const struct dnn_device *device, struct dnn_dev **out,
                struct dnn_err *err);
    void (*close)(struct dnn_dev *dev); /* NULL is fine */

    /* Memory, aligned to 64 bytes and cleared, near to who will use it (pages are
     * first touched by the device's own threads).  The plan asks for a few large
     * blocks, never one per tensor.  put() and get() copy n bytes to and from the
     * host and have finished when they return. */
    int (*alloc)(struct dnn_dev *dev, size_t bytes, void **out, struct dnn_err *err);
    void (*release)(struct dnn_dev *dev, void *mem, size_t bytes); /* NULL is fine */
    int (*put)(struct dnn_dev *dev, void *dst, const void *src, size_t n,
               struct dnn_err *err);
    int (*get)(struct dnn_dev *dev, void *dst, const void *src, size_t n,
               struct dnn_err *err);

    /* Planning.  supports() and pitch() are pure: they look and answer.  The caller
     * puts the layer and its line in front of the message.  need() may measure
     * kernels, for which it takes and gives back memory of the operands' size; it
     * answers the same afterwards. */
    int (*supports)(struct dnn_dev *dev, const struct dnn_step *step,
                    struct dnn_err *why);
    int (*need)(struct dnn_dev *dev, const struct dnn_step *step, struct dnn_need *need,
                struct dnn_err *err);
    /* May the rows of input i (output, if out) be apart?  The step's own pitches are
     * not looked at. */
    bool (*pitch)(struct dnn_dev *dev, const struct dnn_step *step, bool out, int i);

    /* Running.  prepare() once per step, run() every iteration; run() queues and
     * returns, sync() waits for everything.  step->op, the tensors in[i] and out[i]
     * point to, and the memory must outlive the kernel; the arrays are copied.
     * run() allocates nothing. */
    int (*prepare)(struct dnn_dev *dev, const struct dnn_step *step,
                   struct dnn_kernel **out, struct dnn_err *err);
    int (*run)(struct dnn_dev *dev, struct dnn_kernel *kernel,
               const struct dnn_now *now, struct dnn_err *err);
    /* Of a DNN_OP_EXCHANGE whose input is there: begin it, so that run() finds it
     * finished, or nearly so.  NULL: not possible. */
    int (*begin)(struct dnn_dev *dev, struct dnn_kernel *kernel, struct dnn_err *err);
    void (*discard)(struct dnn_dev *dev, struct dnn_kernel *kernel); /* NULL is fine */
    int (*sync)(struct dnn_dev *dev, struct dnn_err *err);
    /* Whether one thread alone may run it inside a parallel region, and then gives the
     * bits that all threads of the device give together.  NULL: yes. */
    bool (*alone)(const struct dnn_kernel *kernel);
    /* Of a step whose first result is large and made of little: the gradient of a
     * matrix, of few rows.  Instead of run(), hold() computes its other results and
     * copies what the first is made of, and rows() makes any rows of it of such a copy,
     * several threads at a time, with the bits of run().  held() is the bytes of a
     * copy, 0: this step cannot.  All NULL: none can. */
    size_t (*held)(const struct dnn_kernel *kernel);
    void (*hold)(struct dnn_kernel *kernel, void *to);
    void (*rows)(const struct dnn_kernel *kernel, const void *held, int64_t first,
                 int64_t n, float *to);
    /* What does the step, in a word or two: "plain loops", "direct avx2", "oneDNN
     * jit:avx2".  Lives as long as the kernel. */
    const char *(*describe)(struct dnn_dev *dev, const struct dnn_kernel *kernel);

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
