/* cpu_impl.h - shared by the files of the cpu backend.
 *
 * There may be several kernels (struct cpu_algo) for a step: algos.c lists them by kind
 * and pass, preferred one first, and select.c selects one. The loops of the ref backend
 * run steps that no kernel supports. Most kernels are for f32; for other types mostly
 * those loops are used.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BACKEND_CPU_CPU_IMPL_H
#define DNN_BACKEND_CPU_CPU_IMPL_H

#include "backend/backend.h"

#include <assert.h>

/* One operand.  Row r (all axes but the last) starts at mem + r * pitch. */
struct cpu_array {
    void *mem; /* NULL: the operand is absent */
    enum dnn_dtype dtype;
    int64_t count;
    int64_t rows, row; /* count = rows * row; row: extent of the last axis; scalar: 1 */
    int64_t pitch;     /* elements; equal to row where rows are contiguous */
    struct dnn_shape shape;
};

/* A kernel about to run. */
struct cpu_call {
    const struct dnn_op *op;
    struct cpu_array *in; /* owned by the kernel, op->nin of them */
    struct cpu_array out[DNN_MAX_OUT];
    void *work, *keep; /* of the sizes that work() or need() returned */
    int threads;       /* for the OpenMP team: num_threads(c->threads) */
    struct dnn_now now;
};

typedef void cpu_fn(const struct cpu_call *c);
/* Bytes of workspace for a number of threads. */
typedef size_t cpu_work(const struct dnn_step *step, int threads);

/* A step whose first result may be deferred: deferred_bytes(), defer() and
 * deferred_rows() of backend.h. */
struct cpu_deferred {
    size_t (*bytes)(const struct cpu_call *c);
    void (*store)(const struct cpu_call *c, void *to);
    void (*rows)(const struct cpu_call *c, const void *stored, int64_t first, int64_t n,
                 float *to);
};

/* One kernel. It has either fn (and work, which may be NULL), or need ... discard,
 * which share a state. */
struct cpu_algo {
    const char *name; /* in --explain and in the cache file */
    /* Whether it supports this step; NULL: yes. Types and pitches have been checked:
     * all operands are f32 (except integers and f64 sums, see enum dnn_operand) and
     * have only the pitches that the bits below allow. */
    bool (*can)(const struct dnn_step *step);
    /* Whether it is known to be the fastest for a step it supports: the heuristic then
     * selects it even if others are listed earlier. NULL: no. */
    bool (*best)(const struct dnn_step *step);
    /* Bit i: the rows of input (output) i may have a pitch. */
    unsigned in_pitch, out_pitch;
    bool f64; /* all operands are f64 instead */

    cpu_fn *fn;
    cpu_work *work;

    int (*need)(struct dnn_dev *dev, const struct dnn_step *step, struct dnn_need *need,
                struct dnn_err *err);
    int (*prepare)(struct dnn_dev *dev, const struct dnn_step *step,
                   const struct cpu_call *call, void **state, struct dnn_err *err);
    int (*run)(struct dnn_dev *dev, const struct cpu_call *call, void *state,
               struct dnn_err *err);
    void (*discard)(void *state);
    /* Its packed weights, which it reads instead of input 1; NULL: none. */
    const struct cpu_packed *(*packed)(const void *state);
    bool all_threads; /* needs all threads it was prepared for: not single_threaded() */
    const char *(*describe)(const void *state); /* NULL: the name      */
    const struct cpu_deferred *deferred;        /* NULL: not supported */
    bool by_isa; /* one per instruction set; its name is appended to the kernel's */
};

/* Algorithms that the user may request. */
enum cpu_conv {
    CPU_CONV_ANY,
    CPU_CONV_GEMM,
    CPU_CONV_WINOGRAD,
    CPU_CONV_DIRECT,
    CPU_CONV_ONEDNN
};

struct dnnl_engine;
struct dnnl_stream;

struct dnn_dev {
    struct dnn_device device;
    int threads;
    enum cpu_conv conv;
    struct dnnl_engine *engine; /* oneDNN, opened on first use; owned */
    struct dnnl_stream *stream; /* owned */
    struct dnn_dev *ref;        /* of the ref backend, for its loops; owned */
    struct cpu_tuned *tuned;    /* results of autotuning; owned */
};

/* ---- algos.c ---- */

/* The kernels for a kind and pass, preferred one first, then NULL. dnn_cpu_loops is not
 * in the list. */
const struct cpu_algo *const *dnn_cpu_algos(enum dnn_op_kind kind, enum dnn_pass pass);
/* The ref backend's loops: support any step and pitch. */
extern const struct cpu_algo dnn_cpu_loops;

/* ---- select.c ---- */

/* Whether a kernel supports a step with its types and pitches. */
bool dnn_cpu_can(const struct cpu_algo *algo, const struct dnn_step *step);
/* The kernel for a step: by the heuristic, from the cache, or by measuring now. */
int dnn_cpu_select(struct dnn_dev *dev, const struct dnn_step *step,
                   const struct cpu_algo **out, struct dnn_err *err);
/* Parse device.conv into dev->conv. */
int dnn_cpu_conv_read(struct dnn_dev *dev, struct dnn_err *err);
/* Open reads the cache file, if there is one; close saves it and frees. */
int dnn_cpu_tuned_open(struct dnn_dev *dev, struct dnn_err *err);
void dnn_cpu_tuned_close(struct dnn_dev *dev);

/* ---- pages.c ---- */

/* Memory aligned to 64 bytes, not touched yet. Large blocks start on a huge page and
 * are returned to the system when freed. NULL: out of memory. */
void *dnn_cpu_alloc(size_t bytes);
void dnn_cpu_free(void *mem, size_t bytes); /* NULL is fine */

/* ---- cpu.c ---- */

/* A step's operands as a call. The caller frees call.in with dnn_free(). */
struct cpu_call dnn_cpu_call(const struct dnn_dev *dev, const struct dnn_step *step);

/* One operand; tensor may be NULL: absent. pitch 0: contiguous rows. */
struct cpu_array dnn_cpu_array(const struct dnn_tensor *tensor, void *mem,
                               int64_t pitch);

/* Bytes rounded up to whole cache lines. */
static inline size_t cpu_lines(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* The state of weights packed into a step's keep memory. */
struct cpu_packed {
    bool valid;
    uint64_t weights; /* the version that is packed: dnn_now.weights */
};

/* Whether weights must be packed (again). Marks them as packed: the caller does it. */
static inline bool cpu_pack_needed(struct cpu_packed *packed, const struct cpu_call *c)
{
    bool needed = !packed->valid || packed->weights != c->now.weights;

    packed->valid = true;
    packed->weights = c->now.weights;
    return needed;
}

/* Split n items into equal parts; part i has items *first ... *last - 1. */
static inline void dnn_cpu_share(int64_t n, int parts, int i, int64_t *first,
                                 int64_t *last)
{
    *first = n * i / parts;
    *last = n * (i + 1) / parts;
}

#endif
