/* topo.h - which cores, memory and GPU this rank gets, and binding to them.
 *
 * Three steps: every rank describes what it was granted (a request), the caller
 * exchanges the requests, and each rank maps all requests of its node to its own
 * place.  The map is a pure function of topology and requests, so all ranks of a
 * node come to the same answer without talking again.  Then it binds, inside
 * what was granted and never outside.
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
    DNN_TOPO_PUS = 2048,     /* hardware threads of one node, by the system's number */
    DNN_TOPO_THREADS = 1024, /* of one rank                                      */
    DNN_TOPO_GPUS = 64       /* of one node                                      */
};

enum dnn_topo_policy {
    DNN_BIND_AUTO,    /* split what is shared, pin each thread to its core       */
    DNN_BIND_INHERIT, /* the mask as it was granted, threads move inside it      */
    DNN_BIND_OFF      /* bind nothing                                            */
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
bool dnn_topo_meet(const struct dnn_topo_set *a, const struct dnn_topo_set *b,
                   struct dnn_topo_set *both); /* both may be NULL */
bool dnn_topo_same(const struct dnn_topo_set *a, const struct dnn_topo_set *b);
/* "0-3,8"; "-" if empty. */
void dnn_topo_list(struct dnn_buf *out, const struct dnn_topo_set *set);

enum dnn_topo_want {
    DNN_WANT_CORES,  /* nobody said: one thread per core                          */
    DNN_WANT_CPUS,   /* Slurm's cpus per task, which count hardware threads       */
    DNN_WANT_THREADS /* --threads or OMP_NUM_THREADS: exactly so many            */
};

/* What one rank was granted and wants: fixed size, to be sent as bytes. */
struct dnn_topo_request {
    char host[256];
    int32_t policy;  /* enum dnn_topo_policy                                     */
    int32_t want;    /* enum dnn_topo_want                                       */
    int32_t threads; /* that many; 0 with DNN_WANT_CORES                         */
    int32_t ngpus;
    int16_t gpu[DNN_TOPO_GPUS];  /* visible ones, the program's numbering -> the
                                  * node's                                        */
    struct dnn_topo_set granted; /* PUs                                          */
};

/* What one rank gets: fixed size, to be sent as bytes. */
struct dnn_place {
    int32_t package; /* the only one, or -1 if several or unknown               */
    int32_t npackages, nnumas, ncores, node_cores;
    int32_t threads;
    int32_t gpu;         /* as this process numbers them, or -1                  */
    int32_t gpu_on_node; /* as the node numbers them, or -1                      */
    uint64_t local_memory, total_memory; /* bytes                                */
    struct dnn_topo_set packages, numas; /* logical numbers, but numas: system's */
    struct dnn_topo_set cores;           /* logical numbers on this node         */
    struct dnn_topo_set pus;             /* what the process is bound to         */
    int16_t pu[DNN_TOPO_THREADS]; /* where thread t goes; -1: anywhere in pus    */
};

/* What binding came to, as read back from the system. */
struct dnn_topo_bound {
    struct dnn_topo_set pus; /* the process, before its threads were pinned      */
    int32_t asked;           /* 0: the policy is off                             */
    int32_t exact;           /* pus is what was asked for                        */
    int32_t threads, pinned; /* how many run, how many are where they should be  */
    int32_t memory;          /* 1: bound to its NUMA nodes                       */
    char why[64];            /* what the system said if it refused, or ""        */
};

struct dnn_topo; /* a machine */

/* Local.  This machine, and what this process may use of it; call it before
 * threads are made.  The caller owns *out: dnn_topo_close(). */
int dnn_topo_open(struct dnn_topo **out, struct dnn_err *err);
/* A machine recorded by lstopo as XML, or described ("pack:2 core:4 pu:2");
 * everything in it is granted, nothing can be bound. */
int dnn_topo_read(const char *xml, struct dnn_topo **out, struct dnn_err *err);
int dnn_topo_make(const char *synthetic, struct dnn_topo **out, struct dnn_err *err);
void dnn_topo_close(struct dnn_topo *topo);

/* Local.  Our request: the granted mask, and what env (Slurm's variables,
 * OMP_NUM_THREADS, CUDA_VISIBLE_DEVICES) and threads (0: nothing said) want. */
int dnn_topo_make_request(const struct dnn_topo *topo, enum dnn_topo_policy policy,
                          int threads, struct dnn_env env,
                          const struct dnn_slurm *slurm,
                          struct dnn_topo_request *request, struct dnn_err *err);

/* Local and pure.  The place of rank me; requests are those of all ranks of the
 * program, of which only those of our host matter. */
int dnn_topo_map(const struct dnn_topo *topo, const struct dnn_topo_request *requests,
                 int nrequests, int me, struct dnn_place *place, struct dnn_err *err);

/* Local.  Bind this process, its OpenMP threads and its memory, and read the
 * result back.  Also sets the number of OpenMP threads.  A system that refuses
 * is a warning and not an error: the program works, only slower. */
int dnn_topo_bind(struct dnn_topo *topo, enum dnn_topo_policy policy,
                  const struct dnn_place *place, struct dnn_topo_bound *bound,
                  struct dnn_err *err);

/* Local.  Let the calling thread roam over the whole place: for helper threads,
 * which otherwise inherit the one core of the thread that made them. */
void dnn_topo_bind_helper(struct dnn_topo *topo, enum dnn_topo_policy policy,
                          const struct dnn_place *place);

/* What is wrong, for people: level is an enum dnn_level. */
struct dnn_topo_report {
    int count;    /* messages below                                                */
    int overlaps; /* pairs of ranks that share cores                             */
    struct {
        int level;
        char *text; /* owned */
    } *note;        /* owned */
    size_t cap;
};

/* Local and pure.  Look over everybody's requests and places: overlapping grants,
 * shared cores, fewer cores than threads, shared GPUs.  The caller owns what
 * *out holds. */
void dnn_topo_make_report(const struct dnn_topo_request *requests,
                          const struct dnn_place *places, int count,
                          struct dnn_topo_report *out);
void dnn_topo_free_report(struct dnn_topo_report *report);

#endif
