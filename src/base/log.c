/* log.c - levels, ranks and the one place that writes messages.
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

enum { MAX_ROOMS = 16, MAX_SAID = 64 };

static const struct dnn_choice levels[] = {
    {"error", DNN_ERROR},
    {"warn",  DNN_WARN },
    {"info",  DNN_INFO },
    {"debug", DNN_DEBUG},
    {"trace", DNN_TRACE},
    {NULL,    0        }
};

/* A level for all, and levels for single rooms. */
struct table {
    enum dnn_level all;
    int nrooms;
    struct {
        char name[24];
        enum dnn_level level;
    } room[MAX_ROOMS];
};

/* The project's only mutable globals: how loud, who we are, what was said. */
static struct table now = {.all = DNN_INFO};
static struct {
    int rank, size;
    char host[64];
} self = {.size = 1};
static bool known; /* dnn_log_rank() was called */
static unsigned long said[MAX_SAID];
static int nsaid;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* One "level" or "room=level" word of a spec. */
static int add_word(struct table *t, const char *word, struct dnn_err *err)
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
    if (len == 0 || len >= sizeof t->room[0].name || t->nrooms == MAX_ROOMS)
        return dnn_fail(err, DNN_EUSAGE,
                        "log level \"%s\": give a level, or component=level for at "
                        "most %d components",
                        word, MAX_ROOMS);
    memcpy(t->room[t->nrooms].name, word, len);
    t->room[t->nrooms++].level = (enum dnn_level)value;
    return 0;
}

int dnn_log_levels(const char *spec, struct dnn_err *err)
{
    struct table t = {.all = now.all};
    char *copy = dnn_strdup(spec), *save = NULL;
    int rc = 0;

    for (char *w = strtok_r(copy, ",", &save); w != NULL && rc == 0;
         w = strtok_r(NULL, ",", &save))
        rc = add_word(&t, w, err);
    dnn_free(copy);
    if (rc == 0) now = t;
    return rc;
}

void dnn_log_rank(int rank, int size, const char *host)
{
    known = true;
    self.rank = rank;
    self.size = size;
    snprintf(self.host, sizeof self.host, "%s", host);
}

bool dnn_log_speaker(void)
{
    static const char *const vars[] = {"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};

    if (known) return self.rank == 0;
    for (size_t i = 0; i < sizeof vars / sizeof vars[0]; i++) {
        const char *rank = getenv(vars[i]);

        if (rank != NULL) return strcmp(rank, "0") == 0;
    }
    return true;
}

bool dnn_log_wants(enum dnn_level level, const char *room)
{
    for (int i = 0; i < now.nrooms; i++)
        if (strcasecmp(now.room[i].name, room) == 0) return level <= now.room[i].level;
    return level <= now.all;
}

/* One write per message, so that the lines of many ranks do not interleave. */
static void say(enum dnn_level level, const char *room, bool all, const char *text)
{
    char *line;

    if (all && self.size > 1)
        line = dnn_format("[%d@%s] %s: %s: %s\n", self.rank, self.host, room,
                          dnn_choice_name(levels, (int)level), text);
    else if (level == DNN_INFO)
        line = dnn_format("%s: %s\n", room, text);
    else
        line =
            dnn_format("%s: %s: %s\n", room, dnn_choice_name(levels, (int)level), text);
    fputs(line, stderr);
    fflush(stderr);
    dnn_free(line);
}

void dnn_log(enum dnn_level level, const char *room, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    if (self.rank != 0 || !dnn_log_wants(level, room)) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    say(level, room, false, text);
}

void dnn_log_all(enum dnn_level level, const char *room, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    if (!dnn_log_wants(level, room)) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    say(level, room, true, text);
}

/* Whether this text is new; remembers it (the oldest is forgotten when full). */
static bool first_time(const char *text)
{
    unsigned long hash = 5381;
    bool fresh = true;

    for (const char *p = text; *p != '\0'; p++)
        hash = hash * 33 + (unsigned char)*p;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < nsaid && i < MAX_SAID; i++)
        if (said[i] == hash) fresh = false;
    if (fresh) said[nsaid++ % MAX_SAID] = hash;
    pthread_mutex_unlock(&lock);
    return fresh;
}

void dnn_log_once(enum dnn_level level, const char *room, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    if (self.rank != 0 || !dnn_log_wants(level, room)) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (first_time(text)) say(level, room, false, text);
}
