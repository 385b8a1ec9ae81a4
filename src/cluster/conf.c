/* conf.c - the configuration files of a private cluster, as text.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "cluster/cluster_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Any addresses can be used, because the cluster has its own network namespace. */
const char *dnn_cluster_address(char out[16], int nodes, int index)
{
    if (nodes == 1)
        snprintf(out, 16, "127.0.0.1");
    else
        snprintf(out, 16, "10.77.0.%d", 1 + (index & 127));
    return out;
}

/* Names, ports and files.  The daemons run in the foreground, with stderr redirected to
 * their log files, so that these also contain messages from before the configuration
 * is read.  Job steps have no stderr and need SlurmdLogFile. */
static void add_identity(const struct dnn_cluster_conf *c, struct dnn_buf *out)
{
    char login[16];

    dnn_buf_add(out, "ClusterName=%s\n", c->name);
    dnn_buf_add(out, "SlurmctldHost=login(%s)\n",
                dnn_cluster_address(login, c->nodes, 0));
    dnn_buf_add(out, "SlurmctldPort=%d\nSlurmdPort=%d\n", c->ctld_port, c->slurmd_port);
    dnn_buf_add(out, "SlurmUser=%s\n", c->user);
    if (strcmp(c->user, "root") != 0) dnn_buf_add(out, "SlurmdUser=%s\n", c->user);
    if (c->nodes == 1) {
        dnn_buf_add(out, "# Listen on this machine only.\n");
        dnn_buf_add(out, "CommunicationParameters=NoCtldInAddrAny\n");
        dnn_buf_add(out, "TaskProlog=%s/task_prolog\n", c->dir);
    }
    dnn_buf_add(out, "\nAuthType=auth/munge\n");
    dnn_buf_add(out, "# cred_expire is also the delay of a requeued job.\n");
    dnn_buf_add(out, "AuthInfo=socket=%s/munge.sock,cred_expire=10\n", c->dir);
    dnn_buf_add(out, "\nStateSaveLocation=%s/state\n", c->dir);
    dnn_buf_add(out, "SlurmdSpoolDir=%s/spool/%%n\n", c->dir);
    dnn_buf_add(
        out,
        "# Nodes share /tmp, but PMIx's file names there depend on the job only.\n");
    dnn_buf_add(out, "TmpFS=%s/spool/%%n\n", c->dir);
    dnn_buf_add(out, "SlurmctldPidFile=%s/slurmctld.pid\n", c->dir);
    dnn_buf_add(out, "SlurmdPidFile=%s/slurmd.%%n.pid\n", c->dir);
    dnn_buf_add(out, "SlurmdLogFile=%s/log/steps.%%n.log\n", c->dir);
    dnn_buf_add(out, "SlurmctldDebug=info\nSlurmdDebug=info\n");
    dnn_buf_add(out, "SlurmctldSyslogDebug=quiet\nSlurmdSyslogDebug=quiet\n");
    dnn_buf_add(out, "LogTimeFormat=iso8601,format_stderr\n");
    dnn_buf_add(out, "MailProg=/bin/true\n");
}

/* A dead node is detected after SlurmdTimeout plus one failed message.  The kernel
 * needs 3 s to report that a host is unreachable; with a shorter TCPTimeout Slurm would
 * consider the node slow and retry for half a minute. */
static void add_behaviour(const struct dnn_cluster_conf *c, struct dnn_buf *out)
{
    dnn_buf_add(out, "\nMpiDefault=pmix\n"
                     "ProctrackType=proctrack/linuxproc\n"
                     "TaskPlugin=task/affinity\n"
                     "SelectType=select/cons_tres\n"
                     "SelectTypeParameters=CR_Core\n"
                     "SchedulerType=sched/backfill\n"
                     "SchedulerParameters=sched_interval=5,bf_interval=5\n"
                     "\nJobRequeue=1\n"
                     "PreemptType=preempt/partition_prio\n"
                     "PreemptMode=REQUEUE\n"
                     "ReturnToService=2\n"
                     "SlurmctldTimeout=10\n"
                     "SlurmdTimeout=8\n"
                     "TCPTimeout=5\n"
                     "KillWait=5\n"
                     "MinJobAge=3600\n");
    dnn_buf_add(out, "\nJobCompType=jobcomp/filetxt\nJobCompLoc=%s/jobs.txt\n", c->dir);
}

void dnn_cluster_conf_slurm(const struct dnn_cluster_conf *c, struct dnn_buf *out)
{
    dnn_buf_add(out, "# Written by dnn-cluster; changes are lost at the next start.\n");
    add_identity(c, out);
    add_behaviour(c, out);
    dnn_buf_add(out, "\n# All nodes have (and share) all cores of this machine.\n");
    for (int i = 1; i <= c->nodes; i++) {
        char address[16];

        dnn_buf_add(out, "NodeName=n%d NodeAddr=%s %s State=UNKNOWN\n", i,
                    dnn_cluster_address(address, c->nodes, i), c->hardware);
    }
    dnn_buf_add(out, "\n# Jobs in urgent take the cores of jobs in batch.\n");
    dnn_buf_add(out,
                "PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE "
                "PriorityTier=1 PreemptMode=REQUEUE GraceTime=%d State=UP\n",
                c->grace);
    dnn_buf_add(out, "PartitionName=urgent Nodes=ALL MaxTime=INFINITE "
                     "PriorityTier=10 PreemptMode=OFF State=UP\n");
}

void dnn_cluster_conf_cgroup(struct dnn_buf *out)
{
    dnn_buf_add(out, "# Without systemd or root cgroups may not be available.\n"
                     "CgroupPlugin=disabled\n");
}

void dnn_cluster_conf_prolog(struct dnn_buf *out)
{
    dnn_buf_add(
        out, "#!/bin/sh\n"
             "# Ranks on one node use shared memory; without this Open MPI also looks\n"
             "# for a network between them and prints warnings if there is none.\n"
             "[ -n \"$OMPI_MCA_btl\" ] || echo 'export OMPI_MCA_btl=^tcp'\n");
}

void dnn_cluster_conf_hosts(const struct dnn_cluster_conf *c, const char *rest,
                            struct dnn_buf *out)
{
    dnn_buf_add(out, "127.0.0.1 localhost\n");
    for (int i = 0; i <= c->nodes; i++) {
        char address[16];

        dnn_cluster_address(address, c->nodes, i);
        if (i == 0)
            dnn_buf_add(out, "%s login\n", address);
        else
            dnn_buf_add(out, "%s n%d\n", address, i);
    }
    dnn_buf_add(out, "%s", rest == NULL ? "" : rest);
}

bool dnn_cluster_conf_hardware(const char *printed, struct dnn_buf *out)
{
    const char *from = strstr(printed, "CPUs=");
    const char *memory = from == NULL ? NULL : strstr(from, "RealMemory=");

    if (memory == NULL) return false;
    const char *to = memory + strcspn(memory, " \n");
    if (memchr(from, '\n', (size_t)(to - from)) != NULL) return false;
    dnn_buf_bytes(out, from, (size_t)(to - from));
    return true;
}

int dnn_cluster_conf_node(const char *name, int nodes, struct dnn_err *err)
{
    long long index = 0;

    if (name[0] == 'n' && name[1] >= '1' && name[1] <= '9' &&
        dnn_text_int(name + 1, &index) && index <= nodes)
        return (int)index;
    if (nodes == 1)
        return dnn_fail(err, DNN_EUSAGE, "no node \"%s\": this cluster has only n1",
                        name);
    return dnn_fail(err, DNN_EUSAGE, "no node \"%s\": this cluster has n1 to n%d", name,
                    nodes);
}
