/* topo_report.c - messages about overlaps and missing cores.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/log.h"
#include "tap.h"
#include "unit/topo_cases.h"

enum { MAX_RANKS = 8 };

/* The notes as "W text" or "I text" lines, then the number of overlaps. */
static void is_report(const char *machine, const struct dnn_topo_request *requests,
                      int n, const char *want, const char *what)
{
    struct dnn_place places[MAX_RANKS];
    struct dnn_topo *topo;
    struct dnn_err err = {0};
    struct dnn_buf got = {0};
    struct dnn_topo_report report;

    if (!ok(dnn_topo_make(machine, &topo, &err) == 0, "%s", machine)) return;
    for (int r = 0; r < n; r++)
        dnn_topo_map(topo, requests, n, r, &places[r], &err);
    dnn_topo_make_report(requests, places, n, &report);
    for (int i = 0; i < report.count; i++)
        dnn_buf_add(&got, "%c %s\n", report.note[i].level == DNN_WARN ? 'W' : 'I',
                    report.note[i].text);
    dnn_buf_add(&got, "%d", report.overlaps);
    is_text(got.text, want, what);
    dnn_topo_free_report(&report);
    dnn_buf_free(&got);
    dnn_topo_close(topo);
}

static void test_overlaps(void)
{
    struct dnn_topo_request requests[MAX_RANKS];

    requests[0] = card_of("0-3", 0);
    requests[1] = card_of("4-7", 0);
    is_report("core:8 pu:1", requests, 2, "0", "separate masks: no message");
    requests[1] = card_of("0-3", 0);
    is_report("core:8 pu:1", requests, 2, "0", "one mask divided: no message");
    requests[1] = card_of("2-5", 0);
    is_report(
        "core:8 pu:1", requests, 2,
        "W n1: ranks 0 and 1 were given overlapping CPUs (2-3) and will slow each "
        "other down; give each rank its own (srun --cpu-bind=cores) or all of them "
        "the same (srun --cpu-bind=none)\n1",
        "overlapping masks");
    strcpy(requests[1].host, "n2");
    is_report("core:8 pu:1", requests, 2, "0", "not if they are on two hosts");
    strcpy(requests[1].host, "n1");
    requests[0].policy = requests[1].policy = DNN_BIND_OFF;
    is_report("core:8 pu:1", requests, 2, "1", "off: counted, without a warning");

    requests[0] = card_of("0,2", 0);
    requests[1] = card_of("1,3", 0);
    is_report(
        "core:2 pu:2", requests, 2,
        "W n1: ranks 0 and 1 share cores 0-1: each was given some of the hardware "
        "threads; srun --hint=nomultithread gives whole cores\n1",
        "divided cores");
    for (int r = 0; r < 4; r++)
        requests[r] = card_of("0-1", 0);
    is_report("core:2 pu:1", requests, 4,
              "W n1: ranks 0-3 share cores 0-1: there are fewer cores than ranks; "
              "request more cores or start fewer ranks\n2",
              "more ranks than cores");
    is_report("core:2 pu:1", requests, 3,
              "W n1: ranks 0 and 1 share core 0: there are fewer cores than ranks; "
              "request more cores or start fewer ranks\n1",
              "only those that share are named");
    for (int r = 0; r < 3; r++)
        requests[r].policy = DNN_BIND_INHERIT;
    is_report("core:2 pu:1", requests, 3,
              "W n1: ranks 0-2 share cores 0-1: they were started with the same mask; "
              "--bind auto divides it\n3",
              "inherited masks");
}

static void test_many_overlaps(void)
{
    struct dnn_topo_request requests[MAX_RANKS];
    const char *masks[] = {"0-1", "1-2", "2-3", "3-4", "4-5", "5-6", "6-7"};

    for (int r = 0; r < 7; r++)
        requests[r] = card_of(masks[r], 0);
#define PAIR(a, b, c)                                                                  \
    "W n1: ranks " a " and " b " were given overlapping CPUs (" c                      \
    ") and will slow each "                                                            \
    "other down; give each rank its own (srun --cpu-bind=cores) or all of them the "   \
    "same "                                                                            \
    "(srun --cpu-bind=none)\n"
    is_report(
        "core:8 pu:1", requests, 7,
        PAIR("0", "1", "1") PAIR("1", "2", "2") PAIR("2", "3", "3") PAIR(
            "3", "4", "4") "W n1: 2 more pairs of ranks were given overlapping CPUs\n6",
        "many pairs are counted, not listed");
}

static void test_threads(void)
{
    struct dnn_topo_request requests[MAX_RANKS];

    for (int r = 0; r < 4; r++) {
        requests[r] = card_of(r == 0   ? "0-3"
                              : r == 1 ? "4-7"
                              : r == 2 ? "8-11"
                                       : "12-13",
                              0);
        requests[r].want = DNN_WANT_THREADS;
        requests[r].threads = 2;
    }
    is_report("core:8 pu:2", requests, 3, "0", "enough cores");
    is_report(
        "core:8 pu:2", requests, 4,
        "I rank 3: 2 threads on 1 core with 2 hardware threads; --threads 1 uses one "
        "per core\n0",
        "hardware threads are used");
    for (int r = 0; r < 4; r++)
        requests[r].threads = 8;
    is_report("core:8 pu:2", requests, 4,
              "W ranks 0-2: 8 threads share 2 cores; request more cores (srun "
              "--cpus-per-task=8) or use --threads 2\n"
              "W rank 3: 8 threads share 1 core; request more cores (srun "
              "--cpus-per-task=8) or use --threads 1\n0",
              "fewer cores than threads");
    requests[0].want = requests[2].want = DNN_WANT_CPUS;
    requests[0].threads = requests[2].threads = 4;
    is_report("core:8 pu:2", requests, 1, "0", "as many CPUs as requested from Slurm");
    requests[0].threads = requests[2].threads = 6;
    requests[1].threads = 2;
    is_report("core:8 pu:2", requests, 3,
              "W ranks 0 and 2: the Slurm job has 6 CPUs per task, but only 4 are "
              "available; use srun --cpus-per-task=6\n0",
              "fewer CPUs than requested from Slurm");
}

static void test_gpus(void)
{
    struct dnn_topo_request requests[3];
    struct dnn_place places[3];
    struct dnn_topo_report report;

    memset(places, 0, sizeof places);
    for (int r = 0; r < 3; r++) {
        requests[r] = card_of(r == 0 ? "0" : r == 1 ? "1" : "2", 2);
        places[r].cores = places[r].pus = requests[r].granted;
        places[r].ncores = 1;
        places[r].gpu_on_node = r == 1 ? 1 : 0;
    }
    dnn_topo_make_report(requests, places, 3, &report);
    is_int(report.count, 1, "one note on GPUs");
    is_text(report.note[0].text, "n1: ranks 0 and 2 share GPU 0", "... its message");
    is_int(report.note[0].level, DNN_INFO, "... at level info");
    dnn_topo_free_report(&report);
}

int main(void)
{
    test_overlaps();
    test_many_overlaps();
    test_threads();
    test_gpus();
    return done();
}
