/* choice.c - lists of allowed words, each with a value.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/choice.h"

#include "base/mem.h"
#include "base/text.h"

#include <strings.h>

int dnn_choice_find(const struct dnn_choice *choices, const char *word, int *out,
                    struct dnn_err *err)
{
    int n = 0;

    for (; choices[n].name != NULL; n++)
        if (strcasecmp(choices[n].name, word) == 0) {
            *out = choices[n].value;
            return 0;
        }

    const char **words = dnn_alloc(((size_t)n + 1) * sizeof *words);
    struct dnn_buf list = {0};
    char hint[96];
    for (int i = 0; i < n; i++) {
        words[i] = choices[i].name;
        dnn_buf_add(&list, "%s%s", i == 0 ? "" : ", ", words[i]);
    }
    int rc = dnn_fail(err, DNN_EUSAGE, "must be one of %s, not \"%s\"%s", list.text,
                      word, dnn_text_hint(hint, sizeof hint, word, words));
    dnn_buf_free(&list);
    dnn_free(words);
    return rc;
}

const char *dnn_choice_name(const struct dnn_choice *choices, int value)
{
    for (int i = 0; choices[i].name != NULL; i++)
        if (choices[i].value == value) return choices[i].name;
    return NULL;
}
