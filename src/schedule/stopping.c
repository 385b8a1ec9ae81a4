/* stopping.c - early stopping, and the best epoch.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "schedule/stopping.h"
#include "schedule/schedule_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

const struct dnn_choice dnn_better_choices[] = {
    {"auto", DNN_BETTER_AUTO},
    {"min",  DNN_BETTER_LESS},
    {"max",  DNN_BETTER_MORE},
    {NULL,   0              }
};

#define AT(f) offsetof(struct dnn_stopping, f)
const struct dnn_field dnn_stopping_fields[] = {
    {"metric",  DNN_F_TEXT,  AT(metric),  "val_loss", 0, 0,                   NULL,
     "metric to monitor, \"val_...\" for validation; an alias such as val_acc works, "
     "and "
     "a name of cross-entropy (val_categorical_cross_entropy) means the loss",           NULL},
    ENUM("mode", AT(mode), "auto", dnn_better_choices,
         "min: lower is better, max: higher is"),
    INT("patience", AT(patience), "10", 0,
        "stop after this many epochs without improvement; 0: only at the target"),
    {"window",  DNN_F_INT,   AT(window),  "0",        0, DNN_STOPPING_WINDOW, NULL,
     "stop when the mean of this many epochs is not better than that of as many before", NULL},
    REAL("min_delta", AT(min_delta), "0", 0, INFINITY,
         "minimum change that counts as an improvement"),
    {"target",  DNN_F_OTHER, 0,           "null",     0, 0,                   NULL,
     "stop when the metric reaches this value",                                          NULL},
    {"restore", DNN_F_BOOL,  AT(restore), "false",    0, 0,                   NULL,
     "restore the best weights at the end",                                              NULL},
    END
};

bool dnn_better_more(const char *metric, int mode)
{
    static const char *const less[] = {"loss", "error", NULL};
    static const char *const more[] = {"acc",    "dice", "iou", "jaccard", "precision",
                                       "recall", "f1",   "auc", "r2",      NULL};

    if (mode != DNN_BETTER_AUTO) return mode == DNN_BETTER_MORE;
    for (int i = 0; less[i] != NULL; i++)
        if (strcasestr(metric, less[i]) != NULL) return false;
    for (int i = 0; more[i] != NULL; i++)
        if (strcasestr(metric, more[i]) != NULL) return true;
    return false;
}

/* ---- reading ---- */

static int wrong(struct dnn_err *err, const char *text)
{
    return dnn_fail(err, DNN_ECONFIG,
                    "must be \"METRIC,>,NUMBER\" (or <), or \"METRIC,~<,EPOCHS\" (or "
                    "~>), not \"%s\"",
                    text);
}

/* Parse "metric,comparison,number"; the metric is not copied. */
static int parse(const char *text, struct dnn_stopping *out, struct dnn_err *err)
{
    const char *sign = strchr(text, ',');
    const char *number = sign == NULL ? NULL : strchr(sign + 1, ',');

    if (number == NULL || sign == text) return wrong(err, text);
    sign++;
    bool means = *sign == '~';
    if (means) sign++;
    if ((*sign != '<' && *sign != '>') || sign + 1 != number) return wrong(err, text);
    *out =
        (struct dnn_stopping){.mode = *sign == '<' ? DNN_BETTER_LESS : DNN_BETTER_MORE};
    if (!means) {
        out->has_target = true;
        return dnn_text_real(number + 1, &out->target) && isfinite(out->target)
                   ? 0
                   : wrong(err, text);
    }
    long long epochs;
    if (!dnn_text_int(number + 1, &epochs)) return wrong(err, text);
    if (epochs < 1 || epochs > DNN_STOPPING_WINDOW)
        return dnn_fail(err, DNN_ECONFIG,
                        "\"%s\": the number of epochs must be between 1 and %d", text,
                        DNN_STOPPING_WINDOW);
    out->window = epochs;
    return 0;
}

static int read_text(const struct dnn_jobj *obj, struct dnn_arena *arena,
                     struct dnn_stopping *out, struct dnn_err *err)
{
    struct dnn_err why;
    const char *text;

    DNN_TRY(dnn_json_string(obj, &text, err));
    if (parse(text, out, &why) < 0) return dnn_json_fail(obj, err, "%s", why.text);
    char *metric =
        dnn_arena_strdup(arena == NULL ? dnn_json_arena(obj->file) : arena, text);
    metric[strcspn(metric, ",")] = '\0';
    out->metric = metric;
    return 0;
}

int dnn_stopping_read(const struct dnn_jobj *obj, struct dnn_arena *arena,
                      struct dnn_stopping *out, struct dnn_err *err)
{
    struct dnn_jobj target = dnn_json_sub(obj, "target");
    struct dnn_jobj patience = dnn_json_sub(obj, "patience");

    if (dnn_json_type(obj) == DNN_J_TEXT) return read_text(obj, arena, out, err);
    *out = (struct dnn_stopping){0};
    DNN_TRY(dnn_field_fill(obj, dnn_stopping_fields, arena, out, err));
    if (target.val != NULL && dnn_json_type(&target) != DNN_J_NULL) {
        DNN_TRY(dnn_json_real(&target, &out->target, err));
        out->has_target = true;
    }
    /* With a target or a window, the default of patience is 0. */
    if (patience.val == NULL && (out->has_target || out->window > 0)) out->patience = 0;
    if (out->patience == 0 && !out->has_target && out->window == 0)
        return dnn_json_fail(obj, err,
                             "never stops: give a patience, a window or a target");
    return 0;
}

/* ---- deciding ---- */

static bool better(bool more, double now, double than, double by)
{
    if (isnan(now)) return false;
    if (isnan(than)) return true;
    return more ? now > than + by : now < than - by;
}

/* The means of the last window epochs and of the same number before; false: too few. */
static bool means(const struct dnn_stopping *rule, const struct dnn_stopping_state *m,
                  double *last, double *before)
{
    int64_t n = rule->window;

    if (n == 0 || m->seen < 2 * n) return false;
    *last = *before = 0;
    for (int64_t i = 0; i < n; i++) {
        *last += m->recent[(m->seen - 1 - i) % (2 * n)] / (double)n;
        *before += m->recent[(m->seen - 1 - n - i) % (2 * n)] / (double)n;
    }
    return true;
}

static bool at_target(const struct dnn_stopping *rule, bool more, double now)
{
    return rule->has_target && (more ? now >= rule->target : now <= rule->target);
}

int dnn_stopping_epoch(const struct dnn_stopping *rule,
                       struct dnn_stopping_state *state, int64_t epoch, int n,
                       const struct dnn_named *metric, bool *stop, bool *improved,
                       char why[256], struct dnn_err *err)
{
    bool more = dnn_better_more(rule->metric, rule->mode);
    double now, last, before;

    DNN_TRY(dnn_schedule_find("early stopping", rule->metric, n, metric, &now, err));
    *improved = !isnan(now) &&
                (state->seen == 0 || better(more, now, state->best, rule->min_delta));
    state->bad = *improved ? 0 : state->bad + 1;
    if (*improved || state->seen == 0) {
        state->best = now;
        state->best_epoch = epoch;
    }
    if (rule->window > 0) state->recent[state->seen % (2 * rule->window)] = now;
    state->seen++;
    *stop = true;
    if (at_target(rule, more, now))
        snprintf(why, 256, "%s is %g, target %g reached", rule->metric, now,
                 rule->target);
    else if (rule->patience > 0 && state->bad >= rule->patience)
        snprintf(why, 256,
                 "%s has not improved for %" PRId64 " epochs; the best was %g after "
                 "epoch %" PRId64,
                 rule->metric, state->bad, state->best, state->best_epoch);
    else if (means(rule, state, &last, &before) &&
             !better(more, last, before, rule->min_delta))
        snprintf(why, 256,
                 "the mean of %s was %g in the last %" PRId64
                 " epochs, and %g in those "
                 "before",
                 rule->metric, last, rule->window, before);
    else
        *stop = false;
    return 0;
}
