/* sections.c - the parts of a job that other rooms read.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config/job_impl.h"

#include "base/text.h"
#include "parallel/rule.h"

#include <string.h>

/* ---- loss, optimizer, rule ---- */

static void print_loss(const void *what, FILE *where)
{
    dnn_loss_print(what, where);
}

static int read_loss(const struct dnn_jobj *top, struct dnn_job *job,
                     struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(top, "loss");

    job->has_loss = at.val != NULL;
    DNN_TRY(dnn_loss_read(&at, &job->loss, err));
    job->loss_text = dnn_job_printed(job, print_loss, job->loss);
    return 0;
}

static void print_optim(const void *what, FILE *where)
{
    dnn_optim_print(what, where);
}

/* The optimizer with its numbers, and its schedule as it was written. */
static const char *optimizer_text(const struct dnn_jobj *scheduler,
                                  const struct dnn_job *job)
{
    const char *text = dnn_job_printed(job, print_optim, &job->optimizer);
    char *schedule = dnn_json_compact(scheduler);
    size_t len = strlen(text);

    if (schedule == NULL) return text;
    while (len > 0 && strchr("}\n", text[len - 1]) != NULL)
        len--;
    char *whole =
        dnn_format("%.*s,\n    \"lr_scheduler\": %s\n}", (int)len, text, schedule);
    text = dnn_arena_strdup(dnn_json_arena(job->file), whole);
    dnn_free(whole);
    dnn_free(schedule);
    return text;
}

static int read_optimizer(const struct dnn_jobj *top, struct dnn_job *job,
                          struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(top, "optimizer");
    struct dnn_jobj scheduler = dnn_json_sub(&at, "lr_scheduler");

    DNN_TRY(dnn_optim_read(&at, &job->optimizer, err));
    DNN_TRY(dnn_schedule_read(&scheduler, &job->schedule, err));
    job->optimizer_text = optimizer_text(&scheduler, job);
    return 0;
}

static int check_rule(const struct dnn_jobj *top, const struct dnn_job *job,
                      struct dnn_err *err)
{
    struct dnn_jobj parallel = dnn_json_sub(top, "parallel");
    struct dnn_jobj rule = dnn_json_sub(&parallel, "rule");
    struct dnn_jobj compress = dnn_json_sub(&parallel, "compress");
    struct dnn_err why;

    if (dnn_rule_find(job->parallel->rule, &why) == NULL)
        return dnn_json_fail(&rule, err, "%s", why.text);
    if (job->deterministic && job->parallel->compress != DNN_COMPRESS_NONE)
        return dnn_json_fail(
            &compress, err,
            "does not go with \"deterministic\": what is rounded on the "
            "way depends on the number of ranks");
    return 0;
}

/* ---- stopping ---- */

/* NULL if there is none. */
static int read_stopping(const struct dnn_jobj *at, const struct dnn_job *job,
                         const struct dnn_stopping **out, struct dnn_err *err)
{
    struct dnn_stopping *stopping;

    *out = NULL;
    if (at->val == NULL || dnn_json_type(at) == DNN_J_NULL) return 0;
    stopping = dnn_arena_alloc(dnn_json_arena(job->file), sizeof *stopping);
    DNN_TRY(dnn_stopping_read(at, NULL, stopping, err));
    *out = stopping;
    return 0;
}

static int read_stops(const struct dnn_jobj *top, struct dnn_job *job,
                      struct dnn_err *err)
{
    struct dnn_jobj early = dnn_json_sub(top, "early_stopping");
    struct dnn_jobj goal = dnn_json_sub(top, "target_metric");

    DNN_TRY(read_stopping(&early, job, &job->early, err));
    return read_stopping(&goal, job, &job->goal, err);
}

/* ---- metrics ---- */

int dnn_job_metrics(const struct dnn_job *job, const char *const *usual,
                    int64_t classes, struct dnn_metrics **out, struct dnn_err *err)
{
    struct dnn_job_at at;

    dnn_job_find(job, &at);
    struct dnn_jobj list = dnn_json_sub(at.top, "metrics");
    if (dnn_json_type(&list) == DNN_J_NULL) list.val = NULL;
    return dnn_metrics_read(&list, usual, classes, out, err);
}

int dnn_job_check_metrics(const struct dnn_job *job, struct dnn_err *err)
{
    const struct dnn_graph *graph = job->net.graph;
    const struct dnn_shape *shape = &graph->node[graph->output[0]].out;
    struct dnn_metrics *metrics = NULL;

    if (job->metrics_text == NULL) return 0;
    int rc = dnn_job_metrics(job, NULL, shape->dim[shape->ndim - 1], &metrics, err);
    dnn_metrics_free(metrics);
    return rc;
}

/* ---- transforms ---- */

/* Whether one transform of a list is random. */
static int is_random(const struct dnn_jobj *item, bool *out, struct dnn_err *err)
{
    char *one = dnn_json_compact(item);
    char *list = dnn_format("[%s]", one);
    struct dnn_augment *augment = NULL;
    struct dnn_json *file = NULL;
    int rc = dnn_json_text("transforms", list, strlen(list), &file, err);

    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(file);

        rc = dnn_augment_read(&top, NULL, NULL, &augment, err);
    }
    if (rc == 0) *out = dnn_augment_random(augment);
    dnn_augment_free(augment);
    dnn_json_free(file);
    dnn_free(list);
    dnn_free(one);
    return rc;
}

/* Add a list under its key without what is random, every transform on the line it has
 * in the job, so that messages name it. */
static int add_steady(const struct dnn_jobj *data, const char *key, size_t *line,
                      struct dnn_buf *out, struct dnn_err *err)
{
    struct dnn_jobj list = dnn_json_sub(data, key);
    const char *comma = "";
    bool random = false;

    if (dnn_json_type(&list) != DNN_J_LIST) return 0;
    dnn_buf_add(out, "%s\"%s\": [", out->text[out->len - 1] == '{' ? "" : ", ", key);
    for (struct dnn_jobj it = dnn_json_first(&list); it.val != NULL;
         it = dnn_json_next(&it)) {
        DNN_TRY(is_random(&it, &random, err));
        if (random) continue;
        char *text = dnn_json_compact(&it);
        dnn_buf_add(out, "%s", comma);
        for (size_t at = dnn_json_line(&it); *line < at; ++*line)
            dnn_buf_add(out, "\n");
        dnn_buf_add(out, "%s", text);
        dnn_free(text);
        comma = ", ";
    }
    dnn_buf_add(out, "]");
    return 0;
}

/* Read up to three lists of an object; *out stays NULL if there are none. */
static int read_lists(const struct dnn_jobj *data, const char *const key[3],
                      struct dnn_augment **out, struct dnn_err *err)
{
    struct dnn_jobj list[3];
    bool any = false;

    for (int i = 0; i < 3; i++) {
        list[i] = dnn_json_sub(data, key[i]);
        if (dnn_json_type(&list[i]) == DNN_J_NULL) list[i].val = NULL;
        any = any || list[i].val != NULL;
    }
    return any ? dnn_augment_read(&list[0], &list[1], &list[2], out, err) : 0;
}

static const char *const train_keys[] = {"transforms", "input_transforms",
                                         "target_transforms"};
static const char *const test_keys[] = {"test_transforms", "test_input_transforms",
                                        "test_target_transforms"};

static int read_steady(const struct dnn_job *job, const struct dnn_jobj *data,
                       struct dnn_augment **out, struct dnn_err *err)
{
    struct dnn_buf text = {0};
    struct dnn_json *file = NULL;
    size_t line = 1;
    int rc = 0;

    dnn_buf_add(&text, "{\"data\": {");
    for (int i = 0; rc == 0 && i < 3; i++)
        rc = add_steady(data, train_keys[i], &line, &text, err);
    dnn_buf_add(&text, "}}");
    if (rc == 0)
        rc = dnn_json_text(dnn_json_name(job->file), text.text, text.len, &file, err);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(file), inner = dnn_json_sub(&top, "data");

        rc = read_lists(&inner, train_keys, out, err);
    }
    dnn_json_free(file);
    dnn_buf_free(&text);
    return rc;
}

int dnn_job_augment(const struct dnn_job *job, bool test, struct dnn_augment **out,
                    struct dnn_err *err)
{
    struct dnn_job_at at;

    *out = NULL;
    if (job->data == NULL) return 0;
    dnn_job_find(job, &at);
    if (!test) return read_lists(&at.data, train_keys, out, err);
    if (job->data->test_transforms != NULL ||
        job->data->test_input_transforms != NULL ||
        job->data->test_target_transforms != NULL)
        return read_lists(&at.data, test_keys, out, err);
    return read_steady(job, &at.data, out, err);
}

/* What is wrong is said now. */
static int check_transforms(const struct dnn_job *job, struct dnn_err *err)
{
    for (int test = 0; test < 2; test++) {
        struct dnn_augment *augment = NULL;

        DNN_TRY(dnn_job_augment(job, test == 1, &augment, err));
        dnn_augment_free(augment);
    }
    return 0;
}

bool dnn_job_ignores(const struct dnn_job *job)
{
    struct dnn_job_at at;

    dnn_job_find(job, &at);
    struct dnn_jobj loss = dnn_json_sub(at.top, "loss"), it = dnn_json_first(&loss);
    if (dnn_json_type(&loss) == DNN_J_OBJECT)
        return dnn_json_sub(&loss, "ignore_index").val != NULL;
    for (; dnn_json_type(&loss) == DNN_J_LIST && it.val != NULL;
         it = dnn_json_next(&it))
        if (dnn_json_sub(&it, "ignore_index").val != NULL) return true;
    return false;
}

/* ---- all ---- */

int dnn_job_read_sections(const struct dnn_jobj *top, struct dnn_job *job,
                          struct dnn_err *err)
{
    DNN_TRY(read_loss(top, job, err));
    DNN_TRY(read_optimizer(top, job, err));
    DNN_TRY(check_rule(top, job, err));
    DNN_TRY(read_stops(top, job, err));
    return check_transforms(job, err);
}
