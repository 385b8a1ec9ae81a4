/* input.c - samples, and parts of them, as the network gets them.
 *
 * Without transforms only the part that is asked for is read.  Transforms need complete
 * samples; the last one is kept in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "infer/volume_impl.h"

#include "base/mem.h"
#include "data/dataset.h"
#include "sample/convert.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct infer_input {
    const struct dnn_config *config;
    struct dnn_config_origin origin;
    struct dnn_source *source;   /* owned                                            */
    struct dnn_augment *augment; /* owned; or NULL                                   */
    struct dnn_augment_scratch *scratch; /* owned                                    */
    int input, target;                   /* columns; target -1: none                 */
    struct dnn_column mid[DNN_MAX_COLUMNS]; /* after conversion                      */
    struct dnn_column out[DNN_MAX_COLUMNS]; /* after the transforms                  */
    struct dnn_conversion conversion[DNN_MAX_COLUMNS];
    pthread_mutex_t lock;     /* of the sample in memory                             */
    int64_t held;             /* its number; -1: none                                */
    struct dnn_sample sample; /* owned: with transforms                              */
    struct dnn_array target_box; /* owned */
};

/* ---- open ---- */

static int find_columns(struct infer_input *in, struct dnn_err *err)
{
    const struct dnn_source *s = in->source;

    in->input = in->target = -1;
    for (int c = s->ncols - 1; c >= 0; c--) {
        if (s->col[c].role == DNN_ROLE_INPUT) in->input = c;
        if (s->col[c].role == DNN_ROLE_TARGET) in->target = c;
        in->mid[c] = s->col[c];
        dnn_conversion_column(&s->col[c], in->origin.image_scale, &in->conversion[c]);
        in->mid[c].type = in->conversion[c].integer ? DNN_I32 : DNN_F32;
    }
    if (in->input < 0)
        return dnn_fail(
            err, DNN_EDATA,
            "the test data has no input column; set the role of a column in "
            "dnn-prepare");
    memcpy(in->out, in->mid, sizeof in->out);
    if (in->augment == NULL) return 0;
    return dnn_augment_columns(in->augment, s->ncols, in->mid, in->out, err);
}

static int open_all(struct infer_input *in, struct dnn_err *err)
{
    const char *dataset = in->origin.dataset;

    if (in->origin.from == DNN_FROM_NOTHING)
        return dnn_fail(err, DNN_ECONFIG,
                        "no test data; set data.test_dataset, data.test_input_path or "
                        "data.test_generate");
    if (in->origin.from == DNN_FROM_DATASET)
        DNN_TRY(dnn_dataset_source_open(dataset, in->origin.split, &in->source, err));
    else
        DNN_TRY(dnn_source_open(in->config, &in->origin, &in->source, err));
    DNN_TRY(dnn_config_augment(in->config, true, &in->augment, err));
    if (in->augment != NULL) in->scratch = dnn_augment_scratch_make();
    return find_columns(in, err);
}

int dnn_infer_input_open(const struct dnn_config *config, struct infer_input **out,
                         struct dnn_err *err)
{
    struct infer_input *in = dnn_alloc(sizeof *in);

    in->config = config;
    in->held = -1;
    pthread_mutex_init(&in->lock, NULL);
    dnn_config_origin(config, DNN_PART_TEST, &in->origin);
    int rc = open_all(in, err);
    if (rc < 0)
        dnn_infer_input_close(in);
    else
        *out = in;
    return rc;
}

void dnn_infer_input_close(struct infer_input *in)
{
    if (in == NULL) return;
    pthread_mutex_destroy(&in->lock);
    dnn_sample_free(&in->sample);
    dnn_array_free(&in->target_box);
    dnn_augment_scratch_free(in->scratch);
    dnn_augment_free(in->augment);
    dnn_source_close(in->source);
    dnn_free(in);
}

/* ---- about ---- */

int64_t dnn_infer_input_count(const struct infer_input *in)
{
    return in->source->count;
}

const struct dnn_column *dnn_infer_input_column(const struct infer_input *in)
{
    return &in->out[in->input];
}

const struct dnn_column *dnn_infer_target_column(const struct infer_input *in)
{
    return in->target < 0 ? NULL : &in->out[in->target];
}

const char *dnn_infer_input_from(const struct infer_input *in)
{
    return in->origin.from == DNN_FROM_FILES ? in->origin.files.input.path : NULL;
}

const struct dnn_source *dnn_infer_input_source(const struct infer_input *in)
{
    return in->source;
}

const char *dnn_infer_input_dataset(const struct infer_input *in)
{
    return in->origin.from == DNN_FROM_DATASET ? in->origin.dataset : NULL;
}

int dnn_infer_input_about(struct infer_input *in, int64_t sample,
                          struct infer_about *out, struct dnn_err *err)
{
    struct dnn_column cols[DNN_MAX_COLUMNS], made[DNN_MAX_COLUMNS];
    const struct dnn_source *s = in->source;

    memset(out, 0, sizeof *out);
    dnn_source_label(s, sample, out->name);
    out->file = dnn_source_file(s, sample);
    memcpy(cols, in->mid, sizeof cols);
    for (int c = 0; c < s->ncols; c++)
        if (c == in->input || in->augment != NULL)
            DNN_TRY(dnn_source_shape(s, sample, c, &cols[c].shape, err));
    out->shape = cols[in->input].shape;
    if (in->augment == NULL) return 0;
    DNN_TRY(dnn_augment_columns(in->augment, s->ncols, cols, made, err));
    out->shape = made[in->input].shape;
    return 0;
}

int dnn_infer_input_position(const struct infer_input *in, int64_t sample,
                             const struct dnn_shape *shape, struct dnn_position *out,
                             struct dnn_err *err)
{
    return dnn_infer_position(in->config, in->source, sample, in->input, shape, out,
                              err);
}

int dnn_infer_target_check(struct infer_input *in, int64_t sample, int64_t channels,
                           struct dnn_err *err)
{
    struct dnn_column cols[DNN_MAX_COLUMNS], made[DNN_MAX_COLUMNS];
    const struct dnn_source *s = in->source;
    const int kind = in->out[in->target].kind;
    char name[DNN_SAMPLE_NAME], a[DNN_SHAPE_TEXT], b[DNN_SHAPE_TEXT];
    bool classes = kind == DNN_KIND_LABEL || kind == DNN_KIND_MASK;
    int64_t has = 1;
    bool same;

    memcpy(cols, in->mid, sizeof cols);
    for (int c = 0; c < s->ncols; c++)
        DNN_TRY(dnn_source_shape(s, sample, c, &cols[c].shape, err));
    memcpy(made, cols, sizeof made);
    if (in->augment != NULL)
        DNN_TRY(dnn_augment_columns(in->augment, s->ncols, cols, made, err));
    const struct dnn_shape *x = &made[in->input].shape, *y = &made[in->target].shape;
    same = y->ndim >= x->ndim - 1;
    for (int d = 0; d + 1 < x->ndim && same; d++)
        same = x->dim[d] == y->dim[d];
    for (int d = x->ndim - 1; d < y->ndim; d++)
        has *= y->dim[d];
    /* Masks have one channel; values are compared with the output. */
    if (same && (classes || has == channels)) return 0;
    dnn_source_label(s, sample, name);
    if (same)
        return dnn_fail(err, DNN_EDATA,
                        "%s: the target has shape %s, but it must have %" PRId64
                        " channel%s, as the output of the network",
                        name, dnn_shape_text(b, sizeof b, y), channels,
                        channels == 1 ? "" : "s");
    return dnn_fail(err, DNN_EDATA,
                    "%s: the target has shape %s, but the input %s; they must have the "
                    "same spatial extents",
                    name, dnn_shape_text(b, sizeof b, y),
                    dnn_shape_text(a, sizeof a, x));
}

/* ---- read ---- */

/* Convert an array of column c to its own type. */
static int convert(const struct infer_input *in, int64_t sample, int c,
                   const struct dnn_array *from, void *to, struct dnn_err *err)
{
    char name[DNN_SAMPLE_NAME];
    int64_t bad = -1;
    int rc = dnn_conversion_apply(&in->conversion[c], from->data, to,
                                  dnn_array_count(from), &bad, err);

    if (rc == 0 && bad < 0) return 0;
    dnn_source_label(in->source, sample, name);
    if (rc < 0) return dnn_prefix(err, "%s: %s: ", name, in->source->col[c].name);
    const char *column = in->source->col[c].name;
    if (in->conversion[c].integer && in->conversion[c].classes > 0)
        return dnn_fail(
            err, DNN_EDATA,
            "%s: %s: element %" PRId64
            " is not a class number; the network has the classes 0 to %" PRId64,
            name, column, bad, in->conversion[c].classes - 1);
    return dnn_fail(
        err, DNN_EDATA, "%s: %s: element %" PRId64 " is %s", name, column, bad,
        in->conversion[c].integer ? "not a class number" : "NaN or infinite");
}

/* Make the sample the one in memory. */
static int hold(struct infer_input *in, int64_t sample, struct dnn_err *err)
{
    const struct dnn_source *s = in->source;
    struct dnn_sample raw = {0};

    if (in->held == sample) return 0;
    in->held = -1;
    int rc = dnn_source_read(s, sample, &raw, err);
    in->sample.ncols = s->ncols;
    for (int c = 0; c < s->ncols && rc == 0; c++) {
        struct dnn_array *to = &in->sample.col[c];

        rc = dnn_array_make(to, in->mid[c].type, &raw.col[c].shape, err);
        if (rc == 0) rc = convert(in, sample, c, &raw.col[c], to->data, err);
        memcpy(to->spacing, raw.col[c].spacing, sizeof to->spacing);
    }
    dnn_sample_free(&raw);
    if (rc == 0)
        rc = dnn_augment_apply(in->augment, s->ncols, in->mid,
                               (uint64_t)in->config->seed, 0, sample, &in->sample, NULL,
                               in->scratch, err);
    if (rc == 0) in->held = sample;
    return rc;
}

/* A box of column c with all channels: start and extent of all axes. */
static int box_of(struct infer_input *in, int64_t sample, int c, int ndim,
                  const int64_t *start, const int64_t *extent, int64_t *at,
                  int64_t *size, struct dnn_err *err)
{
    struct dnn_shape shape = in->out[c].shape;

    if (!dnn_shape_known(&shape))
        DNN_TRY(in->augment != NULL
                    ? (shape = in->sample.col[c].shape, 0)
                    : dnn_source_shape(in->source, sample, c, &shape, err));
    for (int d = 0; d < shape.ndim; d++) {
        at[d] = d < ndim ? start[d] : 0;
        size[d] = d < ndim ? extent[d] : shape.dim[d];
    }
    return 0;
}

/* Read a box of a column into `out` with the column's type. */
static int read_box(struct infer_input *in, int64_t sample, int c, int ndim,
                    const int64_t *start, const int64_t *extent, struct dnn_array *out,
                    struct dnn_err *err)
{
    int64_t at[DNN_MAX_DIMS] = {0}, size[DNN_MAX_DIMS] = {0};
    struct dnn_array raw = {0};
    int rc;

    if (in->augment != NULL) {
        DNN_TRY(hold(in, sample, err));
        DNN_TRY(box_of(in, sample, c, ndim, start, extent, at, size, err));
        return dnn_array_box(&in->sample.col[c], at, size, out, err);
    }
    DNN_TRY(box_of(in, sample, c, ndim, start, extent, at, size, err));
    rc = dnn_source_read_box(in->source, sample, c, at, size, &raw, err);
    if (rc == 0) rc = dnn_array_make(out, in->mid[c].type, &raw.shape, err);
    if (rc == 0) {
        memcpy(out->spacing, raw.spacing, sizeof out->spacing);
        rc = convert(in, sample, c, &raw, out->data, err);
    }
    dnn_array_free(&raw);
    return rc;
}

/* Number of spatial axes of the input. */
static int space(const struct infer_input *in)
{
    return in->out[in->input].shape.ndim - 1;
}

int dnn_infer_input_box(struct infer_input *in, int64_t sample, const int64_t *start,
                        const int64_t *extent, float *to, struct dnn_err *err)
{
    struct dnn_array box = {0};

    if (in->augment != NULL) pthread_mutex_lock(&in->lock);
    int rc = read_box(in, sample, in->input, space(in), start, extent, &box, err);
    if (in->augment != NULL) pthread_mutex_unlock(&in->lock);
    if (rc == 0) memcpy(to, box.data, dnn_array_bytes(&box));
    dnn_array_free(&box);
    return rc;
}

int dnn_infer_target_box(struct infer_input *in, int64_t sample, const int64_t *start,
                         const int64_t *extent, const struct dnn_array **out,
                         struct dnn_err *err)
{
    if (in->augment != NULL) pthread_mutex_lock(&in->lock);
    int rc = read_box(in, sample, in->target, space(in), start, extent, &in->target_box,
                      err);
    if (in->augment != NULL) pthread_mutex_unlock(&in->lock);
    *out = &in->target_box;
    return rc;
}
