/* cluster.h - a private Slurm on this machine, for laptops and for tests.
 *
 * One supervisor process is init of its own PID namespace; munged, slurmctld
 * and the nodes live below it.  When it ends, for whatever reason, the kernel
 * ends everything else.  Each node is init of a nested PID namespace with its
 * own host name and /dev/shm and, when there are several nodes, its own
 * network.  Needs Linux 5.8 or newer.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_CLUSTER_CLUSTER_H
#define DNN_CLUSTER_CLUSTER_H

#include "base/err.h"

#include <stdio.h>

enum { DNN_CLUSTER_MAX = 32 }; /* nodes of one cluster */

/* Which cluster is meant, and the shape it gets when it is started. */
struct dnn_cluster_cfg {
    const char *name; /* letters, digits, - and _                          */
    const char *dir;  /* its files; NULL: /tmp/dnn-cluster-UID/NAME        */
    int nodes;        /* 1 .. DNN_CLUSTER_MAX; only dnn_cluster_start reads it */
    int grace;        /* seconds a preempted job has; likewise             */
    double timeout;   /* seconds to wait for the nodes to be idle          */
};

/* Start it, wait until all its nodes are idle and leave it in the background.
 * One that runs already with the same number of nodes is left as it is.  If
 * it does not come up, or the caller dies half way, everything that was
 * started ends; the logs stay. */
int dnn_cluster_start(const struct dnn_cluster_cfg *cfg, struct dnn_err *err);

/* End it with all its jobs; returns when the last process is gone.  None
 * running is no error. */
int dnn_cluster_stop(const struct dnn_cluster_cfg *cfg, struct dnn_err *err);

/* Stop it, if it is running, and start it again; nodes 0: as many as it has, or one. */
int dnn_cluster_restart(const struct dnn_cluster_cfg *cfg, struct dnn_err *err);

/* Kill a node ("n2") as a power cut would: all its processes and its network
 * are gone at once and Slurm is not told. */
int dnn_cluster_fail(const struct dnn_cluster_cfg *cfg, const char *node,
                     struct dnn_err *err);

/* Boot a failed node anew and wait (cfg->timeout) until Slurm uses it. */
int dnn_cluster_restore(const struct dnn_cluster_cfg *cfg, const char *node,
                        struct dnn_err *err);

/* Run a program (argv ends with NULL) as if logged in on the cluster's login
 * host: its network, host names and SLURM_CONF, our directory, files, terminal
 * and user.  Signals sent to us are passed on.  *status is the program's exit
 * status, 128 + signal if one ended it, 127 if there is no such program.
 * Changes the environment variables of the caller, who must be
 * single-threaded. */
int dnn_cluster_run(const struct dnn_cluster_cfg *cfg, char **argv, int *status,
                    struct dnn_err *err);

/* Supervisor, nodes with address, state and pid, partitions, and how to use
 * it.  DNN_EIO if it is not running. */
int dnn_cluster_print_status(const struct dnn_cluster_cfg *cfg, FILE *where,
                             struct dnn_err *err);

/* Lines for a shell to evaluate, after which srun and the like talk to this
 * cluster without dnn_cluster_run.  One-node clusters only. */
int dnn_cluster_print_env(const struct dnn_cluster_cfg *cfg, FILE *where,
                          struct dnn_err *err);

#endif
