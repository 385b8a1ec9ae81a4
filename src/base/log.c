/* log.c - log levels, and log messages on stderr.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/log.h"

#include "base/choice.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_COMPONENTS = 16, MAX_LOGGED = 64 };

static const struct dnn_choice levels[] = {
    {"error", DNN_ERROR},
    {"warn",  DNN_WARN },
    {"info",  DNN_INFO },
    {"debug", DNN_DEBUG},
    {"trace", DNN_TRACE},
    {NULL,    0        }
};

/* The default level, and levels of single components. */
struct table {
    enum dnn_level all;
    int ncomponents;
    struct {
        char name[24];
        enum dnn_level level;
    } component[MAX_COMPONENTS];
};

/* The project's only mutable globals: levels, rank, and messages already logged. */
static struct table current = {.all = DNN_INFO};
static struct {
    int rank, size;
    char host[64];
} self = {.size = 1};
static bool rank_known; /* dnn_log_rank() was called */
static unsigned long logged[MAX_LOGGED];
static int nlogged;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* One "level" or "component=level" element of a spec. */
static int add_level(struct table *t, const char *word, struct dnn_err *err)
{
    const char *eq = strchr(word, '=');
    int value;

    if (dnn_choice_find(levels, eq == NULL ? word : eq + 1, &value, err) < 0)
        return dnn_prefix(err, "log level \"%s\": ", word);
    if (eq == NULL) {
        t->all = (enum dnn_level)value;
        return 0;
    }
    size_t len = (size_t)(eq - word);
    if (len == 0 || len >= sizeof t->component[0].name ||
        t->ncomponents == MAX_COMPONENTS)
        return dnn_fail(err, DNN_EUSAGE,
                        "log level \"%s\": must be LEVEL or COMPONENT=LEVEL, for at "
                        "most %d components",
                        word, MAX_COMPONENTS);
    memcpy(t->component[t->ncomponents].name, word, len);
    t->component[t->ncomponents++].level = (enum dnn_level)value;
    return 0;
}

int dnn_log_levels(const char *spec, struct dnn_err *err)
{
    struct table t = {.all = current.all};
    char *copy = dnn_strdup(spec), *save = NULL;
    int rc = 0;

    for (char *w = strtok_r(copy, ",", &save); w != NULL && rc == 0;
         w = strtok_r(NULL, ",", &save))
        rc = add_level(&t, w, err);
    dnn_free(copy);
    if (rc == 0) current = t;
    return rc;
}

void dnn_log_rank(int rank, int size, const char *host)
{
    rank_known = true;
    self.rank = rank;
    self.size = size;
    snprintf(self.host, sizeof self.host, "%s", host);
}

bool dnn_log_is_root(void)
{
    static const char *const vars[] = {"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};

    if (rank_known) return self.rank == 0;
    for (size_t i = 0; i < sizeof vars / sizeof vars[0]; i++) {
        const char *rank = getenv(vars[i]);

        if (rank != NULL) return strcmp(rank, "0") == 0;
    }
    return true;
}

bool dnn_log_enabled(enum dnn_level level, const char *component)
{
    for (int i = 0; i < current.ncomponents; i++)
        if (strcasecmp(current.component[i].name, component) == 0)
            return level <= current.component[i].level;
    return level <= current.all;
}

/* One write per message, so that the lines of many ranks do not interleave. */
static void write_line(enum dnn_level level, const char *component, bool all,
                       const char *text)
{
    char *line;

    if (all && self.size > 1)
        line = dnn_format("[%d@%s] %s: %s: %s\n", self.rank, self.host, component,
                          dnn_choice_name(levels, (int)level), text);
    else if (level == DNN_INFO)
        line = dnn_format("%s: %s\n", component, text);
    else
        line = dnn_format("%s: %s: %s\n", component,
                          dnn_choice_name(levels, (int)level), text);
    fputs(line, stderr);
    fflush(stderr);
    dnn_free(line);
}

void dnn_log(enum dnn_level level, const char *component, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    if (self.rank != 0 || !dnn_log_enabled(level, component)) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    write_line(level, component, false, text);
}

void dnn_log_all(enum dnn_level level, const char *component, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    if (!dnn_log_enabled(level, component)) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    write_line(level, component, true, text);
}

/* Whether this text was not logged before.  Only the last MAX_LOGGED are stored. */
static bool first_time(const char *text)
{
    unsigned long hash = 5381;
    bool fresh = true;

    for (const char *p = text; *p != '\0'; p++)
        hash = hash * 33 + (unsigned char)*p;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < nlogged && i < MAX_LOGGED; i++)
        if (logged[i] == hash) fresh = false;
    if (fresh) logged[nlogged++ % MAX_LOGGED] = hash;
    pthread_mutex_unlock(&lock);
    return fresh;
}

void dnn_log_once(enum dnn_level level, const char *component, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    if (self.rank != 0 || !dnn_log_enabled(level, component)) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (first_time(text)) write_line(level, component, false, text);
}
