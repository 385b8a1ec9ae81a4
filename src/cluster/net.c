/* net.c - ports of a one-node cluster, and the network of a larger one.
 *
 * Several nodes are connected to a bridge in the supervisor's network namespace: their
 * addresses do not conflict with others, and disappear with the namespace.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "cluster/cluster_impl.h"

#include "base/mem.h"

#include <errno.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int dnn_cluster_net_port(int *port, int *fd, struct dnn_err *err)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    socklen_t len = sizeof any;
    int on = 1;

    /* Without SO_REUSEADDR bind() selects an unused port; with it, set afterwards, the
     * daemon, which also sets it, can listen there. */
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd < 0 || bind(*fd, (struct sockaddr *)&any, sizeof any) != 0 ||
        setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        getsockname(*fd, (struct sockaddr *)&any, &len) != 0) {
        dnn_fail(err, DNN_EIO, "a free TCP port: %s", strerror(errno));
        if (*fd >= 0) close(*fd);
        return DNN_EIO;
    }
    *port = ntohs(any.sin_port);
    return 0;
}

/* In the child that executes ip: keep the capabilities of an ordinary user in the
 * namespace, which would be lost by exec.  ip needs them to change links and to find a
 * node's network by its pid.  Errors are ignored: root has them anyway. */
static int keep_capabilities(const void *unused)
{
    static const unsigned capabilities[] = {CAP_NET_ADMIN, CAP_SYS_PTRACE};
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2];

    (void)unused;
    if (syscall(SYS_capget, &head, caps) != 0) return 0;
    caps[0].inheritable |= 1U << capabilities[0] | 1U << capabilities[1];
    if (syscall(SYS_capset, &head, caps) != 0) return 0;
    for (int i = 0; i < 2; i++)
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capabilities[i], 0, 0);
    return 0;
}

/* Run ip with arguments separated by single spaces. */
static DNN_PRINTF(2, 3) int ip(struct dnn_err *err, const char *fmt, ...)
{
    char arguments[128], *argv[24] = {"ip"};
    struct dnn_buf output = {0};
    va_list ap;
    int n = 1;

    va_start(ap, fmt);
    vsnprintf(arguments, sizeof arguments, fmt, ap);
    va_end(ap);
    char *copy = dnn_strdup(arguments);
    for (char *w = strtok(copy, " "); w != NULL && n < 23; w = strtok(NULL, " "))
        argv[n++] = w;
    int rc = dnn_cluster_capture(argv, 10, keep_capabilities, NULL, &output, err);
    if (rc < 0) rc = dnn_prefix(err, "ip %s: ", arguments);
    dnn_free(copy);
    dnn_buf_free(&output);
    return rc;
}

int dnn_cluster_net_bridge(int nodes, struct dnn_err *err)
{
    char address[16];

    DNN_TRY(ip(err, "link set lo up"));
    DNN_TRY(ip(err, "link add br0 type bridge"));
    DNN_TRY(ip(err, "addr add %s/24 dev br0", dnn_cluster_address(address, nodes, 0)));
    return ip(err, "link set br0 up");
}

int dnn_cluster_net_connect(int index, pid_t node, struct dnn_err *err)
{
    DNN_TRY(ip(err, "link add n%d type veth peer name eth0 netns %d", index, node));
    return ip(err, "link set n%d master br0 up", index);
}

/* At once: the kernel removes the links and neighbour entries of a dead namespace only
 * after a delay. */
void dnn_cluster_net_disconnect(int index)
{
    ip(NULL, "link del n%d", index);
    ip(NULL, "neigh flush dev br0");
}

int dnn_cluster_net_node(int nodes, int index, struct dnn_err *err)
{
    char address[16];

    DNN_TRY(ip(err, "link set lo up"));
    DNN_TRY(
        ip(err, "addr add %s/24 dev eth0", dnn_cluster_address(address, nodes, index)));
    return ip(err, "link set eth0 up");
}
