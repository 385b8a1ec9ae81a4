/* topo_gpu.c - which GPU a rank gets: visible, near, unused.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"
#include "unit/topo_cases.h"

enum { MAX_RANKS = 8 };

static const char *look(const void *arg, const char *name)
{
    (void)arg;
    (void)name;
    return NULL;
}

/* Map ranks with these masks and visible devices; the result is "number in the
 * process=number on the node" for each. */
static void is_gpus(const struct dnn_topo *topo, int n, const char *const *masks,
                    const char *const *visible, const char *want, const char *what)
{
    struct dnn_topo_request requests[MAX_RANKS];
    struct dnn_err err = {0};
    struct dnn_buf got = {0};

    for (int r = 0; r < n; r++) {
        struct dnn_slurm slurm = {.visible = visible == NULL ? NULL : visible[r]};

        dnn_topo_make_request(topo, DNN_BIND_AUTO, 0, (struct dnn_env){look, NULL},
                              &slurm, &requests[r], &err);
        requests[r].granted = set_of(masks[r]);
    }
    for (int r = 0; r < n; r++) {
        struct dnn_place p;

        dnn_topo_map(topo, requests, n, r, &p, &err);
        dnn_buf_add(&got, "%s%d=%d", r > 0 ? " " : "", p.gpu, p.gpu_on_node);
    }
    is_text(got.text, want, what);
    dnn_buf_free(&got);
}

#define LIST(...) ((const char *const[]){__VA_ARGS__})

static void test_one_socket(void)
{
    struct dnn_topo *topo;
    struct dnn_err err = {0};

    if (!ok(read_machine("gpus-one-socket.xml", &topo, &err) == 0, "record: %s",
            err.text))
        return;
    is_gpus(topo, 1, LIST("0-7"), NULL, "0=0", "a far one is better than none");
    is_gpus(topo, 2, LIST("0-7", "8-15"), NULL, "1=1 0=0",
            "the near rank chooses first");
    is_gpus(topo, 2, LIST("8-11", "12-15"), NULL, "0=0 1=1", "two near ranks");
    is_gpus(topo, 4, LIST("0-15", "0-15", "0-15", "0-15"), NULL, "0=0 1=1 0=0 1=1",
            "four ranks share two, evenly");
    is_gpus(topo, 2, LIST("8-11", "12-15"), LIST("1,0", "1,0"), "0=1 1=0",
            "the order of CUDA_VISIBLE_DEVICES");
    is_gpus(topo, 2, LIST("8-11", "12-15"), LIST("1", "0"), "0=1 0=0",
            "each rank with a device of its own");
    is_gpus(topo, 2, LIST("0-7", "8-15"), LIST("", "NoDevFiles"), "-1=-1 -1=-1",
            "none visible");
    is_gpus(topo, 2, LIST("8-15", "8-15"), LIST("0,7,1", "0,7,1"), "0=0 0=0",
            "an unknown number ends the list");
    is_gpus(topo, 1, LIST("0-7"), LIST("GPU-22222222"), "0=1",
            "by the start of a UUID");
    is_gpus(topo, 1, LIST("0-7"),
            LIST("GPU-22222222-aaaa-bbbb-cccc-000000000000,"
                 "GPU-11111111-aaaa-bbbb-cccc-000000000000"),
            "0=1", "by whole UUIDs");
    is_gpus(topo, 1, LIST("0-7"), LIST("GPU-3"), "-1=-1", "an unknown UUID");
    is_gpus(topo, 1, LIST("0-7"), LIST("GPU-"), "-1=-1", "an incomplete UUID");
    dnn_topo_close(topo);
}

static void test_per_numa(void)
{
    struct dnn_topo *topo;
    struct dnn_err err = {0};

    if (!ok(read_machine("gpu-per-numa.xml", &topo, &err) == 0, "record: %s", err.text))
        return;
    is_gpus(topo, 4, LIST("0-7", "0-7", "0-7", "0-7"), NULL, "1=1 0=0 3=3 2=2",
            "numbered along the bus, taken by NUMA node");
    is_gpus(topo, 2, LIST("0-1", "0-1"), NULL, "1=1 0=0",
            "then the same package, before the other one");
    is_gpus(topo, 3, LIST("4-5", "4-5", "0-3"), NULL, "3=3 2=2 0=0",
            "a rank over two NUMA nodes takes either");
    dnn_topo_close(topo);
}

int main(void)
{
    test_one_socket();
    test_per_numa();
    return done();
}
