/* bucket.c - gradient buckets of the flat gradient vector, and the op after which each
 * is final.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "plan/plan.h"

#include <stdlib.h>

/* A gradient and the last op that writes it. */
struct grad {
    size_t first, last; /* bytes of the block */
    int op;
};

static int by_offset(const void *a, const void *b)
{
    const struct grad *x = a, *y = b;

    return x->first < y->first ? -1 : x->first > y->first;
}

static int last_writer(const struct dnn_prog *prog, int value)
{
    for (int o = prog->nops - 1; o >= 0; o--)
        for (int i = 0; i < prog->op[o].nout; i++)
            if (prog->op[o].out[i] == value) return o;
    return DNN_NONE;
}

static int find_grads(const struct dnn_plan *plan, struct grad *grad)
{
    int n = 0;

    for (int v = 0; v < plan->prog->nvalues; v++) {
        const struct dnn_spot *s = &plan->spot[v];

        if (s->block != DNN_BLOCK_GRADS || s->base != v || s->bytes == 0) continue;
        grad[n++] =
            (struct grad){s->offset, s->offset + s->bytes, last_writer(plan->prog, v)};
    }
    qsort(grad, (size_t)n, sizeof *grad, by_offset);
    return n;
}

int dnn_plan_buckets(const struct dnn_plan *plan, size_t bytes, struct dnn_bucket **out)
{
    struct grad *grad = dnn_alloc(((size_t)plan->prog->nvalues + 1) * sizeof *grad);
    int ngrads = find_grads(plan, grad), n = 0;
    struct dnn_bucket *b = dnn_alloc(((size_t)ngrads + 1) * sizeof *b);

    /* From the end: the gradients of the last layers are final first, approximately. */
    for (int i = ngrads - 1; i >= 0; i--) {
        if (n > 0 && b[n - 1].last - grad[i].first <= bytes) {
            b[n - 1].first = grad[i].first;
            if (grad[i].op > b[n - 1].op) b[n - 1].op = grad[i].op;
            continue;
        }
        b[n++] = (struct dnn_bucket){grad[i].first, grad[i].last, grad[i].op};
    }
    dnn_free(grad);
    for (int i = 1; i < n; i++)
        if (b[i].op < b[i - 1].op) b[i].op = b[i - 1].op;
    *out = b;
    return n;
}
