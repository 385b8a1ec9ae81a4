/* measure.c - FLOP, bytes and time of the ops of a program.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "engine/measure.h"

#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

static double count(const struct dnn_prog *prog, int value)
{
    const struct dnn_shape *shape = dnn_prog_shape(prog, value);
    double n = 1;

    for (int i = 0; i < shape->ndim; i++)
        n *= (double)shape->dim[i];
    return n;
}

double dnn_measure_flops(const struct dnn_prog *prog)
{
    double sum = 0;

    for (int o = 0; o < prog->nops; o++)
        sum += dnn_plan_flops(prog, &prog->op[o]);
    return sum;
}

static double bytes_of(const struct dnn_prog *prog, int value)
{
    return value == DNN_NONE ? 0
                             : count(prog, value) *
                                   (double)dnn_dtype_size(prog->value[value].is.dtype);
}

double dnn_measure_bytes(const struct dnn_prog *prog, int op)
{
    const struct dnn_op *o = &prog->op[op];
    double sum = 0;

    if (dnn_op_info(o->kind)->view) return 0;
    for (int i = 0; i < o->nin; i++)
        sum += bytes_of(prog, o->in[i]);
    for (int i = 0; i < o->nout; i++)
        sum += bytes_of(prog, o->out[i]);
    /* Operands changed in place are read and written. */
    if (o->kind == DNN_OP_UPDATE)
        for (int i = 0; i < o->nin; i++)
            if (i != 1) sum += bytes_of(prog, o->in[i]);
    return sum;
}

enum dnn_part dnn_measure_part(const struct dnn_prog *prog, int op)
{
    const struct dnn_op *o = &prog->op[op];

    if (o->kind == DNN_OP_UPDATE) return DNN_PART_UPDATE;
    if (o->pass == DNN_BWD_WEIGHTS) return DNN_PART_WEIGHTS;
    return o->pass == DNN_FWD && op < prog->nforward ? DNN_PART_FORWARD : DNN_PART_DATA;
}

static int by_seconds(const void *a, const void *b)
{
    const struct dnn_measure_row *x = a, *y = b;

    return x->all < y->all ? 1 : x->all > y->all ? -1 : 0;
}

static bool same(const struct dnn_measure_row *row, const char *name,
                 enum dnn_pass pass)
{
    if (row->pass != pass) return false;
    if (row->name == NULL || name == NULL) return row->name == name;
    return strcmp(row->name, name) == 0;
}

int dnn_measure_rows(const struct dnn_prog *prog, const double *seconds, bool kinds,
                     struct dnn_measure_row **out)
{
    struct dnn_measure_row *row = dnn_alloc(((size_t)prog->nops + 1) * sizeof *row);
    int n = 0;

    for (int o = 0; o < prog->nops; o++) {
        const struct dnn_op *op = &prog->op[o];
        const char *name = kinds ? dnn_op_info(op->kind)->name : op->layer;
        enum dnn_pass pass = kinds ? op->pass : DNN_FWD;
        int r = 0;

        while (r < n && !same(&row[r], name, pass))
            r++;
        if (r == n) row[n++] = (struct dnn_measure_row){.name = name, .pass = pass};
        row[r].ops++;
        row[r].seconds[dnn_measure_part(prog, o)] += seconds[o];
        row[r].all += seconds[o];
        row[r].flops += dnn_plan_flops(prog, &prog->op[o]);
        row[r].bytes += dnn_measure_bytes(prog, o);
    }
    qsort(row, (size_t)n, sizeof *row, by_seconds);
    *out = row;
    return n;
}
