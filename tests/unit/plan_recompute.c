/* plan_recompute.c - recomputing instead of storing: memory saved, ops that are never
 * recomputed, and the message if memory is not enough.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/json.h"
#include "fuse/fuse.h"
#include "graph/graph.h"
#include "graph/zoo.h"
#include "op/grad.h"
#include "plan/plan_impl.h"
#include "tap.h"
#include "unit/plan_check.h"

#include <stdlib.h>

static const double gb = 1e9;

static bool always(void *arg, const struct dnn_prog *prog, int op, bool out, int i)
{
    (void)arg, (void)prog, (void)op, (void)out, (void)i;
    return true;
}

/* Gradients and Adam's updates of everything. */
static void finish(struct dnn_prog *prog, int loss)
{
    const struct dnn_shape scalar = {.ndim = 0};
    const double one = 1;
    int seed = dnn_prog_constant(prog, "one", &scalar, &one);

    dnn_grad(prog, 1, &(struct dnn_grad_of){loss, seed}, false);
    for (int v = 0, n = prog->nvalues; v < n; v++) {
        const union dnn_attr adam = {.update = {.rule = DNN_UPDATE_ADAM}};
        int grad = prog->value[v].grad;

        if (prog->value[v].role != DNN_WEIGHT || grad == DNN_NONE) continue;
        int m = dnn_prog_slot(prog, "m", v), s = dnn_prog_slot(prog, "v", v);
        dnn_prog_op(prog, DNN_OP_UPDATE, &adam, 4, (int[]){v, grad, m, s});
    }
}

/* A fused training step of a network of the zoo. */
static struct dnn_prog *step_of(const char *name, int ndim, const int64_t *input,
                                int64_t batch, int *loss)
{
    struct dnn_zoo_opts opts = dnn_zoo_defaults(name);
    struct dnn_json *json = NULL;
    struct dnn_graph *graph = NULL;
    struct dnn_err err = {0};
    char *text = NULL;
    int y = DNN_NONE;

    opts.input = (struct dnn_list){.count = ndim, .ints = input};
    int rc = dnn_zoo_text(&opts, &text, &err);
    if (rc == 0) rc = dnn_json_text(name, text, strlen(text), &json, &err);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(json);

        rc = dnn_graph_read_json(&top, NULL, &graph, &err);
    }
    struct dnn_prog *raw = dnn_prog_make(DNN_F32, true);
    if (rc == 0) rc = dnn_graph_lower(graph, batch, raw, &y, &err);
    if (!ok(rc == 0, "%s: %s", name, err.text)) exit(1);
    int target = dnn_prog_target(raw, "t", DNN_F32, dnn_prog_shape(raw, y));
    *loss = dnn_prog_op2(raw, DNN_OP_MSE, &(union dnn_attr){.loss = {.scale = 1}}, y,
                         target);
    struct dnn_prog *prog = dnn_fuse(raw, 1, loss);
    finish(prog, *loss);
    dnn_prog_free(raw);
    dnn_graph_free(graph);
    dnn_json_free(json);
    dnn_free(text);
    return prog;
}

/* Recompute, plan, check; returns the result. */
static struct dnn_recomputed recompute(const struct dnn_prog *prog, int loss,
                                       enum dnn_recompute how, size_t limit)
{
    struct dnn_recompute_opts opts = {
        .plan = {.nkeep = 1, .keep = &loss, .pitch = always},
        .how = how,
        .limit = limit
    };
    struct dnn_recomputed what = {0};
    struct dnn_prog *out = NULL;
    struct dnn_plan *plan = NULL;
    struct dnn_err err = {0};
    int once = 0;

    if (!ok(dnn_plan_recompute(prog, &opts, &out, &what, &err) == 0 &&
                dnn_plan_make(out, &opts.plan, &plan, &err) == 0,
            "recompute %d: %s", how, err.text))
        exit(1);
    ok(plan_sound(plan) && dnn_plan_bytes(plan) == what.after,
       "%.3f GB instead of %.3f, %.1f %% more FLOPs, waste %.1f %%", what.after / gb,
       what.before / gb, 100 * what.extra / what.flops,
       100.0 * (double)(plan->bytes[DNN_BLOCK_TEMPS] - plan->peak) /
           (double)plan->peak);
    ok(plan->bytes[DNN_BLOCK_TEMPS] <= plan->peak + plan->peak / 20, "packed tightly");
    for (int o = prog->nforward; o < out->nops; o++) {
        enum dnn_op_kind kind = out->op[o].kind;

        once += kind == DNN_OP_BN_STATS || kind == DNN_OP_BN_UPDATE;
    }
    is_int(once, 0, "statistics are computed once");
    dnn_plan_free(plan);
    dnn_prog_free(out);
    return what;
}

/* The documented sizes of the 3D U-Net; only planned. */
static void unet(void)
{
    int loss;
    struct dnn_prog *prog =
        step_of("unet3d", 4, (int64_t[]){128, 128, 128, 1}, 1, &loss);
    struct dnn_recomputed none = recompute(prog, loss, DNN_RECOMPUTE_NEVER, 0);
    struct dnn_recomputed cheap = recompute(prog, loss, DNN_RECOMPUTE_CHEAP, 0);
    struct dnn_recomputed all = recompute(prog, loss, DNN_RECOMPUTE_ALL, 0);

    ok(none.ops == 0 && none.after == none.before, "no recomputation");
    ok(cheap.after < 1.35 * gb && cheap.extra <= 0 && cheap.added < 0.03 * cheap.cost,
       "128^3, without recomputing convolutions");
    ok(all.after < 0.8 * gb && all.extra < 0.15 * all.flops &&
           all.added < 0.2 * all.cost,
       "and with some convolutions");
    struct dnn_recomputed some = recompute(prog, loss, DNN_RECOMPUTE_AUTO, (size_t)gb);
    ok(some.after <= gb && some.added < all.added, "no more than the limit requires");
    struct dnn_recomputed wide =
        recompute(prog, loss, DNN_RECOMPUTE_AUTO, (size_t)(4 * gb));
    ok(wide.after == cheap.after && wide.extra <= 0, "nor if memory is enough");
    struct dnn_recomputed narrow = recompute(prog, loss, DNN_RECOMPUTE_AUTO, 1000);
    is_int((long long)narrow.after, (long long)all.after,
           "a limit that cannot be reached");
    dnn_prog_free(prog);

    prog = step_of("unet3d", 4, (int64_t[]){256, 256, 256, 1}, 1, &loss);
    cheap = recompute(prog, loss, DNN_RECOMPUTE_CHEAP, 0);
    ok(cheap.after < (size_t)12 << 30, "256^3 fits into 16 GiB");
    dnn_prog_free(prog);
}

/* A product whose weight is updated before its result is needed again. */
static void stale(bool early)
{
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, true);
    struct dnn_shape in =
                         {
                             .ndim = 2, .dim = {64, 32}
    },
                     k = in;
    struct dnn_init zeros = {.kind = DNN_INIT_ZEROS};

    k.dim[0] = k.dim[1] = 32;
    dnn_prog_set_layer(prog, "dense", 1, false);
    int x = dnn_prog_input(prog, "x", DNN_F32, &in);
    int w = dnn_prog_weight(prog, "w", &k, &zeros);
    int y = dnn_prog_op2(prog, DNN_OP_MATMUL, NULL, x, w);
    int dy = dnn_prog_input(prog, "dy", DNN_F32, &in);
    int z = dnn_prog_op1(prog, DNN_OP_UNARY,
                         &(union dnn_attr){.unary = {.fn = DNN_GELU}}, y);
    const union dnn_attr sgd = {.update = {.rule = DNN_UPDATE_SGD}};
    const struct dnn_tensor *like = &prog->value[y].is;
    struct dnn_op op = {
        .kind = DNN_OP_UNARY,
        .pass = DNN_BWD_DATA,
        .attr = {.unary = {.fn = DNN_GELU}},
        .nin = 2,
        .nout = 1,
        .in = (int[]){dy, y}
    };
    struct dnn_tensor copy = *like;

    like = &copy;
    prog->nforward = prog->nops;
    int dz = dnn_prog_append(prog, &op, &like);
    if (early) dnn_prog_op(prog, DNN_OP_UPDATE, &sgd, 2, (int[]){w, w});
    op.in = (int[]){dz, y};
    dnn_prog_append(prog, &op, &like);
    if (!early) dnn_prog_op(prog, DNN_OP_UPDATE, &sgd, 2, (int[]){w, w});
    bool *drop = dnn_alloc((size_t)prog->nvalues);
    drop[y] = true;
    struct dnn_prog *out = dnn_plan_rewrite(prog, drop, false, NULL);
    is_int(out == NULL ? 0 : out->nops - prog->nops, 1, "recomputed once");
    if (out != NULL) {
        ok(out->value[y].op == 0 && out->value[z].op == 1, "the forward part stays");
        is_int(out->op[3].in[1], prog->nvalues, "the backward part reads the new one");
    }
    dnn_prog_free(out);
    /* Now it is first needed after the update. */
    prog->op[2].in = (int[]){dy, z};
    out = dnn_plan_rewrite(prog, drop, false, NULL);
    ok((out == NULL) == early, "never with an updated weight");
    dnn_prog_free(out);
    dnn_free(drop);
    dnn_prog_free(prog);
}

static void refuses(const struct dnn_plan_memory *fit, const char *want)
{
    struct dnn_err err = {0};

    is_int(dnn_plan_check_memory(fit, &err), DNN_ENOMEM, "too much memory");
    is_text(err.text, want, "and its message");
}

static void fits(void)
{
    const size_t gib = (size_t)1 << 30;
    struct dnn_prog *prog = dnn_prog_make(DNN_F32, true);
    struct dnn_plan plan = {
        .prog = prog,
        .bytes = {[DNN_BLOCK_TEMPS] = 18 * gib,
                  [DNN_BLOCK_WEIGHTS] = gib / 2,
                  [DNN_BLOCK_SLOTS] = gib}
    };
    struct dnn_plan_memory fit = {
        .plan = &plan, .workspace = 2 * gib, .limit = 16 * gib, .batch = 16};

    refuses(&fit,
            "the training step needs 21.5 GiB (activations 18.0 GiB, weights and "
            "optimizer 1.5 GiB, workspace 2.0 GiB), but only 16.0 GiB is allowed; "
            "set a batch size of 8 instead of 16 (about 12.5 GiB)");
    fit.limit = 3 * gib;
    refuses(&fit, "the training step needs 21.5 GiB (activations 18.0 GiB, weights and "
                  "optimizer 1.5 GiB, workspace 2.0 GiB), but only 3.0 GiB is allowed; "
                  "reduce the input or the network");
    fit.limit = 22 * gib;
    is_int(dnn_plan_check_memory(&fit, NULL), 0, "enough");
    fit.shared[DNN_BLOCK_WEIGHTS] = true;
    fit.others = 2 * gib;
    refuses(&fit,
            "the training step needs 23.0 GiB (activations 18.0 GiB, weights and "
            "optimizer 1.0 GiB, workspace 2.0 GiB, other models 2.0 GiB), but only "
            "22.0 GiB is allowed; set a smaller batch size");
    dnn_prog_free(prog);
}

/* The same for a network, whose alternatives are computed. */
static void alternatives(void)
{
    int loss;
    struct dnn_prog *prog = step_of("unet3d", 4, (int64_t[]){32, 32, 32, 1}, 4, &loss);
    struct dnn_plan_opts opts = {.nkeep = 1, .keep = &loss, .pitch = always};
    struct dnn_plan *plan = NULL;
    struct dnn_err err = {0};

    dnn_plan_make(prog, &opts, &plan, NULL);
    struct dnn_plan_memory fit = {
        .plan = plan, .batch = 4, .plain = prog, .opts = &opts};
    fit.limit = dnn_plan_bytes(plan) - 1;
    dnn_plan_check_memory(&fit, &err);
    ok(strstr(err.text, "; set \"recompute\": true (") != NULL &&
           strstr(err.text, ") or a batch size of 2 instead of 4 (about ") != NULL,
       "two solutions: %s", err.text);
    fit.limit = dnn_plan_bytes(plan) / 3;
    fit.batch = 1;
    dnn_plan_check_memory(&fit, &err);
    ok(strstr(err.text, "; even with \"recompute\": true it needs ") != NULL,
       "or none: %s", err.text);
    dnn_plan_free(plan);
    dnn_prog_free(prog);
}

static void prints(void)
{
    int loss;
    struct dnn_prog *prog = step_of("unet2d", 3, (int64_t[]){16, 16, 1}, 1, &loss);
    struct dnn_plan_opts opts = {.nkeep = 1, .keep = &loss, .pitch = always};
    struct dnn_plan *plan = NULL;
    char *text = NULL;
    size_t len;

    dnn_plan_make(prog, &opts, &plan, NULL);
    FILE *f = open_memstream(&text, &len);
    dnn_plan_print(plan, f);
    dnn_plan_print_recompute(
        &(struct dnn_recomputed){3, 4 << 20, 3 << 20, 200, 10, 400, 80}, f);
    dnn_plan_print_recompute(&(struct dnn_recomputed){0}, f);
    fclose(f);
    ok(strncmp(text, "data ", 5) == 0 && strstr(text, "\nweights ") != NULL &&
           strstr(text, "\ntotal ") != NULL && strstr(text, "constants ") != NULL &&
           strstr(text, "'predictions'") != NULL &&
           strstr(text, "9 of 9 concatenations and slices need no copy") != NULL,
       "a line per block, the peak, concatenations");
    ok(strstr(text, "recompute  3 ops: 3.0 MiB instead of 4.0 MiB; 5.0 % more FLOPs, "
                    "about 20.0 % more time\nrecompute  no ops\n") != NULL,
       "what is recomputed");
    free(text);
    dnn_plan_free(plan);
    dnn_prog_free(prog);

    struct dnn_shape huge = {
        .ndim = 2, .dim = {(int64_t)1 << 31, (int64_t)1 << 31}
    };
    prog = dnn_prog_make(DNN_F32, false);
    dnn_prog_set_layer(prog, "vast", 1, false);
    dnn_prog_input(prog, "x", DNN_F32, &huge);
    opts.nkeep = 0;
    is_int(dnn_plan_make(prog, &opts, &plan, NULL), DNN_ENOMEM, "beyond all memory");
    dnn_prog_free(prog);
}

int main(void)
{
    unet();
    stale(false);
    stale(true);
    fits();
    alternatives();
    prints();
    return done();
}
