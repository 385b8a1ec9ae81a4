/* rules.c - the list of rules.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "parallel/rule_impl.h"

#include "base/text.h"

#include <stddef.h>
#include <strings.h>

const struct dnn_choice dnn_compress_choices[] = {
    {"none", DNN_COMPRESS_NONE},
    {"bf16", DNN_COMPRESS_BF16},
    {"fp16", DNN_COMPRESS_F16 },
    {NULL,   0                }
};

static const struct dnn_rule *const rules[] = {&dnn_rule_bsp, NULL};

const struct dnn_rule *dnn_rule_at(int index)
{
    return rules[index];
}

const struct dnn_rule *dnn_rule_find(const char *name, struct dnn_err *err)
{
    struct dnn_buf list = {0};

    for (int i = 0; rules[i] != NULL; i++) {
        if (strcasecmp(rules[i]->name, name) == 0) return rules[i];
        dnn_buf_add(&list, "%s%s", i == 0 ? "" : ", ", rules[i]->name);
    }
    dnn_fail(err, DNN_ECONFIG, "unknown rule \"%s\"; one of: %s", name, list.text);
    dnn_buf_free(&list);
    return NULL;
}
