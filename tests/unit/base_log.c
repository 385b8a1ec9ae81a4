/* base_log.c - levels by component, ranks, messages logged once.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/log.h"
#include "tap.h"

#include <stdlib.h>
#include <unistd.h>

/* Output on stderr since the last call; stderr is a file of the test. */
static const char *logged(void)
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
    is_text(logged(), "plan: 42 steps\n", "info is plain");
    dnn_log(DNN_WARN, "plan", "slow");
    is_text(logged(), "plan: warn: slow\n", "others name their level");
    dnn_log(DNN_DEBUG, "plan", "hidden");
    is_text(logged(), "", "debug is off");
    is_int(dnn_log_levels("warn,plan=debug", &err), 0, "levels by component");
    dnn_log(DNN_DEBUG, "plan", "shown");
    dnn_log(DNN_INFO, "topo", "hidden");
    is_text(logged(), "plan: debug: shown\n", "one component has another level");
    is_int(dnn_log_levels("warn,plan=debgu", &err), DNN_EUSAGE, "an unknown level");
    is_text(
        err.text,
        "log level \"plan=debgu\": must be one of error, warn, info, debug, trace, not "
        "\"debgu\"; did you mean \"debug\"?",
        "is named");
    ok(dnn_log_enabled(DNN_DEBUG, "plan"), "and nothing has changed");
    is_int(dnn_log_levels("=debug", &err), DNN_EUSAGE, "no component");
    dnn_log_levels("info", NULL);
    ok(!dnn_log_enabled(DNN_DEBUG, "plan"), "a new spec replaces the old");
}

static void ranks(void)
{
    setenv("PMIX_RANK", "3", 1);
    ok(!dnn_log_is_root(), "before MPI the launcher's rank counts");
    unsetenv("PMIX_RANK");
    ok(dnn_log_is_root(), "a single process logs");
    dnn_log_rank(2, 4, "n1");
    dnn_log(DNN_ERROR, "run", "logged by rank 0");
    is_text(logged(), "", "rank 2 does not log common messages");
    dnn_log_all(DNN_INFO, "run", "here");
    is_text(logged(), "[2@n1] run: info: here\n", "but its own messages");
    ok(!dnn_log_is_root(), "rank 2 is not the root");
    dnn_log_rank(0, 1, "n1");
    dnn_log_all(DNN_INFO, "run", "here");
    is_text(logged(), "run: here\n", "with one rank there is no prefix");
}

static void once(void)
{
    for (int i = 0; i < 3; i++)
        dnn_log_once(DNN_WARN, "data", "key \"%s\" is slow", "x");
    dnn_log_once(DNN_WARN, "data", "key \"%s\" is slow", "y");
    is_text(logged(), "data: warn: key \"x\" is slow\ndata: warn: key \"y\" is slow\n",
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
