/* dnn-cluster.c - a private Slurm on this machine.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/opt.h"
#include "cluster/cluster.h"

#include <stdio.h>
#include <stdlib.h>

struct options {
    const char *name, *dir;
    long nodes, grace;
    double timeout;
};

static struct dnn_cluster_cfg cfg(const void *opt)
{
    const struct options *o = opt;

    return (struct dnn_cluster_cfg){.name = o->name,
                                    .dir = o->dir,
                                    .nodes = (int)o->nodes,
                                    .grace = (int)o->grace,
                                    .timeout = o->timeout};
}

static int start(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    struct dnn_cluster_cfg c = cfg(opt);

    (void)nargs, (void)args;
    return dnn_cluster_start(&c, err);
}

static int stop(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    struct dnn_cluster_cfg c = cfg(opt);

    (void)nargs, (void)args;
    return dnn_cluster_stop(&c, err);
}

static int restart(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    struct dnn_cluster_cfg c = cfg(opt);

    (void)nargs, (void)args;
    return dnn_cluster_restart(&c, err);
}

static int status(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    struct dnn_cluster_cfg c = cfg(opt);

    (void)nargs, (void)args;
    return dnn_cluster_print_status(&c, stdout, err);
}

static int env(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    struct dnn_cluster_cfg c = cfg(opt);

    (void)nargs, (void)args;
    return dnn_cluster_print_env(&c, stdout, err);
}

static int fail(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    struct dnn_cluster_cfg c = cfg(opt);

    (void)nargs;
    return dnn_cluster_fail(&c, args[0], err);
}

static int restore(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    struct dnn_cluster_cfg c = cfg(opt);

    (void)nargs;
    return dnn_cluster_restore(&c, args[0], err);
}

static int run(const void *opt, int nargs, char **args, struct dnn_err *err)
{
    struct dnn_cluster_cfg c = cfg(opt);
    char **argv = calloc((size_t)nargs + 1, sizeof *argv);
    int result = 0;

    for (int i = 0; argv != NULL && i < nargs; i++)
        argv[i] = args[i];
    int rc = argv == NULL
                 ? dnn_fail(err, DNN_ENOMEM, "no memory for %d arguments", nargs)
                 : dnn_cluster_run(&c, argv, &result, err);
    free(argv);
    return rc < 0 ? rc : result; /* positive: the program's own status */
}

#define AT(field) offsetof(struct options, field)

static const struct dnn_option common[] = {
    {"name", 'n', DNN_O_TEXT, AT(name), "NAME", "main", 0, 0, NULL,
     "which cluster; several can run side by side"                      },
    {"dir",  'd', DNN_O_TEXT, AT(dir),  "DIR",  NULL,   0, 0, NULL,
     "where its files are, instead of /tmp/dnn-cluster-UID/NAME"        },
    {NULL,   0,   0,          0,        NULL,   NULL,   0, 0, NULL, NULL}
};

static const struct dnn_option start_options[] = {
    {"nodes",   'N', DNN_O_INT,  AT(nodes),   "N",       "1",  1, DNN_CLUSTER_MAX, NULL,
     "how many nodes, named n1, n2, ..."                                                     },
    {"grace",   0,   DNN_O_INT,  AT(grace),   "SECONDS", "10", 0, 3600,            NULL,
     "how long a preempted job has between SIGTERM and its end"                              },
    {"timeout", 't', DNN_O_REAL, AT(timeout), "SECONDS", "60", 1, 3600,            NULL,
     "how long to wait until all nodes are idle"                                             },
    {NULL,      0,   0,          0,           NULL,      NULL, 0, 0,               NULL, NULL}
};

static const struct dnn_option restart_options[] = {
    {"nodes",   'N', DNN_O_INT,  AT(nodes),   "N",       "0",  0, DNN_CLUSTER_MAX, NULL,
     "number of nodes; 0: as many as are running, or 1"                                      },
    {"grace",   0,   DNN_O_INT,  AT(grace),   "SECONDS", "10", 0, 3600,            NULL,
     "how long a preempted job has between SIGTERM and its end"                              },
    {"timeout", 't', DNN_O_REAL, AT(timeout), "SECONDS", "60", 1, 3600,            NULL,
     "how long to wait until all nodes are idle"                                             },
    {NULL,      0,   0,          0,           NULL,      NULL, 0, 0,               NULL, NULL}
};

static const struct dnn_option restore_options[] = {
    {"timeout", 't', DNN_O_REAL, AT(timeout), "SECONDS", "60", 1, 3600, NULL,
     "how long to wait until Slurm uses the node"                                 },
    {NULL,      0,   0,          0,           NULL,      NULL, 0, 0,    NULL, NULL}
};

static const struct dnn_command commands[] = {
    {"start",   "",            0, 0,  "start a cluster and wait until it is up",      start_options,
     "One that runs already with the same number of nodes is left as it is.  The "
     "supervisor stays in the background.  If the start does not succeed, or is "
     "killed half way, nothing that it started stays.",                                                      start  },
    {"stop",    "",            0, 0,  "end a cluster and all its jobs",               NULL,
     "Returns when the last process is gone.  It is no error if none is running.  "
     "Logs and job records stay until the next start.",                                                      stop   },
    {"restart", "",            0, 0,  "stop a cluster and start it again",            restart_options,
     "All jobs end.  One that is not running is started.",                                                   restart},
    {"status",  "",            0, 0,  "show supervisor, nodes and partitions",        NULL,
     "Exit status 0 if it is running, 5 if not.",                                                            status },
    {"fail",    "NODE",        1, 1,  "kill a node as a power cut would",             NULL,
     "All its processes and its network are gone at once.  Slurm is not "
     "notified: after SlurmdTimeout it sets the node DOWN and requeues its jobs.",                           fail   },
    {"restore", "NODE",        1, 1,  "boot a failed node and wait until it is used",
     restore_options,                                                                                  NULL, restore},
    {"run",     "[--] CMD...", 1, -1, "run a command as if logged in on the cluster", NULL,
     "SLURM_CONF, host names and network are the cluster's; user, files, working "
     "directory and terminal are yours.  Signals are passed on, and the exit status "
     "is the command's (128 + N if signal N ended it).  In a cluster of several nodes "
     "the command sees only the cluster's network.",                                                         run    },
    {"env",     "",            0, 0,  "print shell lines to use a one-node cluster",  NULL,
     "After eval \"$(dnn-cluster env)\" srun and sbatch talk to the cluster directly.",                      env    },
    {NULL,      NULL,          0, 0,  NULL,                                           NULL,            NULL, NULL   }
};

static const struct dnn_tool tool = {
    .name = "dnn-cluster",
    .help = "a private Slurm on this machine",
    .about =
        "Starts munged, slurmctld and one slurmd per node, configured as a site would: "
        "PMIx is the default, tasks are bound to cores, jobs are requeued, and jobs in "
        "the partition \"urgent\" preempt jobs in \"batch\" (the default) after a "
        "grace "
        "time.  jobs.txt in the cluster's directory records every job with its exit "
        "code.\n\n"
        "Each node is a PID, mount and UTS namespace; with several nodes each also has "
        "its own network and address.  All nodes have the cores and the memory of this "
        "machine and share them.  One node needs no network set-up: its daemons listen "
        "on free ports of the loopback address.\n\n"
        "Root is not needed where the kernel lets users make user namespaces; daemons "
        "and jobs then run as you.  Needs Linux 5.8 or newer.",
    .size = sizeof(struct options),
    .options = common,
    .commands = commands,
    .files =
        "/tmp/dnn-cluster-UID/NAME\tconfiguration, log/ and jobs.txt of a cluster\n",
    .examples = "dnn-cluster start --nodes 2\tstart two nodes\n"
                "dnn-cluster run -- sbatch job.sh\tsubmit a job\n"
                "dnn-cluster fail n2\tlose a node\n"
                "dnn-cluster stop\tend everything\n",
    .see_also = "slurm.conf(5), srun(1), sbatch(1), namespaces(7)",
};

int main(int argc, char **argv)
{
    return dnn_opt_main(&tool, argc, argv);
}
