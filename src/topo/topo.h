/* topo.h - map ranks to cores, memory and GPUs, and bind them.
 *
 * Three steps: every rank describes its granted CPUs (a request), the caller
 * exchanges the requests, and each rank computes its own place from all requests of its
 * node.  The map is a pure function of topology and requests, so all ranks of a node
 * compute consistent places without further communication.  Then each rank binds
 * itself, within the granted CPUs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TOPO_TOPO_H
#define DNN_TOPO_TOPO_H

#include "base/choice.h"
#include "base/err.h"
#include "base/text.h"
#include "slurm/slurm.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    DNN_TOPO_PUS = 2048,     /* hardware threads of one node, in the OS numbering    */
    DNN_TOPO_THREADS = 1024, /* of one rank                                      */
    DNN_TOPO_GPUS = 64       /* of one node                                      */
};

enum dnn_topo_policy {
    DNN_BIND_AUTO,    /* divide shared masks, pin each thread to a core          */
    DNN_BIND_INHERIT, /* bind to the granted mask; threads may move in it        */
    DNN_BIND_OFF      /* no binding                                              */
};

/* auto, inherit, off: for option tables. */
extern const struct dnn_choice dnn_topo_policies[];

/* A set of small numbers: hardware threads ("PUs") or cores. */
struct dnn_topo_set {
    uint64_t word[DNN_TOPO_PUS / 64];
};

bool dnn_topo_has(const struct dnn_topo_set *set, int n);
void dnn_topo_add(struct dnn_topo_set *set, int n);
int dnn_topo_count(const struct dnn_topo_set *set);
/* The intersection into *both (may be NULL); false if it is empty. */
bool dnn_topo_intersect(const struct dnn_topo_set *a, const struct dnn_topo_set *b,
                        struct dnn_topo_set *both);
bool dnn_topo_same(const struct dnn_topo_set *a, const struct dnn_topo_set *b);
/* "0-3,8"; "-" if empty. */
void dnn_topo_list(struct dnn_buf *out, const struct dnn_topo_set *set);

enum dnn_topo_want {
    DNN_WANT_CORES,  /* default: one thread per core                              */
    DNN_WANT_CPUS,   /* Slurm's cpus per task, which count hardware threads       */
    DNN_WANT_THREADS /* --threads or OMP_NUM_THREADS: this number of threads     */
};

/* Granted CPUs and requested threads of a rank: fixed size, sent as bytes. */
struct dnn_topo_request {
    char host[256];
    int32_t policy;  /* enum dnn_topo_policy                                     */
    int32_t want;    /* enum dnn_topo_want                                       */
    int32_t threads; /* threads or CPUs; 0 with DNN_WANT_CORES                   */
    int32_t ngpus;
    int16_t gpu[DNN_TOPO_GPUS];  /* numbers on the node of the visible GPUs, by their
                                  * number in this process                        */
    struct dnn_topo_set granted; /* PUs                                          */
};

/* Placement of a rank: fixed size, sent as bytes. */
struct dnn_place {
    int32_t package; /* -1 if several or unknown                                */
    int32_t npackages, nnumas, ncores, node_cores;
    int32_t threads;
    int32_t gpu;         /* number in this process, or -1                        */
    int32_t gpu_on_node; /* number on the node, or -1                            */
    uint64_t local_memory, total_memory; /* bytes                                */
    struct dnn_topo_set packages, numas; /* hwloc's logical numbers; OS numbers  */
    struct dnn_topo_set cores;           /* hwloc's logical numbers              */
    struct dnn_topo_set pus;             /* of the process                       */
    int16_t pu[DNN_TOPO_THREADS]; /* of thread t; -1: any in pus                 */
};

/* The result of binding, as read back from the system. */
struct dnn_topo_bound {
    struct dnn_topo_set pus; /* of the process, before its threads were pinned   */
    int32_t requested;       /* 0: the policy is off                             */
    int32_t exact;           /* 1: pus is as requested                           */
    int32_t threads, pinned; /* number of threads; of those pinned as requested  */
    int32_t memory;          /* 1: bound to its NUMA nodes                       */
    char reason[64];         /* error of the system, or ""                       */
};

struct dnn_topo; /* a machine */

/* Local.  This machine and the CPUs this process may use; must be called before threads
 * are created.  The caller owns *out: dnn_topo_close(). */
int dnn_topo_open(struct dnn_topo **out, struct dnn_err *err);
/* A machine recorded by lstopo as XML, or described ("pack:2 core:4 pu:2");
 * all its CPUs are granted, and binding is not possible. */
int dnn_topo_read(const char *xml, struct dnn_topo **out, struct dnn_err *err);
int dnn_topo_make(const char *synthetic, struct dnn_topo **out, struct dnn_err *err);
void dnn_topo_close(struct dnn_topo *topo);

/* Local.  The request of this rank: the granted mask and, from env (OMP_NUM_THREADS),
 * slurm (cpus per task, CUDA_VISIBLE_DEVICES) and threads (0: default), the number of
 * threads and the visible GPUs. */
int dnn_topo_make_request(const struct dnn_topo *topo, enum dnn_topo_policy policy,
                          int threads, struct dnn_env env,
                          const struct dnn_slurm *slurm,
                          struct dnn_topo_request *request, struct dnn_err *err);

/* Local and pure.  The place of rank me; requests of all ranks of the program, only
 * those of our host are used. */
int dnn_topo_map(const struct dnn_topo *topo, const struct dnn_topo_request *requests,
                 int nrequests, int me, struct dnn_place *place, struct dnn_err *err);

/* Local.  Bind this process, its OpenMP threads and its memory, and read the
 * result back.  Also sets the number of OpenMP threads.  If the system does not allow
 * it, this is a warning and not an error: the program works, only slower. */
int dnn_topo_bind(struct dnn_topo *topo, enum dnn_topo_policy policy,
                  const struct dnn_place *place, struct dnn_topo_bound *bound,
                  struct dnn_err *err);

/* Local.  Bind the calling thread to all PUs of the place: for helper threads, which
 * otherwise inherit the single core of the thread that created them. */
void dnn_topo_bind_helper(struct dnn_topo *topo, enum dnn_topo_policy policy,
                          const struct dnn_place *place);

/* Messages about problems; level is an enum dnn_level. */
struct dnn_topo_report {
    int count;    /* messages below                                                */
    int overlaps; /* pairs of ranks that share cores                             */
    struct {
        int level;
        char *text; /* owned */
    } *note;        /* owned */
    size_t cap;
};

/* Local and pure.  Check the requests and places of all ranks: overlapping masks,
 * shared cores, fewer cores than threads, shared GPUs.  The caller owns *out:
 * dnn_topo_free_report(). */
void dnn_topo_make_report(const struct dnn_topo_request *requests,
                          const struct dnn_place *places, int count,
                          struct dnn_topo_report *out);
void dnn_topo_free_report(struct dnn_topo_report *report);

#endif
