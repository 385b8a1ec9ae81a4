/* backend.h - what a device must provide. A backend sees ops and memory; it never
 * sees a graph, a file or another rank.
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

/* How DNN_OP_EXCHANGE reaches the other ranks: add n numbers over all ranks, in
 * place, in device memory. Given when the device is opened. */
struct dnn_exchange {
    int (*sum)(void *arg, double *data, int64_t n, struct dnn_err *err);
    void *arg;
    /* The same, non-blocking; NULL: not supported. data is copied; finish() writes
     * as many numbers to sum, and always ends what start() began. */
    int (*start)(void *arg, const double *data, int64_t n, void **begun,
                 struct dnn_err *err);
    int (*finish)(void *arg, void *begun, double *sum, struct dnn_err *err);
};

/* Kernel selection, where several kernels support a step. */
enum dnn_kernel_selection {
    DNN_KERNELS_AUTOTUNE, /* the fastest on this machine, measured once and cached */
    DNN_KERNELS_HEURISTIC /* by rules: the same on every machine of a kind */
};

/* Which device, and how to use it. All zero is a valid default. */
struct dnn_device {
    int index;
    int threads; /* cpu; 0: the default of OpenMP */
    enum dnn_kernel_selection kernels;
    const char *cache; /* the cache file of autotuned kernels; NULL: none */
    const char *conv; /* cpu: algorithm for convolutions, one of gemm, winograd, direct,
                       * onednn, wherever it supports the shape; NULL: any */
    struct dnn_exchange exchange; /* sum NULL: one rank; arg must outlive the device */
};

/* One op, its operands, and their device memory. Pointers to absent operands are
 * NULL; supports() and need() do not access memory. */
struct dnn_step {
    const struct dnn_op *op;
    const struct dnn_tensor *const *in;  /* op->nin of them  */
    const struct dnn_tensor *const *out; /* op->nout of them */
    void *const *in_mem;
    void *const *out_mem;
    /* Elements from one row (all axes but the last) to the next, 0 where rows are
     * contiguous. NULL: all are. */
    const int64_t *in_pitch, *out_pitch;
    void *work; /* need()'s work bytes, aligned to 64, shared by all steps */
    void *keep; /* need()'s keep bytes, aligned to 64, of this step only: e.g. packed
                   weights. NULL if none. */
};

/* Memory a step needs beside its operands. */
struct dnn_need {
    size_t work; /* while it runs                          */
    size_t keep; /* as long as it is prepared              */
};

/* The state of the run that random numbers and updates depend on. */
struct dnn_now {
    uint64_t seed;
    uint32_t step;
    uint32_t sample;  /* in the global batch: the first one held here             */
    uint64_t weights; /* changes whenever weights or states have changed: packed weights
                         are then packed again */
    double rate;      /* UPDATE: the learning rate                                */
    uint64_t updates; /* UPDATE: number of updates, including this one */
};

/* Rows that rows() below computes together: ask for a multiple of them. */
enum { DNN_BACKEND_ROWS = 6 };

struct dnn_backend {
    const char *name;
    /* Its libraries, with versions: "oneDNN 3.7.1, OpenBLAS 0.3.29 ..."; NULL: none. */
    const char *(*libraries)(void);

    int (*open)(const struct dnn_device *device, struct dnn_dev **out,
                struct dnn_err *err);
    void (*close)(struct dnn_dev *dev); /* NULL is fine */

    /* Memory, aligned to 64 bytes and zeroed, on the NUMA node that will use it
     * (first touch by the threads of the device). The plan asks for a few large
     * blocks, never one per tensor. put() and get() copy n bytes from and to the
     * host and are complete when they return. */
    int (*alloc)(struct dnn_dev *dev, size_t bytes, void **out, struct dnn_err *err);
    void (*release)(struct dnn_dev *dev, void *mem, size_t bytes); /* NULL is fine */
    int (*put)(struct dnn_dev *dev, void *dst, const void *src, size_t n,
               struct dnn_err *err);
    int (*get)(struct dnn_dev *dev, void *dst, const void *src, size_t n,
               struct dnn_err *err);

    /* Planning. supports() and pitch() are pure. The caller prepends the layer and
     * its line to the message. need() may measure kernels, for which it allocates
     * and frees memory of the size of the operands; it returns the same afterwards. */
    int (*supports)(struct dnn_dev *dev, const struct dnn_step *step,
                    struct dnn_err *why);
    int (*need)(struct dnn_dev *dev, const struct dnn_step *step, struct dnn_need *need,
                struct dnn_err *err);
    /* Whether the rows of input i (output, if out) may have a pitch. The pitches of
     * the step itself are ignored. */
    bool (*pitch)(struct dnn_dev *dev, const struct dnn_step *step, bool out, int i);

    /* Running. prepare() once per step, run() every iteration; run() queues and
     * returns, sync() waits for everything. step->op, the tensors in[i] and out[i]
     * point to, and the memory must outlive the kernel; the arrays are copied. run()
     * allocates nothing. */
    int (*prepare)(struct dnn_dev *dev, const struct dnn_step *step,
                   struct dnn_kernel **out, struct dnn_err *err);
    int (*run)(struct dnn_dev *dev, struct dnn_kernel *kernel,
               const struct dnn_now *now, struct dnn_err *err);
    /* Start a DNN_OP_EXCHANGE whose input is ready, so that run() only waits for it.
     * NULL: not supported. */
    int (*begin)(struct dnn_dev *dev, struct dnn_kernel *kernel, struct dnn_err *err);
    void (*discard)(struct dnn_dev *dev, struct dnn_kernel *kernel); /* NULL is fine */
    int (*sync)(struct dnn_dev *dev, struct dnn_err *err);
    /* Whether one thread may run it inside a parallel region, with the same bits as
     * all threads of the device. NULL: yes. */
    bool (*alone)(const struct dnn_kernel *kernel);
    /* Deferred results, for a step whose first result is large and computed from
     * little: the gradient of a large matrix from few rows. Instead of run(), hold()
     * computes the other results and copies the operands of the first; rows()
     * computes any rows of it from such a copy, on several threads at a time, with
     * the same bits as run(). held() is the size of a copy in bytes, 0: not
     * supported for this step. All NULL: not supported. */
    size_t (*held)(const struct dnn_kernel *kernel);
    void (*hold)(struct dnn_kernel *kernel, void *to);
    void (*rows)(const struct dnn_kernel *kernel, const void *held, int64_t first,
                 int64_t n, float *to);
    /* The name of the kernel: "plain loops", "direct avx2", "oneDNN jit:avx2". Valid
     * as long as the kernel. */
    const char *(*describe)(struct dnn_dev *dev, const struct dnn_kernel *kernel);
};

/* The backend of a name; NULL, with a message that lists those built, if there is
 * none. */
const struct dnn_backend *dnn_backend_find(const char *name, struct dnn_err *err);
/* Every backend built; NULL past the end. */
const struct dnn_backend *dnn_backend_at(int index);

#endif
