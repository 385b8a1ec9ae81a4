/* load_epoch.c - rmldnn's names of checkpoints, for ours.
 *
 * DIR/model_checkpoint_20.pt is what rmldnn would have written after epoch 20 into the
 * directory in which our checkpoints are.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "run/load.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "ckpt/ckpt.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The epoch in such a name; -1: it is another. */
static int64_t epoch_in(const char *path)
{
    static const char head[] = "model_checkpoint_";
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    char *end;

    if (strncmp(name, head, strlen(head)) != 0) return -1;
    name += strlen(head);
    if (*name < '0' || *name > '9') return -1;
    long long epoch = strtoll(name, &end, 10);
    return strcmp(end, ".pt") == 0 ? epoch : -1;
}

/* How many whole epochs a checkpoint was written after; -1: within one, or damaged. */
static int64_t epoch_of(const char *path)
{
    struct dnn_ckpt_file *file = NULL;
    struct dnn_json *json = NULL;
    int64_t epoch = -1, batch = 0;

    if (dnn_ckpt_file_open(path, &file, NULL) < 0) return -1;
    const char *state = dnn_ckpt_file_state(file);
    if (dnn_json_text(path, state, strlen(state), &json, NULL) == 0) {
        struct dnn_jobj top = dnn_json_top(json), at = dnn_json_sub(&top, "epoch");
        struct dnn_jobj in = dnn_json_sub(&top, "batch");

        if (dnn_json_int(&at, &epoch, NULL) < 0 ||
            (dnn_json_int(&in, &batch, NULL) == 0 && batch != 0))
            epoch = -1;
    }
    dnn_json_free(json);
    dnn_ckpt_file_close(file);
    return epoch;
}

static bool is_ckpt(const char *name)
{
    size_t len = strlen(name);

    return strncmp(name, "ckpt-", 5) == 0 && len > 8 &&
           strcmp(name + len - 3, ".bp") == 0;
}

/* The newest one of the epoch into *out; there: what other epochs there are. */
static void look(const char *dir, int64_t epoch, char **out, struct dnn_buf *there)
{
    DIR *list = opendir(dir);
    struct dirent *entry;

    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (!is_ckpt(entry->d_name)) continue;
        char *path = dnn_format("%s/%s", dir, entry->d_name);
        int64_t is = epoch_of(path);

        if (is >= 0) dnn_buf_add(there, "%s%" PRId64, there->len == 0 ? "" : ", ", is);
        if (is == epoch && (*out == NULL || strcmp(*out, path) < 0)) {
            dnn_free(*out);
            *out = path;
        } else {
            dnn_free(path);
        }
    }
    if (list != NULL) closedir(list);
}

int dnn_load_find(const char *path, char **out, struct dnn_err *err)
{
    int64_t epoch = epoch_in(path);
    const char *slash = strrchr(path, '/');
    struct dnn_buf there = {0};
    int rc = 0;

    *out = NULL;
    if (epoch < 0 || access(path, F_OK) == 0) {
        *out = dnn_strdup(path);
        return 0;
    }
    char *dir =
        slash == NULL ? dnn_strdup(".") : dnn_strndup(path, (size_t)(slash - path));
    look(dir, epoch, out, &there);
    if (*out == NULL)
        rc = dnn_fail(err, DNN_EIO,
                      "%s: there is no such file, and in %s no checkpoint of epoch "
                      "%" PRId64 "%s%s",
                      path, dir, epoch, there.len == 0 ? "" : ", only of ",
                      there.len == 0 ? "" : there.text);
    dnn_buf_free(&there);
    dnn_free(dir);
    return rc;
}
