/* cli_config.h - turns command-line options into a configuration: the same JSON text
 * that a configuration file contains.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_PREPARE_CLI_CONFIG_H
#define DNN_PREPARE_CLI_CONFIG_H

#include "base/opt.h"

#include <stdbool.h>

enum { DNN_PREPARE_IMPORTS = 48 };

/* Values of the options as typed; NULL and false: not given. */
struct dnn_cli_config {
    const char *from, *target, *to, *generate;
    struct dnn_opt_list set; /* key=value of the generator                           */
    const char *import[DNN_PREPARE_IMPORTS]; /* by index in dnn_import_fields         */
    bool import_flag[DNN_PREPARE_IMPORTS];
    const char *seed, *split, *folds, *remap, *spacing, *resize, *crop, *pad, *slice,
        *normalise, *type, *compress, *chunk, *piece;
    bool stratify, partial, balance, one_hot, shuffle, allow_nan;
};

/* Local.  The configuration as JSON text; the caller frees it: dnn_free().  Invalid
 * values are DNN_EUSAGE; the message names the option. */
int dnn_prepare_cli_json(const struct dnn_cli_config *cli, char **out,
                         struct dnn_err *err);

/* The option for dnn_import_fields[index], such as "input-format".  false if the key
 * has another option (--from, --target) or index is past the end (then *end is set). */
bool dnn_prepare_import_option(int index, struct dnn_option *out, char name[64],
                               bool *end);

#endif
