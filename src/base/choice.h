/* choice.h - a word out of a few, as option and field tables list them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_BASE_CHOICE_H
#define DNN_BASE_CHOICE_H

#include "base/err.h"

struct dnn_choice {
    const char *name; /* NULL ends a list */
    int value;
};

/* The value of a word, ignoring case.  Otherwise DNN_EUSAGE and the message
 * `must be one of a, b, c, not "x"` with the nearest word if there is one. */
int dnn_choice_find(const struct dnn_choice *choices, const char *word, int *out,
                    struct dnn_err *err);

/* The word of a value, or NULL. */
const char *dnn_choice_name(const struct dnn_choice *choices, int value);

#endif
