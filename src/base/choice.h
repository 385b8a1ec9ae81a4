/* choice.h - lists of allowed words, each with a value, for option and field tables.
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

/* The value of a word, ignoring case.  DNN_EUSAGE if it is not in the list, with the
 * message `must be one of a, b, c, not "x"` and a similar word if there is one. */
int dnn_choice_find(const struct dnn_choice *choices, const char *word, int *out,
                    struct dnn_err *err);

/* The word for a value, or NULL. */
const char *dnn_choice_name(const struct dnn_choice *choices, int value);

#endif
