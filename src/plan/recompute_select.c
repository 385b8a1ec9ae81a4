/* recompute_select.c - select the values to recompute instead of storing them.
 * A greedy search: of the values stored across the op with the peak memory, the one
 * with the most bytes per cost of recomputation is dropped, if that reduces the peak.
 * At the end, drops that do not help are undone.  The result is not optimal, but each
 * drop is tried with a complete plan, so that none is without effect.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "plan/plan_impl.h"

#include "base/mem.h"

#include <string.h>

enum {
    SMALL_GAIN = 50,   /* a cheap drop must save more than 1/50 */
    TRIES = 3,         /* maximum attempts per value, at different peaks */
    TINY_VALUE = 4000, /* values below 1/4000 of the peak are ignored */
};
/* Maximum number of ops visited in all attempts: some seconds. */
static const double max_visited = 3e7;
/* Maximum additional cost, as a fraction: a step takes at most 1.35 times as long. */
static const double max_added = 0.3;

/* A search strategy. */
struct strategy {
    bool cheap; /* without convolutions and products */
    bool often; /* recompute cheap values at each use */
    bool fresh; /* start without drops instead of the current ones */
};

struct work {
    const struct dnn_prog *prog;
    struct strategy strategy;
    const struct dnn_plan_opts *caller; /* of the caller */
    struct dnn_plan_opts opts;          /* the same, but pitch() is cached */
    char *answer;      /* by operand, of pitch(): 0 unknown, 1 no, 2 yes */
    int *start;        /* by op: index of its first operand in answer[] */
    const int *origin; /* by op of the current program: the op of prog; NULL: it is prog
                          itself */
    struct dnn_arena *arena; /* owned */
    bool *drop;              /* by value: recomputed where the backward pass needs it */
    bool *candidate;   /* by value: stored for the backward pass, may be dropped */
    bool *recomputed;  /* by value: is recomputed now */
    int *mark;         /* by value: scratch of cost_of() */
    int *last_forward; /* by value: the last forward op that reads it            */
    char *tries;       /* by value: number of attempts */
    int *tried;        /* by value: the round of the last attempt */
    int marks, round;
    double max_work;          /* maximum cost of the program */
    double visited;           /* ops visited so far */
    struct dnn_prog *current; /* owned: the program with the current drops */
    struct dnn_plan *plan;    /* owned: its lifetimes                   */
};

/* Call pitch() of the caller only once for each operand of the program: copies of an op
 * have the same result. */
static bool pitch(void *arg, const struct dnn_prog *prog, int op, bool out, int i)
{
    const struct work *w = arg;
    int o = w->origin == NULL ? op : w->origin[op];
    char *answer = &w->answer[w->start[o] + (out ? w->prog->op[o].nin : 0) + i];

    (void)prog;
    if (*answer == 0)
        *answer = w->caller->pitch(w->caller->arg, w->prog, o, out, i) ? 2 : 1;
    return *answer == 2;
}

/* The cost of recomputing v, with the values that are recomputed only for v. */
static double cost_of(struct work *w, int v)
{
    const struct dnn_op *op = &w->prog->op[w->prog->value[v].op];
    double cost = dnn_plan_cost(w->prog, op);

    if (w->recomputed[v] || w->mark[v] == w->marks) return 0;
    w->mark[v] = w->marks;
    for (int i = 0; i < op->nin; i++)
        if (op->in[i] != DNN_NONE && w->drop[op->in[i]]) cost += cost_of(w, op->in[i]);
    return cost;
}

static void mark_recomputed(struct work *w, int v)
{
    const struct dnn_op *op = &w->prog->op[w->prog->value[v].op];

    if (w->recomputed[v]) return;
    w->recomputed[v] = true;
    for (int i = 0; i < op->nin; i++)
        if (op->in[i] != DNN_NONE && w->drop[op->in[i]]) mark_recomputed(w, op->in[i]);
}

/* Find the values that are recomputed. */
static void find_recomputed(struct work *w)
{
    memset(w->recomputed, 0, (size_t)w->prog->nvalues * sizeof *w->recomputed);
    for (int o = w->prog->nforward; o < w->prog->nops; o++)
        for (int i = 0; i < w->prog->op[o].nin; i++) {
            int v = w->prog->op[o].in[i];

            if (v != DNN_NONE && w->drop[v]) mark_recomputed(w, v);
        }
}

static double work_of(const struct dnn_prog *prog)
{
    double cost = 0;

    for (int o = 0; o < prog->nops; o++)
        cost += dnn_plan_cost(prog, &prog->op[o]);
    return cost;
}

/* Plan with the current drops; accept them if the peak is at most limit and the cost at
 * most max_work. */
static bool try_drops(struct work *w, size_t limit)
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
                plan->peak <= limit && work_of(prog) <= w->max_work;

    if (!good) {
        dnn_plan_free(plan);
        dnn_prog_free(prog);
        w->origin = before;
        return false;
    }
    find_recomputed(w);
    dnn_plan_free(w->plan);
    dnn_prog_free(w->current);
    w->plan = plan;
    w->current = prog;
    return true;
}

/* Whether v is stored across the peak for later readers. */
static bool across_peak(const struct work *w, int v)
{
    const struct dnn_spot *s = &w->plan->spot[v];
    int peak_op = w->plan->peak_op;

    if (peak_op < 0 || w->last_forward[v] >= peak_op || s->last <= peak_op)
        return false;
    if (s->bytes < w->plan->peak / TINY_VALUE) return false;
    const struct dnn_op *op = &w->current->op[peak_op];
    for (int i = 0; i < op->nin; i++)
        if (op->in[i] == v) return false;
    return true;
}

/* The value to drop next; DNN_NONE: no more. */
static int pick_value(struct work *w)
{
    int best = DNN_NONE;
    double best_gain = 0;

    for (int v = 0; v < w->prog->nvalues; v++) {
        if (!w->candidate[v] || w->drop[v] || w->tries[v] >= TRIES ||
            w->tried[v] == w->round || !across_peak(w, v))
            continue;
        w->marks++;
        double gain = (double)w->plan->spot[v].bytes / (cost_of(w, v) + 1);
        if (gain <= best_gain) continue;
        best_gain = gain;
        best = v;
    }
    return best;
}

/* Drop values until the peak of temps is at most target. */
static void drop_some(struct work *w, size_t target)
{
    while (w->plan->peak > target && w->visited < max_visited) {
        int v = pick_value(w);

        if (v == DNN_NONE) break;
        w->drop[v] = true;
        if (try_drops(w, w->plan->peak)) {
            w->round++;
            continue;
        }
        w->drop[v] = false;
        w->tried[v] = w->round;
        w->tries[v]++;
    }
}

/* Undo drops that save nothing or little; the most expensive first. */
static void undo_drops(struct work *w, size_t target)
{
    size_t limit = w->plan->peak > target ? w->plan->peak : target;

    if (w->strategy.cheap) limit += limit / SMALL_GAIN;
    bool *checked = dnn_alloc((size_t)w->prog->nvalues + 1);

    for (;;) {
        int v = DNN_NONE;
        double highest = -1;

        for (int u = 0; u < w->prog->nvalues; u++) {
            if (!w->candidate[u] || !w->drop[u] || checked[u]) continue;
            double cost = dnn_plan_cost(w->prog, &w->prog->op[w->prog->value[u].op]);
            if (cost <= highest) continue;
            highest = cost;
            v = u;
        }
        if (v == DNN_NONE || w->visited > 2 * max_visited) break;
        checked[v] = true;
        w->drop[v] = false;
        if (!try_drops(w, limit)) w->drop[v] = true;
    }
    dnn_free(checked);
}

/* Find the values that can be recomputed.  Those that the backward pass does not read
 * are dropped from the start, so that they are not stored to recompute others; the
 * others are candidates. */
static void find_candidates(struct work *w)
{
    const struct dnn_prog *prog = w->prog;
    bool *is_read = dnn_alloc((size_t)prog->nvalues + 1);

    if (w->strategy.fresh) memset(w->drop, 0, (size_t)prog->nvalues * sizeof *w->drop);
    for (int o = prog->nforward; o < prog->nops; o++)
        for (int i = 0; i < prog->op[o].nin; i++)
            if (prog->op[o].in[i] != DNN_NONE) is_read[prog->op[o].in[i]] = true;
    for (int o = 0; o < prog->nforward; o++) {
        int v = prog->op[o].out[0];

        if (!dnn_plan_recomputable(prog, o, w->strategy.cheap)) continue;
        /* A view needs neither time nor memory. */
        if (!is_read[v] || dnn_op_info(prog->op[o].kind)->view)
            w->drop[v] = true;
        else
            w->candidate[v] = true;
    }
    for (int i = 0; i < w->opts.nkeep; i++)
        w->drop[w->opts.keep[i]] = w->candidate[w->opts.keep[i]] = false;
    memset(w->tries, 0, (size_t)prog->nvalues);
    w->round++;
    dnn_free(is_read);
}

static void init_work(struct work *w, const struct dnn_prog *prog,
                      const struct dnn_plan_opts *opts)
{
    struct dnn_arena *arena = dnn_arena_make();
    size_t n = (size_t)prog->nvalues + 1;

    *w = (struct work){
        .prog = prog,
        .caller = opts,
        .opts = *opts,
        .arena = arena,
        .start = dnn_arena_alloc(arena, ((size_t)prog->nops + 1) * sizeof *w->start),
        .drop = dnn_arena_alloc(arena, n * sizeof *w->drop),
        .candidate = dnn_arena_alloc(arena, n * sizeof *w->candidate),
        .recomputed = dnn_arena_alloc(arena, n * sizeof *w->recomputed),
        .mark = dnn_arena_alloc(arena, n * sizeof *w->mark),
        .last_forward = dnn_arena_alloc(arena, n * sizeof *w->last_forward),
        .tries = dnn_arena_alloc(arena, n * sizeof *w->tries),
        .tried = dnn_arena_alloc(arena, n * sizeof *w->tried),
        .max_work = (1 + max_added) * work_of(prog)};
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

/* A program, its memory and its cost. */
struct attempt {
    struct dnn_prog *prog; /* owned */
    size_t bytes;
    double work;
};

/* Within the limit lower cost is better, otherwise less memory. */
static bool better(const struct attempt *a, const struct attempt *b, size_t limit)
{
    if (a->bytes <= limit && b->bytes <= limit) return a->work < b->work;
    return a->bytes < b->bytes;
}

/* Drop values until all blocks need at most limit.  The result replaces *best if it is
 * better. */
static int descend(struct work *w, struct strategy strategy, size_t limit,
                   struct attempt *best, struct dnn_err *err)
{
    enum { ROUNDS = 4 };
    size_t bytes = 0, temps = 0, excess = 0;

    w->strategy = strategy;
    w->visited = 0;
    find_candidates(w);
    if (!try_drops(w, SIZE_MAX)) return 0;
    for (int i = 0; i < ROUNDS; i++) {
        DNN_TRY(bytes_of(w->current, &w->opts, &bytes, &temps, err));
        if (i > 0 && bytes <= limit) break;
        size_t fixed = bytes - temps + excess;
        size_t target = limit > fixed ? limit - fixed : 0;
        drop_some(w, target);
        undo_drops(w, target);
        DNN_TRY(bytes_of(w->current, &w->opts, &bytes, &temps, err));
        /* The packed temps are a little larger than the peak. */
        excess += bytes > limit ? bytes - limit : 0;
        if (limit == 0) break;
    }
    struct attempt result = {NULL, bytes, work_of(w->current)};
    if (!better(&result, best, limit)) return 0;
    dnn_prog_free(best->prog);
    result.prog = dnn_plan_rewrite(w->prog, w->drop, strategy.often, NULL);
    *best = result;
    return 0;
}

/* Run the strategies that drop all kinds of values; they start with the cheap drops. */
static int descend_all(struct work *w, size_t limit, struct attempt *best,
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

/* Compute the additional cost of the new program. */
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

    init_work(&w, prog, &opts->plan);
    int rc = bytes_of(prog, &w.opts, &sum.before, &temps, err);
    struct attempt best = {dnn_plan_rewrite(prog, w.drop, false, NULL), sum.before,
                           work_of(prog)};
    if (rc == 0 && any && temps >= opts->least)
        rc = descend(&w, (struct strategy){.cheap = true}, 0, &best, err);
    if (rc == 0 && any && more && best.bytes > limit)
        rc = descend_all(&w, limit, &best, err);
    dnn_plan_free(w.plan);
    dnn_prog_free(w.current);
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
