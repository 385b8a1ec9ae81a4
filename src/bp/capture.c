/* capture.c - capture ADIOS2's messages on stderr.
 *
 * Its C functions return only a code and print the reason to stderr, with colours.
 * While one of them runs, stderr is redirected into memory.  Several threads may be
 * inside at the same time: the first redirects stderr, the last restores it.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "bp/bp_impl.h"
#include "comm/comm_mpi.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int inside;      /* threads in a call                        */
static int memory = -1; /* a memfd: the captured text               */
static int saved = -1;  /* the original stderr, while redirected    */

/* The last reason: ADIOS2 does not print the same reason again. */
static char last[600];

enum { MOST = 64 << 10 };

static off_t nread; /* bytes of memory that were read */

static void print_stderr(const char *text, size_t n)
{
    while (n > 0) {
        ssize_t k = write(STDERR_FILENO, text, n);
        if (k <= 0) return;
        text += k;
        n -= (size_t)k;
    }
}

/* Print text that another thread wrote while stderr was restored. */
static void print_late(void)
{
    char text[4096];
    ssize_t n = memory < 0 ? 0 : pread(memory, text, sizeof text, nread);

    if (n > 0) print_stderr(text, (size_t)n);
    nread = 0;
}

/* Errors are ignored: the messages are then printed to stderr. */
static void redirect(void)
{
    print_late();
    if (memory < 0) memory = memfd_create("adios2", MFD_CLOEXEC);
    if (memory < 0 || ftruncate(memory, 0) < 0 || lseek(memory, 0, SEEK_SET) < 0)
        return;
    saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (saved < 0) return;
    dnn_comm_print_to(saved);
    dup2(memory, STDERR_FILENO);
}

static void restore(void)
{
    if (saved < 0) return;
    dup2(saved, STDERR_FILENO);
    dnn_comm_print_to(-1);
    close(saved);
    saved = -1;
}

void dnn_bp_capture_start(struct bp_capture *capture)
{
    pthread_mutex_lock(&lock);
    /* The first thread from the beginning; others from the current end. */
    capture->from = inside == 0 || memory < 0 ? 0 : lseek(memory, 0, SEEK_END);
    if (inside++ == 0) redirect();
    pthread_mutex_unlock(&lock);
}

/* Remove colours such as "\033[1;36m". */
static void strip(char *text)
{
    char *to = text;

    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '\033') {
            at += strcspn(at, "m");
            if (*at == '\0') break;
            continue;
        }
        *to++ = *at;
    }
    *to = '\0';
}

/* Only the reason: the text after "<Class> <Source> <Activity> : ", on one line. */
static char *reason(char *text)
{
    strip(text);
    for (char *at; (at = strstr(text, "> : ")) != NULL;)
        text = at + 4;
    if (strncmp(text, "adios2_", 7) == 0) { /* the name of the function */
        char *at = strstr(text, ": ");
        if (at != NULL) text = at + 2;
    }
    size_t n = strlen(text);
    while (n > 0 && strchr(" \n.,", text[n - 1]) != NULL)
        n--;
    text[n] = '\0';
    for (char *at = text; *at != '\0'; at++)
        if (*at == '\n') *at = ' ';
    return text;
}

static int fail_with(const char *text, const char *path, const char *doing,
                     struct dnn_err *err)
{
    bool fresh = text[0] != '\0';

    pthread_mutex_lock(&lock);
    if (fresh) snprintf(last, sizeof last, "%s", text);
    int rc = dnn_fail(err, DNN_EIO, "%s: %s: ADIOS2%s: %s", path, doing,
                      fresh ? "" : " gives no reason; its last message",
                      last[0] == '\0' ? "?" : last);
    pthread_mutex_unlock(&lock);
    return rc;
}

int dnn_bp_capture_end(struct bp_capture *capture, bool good, const char *path,
                       const char *doing, struct dnn_err *err)
{
    char *text = NULL;
    size_t n = 0;

    pthread_mutex_lock(&lock);
    bool captured = saved >= 0;
    /* Restore first: from now on other threads write to stderr, and all text written
     * before can be read. */
    if (--inside == 0) restore();
    off_t end = captured ? lseek(memory, 0, SEEK_END) : 0;
    if (end > capture->from) {
        n = (size_t)(end - capture->from) < MOST ? (size_t)(end - capture->from) : MOST;
        text = dnn_alloc(n + 1);
        ssize_t got = pread(memory, text, n, capture->from);
        n = got < 0 ? 0 : (size_t)got;
        text[n] = '\0';
    }
    if (inside == 0) nread = end;
    /* Messages of other threads, not of ADIOS2, are printed to stderr. */
    if (good && inside == 0 && n > 0 && strstr(text, "ADIOS2") == NULL &&
        strstr(text, "BP5") == NULL)
        print_stderr(text, n);
    pthread_mutex_unlock(&lock);
    int rc = good ? 0 : fail_with(n > 0 ? reason(text) : "", path, doing, err);
    dnn_free(text);
    return rc;
}
