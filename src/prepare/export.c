/* export.c - images and masks of a dataset as NIfTI-1 files, for other programs.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "import/nifti_write.h"
#include "prepare/prepare.h"
#include "prepare/preview_impl.h"

#include <inttypes.h>
#include <string.h>

/* Native byte order, as in the header. */
static void put_value(unsigned char *at, double value, bool mask)
{
    int16_t number = (int16_t)value;
    float real = (float)value;

    if (mask)
        memcpy(at, &number, sizeof number);
    else
        memcpy(at, &real, sizeof real);
}

static bool is_exported(const struct dnn_column *c)
{
    return (c->kind == DNN_KIND_IMAGE || c->kind == DNN_KIND_MASK) &&
           c->shape.ndim >= 2 && c->shape.ndim <= DNN_MAX_SPACE + 1;
}

static int write_column(const struct dnn_stored *col, const void *data,
                        const char *path, struct dnn_err *err)
{
    const struct dnn_shape *s = &col->column.shape;
    bool mask = col->column.kind == DNN_KIND_MASK;
    struct dnn_position position = {0};
    const struct dnn_nifti_make make = {
        .type = mask ? DNN_I16 : DNN_F32, .shape = s, .position = &position};
    size_t each = dnn_dtype_size(make.type);
    int64_t count, channels = s->dim[s->ndim - 1];
    unsigned char head[DNN_NIFTI_HEAD];

    memcpy(position.spacing, col->spacing, sizeof position.spacing);
    DNN_TRY(dnn_nifti_make(path, &make, head, err));
    DNN_TRY(dnn_shape_count(s, &count, err));
    unsigned char *bytes = dnn_alloc(sizeof head + (size_t)count * each);
    unsigned char *at = bytes + sizeof head;
    memcpy(bytes, head, sizeof head);
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = c; i < count; i += channels, at += each)
            put_value(at, dnn_plane_value(col, data, i), mask);
    int rc = dnn_file_write(path, bytes, (size_t)(at - bytes), err);
    dnn_free(bytes);
    return rc;
}

/* "scans/a.nii.gz" -> "scans_a" */
static char *file_name(const char *sample)
{
    char *name = dnn_strdup(sample);
    size_t n = strlen(name);

    if (n > 3 && strcmp(name + n - 3, ".gz") == 0) name[n - 3] = '\0';
    n = strlen(name);
    if (n > 4 && strcmp(name + n - 4, ".nii") == 0) name[n - 4] = '\0';
    for (char *c = name; *c != '\0'; c++)
        if (*c == '/') *c = '_';
    return name;
}

static int export_column(struct dnn_dataset *dataset, int split, int column,
                         const char *dir, struct dnn_err *err)
{
    const struct dnn_split *s = &dnn_dataset_info(dataset)->split[split];
    const struct dnn_stored *col = &s->col[column];
    const struct dnn_tensor t = {col->column.name, col->column.type, col->column.shape};
    size_t bytes;
    int rc = 0;

    DNN_TRY(dnn_tensor_bytes(&t, &bytes, err));
    DNN_TRY(dnn_file_make_dirs(dir, err));
    void *data = dnn_alloc(bytes);
    for (int64_t i = 0; i < s->count && rc == 0; i++) {
        char **name = NULL;

        rc = dnn_dataset_request(dataset, split, column, i, 1, data, err);
        if (rc == 0) rc = dnn_dataset_fetch(dataset, err);
        if (rc == 0)
            rc = dnn_dataset_metadata(dataset, split, i, 1, &name, NULL, NULL, err);
        if (rc == 0) {
            char *base = file_name(name[0]);
            char *path = dnn_format("%s/%s.nii", dir, base);

            rc = write_column(col, data, path, err);
            dnn_free(path);
            dnn_free(base);
        }
        dnn_free(name);
    }
    dnn_free(data);
    return rc;
}

static int export(struct dnn_dataset *dataset, const char *path, const char *dir,
                  struct dnn_err *err)
{
    const struct dnn_dataset_info *info = dnn_dataset_info(dataset);
    int64_t files = 0;

    for (int split = 0; split < info->nsplits; split++)
        for (int k = 0; k < info->split[split].ncols; k++) {
            const struct dnn_column *c = &info->split[split].col[k].column;

            if (!is_exported(c)) continue;
            char *to = dnn_format("%s/%s", dir, c->name);
            int rc = export_column(dataset, split, k, to, err);
            dnn_free(to);
            DNN_TRY(rc);
            files += info->split[split].count;
        }
    if (files == 0)
        return dnn_fail(err, DNN_EDATA, "%s: has no images or masks to export", path);
    dnn_log(DNN_INFO, "prepare", "%s: %" PRId64 " NIfTI files written", dir, files);
    return 0;
}

int dnn_prepare_export(const char *path, const char *dir, struct dnn_err *err)
{
    struct dnn_dataset *dataset;

    DNN_TRY(dnn_dataset_open(NULL, path, 1, &dataset, err));
    int rc = export(dataset, path, dir, err);
    dnn_dataset_close(dataset);
    return rc;
}
