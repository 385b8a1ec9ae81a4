/* print.c - print a plan: memory per purpose, and the lower bound.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "plan/plan_impl.h"

#include "base/text.h"

static const char *const block_names[DNN_BLOCKS] = {
    "data", "weights", "gradients", "optimizer", "states", "constants", "temps"};

static void print_peak(const struct dnn_plan *plan, FILE *where)
{
    char text[32];

    fprintf(where, "; peak of live temps %s",
            dnn_text_bytes(text, sizeof text, (double)plan->peak));
    if (plan->peak_op < 0) return;
    const struct dnn_op *op = &plan->prog->op[plan->peak_op];
    fprintf(where, " (op %d, %s %s", plan->peak_op, dnn_op_info(op->kind)->name,
            dnn_op_pass_name(op->pass));
    if (op->layer != NULL) fprintf(where, " of layer '%s'", op->layer);
    fputc(')', where);
}

void dnn_plan_print(const struct dnn_plan *plan, FILE *where)
{
    char text[32];
    int idle = 0, concats = 0;

    for (int b = 0; b < DNN_BLOCKS; b++)
        if (plan->bytes[b] > 0)
            fprintf(where, "%-10s %10s\n", block_names[b],
                    dnn_text_bytes(text, sizeof text, (double)plan->bytes[b]));
    fprintf(where, "%-10s %10s", "total",
            dnn_text_bytes(text, sizeof text, (double)dnn_plan_bytes(plan)));
    if (plan->peak > 0) print_peak(plan, where);
    fputc('\n', where);
    for (int o = 0; o < plan->prog->nops; o++)
        if (plan->prog->op[o].kind == DNN_OP_CONCAT) {
            concats++;
            idle += dnn_plan_idle(plan, o);
        }
    if (concats > 0)
        fprintf(where, "%-10s %d of %d concatenations and slices need no copy\n",
                "in place", idle, concats);
}

void dnn_plan_print_recompute(const struct dnn_recomputed *what, FILE *where)
{
    char before[32], after[32];

    if (what->ops == 0) {
        fprintf(where, "%-10s no ops\n", "recompute");
        return;
    }
    fprintf(
        where,
        "%-10s %d ops: %s instead of %s; %.1f %% more FLOPs, about %.1f %% more time\n",
        "recompute", what->ops,
        dnn_text_bytes(after, sizeof after, (double)what->after),
        dnn_text_bytes(before, sizeof before, (double)what->before),
        what->flops > 0 ? 100 * what->extra / what->flops : 0,
        what->cost > 0 ? 100 * what->added / what->cost : 0);
}
