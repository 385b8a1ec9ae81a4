/* cluster_conf.c - the configuration text of a private cluster.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "cluster/cluster_impl.h"
#include "tap.h"

static struct dnn_cluster_conf conf(int nodes, const char *user)
{
    return (struct dnn_cluster_conf){.name = "try",
                                     .dir = "/d",
                                     .user = user,
                                     .hardware = "CPUs=4 RealMemory=1000",
                                     .nodes = nodes,
                                     .grace = 7,
                                     .ctld_port = 6817,
                                     .slurmd_port = 6818};
}

/* Whether line is one of the lines of text. */
static bool has(const char *text, const char *line)
{
    size_t len = strlen(line);

    for (const char *at = text; (at = strstr(at, line)) != NULL; at++)
        if ((at == text || at[-1] == '\n') && at[len] == '\n') return true;
    return false;
}

static void test_slurm(void)
{
    static const char *const always[] = {
        "ClusterName=try",
        "MpiDefault=pmix",
        "TaskPlugin=task/affinity",
        "JobRequeue=1",
        "PreemptType=preempt/partition_prio",
        "PreemptMode=REQUEUE",
        "ReturnToService=2",
        "AuthInfo=socket=/d/munge.sock,cred_expire=10",
        "SlurmdSpoolDir=/d/spool/%n",
        "JobCompLoc=/d/jobs.txt",
        "PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE PriorityTier=1 "
        "PreemptMode=REQUEUE GraceTime=7 State=UP",
        "PartitionName=urgent Nodes=ALL MaxTime=INFINITE PriorityTier=10 "
        "PreemptMode=OFF State=UP",
        NULL};
    struct dnn_cluster_conf one = conf(1, "root"), two = conf(2, "ada");
    struct dnn_buf a = {0}, b = {0};

    dnn_cluster_conf_slurm(&one, &a);
    dnn_cluster_conf_slurm(&two, &b);
    for (int i = 0; always[i] != NULL; i++)
        ok(has(a.text, always[i]) && has(b.text, always[i]), "%s", always[i]);
    ok(has(a.text, "SlurmctldHost=login(127.0.0.1)"), "one node: loopback");
    ok(has(a.text,
           "NodeName=n1 NodeAddr=127.0.0.1 CPUs=4 RealMemory=1000 State=UNKNOWN"),
       "one node: n1");
    ok(strstr(a.text, "NodeName=n2") == NULL, "one node: no n2");
    ok(has(a.text, "SlurmUser=root") && strstr(a.text, "SlurmdUser") == NULL,
       "root needs no SlurmdUser");
    ok(has(b.text, "SlurmctldHost=login(10.77.0.1)"), "two nodes: own network");
    ok(has(b.text,
           "NodeName=n2 NodeAddr=10.77.0.3 CPUs=4 RealMemory=1000 State=UNKNOWN"),
       "two nodes: n2");
    ok(has(b.text, "SlurmUser=ada") && has(b.text, "SlurmdUser=ada"),
       "an ordinary user runs slurmd too");
    dnn_buf_free(&a);
    dnn_buf_free(&b);
}

static void test_hosts(void)
{
    struct dnn_cluster_conf two = conf(2, "root");
    struct dnn_buf out = {0};

    dnn_cluster_conf_hosts(&two, "192.0.2.1 here\n", &out);
    is_text(out.text,
            "127.0.0.1 localhost\n10.77.0.1 login\n10.77.0.2 n1\n10.77.0.3 n2\n"
            "192.0.2.1 here\n",
            "the hosts file");
    dnn_buf_free(&out);
}

static void test_hardware(void)
{
    struct dnn_buf out = {0};

    ok(dnn_cluster_conf_hardware(
           "NodeName=vm CPUs=2 Boards=1 RealMemory=24103\nUpTime=1", &out),
       "the output of slurmd -C is parsed");
    is_text(out.text, "CPUs=2 Boards=1 RealMemory=24103", "the machine");
    dnn_buf_free(&out);
    ok(dnn_cluster_conf_hardware("CPUs=2 RealMemory=5 Gres=gpu:1\n", &out),
       "with more text after it");
    is_text(out.text, "CPUs=2 RealMemory=5", "which is ignored");
    dnn_buf_free(&out);
    ok(!dnn_cluster_conf_hardware("CPUs=2\nRealMemory=5\n", &out), "two lines are not");
    ok(!dnn_cluster_conf_hardware("slurmd: error\n", &out), "an error is not");
    dnn_buf_free(&out);
}

static void test_node(void)
{
    struct dnn_err err = {0};

    is_int(dnn_cluster_conf_node("n2", 2, &err), 2, "n2 of two");
    is_int(dnn_cluster_conf_node("n3", 2, &err), DNN_EUSAGE, "n3 of two");
    is_text(err.text, "no node \"n3\": this cluster has n1 to n2", "the message");
    is_int(dnn_cluster_conf_node("n02", 2, &err), DNN_EUSAGE, "n02 is not a name");
    is_int(dnn_cluster_conf_node("n-1", 2, &err), DNN_EUSAGE, "n-1 is not a name");
    is_int(dnn_cluster_conf_node("", 1, &err), DNN_EUSAGE, "an empty name");
    is_text(err.text, "no node \"\": this cluster has only n1", "and its message");
}

/* A path must be valid in Slurm's files and short enough for a socket. */
static void test_place(void)
{
    char dir[DNN_CLUSTER_PATH];
    struct dnn_err err = {0};
    struct dnn_cluster_cfg good = {.name = "a-b_1", .dir = "/x/y"};
    struct dnn_cluster_cfg blank = {.name = "a", .dir = "/x y"};
    struct dnn_cluster_cfg comma = {.name = "a,b"};
    struct dnn_cluster_cfg lengthy = {
        .name = "a",
        .dir = "/1234567890/1234567890/1234567890/1234567890/1234567890/1234567890/"
               "1234567890/1234567890/1234567890"};

    is_int(dnn_cluster_dir(&good, dir, &err), 0, "a valid path");
    is_text(dir, "/x/y", "is the path given");
    is_int(dnn_cluster_dir(&blank, dir, &err), DNN_EUSAGE, "a blank in it");
    is_text(err.text,
            "--dir: \"/x y\" is not possible in slurm.conf; only letters, digits and "
            "-_./+@ are allowed",
            "is named");
    is_int(dnn_cluster_dir(&comma, dir, &err), DNN_EUSAGE, "a comma in the name");
    is_int(dnn_cluster_dir(&lengthy, dir, &err), DNN_EUSAGE, "too long a path");
    is_text(
        err.text,
        "--dir: the path has 99 characters; must be at most 95, for the sockets in it",
        "is counted");
}

int main(void)
{
    test_slurm();
    test_hosts();
    test_hardware();
    test_node();
    test_place();
    return done();
}
