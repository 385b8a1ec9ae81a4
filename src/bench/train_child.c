/* train_child.c - one run: a process that prints a line for each step.
 *
 * Lines are kept with the time they came at, and understood after the end, so that
 * little is done on the cores that are measured.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/train_impl.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const double patience = 3600; /* seconds without a word */

struct run {
    pid_t pid;
    int fd;
    FILE *complaints; /* its standard error     */
    double began;
    struct dnn_buf text;
    double *at; /* owned: when each line ended */
    size_t nat, cap;
};

/* ---- what it said ---- */

static void number(const struct dnn_jobj *top, const char *key, double *out)
{
    struct dnn_jobj at = dnn_json_sub(top, key);

    if (dnn_json_type(&at) != DNN_J_NUMBER || dnn_json_real(&at, out, NULL) < 0)
        *out = NAN;
}

static void word(const struct dnn_jobj *top, const char *key, char out[16])
{
    struct dnn_jobj at = dnn_json_sub(top, key);
    const char *text;

    if (dnn_json_type(&at) == DNN_J_TEXT && dnn_json_string(&at, &text, NULL) == 0)
        snprintf(out, 16, "%s", text);
}

static void understand(const struct dnn_jobj *top, double at,
                       struct dnn_train_lines *out)
{
    static const char *const moments[] = {"step", "epoch", "probe"};
    struct dnn_train_line line = {.at = at};
    char moment[16] = "";
    double epoch, step;
    int m = 0;

    word(top, "event", moment);
    while (m < 3 && strcmp(moment, moments[m]) != 0)
        m++;
    if (m == 3) return;
    line.moment = (enum dnn_train_moment)m;
    number(top, "epoch", &epoch);
    number(top, "step", &step);
    number(top, "seconds", &line.seconds);
    number(top, "samples_per_second", &line.rate);
    number(top, "comm", &line.comm);
    number(top, "straggler", &line.late);
    line.epoch = epoch > 0 ? (int64_t)epoch : 0;
    line.step = step > 0 ? (int64_t)step : 0;
    word(top, "format", line.format);
    word(top, "reader", line.reader);
    out->line = dnn_grow(out->line, &out->cap, (size_t)out->n + 1, sizeof *out->line);
    out->line[out->n++] = line;
}

/* Every line that is an object; what mpiexec may say between them is not. */
static int read_lines(const struct run *r, struct dnn_train_lines *out,
                      struct dnn_err *err)
{
    const char *text = r->text.text;

    for (size_t i = 0; i < r->nat; i++) {
        size_t len = strcspn(text, "\n");
        struct dnn_json *json;

        if (text[0] == '{') {
            DNN_TRY(dnn_json_text("a line of the run", text, len, &json, err));
            struct dnn_jobj top = dnn_json_top(json);
            understand(&top, r->at[i], out);
            dnn_json_free(json);
        }
        text += len + 1;
    }
    return 0;
}

void dnn_train_forget(struct dnn_train_lines *lines)
{
    dnn_free(lines->line);
    *lines = (struct dnn_train_lines){0};
}

/* ---- the process ---- */

/* Ours with a few variables changed.  The caller's, dnn_free() all. */
static char **environment(const struct dnn_train_child *child)
{
    size_t n = 0, k = 0;

    while (environ[n] != NULL)
        n++;
    char **env = dnn_alloc((n + 3) * sizeof *env);
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "OMP_NUM_THREADS=", 16) != 0 &&
            strncmp(environ[i], "XDG_CACHE_HOME=", 15) != 0)
            env[k++] = dnn_strdup(environ[i]);
    env[k++] = dnn_format("OMP_NUM_THREADS=%d", child->threads);
    env[k] = dnn_format("XDG_CACHE_HOME=%s", child->cache);
    return env;
}

static int start(struct run *r, const struct dnn_train_child *child, int theirs,
                 struct dnn_err *err)
{
    posix_spawn_file_actions_t files;
    char **env = environment(child);

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, theirs, 1);
    posix_spawn_file_actions_adddup2(&files, fileno(r->complaints), 2);
    r->began = dnn_clock_now();
    int rc = posix_spawnp(&r->pid, child->argv[0], &files, NULL,
                          (char *const *)(uintptr_t)child->argv, env);
    posix_spawn_file_actions_destroy(&files);
    for (int i = 0; env[i] != NULL; i++)
        dnn_free(env[i]);
    dnn_free(env);
    if (rc == 0) return 0;
    r->pid = 0;
    return dnn_fail(err, DNN_EIO, "%s: %s", child->argv[0], strerror(rc));
}

/* Until it closes its end. */
static int listen_to(struct run *r, struct dnn_err *err)
{
    struct dnn_deadline deadline = dnn_clock_deadline(patience);
    char piece[4096];

    for (;;) {
        struct pollfd wait = {.fd = r->fd, .events = POLLIN};

        if (dnn_clock_passed(&deadline))
            return dnn_fail(err, DNN_EIO, "nothing was heard for %.0f seconds",
                            patience);
        if (poll(&wait, 1, dnn_clock_poll_ms(&deadline)) <= 0) continue;
        ssize_t n = read(r->fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return 0;
        double now = dnn_clock_now() - r->began;
        deadline = dnn_clock_deadline(patience);
        for (ssize_t i = 0; i < n; i++) {
            if (piece[i] != '\n') continue;
            r->at = dnn_grow(r->at, &r->cap, r->nat + 1, sizeof *r->at);
            r->at[r->nat++] = now;
        }
        dnn_buf_bytes(&r->text, piece, (size_t)n);
    }
}

/* What it complained about last but for blank lines and frames of mpiexec. */
static void complaint(struct run *r, char last[512])
{
    char line[512];

    rewind(r->complaints);
    while (fgets(line, sizeof line, r->complaints) != NULL)
        if (strspn(line, " -*\n") < strlen(line)) {
            bool ours = strstr(last, "dnn-") == last || strstr(last, "Error") != NULL;

            if (!ours) memcpy(last, line, sizeof line);
        }
    last[strcspn(last, "\n")] = '\0';
}

static int finish(struct run *r, const char *what, int rc, struct dnn_err *err)
{
    char last[512] = "";
    int status = 0;

    if (rc < 0) kill(r->pid, SIGTERM);
    struct dnn_deadline deadline = dnn_clock_deadline(30);
    while (waitpid(r->pid, &status, WNOHANG) == 0) {
        if (dnn_clock_passed(&deadline)) kill(r->pid, SIGKILL);
        dnn_clock_sleep(0.01);
    }
    if (rc < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) return rc;
    complaint(r, last);
    if (strstr(last, "No module named 'torch'") != NULL)
        return dnn_fail(err, DNN_EIO,
                        "python3 has no PyTorch; install it (Debian: python3-torch)");
    if (WIFSIGNALED(status))
        return dnn_fail(err, DNN_EIO, "%s was ended by signal %d%s%s", what,
                        WTERMSIG(status), last[0] == '\0' ? "" : ": ", last);
    return dnn_fail(err, DNN_EIO, "%s ended with status %d%s%s", what,
                    WEXITSTATUS(status), last[0] == '\0' ? "" : ": ", last);
}

int dnn_train_child(const struct dnn_train_child *child, struct dnn_train_lines *out,
                    struct dnn_err *err)
{
    struct run r = {.fd = -1};
    int pipes[2], rc;

    r.complaints = tmpfile();
    if (r.complaints == NULL)
        return dnn_fail(err, DNN_EIO, "a temporary file: %s", strerror(errno));
    if (pipe(pipes) < 0 || fcntl(pipes[0], F_SETFD, FD_CLOEXEC) < 0 ||
        fcntl(pipes[1], F_SETFD, FD_CLOEXEC) < 0) {
        rc = dnn_fail(err, DNN_EIO, "a pipe: %s", strerror(errno));
    } else {
        r.fd = pipes[0];
        rc = start(&r, child, pipes[1], err);
        close(pipes[1]);
        if (rc == 0) rc = finish(&r, child->argv[0], listen_to(&r, err), err);
        if (rc == 0) rc = read_lines(&r, out, err);
        close(r.fd);
    }
    fclose(r.complaints);
    dnn_buf_free(&r.text);
    dnn_free(r.at);
    return rc;
}
