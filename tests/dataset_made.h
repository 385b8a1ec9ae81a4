/* dataset_made.h - a small dataset with every kind of column, the same on any number of
 * ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_DATASET_MADE_H
#define DNN_TESTS_DATASET_MADE_H

#include "base/mem.h"
#include "data/dataset.h"

#include <stdio.h>
#include <string.h>

enum { MADE_SPLITS = 2, MADE_COLS = 5, MADE_TRAIN = 23, MADE_TEST = 5, MADE_CHUNK = 4 };

static const char *const made_classes[] = {"cat", "dog \"big\"", "caf\xc3\xa9"};

/* Byte i of a sample's column; compressible, and different for every sample. */
static inline unsigned char made_byte(int split, int col, int64_t sample, size_t i)
{
    return (unsigned char)(split * 101 + col * 37 + sample * 5 + (int64_t)(i / 100));
}

static inline void made_name(int split, int64_t sample, char out[64])
{
    snprintf(out, 64, "%s/%lld.png", split ? "b" : "a", (long long)sample);
    if (sample % 7 == 3) out[0] = '\0';
}

static inline struct dnn_stored made_column(const char *name, enum dnn_kind kind,
                                            enum dnn_dtype type, int ndim,
                                            const int64_t *dim)
{
    struct dnn_stored s = {
        .column = {.kind = kind, .type = type}
    };

    snprintf(s.column.name, sizeof s.column.name, "%s", name);
    s.column.shape.ndim = ndim;
    for (int i = 0; i < ndim; i++)
        s.column.shape.dim[i] = dim[i];
    return s;
}

static inline struct dnn_stats *made_stats(int channels, int classes)
{
    struct dnn_stats *s = dnn_alloc(sizeof *s);

    s->count = 1000;
    s->bad = 3;
    s->nchannels = channels;
    s->nclasses = classes;
    for (int c = 0; c < channels; c++) {
        s->mean[c] = 0.1 * (c + 1);
        s->m2[c] = 1000.0 / (c + 3);
        s->min[c] = -1.5 - c;
        s->max[c] = 1e-300 * (c + 1);
    }
    if (channels > 0) {
        s->low = -2;
        s->high = 2;
        for (int i = 0; i < DNN_STATS_BINS; i++)
            s->bin[i] = i % 17;
    }
    for (int i = 0; i < classes; i++)
        s->class_count[i] = 10 + i;
    return s;
}

/* Train: images, masks, labels, values and an extra; test: the first three. */
static inline void made_info(struct dnn_dataset_info *info)
{
    static const int64_t image[] = {16, 12, 3}, mask[] = {16, 12, 1}, values[] = {7},
                         affine[] = {4, 4};

    memset(info, 0, sizeof *info);
    info->nsplits = MADE_SPLITS;
    info->provenance = dnn_strdup("{\"command\": \"dnn-data prepare x.json\"}");
    for (int i = 0; i < MADE_SPLITS; i++) {
        struct dnn_split *s = &info->split[i];

        snprintf(s->name, sizeof s->name, "%s", i ? "test" : "train");
        s->count = i ? MADE_TEST : MADE_TRAIN;
        s->chunk = i ? 1 : MADE_CHUNK;
        s->folds = i ? 0 : 3;
        s->ncols = i ? 3 : MADE_COLS;
        s->col[0] = made_column("input", DNN_KIND_IMAGE, DNN_U8, 3, image);
        s->col[0].nscale = 3;
        for (int c = 0; c < 3; c++) {
            s->col[0].scale[c] = 1.0 / (255 + c);
            s->col[0].offset[c] = 0.1 * c;
        }
        s->col[0].spacing[0] = s->col[0].spacing[1] = 0.7;
        s->col[0].stats = made_stats(3, 0);
        s->col[1] = made_column("mask", DNN_KIND_MASK, i ? DNN_BOOL : DNN_I16, 3, mask);
        s->col[1].column.role = DNN_ROLE_TARGET;
        s->col[1].column.classes = 4;
        s->col[2] = made_column("target", DNN_KIND_LABEL, DNN_I32, 0, NULL);
        s->col[2].column.role = DNN_ROLE_TARGET;
        s->col[2].column.classes = 3;
        s->col[2].column.class_name = made_classes;
        s->col[2].stats = made_stats(0, 3);
        s->col[3] = made_column("half", DNN_KIND_VALUES, DNN_F16, 1, values);
        s->col[4] = made_column("affine", DNN_KIND_VALUES, DNN_F64, 2, affine);
        s->col[4].column.role = DNN_ROLE_EXTRA;
    }
}

static inline void made_free(struct dnn_dataset_info *info)
{
    for (int i = 0; i < MADE_SPLITS; i++)
        for (int k = 0; k < MADE_COLS; k++)
            dnn_free(info->split[i].col[k].stats);
    dnn_free(info->provenance);
}

static inline size_t made_bytes(const struct dnn_stored *s)
{
    struct dnn_tensor t = {.dtype = s->column.type, .shape = s->column.shape};
    size_t bytes = 0;

    dnn_tensor_bytes(&t, &bytes, NULL);
    return bytes;
}

static inline void made_sample(const struct dnn_split *s, int split, int k,
                               int64_t sample, unsigned char *to)
{
    size_t bytes = made_bytes(&s->col[k]);

    for (size_t i = 0; i < bytes; i++)
        to[i] = made_byte(split, k, sample, i);
    if (k == 2) {
        int32_t label = (int32_t)(sample % 3);
        memcpy(to, &label, sizeof label);
    }
}

/* One chunk of a split. */
static inline int made_put(struct dnn_dataset_writer *w,
                           const struct dnn_dataset_info *info, int split,
                           int64_t first, struct dnn_err *err)
{
    const struct dnn_split *s = &info->split[split];
    int64_t n = s->count - first < s->chunk ? s->count - first : s->chunk;
    void *data[DNN_MAX_COLUMNS] = {NULL};
    char name[MADE_CHUNK][64], group[MADE_CHUNK][64];
    const char *names[MADE_CHUNK], *groups[MADE_CHUNK];
    int32_t fold[MADE_CHUNK];

    for (int k = 0; k < s->ncols; k++) {
        size_t bytes = made_bytes(&s->col[k]);

        data[k] = dnn_alloc((size_t)n * bytes);
        for (int64_t i = 0; i < n; i++)
            made_sample(s, split, k, first + i,
                        (unsigned char *)data[k] + (size_t)i * bytes);
    }
    for (int64_t i = 0; i < n; i++) {
        made_name(split, first + i, name[i]);
        snprintf(group[i], sizeof group[i], "p%lld", (long long)(first + i) / 2);
        names[i] = name[i];
        groups[i] = group[i];
        fold[i] = (int32_t)((first + i) % 3);
    }
    int rc = dnn_dataset_put(w, split, first, n, (const void *const *)data, names,
                             split ? NULL : fold, split ? NULL : groups, err);
    for (int k = 0; k < s->ncols; k++)
        dnn_free(data[k]);
    return rc;
}

/* Writes all chunks; the ranks of comm (NULL: one) take them in turn, the last one
 * first. */
static inline int made_write(struct dnn_comm *comm, const char *path,
                             const struct dnn_bp_how *how, char hash[33],
                             struct dnn_err *err)
{
    struct dnn_dataset_info info;
    struct dnn_dataset_writer *w = NULL;
    int rank = comm == NULL ? 0 : dnn_comm_rank(comm);
    int size = comm == NULL ? 1 : dnn_comm_size(comm);

    made_info(&info);
    int rc = dnn_dataset_create(comm, path, &info, how, &w, err);
    for (int i = 0; rc == 0 && i < MADE_SPLITS; i++) {
        const struct dnn_split *s = &info.split[i];
        int64_t chunks = (s->count + s->chunk - 1) / s->chunk;

        for (int64_t c = chunks - 1; rc == 0 && c >= 0; c--)
            if (c % size == rank) rc = made_put(w, &info, i, c * s->chunk, err);
        if (rc == 0) rc = dnn_dataset_flush(w, err);
    }
    if (rc == 0)
        rc = dnn_dataset_finish(w, hash, err);
    else
        dnn_dataset_abandon(w);
    made_free(&info);
    return rc;
}

#endif
