/* comm_ops.c - every collective operation, with odd counts.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "ranks.h"

#include <stdlib.h>

static const int64_t counts[] = {0, 1, 3, 7, 1023, 70001};
enum { NCOUNTS = sizeof counts / sizeof counts[0], MOST = 70001 };

static void places(struct dnn_comm *comm, int rank, int size)
{
    int local = 0, before = 0;

    for (int r = 0; r < size; r++)
        if (strcmp(dnn_comm_host(comm, r), dnn_comm_host(comm, rank)) == 0) {
            local++;
            if (r < rank) before++;
        }
    all_ok(comm, strcmp(dnn_comm_kind(comm), "mpi") == 0, "auto is mpi here");
    all_ok(comm, dnn_comm_version(comm)[0] != '\0', "MPI has a version");
    all_ok(comm, dnn_comm_local_rank(comm) == before, "local rank");
    all_ok(comm, dnn_comm_local_size(comm) == local, "local size");
    all_ok(comm, dnn_comm_node(comm, 0) == 0, "rank 0 is on node 0");
    all_ok(comm, dnn_comm_node(comm, size - 1) < dnn_comm_nodes(comm), "nodes");
}

static void bytes(struct dnn_comm *comm, int rank, int size)
{
    unsigned char *buf = dnn_alloc(MOST), *all = dnn_alloc((size_t)size * MOST);

    for (int i = 0; i < NCOUNTS; i++) {
        size_t n = (size_t)counts[i];
        struct dnn_err err = {0};
        bool good = true;

        for (int root = 0; root < size; root++) {
            for (size_t k = 0; k < n; k++)
                buf[k] = (unsigned char)(rank == root ? k * 7 + (size_t)root : 255);
            good &= dnn_comm_bcast(comm, "bytes", buf, n, root, &err) == 0;
            for (size_t k = 0; k < n; k++)
                good &= buf[k] == (unsigned char)(k * 7 + (size_t)root);
        }
        all_ok(comm, good, "broadcast of %zu bytes from every rank", n);

        for (size_t k = 0; k < n; k++)
            buf[k] = (unsigned char)(k * 3 + (size_t)rank);
        good = dnn_comm_allgather(comm, "bytes", buf, n, all, &err) == 0;
        for (int r = 0; r < size; r++)
            for (size_t k = 0; k < n; k++)
                good &= all[(size_t)r * n + k] == (unsigned char)(k * 3 + (size_t)r);
        all_ok(comm, good, "all-gather of %zu bytes per rank", n);
    }
    dnn_free(buf);
    dnn_free(all);
}

/* Small whole numbers, so that sums are exact in every type. */
static double term(int rank, int64_t k)
{
    return (double)((rank + 1) * ((k % 11) - 5));
}

static double combined(enum dnn_comm_op op, int size, int64_t k)
{
    double all = term(0, k);

    for (int r = 1; r < size; r++) {
        double x = term(r, k);
        if (op == DNN_COMM_SUM)
            all += x;
        else if (op == DNN_COMM_MIN ? x < all : x > all)
            all = x;
    }
    return all;
}

static void put(void *buf, enum dnn_comm_type type, int64_t k, double x)
{
    if (type == DNN_COMM_I64)
        ((int64_t *)buf)[k] = (int64_t)x;
    else if (type == DNN_COMM_F64)
        ((double *)buf)[k] = x;
    else
        ((float *)buf)[k] = (float)x;
}

static double get(const void *buf, enum dnn_comm_type type, int64_t k)
{
    if (type == DNN_COMM_I64) return (double)((const int64_t *)buf)[k];
    if (type == DNN_COMM_F64) return ((const double *)buf)[k];
    return (double)((const float *)buf)[k];
}

static void reductions(struct dnn_comm *comm, int rank, int size)
{
    static const char *const types[] = {"i64", "f64", "f32"}, *const ops[] = {
                                                                  "sum", "min", "max"};
    void *buf = dnn_alloc(MOST * sizeof(double));

    for (int t = DNN_COMM_I64; t <= DNN_COMM_F32; t++)
        for (int o = DNN_COMM_SUM; o <= DNN_COMM_MAX; o++)
            for (int i = 0; i < NCOUNTS; i++) {
                struct dnn_err err = {0};

                for (int64_t k = 0; k < counts[i]; k++)
                    put(buf, (enum dnn_comm_type)t, k, term(rank, k));
                bool good = dnn_comm_allreduce(comm, "numbers", buf, counts[i],
                                               (enum dnn_comm_type)t,
                                               (enum dnn_comm_op)o, &err) == 0;
                for (int64_t k = 0; k < counts[i]; k++)
                    good &= get(buf, (enum dnn_comm_type)t, k) ==
                            combined((enum dnn_comm_op)o, size, k);
                all_ok(comm, good, "%s of %lld %s", ops[o], (long long)counts[i],
                       types[t]);
            }
    dnn_free(buf);
}

/* Invalid arguments are refused before anything is sent, so the next collective works.
 */
static void refusals(struct dnn_comm *comm, int size)
{
    struct dnn_err err = {0};
    char want[100], byte = 0;

    snprintf(want, sizeof want, "broadcast: root is %d; must be 0 to %d", size,
             size - 1);
    all_ok(comm,
           dnn_comm_bcast(comm, "x", &byte, 1, size, &err) == DNN_ECOMM &&
               strcmp(err.text, want) == 0,
           "a wrong root is refused");
    all_ok(comm, dnn_comm_barrier(comm, NULL, &err) == 0, "barrier without a name");
}

int main(void)
{
    struct dnn_comm_cfg cfg = {.deadline = 60};
    struct dnn_comm *comm;
    struct dnn_err err = {0};

    if (dnn_comm_open(&cfg, &comm, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    int rank = dnn_comm_rank(comm), size = dnn_comm_size(comm);
    places(comm, rank, size);
    bytes(comm, rank, size);
    reductions(comm, rank, size);
    refusals(comm, size);
    return all_done(comm);
}
