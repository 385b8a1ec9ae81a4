/* namespace.c - the namespaces of a cluster: making and entering them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "cluster/cluster_impl.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static int put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0) return -1;
    ssize_t n = write(fd, text, strlen(text));
    int why = errno;
    close(fd);
    errno = why;
    return n < 0 ? -1 : 0;
}

/* A user namespace in which we are who we are, with the right to make the other
 * namespaces.  Everybody else is a stranger there: daemons and jobs run as us. */
static int own_users(void)
{
    unsigned uid = geteuid(), gid = getegid();
    char map[64];

    if (unshare(CLONE_NEWUSER) != 0 || put("/proc/self/setgroups", "deny") != 0)
        return -1;
    snprintf(map, sizeof map, "%u %u 1", uid, uid);
    if (put("/proc/self/uid_map", map) != 0) return -1;
    snprintf(map, sizeof map, "%u %u 1", gid, gid);
    return put("/proc/self/gid_map", map);
}

int dnn_cluster_ns_leave(bool network, struct dnn_err *err)
{
    int flags =
        CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | (network ? CLONE_NEWNET : 0);

    if (unshare(flags) == 0) return 0;
    if (errno != EPERM)
        return dnn_fail(err, DNN_EIO, "this kernel has no namespaces for it: %s",
                        strerror(errno));
    if (geteuid() == 0)
        return dnn_fail(err, DNN_EIO,
                        "root may not make namespaces here (a container without "
                        "CAP_SYS_ADMIN?); start the container with that right, run on "
                        "the host itself, or use a Slurm that is there already");
    if (own_users() == 0 && unshare(flags) == 0) return 0;
    return dnn_fail(
        err, DNN_EIO,
        "this kernel lets ordinary users make no user namespaces (%s); what "
        "works: start it as root, or have root allow them (sysctl "
        "user.max_user_namespaces, kernel.unprivileged_userns_clone=1, "
        "kernel.apparmor_restrict_unprivileged_userns=0; never inside a "
        "chroot), or use a Slurm that is there already",
        strerror(errno));
}

/* Nothing we mount may show up outside.  In a chroot "/" is no mount point and
 * cannot be told so; then a copy of the tree, mounted over the private /proc
 * where nobody sees it, becomes our root. */
static int keep_mounts(struct dnn_err *err)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0) return 0;
    if (errno == EINVAL && mount(NULL, "/proc", NULL, MS_PRIVATE, NULL) == 0 &&
        mount("/", "/proc", NULL, MS_BIND | MS_REC, NULL) == 0 &&
        mount(NULL, "/proc", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        chroot("/proc") == 0 && chdir("/") == 0)
        return 0;
    return dnn_fail(err, DNN_EIO, "making mounts private: %s", strerror(errno));
}

static int mount_proc(struct dnn_err *err)
{
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0)
        return 0;
    return dnn_fail(err, DNN_EIO,
                    "mounting /proc: %s (inside a container whose own /proc is masked "
                    "this is forbidden; run on the host itself)",
                    strerror(errno));
}

int dnn_cluster_ns_mount(const char *hosts, struct dnn_err *err)
{
    DNN_TRY(keep_mounts(err));
    DNN_TRY(mount_proc(err));
    if (sethostname("login", 5) != 0)
        return dnn_fail(err, DNN_EIO, "the host name: %s", strerror(errno));
    if (mount(hosts, "/etc/hosts", NULL, MS_BIND, NULL) != 0)
        return dnn_fail(err, DNN_EIO, "%s over /etc/hosts: %s%s", hosts,
                        strerror(errno),
                        errno == ENOENT ? " (an empty /etc/hosts would do)" : "");
    return 0;
}

static int mount_memory(const char *path, const char *mode, struct dnn_err *err)
{
    if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, mode) == 0) return 0;
    return dnn_fail(err, DNN_EIO, "mounting %s: %s", path, strerror(errno));
}

int dnn_cluster_ns_node(const char *name, const char *spool, struct dnn_err *err)
{
    DNN_TRY(mount_proc(err));
    if (sethostname(name, strlen(name)) != 0)
        return dnn_fail(err, DNN_EIO, "the host name: %s", strerror(errno));
    /* Ranks on two nodes must not meet in shared memory, and a node that is
     * booted again must not find what it left when it died: sockets that a
     * requeued job would want to make anew. */
    DNN_TRY(mount_memory("/dev/shm", "mode=1777", err));
    return mount_memory(spool, "mode=755", err);
}

/* The flag if the process is in another namespace of that kind than we are, else
 * 0: entering one's own user namespace is an error, and entering the machine's
 * network would take the machine's root. */
static int unless_ours(pid_t pid, const char *kind, int flag)
{
    char path[2][64];
    struct stat ours, theirs;

    snprintf(path[0], sizeof path[0], "/proc/self/ns/%s", kind);
    snprintf(path[1], sizeof path[1], "/proc/%d/ns/%s", (int)pid, kind);
    if (stat(path[0], &ours) != 0 || stat(path[1], &theirs) != 0) return flag;
    return ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev ? 0 : flag;
}

int dnn_cluster_ns_join(const struct dnn_cluster_peer *peer, bool pid,
                        struct dnn_err *err)
{
    char path[64], cwd[4096];
    int flags = CLONE_NEWNS | CLONE_NEWUTS | (pid ? CLONE_NEWPID : 0) |
                unless_ours(peer->pid, "user", CLONE_NEWUSER) |
                unless_ours(peer->pid, "net", CLONE_NEWNET);

    if (getcwd(cwd, sizeof cwd) == NULL)
        return dnn_fail(err, DNN_EIO, "the working directory: %s", strerror(errno));
    snprintf(path, sizeof path, "/proc/%d/root", (int)peer->pid);
    int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    /* The numbers above are only good if it still lives. */
    if (root < 0 || dnn_cluster_gone(peer, 0)) {
        if (root >= 0) close(root);
        return dnn_fail(err, DNN_EIO, "the cluster ended or is not yours: %s: %s", path,
                        strerror(errno));
    }
    /* Entering a mount namespace lands in its root, which need not be the root
     * we all know if the cluster was started inside a chroot. */
    if (setns(peer->pidfd, flags) != 0 || fchdir(root) != 0 || chroot(".") != 0) {
        int why = errno;

        close(root);
        return dnn_fail(err, DNN_EIO, "entering the cluster's namespaces: %s",
                        strerror(why));
    }
    close(root);
    if (chdir(cwd) != 0)
        return dnn_fail(err, DNN_EIO, "%s: %s inside the cluster", cwd,
                        strerror(errno));
    return 0;
}
