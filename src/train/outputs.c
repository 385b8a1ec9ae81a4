/* outputs.c - outputs of a network as HDF5 files, in the layout of rmldnn.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "train/outputs.h"

#include "base/file.h"
#include "base/mem.h"
#include "import/hdf5_write.h"
#include "source/source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct dnn_outputs {
    struct dnn_outputs_cfg cfg;
    struct dnn_hdf5_out *file[DNN_OUTPUTS_FILES]; /* owned; NULL: not written         */
    float *transposed;                            /* owned: output, channels first    */
    const struct dnn_source_slices *slices;       /* NULL: samples are not sliced     */
    struct dnn_array *sum, *weight; /* owned: a pair for each slicer           */
};

/* ---- names ---- */

/* The name of a sample relative to the input path. */
static const char *relative_name(const struct dnn_outputs *o, const char *name)
{
    size_t len = o->cfg.from == NULL ? 0 : strlen(o->cfg.from);

    if (len > 0 && strncmp(name, o->cfg.from, len) == 0) {
        const char *slash = NULL;

        if (name[len] == '/') return name + len + 1;
        for (size_t i = 0; i < len; i++)
            if (name[i] == '/') slash = name + i;
        if (slash != NULL) name = slash + 1;
    }
    while (name[0] == '/' || (name[0] == '.' && name[1] == '/'))
        name++;
    return name[0] == '\0' ? "sample" : name;
}

static int put(struct dnn_outputs *o, const char *name, const struct dnn_shape *shape,
               const float *data, struct dnn_err *err)
{
    for (int i = 0; i < DNN_OUTPUTS_FILES; i++)
        if (o->file[i] != NULL)
            DNN_TRY(dnn_hdf5_put(o->file[i], name, shape, data, err));
    return 0;
}

/* ---- samples ---- */

/* Move channels to the front. */
static void transpose(const float *from, int64_t rows, int64_t channels, float *to)
{
    for (int64_t c = 0; c < channels; c++)
        for (int64_t r = 0; r < rows; r++)
            to[c * rows + r] = from[r * channels + c];
}

static int add_sample(struct dnn_outputs *o, int64_t sample, const float *const *output,
                      struct dnn_err *err)
{
    char label[DNN_SAMPLE_NAME];

    dnn_feed_label(o->cfg.feed, sample, label);
    for (int i = 0; i < o->cfg.noutputs; i++) {
        const struct dnn_shape *is = &o->cfg.shape[i];
        int64_t channels = is->dim[is->ndim - 1], count;
        struct dnn_shape transposed = {.ndim = is->ndim, .dim = {channels}};

        DNN_TRY(dnn_shape_count(is, &count, err));
        memcpy(transposed.dim + 1, is->dim, (size_t)(is->ndim - 1) * sizeof *is->dim);
        transpose(output[i], count / channels, channels, o->transposed);
        char *name = o->cfg.noutputs == 1
                         ? dnn_strdup(relative_name(o, label))
                         : dnn_format("%s/%s", o->cfg.name[i], relative_name(o, label));
        int rc = put(o, name, &transposed, o->transposed, err);
        dnn_free(name);
        DNN_TRY(rc);
    }
    return 0;
}

/* ---- slices ---- */

/* Allocate the sums and weights of a volume, set to zero. */
static int begin_volume(struct dnn_outputs *o, struct dnn_err *err)
{
    const struct dnn_shape *is = &o->cfg.shape[0];

    for (int k = 0; k < o->slices->nsets; k++) {
        const struct dnn_slices *put = &o->slices->put[k];
        struct dnn_shape shape = {.ndim = put->nspace};

        memcpy(shape.dim, put->full, sizeof put->full);
        DNN_TRY(dnn_array_make(&o->weight[k], DNN_U16, &shape, err));
        shape.dim[shape.ndim++] = is->dim[is->ndim - 1];
        DNN_TRY(dnn_array_make(&o->sum[k], DNN_F32, &shape, err));
        memset(o->weight[k].data, 0, dnn_array_bytes(&o->weight[k]));
        memset(o->sum[k].data, 0, dnn_array_bytes(&o->sum[k]));
    }
    return 0;
}

static int end_volume(struct dnn_outputs *o, int64_t volume, struct dnn_err *err)
{
    char label[DNN_SAMPLE_NAME];

    dnn_source_label(o->slices->from, volume, label);
    for (int k = 0; k < o->slices->nsets; k++) {
        char *name =
            o->slices->from->count == 1
                ? dnn_strdup(o->slices->name[k])
                : dnn_format("%s/%s", relative_name(o, label), o->slices->name[k]);
        int rc = dnn_slices_finish(&o->sum[k], &o->weight[k], err);

        if (rc == 0) rc = put(o, name, &o->sum[k].shape, o->sum[k].data, err);
        dnn_free(name);
        DNN_TRY(rc);
    }
    return 0;
}

static int add_slice(struct dnn_outputs *o, int64_t sample, const float *output,
                     struct dnn_err *err)
{
    int64_t volume, box;
    int set;
    struct dnn_array array = {
        .type = DNN_F32, .shape = o->cfg.shape[0], .data = (void *)(uintptr_t)output};

    dnn_source_slice_at(o->slices, sample, &volume, &set, &box);
    if (sample % o->slices->each == 0) DNN_TRY(begin_volume(o, err));
    DNN_TRY(dnn_slices_add(&o->slices->put[set], &array, box, &o->sum[set],
                           &o->weight[set], err));
    return sample % o->slices->each == o->slices->each - 1 ? end_volume(o, volume, err)
                                                           : 0;
}

int dnn_outputs_add(struct dnn_outputs *out, int64_t sample, const float *const *output,
                    struct dnn_err *err)
{
    if (out->slices != NULL) return add_slice(out, sample, output[0], err);
    return add_sample(out, sample, output, err);
}

/* ---- open and close ---- */

static int check_slices(const struct dnn_outputs *o, struct dnn_err *err)
{
    const struct dnn_shape *is = &o->cfg.shape[0];
    struct dnn_shape expected;
    char a[DNN_SHAPE_TEXT], b[DNN_SHAPE_TEXT];

    if (o->cfg.noutputs != 1)
        return dnn_fail(
            err, DNN_ECONFIG,
            "data.slicers: the network has %d outputs; slices can be reassembled "
            "for one output only",
            o->cfg.noutputs);
    dnn_slices_shape(&o->slices->set[0], is->dim[is->ndim - 1], &expected);
    if (dnn_shape_equal(is, &expected)) return 0;
    return dnn_fail(err, DNN_ECONFIG,
                    "data.slicers: the network outputs slices of %s; only %s can be "
                    "reassembled",
                    dnn_shape_text(a, sizeof a, is),
                    dnn_shape_text(b, sizeof b, &expected));
}

static int make_dir(const char *path, struct dnn_err *err)
{
    const char *slash = strrchr(path, '/');

    if (slash == NULL || slash == path) return 0;
    char *dir = dnn_strndup(path, (size_t)(slash - path));
    int rc = dnn_file_make_dirs(dir, err);
    dnn_free(dir);
    return rc;
}

static int open_all(struct dnn_outputs *o, struct dnn_err *err)
{
    size_t max = 0, bytes;

    o->slices = dnn_source_sliced(o->cfg.source);
    if (o->slices != NULL) {
        size_t n = (size_t)o->slices->nsets;

        DNN_TRY(check_slices(o, err));
        o->sum = dnn_alloc(n * sizeof *o->sum);
        o->weight = dnn_alloc(n * sizeof *o->weight);
    }
    for (int i = 0; i < o->cfg.noutputs; i++) {
        const struct dnn_tensor one = {NULL, DNN_F32, o->cfg.shape[i]};

        DNN_TRY(dnn_tensor_bytes(&one, &bytes, err));
        if (bytes > max) max = bytes;
    }
    o->transposed = malloc(max + 64);
    if (o->transposed == NULL)
        return dnn_fail(err, DNN_ENOMEM, "an output of %zu MB does not fit into memory",
                        max >> 20);
    for (int i = 0; i < DNN_OUTPUTS_FILES; i++) {
        if (o->cfg.path[i] == NULL) continue;
        DNN_TRY(make_dir(o->cfg.path[i], err));
        DNN_TRY(dnn_hdf5_create(o->cfg.path[i], o->cfg.type, &o->file[i], err));
    }
    return 0;
}

int dnn_outputs_open(const struct dnn_outputs_cfg *cfg, struct dnn_outputs **out,
                     struct dnn_err *err)
{
    struct dnn_outputs *o = dnn_alloc(sizeof *o);

    o->cfg = *cfg;
    int rc = open_all(o, err);
    if (rc < 0)
        dnn_outputs_abandon(o);
    else
        *out = o;
    return rc;
}

int dnn_outputs_commit(struct dnn_outputs *out, struct dnn_err *err)
{
    int rc = 0;

    for (int i = 0; i < DNN_OUTPUTS_FILES && rc == 0; i++) {
        if (out->file[i] == NULL) continue;
        rc = dnn_hdf5_commit(out->file[i], err);
        out->file[i] = NULL;
    }
    dnn_outputs_abandon(out);
    return rc;
}

void dnn_outputs_abandon(struct dnn_outputs *out)
{
    if (out == NULL) return;
    for (int i = 0; i < DNN_OUTPUTS_FILES; i++)
        dnn_hdf5_abandon(out->file[i]);
    for (int k = 0; out->sum != NULL && k < out->slices->nsets; k++) {
        dnn_array_free(&out->sum[k]);
        dnn_array_free(&out->weight[k]);
    }
    dnn_free(out->sum);
    dnn_free(out->weight);
    free(out->transposed);
    dnn_free(out);
}
