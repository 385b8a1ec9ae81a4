/* plan.c - blocks, lifetimes and sharing: from a program to offsets.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "plan/plan_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const char *const block_names[DNN_BLOCKS] = {"data",   "weights",   "gradients",
                                                    "states", "constants", "temps"};

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
    case DNN_CONSTANT:
        return DNN_BLOCK_CONSTANTS;
    case DNN_TEMP:
        break;
    }
    return DNN_BLOCK_TEMPS;
}

/* Bytes, block and lifetime of each value by itself. */
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
                            "layer %s: one of its values has more elements than memory "
                            "has addresses; make the input or the batch smaller",
                            value->layer == NULL ? "(none)" : value->layer);
        s->block = block_of(value->role);
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

/* Values that stay where they are for the whole program, one behind the other; the
 * gradients of weights beside their weights. */
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

/* Whether op may write its first output over its first input: nobody else wants
 * that any more, and no other operand lies there. */
static bool may_overwrite(const struct dnn_plan *plan, int o, const int *last)
{
    const struct dnn_op *op = &plan->prog->op[o];
    const struct dnn_spot *in = &plan->spot[op->in[0]], *out = &plan->spot[op->out[0]];

    if ((dnn_op_info(op->kind)->inplace >> op->pass & 1) == 0) return false;
    if (in->block != DNN_BLOCK_TEMPS || out->block != DNN_BLOCK_TEMPS) return false;
    if (in->bytes != out->bytes || plan->spot[in->base].bytes != in->bytes)
        return false;
    if (last[in->base] > o) return false;
    for (int i = 1; i < op->nin; i++)
        if (op->in[i] != DNN_NONE && plan->spot[op->in[i]].base == in->base)
            return false;
    return true;
}

/* Give values that may share bytes the same base.  last[] of a base covers all who
 * share it. */
static void share(struct dnn_plan *plan, int *last)
{
    const struct dnn_prog *prog = plan->prog;

    for (int v = 0; v < prog->nvalues; v++)
        last[v] = plan->spot[v].last;
    for (int o = 0; o < prog->nops; o++) {
        const struct dnn_op *op = &prog->op[o];

        if (op->nout == 0 || op->out[0] == DNN_NONE || op->nin == 0) continue;
        struct dnn_spot *out = &plan->spot[op->out[0]];
        int base = plan->spot[op->in[0]].base;
        /* A weight's gradient has a place of its own; a view of something else that
         * becomes one is copied there. */
        bool view = dnn_op_info(op->kind)->view && out->block == DNN_BLOCK_TEMPS;

        if (!view && !may_overwrite(plan, o, last)) continue;
        out->base = base;
        out->block = plan->spot[base].block;
        if (out->last > last[base]) last[base] = out->last;
    }
}

/* Pack the temps that are bases, and tell everybody who shares them. */
static void pack(struct dnn_plan *plan, const int *last)
{
    int n = plan->prog->nvalues, nspans = 0;
    struct dnn_span *span = dnn_alloc(((size_t)n + 1) * sizeof *span);

    for (int v = 0; v < n; v++)
        if (plan->spot[v].block == DNN_BLOCK_TEMPS && plan->spot[v].base == v)
            span[nspans++] =
                (struct dnn_span){plan->spot[v].bytes, plan->spot[v].first, last[v], 0};
    plan->bytes[DNN_BLOCK_TEMPS] = dnn_plan_pack(span, nspans);
    nspans = 0;
    for (int v = 0; v < n; v++)
        if (plan->spot[v].block == DNN_BLOCK_TEMPS && plan->spot[v].base == v)
            plan->spot[v].offset = span[nspans++].offset;
    for (int v = 0; v < n; v++)
        plan->spot[v].offset = plan->spot[plan->spot[v].base].offset;
    for (int o = 0; o < plan->prog->nops; o++) {
        size_t live = 0;

        for (int i = 0; i < nspans; i++)
            if (span[i].first <= o && o <= span[i].last)
                live += dnn_plan_round(span[i].bytes);
        if (live > plan->live) {
            plan->live = live;
            plan->worst = o;
        }
    }
    dnn_free(span);
}

int dnn_plan_make(const struct dnn_prog *prog, int nkeep, const int *keep,
                  struct dnn_plan **out, struct dnn_err *err)
{
    struct dnn_arena *arena = dnn_arena_make();
    struct dnn_plan *plan = dnn_arena_alloc(arena, sizeof *plan);

    plan->arena = arena;
    plan->prog = prog;
    plan->spot = dnn_arena_alloc(arena, (size_t)prog->nvalues * sizeof *plan->spot);
    int rc = survey(plan, nkeep, keep, err);
    if (rc < 0) {
        dnn_plan_free(plan);
        return rc;
    }
    int *last = dnn_arena_alloc(arena, ((size_t)prog->nvalues + 1) * sizeof *last);
    lay_out(plan);
    share(plan, last);
    pack(plan, last);
    *out = plan;
    return 0;
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

void dnn_plan_print(const struct dnn_plan *plan, FILE *where)
{
    char text[32];

    for (int b = 0; b < DNN_BLOCKS; b++)
        if (plan->bytes[b] > 0)
            fprintf(where, "%-10s %10s\n", block_names[b],
                    dnn_text_bytes(text, sizeof text, (double)plan->bytes[b]));
    fprintf(where, "%-10s %10s", "all",
            dnn_text_bytes(text, sizeof text, (double)dnn_plan_bytes(plan)));
    if (plan->live > 0)
        fprintf(where, "; temps cannot do with less than %s (op %d)",
                dnn_text_bytes(text, sizeof text, (double)plan->live), plan->worst);
    fputc('\n', where);
}
