/* piece.c - pieces, which are consecutive finished samples of a split: computed, saved,
 * read.
 *
 * Which samples are in which piece depends on the configuration and the input only.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A piece is stored as this head, the samples of each column, folds, names and groups
 * (NUL-terminated strings).  Its summary is a unit of its own, saved before it, so that
 * the dataset can be described without reading all samples again. */
struct head {
    int64_t n, ncols;
    int32_t groups, folds;
};

size_t dnn_piece_bytes(const struct dnn_column_state *state)
{
    int64_t count = 0;

    if (dnn_shape_count(&state->column.shape, &count, NULL) < 0) return 0;
    return (size_t)count * dnn_dtype_size(state->column.type);
}

static bool has_groups(const struct dnn_prepare_state *s)
{
    return s->origins.groups || s->prepare->slice >= 0;
}

/* ---- which samples ---- */

static int sample_bytes(const struct dnn_prepare_state *s, int64_t *out,
                        struct dnn_err *err)
{
    *out = 0;
    for (int k = 0; k < s->states.n; k++) {
        const struct dnn_column *c = &s->states.state[k].column;
        struct dnn_tensor tensor = {
            .name = c->name, .dtype = c->type, .shape = c->shape};
        size_t bytes;

        DNN_TRY(dnn_tensor_bytes(&tensor, &bytes, err));
        if (bytes > INT64_MAX / 4 || __builtin_add_overflow(*out, (int64_t)bytes, out))
            return dnn_fail(err, DNN_EDATA, "a sample is too large");
    }
    if (*out == 0) *out = 1;
    return 0;
}

int dnn_pieces_plan(struct dnn_prepare_state *s, struct dnn_err *err)
{
    int64_t bytes, at = 0;

    DNN_TRY(sample_bytes(s, &bytes, err));
    int64_t chunk = s->prepare->chunk / bytes, many;
    if (chunk < 1) chunk = 1;
    many = s->prepare->piece / (chunk * bytes);
    if (many < 1) many = 1;
    s->npieces = 0;
    for (int p = 0; p < s->parts.n; p++) {
        int64_t count = s->output[p].first[s->output[p].n];

        s->npieces += (count + chunk * many - 1) / (chunk * many);
    }
    s->piece = dnn_alloc((size_t)(s->npieces + 1) * sizeof *s->piece);
    for (int p = 0; p < s->parts.n; p++) {
        int64_t count = s->output[p].first[s->output[p].n], each = chunk * many;
        struct dnn_split *split = &s->info.split[p];

        split->count = count;
        split->chunk = chunk < count ? chunk : count;
        for (int64_t first = 0; first < count; first += each)
            s->piece[at++] = (struct dnn_piece){
                p, first, count - first < each ? count - first : each};
    }
    return 0;
}

/* ---- making one ---- */

struct builder {
    struct dnn_prepare_state *s;
    const struct dnn_piece *piece;
    struct dnn_pipeline pipeline;
    struct head head;
    char *data[DNN_MAX_COLUMNS];
    struct dnn_piece_summary *summary;
    struct dnn_buf names, groups;
};

/* Index in o->sample of the source sample of output sample i. */
static int64_t find_source(const struct dnn_output *o, int64_t i)
{
    int64_t low = 0, high = o->n;

    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;

        if (o->first[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int wrong_shape(struct builder *m, int64_t b, int k, const struct dnn_array *a,
                       struct dnn_err *err)
{
    const struct dnn_column *c = &m->s->states.state[k].column;
    char name[DNN_SAMPLE_NAME], first[DNN_SAMPLE_NAME], x[DNN_SHAPE_TEXT],
        y[DNN_SHAPE_TEXT];

    dnn_pipeline_name(&m->pipeline, b, name);
    dnn_origins_label(&m->s->origins, m->s->output[0].sample[0], first);
    return dnn_fail(err, DNN_EDATA,
                    "%.300s: %s is %s %s, but in %.300s it is %s %s; resize, crop or "
                    "pad them to one shape",
                    name, c->name, dnn_dtype_name(a->type),
                    dnn_shape_text(x, sizeof x, &a->shape), first,
                    dnn_dtype_name(c->type), dnn_shape_text(y, sizeof y, &c->shape));
}

/* Spacing that is not the same in all samples of the piece becomes -1. */
static void note_spacing(double spacing[DNN_MAX_SPACE], const struct dnn_array *a,
                         bool first)
{
    for (int d = 0; d < DNN_MAX_SPACE; d++)
        if (first)
            spacing[d] = a->spacing[d];
        else if (spacing[d] != a->spacing[d])
            spacing[d] = -1;
}

static int add_sample(struct builder *m, int64_t i, int64_t b,
                      const struct dnn_sample *sample, struct dnn_err *err)
{
    char name[DNN_SAMPLE_NAME], group[DNN_SAMPLE_NAME];

    dnn_pipeline_name(&m->pipeline, b, name);
    for (int k = 0; k < m->s->states.n; k++) {
        const struct dnn_column_state *state = &m->s->states.state[k];
        const struct dnn_array *a = &sample->col[k];
        size_t bytes = dnn_piece_bytes(state);

        if (!dnn_shape_equal(&a->shape, &state->column.shape) ||
            a->type != state->column.type)
            return wrong_shape(m, b, k, a, err);
        memcpy(m->data[k] + (size_t)i * bytes, a->data, bytes);
        note_spacing(m->summary->spacing[k], a, i == 0);
        if (dnn_pipeline_stats(&m->pipeline, state, a, &m->summary->stats[k], err) < 0)
            return dnn_prefix(err, "%s: %s: ", name, state->column.name);
    }
    dnn_buf_bytes(&m->names, name, strlen(name) + 1);
    if (!has_groups(m->s)) return 0;
    dnn_origins_group(&m->s->origins, m->pipeline.loaded, group);
    if (group[0] == '\0') dnn_origins_label(&m->s->origins, m->pipeline.loaded, group);
    dnn_buf_bytes(&m->groups, group, strlen(group) + 1);
    return 0;
}

static int make_samples(struct builder *m, struct dnn_err *err)
{
    const struct dnn_output *o = &m->s->output[m->piece->split];
    int64_t at = find_source(o, m->piece->first);

    for (int64_t i = 0; i < m->piece->n; i++) {
        int64_t number = m->piece->first + i;
        struct dnn_sample *sample;

        while (number >= o->first[at + 1])
            at++;
        int64_t b = number - o->first[at];
        DNN_TRY(dnn_pipeline_load(&m->pipeline, o->sample[at], err));
        if (b >= m->pipeline.nboxes)
            return dnn_fail(err, DNN_EDATA,
                            "sample %" PRId64 " changed its shape while it was read",
                            o->sample[at]);
        DNN_TRY(dnn_pipeline_box(&m->pipeline, b, &sample, err));
        DNN_TRY(add_sample(m, i, b, sample, err));
    }
    return 0;
}

/* Allocates head and data at once; the rest is appended later. */
static int alloc_data(struct builder *m, struct dnn_buf *out, struct dnn_err *err)
{
    size_t total = sizeof m->head, at = sizeof m->head;
    char text[32];

    for (int k = 0; k < m->s->states.n; k++)
        total += (size_t)m->piece->n * dnn_piece_bytes(&m->s->states.state[k]);
    out->text = malloc(total + 1);
    if (out->text == NULL)
        return dnn_fail(err, DNN_ENOMEM,
                        "not enough memory for a piece of %s; set a smaller \"piece\"",
                        dnn_text_bytes(text, sizeof text, (double)total));
    out->len = total;
    out->cap = total + 1;
    for (int k = 0; k < m->s->states.n; k++) {
        m->data[k] = out->text + at;
        at += (size_t)m->piece->n * dnn_piece_bytes(&m->s->states.state[k]);
    }
    out->text[total] = '\0';
    return 0;
}

static void add_folds(const struct builder *m, struct dnn_buf *out)
{
    const struct dnn_output *o = &m->s->output[m->piece->split];
    int64_t at = find_source(o, m->piece->first);

    for (int64_t i = 0; i < m->piece->n; i++) {
        while (m->piece->first + i >= o->first[at + 1])
            at++;
        dnn_buf_bytes(out, &m->s->parts.fold[o->sample[at]], sizeof(int32_t));
    }
}

/* Everything but the samples. */
static void add_rest(const struct builder *m, struct dnn_buf *out)
{
    memcpy(out->text, &m->head, sizeof m->head);
    if (m->head.folds) add_folds(m, out);
    dnn_buf_bytes(out, m->names.text, m->names.len);
    if (m->head.groups) dnn_buf_bytes(out, m->groups.text, m->groups.len);
}

static size_t summary_size(const struct dnn_prepare_state *s)
{
    return sizeof(struct dnn_piece_summary) +
           (size_t)s->states.n * sizeof(struct dnn_stats);
}

int dnn_piece_make(void *arg, int64_t number, struct dnn_buf *out, struct dnn_err *err)
{
    struct dnn_prepare_state *s = arg;
    struct builder m = {.s = s, .piece = &s->piece[number]};

    m.summary = dnn_alloc(summary_size(s));
    for (int k = 0; k < s->states.n; k++) {
        struct dnn_column column = dnn_column_state_column(&s->states.state[k]);

        dnn_stats_start(&m.summary->stats[k], &column);
    }
    m.head.n = m.piece->n;
    m.head.ncols = s->states.n;
    m.head.groups = has_groups(s);
    m.head.folds = s->info.split[m.piece->split].folds > 0;
    dnn_pipeline_start(&m.pipeline, s->prepare, &s->origins, s->prepare->nsteps);
    int rc = alloc_data(&m, out, err);
    if (rc == 0) rc = make_samples(&m, err);
    dnn_pipeline_stop(&m.pipeline);
    if (rc == 0) {
        add_rest(&m, out);
        rc = dnn_work_save(&s->work, "known", number, m.summary, summary_size(s), err);
    }
    dnn_buf_free(&m.names);
    dnn_buf_free(&m.groups);
    dnn_free(m.summary);
    return rc;
}

/* ---- reading one ---- */

/* n strings, one after the other; false if there are fewer. */
static bool read_texts(const char **at, const char *end, int64_t n, const char **out)
{
    for (int64_t i = 0; i < n; i++) {
        const char *stop = memchr(*at, '\0', (size_t)(end - *at));

        if (stop == NULL) return false;
        out[i] = *at;
        *at = stop + 1;
    }
    return true;
}

static bool parse(const struct dnn_prepare_state *s, const struct dnn_piece *piece,
                  const char *bytes, size_t len, struct dnn_piece_view *out)
{
    const char *at = bytes + sizeof(struct head), *end = bytes + len;
    size_t n = (size_t)piece->n;
    struct head head;

    if (len < sizeof head) return false;
    memcpy(&head, bytes, sizeof head);
    if (head.n != piece->n || head.ncols != s->states.n) return false;
    for (int k = 0; k < s->states.n; k++) {
        size_t size = n * dnn_piece_bytes(&s->states.state[k]);

        if ((size_t)(end - at) < size) return false;
        out->data[k] = at;
        at += size;
    }
    if (head.folds) {
        if ((size_t)(end - at) < n * sizeof *out->fold) return false;
        out->fold = dnn_alloc(n * sizeof *out->fold);
        memcpy(out->fold, at, n * sizeof *out->fold);
        at += n * sizeof *out->fold;
    }
    out->name = dnn_alloc((n + 1) * sizeof *out->name);
    if (!read_texts(&at, end, piece->n, out->name)) return false;
    if (!head.groups) return at == end;
    out->group = dnn_alloc((n + 1) * sizeof *out->group);
    return read_texts(&at, end, piece->n, out->group) && at == end;
}

static int wrong_piece(const struct dnn_prepare_state *s, int64_t number,
                       struct dnn_err *err)
{
    return dnn_fail(err, DNN_EIO,
                    "%s: piece %" PRId64
                    " does not match this configuration; run again with --restart",
                    s->work.dir, number);
}

int dnn_piece_summary(const struct dnn_prepare_state *s, int64_t number,
                      struct dnn_piece_summary **out, struct dnn_err *err)
{
    char *bytes = NULL;
    size_t len = 0;
    int rc = dnn_work_load(&s->work, "known", number, &bytes, &len, err);

    if (rc == 0 && len != summary_size(s)) rc = wrong_piece(s, number, err);
    if (rc < 0) {
        dnn_work_remove(&s->work, "piece", number); /* recompute both */
        dnn_free(bytes);
        return rc;
    }
    *out = (struct dnn_piece_summary *)(void *)bytes; /* from malloc(): aligned */
    return 0;
}

int dnn_piece_read(const struct dnn_prepare_state *s, int64_t number, const char *bytes,
                   size_t len, struct dnn_piece_view *out, struct dnn_err *err)
{
    memset(out, 0, sizeof *out);
    if (parse(s, &s->piece[number], bytes, len, out)) return 0;
    dnn_piece_view_free(out);
    return wrong_piece(s, number, err);
}

void dnn_piece_view_free(struct dnn_piece_view *view)
{
    dnn_free(view->name);
    dnn_free(view->group);
    dnn_free(view->fold);
    memset(view, 0, sizeof *view);
}
