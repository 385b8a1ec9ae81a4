/* topo_impl.h - internals; the only header with hwloc types.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TOPO_TOPO_IMPL_H
#define DNN_TOPO_TOPO_IMPL_H

#include "topo/topo.h"

#include <hwloc.h>

/* A core, or a hardware thread if the system does not report cores. */
struct dnn_topo_core {
    struct dnn_topo_set pus;
    int package; /* logical numbers; -1 if unknown */
    int numa;
};

struct dnn_topo_gpu {
    hwloc_obj_t device; /* on the bus, or of the driver library            */
    hwloc_obj_t near;   /* the smallest object with CPUs that contains it  */
    const char *uuid;   /* or NULL                                         */
};

struct dnn_topo {
    hwloc_topology_t hw; /* owned */
    bool real;           /* this machine: binding is possible */
    struct dnn_topo_set granted;
    int ncores;
    struct dnn_topo_core *core; /* owned, in order of locality */
    int ngpus;                  /* of the node, in the order of the bus */
    struct dnn_topo_gpu gpu[DNN_TOPO_GPUS];
    int nvisible; /* those the driver shows to this process, in its order */
    int16_t visible[DNN_TOPO_GPUS];
    bool filtered; /* CUDA_VISIBLE_DEVICES was applied to visible */
};

/* Conversion from and to hwloc's sets.  Numbers from DNN_TOPO_PUS on are ignored. */
void dnn_topo_from_bitmap(struct dnn_topo_set *into, hwloc_const_bitmap_t from);
/* owned by the caller: hwloc_bitmap_free() */
hwloc_bitmap_t dnn_topo_to_bitmap(const struct dnn_topo_set *set);

/* List the GPUs: fills topo->gpu and topo->visible. */
void dnn_topo_find_gpus(struct dnn_topo *topo);

/* The GPUs visible with this value of CUDA_VISIBLE_DEVICES (NULL: all), in its order.
 */
void dnn_topo_visible_gpus(const struct dnn_topo *topo, const char *visible,
                           struct dnn_topo_request *request);

/* Assign to every rank of a node the nearest unused GPU that is visible to it; if there
 * are more ranks than GPUs, GPUs are shared evenly.  gpu[i] becomes an index into
 * requests[i]->gpu, or -1. */
void dnn_topo_share_gpus(const struct dnn_topo *topo, int n,
                         const struct dnn_topo_request *const *requests,
                         const struct dnn_topo_set *pus, int *gpu);

#endif
