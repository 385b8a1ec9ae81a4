/* cli_config.h - a configuration made of options: what is typed becomes what could have
 * been written into a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PREPARE_CLI_CONFIG_H
#define DNN_PREPARE_CLI_CONFIG_H

#include "base/opt.h"

#include <stdbool.h>

enum { DNN_PREPARE_IMPORTS = 48 };

/* Texts as typed; NULL and false: not given. */
struct dnn_cli_config {
    const char *from, *target, *to, *generate;
    struct dnn_opt_list set; /* key=value of the generator                           */
    const char *import[DNN_PREPARE_IMPORTS]; /* by place in dnn_import_fields         */
    bool import_flag[DNN_PREPARE_IMPORTS];
    const char *seed, *split, *folds, *remap, *spacing, *resize, *crop, *pad, *slice,
        *normalise, *type, *compress, *chunk, *piece;
    bool stratify, partial, balance, one_hot, shuffle, allow_nan;
};

/* Local.  The JSON of a configuration; the caller's: dnn_free().  What cannot be read
 * is DNN_EUSAGE with the option named. */
int dnn_prepare_spell(const struct dnn_cli_config *words, char **out,
                      struct dnn_err *err);

/* The option of the import's key at a place: "input-format"; false where there is none
 * because another option stands for it, or past the end (then *end is set). */
bool dnn_prepare_import_option(int index, struct dnn_option *out, char name[64],
                               bool *end);

#endif
