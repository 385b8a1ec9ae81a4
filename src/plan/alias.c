/* alias.c - decide which values share memory.
 *
 * Inputs of a concatenation are written directly into its output, and those of a chain
 * of concatenations into the last output.  Slices of a gradient are read in place.  A
 * view uses the memory of its input.  An op that supports it overwrites its first input
 * if nothing else needs this input.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "plan/plan_impl.h"

#include "base/mem.h"

#include <assert.h>

/* Operand i of op reads a value. */
struct use {
    int op, i;
};

struct work {
    struct dnn_plan *plan;
    const struct dnn_plan_opts *opts;
    struct dnn_plan_life *life; /* by base                                         */
    int *start;                 /* by value: index of its first use in use[]        */
    struct use *use;
};

static void list_uses(struct work *w, struct dnn_arena *arena)
{
    const struct dnn_prog *prog = w->plan->prog;
    size_t n = 0;

    w->start = dnn_arena_alloc(arena, ((size_t)prog->nvalues + 2) * sizeof *w->start);
    for (int o = 0; o < prog->nops; o++)
        for (int i = 0; i < prog->op[o].nin; i++)
            if (prog->op[o].in[i] != DNN_NONE) {
                w->start[prog->op[o].in[i] + 2]++;
                n++;
            }
    for (int v = 0; v < prog->nvalues; v++)
        w->start[v + 2] += w->start[v + 1];
    w->use = dnn_arena_alloc(arena, (n + 1) * sizeof *w->use);
    for (int o = 0; o < prog->nops; o++)
        for (int i = 0; i < prog->op[o].nin; i++)
            if (prog->op[o].in[i] != DNN_NONE)
                w->use[w->start[prog->op[o].in[i] + 1]++] = (struct use){o, i};
}

static bool supports_pitch(const struct work *w, int o, bool out, int i)
{
    return w->opts->pitch != NULL &&
           w->opts->pitch(w->opts->arg, w->plan->prog, o, out, i);
}

/* Whether all readers of v, except one op, support a pitch. */
static bool readers_support_pitch(const struct work *w, int v, int except)
{
    for (int u = w->start[v]; u < w->start[v + 1]; u++) {
        const struct use *use = &w->use[u];

        if (use->op == except) continue;
        if (dnn_op_info(w->plan->prog->op[use->op].kind)->view) return false;
        if (!supports_pitch(w, use->op, false, use->i)) return false;
    }
    return true;
}

/* Whether v is an input of only one concatenation.  With several, it could be in place
 * in only one of them, and would extend the lifetime of its complete output. */
static bool concatenated_once(const struct work *w, int v)
{
    int n = 0;

    for (int u = w->start[v]; u < w->start[v + 1]; u++) {
        const struct dnn_op *op = &w->plan->prog->op[w->use[u].op];

        n += op->kind == DNN_OP_CONCAT && op->pass == DNN_FWD;
    }
    return n == 1;
}

/* The index of v among the outputs of its op. */
static int output_of(const struct dnn_prog *prog, int v)
{
    const struct dnn_op *op = &prog->op[prog->value[v].op];
    int i = 0;

    while (op->out[i] != v)
        i++;
    return i;
}

static bool can_place(const struct work *w, int v, int o)
{
    const struct dnn_prog *prog = w->plan->prog;
    const struct dnn_spot *s = &w->plan->spot[v];
    int producer = prog->value[v].op;

    if (prog->value[v].role != DNN_TEMP || s->block != DNN_BLOCK_TEMPS || s->base != v)
        return false;
    return producer != DNN_NONE && !dnn_op_info(prog->op[producer].kind)->view &&
           concatenated_once(w, v) && readers_support_pitch(w, v, o) &&
           supports_pitch(w, producer, true, output_of(prog, v));
}

/* Place the value `part` in the columns of `whole` that begin at start. */
static void place_in_columns(struct work *w, int part, int whole, int64_t start)
{
    const struct dnn_spot *in = &w->plan->spot[whole];
    struct dnn_spot *s = &w->plan->spot[part];
    struct dnn_plan_life *life = &w->life[in->base];

    s->base = in->base;
    s->block = in->block;
    s->pitch = dnn_plan_pitch(w->plan, whole);
    s->offset = in->offset +
                (size_t)start * dnn_dtype_size(w->plan->prog->value[whole].is.dtype);
    if (s->first < life->first) life->first = s->first;
    if (s->last > life->last) life->last = s->last;
}

/* Place the inputs of a concatenation in its output where possible.  If this is
 * possible for some inputs only, the op still runs, and must be able to read these in
 * place. */
static void place_inputs(struct work *w, int o)
{
    const struct dnn_op *op = &w->plan->prog->op[o];
    int64_t start = 0;
    int placeable = 0;

    for (int i = 0; i < op->nin; i++)
        placeable += can_place(w, op->in[i], o);
    for (int i = 0; i < op->nin; i++) {
        if (can_place(w, op->in[i], o) &&
            (placeable == op->nin || supports_pitch(w, o, false, i)))
            place_in_columns(w, op->in[i], op->out[0], start);
        start += dnn_plan_row(w->plan->prog, op->in[i]);
    }
}

/* The columns [*from, *to) that a value occupies in the rows of its base, in bytes; a
 * value without a pitch occupies all. */
static void columns(const struct work *w, int v, size_t *from, size_t *to)
{
    const struct dnn_spot *s = &w->plan->spot[v];
    size_t size = dnn_dtype_size(w->plan->prog->value[v].is.dtype);

    *from = 0;
    *to = SIZE_MAX;
    if (s->pitch == 0) return;
    *from = s->offset % ((size_t)s->pitch * size);
    *to = *from + (size_t)dnn_plan_row(w->plan->prog, v) * size;
}

static bool overlap(const struct work *w, int a, int b)
{
    size_t from[2], to[2];

    if (w->plan->spot[a].base != w->plan->spot[b].base) return false;
    columns(w, a, &from[0], &to[0]);
    columns(w, b, &from[1], &to[1]);
    return from[0] < to[1] && from[1] < to[0];
}

/* Whether no value in the memory of v is needed after op o. */
static bool is_dead(const struct work *w, int v, int o)
{
    const struct dnn_spot *s = &w->plan->spot[v];

    if (w->life[s->base].last <= o) return true;
    if (s->pitch == 0) return false;
    for (int u = 0; u < w->plan->prog->nvalues; u++)
        if (w->plan->spot[u].last > o && overlap(w, u, v)) return false;
    return true;
}

/* Whether an op may overwrite its first input with its first output: the input is not
 * needed any more, and no other operand uses the same memory. */
static bool may_overwrite(const struct work *w, int o)
{
    const struct dnn_prog *prog = w->plan->prog;
    const struct dnn_op *op = &prog->op[o];
    int x = op->in[0], y = op->out[0];
    const struct dnn_spot *in = &w->plan->spot[x], *out = &w->plan->spot[y];

    if ((dnn_op_info(op->kind)->inplace >> op->pass & 1) == 0) return false;
    if (in->block != DNN_BLOCK_TEMPS || out->block != DNN_BLOCK_TEMPS) return false;
    if (in->bytes != out->bytes) return false;
    if (in->pitch == 0 && w->plan->spot[in->base].bytes != in->bytes) return false;
    if (!is_dead(w, x, o)) return false;
    for (int i = 1; i < op->nin; i++)
        if (op->in[i] != DNN_NONE && overlap(w, op->in[i], x)) return false;
    return in->pitch == 0 ||
           (prog->value[x].is.dtype == prog->value[y].is.dtype &&
            dnn_plan_row(prog, x) == dnn_plan_row(prog, y) &&
            supports_pitch(w, o, true, 0) && readers_support_pitch(w, y, o));
}

/* Place y in the memory of x. */
static void place_on(struct work *w, int y, int x)
{
    struct dnn_spot *s = &w->plan->spot[y];
    const struct dnn_spot *in = &w->plan->spot[x];
    struct dnn_plan_life *life = &w->life[in->base];

    s->base = in->base;
    s->block = in->block;
    s->offset = in->offset;
    s->pitch = in->pitch;
    if (s->last > life->last) life->last = s->last;
}

static void alias_op(struct work *w, int o)
{
    const struct dnn_op *op = &w->plan->prog->op[o];

    if (op->nout == 0 || op->out[0] == DNN_NONE || op->nin == 0) return;
    int x = op->in[0], y = op->out[0];
    /* An input of a concatenation is placed already.  The gradient of a weight has a
     * fixed offset; if it is a view, it is copied there. */
    if (w->plan->spot[y].base != y || w->plan->spot[y].block != DNN_BLOCK_TEMPS) return;
    if (dnn_op_info(op->kind)->view) {
        assert(w->plan->spot[x].pitch == 0);
        place_on(w, y, x);
    } else if (op->pass == DNN_BWD_DATA && dnn_plan_by_rows(w->plan->prog, op)) {
        if (w->opts->pitch != NULL && readers_support_pitch(w, y, DNN_NONE))
            place_in_columns(w, y, x, op->attr.concat.start);
    } else if (may_overwrite(w, o)) {
        place_on(w, y, x);
    }
}

void dnn_plan_alias(struct dnn_plan *plan, const struct dnn_plan_opts *opts,
                    struct dnn_plan_life *life)
{
    const struct dnn_prog *prog = plan->prog;
    struct dnn_arena *arena = dnn_arena_make();
    struct work w = {.plan = plan, .opts = opts, .life = life};

    list_uses(&w, arena);
    for (int v = 0; v < prog->nvalues; v++)
        life[v] = (struct dnn_plan_life){plan->spot[v].first, plan->spot[v].last};
    /* In reverse order: a concatenation that is an input of another one must be placed
     * before its own inputs. */
    for (int o = prog->nops - 1; o >= 0 && opts->pitch != NULL; o--) {
        const struct dnn_op *op = &prog->op[o];

        if (op->pass == DNN_FWD && dnn_plan_by_rows(prog, op) &&
            plan->spot[op->out[0]].block == DNN_BLOCK_TEMPS)
            place_inputs(&w, o);
    }
    for (int o = 0; o < prog->nops; o++)
        alias_op(&w, o);
    dnn_arena_free(arena);
}
