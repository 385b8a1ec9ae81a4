/* topo_cases.h - machines and requests for the tests of src/topo.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_TOPO_CASES_H
#define DNN_TESTS_TOPO_CASES_H

#include "base/mem.h"
#include "base/text.h"
#include "topo/topo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "0-3,8" -> a set. */
static inline struct dnn_topo_set set_of(const char *list)
{
    struct dnn_topo_set set = {{0}};

    while (*list >= '0' && *list <= '9') {
        char *end;
        long low = strtol(list, &end, 10), high = low;

        if (*end == '-') high = strtol(end + 1, &end, 10);
        for (; low <= high; low++)
            dnn_topo_add(&set, (int)low);
        list = *end == ',' ? end + 1 : end;
    }
    return set;
}

/* A set -> "0-3,8", for the caller to dnn_free. */
static inline char *list_of(const struct dnn_topo_set *set)
{
    struct dnn_buf buf = {0};

    dnn_topo_list(&buf, set);
    char *text = dnn_strdup(buf.text);
    dnn_buf_free(&buf);
    return text;
}

/* A rank on host "n1" that sees all GPUs of the machine. */
static inline struct dnn_topo_request card_of(const char *granted, int ngpus)
{
    struct dnn_topo_request request = {.ngpus = ngpus, .granted = set_of(granted)};

    strcpy(request.host, "n1");
    for (int i = 0; i < ngpus; i++)
        request.gpu[i] = (int16_t)i;
    return request;
}

/* A recorded machine from tests/data/topo. */
static inline int read_machine(const char *name, struct dnn_topo **out,
                               struct dnn_err *err)
{
    const char *srcdir = getenv("srcdir");
    char *path =
        dnn_format("%s/tests/data/topo/%s", srcdir == NULL ? "." : srcdir, name);
    int rc = dnn_topo_read(path, out, err);

    dnn_free(path);
    return rc;
}

#endif
