/* gpu.c - which GPUs there are, which a rank may see, which is nearest.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "topo/topo_impl.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { NVIDIA = 0x10de, DISPLAY = 0x03 };

/* The number of a device on this node, which it gets if it has none; -1 if
 * there are too many. */
static int number_of(struct dnn_topo *t, hwloc_obj_t device)
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

/* The device a driver library calls by this number, or NULL.  hwloc lists them
 * along the tree, which need not be the library's order. */
static hwloc_obj_t find_os(const struct dnn_topo *t, const char *library, int number)
{
    hwloc_obj_t os = NULL;

    while ((os = hwloc_get_next_osdev(t->hw, os)) != NULL)
        if (os->subtype != NULL && strcmp(os->subtype, library) == 0 &&
            library_number(os) == number)
            break;
    return os;
}

/* What a driver library shows this process, in the order of its numbers. */
static void find_seen(struct dnn_topo *t, const char *library)
{
    hwloc_obj_t os;

    while (t->nseen < DNN_TOPO_GPUS && (os = find_os(t, library, t->nseen)) != NULL) {
        bool on_bus = os->parent->type == HWLOC_OBJ_PCI_DEVICE;
        int n = number_of(t, on_bus ? os->parent : os);

        if (n < 0) return;
        t->gpu[n].uuid = hwloc_obj_get_info_by_name(os, "NVIDIAUUID");
        t->seen[t->nseen++] = (int16_t)n;
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

/* The bus shows the same devices to all ranks of a node, whatever their control
 * groups hide, so its order gives the numbers ranks agree on.  What a process
 * may use is what NVML lists (it also knows UUIDs), else CUDA (which has already
 * applied CUDA_VISIBLE_DEVICES when it answers), else everything on the bus. */
void dnn_topo_find_gpus(struct dnn_topo *topo)
{
    hwloc_obj_t pci = NULL;

    while ((pci = hwloc_get_next_pcidev(topo->hw, pci)) != NULL)
        if (pci->attr->pcidev.vendor_id == NVIDIA &&
            pci->attr->pcidev.class_id >> 8 == DISPLAY)
            number_of(topo, pci);
    qsort(topo->gpu, (size_t)topo->ngpus, sizeof *topo->gpu, by_bus);
    find_seen(topo, "NVML");
    if (topo->nseen == 0) {
        find_seen(topo, "CUDA");
        topo->filtered = topo->real && topo->nseen > 0;
    }
    if (topo->nseen == 0)
        for (; topo->nseen < topo->ngpus; topo->nseen++)
            topo->seen[topo->nseen] = (int16_t)topo->nseen;
}

/* The GPU that one word of CUDA_VISIBLE_DEVICES names, or -1. */
static int gpu_named(const struct dnn_topo *topo, const char *word, size_t len)
{
    if (len > 0 && isdigit((unsigned char)*word)) {
        char *end;
        long n = strtol(word, &end, 10);

        return end == word + len && n < topo->nseen ? topo->seen[n] : -1;
    }
    if (len < 5) return -1; /* at least one digit behind "GPU-" */
    for (int i = 0; i < topo->nseen; i++) {
        const char *uuid = topo->gpu[topo->seen[i]].uuid;

        if (uuid != NULL && strncmp(uuid, word, len) == 0) return topo->seen[i];
    }
    return -1;
}

void dnn_topo_visible_gpus(const struct dnn_topo *topo, const char *visible,
                           struct dnn_topo_request *request)
{
    request->ngpus = 0;
    if (visible == NULL || topo->filtered) {
        for (; request->ngpus < topo->nseen; request->ngpus++)
            request->gpu[request->ngpus] = topo->seen[request->ngpus];
        return;
    }
    /* As in CUDA, the first word that names no device ends the list. */
    while (request->ngpus < DNN_TOPO_GPUS) {
        size_t len = strcspn(visible, ",");
        int gpu = gpu_named(topo, visible, len);

        if (gpu < 0) return;
        request->gpu[request->ngpus++] = (int16_t)gpu;
        if (visible[len] == '\0') return;
        visible += len + 1;
    }
}

/* The NUMA nodes and packages of some PUs. */
static void homes(const struct dnn_topo *topo, const struct dnn_topo_set *pus,
                  struct dnn_topo_set *numas, struct dnn_topo_set *packages)
{
    for (int i = 0; i < topo->ncores; i++) {
        if (!dnn_topo_meet(&topo->core[i].pus, pus, NULL)) continue;
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
    homes(topo, pus, &our_numas, &our_packages);
    homes(topo, &near, &its_numas, &its_packages);
    if (dnn_topo_meet(&our_numas, &its_numas, NULL)) return 0;
    return dnn_topo_meet(&our_packages, &its_packages, NULL) ? 1 : 2;
}

/* The index into request->gpu of one used less than limit and not farther than
 * far, or -1. */
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
    /* Near pairs first, so that a rank without a GPU of its own does not take
     * its neighbour's while another is free. */
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
