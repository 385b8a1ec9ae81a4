/* write.c - write BP files: one step, arrays in blocks of rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/mem.h"
#include "bp/bp_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

static int agree(struct dnn_bp *bp, int rc, struct dnn_err *err)
{
    return bp->size > 1 ? dnn_comm_agree(bp->comm, rc, err) : rc;
}

static void watch(struct dnn_bp *bp, const char *doing)
{
    if (bp->comm == NULL) return;
    char *what = dnn_format("%s: %s", bp->path, doing);
    dnn_comm_watch(bp->comm, what, 0);
    dnn_free(what);
}

static void unwatch(struct dnn_bp *bp)
{
    if (bp->comm != NULL) dnn_comm_unwatch(bp->comm);
}

static int check_new(const char *path, struct dnn_err *err)
{
    struct stat st;

    if (lstat(path, &st) == 0)
        return dnn_fail(err, DNN_EIO, "%s: exists already", path);
    return errno == ENOENT ? 0
                           : dnn_fail(err, DNN_EIO, "%s: %s", path, strerror(errno));
}

/* With fewer aggregators than ranks, ranks send their data to their aggregator. */
static bool set_params(struct dnn_bp *bp, const struct dnn_bp_how *how)
{
    char n[16];

    snprintf(n, sizeof n, "%d", how->subfiles);
    return adios2_set_parameter(bp->io, "StatsLevel", "1") == 0 &&
           adios2_set_parameter(bp->io, "AsyncWrite", "Off") == 0 &&
           (how->subfiles == 0 ||
            (adios2_set_parameter(bp->io, "NumAggregators", n) == 0 &&
             adios2_set_parameter(bp->io, "NumSubFiles", n) == 0));
}

/* ADIOS2 crashes if the allocation of its first buffer fails. */
static int check_memory(const struct dnn_bp *bp, struct dnn_err *err)
{
    enum { FIRST = 136 << 20 };
    void *mem = malloc(FIRST);

    if (mem == NULL)
        return dnn_fail(
            err, DNN_ENOMEM,
            "%s: not enough memory to write it: %d MiB of address space needed",
            bp->path, FIRST >> 20);
    free(mem);
    return 0;
}

static int open_engine(struct dnn_bp *bp, const struct dnn_bp_how *how,
                       struct dnn_err *err)
{
    struct bp_capture capture;
    adios2_step_status status = adios2_step_status_other_error;

    DNN_TRY(check_memory(bp, err));
    DNN_TRY(dnn_bp_start(bp, err));
    dnn_bp_capture_start(&capture);
    bool good = set_params(bp, how);
    if (good && how->compress != NULL) {
        bp->op = adios2_define_operator(bp->adios, "compress", how->compress);
        bp->op_name = dnn_strdup(how->compress);
        if (how->params != NULL) bp->op_params = dnn_strdup(how->params);
        good = bp->op != NULL;
    }
    if (good) bp->engine = adios2_open(bp->io, bp->path, adios2_mode_write);
    good = bp->engine != NULL &&
           adios2_begin_step(bp->engine, adios2_step_mode_append, -1, &status) == 0 &&
           status == adios2_step_status_ok;
    return dnn_bp_capture_end(&capture, good, bp->path, "creating the file", err);
}

int dnn_bp_create(struct dnn_comm *comm, const char *path, const struct dnn_bp_how *how,
                  struct dnn_bp **out, struct dnn_err *err)
{
    static const struct dnn_bp_how defaults;
    struct dnn_err own = {0};
    int rc = 0;

    if (err == NULL) err = &own;
    if (how == NULL) how = &defaults;
    struct dnn_bp *bp = dnn_bp_make(comm, path);
    bp->writing = true;
    if (how->compress != NULL) rc = dnn_bp_operator_check(how->compress, err);
    if (rc == 0 && how->subfiles < 0)
        rc = dnn_fail(err, DNN_ECONFIG, "%s: subfiles: must be 0 or more, not %d", path,
                      how->subfiles);
    if (rc == 0 && bp->rank == 0) rc = check_new(path, err);
    rc = agree(bp, rc, err);
    if (rc == 0) {
        watch(bp, "creating the file");
        rc = open_engine(bp, how, err);
        unwatch(bp);
        rc = agree(bp, rc, err);
    }
    if (rc < 0) {
        dnn_bp_close(bp);
        return rc;
    }
    *out = bp;
    return 0;
}

static int check_shape(struct dnn_bp *bp, const char *name, enum dnn_dtype type,
                       const struct dnn_shape *shape, int64_t *row_bytes,
                       struct dnn_err *err)
{
    int64_t all, bytes;
    char text[DNN_SHAPE_TEXT];

    if (shape->ndim < 1 || dnn_shape_count(shape, &all, err) < 0 || all == 0 ||
        __builtin_mul_overflow(all, (int64_t)dnn_dtype_size(type), &bytes))
        return dnn_fail(err, DNN_EDATA, "%s: %s: arrays of type %s are not supported",
                        bp->path, name, dnn_shape_text(text, sizeof text, shape));
    if (adios2_inquire_variable(bp->io, name) != NULL)
        return dnn_fail(err, DNN_EDATA, "%s: %s: defined twice", bp->path, name);
    *row_bytes = bytes / shape->dim[0];
    return 0;
}

static int check_params(struct dnn_bp *bp, const char *name, struct dnn_err *err)
{
    for (const char *at = bp->op_params; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        size_t key = strcspn(at, "=,");

        if (key == 0 || at[key] != '=')
            return dnn_fail(
                err, DNN_ECONFIG,
                "%s: %s: parameters of %s must be KEY=VALUE,KEY=VALUE, not \"%s\"",
                bp->path, name, bp->op_name, bp->op_params);
    }
    return 0;
}

/* "clevel=5,compressor=zstd" */
static bool add_params(struct dnn_bp *bp, adios2_variable *handle, size_t number)
{
    bool good = true;
    char *list = dnn_strdup(bp->op_params), *rest = list, *one;

    while (good && (one = strsep(&rest, ",")) != NULL) {
        char *value = strchr(one, '=');

        *value++ = '\0';
        good = adios2_set_operation_parameter(handle, number, one, value) == 0;
    }
    dnn_free(list);
    return good;
}

static adios2_variable *define(struct dnn_bp *bp, const char *name, enum dnn_dtype type,
                               const struct dnn_shape *shape, bool plain)
{
    size_t dim[DNN_MAX_DIMS], zero[DNN_MAX_DIMS] = {0}, number = 0;

    for (int i = 0; i < shape->ndim; i++)
        dim[i] = (size_t)shape->dim[i];
    adios2_variable *handle = adios2_define_variable(
        bp->io, name, dnn_bp_adios_type(type), (size_t)shape->ndim, dim, zero, dim,
        adios2_constant_dims_false);
    if (handle == NULL || plain || bp->op == NULL) return handle;
    if (adios2_add_operation(&number, handle, bp->op, "", "") != 0) return NULL;
    return bp->op_params == NULL || add_params(bp, handle, number) ? handle : NULL;
}

/* Add an attribute of a variable. */
static int add_attribute(struct dnn_bp *bp, const char *name, const char *what,
                         const char *text, struct dnn_err *err)
{
    char *attr = dnn_format("%s/%s", name, what);
    int rc = dnn_bp_attr_text(bp, attr, text, err);

    dnn_free(attr);
    return rc;
}

int dnn_bp_define(struct dnn_bp *bp, const char *name, enum dnn_dtype type,
                  const struct dnn_shape *shape, bool plain, int *out,
                  struct dnn_err *err)
{
    struct bp_capture capture;
    int64_t row_bytes = 0;
    enum dnn_dtype read_as;

    DNN_TRY(check_shape(bp, name, type, shape, &row_bytes, err));
    DNN_TRY(check_params(bp, name, err));
    dnn_bp_capture_start(&capture);
    adios2_variable *handle = define(bp, name, type, shape, plain);
    DNN_TRY(dnn_bp_capture_end(&capture, handle != NULL, bp->path, name, err));
    if (!dnn_bp_dtype(dnn_bp_adios_type(type), &read_as) || read_as != type)
        DNN_TRY(add_attribute(bp, name, "type", dnn_dtype_name(type), err));
    if (bp->op != NULL && !plain)
        DNN_TRY(add_attribute(bp, name, "compression", bp->op_name, err));
    bp->var = dnn_grow(bp->var, &bp->cap, (size_t)bp->nvars + 1, sizeof *bp->var);
    struct bp_var *var = &bp->var[bp->nvars];
    var->pub = (struct dnn_bp_var){.name = dnn_strdup(name),
                                   .type = type,
                                   .shape = *shape,
                                   .compressed = bp->op != NULL && !plain};
    var->handle = handle;
    var->row_bytes = row_bytes;
    *out = bp->nvars++;
    return 0;
}

/* Record the offset at which ADIOS2 writes a block: after the previous one, aligned to
 * the element size.  This is verified when the file is finished. */
static void record_block(struct dnn_bp *bp, struct bp_var *var, int64_t first,
                         int64_t rows, const void *data)
{
    uint64_t unit = dnn_dtype_size(var->pub.type);
    uint64_t bytes = (uint64_t)(rows * var->row_bytes);
    uint64_t sum = XXH3_64bits(data, bytes);

    bp->offset = (bp->offset + unit - 1) / unit * unit;
    var->put = dnn_grow(var->put, &var->cap, var->nputs + 1, sizeof *var->put);
    var->put[var->nputs++] = (struct bp_put){
        .b = {.first = first,
              .rows = rows,
              .writer = (uint64_t)bp->rank,
              .flush = bp->flush,
              .offset = bp->offset},
        .sum = sum
    };
    bp->offset += bytes;
}

static int end_compressed(struct dnn_bp *bp, const struct bp_var *var,
                          struct bp_capture *capture, bool good, int64_t first,
                          int64_t rows, struct dnn_err *err)
{
    int rc = dnn_bp_capture_end(capture, good, bp->path, var->pub.name, err);

    if (rc == 0 || strstr(err->text, "larger than destination") == NULL) return rc;
    return dnn_fail(err, DNN_EDATA,
                    "%s: %s: rows %lld to %lld are incompressible, which ADIOS2's %s "
                    "cannot store; turn compression off",
                    bp->path, var->pub.name, (long long)first,
                    (long long)(first + rows), bp->op_name);
}

int dnn_bp_put(struct dnn_bp *bp, int number, int64_t first, int64_t rows,
               const void *data, struct dnn_err *err)
{
    struct bp_var *var = &bp->var[number];
    const struct dnn_shape *shape = &var->pub.shape;
    size_t start[DNN_MAX_DIMS] = {0}, count[DNN_MAX_DIMS];
    struct bp_capture capture;
    struct dnn_err own = {0};

    if (err == NULL) err = &own;
    if (rows == 0) return 0;
    if (first < 0 || rows < 0 || first > shape->dim[0] - rows)
        return dnn_fail(err, DNN_EDATA,
                        "%s: %s: rows %lld to %lld requested, but there are only %lld",
                        bp->path, var->pub.name, (long long)first,
                        (long long)(first + rows), (long long)shape->dim[0]);
    for (int i = 0; i < shape->ndim; i++)
        count[i] = (size_t)shape->dim[i];
    start[0] = (size_t)first;
    count[0] = (size_t)rows;
    /* Only compressors print messages here, and capturing takes longer than writing a
     * small row. */
    if (var->pub.compressed) dnn_bp_capture_start(&capture);
    bool good =
        adios2_set_selection(var->handle, (size_t)shape->ndim, start, count) == 0 &&
        adios2_put(bp->engine, var->handle, data, adios2_mode_sync) == 0;
    if (var->pub.compressed)
        DNN_TRY(end_compressed(bp, var, &capture, good, first, rows, err));
    bp->failed |= !good;
    if (!good)
        return dnn_fail(err, DNN_EIO, "%s: %s: rows %lld to %lld: rejected by ADIOS2",
                        bp->path, var->pub.name, (long long)first,
                        (long long)(first + rows));
    if (bp->op == NULL) record_block(bp, var, first, rows, data);
    return 0;
}

int dnn_bp_flush(struct dnn_bp *bp, struct dnn_err *err)
{
    struct bp_capture capture;
    struct dnn_err own = {0};

    if (err == NULL) err = &own;
    watch(bp, "writing");
    dnn_bp_capture_start(&capture);
    bool good = adios2_perform_data_write(bp->engine) == 0;
    int rc = dnn_bp_capture_end(&capture, good, bp->path, "writing", err);
    unwatch(bp);
    bp->failed |= rc < 0;
    bp->flush++;
    bp->offset = 0;
    return agree(bp, rc, err);
}
