/* op.c - ADIOS2's version and the operators (compressors) it was built with.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/text.h"
#include "bp/bp_impl.h"

#include <pthread.h>
#include <string.h>

/* The lossless operators for arrays of any shape and type; png supports only some types
 * of images. */
static const char *const names[] = {"blosc", "bzip2", NULL};
enum { NNAMES = sizeof names / sizeof names[0] - 1 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool available[NNAMES];

static void find_operators(void)
{
    struct bp_capture capture;

    dnn_bp_capture_start(&capture);
    adios2_adios *adios = adios2_init_serial();
    for (int i = 0; adios != NULL && i < NNAMES; i++)
        available[i] = adios2_define_operator(adios, names[i], names[i]) != NULL;
    if (adios != NULL) adios2_finalize(adios);
    dnn_bp_capture_end(&capture, true, "", "", NULL);
}

const char *dnn_bp_version(void)
{
    return ADIOS2_VERSION_STR;
}

bool dnn_bp_operator(const char *name)
{
    pthread_once(&once, find_operators);
    for (int i = 0; i < NNAMES; i++)
        if (strcmp(name, names[i]) == 0) return available[i];
    return false;
}

int dnn_bp_operator_check(const char *name, struct dnn_err *err)
{
    struct dnn_buf list = {0};

    if (dnn_bp_operator(name)) return 0;
    for (int i = 0; i < NNAMES; i++)
        if (available[i])
            dnn_buf_add(&list, "%s%s", list.len > 0 ? ", " : "", names[i]);
    int rc = dnn_fail(
        err, DNN_ECONFIG,
        "compression \"%s\" is not available in the installed ADIOS2 %s; available: %s",
        name, dnn_bp_version(), list.len > 0 ? list.text : "none");
    dnn_buf_free(&list);
    return rc;
}
