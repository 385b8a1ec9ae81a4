/* optim_run.c - an optimizer on given gradients, for tests/peer/torch_optim.py.
 *
 * optim_run BACKEND f32|f64 COUNT STEPS JSON [RATE...]
 * Standard input: COUNT doubles, the weights; then STEPS times COUNT, the gradients.
 * Standard output: the weights after each step.  RATE: the learning rate of each step;
 * default: that of the optimizer.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "optim/optim.h"
#include "ops/compare.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct net {
    struct dnn_prog *prog; /* owned */
    int w, dy;
};

/* y = -w, so that the gradient of w is minus the given gradient of y. */
static struct net make(const struct dnn_optim *o, enum dnn_dtype dtype, int64_t n)
{
    static const struct dnn_init zeros = {.kind = DNN_INIT_ZEROS};
    const struct dnn_shape s = {1, {n}};
    struct net net = {.prog = dnn_prog_make(dtype, true)};
    const int *penalty;

    dnn_prog_set_layer(net.prog, "layer", 1, false);
    net.w = dnn_prog_weight(net.prog, "kernel", &s, &zeros);
    int y = dnn_prog_op1(net.prog, DNN_OP_UNARY,
                         &(union dnn_attr){.unary = {.fn = DNN_NEGATE}}, net.w);
    net.dy = dnn_prog_input(net.prog, "dy", dtype, &s);
    dnn_grad(net.prog, 1, &(struct dnn_grad_of){y, net.dy}, false);
    dnn_optim_append(net.prog, o, &penalty);
    return net;
}

static int read_optim(const char *text, struct dnn_optim *out, struct dnn_err *err)
{
    struct dnn_json *file;

    DNN_TRY(dnn_json_text("optimizer", text, strlen(text), &file, err));
    struct dnn_jobj top = dnn_json_top(file);
    int rc = dnn_optim_read(&top, out, err);
    dnn_json_free(file);
    return rc;
}

static int steps(struct ops_run *run, const struct net *net, int64_t n, int nsteps,
                 char **rates, double *buffer)
{
    struct dnn_err err;

    if (fread(buffer, sizeof *buffer, (size_t)n, stdin) != (size_t)n) return 1;
    ops_put(run, net->w, buffer);
    for (int t = 0; t < nsteps; t++) {
        if (fread(buffer, sizeof *buffer, (size_t)n, stdin) != (size_t)n) return 1;
        for (int64_t i = 0; i < n; i++)
            buffer[i] = -buffer[i];
        ops_put(run, net->dy, buffer);
        if (rates[0] != NULL) run->now.rate = atof(rates[t]);
        run->now.updates = (uint64_t)t + 1;
        if (ops_go(run, 0, net->prog->nops, &err) < 0) return 1;
        ops_get(run, net->w, buffer);
        if (fwrite(buffer, sizeof *buffer, (size_t)n, stdout) != (size_t)n) return 1;
    }
    return fflush(stdout) != 0;
}

int main(int argc, char **argv)
{
    struct dnn_optim optim;
    struct ops_run run;
    struct dnn_err err;

    if (argc < 6) return 2;
    enum dnn_dtype dtype = strcmp(argv[2], "f64") == 0 ? DNN_F64 : DNN_F32;
    int64_t n = atoll(argv[3]);
    const struct dnn_backend *backend = dnn_backend_find(argv[1], &err);
    if (backend == NULL || read_optim(argv[5], &optim, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 3;
    }
    struct net net = make(&optim, dtype, n);
    if (ops_start(net.prog, backend, NULL, &run, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 3;
    }
    run.now.rate = optim.rate;
    double *buffer = dnn_alloc((size_t)n * sizeof *buffer);
    int rc = steps(&run, &net, n, atoi(argv[4]), argv + 6, buffer);
    dnn_free(buffer);
    ops_stop(&run);
    dnn_prog_free(net.prog);
    return rc;
}
