/* planned.c - a network in the memory a plan gives it computes, bit for bit, what it
 * computes when every value has memory of its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "base/json.h"
#include "graph/graph.h"
#include "graph/zoo.h"
#include "ops/compare.h"
#include "plan/plan.h"
#include "run/exec.h"
#include "tap.h"

#include <stdlib.h>

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

    dnn_prog_from(p, name, 1, false);
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
    dnn_prog_from(p, "end", 1, false);
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

/* Values alive at the same op that lie in the same block must not touch. */
static int overlaps(const struct dnn_plan *plan)
{
    const struct dnn_prog *prog = plan->prog;
    int n = 0;

    for (int a = 0; a < prog->nvalues; a++)
        for (int b = 0; b < a; b++) {
            const struct dnn_spot *s = &plan->spot[a], *t = &plan->spot[b];
            bool fixed = s->block != DNN_BLOCK_TEMPS;

            if (s->base == t->base || s->block != t->block) continue;
            if (!fixed && (s->first > t->last || t->first > s->last)) continue;
            n += s->offset < t->offset + t->bytes && t->offset < s->offset + s->bytes;
        }
    return n;
}

static void check_plan(const struct dnn_plan *plan)
{
    const struct dnn_prog *prog = plan->prog;
    size_t sum = 0, apart = 0;
    int shared = 0;

    for (int v = 0; v < prog->nvalues; v++) {
        const struct dnn_spot *s = &plan->spot[v];

        if (prog->value[v].role == DNN_TEMP) sum += s->bytes;
        shared += s->base != v;
        if (prog->value[v].role == DNN_WEIGHT && prog->value[v].grad != DNN_NONE)
            apart += plan->spot[prog->value[v].grad].offset != s->offset;
    }
    is_int(overlaps(plan), 0, "nothing overlaps");
    is_int((long long)apart, 0, "gradients lie as their weights do");
    ok(shared > 2, "%d values share another's bytes", shared);
    ok(plan->bytes[DNN_BLOCK_TEMPS] < sum, "temps take %zu bytes, not %zu",
       plan->bytes[DNN_BLOCK_TEMPS], sum);
    ok(plan->bytes[DNN_BLOCK_TEMPS] >= plan->live, "and no less than is alive");
}

/* Bring the plain run to where the planned one begins. */
static void same_start(struct ops_run *plain, struct dnn_exec *exec,
                       const struct dnn_prog *prog)
{
    for (int v = 0; v < prog->nvalues; v++) {
        enum dnn_role role = prog->value[v].role;

        if (role == DNN_TEMP || role == DNN_CONSTANT) continue;
        int64_t n = ops_count(prog, v);
        double *wide = dnn_alloc((size_t)n * sizeof *wide);
        if (role == DNN_INPUT) {
            float *narrow = dnn_alloc((size_t)n * sizeof *narrow);

            ops_fill(wide, n, -1, 1, (uint64_t)v);
            ops_put(plain, v, wide);
            for (int64_t i = 0; i < n; i++)
                narrow[i] = (float)wide[i];
            dnn_exec_put(exec, v, narrow, NULL);
            dnn_free(narrow);
        } else {
            float *narrow = dnn_alloc((size_t)n * sizeof *narrow);

            dnn_exec_get(exec, v, narrow, NULL);
            for (int64_t i = 0; i < n; i++)
                wide[i] = (double)narrow[i];
            ops_put(plain, v, wide);
            dnn_free(narrow);
        }
        dnn_free(wide);
    }
}

/* How many elements of a value differ between the two. */
static int64_t differ(struct ops_run *plain, struct dnn_exec *exec, int v)
{
    int64_t n = ops_count(plain->prog, v), bad = 0;
    double *want = dnn_alloc((size_t)n * sizeof *want);
    float *got = dnn_alloc((size_t)n * sizeof *got);

    ops_get(plain, v, want);
    dnn_exec_get(exec, v, got, NULL);
    for (int64_t i = 0; i < n; i++)
        bad += (double)got[i] != want[i];
    dnn_free(want);
    dnn_free(got);
    return bad;
}

/* Plan prog, run it both ways, compare outputs, gradients and states. */
static void both(struct dnn_prog *prog, int y, int weights)
{
    const struct dnn_backend *ref = dnn_backend_find("ref", NULL);
    struct dnn_err err = {0};
    struct dnn_plan *plan = NULL;
    struct dnn_exec *exec = NULL;
    struct ops_run plain;

    if (prog->training) {
        int seed = dnn_prog_input(prog, "dy", DNN_F32, dnn_prog_shape(prog, y));
        struct dnn_grad_of of = {y, seed};

        dnn_grad(prog, 1, &of, false);
    }
    is_int(dnn_plan_make(prog, 1, &y, &plan, &err), 0, "planned");
    check_plan(plan);
    if (!ok(dnn_exec_open(plan, ref, 0, NULL, &exec, &err) == 0, "opened: %s",
            err.text))
        exit(1);
    is_int(dnn_exec_init(exec, 5, &err), 0, "weights are filled");
    ok(ops_start(prog, ref, NULL, &plain, &err) == 0, "the plain one too: %s",
       err.text);
    same_start(&plain, exec, prog);
    for (uint32_t step = 0; step < 2; step++) {
        plain.now.step = step;
        ops_go(&plain, 0, prog->nops, &err);
        is_int(dnn_exec_run(exec, 0, prog->nops, &plain.now, &err), 0, "a step");
    }
    is_int(differ(&plain, exec, y), 0, "the same output");
    int64_t bad = 0, seen = 0;
    for (int v = 0; v < prog->nvalues; v++) {
        int grad = prog->value[v].grad;

        if (prog->value[v].role == DNN_STATE) bad += differ(&plain, exec, v);
        if (prog->value[v].role != DNN_WEIGHT || grad == DNN_NONE) continue;
        bad += differ(&plain, exec, grad);
        seen++;
    }
    is_int(bad, 0, "the same gradients and moving averages");
    if (weights >= 0) is_int(seen, weights, "as many gradients as weights");
    ops_stop(&plain);
    dnn_exec_close(exec);
    dnn_plan_free(plan);
}

static void by_hand(bool training)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, training);
    int input, y = network(prog, &input);

    both(prog, y, training ? 9 : 0);
    dnn_prog_free(prog);
}

/* A network of the zoo, from its Keras text to its gradients. */
static void from_zoo(const char *name, int ndim, const int64_t *input, int64_t base,
                     int64_t depth)
{
    struct dnn_zoo_opts opts = dnn_zoo_defaults(name);
    struct dnn_json *json = NULL;
    struct dnn_graph *graph = NULL;
    struct dnn_err err = {0};
    char *text = NULL;
    int y = DNN_NONE;

    opts.base = base;
    opts.depth = depth;
    opts.input = (struct dnn_list){.count = ndim, .ints = input};
    int rc = dnn_zoo_text(&opts, &text, &err);
    if (rc == 0) rc = dnn_json_text(name, text, strlen(text), &json, &err);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(json);

        rc = dnn_graph_read_json(&top, NULL, &graph, &err);
    }
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, true);
    if (rc == 0) rc = dnn_graph_lower(graph, 2, prog, &y, &err);
    if (ok(rc == 0, "%s: %s", name, err.text)) both(prog, y, -1);
    dnn_prog_free(prog);
    dnn_graph_free(graph);
    dnn_json_free(json);
    dnn_free(text);
}

static void messages(void)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, false);
    struct dnn_plan *plan;
    struct dnn_err err = {0};
    struct dnn_shape huge = SHAPE((int64_t)1 << 31, (int64_t)1 << 31);
    char *text = NULL;
    size_t len;

    dnn_prog_from(prog, "vast", 1, false);
    dnn_prog_input(prog, "x", DNN_F32, &huge);
    is_int(dnn_plan_make(prog, 0, NULL, &plan, &err), DNN_ENOMEM, "beyond all memory");
    dnn_prog_free(prog);

    prog = dnn_prog_make(DNN_F32, false);
    int input, y = network(prog, &input);
    dnn_plan_make(prog, 1, &y, &plan, &err);
    FILE *f = open_memstream(&text, &len);
    dnn_plan_print(plan, f);
    fclose(f);
    ok(strncmp(text, "data ", 5) == 0 && strstr(text, "\nweights ") != NULL &&
           strstr(text, "\nall ") != NULL && strstr(text, "gradients") == NULL,
       "a line per block that is not empty");
    free(text);
    dnn_plan_free(plan);
    dnn_prog_free(prog);
}

int main(void)
{
    by_hand(false);
    by_hand(true);
    from_zoo("simplecnn", 3, (int64_t[]){12, 12, 1}, 0, 0);
    from_zoo("unet2d", 3, (int64_t[]){12, 8, 2}, 3, 2);
    from_zoo("unet3d", 4, (int64_t[]){4, 8, 4, 1}, 2, 2);
    from_zoo("mobilenetv2", 3, (int64_t[]){32, 32, 3}, 0, 0);
    messages();
    return done();
}
