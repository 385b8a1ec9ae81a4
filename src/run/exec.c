/* exec.c - a plan on a device.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/exec.h"

#include "base/mem.h"

#include <string.h>

struct dnn_exec {
    const struct dnn_plan *plan;
    const struct dnn_backend *backend;
    struct dnn_dev *dev;     /* owned */
    void *block[DNN_BLOCKS]; /* owned; NULL where the block is empty */
    void *work;              /* owned; the largest any step needs    */
    size_t work_bytes;
    struct dnn_kernel **kernel; /* owned, one per op; NULL: nothing to do */
};

/* A step's operands; the arrays are for the time of one call. */
struct operands {
    const struct dnn_tensor **in;
    void **in_mem;
    const struct dnn_tensor *out[DNN_MAX_OUT];
    void *out_mem[DNN_MAX_OUT];
};

static void *place(const struct dnn_exec *exec, int value)
{
    const struct dnn_spot *s = &exec->plan->spot[value];

    return exec->block[s->block] == NULL ? NULL
                                         : (char *)exec->block[s->block] + s->offset;
}

static struct dnn_step step_of(const struct dnn_exec *exec, int o, struct operands *x)
{
    const struct dnn_prog *prog = exec->plan->prog;
    const struct dnn_op *op = &prog->op[o];

    *x = (struct operands){.in = dnn_alloc((size_t)op->nin * sizeof *x->in),
                           .in_mem = dnn_alloc((size_t)op->nin * sizeof *x->in_mem)};
    for (int i = 0; i < op->nin; i++)
        if (op->in[i] != DNN_NONE) {
            x->in[i] = &prog->value[op->in[i]].is;
            x->in_mem[i] = place(exec, op->in[i]);
        }
    for (int i = 0; i < op->nout; i++)
        if (op->out[i] != DNN_NONE) {
            x->out[i] = &prog->value[op->out[i]].is;
            x->out_mem[i] = place(exec, op->out[i]);
        }
    return (struct dnn_step){.op = op,
                             .in = x->in,
                             .out = x->out,
                             .in_mem = x->in_mem,
                             .out_mem = x->out_mem,
                             .work = exec->work};
}

static void forget(struct operands *x)
{
    dnn_free(x->in);
    dnn_free(x->in_mem);
}

/* Say which layer a step belongs to. */
static int blame(const struct dnn_op *op, struct dnn_err *err)
{
    if (op->layer == NULL) return dnn_prefix(err, "%s: ", dnn_op_info(op->kind)->name);
    if (op->line == 0) return dnn_prefix(err, "layer '%s': ", op->layer);
    return dnn_prefix(err, "line %d: layer '%s': ", op->line, op->layer);
}

/* A view whose output lies where its input does needs no step. */
static bool idle(const struct dnn_exec *exec, int o)
{
    const struct dnn_op *op = &exec->plan->prog->op[o];

    return dnn_op_info(op->kind)->view &&
           place(exec, op->in[0]) == place(exec, op->out[0]);
}

/* Every step must be possible before anything is allocated. */
static int ask(struct dnn_exec *exec, struct dnn_err *err)
{
    for (int o = 0; o < exec->plan->prog->nops; o++) {
        struct operands x;
        struct dnn_step step = step_of(exec, o, &x);
        size_t bytes = 0;
        int rc = exec->backend->supports(exec->dev, &step, err);

        if (rc == 0) rc = exec->backend->work_size(exec->dev, &step, &bytes, err);
        forget(&x);
        if (rc < 0) return blame(&exec->plan->prog->op[o], err);
        if (bytes > exec->work_bytes) exec->work_bytes = bytes;
    }
    return 0;
}

static int give(struct dnn_exec *exec, size_t bytes, void **out, struct dnn_err *err)
{
    if (bytes == 0) return 0;
    int rc = exec->backend->alloc(exec->dev, bytes, out, err);
    /* Padding between values takes part in sums over whole blocks. */
    enum { PIECE = 1 << 20 };
    char *zero = dnn_alloc(PIECE);
    for (size_t at = 0; rc == 0 && at < bytes; at += PIECE)
        rc = exec->backend->put(exec->dev, (char *)*out + at, zero,
                                bytes - at < PIECE ? bytes - at : PIECE, err);
    dnn_free(zero);
    return rc;
}

/* Constants are written once, in their own type. */
static int write_constants(struct dnn_exec *exec, struct dnn_err *err)
{
    const struct dnn_prog *prog = exec->plan->prog;

    for (int v = 0; v < prog->nvalues; v++) {
        const struct dnn_value *value = &prog->value[v];

        if (value->role != DNN_CONSTANT) continue;
        int64_t n;
        DNN_TRY(dnn_shape_count(&value->is.shape, &n, err));
        int rc;
        if (value->is.dtype == DNN_F64) {
            rc = dnn_exec_put(exec, v, value->data, err);
        } else {
            float *narrow = dnn_alloc((size_t)n * sizeof *narrow);

            for (int64_t i = 0; i < n; i++)
                narrow[i] = (float)value->data[i];
            rc = dnn_exec_put(exec, v, narrow, err);
            dnn_free(narrow);
        }
        DNN_TRY(rc);
    }
    return 0;
}

static int prepare(struct dnn_exec *exec, struct dnn_err *err)
{
    const struct dnn_prog *prog = exec->plan->prog;

    exec->kernel = dnn_alloc(((size_t)prog->nops + 1) * sizeof(*exec->kernel));
    for (int o = 0; o < prog->nops; o++) {
        if (idle(exec, o)) continue;
        struct operands x;
        struct dnn_step step = step_of(exec, o, &x);
        int rc = exec->backend->prepare(exec->dev, &step, &exec->kernel[o], err);

        forget(&x);
        if (rc < 0) return blame(&prog->op[o], err);
    }
    return 0;
}

int dnn_exec_open(const struct dnn_plan *plan, const struct dnn_backend *backend,
                  int device, const struct dnn_exchange *exchange,
                  struct dnn_exec **out, struct dnn_err *err)
{
    struct dnn_exec *exec = dnn_alloc(sizeof *exec);

    exec->plan = plan;
    exec->backend = backend;
    int rc = backend->open(device, exchange, &exec->dev, err);
    if (rc == 0) rc = ask(exec, err);
    for (int b = 0; b < DNN_BLOCKS && rc == 0; b++)
        rc = give(exec, plan->bytes[b], &exec->block[b], err);
    if (rc == 0) rc = give(exec, exec->work_bytes, &exec->work, err);
    if (rc == 0) rc = write_constants(exec, err);
    if (rc == 0) rc = prepare(exec, err);
    if (rc < 0) {
        dnn_exec_close(exec);
        return rc;
    }
    *out = exec;
    return 0;
}

void dnn_exec_close(struct dnn_exec *exec)
{
    if (exec == NULL) return;
    for (int o = 0; exec->kernel != NULL && o < exec->plan->prog->nops; o++)
        exec->backend->discard(exec->dev, exec->kernel[o]);
    dnn_free(exec->kernel);
    if (exec->dev != NULL) {
        for (int b = 0; b < DNN_BLOCKS; b++)
            exec->backend->release(exec->dev, exec->block[b]);
        exec->backend->release(exec->dev, exec->work);
    }
    exec->backend->close(exec->dev);
    dnn_free(exec);
}

size_t dnn_exec_bytes(const struct dnn_exec *exec)
{
    return dnn_plan_bytes(exec->plan) + exec->work_bytes;
}

int dnn_exec_put(struct dnn_exec *exec, int value, const void *from,
                 struct dnn_err *err)
{
    return exec->backend->put(exec->dev, place(exec, value), from,
                              exec->plan->spot[value].bytes, err);
}

int dnn_exec_get(struct dnn_exec *exec, int value, void *to, struct dnn_err *err)
{
    return exec->backend->get(exec->dev, to, place(exec, value),
                              exec->plan->spot[value].bytes, err);
}

int dnn_exec_init(struct dnn_exec *exec, uint64_t seed, struct dnn_err *err)
{
    const struct dnn_prog *prog = exec->plan->prog;
    uint64_t stream = 0;

    for (int v = 0; v < prog->nvalues; v++) {
        const struct dnn_value *value = &prog->value[v];

        if (value->role != DNN_WEIGHT && value->role != DNN_STATE) continue;
        struct dnn_rng rng = dnn_rng_make(seed ^ value->init.seed, ++stream);
        void *host = dnn_alloc(exec->plan->spot[v].bytes);
        int rc = dnn_init_fill(&value->init, &value->is.shape, &rng, value->is.dtype,
                               host, err);
        if (rc < 0)
            dnn_prefix(err,
                       "layer '%s', %s: ", value->layer == NULL ? "" : value->layer,
                       value->is.name == NULL ? "a weight" : value->is.name);
        if (rc == 0) rc = dnn_exec_put(exec, v, host, err);
        dnn_free(host);
        DNN_TRY(rc);
    }
    return 0;
}

int dnn_exec_run(struct dnn_exec *exec, int first, int last, const struct dnn_now *now,
                 struct dnn_err *err)
{
    for (int o = first; o < last; o++) {
        if (exec->kernel[o] == NULL) continue;
        if (exec->backend->run(exec->dev, exec->kernel[o], now, err) < 0)
            return blame(&exec->plan->prog->op[o], err);
    }
    return exec->backend->sync(exec->dev, err);
}
