/* command.c - commands for a running cluster: stop, restart, fail, restore.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "cluster/cluster_impl.h"

#include "base/clock.h"
#include "base/log.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int dnn_cluster_stop(const struct dnn_cluster_cfg *cfg, struct dnn_err *err)
{
    char dir[DNN_CLUSTER_PATH];
    struct dnn_cluster_peer peer;
    struct dnn_deadline end = dnn_clock_deadline(20);
    struct dnn_err ignored = {0};

    DNN_TRY(dnn_cluster_dir(cfg, dir, err));
    while (!dnn_cluster_connect(dir, &peer)) {
        /* It may just be starting and not listen yet. */
        if (!dnn_cluster_dir_locked(dir)) {
            dnn_log(DNN_INFO, "cluster", "\"%s\" is not running: %s", cfg->name, dir);
            return 0;
        }
        if (dnn_clock_passed(&end))
            return dnn_fail(err, DNN_EIO,
                            "%s/lock: is locked by a start, but no supervisor answers",
                            dir);
        dnn_clock_sleep(0.05);
    }
    int rc = dnn_cluster_request(&peer, "stop", 8, &ignored);
    if (rc < 0 || !dnn_cluster_wait_end(&peer, 10)) {
        dnn_log(DNN_WARN, "cluster", "the supervisor (pid %d) does not end by itself",
                (int)peer.pid);
        syscall(SYS_pidfd_send_signal, peer.pidfd, SIGKILL, NULL, 0);
    }
    rc = 0;
    if (!dnn_cluster_wait_end(&peer, 10))
        rc = dnn_fail(err, DNN_EIO, "the supervisor (pid %d) does not end",
                      (int)peer.pid);
    dnn_cluster_disconnect(&peer);
    if (rc == 0) dnn_log(DNN_INFO, "cluster", "\"%s\" is stopped: %s", cfg->name, dir);
    return rc;
}

int dnn_cluster_restart(const struct dnn_cluster_cfg *cfg, struct dnn_err *err)
{
    struct dnn_cluster_cfg again = *cfg;
    char dir[DNN_CLUSTER_PATH];
    struct dnn_cluster_state state;
    struct dnn_cluster_peer peer;

    DNN_TRY(dnn_cluster_dir(cfg, dir, err));
    if (again.nodes == 0) again.nodes = 1;
    if (cfg->nodes == 0 && dnn_cluster_connect(dir, &peer)) {
        int rc = dnn_cluster_query(&peer, &state, err);

        dnn_cluster_disconnect(&peer);
        if (rc < 0) return rc;
        again.nodes = state.nodes;
    }
    DNN_TRY(dnn_cluster_stop(&again, err));
    return dnn_cluster_start(&again, err);
}

/* Check the node name and send a request; *was_up: the node was running before. */
static int request(const struct dnn_cluster_cfg *cfg, const char *verb,
                   const char *node, char dir[DNN_CLUSTER_PATH], bool *was_up,
                   struct dnn_err *err)
{
    struct dnn_cluster_peer peer;
    struct dnn_cluster_state state;
    char text[64];

    DNN_TRY(dnn_cluster_find(cfg, dir, &peer, err));
    int rc = dnn_cluster_query(&peer, &state, err);
    dnn_cluster_disconnect(&peer);
    if (rc == 0) rc = dnn_cluster_conf_node(node, state.nodes, err);
    if (rc < 0) return rc;
    *was_up = state.node[rc] > 0;
    DNN_TRY(dnn_cluster_find(cfg, dir, &peer, err));
    snprintf(text, sizeof text, "%s n%d", verb, rc);
    rc = dnn_cluster_request(&peer, text, 20, err);
    dnn_cluster_disconnect(&peer);
    return rc;
}

int dnn_cluster_fail(const struct dnn_cluster_cfg *cfg, const char *node,
                     struct dnn_err *err)
{
    char dir[DNN_CLUSTER_PATH];
    bool was_up;

    DNN_TRY(request(cfg, "fail", node, dir, &was_up, err));
    dnn_log(DNN_INFO, "cluster",
            was_up ? "%s was killed; Slurm detects this in 10 to 16 s"
                   : "%s was not running",
            node);
    return 0;
}

int dnn_cluster_restore(const struct dnn_cluster_cfg *cfg, const char *node,
                        struct dnn_err *err)
{
    struct dnn_deadline end = dnn_clock_deadline(cfg->timeout);
    struct dnn_cluster_states states;
    struct dnn_cluster_peer peer;
    char dir[DNN_CLUSTER_PATH];
    bool was_up;

    DNN_TRY(request(cfg, "restore", node, dir, &was_up, err));
    if (was_up) {
        dnn_log(DNN_INFO, "cluster", "%s is running", node);
        return 0;
    }
    DNN_TRY(dnn_cluster_find(cfg, dir, &peer, err));
    dnn_cluster_environment(dir);
    int index = dnn_cluster_conf_node(node, DNN_CLUSTER_MAX, err), rc;
    const char *state = "";
    bool usable = false;
    while (!usable && !dnn_clock_passed(&end)) {
        dnn_clock_sleep(0.2);
        rc = dnn_cluster_states(&peer, &states, err);
        if (rc < 0) continue;
        state = states.text[index];
        /* Slurm marks a node that does not answer by "*". */
        usable = strchr(state, '*') == NULL &&
                 (strcmp(state, "idle") == 0 || strcmp(state, "mixed") == 0 ||
                  strcmp(state, "allocated") == 0);
    }
    dnn_cluster_disconnect(&peer);
    if (!usable)
        return dnn_fail(err, DNN_EIO, "%s is %s after %.0f s, see %s/log/slurmd.%s.log",
                        node, state[0] == '\0' ? "unknown" : state, cfg->timeout, dir,
                        node);
    dnn_log(DNN_INFO, "cluster", "%s is %s", node, state);
    return 0;
}
