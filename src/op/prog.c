/* prog.c - a program: values, and ops in execution order.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "op/prog.h"

#include <assert.h>
#include <string.h>

enum { FEW_OPERANDS = 8 }; /* operands of most ops; arrays of more are allocated */

struct dnn_prog *dnn_prog_make(enum dnn_dtype dtype, bool training)
{
    struct dnn_arena *arena = dnn_arena_make();
    struct dnn_prog *prog = dnn_arena_alloc(arena, sizeof *prog);

    prog->arena = arena;
    prog->dtype = dtype;
    prog->training = training;
    return prog;
}

void dnn_prog_free(struct dnn_prog *prog)
{
    if (prog != NULL) dnn_arena_free(prog->arena);
}

void dnn_prog_set_layer(struct dnn_prog *prog, const char *layer, int line, bool frozen)
{
    prog->layer = layer == NULL ? NULL : dnn_arena_strdup(prog->arena, layer);
    prog->line = line;
    prog->frozen = frozen;
}

/* Double the capacity of an array in the arena.  The old array is freed with the arena:
 * all old ones together are no larger than the last. */
static void *grow(struct dnn_prog *prog, const void *old, int n, int *cap, size_t size)
{
    int new_cap = *cap == 0 ? 64 : 2 * *cap;
    void *mem = dnn_arena_alloc(prog->arena, (size_t)new_cap * size);

    if (n > 0) memcpy(mem, old, (size_t)n * size);
    *cap = new_cap;
    return mem;
}

static int add_value(struct dnn_prog *prog, enum dnn_role role,
                     const struct dnn_tensor *is)
{
    if (prog->nvalues == prog->value_cap)
        prog->value = grow(prog, prog->value, prog->nvalues, &prog->value_cap,
                           sizeof *prog->value);
    struct dnn_value *v = &prog->value[prog->nvalues];
    *v = (struct dnn_value){.is = *is,
                            .role = role,
                            .op = DNN_NONE,
                            .grad = DNN_NONE,
                            .layer = prog->layer};
    if (is->name != NULL) v->is.name = dnn_arena_strdup(prog->arena, is->name);
    assert(dnn_shape_known(&is->shape));
    return prog->nvalues++;
}

int dnn_prog_input(struct dnn_prog *prog, const char *name, enum dnn_dtype dtype,
                   const struct dnn_shape *shape)
{
    return add_value(prog, DNN_INPUT, &(struct dnn_tensor){name, dtype, *shape});
}

int dnn_prog_target(struct dnn_prog *prog, const char *name, enum dnn_dtype dtype,
                    const struct dnn_shape *shape)
{
    return add_value(prog, DNN_TARGET, &(struct dnn_tensor){name, dtype, *shape});
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* The value that the current layer has made with this name, or DNN_NONE. */
static int find_made(const struct dnn_prog *prog, enum dnn_role role, const char *name)
{
    if (prog->layer == NULL || name == NULL) return DNN_NONE;
    for (int i = 0; i < prog->nvalues; i++) {
        const struct dnn_value *v = &prog->value[i];
        if (v->role == role && same_text(v->is.name, name) &&
            same_text(v->layer, prog->layer))
            return i;
    }
    return DNN_NONE;
}

static int add_kept(struct dnn_prog *prog, enum dnn_role role, const char *name,
                    const struct dnn_shape *shape, const struct dnn_init *init)
{
    int value = find_made(prog, role, name);

    if (value != DNN_NONE) {
        assert(dnn_shape_equal(&prog->value[value].is.shape, shape));
        return value;
    }
    value = add_value(prog, role, &(struct dnn_tensor){name, prog->dtype, *shape});
    prog->value[value].init = *init;
    prog->value[value].trainable = role == DNN_WEIGHT && !prog->frozen;
    return value;
}

int dnn_prog_weight(struct dnn_prog *prog, const char *name,
                    const struct dnn_shape *shape, const struct dnn_init *init)
{
    return add_kept(prog, DNN_WEIGHT, name, shape, init);
}

int dnn_prog_state(struct dnn_prog *prog, const char *name,
                   const struct dnn_shape *shape, const struct dnn_init *init)
{
    return add_kept(prog, DNN_STATE, name, shape, init);
}

int dnn_prog_slot(struct dnn_prog *prog, const char *name, int weight)
{
    struct dnn_tensor is = prog->value[weight].is;
    const char *layer = prog->value[weight].layer;

    is.name = name;
    int value = add_value(prog, DNN_SLOT, &is);
    prog->value[value].layer = layer;
    return value;
}

int dnn_prog_constant(struct dnn_prog *prog, const char *name,
                      const struct dnn_shape *shape, const double *data)
{
    int64_t count = 0;
    int value =
        add_value(prog, DNN_CONSTANT, &(struct dnn_tensor){name, prog->dtype, *shape});

    if (dnn_shape_count(shape, &count, NULL) < 0) count = 0;
    double *copy = dnn_arena_alloc(prog->arena, (size_t)count * sizeof *copy);
    if (count > 0) memcpy(copy, data, (size_t)count * sizeof *copy);
    prog->value[value].data = copy;
    return value;
}

int dnn_prog_append(struct dnn_prog *prog, const struct dnn_op *op,
                    const struct dnn_tensor *const *out)
{
    if (prog->nops == prog->op_cap)
        prog->op = grow(prog, prog->op, prog->nops, &prog->op_cap, sizeof *prog->op);
    struct dnn_op *new = &prog->op[prog->nops];
    int *in = dnn_arena_alloc(prog->arena, (size_t)op->nin * sizeof *in);
    int first = DNN_NONE;

    assert(op->nout <= DNN_MAX_OUT);
    *new = *op;
    if (op->nin > 0) memcpy(in, op->in, (size_t)op->nin * sizeof *in);
    new->in = in;
    if (op->post != NULL) {
        struct dnn_op_unary *post = dnn_arena_alloc(prog->arena, sizeof *post);
        *post = *op->post;
        new->post = post;
    }
    for (int i = 0; i < DNN_MAX_OUT; i++)
        new->out[i] = DNN_NONE;
    for (int i = 0; i < op->nout; i++) {
        if (out[i] == NULL) continue;
        new->out[i] = add_value(prog, DNN_TEMP, out[i]);
        prog->value[new->out[i]].op = prog->nops;
        prog->value[new->out[i]].layer = op->layer;
        if (first == DNN_NONE) first = new->out[i];
    }
    /* Ops after a backward op are not forward ops. */
    if (op->pass == DNN_FWD && prog->nforward == prog->nops) prog->nforward++;
    prog->nops++;
    return first;
}

int dnn_prog_op(struct dnn_prog *prog, enum dnn_op_kind kind,
                const union dnn_attr *attr, int nin, const int *in)
{
    struct dnn_op op = {.kind = kind,
                        .pass = DNN_FWD,
                        .nin = nin,
                        .in = in,
                        .layer = prog->layer,
                        .line = prog->line};
    const struct dnn_tensor *few[FEW_OPERANDS], **is = few;
    struct dnn_tensor out[DNN_MAX_OUT];
    const struct dnn_tensor *outs[DNN_MAX_OUT] = {&out[0], &out[1], &out[2]};

    if (attr != NULL) op.attr = *attr;
    if (kind == DNN_OP_POOL)
        op.attr.pool.index = prog->training && op.attr.pool.fn == DNN_POOL_MAX;
    if (kind == DNN_OP_GROUPNORM) op.attr.groupnorm.save = prog->training;
    if (kind == DNN_OP_COMBINE) op.attr.combine.parts = nin;
    if (kind == DNN_OP_NOISE && op.attr.noise.stream == 0)
        op.attr.noise.stream = ++prog->nstreams;
    if (nin > FEW_OPERANDS) is = dnn_arena_alloc(prog->arena, (size_t)nin * sizeof *is);
    for (int i = 0; i < nin; i++) {
        assert(in[i] >= DNN_NONE && in[i] < prog->nvalues);
        is[i] = in[i] == DNN_NONE ? NULL : &prog->value[in[i]].is;
    }
    op.nout = dnn_op_info(kind)->shape(&op.attr, nin, is, out);
    for (int i = 0; i < op.nout; i++)
        out[i].name = NULL;
    return dnn_prog_append(prog, &op, outs);
}

int dnn_prog_op1(struct dnn_prog *prog, enum dnn_op_kind kind,
                 const union dnn_attr *attr, int x)
{
    return dnn_prog_op(prog, kind, attr, 1, &x);
}

int dnn_prog_op2(struct dnn_prog *prog, enum dnn_op_kind kind,
                 const union dnn_attr *attr, int x, int w)
{
    return dnn_prog_op(prog, kind, attr, 2, (int[]){x, w});
}

int dnn_prog_batchnorm(struct dnn_prog *prog, const struct dnn_op_batchnorm *attr,
                       bool use_batch, int x, int gamma, int beta, int mean, int var)
{
    const union dnn_attr a = {.batchnorm = *attr};

    if (!use_batch)
        return dnn_prog_op(prog, DNN_OP_BN_INFER, &a, 5,
                           (int[]){x, mean, var, gamma, beta});
    int sums = dnn_prog_op1(prog, DNN_OP_BN_STATS, &a, x);
    sums = dnn_prog_op1(prog, DNN_OP_EXCHANGE, NULL, sums);
    dnn_prog_op(prog, DNN_OP_BN_UPDATE, &a, 3, (int[]){sums, mean, var});
    return dnn_prog_op(prog, DNN_OP_BN_APPLY, &a, 4, (int[]){x, sums, gamma, beta});
}

int64_t dnn_prog_dim(const struct dnn_prog *prog, int value, int axis)
{
    const struct dnn_shape *shape = dnn_prog_shape(prog, value);

    if (axis < 0) axis += shape->ndim;
    assert(axis >= 0 && axis < shape->ndim);
    return shape->dim[axis];
}

const struct dnn_shape *dnn_prog_shape(const struct dnn_prog *prog, int value)
{
    assert(value >= 0 && value < prog->nvalues);
    return &prog->value[value].is.shape;
}
