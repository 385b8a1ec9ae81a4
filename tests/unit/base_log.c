/* base_log.c - levels by room, ranks, messages said once.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/log.h"
#include "tap.h"

#include <stdlib.h>
#include <unistd.h>

/* What stderr got since the last call; the test owns the file behind it. */
static const char *heard(void)
{
    static char text[4096];
    static long from;

    fflush(stderr);
    FILE *f = fopen("base_log.err", "r");
    if (f == NULL) return "(no file)";
    fseek(f, from, SEEK_SET);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    from += (long)n;
    fclose(f);
    return text;
}

static void levels(void)
{
    struct dnn_err err = {0};

    dnn_log(DNN_INFO, "plan", "%d steps", 42);
    is_text(heard(), "plan: 42 steps\n", "info is plain");
    dnn_log(DNN_WARN, "plan", "slow");
    is_text(heard(), "plan: warn: slow\n", "others name their level");
    dnn_log(DNN_DEBUG, "plan", "hidden");
    is_text(heard(), "", "debug is off");
    is_int(dnn_log_levels("warn,plan=debug", &err), 0, "levels by room");
    dnn_log(DNN_DEBUG, "plan", "shown");
    dnn_log(DNN_INFO, "topo", "hidden");
    is_text(heard(), "plan: debug: shown\n", "one room is louder");
    is_int(dnn_log_levels("warn,plan=debgu", &err), DNN_EUSAGE, "a wrong word");
    is_text(
        err.text,
        "log level \"plan=debgu\": must be one of error, warn, info, debug, trace, not "
        "\"debgu\"; did you mean \"debug\"?",
        "is named");
    ok(dnn_log_wants(DNN_DEBUG, "plan"), "and nothing has changed");
    is_int(dnn_log_levels("=debug", &err), DNN_EUSAGE, "no room");
    dnn_log_levels("info", NULL);
    ok(!dnn_log_wants(DNN_DEBUG, "plan"), "a new spec replaces the old");
}

static void ranks(void)
{
    setenv("PMIX_RANK", "3", 1);
    ok(!dnn_log_is_root(), "before MPI the launcher's rank counts");
    unsetenv("PMIX_RANK");
    ok(dnn_log_is_root(), "alone we speak");
    dnn_log_rank(2, 4, "n1");
    dnn_log(DNN_ERROR, "run", "said by rank 0");
    is_text(heard(), "", "rank 2 leaves common things to rank 0");
    dnn_log_all(DNN_INFO, "run", "here");
    is_text(heard(), "[2@n1] run: info: here\n", "but says its own");
    ok(!dnn_log_is_root(), "rank 2 does not speak");
    dnn_log_rank(0, 1, "n1");
    dnn_log_all(DNN_INFO, "run", "here");
    is_text(heard(), "run: here\n", "one rank needs no name");
}

static void once(void)
{
    for (int i = 0; i < 3; i++)
        dnn_log_once(DNN_WARN, "data", "key \"%s\" is slow", "x");
    dnn_log_once(DNN_WARN, "data", "key \"%s\" is slow", "y");
    is_text(heard(), "data: warn: key \"x\" is slow\ndata: warn: key \"y\" is slow\n",
            "the same text once");
}

int main(void)
{
    if (freopen("base_log.err", "w", stderr) == NULL) return 1;
    levels();
    ranks();
    once();
    unlink("base_log.err");
    return done();
}
