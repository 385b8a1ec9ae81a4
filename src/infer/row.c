/* row.c - computes slabs of a sample, one row of tiles after the other.
 *
 * A row is all tiles that start at the same plane of axis 0.  The planes of the next
 * row are read while the network computes this one.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "infer/volume_impl.h"

#include "base/mem.h"
#include "sample/sample.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { FLIPS = 1 << DNN_WINDOW_DIMS };

/* The planes of a row of tiles. */
struct planes {
    int64_t first, n; /* of the sample */
    float *value;     /* owned: [n][the other axes][channels] */
    struct dnn_err why;
};

struct row {
    const struct infer_volume *v;
    const struct dnn_window_cfg *window;
    int64_t channels; /* of the input                                              */
    int64_t plane;    /* elements of a plane of the input                          */
    struct planes planes, ahead;
    pthread_t reader;
    bool reading;
    int64_t first, n; /* the tiles that are computed together                      */
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
    struct slab {
        int64_t points, missing; /* of all outputs; those that are not complete    */
    } *slab;                     /* owned */
};

/* ---- reading ahead ---- */

static void find_planes(const struct row *r, int64_t tile, struct planes *out)
{
    int64_t start[DNN_WINDOW_DIMS];

    dnn_window_start(r->v->window, tile, start);
    int64_t last = start[0] + r->window->tile[0];
    if (last > r->window->full[0]) last = r->window->full[0];
    out->first = start[0] < 0 ? 0 : start[0];
    out->n = last - out->first;
}

static void *read_planes(void *arg)
{
    struct row *r = arg;
    struct planes *p = &r->ahead;
    int64_t start[DNN_WINDOW_DIMS] = {p->first}, extent[DNN_WINDOW_DIMS] = {p->n};

    for (int d = 1; d < r->window->ndim; d++)
        extent[d] = r->window->full[d];
    p->why = (struct dnn_err){0};
    dnn_infer_input_box(r->v->input, r->v->sample, start, extent, p->value, &p->why);
    return NULL;
}

static int start_reading(struct row *r, int64_t tile, struct dnn_err *err)
{
    find_planes(r, tile, &r->ahead);
    r->reading = pthread_create(&r->reader, NULL, read_planes, r) == 0;
    if (r->reading) return 0; /* errors: when it has ended */
    read_planes(r);
    return r->ahead.why.code < 0 ? (*err = r->ahead.why, err->code) : 0;
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
    int64_t start[DNN_WINDOW_DIMS] = {0}, size[DNN_WINDOW_DIMS] = {1, 1, 1};
    int64_t full[DNN_WINDOW_DIMS] = {1, 1, 1};

    dnn_window_start(r->v->window, tile, start);
    for (int d = 0; d < w->ndim; d++) {
        size[d] = w->tile[d];
        full[d] = w->full[d];
    }
    int last = w->ndim - 1;
    bool backwards = (r->flip & 1u << last) != 0;
    int64_t rows = 1;
    for (int d = 0; d < last; d++)
        rows *= size[d];
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < rows; i++) {
        float *line = to + i * size[last] * r->channels;
        int64_t rest = i, at = 0, pitch = full[last], first = r->planes.first;
        bool outside = false;

        for (int d = last - 1; d >= 0; d--) {
            int64_t x = rest % size[d];

            rest /= size[d];
            x = start[d] + (r->flip & 1u << d ? size[d] - 1 - x : x);
            outside = outside || x < 0 || x >= full[d];
            at += (d == 0 ? x - first : x) * pitch;
            pitch *= full[d];
        }
        for (int64_t x = 0; x < size[last]; x++) {
            int64_t from = start[last] + (backwards ? size[last] - 1 - x : x);
            float *point = line + x * r->channels;

            if (outside || from < 0 || from >= full[last])
                memset(point, 0, (size_t)r->channels * sizeof *point);
            else
                memcpy(point,
                       r->planes.value +
                           (at + (last == 0 ? from - first : from)) * r->channels,
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
        copy_tile(r, r->first + i, (float *)to + i * size);
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
            int rc = dnn_blend_add(r->blend[k], r->first + i,
                                   sum + i * points * channels, err);

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

/* The slab that a plane is in. */
static int64_t slab_of(const struct row *r, int64_t plane)
{
    for (int64_t s = r->v->from; s < r->v->to; s++) {
        int64_t first, n;

        dnn_window_slab(r->v->window, s, &first, &n);
        if (plane < first + n) return s;
    }
    return r->v->to - 1;
}

static int keep_box(const struct sink *sink, const int64_t start[DNN_WINDOW_DIMS],
                    const int64_t extent[DNN_WINDOW_DIMS], const float *value,
                    struct dnn_err *err)
{
    struct row *r = sink->row;
    struct infer_result *to = r->v->r;
    int64_t points = 1, slab = slab_of(r, start[0]), sample = r->v->sample;
    struct slab *s = &r->slab[slab - r->v->from];

    if (r->v->keep != NULL) {
        if (sink->output == 0) dnn_infer_plane_keep(r->v->keep, start, extent, value);
        return 0;
    }
    for (int d = 0; d < r->window->ndim; d++)
        points *= extent[d];
    if (to->evaluation != NULL && sink->output == 0 &&
        !dnn_infer_resume_has(to, r->v->unit + slab))
        DNN_TRY(evaluate(r, start, extent, value, err));
    s->missing -= points;
    if (to->files == NULL) return 0;
    /* Of an interrupted run only the evaluation may be missing. */
    bool written = dnn_output_done(to->files, sample, slab);
    if (!written)
        DNN_TRY(
            dnn_output_put(to->files, sample, sink->output, start, extent, value, err));
    if (s->missing > 0) return 0;
    if (!written) DNN_TRY(dnn_output_unit(to->files, sample, slab, err));
    dnn_infer_resume_add(to, r->v->unit + slab);
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

/* Whether a slab is complete in part. */
static bool is_torn(const struct row *r)
{
    for (int64_t s = 0; s < r->v->to - r->v->from; s++)
        if (r->slab[s].missing > 0 && r->slab[s].missing < r->slab[s].points)
            return true;
    return false;
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

static int allocate(struct row *r, struct dnn_err *err)
{
    const struct infer_volume *v = r->v;
    const struct dnn_config_infer *how = v->net->config->infer;
    int64_t planes = r->window->tile[0], other = 1;

    if (planes > r->window->full[0]) planes = r->window->full[0];
    for (int d = 1; d < r->window->ndim; d++)
        other *= r->window->full[d];
    r->plane = other * r->channels;
    r->planes.value = malloc((size_t)(planes * r->plane) * sizeof(float) + 64);
    r->ahead.value = malloc((size_t)(planes * r->plane) * sizeof(float) + 64);
    bool all = r->planes.value != NULL && r->ahead.value != NULL;
    r->slab = dnn_alloc((size_t)(v->to - v->from + 1) * sizeof *r->slab);
    for (int64_t s = v->from; s < v->to; s++) {
        int64_t first, n;

        dnn_window_slab(v->window, s, &first, &n);
        r->slab[s - v->from].points = r->slab[s - v->from].missing =
            n * other * v->net->model->noutputs;
    }
    for (int k = 0; k < v->net->model->noutputs && all; k++) {
        const struct dnn_blend_cfg cfg = {.window = v->window,
                                          .channels = v->net->channels[k],
                                          .bounded = v->r->bounded[k],
                                          .from = v->from,
                                          .to = v->to,
                                          .memory = (size_t)how->memory,
                                          .done = done,
                                          .arg = &r->sink[k]};

        r->sink[k] = (struct sink){r, k};
        r->sum[k] = malloc((size_t)(v->net->batch * tile_points(r)) *
                               (size_t)v->net->channels[k] * sizeof(float) +
                           64);
        all = r->sum[k] != NULL;
        DNN_TRY(dnn_blend_open(&cfg, &r->blend[k], err));
    }
    return all ? 0
               : dnn_fail(err, DNN_ENOMEM,
                          "%s: the planes of a row of tiles do not fit into memory",
                          v->about->name);
}

/* Whether two tiles are in the same row. */
static bool same_row(const struct row *r, int64_t a, int64_t b)
{
    int64_t x[DNN_WINDOW_DIMS], y[DNN_WINDOW_DIMS];

    dnn_window_start(r->v->window, a, x);
    dnn_window_start(r->v->window, b, y);
    return x[0] == y[0];
}

static int one_row(struct row *r, int64_t first, int64_t next, int64_t last,
                   struct dnn_err *err)
{
    struct planes now;

    wait_for_reader(r);
    if (r->ahead.why.code < 0) {
        *err = r->ahead.why;
        return err->code;
    }
    now = r->ahead;
    r->ahead = r->planes;
    r->planes = now;
    if (next < last) DNN_TRY(start_reading(r, next, err));
    for (int64_t t = first; t < next; t += r->n) {
        r->first = t;
        r->n = next - t < r->v->net->batch ? next - t : r->v->net->batch;
        DNN_TRY(compute(r, err));
    }
    return 0;
}

static int run(struct row *r, struct dnn_err *err)
{
    const struct infer_volume *v = r->v;
    int64_t tile, last, next;

    dnn_window_slab_tiles(v->window, v->from, v->to, &tile, &last);
    DNN_TRY(allocate(r, err));
    DNN_TRY(start_reading(r, tile, err));
    for (; tile < last; tile = next) {
        next = tile + 1;
        while (next < last && same_row(r, tile, next))
            next++;
        /* The last row may begin within a slab: then it is computed, too. */
        bool stops = v->stop(v->arg), torn = is_torn(r);
        if (!torn && !stops) DNN_TRY(dnn_infer_resume_save(v->r, false, err));
        if (torn || !stops) DNN_TRY(one_row(r, tile, next, last, err));
        if (stops) return dnn_fail(err, DNN_ESTOP, "stopped");
    }
    return 0;
}

int dnn_infer_volume_run(const struct infer_volume *v, struct dnn_err *err)
{
    struct row *r = dnn_alloc(sizeof *r);

    r->v = v;
    r->window = dnn_window_cfg(v->window);
    r->channels = v->about->shape.dim[v->about->shape.ndim - 1];
    set_flips(r);
    int rc = run(r, err);
    wait_for_reader(r);
    for (int k = 0; k < INFER_OUTPUTS; k++) {
        dnn_blend_close(r->blend[k]);
        free(r->sum[k]);
    }
    free(r->planes.value);
    free(r->ahead.value);
    dnn_free(r->slab);
    dnn_free(r);
    return rc;
}
