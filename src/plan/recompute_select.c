/* recompute_select.c - which values to recompute instead of storing them.
 *
 * Greedy: at the op with the peak memory, of the values stored across it, the one
 * with the most bytes for the least work is dropped, if that lowers the peak. In the
 * end, drops that turned out not to help are undone. Not the optimum, but each drop
 * is tried on the whole plan, so that none is made without effect.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "plan/plan_impl.h"

#include "base/mem.h"

#include <string.h>

enum {
    SMALL_GAIN = 50, /* cheap recomputing must save more than this fraction */
    TRIES = 3,       /* attempts per value, at different peaks */
    TINY = 4000,     /* values below this fraction of the peak are ignored */
};
/* Limit of ops visited in all attempts together: some seconds. */
static const double visit_limit = 3e7;
/* Extra work allowed, as a fraction: the step stays below 1.35 times. */
static const double most_added = 0.3;

/* A search strategy. */
struct strategy {
    bool cheap; /* without convolutions and products */
    bool often; /* recompute cheap values at each use */
    bool fresh; /* start without drops, not from the current ones */
};

struct work {
    const struct dnn_prog *prog;
    struct strategy strategy;
    const struct dnn_plan_opts *asked; /* the caller's */
    struct dnn_plan_opts opts;         /* the same, with answers cached */
    char *answer;                      /* by operand: 0 unknown, 1 no, 2 yes */
    int *start;        /* by op: where its operands begin in answer[]  */
    const int *origin; /* by op of the current program: the op of prog; NULL: it is prog
                          itself */
    struct dnn_arena *arena; /* owned */
    bool *drop;              /* by value: recomputed where the backward part needs it */
    bool *candidate;   /* by value: stored for the backward part, may be dropped */
    bool *made;        /* by value: is recomputed now */
    int *mark;         /* by value: scratch of cost_of() */
    int *last_forward; /* by value: the last forward op that reads it            */
    char *tries;       /* by value */
    int *tried;        /* by value: the round in which it was tried              */
    int marks, round;
    double most;           /* limit of the work */
    double visited;        /* ops visited so far */
    struct dnn_prog *now;  /* owned: the program with the current drops */
    struct dnn_plan *plan; /* owned: its lifetimes                   */
};

/* Ask the caller about each operand of the program only once: copies of an op have
 * the same answers. */
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

/* The work of recomputing v and the values recomputed for it alone. */
static double cost_of(struct work *w, int v)
{
    const struct dnn_op *op = &w->prog->op[w->prog->value[v].op];
    double cost = dnn_plan_cost(w->prog, op);

    if (w->made[v] || w->mark[v] == w->marks) return 0;
    w->mark[v] = w->marks;
    for (int i = 0; i < op->nin; i++)
        if (op->in[i] != DNN_NONE && w->drop[op->in[i]]) cost += cost_of(w, op->in[i]);
    return cost;
}

static void note_made(struct work *w, int v)
{
    const struct dnn_op *op = &w->prog->op[w->prog->value[v].op];

    if (w->made[v]) return;
    w->made[v] = true;
    for (int i = 0; i < op->nin; i++)
        if (op->in[i] != DNN_NONE && w->drop[op->in[i]]) note_made(w, op->in[i]);
}

/* Find the values that are recomputed. */
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

/* Plan with the current drops; accept them if the peak is at most limit and the work
 * within its limit. */
static bool try(struct work *w, size_t limit)
{
    int *origin = NULL;
    struct dnn_prog *prog =
        dnn_plan_rewrite(w->prog, w->drop, w->strategy.often, &origin);
    struct dnn_plan *plan = NULL;
    struct dnn_plan_life *life;
    const int *before = w->origin;

    w->origin = origin;
    w->visited += w->prog->nops;
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

/* Whether v is stored across the peak for later readers. */
static bool across_peak(const struct work *w, int v)
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

/* The value to drop next, DNN_NONE: none left. */
static int pick(struct work *w)
{
    int best = DNN_NONE;
    double most = 0;

    for (int v = 0; v < w->prog->nvalues; v++) {
        if (!w->candidate[v] || w->drop[v] || w->tries[v] >= TRIES ||
            w->tried[v] == w->round || !across_peak(w, v))
            continue;
        w->marks++;
        double gain = (double)w->plan->spot[v].bytes / (cost_of(w, v) + 1);
        if (gain <= most) continue;
        most = gain;
        best = v;
    }
    return best;
}

/* Drop values until the peak of temps is at most target. */
static void drop_some(struct work *w, size_t target)
{
    while (w->plan->peak > target && w->visited < visit_limit) {
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

/* Undo drops that save nothing, or little, the most expensive first. */
static void undo_drops(struct work *w, size_t target)
{
    size_t limit = w->plan->peak > target ? w->plan->peak : target;

    if (w->strategy.cheap) limit += limit / SMALL_GAIN;
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
        if (v == DNN_NONE || w->visited > 2 * visit_limit) break;
        asked[v] = true;
        w->drop[v] = false;
        if (!try(w, limit)) w->drop[v] = true;
    }
    dnn_free(asked);
}

/* Find the values that can be recomputed. Those the backward part does not read are
 * dropped from the start, so that they are not stored for others; the others are
 * candidates. */
static void find_candidates(struct work *w)
{
    const struct dnn_prog *prog = w->prog;
    bool *wanted = dnn_alloc((size_t)prog->nvalues + 1);

    if (w->strategy.fresh) memset(w->drop, 0, (size_t)prog->nvalues * sizeof *w->drop);
    for (int o = prog->nforward; o < prog->nops; o++)
        for (int i = 0; i < prog->op[o].nin; i++)
            if (prog->op[o].in[i] != DNN_NONE) wanted[prog->op[o].in[i]] = true;
    for (int o = 0; o < prog->nforward; o++) {
        int v = prog->op[o].out[0];

        if (!dnn_plan_recomputable(prog, o, w->strategy.cheap)) continue;
        /* A view costs nothing and stores nothing. */
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

/* Bytes of all blocks of the complete plan of a program. */
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

/* A program, its bytes and its work. */
struct found {
    struct dnn_prog *prog; /* owned */
    size_t bytes;
    double work;
};

/* Within the limit less work is better, beyond it fewer bytes. */
static bool better(const struct found *a, const struct found *b, size_t limit)
{
    if (a->bytes <= limit && b->bytes <= limit) return a->work < b->work;
    return a->bytes < b->bytes;
}

/* Drop until all blocks take at most limit; the result replaces the best so far if
 * it is better. */
static int descend(struct work *w, struct strategy strategy, size_t limit,
                   struct found *best, struct dnn_err *err)
{
    enum { ROUNDS = 4 };
    size_t bytes = 0, temps = 0, excess = 0;

    w->strategy = strategy;
    w->visited = 0;
    find_candidates(w);
    if (!try(w, SIZE_MAX)) return 0;
    for (int i = 0; i < ROUNDS; i++) {
        DNN_TRY(bytes_of(w->now, &w->opts, &bytes, &temps, err));
        if (i > 0 && bytes <= limit) break;
        size_t fixed = bytes - temps + excess;
        size_t target = limit > fixed ? limit - fixed : 0;
        drop_some(w, target);
        undo_drops(w, target);
        DNN_TRY(bytes_of(w->now, &w->opts, &bytes, &temps, err));
        /* Packing needs a little more than the peak. */
        excess += bytes > limit ? bytes - limit : 0;
        if (limit == 0) break;
    }
    struct found got = {NULL, bytes, work_of(w->now)};
    if (!better(&got, best, limit)) return 0;
    dnn_prog_free(best->prog);
    got.prog = dnn_plan_rewrite(w->prog, w->drop, strategy.often, NULL);
    *best = got;
    return 0;
}

/* The strategies that drop more than cheap values, each starting from the cheap
 * ones. */
static int descend_all(struct work *w, size_t limit, struct found *best,
                       struct dnn_err *err)
{
    static const struct strategy strategies[] = {
        {.often = false},
        {.often = true},
        {.often = false, .fresh = true},
        {.often = true, .fresh = true},
    };
    size_t n = (size_t)w->prog->nvalues * sizeof *w->drop;
    bool *start = dnn_arena_alloc(w->arena, n + 1);

    memcpy(start, w->drop, n);
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        memcpy(w->drop, start, n);
        DNN_TRY(descend(w, strategies[i], limit, best, err));
    }
    return 0;
}

/* What the new program computes in addition. */
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
        rc = descend(&w, (struct strategy){.cheap = true}, 0, &best, err);
    if (rc == 0 && any && more && best.bytes > limit)
        rc = descend_all(&w, limit, &best, err);
    dnn_plan_free(w.plan);
    dnn_prog_free(w.now);
    dnn_arena_free(w.arena);
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
