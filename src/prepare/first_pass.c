/* first_pass.c - first passes over all samples: classes, boxes, statistics, checksums.
 *
 * Samples are processed in blocks, which do not depend on the number of ranks and are
 * merged in order, so the results do not depend on it either.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include <inttypes.h>
#include <string.h>

/* Up to MAX_BLOCKS samples are a block each; of more, about BLOCK_SIZE form a block,
 * but there are at least MIN_BLOCKS and at most MAX_BLOCKS blocks. */
enum { MAX_BLOCKS = 256, MIN_BLOCKS = 32, BLOCK_SIZE = 1024 };

struct pass {
    struct dnn_prepare_state *s;
    int64_t total, n; /* samples or files; blocks */
    int step;         /* stats: computed before this step */
    int train;        /* stats: of this split only; -1: of all */
    int column;       /* classes: the column of labels */
};

static struct pass make_pass(struct dnn_prepare_state *s, int64_t total)
{
    int64_t n = total / BLOCK_SIZE;

    if (n < MIN_BLOCKS) n = MIN_BLOCKS;
    if (n > MAX_BLOCKS || total <= MAX_BLOCKS) n = MAX_BLOCKS;
    return (struct pass){.s = s, .total = total, .n = total < n ? total : n};
}

static int64_t begin_of(const struct pass *p, int64_t number)
{
    return p->total / p->n * number + p->total % p->n * number / p->n;
}

/* Rank 0 reads all blocks and broadcasts their bytes, concatenated. */
static int gather(const struct pass *p, const char *name, struct dnn_buf *out,
                  struct dnn_err *err)
{
    struct dnn_comm *comm = p->s->comm;
    int rc = 0;

    for (int64_t i = 0; dnn_comm_rank(comm) == 0 && rc == 0 && i < p->n; i++) {
        char *bytes = NULL;
        size_t len = 0;

        rc = dnn_work_load(&p->s->work, name, i, &bytes, &len, err);
        if (rc == 0) dnn_buf_bytes(out, bytes, len);
        dnn_free(bytes);
    }
    DNN_TRY(dnn_comm_agree(comm, rc, err));
    uint64_t len = out->len;
    DNN_TRY(dnn_comm_bcast(comm, "size of a pass", &len, sizeof len, 0, err));
    if (dnn_comm_rank(comm) != 0) {
        out->text = dnn_alloc(len + 1);
        out->len = len;
        out->cap = len + 1;
    }
    return len == 0 ? 0 : dnn_comm_bcast(comm, "a pass", out->text, len, 0, err);
}

/* The result of a pass that computes one integer per sample. */
static int gather_ints(const struct pass *p, const char *name, int64_t **out,
                       struct dnn_err *err)
{
    struct dnn_buf buf = {0};
    int rc = gather(p, name, &buf, err);

    if (rc == 0 && buf.len != (size_t)p->total * sizeof **out)
        rc = dnn_fail(err, DNN_EIO, "%s: the pass \"%s\" is incomplete", p->s->work.dir,
                      name);
    if (rc == 0) {
        *out = dnn_alloc(buf.len + 8);
        memcpy(*out, buf.text, buf.len);
    }
    dnn_buf_free(&buf);
    return rc;
}

/* ---- classes ---- */

static int make_classes(void *arg, int64_t number, struct dnn_buf *out,
                        struct dnn_err *err)
{
    const struct pass *p = arg;
    const struct dnn_origins *origins = &p->s->origins;
    struct dnn_sample sample = {0};
    int rc = 0;

    for (int64_t i = begin_of(p, number); rc == 0 && i < begin_of(p, number + 1); i++) {
        const struct dnn_origin *o = dnn_origins_find(origins, i);
        int64_t class = -1;

        if (o->source->type->class_of != NULL)
            class = o->source->type->class_of(o->source, i - o->first);
        if (class < 0) {
            const struct dnn_array *label = &sample.col[p->column];

            rc = dnn_origins_read(origins, true, i, &sample, err);
            if (rc == 0)
                rc = dnn_convert(label->data, label->type, &class, DNN_I64, 1, true,
                                 err);
        }
        if (rc == 0 && class >= DNN_STATS_CLASSES)
            rc = dnn_fail(err, DNN_EDATA,
                          "class %" PRId64
                          " is too large for stratify or balance: at most %d",
                          class, DNN_STATS_CLASSES - 1);
        if (rc == 0) dnn_buf_bytes(out, &class, sizeof class);
    }
    dnn_sample_free(&sample);
    return rc;
}

/* The classes, if all sources have them without reading samples; else *known is
 * false. */
static int classes_of_sources(struct dnn_prepare_state *s, bool *known,
                              struct dnn_err *err)
{
    int64_t n = s->origins.count, bad = 0;
    int64_t *class = dnn_alloc((size_t)(n + 1) * sizeof *class);

    for (int64_t i = 0; dnn_comm_rank(s->comm) == 0 && bad == 0 && i < n; i++) {
        const struct dnn_origin *o = dnn_origins_find(&s->origins, i);

        class[i] = o->source->type->class_of == NULL
                       ? -1
                       : o->source->type->class_of(o->source, i - o->first);
        bad = class[i] < 0 || class[i] >= DNN_STATS_CLASSES;
    }
    int rc =
        dnn_comm_bcast(s->comm, "checking for class labels", &bad, sizeof bad, 0, err);
    *known = bad == 0;
    if (rc == 0 && *known)
        rc = dnn_comm_bcast(s->comm, "classes", class, (size_t)n * sizeof *class, 0,
                            err);
    if (rc == 0 && *known)
        s->class = class;
    else
        dnn_free(class);
    return rc;
}

int dnn_pass_classes(struct dnn_prepare_state *s, struct dnn_err *err)
{
    struct pass p = make_pass(s, s->origins.count);
    struct dnn_units units = {"classes", "reading classes", p.n, make_classes, &p};
    bool known = false;

    DNN_TRY(classes_of_sources(s, &known, err));
    if (known) return 0;
    p.column = -1;
    for (int k = s->origins.states.n; k-- > 0;)
        if (s->origins.states.state[k].column.kind == DNN_KIND_LABEL &&
            s->origins.states.state[k].column.role == DNN_ROLE_TARGET)
            p.column = k;
    if (p.column < 0)
        return dnn_fail(err, DNN_ECONFIG,
                        "stratify and balance need class labels, one per sample; these "
                        "targets are not labels");
    DNN_TRY(dnn_units_run(&s->work, s->comm, &units, err));
    return gather_ints(&p, units.name, &s->class, err);
}

/* ---- boxes ---- */

static int make_boxes(void *arg, int64_t number, struct dnn_buf *out,
                      struct dnn_err *err)
{
    const struct pass *p = arg;
    struct dnn_pipeline pipeline;
    int rc = 0;

    dnn_pipeline_start(&pipeline, p->s->prepare, &p->s->origins,
                       p->s->prepare->slice + 1);
    for (int64_t i = begin_of(p, number); rc == 0 && i < begin_of(p, number + 1); i++) {
        int64_t none = 0;

        if (p->s->parts.part[i] < 0) {
            dnn_buf_bytes(out, &none, sizeof none);
            continue;
        }
        rc = dnn_pipeline_load(&pipeline, i, err);
        if (rc == 0) dnn_buf_bytes(out, &pipeline.nboxes, sizeof pipeline.nboxes);
    }
    dnn_pipeline_stop(&pipeline);
    return rc;
}

/* The number of boxes per sample if all samples have the same extents; else 0. */
static int64_t boxes_of_all(const struct dnn_prepare_step *step, struct dnn_err *err)
{
    const struct dnn_slice_cfg *c = step->cfg;
    const struct dnn_slicer *how = c->sets.objects;
    int64_t total = 0;

    for (int k = 0; k < step->before->n; k++) {
        const struct dnn_column_state *state = &step->before->state[k];

        if ((step->columns >> k & 1) == 0) continue;
        for (int d = 0; d < dnn_column_state_space(state); d++)
            if (state->column.shape.dim[d] == DNN_UNKNOWN) return 0;
        if (total > 0) continue;
        for (int64_t i = 0; i < c->sets.count; i++) {
            struct dnn_slices slices;

            if (dnn_slices_make(&how[i], dnn_column_state_space(state),
                                state->column.shape.dim, &slices, err) < 0)
                return dnn_prefix(err, "%s: ", step->where);
            total += slices.total;
        }
    }
    return total;
}

int dnn_pass_boxes(struct dnn_prepare_state *s, struct dnn_err *err)
{
    struct pass p = make_pass(s, s->origins.count);
    struct dnn_units units = {"boxes", "measuring volumes", p.n, make_boxes, &p};
    int64_t all = boxes_of_all(&s->prepare->step[s->prepare->slice], err);

    if (all < 0) return (int)all;
    if (all == 0) {
        DNN_TRY(dnn_units_run(&s->work, s->comm, &units, err));
        return gather_ints(&p, units.name, &s->boxes, err);
    }
    s->boxes = dnn_alloc((size_t)(p.total + 1) * sizeof *s->boxes);
    for (int64_t i = 0; i < p.total; i++)
        s->boxes[i] = all;
    return 0;
}

/* ---- statistics ---- */

static int add_sample(const struct pass *p, struct dnn_pipeline *pipeline, int64_t i,
                      struct dnn_stats *stats, struct dnn_err *err)
{
    const struct dnn_prepare_step *step = &p->s->prepare->step[p->step];

    DNN_TRY(dnn_pipeline_load(pipeline, i, err));
    for (int64_t b = 0; b < pipeline->nboxes; b++) {
        struct dnn_sample *box;

        DNN_TRY(dnn_pipeline_box(pipeline, b, &box, err));
        for (int k = 0; k < step->before->n; k++) {
            if ((step->columns >> k & 1) == 0) continue;
            if (dnn_pipeline_stats(pipeline, &step->before->state[k], &box->col[k],
                                   &stats[k], err) == 0)
                continue;
            char label[DNN_SAMPLE_NAME];

            dnn_pipeline_name(pipeline, b, label);
            return dnn_prefix(err, "%s: %s: ", label,
                              step->before->state[k].column.name);
        }
    }
    return 0;
}

static struct dnn_stats *start_stats(const struct dnn_prepare_step *step)
{
    struct dnn_stats *stats =
        dnn_alloc((size_t)step->before->n * sizeof(struct dnn_stats));

    for (int k = 0; k < step->before->n; k++) {
        struct dnn_column column = dnn_column_state_column(&step->before->state[k]);

        dnn_stats_start(&stats[k], &column);
    }
    return stats;
}

static int make_stats(void *arg, int64_t number, struct dnn_buf *out,
                      struct dnn_err *err)
{
    const struct pass *p = arg;
    const struct dnn_prepare_step *step = &p->s->prepare->step[p->step];
    struct dnn_stats *stats = start_stats(step);
    struct dnn_pipeline pipeline;
    int rc = 0;

    dnn_pipeline_start(&pipeline, p->s->prepare, &p->s->origins, p->step);
    for (int64_t i = begin_of(p, number); rc == 0 && i < begin_of(p, number + 1); i++) {
        int32_t part = p->s->parts.part[i];

        if (part >= 0 && (p->train < 0 || part == p->train))
            rc = add_sample(p, &pipeline, i, stats, err);
    }
    dnn_pipeline_stop(&pipeline);
    for (int k = 0; rc == 0 && k < step->before->n; k++)
        if ((step->columns >> k & 1) != 0)
            dnn_buf_bytes(out, &stats[k], sizeof stats[k]);
    dnn_free(stats);
    return rc;
}

/* Rank 0 merges block by block, because statistics are large. */
static int merge_stats(const struct pass *p, const char *name, struct dnn_stats *stats,
                       struct dnn_err *err)
{
    const struct dnn_prepare_step *step = &p->s->prepare->step[p->step];
    struct dnn_stats *one = dnn_alloc(sizeof *one);
    int rc = 0;

    for (int64_t i = 0; rc == 0 && i < p->n; i++) {
        char *bytes = NULL;
        size_t len = 0, at = 0;

        rc = dnn_work_load(&p->s->work, name, i, &bytes, &len, err);
        for (int k = 0; rc == 0 && k < step->before->n; k++) {
            if ((step->columns >> k & 1) == 0) continue;
            if (at + sizeof *one > len) {
                rc = dnn_fail(err, DNN_EIO, "%s: the pass \"%s\" is incomplete",
                              p->s->work.dir, name);
                break;
            }
            memcpy(one, bytes + at, sizeof *one);
            at += sizeof *one;
            dnn_stats_merge(&stats[k], one);
        }
        dnn_free(bytes);
    }
    dnn_free(one);
    return rc;
}

static int fit_columns(struct dnn_prepare_step *step, const struct dnn_stats *stats,
                       struct dnn_err *err)
{
    step->fit = dnn_alloc((size_t)step->before->n * sizeof *step->fit);
    for (int k = 0; k < step->before->n; k++)
        if (dnn_prepare_step_needs_for(step, k) != DNN_NEED_NOTHING)
            DNN_TRY(step->type->fit(step, k, &stats[k], &step->fit[k], err));
    return 0;
}

int dnn_pass_stats(struct dnn_prepare_state *s, int step,
                   enum dnn_prepare_step_need need, struct dnn_err *err)
{
    struct dnn_prepare_step *target = &s->prepare->step[step];
    struct pass p = make_pass(s, s->origins.count);
    char name[32], title[64];
    int rc = 0;

    snprintf(name, sizeof name, "stats%d", step);
    snprintf(title, sizeof title, "measuring for %s", target->type->name);
    struct dnn_units units = {name, title, p.n, make_stats, &p};
    p.step = step;
    p.train = -1;
    for (int i = 0; need == DNN_NEED_TRAIN && i < s->parts.n; i++)
        if (strcmp(s->parts.name[i], "train") == 0) p.train = i;
    DNN_TRY(dnn_units_run(&s->work, s->comm, &units, err));
    struct dnn_stats *stats = start_stats(target);
    if (dnn_comm_rank(s->comm) == 0) rc = merge_stats(&p, name, stats, err);
    rc = dnn_comm_agree(s->comm, rc, err);
    if (rc == 0)
        rc = dnn_comm_bcast(s->comm, "statistics", stats,
                            (size_t)target->before->n * sizeof *stats, 0, err);
    if (rc == 0) rc = fit_columns(target, stats, err);
    dnn_free(stats);
    return rc;
}

/* ---- checksums of the files ---- */

static int add_sums(const char *path, struct dnn_buf *out, struct dnn_err *err)
{
    char **file;
    int64_t n;
    int rc = 0;

    DNN_TRY(dnn_record_files(path, &file, &n, err));
    for (int64_t i = 0; rc == 0 && i < n; i++) {
        char sum[33];
        int64_t size;

        rc = dnn_sum_file(file[i], sum, &size, err);
        if (rc < 0) break;
        dnn_buf_add(out, "{\"path\": ");
        dnn_prepare_quote(out, file[i]);
        dnn_buf_add(out, ", \"bytes\": %" PRId64 ", \"xxh128\": \"%s\"}\n", size, sum);
    }
    dnn_record_files_free(file, n);
    return rc;
}

static int make_files(void *arg, int64_t number, struct dnn_buf *out,
                      struct dnn_err *err)
{
    const struct pass *p = arg;

    for (int64_t i = begin_of(p, number); i < begin_of(p, number + 1); i++)
        DNN_TRY(add_sums(p->s->file[i], out, err));
    return 0;
}

int dnn_pass_files(struct dnn_prepare_state *s, struct dnn_err *err)
{
    struct pass p = make_pass(s, s->nfiles);
    struct dnn_units units = {"files", "checksums of the files", p.n, make_files, &p};

    if (!s->prepare->checksums || s->nfiles == 0) return 0;
    DNN_TRY(dnn_units_run(&s->work, s->comm, &units, err));
    return gather(&p, units.name, &s->files, err);
}
