/* cpu_f64.c - dense layers in double precision: OpenBLAS against the reference loops.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "ops/compare.h"
#include "tap.h"

#include <stdlib.h>

static const struct dnn_init normal = {.kind = DNN_INIT_VARIANCE_SCALING,
                                       .a = 1,
                                       .mode = DNN_FAN_AVG,
                                       .dist = DNN_DIST_UNIFORM};

/* y = x w (+ b), and all gradients. */
static struct dnn_prog *dense(int64_t rows, int64_t k, int64_t n, bool bias, int *y)
{
    struct dnn_prog *p = dnn_prog_make(DNN_F64, true);
    struct dnn_shape x, w, b;

    dnn_shape_make(3, (int64_t[]){2, rows, k}, &x, NULL);
    dnn_shape_make(2, (int64_t[]){k, n}, &w, NULL);
    dnn_shape_make(1, (int64_t[]){n}, &b, NULL);
    dnn_prog_set_layer(p, "dense", 1, false);
    int in[] = {dnn_prog_input(p, "x", DNN_F64, &x),
                dnn_prog_weight(p, "kernel", &w, &normal),
                bias ? dnn_prog_input(p, "bias", DNN_F64, &b) : DNN_NONE};
    *y = dnn_prog_op(p, DNN_OP_MATMUL, NULL, bias ? 3 : 2, in);
    int seed = dnn_prog_input(p, "dy", DNN_F64, dnn_prog_shape(p, *y));
    dnn_grad(p, 1, &(struct dnn_grad_of){*y, seed}, true);
    return p;
}

static void fill(struct ops_run *run)
{
    for (int v = 0; v < run->prog->nvalues; v++) {
        enum dnn_role role = run->prog->value[v].role;
        int64_t n = ops_count(run->prog, v);
        double *host = dnn_alloc((size_t)n * sizeof *host);

        for (int64_t i = 0; i < n; i++)
            host[i] = (double)((i * 7919 + v * 131) % 1009) / 504.5 - 1;
        if (role == DNN_INPUT || role == DNN_WEIGHT) ops_put(run, v, host);
        dnn_free(host);
    }
}

static void compare(int64_t rows, int64_t k, int64_t n, bool bias)
{
    int y;
    struct dnn_prog *p = dense(rows, k, n, bias, &y);
    struct ops_run run[2];
    struct dnn_err err = {0};

    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "ref" : "cpu";

        if (!ok(ops_start(p, dnn_backend_find(name, &err), NULL, &run[i], &err) == 0,
                "%s can: %s", name, err.text))
            exit(1);
        fill(&run[i]);
        ops_go(&run[i], 0, p->nops, &err);
    }
    for (int o = 0; o < p->nops; o++) {
        int v = p->op[o].out[0];
        int64_t count = ops_count(p, v);
        double *want = dnn_alloc((size_t)count * sizeof *want);
        double *got = dnn_alloc((size_t)count * sizeof *got);

        ops_get(&run[0], v, want);
        ops_get(&run[1], v, got);
        struct ops_diff d = ops_compare(got, want, count);
        ok(d.worst < 1e-12, "%d x %d x %d%s, %s: %g", (int)rows, (int)k, (int)n,
           bias ? " + bias" : "", dnn_op_pass_name(p->op[o].pass), d.worst);
        dnn_free(want);
        dnn_free(got);
    }
    is_text(run[1].backend->describe(run[1].dev, run[1].kernel[0]), "dgemm",
            "OpenBLAS did it");
    ops_stop(&run[0]);
    ops_stop(&run[1]);
    dnn_prog_free(p);
}

int main(void)
{
    compare(1, 1, 1, false);
    compare(5, 7, 3, true);
    compare(33, 17, 40, false);
    compare(3, 100, 9, true);
    return done();
}
