/* prepare_made.h - a small dataset of images, masks, labels and values.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TESTS_PREPARE_MADE_H
#define DNN_TESTS_PREPARE_MADE_H

#include "base/file.h"
#include "base/mem.h"
#include "data/dataset.h"
#include "transform/stats.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const made_tissue[] = {"air", "grey", "white"};
static const char *const made_animal[] = {"cat", "dog"};

enum { MADE_SIZE = 8, MADE_POINTS = 64 };

/* Train sample i: pixel p of the image counts up by rows; the mask has one class per
 * third of the rows. */
static inline unsigned char made_image(int64_t i, int p)
{
    return (unsigned char)(p * 4 + (i & 1));
}

static inline unsigned char made_mask(int p)
{
    return (unsigned char)(p / MADE_SIZE / 3);
}

/* Statistics are of the scaled values, not of the stored ones. */
static inline void made_stats(struct dnn_stored *col, int64_t n, const char *data)
{
    const struct dnn_tensor t = {NULL, col->column.type, col->column.shape};
    struct dnn_column values = col->column;
    struct dnn_array a = {0};
    struct dnn_err err = {0};
    size_t bytes;

    if (col->nscale > 0) values.type = DNN_F32;
    col->stats = dnn_alloc(sizeof(*col->stats));
    dnn_stats_start(col->stats, &values);
    dnn_tensor_bytes(&t, &bytes, &err);
    for (int64_t i = 0; i < n; i++) {
        dnn_array_make(&a, col->column.type, &col->column.shape, &err);
        memcpy(a.data, data + (size_t)i * bytes, bytes);
        dnn_array_convert(&a, values.type, true, &err);
        for (int64_t k = 0; col->nscale > 0 && k < dnn_array_count(&a); k++) {
            float *x = (float *)a.data + k;

            *x = *x * (float)col->scale[0] + (float)col->offset[0];
        }
        dnn_stats_add(col->stats, &values, &a, &err);
    }
    dnn_array_free(&a);
}

static inline void made_column(struct dnn_stored *col, const char *name,
                               enum dnn_column_role role, enum dnn_kind kind,
                               enum dnn_dtype type, const char *shape)
{
    snprintf(col->column.name, sizeof(col->column.name), "%s", name);
    col->column.role = role;
    col->column.kind = kind;
    col->column.type = type;
    dnn_shape_parse(shape, &col->column.shape, NULL);
}

static inline void made_split(struct dnn_split *s, const char *name, int64_t count)
{
    snprintf(s->name, sizeof(s->name), "%s", name);
    s->count = count;
    s->chunk = 4;
    s->ncols = 4;
    made_column(&s->col[0], "input", DNN_ROLE_INPUT, DNN_KIND_IMAGE, DNN_U8, "8x8x1");
    s->col[0].nscale = 1;
    s->col[0].scale[0] = 0.5;
    s->col[0].offset[0] = -1;
    s->col[0].spacing[0] = s->col[0].spacing[1] = 2;
    made_column(&s->col[1], "target", DNN_ROLE_TARGET, DNN_KIND_MASK, DNN_U8, "8x8x1");
    s->col[1].column.classes = 3;
    s->col[1].column.class_name = made_tissue;
    made_column(&s->col[2], "animal", DNN_ROLE_TARGET, DNN_KIND_LABEL, DNN_I32,
                "scalar");
    s->col[2].column.classes = 2;
    s->col[2].column.class_name = made_animal;
    made_column(&s->col[3], "size", DNN_ROLE_EXTRA, DNN_KIND_VALUES, DNN_F32, "3");
}

/* Ten train and three test samples, at path, which must not exist. */
static inline int made_dataset(const char *path, struct dnn_err *err)
{
    struct dnn_dataset_info *info = dnn_alloc(sizeof(*info));
    struct dnn_dataset_writer *writer = NULL;
    static const int64_t counts[] = {10, 3};
    static unsigned char image[10][64], mask[10][64];
    static int32_t animal[10];
    static float size[10][3];
    const void *data[] = {image, mask, animal, size};
    const char *names[] = {"a/0.png", "a/1.png", "a/2.png", "a/3.png", "a/4.png",
                           "a/5.png", "a/6.png", "a/7.png", "a/8.png", "a/9.png"};
    char hash[33];

    for (int i = 0; i < 10; i++) {
        for (int p = 0; p < 64; p++) {
            image[i][p] = made_image(i, p);
            mask[i][p] = made_mask(p);
        }
        animal[i] = i % 3 == 0;
        for (int k = 0; k < 3; k++)
            size[i][k] = (float)(i - k);
    }
    info->nsplits = 2;
    info->provenance = dnn_strdup("{\"command\": \"dnn-prepare run a.json\", \"seed\": "
                                  "7, \"steps\": [{\"resize\": [8, 8]}, \"crop\"], "
                                  "\"files\": [{\"a\": 1, \"b\": 2}]}");
    for (int k = 0; k < 2; k++) {
        made_split(&info->split[k], k == 0 ? "train" : "test", counts[k]);
        if (k == 0)
            for (int c = 0; c < 4; c++)
                made_stats(&info->split[k].col[c], counts[k], data[c]);
    }
    int rc = dnn_dataset_create(NULL, path, info, NULL, &writer, err);
    for (int k = 0; rc == 0 && k < 2; k++)
        for (int64_t at = 0; rc == 0 && at < counts[k]; at += 4) {
            int64_t n = counts[k] - at < 4 ? counts[k] - at : 4;
            const void *part[] = {image[at], mask[at], &animal[at], size[at]};

            rc = dnn_dataset_put(writer, k, at, n, part, names + at, NULL, NULL, err);
        }
    if (rc == 0) rc = dnn_dataset_finish(writer, hash, err);
    for (int c = 0; c < 4; c++)
        dnn_free(info->split[0].col[c].stats);
    dnn_free(info->provenance);
    dnn_free(info);
    return rc;
}

/* Find the image of train sample 5 in a data file and change a byte of it. */
static inline bool made_change(const char *dir)
{
    unsigned char want[MADE_POINTS];
    struct dirent *entry;
    bool found = false;

    for (int p = 0; p < MADE_POINTS; p++)
        want[p] = made_image(5, p);
    DIR *d = opendir(dir);
    while (d != NULL && !found && (entry = readdir(d)) != NULL) {
        char *path = dnn_format("%s/%s", dir, entry->d_name), *text = NULL;
        size_t len = 0;

        if (strncmp(entry->d_name, "data.", 5) == 0 &&
            dnn_file_read(path, 1 << 24, &text, &len, NULL) == 0) {
            char *from = memmem(text, len, want, sizeof(want)), *next;
            if (from != NULL) /* odd samples are equal: 1, 3, 5 */
                for (int i = 0; i < 2; i++) {
                    next = memmem(from + 1, len - (size_t)(from + 1 - text), want,
                                  sizeof(want));
                    if (next != NULL) from = next;
                }
            int fd = from == NULL ? -1 : open(path, O_WRONLY);
            found = fd >= 0 && pwrite(fd, "\xEE", 1, from - text) == 1;
            if (fd >= 0) close(fd);
        }
        dnn_free(text);
        dnn_free(path);
    }
    if (d != NULL) closedir(d);
    return found;
}

#endif
