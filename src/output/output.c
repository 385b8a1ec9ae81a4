/* output.c - outputs of a network as files: the calls, in their order.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "output/output_impl.h"

#include "base/file.h"
#include "base/log.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* ---- open and close ---- */

static void close_fd(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* All but the lock. */
static void close_files(struct dnn_output *out)
{
    dnn_output_close_handles(out, NULL);
    close_fd(&out->hdf5);
    close_fd(&out->scratch);
    close_fd(&out->journal);
}

static void free_output(struct dnn_output *out)
{
    close_files(out);
    close_fd(&out->lock);
    for (int i = 0; out->path[i] != NULL; i++)
        dnn_free(out->path[i]);
    pthread_mutex_destroy(&out->mutex);
    dnn_arena_free(out->arena);
    dnn_free(out->sample);
    dnn_free(out->final);
    dnn_free(out->offset);
    dnn_free(out->done);
    dnn_free(out->loose);
    dnn_free(out->name);
    dnn_free(out->work);
    dnn_free(out);
}

char *dnn_output_shared(const struct dnn_output *out, int k, const char *suffix)
{
    if (k < 0 || out->o.noutputs == 1)
        return dnn_format("%s/%s%s", out->o.dir, out->name, suffix);
    return dnn_format("%s/%s/%s%s", out->o.dir, out->o.output_name[k], out->name,
                      suffix);
}

static void find_paths(struct dnn_output *out)
{
    static const struct {
        enum dnn_output_format format;
        const char *suffix; /* NULL: a file per sample                               */
        bool each;          /* a file per output                                     */
    } files[] = {
        {DNN_OUTPUT_HDF5,    ".h5",   false},
        {DNN_OUTPUT_BP5,     ".bp",   false},
        {DNN_OUTPUT_NPY,     NULL,    false},
        {DNN_OUTPUT_NIFTI,   NULL,    false},
        {DNN_OUTPUT_TIFF,    NULL,    false},
        {DNN_OUTPUT_PNG,     NULL,    false},
        {DNN_OUTPUT_OVERLAY, NULL,    false},
        {DNN_OUTPUT_CSV,     ".csv",  true },
        {DNN_OUTPUT_JSON,    ".json", true },
    };
    int n = 0;

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if ((out->o.formats & (unsigned)files[i].format) == 0) continue;
        out->path[n++] =
            files[i].suffix == NULL || (files[i].each && out->o.noutputs > 1)
                ? dnn_strdup(out->o.dir)
                : dnn_output_shared(out, -1, files[i].suffix);
        if (files[i].format == DNN_OUTPUT_HDF5 && out->o.hdf5_path != NULL)
            out->path[n++] = dnn_strdup(out->o.hdf5_path);
    }
}

static int open_output(struct dnn_output *out, struct dnn_err *err)
{
    uint64_t hash;

    DNN_TRY(dnn_comm_agree(out->comm, dnn_output_parts(out, err), err));
    find_paths(out);
    DNN_TRY(dnn_output_describe(out, &hash, err));
    DNN_TRY(dnn_comm_agree(out->comm, dnn_output_name(out, err), err));
    int rc = out->rank == 0 ? dnn_output_protect(out, err) : 0;
    DNN_TRY(dnn_comm_agree(out->comm, rc, err));
    dnn_output_place(out);
    return dnn_output_begin(out, hash, err);
}

int dnn_output_open(struct dnn_comm *comm, const struct dnn_output_options *options,
                    struct dnn_output **out, struct dnn_err *err)
{
    struct dnn_output *made = dnn_alloc(sizeof *made);
    struct dnn_err own = {0};

    if (err == NULL) err = &own;
    made->o = *options;
    made->comm = comm;
    made->rank = dnn_comm_rank(comm);
    made->size = dnn_comm_size(comm);
    made->name = dnn_strdup(options->name == NULL ? "outputs" : options->name);
    made->work = dnn_format("%s/.%s.tmp", options->dir, made->name);
    made->arena = dnn_arena_make();
    made->hdf5 = made->scratch = made->journal = made->lock = -1;
    for (int i = 0; i < OUTPUT_HANDLES; i++)
        made->handle[i].fd = -1;
    pthread_mutex_init(&made->mutex, NULL);
    int rc = open_output(made, err);
    if (rc == 0) {
        *out = made;
        return 0;
    }
    /* The rank with the lock has made the directory. */
    close_files(made);
    if (made->lock >= 0 && options->settings == NULL)
        dnn_file_remove_tree(made->work, NULL);
    free_output(made);
    return rc;
}

void dnn_output_close(struct dnn_output *out)
{
    struct dnn_err err = {0};

    if (out == NULL) return;
    /* Network file systems keep files that a rank has open. */
    close_files(out);
    if (dnn_comm_barrier(out->comm, "end of the outputs", &err) == 0 &&
        out->rank == 0 && dnn_file_remove_tree(out->work, &err) < 0)
        dnn_log(DNN_WARN, "output", "temporary files are left: %s", err.text);
    free_output(out);
}

void dnn_output_abandon(struct dnn_output *out)
{
    if (out != NULL && out->o.settings != NULL) {
        dnn_output_flush(out, NULL);
        free_output(out);
        return;
    }
    dnn_output_close(out);
}

const char *dnn_output_path(const struct dnn_output *out, int i)
{
    return i < 0 || i >= (int)(sizeof out->path / sizeof out->path[0]) ? NULL
                                                                       : out->path[i];
}

/* ---- units ---- */

static int check_sample(const struct dnn_output *out, int64_t sample,
                        struct dnn_err *err)
{
    if (sample >= 0 && sample < out->o.nsamples) return 0;
    return dnn_fail(err, DNN_EDATA, "%s: sample %" PRId64 " of %" PRId64, out->o.dir,
                    sample, out->o.nsamples);
}

bool dnn_output_done(const struct dnn_output *out, int64_t sample, int64_t unit)
{
    return out->done[out->sample[sample].first + unit] == 1;
}

char *dnn_output_keep(const struct dnn_output *out, const char *name)
{
    return out->o.settings == NULL ? NULL : dnn_output_work(out, name);
}

static int complete_unit(struct dnn_output *out, int64_t unit, struct dnn_err *err)
{
    int rc = 0;

    pthread_mutex_lock(&out->mutex);
    if (out->o.settings != NULL) rc = dnn_output_record(out, unit, err);
    if (rc == 0) out->done[unit] = 2;
    pthread_mutex_unlock(&out->mutex);
    return rc;
}

int dnn_output_unit(struct dnn_output *out, int64_t sample, int64_t unit,
                    struct dnn_err *err)
{
    DNN_TRY(check_sample(out, sample, err));
    if (unit < 0 || unit >= out->sample[sample].units)
        return dnn_fail(err, DNN_EDATA, "%s: unit %" PRId64 " of sample %" PRId64,
                        out->o.dir, unit, sample);
    return complete_unit(out, out->sample[sample].first + unit, err);
}

/* ---- values ---- */

static int check_box(const struct dnn_output *out, int64_t sample, int k,
                     const int64_t *start, const int64_t *extent, struct dnn_err *err)
{
    DNN_TRY(check_sample(out, sample, err));
    if (k < 0 || k >= out->o.noutputs)
        return dnn_fail(err, DNN_EDATA, "%s: output %d of %d", out->o.dir, k,
                        out->o.noutputs);
    const struct dnn_shape *s = &out->sample[sample].shape[k];
    for (int i = 0; i < s->ndim - 1; i++)
        if (start[i] < 0 || extent[i] < 1 || extent[i] > s->dim[i] - start[i])
            return dnn_fail(err, DNN_EDATA,
                            "%s: sample %" PRId64 ": points %" PRId64 " to %" PRId64
                            " along axis %d of %" PRId64 " points",
                            out->o.dir, sample, start[i], start[i] + extent[i] - 1, i,
                            s->dim[i]);
    return 0;
}

int dnn_output_put(struct dnn_output *out, int64_t sample, int k, const int64_t *start,
                   const int64_t *extent, const float *value, struct dnn_err *err)
{
    DNN_TRY(check_box(out, sample, k, start, extent, err));
    for (int p = 0; p < out->nparts; p++)
        if (out->part[p].k == k && out->part[p].what != OUTPUT_INPUT)
            DNN_TRY(dnn_output_box(out, p, sample, start, extent, value, err));
    return 0;
}

bool dnn_output_wants_input(const struct dnn_output *out)
{
    return (out->o.formats & DNN_OUTPUT_OVERLAY) != 0;
}

int dnn_output_input(struct dnn_output *out, int64_t sample,
                     const struct dnn_shape *shape, int64_t plane, const float *value,
                     struct dnn_err *err)
{
    DNN_TRY(check_sample(out, sample, err));
    if (!dnn_output_wants_input(out)) return 0;
    for (int p = 0; p < out->nparts; p++)
        if (out->part[p].what == OUTPUT_INPUT)
            DNN_TRY(dnn_output_below(out, p, sample, shape, plane, value, err));
    return complete_unit(out, out->units_of_samples + sample, err);
}
