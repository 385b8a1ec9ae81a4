/* io_make.c - datasets to be read: volumes with masks, images with labels.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/io_impl.h"

#include "base/file.h"
#include "base/mem.h"
#include "data/dataset.h"

#include <inttypes.h>
#include <string.h>

static const double chunk_bytes = 4 << 20; /* of the arrays, where samples are small */

/* A kind of dataset: columns, and how a sample is filled. */
struct kind {
    const char *path;
    int64_t count;
    int ncols;
    const struct dnn_column *col;
    const double *scale; /* of each column; 0: as stored */
    int64_t numbers;     /* of the first column          */
    void (*fill)(int64_t i, int64_t numbers, void *const *to);
    struct dnn_file *npy; /* gets the first column, too; or NULL */
};

/* ---- what is in a sample ---- */

/* Neither constant nor noise: slow waves and a little of everything else, so that files
 * that compress are as large and as slow as photographs. */
static uint32_t mix(uint32_t x)
{
    x ^= x << 13;
    x ^= x >> 17;
    return x ^ x << 5;
}

static void fill_volume(int64_t i, int64_t numbers, void *const *to)
{
    float *x = to[0];
    uint8_t *mask = to[1];
    uint32_t s = (uint32_t)i * 2654435761u + 12345u;

    for (int64_t k = 0; k < numbers; k++) {
        s = mix(s);
        x[k] = (float)(k & 1023) / 1024 + (float)(s >> 8) * 0x1p-26f;
        mask[k] = (uint8_t)((k >> 9 & 3) == 3);
    }
}

static void fill_image(int64_t i, int64_t numbers, void *const *to)
{
    uint8_t *x = to[0];
    uint32_t s = (uint32_t)i * 2654435761u + 12345u;

    for (int64_t k = 0; k < numbers; k++) {
        s = mix(s);
        x[k] = (uint8_t)((k >> 6) + i * 3 + (s >> 29));
    }
    *(int32_t *)to[1] = (int32_t)(i % 1000);
}

/* ---- writing ---- */

struct making {
    const struct kind *kind;
    struct dnn_dataset_writer *writer;
    size_t bytes[DNN_MAX_COLUMNS];
    char *data[DNN_MAX_COLUMNS]; /* owned: a chunk */
    char *names;                 /* owned          */
    const char **name;           /* owned          */
};

enum { NAME = 24 };

static int put_chunk(struct making *m, int64_t first, int64_t n, struct dnn_err *err)
{
    const struct kind *kind = m->kind;

    for (int64_t i = 0; i < n; i++) {
        void *to[DNN_MAX_COLUMNS];

        for (int k = 0; k < kind->ncols; k++)
            to[k] = m->data[k] + (size_t)i * m->bytes[k];
        kind->fill(first + i, kind->numbers, to);
        snprintf(m->names + i * NAME, NAME, "%" PRId64, first + i);
        m->name[i] = m->names + i * NAME;
    }
    if (kind->npy != NULL)
        DNN_TRY(dnn_file_add(kind->npy, m->data[0], (size_t)n * m->bytes[0], err));
    DNN_TRY(dnn_dataset_put(m->writer, 0, first, n, (const void *const *)m->data,
                            m->name, NULL, NULL, err));
    return 0;
}

static int put_all(struct making *m, int64_t chunk, struct dnn_err *err)
{
    int64_t count = m->kind->count;
    size_t held = 0;

    for (int64_t first = 0; first < count; first += chunk) {
        int64_t n = count - first < chunk ? count - first : chunk;

        DNN_TRY(put_chunk(m, first, n, err));
        for (int k = 0; k < m->kind->ncols; k++)
            held += (size_t)n * m->bytes[k];
        if (held < (size_t)64 << 20) continue;
        DNN_TRY(dnn_dataset_flush(m->writer, err));
        held = 0;
    }
    return 0;
}

static void describe(const struct kind *kind, struct dnn_dataset_info *info,
                     int64_t chunk)
{
    struct dnn_split *split = &info->split[0];

    info->nsplits = 1;
    info->provenance = dnn_strdup("{\"command\": \"dnn-bench io\"}");
    strcpy(split->name, "train");
    split->count = kind->count;
    split->ncols = kind->ncols;
    split->chunk = chunk;
    for (int k = 0; k < kind->ncols; k++) {
        split->col[k].column = kind->col[k];
        split->col[k].nscale = kind->scale[k] != 0;
        split->col[k].scale[0] = kind->scale[k];
    }
}

static int write_chunks(struct making *m, const struct dnn_dataset_info *info,
                        int64_t chunk, struct dnn_err *err)
{
    char hash[33];

    DNN_TRY(dnn_dataset_create(NULL, m->kind->path, info, NULL, &m->writer, err));
    int rc = put_all(m, chunk, err);
    if (rc == 0) return dnn_dataset_finish(m->writer, hash, err);
    dnn_dataset_abandon(m->writer);
    return rc;
}

static int make(const struct kind *kind, double *bytes, struct dnn_err *err)
{
    struct making m = {.kind = kind};
    size_t all = 0;

    for (int k = 0; k < kind->ncols; k++) {
        const struct dnn_tensor t = {NULL, kind->col[k].type, kind->col[k].shape};

        DNN_TRY(dnn_tensor_bytes(&t, &m.bytes[k], err));
        all += m.bytes[k];
    }
    if (bytes != NULL) *bytes = (double)all;
    int64_t chunk = (int64_t)(chunk_bytes / (double)all) + 1;
    struct dnn_dataset_info *info = dnn_alloc(sizeof *info);
    describe(kind, info, chunk);
    for (int k = 0; k < kind->ncols; k++)
        m.data[k] = dnn_alloc((size_t)chunk * m.bytes[k]);
    m.names = dnn_alloc((size_t)chunk * NAME);
    m.name = dnn_alloc((size_t)chunk * sizeof *m.name);
    int rc = write_chunks(&m, info, chunk, err);
    for (int k = 0; k < kind->ncols; k++)
        dnn_free(m.data[k]);
    dnn_free(m.names);
    dnn_free(m.name);
    dnn_free(info->provenance);
    dnn_free(info);
    return rc;
}

/* ---- the three ---- */

static const struct dnn_column label = {.name = "label",
                                        .role = DNN_ROLE_TARGET,
                                        .kind = DNN_KIND_LABEL,
                                        .type = DNN_I32,
                                        .classes = 1000};

int dnn_io_make_volumes(struct dnn_io_set *set, long extent, struct dnn_err *err)
{
    struct dnn_column col[] = {
        {.name = "input",
         .role = DNN_ROLE_INPUT,
         .kind = DNN_KIND_IMAGE,
         .type = DNN_F32,
         .shape = {4, {extent, extent, extent, 1}}},
        {.name = "mask",
         .role = DNN_ROLE_TARGET,
         .kind = DNN_KIND_MASK,
         .type = DNN_U8,
         .shape = {4, {extent, extent, extent, 1}},
         .classes = 2},
    };
    const struct kind kind = {
        .path = set->path,
        .count = set->count,
        .ncols = 2,
        .col = col,
        .scale = (const double[]){0, 0},
        .numbers = (int64_t)extent * extent * extent,
        .fill = fill_volume
    };

    set->shape = col[0].shape;
    DNN_TRY(make(&kind, &set->sample, err));
    set->bytes = set->sample * (double)set->count;
    return 0;
}

/* NumPy's header: a dictionary, padded so that numbers begin at a multiple of 64. */
int dnn_io_begin_npy(struct dnn_file *file, const char *type,
                     const struct dnn_shape *shape, struct dnn_err *err)
{
    char head[128], extents[64] = "";

    for (int i = 0, n = 0; i < shape->ndim && n < 48; i++)
        n += snprintf(extents + n, sizeof extents - (size_t)n, "%" PRId64 ", ",
                      shape->dim[i]);
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    int n = snprintf(head + 10, 117,
                     "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type,
                     extents);
    head[10 + n] = ' ';
    head[127] = '\n';
    return dnn_file_add(file, head, sizeof head, err);
}

int dnn_io_make_images(struct dnn_io_set *set, long pixels, const char *npy,
                       struct dnn_err *err)
{
    struct dnn_column col[] = {
        {.name = "input",
         .role = DNN_ROLE_INPUT,
         .kind = DNN_KIND_IMAGE,
         .type = DNN_U8,
         .shape = {3, {pixels, pixels, 3}}},
        label
    };
    struct kind kind = {
        .path = set->path,
        .count = set->count,
        .ncols = 2,
        .col = col,
        .scale = (const double[]){1.0 / 255, 0},
        .numbers = (int64_t)pixels * pixels * 3,
        .fill = fill_image
    };
    const struct dnn_shape all = {
        4, {set->count, pixels, pixels, 3}
    };
    int rc = 0;

    set->shape = col[0].shape;
    if (npy != NULL) rc = dnn_file_open(npy, &kind.npy, err);
    if (rc == 0 && npy != NULL) rc = dnn_io_begin_npy(kind.npy, "|u1", &all, err);
    if (rc == 0) rc = make(&kind, &set->sample, err);
    set->bytes = set->sample * (double)set->count;
    if (rc == 0 && npy != NULL) return dnn_file_commit(kind.npy, err);
    dnn_file_abandon(kind.npy);
    return rc;
}

int dnn_io_make_small(const char *path, int64_t count, struct dnn_err *err)
{
    const struct dnn_column col[] = {
        {.name = "input",
         .role = DNN_ROLE_INPUT,
         .kind = DNN_KIND_IMAGE,
         .type = DNN_U8,
         .shape = {3, {8, 8, 1}}},
        label
    };
    const struct kind kind = {
        .path = path,
        .count = count,
        .ncols = 2,
        .col = col,
        .scale = (const double[]){1.0 / 255, 0},
        .numbers = 64,
        .fill = fill_image
    };

    return make(&kind, NULL, err);
}
