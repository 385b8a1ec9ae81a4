/* cpu_impl.h - what the files of the cpu backend share.
 *
 * A step can be done in one or several algos (struct cpu_algo); algos.c lists them per
 * kind and pass, best guess first, with the ref backend's loops behind them all.
 * choose.c picks.  f32 has algos of its own; other types mostly fall to the loops.
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
    int64_t pitch; /* elements; equal to row where rows lie side by side */
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
/* Bytes of workspace for that many threads. */
typedef size_t cpu_work(const struct dnn_step *step, int threads);

/* A step whose first result may be made later: see backend.h, held(). */
struct cpu_later {
    size_t (*held)(const struct cpu_call *c);
    void (*hold)(const struct cpu_call *c, void *to);
    void (*rows)(const struct cpu_call *c, const void *held, int64_t first, int64_t n,
                 float *to);
};

/* One algo to do a step.  Either fn (with work, may be NULL) or the five functions
 * with a state. */
struct cpu_algo {
    const char *name; /* in --explain and in the file of choices: one word or two */
    /* Whether it can do this step at all, types and pitches apart; NULL: yes.  All
     * operands are f32 (index, mask and label operands, f64 sums aside) and have only
     * pitches the bits below allow when it is asked. */
    bool (*can)(const struct dnn_step *step);
    /* Whether it is known to be the fastest where it can: by rule it is then taken
     * before those that are listed earlier.  NULL: no. */
    bool (*best)(const struct dnn_step *step);
    /* Bit i: the rows of input (output) i may be apart. */
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
    bool whole; /* needs all the threads it was prepared for: see backend.h, alone()  */
    const char *(*describe)(const void *state); /* NULL: the name                  */
    const struct cpu_later *later;              /* NULL: it cannot */
    bool by_isa; /* there is one for each instruction set: which, is said behind it */
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
    struct dnnl_engine *engine; /* oneDNN's, opened when it is first wanted; owned */
    struct dnnl_stream *stream; /* owned */
    struct dnn_dev *ref;        /* the ref backend, for what nothing else can do */
    struct cpu_tuned *tuned;    /* owned: what was measured so far */
};

/* ---- algos.c ---- */

/* The algos of a kind and pass, best guess first; ends with NULL.  Never the loops. */
const struct cpu_algo *const *dnn_cpu_algos(enum dnn_op_kind kind, enum dnn_pass pass);
/* The ref backend's loops: any step, any pitch. */
extern const struct cpu_algo dnn_cpu_loops;

/* ---- choose.c ---- */

/* Whether a algo can do a step with its types and pitches. */
bool dnn_cpu_can(const struct cpu_algo *algo, const struct dnn_step *step);
/* The algo to do a step: by rule, from the file of choices, or by measuring now. */
int dnn_cpu_select(struct dnn_dev *dev, const struct dnn_step *step,
                   const struct cpu_algo **out, struct dnn_err *err);
/* Read device.conv. */
int dnn_cpu_conv_read(struct dnn_dev *dev, struct dnn_err *err);
/* Read the file of choices if there is one; forget. */
int dnn_cpu_tuned_open(struct dnn_dev *dev, struct dnn_err *err);
void dnn_cpu_tuned_close(struct dnn_dev *dev);

/* ---- pages.c ---- */

/* A block aligned to 64 bytes, not touched yet; large ones start on a huge page and
 * go back to the system at once when given back.  NULL: there is no more. */
void *dnn_cpu_take(size_t bytes);
void dnn_cpu_give_back(void *mem, size_t bytes); /* NULL is fine */
bool dnn_cpu_mapped(size_t bytes);               /* is it a mapping of its own? */

/* ---- cpu.c ---- */

/* A step's operands as a call; the caller owns call.in: dnn_free(). */
struct cpu_call dnn_cpu_call(const struct dnn_dev *dev, const struct dnn_step *step);

struct cpu_array dnn_cpu_array(const struct dnn_tensor *is, void *mem, int64_t pitch);

/* Split n things into parts: what part i of parts has, in equal shares. */
static inline void dnn_cpu_share(int64_t n, int parts, int i, int64_t *first,
                                 int64_t *last)
{
    *first = n * i / parts;
    *last = n * (i + 1) / parts;
}

#endif
