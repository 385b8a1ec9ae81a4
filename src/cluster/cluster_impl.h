/* cluster_impl.h - internals of this component.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_CLUSTER_CLUSTER_IMPL_H
#define DNN_CLUSTER_CLUSTER_IMPL_H

#include "base/err.h"
#include "base/text.h"
#include "cluster/cluster.h"

#include <stdbool.h>
#include <sys/types.h>

/* ---- conf.c: configuration files as text; pure functions ---- */

struct dnn_cluster_conf {
    const char *name, *dir;
    const char *user;     /* the current user: SlurmUser, and SlurmdUser if not root */
    const char *hardware; /* "CPUs=2 ... RealMemory=24103", from slurmd -C        */
    int nodes, grace;
    int ctld_port, slurmd_port;
};

/* The address of node n1, n2, ... or, with index 0, of the login host; out is
 * returned. */
const char *dnn_cluster_address(char out[16], int nodes, int index);

void dnn_cluster_conf_slurm(const struct dnn_cluster_conf *conf, struct dnn_buf *out);
void dnn_cluster_conf_cgroup(struct dnn_buf *out);
/* The TaskProlog of a one-node cluster. */
void dnn_cluster_conf_prolog(struct dnn_buf *out);
/* rest: the machine's own hosts file, appended after our names. */
void dnn_cluster_conf_hosts(const struct dnn_cluster_conf *conf, const char *rest,
                            struct dnn_buf *out);

/* Append "CPUs=... RealMemory=..." from the output of slurmd -C; false if it is
 * missing. */
bool dnn_cluster_conf_hardware(const char *printed, struct dnn_buf *out);

/* The number of a node name ("n2" is 2), or DNN_EUSAGE. */
int dnn_cluster_conf_node(const char *name, int nodes, struct dnn_err *err);

/* ---- dir.c: the state directory ---- */

enum { DNN_CLUSTER_PATH = 96 }; /* a socket path may have 107 bytes */

/* Check the name and directory of cfg and write the absolute path. */
int dnn_cluster_dir(const struct dnn_cluster_cfg *cfg, char dir[DNN_CLUSTER_PATH],
                    struct dnn_err *err);
/* Make it if it does not exist; fails if it belongs to another user. */
int dnn_cluster_dir_make(const char *dir, struct dnn_err *err);
/* Remove the files of an earlier run and make the subdirectories; needs the lock. */
int dnn_cluster_dir_clear(const char *dir, int nodes, struct dnn_err *err);
/* Take the lock that is held during a start.  Waits at most that many seconds.
 * *fd is owned by the caller; closing all its copies releases the lock. */
int dnn_cluster_dir_lock(const char *dir, double wait, int *fd, struct dnn_err *err);
/* Whether a start currently holds the lock. */
bool dnn_cluster_dir_locked(const char *dir);
int dnn_cluster_dir_write(const char *dir, const char *name, mode_t mode,
                          const void *bytes, size_t len, struct dnn_err *err);
/* The text of a file, empty if there is none. */
void dnn_cluster_dir_read(const char *path, struct dnn_buf *out);
/* Log the last lines of a log file as errors. */
void dnn_cluster_dir_tail(const char *path, int lines);

/* ---- spawn.c: programs, with time limits ---- */

/* Check that all programs are installed; the message has all that are missing, and
 * their packages. */
int dnn_cluster_check_programs(int nodes, struct dnn_err *err);

/* Unset the variables of a Slurm job we may be in, set SLURM_CONF, and add the
 * directories of daemons to PATH. */
void dnn_cluster_environment(const char *dir);

/* Start a program whose stdout and stderr go to a file; returns its pid. */
pid_t dnn_cluster_spawn(char *const *argv, const char *log, struct dnn_err *err);

/* Run a program for at most that many seconds and append its output, stdout and stderr.
 * before(arg), if not NULL, is called in the child; if it is not 0, the child exits
 * with 126.  A status other than 0 is an error with the output as the message. */
int dnn_cluster_capture(char *const *argv, double seconds, int (*before)(const void *),
                        const void *arg, struct dnn_buf *out, struct dnn_err *err);

/* ---- control.c: messages on local sockets ---- */

enum { DNN_CLUSTER_PACKET = 1400 };

/* The running supervisor, seen from a command. */
struct dnn_cluster_peer {
    int fd;    /* connection */
    int pidfd; /* of the process that listens; not affected by reuse of its pid */
    pid_t pid;
};

int dnn_cluster_listen(const char *dir, struct dnn_err *err); /* returns the socket */
/* False if no supervisor listens in dir. */
bool dnn_cluster_connect(const char *dir, struct dnn_cluster_peer *peer);
void dnn_cluster_disconnect(struct dnn_cluster_peer *peer);

/* Send one packet with a pid (0: none), which the kernel translates into the receiver's
 * PID namespace. */
int dnn_cluster_send(int fd, pid_t pid, const char *fmt, ...) DNN_PRINTF(3, 4);
/* 1: a packet was received (text ends with NUL, *pid is the pid sent with it, or the
 * sender); 0: the connection was closed; -1: timeout.  pid may be NULL. */
int dnn_cluster_recv(int fd, double seconds, char text[DNN_CLUSTER_PACKET], pid_t *pid);
/* Send a request and read "ok" or "fail CODE TEXT" within that time. */
int dnn_cluster_request(struct dnn_cluster_peer *peer, const char *request,
                        double seconds, struct dnn_err *err);

/* Wait until the supervisor, and with it the cluster, has ended; false if it is still
 * running after that time. */
bool dnn_cluster_wait_end(const struct dnn_cluster_peer *peer, double seconds);

/* Query the state of the supervisor. */
struct dnn_cluster_state {
    int nodes;
    bool ready;
    pid_t node[DNN_CLUSTER_MAX + 1]; /* of n1 at [1]; 0: not running */
};
int dnn_cluster_query(struct dnn_cluster_peer *peer, struct dnn_cluster_state *out,
                      struct dnn_err *err);

/* ---- namespace.c: namespaces ---- */

/* Create new namespaces (unshare); the next child is init of the PID namespace. Without
 * the permission for this a user namespace is created first. */
int dnn_cluster_ns_unshare(bool network, struct dnn_err *err);
/* In that child: set up mounts, /proc, host name and hosts file. */
int dnn_cluster_ns_mount(const char *hosts, struct dnn_err *err);
/* In a node: set up /proc, /dev/shm, spool directory and host name. */
int dnn_cluster_ns_node(const char *name, const char *spool, struct dnn_err *err);
/* Enter a supervisor's namespaces, keeping the working directory; pid: also its PID
 * namespace, which affects only children. */
int dnn_cluster_ns_join(const struct dnn_cluster_peer *peer, bool pid,
                        struct dnn_err *err);

/* ---- net.c: ports and links ---- */

/* Reserve a free port as long as the socket *fd is open: it is not assigned to other
 * programs, but the daemon can listen on it. */
int dnn_cluster_net_port(int *port, int *fd, struct dnn_err *err);
/* In the supervisor: the bridge of a network of several nodes; connect and disconnect
 * a node. */
int dnn_cluster_net_bridge(int nodes, struct dnn_err *err);
int dnn_cluster_net_connect(int index, pid_t node, struct dnn_err *err);
void dnn_cluster_net_disconnect(int index);
/* In a node, after it was connected. */
int dnn_cluster_net_node(int nodes, int index, struct dnn_err *err);

/* ---- node.c ---- */

/* Boot node index (from 1); *pid is its init, which exits after slurmd and the last job
 * step have ended. */
int dnn_cluster_node_boot(const struct dnn_cluster_conf *conf, int index, pid_t *pid,
                          struct dnn_err *err);
/* Kill it and wait for the last of its processes. */
void dnn_cluster_node_kill(const struct dnn_cluster_conf *conf, int index, pid_t pid);

/* ---- supervise.c ---- */

/* The main function of the supervisor, which is pid 1 of its namespace.  starter: the
 * socket to dnn-cluster start; lock: the start lock; both are closed when the cluster
 * is up.  timeout: seconds until then.  Does not return. */
_Noreturn void dnn_cluster_supervise(struct dnn_cluster_conf *conf, double timeout,
                                     int starter, int lock);

/* ---- status.c ---- */

/* The state of each node in Slurm ("idle", "down*"); empty if slurmctld does not
 * answer. Runs sinfo, in the namespaces of peer unless it is NULL. */
struct dnn_cluster_states {
    char text[DNN_CLUSTER_MAX + 1][24]; /* of n1 at [1] */
};
int dnn_cluster_states(const struct dnn_cluster_peer *peer,
                       struct dnn_cluster_states *out, struct dnn_err *err);

/* Connect to the cluster of cfg.  DNN_EIO if it is not running; the message tells how
 * to start it. */
int dnn_cluster_find(const struct dnn_cluster_cfg *cfg, char dir[DNN_CLUSTER_PATH],
                     struct dnn_cluster_peer *peer, struct dnn_err *err);

#endif
