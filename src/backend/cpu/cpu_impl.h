/* cpu_impl.h - shared by the files of the cpu backend.
 *
 * A step has one or several kernels (struct cpu_algo); algos.c lists them per kind
 * and pass, preferred one first, and select.c picks one. The loops of the ref
 * backend run what no kernel supports. Most kernels are for f32; other types mostly
 * use those loops.
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
    int64_t rows,
        row;       /* count = rows * row; row: extent of the last axis, 1 of a scalar */
    int64_t pitch; /* elements; equal to row where rows are contiguous */
    struct dnn_shape shape;
};

/* A kernel about to run. */
struct cpu_call {
    const struct dnn_op *op;
    struct cpu_array *in; /* owned by the kernel, op->nin of them */
    struct cpu_array out[DNN_MAX_OUT];
    void *work, *keep; /* as much as was asked for */
    int threads;       /* for the OpenMP team: num_threads(c->threads) */
    struct dnn_now now;
};

typedef void cpu_fn(const struct cpu_call *c);
/* Bytes of workspace for a number of threads. */
typedef size_t cpu_work(const struct dnn_step *step, int threads);

/* A step whose first result may be deferred: see backend.h, held(). */
struct cpu_deferred {
    size_t (*held)(const struct cpu_call *c);
    void (*hold)(const struct cpu_call *c, void *to);
    void (*rows)(const struct cpu_call *c, const void *held, int64_t first, int64_t n,
                 float *to);
};

/* One kernel for a step. Either fn (with work, may be NULL) or the functions with a
 * state. */
struct cpu_algo {
    const char *name; /* in --explain and in the cache file */
    /* Whether it supports this step; NULL: yes. Types and pitches have been checked:
     * all operands are f32 (except integers and f64 sums, see enum dnn_operand) and
     * have only pitches the bits below allow. */
    bool (*can)(const struct dnn_step *step);
    /* Whether it is known to be the fastest for a step it supports: the heuristic
     * then prefers it to those listed earlier. NULL: no. */
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
    bool whole; /* needs all the threads it was prepared for: see backend.h, alone() */
    const char *(*describe)(const void *state); /* NULL: the name                  */
    const struct cpu_deferred *deferred;        /* NULL: not supported */
    bool by_isa; /* one per instruction set, whose name is appended */
};

/* Algorithms that the user may ask for. */
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
    struct dnn_dev *ref;        /* the ref backend, for the loops */
    struct cpu_tuned *tuned;    /* owned: autotuned so far */
};

/* ---- algos.c ---- */

/* The kernels of a kind and pass, preferred one first; ends with NULL. Without the
 * loops. */
const struct cpu_algo *const *dnn_cpu_algos(enum dnn_op_kind kind, enum dnn_pass pass);
/* The ref backend's loops: any step, any pitch. */
extern const struct cpu_algo dnn_cpu_loops;

/* ---- select.c ---- */

/* Whether a kernel supports a step with its types and pitches. */
bool dnn_cpu_can(const struct cpu_algo *algo, const struct dnn_step *step);
/* The kernel for a step: by the heuristic, from the cache, or by measuring now. */
int dnn_cpu_select(struct dnn_dev *dev, const struct dnn_step *step,
                   const struct cpu_algo **out, struct dnn_err *err);
/* Read device.conv. */
int dnn_cpu_conv_read(struct dnn_dev *dev, struct dnn_err *err);
/* Read the cache file if there is one; save it and free. */
int dnn_cpu_tuned_open(struct dnn_dev *dev, struct dnn_err *err);
void dnn_cpu_tuned_close(struct dnn_dev *dev);

/* ---- pages.c ---- */

/* A block aligned to 64 bytes, not touched yet; large ones start on a huge page and
 * return to the system at once when freed. NULL: out of memory. */
void *dnn_cpu_take(size_t bytes);
void dnn_cpu_give_back(void *mem, size_t bytes); /* NULL is fine */
bool dnn_cpu_mapped(size_t bytes);               /* whether it has its own mapping */

/* ---- cpu.c ---- */

/* The operands of a step as a call; the caller owns call.in: dnn_free(). */
struct cpu_call dnn_cpu_call(const struct dnn_dev *dev, const struct dnn_step *step);

struct cpu_array dnn_cpu_array(const struct dnn_tensor *is, void *mem, int64_t pitch);

/* Bytes rounded up to whole cache lines. */
static inline size_t cpu_lines(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* Weights packed into a step's own memory, for as long as they do not change. */
struct cpu_packed {
    bool made;
    uint64_t weights; /* of which struct dnn_now */
};

/* Whether they must be packed (again); remembers that they will be. */
static inline bool cpu_pack_needed(struct cpu_packed *packed, const struct cpu_call *c)
{
    bool needed = !packed->made || packed->weights != c->now.weights;

    packed->made = true;
    packed->weights = c->now.weights;
    return needed;
}

/* Split n items into equal parts: the items of part i. */
static inline void dnn_cpu_share(int64_t n, int parts, int i, int64_t *first,
                                 int64_t *last)
{
    *first = n * i / parts;
    *last = n * (i + 1) / parts;
}

#endif
