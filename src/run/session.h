/* session.h - where this process sits: its job, its ranks, its cores.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_RUN_SESSION_H
#define DNN_RUN_SESSION_H

#include "comm/comm.h"
#include "slurm/slurm.h"
#include "topo/topo.h"

struct dnn_session {
    struct dnn_slurm slurm;
    struct dnn_topo *topo; /* owned */
    struct dnn_comm *comm; /* owned */
    enum dnn_topo_policy bind;
    struct dnn_topo_request request; /* this rank's */
    struct dnn_place place;
    struct dnn_topo_bound bound;
    int size;                          /* ranks */
    struct dnn_topo_request *requests; /* owned, of all ranks, as the two below */
    struct dnn_place *places;          /* owned */
    struct dnn_topo_bound *bounds;     /* owned */
};

/* Collective.  Read the environment, open the ranks, give each its place and bind it
 * there; threads 0: as many as the place has cores.  The caller owns what *out holds:
 * dnn_session_close(). */
int dnn_session_open(int threads, enum dnn_topo_policy bind, struct dnn_session *out,
                     struct dnn_err *err);
void dnn_session_close(struct dnn_session *session); /* of one filled with zeros, too */

/* Local.  On rank 0: log what is odd about who got what; returns how many pairs of
 * ranks share cores. */
int dnn_session_report(const struct dnn_session *session);

/* Local.  Seconds until the allocation ends; INFINITY if it does not. */
double dnn_session_time_left(const struct dnn_session *session);

#endif
