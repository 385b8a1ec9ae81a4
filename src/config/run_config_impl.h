/* run_config_impl.h - shared by the files that read a configuration.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_CONFIG_RUN_CONFIG_IMPL_H
#define DNN_CONFIG_RUN_CONFIG_IMPL_H

#include "base/json.h"
#include "base/mem.h"
#include "config/run_config.h"

/* Rows of tables. */
#define END {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL}
#define JSON(key, at, def, help) {key, DNN_F_JSON, at, def, 0, 0, NULL, help, NULL}
#define INT(key, at, def, min, max, help)                                              \
    {key, DNN_F_INT, at, def, min, max, NULL, help, NULL}
#define REAL(key, at, def, min, max, help)                                             \
    {key, DNN_F_REAL, at, def, min, max, NULL, help, NULL}
#define FLAG(key, at, def, help) {key, DNN_F_BOOL, at, def, 0, 0, NULL, help, NULL}
#define TEXT(key, at, def, help) {key, DNN_F_TEXT, at, def, 0, 0, NULL, help, NULL}
#define WORD(key, at, def, choices, help)                                              \
    {key, DNN_F_ENUM, at, def, 0, 0, choices, help, NULL}
#define BYTES(key, at, def, help) {key, DNN_F_BYTES, at, def, 0, 0, NULL, help, NULL}
#define OBJECT(key, at, def, sub, help)                                                \
    {key, DNN_F_OBJECT, at, def, 0, 0, NULL, help, sub}

/* Maximum batch size. */
#define DNN_CONFIG_BATCH (1 << 20)

/* Sections that other components read; top is the object that has the keys. */
int dnn_config_read_sections(const struct dnn_jobj *top, struct dnn_config *config,
                             struct dnn_err *err);

/* Checks the metrics against the network, once it has been read. */
int dnn_config_check_metrics(const struct dnn_config *config, struct dnn_err *err);

/* Check the section "data" once it is filled, and read what its table cannot. */
int dnn_config_read_data(const struct dnn_jobj *top, struct dnn_config *config,
                         struct dnn_err *err);

/* Whether type is word, ignoring case; false if type is NULL. */
bool dnn_config_type_is(const char *type, const char *word);

/* The output of print() without trailing newlines; lives as long as the
 * configuration. */
const char *dnn_config_printed(const struct dnn_config *config,
                               void (*print)(const void *what, FILE *where),
                               const void *what);

#endif
