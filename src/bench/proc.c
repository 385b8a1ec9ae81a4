/* proc.c - start a program and read its output line by line.
 *
 * Its standard input and standard output are the same socket.  It ends when the socket
 * is closed, so it does not outlive this process.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/proc_impl.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const double timeout = 3600; /* seconds without output */

struct dnn_proc {
    pid_t pid;
    int fd;
    char *name; /* owned */
    FILE *log;  /* its standard error */
    double started;
    struct dnn_buf text; /* received, not yet read */
};

/* The environment of this process with some variables replaced; the caller frees the
 * array, but not the strings. */
static char **environment(const char *const *env)
{
    size_t n = 0, k = 0;

    while (environ[n] != NULL)
        n++;
    for (size_t i = 0; env != NULL && env[i] != NULL; i++)
        k++;
    char **out = dnn_alloc((n + k + 1) * sizeof *out);
    for (size_t i = 0; i < k; i++)
        out[i] = (char *)(uintptr_t)env[i];
    for (size_t i = 0; i < n; i++) {
        size_t len = strcspn(environ[i], "=") + 1;
        bool replaced = false;

        for (size_t e = 0; env != NULL && env[e] != NULL; e++)
            replaced |= strncmp(environ[i], env[e], len) == 0;
        if (!replaced) out[k++] = environ[i];
    }
    return out;
}

static int spawn(struct dnn_proc *p, const char *const *argv, const char *const *env,
                 int fd, struct dnn_err *err)
{
    posix_spawn_file_actions_t files;
    char **all = environment(env);

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, fd, 0);
    posix_spawn_file_actions_adddup2(&files, fd, 1);
    posix_spawn_file_actions_adddup2(&files, fileno(p->log), 2);
    p->started = dnn_clock_now();
    int rc = posix_spawnp(&p->pid, argv[0], &files, NULL,
                          (char *const *)(uintptr_t)argv, all);
    posix_spawn_file_actions_destroy(&files);
    dnn_free(all);
    if (rc == 0) return 0;
    p->pid = 0;
    return dnn_fail(err, DNN_EIO, "%s: %s", argv[0], strerror(rc));
}

int dnn_proc_start(const char *const *argv, const char *const *env,
                   struct dnn_proc **out, struct dnn_err *err)
{
    struct dnn_proc *p = dnn_alloc(sizeof *p);
    int pair[2], rc;

    p->fd = -1;
    p->name = dnn_strdup(argv[0]);
    p->log = tmpfile();
    if (p->log == NULL) {
        rc = dnn_fail(err, DNN_EIO, "temporary file: %s", strerror(errno));
    } else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        rc = dnn_fail(err, DNN_EIO, "socketpair: %s", strerror(errno));
    } else {
        p->fd = pair[0];
        rc = spawn(p, argv, env, pair[1], err);
        close(pair[1]);
    }
    if (rc < 0)
        dnn_proc_stop(p);
    else
        *out = p;
    return rc;
}

/* Find the error message in its standard error: the first line that contains an error;
 * otherwise the last line, without blank lines and the frames of mpiexec. */
static void last_error(struct dnn_proc *p, char last[512])
{
    char line[512];
    bool found = false;

    rewind(p->log);
    while (!found && fgets(line, sizeof line, p->log) != NULL)
        if (strspn(line, " -*\n") < strlen(line)) {
            memcpy(last, line, sizeof line);
            found = strncmp(line, "dnn-", 4) == 0 || strstr(line, "Error") != NULL;
        }
    last[strcspn(last, "\n")] = '\0';
}

int dnn_proc_finish(struct dnn_proc *p, struct dnn_err *err)
{
    struct dnn_deadline deadline = dnn_clock_deadline(30);
    char last[512] = "", module[64];
    int status = 0;

    shutdown(p->fd, SHUT_WR);
    while (waitpid(p->pid, &status, WNOHANG) == 0) {
        if (dnn_clock_passed(&deadline)) kill(p->pid, SIGKILL);
        dnn_clock_sleep(0.005);
    }
    p->pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
    last_error(p, last);
    const char *missing = strstr(last, "No module named '");
    if (missing != NULL && sscanf(missing, "No module named '%63[^']", module) == 1)
        return dnn_fail(err, DNN_EIO,
                        "%s has no %s; install it with \"dnn-bench torch --install\", "
                        "or name another Python in DNN_TORCH",
                        p->name, strcmp(module, "torch") == 0 ? "PyTorch" : module);
    return dnn_fail(err, DNN_EIO, "%s: %s %d%s%s", p->name,
                    WIFSIGNALED(status) ? "ended by signal" : "exit status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                    last[0] == '\0' ? "" : ": ", last);
}

int dnn_proc_next(struct dnn_proc *p, struct dnn_json **out, double *at,
                  struct dnn_err *err)
{
    struct dnn_deadline deadline = dnn_clock_deadline(timeout);
    char *end, buffer[4096];

    *out = NULL;
    while (p->text.text == NULL || (end = strchr(p->text.text, '\n')) == NULL) {
        struct pollfd wait = {.fd = p->fd, .events = POLLIN};

        if (dnn_clock_passed(&deadline))
            return dnn_fail(err, DNN_EIO, "%s: no output for %.0f seconds", p->name,
                            timeout);
        if (poll(&wait, 1, dnn_clock_poll_ms(&deadline)) <= 0) continue;
        ssize_t n = recv(p->fd, buffer, sizeof buffer, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return 0;
        dnn_buf_bytes(&p->text, buffer, (size_t)n);
    }
    size_t len = (size_t)(end - p->text.text);
    bool object = p->text.text[0] == '{'; /* mpiexec may print other text */
    int rc = object ? dnn_json_text(p->name, p->text.text, len, out, err) : 0;
    memmove(p->text.text, end + 1, p->text.len - len);
    p->text.len -= len + 1;
    if (at != NULL) *at = dnn_clock_now() - p->started;
    return rc < 0 || object ? rc : dnn_proc_next(p, out, at, err);
}

int dnn_proc_ask(struct dnn_proc *p, const char *request, struct dnn_json **out,
                 struct dnn_err *err)
{
    size_t len = strlen(request);

    /* If the process has ended, the error is reported when its output is read. */
    if (send(p->fd, request, len, MSG_NOSIGNAL) == (ssize_t)len)
        DNN_TRY(dnn_proc_next(p, out, NULL, err));
    else
        *out = NULL;
    if (*out != NULL) return 0;
    DNN_TRY(dnn_proc_finish(p, err));
    return dnn_fail(err, DNN_EIO, "%s: ended without an answer", p->name);
}

int dnn_proc_run(const char *const *argv, const char *const *env, struct dnn_err *err)
{
    struct dnn_json *json;
    struct dnn_proc *p;

    DNN_TRY(dnn_proc_start(argv, env, &p, err));
    int rc = dnn_proc_next(p, &json, NULL, err);
    while (rc == 0 && json != NULL) {
        dnn_json_free(json);
        rc = dnn_proc_next(p, &json, NULL, err);
    }
    if (rc == 0) rc = dnn_proc_finish(p, err);
    dnn_proc_stop(p);
    return rc;
}

void dnn_proc_stop(struct dnn_proc *p)
{
    if (p == NULL) return;
    if (p->fd >= 0) close(p->fd);
    struct dnn_deadline deadline = dnn_clock_deadline(5);
    while (p->pid > 0 && waitpid(p->pid, NULL, WNOHANG) == 0) {
        if (dnn_clock_passed(&deadline)) kill(p->pid, SIGKILL);
        dnn_clock_sleep(0.01);
    }
    if (p->log != NULL) fclose(p->log);
    dnn_buf_free(&p->text);
    dnn_free(p->name);
    dnn_free(p);
}

double dnn_proc_number(const struct dnn_json *json, const char *key)
{
    struct dnn_jobj top = dnn_json_top(json), at = dnn_json_sub(&top, key);
    double out;

    if (dnn_json_type(&at) != DNN_J_NUMBER || dnn_json_real(&at, &out, NULL) < 0)
        return NAN;
    return out;
}

const char *dnn_proc_text(const struct dnn_json *json, const char *key)
{
    struct dnn_jobj top = dnn_json_top(json), at = dnn_json_sub(&top, key);
    const char *out;

    if (dnn_json_type(&at) != DNN_J_TEXT || dnn_json_string(&at, &out, NULL) < 0)
        return "";
    return out;
}
