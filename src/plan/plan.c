/* plan.c - blocks and lifetimes: from a program to offsets.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "plan/plan_impl.h"

#include "base/mem.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

static enum dnn_block block_of(enum dnn_role role)
{
    switch (role) {
    case DNN_INPUT:
    case DNN_TARGET:
        return DNN_BLOCK_DATA;
    case DNN_WEIGHT:
        return DNN_BLOCK_WEIGHTS;
    case DNN_STATE:
        return DNN_BLOCK_STATES;
    case DNN_SLOT:
        return DNN_BLOCK_SLOTS;
    case DNN_CONSTANT:
        return DNN_BLOCK_CONSTANTS;
    case DNN_TEMP:
        break;
    }
    return DNN_BLOCK_TEMPS;
}

/* Find bytes, block and lifetime of each value, without sharing. */
static int survey(struct dnn_plan *plan, int nkeep, const int *keep,
                  struct dnn_err *err)
{
    const struct dnn_prog *prog = plan->prog;

    for (int v = 0; v < prog->nvalues; v++) {
        const struct dnn_value *value = &prog->value[v];
        struct dnn_spot *s = &plan->spot[v];

        if (dnn_tensor_bytes(&value->is, &s->bytes, err) < 0 ||
            s->bytes > SIZE_MAX / 4 / (size_t)prog->nvalues)
            return dnn_fail(err, DNN_ENOMEM,
                            "layer %s: a value exceeds the address space; reduce the "
                            "input or the batch size",
                            value->layer == NULL ? "(none)" : value->layer);
        s->block = block_of(value->role);
        /* The bias stays for the next run, in which FOLD may not run. */
        if (value->op != DNN_NONE && prog->op[value->op].kind == DNN_OP_FOLD &&
            prog->op[value->op].out[1] == v)
            s->block = DNN_BLOCK_CONSTANTS;
        s->base = v;
        s->first = s->last = value->op;
    }
    for (int o = 0; o < prog->nops; o++)
        for (int i = 0; i < prog->op[o].nin; i++)
            if (prog->op[o].in[i] != DNN_NONE) plan->spot[prog->op[o].in[i]].last = o;
    for (int i = 0; i < nkeep; i++)
        plan->spot[keep[i]].last = prog->nops;
    return 0;
}

static void append(struct dnn_plan *plan, int v)
{
    struct dnn_spot *s = &plan->spot[v];

    s->offset = plan->bytes[s->block];
    plan->bytes[s->block] += dnn_plan_round(s->bytes);
}

/* Lay out the values that live during the complete program, one after the other;
 * gradients have the offsets of their weights. */
static void lay_out(struct dnn_plan *plan)
{
    const struct dnn_prog *prog = plan->prog;

    for (int v = 0; v < prog->nvalues; v++) {
        int grad = prog->value[v].grad;

        if (prog->value[v].role != DNN_WEIGHT || grad == DNN_NONE) continue;
        append(plan, v);
        assert(plan->spot[grad].block == DNN_BLOCK_TEMPS);
        plan->spot[grad].block = DNN_BLOCK_GRADS;
        plan->spot[grad].offset = plan->spot[v].offset;
        plan->bytes[DNN_BLOCK_GRADS] = plan->bytes[DNN_BLOCK_WEIGHTS];
    }
    for (int v = 0; v < prog->nvalues; v++) {
        bool placed =
            prog->value[v].role == DNN_WEIGHT && prog->value[v].grad != DNN_NONE;

        if (plan->spot[v].block != DNN_BLOCK_TEMPS &&
            plan->spot[v].block != DNN_BLOCK_GRADS && !placed)
            append(plan, v);
    }
}

/* Find the peak of the bytes of temps that are alive at the same time. */
static void find_peak(struct dnn_plan *plan, const struct dnn_plan_life *life)
{
    int nops = plan->prog->nops;
    /* Bytes that become alive at each op, less those that ended before it; the first
     * entry is for values that exist from the start. */
    int64_t *change = dnn_alloc(((size_t)nops + 3) * sizeof *change);
    int64_t live = 0;

    for (int v = 0; v < plan->prog->nvalues; v++) {
        if (plan->spot[v].block != DNN_BLOCK_TEMPS || plan->spot[v].base != v) continue;
        change[life[v].first + 1] += (int64_t)dnn_plan_round(plan->spot[v].bytes);
        change[life[v].last + 2] -= (int64_t)dnn_plan_round(plan->spot[v].bytes);
    }
    for (int o = -1; o < nops; o++) {
        live += change[o + 1];
        if (live <= (int64_t)plan->peak) continue;
        plan->peak = (size_t)live;
        plan->peak_op = o;
    }
    dnn_free(change);
}

/* Pack the bases of the temps, and set the offsets of the values that share their
 * memory. */
static void pack(struct dnn_plan *plan, const struct dnn_plan_life *life)
{
    int n = plan->prog->nvalues, nspans = 0;
    struct dnn_span *span = dnn_alloc(((size_t)n + 1) * sizeof *span);

    for (int v = 0; v < n; v++)
        if (plan->spot[v].block == DNN_BLOCK_TEMPS && plan->spot[v].base == v)
            span[nspans++] =
                (struct dnn_span){plan->spot[v].bytes, life[v].first, life[v].last, 0};
    plan->bytes[DNN_BLOCK_TEMPS] = dnn_plan_pack(span, nspans);
    nspans = 0;
    for (int v = 0; v < n; v++)
        if (plan->spot[v].block == DNN_BLOCK_TEMPS && plan->spot[v].base == v)
            plan->spot[v].offset = span[nspans++].offset;
    for (int v = 0; v < n; v++)
        if (plan->spot[v].block == DNN_BLOCK_TEMPS && plan->spot[v].base != v)
            plan->spot[v].offset += plan->spot[plan->spot[v].base].offset;
    dnn_free(span);
}

int dnn_plan_survey(const struct dnn_prog *prog, const struct dnn_plan_opts *opts,
                    struct dnn_plan **out, struct dnn_plan_life **life,
                    struct dnn_err *err)
{
    struct dnn_arena *arena = dnn_arena_make();
    struct dnn_plan *plan = dnn_arena_alloc(arena, sizeof *plan);

    plan->arena = arena;
    plan->prog = prog;
    plan->spot = dnn_arena_alloc(arena, (size_t)prog->nvalues * sizeof *plan->spot);
    int rc = survey(plan, opts->nkeep, opts->keep, err);
    if (rc < 0) {
        dnn_plan_free(plan);
        return rc;
    }
    *life = dnn_arena_alloc(arena, ((size_t)prog->nvalues + 1) * sizeof **life);
    lay_out(plan);
    dnn_plan_alias(plan, opts, *life);
    find_peak(plan, *life);
    *out = plan;
    return 0;
}

int dnn_plan_make(const struct dnn_prog *prog, const struct dnn_plan_opts *opts,
                  struct dnn_plan **out, struct dnn_err *err)
{
    struct dnn_plan_life *life;

    DNN_TRY(dnn_plan_survey(prog, opts, out, &life, err));
    pack(*out, life);
    return 0;
}

/* Whether the value `part` is placed in `whole`, starting at column start. */
static bool is_in(const struct dnn_plan *plan, int part, int whole, int64_t start)
{
    const struct dnn_spot *p = &plan->spot[part], *w = &plan->spot[whole];
    size_t size = dnn_dtype_size(plan->prog->value[whole].is.dtype);

    return p->base == w->base && p->offset == w->offset + (size_t)start * size &&
           dnn_plan_pitch(plan, part) == dnn_plan_pitch(plan, whole);
}

bool dnn_plan_idle(const struct dnn_plan *plan, int o)
{
    const struct dnn_op *op = &plan->prog->op[o];
    int64_t start = 0;

    if (dnn_op_info(op->kind)->view)
        return plan->spot[op->out[0]].base == plan->spot[op->in[0]].base;
    if (!dnn_plan_by_rows(plan->prog, op)) return false;
    if (op->pass != DNN_FWD)
        return is_in(plan, op->out[0], op->in[0], op->attr.concat.start);
    for (int i = 0; i < op->nin; i++) {
        if (!is_in(plan, op->in[i], op->out[0], start)) return false;
        start += dnn_plan_row(plan->prog, op->in[i]);
    }
    return true;
}

void dnn_plan_free(struct dnn_plan *plan)
{
    if (plan != NULL) dnn_arena_free(plan->arena);
}

size_t dnn_plan_bytes(const struct dnn_plan *plan)
{
    size_t bytes = 0;

    for (int b = 0; b < DNN_BLOCKS; b++)
        bytes += plan->bytes[b];
    return bytes;
}
