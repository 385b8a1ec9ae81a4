/* err.c - messages, codes and exit statuses.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/err.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
    int code, status;
    const char *text;
} statuses[] = {
    {0,           0,  "done"                                                         },
    {DNN_EUSAGE,  2,  "wrong command line"                                           },
    {DNN_ECONFIG, 3,  "error in a configuration or network file"                     },
    {DNN_EDATA,   4,  "invalid dataset or checkpoint"                                },
    {DNN_EIO,     5,  "input or output error"                                        },
    {DNN_EDEVICE, 6,  "error of a device or its library"                             },
    {DNN_ECOMM,   7,  "communication error: a rank is missing or was started wrongly"},
    {DNN_ENOMEM,  8,  "not enough memory"                                            },
    {DNN_ELOST,   9,  "stopped early: the same command starts from the beginning"    },
    {DNN_ESTOP,   75,
     "stopped early after writing a checkpoint: run the same command again"          },
};
enum { NSTATUSES = sizeof statuses / sizeof statuses[0] };

int dnn_fail(struct dnn_err *err, int code, const char *fmt, ...)
{
    if (err != NULL) {
        va_list ap;

        /* The arguments may point into the old text: use a second buffer. */
        char text[sizeof err->text];
        va_start(ap, fmt);
        vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        memcpy(err->text, text, sizeof text);
        err->code = code;
        err->everywhere = false;
    }
    return code;
}

int dnn_prefix(struct dnn_err *err, const char *fmt, ...)
{
    char text[sizeof err->text];
    va_list ap;

    if (err == NULL) return DNN_EIO;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, "%s", err->text);
    memcpy(err->text, text, sizeof text);
    return err->code;
}

int dnn_exit_status(int code)
{
    for (int i = 0; i < NSTATUSES; i++)
        if (statuses[i].code == code) return statuses[i].status;
    return code > 0 ? 0 : 1;
}

const char *dnn_exit_text(int index, int *status)
{
    if (index < 0 || index >= NSTATUSES) return NULL;
    *status = statuses[index].status;
    return statuses[index].text;
}
