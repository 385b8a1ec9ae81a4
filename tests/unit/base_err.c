/* base_err.c - messages, prefixes, exit statuses.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "tap.h"

static void messages(void)
{
    struct dnn_err err = {0};

    is_int(dnn_fail(&err, DNN_EIO, "%s: no such file", "a.json"), DNN_EIO,
           "code is returned");
    is_text(err.text, "a.json: no such file", "text is written");
    is_int(dnn_prefix(&err, "rank %d: ", 3), DNN_EIO, "prefix keeps the code");
    is_text(err.text, "rank 3: a.json: no such file", "prefix comes first");
    dnn_fail(&err, DNN_EDATA, "again: %s", err.text);
    is_text(err.text, "again: rank 3: a.json: no such file",
            "old text may be an argument");
    is_int(dnn_fail(NULL, DNN_EUSAGE, "x"), DNN_EUSAGE, "err may be NULL");
    is_int(dnn_prefix(NULL, "x"), DNN_EIO, "err of a prefix may be NULL");
}

static void long_messages(void)
{
    struct dnn_err err = {0};
    char big[4000];

    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    dnn_fail(&err, DNN_EIO, "%s", big);
    is_int((long long)strlen(err.text), sizeof err.text - 1,
           "a long text is truncated");
    dnn_prefix(&err, "%s", big);
    is_int((long long)strlen(err.text), sizeof err.text - 1,
           "a long prefix is truncated");
}

static void statuses(void)
{
    static const int want[][2] = {
        {0,           0 },
        {DNN_EUSAGE,  2 },
        {DNN_ECONFIG, 3 },
        {DNN_EDATA,   4 },
        {DNN_EIO,     5 },
        {DNN_EDEVICE, 6 },
        {DNN_ECOMM,   7 },
        {DNN_ENOMEM,  8 },
        {DNN_ELOST,   9 },
        {DNN_ESTOP,   75},
        {-99,         1 }
    };
    int status, n = 0;

    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        is_int(dnn_exit_status(want[i][0]), want[i][1], "exit status");
    while (dnn_exit_text(n, &status) != NULL)
        n++;
    is_int(n, 10, "every exit status has a description");
}

int main(void)
{
    messages();
    long_messages();
    statuses();
    return done();
}
