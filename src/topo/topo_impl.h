/* topo_impl.h - what the files of this room share: hwloc stays inside.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TOPO_TOPO_IMPL_H
#define DNN_TOPO_TOPO_IMPL_H

#include "topo/topo.h"

#include <hwloc.h>

/* A core, or where the system knows none, a hardware thread. */
struct dnn_topo_core {
    struct dnn_topo_set pus;
    int package; /* logical numbers; -1 if unknown */
    int numa;
};

struct dnn_topo_gpu {
    hwloc_obj_t device; /* on the bus, or as the driver names it           */
    hwloc_obj_t near;   /* the smallest object with CPUs that it hangs on  */
    const char *uuid;   /* or NULL                                         */
};

struct dnn_topo {
    hwloc_topology_t hw; /* owned */
    bool real;           /* this very machine: binding makes sense */
    struct dnn_topo_set granted;
    int ncores;
    struct dnn_topo_core *core; /* owned, in order of locality */
    int ngpus;                  /* of the node, in the order of the bus */
    struct dnn_topo_gpu gpu[DNN_TOPO_GPUS];
    int nseen; /* those the driver shows us, in its order */
    int16_t seen[DNN_TOPO_GPUS];
    bool filtered; /* seen is what CUDA_VISIBLE_DEVICES left */
};

/* Between our sets and hwloc's.  into adds nothing beyond DNN_TOPO_PUS. */
void dnn_topo_from_bitmap(struct dnn_topo_set *into, hwloc_const_bitmap_t from);
/* owned by the caller: hwloc_bitmap_free() */
hwloc_bitmap_t dnn_topo_to_bitmap(const struct dnn_topo_set *set);

/* List the GPUs: fills topo->gpu and topo->seen. */
void dnn_topo_find_gpus(struct dnn_topo *topo);

/* Which GPUs a CUDA_VISIBLE_DEVICES text (NULL: all) leaves, in its order. */
void dnn_topo_visible_gpus(const struct dnn_topo *topo, const char *visible,
                           struct dnn_topo_request *request);

/* Give every rank of a node the nearest unused GPU it can see; ranks beyond
 * that share evenly.  gpu[i] becomes an index into requests[i]->gpu, or -1. */
void dnn_topo_share_gpus(const struct dnn_topo *topo, int n,
                         const struct dnn_topo_request *const *requests,
                         const struct dnn_topo_set *pus, int *gpu);

#endif
