/* against.c - the same work in PyTorch: a process that does a portion when asked.
 *
 * It speaks one line of JSON per word, over a socket that is both its standard input
 * and its standard output.  It ends when the socket closes, so none outlives us.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/bench_impl.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

const struct dnn_choice dnn_bench_rivals[] = {
    {"nobody", DNN_AGAINST_NOBODY},
    {"torch",  DNN_AGAINST_TORCH },
    {NULL,     0                 }
};

const char *const dnn_rival_formats[DNN_RIVALS] = {"contiguous", "channels_last"};

static const double patience = 900; /* seconds for one answer */

struct dnn_rival {
    pid_t pid;
    int fd;              /* the socket                       */
    FILE *complaints;    /* its standard error: a file       */
    struct dnn_buf text; /* what came and is not yet a line  */
};

/* ---- where the script is ---- */

const char *dnn_bench_here(char out[DNN_BENCH_PATH])
{
    ssize_t len = readlink("/proc/self/exe", out, DNN_BENCH_PATH - 1);

    out[len < 0 ? 0 : len] = '\0';
    char *slash = strrchr(out, '/');
    if (slash != NULL) *slash = '\0';
    return out;
}

char *dnn_rival_script(const char *name, struct dnn_err *err)
{
    static const char *const places[] = {"../share/dnn-toolkit/peer", "../tests/peer",
                                         "tests/peer", NULL};
    const char *dir = getenv("DNN_PEER_DIR");
    char exe[DNN_BENCH_PATH], *path;

    if (dir != NULL) {
        path = dnn_format("%s/%s", dir, name);
        if (access(path, R_OK) == 0) return path;
        dnn_fail(err, DNN_EIO, "%s (DNN_PEER_DIR): %s", path, strerror(errno));
        dnn_free(path);
        return NULL;
    }
    dnn_bench_here(exe);
    for (int i = 0; places[i] != NULL; i++) {
        path = dnn_format("%s/%s/%s", exe, places[i], name);
        if (access(path, R_OK) == 0) return path;
        dnn_free(path);
    }
    dnn_fail(err, DNN_EIO,
             "%s is not beside %s, in ../share/dnn-toolkit/peer; set "
             "DNN_PEER_DIR to the directory it is in",
             name, exe);
    return NULL;
}

/* ---- one process ---- */

/* What it said last before it ended, as the reason. */
static int ended(struct dnn_rival *r, struct dnn_err *err)
{
    char line[512], last[512] = "";

    rewind(r->complaints);
    while (fgets(line, sizeof line, r->complaints) != NULL)
        if (strspn(line, " \n") < strlen(line)) memcpy(last, line, sizeof last);
    last[strcspn(last, "\n")] = '\0';
    if (strstr(last, "No module named 'torch'") != NULL)
        return dnn_fail(err, DNN_EIO,
                        "--against torch: python3 has no PyTorch; install it (Debian: "
                        "python3-torch)");
    return dnn_fail(err, DNN_EIO, "--against torch: the process ended%s%s",
                    last[0] == '\0' ? " without a word" : ": ", last);
}

/* The next line, without its end; in r->text until the next call. */
static int answer(struct dnn_rival *r, struct dnn_json **out, struct dnn_err *err)
{
    struct dnn_deadline deadline = dnn_clock_deadline(patience);
    char *end, piece[4096];

    while (r->text.text == NULL || (end = strchr(r->text.text, '\n')) == NULL) {
        struct pollfd wait = {.fd = r->fd, .events = POLLIN};

        if (dnn_clock_passed(&deadline))
            return dnn_fail(err, DNN_EIO,
                            "--against torch: no answer within %.0f seconds", patience);
        if (poll(&wait, 1, dnn_clock_poll_ms(&deadline)) <= 0) continue;
        ssize_t n = recv(r->fd, piece, sizeof piece, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return ended(r, err);
        dnn_buf_bytes(&r->text, piece, (size_t)n);
    }
    int rc = dnn_json_text("PyTorch's answer", r->text.text,
                           (size_t)(end - r->text.text), out, err);
    size_t used = (size_t)(end - r->text.text) + 1;
    memmove(r->text.text, end + 1, r->text.len - used + 1);
    r->text.len -= used;
    return rc;
}

int dnn_rival_ask(struct dnn_rival *r, const char *word, const char *const key[2],
                  double number[2], struct dnn_err *err)
{
    struct dnn_json *json;
    char line[32];
    int rc = 0;

    if (word != NULL) {
        int len = snprintf(line, sizeof line, "%s\n", word);

        if (send(r->fd, line, (size_t)len, MSG_NOSIGNAL) != len) return ended(r, err);
    }
    DNN_TRY(answer(r, &json, err));
    struct dnn_jobj top = dnn_json_top(json);
    for (int i = 0; i < 2 && rc == 0; i++) {
        struct dnn_jobj at = dnn_json_sub(&top, key[i] == NULL ? "" : key[i]);

        if (key[i] != NULL) rc = dnn_json_real(&at, &number[i], err);
    }
    dnn_json_free(json);
    return rc;
}

static int spawn(struct dnn_rival *r, char *const *argv, int theirs,
                 struct dnn_err *err)
{
    posix_spawn_file_actions_t files;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, theirs, 0);
    posix_spawn_file_actions_adddup2(&files, theirs, 1);
    posix_spawn_file_actions_adddup2(&files, fileno(r->complaints), 2);
    int rc = posix_spawnp(&r->pid, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    if (rc == 0) return 0;
    r->pid = 0;
    return dnn_fail(err, DNN_EIO, "--against torch: %s: %s", argv[0], strerror(rc));
}

/* Start it with its ends of the socket and of the file. */
static int launch(struct dnn_rival *r, char *const *argv, struct dnn_err *err)
{
    int pair[2];

    r->complaints = tmpfile();
    if (r->complaints == NULL)
        return dnn_fail(err, DNN_EIO, "a temporary file: %s", strerror(errno));
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return dnn_fail(err, DNN_EIO, "a pair of sockets: %s", strerror(errno));
    r->fd = pair[0];
    int rc = spawn(r, argv, pair[1], err);
    close(pair[1]);
    return rc;
}

int dnn_rival_open(const char *script, const char *const *args,
                   const char *const key[2], double number[2], struct dnn_rival **out,
                   struct dnn_err *err)
{
    char *path = dnn_rival_script(script, err);
    int n = 0;

    if (path == NULL) return DNN_EIO;
    while (args[n] != NULL)
        n++;
    char **argv = dnn_alloc((size_t)(n + 4) * sizeof *argv);
    argv[0] = "python3";
    argv[1] = path;
    argv[2] = "--interactive";
    for (int i = 0; i < n; i++)
        argv[3 + i] = (char *)args[i];
    struct dnn_rival *r = dnn_alloc(sizeof *r);
    r->fd = -1;
    int rc = launch(r, argv, err);
    dnn_free(argv);
    dnn_free(path);
    if (rc == 0) rc = dnn_rival_ask(r, NULL, key, number, err);
    if (rc < 0) {
        dnn_rival_stop(r);
        return rc;
    }
    *out = r;
    return 0;
}

int dnn_rival_start(const struct dnn_rival_opts *opts, struct dnn_rival **out,
                    struct dnn_err *err)
{
    char batch[24], threads[24];
    double number[2];

    snprintf(batch, sizeof batch, "%ld", opts->batch);
    snprintf(threads, sizeof threads, "%d", opts->threads);
    const char *const args[] = {"--layers", opts->layers, "--batch",
                                batch,      "--threads",  threads,
                                "--format", opts->format, NULL};
    return dnn_rival_open("torch_step.py", args, (const char *const[]){"threads", NULL},
                          number, out, err);
}

int dnn_rival_run(struct dnn_rival *rival, bool training, double *seconds,
                  struct dnn_err *err)
{
    double number[2];

    DNN_TRY(dnn_rival_ask(rival, training ? "step" : "infer",
                          (const char *const[]){"seconds", NULL}, number, err));
    *seconds = number[0];
    return 0;
}

int dnn_rival_memory(struct dnn_rival *rival, double *bytes, struct dnn_err *err)
{
    double number[2];

    DNN_TRY(dnn_rival_ask(rival, "memory",
                          (const char *const[]){"peak_rss", "base_rss"}, number, err));
    *bytes = number[0] - number[1];
    return 0;
}

/* Its end of the socket is closed: it leaves by itself, or is made to. */
void dnn_rival_stop(struct dnn_rival *rival)
{
    if (rival == NULL) return;
    if (rival->fd >= 0) close(rival->fd);
    struct dnn_deadline deadline = dnn_clock_deadline(5);
    while (rival->pid > 0 && waitpid(rival->pid, NULL, WNOHANG) == 0) {
        if (dnn_clock_passed(&deadline)) kill(rival->pid, SIGKILL);
        dnn_clock_sleep(0.01);
    }
    if (rival->complaints != NULL) fclose(rival->complaints);
    dnn_buf_free(&rival->text);
    dnn_free(rival);
}
