/* config_made.h - configurations for tests of the section "data", in a temporary
 * directory.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_CONFIG_MADE_H
#define DNN_TESTS_CONFIG_MADE_H

#include "tap.h"

#include "base/file.h"
#include "base/mem.h"
#include "config/run_config.h"

#include <stdlib.h>
#include <string.h>

static struct dnn_err err;
static char dir[] = "/tmp/config_made_XXXXXX";
static char *path; /* of the configuration */
static struct dnn_config config;

static inline char *below(const char *name)
{
    return dnn_format("%s/%s", dir, name);
}

/* A configuration with this under "data"; its first line is line 2. */
static inline int read_data(const char *data)
{
    char *text =
        dnn_format("{\"layers\": {\"zoo\": \"simplecnn\"}, \"data\": {\n%s}}", data);
    int rc = dnn_file_write(path, text, strlen(text), &err);

    if (rc == 0) rc = dnn_config_read_set(path, 0, NULL, &config, &err);
    dnn_free(text);
    return rc;
}

static inline bool reads(const char *data)
{
    bool good = ok(read_data(data) == 0, "%.*s", (int)strcspn(data, "\n"), data);

    if (!good) printf("# %s\n", err.text);
    return good;
}

static inline void made_start(void)
{
    if (mkdtemp(dir) == NULL) exit(99);
    path = below("train.json");
}

static inline int made_end(void)
{
    dnn_free(path);
    dnn_file_remove_tree(dir, &err);
    return done();
}

#endif
