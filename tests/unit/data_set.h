/* data_set.h - a small dataset whose samples are known.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_UNIT_DATA_SET_H
#define DNN_TESTS_UNIT_DATA_SET_H

#include "tap.h"

#include "base/mem.h"
#include "data/dataset.h"
#include "data/feed.h"

#include <inttypes.h>
#include <stdlib.h>

enum { POINTS = 5 * 4 * 3, CHUNK = 6, COUNT = 100, STORED = POINTS + 1 + 4 };
static const double scale[3] = {0.5, 2, 1}, offset[3] = {-1, 0, 3};

static struct dnn_err err;

static inline uint8_t pixel(int64_t i, int k)
{
    return (uint8_t)(i * 31 + k * 7 + i / 8);
}

static inline int32_t fold_of(int64_t i)
{
    return (int32_t)(i * 5 / 3 % 3);
}

/* ---- writing ---- */

static inline void column(struct dnn_stored *s, const char *name,
                          enum dnn_column_role role, enum dnn_kind kind,
                          enum dnn_dtype type, const char *shape)
{
    snprintf(s->column.name, sizeof s->column.name, "%s", name);
    s->column.role = role;
    s->column.kind = kind;
    s->column.type = type;
    if (shape != NULL) dnn_shape_parse(shape, &s->column.shape, NULL);
}

static inline struct dnn_dataset_info *info_of(const char *name, int64_t count,
                                               int64_t chunk)
{
    struct dnn_dataset_info *info = dnn_alloc(sizeof *info);

    info->nsplits = 1;
    info->provenance = dnn_strdup("{}");
    snprintf(info->split[0].name, sizeof info->split[0].name, "%s", name);
    info->split[0].count = count;
    info->split[0].chunk = chunk;
    return info;
}

/* Ends info and writer. */
static inline void finish(struct dnn_dataset_info *info, struct dnn_dataset_writer *w,
                          int rc)
{
    char hash[33];

    if (rc == 0)
        rc = dnn_dataset_finish(w, hash, &err);
    else
        dnn_dataset_abandon(w);
    if (!ok(rc == 0, "a dataset to read")) printf("# %s\n", err.text);
    dnn_free(info->provenance);
    dnn_free(info);
}

/* 100 images in chunks of 6, with a scale for each channel, and in three folds. */
static inline void write_small(const char *path)
{
    struct dnn_dataset_info *info = info_of("train", COUNT, CHUNK);
    struct dnn_split *split = &info->split[0];
    struct dnn_dataset_writer *w = NULL;
    uint8_t image[CHUNK][POINTS], label[CHUNK];
    int32_t id[CHUNK], fold[CHUNK];
    char text[CHUNK][32];
    const char *name[CHUNK];

    split->ncols = 3;
    split->folds = 3;
    column(&split->col[0], "input", DNN_ROLE_INPUT, DNN_KIND_IMAGE, DNN_U8, "5x4x3");
    column(&split->col[1], "label", DNN_ROLE_TARGET, DNN_KIND_LABEL, DNN_U8, NULL);
    column(&split->col[2], "id", DNN_ROLE_EXTRA, DNN_KIND_VALUES, DNN_I32, "1");
    split->col[1].column.classes = 7;
    split->col[0].nscale = 3;
    memcpy(split->col[0].scale, scale, sizeof scale);
    memcpy(split->col[0].offset, offset, sizeof offset);
    int rc = dnn_dataset_create(NULL, path, info, NULL, &w, &err);
    for (int64_t first = 0; first < COUNT && rc == 0; first += CHUNK) {
        int64_t n = COUNT - first < CHUNK ? COUNT - first : CHUNK;

        for (int64_t i = 0; i < n; i++) {
            for (int k = 0; k < POINTS; k++)
                image[i][k] = pixel(first + i, k);
            label[i] = (uint8_t)((first + i) % 7);
            id[i] = (int32_t)(-(first + i));
            fold[i] = fold_of(first + i);
            snprintf(text[i], sizeof text[i], "s%03" PRId64, first + i);
            name[i] = text[i];
        }
        rc = dnn_dataset_put(w, 0, first, n, (const void *const[]){image, label, id},
                             name, fold, NULL, &err);
    }
    finish(info, w, rc);
}

/* The memory of a feed with these settings. */
static inline int64_t memory_of(const struct dnn_feed_cfg *cfg)
{
    struct dnn_feed *feed = NULL;
    int64_t bytes = 0;

    if (dnn_feed_open(NULL, cfg, &feed, &err) == 0)
        bytes = (int64_t)dnn_feed_bytes(feed);
    dnn_feed_close(feed);
    return bytes;
}

#endif
