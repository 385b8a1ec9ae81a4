/* topo_map.c - the cores of each rank, on described machines.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"
#include "unit/topo_cases.h"

enum { MAX_RANKS = 16 };

/* Places as text: "package:numas:cores:pus:thread pus" per rank, spaces between. */
static char *map_all(const struct dnn_topo *topo,
                     const struct dnn_topo_request *requests, int n)
{
    struct dnn_buf out = {0};

    for (int r = 0; r < n; r++) {
        struct dnn_place p;
        struct dnn_err err = {0};

        if (dnn_topo_map(topo, requests, n, r, &p, &err) < 0) {
            dnn_buf_add(&out, "%s", err.text);
            break;
        }
        dnn_buf_add(&out, "%s%d:", r > 0 ? " " : "", p.package);
        dnn_topo_list(&out, &p.numas);
        dnn_buf_add(&out, ":");
        dnn_topo_list(&out, &p.cores);
        dnn_buf_add(&out, ":");
        dnn_topo_list(&out, &p.pus);
        dnn_buf_add(&out, ":");
        for (int t = 0; t < p.threads; t++)
            dnn_buf_add(&out, "%s%d", t > 0 ? "," : "", p.pu[t]);
    }
    char *text = dnn_strdup(out.text);
    dnn_buf_free(&out);
    return text;
}

/* Ranks that share one mask. */
static const struct {
    const char *what, *machine, *mask;
    int ranks, threads;
    const char *want;
} shared[] = {
    {"alone on one PU",                                  "pu:1",                      "0",    1, 0, "-1:0:0:0:0"                      },
    {"alone: one thread per core, siblings in the mask", "pack:1 core:2 pu:2",        "0-3",  1,
     0,                                                                                             "0:0:0-1:0-3:0,2"                 },
    {"siblings if requested",                            "pack:1 core:2 pu:2",        "0-3",  1, 4, "0:0:0-1:0-3:0,2,1,3"             },
    {"more threads than that take turns",                "pack:1 core:2 pu:2",        "0-3",  1, 5,
     "0:0:0-1:0-3:0,2,1,3,0"                                                                                                          },
    {"two ranks, two packages",                          "pack:2 core:2 pu:1",        "0-3",  2, 0,
     "0:0:0-1:0-1:0,1 1:0:2-3:2-3:2,3"                                                                                                },
    {"only what was granted",                            "pack:2 [numa] core:4 pu:1", "2-5",  2, 0,
     "0:0:2-3:2-3:2,3 1:1:4-5:4-5:4,5"                                                                                                },
    {"half cores stay half",                             "core:2 pu:2",               "1,2",  2, 0, "-1:0:0:1:1 -1:0:1:2:2"           },
    {"five ranks on two packages",                       "pack:2 [numa] core:4 pu:1", "0-7",  5, 0,
     "0:0:0-1:0-1:0,1 0:0:2-3:2-3:2,3 1:1:4-5:4-5:4,5 1:1:6:6:6 1:1:7:7:7"                                                            },
    {"extras go where they avoid crossing",              "pack:2 [numa] core:5 pu:1", "0-9",  4, 0,
     "0:0:0-2:0-2:0,1,2 0:0:3-4:3-4:3,4 1:1:5-7:5-7:5,6,7 1:1:8-9:8-9:8,9"                                                            },
    {"an uneven grant",                                  "pack:2 [numa] core:4 pu:1", "1-7",  3, 0,
     "0:0:1-3:1-3:1,2,3 1:1:4-5:4-5:4,5 1:1:6-7:6-7:6,7"                                                                              },
    {"three ranks on 8 NUMA nodes",                      "pack:2 numa:4 core:4 pu:1", "0-31", 3, 1,
     "0:0-2:0-10:0-10:0 -1:2-5:11-21:11-21:11 1:5-7:22-31:22-31:22"                                                                   },
    {"few threads stay on one NUMA node",                "pack:2 [numa] core:3 pu:1", "1-5",  1, 3,
     "-1:0-1:1-5:1-5:3,4,5"                                                                                                           },
    {"more ranks than cores take turns on siblings",     "core:2 pu:2",               "0-3",  4, 0,
     "-1:0:0:0-1:0 -1:0:0:0-1:1 -1:0:1:2-3:2 -1:0:1:2-3:3"                                                                            },
    {"three ranks on one PU",                            "pu:1",                      "0",    3, 0, "-1:0:0:0:0 -1:0:0:0:0 -1:0:0:0:0"},
};

static void test_shared(void)
{
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        struct dnn_topo_request requests[MAX_RANKS];
        struct dnn_topo *topo;
        struct dnn_err err = {0};

        if (!ok(dnn_topo_make(shared[i].machine, &topo, &err) == 0, "%s: %s",
                shared[i].machine, err.text))
            continue;
        for (int r = 0; r < shared[i].ranks; r++) {
            requests[r] = card_of(shared[i].mask, 0);
            requests[r].threads = shared[i].threads;
            requests[r].want =
                shared[i].threads > 0 ? DNN_WANT_THREADS : DNN_WANT_CORES;
        }
        char *got = map_all(topo, requests, shared[i].ranks);
        is_text(got, shared[i].want, shared[i].what);
        dnn_free(got);
        dnn_topo_close(topo);
    }
}

static void is_map(const struct dnn_topo *topo, const struct dnn_topo_request *requests,
                   int n, const char *want, const char *what)
{
    char *got = map_all(topo, requests, n);

    is_text(got, want, what);
    dnn_free(got);
}

static void test_own_masks(void)
{
    struct dnn_topo *topo;
    struct dnn_err err = {0};
    struct dnn_topo_request requests[4];

    dnn_topo_make("pack:2 [numa] core:4 pu:2", &topo, &err);
    requests[0] = card_of("0-7", 0);
    requests[1] = card_of("8-15", 0);
    is_map(topo, requests, 2, "0:0:0-3:0-7:0,2,4,6 1:1:4-7:8-15:8,10,12,14",
           "disjoint masks are kept");
    requests[1] = card_of("4-11", 0);
    is_map(topo, requests, 2, "0:0:0-3:0-7:0,2,4,6 -1:0-1:2-5:4-11:4,6,8,10",
           "overlapping masks are kept too");
    requests[1] = card_of("0-7", 0);
    requests[2] = card_of("8-11", 0);
    requests[3] = card_of("0-7", 0);
    strcpy(requests[3].host, "n2");
    is_map(topo, requests, 4,
           "0:0:0-1:0-3:0,2 0:0:2-3:4-7:4,6 1:1:4-5:8-11:8,10 0:0:0-3:0-7:0,2,4,6",
           "only ranks of the same host with the same mask divide it");
    requests[0] = card_of("12-20", 0);
    is_map(topo, requests, 1, "1:1:6-7:12-15:12,14", "a mask larger than the machine");
    requests[0] = card_of("16-20", 0);
    is_map(topo, requests, 1,
           "rank 0 on n1: none of its granted CPUs exists on this machine",
           "a mask of another machine");
    dnn_topo_close(topo);
}

static void test_policies(void)
{
    struct dnn_topo *topo;
    struct dnn_err err = {0};
    struct dnn_topo_request requests[2];

    dnn_topo_make("pack:1 core:2 pu:2", &topo, &err);
    for (int policy = DNN_BIND_INHERIT; policy <= DNN_BIND_OFF; policy++) {
        requests[0] = card_of("0-3", 0);
        requests[0].policy = policy;
        requests[1] = requests[0];
        is_map(topo, requests, 2, "0:0:0-1:0-3:-1,-1 0:0:0-1:0-3:-1,-1",
               policy == DNN_BIND_INHERIT
                   ? "inherit keeps the whole mask, no thread pinned"
                   : "off likewise");
    }
    dnn_topo_close(topo);
}

/* Slurm counts hardware threads where a core has two. */
static void test_cpus(void)
{
    static const struct {
        int cpus;
        const char *want;
    } cases[] = {
        {4,  "0:0:0-3:0-7:0,2"    },
        {3,  "0:0:0-3:0-7:0,2"    },
        {8,  "0:0:0-3:0-7:0,2,4,6"},
        {12, "0:0:0-3:0-7:0,2,4,6"},
        {1,  "0:0:0-3:0-7:0"      },
    };
    struct dnn_topo *topo;
    struct dnn_err err = {0};

    dnn_topo_make("pack:1 core:4 pu:2", &topo, &err);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dnn_topo_request request = card_of("0-7", 0);

        request.want = DNN_WANT_CPUS;
        request.threads = cases[i].cpus;
        is_map(topo, &request, 1, cases[i].want,
               "cpus per task -> threads on whole cores");
    }
    dnn_topo_close(topo);
}

static void test_hybrid(void)
{
    struct dnn_topo *topo;
    struct dnn_err err = {0};
    struct dnn_topo_request requests[3];
    struct dnn_place p;

    if (!ok(read_machine("hybrid.xml", &topo, &err) == 0, "hybrid.xml: %s", err.text))
        return;
    requests[0] = requests[1] = requests[2] = card_of("0-7", 0);
    is_map(topo, requests, 3, "0:0:0-1:0-3:0,2 0:0:2-3:4-5:4,5 0:0:4-5:6-7:6,7",
           "large and small cores are treated alike");
    requests[0].want = DNN_WANT_THREADS;
    requests[0].threads = 8;
    is_map(topo, requests, 1, "0:0:0-5:0-7:0,2,4,5,6,7,1,3",
           "second PUs where there are any");
    dnn_topo_map(topo, requests, 1, 0, &p, &err);
    is_int((long long)(p.local_memory >> 30), 16, "local memory");
    is_int((long long)(p.total_memory >> 30), 16, "total memory");
    is_int(p.gpu, -1, "no GPU");
    dnn_topo_close(topo);
}

/* A virtual machine with two cores of an AMD EPYC, written by lstopo. */
static void test_recorded(void)
{
    struct dnn_topo *topo;
    struct dnn_err err = {0};
    struct dnn_topo_request requests[3];

    if (!ok(read_machine("epyc-vm.xml", &topo, &err) == 0, "epyc-vm.xml: %s", err.text))
        return;
    requests[0] = requests[1] = requests[2] = card_of("0-1", 0);
    is_map(topo, requests, 1, "0:0:0-1:0-1:0,1", "one rank has both cores");
    is_map(topo, requests, 2, "0:0:0:0:0 0:0:1:1:1", "two ranks have one each");
    dnn_topo_close(topo);
}

static void test_errors(void)
{
    struct dnn_topo *topo = NULL;
    struct dnn_err err = {0};

    is_int(dnn_topo_make("pack:x", &topo, &err), DNN_EUSAGE, "a bad description");
    is_text(err.text, "hwloc cannot parse \"pack:x\"", "... its message");
    is_int(dnn_topo_read("no/such.xml", &topo, &err), DNN_EUSAGE, "no such record");
    is_text(err.text, "hwloc cannot parse no/such.xml", "... its message");
    is_int(dnn_topo_make("core:2049 pu:1", &topo, &err), DNN_EUSAGE, "a huge machine");
    is_text(
        err.text,
        "this machine has hardware thread 2048; this build supports numbers below 2048",
        "... its message");
    dnn_topo_close(NULL);
}

int main(void)
{
    test_shared();
    test_own_masks();
    test_policies();
    test_cpus();
    test_hybrid();
    test_recorded();
    test_errors();
    return done();
}
