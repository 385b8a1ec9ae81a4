/* session.h - the environment of this process: Slurm job, ranks, cores.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_SESSION_SESSION_H
#define DNN_SESSION_SESSION_H

#include "comm/comm.h"
#include "slurm/slurm.h"
#include "topo/topo.h"

struct dnn_session {
    struct dnn_slurm slurm;
    struct dnn_topo *topo; /* owned */
    struct dnn_comm *comm; /* owned */
    enum dnn_topo_policy bind;
    struct dnn_topo_request request; /* of this rank */
    struct dnn_place place;
    struct dnn_topo_bound bound;
    int size;                          /* ranks */
    struct dnn_topo_request *requests; /* owned: of all ranks, as the next two */
    struct dnn_place *places;          /* owned */
    struct dnn_topo_bound *bounds;     /* owned */
};

/* Collective.  Read the environment, start communication, map each rank to cores and
 * bind it; threads 0: one per core.  The caller owns the
 * content of *out: dnn_session_close(). */
int dnn_session_open(int threads, enum dnn_topo_policy bind, struct dnn_session *out,
                     struct dnn_err *err);
/* Local.  The environment as if `size` ranks had been started on this node, to plan
 * what they would do: the session of rank 0.  This process is not bound.  The caller
 * owns the content of *out: dnn_session_close(). */
int dnn_session_pretend(int threads, int size, struct dnn_session *out,
                        struct dnn_err *err);
/* Local.  Become another of its ranks; nothing may use its communicator. */
void dnn_session_pretend_rank(struct dnn_session *session, int rank);
void dnn_session_close(struct dnn_session *session); /* may be filled with zeros */

/* Local.  On rank 0: log problems of the mapping; returns how many pairs of ranks share
 * cores. */
int dnn_session_report(const struct dnn_session *session);

/* Local.  Seconds until the Slurm allocation ends; INFINITY without one. */
double dnn_session_time_left(const struct dnn_session *session);

#endif
