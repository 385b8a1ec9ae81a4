/* topo_property.c - properties for any machine, mask, number of ranks and threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"
#include "unit/topo_cases.h"

enum { MAX_RANKS = 20 };

static const char *const machines[] = {
    "pu:1",
    "pu:5",
    "core:3 pu:2",
    "pack:2 core:3 pu:2",
    "pack:2 numa:4 core:4 pu:2",
    "pack:2 [numa] core:7 pu:1",
    "pack:3 numa:2 core:2 pu:4",
    "pack:4 [numa] core:1 pu:1",
    "numa:2 l3:2 core:3 pu:2",
};

/* Which PUs belong to one core is the last number of the description. */
static int pus_per_core(const char *machine)
{
    return atoi(strrchr(machine, ':') + 1);
}

static bool has_cores(const char *machine)
{
    return strstr(machine, "core") != NULL;
}

/* A grant: some bits of a pattern, at least one PU. */
static struct dnn_topo_set grant(int pus, unsigned pattern)
{
    struct dnn_topo_set set = {{0}};

    for (int i = 0; i < pus; i++)
        if (pattern == 0 || (pattern * 2654435761u >> (i % 29) & 3) != 0)
            dnn_topo_add(&set, i);
    dnn_topo_add(&set, (int)pattern % pus);
    return set;
}

struct tally {
    int inside, disjoint, whole, covered, fair, threads, stray;
};

static void look_at(const struct dnn_topo_set *mask, const struct dnn_place *p, int n,
                    int per_core, int requested, struct tally *bad)
{
    struct dnn_topo_set all = {{0}}, seen = {{0}};
    int ncores = 0, least = p[0].ncores, most = 0;

    for (int i = 0; i * per_core < DNN_TOPO_PUS; i++)
        for (int k = 0, hit = 0; k < per_core && !hit; k++)
            if (dnn_topo_has(mask, i * per_core + k)) hit = ++ncores;
    for (int r = 0; r < n; r++) {
        for (int i = 0; i < DNN_TOPO_PUS; i++) {
            if (!dnn_topo_has(&p[r].pus, i)) continue;
            bad->inside += !dnn_topo_has(mask, i);
            bad->disjoint += n <= ncores && dnn_topo_has(&all, i);
            dnn_topo_add(&all, i);
            /* All granted PUs of that core come with it. */
            for (int k = i - i % per_core; k < i - i % per_core + per_core; k++)
                bad->whole += dnn_topo_has(mask, k) && !dnn_topo_has(&p[r].pus, k);
        }
        if (p[r].ncores < least) least = p[r].ncores;
        if (p[r].ncores > most) most = p[r].ncores;
        bad->threads += p[r].threads != (requested > 0 ? requested : p[r].ncores);
        memset(&seen, 0, sizeof seen);
        for (int t = 0; t < p[r].threads; t++) {
            bad->stray += !dnn_topo_has(&p[r].pus, p[r].pu[t]);
            /* No second thread on a core while another is free. */
            bad->stray += p[r].threads <= p[r].ncores &&
                          dnn_topo_has(&seen, p[r].pu[t] / per_core);
            dnn_topo_add(&seen, p[r].pu[t] / per_core);
        }
    }
    bad->covered += n <= ncores && !dnn_topo_same(&all, mask);
    bad->covered += n > ncores && !dnn_topo_same(&all, mask) && n >= ncores;
    bad->fair += most - least > 1 || least < 1;
}

static void test_machine(const char *machine)
{
    struct dnn_topo *topo;
    struct dnn_err err = {0};
    struct tally bad = {0};
    int cases = 0, pus = 0, per_core = has_cores(machine) ? pus_per_core(machine) : 1;

    if (!ok(dnn_topo_make(machine, &topo, &err) == 0, "%s", machine)) return;
    struct dnn_slurm slurm = {.job = -1, .cpus_per_task = -1};
    struct dnn_topo_request request, requests[MAX_RANKS];
    dnn_topo_make_request(topo, DNN_BIND_AUTO, 1, dnn_slurm_env(), &slurm, &request,
                          &err);
    pus = dnn_topo_count(&request.granted);
    for (unsigned pattern = 0; pattern < 6; pattern++)
        for (int n = 1; n <= MAX_RANKS; n++)
            for (int requested = 0; requested <= 6; requested += 2) {
                struct dnn_place p[MAX_RANKS];
                struct dnn_topo_set mask = grant(pus, pattern);

                for (int r = 0; r < n; r++) {
                    requests[r] = card_of("", 0);
                    requests[r].granted = mask;
                    requests[r].want =
                        requested > 0 ? DNN_WANT_THREADS : DNN_WANT_CORES;
                    requests[r].threads = requested;
                }
                for (int r = 0; r < n; r++)
                    dnn_topo_map(topo, requests, n, r, &p[r], &err);
                look_at(&mask, p, n, per_core, requested, &bad);
                cases++;
            }
    is_int(bad.inside, 0, "inside the mask");
    is_int(bad.disjoint, 0, "disjoint while there are enough cores");
    is_int(bad.whole, 0, "whole cores");
    is_int(bad.covered, 0, "nothing left over");
    is_int(bad.fair, 0, "even to within one core");
    is_int(bad.threads, 0, "the requested number of threads");
    is_int(bad.stray, 0, "each thread on a core of its own rank");
    ok(cases == 6 * MAX_RANKS * 4, "%s: %d cases", machine, cases);
    dnn_topo_close(topo);
}

int main(void)
{
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        test_machine(machines[i]);
    return done();
}
