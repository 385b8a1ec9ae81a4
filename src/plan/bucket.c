/* bucket.c - gradient buckets of one flat vector, and when each is final.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "plan/plan.h"

#include <stdlib.h>

/* A gradient and the last op that writes it. */
struct part {
    size_t first, last; /* bytes of the block */
    int op;
};

static int by_offset(const void *a, const void *b)
{
    const struct part *x = a, *y = b;

    return x->first < y->first ? -1 : x->first > y->first;
}

static int last_writer(const struct dnn_prog *prog, int value)
{
    for (int o = prog->nops - 1; o >= 0; o--)
        for (int i = 0; i < prog->op[o].nout; i++)
            if (prog->op[o].out[i] == value) return o;
    return DNN_NONE;
}

static int find_parts(const struct dnn_plan *plan, struct part *part)
{
    int n = 0;

    for (int v = 0; v < plan->prog->nvalues; v++) {
        const struct dnn_spot *s = &plan->spot[v];

        if (s->block != DNN_BLOCK_GRADS || s->base != v || s->bytes == 0) continue;
        part[n++] =
            (struct part){s->offset, s->offset + s->bytes, last_writer(plan->prog, v)};
    }
    qsort(part, (size_t)n, sizeof *part, by_offset);
    return n;
}

int dnn_plan_buckets(const struct dnn_plan *plan, size_t bytes, struct dnn_bucket **out)
{
    struct part *part = dnn_alloc(((size_t)plan->prog->nvalues + 1) * sizeof *part);
    int nparts = find_parts(plan, part), n = 0;
    struct dnn_bucket *b = dnn_alloc(((size_t)nparts + 1) * sizeof *b);

    /* From the end: the last layers are final first, or nearly so. */
    for (int i = nparts - 1; i >= 0; i--) {
        if (n > 0 && b[n - 1].last - part[i].first <= bytes) {
            b[n - 1].first = part[i].first;
            if (part[i].op > b[n - 1].op) b[n - 1].op = part[i].op;
            continue;
        }
        b[n++] = (struct dnn_bucket){part[i].first, part[i].last, part[i].op};
    }
    dnn_free(part);
    for (int i = 1; i < n; i++)
        if (b[i].op < b[i - 1].op) b[i].op = b[i - 1].op;
    *out = b;
    return n;
}
