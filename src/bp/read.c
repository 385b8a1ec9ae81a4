/* read.c - read BP files.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "bp/bp_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 64 << 20 };

/* The metadata of a file; rank 0 reads it and broadcasts it. */
struct metadata {
    size_t md_bytes, map_len, index_len;
    char *map, *index; /* owned */
};

static int read_metadata(const char *path, struct metadata *out, struct dnn_err *err)
{
    struct bp_map map;

    DNN_TRY(dnn_bp_index_read(path, &out->index, &out->index_len, err));
    int rc = dnn_bp_check(path, &map, &out->md_bytes, err);
    if (rc < 0) {
        dnn_free(out->index);
        out->index = NULL;
        return rc;
    }
    out->map = map.text;
    out->map_len = map.len;
    return out->index != NULL ? 0 : dnn_bp_probe(path, out->md_bytes, err);
}

static int broadcast(struct dnn_bp *bp, char **text, size_t len, struct dnn_err *err)
{
    if (bp->rank != 0) *text = dnn_alloc(len + 1);
    for (size_t at = 0; at < len; at += PIECE) {
        size_t n = len - at < PIECE ? len - at : PIECE;

        DNN_TRY(dnn_comm_bcast(bp->comm, "tables of a BP file", *text + at, n, 0, err));
    }
    return 0;
}

static int share_metadata(struct dnn_bp *bp, struct metadata *metadata,
                          struct dnn_err *err)
{
    uint64_t size[4] = {0};
    int rc = bp->rank == 0 ? read_metadata(bp->path, metadata, err) : 0;

    if (bp->size == 1) return rc;
    DNN_TRY(dnn_comm_agree(bp->comm, rc, err));
    size[0] = metadata->md_bytes;
    size[1] = metadata->map_len;
    size[2] = metadata->index_len;
    size[3] = metadata->index != NULL;
    DNN_TRY(dnn_comm_bcast(bp->comm, "sizes of a BP file", size, sizeof size, 0, err));
    metadata->md_bytes = size[0];
    metadata->map_len = size[1];
    metadata->index_len = size[2];
    DNN_TRY(broadcast(bp, &metadata->map, metadata->map_len, err));
    return size[3] != 0 ? broadcast(bp, &metadata->index, metadata->index_len, err) : 0;
}

/* Add a variable to the list, unless it is not supported (strings, complex numbers,
 * scalars, local arrays). */
static void add_variable(struct dnn_bp *bp, const char *name)
{
    adios2_variable *handle = adios2_inquire_variable(bp->io, name);
    adios2_type type;
    adios2_shapeid kind;
    size_t ndim = 0, dim[32], steps = 0;
    struct dnn_bp_var pub = {0};
    int64_t all;

    if (handle == NULL || adios2_variable_type(&type, handle) != 0 ||
        !dnn_bp_dtype(type, &pub.type) || adios2_variable_shapeid(&kind, handle) != 0 ||
        kind != adios2_shapeid_global_array ||
        adios2_variable_ndims(&ndim, handle) != 0 || ndim < 1 || ndim > DNN_MAX_DIMS ||
        adios2_variable_shape(dim, handle) != 0 ||
        adios2_variable_steps(&steps, handle) != 0)
        return;
    pub.shape.ndim = (int)ndim;
    for (size_t i = 0; i < ndim; i++) {
        if (dim[i] > INT64_MAX) return;
        pub.shape.dim[i] = (int64_t)dim[i];
    }
    int64_t row = (int64_t)dnn_dtype_size(pub.type);
    for (size_t i = 1; i < ndim; i++)
        if (__builtin_mul_overflow(row, pub.shape.dim[i], &row)) return;
    if (__builtin_mul_overflow(row, pub.shape.dim[0], &all)) return;
    pub.steps = (int64_t)steps;
    pub.name = dnn_strdup(name);
    bp->var = dnn_grow(bp->var, &bp->cap, (size_t)bp->nvars + 1, sizeof *bp->var);
    bp->var[bp->nvars++] =
        (struct bp_var){.pub = pub, .handle = handle, .row_bytes = row};
}

/* Properties of a variable that are stored as attributes. */
static void read_attributes(struct dnn_bp *bp, struct dnn_bp_var *var)
{
    char *name = dnn_format("%s/type", var->name);
    char *text = dnn_bp_text(bp, name);
    enum dnn_dtype type;

    if (text != NULL && dnn_dtype_find(text, &type, NULL) == 0 &&
        dnn_bp_adios_type(type) == dnn_bp_adios_type(var->type))
        var->type = type;
    dnn_free(text);
    dnn_free(name);
    name = dnn_format("%s/compression", var->name);
    text = dnn_bp_text(bp, name);
    var->compressed = text != NULL;
    dnn_free(text);
    dnn_free(name);
}

int dnn_bp_open_engine(struct dnn_bp *bp, struct dnn_err *err)
{
    struct bp_capture capture;
    char threads[16];
    size_t n = 0;

    DNN_TRY(dnn_bp_start(bp, err));
    snprintf(threads, sizeof threads, "%d", bp->threads);
    dnn_bp_capture_start(&capture);
    if (adios2_set_parameter(bp->io, "Threads", threads) == 0)
        bp->engine = adios2_open(bp->io, bp->path, adios2_mode_readRandomAccess);
    char **names = bp->engine == NULL ? NULL : adios2_available_variables(bp->io, &n);
    for (size_t i = 0; names != NULL && i < n; i++) {
        add_variable(bp, names[i]);
        free(names[i]);
    }
    free(names);
    DNN_TRY(dnn_bp_capture_end(&capture, bp->engine != NULL, bp->path,
                               "opening the file", err));
    for (int i = 0; i < bp->nvars; i++)
        read_attributes(bp, &bp->var[i].pub);
    return 0;
}

int dnn_bp_open(struct dnn_comm *comm, const char *path, int threads,
                struct dnn_bp **out, struct dnn_err *err)
{
    struct dnn_err own = {0};
    struct metadata metadata = {0};

    if (err == NULL) err = &own;
    struct dnn_bp *bp = dnn_bp_make(comm, path);
    bp->threads = threads > 0 ? threads : 1;
    int rc = share_metadata(bp, &metadata, err);
    if (rc == 0) {
        bp->md_bytes = metadata.md_bytes;
        if (comm != NULL) dnn_comm_watch(comm, path, 0);
        rc = dnn_bp_open_engine(bp, err);
        if (comm != NULL) dnn_comm_unwatch(comm);
        if (bp->size > 1) rc = dnn_comm_agree(comm, rc, err);
    }
    bp->complete = rc == 0 && metadata.index != NULL;
    bp->index = metadata.index;
    if (bp->complete)
        dnn_bp_direct_open(bp, metadata.map, metadata.map_len, metadata.index_len);
    dnn_free(metadata.map);
    if (rc < 0) {
        dnn_bp_close(bp);
        return rc;
    }
    *out = bp;
    return 0;
}

int dnn_bp_count(const struct dnn_bp *bp)
{
    return bp->nvars;
}

const struct dnn_bp_var *dnn_bp_var(const struct dnn_bp *bp, int var)
{
    return &bp->var[var].pub;
}

int dnn_bp_find(const struct dnn_bp *bp, const char *name)
{
    for (int i = 0; i < bp->nvars; i++)
        if (strcmp(bp->var[i].pub.name, name) == 0) return i;
    return -1;
}

bool dnn_bp_complete(const struct dnn_bp *bp)
{
    return bp->complete;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

int dnn_bp_blocks(struct dnn_bp *bp, int number, int64_t **out, int64_t *n,
                  struct dnn_err *err)
{
    struct bp_var *var = &bp->var[number];
    struct bp_capture capture;
    int64_t *first;
    size_t all = var->nblocks, k = 0;

    if (var->block != NULL) {
        first = dnn_alloc((all + 1) * sizeof *first);
        for (; k < all; k++)
            first[k] = var->block[k].first;
    } else {
        dnn_bp_capture_start(&capture);
        adios2_varinfo *info = adios2_inquire_blockinfo(bp->engine, var->handle, 0);
        DNN_TRY(
            dnn_bp_capture_end(&capture, info != NULL, bp->path, var->pub.name, err));
        all = info->nblocks;
        first = dnn_alloc((all + 1) * sizeof *first);
        for (size_t i = 0; i < all; i++)
            first[i] = (int64_t)info->BlocksInfo[i].Start[0];
        adios2_free_blockinfo(info);
        qsort(first, all, sizeof *first, by_number);
        for (size_t i = 0; i < all; i++) /* blocks may have the same first row */
            if (i == 0 || first[i] != first[k - 1]) first[k++] = first[i];
    }
    first[k] = var->pub.shape.dim[0];
    *out = first;
    *n = (int64_t)k;
    return 0;
}

/* The message has the rows if only axis 0 is wrong. */
static int check_box(const struct dnn_bp *bp, const struct dnn_bp_var *var,
                     const int64_t *start, const int64_t *extent, struct dnn_err *err)
{
    for (int d = 0; d < var->shape.ndim; d++) {
        int64_t all = var->shape.dim[d];

        if (start[d] >= 0 && extent[d] >= 0 && extent[d] <= all &&
            start[d] <= all - extent[d])
            continue;
        return dnn_fail(err, DNN_EDATA,
                        "%s: %s: %s %lld to %lld requested, but there are only %lld",
                        bp->path, var->name, d == 0 ? "rows" : "elements of a row",
                        (long long)start[d], (long long)(start[d] + extent[d]),
                        (long long)all);
    }
    return 0;
}

int dnn_bp_request_box(struct dnn_bp *bp, int number, const int64_t *start,
                       const int64_t *extent, void *to, struct dnn_err *err)
{
    struct bp_var *var = &bp->var[number];
    int ndim = var->pub.shape.ndim;
    size_t first[DNN_MAX_DIMS], count[DNN_MAX_DIMS];
    struct bp_capture capture;

    DNN_TRY(check_box(bp, &var->pub, start, extent, err));
    for (int d = 0; d < ndim; d++) {
        if (extent[d] == 0) return 0;
        first[d] = (size_t)start[d];
        count[d] = (size_t)extent[d];
    }
    if (dnn_bp_direct_request(bp, var, start, extent, to)) return 0;
    dnn_bp_capture_start(&capture);
    bool good = adios2_set_selection(var->handle, (size_t)ndim, first, count) == 0 &&
                adios2_get(bp->engine, var->handle, to, adios2_mode_deferred) == 0;
    DNN_TRY(dnn_bp_capture_end(&capture, good, bp->path, var->pub.name, err));
    bp->deferred = true;
    return 0;
}

int dnn_bp_request(struct dnn_bp *bp, int number, int64_t first, int64_t rows, void *to,
                   struct dnn_err *err)
{
    int64_t start[DNN_MAX_DIMS] = {first}, extent[DNN_MAX_DIMS];

    memcpy(extent, bp->var[number].pub.shape.dim, sizeof extent);
    extent[0] = rows;
    return dnn_bp_request_box(bp, number, start, extent, to, err);
}

int dnn_bp_fetch(struct dnn_bp *bp, struct dnn_err *err)
{
    struct bp_capture capture;

    int rc = dnn_bp_direct_fetch(bp, err);
    if (!bp->deferred) return rc;
    bp->deferred = false;
    dnn_bp_capture_start(&capture);
    bool good = adios2_perform_gets(bp->engine) == 0;
    int bad =
        dnn_bp_capture_end(&capture, good, bp->path, "reading", rc < 0 ? NULL : err);
    return rc < 0 ? rc : bad;
}
