/* cpu.c - the cpu backend: oneDNN, OpenBLAS and our own kernels on the cores of this
 * process.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/cpu/cpu_impl.h"

#include "backend/cpu/direct.h"
#include "backend/cpu/onednn_impl.h"
#include "base/mem.h"

#include <cblas.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

extern const struct dnn_backend dnn_backend_ref, dnn_backend_cpu;

struct dnn_kernel {
    const struct cpu_algo *algo;
    struct cpu_call call;
    void *state; /* of algo; NULL: none */
    bool exchange;
    void *request; /* the request of a started exchange, or NULL */
    char text[40]; /* for describe() */
};

static void close_dev(struct dnn_dev *dev)
{
    if (dev == NULL) return;
    dnn_cpu_tuned_close(dev);
    dnn_cpu_onednn_close(dev);
    dnn_backend_ref.close(dev->ref);
    dnn_free(dev);
}

static int open_dev(const struct dnn_device *device, struct dnn_dev **out,
                    struct dnn_err *err)
{
    if (device->index != 0)
        return dnn_fail(err, DNN_EDEVICE, "backend cpu has only device 0, not %d",
                        device->index);
    DNN_TRY(dnn_direct_check(err));
    struct dnn_dev *dev = dnn_alloc(sizeof *dev);
    dev->device = *device;
    dev->threads = device->threads > 0 ? device->threads : omp_get_max_threads();
    /* oneDNN uses the OpenMP team. OpenBLAS is called by each thread of our own team:
     * its own threads would keep spinning on cores that the next step needs. */
    omp_set_num_threads(dev->threads);
    openblas_set_num_threads(1);
    int rc = dnn_backend_ref.open(&(struct dnn_device){0}, &dev->ref, err);
    if (rc == 0) rc = dnn_cpu_conv_read(dev, err);
    if (rc == 0) rc = dnn_cpu_tuned_open(dev, err);
    if (rc < 0) {
        close_dev(dev);
        return rc;
    }
    *out = dev;
    return 0;
}

static int alloc(struct dnn_dev *dev, size_t bytes, void **out, struct dnn_err *err)
{
    char *mem = dnn_cpu_alloc(bytes);

    if (mem == NULL)
        return dnn_fail(err, DNN_ENOMEM,
                        "backend cpu: cannot allocate %zu bytes of memory", bytes);
    /* First touch determines the NUMA node of a page: each thread touches the share
     * that it will mostly work on. */
#pragma omp parallel num_threads(dev->threads)
    {
        int64_t first, last;

        dnn_cpu_share((int64_t)bytes, omp_get_num_threads(), omp_get_thread_num(),
                      &first, &last);
        memset(mem + first, 0, (size_t)(last - first));
    }
    *out = mem;
    return 0;
}

static void release(struct dnn_dev *dev, void *mem, size_t bytes)
{
    (void)dev;
    dnn_cpu_free(mem, bytes);
}

static int copy(struct dnn_dev *dev, void *dst, const void *src, size_t n,
                struct dnn_err *err)
{
    (void)dev, (void)err;
    if (n > 0) memcpy(dst, src, n);
    return 0;
}

static int supports(struct dnn_dev *dev, const struct dnn_step *step,
                    struct dnn_err *why)
{
    const struct cpu_algo *const *algos = dnn_cpu_algos(step->op->kind, step->op->pass);

    for (int i = 0; algos[i] != NULL; i++)
        if (dnn_cpu_can(algos[i], step)) return 0;
    return dnn_backend_ref.supports(dev->ref, step, why);
}

static int need(struct dnn_dev *dev, const struct dnn_step *step, struct dnn_need *need,
                struct dnn_err *err)
{
    const struct cpu_algo *algo;

    *need = (struct dnn_need){0};
    if (step->op->kind == DNN_OP_EXCHANGE) return 0;
    DNN_TRY(dnn_cpu_select(dev, step, &algo, err));
    if (algo->need != NULL) return algo->need(dev, step, need, err);
    if (algo->work != NULL) need->work = algo->work(step, dev->threads);
    return 0;
}

/* Decided by the kernel that is preferred without pitches: a pitch must not force a
 * slower kernel. */
static bool pitch(struct dnn_dev *dev, const struct dnn_step *step, bool out, int i)
{
    const struct cpu_algo *const *algos = dnn_cpu_algos(step->op->kind, step->op->pass);
    struct dnn_step plain = *step;

    (void)dev;
    plain.in_pitch = plain.out_pitch = NULL;
    for (int k = 0; algos[k] != NULL; k++)
        if (dnn_cpu_can(algos[k], &plain))
            return ((out ? algos[k]->out_pitch : algos[k]->in_pitch) >> i & 1) != 0;
    return false;
}

struct cpu_array dnn_cpu_array(const struct dnn_tensor *tensor, void *mem,
                               int64_t pitch)
{
    struct cpu_array a = {0};

    if (tensor == NULL) return a;
    a.mem = mem;
    a.dtype = tensor->dtype;
    a.shape = tensor->shape;
    a.row = tensor->shape.ndim == 0 ? 1 : tensor->shape.dim[tensor->shape.ndim - 1];
    a.rows = 1;
    for (int i = 0; i < tensor->shape.ndim - 1; i++)
        a.rows *= tensor->shape.dim[i];
    a.count = a.rows * a.row;
    a.pitch = pitch == 0 ? a.row : pitch;
    return a;
}

struct cpu_call dnn_cpu_call(const struct dnn_dev *dev, const struct dnn_step *step)
{
    const struct dnn_op *op = step->op;
    struct cpu_call c = {.op = op,
                         .in = dnn_alloc((size_t)op->nin * sizeof *c.in),
                         .work = step->work,
                         .keep = step->keep,
                         .threads = dev->threads};

    for (int i = 0; i < op->nin; i++)
        c.in[i] = dnn_cpu_array(step->in[i], step->in_mem[i],
                                step->in_pitch == NULL ? 0 : step->in_pitch[i]);
    for (int i = 0; i < op->nout; i++)
        c.out[i] = dnn_cpu_array(step->out[i], step->out_mem[i],
                                 step->out_pitch == NULL ? 0 : step->out_pitch[i]);
    return c;
}

static void discard(struct dnn_dev *dev, struct dnn_kernel *kernel)
{
    (void)dev;
    if (kernel == NULL) return;
    if (kernel->state != NULL) kernel->algo->discard(kernel->state);
    dnn_free(kernel->call.in);
    dnn_free(kernel);
}

static int prepare(struct dnn_dev *dev, const struct dnn_step *step,
                   struct dnn_kernel **out, struct dnn_err *err)
{
    const struct cpu_algo *algo = NULL;
    bool exchange = step->op->kind == DNN_OP_EXCHANGE;

    if (!exchange) DNN_TRY(dnn_cpu_select(dev, step, &algo, err));
    struct dnn_kernel *k = dnn_alloc(sizeof *k);
    k->algo = algo;
    k->exchange = exchange;
    k->call = dnn_cpu_call(dev, step);
    if (!exchange)
        snprintf(k->text, sizeof k->text, "%s%s%s", algo->name, algo->by_isa ? " " : "",
                 algo->by_isa ? dnn_direct_isa() : "");
    int rc = 0;
    if (!exchange && algo->fn == NULL)
        rc = algo->prepare(dev, step, &k->call, &k->state, err);
    if (rc < 0) {
        discard(dev, k);
        return rc;
    }
    *out = k;
    return 0;
}

static int begin(struct dnn_dev *dev, struct dnn_kernel *kernel, struct dnn_err *err)
{
    const struct dnn_exchange *x = &dev->device.exchange;
    const struct cpu_call *c = &kernel->call;

    if (x->start == NULL) return 0;
    return x->start(x->arg, c->in[0].mem, c->in[0].count, &kernel->request, err);
}

/* Copy the values, then sum them over all ranks. */
static int exchange(struct dnn_dev *dev, struct dnn_kernel *kernel, struct dnn_err *err)
{
    const struct dnn_exchange *x = &dev->device.exchange;
    const struct cpu_call *c = &kernel->call;
    void *request = kernel->request;

    kernel->request = NULL;
    if (request != NULL) return x->finish(x->arg, request, c->out[0].mem, err);
    if (c->out[0].mem != c->in[0].mem)
        memcpy(c->out[0].mem, c->in[0].mem, (size_t)c->in[0].count * sizeof(double));
    return x->sum == NULL ? 0 : x->sum(x->arg, c->out[0].mem, c->out[0].count, err);
}

static int run(struct dnn_dev *dev, struct dnn_kernel *kernel,
               const struct dnn_now *now, struct dnn_err *err)
{
    kernel->call.now = *now;
    if (kernel->exchange) return exchange(dev, kernel, err);
    if (kernel->algo->fn == NULL)
        return kernel->algo->run(dev, &kernel->call, kernel->state, err);
    kernel->algo->fn(&kernel->call);
    return 0;
}

static int sync_dev(struct dnn_dev *dev, struct dnn_err *err)
{
    (void)dev, (void)err;
    return 0;
}

static bool single_threaded(const struct dnn_kernel *kernel)
{
    return kernel->algo == NULL || !kernel->algo->all_threads;
}

static bool packed(const struct dnn_kernel *kernel, uint64_t weights)
{
    const struct cpu_algo *algo = kernel->algo;
    const struct cpu_packed *packed =
        algo == NULL || algo->packed == NULL ? NULL : algo->packed(kernel->state);

    return packed != NULL && packed->valid && packed->weights == weights;
}

static size_t deferred_bytes(const struct dnn_kernel *kernel)
{
    const struct cpu_algo *algo = kernel->algo;

    return algo == NULL || algo->deferred == NULL
               ? 0
               : algo->deferred->bytes(&kernel->call);
}

static void defer(struct dnn_kernel *kernel, void *to)
{
    kernel->algo->deferred->store(&kernel->call, to);
}

static void deferred_rows(const struct dnn_kernel *kernel, const void *stored,
                          int64_t first, int64_t n, float *to)
{
    kernel->algo->deferred->rows(&kernel->call, stored, first, n, to);
}

static const char *describe(struct dnn_dev *dev, const struct dnn_kernel *kernel)
{
    (void)dev;
    if (kernel->exchange) return "exchange";
    if (kernel->algo->describe != NULL) return kernel->algo->describe(kernel->state);
    return kernel->text;
}

static const char *libraries(void)
{
    static char text[200];
    char version[32];

    snprintf(text, sizeof text, "oneDNN %s, %s",
             dnn_cpu_onednn_version(version, sizeof version), openblas_get_config());
    return text;
}

const struct dnn_backend dnn_backend_cpu = {
    .name = "cpu",
    .host_memory = true,
    .libraries = libraries,
    .open = open_dev,
    .close = close_dev,
    .alloc = alloc,
    .release = release,
    .put = copy,
    .get = copy,
    .supports = supports,
    .need = need,
    .pitch = pitch,
    .prepare = prepare,
    .run = run,
    .begin = begin,
    .discard = discard,
    .sync = sync_dev,
    .single_threaded = single_threaded,
    .packed = packed,
    .deferred_bytes = deferred_bytes,
    .defer = defer,
    .deferred_rows = deferred_rows,
    .describe = describe,
};
