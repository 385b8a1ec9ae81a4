/* alias.c - which values may lie in the same bytes.
 *
 * Parts are put where they will be joined, whole networks of concatenations into the
 * last one's bytes; what is cut from a gradient stays where it lies; a view is its
 * input; an op that may writes over its first input when nobody else wants that.
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
    struct dnn_plan_life *life; /* by base                                     */
    int *start;                 /* by value: where its uses begin in use[]      */
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

static bool may_be_apart(const struct work *w, int o, bool out, int i)
{
    return w->opts->pitch != NULL &&
           w->opts->pitch(w->opts->arg, w->plan->prog, o, out, i);
}

/* Whether all who read v, but op except, can do so when its rows are apart. */
static bool readers_allow(const struct work *w, int v, int except)
{
    for (int u = w->start[v]; u < w->start[v + 1]; u++) {
        const struct use *use = &w->use[u];

        if (use->op == except) continue;
        if (dnn_op_info(w->plan->prog->op[use->op].kind)->view) return false;
        if (!may_be_apart(w, use->op, false, use->i)) return false;
    }
    return true;
}

/* Whether v is joined to others once only: what is joined several times can be in the
 * place of one, and would hold all of that from first to last. */
static bool joined_once(const struct work *w, int v)
{
    int n = 0;

    for (int u = w->start[v]; u < w->start[v + 1]; u++) {
        const struct dnn_op *op = &w->plan->prog->op[w->use[u].op];

        n += op->kind == DNN_OP_CONCAT && op->pass == DNN_FWD;
    }
    return n == 1;
}

/* Which output of its op v is. */
static int output_of(const struct dnn_prog *prog, int v)
{
    const struct dnn_op *op = &prog->op[prog->value[v].op];
    int i = 0;

    while (op->out[i] != v)
        i++;
    return i;
}

static bool can_lie_in(const struct work *w, int v, int o)
{
    const struct dnn_prog *prog = w->plan->prog;
    const struct dnn_spot *s = &w->plan->spot[v];
    int maker = prog->value[v].op;

    if (prog->value[v].role != DNN_TEMP || s->block != DNN_BLOCK_TEMPS || s->base != v)
        return false;
    return maker != DNN_NONE && !dnn_op_info(prog->op[maker].kind)->view &&
           joined_once(w, v) && readers_allow(w, v, o) &&
           may_be_apart(w, maker, true, output_of(prog, v));
}

/* part becomes the columns of whole that begin at start. */
static void lay_into(struct work *w, int part, int whole, int64_t start)
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

/* Put the parts of a joining that can be there into its output.  If only some can,
 * the op is still to be done, and must be able to read those where they are. */
static void join(struct work *w, int o)
{
    const struct dnn_op *op = &w->plan->prog->op[o];
    int64_t start = 0;
    int can = 0;

    for (int i = 0; i < op->nin; i++)
        can += can_lie_in(w, op->in[i], o);
    for (int i = 0; i < op->nin; i++) {
        if (can_lie_in(w, op->in[i], o) &&
            (can == op->nin || may_be_apart(w, o, false, i)))
            lay_into(w, op->in[i], op->out[0], start);
        start += dnn_plan_row(w->plan->prog, op->in[i]);
    }
}

/* The columns of its base's rows that a value takes, counted in bytes; a value that
 * is not apart takes them all. */
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

static bool touch(const struct work *w, int a, int b)
{
    size_t from[2], to[2];

    if (w->plan->spot[a].base != w->plan->spot[b].base) return false;
    columns(w, a, &from[0], &to[0]);
    columns(w, b, &from[1], &to[1]);
    return from[0] < to[1] && from[1] < to[0];
}

/* Whether nobody wants v's bytes after op o. */
static bool is_over(const struct work *w, int v, int o)
{
    const struct dnn_spot *s = &w->plan->spot[v];

    if (w->life[s->base].last <= o) return true;
    if (s->pitch == 0) return false;
    for (int u = 0; u < w->plan->prog->nvalues; u++)
        if (w->plan->spot[u].last > o && touch(w, u, v)) return false;
    return true;
}

/* Whether op may write its first output over its first input: nobody else wants
 * that any more, and no other operand lies there. */
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
    if (!is_over(w, x, o)) return false;
    for (int i = 1; i < op->nin; i++)
        if (op->in[i] != DNN_NONE && touch(w, op->in[i], x)) return false;
    return in->pitch == 0 || (prog->value[x].is.dtype == prog->value[y].is.dtype &&
                              dnn_plan_row(prog, x) == dnn_plan_row(prog, y) &&
                              may_be_apart(w, o, true, 0) && readers_allow(w, y, o));
}

/* y lies exactly where x does. */
static void lay_over(struct work *w, int y, int x)
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

static void follow(struct work *w, int o)
{
    const struct dnn_op *op = &w->plan->prog->op[o];

    if (op->nout == 0 || op->out[0] == DNN_NONE || op->nin == 0) return;
    int x = op->in[0], y = op->out[0];
    /* A part lies in its whole already.  A weight's gradient has a place of its own;
     * a view of something else that becomes one is copied there. */
    if (w->plan->spot[y].base != y || w->plan->spot[y].block != DNN_BLOCK_TEMPS) return;
    if (dnn_op_info(op->kind)->view) {
        assert(w->plan->spot[x].pitch == 0);
        lay_over(w, y, x);
    } else if (op->pass == DNN_BWD_DATA && dnn_plan_by_rows(w->plan->prog, op)) {
        if (w->opts->pitch != NULL && readers_allow(w, y, DNN_NONE))
            lay_into(w, y, x, op->attr.concat.start);
    } else if (may_overwrite(w, o)) {
        lay_over(w, y, x);
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
    /* From the last: so a joined value that is itself a part has its place before its
     * own parts ask for it. */
    for (int o = prog->nops - 1; o >= 0 && opts->pitch != NULL; o--) {
        const struct dnn_op *op = &prog->op[o];

        if (op->pass == DNN_FWD && dnn_plan_by_rows(prog, op) &&
            plan->spot[op->out[0]].block == DNN_BLOCK_TEMPS)
            join(&w, o);
    }
    for (int o = 0; o < prog->nops; o++)
        follow(&w, o);
    dnn_arena_free(arena);
}
