/* namespace.c - create and enter the namespaces of a cluster.
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

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0) return -1;
    ssize_t n = write(fd, text, strlen(text));
    int why = errno;
    close(fd);
    errno = why;
    return n < 0 ? -1 : 0;
}

/* Create a user namespace in which only our own user and group exist, with the
 * permission to create the other namespaces.  Daemons and jobs run as this user. */
static int unshare_users(void)
{
    unsigned uid = geteuid(), gid = getegid();
    char map[64];

    if (unshare(CLONE_NEWUSER) != 0 || write_text("/proc/self/setgroups", "deny") != 0)
        return -1;
    snprintf(map, sizeof map, "%u %u 1", uid, uid);
    if (write_text("/proc/self/uid_map", map) != 0) return -1;
    snprintf(map, sizeof map, "%u %u 1", gid, gid);
    return write_text("/proc/self/gid_map", map);
}

int dnn_cluster_ns_unshare(bool network, struct dnn_err *err)
{
    int flags =
        CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | (network ? CLONE_NEWNET : 0);

    if (unshare(flags) == 0) return 0;
    if (errno != EPERM)
        return dnn_fail(err, DNN_EIO, "cannot create namespaces: %s", strerror(errno));
    if (geteuid() == 0)
        return dnn_fail(err, DNN_EIO,
                        "root cannot create namespaces here (a container without "
                        "CAP_SYS_ADMIN?); start the container with this capability, "
                        "run on the host, or use an existing Slurm");
    if (unshare_users() == 0 && unshare(flags) == 0) return 0;
    return dnn_fail(
        err, DNN_EIO,
        "this kernel does not allow ordinary users to create user namespaces (%s); "
        "start it as root, or let root allow them (sysctl "
        "user.max_user_namespaces, kernel.unprivileged_userns_clone=1, "
        "kernel.apparmor_restrict_unprivileged_userns=0; not possible inside a "
        "chroot), or use an existing Slurm",
        strerror(errno));
}

/* Our mounts must not be visible outside.  In a chroot "/" is not a mount point and
 * cannot be made private; then the tree is bind-mounted over the private /proc, which
 * becomes our root. */
static int make_mounts_private(struct dnn_err *err)
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
                    "mounting /proc: %s (not allowed in a container with a masked "
                    "/proc; run on the host)",
                    strerror(errno));
}

int dnn_cluster_ns_mount(const char *hosts, struct dnn_err *err)
{
    DNN_TRY(make_mounts_private(err));
    DNN_TRY(mount_proc(err));
    if (sethostname("login", 5) != 0)
        return dnn_fail(err, DNN_EIO, "the host name: %s", strerror(errno));
    if (mount(hosts, "/etc/hosts", NULL, MS_BIND, NULL) != 0)
        return dnn_fail(err, DNN_EIO, "%s over /etc/hosts: %s%s", hosts,
                        strerror(errno),
                        errno == ENOENT ? " (create /etc/hosts; it may be empty)" : "");
    return 0;
}

static int mount_tmpfs(const char *path, const char *mode, struct dnn_err *err)
{
    if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, mode) == 0) return 0;
    return dnn_fail(err, DNN_EIO, "mounting %s: %s", path, strerror(errno));
}

int dnn_cluster_ns_node(const char *name, const char *spool, struct dnn_err *err)
{
    DNN_TRY(mount_proc(err));
    if (sethostname(name, strlen(name)) != 0)
        return dnn_fail(err, DNN_EIO, "the host name: %s", strerror(errno));
    /* Nodes must not share /dev/shm, and after a reboot a node must not find its old
     * files: a requeued job creates sockets with the same names. */
    DNN_TRY(mount_tmpfs("/dev/shm", "mode=1777", err));
    return mount_tmpfs(spool, "mode=755", err);
}

/* flag if the process is in another namespace of this kind than we are, else 0: it is
 * an error to enter one's own user namespace, and entering the machine's network would
 * need root on the machine. */
static int flag_unless_same(pid_t pid, const char *kind, int flag)
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
                flag_unless_same(peer->pid, "user", CLONE_NEWUSER) |
                flag_unless_same(peer->pid, "net", CLONE_NEWNET);

    if (getcwd(cwd, sizeof cwd) == NULL)
        return dnn_fail(err, DNN_EIO, "the working directory: %s", strerror(errno));
    snprintf(path, sizeof path, "/proc/%d/root", (int)peer->pid);
    int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    /* The pid in the paths above is valid only if the supervisor is still alive. */
    if (root < 0)
        return dnn_fail(err, DNN_EIO, "the cluster ended or is not yours: %s: %s", path,
                        strerror(errno));
    if (dnn_cluster_wait_end(peer, 0)) {
        close(root);
        return dnn_fail(err, DNN_EIO, "the cluster has ended");
    }
    /* setns() enters the root of the mount namespace, which is not the supervisor's
     * root if the cluster was started in a chroot. */
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
