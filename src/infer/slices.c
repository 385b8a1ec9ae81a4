/* slices.c - puts the outputs for slices together to volumes.
 *
 * A rank adds the slices that it has computed to sums of its own.  Slices come in the
 * order of their numbers, so that the planes of a volume become complete one after the
 * other, along the first axis on which there are several slices.  The sums of complete
 * planes are added up over all ranks, and each rank writes some of them.  A volume
 * therefore need not fit into memory.  Sums are integers: their bits do not depend on
 * the number of ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "infer/infer_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double unit = 4294967296.0; /* 2^32: integers of the value 1 */
static const double most = 1073741824.0; /* sums of values must be smaller */

/* A volume of a slicer, of which some planes are not complete. */
struct volume {
    const struct dnn_slices *cut;
    int axis;       /* along which planes are counted                              */
    int64_t plane;  /* elements of a plane                                         */
    int64_t first;  /* the first plane that is not written                         */
    int64_t planes; /* for which there are sums                                    */
    int64_t *sum;   /* owned: [planes][the other axes][channels]                   */
    int64_t *count[DNN_MAX_SPACE]; /* owned: boxes at each point of an axis           */
    double most;                   /* a value must be smaller, for all boxes to fit   */
    bool ready;
};

struct infer_slices {
    struct infer_result *r;
    const struct dnn_source_slices *how;
    int64_t channels;
    int64_t open; /* the first volume that is not written */
    int64_t nvolumes;
    struct volume *volume; /* owned */
    float *out;            /* owned: a plane */
    int64_t out_size;
};

/* ---- geometry ---- */

static void ready(struct infer_slices *s, int64_t number)
{
    struct volume *v = &s->volume[number];
    int64_t start[DNN_MAX_SPACE];

    if (v->ready) return;
    v->ready = true;
    v->most = most;
    v->cut = &s->how->put[number % s->how->nsets];
    v->plane = s->channels;
    while (v->axis + 1 < v->cut->nspace && v->cut->count[v->axis] == 1)
        v->axis++;
    for (int d = 0; d < v->cut->nspace; d++) {
        const struct dnn_slices *c = v->cut;

        if (d != v->axis) v->plane *= c->full[d];
        int64_t boxes = 1;

        v->count[d] = dnn_alloc((size_t)c->full[d] * sizeof *v->count[d]);
        for (int64_t i = 0; i < c->count[d]; i++)
            for (int64_t x = 0; x < c->size[d]; x++)
                if (i * c->stride[d] + x < c->full[d])
                    v->count[d][i * c->stride[d] + x]++;
        for (int64_t x = 0; x < c->full[d]; x++)
            if (v->count[d][x] > boxes) boxes = v->count[d][x];
        v->most /= (double)boxes;
    }
    dnn_slices_start(v->cut, 0, start);
    v->first = start[v->axis];
}

/* The sums of planes up to `last`, which exist afterwards. */
static int need_planes(struct volume *v, int64_t last, struct dnn_err *err)
{
    if (last > v->cut->full[v->axis]) last = v->cut->full[v->axis];
    if (last - v->first <= v->planes) return 0;
    size_t old = (size_t)(v->planes * v->plane) * sizeof *v->sum;
    size_t now = (size_t)((last - v->first) * v->plane) * sizeof *v->sum;
    int64_t *sum = realloc(v->sum, now);

    if (sum == NULL)
        return dnn_fail(err, DNN_ENOMEM,
                        "the sums of %" PRId64
                        " planes of a volume, %zu MB, do not fit "
                        "into memory; reduce data.test_batch_size",
                        last - v->first, now >> 20);
    memset((char *)sum + old, 0, now - old);
    v->sum = sum;
    v->planes = last - v->first;
    return 0;
}

/* The step in the array of a box along each axis of the volume, and the offset of the
 * first point that is not padding. */
static int64_t box_steps(const struct dnn_slices *c, int64_t channels,
                         int64_t step[DNN_MAX_SPACE])
{
    int axis[DNN_MAX_SPACE], n = dnn_slices_axes(c, axis);
    int64_t at = 0, size = channels;

    memset(step, 0, DNN_MAX_SPACE * sizeof *step);
    for (int i = n - 1; i >= 0; i--) {
        int d = axis[i];

        step[d] = size;
        at += c->before[d] * size;
        size *= c->before[d] + c->size[d] + c->after[d];
    }
    return at;
}

/* ---- adding ---- */

struct adder {
    const struct infer_slices *s;
    struct volume *v;
    const float *box;
    int64_t start[DNN_MAX_SPACE], step[DNN_MAX_SPACE], to[DNN_MAX_SPACE];
    int64_t at; /* the first point of the box */
    bool bad;
};

/* Add the points of the box from dimension d on. */
static void add_axis(struct adder *a, int d, int64_t at, int64_t to)
{
    const struct dnn_slices *c = a->v->cut;

    if (d == c->nspace) {
        for (int64_t k = 0; k < a->s->channels; k++) {
            float x = a->box[at + k];

            a->bad |= !(fabs((double)x) < a->v->most);
            a->v->sum[to + k] += a->bad ? 0 : llrint((double)x * unit);
        }
        return;
    }
    for (int64_t x = 0; x < c->size[d] && a->start[d] + x < c->full[d]; x++)
        add_axis(a, d + 1, at + x * a->step[d],
                 to + (a->start[d] + x - (d == a->v->axis ? a->v->first : 0)) *
                          a->to[d]);
}

/* Whether an interrupted run has completed a volume. */
static bool is_done(const struct infer_slices *s, int64_t number)
{
    return s->r->files != NULL && dnn_output_done(s->r->files, number, 0);
}

int dnn_infer_slices_add(struct infer_slices *s, int64_t sample, const float *value,
                         struct dnn_err *err)
{
    int64_t volume, box, size = s->channels;
    char name[DNN_SAMPLE_NAME];
    int set;

    dnn_source_slice_at(s->how, sample, &volume, &set, &box);
    if (is_done(s, volume * s->how->nsets + set)) return 0;
    ready(s, volume * s->how->nsets + set);
    struct adder a = {
        .s = s, .v = &s->volume[volume * s->how->nsets + set], .box = value};
    const struct dnn_slices *c = a.v->cut;
    dnn_slices_start(c, box, a.start);
    DNN_TRY(need_planes(a.v, a.start[a.v->axis] + c->size[a.v->axis], err));
    a.to[a.v->axis] = a.v->plane;
    for (int d = c->nspace - 1; d >= 0; d--)
        if (d != a.v->axis) {
            a.to[d] = size;
            size *= c->full[d];
        }
    add_axis(&a, 0, box_steps(c, s->channels, a.step), 0);
    if (!a.bad) return 0;
    dnn_source_label(s->how->from, volume, name);
    return dnn_fail(err, DNN_EDATA,
                    "%s: the output for slice %" PRId64
                    " of slicer \"%s\" has a value that is NaN, infinite or above %g",
                    name, box, s->how->name[set], a.v->most);
}

/* ---- writing ---- */

/* Divide the sums of a plane by the number of boxes at each point. */
static void divide(const struct infer_slices *s, const struct volume *v, int64_t plane,
                   const int64_t *sum)
{
    const struct dnn_slices *c = v->cut;
    int64_t extent[DNN_MAX_SPACE] = {1, 1, 1}, n = s->channels;
    int64_t along = v->count[v->axis][plane];

    for (int d = 0; d < c->nspace; d++)
        if (d != v->axis) extent[d] = c->full[d];
    for (int64_t i = 0; i < v->plane / n; i++) {
        int64_t rest = i, boxes = along;

        for (int d = c->nspace - 1; d >= 0; d--) {
            if (d != v->axis) boxes *= v->count[d][rest % extent[d]];
            rest /= extent[d];
        }
        for (int64_t k = 0; k < n; k++)
            s->out[i * n + k] =
                boxes == 0 ? 0 : (float)((double)sum[i * n + k] / unit / (double)boxes);
    }
}

static int write_plane(struct infer_slices *s, int64_t number, int64_t plane,
                       const int64_t *sum, struct dnn_err *err)
{
    const struct volume *v = &s->volume[number];
    int64_t start[DNN_MAX_SPACE] = {0}, extent[DNN_MAX_SPACE] = {1, 1, 1};

    if (s->r->files == NULL) return 0;
    for (int d = 0; d < v->cut->nspace; d++)
        extent[d] = v->cut->full[d];
    start[v->axis] = plane;
    extent[v->axis] = 1;
    divide(s, v, plane, sum);
    return dnn_output_put(s->r->files, number, 0, start, extent, s->out, err);
}

/* Collective.  Write the planes of a volume before `last`. */
static int write_planes(struct infer_slices *s, int64_t number, int64_t last,
                        struct dnn_err *err)
{
    struct dnn_comm *comm = s->r->session->comm;
    struct volume *v = &s->volume[number];
    int64_t n = last - v->first;

    if (n <= 0) return 0;
    if (v->plane > s->out_size) {
        free(s->out);
        s->out = malloc((size_t)v->plane * sizeof *s->out);
        s->out_size = v->plane;
    }
    int rc = s->out == NULL ? dnn_fail(err, DNN_ENOMEM,
                                       "a plane of a volume does not "
                                       "fit into memory")
                            : need_planes(v, last, err);
    DNN_TRY(dnn_comm_agree(comm, rc, err));
    for (int64_t i = 0; i < n && rc == 0; i++)
        rc = dnn_comm_allreduce(comm, "planes of a volume", v->sum + i * v->plane,
                                v->plane, DNN_COMM_I64, DNN_COMM_SUM, err);
    for (int64_t i = dnn_comm_rank(comm); i < n && rc == 0; i += dnn_comm_size(comm))
        rc = write_plane(s, number, v->first + i, v->sum + i * v->plane, err);
    rc = dnn_comm_agree(comm, rc, err);
    v->planes -= n;
    v->first = last;
    memmove(v->sum, v->sum + n * v->plane,
            (size_t)(v->planes * v->plane) * sizeof *v->sum);
    return rc;
}

/* Collective.  The planes of all ranks are on disk before rank 0 records the volume. */
static int complete(struct infer_slices *s, int64_t number, struct dnn_err *err)
{
    struct dnn_comm *comm = s->r->session->comm;

    if (s->r->files == NULL) return 0;
    int rc = s->r->resumes ? dnn_output_sync_open(s->r->files, err) : 0;
    DNN_TRY(dnn_comm_agree(comm, rc, err));
    if (dnn_comm_rank(comm) == 0) rc = dnn_output_unit(s->r->files, number, 0, err);
    return dnn_comm_agree(comm, rc, err);
}

int dnn_infer_slices_finish(struct infer_slices *s, int64_t done, struct dnn_err *err)
{
    int64_t first = s->open / s->how->nsets * s->how->each, start[DNN_MAX_SPACE];

    for (int k = 0; k < s->open % s->how->nsets; k++)
        first += s->how->set[k].total;
    while (s->open < s->nvolumes && first < done) {
        int64_t total = s->how->set[s->open % s->how->nsets].total;
        bool all = first + total <= done;

        if (is_done(s, s->open)) {
            if (!all) return 0;
            first += total;
            s->open++;
            continue;
        }
        ready(s, s->open);
        struct volume *v = &s->volume[s->open];
        dnn_slices_start(v->cut, all ? 0 : done - first, start);
        DNN_TRY(write_planes(s, s->open, all ? v->cut->full[v->axis] : start[v->axis],
                             err));
        if (!all) return 0;
        first += total;
        free(v->sum);
        v->sum = NULL;
        v->planes = 0;
        DNN_TRY(complete(s, s->open, err));
        s->open++;
    }
    return 0;
}

/* ---- the volumes ---- */

int64_t dnn_infer_slices_first(const struct infer_slices *s)
{
    int64_t first = 0;

    for (int64_t i = 0; i < s->nvolumes && is_done(s, i); i++)
        first += s->how->set[i % s->how->nsets].total;
    return first;
}

int64_t dnn_infer_slices_count(const struct infer_slices *s)
{
    return s->nvolumes;
}

int dnn_infer_slices_describe(void *slices, int64_t volume,
                              struct dnn_output_sample *out, struct dnn_err *err)
{
    const struct infer_slices *s = slices;
    const struct dnn_source *from = s->how->from;
    const char *set = s->how->name[volume % s->how->nsets];
    char label[DNN_SAMPLE_NAME];
    const struct dnn_slices *put = &s->how->put[volume % s->how->nsets];
    int input = 0;

    memset(out, 0, sizeof *out);
    dnn_source_label(from, volume / s->how->nsets, label);
    if (from->count == 1)
        snprintf(out->name, sizeof out->name, "%.500s", set);
    else
        snprintf(out->name, sizeof out->name, "%.400s/%.100s", label, set);
    out->shape[0].ndim = put->nspace + 1;
    memcpy(out->shape[0].dim, put->full, (size_t)put->nspace * sizeof *put->full);
    out->shape[0].dim[put->nspace] = s->channels;
    out->units = 1;
    out->channels_last = true;
    out->input = dnn_source_file(from, volume / s->how->nsets);
    while (from->col[input].role != DNN_ROLE_INPUT)
        input++;
    return dnn_infer_position(s->r->config, from, volume / s->how->nsets, input,
                              &out->shape[0], &out->position, err);
}

static int check(const struct infer_slices *s, const struct dnn_shape *shape,
                 struct dnn_err *err)
{
    struct dnn_shape expected;
    char a[DNN_SHAPE_TEXT], b[DNN_SHAPE_TEXT];

    if (s->r->noutputs != 1)
        return dnn_fail(err, DNN_ECONFIG,
                        "data.slicers: the network has %d outputs; slices can be put "
                        "together for one output only",
                        s->r->noutputs);
    dnn_slices_shape(&s->how->set[0], s->channels, &expected);
    if (dnn_shape_equal(shape, &expected)) return 0;
    return dnn_fail(
        err, DNN_ECONFIG,
        "data.slicers: the network outputs slices of %s; only %s can be put "
        "together",
        dnn_shape_text(a, sizeof a, shape), dnn_shape_text(b, sizeof b, &expected));
}

int dnn_infer_slices_make(struct infer_result *r, const struct dnn_source_slices *how,
                          const struct dnn_shape *shape, struct infer_slices **out,
                          struct dnn_err *err)
{
    struct infer_slices *s = dnn_alloc(sizeof *s);

    s->r = r;
    s->how = how;
    s->channels = shape->dim[shape->ndim - 1];
    s->nvolumes = how->from->count * how->nsets;
    s->volume = dnn_alloc((size_t)(s->nvolumes + 1) * sizeof *s->volume);
    *out = s;
    return check(s, shape, err);
}

void dnn_infer_slices_free(struct infer_slices *s)
{
    if (s == NULL) return;
    for (int64_t i = 0; i < s->nvolumes; i++) {
        free(s->volume[i].sum);
        for (int d = 0; d < DNN_MAX_SPACE; d++)
            dnn_free(s->volume[i].count[d]);
    }
    dnn_free(s->volume);
    free(s->out);
    dnn_free(s);
}
