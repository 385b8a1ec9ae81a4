/* print.c - how batches are cut, as text.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "replica/replica_impl.h"

#include "data/order.h"

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* The sizes of the micro-batches [from, to) of a batch: "2 of 3 samples, 1 of 2
 * samples". Equal sizes are consecutive, except empty ones. */
static void print_sizes(int64_t total, int micro_batches, int from, int to, FILE *where)
{
    int64_t first, n, next;

    if (from == to) fprintf(where, "none");
    for (int m = from, count = 0; m < to; m += count) {
        dnn_order_part(total, total, 0, m, micro_batches, &first, &n);
        for (count = 1; m + count < to; count++) {
            dnn_order_part(total, total, 0, m + count, micro_batches, &first, &next);
            if (next != n) break;
        }
        fprintf(where, "%s%d ", m == from ? "" : ", ", count);
        if (n == 0)
            fprintf(where, "empty");
        else
            fprintf(where, "of %lld sample%s", (long long)n, plural(n));
    }
}

void dnn_replica_print_cuts(const struct dnn_replica *replica,
                            const struct dnn_comm *comm, FILE *where)
{
    for (int role = DNN_MODEL_TRAIN; role >= 0; role--) {
        const struct dnn_replica_batches *b = &replica->cfg.batches[role];
        int micro_batches = replica->set[role].micro_batches, from, to;

        if (b->size == 0) continue;
        dnn_replica_own_range(comm, micro_batches, &from, &to);
        for (int i = 0; i < 2; i++) {
            int64_t total = i == 0 ? b->size : b->last;

            if (total == 0) continue;
            fprintf(where, "  %s, %s of %lld sample%s: %d micro-batch%s, of this rank ",
                    dnn_model_role_name((enum dnn_model_role)role),
                    i == 0 ? "batches" : "last batch", (long long)total, plural(total),
                    micro_batches, micro_batches == 1 ? "" : "es");
            print_sizes(total, micro_batches, from, to, where);
            fputc('\n', where);
        }
    }
}

int dnn_replica_parts(const struct dnn_replica *replica, enum dnn_model_role role)
{
    return replica->set[role].micro_batches;
}

const struct dnn_model *dnn_replica_nth_model(const struct dnn_replica *replica, int i)
{
    for (int role = DNN_MODEL_TRAIN; role >= 0; role--) {
        const struct replica_set *set = &replica->set[role];

        if (i < set->nmodels) return set->model[i].model;
        i -= set->nmodels;
    }
    return NULL;
}
