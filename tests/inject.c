/* inject.c - preloaded into a program, makes one of its system calls fail.
 *
 *   LD_PRELOAD=tests/inject.so DNN_INJECT=write:3:ENOSPC program...
 *
 * The third write fails with ENOSPC; so can open, close, fsync, rename, mkdir,
 * unlink, fchmod and read.  Instead of an error's name: SHORT (a read or
 * write of half the bytes), KILL (the process is killed just before the call) and
 * NONE (the call is only counted).
 *
 * DNN_INJECT_UNDER=DIR counts only calls on files below DIR.  DNN_INJECT_LOG=FILE
 * gets the line "CALL N" when call N was reached, so that a test knows when
 * there are no more calls to try.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    int value;
} errors[] = {
    {"EIO",    EIO   },
    {"ENOSPC", ENOSPC},
    {"EDQUOT", EDQUOT},
    {"EINTR",  EINTR },
    {"EACCES", EACCES},
    {"EROFS",  EROFS },
    {"EINVAL", EINVAL},
    {"EMFILE", EMFILE},
};

enum { SHORT = -1, KILL = -2, NONE = -3 };

static struct {
    bool ready, on;
    char call[16];
    long at, seen;
    int what; /* an errno, or one of the above */
    const char *under, *log;
} plan;

/* Print what is wrong with DNN_INJECT and exit: a test that injects nothing because of
 * a misspelt name would pass for the wrong reason. */
static void refuse(const char *text)
{
    fprintf(stderr, "inject: DNN_INJECT=%s is not CALL:N:ERROR\n", text);
    _exit(99);
}

static void read_plan(void)
{
    const char *text = getenv("DNN_INJECT");
    char what[16];

    plan.ready = true;
    if (text == NULL) return;
    if (sscanf(text, "%15[a-z]:%ld:%15[A-Z]", plan.call, &plan.at, what) != 3)
        refuse(text);
    if (strcmp(what, "SHORT") == 0) plan.what = SHORT;
    if (strcmp(what, "KILL") == 0) plan.what = KILL;
    if (strcmp(what, "NONE") == 0) plan.what = NONE;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (strcmp(what, errors[i].name) == 0) plan.what = errors[i].value;
    if (plan.what == 0) refuse(text);
    plan.under = getenv("DNN_INJECT_UNDER");
    plan.log = getenv("DNN_INJECT_LOG");
    plan.on = true;
}

/* Whether a call on path, as seen from the directory or file fd (path NULL), is
 * one of those that count. */
static bool counts(int fd, const char *path)
{
    char link[32], base[PATH_MAX] = "", whole[2 * PATH_MAX];
    size_t len = plan.under == NULL ? 0 : strlen(plan.under);

    if (len == 0) return true;
    if (path == NULL || path[0] != '/') {
        snprintf(link, sizeof link,
                 fd == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, base, sizeof base - 1);
        if (n < 0) return false;
        base[n] = '\0';
    }
    snprintf(whole, sizeof whole, "%s%s%s", base, path == NULL ? "" : "/",
             path == NULL ? "" : path);
    const char *at = whole + (path != NULL && path[0] == '/');
    return strncmp(at, plan.under, len) == 0 && (at[len] == '/' || at[len] == '\0');
}

/* What to do with this call: 0 nothing, SHORT, or fail with the errno. */
static int fate(const char *call, int fd, const char *path)
{
    int was = errno;

    if (!plan.ready) read_plan();
    if (!plan.on || strcmp(call, plan.call) != 0 || !counts(fd, path) ||
        ++plan.seen != plan.at) {
        errno = was;
        return 0;
    }
    if (plan.log != NULL) {
        char line[48];
        int n = snprintf(line, sizeof line, "%s %ld\n", call, plan.at);
        int out = (int)syscall(SYS_openat, AT_FDCWD, plan.log,
                               O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

        syscall(SYS_write, out, line, n);
        syscall(SYS_close, out);
    }
    if (plan.what == KILL) raise(SIGKILL);
    errno = was;
    return plan.what == NONE ? 0 : plan.what;
}

/* The functions themselves go to the system directly: then it does not matter
 * which other library wraps them, too.  For a call that takes no directory there
 * is one that does, and not every machine has both. */
#define FAIL_UNLESS_MESSAGE(call, fd, path)                                            \
    do {                                                                               \
        int fate_ = fate(call, fd, path);                                              \
        if (fate_ > 0) {                                                               \
            errno = fate_;                                                             \
            return -1;                                                                 \
        }                                                                              \
    } while (0)

ssize_t write(int fd, const void *bytes, size_t len)
{
    int failure = fate("write", fd, NULL);

    if (failure > 0) {
        errno = failure;
        return -1;
    }
    if (failure == SHORT && len > 1) len /= 2;
    return syscall(SYS_write, fd, bytes, len);
}

ssize_t read(int fd, void *bytes, size_t len)
{
    int failure = fate("read", fd, NULL);

    if (failure > 0) {
        errno = failure;
        return -1;
    }
    if (failure == SHORT && len > 1) len /= 2;
    return syscall(SYS_read, fd, bytes, len);
}

int fsync(int fd)
{
    FAIL_UNLESS_MESSAGE("fsync", fd, NULL);
    return (int)syscall(SYS_fsync, fd);
}

/* As Linux does it, the descriptor is gone also when close reports a failure. */
int close(int fd)
{
    int failure = fate("close", fd, NULL);
    int rc = (int)syscall(SYS_close, fd);

    if (failure <= 0) return rc;
    errno = failure;
    return -1;
}

int fchmod(int fd, mode_t mode)
{
    FAIL_UNLESS_MESSAGE("fchmod", fd, NULL);
    return (int)syscall(SYS_fchmod, fd, mode);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    FAIL_UNLESS_MESSAGE("rename", to_dir, to);
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
}

int rename(const char *from, const char *to)
{
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int unlinkat(int dir, const char *path, int flags)
{
    FAIL_UNLESS_MESSAGE("unlink", dir, path);
    return (int)syscall(SYS_unlinkat, dir, path, flags);
}

int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}

int mkdirat(int dir, const char *path, mode_t mode)
{
    FAIL_UNLESS_MESSAGE("mkdir", dir, path);
    return (int)syscall(SYS_mkdirat, dir, path, mode);
}

int mkdir(const char *path, mode_t mode)
{
    return mkdirat(AT_FDCWD, path, mode);
}

/* The mode is there only if a file may be created. */
static int open_any(int dir, const char *path, int flags, va_list ap)
{
    bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    mode_t mode = creates ? va_arg(ap, mode_t) : 0;

    FAIL_UNLESS_MESSAGE("open", dir, path);
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
    va_list ap;

    va_start(ap, flags);
    int fd = open_any(dir, path, flags, ap);
    va_end(ap);
    return fd;
}

int open(const char *path, int flags, ...)
{
    va_list ap;

    va_start(ap, flags);
    int fd = open_any(AT_FDCWD, path, flags, ap);
    va_end(ap);
    return fd;
}

/* The same two under the names they have with 64-bit offsets. */
int openat64(int dir, const char *path, int flags, ...)
{
    va_list ap;

    va_start(ap, flags);
    int fd = open_any(dir, path, flags, ap);
    va_end(ap);
    return fd;
}

int open64(const char *path, int flags, ...)
{
    va_list ap;

    va_start(ap, flags);
    int fd = open_any(AT_FDCWD, path, flags, ap);
    va_end(ap);
    return fd;
}
