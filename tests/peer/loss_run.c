/* loss_run.c - the loss of an array and its gradient, in double precision.
 *
 *   loss_run DIR
 *
 * DIR/cases has a line for each case: NAME LABELS HEAD SHAPE JSON, where LABELS is 1 if
 * the targets are class numbers, and HEAD is the last activation of the network: none,
 * softmax, log_softmax or sigmoid.  Reads NAME.x (f64) and NAME.t (f64 or i32), writes
 * NAME.loss and NAME.dx.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "loss/loss.h"
#include "ops/compare.h"

#include <stdlib.h>
#include <string.h>

static struct dnn_err err;

struct one {
    char name[64], head[16], shape[64], json[512];
    int labels;
};

static int bytes(const char *dir, const struct one *one, const char *what, void *mem,
                 size_t size, bool put)
{
    char *path = dnn_format("%s/%s.%s", dir, one->name, what);
    FILE *f = fopen(path, put ? "wb" : "rb");
    size_t n = 0;

    if (f != NULL) n = put ? fwrite(mem, 1, size, f) : fread(mem, 1, size, f);
    if (f != NULL && fclose(f) != 0) n = 0;
    int rc = n == size ? 0 : dnn_fail(&err, DNN_EIO, "%s: not %zu bytes", path, size);
    dnn_free(path);
    return rc;
}

static int head(struct dnn_prog *prog, const char *name, int x)
{
    const union dnn_attr soft = {
        .softmax = {.axis = dnn_prog_shape(prog, x)->ndim - 1,
                    .log = strcmp(name, "log_softmax") == 0}
    };
    const union dnn_attr sigmoid = {.unary = {.fn = DNN_SIGMOID}};

    if (strcmp(name, "none") == 0) return x;
    if (strcmp(name, "sigmoid") == 0)
        return dnn_prog_op1(prog, DNN_OP_UNARY, &sigmoid, x);
    return dnn_prog_op1(prog, DNN_OP_SOFTMAX, &soft, x);
}

/* The loss of the input, differentiated; returns how many terms it has. */
static int program(const struct one *one, struct dnn_prog *prog, int *x, int *target,
                   const int **term)
{
    struct dnn_json *file;
    struct dnn_loss *made = NULL;
    struct dnn_shape shape;
    const double unit = 1;
    int of;

    DNN_TRY(dnn_json_text("loss", one->json, strlen(one->json), &file, &err));
    struct dnn_jobj top = dnn_json_top(file);
    int rc = dnn_loss_read(&top, &made, &err);
    dnn_json_free(file);
    if (rc == 0) rc = dnn_shape_parse(one->shape, &shape, &err);
    if (rc < 0) {
        dnn_loss_free(made);
        return rc;
    }
    *x = dnn_prog_input(prog, "x", DNN_F64, &shape);
    int y = head(prog, one->head, *x);
    const struct dnn_loss_net net = {
        .noutputs = 1,
        .output = &y,
        .name = (const char *const[]){"y"},
        .target_is = (const int[]){one->labels ? DNN_TARGET_LABELS : DNN_TARGET_VALUES},
        .batch = shape.dim[0],
        .total = shape.dim[0]};
    rc = dnn_loss_append(made, prog, &net, target, &of, term, &err);
    dnn_loss_free(made);
    if (rc < 0) return rc;
    int seed = dnn_prog_constant(prog, "one", &(struct dnn_shape){.ndim = 0}, &unit);
    struct dnn_grad_of *to = dnn_alloc((size_t)rc * sizeof *to);
    for (int i = 0; i < rc; i++)
        to[i] = (struct dnn_grad_of){(*term)[i], seed};
    dnn_grad(prog, rc, to, true);
    dnn_free(to);
    return rc;
}

static int run(const char *dir, const struct one *one, struct dnn_prog *prog)
{
    struct ops_run go;
    int x, target, terms = 0;
    const int *term;
    double sum = 0, value;

    DNN_TRY(terms = program(one, prog, &x, &target, &term));
    DNN_TRY(ops_start(prog, dnn_backend_find("ref", NULL), NULL, &go, &err));
    size_t n = (size_t)ops_count(prog, x) * sizeof(double);
    size_t m =
        (size_t)ops_count(prog, target) * dnn_dtype_size(prog->value[target].is.dtype);
    void *mem = dnn_alloc(n), *t = dnn_alloc(m);
    int rc = bytes(dir, one, "x", mem, n, false);
    if (rc == 0) rc = bytes(dir, one, "t", t, m, false);
    if (rc == 0) {
        memcpy(go.mem[x], mem, n);
        memcpy(go.mem[target], t, m);
        rc = ops_go(&go, 0, prog->nops, &err);
    }
    for (int i = 0; i < terms && rc == 0; i++) {
        ops_get(&go, term[i], &value);
        sum += value;
    }
    if (rc == 0) rc = bytes(dir, one, "loss", &sum, sizeof sum, true);
    if (rc == 0) rc = bytes(dir, one, "dx", go.mem[prog->value[x].grad], n, true);
    dnn_free(mem);
    dnn_free(t);
    ops_stop(&go);
    return rc;
}

int main(int argc, char **argv)
{
    struct one one;
    int rc = 0;

    if (argc != 2) return 2;
    char *path = dnn_format("%s/cases", argv[1]);
    FILE *f = fopen(path, "r");
    dnn_free(path);
    if (f == NULL) return 5;
    while (rc == 0 && fscanf(f, "%63s %d %15s %63s %511[^\n]", one.name, &one.labels,
                             one.head, one.shape, one.json) == 5) {
        struct dnn_prog *prog = dnn_prog_make(DNN_F64, true);

        rc = run(argv[1], &one, prog);
        dnn_prog_free(prog);
    }
    fclose(f);
    if (rc < 0) fprintf(stderr, "loss_run: %s: %s\n", one.name, err.text);
    return dnn_exit_status(rc);
}
