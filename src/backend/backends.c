/* backends.c - the table of backends. To add one: write its directory, add a line
 * here and in src/Makefile.am.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "backend/backend.h"
#include "base/text.h"

#include <string.h>

extern const struct dnn_backend dnn_backend_cpu, dnn_backend_ref;

static const struct dnn_backend *const table[] = {&dnn_backend_cpu, &dnn_backend_ref,
                                                  NULL};

const struct dnn_choice dnn_kernel_selections[] = {
    {"autotune",  DNN_KERNELS_AUTOTUNE },
    {"heuristic", DNN_KERNELS_HEURISTIC},
    {NULL,        0                    }
};

const struct dnn_backend *dnn_backend_at(int index)
{
    return index >= 0 && index < (int)(sizeof table / sizeof table[0]) ? table[index]
                                                                       : NULL;
}

const struct dnn_backend *dnn_backend_find(const char *name, struct dnn_err *err)
{
    struct dnn_buf names = {0};

    for (int i = 0; table[i] != NULL; i++) {
        if (strcmp(table[i]->name, name) == 0) {
            dnn_buf_free(&names);
            return table[i];
        }
        dnn_buf_add(&names, "%s%s", i == 0 ? "" : ", ", table[i]->name);
    }
    dnn_fail(err, DNN_ECONFIG, "unknown backend \"%s\"; this build has %s", name,
             names.text);
    dnn_buf_free(&names);
    return NULL;
}
