/* named.c - metrics by name.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "schedule/schedule_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <string.h>

int dnn_schedule_find(const char *who, const char *name, int n,
                      const struct dnn_named *metric, double *out, struct dnn_err *err)
{
    struct dnn_buf list = {0};
    char hint[96];

    for (int i = 0; i < n; i++)
        if (strcmp(metric[i].name, name) == 0) {
            *out = metric[i].value;
            return 0;
        }
    const char **words = dnn_alloc(((size_t)n + 1) * sizeof *words);
    for (int i = 0; i < n; i++) {
        words[i] = metric[i].name;
        dnn_buf_add(&list, "%s%s", i == 0 ? "" : ", ", words[i]);
    }
    int rc = dnn_fail(err, DNN_ECONFIG, "%s: there is no metric \"%s\"; there is %s%s",
                      who, name, n == 0 ? "none" : list.text,
                      dnn_text_hint(hint, sizeof hint, name, words));
    dnn_buf_free(&list);
    dnn_free(words);
    return rc;
}
