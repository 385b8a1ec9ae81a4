/* export.c - images and masks of a dataset as NIfTI-1 files, for other programs.
 *
 * The file's axes are those of src/import/nifti.c: i runs fastest and is the array's
 * last spatial axis; channels are axis 5, the components of a vector.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "prepare/prepare.h"
#include "prepare/preview_impl.h"

#include <inttypes.h>
#include <string.h>

enum { HEADER = 352, FLOAT32 = 16, INT16 = 4, MILLIMETRES = 2, MOST = INT16_MAX };

static void put16(unsigned char *at, int value)
{
    at[0] = (unsigned char)value;
    at[1] = (unsigned char)(value >> 8);
}

static void put32(unsigned char *at, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(bits >> 8 * i);
}

static bool is_exported(const struct dnn_column *c)
{
    return (c->kind == DNN_KIND_IMAGE || c->kind == DNN_KIND_MASK) &&
           c->shape.ndim >= 2 && c->shape.ndim <= DNN_MAX_SPACE + 1;
}

static void make_header(const struct dnn_stored *col, unsigned char *head)
{
    const struct dnn_shape *s = &col->column.shape;
    int space = s->ndim - 1, channels = (int)s->dim[space];
    bool mask = col->column.kind == DNN_KIND_MASK;

    memset(head, 0, HEADER);
    put16(head, HEADER - 4);
    put16(head + 40, channels > 1 ? 5 : space);
    for (int i = 1; i < 8; i++) {
        double spacing = i <= space ? col->spacing[space - i] : 0;

        put16(head + 40 + 2 * i, i <= space ? (int)s->dim[space - i] : 1);
        put32(head + 76 + 4 * i, spacing > 0 ? (float)spacing : 1);
        if (i <= 3) put32(head + 280 + 20 * (i - 1), spacing > 0 ? (float)spacing : 1);
    }
    put16(head + 50, channels);
    put16(head + 70, mask ? INT16 : FLOAT32);
    put16(head + 72, mask ? 16 : 32);
    put32(head + 76, 1);
    put32(head + 108, HEADER);
    put32(head + 112, 1);
    head[123] = MILLIMETRES;
    put16(head + 254, 1); /* sform_code: use the matrix at offset 280 */
    memcpy(head + 344, "n+1", 4);
}

static int write_column(const struct dnn_stored *col, const void *data,
                        const char *path, struct dnn_err *err)
{
    const struct dnn_shape *s = &col->column.shape;
    size_t each = col->column.kind == DNN_KIND_MASK ? 2 : 4;
    int64_t count, channels = s->dim[s->ndim - 1];

    DNN_TRY(dnn_shape_count(s, &count, err));
    unsigned char *bytes = dnn_alloc(HEADER + (size_t)count * each), *at = bytes;
    make_header(col, bytes);
    at += HEADER;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = c; i < count; i += channels, at += each) {
            double value = dnn_plane_value(col, data, i);

            if (each == 2)
                put16(at, (int)value);
            else
                put32(at, (float)value);
        }
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

    for (int i = 0; i < t.shape.ndim; i++)
        if (t.shape.dim[i] > MOST)
            return dnn_fail(err, DNN_EDATA,
                            "column \"%s\" has %" PRId64
                            " points along an axis; NIfTI-1 files have at most %d",
                            t.name, t.shape.dim[i], MOST);
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
