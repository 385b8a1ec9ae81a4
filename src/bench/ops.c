/* ops.c - speed of each op and pass, and its error compared with the ref backend.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/bench_impl.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "fuse/fuse.h"
#include "op/grad.h"

#include <math.h>
#include <omp.h>
#include <string.h>

static const double max_error = 1e-4;  /* maximum relative error of f32          */
static const double ref_flops = 1e9;   /* with more, the ref backend takes seconds */
static const double min_seconds = 0.1; /* minimum time of measuring a program    */

struct work {
    const struct dnn_bench_ops *cfg;
    const struct dnn_backend *backend, *ref;
    int threads, wrong, shown;
    double sgemm, copy;
    FILE *where;
};

/* A program on a device. */
struct run {
    const struct dnn_backend *backend;
    struct dnn_dev *dev;
    struct dnn_plan *plan;
    struct dnn_exec *exec;
    double *seconds; /* by op */
};

/* ---- the program ---- */

/* Differentiate the loss, or, without a loss, output y with an arbitrary gradient. */
static void differentiate(const struct dnn_ops_case *c, struct dnn_prog *prog, int y,
                          int loss)
{
    const struct dnn_shape scalar = {.ndim = 0};
    const double one = 1;
    int seed;

    if (c->flags & (DNN_CASE_MSE | DNN_CASE_XENT))
        seed = dnn_prog_constant(prog, "one", &scalar, &one);
    else
        seed = dnn_prog_input(prog, "seed", prog->dtype, dnn_prog_shape(prog, y));
    dnn_grad(prog, 1, &(struct dnn_grad_of){loss != DNN_NONE ? loss : y, seed}, true);
}

static int add_loss(const struct dnn_ops_case *c, struct dnn_prog *prog, int y)
{
    const union dnn_attr attr = {.loss = {.scale = 0.01}};
    struct dnn_shape shape = *dnn_prog_shape(prog, y);

    if (c->flags & DNN_CASE_MSE)
        return dnn_prog_op2(prog, DNN_OP_MSE, &attr, y,
                            dnn_prog_target(prog, "t", prog->dtype, &shape));
    if (!(c->flags & DNN_CASE_XENT)) return DNN_NONE;
    shape.ndim--;
    return dnn_prog_op2(prog, DNN_OP_XENT, &attr, y,
                        dnn_prog_target(prog, "t", DNN_I32, &shape));
}

/* Add penalties and updates of the weights, as an optimizer does. */
static void add_updates(struct dnn_prog *prog)
{
    const union dnn_attr adam = {
        .update = {
                   .rule = DNN_UPDATE_ADAM, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-7}
    };
    const union dnn_attr penalty = {
        .penalty = {0.1, 0.2}
    };
    int n = prog->nvalues;

    for (int v = 0; v < n; v++) {
        if (prog->value[v].role != DNN_WEIGHT || prog->value[v].grad == DNN_NONE)
            continue;
        int g = prog->value[v].grad;
        int m = dnn_prog_slot(prog, "m", v), s = dnn_prog_slot(prog, "v", v);
        dnn_prog_op1(prog, DNN_OP_PENALTY, &penalty, v);
        dnn_prog_op(prog, DNN_OP_UPDATE, &adam, 4, (int[]){v, g, m, s});
    }
}

static int program(const struct dnn_ops_case *c, bool full, struct dnn_prog **out,
                   struct dnn_err *err)
{
    bool training = !(c->flags & DNN_CASE_INFER);
    struct dnn_graph *graph = NULL;
    struct dnn_prog *prog;
    int64_t batch;
    int y[2] = {DNN_NONE, DNN_NONE};

    DNN_TRY(dnn_ops_graph(c, full, &graph, &batch, err));
    prog = dnn_prog_make(DNN_F32, training);
    int rc = dnn_graph_lower(graph, batch, prog, y, err);
    if (rc == 0) {
        y[1] = add_loss(c, prog, y[0]);
        if (c->flags & DNN_CASE_FUSED) {
            struct dnn_prog *fused = dnn_fuse(prog, y[1] == DNN_NONE ? 1 : 2, y);

            dnn_prog_free(prog);
            prog = fused;
        }
        if (training) differentiate(c, prog, y[0], y[1]);
        if (c->flags & DNN_CASE_UPDATE) add_updates(prog);
    }
    dnn_graph_free(graph);
    if (rc < 0) dnn_prog_free(prog);
    *out = rc < 0 ? NULL : prog;
    return rc;
}

/* ---- run ---- */

static int64_t count(const struct dnn_prog *prog, int v)
{
    int64_t n = 0;

    dnn_shape_count(dnn_prog_shape(prog, v), &n, NULL);
    return n;
}

static int fill(struct run *s, int v, struct dnn_err *err)
{
    const struct dnn_tensor *is = &s->plan->prog->value[v].is;
    struct dnn_rng rng = dnn_rng_make(3, (uint64_t)v);
    int64_t n = count(s->plan->prog, v);
    void *mem = dnn_alloc((size_t)n * dnn_dtype_size(is->dtype) + 1);

    for (int64_t i = 0; i < n; i++) {
        const struct dnn_rng_at at = {.index = (uint64_t)i};

        if (is->dtype == DNN_I32)
            ((int32_t *)mem)[i] = (int32_t)dnn_rng_below(&rng, at, 10);
        else
            ((float *)mem)[i] = (float)dnn_rng_normal(&rng, at);
    }
    int rc = dnn_exec_put(s->exec, v, mem, err);
    dnn_free(mem);
    return rc;
}

/* Start a program.  All results are kept, to be compared. */
static int start(const struct work *w, struct run *s, const struct dnn_prog *prog,
                 struct dnn_err *err)
{
    const struct dnn_device device = {
        .threads = w->threads, .kernels = (enum dnn_kernel_selection)w->cfg->kernels};
    int *keep = dnn_alloc(((size_t)prog->nvalues + 1) * sizeof *keep), n = 0;

    for (int v = 0; v < prog->nvalues; v++)
        if (prog->value[v].role == DNN_TEMP) keep[n++] = v;
    const struct dnn_plan_opts opts = {.nkeep = n, .keep = keep};
    int rc = dnn_plan_make(prog, &opts, &s->plan, err);
    dnn_free(keep);
    s->seconds = dnn_alloc(((size_t)prog->nops + 1) * sizeof *s->seconds);
    if (rc == 0) rc = s->backend->open(&device, &s->dev, err);
    if (rc == 0) rc = dnn_exec_make(s->plan, s->backend, s->dev, &s->exec, err);
    if (rc == 0) rc = dnn_exec_start(s->exec, err);
    if (rc == 0) rc = dnn_exec_init(s->exec, 5, err);
    for (int v = 0; v < prog->nvalues && rc == 0; v++)
        if (prog->value[v].role == DNN_INPUT || prog->value[v].role == DNN_TARGET)
            rc = fill(s, v, err);
    const struct dnn_now now = {.seed = 7, .rate = 1e-3, .updates = 1};
    if (rc == 0) rc = dnn_exec_profile(s->exec, 0, prog->nops, &now, s->seconds, err);
    return rc;
}

static void stop(struct run *s)
{
    dnn_exec_close(s->exec);
    if (s->dev != NULL) s->backend->close(s->dev);
    dnn_plan_free(s->plan);
    dnn_free(s->seconds);
}

/* Time each op: the fastest of several runs, without the first one, which was done
 * before. */
static int time_ops(struct run *s, struct dnn_err *err)
{
    int n = s->plan->prog->nops;
    double *one = dnn_alloc(((size_t)n + 1) * sizeof *one), all = 0;
    const struct dnn_now now = {.seed = 7, .rate = 1e-3, .updates = 1};
    int rc = 0;

    for (int i = 0; rc == 0 && i < 100 && (i < 5 || all < min_seconds); i++) {
        memset(one, 0, (size_t)n * sizeof *one);
        rc = dnn_exec_profile(s->exec, 0, n, &now, one, err);
        for (int o = 0; o < n; o++) {
            all += one[o];
            if (i == 0 || one[o] < s->seconds[o]) s->seconds[o] = one[o];
        }
    }
    dnn_free(one);
    return rc;
}

/* ---- compare ---- */

static double element(const void *mem, enum dnn_dtype dtype, int64_t i)
{
    switch (dtype) {
    case DNN_F32:
        return ((const float *)mem)[i];
    case DNN_F64:
        return ((const double *)mem)[i];
    case DNN_I32:
        return ((const int32_t *)mem)[i];
    case DNN_U16:
        return ((const uint16_t *)mem)[i];
    default:
        return ((const uint8_t *)mem)[i];
    }
}

/* The norm of the difference divided by the norm of the result of ref. */
static double relative_error(struct run *a, struct run *b, int v, struct dnn_err *err)
{
    const struct dnn_tensor *is = &a->plan->prog->value[v].is;
    int64_t n = count(a->plan->prog, v);
    size_t bytes = (size_t)n * dnn_dtype_size(is->dtype);
    void *x = dnn_alloc(bytes + 1), *y = dnn_alloc(bytes + 1);
    double diff = 0, norm = 0;

    if (dnn_exec_get(a->exec, v, x, err) < 0 || dnn_exec_get(b->exec, v, y, err) < 0)
        diff = INFINITY;
    for (int64_t i = 0; i < n; i++) {
        double p = element(x, is->dtype, i), q = element(y, is->dtype, i);

        diff += (p - q) * (p - q);
        norm += q * q;
    }
    dnn_free(x);
    dnn_free(y);
    diff = isnan(diff) ? INFINITY : sqrt(diff);
    return norm > 0 ? diff / sqrt(norm) : diff;
}

/* The largest error of the values that op o has computed or changed. */
static double op_error(struct run *a, struct run *b, int o, struct dnn_err *err)
{
    const struct dnn_op *op = &a->plan->prog->op[o];
    bool changes = op->kind == DNN_OP_UPDATE || op->kind == DNN_OP_BN_UPDATE;
    double max = 0;

    for (int i = 0; i < op->nout; i++)
        if (op->out[i] != DNN_NONE)
            max = fmax(max, relative_error(a, b, op->out[i], err));
    for (int i = 0; i < op->nin && changes; i++)
        if (op->in[i] != DNN_NONE)
            max = fmax(max, relative_error(a, b, op->in[i], err));
    return max;
}

/* ---- print ---- */

static void print_head(const struct work *w)
{
    fprintf(w->where,
            "threads %d, sgemm %.1f GFLOP/s, copy %.1f GB/s; fastest of several runs\n",
            w->threads, w->sgemm / 1e9, w->copy / 1e9);
    fprintf(w->where, "%-10s %-10s %-16s %-44s %9s %8s %7s %10s %9s %7s  %s\n", "op",
            "pass", "result", "kernel", "ms", "GFLOP/s", "GB/s", "of peak", "error",
            "x ref", "in");
}

static const char *const passes[DNN_PASSES] = {"forward", "data", "weights", "stats"};

struct row {
    const struct dnn_ops_case *c;
    const char *kernel;
    double ms, gflops, gbs, fraction; /* fraction of the peak */
    double error, ref;                /* negative: not compared */
    bool arithmetic; /* the peak is the speed of sgemm, else of a copy */
};

static void print_row(const struct work *w, const struct dnn_prog *prog, int o,
                      const struct row *r)
{
    const struct dnn_op *op = &prog->op[o];
    int v = op->out[0] != DNN_NONE ? op->out[0] : op->in[0];
    char shape[DNN_SHAPE_TEXT], fraction[24], error[24] = "-", ref[24] = "-";

    dnn_shape_text(shape, sizeof shape, dnn_prog_shape(prog, v));
    snprintf(fraction, sizeof fraction, "%.0f %% %s", 100 * r->fraction,
             r->arithmetic ? "sgemm" : "copy");
    if (r->error >= 0) snprintf(error, sizeof error, "%.1e", r->error);
    if (r->ref >= 0) snprintf(ref, sizeof ref, "%.1f", r->ref * 1e3 / r->ms);
    fprintf(w->where, "%-10s %-10s %-16s %-44s %9.4f %8.2f %7.2f %10s %9s %7s  %s%s\n",
            dnn_op_info(op->kind)->name, passes[op->pass], shape, r->kernel, r->ms,
            r->gflops, r->gbs, fraction, error, ref, r->c->what,
            r->error > max_error ? " WRONG" : "");
}

static void json_row(const struct work *w, const struct dnn_prog *prog, int o,
                     const struct row *r)
{
    const struct dnn_op *op = &prog->op[o];

    fprintf(w->where,
            "{\"case\": \"%s\", \"op\": \"%s\", \"pass\": \"%s\", \"kernel\": \"%s\", "
            "\"seconds\": %.6g, \"gflops\": %.5g, \"gbytes\": %.5g, \"bound\": \"%s\", "
            "\"fraction\": %.4g",
            r->c->what, dnn_op_info(op->kind)->name, passes[op->pass], r->kernel,
            r->ms / 1e3, r->gflops, r->gbs, r->arithmetic ? "sgemm" : "copy",
            r->fraction);
    if (r->error >= 0)
        fprintf(w->where, ", \"ref_seconds\": %.6g, \"error\": %.3g", r->ref,
                isinf(r->error) ? 1e300 : r->error);
    fprintf(w->where, "}\n");
}

/* ---- all ---- */

static bool wanted(const struct work *w, const struct dnn_op *op)
{
    return w->cfg->op == NULL || strcmp(dnn_op_info(op->kind)->name, w->cfg->op) == 0;
}

static void report(struct work *w, const struct dnn_ops_case *c, struct run *tested,
                   const double *error, const double *ref)
{
    const struct dnn_prog *prog = tested->plan->prog;

    for (int o = 0; o < prog->nops; o++) {
        const char *kernel = dnn_exec_describe(tested->exec, o);
        double t = tested->seconds[o], flops = dnn_plan_flops(prog, &prog->op[o]);

        if (kernel == NULL || !wanted(w, &prog->op[o]) || t <= 0) continue;
        struct row r = {.c = c,
                        .kernel = kernel,
                        .ms = t * 1e3,
                        .gflops = flops / t / 1e9,
                        .gbs = dnn_measure_bytes(prog, o) / t / 1e9,
                        .error = error == NULL ? -1 : error[o],
                        .ref = ref == NULL ? -1 : ref[o]};
        double math = flops / t / w->sgemm, traffic = r.gbs * 1e9 / w->copy;
        r.arithmetic = math >= traffic;
        r.fraction = r.arithmetic ? math : traffic;
        if (r.error > max_error) w->wrong++;
        w->shown++;
        (w->cfg->json ? json_row : print_row)(w, prog, o, &r);
    }
}

static int compare(struct work *w, struct run *tested, double *error, double *ref,
                   struct dnn_err *err)
{
    const struct dnn_prog *prog = tested->plan->prog;
    struct run reference = {.backend = w->ref};
    int rc = start(w, &reference, prog, err);

    for (int o = 0; o < prog->nops && rc == 0; o++) {
        error[o] = op_error(tested, &reference, o, err);
        ref[o] = reference.seconds[o];
    }
    stop(&reference);
    return rc;
}

static int try_case(struct work *w, const struct dnn_ops_case *c, struct dnn_err *err)
{
    struct run tested = {.backend = w->backend};
    struct dnn_prog *prog;
    bool any = false;

    DNN_TRY(program(c, w->cfg->full, &prog, err));
    for (int o = 0; o < prog->nops; o++)
        any = any || wanted(w, &prog->op[o]);
    double *error = dnn_alloc(((size_t)prog->nops + 1) * sizeof *error);
    double *ref = dnn_alloc(((size_t)prog->nops + 1) * sizeof *ref);
    bool check = dnn_measure_flops(prog) < ref_flops;
    int rc = any ? start(w, &tested, prog, err) : 0;
    if (any && rc == 0 && check) rc = compare(w, &tested, error, ref, err);
    if (any && rc == 0) rc = time_ops(&tested, err);
    if (any && rc == 0) report(w, c, &tested, check ? error : NULL, check ? ref : NULL);
    stop(&tested);
    dnn_free(error);
    dnn_free(ref);
    dnn_prog_free(prog);
    return rc < 0 ? dnn_prefix(err, "%s: ", c->what) : 0;
}

static int check_kind(const char *op, struct dnn_err *err)
{
    struct dnn_choice kinds[DNN_OP_KINDS + 1] = {0};
    int found;

    if (op == NULL) return 0;
    for (int k = 0; k < DNN_OP_KINDS; k++)
        kinds[k] = (struct dnn_choice){dnn_op_info((enum dnn_op_kind)k)->name, k};
    if (dnn_choice_find(kinds, op, &found, err) < 0) return dnn_prefix(err, "--op: ");
    return 0;
}

int dnn_bench_ops(const struct dnn_bench_ops *cfg, FILE *where, struct dnn_err *err)
{
    struct work w = {.cfg = cfg,
                     .where = where,
                     .threads =
                         cfg->threads > 0 ? (int)cfg->threads : omp_get_max_threads()};

    DNN_TRY(check_kind(cfg->op, err));
    DNN_TRY(dnn_model_backend(cfg->backend, &w.backend, err));
    DNN_TRY(dnn_model_backend("ref", &w.ref, err));
    w.sgemm = dnn_bench_sgemm(w.threads);
    w.copy = dnn_bench_copy(w.threads);
    if (!cfg->json) print_head(&w);
    for (const struct dnn_ops_case *c = dnn_ops_cases; c->what != NULL; c++)
        DNN_TRY(try_case(&w, c, err));
    if (w.wrong > 0)
        return dnn_fail(err, DNN_EDEVICE,
                        "%d of %d ops on backend %s have an error above %g against "
                        "backend ref",
                        w.wrong, w.shown, w.backend->name, max_error);
    return 0;
}
