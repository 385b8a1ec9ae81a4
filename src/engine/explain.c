/* explain.c - print ops with their kernels, memory and FLOP.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "engine/measure.h"
#include "engine/model.h"

#include "base/text.h"

#include <string.h>

const char *dnn_model_role_name(enum dnn_model_role role)
{
    static const char *const names[] = {"inference", "evaluation", "training"};

    return names[role];
}

/* Increase the width of a column to the length of a text. */
static void widen(int *width, const char *text)
{
    int len = (int)strlen(text);

    if (len > *width) *width = len;
}

static const char *layer_of(const struct dnn_op *op)
{
    return op->layer == NULL ? "-" : op->layer;
}

/* "conv", "conv + relu". */
static const char *name_of(char out[40], const struct dnn_op *op)
{
    snprintf(out, 40, "%s%s%s", dnn_op_info(op->kind)->name,
             op->post == NULL ? "" : " + ",
             op->post == NULL ? "" : dnn_op_unary_name(op->post->fn));
    return out;
}

static const char *kernel_of(const struct dnn_model *model, int o)
{
    const char *text = dnn_exec_describe(model->exec, o);

    return text == NULL ? "nothing to do" : text;
}

/* Shape of the first output, or of the value changed in place. */
static const char *shape_of(char *out, size_t size, const struct dnn_prog *prog,
                            const struct dnn_op *op)
{
    for (int i = 0; i < op->nout; i++)
        if (op->out[i] != DNN_NONE)
            return dnn_shape_text(out, size, dnn_prog_shape(prog, op->out[i]));
    return dnn_shape_text(out, size, dnn_prog_shape(prog, op->in[0]));
}

void dnn_model_print_steps(const struct dnn_model *model, FILE *where)
{
    const struct dnn_prog *prog = model->prog;
    int layer = 5, name = 2, shape = 6, kernel = 6;
    char text[DNN_SHAPE_TEXT], label[40];

    for (int o = 0; o < prog->nops; o++) {
        widen(&layer, layer_of(&prog->op[o]));
        widen(&name, name_of(label, &prog->op[o]));
        widen(&shape, shape_of(text, sizeof text, prog, &prog->op[o]));
        widen(&kernel, kernel_of(model, o));
    }
    fprintf(where, "steps\n  %-*s  %-*s  %-19s  %-*s  %-*s  %10s\n", layer, "layer",
            name, "op", "pass", shape, "result", kernel, "kernel", "MFLOP");
    for (int o = 0; o < prog->nops; o++) {
        const struct dnn_op *op = &prog->op[o];
        double flops = dnn_plan_flops(prog, op);

        if (o == prog->nforward && o > 0) fputc('\n', where);
        fprintf(where, "  %-*s  %-*s  %-19s", layer, layer_of(op), name,
                name_of(label, op), dnn_op_pass_name(op->pass));
        fprintf(where, "  %-*s", shape, shape_of(text, sizeof text, prog, op));
        fprintf(where, "  %-*s", flops > 0 ? kernel : 0, kernel_of(model, o));
        if (flops > 0) fprintf(where, "  %10.3f", flops / 1e6);
        fputc('\n', where);
    }
}

static void print_memory(const struct dnn_model *model, FILE *where)
{
    struct dnn_exec_bytes bytes = dnn_exec_bytes(model->exec);
    char text[32];

    fprintf(where, "\nmemory\n");
    dnn_plan_print(model->plan, where);
    if (model->original != NULL) dnn_plan_print_recompute(&model->recompute, where);
    fprintf(where, "workspace of steps: %s\n",
            dnn_text_bytes(text, sizeof text, (double)bytes.work));
    fprintf(where, "kept by steps: %s\n",
            dnn_text_bytes(text, sizeof text, (double)bytes.keep));
    fprintf(where, "predicted in all: %s (%zu bytes)\n",
            dnn_text_bytes(text, sizeof text, (double)bytes.all), bytes.all);
}

static void print_work(const struct dnn_model *model, FILE *where)
{
    const struct dnn_prog *prog = model->prog;
    double part[DNN_PARTS] = {0};

    for (int o = 0; o < prog->nops; o++)
        part[dnn_measure_part(prog, o)] += dnn_plan_flops(prog, &prog->op[o]);
    fprintf(where, "\nwork\n");
    fprintf(where, "forward: %.6g GFLOP\n", part[DNN_PART_FORWARD] / 1e9);
    if (!prog->training) return;
    fprintf(where, "backward, data: %.6g GFLOP\n", part[DNN_PART_DATA] / 1e9);
    fprintf(where, "backward, weights: %.6g GFLOP\n", part[DNN_PART_WEIGHTS] / 1e9);
    fprintf(where, "in all: %.6g GFLOP\n", dnn_measure_flops(prog) / 1e9);
}

void dnn_model_print_memory(const struct dnn_model *model, FILE *where)
{
    print_memory(model, where);
    print_work(model, where);
}
