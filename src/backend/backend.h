/* backend.h - what a device must provide. A backend sees ops and memory; it never
 * sees a graph, a file or another rank.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_BACKEND_H
#define DNN_BACKEND_BACKEND_H

#include "base/choice.h"
#include "base/err.h"
#include "op/op.h"

#include <stddef.h>

struct dnn_dev;    /* an open device; each backend defines its own */
struct dnn_kernel; /* a prepared step, e.g. a oneDNN primitive     */

/* How DNN_OP_EXCHANGE reaches the other ranks: an in-place allreduce (sum) of n values
 * in device memory. Given when the device is opened. */
struct dnn_exchange {
    int (*sum)(void *arg, double *data, int64_t n, struct dnn_err *err);
    void *arg;
    /* The same, non-blocking; NULL: not supported. start() copies data and returns a
     * request; finish() waits, writes n values to sum, and always frees the request. */
    int (*start)(void *arg, const double *data, int64_t n, void **request,
                 struct dnn_err *err);
    int (*finish)(void *arg, void *request, double *sum, struct dnn_err *err);
};

/* Kernel selection, where several kernels support a step. */
enum dnn_kernel_selection {
    DNN_KERNELS_AUTOTUNE, /* the fastest on this machine, measured once and cached */
    DNN_KERNELS_HEURISTIC /* by fixed rules: the same on all machines of a kind */
};
extern const struct dnn_choice dnn_kernel_selections[]; /* "autotune", "heuristic" */

/* Which device, and how to use it. All zero is a valid default. */
struct dnn_device {
    int index;
    int threads; /* cpu; 0: OpenMP's default */
    enum dnn_kernel_selection kernels;
    const char *cache; /* path of the cache file of autotuned kernels; NULL: none */
    const char *conv; /* cpu: algorithm for convolutions, one of gemm, winograd, direct,
                       * onednn, where it supports the shape; NULL: any */
    struct dnn_exchange exchange; /* sum NULL: one rank; arg must outlive the device */
};

/* One op, its operands, and their device memory. Absent operands are NULL.
 * supports() and need() do not access the operands' memory. */
struct dnn_step {
    const struct dnn_op *op;
    const struct dnn_tensor *const *in;  /* op->nin of them  */
    const struct dnn_tensor *const *out; /* op->nout of them */
    void *const *in_mem;
    void *const *out_mem;
    /* Elements from one row (all axes but the last) to the next, for each operand; 0:
     * rows are contiguous. NULL: contiguous for all operands. */
    const int64_t *in_pitch, *out_pitch;
    void *work; /* need()'s work bytes, aligned to 64, shared by all steps */
    void *keep; /* need()'s keep bytes, aligned to 64, for this step only: e.g. packed
                   weights. NULL if none. */
};

/* Bytes of memory a step needs in addition to its operands. */
struct dnn_need {
    size_t work; /* workspace, only while it runs     */
    size_t keep; /* from prepare() to discard()       */
};

/* The state of the training run that random numbers and updates depend on. */
struct dnn_now {
    uint64_t seed;
    uint32_t step;
    uint32_t sample;  /* index in the global batch of the first sample computed here */
    uint64_t weights; /* version of weights and states: changes when they change; packed
                         weights are then packed again */
    double rate;      /* UPDATE: the learning rate                                */
    uint64_t updates; /* UPDATE: number of updates, including this one */
};

/* deferred_rows() below is fastest if n is a multiple of this. */
enum { DNN_BACKEND_ROWS = 6 };

struct dnn_backend {
    const char *name;
    bool host_memory; /* the host can read and write the device's memory */
    /* Names and versions of its libraries: "oneDNN 3.7.1, OpenBLAS 0.3.29 ..."; NULL:
     * none. */
    const char *(*libraries)(void);

    int (*open)(const struct dnn_device *device, struct dnn_dev **out,
                struct dnn_err *err);
    void (*close)(struct dnn_dev *dev); /* NULL is fine */

    /* Memory, aligned to 64 bytes and zeroed, on the NUMA node that will use it
     * (first touch by the threads of the device). The plan allocates a few large
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
     * and frees memory of the size of the operands; later calls for the same step
     * return the same result. */
    int (*supports)(struct dnn_dev *dev, const struct dnn_step *step,
                    struct dnn_err *why);
    int (*need)(struct dnn_dev *dev, const struct dnn_step *step, struct dnn_need *need,
                struct dnn_err *err);
    /* Whether the rows of input i (output i if out is true) may have a pitch. The
     * pitches in step are ignored. */
    bool (*pitch)(struct dnn_dev *dev, const struct dnn_step *step, bool out, int i);

    /* Running. prepare() once per step, run() every iteration. run() may return before
     * the step has finished; sync() waits for all steps. step->op, the tensors in[i]
     * and out[i] point to, and the memory must outlive the kernel; the arrays are
     * copied. run() allocates nothing. */
    int (*prepare)(struct dnn_dev *dev, const struct dnn_step *step,
                   struct dnn_kernel **out, struct dnn_err *err);
    int (*run)(struct dnn_dev *dev, struct dnn_kernel *kernel,
               const struct dnn_now *now, struct dnn_err *err);
    /* Start a DNN_OP_EXCHANGE whose input is ready, so that run() only waits for it.
     * NULL: not supported. */
    int (*begin)(struct dnn_dev *dev, struct dnn_kernel *kernel, struct dnn_err *err);
    void (*discard)(struct dnn_dev *dev, struct dnn_kernel *kernel); /* NULL is fine */
    int (*sync)(struct dnn_dev *dev, struct dnn_err *err);
    /* Whether a single thread inside a parallel region may run it, with the same
     * result, bit for bit, as with all threads of the device. NULL: yes. */
    bool (*single_threaded)(const struct dnn_kernel *kernel);
    /* Whether it has packed these weights (see dnn_now.weights), so that run() will not
     * read its input 1. NULL: never. */
    bool (*packed)(const struct dnn_kernel *kernel, uint64_t weights);
    /* Deferred results, for a step whose first result is much larger than its operands:
     * the gradient of a large matrix from few rows. Instead of run(), defer() computes
     * the other results and copies the operands of the first to `to`; deferred_rows()
     * computes n rows of the first result from such a copy. Several threads may call it
     * at once; the result equals that of run() bit for bit. deferred_bytes() is the
     * size of a copy; 0: not supported for this step. All NULL: not supported. */
    size_t (*deferred_bytes)(const struct dnn_kernel *kernel);
    void (*defer)(struct dnn_kernel *kernel, void *to);
    void (*deferred_rows)(const struct dnn_kernel *kernel, const void *stored,
                          int64_t first, int64_t n, float *to);
    /* The name of the kernel: "plain loops", "direct avx2", "oneDNN jit:avx2". Owned by
     * the kernel. */
    const char *(*describe)(struct dnn_dev *dev, const struct dnn_kernel *kernel);
};

/* The backend with this name. NULL: there is none; the message lists those in this
 * build. */
const struct dnn_backend *dnn_backend_find(const char *name, struct dnn_err *err);
/* Backend number index of this build, from 0; NULL past the end. */
const struct dnn_backend *dnn_backend_at(int index);

#endif
