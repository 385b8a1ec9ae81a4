/* tap.h - functions of unit tests, which print TAP on stdout for automake's driver.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_TAP_H
#define DNN_TESTS_TAP_H

#include "base/err.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int tap_count, tap_failed;

static inline DNN_PRINTF(2, 3) bool ok(bool good, const char *fmt, ...)
{
    va_list ap;

    printf("%sok %d - ", good ? "" : "not ", ++tap_count);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    if (!good) tap_failed++;
    return good;
}

/* Compare whole texts: messages are part of the interface.  If they differ, both are
 * printed. */
static inline bool is_text(const char *got, const char *want, const char *what)
{
    bool same = got == NULL || want == NULL ? got == want : strcmp(got, want) == 0;

    if (!ok(same, "%s", what)) {
        printf("#   got: %s\n", got == NULL ? "(null)" : got);
        printf("#  want: %s\n", want == NULL ? "(null)" : want);
    }
    return same;
}

static inline bool is_int(long long got, long long want, const char *what)
{
    if (!ok(got == want, "%s", what))
        printf("#   got: %lld\n#  want: %lld\n", got, want);
    return got == want;
}

/* Count a test as skipped. */
static inline void skip(const char *what, const char *why)
{
    printf("ok %d - %s # SKIP %s\n", ++tap_count, what, why);
}

/* Called at the end of main(). */
static inline int done(void)
{
    printf("1..%d\n", tap_count);
    return tap_failed != 0;
}

#endif
