/* gpu.c - find the GPUs of a node, those visible to a rank, and the nearest one.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "topo/topo_impl.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { NVIDIA = 0x10de, DISPLAY = 0x03 };

/* The number of a device on this node; it is added if it is new; -1 if there are too
 * many. */
static int add_device(struct dnn_topo *t, hwloc_obj_t device)
{
    for (int i = 0; i < t->ngpus; i++)
        if (t->gpu[i].device == device) return i;
    if (t->ngpus == DNN_TOPO_GPUS) return -1;
    t->gpu[t->ngpus].device = device;
    t->gpu[t->ngpus].near = hwloc_get_non_io_ancestor_obj(t->hw, device);
    return t->ngpus++;
}

/* "nvml3" -> 3. */
static long library_number(hwloc_obj_t os)
{
    return os->name == NULL
               ? -1
               : strtol(os->name + strcspn(os->name, "0123456789"), NULL, 10);
}

/* The device with this number in a driver library, or NULL.  hwloc lists devices in the
 * order of its tree, which may differ from the library's. */
static hwloc_obj_t find_os(const struct dnn_topo *t, const char *library, int number)
{
    hwloc_obj_t os = NULL;

    while ((os = hwloc_get_next_osdev(t->hw, os)) != NULL)
        if (os->subtype != NULL && strcmp(os->subtype, library) == 0 &&
            library_number(os) == number)
            break;
    return os;
}

/* The devices that a driver library shows to this process, in its numbering. */
static void find_visible(struct dnn_topo *t, const char *library)
{
    hwloc_obj_t os;

    while (t->nvisible < DNN_TOPO_GPUS &&
           (os = find_os(t, library, t->nvisible)) != NULL) {
        bool on_bus = os->parent->type == HWLOC_OBJ_PCI_DEVICE;
        int n = add_device(t, on_bus ? os->parent : os);

        if (n < 0) return;
        t->gpu[n].uuid = hwloc_obj_get_info_by_name(os, "NVIDIAUUID");
        t->visible[t->nvisible++] = (int16_t)n;
    }
}

static int by_bus(const void *a, const void *b)
{
    const struct hwloc_pcidev_attr_s *x =
        &((const struct dnn_topo_gpu *)a)->device->attr->pcidev;
    const struct hwloc_pcidev_attr_s *y =
        &((const struct dnn_topo_gpu *)b)->device->attr->pcidev;

    if (x->domain != y->domain) return x->domain < y->domain ? -1 : 1;
    if (x->bus != y->bus) return x->bus < y->bus ? -1 : 1;
    if (x->dev != y->dev) return x->dev < y->dev ? -1 : 1;
    return (int)x->func - (int)y->func;
}

/* All ranks of a node see the same devices on the PCI bus, independent of their
 * cgroups, so GPUs are numbered in the order of the bus.  A process may use the GPUs
 * that NVML lists (with UUIDs), else those of CUDA (which has already applied
 * CUDA_VISIBLE_DEVICES), else all on the bus. */
void dnn_topo_find_gpus(struct dnn_topo *topo)
{
    hwloc_obj_t pci = NULL;

    while ((pci = hwloc_get_next_pcidev(topo->hw, pci)) != NULL)
        if (pci->attr->pcidev.vendor_id == NVIDIA &&
            pci->attr->pcidev.class_id >> 8 == DISPLAY)
            add_device(topo, pci);
    qsort(topo->gpu, (size_t)topo->ngpus, sizeof *topo->gpu, by_bus);
    find_visible(topo, "NVML");
    if (topo->nvisible == 0) {
        find_visible(topo, "CUDA");
        topo->filtered = topo->real && topo->nvisible > 0;
    }
    if (topo->nvisible == 0)
        for (; topo->nvisible < topo->ngpus; topo->nvisible++)
            topo->visible[topo->nvisible] = (int16_t)topo->nvisible;
}

/* The GPU of one entry of CUDA_VISIBLE_DEVICES, or -1. */
static int gpu_named(const struct dnn_topo *topo, const char *name, size_t len)
{
    if (len > 0 && isdigit((unsigned char)*name)) {
        char *end;
        long n = strtol(name, &end, 10);

        return end == name + len && n < topo->nvisible ? topo->visible[n] : -1;
    }
    if (len < 5) return -1; /* at least one digit after "GPU-" */
    for (int i = 0; i < topo->nvisible; i++) {
        const char *uuid = topo->gpu[topo->visible[i]].uuid;

        if (uuid != NULL && strncmp(uuid, name, len) == 0) return topo->visible[i];
    }
    return -1;
}

void dnn_topo_visible_gpus(const struct dnn_topo *topo, const char *visible,
                           struct dnn_topo_request *request)
{
    request->ngpus = 0;
    if (visible == NULL || topo->filtered) {
        for (; request->ngpus < topo->nvisible; request->ngpus++)
            request->gpu[request->ngpus] = topo->visible[request->ngpus];
        return;
    }
    /* As in CUDA, the first invalid entry ends the list. */
    while (request->ngpus < DNN_TOPO_GPUS) {
        size_t len = strcspn(visible, ",");
        int gpu = gpu_named(topo, visible, len);

        if (gpu < 0) return;
        request->gpu[request->ngpus++] = (int16_t)gpu;
        if (visible[len] == '\0') return;
        visible += len + 1;
    }
}

/* Add the NUMA nodes and packages of some PUs. */
static void add_locality(const struct dnn_topo *topo, const struct dnn_topo_set *pus,
                         struct dnn_topo_set *numas, struct dnn_topo_set *packages)
{
    for (int i = 0; i < topo->ncores; i++) {
        if (!dnn_topo_intersect(&topo->core[i].pus, pus, NULL)) continue;
        dnn_topo_add(numas, topo->core[i].numa);
        dnn_topo_add(packages, topo->core[i].package);
    }
}

/* 0: on one of the rank's NUMA nodes, 1: on one of its packages, 2: elsewhere. */
static int distance(const struct dnn_topo *topo, int gpu,
                    const struct dnn_topo_set *pus)
{
    struct dnn_topo_set near = {{0}}, our_numas = {{0}}, our_packages = {{0}},
                        its_numas = {{0}}, its_packages = {{0}};

    if (gpu < 0 || gpu >= topo->ngpus) return 2;
    dnn_topo_from_bitmap(&near, topo->gpu[gpu].near->cpuset);
    add_locality(topo, pus, &our_numas, &our_packages);
    add_locality(topo, &near, &its_numas, &its_packages);
    if (dnn_topo_intersect(&our_numas, &its_numas, NULL)) return 0;
    return dnn_topo_intersect(&our_packages, &its_packages, NULL) ? 1 : 2;
}

/* The index into request->gpu of a GPU used by less than limit ranks and with a
 * distance of at most far; or -1. */
static int pick(const struct dnn_topo *topo, const struct dnn_topo_request *request,
                const struct dnn_topo_set *pus, const int *used, int limit, int far)
{
    for (int i = 0; i < request->ngpus; i++)
        if (used[request->gpu[i]] < limit &&
            distance(topo, request->gpu[i], pus) <= far)
            return i;
    return -1;
}

void dnn_topo_share_gpus(const struct dnn_topo *topo, int n,
                         const struct dnn_topo_request *const *requests,
                         const struct dnn_topo_set *pus, int *gpu)
{
    int used[DNN_TOPO_GPUS] = {0}, left = 0;

    for (int r = 0; r < n; r++) {
        gpu[r] = -1;
        if (requests[r]->ngpus > 0) left++;
    }
    /* Nearest pairs first, so that a rank without a near GPU does not take that of
     * another rank while others are unused. */
    for (int limit = 1; left > 0; limit++)
        for (int far = 0; far <= 2; far++)
            for (int r = 0; r < n; r++) {
                if (gpu[r] >= 0) continue;
                gpu[r] = pick(topo, requests[r], &pus[r], used, limit, far);
                if (gpu[r] < 0) continue;
                used[requests[r]->gpu[gpu[r]]]++;
                left--;
            }
}
