/* io_make.c - make datasets for benchmarks: volumes with masks, images with labels.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "bench/io_impl.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "data/dataset.h"
#include "import/npy_write.h"

#include <inttypes.h>
#include <string.h>

static const double chunk_bytes = 4 << 20; /* of a chunk, if samples are small */

enum { NAME = 24, COLS = 2 };

struct making {
    const struct dnn_io_data *data;
    struct dnn_column col[COLS];
    size_t bytes[COLS];
    int64_t chunk;
    char *chunks[COLS]; /* owned: a chunk of each column */
    char *names;        /* owned                         */
    const char **name;  /* owned                         */
    struct dnn_dataset_writer *writer;
    struct dnn_file *npy[COLS]; /* NULL: not written */
};

/* ---- samples ---- */

/* Random numbers (xorshift).  Samples are ramps with a little noise, so that their PNG
 * files have about the size and speed of photographs. */
static uint32_t next_random(uint32_t x)
{
    x ^= x << 13;
    x ^= x >> 17;
    return x ^ x << 5;
}

static void fill_sample(const struct making *m, int64_t i, void *input, void *target)
{
    const struct dnn_io_data *d = m->data;
    int64_t n;
    uint32_t s = (uint32_t)i * 2654435761u + 12345u;

    if (dnn_shape_count(&m->col[0].shape, &n, NULL) < 0) return;
    for (int64_t k = 0; k < n; k++) {
        s = next_random(s);
        if (d->volumes) {
            ((float *)input)[k] = (float)(k & 1023) / 1024 + (float)(s >> 8) * 0x1p-26f;
            ((uint8_t *)target)[k] = (uint8_t)((k >> 8 & 3) % d->classes);
        } else {
            ((uint8_t *)input)[k] = (uint8_t)((k >> 6) + i * 3 + (s >> 29));
        }
    }
    if (!d->volumes) *(int32_t *)target = (int32_t)(i % d->classes);
}

/* ---- NumPy's files ---- */

static int open_npy(struct making *m, int k, const char *split, int64_t count,
                    struct dnn_err *err)
{
    const struct dnn_shape *one = &m->col[k].shape;
    struct dnn_shape shape = {.ndim = one->ndim + 1, .dim = {count}};
    char *path = dnn_format("%s/%s_%c.npy", m->data->npy, split, "xy"[k]);
    struct dnn_buf head = {0};
    int rc = dnn_file_open(path, &m->npy[k], err);

    memcpy(shape.dim + 1, one->dim, (size_t)one->ndim * sizeof one->dim[0]);
    dnn_npy_make(m->col[k].type, &shape, &head);
    if (rc == 0) rc = dnn_file_add(m->npy[k], head.text, head.len, err);
    dnn_buf_free(&head);
    dnn_free(path);
    return rc;
}

/* ---- the dataset ---- */

static int put_split(struct making *m, int split, int64_t base, int64_t count,
                     struct dnn_err *err)
{
    size_t pending = 0;

    for (int64_t first = 0; first < count; first += m->chunk) {
        int64_t n = count - first < m->chunk ? count - first : m->chunk;

        for (int64_t i = 0; i < n; i++) {
            fill_sample(m, base + first + i, m->chunks[0] + (size_t)i * m->bytes[0],
                        m->chunks[1] + (size_t)i * m->bytes[1]);
            snprintf(m->names + i * NAME, NAME, "%" PRId64, base + first + i);
            m->name[i] = m->names + i * NAME;
        }
        for (int k = 0; k < COLS; k++) {
            pending += (size_t)n * m->bytes[k];
            if (m->npy[k] != NULL)
                DNN_TRY(dnn_file_add(m->npy[k], m->chunks[k], (size_t)n * m->bytes[k],
                                     err));
        }
        DNN_TRY(dnn_dataset_put(m->writer, split, first, n,
                                (const void *const *)m->chunks, m->name, NULL, NULL,
                                err));
        if (pending < (size_t)64 << 20) continue;
        DNN_TRY(dnn_dataset_flush(m->writer, err));
        pending = 0;
    }
    return 0;
}

static int put_all(struct making *m, const struct dnn_dataset_info *info,
                   struct dnn_err *err)
{
    int64_t base = 0;
    int rc = 0;

    for (int s = 0; s < info->nsplits && rc == 0; s++) {
        const struct dnn_split *split = &info->split[s];

        for (int k = 0; k < COLS && rc == 0 && m->data->npy != NULL; k++)
            rc = open_npy(m, k, split->name, split->count, err);
        if (rc == 0) rc = put_split(m, s, base, split->count, err);
        base += split->count;
        for (int k = 0; k < COLS; k++) {
            if (rc == 0 && m->npy[k] != NULL)
                rc = dnn_file_commit(m->npy[k], err);
            else
                dnn_file_abandon(m->npy[k]);
            m->npy[k] = NULL;
        }
    }
    return rc;
}

static int write_dataset(struct making *m, struct dnn_err *err)
{
    const struct dnn_io_data *d = m->data;
    struct dnn_dataset_info *info = dnn_alloc(sizeof *info);
    char hash[33];

    info->nsplits = d->tests > 0 ? 2 : 1;
    info->provenance = dnn_strdup("{\"command\": \"dnn-bench\"}");
    for (int s = 0; s < info->nsplits; s++) {
        struct dnn_split *split = &info->split[s];

        strcpy(split->name, s == 0 ? "train" : "test");
        split->count = s == 0 ? d->count : d->tests;
        split->ncols = COLS;
        split->chunk = m->chunk;
        for (int k = 0; k < COLS; k++)
            split->col[k].column = m->col[k];
        if (!d->volumes) {
            split->col[0].nscale = 1;
            split->col[0].scale[0] = 1.0 / 255;
        }
    }
    int rc = dnn_file_remove_tree(d->path, err);
    if (rc == 0) rc = dnn_dataset_create(NULL, d->path, info, NULL, &m->writer, err);
    if (rc == 0 && (rc = put_all(m, info, err)) < 0)
        dnn_dataset_abandon(m->writer);
    else if (rc == 0)
        rc = dnn_dataset_finish(m->writer, hash, err);
    dnn_free(info->provenance);
    dnn_free(info);
    return rc;
}

int dnn_io_make(const struct dnn_io_data *data, double *bytes, struct dnn_err *err)
{
    int64_t n = data->extent;
    const struct dnn_column volumes[COLS] = {
        {.name = "input",
         .role = DNN_ROLE_INPUT,
         .kind = DNN_KIND_IMAGE,
         .type = DNN_F32,
         .shape = {4, {n, n, n, 1}}},
        {.name = "mask",
         .role = DNN_ROLE_TARGET,
         .kind = DNN_KIND_MASK,
         .type = DNN_U8,
         .shape = {4, {n, n, n, 1}},
         .classes = data->classes},
    };
    const struct dnn_column images[COLS] = {
        {.name = "input",
         .role = DNN_ROLE_INPUT,
         .kind = DNN_KIND_IMAGE,
         .type = DNN_U8,
         .shape = {3, {n, n, data->channels}}},
        {.name = "label",
         .role = DNN_ROLE_TARGET,
         .kind = DNN_KIND_LABEL,
         .type = DNN_I32,
         .classes = data->classes            },
    };
    struct making m = {.data = data};
    double all = 0;

    memcpy(m.col, data->volumes ? volumes : images, sizeof m.col);
    for (int k = 0; k < COLS; k++) {
        const struct dnn_tensor t = {NULL, m.col[k].type, m.col[k].shape};

        DNN_TRY(dnn_tensor_bytes(&t, &m.bytes[k], err));
        all += (double)m.bytes[k];
    }
    m.chunk = (int64_t)(chunk_bytes / all) + 1;
    for (int k = 0; k < COLS; k++)
        m.chunks[k] = dnn_alloc((size_t)m.chunk * m.bytes[k]);
    m.names = dnn_alloc((size_t)m.chunk * NAME);
    m.name = dnn_alloc((size_t)m.chunk * sizeof *m.name);
    int rc = write_dataset(&m, err);
    for (int k = 0; k < COLS; k++)
        dnn_free(m.chunks[k]);
    dnn_free(m.names);
    dnn_free(m.name);
    *bytes = all;
    return rc;
}
