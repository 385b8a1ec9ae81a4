/* samples.c - the descriptions of all samples, known to all ranks.
 *
 * Each rank describes a part of the samples; then the descriptions are exchanged.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "output/output_impl.h"

#include "comm/collect.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { PIECE = 16 << 20 };

/* Samples are described by consecutive ranks; completed in turn, so that the ranks have
 * the same work if samples of the same directory are similar. */
static int64_t first_of(const struct dnn_output *out, int rank)
{
    return out->o.nsamples / out->size * rank +
           out->o.nsamples % out->size * rank / out->size;
}

bool dnn_output_mine(const struct dnn_output *out, int64_t sample)
{
    return sample % out->size == out->rank;
}

const char *dnn_output_text(const struct dnn_output *out, int64_t sample, char *text,
                            size_t size)
{
    const char *name = out->sample == NULL ? NULL : out->sample[sample].name;

    snprintf(text, size, "sample %" PRId64 "%s%.200s%s", sample,
             name == NULL ? "" : " (", name == NULL ? "" : name,
             name == NULL ? "" : ")");
    return text;
}

/* ---- one sample as bytes ---- */

struct fixed {
    struct dnn_position position; /* a change of it is a change of the files */
    int64_t units, channels_last;
};

static int check(const struct dnn_output *out, int64_t i,
                 const struct dnn_output_sample *about, struct dnn_err *err)
{
    char text[DNN_SHAPE_TEXT];

    if (about->units < 1)
        return dnn_fail(err, DNN_EDATA, "sample %" PRId64 " (%s): %" PRId64 " units", i,
                        about->name, about->units);
    for (int k = 0; k < out->o.noutputs; k++) {
        const struct dnn_shape *s = &about->shape[k];
        int64_t count;

        if (s->ndim < 1 || dnn_shape_count(s, &count, NULL) < 0 || count < 1 ||
            count > INT64_MAX / 16)
            return dnn_fail(err, DNN_EDATA,
                            "sample %" PRId64 " (%s): output %d has the shape %s; "
                            "only arrays with channels can be written",
                            i, about->name, k, dnn_shape_text(text, sizeof text, s));
    }
    return dnn_output_check(out, i, about, err);
}

static void pack(const struct dnn_output *out, const struct dnn_output_sample *about,
                 struct dnn_buf *to)
{
    struct fixed f = {about->position, about->units, about->channels_last};
    char *name = dnn_output_relative(out, about->name);

    dnn_buf_bytes(to, &f, sizeof f);
    for (int k = 0; k < out->o.noutputs; k++) {
        const struct dnn_shape *s = &about->shape[k];
        int64_t n = s->ndim;

        dnn_buf_bytes(to, &n, sizeof n);
        dnn_buf_bytes(to, s->dim, (size_t)n * sizeof s->dim[0]);
    }
    dnn_buf_bytes(to, name, strlen(name) + 1);
    dnn_free(name);
}

static const char *take(const char *at, void *to, size_t n)
{
    memcpy(to, at, n);
    return at + n;
}

/* last: shapes of the sample before, or NULL. */
static const char *unpack(struct dnn_output *out, const char *at,
                          const struct dnn_shape *last, struct output_sample *to)
{
    size_t bytes = (size_t)out->o.noutputs * sizeof(struct dnn_shape);
    struct dnn_shape shape[DNN_OUTPUT_MAX];
    struct fixed f;

    memset(shape, 0, sizeof shape); /* they are compared */
    at = take(at, &f, sizeof f);
    for (int k = 0; k < out->o.noutputs; k++) {
        int64_t n;

        at = take(at, &n, sizeof n);
        shape[k].ndim = (int)n;
        at = take(at, shape[k].dim, (size_t)n * sizeof shape[k].dim[0]);
    }
    to->name = dnn_arena_strdup(out->arena, at);
    if (last == NULL || memcmp(last, shape, bytes) != 0)
        last = memcpy(dnn_arena_alloc(out->arena, bytes), shape, bytes);
    to->shape = last;
    to->units = f.units;
    to->channels_last = f.channels_last != 0;
    return at + strlen(at) + 1;
}

/* ---- all samples ---- */

static int describe_mine(struct dnn_output *out, struct dnn_buf *to,
                         struct dnn_err *err)
{
    struct dnn_output_sample *about = dnn_alloc(sizeof *about);
    int64_t last = first_of(out, out->rank + 1);
    int rc = 0;

    for (int64_t i = first_of(out, out->rank); i < last && rc == 0; i++) {
        memset(about, 0, sizeof *about);
        rc = out->o.describe(out->o.arg, i, about, err);
        if (rc == 0) rc = check(out, i, about, err);
        if (rc == 0) pack(out, about, to);
    }
    dnn_free(about);
    return rc;
}

/* All bytes to all ranks; the caller frees *all. */
static int exchange(struct dnn_output *out, const struct dnn_buf *mine, char **all,
                    size_t *total, struct dnn_err *err)
{
    const char *what = "descriptions of samples";
    void *collected;
    int64_t bytes;

    DNN_TRY(dnn_comm_collect(out->comm, what, mine->text, mine->len, &collected, total,
                             err));
    bytes = (int64_t)*total;
    *all = collected;
    DNN_TRY(dnn_comm_bcast(out->comm, what, &bytes, sizeof bytes, 0, err));
    *total = (size_t)bytes;
    if (*all == NULL) *all = dnn_alloc(*total + 1);
    for (size_t at = 0; at < *total; at += PIECE) {
        size_t n = *total - at < PIECE ? *total - at : PIECE;

        DNN_TRY(dnn_comm_bcast(out->comm, what, *all + at, n, 0, err));
    }
    return 0;
}

static void unpack_all(struct dnn_output *out, const char *at)
{
    const struct dnn_shape *last = NULL;
    int64_t units = 0;

    out->sample = dnn_alloc((size_t)(out->o.nsamples + 1) * sizeof *out->sample);
    for (int64_t i = 0; i < out->o.nsamples; i++) {
        at = unpack(out, at, last, &out->sample[i]);
        last = out->sample[i].shape;
        out->sample[i].first = units;
        units += out->sample[i].units;
    }
    out->units_of_samples = out->nunits = units;
    if (dnn_output_wants_input(out)) out->nunits += out->o.nsamples;
    out->done = dnn_alloc((size_t)out->nunits + 1);
}

int dnn_output_describe(struct dnn_output *out, uint64_t *hash, struct dnn_err *err)
{
    struct dnn_buf mine = {0};
    char *all = NULL;
    size_t total;

    int rc = dnn_comm_agree(out->comm, describe_mine(out, &mine, err), err);
    if (rc == 0) rc = exchange(out, &mine, &all, &total, err);
    if (rc == 0) {
        *hash = XXH3_64bits(all, total);
        unpack_all(out, all);
    }
    dnn_buf_free(&mine);
    dnn_free(all);
    return rc;
}
