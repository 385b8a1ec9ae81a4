/* bind.c - bind the process, its threads and its memory, and check the result.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "topo/topo_impl.h"

#include "base/log.h"

#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

/* Bind the calling thread of the team, to its own PU or to all PUs of the place. */
static bool bind_thread(hwloc_topology_t hw, const struct dnn_place *p, int thread)
{
    struct dnn_topo_set wanted = {{0}}, got = {{0}};
    hwloc_bitmap_t read = hwloc_bitmap_alloc();

    if (p->pu[thread] < 0)
        wanted = p->pus;
    else
        dnn_topo_add(&wanted, p->pu[thread]);
    hwloc_bitmap_t map = dnn_topo_to_bitmap(&wanted);
    hwloc_set_cpubind(hw, map, HWLOC_CPUBIND_THREAD);
    if (hwloc_get_cpubind(hw, read, HWLOC_CPUBIND_THREAD) == 0)
        dnn_topo_from_bitmap(&got, read);
    hwloc_bitmap_free(read);
    hwloc_bitmap_free(map);
    return dnn_topo_same(&wanted, &got);
}

/* Allocate new pages on the thread's NUMA nodes.  The memory policy of Linux is per
 * thread. */
static bool bind_memory(hwloc_topology_t hw, const struct dnn_place *p, int *error)
{
    hwloc_bitmap_t nodes = dnn_topo_to_bitmap(&p->numas);
    int rc = hwloc_set_membind(hw, nodes, HWLOC_MEMBIND_BIND,
                               HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET);

    if (rc < 0) *error = errno;
    hwloc_bitmap_free(nodes);
    return rc == 0;
}

static void bind_process(hwloc_topology_t hw, const struct dnn_place *p,
                         struct dnn_topo_bound *b)
{
    hwloc_bitmap_t map = dnn_topo_to_bitmap(&p->pus), read = hwloc_bitmap_alloc();

    if (hwloc_set_cpubind(hw, map, HWLOC_CPUBIND_PROCESS) < 0 &&
        hwloc_set_cpubind(hw, map, HWLOC_CPUBIND_THREAD) < 0)
        snprintf(b->reason, sizeof b->reason, "%s", strerror(errno));
    if (hwloc_get_cpubind(hw, read, HWLOC_CPUBIND_PROCESS) == 0 ||
        hwloc_get_cpubind(hw, read, HWLOC_CPUBIND_THREAD) == 0)
        dnn_topo_from_bitmap(&b->pus, read);
    b->exact = dnn_topo_same(&b->pus, &p->pus);
    hwloc_bitmap_free(map);
    hwloc_bitmap_free(read);
}

static void bind_team(hwloc_topology_t hw, const struct dnn_place *p,
                      struct dnn_topo_bound *b)
{
    int pinned = 0, local = 0, threads = 0, error = 0;

#pragma omp parallel num_threads(p->threads) reduction(+ : pinned, local, threads)     \
    reduction(max : error)
    {
        int failed = 0;

        pinned += bind_thread(hw, p, omp_get_thread_num());
        local += bind_memory(hw, p, &failed);
        threads += 1;
        error = failed;
    }
    b->threads = threads;
    b->pinned = pinned;
    b->memory = local == threads;
    if (!b->memory)
        dnn_log_all(DNN_DEBUG, "topo", "memory is not bound to its NUMA nodes: %s",
                    strerror(error));
}

int dnn_topo_bind(struct dnn_topo *topo, enum dnn_topo_policy policy,
                  const struct dnn_place *place, struct dnn_topo_bound *bound,
                  struct dnn_err *err)
{
    memset(bound, 0, sizeof *bound);
    if (!topo->real)
        return dnn_fail(err, DNN_EUSAGE, "cannot bind to a recorded machine");
    omp_set_dynamic(0);
    omp_set_num_threads(place->threads);
    bound->threads = place->threads;
    if (policy == DNN_BIND_OFF) return 0;
    bound->requested = 1;
    bind_process(topo->hw, place, bound);
    bind_team(topo->hw, place, bound);
    if (!bound->exact || bound->pinned < bound->threads)
        dnn_log_once(
            DNN_WARN, "topo",
            "ranks cannot be bound to their cores (%s); --bind off silences this "
            "warning",
            bound->reason[0] != '\0' ? bound->reason
                                     : "the system ignores the request");
    return 0;
}

void dnn_topo_bind_helper(struct dnn_topo *topo, enum dnn_topo_policy policy,
                          const struct dnn_place *place)
{
    if (!topo->real || policy == DNN_BIND_OFF) return;
    hwloc_bitmap_t map = dnn_topo_to_bitmap(&place->pus);
    if (hwloc_set_cpubind(topo->hw, map, HWLOC_CPUBIND_THREAD) < 0)
        dnn_log_all(DNN_DEBUG, "topo", "a helper thread is not bound: %s",
                    strerror(errno));
    hwloc_bitmap_free(map);
}
