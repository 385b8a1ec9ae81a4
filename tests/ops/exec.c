/* exec.c - run a program op by op, and compare arrays.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "ops/compare.h"

#include "base/mem.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

int64_t ops_count(const struct dnn_prog *prog, int value)
{
    int64_t count = 0;

    return dnn_shape_count(dnn_prog_shape(prog, value), &count, NULL) < 0 ? 0 : count;
}

static size_t bytes_of(const struct dnn_prog *prog, int value)
{
    return (size_t)ops_count(prog, value) * dnn_dtype_size(prog->value[value].is.dtype);
}

static int give_memory(struct ops_run *run, struct dnn_err *err)
{
    for (int v = 0; v < run->prog->nvalues; v++) {
        size_t bytes = bytes_of(run->prog, v);
        DNN_TRY(run->backend->alloc(run->dev, bytes, &run->mem[v], err));
        void *zero = dnn_alloc(bytes);
        int rc = run->backend->put(run->dev, run->mem[v], zero, bytes, err);
        dnn_free(zero);
        if (rc < 0) return rc;
        if (run->prog->value[v].data != NULL) ops_put(run, v, run->prog->value[v].data);
    }
    return 0;
}

/* Prepare op i; here: common address of its first operand and first output, NULL: their
 * own addresses. */
static int prepare(struct ops_run *run, int i, void *here, struct dnn_kernel **out,
                   struct dnn_err *err)
{
    const struct dnn_op *op = &run->prog->op[i];
    size_t nin = (size_t)op->nin;
    struct dnn_need need = {0};
    const struct dnn_tensor **in_is = dnn_alloc(nin * sizeof *in_is);
    void **in_mem = dnn_alloc(nin * sizeof *in_mem);
    const struct dnn_tensor *out_is[DNN_MAX_OUT] = {NULL};
    void *out_mem[DNN_MAX_OUT] = {NULL};
    struct dnn_step step = {
        .op = op, .in = in_is, .out = out_is, .in_mem = in_mem, .out_mem = out_mem};

    for (int j = 0; j < op->nin; j++) {
        if (op->in[j] == DNN_NONE) continue;
        in_is[j] = &run->prog->value[op->in[j]].is;
        in_mem[j] = run->mem[op->in[j]];
    }
    for (int j = 0; j < op->nout; j++) {
        if (op->out[j] == DNN_NONE) continue;
        out_is[j] = &run->prog->value[op->out[j]].is;
        out_mem[j] = run->mem[op->out[j]];
    }
    if (here != NULL) in_mem[0] = out_mem[0] = here;
    int rc = run->backend->need(run->dev, &step, &need, err);
    /* Work and keep memory in one allocation. */
    size_t work = (need.work + 63) / 64 * 64;
    run->work_bytes[i] = work + need.keep;
    if (rc == 0 && run->work_bytes[i] > 0 && run->work[i] == NULL)
        rc = run->backend->alloc(run->dev, run->work_bytes[i], &run->work[i], err);
    step.work = run->work[i];
    if (need.keep > 0) step.keep = (char *)run->work[i] + work;
    if (rc == 0) rc = run->backend->prepare(run->dev, &step, out, err);
    dnn_free(in_is);
    dnn_free(in_mem);
    return rc;
}

bool ops_in_place(struct ops_run *run, int i, struct ops_diff *diff)
{
    const struct dnn_op *op = &run->prog->op[i];
    struct dnn_kernel *kernel = NULL;
    void *here = NULL;

    if (op->nin == 0 || op->nout == 0 || op->out[0] == DNN_NONE ||
        (dnn_op_info(op->kind)->inplace >> op->pass & 1) == 0)
        return false;
    int x = op->in[0], y = op->out[0];
    const struct dnn_tensor *xs = &run->prog->value[x].is;
    const struct dnn_tensor *ys = &run->prog->value[y].is;
    if (xs->dtype != ys->dtype || !dnn_shape_equal(&xs->shape, &ys->shape))
        return false;
    size_t bytes = bytes_of(run->prog, x), n = (size_t)ops_count(run->prog, x);
    double *got = dnn_alloc(n * sizeof *got), *want = dnn_alloc(n * sizeof *want);
    void *own = run->mem[y], *raw = dnn_alloc(bytes);

    ops_get(run, y, want);
    *diff = (struct ops_diff){.worst = INFINITY};
    if (run->backend->alloc(run->dev, bytes, &here, NULL) == 0 &&
        run->backend->get(run->dev, raw, run->mem[x], bytes, NULL) == 0 &&
        run->backend->put(run->dev, here, raw, bytes, NULL) == 0 &&
        prepare(run, i, here, &kernel, NULL) == 0 &&
        run->backend->run(run->dev, kernel, &run->now, NULL) == 0) {
        run->mem[y] = here;
        ops_get(run, y, got);
        run->mem[y] = own;
        *diff = ops_compare(got, want, (int64_t)n);
    }
    run->backend->discard(run->dev, kernel);
    run->backend->release(run->dev, here, bytes);
    dnn_free(raw);
    dnn_free(got);
    dnn_free(want);
    return true;
}

int ops_start(const struct dnn_prog *prog, const struct dnn_backend *backend,
              const struct dnn_exchange *exchange, struct ops_run *run,
              struct dnn_err *err)
{
    *run = (struct ops_run){.prog = prog, .backend = backend, .now = {.seed = 7}};
    struct dnn_device device = {0};
    if (exchange != NULL) device.exchange = *exchange;
    DNN_TRY(backend->open(&device, &run->dev, err));
    run->mem = dnn_alloc((size_t)prog->nvalues * sizeof *run->mem);
    run->kernel = dnn_alloc((size_t)prog->nops * sizeof *run->kernel);
    run->work = dnn_alloc((size_t)prog->nops * sizeof *run->work);
    run->work_bytes = dnn_alloc((size_t)prog->nops * sizeof *run->work_bytes);
    int rc = give_memory(run, err);
    for (int i = 0; i < prog->nops && rc == 0; i++)

        rc = prepare(run, i, NULL, &run->kernel[i], err);
    if (rc < 0) ops_stop(run);
    return rc;
}

void ops_stop(struct ops_run *run)
{
    for (int i = 0; i < run->prog->nops; i++) {
        run->backend->discard(run->dev, run->kernel[i]);
        run->backend->release(run->dev, run->work[i], run->work_bytes[i]);
    }
    for (int v = 0; v < run->prog->nvalues; v++)
        run->backend->release(run->dev, run->mem[v], bytes_of(run->prog, v));
    dnn_free(run->mem);
    dnn_free(run->kernel);
    dnn_free(run->work);
    dnn_free(run->work_bytes);
    run->backend->close(run->dev);
}

void ops_put(struct ops_run *run, int value, const double *from)
{
    int64_t n = ops_count(run->prog, value);
    size_t bytes = bytes_of(run->prog, value);

    if (run->prog->value[value].is.dtype == DNN_F64) {
        run->backend->put(run->dev, run->mem[value], from, bytes, NULL);
        return;
    }
    if (run->prog->value[value].is.dtype == DNN_I32) {
        int32_t *k = dnn_alloc(bytes);
        for (int64_t i = 0; i < n; i++)
            k[i] = (int32_t)floor(from[i]);
        run->backend->put(run->dev, run->mem[value], k, bytes, NULL);
        dnn_free(k);
        return;
    }
    float *f = dnn_alloc(bytes);
    for (int64_t i = 0; i < n; i++)
        f[i] = (float)from[i];
    run->backend->put(run->dev, run->mem[value], f, bytes, NULL);
    dnn_free(f);
}

void ops_get(struct ops_run *run, int value, double *to)
{
    int64_t n = ops_count(run->prog, value);
    size_t bytes = bytes_of(run->prog, value);
    void *raw = dnn_alloc(bytes);

    run->backend->sync(run->dev, NULL);
    run->backend->get(run->dev, raw, run->mem[value], bytes, NULL);
    for (int64_t i = 0; i < n; i++)
        switch (run->prog->value[value].is.dtype) {
        case DNN_F32:
            to[i] = ((float *)raw)[i];
            break;
        case DNN_F64:
            to[i] = ((double *)raw)[i];
            break;
        case DNN_U8:
            to[i] = ((uint8_t *)raw)[i];
            break;
        case DNN_U16:
            to[i] = ((uint16_t *)raw)[i];
            break;
        default:
            to[i] = ((int32_t *)raw)[i];
            break;
        }
    dnn_free(raw);
}

int ops_go(struct ops_run *run, int first, int end, struct dnn_err *err)
{
    for (int i = first; i < end; i++)
        DNN_TRY(run->backend->run(run->dev, run->kernel[i], &run->now, err));
    return run->backend->sync(run->dev, err);
}

struct ops_diff ops_compare(const double *got, const double *want, int64_t n)
{
    struct ops_diff d = {0};
    double largest = 0;

    for (int64_t i = 0; i < n; i++) {
        double off = fabs(got[i] - want[i]);
        if (off != off) off = INFINITY;
        largest = fmax(largest, fabs(want[i]));
        d.l2 += off * off;
        d.norm += want[i] * want[i];
        if (i > 0 && off <= d.worst) continue;
        d.worst = off;
        d.at = i;
        d.got = got[i];
        d.want = want[i];
    }
    /* An array of zeros has no scale. */
    if (largest > 0) d.worst /= largest;
    d.l2 = sqrt(d.l2);
    d.norm = sqrt(d.norm);
    return d;
}

void ops_fill(double *to, int64_t n, double low, double high, uint64_t seed)
{
    struct dnn_rng rng = dnn_rng_make(seed, 1);

    for (int64_t i = 0; i < n; i++) {
        double u = dnn_rng_uniform(&rng, (struct dnn_rng_at){.index = (uint64_t)i});
        to[i] = (float)(low + (high - low) * u);
    }
}
