/* op.c - ADIOS2's version and the operators (compressors) it was built with.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/text.h"
#include "bp/bp_impl.h"

#include <pthread.h>
#include <string.h>

/* Those that give back what they were given, of any shape: the lossy ones change data,
 * and png wants images of few kinds. */
static const char *const names[] = {"blosc", "bzip2", NULL};
enum { NNAMES = sizeof names / sizeof names[0] - 1 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool there[NNAMES];

static void look(void)
{
    struct bp_ears ears;

    dnn_bp_listen(&ears);
    adios2_adios *adios = adios2_init_serial();
    for (int i = 0; adios != NULL && i < NNAMES; i++)
        there[i] = adios2_define_operator(adios, names[i], names[i]) != NULL;
    if (adios != NULL) adios2_finalize(adios);
    dnn_bp_heard(&ears, true, "", "", NULL);
}

const char *dnn_bp_version(void)
{
    return ADIOS2_VERSION_STR;
}

bool dnn_bp_operator(const char *name)
{
    pthread_once(&once, look);
    for (int i = 0; i < NNAMES; i++)
        if (strcmp(name, names[i]) == 0) return there[i];
    return false;
}

int dnn_bp_operator_check(const char *name, struct dnn_err *err)
{
    struct dnn_buf list = {0};

    if (dnn_bp_operator(name)) return 0;
    for (int i = 0; i < NNAMES; i++)
        if (there[i]) dnn_buf_add(&list, "%s%s", list.len > 0 ? ", " : "", names[i]);
    int rc = dnn_fail(
        err, DNN_ECONFIG,
        "compression \"%s\" is not available in the installed ADIOS2 %s; available: %s",
        name, dnn_bp_version(), list.len > 0 ? list.text : "none");
    dnn_buf_free(&list);
    return rc;
}
