/* boxes.c - class maps of samples that arrive in boxes, on one or several ranks.
 *
 * A sample is measured when all of it is on one rank.  The boxes of samples that are on
 * several ranks are broadcast when all parts have been added.  Each rank keeps those of
 * one sample, and all ranks measure theirs at the same time; then come the next
 * samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "evaluate/evaluate_impl.h"

#include "comm/collect.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 16 << 20 };

int dnn_evaluate_width(const struct dnn_evaluation *e)
{
    return e->cfg.classes <= UINT8_MAX ? 1 : 2;
}

static int allocate(const struct dnn_evaluation *e, const struct evaluate_row *row,
                    const int64_t extent[3], unsigned char **out, struct dnn_err *err)
{
    const int64_t bytes = 2 * dnn_evaluate_points(extent) * dnn_evaluate_width(e);

    *out = malloc((size_t)bytes);
    if (*out != NULL) return 0;
    return dnn_fail(err, DNN_ENOMEM,
                    "sample \"%s\" (%lld): class maps of %lld bytes do not fit into "
                    "memory; set inference.surfaces to false",
                    row->name, (long long)row->sample, (long long)bytes);
}

int dnn_evaluate_box(const struct dnn_evaluation *e, struct evaluate_row *row,
                     const int64_t start[3], const int64_t extent[3],
                     unsigned char **map, struct dnn_err *err)
{
    struct evaluate_box box;

    DNN_TRY(allocate(e, row, extent, &box.map, err));
    memcpy(box.start, start, sizeof box.start);
    memcpy(box.extent, extent, sizeof box.extent);
    row->box = dnn_grow(row->box, &row->boxcap, row->nboxes + 1, sizeof *row->box);
    row->box[row->nboxes++] = box;
    *map = box.map;
    return 0;
}

/* Copy the maps of a box into those of its sample. */
static void paint(const struct evaluate_row *row, const struct evaluate_box *box,
                  int width, unsigned char *map)
{
    const int64_t *full = row->full, *n = box->extent;
    const size_t bytes = (size_t)(n[2] * width);
    const unsigned char *from = box->map;

    for (int k = 0; k < 2; k++, map += dnn_evaluate_points(full) * width)
        for (int64_t z = 0; z < n[0]; z++)
            for (int64_t y = 0; y < n[1]; y++, from += bytes) {
                int64_t at = (box->start[0] + z) * full[1] + box->start[1] + y;

                memcpy(map + (at * full[2] + box->start[2]) * width, from, bytes);
            }
}

static int measure_map(const struct dnn_evaluation *e, struct evaluate_row *row,
                       const unsigned char *map, struct dnn_err *err)
{
    struct evaluate_volume v = {.ndim = e->cfg.ndim, .width = dnn_evaluate_width(e)};

    memcpy(v.extent, row->full, sizeof v.extent);
    memcpy(v.spacing, row->spacing, sizeof v.spacing);
    v.target = map;
    v.output = map + dnn_evaluate_points(row->full) * v.width;
    return dnn_evaluate_surfaces(e, &v, row->value, err);
}

int dnn_evaluate_measure(const struct dnn_evaluation *e, struct evaluate_row *row,
                         struct dnn_err *err)
{
    unsigned char *map = NULL;
    int rc;

    if (row->nboxes == 1) {
        rc = measure_map(e, row, row->box[0].map, err);
    } else {
        rc = allocate(e, row, row->full, &map, err);
        for (size_t i = 0; i < row->nboxes && rc == 0; i++)
            paint(row, &row->box[i], dnn_evaluate_width(e), map);
        if (rc == 0) rc = measure_map(e, row, map, err);
    }
    free(map);
    dnn_evaluate_row_shrink(row);
    return rc;
}

/* ---- samples on several ranks ---- */

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* All ranks' incomplete samples, in ascending order, each once. */
static int list_samples(const struct dnn_evaluation *e, struct dnn_comm *comm,
                        int64_t **out, int64_t *n, struct dnn_err *err)
{
    int64_t *mine = dnn_alloc((e->nopen + 1) * sizeof *mine), *all = NULL;
    size_t bytes = 0;

    for (size_t i = 0; i < e->nopen; i++)
        mine[i] = e->row[e->open[i]].sample;
    int rc = dnn_comm_collect(comm, "incomplete samples", mine, e->nopen * sizeof *mine,
                              (void **)&all, &bytes, err);
    dnn_free(mine);
    if (rc < 0) return rc;
    int64_t count = (int64_t)(bytes / sizeof *all);
    if (count > 0) qsort(all, (size_t)count, sizeof *all, by_number);
    *n = 0;
    for (int64_t i = 0; i < count; i++)
        if (i == 0 || all[i] != all[i - 1]) all[(*n)++] = all[i];
    rc = dnn_comm_bcast(comm, "incomplete samples", n, sizeof *n, 0, err);
    if (all == NULL) all = dnn_alloc((size_t)(rc < 0 ? 0 : *n) * sizeof *all);
    if (rc == 0)
        rc = dnn_comm_bcast(comm, "incomplete samples", all, (size_t)*n * sizeof *all,
                            0, err);
    *out = all;
    return rc;
}

static struct evaluate_row *find(const struct dnn_evaluation *e, int64_t sample)
{
    for (size_t i = 0; i < e->nopen; i++)
        if (e->row[e->open[i]].sample == sample) return &e->row[e->open[i]];
    return NULL;
}

/* What is broadcast before a box. */
struct head {
    int64_t full[3], start[3], extent[3];
    double spacing[3];
};

/* The broadcasts of one sample. */
struct spread {
    struct dnn_comm *comm;
    struct dnn_evaluation *e;
    struct evaluate_row *row; /* of this rank; NULL: it has none of the sample */
    bool owner;
    unsigned char *scratch; /* [PIECE] */
    int rc;                 /* of this rank alone */
};

/* The owner adds a box whose content is to be received. */
static int receive_box(struct spread *s, const struct head *head, unsigned char **map,
                       struct dnn_err *err)
{
    struct evaluate_row *row = s->row;

    if (row->nboxes == 0) {
        memcpy(row->full, head->full, sizeof row->full);
        memcpy(row->spacing, head->spacing, sizeof row->spacing);
    }
    if (memcmp(row->full, head->full, sizeof row->full) != 0)
        return dnn_fail(err, DNN_EDATA,
                        "sample \"%s\" (%lld): its boxes disagree about its extents",
                        row->name, (long long)row->sample);
    return dnn_evaluate_box(s->e, row, head->start, head->extent, map, err);
}

static int send_box(struct spread *s, int root, int64_t i, struct dnn_err *err)
{
    const bool mine = dnn_comm_rank(s->comm) == root;
    unsigned char *map = NULL;
    struct head head = {{0}, {0}, {0}, {0}};

    if (mine) {
        const struct evaluate_box *box = &s->row->box[i];

        map = box->map;
        memcpy(head.full, s->row->full, sizeof head.full);
        memcpy(head.spacing, s->row->spacing, sizeof head.spacing);
        memcpy(head.start, box->start, sizeof head.start);
        memcpy(head.extent, box->extent, sizeof head.extent);
    }
    DNN_TRY(dnn_comm_bcast(s->comm, "class maps", &head, sizeof head, root, err));
    const int64_t bytes =
        2 * dnn_evaluate_points(head.extent) * dnn_evaluate_width(s->e);
    if (s->owner && s->rc == 0) {
        s->rc = receive_box(s, &head, &map, err);
        if (s->rc < 0) map = NULL;
    }
    for (int64_t at = 0; at < bytes; at += PIECE) {
        const int64_t n = bytes - at < PIECE ? bytes - at : PIECE;

        DNN_TRY(dnn_comm_bcast(s->comm, "class maps",
                               map == NULL ? s->scratch : map + at, (size_t)n, root,
                               err));
    }
    return 0;
}

static int send_sample(struct spread *s, int64_t sample, int owner, struct dnn_err *err)
{
    const int size = dnn_comm_size(s->comm);
    int64_t *count = dnn_alloc((size_t)size * sizeof *count);

    s->row = find(s->e, sample);
    s->owner = dnn_comm_rank(s->comm) == owner;
    int64_t mine = s->row == NULL ? 0 : (int64_t)s->row->nboxes;
    int rc = dnn_comm_allgather(s->comm, "boxes", &mine, sizeof mine, count, err);
    if (s->owner && s->row == NULL) s->row = dnn_evaluate_row(s->e, sample, "", true);
    for (int r = 0; r < size && rc == 0; r++)
        for (int64_t i = 0; i < count[r] && r != owner && rc == 0; i++)
            rc = send_box(s, r, i, err);
    if (!s->owner && s->row != NULL) dnn_evaluate_row_shrink(s->row);
    dnn_free(count);
    return rc;
}

/* Measure a sample of this rank, if all of it is there; if not, this is found when the
 * rows are added up. */
static int measure_whole(struct dnn_evaluation *e, int64_t sample, struct dnn_err *err)
{
    struct evaluate_row *row = find(e, sample);
    int64_t points = 0;

    for (size_t i = 0; row != NULL && i < row->nboxes; i++)
        points += dnn_evaluate_points(row->box[i].extent);
    if (points == 0 || points != dnn_evaluate_points(row->full)) return 0;
    return dnn_evaluate_measure(e, row, err);
}

int dnn_evaluate_exchange(struct dnn_evaluation *e, struct dnn_comm *comm,
                          struct dnn_err *err)
{
    struct spread s = {.comm = comm, .e = e};
    const int size = dnn_comm_size(comm), rank = dnn_comm_rank(comm);
    int64_t *sample = NULL, n = 0;
    int rc = list_samples(e, comm, &sample, &n, err);

    if (rc == 0 && n > 0) s.scratch = dnn_alloc(PIECE);
    for (int64_t first = 0; first < n && rc == 0; first += size) {
        for (int r = 0; r < size && first + r < n && rc == 0; r++)
            rc = send_sample(&s, sample[first + r], r, err);
        if (rc == 0 && s.rc == 0 && first + rank < n)
            s.rc = measure_whole(e, sample[first + rank], err);
        if (rc == 0) rc = dnn_comm_agree(comm, s.rc, err);
    }
    dnn_free(s.scratch);
    dnn_free(sample);
    return rc;
}
