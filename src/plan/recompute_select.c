/* recompute_select.c - which values to make again instead of keeping them.
 *
 * Again and again the worst moment is looked at: of the values that are kept across
 * it, the one with the most bytes for the least work is dropped, if that lowers what
 * is alive at the worst.  In the end those are taken back without which it is no
 * worse.  Not the optimum, but each drop is tried on the whole plan, so none is
 * made that does not help.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "plan/plan_impl.h"

#include "base/mem.h"

#include <string.h>

enum {
    LITTLE = 50, /* what is cheap and always done must win more than this part     */
    TRIES = 3,   /* of a value that did not help, at different worst moments       */
    TINY = 4000, /* values below this part of the peak are not worth the trouble   */
};
/* Ops that may be looked at in all attempts together: some seconds. */
static const double patience = 3e7;
/* Work that may be added, of the work there is: so the step stays below 1.35 times. */
static const double most_added = 0.3;

/* How to go about it. */
struct way {
    bool cheap; /* without convolutions and products            */
    bool often; /* make cheap values again wherever they are read */
    bool fresh; /* from nothing, not from where we are           */
};

struct work {
    const struct dnn_prog *prog;
    struct way way;
    const struct dnn_plan_opts *asked; /* the caller's */
    struct dnn_plan_opts opts; /* the same, with answers remembered            */
    char *answer;              /* by operand: 0 not known, 1 no, 2 yes         */
    int *start;                /* by op: where its operands begin in answer[]  */
    const int *origin; /* by op of the program in question: which of prog it does; NULL:
                          it is prog itself */
    struct dnn_arena *arena; /* owned */
    bool *drop;              /* by value: made again where the backward part needs it */
    bool *candidate;   /* by value: kept for the backward part, could be dropped */
    bool *made;        /* by value: is made again as things are                  */
    int *mark;         /* by value: scratch of reckon()                          */
    int *last_forward; /* by value: the last forward op that reads it            */
    char *tries;       /* by value */
    int *tried;        /* by value: the round in which it was tried              */
    int marks, round;
    double most;           /* work there may be                      */
    double seen;           /* ops looked at so far                   */
    struct dnn_prog *now;  /* owned: the program with drop as it is   */
    struct dnn_plan *plan; /* owned: its lifetimes                   */
};

/* Ask the caller about each operand of the program once only: copies of an op are as
 * the op. */
static bool pitch(void *arg, const struct dnn_prog *prog, int op, bool out, int i)
{
    const struct work *w = arg;
    int o = w->origin == NULL ? op : w->origin[op];
    char *answer = &w->answer[w->start[o] + (out ? w->prog->op[o].nin : 0) + i];

    (void)prog;
    if (*answer == 0)
        *answer = w->asked->pitch(w->asked->arg, w->prog, o, out, i) ? 2 : 1;
    return *answer == 2;
}

/* The work of making v again, with all that is made again for it alone. */
static double reckon(struct work *w, int v)
{
    const struct dnn_op *op = &w->prog->op[w->prog->value[v].op];
    double cost = dnn_plan_cost(w->prog, op);

    if (w->made[v] || w->mark[v] == w->marks) return 0;
    w->mark[v] = w->marks;
    for (int i = 0; i < op->nin; i++)
        if (op->in[i] != DNN_NONE && w->drop[op->in[i]]) cost += reckon(w, op->in[i]);
    return cost;
}

static double price(struct work *w, int v)
{
    w->marks++;
    return reckon(w, v);
}

static void note_made(struct work *w, int v)
{
    const struct dnn_op *op = &w->prog->op[w->prog->value[v].op];

    if (w->made[v]) return;
    w->made[v] = true;
    for (int i = 0; i < op->nin; i++)
        if (op->in[i] != DNN_NONE && w->drop[op->in[i]]) note_made(w, op->in[i]);
}

/* Which values are made again. */
static void note_all_made(struct work *w)
{
    memset(w->made, 0, (size_t)w->prog->nvalues * sizeof *w->made);
    for (int o = w->prog->nforward; o < w->prog->nops; o++)
        for (int i = 0; i < w->prog->op[o].nin; i++) {
            int v = w->prog->op[o].in[i];

            if (v != DNN_NONE && w->drop[v]) note_made(w, v);
        }
}

static double work_of(const struct dnn_prog *prog)
{
    double cost = 0;

    for (int o = 0; o < prog->nops; o++)
        cost += dnn_plan_cost(prog, &prog->op[o]);
    return cost;
}

/* See what becomes of it with drop as it is: take that over if the peak is at most
 * limit, and the work no more than may be. */
static bool try(struct work *w, size_t limit)
{
    int *origin = NULL;
    struct dnn_prog *prog = dnn_plan_rewrite(w->prog, w->drop, w->way.often, &origin);
    struct dnn_plan *plan = NULL;
    struct dnn_plan_life *life;
    const int *before = w->origin;

    w->origin = origin;
    w->seen += w->prog->nops;
    bool good = prog != NULL &&
                dnn_plan_survey(prog, &w->opts, &plan, &life, NULL) == 0 &&
                plan->peak <= limit && work_of(prog) <= w->most;

    if (!good) {
        dnn_plan_free(plan);
        dnn_prog_free(prog);
        w->origin = before;
        return false;
    }
    note_all_made(w);
    dnn_plan_free(w->plan);
    dnn_prog_free(w->now);
    w->plan = plan;
    w->now = prog;
    return true;
}

/* Whether v is kept across the worst op for others to read later. */
static bool in_the_way(const struct work *w, int v)
{
    const struct dnn_spot *s = &w->plan->spot[v];
    int worst = w->plan->peak_op;

    if (worst < 0 || w->last_forward[v] >= worst || s->last <= worst) return false;
    if (s->bytes < w->plan->peak / TINY) return false;
    const struct dnn_op *op = &w->now->op[worst];
    for (int i = 0; i < op->nin; i++)
        if (op->in[i] == v) return false;
    return true;
}

/* The value to drop next, DNN_NONE if none is left. */
static int pick(struct work *w)
{
    int best = DNN_NONE;
    double most = 0;

    for (int v = 0; v < w->prog->nvalues; v++) {
        if (!w->candidate[v] || w->drop[v] || w->tries[v] >= TRIES ||
            w->tried[v] == w->round || !in_the_way(w, v))
            continue;
        double gain = (double)w->plan->spot[v].bytes / (price(w, v) + 1);
        if (gain <= most) continue;
        most = gain;
        best = v;
    }
    return best;
}

/* Drop values until the temps' peak is at most target. */
static void drop_some(struct work *w, size_t target)
{
    while (w->plan->peak > target && w->seen < patience) {
        int v = pick(w);

        if (v == DNN_NONE) break;
        w->drop[v] = true;
        if (try(w, w->plan->peak)) {
            w->round++;
            continue;
        }
        w->drop[v] = false;
        w->tried[v] = w->round;
        w->tries[v]++;
    }
}

/* Keep again what was dropped for nothing, or for little, the dearest first. */
static void take_back(struct work *w, size_t target)
{
    size_t limit = w->plan->peak > target ? w->plan->peak : target;

    if (w->way.cheap) limit += limit / LITTLE;
    bool *asked = dnn_alloc((size_t)w->prog->nvalues + 1);

    for (;;) {
        int v = DNN_NONE;
        double most = -1;

        for (int u = 0; u < w->prog->nvalues; u++) {
            if (!w->candidate[u] || !w->drop[u] || asked[u]) continue;
            double cost = dnn_plan_cost(w->prog, &w->prog->op[w->prog->value[u].op]);
            if (cost <= most) continue;
            most = cost;
            v = u;
        }
        if (v == DNN_NONE || w->seen > 2 * patience) break;
        asked[v] = true;
        w->drop[v] = false;
        if (!try(w, limit)) w->drop[v] = true;
    }
    dnn_free(asked);
}

/* What can be made again: dropped from the start is what the backward part does not
 * read, so that it is not kept for the sake of others; the rest are candidates. */
static void open_choice(struct work *w)
{
    const struct dnn_prog *prog = w->prog;
    bool *wanted = dnn_alloc((size_t)prog->nvalues + 1);

    if (w->way.fresh) memset(w->drop, 0, (size_t)prog->nvalues * sizeof *w->drop);
    for (int o = prog->nforward; o < prog->nops; o++)
        for (int i = 0; i < prog->op[o].nin; i++)
            if (prog->op[o].in[i] != DNN_NONE) wanted[prog->op[o].in[i]] = true;
    for (int o = 0; o < prog->nforward; o++) {
        int v = prog->op[o].out[0];

        if (!dnn_plan_recomputable(prog, o, w->way.cheap)) continue;
        /* A view costs nothing and keeps nothing. */
        if (!wanted[v] || dnn_op_info(prog->op[o].kind)->view)
            w->drop[v] = true;
        else
            w->candidate[v] = true;
    }
    for (int i = 0; i < w->opts.nkeep; i++)
        w->drop[w->opts.keep[i]] = w->candidate[w->opts.keep[i]] = false;
    memset(w->tries, 0, (size_t)prog->nvalues);
    w->round++;
    dnn_free(wanted);
}

static void begin(struct work *w, const struct dnn_prog *prog,
                  const struct dnn_plan_opts *opts)
{
    struct dnn_arena *arena = dnn_arena_make();
    size_t n = (size_t)prog->nvalues + 1;

    *w = (struct work){
        .prog = prog,
        .asked = opts,
        .opts = *opts,
        .arena = arena,
        .start = dnn_arena_alloc(arena, ((size_t)prog->nops + 1) * sizeof *w->start),
        .drop = dnn_arena_alloc(arena, n * sizeof *w->drop),
        .candidate = dnn_arena_alloc(arena, n * sizeof *w->candidate),
        .made = dnn_arena_alloc(arena, n * sizeof *w->made),
        .mark = dnn_arena_alloc(arena, n * sizeof *w->mark),
        .last_forward = dnn_arena_alloc(arena, n * sizeof *w->last_forward),
        .tries = dnn_arena_alloc(arena, n * sizeof *w->tries),
        .tried = dnn_arena_alloc(arena, n * sizeof *w->tried),
        .most = (1 + most_added) * work_of(prog)};
    for (int o = 0; o < prog->nops; o++)
        w->start[o + 1] = w->start[o] + prog->op[o].nin + DNN_MAX_OUT;
    w->answer = dnn_arena_alloc(arena, (size_t)w->start[prog->nops] + 1);
    w->opts.arg = w;
    if (opts->pitch != NULL) w->opts.pitch = pitch;
    for (int o = 0; o < prog->nforward; o++) {
        for (int i = 0; i < prog->op[o].nin; i++)
            if (prog->op[o].in[i] != DNN_NONE) w->last_forward[prog->op[o].in[i]] = o;
        for (int i = 0; i < prog->op[o].nout; i++)
            if (prog->op[o].out[i] != DNN_NONE) w->last_forward[prog->op[o].out[i]] = o;
    }
}

static void end(struct work *w)
{
    dnn_plan_free(w->plan);
    dnn_prog_free(w->now);
    dnn_arena_free(w->arena);
}

/* Bytes of all blocks when a program is planned in full. */
static int bytes_of(const struct dnn_prog *prog, const struct dnn_plan_opts *opts,
                    size_t *bytes, size_t *temps, struct dnn_err *err)
{
    struct dnn_plan *plan;

    DNN_TRY(dnn_plan_make(prog, opts, &plan, err));
    *bytes = dnn_plan_bytes(plan);
    if (temps != NULL) *temps = plan->bytes[DNN_BLOCK_TEMPS];
    dnn_plan_free(plan);
    return 0;
}

/* A program and what it takes. */
struct found {
    struct dnn_prog *prog; /* owned */
    size_t bytes;
    double work;
};

/* Within the limit the less work the better, beyond it the fewer bytes. */
static bool better(const struct found *a, const struct found *b, size_t limit)
{
    if (a->bytes <= limit && b->bytes <= limit) return a->work < b->work;
    return a->bytes < b->bytes;
}

/* Drop until all blocks take at most limit, and take over what has been reached if it
 * is better than the best so far. */
static int descend(struct work *w, struct way way, size_t limit, struct found *best,
                   struct dnn_err *err)
{
    enum { ROUNDS = 4 };
    size_t bytes = 0, temps = 0, excess = 0;

    w->way = way;
    w->seen = 0;
    open_choice(w);
    if (!try(w, SIZE_MAX)) return 0;
    for (int i = 0; i < ROUNDS; i++) {
        DNN_TRY(bytes_of(w->now, &w->opts, &bytes, &temps, err));
        if (i > 0 && bytes <= limit) break;
        size_t rest = bytes - temps + excess;
        size_t target = limit > rest ? limit - rest : 0;
        drop_some(w, target);
        take_back(w, target);
        DNN_TRY(bytes_of(w->now, &w->opts, &bytes, &temps, err));
        /* Packing takes a little more than what is alive. */
        excess += bytes > limit ? bytes - limit : 0;
        if (limit == 0) break;
    }
    struct found got = {NULL, bytes, work_of(w->now)};
    if (!better(&got, best, limit)) return 0;
    dnn_prog_free(best->prog);
    got.prog = dnn_plan_rewrite(w->prog, w->drop, way.often, NULL);
    *best = got;
    return 0;
}

/* The ways to drop more than is cheap, each from where the cheap ones led. */
static int descend_all(struct work *w, size_t limit, struct found *best,
                       struct dnn_err *err)
{
    static const struct way ways[] = {
        {.often = false},
        {.often = true},
        {.often = false, .fresh = true},
        {.often = true, .fresh = true},
    };
    size_t n = (size_t)w->prog->nvalues * sizeof *w->drop;
    bool *start = dnn_arena_alloc(w->arena, n + 1);

    memcpy(start, w->drop, n);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        memcpy(w->drop, start, n);
        DNN_TRY(descend(w, ways[i], limit, best, err));
    }
    return 0;
}

/* What the new program does beyond the old one. */
static void compare(const struct dnn_prog *old, const struct dnn_prog *new,
                    struct dnn_recomputed *what)
{
    for (int o = 0; o < old->nops; o++)
        what->flops += dnn_plan_flops(old, &old->op[o]);
    for (int o = 0; o < new->nops; o++)
        what->extra += dnn_plan_flops(new, &new->op[o]);
    what->extra -= what->flops;
    what->ops = new->nops - old->nops;
    what->cost = work_of(old);
    what->added = work_of(new) - what->cost;
}

int dnn_plan_recompute(const struct dnn_prog *prog,
                       const struct dnn_recompute_opts *opts, struct dnn_prog **out,
                       struct dnn_recomputed *what, struct dnn_err *err)
{
    struct dnn_recomputed sum = {0};
    struct work w;
    bool more = opts->how == DNN_RECOMPUTE_ALL || opts->how == DNN_RECOMPUTE_AUTO;
    bool any = opts->how != DNN_RECOMPUTE_NEVER && prog->nforward < prog->nops;
    size_t limit = opts->how == DNN_RECOMPUTE_AUTO ? opts->limit : 0;
    size_t temps = 0;

    begin(&w, prog, &opts->plan);
    int rc = bytes_of(prog, &w.opts, &sum.before, &temps, err);
    struct found best = {dnn_plan_rewrite(prog, w.drop, false, NULL), sum.before,
                         work_of(prog)};
    if (rc == 0 && any && temps >= opts->least)
        rc = descend(&w, (struct way){.cheap = true}, 0, &best, err);
    if (rc == 0 && any && more && best.bytes > limit)
        rc = descend_all(&w, limit, &best, err);
    end(&w);
    if (rc < 0) {
        dnn_prog_free(best.prog);
        return rc;
    }
    sum.after = best.bytes;
    compare(prog, best.prog, &sum);
    if (what != NULL) *what = sum;
    *out = best.prog;
    return 0;
}
