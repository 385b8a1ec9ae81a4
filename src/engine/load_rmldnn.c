/* load_rmldnn.c - find our checkpoint for the name of an rmldnn checkpoint.
 *
 * DIR/model_checkpoint_20.pt: the checkpoint of epoch 20 in DIR.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "engine/model_impl.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "ckpt/ckpt.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The epoch in the name of an rmldnn checkpoint; -1: another name. */
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

/* The number of completed epochs of a checkpoint; -1: saved within an epoch, or
 * not readable, then err says why. */
static int64_t epoch_of(const char *path, struct dnn_err *err)
{
    struct dnn_ckpt_file *file = NULL;
    struct dnn_json *json = NULL;
    int64_t epoch = -1, batch = 0;

    if (dnn_ckpt_file_open(path, &file, err) < 0) return -1;
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

/* Find the newest checkpoint of the epoch; epochs: list of all epochs found; err: the
 * first checkpoint that cannot be read. */
static void find_epoch(const char *dir, int64_t epoch, char **out,
                       struct dnn_buf *epochs, struct dnn_err *err)
{
    DIR *list = opendir(dir);
    struct dirent *entry;

    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (!is_ckpt(entry->d_name)) continue;
        char *path = dnn_format("%s/%s", dir, entry->d_name);
        int64_t found = epoch_of(path, err->text[0] == '\0' ? err : NULL);

        if (found >= 0)
            dnn_buf_add(epochs, "%s%" PRId64, epochs->len == 0 ? "" : ", ", found);
        if (found == epoch && (*out == NULL || strcmp(*out, path) < 0)) {
            dnn_free(*out);
            *out = path;
        } else {
            dnn_free(path);
        }
    }
    if (list != NULL) closedir(list);
}

int dnn_load_rmldnn(const char *path, char **out, struct dnn_err *err)
{
    int64_t epoch = epoch_in(path);
    const char *slash = strrchr(path, '/');
    struct dnn_buf epochs = {0};
    struct dnn_err unread = {0};

    *out = NULL;
    if (epoch < 0) return 0;
    char *dir =
        slash == NULL ? dnn_strdup(".") : dnn_strndup(path, (size_t)(slash - path));
    find_epoch(dir, epoch, out, &epochs, &unread);
    if (*out == NULL)
        dnn_fail(err, DNN_EIO,
                 "%s: does not exist, and %s has no checkpoint of epoch %" PRId64
                 "%s%s%s%s",
                 path, dir, epoch, epochs.len == 0 ? "" : "; epochs found: ",
                 epochs.len == 0 ? "" : epochs.text, unread.text[0] == '\0' ? "" : "; ",
                 unread.text);
    dnn_buf_free(&epochs);
    dnn_free(dir);
    return *out != NULL ? 0 : DNN_EIO;
}
