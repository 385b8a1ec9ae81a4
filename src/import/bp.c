/* bp.c - BP files of ADIOS2: prepared datasets, and other files, whose arrays have
 * samples along their first axis.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/bp_impl.h"

#include "base/mem.h"
#include "import/array_impl.h"

#include <string.h>

/* A file that is not a prepared dataset. */
struct file {
    struct dnn_bp *bp;
    pthread_mutex_t lock; /* of bp, which is not thread-safe */
};

static int fetch(const struct dnn_store *store, int array, int64_t row, size_t bytes,
                 void *to, struct dnn_err *err)
{
    struct file *own = store->own;
    int var = dnn_bp_find(own->bp, store->array[array].name);
    int64_t first = row < 0 ? 0 : row;
    int64_t rows = row < 0 ? store->array[array].shape.dim[0] : 1;

    (void)bytes;
    pthread_mutex_lock(&own->lock);
    int rc = dnn_bp_request(own->bp, var, first, rows, to, err);
    if (rc == 0) rc = dnn_bp_fetch(own->bp, err);
    pthread_mutex_unlock(&own->lock);
    return rc;
}

static void drop(struct dnn_store *store)
{
    struct file *own = store->own;

    dnn_bp_close(own->bp);
    pthread_mutex_destroy(&own->lock);
    dnn_free(own);
}

static const struct dnn_store_type type = {DNN_STORE_SOURCE("bp"), fetch, drop};

static int open_other(struct dnn_bp *bp, const char *path, const struct dnn_import *how,
                      bool target, struct dnn_source **out, struct dnn_err *err)
{
    struct file *own = dnn_alloc(sizeof *own);
    struct dnn_store *store = dnn_store_make(&type, path, how, own);

    own->bp = bp;
    pthread_mutex_init(&own->lock, NULL);
    for (int i = 0; i < dnn_bp_count(bp); i++) {
        const struct dnn_bp_var *var = dnn_bp_var(bp, i);
        struct dnn_store_array *array = dnn_store_add(store, var->name);

        array->type = var->type;
        array->shape = var->shape;
        if (var->steps > 1)
            array->error = dnn_format("has %lld ADIOS2 steps; store all samples in one "
                                      "step, along the first axis",
                                      (long long)var->steps);
    }
    if (store->narrays == 0) {
        dnn_store_close(&store->source);
        return dnn_fail(err, DNN_EDATA, "%s: contains no numeric arrays", path);
    }
    return dnn_store_open(store, target, out, err);
}

static int open_bp(const char *path, const struct dnn_import *how,
                   const struct dnn_import_side *side, struct dnn_source **out,
                   struct dnn_err *err)
{
    bool target = side == &how->target;
    struct dnn_bp *bp;

    DNN_TRY(dnn_bp_open(NULL, path, 1, &bp, err));
    char *format = dnn_bp_text(bp, "dataset/format");
    bool prepared = format != NULL && strcmp(format, "dnn-toolkit dataset") == 0;
    dnn_free(format);
    return prepared ? dnn_import_dataset(bp, path, how, target, out, err)
                    : open_other(bp, path, how, target, out, err);
}

const struct dnn_importer dnn_importer_bp = {
    .name = "bp",
    .suffixes = ".bp .bp5",
    .help = "BP5 files of ADIOS2: prepared datasets, or arrays whose rows are samples",
    .labels = true,
    .open = open_bp,
};
