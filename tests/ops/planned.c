/* planned.c - a network in planned memory gives bitwise the same result as with
 * separate memory for every value: with concatenations in place or copied, and with
 * values stored or recomputed.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/json.h"
#include "base/mem.h"
#include "fuse/fuse.h"
#include "graph/graph.h"
#include "graph/zoo.h"
#include "ops/compare.h"
#include "plan/plan.h"
#include "engine/exec.h"
#include "tap.h"
#include "unit/plan_check.h"

#include <stdlib.h>

/* Number of allocations, if they can be counted. */
static long allocations;
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) &&                            \
    !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define COUNTED 1
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);

void *malloc(size_t bytes)
{
    allocations++;
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    allocations++;
    return __libc_calloc(n, bytes);
}
#else
#define COUNTED 0
#endif

static const struct dnn_init glorot = {.kind = DNN_INIT_VARIANCE_SCALING,
                                       .a = 1,
                                       .mode = DNN_FAN_AVG,
                                       .dist = DNN_DIST_UNIFORM};
static const struct dnn_init zeros = {.kind = DNN_INIT_ZEROS};
static const struct dnn_init ones = {.kind = DNN_INIT_ONES};

static struct dnn_shape shape(int ndim, const int64_t *dim)
{
    struct dnn_shape s = {0};

    if (dnn_shape_make(ndim, dim, &s, NULL) < 0) abort();
    return s;
}
#define SHAPE(...)                                                                     \
    shape((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                   \
          (int64_t[]){__VA_ARGS__})

static int conv(struct dnn_prog *p, const char *name, int x, int64_t m, bool norm)
{
    struct dnn_op_window win = {
        2, {3, 3},
         {1, 1},
         {1, 1},
         {1, 1},
         {1, 1},
         1
    };
    struct dnn_shape k = SHAPE(3, 3, dnn_prog_dim(p, x, -1), m), c = SHAPE(m);

    dnn_prog_set_layer(p, name, 1, false);
    int w = dnn_prog_weight(p, "kernel", &k, &glorot);
    int y = dnn_prog_op2(p, DNN_OP_CONV, &(union dnn_attr){.window = win}, x, w);
    if (norm) {
        struct dnn_op_batchnorm bn = {.axis = 3, .epsilon = 1e-3, .momentum = 0.9};

        y = dnn_prog_batchnorm(p, &bn, p->training, y,
                               dnn_prog_weight(p, "gamma", &c, &ones),
                               dnn_prog_weight(p, "beta", &c, &zeros),
                               dnn_prog_state(p, "moving_mean", &c, &zeros),
                               dnn_prog_state(p, "moving_variance", &c, &ones));
    } else {
        y = dnn_prog_op2(p, DNN_OP_BIAS, NULL, y,
                         dnn_prog_weight(p, "bias", &c, &zeros));
    }
    struct dnn_op_unary relu = {.fn = DNN_RELU, .max_value = 1e30};
    return dnn_prog_op1(p, DNN_OP_UNARY, &(union dnn_attr){.unary = relu}, y);
}

/* A small U with a skip, batch norm, dropout, and a dense end. */
static int network(struct dnn_prog *p, int *input)
{
    struct dnn_shape in = SHAPE(2, 8, 6, 3), flat = SHAPE(2, 8 * 6 * 4);
    struct dnn_op_pool pool = {
        .win = {2, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, 1},
          .fn = DNN_POOL_MAX
    };
    struct dnn_op_upsample up = {
        2, {2, 2},
         DNN_UP_NEAREST
    };

    *input = dnn_prog_input(p, "image", p->dtype, &in);
    int skip = conv(p, "c1", *input, 5, true);
    int x = dnn_prog_op1(p, DNN_OP_POOL, &(union dnn_attr){.pool = pool}, skip);
    x = conv(p, "c2", x, 7, false);
    x = dnn_prog_op1(p, DNN_OP_UPSAMPLE, &(union dnn_attr){.upsample = up}, x);
    x = dnn_prog_op2(p, DNN_OP_CONCAT, &(union dnn_attr){.concat = {.axis = 3}}, skip,
                     x);
    x = conv(p, "c3", x, 4, true);
    dnn_prog_set_layer(p, "end", 1, false);
    if (p->training)
        x = dnn_prog_op1(p, DNN_OP_NOISE,
                         &(union dnn_attr){
                             .noise = {.fn = DNN_DROPOUT, .rate = 0.3}
        },
                         x);
    x = dnn_prog_op1(p, DNN_OP_RESHAPE, &(union dnn_attr){.reshape = {flat}}, x);
    struct dnn_shape k = SHAPE(8 * 6 * 4, 3);
    x = dnn_prog_op2(p, DNN_OP_MATMUL, NULL, x,
                     dnn_prog_weight(p, "dense", &k, &glorot));
    return dnn_prog_op1(p, DNN_OP_SOFTMAX, &(union dnn_attr){.softmax = {.axis = 1}},
                        x);
}

/* Repeated concatenations with x, as in dense blocks; a part that is used twice, and
 * one that is a view. */
static int dense_network(struct dnn_prog *p)
{
    struct dnn_shape in = SHAPE(2, 4, 6, 3), flat = SHAPE(2, 4, 6, 3);
    const union dnn_attr join = {.concat = {.axis = 3}};
    const union dnn_attr tanh = {.unary = {.fn = DNN_TANH}};
    int image = dnn_prog_input(p, "image", p->dtype, &in);
    int x = conv(p, "d0", image, 4, true), side = DNN_NONE;

    for (int i = 0; i < 3; i++) {
        char name[] = {'d', (char)('1' + i), '\0'};
        int y = conv(p, name, x, 2 + i, i != 1);

        if (i == 1) y = dnn_prog_op1(p, DNN_OP_UNARY, &tanh, y);
        x = dnn_prog_op2(p, DNN_OP_CONCAT, &join, x, y);
        /* An op that could overwrite a part that is still in use. */
        if (i == 2) side = dnn_prog_op1(p, DNN_OP_UNARY, &tanh, y);
    }
    int view = dnn_prog_op1(p, DNN_OP_UNARY, &tanh, image);
    view = dnn_prog_op1(p, DNN_OP_RESHAPE, &(union dnn_attr){.reshape = {flat}}, view);
    int twice = conv(p, "d4", x, 4, false);
    twice = dnn_prog_op2(p, DNN_OP_COMBINE, NULL, side, twice);
    x = dnn_prog_op(p, DNN_OP_CONCAT, &join, 4, (int[]){twice, x, view, twice});
    return conv(p, "d5", x, 2, true);
}

/* ---- planned and unplanned ---- */

/* A program, with gradients if it is for training, and its run without a plan. */
struct trial {
    const char *name;
    struct dnn_prog *prog;
    struct ops_run plain;
    int nkeep;
    int keep[64]; /* values to compare in addition to gradients and states */
    bool started;
    bool large; /* few settings are enough */
};

struct setting {
    const char *parts;
    bool (*pitch)(void *arg, const struct dnn_prog *prog, int op, bool out, int i);
    enum dnn_recompute how;
};

/* A device that supports a pitch for some ops and not for others. */
static bool sometimes(void *arg, const struct dnn_prog *prog, int op, bool out, int i)
{
    const struct dnn_op *is = &prog->op[op];
    uint32_t x = (uint32_t)(is->kind * 64 + is->pass * 16 + i * 2 + out);

    (void)arg;
    for (const char *c = is->layer; c != NULL && *c != '\0'; c++)
        x = x * 31 + (unsigned char)*c;
    return x * 2654435761u >> 30 != 0;
}

static void put_inputs(struct dnn_exec *exec, struct trial *t)
{
    for (int v = 0; v < t->prog->nvalues; v++) {
        enum dnn_role role = t->prog->value[v].role;

        if (role != DNN_INPUT && role != DNN_TARGET) continue;
        int64_t n = ops_count(t->prog, v);
        double *wide = dnn_alloc((size_t)n * sizeof *wide);
        float *narrow = dnn_alloc((size_t)n * sizeof *narrow);
        ops_fill(wide, n, -1, 1, (uint64_t)v);
        for (int64_t i = 0; i < n; i++)
            narrow[i] = (float)wide[i];
        if (!t->started) ops_put(&t->plain, v, wide);
        dnn_exec_put(exec, v, narrow, NULL);
        dnn_free(narrow);
        dnn_free(wide);
    }
}

/* Two steps without a plan, from the initial weights of the planned run. */
static void run_plain(struct trial *t, struct dnn_exec *exec)
{
    for (int v = 0; v < t->prog->nvalues; v++) {
        enum dnn_role role = t->prog->value[v].role;

        if (role != DNN_WEIGHT && role != DNN_STATE) continue;
        int64_t n = ops_count(t->prog, v);
        double *wide = dnn_alloc((size_t)n * sizeof *wide);
        float *narrow = dnn_alloc((size_t)n * sizeof *narrow);
        dnn_exec_get(exec, v, narrow, NULL);
        for (int64_t i = 0; i < n; i++)
            wide[i] = (double)narrow[i];
        ops_put(&t->plain, v, wide);
        dnn_free(narrow);
        dnn_free(wide);
    }
    for (uint32_t step = 0; step < 2; step++) {
        t->plain.now.step = step;
        ops_go(&t->plain, 0, t->prog->nops, NULL);
    }
    t->started = true;
}

/* How many elements of a value differ between the two. */
static int64_t differ(struct trial *t, struct dnn_exec *exec, int v)
{
    int64_t n = ops_count(t->prog, v), bad = 0;
    double *want = dnn_alloc((size_t)n * sizeof *want);
    void *got = dnn_alloc((size_t)n * sizeof(double));
    bool wide = t->prog->value[v].is.dtype == DNN_F64;

    ops_get(&t->plain, v, want);
    dnn_exec_get(exec, v, got, NULL);
    for (int64_t i = 0; i < n; i++)
        bad += (wide ? ((double *)got)[i] : (double)((float *)got)[i]) != want[i];
    dnn_free(want);
    dnn_free(got);
    return bad;
}

static void compare(struct trial *t, struct dnn_exec *exec)
{
    int64_t bad = 0, seen = 0;

    for (int i = 0; i < t->nkeep; i++)
        bad += differ(t, exec, t->keep[i]);
    is_int(bad, 0, "the same outputs");
    bad = 0;
    for (int v = 0; v < t->prog->nvalues; v++) {
        const struct dnn_value *value = &t->prog->value[v];

        if (value->role == DNN_STATE || value->role == DNN_WEIGHT)
            bad += differ(t, exec, v);
        if (value->role != DNN_WEIGHT || value->grad == DNN_NONE) continue;
        bad += differ(t, exec, value->grad);
        seen++;
    }
    ok(bad == 0 && (seen > 0 || !t->prog->training),
       "the same weights, %lld gradients and moving averages", (long long)seen);
}

/* Run it as planned, and compare. */
static void run_planned(struct trial *t, const struct dnn_plan *plan,
                        const struct dnn_exec_pitch_arg *on)
{
    struct dnn_exec *exec = NULL;
    struct dnn_err err = {0};
    int bad = 0;

    if (!ok(dnn_exec_make(plan, on->backend, on->dev, &exec, &err) == 0, "possible: %s",
            err.text) ||
        !ok(dnn_exec_start(exec, &err) == 0, "started: %s", err.text))
        exit(1);
    bad += dnn_exec_init(exec, 5, &err);
    put_inputs(exec, t);
    if (!t->started) run_plain(t, exec);
    long before = allocations;
    for (uint32_t step = 0; step < 2; step++) {
        t->plain.now.step = step;
        bad += dnn_exec_run(exec, 0, plan->prog->nops, &t->plain.now, &err);
    }
    long after = allocations;
    is_int(bad, 0, "two steps");
    if (COUNTED) is_int(after - before, 0, "no allocations during the steps");
    compare(t, exec);
    dnn_exec_close(exec);
}

/* Plan it with one setting; returns the bytes of temps. */
static size_t run_setting(struct trial *t, struct setting setting,
                          const struct dnn_exec_pitch_arg *on, int *again)
{
    struct dnn_err err = {0};
    struct dnn_recompute_opts opts = {
        .plan = {.nkeep = t->nkeep, .keep = t->keep, .arg = (void *)on},
        .how = setting.how
    };
    struct dnn_prog *prog = NULL;
    struct dnn_plan *plan = NULL;
    struct dnn_recomputed what;

    opts.plan.pitch = setting.pitch;
    printf("# %s, parts %s, recompute %d\n", t->name, setting.parts, setting.how);
    if (!ok(dnn_plan_recompute(t->prog, &opts, &prog, &what, &err) == 0 &&
                dnn_plan_make(prog, &opts.plan, &plan, &err) == 0,
            "planned: %s", err.text))
        exit(1);
    ok(plan_sound(plan),
       "nothing overlaps, and gradients have the offsets of their weights");
    is_int((long long)dnn_plan_bytes(plan), (long long)what.after,
           "it takes the planned memory");
    run_planned(t, plan, on);
    size_t temps = plan->bytes[DNN_BLOCK_TEMPS];
    *again = what.ops;
    dnn_plan_free(plan);
    dnn_prog_free(prog);
    return temps;
}

static void every_way(struct trial *t)
{
    static const struct setting settings[] = {
        {"copied",   NULL,           DNN_RECOMPUTE_NEVER},
        {"in place", dnn_exec_pitch, DNN_RECOMPUTE_NEVER},
        {"mixed",    sometimes,      DNN_RECOMPUTE_NEVER},
        {"copied",   NULL,           DNN_RECOMPUTE_CHEAP},
        {"in place", dnn_exec_pitch, DNN_RECOMPUTE_CHEAP},
        {"copied",   NULL,           DNN_RECOMPUTE_ALL  },
        {"in place", dnn_exec_pitch, DNN_RECOMPUTE_ALL  },
        {"mixed",    sometimes,      DNN_RECOMPUTE_ALL  },
    };
    enum { SETTINGS = sizeof settings / sizeof settings[0] };
    size_t n = t->prog->training ? SETTINGS : 3;
    struct dnn_exec_pitch_arg on = {.backend = dnn_backend_find("ref", NULL)};
    struct dnn_err err = {0};
    size_t temps[SETTINGS] = {0};
    int again[SETTINGS] = {0};

    on.backend->open(&(struct dnn_device){0}, &on.dev, &err);
    if (!ok(ops_start(t->prog, on.backend, NULL, &t->plain, &err) == 0,
            "without a plan: %s", err.text))
        exit(1);
    for (size_t i = 0; i < n; i++)
        if (!t->large || i == 1 || i == 6)
            temps[i] = run_setting(t, settings[i], &on, &again[i]);
    if (t->prog->training && !t->large)
        ok(temps[4] <= temps[1] && temps[6] <= temps[4] && again[0] == 0,
           "temporary memory %zu; recompute cheap (%d ops) %zu, all (%d ops) %zu",
           temps[1], again[4], temps[4], again[6], temps[6]);
    ops_stop(&t->plain);
    on.backend->close(on.dev);
}

/* Test a forward program: fused or not, with loss, gradients and updates. */
static void try_out(const char *name, struct dnn_prog *prog, int y, bool fuse)
{
    struct trial t = {.name = name, .prog = prog, .large = prog->nops > 300};

    t.keep[t.nkeep++] = y;
    if (prog->training) {
        const struct dnn_shape *shape = dnn_prog_shape(prog, y);
        int target = dnn_prog_target(prog, "target", DNN_F32, shape);

        t.keep[t.nkeep++] = dnn_prog_op2(
            prog, DNN_OP_MSE, &(union dnn_attr){.loss = {.scale = 0.5}}, y, target);
    }
    if (fuse) {
        t.prog = prog = dnn_fuse(prog, t.nkeep, t.keep);
    } else {
        /* Parts in place are read row by row. */
        for (int o = 0; o < prog->nops && t.nkeep < 8; o++)
            if (prog->op[o].kind == DNN_OP_CONCAT)
                t.keep[t.nkeep++] = prog->op[o].in[o % 2];
    }
    if (prog->training) {
        const struct dnn_shape scalar = {.ndim = 0};
        const double one = 1;
        int seed = dnn_prog_constant(prog, "one", &scalar, &one);

        dnn_grad(prog, 1, &(struct dnn_grad_of){t.keep[1], seed}, false);
    }
    every_way(&t);
    if (fuse) dnn_prog_free(prog);
}

static void by_hand(bool training, bool dense, bool fuse)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, training);
    int input, y = dense ? dense_network(prog) : network(prog, &input);

    try_out(dense ? "dense" : "by hand", prog, y, fuse);
    dnn_prog_free(prog);
}

/* A network of the zoo, from its Keras text to its gradients. */
static void from_zoo(const char *name, int ndim, const int64_t *input, int64_t base,
                     int64_t depth, int norm, bool fuse)
{
    struct dnn_zoo_opts opts = dnn_zoo_defaults(name);
    struct dnn_json *json = NULL;
    struct dnn_graph *graph = NULL;
    struct dnn_err err = {0};
    char *text = NULL;
    int y = DNN_NONE;

    opts.base = base;
    opts.depth = depth;
    opts.norm = norm;
    opts.input = (struct dnn_list){.count = ndim, .ints = input};
    int rc = dnn_zoo_text(&opts, &text, &err);
    if (rc == 0) rc = dnn_json_text(name, text, strlen(text), &json, &err);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(json);

        rc = dnn_graph_read_json(&top, NULL, &graph, &err);
    }
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, true);
    if (rc == 0) rc = dnn_graph_lower(graph, 2, prog, &y, &err);
    if (ok(rc == 0, "%s: %s", name, err.text)) try_out(name, prog, y, fuse);
    dnn_prog_free(prog);
    dnn_graph_free(graph);
    dnn_json_free(json);
    dnn_free(text);
}

int main(void)
{
    for (int fuse = 0; fuse < 2; fuse++) {
        by_hand(false, false, fuse);
        by_hand(true, false, fuse);
        by_hand(false, true, fuse);
        by_hand(true, true, fuse);
    }
    from_zoo("simplecnn", 3, (int64_t[]){12, 12, 1}, 0, 0, 0, true);
    from_zoo("unet2d", 3, (int64_t[]){12, 8, 2}, 3, 2, DNN_ZOO_NORM_GROUP, true);
    from_zoo("unet3d", 4, (int64_t[]){4, 8, 4, 1}, 2, 2, 0, false);
    from_zoo("unet3d", 4, (int64_t[]){4, 8, 4, 1}, 2, 2, 0, true);
    from_zoo("mobilenetv2", 3, (int64_t[]){32, 32, 3}, 0, 0, 0, true);
    return done();
}
