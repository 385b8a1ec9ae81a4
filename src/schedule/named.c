/* named.c - finds metrics by name.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "schedule/schedule_impl.h"

#include "base/mem.h"
#include "base/text.h"
#include "metric/metric.h"

#include <stdbool.h>
#include <string.h>

/* Whether a name is that of a metric, an alias of it or, for the loss, a name of
 * cross-entropy such as PyDTNN's val_categorical_cross_entropy. */
static bool has_name(const char *metric, const char *name)
{
    if (strcmp(metric, name) == 0) return true;
    if (strncmp(name, "val_", 4) == 0) {
        if (strncmp(metric, "val_", 4) != 0) return false;
        metric += 4;
        name += 4;
    }
    if (strcmp(metric, "loss") == 0) return strstr(name, "entropy") != NULL;
    return strcmp(metric, dnn_metric_canonical(name)) == 0;
}

int dnn_schedule_find(const char *who, const char *name, int n,
                      const struct dnn_named *metric, double *out, struct dnn_err *err)
{
    struct dnn_buf list = {0};
    char hint[96];

    for (int i = 0; i < n; i++)
        if (has_name(metric[i].name, name)) {
            *out = metric[i].value;
            return 0;
        }
    const char **words = dnn_alloc(((size_t)n + 1) * sizeof *words);
    for (int i = 0; i < n; i++) {
        words[i] = metric[i].name;
        dnn_buf_add(&list, "%s%s", i == 0 ? "" : ", ", words[i]);
    }
    int rc = dnn_fail(err, DNN_ECONFIG, "%s: unknown metric \"%s\"; available: %s%s",
                      who, name, n == 0 ? "none" : list.text,
                      dnn_text_hint(hint, sizeof hint, name, words));
    dnn_buf_free(&list);
    dnn_free(words);
    return rc;
}
