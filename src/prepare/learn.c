/* learn.c - what must be known of all samples before any of them is finished.
 *
 * Samples are counted in portions whose number does not depend on the ranks, and
 * portions are put together in their order: the result is always the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include <inttypes.h>
#include <string.h>

/* Few large samples are a portion each; of many small ones, so many are. */
enum { PORTIONS = 256, FEW = 32, MANY = 1024 };

struct portion {
    struct dnn_prepare_state *s;
    int64_t total, n; /* things, portions */
    int step;         /* stats: before which step */
    int train;        /* stats: of this part only; -1: of all */
    int column;       /* classes: where the label is */
};

static struct portion portions(struct dnn_prepare_state *s, int64_t total)
{
    int64_t n = total / MANY;

    if (n < FEW) n = FEW;
    if (n > PORTIONS || total <= PORTIONS) n = PORTIONS;
    return (struct portion){.s = s, .total = total, .n = total < n ? total : n};
}

static int64_t begin_of(const struct portion *p, int64_t number)
{
    return p->total / p->n * number + p->total % p->n * number / p->n;
}

/* Rank 0 reads all portions; everybody gets their bytes, one after the other. */
static int gather(const struct portion *p, const char *name, struct dnn_buf *out,
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

/* A number of each sample, from as many numbers as there are in a pass. */
static int gather_numbers(const struct portion *p, const char *name, int64_t **out,
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
    const struct portion *p = arg;
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

/* Where the sources know classes without reading; *known: they do. */
static int ask_classes(struct dnn_prepare_state *s, bool *known, struct dnn_err *err)
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

int dnn_learn_classes(struct dnn_prepare_state *s, struct dnn_err *err)
{
    struct portion p = portions(s, s->origins.count);
    struct dnn_units pass = {"classes", "reading classes", p.n, make_classes, &p};
    bool known = false;

    DNN_TRY(ask_classes(s, &known, err));
    if (known) return 0;
    p.column = -1;
    for (int k = s->origins.lanes.n; k-- > 0;)
        if (s->origins.lanes.lane[k].column.kind == DNN_KIND_LABEL &&
            s->origins.lanes.lane[k].column.role == DNN_ROLE_TARGET)
            p.column = k;
    if (p.column < 0)
        return dnn_fail(err, DNN_ECONFIG,
                        "stratify and balance need class labels, one per sample; these "
                        "targets are not labels");
    DNN_TRY(dnn_units_run(&s->work, s->comm, &pass, err));
    return gather_numbers(&p, pass.name, &s->class, err);
}

/* ---- boxes ---- */

static int make_boxes(void *arg, int64_t number, struct dnn_buf *out,
                      struct dnn_err *err)
{
    const struct portion *p = arg;
    struct dnn_flow flow;
    int rc = 0;

    dnn_flow_start(&flow, p->s->prepare, &p->s->origins, p->s->prepare->slice + 1);
    for (int64_t i = begin_of(p, number); rc == 0 && i < begin_of(p, number + 1); i++) {
        int64_t none = 0;

        if (p->s->parts.part[i] < 0) {
            dnn_buf_bytes(out, &none, sizeof none);
            continue;
        }
        rc = dnn_flow_load(&flow, i, err);
        if (rc == 0) dnn_buf_bytes(out, &flow.nboxes, sizeof flow.nboxes);
    }
    dnn_flow_stop(&flow);
    return rc;
}

/* The number of boxes if all samples have the same extents; else 0. */
static int64_t boxes_of_all(const struct dnn_edit *step, struct dnn_err *err)
{
    const struct dnn_slice_cfg *c = step->cfg;
    const struct dnn_slicer *how = c->sets.objects;
    int64_t total = 0;

    for (int k = 0; k < step->before->n; k++) {
        const struct dnn_lane *lane = &step->before->lane[k];

        if ((step->on >> k & 1) == 0) continue;
        for (int d = 0; d < dnn_lane_space(lane); d++)
            if (lane->column.shape.dim[d] == DNN_UNKNOWN) return 0;
        if (total > 0) continue;
        for (int64_t i = 0; i < c->sets.count; i++) {
            struct dnn_slices slices;

            if (dnn_slices_make(&how[i], dnn_lane_space(lane), lane->column.shape.dim,
                                &slices, err) < 0)
                return dnn_prefix(err, "%s: ", step->where);
            total += slices.total;
        }
    }
    return total;
}

int dnn_learn_boxes(struct dnn_prepare_state *s, struct dnn_err *err)
{
    struct portion p = portions(s, s->origins.count);
    struct dnn_units pass = {"boxes", "measuring volumes", p.n, make_boxes, &p};
    int64_t all = boxes_of_all(&s->prepare->step[s->prepare->slice], err);

    if (all < 0) return (int)all;
    if (all == 0) {
        DNN_TRY(dnn_units_run(&s->work, s->comm, &pass, err));
        return gather_numbers(&p, pass.name, &s->boxes, err);
    }
    s->boxes = dnn_alloc((size_t)(p.total + 1) * sizeof *s->boxes);
    for (int64_t i = 0; i < p.total; i++)
        s->boxes[i] = all;
    return 0;
}

/* ---- statistics ---- */

static int add_sample(const struct portion *p, struct dnn_flow *flow, int64_t i,
                      struct dnn_stats *stats, struct dnn_err *err)
{
    const struct dnn_edit *step = &p->s->prepare->step[p->step];

    DNN_TRY(dnn_flow_load(flow, i, err));
    for (int64_t b = 0; b < flow->nboxes; b++) {
        struct dnn_sample *box;

        DNN_TRY(dnn_flow_box(flow, b, &box, err));
        for (int k = 0; k < step->before->n; k++) {
            if ((step->on >> k & 1) == 0) continue;
            if (dnn_flow_stats(flow, &step->before->lane[k], &box->col[k], &stats[k],
                               err) == 0)
                continue;
            char label[DNN_SAMPLE_NAME];

            dnn_flow_name(flow, b, label);
            return dnn_prefix(err, "%s: %s: ", label,
                              step->before->lane[k].column.name);
        }
    }
    return 0;
}

static struct dnn_stats *start_stats(const struct dnn_edit *step)
{
    struct dnn_stats *stats =
        dnn_alloc((size_t)step->before->n * sizeof(struct dnn_stats));

    for (int k = 0; k < step->before->n; k++) {
        struct dnn_column column = dnn_lane_column(&step->before->lane[k]);

        dnn_stats_start(&stats[k], &column);
    }
    return stats;
}

static int make_stats(void *arg, int64_t number, struct dnn_buf *out,
                      struct dnn_err *err)
{
    const struct portion *p = arg;
    const struct dnn_edit *step = &p->s->prepare->step[p->step];
    struct dnn_stats *stats = start_stats(step);
    struct dnn_flow flow;
    int rc = 0;

    dnn_flow_start(&flow, p->s->prepare, &p->s->origins, p->step);
    for (int64_t i = begin_of(p, number); rc == 0 && i < begin_of(p, number + 1); i++) {
        int32_t part = p->s->parts.part[i];

        if (part >= 0 && (p->train < 0 || part == p->train))
            rc = add_sample(p, &flow, i, stats, err);
    }
    dnn_flow_stop(&flow);
    for (int k = 0; rc == 0 && k < step->before->n; k++)
        if ((step->on >> k & 1) != 0) dnn_buf_bytes(out, &stats[k], sizeof stats[k]);
    dnn_free(stats);
    return rc;
}

/* Rank 0 merges one portion after the other: they are large. */
static int merge_stats(const struct portion *p, const char *name,
                       struct dnn_stats *stats, struct dnn_err *err)
{
    const struct dnn_edit *step = &p->s->prepare->step[p->step];
    struct dnn_stats *one = dnn_alloc(sizeof *one);
    int rc = 0;

    for (int64_t i = 0; rc == 0 && i < p->n; i++) {
        char *bytes = NULL;
        size_t len = 0, at = 0;

        rc = dnn_work_load(&p->s->work, name, i, &bytes, &len, err);
        for (int k = 0; rc == 0 && k < step->before->n; k++) {
            if ((step->on >> k & 1) == 0) continue;
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

int dnn_learn_stats(struct dnn_prepare_state *s, int step, enum dnn_edit_need need,
                    struct dnn_err *err)
{
    struct dnn_edit *edit = &s->prepare->step[step];
    struct portion p = portions(s, s->origins.count);
    char name[32], title[64];
    int rc = 0;

    snprintf(name, sizeof name, "stats%d", step);
    snprintf(title, sizeof title, "measuring for %s", edit->type->name);
    struct dnn_units pass = {name, title, p.n, make_stats, &p};
    p.step = step;
    p.train = -1;
    for (int i = 0; need == DNN_NEED_TRAIN && i < s->parts.n; i++)
        if (strcmp(s->parts.name[i], "train") == 0) p.train = i;
    DNN_TRY(dnn_units_run(&s->work, s->comm, &pass, err));
    edit->found = start_stats(edit);
    if (dnn_comm_rank(s->comm) == 0) rc = merge_stats(&p, name, edit->found, err);
    DNN_TRY(dnn_comm_agree(s->comm, rc, err));
    return dnn_comm_bcast(s->comm, "statistics", edit->found,
                          (size_t)edit->before->n * sizeof *edit->found, 0, err);
}

/* ---- checksums of the files ---- */

static int add_sums(const char *path, struct dnn_buf *out, struct dnn_err *err)
{
    char **file;
    int64_t n;
    int rc = 0;

    DNN_TRY(dnn_record_inside(path, &file, &n, err));
    for (int64_t i = 0; rc == 0 && i < n; i++) {
        char sum[33];
        int64_t size;

        rc = dnn_sum_file(file[i], sum, &size, err);
        if (rc < 0) break;
        dnn_buf_add(out, "{\"path\": ");
        dnn_prepare_quote(out, file[i]);
        dnn_buf_add(out, ", \"bytes\": %" PRId64 ", \"xxh128\": \"%s\"}\n", size, sum);
    }
    dnn_record_inside_free(file, n);
    return rc;
}

static int make_files(void *arg, int64_t number, struct dnn_buf *out,
                      struct dnn_err *err)
{
    const struct portion *p = arg;

    for (int64_t i = begin_of(p, number); i < begin_of(p, number + 1); i++)
        DNN_TRY(add_sums(p->s->file[i], out, err));
    return 0;
}

int dnn_learn_files(struct dnn_prepare_state *s, struct dnn_err *err)
{
    struct portion p = portions(s, s->nfiles);
    struct dnn_units pass = {"files", "checksums of the files", p.n, make_files, &p};

    if (!s->prepare->checksums || s->nfiles == 0) return 0;
    DNN_TRY(dnn_units_run(&s->work, s->comm, &pass, err));
    return gather(&p, pass.name, &s->files, err);
}
