/* cluster.h - a private Slurm on this machine, for laptops and for tests.
 *
 * A supervisor process is init of its own PID namespace, which contains munged,
 * slurmctld and the nodes.  When the supervisor ends for any reason, the kernel kills
 * all other processes.  Each node is init of a nested PID namespace with its own host
 * name and /dev/shm and, if there are several nodes, its own network.  Needs Linux 5.8
 * or newer.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_CLUSTER_CLUSTER_H
#define DNN_CLUSTER_CLUSTER_H

#include "base/err.h"

#include <stdio.h>

enum { DNN_CLUSTER_MAX = 32 }; /* nodes of one cluster */

/* The name of a cluster, and its configuration when it is started. */
struct dnn_cluster_cfg {
    const char *name; /* letters, digits, - and _                          */
    const char *dir;  /* its files; NULL: /tmp/dnn-cluster-UID/NAME        */
    int nodes;        /* 1 .. DNN_CLUSTER_MAX; only for dnn_cluster_start() */
    int grace;        /* GraceTime of preempted jobs in seconds; likewise  */
    double timeout;   /* seconds to wait for the nodes to be idle          */
};

/* Start it in the background and wait until all its nodes are idle.  Does nothing if it
 * is already running with the same number of nodes.  If the start fails, or the caller
 * dies before, everything that was started is killed; the log files remain. */
int dnn_cluster_start(const struct dnn_cluster_cfg *cfg, struct dnn_err *err);

/* Stop it with all its jobs; returns when the last process has ended.  It is not an
 * error if it is not running. */
int dnn_cluster_stop(const struct dnn_cluster_cfg *cfg, struct dnn_err *err);

/* Stop it, if it is running, and start it again; nodes 0: as many as it has, or one. */
int dnn_cluster_restart(const struct dnn_cluster_cfg *cfg, struct dnn_err *err);

/* Kill a node ("n2"), like a power failure: all its processes and its network
 * disappear at once, and Slurm is not notified. */
int dnn_cluster_fail(const struct dnn_cluster_cfg *cfg, const char *node,
                     struct dnn_err *err);

/* Boot a failed node again and wait (cfg->timeout) until Slurm uses it. */
int dnn_cluster_restore(const struct dnn_cluster_cfg *cfg, const char *node,
                        struct dnn_err *err);

/* Run a program (argv ends with NULL) as if logged in on the cluster's login
 * host: with its network, host names and SLURM_CONF, but our directory, files, terminal
 * and user.  Signals sent to us are forwarded.  *status is the program's exit status,
 * 128 + signal if it was killed by one, 127 if there is no such program.  Changes the
 * environment variables of the caller, which must be single-threaded. */
int dnn_cluster_run(const struct dnn_cluster_cfg *cfg, char **argv, int *status,
                    struct dnn_err *err);

/* Print supervisor, nodes with address, state and pid, partitions, and how to use the
 * cluster.  DNN_EIO if it is not running. */
int dnn_cluster_print_status(const struct dnn_cluster_cfg *cfg, FILE *where,
                             struct dnn_err *err);

/* Print shell commands to be evaluated; then srun and the like use this cluster without
 * dnn_cluster_run().  One-node clusters only. */
int dnn_cluster_print_env(const struct dnn_cluster_cfg *cfg, FILE *where,
                          struct dnn_err *err);

#endif
