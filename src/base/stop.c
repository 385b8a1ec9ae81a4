/* stop.c - has somebody asked this process to stop soon?
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/stop.h"

#include <signal.h>
#include <string.h>

static const int signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};
enum { NSIGNALS = sizeof signals / sizeof *signals };
static struct sigaction before[NSIGNALS];
static volatile sig_atomic_t asked;

static void note(int number)
{
    if (asked == 0) asked = number;
}

void dnn_stop_watch(bool impatient)
{
    struct sigaction act;

    memset(&act, 0, sizeof act);
    act.sa_handler = note;
    act.sa_flags = SA_RESTART | (impatient ? (int)SA_RESETHAND : 0);
    sigemptyset(&act.sa_mask);
    asked = 0;
    for (int i = 0; i < NSIGNALS; i++)
        sigaction(signals[i], &act, &before[i]);
}

void dnn_stop_unwatch(void)
{
    for (int i = 0; i < NSIGNALS; i++)
        sigaction(signals[i], &before[i], NULL);
}

int dnn_stop_asked(void)
{
    return asked;
}

const char *dnn_stop_name(int number)
{
    switch (number) {
    case SIGTERM:
        return "SIGTERM";
    case SIGINT:
        return "SIGINT";
    case SIGUSR1:
        return "SIGUSR1";
    case SIGUSR2:
        return "SIGUSR2";
    default:
        return "a signal";
    }
}
