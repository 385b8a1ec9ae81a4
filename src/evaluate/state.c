/* state.c - what a rank has added, as bytes: to send it, or to continue later.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "evaluate/evaluate_impl.h"

#include <string.h>

/* ---- rows ---- */

/* Followed by counts, values, sums if there are any, the name, and the boxes. */
struct head {
    int64_t sample, full[3], points;
    double spacing[3];
    int64_t name, sums, boxes;
};
struct box_head {
    int64_t start[3], extent[3];
};

static size_t bytes_of_box(const struct dnn_evaluation *e, const int64_t extent[3])
{
    return (size_t)(2 * dnn_evaluate_points(extent) * dnn_evaluate_width(e));
}

void dnn_evaluate_pack(const struct dnn_evaluation *e, const struct evaluate_row *row,
                       struct dnn_buf *out)
{
    struct head head = {.sample = row->sample,
                        .points = row->points,
                        .name = (int64_t)strlen(row->name),
                        .sums = row->sum == NULL ? 0 : e->nsum,
                        .boxes = (int64_t)row->nboxes};

    memcpy(head.full, row->full, sizeof head.full);
    memcpy(head.spacing, row->spacing, sizeof head.spacing);
    dnn_buf_bytes(out, &head, sizeof head);
    dnn_buf_bytes(out, row->count, (size_t)e->ncount * sizeof *row->count);
    dnn_buf_bytes(out, row->value, (size_t)e->nvalue * sizeof *row->value);
    if (head.sums > 0)
        dnn_buf_bytes(out, row->sum, (size_t)head.sums * sizeof *row->sum);
    dnn_buf_bytes(out, row->name, (size_t)head.name);
    for (size_t i = 0; i < row->nboxes; i++) {
        const struct evaluate_box *box = &row->box[i];
        struct box_head is;

        memcpy(is.start, box->start, sizeof is.start);
        memcpy(is.extent, box->extent, sizeof is.extent);
        dnn_buf_bytes(out, &is, sizeof is);
        dnn_buf_bytes(out, box->map, bytes_of_box(e, is.extent));
    }
}

static void take(const char **at, void *out, size_t bytes)
{
    if (bytes > 0) memcpy(out, *at, bytes);
    *at += bytes;
}

/* The boxes of a row, for dnn_evaluate_unpack(). */
static const char *take_boxes(const struct dnn_evaluation *e, const char *at, int64_t n,
                              struct evaluate_row *row)
{
    for (int64_t i = 0; i < n; i++) {
        struct box_head is;
        unsigned char *map;

        take(&at, &is, sizeof is);
        if (dnn_evaluate_box(e, row, is.start, is.extent, &map, NULL) < 0) return NULL;
        take(&at, map, bytes_of_box(e, is.extent));
    }
    return at;
}

const char *dnn_evaluate_unpack(struct dnn_evaluation *e, const char *at)
{
    struct head head;

    take(&at, &head, sizeof head);
    struct evaluate_row *row = dnn_evaluate_row(
        e, head.sample, "", head.points < dnn_evaluate_points(head.full));
    memcpy(row->full, head.full, sizeof row->full);
    memcpy(row->spacing, head.spacing, sizeof row->spacing);
    row->points = head.points;
    take(&at, row->count, (size_t)e->ncount * sizeof *row->count);
    take(&at, row->value, (size_t)e->nvalue * sizeof *row->value);
    take(&at, row->sum, (size_t)head.sums * sizeof *row->sum);
    char *name = dnn_arena_alloc(e->arena, (size_t)head.name + 1);
    take(&at, name, (size_t)head.name);
    row->name = name;
    return take_boxes(e, at, head.boxes, row);
}

/* ---- the state ---- */

/* Followed by cells and rows.  Two evaluations that agree in it have the same rows. */
struct state {
    char magic[16];
    int64_t task, classes, channels, counts, values, sums, cells, rows;
};

static struct state state_of(const struct dnn_evaluation *e)
{
    return (struct state){.magic = "dnn-evaluate 1\n",
                          .task = e->cfg.task,
                          .classes = e->cfg.classes,
                          .channels = e->cfg.channels,
                          .counts = e->ncount,
                          .values = e->nvalue,
                          .sums = e->nsum,
                          .cells = e->ncell,
                          .rows = (int64_t)e->nrows};
}

void dnn_evaluate_save(const struct dnn_evaluation *e, struct dnn_buf *out)
{
    struct state state = state_of(e);

    dnn_buf_bytes(out, &state, sizeof state);
    dnn_buf_bytes(out, e->cell, (size_t)e->ncell * sizeof *e->cell);
    for (size_t i = 0; i < e->nrows; i++)
        dnn_evaluate_pack(e, &e->row[i], out);
}

/* Whether `left` bytes are at least n * size; then they are taken off. */
static bool has(size_t *left, int64_t n, size_t size)
{
    if (n < 0 || (size > 0 && (size_t)n > *left / size)) return false;
    *left -= (size_t)n * size;
    return true;
}

static bool is_extent(const int64_t extent[3])
{
    int64_t n = 1;

    for (int d = 0; d < 3; d++)
        if (extent[d] < 1 || __builtin_mul_overflow(n, extent[d], &n)) return false;
    return n < INT64_MAX / 8;
}

/* Whether a row is complete in the bytes; returns where it ends, NULL: it is not. */
static const char *check_row(const struct dnn_evaluation *e, const char *at,
                             const char *end)
{
    size_t left = (size_t)(end - at);
    struct head head;
    struct box_head is;

    if (left < sizeof head) return NULL;
    memcpy(&head, at, sizeof head);
    left -= sizeof head;
    if (!is_extent(head.full) || head.points < 1 ||
        head.points > dnn_evaluate_points(head.full) || head.boxes < 0 ||
        head.sums != (head.points < dnn_evaluate_points(head.full) ? e->nsum : 0) ||
        !has(&left, e->ncount, sizeof(int64_t)) ||
        !has(&left, e->nvalue, sizeof(double)) ||
        !has(&left, head.sums, sizeof(struct evaluate_sum)) ||
        !has(&left, head.name, 1))
        return NULL;
    for (int64_t i = 0; i < head.boxes; i++) {
        if (left < sizeof is) return NULL;
        memcpy(&is, end - left, sizeof is);
        left -= sizeof is;
        if (!is_extent(is.extent) || !has(&left, 1, bytes_of_box(e, is.extent)))
            return NULL;
        for (int d = 0; d < 3; d++)
            if (is.start[d] < 0 || is.start[d] > head.full[d] - is.extent[d])
                return NULL;
    }
    return end - left;
}

static bool is_state(const struct dnn_evaluation *e, const char *bytes, size_t len)
{
    struct state want = state_of(e), is;
    const char *end = bytes + len, *at = bytes + sizeof is;
    size_t left = len - sizeof is;

    if (len < sizeof is) return false;
    memcpy(&is, bytes, sizeof is);
    want.rows = is.rows;
    if (memcmp(&is, &want, sizeof is) != 0 || !has(&left, e->ncell, sizeof *e->cell))
        return false;
    at = end - left;
    for (int64_t i = 0; i < is.rows && at != NULL; i++)
        at = check_row(e, at, end);
    return at == end;
}

/* Join the last row with an earlier one of the same sample that is incomplete. */
static int join_last(struct dnn_evaluation *e, struct dnn_err *err)
{
    struct evaluate_row *last = &e->row[e->nrows - 1], *row = NULL;

    if (last->points == dnn_evaluate_points(last->full)) return 0;
    for (size_t i = 0; i + 1 < e->nopen && row == NULL; i++)
        if (e->row[e->open[i]].sample == last->sample) row = &e->row[e->open[i]];
    if (row == NULL) return 0;
    DNN_TRY(dnn_evaluate_merge(e, row, last, err));
    for (size_t i = 0; i < last->nboxes; i++) {
        row->box = dnn_grow(row->box, &row->boxcap, row->nboxes + 1, sizeof *row->box);
        row->box[row->nboxes++] = last->box[i];
    }
    last->nboxes = 0; /* its maps have moved */
    dnn_evaluate_row_shrink(last);
    e->nrows--;
    e->nopen--;
    if (row->points < dnn_evaluate_points(row->full)) return 0;
    if (e->cfg.surfaces) DNN_TRY(dnn_evaluate_measure(e, row, err));
    dnn_evaluate_row_complete(e, row);
    return 0;
}

int dnn_evaluate_load(struct dnn_evaluation *e, const void *bytes, size_t len,
                      struct dnn_err *err)
{
    const char *at = bytes, *end = at + len;

    if (!is_state(e, bytes, len))
        return dnn_fail(err, DNN_EDATA,
                        "the saved evaluation is damaged, or of another run");
    at += sizeof(struct state);
    for (int64_t i = 0; i < e->ncell; i++, at += sizeof *e->cell) {
        int64_t n;

        memcpy(&n, at, sizeof n);
        e->cell[i] += n;
    }
    while (at < end) {
        at = dnn_evaluate_unpack(e, at);
        if (at == NULL)
            return dnn_fail(err, DNN_ENOMEM,
                            "the class maps of incomplete samples do not fit into "
                            "memory; set inference.surfaces to false");
        DNN_TRY(join_last(e, err));
    }
    return 0;
}
