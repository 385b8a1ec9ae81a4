/* row.c - computes units of a sample, one row of tiles after the other.
 *
 * A row is all tiles that start at the same plane of axis 0, as far as they are needed;
 * rows with fewer tiles than a batch are computed together.  The input of the next row
 * is read while the network computes this one.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "infer/volume_impl.h"

#include "base/mem.h"
#include "base/text.h"
#include "sample/sample.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { FLIPS = 1 << DNN_WINDOW_DIMS };

/* The input of a row: the smallest box of the sample that has all of its tiles. */
struct block {
    int64_t tile, end; /* the tiles of the row are among these */
    int64_t start[DNN_WINDOW_DIMS], extent[DNN_WINDOW_DIMS];
    float *value; /* owned: [extent][channels] */
    int64_t size; /* of value */
    struct dnn_err why;
};

struct row {
    const struct infer_volume *v;
    const struct dnn_window_cfg *window;
    int64_t channels; /* of the input                                              */
    int64_t tiles;    /* in a row, before those that are not needed are left out   */
    struct block block, ahead;
    pthread_t reader;
    bool reading;
    int64_t *tile, n; /* owned: the tiles that are computed together               */
    unsigned flip;    /* how they are flipped now                                  */
    bool failed;      /* to keep a box, with a message that names the sample       */
    unsigned flips[FLIPS];
    int nflips;
    float *sum[INFER_OUTPUTS]; /* owned: of the outputs of all flips      */
    struct dnn_blend *blend[INFER_OUTPUTS]; /* owned                                */
    struct sink {
        struct row *row;
        int output;
    } sink[INFER_OUTPUTS];
    int64_t *done; /* owned: points of each unit, of all outputs, that are complete */
};

/* Memory for values; NULL: an error. */
static float *allocate(const struct row *r, int64_t values, struct dnn_err *err)
{
    const size_t bytes = (size_t)values * sizeof(float) + 64;
    float *value = malloc(bytes);
    char text[32];

    if (value == NULL)
        dnn_fail(err, DNN_ENOMEM,
                 "%s: %s for a row of tiles do not fit into memory; reduce "
                 "inference.batch or inference.tile",
                 r->v->about->name, dnn_text_bytes(text, sizeof text, (double)bytes));
    return value;
}

/* ---- reading ahead ---- */

static bool wants(const struct row *r, int64_t tile)
{
    return dnn_window_wants(r->v->window, r->v->wanted, tile);
}

/* Extend a box by a tile, without its padding. */
static void widen(const struct row *r, int64_t tile, bool first, struct block *b)
{
    int64_t start[DNN_WINDOW_DIMS];

    dnn_window_start(r->v->window, tile, start);
    for (int d = 0; d < r->window->ndim; d++) {
        int64_t from = start[d] < 0 ? 0 : start[d], to = start[d] + r->window->tile[d];

        if (to > r->window->full[d]) to = r->window->full[d];
        if (!first && b->start[d] < from) from = b->start[d];
        if (!first && b->start[d] + b->extent[d] > to) to = b->start[d] + b->extent[d];
        b->start[d] = from;
        b->extent[d] = to - from;
    }
}

/* Find the next row, from a tile on; false: there is none. */
static bool find_row(const struct row *r, int64_t tile, struct block *b)
{
    int64_t tiles = dnn_window_tiles(r->v->window);
    bool any = false;

    for (b->end = tile; b->end < tiles && !any;) {
        b->tile = b->end;
        b->end = b->tile + r->tiles < tiles ? b->tile + r->tiles : tiles;
        for (int64_t t = b->tile; t < b->end; t++)
            if (wants(r, t)) {
                widen(r, t, !any, b);
                any = true;
            }
    }
    return any;
}

static void *read_block(void *arg)
{
    struct row *r = arg;
    struct block *b = &r->ahead;

    b->why = (struct dnn_err){0};
    dnn_infer_input_box(r->v->input, r->v->sample, b->start, b->extent, b->value,
                        &b->why);
    return NULL;
}

static int start_reading(struct row *r, struct dnn_err *err)
{
    struct block *b = &r->ahead;
    int64_t size = r->channels;

    for (int d = 0; d < r->window->ndim; d++)
        size *= b->extent[d];
    if (size > b->size) {
        free(b->value);
        b->value = allocate(r, size, err);
        b->size = b->value == NULL ? 0 : size;
        if (b->value == NULL) return err->code;
    }
    r->reading = pthread_create(&r->reader, NULL, read_block, r) == 0;
    if (r->reading) return 0; /* errors: when it has ended */
    read_block(r);
    return b->why.code < 0 ? (*err = b->why, err->code) : 0;
}

static void wait_for_reader(struct row *r)
{
    if (r->reading) pthread_join(r->reader, NULL);
    r->reading = false;
}

/* ---- the input of the network ---- */

/* Copy a tile with the current flips; points outside the sample are 0. */
static void copy_tile(const struct row *r, int64_t tile, float *to)
{
    const struct dnn_window_cfg *w = r->window;
    const struct block *b = &r->block;
    int64_t start[DNN_WINDOW_DIMS] = {0}, rows = 1;
    const int last = w->ndim - 1;
    const int64_t size = w->tile[last];
    const bool backwards = (r->flip & 1u << last) != 0;

    dnn_window_start(r->v->window, tile, start);
    for (int d = 0; d < last; d++)
        rows *= w->tile[d];
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < rows; i++) {
        float *line = to + i * size * r->channels;
        int64_t rest = i, at = 0, pitch = b->extent[last];
        bool outside = false;

        for (int d = last - 1; d >= 0; d--) {
            int64_t x = rest % w->tile[d];

            rest /= w->tile[d];
            x = start[d] + (r->flip & 1u << d ? w->tile[d] - 1 - x : x);
            outside = outside || x < 0 || x >= w->full[d];
            at += (x - b->start[d]) * pitch;
            pitch *= b->extent[d];
        }
        for (int64_t x = 0; x < size; x++) {
            int64_t from = start[last] + (backwards ? size - 1 - x : x);
            float *point = line + x * r->channels;

            if (outside || from < 0 || from >= w->full[last])
                memset(point, 0, (size_t)r->channels * sizeof *point);
            else
                memcpy(point, b->value + (at + from - b->start[last]) * r->channels,
                       (size_t)r->channels * sizeof *point);
        }
    }
}

static int fill(void *arg, void *to, struct dnn_err *err)
{
    const struct row *r = arg;
    int64_t size = r->channels;

    (void)err;
    for (int d = 0; d < r->window->ndim; d++)
        size *= r->window->tile[d];
    for (int64_t i = 0; i < r->n; i++)
        copy_tile(r, r->tile[i], (float *)to + i * size);
    memset((float *)to + r->n * size, 0,
           (size_t)((r->v->net->batch - r->n) * size) * sizeof(float));
    return 0;
}

/* ---- the outputs ---- */

/* Add the output of a tile to a sum, with the flips undone; the first one sets it. */
static void add_flipped(const struct row *r, const float *from, int64_t channels,
                        bool first, float *to)
{
    const struct dnn_window_cfg *w = r->window;
    int64_t points = 1;

    for (int d = 0; d < w->ndim; d++)
        points *= w->tile[d];
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < points; i++) {
        int64_t rest = i, at = 0, pitch = 1;

        for (int d = w->ndim - 1; d >= 0; d--) {
            int64_t x = rest % w->tile[d];

            rest /= w->tile[d];
            at += (r->flip & 1u << d ? w->tile[d] - 1 - x : x) * pitch;
            pitch *= w->tile[d];
        }
        for (int64_t c = 0; c < channels; c++)
            to[i * channels + c] =
                (first ? 0 : to[i * channels + c]) + from[at * channels + c];
    }
}

static int64_t tile_points(const struct row *r)
{
    int64_t points = 1;

    for (int d = 0; d < r->window->ndim; d++)
        points *= r->window->tile[d];
    return points;
}

/* Keep the outputs of the tiles for the current flips. */
static int keep_outputs(struct row *r, bool first, struct dnn_err *err)
{
    struct dnn_model *m = r->v->net->model;

    for (int k = 0; k < m->noutputs; k++) {
        int64_t channels = r->v->net->channels[k], size = tile_points(r) * channels;
        float *copy = NULL;
        const float *out = dnn_exec_view(m->exec, m->output[k], &copy, err);

        if (out == NULL) return err->code;
        if (r->nflips == 1) memcpy(r->sum[k], out, (size_t)(r->n * size) * sizeof *out);
        for (int64_t i = 0; i < r->n && r->nflips > 1; i++)
            add_flipped(r, out + i * size, channels, first, r->sum[k] + i * size);
        free(copy);
    }
    return 0;
}

static int blend_outputs(struct row *r, struct dnn_err *err)
{
    for (int k = 0; k < r->v->net->model->noutputs; k++) {
        int64_t channels = r->v->net->channels[k], points = tile_points(r);
        float *sum = r->sum[k];

        if (r->nflips > 1) {
            float one = 1.0f / (float)r->nflips;

            for (int64_t i = 0; i < r->n * points * channels; i++)
                sum[i] *= one;
        }
        dnn_infer_activate(r->v->r, k, sum, r->n * points, channels);
        for (int64_t i = 0; i < r->n; i++) {
            int rc = dnn_blend_add(r->blend[k], r->tile[i], sum + i * points * channels,
                                   err);

            if (rc < 0)
                return r->failed
                           ? rc
                           : dnn_prefix(err, "sample \"%s\": ", r->v->about->name);
        }
    }
    return 0;
}

static int compute(struct row *r, struct dnn_err *err)
{
    for (int f = 0; f < r->nflips; f++) {
        r->flip = r->flips[f];
        DNN_TRY(dnn_infer_net_run(r->v->net, fill, r, err));
        DNN_TRY(keep_outputs(r, f == 0, err));
    }
    DNN_TRY(blend_outputs(r, err));
    r->v->tiles(r->v->arg, r->n);
    return 0;
}

/* ---- complete boxes ---- */

static int evaluate(const struct row *r, const int64_t *start, const int64_t *extent,
                    const float *value, struct dnn_err *err)
{
    const struct infer_volume *v = r->v;
    const struct dnn_array *target;
    struct dnn_evaluate_part part = {
        .sample = v->sample, .name = v->about->name, .output = value};

    for (int d = 0; d < r->window->ndim; d++) {
        part.full[d] = r->window->full[d];
        part.start[d] = start[d];
        part.extent[d] = extent[d];
    }
    DNN_TRY(dnn_infer_target_box(v->input, v->sample, start, extent, &target, err));
    memcpy(part.spacing, target->spacing, sizeof part.spacing);
    if (v->r->task == DNN_EVALUATE_VALUES)
        part.values = target->data;
    else
        part.labels = target->data;
    return dnn_evaluate_add(v->r->evaluation, &part, err);
}

/* Count points of a unit; returns whether it is complete.  Units end where rows start,
 * so after a row no unit is complete in part. */
static bool count_points(struct row *r, int64_t unit, int64_t points)
{
    int64_t start[DNN_WINDOW_DIMS], extent[DNN_WINDOW_DIMS];

    dnn_window_unit(r->v->window, unit, start, extent);
    r->done[unit] += points;
    return r->done[unit] ==
           extent[0] * extent[1] * extent[2] * r->v->net->model->noutputs;
}

static int keep_box(const struct sink *sink, const int64_t start[DNN_WINDOW_DIMS],
                    const int64_t extent[DNN_WINDOW_DIMS], const float *value,
                    struct dnn_err *err)
{
    struct row *r = sink->row;
    struct infer_result *to = r->v->r;
    int64_t sample = r->v->sample, unit = dnn_window_unit_at(r->v->window, start);

    if (r->v->keep != NULL) {
        if (sink->output == 0) dnn_infer_plane_keep(r->v->keep, start, extent, value);
        return 0;
    }
    if (to->evaluation != NULL && sink->output == 0 &&
        !dnn_infer_resume_has(to, r->v->unit + unit))
        DNN_TRY(evaluate(r, start, extent, value, err));
    bool complete = count_points(r, unit, extent[0] * extent[1] * extent[2]);
    if (to->files == NULL) return 0;
    /* Of an interrupted run only the evaluation may be missing. */
    bool written = dnn_output_done(to->files, sample, unit);
    if (!written)
        DNN_TRY(
            dnn_output_put(to->files, sample, sink->output, start, extent, value, err));
    if (!complete) return 0;
    if (!written) DNN_TRY(dnn_output_unit(to->files, sample, unit, err));
    dnn_infer_resume_add(to, r->v->unit + unit);
    return 0;
}

static int done(void *arg, const int64_t start[DNN_WINDOW_DIMS],
                const int64_t extent[DNN_WINDOW_DIMS], const float *value,
                struct dnn_err *err)
{
    const struct sink *sink = arg;
    int rc = keep_box(sink, start, extent, value, err);

    sink->row->failed = rc < 0;
    return rc;
}

/* ---- the run ---- */

/* All combinations of the axes along which samples are flipped. */
static void set_flips(struct row *r)
{
    const struct dnn_list *axes = &r->v->net->config->infer->flips;
    unsigned all = 0;

    for (int64_t i = 0; i < axes->count; i++)
        all |= 1u << axes->ints[i];
    for (unsigned f = 0; f < FLIPS; f++)
        if ((f & ~all) == 0) r->flips[r->nflips++] = f;
}

static int open_outputs(struct row *r, struct dnn_err *err)
{
    const struct infer_volume *v = r->v;

    for (int k = 0; k < v->net->model->noutputs; k++) {
        const struct dnn_blend_cfg cfg = {.window = v->window,
                                          .channels = v->net->channels[k],
                                          .bounded = v->r->bounded[k],
                                          .wanted = v->wanted,
                                          .done = done,
                                          .arg = &r->sink[k]};

        r->sink[k] = (struct sink){r, k};
        r->sum[k] =
            allocate(r, v->net->batch * tile_points(r) * v->net->channels[k], err);
        if (r->sum[k] == NULL) return err->code;
        DNN_TRY(dnn_blend_open(&cfg, &r->blend[k], err));
    }
    return 0;
}

/* Compute the row that has been read, while the next one is read. */
static int one_row(struct row *r, bool *more, struct dnn_err *err)
{
    struct block now;

    wait_for_reader(r);
    if (r->ahead.why.code < 0) {
        *err = r->ahead.why;
        return err->code;
    }
    now = r->ahead;
    r->ahead = r->block;
    r->block = now;
    *more = find_row(r, now.end, &r->ahead);
    if (*more) DNN_TRY(start_reading(r, err));
    for (int64_t t = now.tile; t < now.end;) {
        for (r->n = 0; t < now.end && r->n < r->v->net->batch; t++)
            if (wants(r, t)) r->tile[r->n++] = t;
        if (r->n > 0) DNN_TRY(compute(r, err));
    }
    return 0;
}

static int run(struct row *r, struct dnn_err *err)
{
    const struct infer_volume *v = r->v;
    bool more = find_row(r, 0, &r->ahead);

    DNN_TRY(open_outputs(r, err));
    if (more) DNN_TRY(start_reading(r, err));
    while (more) {
        if (v->stop(v->arg)) return dnn_fail(err, DNN_ESTOP, "stopped");
        DNN_TRY(dnn_infer_resume_save(v->r, false, err));
        DNN_TRY(one_row(r, &more, err));
    }
    return 0;
}

int dnn_infer_volume_run(const struct infer_volume *v, struct dnn_err *err)
{
    struct row *r = dnn_alloc(sizeof *r);

    r->v = v;
    r->window = dnn_window_cfg(v->window);
    r->channels = v->about->shape.dim[v->about->shape.ndim - 1];
    int64_t in_row = dnn_window_row(v->window), rows = v->net->batch / in_row;
    r->tiles = in_row * (rows > 1 ? rows : 1);
    r->tile = dnn_alloc((size_t)v->net->batch * sizeof *r->tile);
    r->done = dnn_alloc((size_t)dnn_window_units(v->window) * sizeof *r->done);
    set_flips(r);
    int rc = run(r, err);
    wait_for_reader(r);
    for (int k = 0; k < INFER_OUTPUTS; k++) {
        dnn_blend_close(r->blend[k]);
        free(r->sum[k]);
    }
    free(r->block.value);
    free(r->ahead.value);
    dnn_free(r->done);
    dnn_free(r->tile);
    dnn_free(r);
    return rc;
}
