/* spawn.c - find programs, start them, and wait for them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "cluster/cluster_impl.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const struct {
    const char *program, *package;
    int nodes; /* needed for at least that many nodes */
} programs[] = {
    {"slurmctld", "slurmctld",    1},
    {"slurmd",    "slurmd",       1},
    {"sinfo",     "slurm-client", 1},
    {"munged",    "munge",        1},
    {"ip",        "iproute2",     2},
};
enum { NPROGRAMS = sizeof programs / sizeof programs[0] };

/* Directories of daemons, which may not be in an ordinary user's PATH. */
static const char sbin[] = "/usr/local/sbin:/usr/sbin:/sbin";

static void extend_path(void)
{
    const char *path = getenv("PATH");
    char *extended = path == NULL || *path == '\0'
                         ? dnn_format("/usr/bin:/bin:%s", sbin)
                         : dnn_format("%s:%s", path, sbin);

    if (path == NULL || strstr(path, sbin) == NULL) setenv("PATH", extended, 1);
    dnn_free(extended);
}

static bool in_path(const char *program)
{
    const char *path = getenv("PATH");
    bool found = false;

    while (path != NULL && *path != '\0' && !found) {
        size_t len = strcspn(path, ":");
        char *file = dnn_format("%.*s/%s", (int)len, path, program);

        found = access(file, X_OK) == 0;
        dnn_free(file);
        path += len + (path[len] == ':');
    }
    return found;
}

int dnn_cluster_check_programs(int nodes, struct dnn_err *err)
{
    struct dnn_buf missing = {0}, packages = {0};
    int rc = 0;

    extend_path();
    for (int i = 0; i < NPROGRAMS; i++) {
        if (nodes < programs[i].nodes || in_path(programs[i].program)) continue;
        dnn_buf_add(&missing, "%s%s", missing.len > 0 ? ", " : "", programs[i].program);
        dnn_buf_add(&packages, " %s", programs[i].package);
    }
    if (missing.len > 0)
        rc = dnn_fail(err, DNN_EIO, "not installed: %s; on Debian: apt install%s",
                      missing.text, packages.text);
    dnn_buf_free(&missing);
    dnn_buf_free(&packages);
    return rc;
}

void dnn_cluster_environment(const char *dir)
{
    static const char *const prefixes[] = {"SLURM", "SBATCH_",    "SRUN_", "PMIX_",
                                           "PMI_",  "OMPI_COMM_", NULL};
    char conf[DNN_CLUSTER_PATH + 16];

    for (char **e = environ; e != NULL && *e != NULL;) {
        char *name = dnn_strndup(*e, strcspn(*e, "="));
        bool drop = false;

        for (int i = 0; prefixes[i] != NULL; i++)
            drop = drop || strncmp(name, prefixes[i], strlen(prefixes[i])) == 0;
        /* unsetenv() moves the following entries. */
        if (!drop || unsetenv(name) != 0) e++;
        dnn_free(name);
    }
    snprintf(conf, sizeof conf, "%s/slurm.conf", dir);
    setenv("SLURM_CONF", conf, 1);
    extend_path();
}

/* In a child: execute the program, with stdin from /dev/null, stdout and stderr to fd,
 * and no blocked signals. */
static _Noreturn void exec_program(char *const *argv, int fd)
{
    sigset_t none;
    int null = open("/dev/null", O_RDONLY);

    if (null >= 0) dup2(null, 0);
    dup2(fd, 1);
    dup2(fd, 2);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(argv[0], argv);
    dprintf(2, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

pid_t dnn_cluster_spawn(char *const *argv, const char *log, struct dnn_err *err)
{
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

    if (fd < 0) return dnn_fail(err, DNN_EIO, "%s: %s", log, strerror(errno));
    pid_t pid = fork();
    if (pid == 0) exec_program(argv, fd);
    int why = errno;
    close(fd);
    if (pid < 0) return dnn_fail(err, DNN_EIO, "%s: fork: %s", argv[0], strerror(why));
    return pid;
}

/* Read until the program closes its output; false on timeout. */
static bool collect(int fd, double seconds, struct dnn_buf *out)
{
    struct dnn_deadline end = dnn_clock_deadline(seconds);
    char piece[4096];

    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int n = poll(&p, 1, dnn_clock_poll_ms(&end));

        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        ssize_t got = read(fd, piece, sizeof piece);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return true;
        dnn_buf_bytes(out, piece, (size_t)got);
    }
}

int dnn_cluster_capture(char *const *argv, double seconds, int (*before)(const void *),
                        const void *arg, struct dnn_buf *out, struct dnn_err *err)
{
    int fd[2], status = 0;

    dnn_buf_bytes(out, "", 0);
    if (pipe2(fd, O_CLOEXEC) != 0)
        return dnn_fail(err, DNN_EIO, "%s: pipe: %s", argv[0], strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        if (before != NULL && before(arg) != 0) _exit(126);
        exec_program(argv, fd[1]);
    }
    int why = errno;
    close(fd[1]);
    bool ended = pid > 0 && collect(fd[0], seconds, out);
    close(fd[0]);
    if (pid < 0) return dnn_fail(err, DNN_EIO, "%s: fork: %s", argv[0], strerror(why));
    if (!ended) kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!ended)
        return dnn_fail(err, DNN_EIO, "%s: no answer in %.0f s", argv[0], seconds);
    if (status == 0) return 0;
    while (out->len > 0 && out->text[out->len - 1] == '\n')
        out->text[--out->len] = '\0';
    return dnn_fail(err, DNN_EIO, "%s: %s", argv[0],
                    out->len > 0 ? out->text : "ended without a message");
}
