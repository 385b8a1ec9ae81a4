/* control.c - messages between commands and the supervisor.
 *
 * The supervisor listens on a local socket in the state directory.  The kernel reports
 * the pid of the listening process, so no pid file is needed, which could be out of
 * date.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "cluster/cluster_impl.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un address(const char *dir)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    snprintf(a.sun_path, sizeof a.sun_path, "%s/control", dir);
    return a;
}

int dnn_cluster_listen(const char *dir, struct dnn_err *err)
{
    struct sockaddr_un a = address(dir);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    mode_t mask = umask(077);
    bool good = fd >= 0 && (unlink(a.sun_path) == 0 || errno == ENOENT) &&
                bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 16) == 0;
    int why = errno;

    umask(mask);
    if (good) return fd;
    if (fd >= 0) close(fd);
    return dnn_fail(err, DNN_EIO, "%s: %s", a.sun_path, strerror(why));
}

bool dnn_cluster_connect(const char *dir, struct dnn_cluster_peer *peer)
{
    struct sockaddr_un a = address(dir);
    struct ucred cred;
    socklen_t len = sizeof cred;
    int on = 1;

    *peer = (struct dnn_cluster_peer){.fd = -1, .pidfd = -1};
    peer->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (peer->fd < 0) return false;
    setsockopt(peer->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    if (connect(peer->fd, (struct sockaddr *)&a, sizeof a) == 0 &&
        getsockopt(peer->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
        cred.pid > 0) {
        struct pollfd p = {.fd = peer->fd};

        peer->pid = cred.pid;
        peer->pidfd = (int)syscall(SYS_pidfd_open, cred.pid, 0);
        /* The connection is open, so the process was alive when pidfd was opened. */
        if (peer->pidfd >= 0 && poll(&p, 1, 0) == 0) return true;
    }
    dnn_cluster_disconnect(peer);
    return false;
}

void dnn_cluster_disconnect(struct dnn_cluster_peer *peer)
{
    if (peer->fd >= 0) close(peer->fd);
    if (peer->pidfd >= 0) close(peer->pidfd);
    *peer = (struct dnn_cluster_peer){.fd = -1, .pidfd = -1};
}

int dnn_cluster_send(int fd, pid_t pid, const char *fmt, ...)
{
    char text[DNN_CLUSTER_PACKET];
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control = {0};
    struct iovec piece = {.iov_base = text};
    struct msghdr msg = {.msg_iov = &piece, .msg_iovlen = 1};
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    piece.iov_len = n < (int)sizeof text ? (size_t)n : sizeof text - 1;
    if (pid != 0) {
        struct ucred cred = {.pid = pid, .uid = geteuid(), .gid = getegid()};

        msg.msg_control = control.bytes;
        msg.msg_controllen = sizeof control.bytes;
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_CREDENTIALS;
        control.head.cmsg_len = CMSG_LEN(sizeof cred);
        memcpy(CMSG_DATA(&control.head), &cred, sizeof cred);
    }
    return sendmsg(fd, &msg, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

int dnn_cluster_recv(int fd, double seconds, char text[DNN_CLUSTER_PACKET], pid_t *pid)
{
    struct dnn_deadline end = dnn_clock_deadline(seconds);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec piece = {.iov_base = text, .iov_len = DNN_CLUSTER_PACKET - 1};
    struct msghdr msg = {.msg_iov = &piece,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    int ready;

    while ((ready = poll(&p, 1, dnn_clock_poll_ms(&end))) < 0 && errno == EINTR)
        ;
    if (ready <= 0) return -1;
    ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n <= 0) return 0;
    text[n] = '\0';
    struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
    if (pid != NULL && head != NULL && head->cmsg_type == SCM_CREDENTIALS) {
        struct ucred cred;

        memcpy(&cred, CMSG_DATA(head), sizeof cred);
        *pid = cred.pid;
    }
    return 1;
}

static int fail_answer(const char *text, struct dnn_err *err)
{
    int code = DNN_EIO, at = 0;

    if (sscanf(text, "fail %d %n", &code, &at) >= 1 && at > 0 && code < 0)
        return dnn_fail(err, code, "%s", text + at);
    return dnn_fail(err, DNN_EIO, "unexpected answer of the supervisor: \"%s\"", text);
}

int dnn_cluster_request(struct dnn_cluster_peer *peer, const char *request,
                        double seconds, struct dnn_err *err)
{
    char text[DNN_CLUSTER_PACKET];

    if (dnn_cluster_send(peer->fd, 0, "%s", request) != 0)
        return dnn_fail(err, DNN_EIO, "the supervisor (pid %d): %s", (int)peer->pid,
                        strerror(errno));
    int got = dnn_cluster_recv(peer->fd, seconds, text, NULL);
    if (got > 0) return strcmp(text, "ok") == 0 ? 0 : fail_answer(text, err);
    return dnn_fail(err, DNN_EIO, "the supervisor (pid %d) %s", (int)peer->pid,
                    got == 0 ? "ended" : "does not answer");
}

int dnn_cluster_query(struct dnn_cluster_peer *peer, struct dnn_cluster_state *out,
                      struct dnn_err *err)
{
    char text[DNN_CLUSTER_PACKET];
    int ready = 0, index, got;
    pid_t pid = 0;

    *out = (struct dnn_cluster_state){0};
    if (dnn_cluster_send(peer->fd, 0, "status") != 0)
        return dnn_fail(err, DNN_EIO, "the supervisor (pid %d): %s", (int)peer->pid,
                        strerror(errno));
    while ((got = dnn_cluster_recv(peer->fd, 20, text, &pid)) > 0) {
        if (strcmp(text, "ok") == 0) return 0;
        if (sscanf(text, "cluster %d %d", &out->nodes, &ready) == 2)
            out->ready = ready != 0;
        else if (sscanf(text, "node %d", &index) == 1 && index >= 1 &&
                 index <= DNN_CLUSTER_MAX)
            out->node[index] = pid;
        else
            return fail_answer(text, err);
    }
    return dnn_fail(err, DNN_EIO, "the supervisor (pid %d) %s", (int)peer->pid,
                    got == 0 ? "ended" : "does not answer");
}

bool dnn_cluster_wait_end(const struct dnn_cluster_peer *peer, double seconds)
{
    struct dnn_deadline end = dnn_clock_deadline(seconds);
    struct pollfd p = {.fd = peer->pidfd, .events = POLLIN};
    int n;

    while ((n = poll(&p, 1, dnn_clock_poll_ms(&end))) < 0 && errno == EINTR)
        ;
    return n > 0;
}
