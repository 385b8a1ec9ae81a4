/* cpu_rows.h - run one kernel of the cpu backend on arrays with gaps, in place, with
 * several numbers of threads, and compare it with the ref backend.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_OPS_CPU_ROWS_H
#define DNN_TESTS_OPS_CPU_ROWS_H

#include "backend/cpu/rows_impl.h"
#include "base/mem.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>

enum { GAP = 3, MAX_IN = 8 };

extern const struct dnn_backend dnn_backend_ref;

struct rows_case {
    struct dnn_op op;
    struct dnn_tensor in[MAX_IN], out[DNN_MAX_OUT];
    void *in_mem[MAX_IN];       /* dense; NULL: absent; owned */
    void *out_mem[DNN_MAX_OUT]; /* what is expected; owned    */
    double
        size; /* scale of the error, if results are small differences; 0: their own */
};

static inline struct dnn_tensor tensor(enum dnn_dtype dtype, int ndim,
                                       const int64_t *dim)
{
    struct dnn_tensor t = {.dtype = dtype};

    if (dnn_shape_make(ndim, dim, &t.shape, NULL) < 0) abort();
    return t;
}
#define TENSOR(dtype, ...)                                                             \
    tensor(dtype, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),           \
           (int64_t[]){__VA_ARGS__})

static inline int64_t count_of(const struct dnn_tensor *t)
{
    int64_t n = 0;

    if (dnn_shape_count(&t->shape, &n, NULL) < 0) abort();
    return n;
}

static inline int64_t row_of(const struct dnn_tensor *t)
{
    return t->shape.ndim == 0 ? 1 : t->shape.dim[t->shape.ndim - 1];
}

/* Numbers between low and high, some of them equal; a function of (seed, i). */
static inline double number(uint64_t seed, int64_t i, double low, double high)
{
    uint64_t h = ((uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15) + seed * 7919;

    h = (h ^ h >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    h ^= h >> 32;
    return low + (high - low) * (double)(h % 4099) / 4098;
}

static inline void *filled(const struct dnn_tensor *t, double low, double high,
                           uint64_t seed)
{
    int64_t n = count_of(t);
    size_t size = dnn_dtype_size(t->dtype);
    void *mem = dnn_alloc((size_t)n * size + 64);

    for (int64_t i = 0; i < n; i++) {
        double v = number(seed, i, low, high);
        if (t->dtype == DNN_F32)
            ((float *)mem)[i] = (float)v;
        else if (t->dtype == DNN_F64)
            ((double *)mem)[i] = v;
    }
    return mem;
}

static inline void rows_free(struct rows_case *k)
{
    for (int i = 0; i < MAX_IN; i++)
        dnn_free(k->in_mem[i]);
    for (int i = 0; i < DNN_MAX_OUT; i++)
        dnn_free(k->out_mem[i]);
}

/* Run the case's op, without a fused activation, by the ref backend: fills
 * out_mem. */
static inline void rows_ref(struct rows_case *k)
{
    const struct dnn_backend *ref = &dnn_backend_ref;
    const struct dnn_tensor *in[MAX_IN], *out[DNN_MAX_OUT];
    struct dnn_op op = k->op;
    struct dnn_err err = {0};
    struct dnn_dev *dev;
    struct dnn_need need;
    struct dnn_kernel *kernel;

    op.post = NULL;
    for (int i = 0; i < op.nin; i++)
        in[i] = k->in_mem[i] == NULL ? NULL : &k->in[i];
    for (int i = 0; i < op.nout; i++) {
        out[i] = &k->out[i];
        dnn_free(k->out_mem[i]);
        k->out_mem[i] = filled(&k->out[i], 0, 0, 0);
    }
    struct dnn_step step = {
        .op = &op, .in = in, .out = out, .in_mem = k->in_mem, .out_mem = k->out_mem};
    if (ref->open(&(struct dnn_device){0}, &dev, &err) < 0 ||
        ref->need(dev, &step, &need, &err) < 0) {
        printf("# %s\n", err.text);
        abort();
    }
    step.work = dnn_alloc(need.work + 64);
    if (ref->prepare(dev, &step, &kernel, &err) < 0 ||
        ref->run(dev, kernel, &(struct dnn_now){0}, &err) < 0) {
        printf("# %s\n", err.text);
        abort();
    }
    ref->discard(dev, kernel);
    dnn_free(step.work);
    ref->close(dev);
}

/* ---- one run of the kernel ---- */

struct rows_run {
    struct cpu_array in[MAX_IN], out[DNN_MAX_OUT];
};

/* Bytes of an array with gaps, and a margin that must not be written. */
static inline size_t bytes_of(const struct cpu_array *a)
{
    return (size_t)(a->rows * a->pitch) * dnn_dtype_size(a->dtype) + 64;
}

static inline struct cpu_array array_of(const struct dnn_tensor *t, int64_t gap)
{
    struct cpu_array a = {.dtype = t->dtype, .shape = t->shape};

    a.count = count_of(t);
    a.row = row_of(t);
    a.rows = a.count / a.row;
    a.pitch = a.row + gap;
    a.mem = aligned_alloc(64, (bytes_of(&a) + 63) & ~(size_t)63);
    memset(a.mem, 0x5a, bytes_of(&a));
    return a;
}

static inline void copy_rows(const struct cpu_array *a, void *dense, bool in)
{
    size_t size = dnn_dtype_size(a->dtype);

    for (int64_t r = 0; r < a->rows; r++) {
        char *mine = (char *)a->mem + (size_t)(r * a->pitch) * size;
        char *other = (char *)dense + (size_t)(r * a->row) * size;
        memcpy(in ? mine : other, in ? other : mine, (size_t)a->row * size);
    }
}

/* Whether nothing was written between rows and after the last one. */
static inline bool gaps_whole(const struct cpu_array *a)
{
    size_t size = dnn_dtype_size(a->dtype), end = bytes_of(a);
    const unsigned char *p = a->mem;

    for (size_t i = 0; i < end; i++) {
        size_t e = i / size;
        bool inside =
            e < (size_t)(a->rows * a->pitch) && e % (size_t)a->pitch < (size_t)a->row;
        if (!inside && p[i] != 0x5a) return false;
    }
    return true;
}

static inline double at(const void *mem, enum dnn_dtype dtype, int64_t i)
{
    switch (dtype) {
    case DNN_F32:
        return ((const float *)mem)[i];
    case DNN_F64:
        return ((const double *)mem)[i];
    case DNN_U8:
        return ((const uint8_t *)mem)[i];
    case DNN_U16:
        return ((const uint16_t *)mem)[i];
    default:
        return ((const int32_t *)mem)[i];
    }
}

/* The largest difference over the largest number expected, or over size. */
static inline double apart(const struct dnn_tensor *t, const void *got,
                           const void *want, double size)
{
    double most = 0;
    int64_t n = count_of(t);

    for (int64_t i = 0; i < n; i++) {
        double w = at(want, t->dtype, i), d = fabs(at(got, t->dtype, i) - w);
        if (!(d <= most)) most = isnan(d) ? INFINITY : d;
        if (fabs(w) > size) size = fabs(w);
    }
    return most == 0 ? 0 : most / (size > 0 ? size : 1);
}

/* One run; wrong: the error, or empty. */
static inline void rows_once(const struct rows_case *k, const struct cpu_algo *algo,
                             int threads, bool gaps, bool in_place, double tolerance,
                             char *wrong, size_t size)
{
    struct cpu_array in[MAX_IN] = {0};
    struct cpu_call call = {.op = &k->op, .in = in, .threads = threads};
    const struct dnn_tensor *ins[MAX_IN], *outs[DNN_MAX_OUT];
    struct dnn_step step = {.op = &k->op, .in = ins, .out = outs};
    int64_t in_pitch[MAX_IN] = {0}, out_pitch[DNN_MAX_OUT] = {0};

    for (int i = 0; i < k->op.nin; i++) {
        ins[i] = k->in_mem[i] == NULL ? NULL : &k->in[i];
        if (ins[i] == NULL) continue;
        bool gap = gaps && ins[i]->dtype == DNN_F32 && algo->in_pitch >> i & 1;
        in[i] = array_of(ins[i], gap ? GAP + i : 0);
        in_pitch[i] = in[i].pitch;
        copy_rows(&in[i], k->in_mem[i], true);
    }
    for (int i = 0; i < k->op.nout; i++) {
        outs[i] = &k->out[i];
        call.out[i] =
            in_place && i == 0
                ? in[0]
                : array_of(outs[i], gaps && algo->out_pitch >> i & 1 ? GAP : 0);
        out_pitch[i] = call.out[i].pitch;
    }
    step.in_pitch = in_pitch;
    step.out_pitch = out_pitch;
    size_t work = algo->work == NULL ? 0 : algo->work(&step, threads);
    call.work = aligned_alloc(64, (work + 128) & ~(size_t)63);
    memset(call.work, 0xff, (work + 128) & ~(size_t)63);
    if (algo->can != NULL && !algo->can(&step))
        snprintf(wrong, size, "not supported");
    else
        algo->fn(&call);
    for (int i = 0; i < k->op.nout && wrong[0] == '\0'; i++) {
        void *got = filled(&k->out[i], 0, 0, 0);
        copy_rows(&call.out[i], got, false);
        double far = apart(&k->out[i], got, k->out_mem[i], k->size);
        if (!(far <= tolerance))
            snprintf(wrong, size,
                     "output %d is %g off, %d threads, gaps %d, in place %d", i, far,
                     threads, gaps, in_place);
        if (!gaps_whole(&call.out[i]))
            snprintf(wrong, size, "output %d: it wrote outside, gaps %d", i, gaps);
        /* Once more: the same bits. */
        if (!in_place && wrong[0] == '\0') {
            size_t bytes =
                (size_t)count_of(&k->out[i]) * dnn_dtype_size(k->out[i].dtype);
            void *again = filled(&k->out[i], 0, 0, 0);
            algo->fn(&call);
            copy_rows(&call.out[i], again, false);
            if (memcmp(got, again, bytes) != 0)
                snprintf(wrong, size, "output %d: another run, other bits", i);
            dnn_free(again);
        }
        dnn_free(got);
    }
    for (int i = 0; i < k->op.nin; i++)
        free(in[i].mem);
    for (int i = in_place; i < k->op.nout; i++)
        free(call.out[i].mem);
    free(call.work);
}

/* Run all variants of the kernel; frees the case. */
static inline void rows_check(struct rows_case *k, const struct cpu_algo *algo,
                              double tolerance, const char *what)
{
    char wrong[200] = "";
    bool in_place = dnn_op_info(k->op.kind)->inplace >> k->op.pass & 1 &&
                    k->op.nout > 0 &&
                    dnn_shape_equal(&k->in[0].shape, &k->out[0].shape);

    for (int threads = 1; threads <= 3; threads++)
        for (int how = 0; how < 4 && wrong[0] == '\0'; how++) {
            if (how >= 2 && !in_place) continue;
            rows_once(k, algo, threads, how & 1, how >= 2, tolerance, wrong,
                      sizeof wrong);
        }
    if (!ok(wrong[0] == '\0', "%s", what)) printf("# %s\n", wrong);
    rows_free(k);
}

/* ---- activations after an op ---- */

static const struct dnn_op_unary relu = {.fn = DNN_RELU, .max_value = INFINITY};
static const struct dnn_op_unary leaky = {
    .fn = DNN_RELU, .alpha = 0.25, .max_value = INFINITY};
static const struct dnn_op_unary relu6 = {.fn = DNN_RELU, .max_value = 1.5};
static const struct dnn_op_unary swish = {.fn = DNN_SWISH};
static const struct dnn_op_unary tanh_ = {.fn = DNN_TANH};
static const struct dnn_op_unary *const posts[] = {NULL,   &relu,  &leaky,
                                                   &relu6, &swish, &tanh_};

/* The function u of mem, element by element, in place. */
static inline void apply(const struct dnn_op_unary *u, const struct dnn_tensor *t,
                         void *mem)
{
    struct rows_case k = {
        .op = {.kind = DNN_OP_UNARY, .attr.unary = *u, .nin = 1, .nout = 1},
        .in = {*t},
        .out = {*t}
    };
    size_t bytes = (size_t)count_of(t) * sizeof(float);

    k.in_mem[0] = filled(t, 0, 0, 0);
    memcpy(k.in_mem[0], mem, bytes);
    rows_ref(&k);
    memcpy(mem, k.out_mem[0], bytes);
    rows_free(&k);
}

#endif
