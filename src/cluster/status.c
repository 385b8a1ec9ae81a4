/* status.c - print the state of a running cluster.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "cluster/cluster_impl.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int join_namespaces(const void *peer)
{
    struct dnn_err err = {0};

    if (dnn_cluster_ns_join(peer, false, &err) == 0) return 0;
    dprintf(2, "%s\n", err.text);
    return 1;
}

int dnn_cluster_states(const struct dnn_cluster_peer *peer,
                       struct dnn_cluster_states *out, struct dnn_err *err)
{
    char *const argv[] = {"sinfo", "-h", "-N", "-p", "batch", "-o", "%N %T", NULL};
    struct dnn_buf rows = {0};
    int rc = dnn_cluster_capture(argv, 5, peer == NULL ? NULL : join_namespaces, peer,
                                 &rows, err);

    *out = (struct dnn_cluster_states){0};
    for (char *row = strtok(rows.text, "\n"); rc == 0 && row != NULL;
         row = strtok(NULL, "\n")) {
        char name[16], state[24];
        int index = -1;

        if (sscanf(row, "%15s %23s", name, state) == 2)
            index = dnn_cluster_conf_node(name, DNN_CLUSTER_MAX, NULL);
        if (index > 0) memcpy(out->text[index], state, sizeof state);
    }
    dnn_buf_free(&rows);
    return rc;
}

int dnn_cluster_find(const struct dnn_cluster_cfg *cfg, char dir[DNN_CLUSTER_PATH],
                     struct dnn_cluster_peer *peer, struct dnn_err *err)
{
    DNN_TRY(dnn_cluster_dir(cfg, dir, err));
    if (dnn_cluster_connect(dir, peer)) return 0;
    return dnn_fail(err, DNN_EIO,
                    "cluster \"%s\" is not running (%s); dnn-cluster start starts it",
                    cfg->name, dir);
}

static void print_nodes(const struct dnn_cluster_state *state,
                        const struct dnn_cluster_states *slurm, FILE *where)
{
    fprintf(where, "\n%-6s %-12s %-14s %s\n", "NODE", "ADDRESS", "STATE", "PID");
    for (int i = 1; i <= state->nodes; i++) {
        char name[16], address[16], pid[16] = "dead";

        snprintf(name, sizeof name, "n%d", i);
        if (state->node[i] > 0) snprintf(pid, sizeof pid, "%d", (int)state->node[i]);
        fprintf(where, "%-6s %-12s %-14s %s\n", name,
                dnn_cluster_address(address, state->nodes, i),
                slurm->text[i][0] == '\0' ? "unknown" : slurm->text[i], pid);
    }
}

/* Print commands that use this cluster. */
static void print_use(const struct dnn_cluster_cfg *cfg, int nodes, FILE *where)
{
    char option[160] = "";

    if (cfg->dir != NULL)
        snprintf(option, sizeof option, " --dir %s", cfg->dir);
    else if (strcmp(cfg->name, "main") != 0)
        snprintf(option, sizeof option, " --name %s", cfg->name);
    fprintf(where, "\nuse it:  dnn-cluster run%s -- srun -n 2 hostname\n", option);
    if (nodes == 1) fprintf(where, "or:      eval \"$(dnn-cluster env%s)\"\n", option);
}

int dnn_cluster_print_status(const struct dnn_cluster_cfg *cfg, FILE *where,
                             struct dnn_err *err)
{
    char *const argv[] = {"sinfo", "-o", "%10P %8p %6a %F", NULL};
    char dir[DNN_CLUSTER_PATH];
    struct dnn_cluster_peer peer;
    struct dnn_cluster_state state;
    struct dnn_cluster_states slurm;
    struct dnn_buf partitions = {0};
    struct dnn_err states_err = {0};

    DNN_TRY(dnn_cluster_find(cfg, dir, &peer, err));
    int rc = dnn_cluster_query(&peer, &state, err);
    if (rc == 0) {
        dnn_cluster_environment(dir);
        /* If slurmctld is too busy to answer, print the rest. */
        int states_rc = dnn_cluster_states(&peer, &slurm, &states_err);
        if (states_rc == 0)
            states_rc = dnn_cluster_capture(argv, 5, join_namespaces, &peer,
                                            &partitions, &states_err);
        fprintf(where, "cluster     %s, %d node%s, %s\n", cfg->name, state.nodes,
                state.nodes == 1 ? "" : "s", state.ready ? "running" : "starting");
        fprintf(where, "supervisor  %d\n", (int)peer.pid);
        fprintf(where, "directory   %s (log/, jobs.txt, slurm.conf)\n", dir);
        print_nodes(&state, &slurm, where);
        fprintf(where, "\n%s", states_rc == 0 ? partitions.text : states_err.text);
        if (states_rc != 0) fputc('\n', where);
        print_use(cfg, state.nodes, where);
    }
    dnn_cluster_disconnect(&peer);
    dnn_buf_free(&partitions);
    return rc;
}

int dnn_cluster_print_env(const struct dnn_cluster_cfg *cfg, FILE *where,
                          struct dnn_err *err)
{
    char dir[DNN_CLUSTER_PATH];
    struct dnn_cluster_peer peer;
    struct dnn_cluster_state state;

    DNN_TRY(dnn_cluster_find(cfg, dir, &peer, err));
    int rc = dnn_cluster_query(&peer, &state, err);
    dnn_cluster_disconnect(&peer);
    if (rc < 0) return rc;
    if (state.nodes > 1)
        return dnn_fail(err, DNN_EUSAGE,
                        "cluster \"%s\" has its own network, which cannot be reached "
                        "from outside; use dnn-cluster run -- CMD",
                        cfg->name);
    fprintf(where, "export SLURM_CONF=%s/slurm.conf\n", dir);
    return 0;
}
