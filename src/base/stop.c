/* stop.c - signals that request a clean stop.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/stop.h"

#include <signal.h>
#include <string.h>

static const int signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};
enum { NSIGNALS = sizeof signals / sizeof *signals };
static struct sigaction old_actions[NSIGNALS];
static volatile sig_atomic_t received;

static void on_signal(int number)
{
    if (received == 0) received = number;
}

void dnn_stop_watch(bool exit_on_second)
{
    struct sigaction act;

    memset(&act, 0, sizeof act);
    act.sa_handler = on_signal;
    act.sa_flags = SA_RESTART | (exit_on_second ? (int)SA_RESETHAND : 0);
    sigemptyset(&act.sa_mask);
    received = 0;
    for (int i = 0; i < NSIGNALS; i++)
        sigaction(signals[i], &act, &old_actions[i]);
}

void dnn_stop_unwatch(void)
{
    for (int i = 0; i < NSIGNALS; i++)
        sigaction(signals[i], &old_actions[i], NULL);
}

int dnn_stop_requested(void)
{
    return received;
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
