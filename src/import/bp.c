/* bp.c - BP files of ADIOS2: prepared datasets, and other files, whose arrays have
 * samples along their first axis.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "import/array_impl.h"

#include "base/mem.h"
#include "data/dataset.h"

#include <string.h>

/* A file that is not a prepared dataset. */
struct file {
    struct dnn_bp *bp;
    pthread_mutex_t lock; /* of bp, which is not thread-safe */
};

static int fetch_box(const struct dnn_store *store, int array, const int64_t *start,
                     const int64_t *extent, void *to, struct dnn_err *err)
{
    struct file *own = store->own;
    int var = dnn_bp_find(own->bp, store->array[array].name);

    pthread_mutex_lock(&own->lock);
    int rc = dnn_bp_request_box(own->bp, var, start, extent, to, err);
    if (rc == 0) rc = dnn_bp_fetch(own->bp, err);
    pthread_mutex_unlock(&own->lock);
    return rc;
}

static int fetch(const struct dnn_store *store, int array, int64_t row, size_t bytes,
                 void *to, struct dnn_err *err)
{
    int64_t start[DNN_MAX_DIMS] = {0};
    struct dnn_shape shape = store->array[array].shape;

    (void)bytes;
    if (row >= 0) {
        start[0] = row;
        shape.dim[0] = 1;
    }
    return fetch_box(store, array, start, shape.dim, to, err);
}

static void drop(struct dnn_store *store)
{
    struct file *own = store->own;

    dnn_bp_close(own->bp);
    pthread_mutex_destroy(&own->lock);
    dnn_free(own);
}

static const struct dnn_store_type type = {DNN_STORE_SOURCE("bp"), fetch, drop,
                                           fetch_box};

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

/* A prepared dataset, to be prepared again. */
static int open_dataset(struct dnn_bp *bp, const char *path,
                        const struct dnn_import *how, bool target,
                        struct dnn_source **out, struct dnn_err *err)
{
    struct dnn_dataset *dataset;
    struct dnn_source *source;
    int rc = 0;

    DNN_TRY(dnn_dataset_from(NULL, bp, path, &dataset, err));
    DNN_TRY(dnn_dataset_source(dataset, how->split, target, &source, err));
    for (int k = 0; rc == 0 && k < source->ncols; k++)
        rc =
            dnn_import_fits(how, path, source->col[k].type, &source->col[k].shape, err);
    if (rc < 0) {
        dnn_source_close(source);
        return rc;
    }
    *out = source;
    return 0;
}

static int open_bp(const char *path, const struct dnn_import *how,
                   const struct dnn_import_side *side, struct dnn_source **out,
                   struct dnn_err *err)
{
    bool target = side == &how->target;
    struct dnn_bp *bp;

    DNN_TRY(dnn_bp_open(NULL, path, 1, &bp, err));
    return dnn_dataset_is(bp) ? open_dataset(bp, path, how, target, out, err)
                              : open_other(bp, path, how, target, out, err);
}

const struct dnn_importer dnn_importer_bp = {
    .name = "bp",
    .suffixes = ".bp .bp5",
    .help = "BP5 files of ADIOS2: prepared datasets, or arrays whose rows are samples",
    .labels = true,
    .open = open_bp,
};
