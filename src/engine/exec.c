/* exec.c - execution of a plan on a device.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "engine/exec.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { STACK_OPERANDS = 8 }; /* up to so many operands are on the stack */

struct dnn_exec {
    const struct dnn_plan *plan;
    const struct dnn_backend *backend;
    struct dnn_dev *dev;
    struct dnn_exec *owner;   /* not owned: its weights are used; or NULL */
    struct dnn_exec *partner; /* not owned: its temps and workspace are used; or NULL */
    bool shared[DNN_BLOCKS];  /* by block: memory of owner or partner */
    bool work_shared;
    void *block[DNN_BLOCKS]; /* owned unless shared; NULL: empty block */
    void *work;              /* owned unless shared: workspace of the kernels */
    void *keep;              /* owned: data that kernels keep between calls */
    size_t *keep_offset;     /* owned, by op: offset into keep */
    size_t work_bytes, keep_bytes;
    struct dnn_kernel **kernel; /* owned, by op; NULL: none needed */
    int *exchange_after;        /* owned, by op: see dnn_exec_exchange_after() */
    uint64_t *folded;           /* owned, by op: version of the weights + 1, of FOLD */
    _Atomic uint64_t changes;   /* of the weights; only that of the owner is used */
};

/* Arrays of the operands of an op, for one call. */
struct operands {
    const struct dnn_tensor **in;
    void **in_mem;
    int64_t *in_pitch;
    const struct dnn_tensor *out[DNN_MAX_OUT];
    void *out_mem[DNN_MAX_OUT];
    int64_t out_pitch[DNN_MAX_OUT];
};

bool dnn_exec_pitch(void *arg, const struct dnn_prog *prog, int o, bool out, int i)
{
    const struct dnn_exec_pitch_arg *on = arg;
    const struct dnn_op *op = &prog->op[o];
    const struct dnn_tensor *stack[STACK_OPERANDS] = {NULL}, **in = stack;
    const struct dnn_tensor *outs[DNN_MAX_OUT] = {NULL};

    if (op->nin > STACK_OPERANDS) in = dnn_alloc((size_t)op->nin * sizeof *in);
    for (int k = 0; k < op->nin; k++)
        if (op->in[k] != DNN_NONE) in[k] = &prog->value[op->in[k]].is;
    for (int k = 0; k < op->nout; k++)
        if (op->out[k] != DNN_NONE) outs[k] = &prog->value[op->out[k]].is;
    bool supported = on->backend->pitch(
        on->dev, &(struct dnn_step){.op = op, .in = in, .out = outs}, out, i);
    if (in != stack) dnn_free(in);
    return supported;
}

static void *place(const struct dnn_exec *exec, int value)
{
    const struct dnn_spot *s = &exec->plan->spot[value];

    return exec->block[s->block] == NULL ? NULL
                                         : (char *)exec->block[s->block] + s->offset;
}

/* The counter of weight changes. */
static _Atomic uint64_t *changes(struct dnn_exec *exec)
{
    return exec->owner == NULL ? &exec->changes : &exec->owner->changes;
}

static struct dnn_step step_of(const struct dnn_exec *exec, int o, struct operands *x)
{
    const struct dnn_prog *prog = exec->plan->prog;
    const struct dnn_op *op = &prog->op[o];

    *x =
        (struct operands){.in = dnn_alloc((size_t)op->nin * sizeof *x->in),
                          .in_mem = dnn_alloc((size_t)op->nin * sizeof *x->in_mem),
                          .in_pitch = dnn_alloc((size_t)op->nin * sizeof *x->in_pitch)};
    for (int i = 0; i < op->nin; i++)
        if (op->in[i] != DNN_NONE) {
            x->in[i] = &prog->value[op->in[i]].is;
            x->in_mem[i] = place(exec, op->in[i]);
            x->in_pitch[i] = exec->plan->spot[op->in[i]].pitch;
        }
    for (int i = 0; i < op->nout; i++)
        if (op->out[i] != DNN_NONE) {
            x->out[i] = &prog->value[op->out[i]].is;
            x->out_mem[i] = place(exec, op->out[i]);
            x->out_pitch[i] = exec->plan->spot[op->out[i]].pitch;
        }
    return (struct dnn_step){
        .op = op,
        .in = x->in,
        .out = x->out,
        .in_mem = x->in_mem,
        .out_mem = x->out_mem,
        .in_pitch = x->in_pitch,
        .out_pitch = x->out_pitch,
        .work = exec->work,
        .keep = exec->keep == NULL ? NULL : (char *)exec->keep + exec->keep_offset[o]};
}

static void free_operands(struct operands *x)
{
    dnn_free(x->in);
    dnn_free(x->in_mem);
    dnn_free(x->in_pitch);
}

/* Prefix an error with the layer of an op. */
static int error_at(const struct dnn_op *op, struct dnn_err *err)
{
    if (op->layer == NULL) return dnn_prefix(err, "%s: ", dnn_op_info(op->kind)->name);
    if (op->line == 0) return dnn_prefix(err, "layer '%s': ", op->layer);
    return dnn_prefix(err, "line %d: layer '%s': ", op->line, op->layer);
}

/* Check all ops before anything is allocated. */
static int check_ops(struct dnn_exec *exec, struct dnn_err *err)
{
    for (int o = 0; o < exec->plan->prog->nops; o++) {
        exec->keep_offset[o] = exec->keep_bytes;
        if (dnn_plan_idle(exec->plan, o)) continue;
        struct operands x;
        struct dnn_step step = step_of(exec, o, &x);
        struct dnn_need need = {0};
        int rc = exec->backend->supports(exec->dev, &step, err);

        if (rc == 0) rc = exec->backend->need(exec->dev, &step, &need, err);
        free_operands(&x);
        if (rc < 0) return error_at(&exec->plan->prog->op[o], err);
        if (need.work > exec->work_bytes) exec->work_bytes = need.work;
        exec->keep_bytes +=
            (need.keep + DNN_PLAN_ALIGN - 1) / DNN_PLAN_ALIGN * DNN_PLAN_ALIGN;
    }
    return 0;
}

/* Find the exchanges that can start early: other ops run between the op that computes
 * the input and the exchange itself. */
static void find_early_exchanges(struct dnn_exec *exec)
{
    const struct dnn_prog *prog = exec->plan->prog;

    exec->exchange_after =
        dnn_alloc(((size_t)prog->nops + 1) * sizeof *exec->exchange_after);
    for (int o = 0; o < prog->nops; o++)
        exec->exchange_after[o] = DNN_NONE;
    for (int o = 0; o < prog->nops && exec->backend->begin != NULL; o++) {
        if (prog->op[o].kind != DNN_OP_EXCHANGE) continue;
        int from = prog->value[prog->op[o].in[0]].op;
        if (from < o - 1) exec->exchange_after[from] = o;
    }
}

static int allocate(struct dnn_exec *exec, size_t bytes, void **out,
                    struct dnn_err *err)
{
    return bytes == 0 ? 0 : exec->backend->alloc(exec->dev, bytes, out, err);
}

/* Write the constants, converted to their types. */
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
            float *f32 = dnn_alloc((size_t)n * sizeof *f32);

            for (int64_t i = 0; i < n; i++)
                f32[i] = (float)value->data[i];
            rc = dnn_exec_put(exec, v, f32, err);
            dnn_free(f32);
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
        if (dnn_plan_idle(exec->plan, o)) continue;
        struct operands x;
        struct dnn_step step = step_of(exec, o, &x);
        int rc = exec->backend->prepare(exec->dev, &step, &exec->kernel[o], err);

        free_operands(&x);
        if (rc < 0) return error_at(&prog->op[o], err);
    }
    return 0;
}

int dnn_exec_make(const struct dnn_plan *plan, const struct dnn_backend *backend,
                  struct dnn_dev *dev, struct dnn_exec **out, struct dnn_err *err)
{
    struct dnn_exec *exec = dnn_alloc(sizeof *exec);

    exec->plan = plan;
    exec->backend = backend;
    exec->dev = dev;
    exec->keep_offset =
        dnn_alloc(((size_t)plan->prog->nops + 1) * sizeof *exec->keep_offset);
    exec->folded = dnn_alloc(((size_t)plan->prog->nops + 1) * sizeof *exec->folded);
    find_early_exchanges(exec);
    int rc = check_ops(exec, err);
    if (rc < 0) {
        dnn_exec_close(exec);
        return rc;
    }
    *out = exec;
    return 0;
}

/* Weights and states must have the same offsets in both plans. */
static int check_offsets(const struct dnn_exec *exec, struct dnn_err *err)
{
    const struct dnn_plan *a = exec->owner->plan, *b = exec->plan;
    int u = 0;

    for (int v = 0; v < b->prog->nvalues; v++) {
        const struct dnn_value *value = &b->prog->value[v];

        if (value->role != DNN_WEIGHT && value->role != DNN_STATE) continue;
        for (; u < a->prog->nvalues; u++)
            if (a->prog->value[u].role == value->role) break;
        if (u == a->prog->nvalues || a->spot[u].block != b->spot[v].block ||
            a->spot[u].offset != b->spot[v].offset ||
            a->spot[u].bytes != b->spot[v].bytes)
            return dnn_fail(
                err, DNN_ECONFIG,
                "internal error: layer '%s', %s: has another offset in the plan "
                "whose weights are shared",
                value->layer == NULL ? "" : value->layer,
                value->is.name == NULL ? "a weight" : value->is.name);
        u++;
    }
    return 0;
}

int dnn_exec_share(struct dnn_exec *exec, struct dnn_exec *owner,
                   struct dnn_exec *partner, struct dnn_err *err)
{
    static const enum dnn_block common[] = {DNN_BLOCK_WEIGHTS, DNN_BLOCK_SLOTS,
                                            DNN_BLOCK_STATES};

    exec->shared[DNN_BLOCK_GRADS] = partner == owner;
    if (owner->owner != NULL) owner = owner->owner;
    exec->owner = owner;
    DNN_TRY(check_offsets(exec, err));
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        exec->shared[common[i]] = true;
    if (partner == NULL) return 0;
    if (partner->partner != NULL) partner = partner->partner;
    exec->partner = partner;
    exec->shared[DNN_BLOCK_TEMPS] =
        exec->plan->bytes[DNN_BLOCK_TEMPS] <= partner->plan->bytes[DNN_BLOCK_TEMPS];
    exec->work_shared = exec->work_bytes <= partner->work_bytes;
    return 0;
}

int dnn_exec_start(struct dnn_exec *exec, struct dnn_err *err)
{
    for (int b = 0; b < DNN_BLOCKS; b++)
        if (exec->shared[b])
            exec->block[b] =
                (b == DNN_BLOCK_TEMPS ? exec->partner : exec->owner)->block[b];
        else
            DNN_TRY(allocate(exec, exec->plan->bytes[b], &exec->block[b], err));
    if (exec->work_shared)
        exec->work = exec->partner->work;
    else
        DNN_TRY(allocate(exec, exec->work_bytes, &exec->work, err));
    DNN_TRY(allocate(exec, exec->keep_bytes, &exec->keep, err));
    DNN_TRY(write_constants(exec, err));
    return prepare(exec, err);
}

void dnn_exec_close(struct dnn_exec *exec)
{
    if (exec == NULL) return;
    for (int o = 0; exec->kernel != NULL && o < exec->plan->prog->nops; o++)
        exec->backend->discard(exec->dev, exec->kernel[o]);
    dnn_free(exec->kernel);
    for (int b = 0; b < DNN_BLOCKS; b++)
        if (!exec->shared[b])
            exec->backend->release(exec->dev, exec->block[b], exec->plan->bytes[b]);
    if (!exec->work_shared)
        exec->backend->release(exec->dev, exec->work, exec->work_bytes);
    exec->backend->release(exec->dev, exec->keep, exec->keep_bytes);
    dnn_free(exec->keep_offset);
    dnn_free(exec->exchange_after);
    dnn_free(exec->folded);
    dnn_free(exec);
}

struct dnn_exec_bytes dnn_exec_bytes(const struct dnn_exec *exec)
{
    struct dnn_exec_bytes b = {.work = exec->work_shared ? 0 : exec->work_bytes,
                               .keep = exec->keep_bytes};

    for (int i = 0; i < DNN_BLOCKS; i++) {
        b.shared[i] = exec->shared[i];
        if (!exec->shared[i]) b.blocks += exec->plan->bytes[i];
    }
    b.all = b.blocks + b.work + b.keep;
    return b;
}

const char *dnn_exec_describe(const struct dnn_exec *exec, int o)
{
    return exec->kernel[o] == NULL
               ? NULL
               : exec->backend->describe(exec->dev, exec->kernel[o]);
}

/* Copy a value from host memory (from) or to it (to); the other one is NULL.  A value
 * with a pitch is copied row by row. */
static int copy(struct dnn_exec *exec, int v, const char *from, char *to,
                struct dnn_err *err)
{
    const struct dnn_spot *s = &exec->plan->spot[v];
    const struct dnn_tensor *is = &exec->plan->prog->value[v].is;
    size_t size = dnn_dtype_size(is->dtype), row = s->bytes, step = 0;
    char *mem = place(exec, v);

    if (s->pitch != 0) {
        row = (size_t)is->shape.dim[is->shape.ndim - 1] * size;
        step = (size_t)s->pitch * size;
    }
    for (size_t at = 0; at < s->bytes; at += row, mem += step) {
        if (from != NULL)
            DNN_TRY(exec->backend->put(exec->dev, mem, from + at, row, err));
        else
            DNN_TRY(exec->backend->get(exec->dev, to + at, mem, row, err));
    }
    return 0;
}

int dnn_exec_put(struct dnn_exec *exec, int value, const void *from,
                 struct dnn_err *err)
{
    enum dnn_role role = exec->plan->prog->value[value].role;

    if (role == DNN_WEIGHT || role == DNN_STATE) *changes(exec) += 1;
    return copy(exec, value, from, NULL, err);
}

int dnn_exec_get(struct dnn_exec *exec, int value, void *to, struct dnn_err *err)
{
    return copy(exec, value, NULL, to, err);
}

/* Whether the host can access a value as a dense array. */
static bool accessible(const struct dnn_exec *exec, int v)
{
    return exec->backend->host_memory && exec->plan->spot[v].pitch == 0;
}

/* Convert f32 elements, which are in the second half of the memory, to f64. */
static void widen(double *mem, int64_t count)
{
    const float *from = (const float *)(const void *)mem + count;

    for (int64_t k = 0; k < count; k++) {
        float x;

        /* The last elements overlap their result. */
        memcpy(&x, &from[k], sizeof x);
        mem[k] = (double)x;
    }
}

int dnn_exec_fill(struct dnn_exec *exec, int value, dnn_exec_filler *fill, void *arg,
                  struct dnn_err *err)
{
    size_t bytes = exec->plan->spot[value].bytes;
    bool f64 = exec->plan->prog->value[value].is.dtype == DNN_F64;
    char *mem = accessible(exec, value) ? place(exec, value) : malloc(bytes + 64);

    if (mem == NULL)
        return dnn_fail(err, DNN_ENOMEM, "an input of %zu MB does not fit into memory",
                        bytes >> 20);
    int rc = fill(arg, f64 ? mem + bytes / 2 : mem, err);
    if (rc == 0 && f64) widen((double *)(void *)mem, (int64_t)(bytes / sizeof(double)));
    if (accessible(exec, value)) return rc;
    if (rc == 0) rc = dnn_exec_put(exec, value, mem, err);
    free(mem);
    return rc;
}

const float *dnn_exec_view(struct dnn_exec *exec, int value, float **buffer,
                           struct dnn_err *err)
{
    size_t bytes = exec->plan->spot[value].bytes;
    bool f64 = exec->plan->prog->value[value].is.dtype == DNN_F64;

    if (accessible(exec, value) && !f64)
        return (const float *)(const void *)place(exec, value);
    if (*buffer == NULL) *buffer = malloc(bytes + 64);
    if (*buffer == NULL) {
        dnn_fail(err, DNN_ENOMEM, "an output of %zu MB does not fit into memory",
                 bytes >> 20);
        return NULL;
    }
    if (dnn_exec_get(exec, value, *buffer, err) < 0) return NULL;
    /* Forwards, each element is read before it is overwritten. */
    for (size_t k = 0; f64 && k < bytes / sizeof(double); k++) {
        double x;

        memcpy(&x, (const char *)*buffer + k * sizeof x, sizeof x);
        (*buffer)[k] = (float)x;
    }
    return *buffer;
}

void *dnn_exec_block(const struct dnn_exec *exec, enum dnn_block block)
{
    return exec->block[block];
}

void dnn_exec_changed(struct dnn_exec *exec)
{
    *changes(exec) += 1;
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

/* Whether FOLD need not run: it has run with these weights, and the kernels that read
 * the folded weights have packed them.  Only the bias is in memory that is kept. */
static bool is_folded(const struct dnn_exec *exec, int o, uint64_t weights)
{
    const struct dnn_prog *prog = exec->plan->prog;
    int v = prog->op[o].out[0];

    if (exec->folded[o] != weights + 1 || exec->backend->packed == NULL) return false;
    for (int r = o + 1; r < prog->nops && r <= exec->plan->spot[v].last; r++)
        for (int i = 0; i < prog->op[r].nin; i++)
            if (prog->op[r].in[i] == v &&
                (i != 1 || !exec->backend->packed(exec->kernel[r], weights)))
                return false;
    return true;
}

/* Run one op.  Counts weight changes, so that kernels can update cached weights. */
static int run_op(struct dnn_exec *exec, int o, struct dnn_now *now,
                  struct dnn_err *err)
{
    enum dnn_op_kind kind = exec->plan->prog->op[o].kind;

    if (exec->kernel[o] == NULL) return 0;
    now->weights = *changes(exec);
    if (kind == DNN_OP_FOLD) {
        if (is_folded(exec, o, now->weights)) return 0;
        exec->folded[o] = now->weights + 1;
    }
    if (exec->backend->run(exec->dev, exec->kernel[o], now, err) < 0)
        return error_at(&exec->plan->prog->op[o], err);
    if (kind == DNN_OP_UPDATE || kind == DNN_OP_BN_UPDATE) *changes(exec) += 1;
    return 0;
}

size_t dnn_exec_defer_bytes(const struct dnn_exec *exec, int o)
{
    if (exec->backend->deferred_bytes == NULL || exec->kernel[o] == NULL) return 0;
    return exec->backend->deferred_bytes(exec->kernel[o]);
}

void dnn_exec_defer(struct dnn_exec *exec, int o, void *to)
{
    exec->backend->defer(exec->kernel[o], to);
}

void dnn_exec_deferred_rows(const struct dnn_exec *exec, int o, const void *held,
                            int64_t first, int64_t n, float *to)
{
    exec->backend->deferred_rows(exec->kernel[o], held, first, n, to);
}

bool dnn_exec_single_threaded(const struct dnn_exec *exec)
{
    for (int o = 0;
         exec->backend->single_threaded != NULL && o < exec->plan->prog->nops; o++)
        if (exec->kernel[o] != NULL && !exec->backend->single_threaded(exec->kernel[o]))
            return false;
    return true;
}

int dnn_exec_exchange_after(const struct dnn_exec *exec, int o)
{
    return exec->exchange_after[o];
}

/* Run one op, and start the exchange of its result, if there is one. */
static int run_and_start_exchange(struct dnn_exec *exec, int o, struct dnn_now *now,
                                  struct dnn_err *err)
{
    int next = exec->exchange_after[o];

    DNN_TRY(run_op(exec, o, now, err));
    return next == DNN_NONE ? 0
                            : exec->backend->begin(exec->dev, exec->kernel[next], err);
}

int dnn_exec_run_op(struct dnn_exec *exec, int o, const struct dnn_now *now,
                    struct dnn_err *err)
{
    struct dnn_now local = *now;

    DNN_TRY(run_op(exec, o, &local, err));
    return exec->backend->sync(exec->dev, err);
}

int dnn_exec_run(struct dnn_exec *exec, int first, int last, const struct dnn_now *now,
                 struct dnn_err *err)
{
    struct dnn_now local = *now;

    for (int o = first; o < last; o++)
        DNN_TRY(run_and_start_exchange(exec, o, &local, err));
    return exec->backend->sync(exec->dev, err);
}

int dnn_exec_profile(struct dnn_exec *exec, int first, int last,
                     const struct dnn_now *now, double *seconds, struct dnn_err *err)
{
    struct dnn_now local = *now;

    for (int o = first; o < last; o++) {
        double start = dnn_clock_now();

        DNN_TRY(run_and_start_exchange(exec, o, &local, err));
        DNN_TRY(exec->backend->sync(exec->dev, err));
        seconds[o] += dnn_clock_now() - start;
    }
    return 0;
}
