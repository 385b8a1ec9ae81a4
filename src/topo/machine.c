/* machine.c - read the topology of a machine: this one, a recorded or a described one.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "topo/topo_impl.h"

#include "base/mem.h"

#include <errno.h>
#include <omp.h>
#include <string.h>

static int too_large(struct dnn_err *err, int pu)
{
    return dnn_fail(
        err, DNN_EUSAGE,
        "this machine has hardware thread %d; this build supports numbers below "
        "%d",
        pu, DNN_TOPO_PUS);
}

static int numa_of(hwloc_topology_t hw, hwloc_const_cpuset_t cpus)
{
    hwloc_obj_t numa = NULL;

    while ((numa = hwloc_get_next_obj_by_type(hw, HWLOC_OBJ_NUMANODE, numa)) != NULL)
        if (hwloc_bitmap_intersects(numa->cpuset, cpus))
            return (int)numa->logical_index;
    return -1;
}

/* hwloc numbers cores by locality: consecutive cores are neighbours in the machine. The
 * map relies only on this. */
static int find_cores(struct dnn_topo *t, struct dnn_err *err)
{
    int depth = hwloc_get_type_or_below_depth(t->hw, HWLOC_OBJ_CORE);
    int pus = hwloc_bitmap_last(hwloc_topology_get_complete_cpuset(t->hw));

    if (pus >= DNN_TOPO_PUS) return too_large(err, pus);
    t->ncores = (int)hwloc_get_nbobjs_by_depth(t->hw, depth);
    t->core = dnn_alloc((size_t)t->ncores * sizeof *t->core);
    for (int i = 0; i < t->ncores; i++) {
        hwloc_obj_t core = hwloc_get_obj_by_depth(t->hw, depth, (unsigned)i);
        hwloc_obj_t package =
            hwloc_get_ancestor_obj_by_type(t->hw, HWLOC_OBJ_PACKAGE, core);

        dnn_topo_from_bitmap(&t->core[i].pus, core->cpuset);
        t->core[i].package = package == NULL ? -1 : (int)package->logical_index;
        t->core[i].numa = numa_of(t->hw, core->cpuset);
    }
    return 0;
}

/* With OMP_PROC_BIND, the OpenMP library has pinned this thread before main().  Its
 * places are parts of the mask that the process was started with, so their union is
 * that mask. */
static void add_openmp_places(struct dnn_topo_set *granted)
{
    for (int p = 0; p < omp_get_num_places(); p++) {
        int n = omp_get_place_num_procs(p);
        int *id = dnn_alloc((size_t)(n > 0 ? n : 1) * sizeof *id);

        omp_get_place_proc_ids(p, id);
        for (int i = 0; i < n; i++)
            dnn_topo_add(granted, id[i]);
        dnn_free(id);
    }
}

/* The granted CPUs: the affinity mask of the process, or all CPUs allowed by the system
 * if masks cannot be read. */
static void find_granted(struct dnn_topo *t)
{
    hwloc_bitmap_t map = hwloc_bitmap_alloc();
    struct dnn_topo_set all = {{0}};

    dnn_topo_from_bitmap(&all, hwloc_topology_get_allowed_cpuset(t->hw));
    if (t->real && hwloc_get_cpubind(t->hw, map, HWLOC_CPUBIND_THREAD) == 0) {
        dnn_topo_from_bitmap(&t->granted, map);
        add_openmp_places(&t->granted);
        dnn_topo_intersect(&t->granted, &all, &t->granted);
    }
    if (dnn_topo_count(&t->granted) == 0) t->granted = all;
    hwloc_bitmap_free(map);
}

/* hwloc components that are not needed and only load other drivers: GPUs are found by
 * NVML or CUDA and on the PCI bus, which hwloc also reads from the kernel without
 * libpciaccess ("pci", which leaks memory). */
static const char *const blacklist[] = {"opencl", "gl",  "levelzero",
                                        "rsmi",   "pci", NULL};

static int load(struct dnn_topo *t, const char *what, struct dnn_err *err)
{
    /* All ranks of a node must see the same machine, independent of their cgroups; the
     * granted masks contain what may be used. */
    unsigned long flags = t->real ? HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED : 0;

    for (int i = 0; blacklist[i] != NULL; i++)
        hwloc_topology_set_components(t->hw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
                                      blacklist[i]);
    hwloc_topology_set_io_types_filter(t->hw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (hwloc_topology_set_flags(t->hw, flags) < 0 || hwloc_topology_load(t->hw) < 0)
        return dnn_fail(err, DNN_EIO, "hwloc cannot load %s: %s", what,
                        strerror(errno));
    DNN_TRY(find_cores(t, err));
    find_granted(t);
    dnn_topo_find_gpus(t);
    return 0;
}

/* set_source is called with text; NULL: this machine. */
static int make(int (*set_source)(hwloc_topology_t, const char *), const char *text,
                const char *what, struct dnn_topo **out, struct dnn_err *err)
{
    struct dnn_topo *t = dnn_alloc(sizeof *t);
    int rc = 0;

    t->real = set_source == NULL;
    if (hwloc_topology_init(&t->hw) < 0) {
        dnn_free(t);
        return dnn_fail(err, DNN_EIO, "hwloc cannot start: %s", strerror(errno));
    }
    if (set_source != NULL && set_source(t->hw, text) < 0)
        rc = dnn_fail(err, DNN_EUSAGE, "hwloc cannot parse %s", what);
    if (rc == 0) rc = load(t, what, err);
    if (rc < 0) {
        dnn_topo_close(t);
        return rc;
    }
    *out = t;
    return 0;
}

int dnn_topo_open(struct dnn_topo **out, struct dnn_err *err)
{
    return make(NULL, NULL, "this machine", out, err);
}

int dnn_topo_read(const char *xml, struct dnn_topo **out, struct dnn_err *err)
{
    return make(hwloc_topology_set_xml, xml, xml, out, err);
}

int dnn_topo_make(const char *synthetic, struct dnn_topo **out, struct dnn_err *err)
{
    char *what = dnn_format("\"%s\"", synthetic);
    int rc = make(hwloc_topology_set_synthetic, synthetic, what, out, err);

    dnn_free(what);
    return rc;
}

void dnn_topo_close(struct dnn_topo *topo)
{
    if (topo == NULL) return;
    hwloc_topology_destroy(topo->hw);
    dnn_free(topo->core);
    dnn_free(topo);
}
