/* err.h - error codes and messages.
 *
 * A function that can fail takes a struct dnn_err * as its last argument and
 * returns 0 or a negative DNN_E code.  The function that detects the error writes
 * the message; callers return it unchanged or add a prefix.  Only main() prints
 * it and exits.
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
    DNN_ECONFIG = -2, /* a configuration is invalid or unsupported exit 3 */
    DNN_EDATA = -3,   /* a dataset or checkpoint is malformed      exit 4 */
    DNN_EIO = -4,     /* a read or a write failed                  exit 5 */
    DNN_EDEVICE = -5, /* a backend library reported a failure      exit 6 */
    DNN_ECOMM = -6,   /* MPI or NCCL failed, or another rank did   exit 7 */
    DNN_ENOMEM = -7,  /* a planned buffer does not fit             exit 8 */
    DNN_ESTOP = -8,   /* stopped early, after a checkpoint         exit 75 */
    DNN_ELOST = -9    /* stopped early, and nothing is saved       exit 9 */
};

struct dnn_err {
    int code;
    bool everywhere; /* all ranks have this message: only rank 0 prints it */
    char text[1024];
};

/* Write the message and return code, so that callers can write
 * return dnn_fail(err, DNN_EIO, ...);  err may be NULL. */
int dnn_fail(struct dnn_err *err, int code, const char *fmt, ...) DNN_PRINTF(3, 4);

/* Add a prefix to the message in err; returns its code.  err may be NULL: returns
 * DNN_EIO. */
int dnn_prefix(struct dnn_err *err, const char *fmt, ...) DNN_PRINTF(2, 3);

/* The exit status of a program for a code (or 0). */
int dnn_exit_status(int code);

/* Status and description number index, for the manual pages; NULL past the end. */
const char *dnn_exit_text(int index, int *status);

/* Return the error code if call fails.  Only for functions that have nothing to
 * release; others use "goto out". */
#define DNN_TRY(call)                                                                  \
    do {                                                                               \
        int rc_ = (call);                                                              \
        if (rc_ < 0) return rc_;                                                       \
    } while (0)

#endif
