/* words.c - what ADIOS2 says on stderr, caught.
 *
 * Its C functions return a bare code; the reason goes to stderr, in colours.  While
 * one of them runs, stderr leads into memory.  Several threads may be inside at once:
 * the first leads it away, the last one back.
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
static int inside;                /* threads in a call                              */
static int memory = -1, own = -1; /* where words go, and stderr as it was           */

/* The last reason: ADIOS2 gives a reason it gave before no second time. */
static char last[600];

enum { MOST = 64 << 10 };

static off_t taken; /* so many bytes of it were looked at */

static void pass_on(const char *text, size_t n)
{
    while (n > 0) {
        ssize_t k = write(STDERR_FILENO, text, n);
        if (k <= 0) return;
        text += k;
        n -= (size_t)k;
    }
}

/* What another thread was just saying when stderr was led back. */
static void pass_on_late(void)
{
    char text[4096];
    ssize_t n = memory < 0 ? 0 : pread(memory, text, sizeof text, taken);

    if (n > 0) pass_on(text, (size_t)n);
    taken = 0;
}

/* Failing to catch words is no failure: they are then seen by the user. */
static void lead_away(void)
{
    pass_on_late();
    if (memory < 0) memory = memfd_create("adios2", MFD_CLOEXEC);
    if (memory < 0 || ftruncate(memory, 0) < 0 || lseek(memory, 0, SEEK_SET) < 0)
        return;
    own = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (own < 0) return;
    dnn_comm_print_to(own);
    dup2(memory, STDERR_FILENO);
}

static void lead_back(void)
{
    if (own < 0) return;
    dup2(own, STDERR_FILENO);
    dnn_comm_print_to(-1);
    close(own);
    own = -1;
}

void dnn_bp_listen(struct bp_ears *ears)
{
    pthread_mutex_lock(&lock);
    /* Of the first one from the begin: another thread may have said something since. */
    ears->from = inside == 0 || memory < 0 ? 0 : lseek(memory, 0, SEEK_END);
    if (inside++ == 0) lead_away();
    pthread_mutex_unlock(&lock);
}

/* Without colours: "\033[1;36m" is nothing. */
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

/* The reason alone: what is behind "<Class> <Source> <Activity> : ", on one line. */
static char *reason(char *text)
{
    strip(text);
    for (char *at; (at = strstr(text, "> : ")) != NULL;)
        text = at + 4;
    if (strncmp(text, "adios2_", 7) == 0) { /* the function it came from */
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

static int complain(const char *why, const char *path, const char *doing,
                    struct dnn_err *err)
{
    bool fresh = why[0] != '\0';

    pthread_mutex_lock(&lock);
    if (fresh) snprintf(last, sizeof last, "%s", why);
    int rc =
        dnn_fail(err, DNN_EIO, "%s: %s: ADIOS2 says%s: %s", path, doing,
                 fresh ? "" : " nothing, but did before", last[0] == '\0' ? "?" : last);
    pthread_mutex_unlock(&lock);
    return rc;
}

int dnn_bp_heard(struct bp_ears *ears, bool good, const char *path, const char *doing,
                 struct dnn_err *err)
{
    char *text = NULL;
    size_t n = 0;

    pthread_mutex_lock(&lock);
    bool caught = own >= 0;
    /* Back first: what another thread says from now on goes to stderr, what it said
     * until now is all there to be read. */
    if (--inside == 0) lead_back();
    off_t end = caught ? lseek(memory, 0, SEEK_END) : 0;
    if (end > ears->from) {
        n = (size_t)(end - ears->from) < MOST ? (size_t)(end - ears->from) : MOST;
        text = dnn_alloc(n + 1);
        ssize_t got = pread(memory, text, n, ears->from);
        n = got < 0 ? 0 : (size_t)got;
        text[n] = '\0';
    }
    if (inside == 0) taken = end;
    /* Somebody else's words, of another thread, go where they were meant to go. */
    if (good && inside == 0 && n > 0 && strstr(text, "ADIOS2") == NULL &&
        strstr(text, "BP5") == NULL)
        pass_on(text, n);
    pthread_mutex_unlock(&lock);
    int rc = good ? 0 : complain(n > 0 ? reason(text) : "", path, doing, err);
    dnn_free(text);
    return rc;
}
