/* load.c - load the newest valid checkpoint; rank 0 reads and broadcasts.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/log.h"
#include "base/mem.h"
#include "ckpt/ckpt_impl.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

enum { BLOCK = 64 << 20 };

/* Open a file and check all its checksums. */
static int open_valid(const char *path, struct dnn_ckpt_file **out, struct dnn_err *err)
{
    struct dnn_ckpt_file *file;

    DNN_TRY(dnn_ckpt_file_open(path, &file, err));
    for (int i = 0; i < dnn_ckpt_file_count(file); i++) {
        int rc = dnn_ckpt_file_check(file, i, err);

        if (rc < 0) {
            dnn_ckpt_file_close(file);
            return rc;
        }
    }
    *out = file;
    return 0;
}

static void rename_damaged(struct dnn_ckpts *c, int64_t step, const char *why)
{
    struct dnn_err err = {0};
    char *to = dnn_ckpt_rename(c, step, "damaged", &err);

    const char *then =
        c->nsteps > 0 ? "using the one before it" : "there is none before it";
    if (to != NULL)
        dnn_log(DNN_WARN, "ckpt", "%s; renamed to %s; %s", why, to, then);
    else
        dnn_log(DNN_WARN, "ckpt", "%s; %s (%s)", why, then, err.text);
    dnn_free(to);
}

/* Open the newest valid checkpoint; *out is NULL if there is none. */
static int open_newest(struct dnn_ckpts *c, struct dnn_ckpt_file **out,
                       struct dnn_err *err)
{
    int damaged = 0;

    *out = NULL;
    while (c->nsteps > 0) {
        int64_t step = c->step[c->nsteps - 1];
        char *name = dnn_ckpt_name(step), *path = dnn_ckpt_path(c->dir, name);
        int rc = open_valid(path, out, err);

        dnn_free(name);
        dnn_free(path);
        if (rc != DNN_EDATA) return rc;
        rename_damaged(c, step, err->text);
        damaged++;
    }
    if (damaged > 0)
        dnn_log(
            DNN_WARN, "ckpt",
            "%s: no valid checkpoint is left, all %d were damaged; starting a new run",
            c->dir, damaged);
    return 0;
}

static int open_wanted(struct dnn_ckpts *c, const char *wanted, int n,
                       const struct dnn_ckpt_array *array, struct dnn_ckpt_file **out,
                       struct dnn_err *err)
{
    char *path;

    if (wanted == NULL) {
        DNN_TRY(open_newest(c, out, err));
    } else {
        DNN_TRY(dnn_ckpt_find(c->dir, wanted, &path, err));
        int rc = open_valid(path, out, err);
        dnn_free(path);
        DNN_TRY(rc);
    }
    if (*out == NULL) return 0;
    int has = dnn_ckpt_file_count(*out);
    return dnn_ckpt_compare(dnn_ckpt_file_path(*out), has,
                            has > 0 ? dnn_ckpt_file_array(*out, 0) : NULL, n, array,
                            err);
}

/* Check that all ranks load the same arrays. */
static int check_same(struct dnn_ckpts *c, int n, const struct dnn_ckpt_array *array,
                      struct dnn_err *err)
{
    struct dnn_buf text = {0};
    char shape[DNN_SHAPE_TEXT];

    dnn_buf_add(&text, "%d\n", n);
    for (int i = 0; i < n; i++)
        dnn_buf_add(&text, "%s %s %s\n", dnn_dtype_name(array[i].type),
                    dnn_shape_text(shape, sizeof shape, &array[i].shape),
                    array[i].name);
    int64_t sum = (int64_t)(XXH3_64bits(text.text, text.len) >> 1);
    int64_t sums[2] = {sum, -sum};
    dnn_buf_free(&text);
    DNN_TRY(dnn_comm_allreduce(c->comm, "arrays of a checkpoint", sums, 2, DNN_COMM_I64,
                               DNN_COMM_MIN, err));
    if (sums[0] != -sums[1])
        return dnn_fail(err, DNN_EDATA, "%s: ranks want to load different arrays",
                        c->dir);
    return 0;
}

static int broadcast(struct dnn_ckpts *c, void *data, size_t bytes, struct dnn_err *err)
{
    if (c->size == 1) return 0;
    for (size_t at = 0; at < bytes; at += BLOCK) {
        size_t n = bytes - at < BLOCK ? bytes - at : BLOCK;

        DNN_TRY(dnn_comm_bcast(c->comm, "broadcast of a checkpoint", (char *)data + at,
                               n, 0, err));
    }
    return 0;
}

/* Read an array, found by name: the order in the file may be different. */
static int read_one(struct dnn_ckpt_file *file, const struct dnn_ckpt_array *array,
                    struct dnn_err *err)
{
    for (int i = 0; i < dnn_ckpt_file_count(file); i++)
        if (strcmp(dnn_ckpt_file_array(file, i)->name, array->name) == 0)
            return dnn_ckpt_file_read(file, i, array->data, err);
    return dnn_fail(err, DNN_EDATA, "%s: %s: is missing", dnn_ckpt_file_path(file),
                    array->name);
}

/* Read and broadcast all arrays.  After a failure, rank 0 continues to broadcast, as
 * the other ranks do not know it until all agree at the end. */
static int read_all(struct dnn_ckpts *c, struct dnn_ckpt_file *file, int n,
                    const struct dnn_ckpt_array *array, struct dnn_err *err)
{
    int rc = 0;

    for (int i = 0; i < n; i++) {
        size_t bytes;

        if (file != NULL && rc == 0) rc = read_one(file, &array[i], err);
        DNN_TRY(dnn_ckpt_bytes(&array[i], &bytes, err));
        DNN_TRY(broadcast(c, array[i].data, bytes, err));
    }
    return dnn_ckpt_agree(c, rc, err);
}

static int broadcast_state(struct dnn_ckpts *c, const struct dnn_ckpt_file *file,
                           char **state, struct dnn_err *err)
{
    int64_t len = file == NULL ? 0 : (int64_t)strlen(dnn_ckpt_file_state(file));

    DNN_TRY(broadcast(c, &len, sizeof len, err));
    char *text = dnn_alloc((size_t)len + 1);
    if (file != NULL) memcpy(text, dnn_ckpt_file_state(file), (size_t)len);
    int rc = broadcast(c, text, (size_t)len, err);
    if (rc < 0) {
        dnn_free(text);
        return rc;
    }
    *state = text;
    return 0;
}

static int load(struct dnn_ckpts *c, const char *wanted, int n,
                const struct dnn_ckpt_array *array, struct dnn_ckpt_file **file,
                int64_t *step, char **state, struct dnn_err *err)
{
    int rc = dnn_ckpt_check(c->dir, n, array, err);

    DNN_TRY(dnn_ckpt_agree(c, rc, err));
    if (c->size > 1) DNN_TRY(check_same(c, n, array, err));
    if (c->rank == 0) rc = open_wanted(c, wanted, n, array, file, err);
    DNN_TRY(dnn_ckpt_agree(c, rc, err));
    int64_t loaded = *file == NULL ? -1 : dnn_ckpt_file_step(*file);
    DNN_TRY(broadcast(c, &loaded, sizeof loaded, err));
    if (loaded >= 0) {
        DNN_TRY(read_all(c, *file, n, array, err));
        DNN_TRY(broadcast_state(c, *file, state, err));
    }
    *step = loaded;
    return 0;
}

int dnn_ckpt_load(struct dnn_ckpts *c, const char *wanted, int n,
                  const struct dnn_ckpt_array *array, int64_t *step, char **state,
                  struct dnn_err *err)
{
    struct dnn_ckpt_file *file = NULL;

    *step = -1;
    *state = NULL;
    DNN_TRY(dnn_ckpt_wait(c, err)); /* the writer uses c->step */
    int rc = load(c, wanted, n, array, &file, step, state, err);
    dnn_ckpt_file_close(file);
    return rc;
}
