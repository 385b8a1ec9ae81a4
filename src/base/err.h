/* err.h - the one way this project says what went wrong.
 *
 * A function that can fail takes a struct dnn_err * as its last argument and
 * returns 0 or a negative DNN_E code.  The text is written once, by whoever
 * knows the facts; callers pass it up, or put a few words in front of it.
 * Nobody prints and nobody exits but main().
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_ERR_H
#define DNN_BASE_ERR_H

#include <stdbool.h>

#define DNN_PRINTF(f, a) __attribute__((format(printf, f, a)))

enum {
    DNN_EUSAGE = -1,  /* the command line is wrong                 exit 2 */
    DNN_ECONFIG = -2, /* a JSON file says something we cannot do   exit 3 */
    DNN_EDATA = -3,   /* a dataset or checkpoint is malformed      exit 4 */
    DNN_EIO = -4,     /* the system refused a read or a write      exit 5 */
    DNN_EDEVICE = -5, /* a backend library reported a failure      exit 6 */
    DNN_ECOMM = -6,   /* MPI or NCCL, or a peer rank gave up       exit 7 */
    DNN_ENOMEM = -7,  /* a planned buffer does not fit             exit 8 */
    DNN_ESTOP = -8    /* asked to stop; a checkpoint is written    exit 75 */
};

struct dnn_err {
    int code;
    bool everywhere; /* all ranks hold this message: rank 0 alone prints it */
    char text[1024];
};

/* Write the message and return code, so that callers can say
 * return dnn_fail(err, DNN_EIO, ...);  err may be NULL. */
int dnn_fail(struct dnn_err *err, int code, const char *fmt, ...) DNN_PRINTF(3, 4);

/* Put words in front of a message already there; returns its code.  err may be
 * NULL; then nothing is known and the answer is DNN_EIO. */
int dnn_prefix(struct dnn_err *err, const char *fmt, ...) DNN_PRINTF(2, 3);

/* The exit status a program ends with for a code (or 0). */
int dnn_exit_status(int code);

/* One line per status, for the manuals: NULL past the end. */
const char *dnn_exit_text(int index, int *status);

/* Leave at once on failure.  Only in functions that hold nothing to release;
 * the others use "goto out". */
#define DNN_TRY(call)                                                                  \
    do {                                                                               \
        int rc_ = (call);                                                              \
        if (rc_ < 0) return rc_;                                                       \
    } while (0)

#endif
