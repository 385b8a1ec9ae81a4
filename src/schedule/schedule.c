/* schedule.c - reading schedules, and the learning rate of a step.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "schedule/schedule_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

/* Keys of every schedule. */
struct common {
    const char *type;
    int64_t from, to; /* epochs; to 0: until the end */
};

struct part {
    const struct schedule_kind *kind;
    struct common is;
    void *cfg; /* in the arena */
    int state; /* index of its state, for kinds that depend on a metric */
};

struct dnn_schedule {
    struct dnn_arena *arena; /* owned */
    int nparts, nstates;
    struct part *part; /* in the arena */
};

#define AT(f) offsetof(struct common, f)
const struct dnn_field dnn_schedule_common[] = {
    {"type",    DNN_F_TEXT,    AT(type), NULL,    0, 0, NULL, "kind of schedule", NULL},
    INT("from", AT(from), "0", 0, "first epoch it applies to, counted from 0"),
    INT("to", AT(to), "0", 0, "epoch before which it ends; 0: the end of training"),
    {"verbose", DNN_F_IGNORED, 0,        "false", 0, 0, NULL, "ignored",          NULL},
    END
};

/* ---- reading ---- */

static int find_kind(const struct dnn_jobj *at, const char *word,
                     const struct schedule_kind **out, struct dnn_err *err)
{
    enum { MAX_KINDS = 32 };
    struct dnn_choice choices[MAX_KINDS] = {
        {NULL, 0}
    };
    struct dnn_err why;
    int index;

    for (int i = 0; i < MAX_KINDS - 1 && dnn_schedule_kind(i) != NULL; i++)
        choices[i] = (struct dnn_choice){dnn_schedule_kind(i)->name, i};
    if (dnn_choice_find(choices, word, &index, &why) < 0)
        return dnn_json_fail(at, err, "%s", why.text);
    *out = dnn_schedule_kind(index);
    return 0;
}

static int read_object(struct dnn_schedule *s, const struct dnn_jobj *obj,
                       struct dnn_err *err)
{
    struct part *p = &s->part[s->nparts];
    struct dnn_jobj type = dnn_json_sub(obj, "type"), to = dnn_json_sub(obj, "to");
    char quote[DNN_JSON_QUOTE];
    const char *word;

    if (dnn_json_type(obj) != DNN_J_OBJECT)
        return dnn_json_fail(obj, err, "must be a schedule {\"type\": ...}, not %s",
                             dnn_json_quote(quote, obj));
    if (type.val == NULL) return dnn_json_fail(obj, err, "the key \"type\" is missing");
    DNN_TRY(dnn_json_string(&type, &word, err));
    DNN_TRY(find_kind(&type, word, &p->kind, err));
    p->cfg = dnn_arena_alloc(s->arena, p->kind->size);
    const struct dnn_fill fills[] = {
        {dnn_schedule_common, &p->is},
        {p->kind->fields,     p->cfg}
    };
    DNN_TRY(dnn_field_fill_all(obj, fills, 2, s->arena, err));
    if (p->is.to != 0 && p->is.to <= p->is.from)
        return dnn_json_fail(&to, err, "must be above from, %" PRId64 ", not %" PRId64,
                             p->is.from, p->is.to);
    if (p->kind->check != NULL) DNN_TRY(p->kind->check(obj, p->cfg, err));
    if (p->kind->epoch != NULL) {
        if (s->nstates == DNN_SCHEDULE_STATES)
            return dnn_json_fail(obj, err,
                                 "at most %d schedules may depend on a metric",
                                 DNN_SCHEDULE_STATES);
        p->state = s->nstates++;
    }
    s->nparts++;
    return 0;
}

/* A kind by its name, with its defaults. */
static int read_name(struct dnn_schedule *s, const struct dnn_jobj *obj,
                     struct dnn_err *err)
{
    const struct schedule_kind *kind;
    struct dnn_json *file;
    const char *word;

    DNN_TRY(dnn_json_string(obj, &word, err));
    DNN_TRY(find_kind(obj, word, &kind, err));
    char *text = dnn_format("{\"type\": \"%s\"}", kind->name);
    int rc = dnn_json_text("schedule", text, strlen(text), &file, err);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(file);

        if (read_object(s, &top, NULL) < 0)
            rc = dnn_json_fail(obj, err, "needs keys: write {\"type\": \"%s\", ...}",
                               kind->name);
        dnn_json_free(file);
    }
    dnn_free(text);
    return rc;
}

static int read_part(struct dnn_schedule *s, const struct dnn_jobj *obj,
                     struct dnn_err *err)
{
    return dnn_json_type(obj) == DNN_J_TEXT ? read_name(s, obj, err)
                                            : read_object(s, obj, err);
}

int dnn_schedule_read(const struct dnn_jobj *obj, struct dnn_schedule **out,
                      struct dnn_err *err)
{
    enum dnn_jtype type = dnn_json_type(obj);
    size_t count = type == DNN_J_LIST ? dnn_json_count(obj) : 1;
    struct dnn_schedule *s = dnn_alloc(sizeof *s);
    int rc = 0;

    s->arena = dnn_arena_make();
    s->part = dnn_arena_alloc(s->arena, (count + 1) * sizeof *s->part);
    if (type == DNN_J_LIST)
        for (struct dnn_jobj it = dnn_json_first(obj); rc == 0 && it.val != NULL;
             it = dnn_json_next(&it))
            rc = read_part(s, &it, err);
    else if (type != DNN_J_ABSENT && type != DNN_J_NULL)
        rc = read_part(s, obj, err);
    if (rc < 0) {
        dnn_schedule_free(s);
        return rc;
    }
    *out = s;
    return 0;
}

void dnn_schedule_free(struct dnn_schedule *schedule)
{
    if (schedule == NULL) return;
    dnn_arena_free(schedule->arena);
    dnn_free(schedule);
}

/* ---- rates ---- */

static bool applies(const struct part *p, int64_t epoch)
{
    return epoch >= p->is.from && (p->is.to == 0 || epoch < p->is.to);
}

double dnn_schedule_rate(const struct dnn_schedule *schedule,
                         const struct dnn_schedule_state *state, double base,
                         const struct dnn_schedule_at *at)
{
    for (int i = 0; i < schedule->nparts; i++) {
        const struct part *p = &schedule->part[i];

        if (!applies(p, at->epoch)) continue;
        int64_t per = at->per_epoch > 0 ? at->per_epoch : 1;
        int64_t end =
            p->is.to == 0 || p->is.to > at->total / per ? at->total : p->is.to * per;
        const struct schedule_progress progress = {.step = at->step - p->is.from * per,
                                                   .epoch = at->epoch - p->is.from,
                                                   .per_epoch = per,
                                                   .total = end - p->is.from * per,
                                                   .ranks = at->ranks,
                                                   .reduced = state->reduced[p->state]};
        base = p->kind->rate(p->cfg, &progress, base);
    }
    return base;
}

int dnn_schedule_epoch(const struct dnn_schedule *schedule,
                       struct dnn_schedule_state *state, int n,
                       const struct dnn_named *metric, struct dnn_err *err)
{
    for (int i = 0; i < schedule->nparts; i++) {
        const struct part *p = &schedule->part[i];

        if (p->kind->epoch == NULL) continue;
        if (applies(p, state->seen[p->state]))
            DNN_TRY(p->kind->epoch(p->cfg, state, p->state, n, metric, err));
        state->seen[p->state]++;
    }
    return 0;
}

void dnn_schedule_print(const struct dnn_schedule *schedule, FILE *where)
{
    if (schedule->nparts == 0)
        fputs("constant: the learning rate does not change\n", where);
    for (int i = 0; i < schedule->nparts; i++) {
        const struct part *p = &schedule->part[i];

        fprintf(where, "%s: ", p->kind->name);
        p->kind->print(p->cfg, where);
        if (p->is.from > 0) fprintf(where, ", from epoch %" PRId64, p->is.from);
        if (p->is.to > 0) fprintf(where, ", to epoch %" PRId64, p->is.to);
        fputc('\n', where);
    }
}
