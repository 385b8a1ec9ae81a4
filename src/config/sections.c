/* sections.c - the parts of a configuration that other components read.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config/run_config_impl.h"

#include "base/text.h"
#include "parallel/rule.h"

#include <inttypes.h>
#include <string.h>

/* ---- loss, optimizer, rule ---- */

static void print_loss(const void *what, FILE *where)
{
    dnn_loss_print(what, where);
}

static int read_loss(const struct dnn_jobj *top, struct dnn_config *config,
                     struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(top, "loss");

    config->has_loss = at.val != NULL;
    DNN_TRY(dnn_loss_read(&at, &config->loss, err));
    config->loss_text = dnn_config_printed(config, print_loss, config->loss);
    return 0;
}

static void print_optim(const void *what, FILE *where)
{
    dnn_optim_print(what, where);
}

/* The optimizer with its defaults, and its schedule as it was written. */
static const char *optimizer_text(const struct dnn_jobj *scheduler,
                                  const struct dnn_config *config)
{
    const char *text = dnn_config_printed(config, print_optim, &config->optimizer);
    char *schedule = dnn_json_compact(scheduler);
    size_t len = strlen(text);

    if (schedule == NULL) return text;
    while (len > 0 && strchr("}\n", text[len - 1]) != NULL)
        len--;
    char *whole =
        dnn_format("%.*s,\n    \"lr_scheduler\": %s\n}", (int)len, text, schedule);
    text = dnn_arena_strdup(dnn_json_arena(config->file), whole);
    dnn_free(whole);
    dnn_free(schedule);
    return text;
}

static int read_optimizer(const struct dnn_jobj *top, struct dnn_config *config,
                          struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(top, "optimizer");
    struct dnn_jobj scheduler = dnn_json_sub(&at, "lr_scheduler");

    DNN_TRY(dnn_optim_read(&at, &config->optimizer, err));
    DNN_TRY(dnn_schedule_read(&scheduler, &config->schedule, err));
    config->optimizer_text = optimizer_text(&scheduler, config);
    return 0;
}

static int check_scaling(const struct dnn_jobj *top, const struct dnn_config *config,
                         struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(top, "learning_rate_scaling");

    if (!config->deterministic || !config->learning_rate_scaling) return 0;
    return dnn_json_fail(&at, err,
                         "cannot be combined with \"deterministic\": results would "
                         "depend on the number of ranks");
}

int dnn_config_set_ranks(struct dnn_config *config, int ranks, struct dnn_err *err)
{
    struct dnn_config_data *data = (struct dnn_config_data *)config->data;
    struct dnn_config_at at;

    if (data != NULL && data->batch_size_per_rank > 0) {
        int64_t batch = data->batch_size_per_rank * ranks;

        if (batch > DNN_CONFIG_BATCH)
            return dnn_fail(err, DNN_ECONFIG,
                            "data.batch_size_per_rank: %" PRId64
                            " on %d ranks is more than %d samples; make it smaller",
                            data->batch_size_per_rank, ranks, DNN_CONFIG_BATCH);
        config->batch_size = data->batch_size = batch;
        data->batch_size_per_rank = 0;
    }
    if (config->learning_rate_scaling) {
        dnn_config_find(config, &at);
        struct dnn_jobj optimizer = dnn_json_sub(at.top, "optimizer");
        struct dnn_jobj scheduler = dnn_json_sub(&optimizer, "lr_scheduler");

        config->optimizer.rate *= ranks;
        config->learning_rate_scaling = false;
        config->optimizer_text = optimizer_text(&scheduler, config);
    }
    return 0;
}

static int check_rule(const struct dnn_jobj *top, const struct dnn_config *config,
                      struct dnn_err *err)
{
    struct dnn_jobj parallel = dnn_json_sub(top, "parallel");
    struct dnn_jobj rule = dnn_json_sub(&parallel, "rule");
    struct dnn_jobj compress = dnn_json_sub(&parallel, "compress");
    struct dnn_err why;

    if (dnn_rule_find(config->parallel->rule, &why) == NULL)
        return dnn_json_fail(&rule, err, "%s", why.text);
    if (config->deterministic && config->parallel->compress != DNN_COMPRESS_NONE)
        return dnn_json_fail(
            &compress, err,
            "cannot be combined with \"deterministic\": rounding would "
            "depend on the number of ranks");
    return 0;
}

/* ---- stopping ---- */

/* NULL if there is none. */
static int read_stopping(const struct dnn_jobj *at, const struct dnn_config *config,
                         const struct dnn_stopping **out, struct dnn_err *err)
{
    struct dnn_stopping *stopping;

    *out = NULL;
    if (at->val == NULL || dnn_json_type(at) == DNN_J_NULL) return 0;
    stopping = dnn_arena_alloc(dnn_json_arena(config->file), sizeof *stopping);
    DNN_TRY(dnn_stopping_read(at, NULL, stopping, err));
    *out = stopping;
    return 0;
}

static int read_stops(const struct dnn_jobj *top, struct dnn_config *config,
                      struct dnn_err *err)
{
    struct dnn_jobj early = dnn_json_sub(top, "early_stopping");
    struct dnn_jobj goal = dnn_json_sub(top, "target_metric");

    DNN_TRY(read_stopping(&early, config, &config->early, err));
    return read_stopping(&goal, config, &config->goal, err);
}

/* ---- metrics ---- */

int dnn_config_metrics(const struct dnn_config *config, const char *const *usual,
                       int64_t classes, struct dnn_metrics **out, struct dnn_err *err)
{
    struct dnn_config_at at;

    dnn_config_find(config, &at);
    struct dnn_jobj list = dnn_json_sub(at.top, "metrics");
    if (dnn_json_type(&list) == DNN_J_NULL) list.val = NULL;
    return dnn_metrics_read(&list, usual, classes, out, err);
}

int dnn_config_check_metrics(const struct dnn_config *config, struct dnn_err *err)
{
    const struct dnn_graph *graph = config->net.graph;
    const struct dnn_shape *shape = &graph->node[graph->output[0]].out;
    struct dnn_metrics *metrics = NULL;

    if (config->metrics_text == NULL) return 0;
    int rc =
        dnn_config_metrics(config, NULL, shape->dim[shape->ndim - 1], &metrics, err);
    dnn_metrics_free(metrics);
    return rc;
}

/* ---- transforms ---- */

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

int dnn_config_augment(const struct dnn_config *config, bool test,
                       struct dnn_augment **out, struct dnn_err *err)
{
    struct dnn_config_at at;

    *out = NULL;
    if (config->data == NULL) return 0;
    dnn_config_find(config, &at);
    if (!test) return read_lists(&at.data, train_keys, out, err);
    if (config->data->test_transforms != NULL ||
        config->data->test_input_transforms != NULL ||
        config->data->test_target_transforms != NULL)
        return read_lists(&at.data, test_keys, out, err);
    DNN_TRY(read_lists(&at.data, train_keys, out, err));
    if (*out != NULL) dnn_augment_drop_random(*out);
    return 0;
}

/* Report errors in transforms when the file is read. */
static int check_transforms(const struct dnn_config *config, struct dnn_err *err)
{
    for (int test = 0; test < 2; test++) {
        struct dnn_augment *augment = NULL;

        DNN_TRY(dnn_config_augment(config, test == 1, &augment, err));
        dnn_augment_free(augment);
    }
    return 0;
}

int64_t dnn_config_ignored(const struct dnn_config *config)
{
    struct dnn_config_at at;
    int64_t class = -1;

    dnn_config_find(config, &at);
    struct dnn_jobj loss = dnn_json_sub(at.top, "loss"), it = dnn_json_first(&loss);
    if (dnn_json_type(&loss) == DNN_J_OBJECT) it = loss;
    for (; dnn_json_type(&it) == DNN_J_OBJECT && class < 0; it = dnn_json_next(&it)) {
        struct dnn_jobj value = dnn_json_sub(&it, "ignore_index");

        if (value.val != NULL && dnn_json_int(&value, &class, NULL) < 0) class = -1;
        if (dnn_json_type(&loss) == DNN_J_OBJECT) break;
    }
    return class;
}

bool dnn_config_ignores(const struct dnn_config *config)
{
    return dnn_config_ignored(config) >= 0;
}

/* ---- all ---- */

int dnn_config_read_sections(const struct dnn_jobj *top, struct dnn_config *config,
                             struct dnn_err *err)
{
    DNN_TRY(read_loss(top, config, err));
    DNN_TRY(read_optimizer(top, config, err));
    DNN_TRY(check_scaling(top, config, err));
    DNN_TRY(check_rule(top, config, err));
    DNN_TRY(read_stops(top, config, err));
    return check_transforms(config, err);
}
