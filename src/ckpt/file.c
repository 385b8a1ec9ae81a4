/* file.c - read a checkpoint.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "bp/bp.h"
#include "ckpt/ckpt_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Bytes read at once, or one row if that is more. */
enum { BLOCK = 16 << 20 };

struct dnn_ckpt_file {
    char *path;
    struct dnn_bp *bp;
    struct ckpt_table table;
    int *var;    /* owned: of each array; -1: empty, not stored */
    char *state; /* owned */
};

/* Read table and state, and check their checksum. */
static int read_table(struct dnn_ckpt_file *file, struct dnn_err *err)
{
    char *table = dnn_bp_text(file->bp, "ckpt/table");
    char *sum = dnn_bp_text(file->bp, "ckpt/sum"), expected[17] = "";
    int rc = 0;

    file->state = dnn_bp_text(file->bp, "ckpt/state");
    if (file->state == NULL) file->state = dnn_strdup("");
    if (table == NULL || sum == NULL)
        rc = dnn_fail(err, DNN_EDATA, "%s: is not a checkpoint", file->path);
    else
        snprintf(expected, sizeof expected, "%016" PRIx64,
                 dnn_ckpt_table_sum(table, file->state));
    if (rc == 0 && strcmp(sum, expected) != 0)
        rc = dnn_fail(err, DNN_EDATA,
                      "%s: is damaged: the checksum of its table differs", file->path);
    if (rc == 0) rc = dnn_ckpt_table_read(file->path, table, &file->table, err);
    if (rc == 0 && strlen(file->state) != file->table.state_bytes)
        rc = dnn_fail(err, DNN_EDATA,
                      "%s: is damaged: its state has %zu bytes, expected %zu",
                      file->path, strlen(file->state), file->table.state_bytes);
    dnn_free(table);
    dnn_free(sum);
    return rc;
}

/* Check that all arrays are stored as in the table. */
static int find_arrays(struct dnn_ckpt_file *file, struct dnn_err *err)
{
    const struct ckpt_table *t = &file->table;
    static const struct dnn_shape one = {.ndim = 1, .dim = {1}};

    file->var = dnn_alloc((size_t)t->n * sizeof *file->var + 1);
    for (int i = 0; i < t->n; i++) {
        const struct dnn_ckpt_array *a = &t->array[i];
        const struct dnn_shape *shape = a->shape.ndim == 0 ? &one : &a->shape;
        size_t bytes;

        file->var[i] = -1;
        DNN_TRY(dnn_ckpt_bytes(a, &bytes, err));
        if (bytes == 0) continue;
        int var = dnn_bp_find(file->bp, a->name);
        if (var < 0 || dnn_bp_var(file->bp, var)->type != a->type ||
            !dnn_shape_equal(&dnn_bp_var(file->bp, var)->shape, shape))
            return dnn_fail(err, DNN_EDATA,
                            "%s: is damaged: array %s does not match its table",
                            file->path, a->name);
        file->var[i] = var;
    }
    return 0;
}

int dnn_ckpt_file_open(const char *path, struct dnn_ckpt_file **out,
                       struct dnn_err *err)
{
    struct dnn_ckpt_file *file = dnn_alloc(sizeof *file);

    file->path = dnn_strdup(path);
    int rc = dnn_bp_open(NULL, path, 1, &file->bp, err);
    if (rc == 0 && !dnn_bp_complete(file->bp))
        rc = dnn_fail(err, DNN_EDATA, "%s: is incomplete: its end marker is missing",
                      path);
    if (rc == 0) rc = read_table(file, err);
    if (rc == 0) rc = find_arrays(file, err);
    if (rc < 0) {
        dnn_ckpt_file_close(file);
        return rc;
    }
    *out = file;
    return 0;
}

void dnn_ckpt_file_close(struct dnn_ckpt_file *file)
{
    if (file == NULL) return;
    dnn_bp_close(file->bp);
    dnn_ckpt_table_free(&file->table);
    dnn_free(file->var);
    dnn_free(file->state);
    dnn_free(file->path);
    dnn_free(file);
}

const char *dnn_ckpt_file_path(const struct dnn_ckpt_file *file)
{
    return file->path;
}

int64_t dnn_ckpt_file_step(const struct dnn_ckpt_file *file)
{
    return file->table.step;
}

int dnn_ckpt_file_count(const struct dnn_ckpt_file *file)
{
    return file->table.n;
}

const struct dnn_ckpt_array *dnn_ckpt_file_array(const struct dnn_ckpt_file *file,
                                                 int i)
{
    return &file->table.array[i];
}

uint64_t dnn_ckpt_file_sum(const struct dnn_ckpt_file *file, int i)
{
    return file->table.sum[i];
}

const char *dnn_ckpt_file_state(const struct dnn_ckpt_file *file)
{
    return file->state;
}

static int compare_sum(const struct dnn_ckpt_file *file, int i, uint64_t sum,
                       struct dnn_err *err)
{
    if (sum == file->table.sum[i]) return 0;
    return dnn_fail(err, DNN_EDATA,
                    "%s: %s: is damaged: its checksum is %016" PRIx64
                    ", expected %016" PRIx64,
                    file->path, file->table.array[i].name, sum, file->table.sum[i]);
}

int dnn_ckpt_file_read(struct dnn_ckpt_file *file, int i, void *to, struct dnn_err *err)
{
    size_t bytes;

    if (file->var[i] < 0) return 0;
    DNN_TRY(dnn_ckpt_bytes(&file->table.array[i], &bytes, err));
    const struct dnn_bp_var *var = dnn_bp_var(file->bp, file->var[i]);
    DNN_TRY(dnn_bp_request(file->bp, file->var[i], 0, var->shape.dim[0], to, err));
    DNN_TRY(dnn_bp_fetch(file->bp, err));
    return compare_sum(file, i, XXH3_64bits(to, bytes), err);
}

/* Compute the checksum of an array in blocks. */
static int sum_blocks(struct dnn_ckpt_file *file, int i, size_t row, int64_t rows,
                      XXH3_state_t *state, struct dnn_err *err)
{
    int64_t max = row >= BLOCK ? 1 : (int64_t)(BLOCK / row);
    int rc = 0;

    if (max > rows) max = rows;
    char *block = malloc((size_t)max * row);
    if (block == NULL)
        return dnn_fail(
            err, DNN_ENOMEM,
            "%s: %s: checking it needs %zu bytes of memory, which is not available",
            file->path, file->table.array[i].name, (size_t)max * row);
    for (int64_t at = 0; rc == 0 && at < rows; at += max) {
        int64_t n = rows - at < max ? rows - at : max;

        rc = dnn_bp_request(file->bp, file->var[i], at, n, block, err);
        if (rc == 0) rc = dnn_bp_fetch(file->bp, err);
        if (rc == 0) XXH3_64bits_update(state, block, (size_t)n * row);
    }
    free(block);
    return rc;
}

int dnn_ckpt_file_check(struct dnn_ckpt_file *file, int i, struct dnn_err *err)
{
    size_t bytes;

    if (file->var[i] < 0) return 0;
    DNN_TRY(dnn_ckpt_bytes(&file->table.array[i], &bytes, err));
    int64_t rows = dnn_bp_var(file->bp, file->var[i])->shape.dim[0];
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL)
        return dnn_fail(err, DNN_ENOMEM, "%s: out of memory for a checksum",
                        file->path);
    XXH3_64bits_reset(state);
    int rc = sum_blocks(file, i, bytes / (size_t)rows, rows, state, err);
    if (rc == 0) rc = compare_sum(file, i, XXH3_64bits_digest(state), err);
    XXH3_freeState(state);
    return rc;
}
