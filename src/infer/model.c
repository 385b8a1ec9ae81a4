/* model.c - a model file applied to inputs: the configuration for it.
 *
 * The model file has the keys that inference needs; paths, formats and the layout of
 * array files are added here.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "infer/infer.h"

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "data/dataset.h"
#include "package/package.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Changes of the configuration, as for --set. */
struct changes {
    int n;
    const char *text[16]; /* owned */
};

static void add(struct changes *c, const char *key, const char *json)
{
    c->text[c->n++] = dnn_format("%s=%s", key, json);
}

static void add_text(struct changes *c, const char *key, const char *value)
{
    struct dnn_buf quoted = {0};

    dnn_json_quoted(&quoted, value);
    add(c, key, quoted.text);
    dnn_buf_free(&quoted);
}

/* "a,b" as ["a", "b"]. */
static void add_list(struct changes *c, const char *key, const char *value)
{
    struct dnn_buf list = {0};

    dnn_buf_add(&list, "[");
    for (const char *at = value; *at != '\0';) {
        size_t len = strcspn(at, ",");
        char *one = dnn_strndup(at, len);

        if (at != value) dnn_buf_add(&list, ", ");
        dnn_json_quoted(&list, one);
        dnn_free(one);
        at += len + (at[len] == ',');
    }
    dnn_buf_add(&list, "]");
    add(c, key, list.text);
    dnn_buf_free(&list);
}

/* ---- paths ---- */

/* The path without links, owned: free(). */
static char *absolute(const char *path, struct dnn_err *err)
{
    char *real = realpath(path, NULL);

    if (real == NULL)
        dnn_fail(err, DNN_EIO, "%s: cannot be read: %s", path, strerror(errno));
    return real;
}

/* The same for a path that becomes a value of the configuration. */
static char *config_path(const char *path, struct dnn_err *err)
{
    char *real = absolute(path, err);

    if (real == NULL || dnn_text_is_utf8(real)) return real;
    dnn_fail(err, DNN_EUSAGE,
             "%s: cannot be used, because the path is not UTF-8; rename its files and "
             "directories",
             real);
    free(real);
    return NULL;
}

static bool is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Several files: a list of them, DIR/inputs.txt. */
static int list_inputs(const struct dnn_infer_model *m, char **out, struct dnn_err *err)
{
    struct dnn_buf list = {0};
    int rc = 0;

    for (int i = 0; i < m->ninputs && rc == 0; i++) {
        char *real = absolute(m->input[i], err);

        if (real == NULL)
            rc = err->code;
        else if (is_dir(real))
            rc = dnn_fail(err, DNN_EUSAGE,
                          "%s: is a directory; give one directory, or files",
                          m->input[i]);
        else
            dnn_buf_add(&list, "%s\n", real);
        free(real);
    }
    char *path = dnn_format("%s/inputs.txt", m->output);
    if (rc == 0) rc = dnn_file_make_dirs(m->output, err);
    if (rc == 0) rc = dnn_file_write(path, list.text, list.len, err);
    if (rc == 0 && (*out = config_path(path, err)) == NULL) rc = err->code;
    dnn_buf_free(&list);
    dnn_free(path);
    return rc;
}

/* ---- array files ---- */

/* Whether samples of this shape are inputs of the network, perhaps in tiles. */
static bool fits(const struct dnn_import *how, const struct dnn_package_input *net)
{
    struct dnn_source *source = NULL;
    bool fits = false;

    if (dnn_import_open(how, &source, NULL) < 0) return false;
    const struct dnn_shape *is = &source->col[0].shape;
    int n = (int)net->shape.count;
    fits = is->ndim == n &&
           (is->dim[n - 1] == DNN_UNKNOWN || is->dim[n - 1] == net->shape.ints[n - 1]);
    dnn_source_close(source);
    return fits;
}

/* How files of arrays are samples of the network: rows or complete files, with channels
 * or without.  The first way that fits; other formats define it themselves. */
static void find_layout(const char *path, const struct dnn_package_input *net,
                        struct dnn_import *out)
{
    static const struct {
        bool whole;
        int layout;
    } way[] = {
        {false, DNN_LAYOUT_AUTO },
        {true,  DNN_LAYOUT_AUTO },
        {true,  DNN_LAYOUT_NONE },
        {false, DNN_LAYOUT_NONE },
        {true,  DNN_LAYOUT_FIRST},
        {false, DNN_LAYOUT_FIRST},
    };
    const struct dnn_import usual = {
        .input = {.path = path, .kind = -1},
          .target = {.kind = -1}
    };

    for (size_t i = 0; i < sizeof way / sizeof *way && net->shape.count > 0; i++) {
        *out = usual;
        out->whole = way[i].whole;
        out->input.layout = way[i].layout;
        out->input.gray = net->shape.ints[net->shape.count - 1] == 1;
        if (fits(out, net)) return;
    }
    *out = usual;
}

/* Whether targets have the axes of inputs; masks have one channel. */
static bool targets_fit(const struct dnn_import *how)
{
    struct dnn_source *source = NULL;
    bool fits = false;

    if (dnn_import_open(how, &source, NULL) < 0) return false;
    if (source->ncols > 1) {
        const struct dnn_column *in = &source->col[0], *to = &source->col[1];
        int last = to->shape.ndim - 1;

        fits = to->kind == DNN_KIND_LABEL || to->kind == DNN_KIND_VALUES ||
               (to->shape.ndim == in->shape.ndim &&
                (to->kind != DNN_KIND_MASK || to->shape.dim[last] == 1 ||
                 to->shape.dim[last] == DNN_UNKNOWN));
    }
    dnn_source_close(source);
    return fits;
}

/* The same for files of targets; their kind is that of the training data. */
static void find_targets(const char *path, const struct dnn_package_info *info,
                         struct dnn_import *how)
{
    static const int order[] = {DNN_LAYOUT_AUTO, DNN_LAYOUT_NONE, DNN_LAYOUT_FIRST};
    const struct dnn_package_target *net = info->targets.objects;

    how->target.path = path;
    if (info->targets.count > 0 && net->kind != NULL &&
        dnn_choice_find(dnn_kind_choices, net->kind, &how->target.kind, NULL) < 0)
        how->target.kind = -1;
    how->target.gray = how->target.kind == DNN_KIND_MASK;
    for (int i = 0; i < 3; i++) {
        how->target.layout = order[i];
        if (targets_fit(how)) return;
    }
    how->target.layout = DNN_LAYOUT_AUTO;
}

static bool has(const struct dnn_list *names, const char *name)
{
    for (int64_t i = 0; i < names->count; i++)
        if (strcmp(names->texts[i], name) == 0) return true;
    return false;
}

/* Whether directories of pictures are classes of the model, which then numbers them;
 * otherwise they are no targets. */
static void find_classes(const struct dnn_package_info *info, struct dnn_import *how)
{
    const struct dnn_package_target *net = info->targets.objects;
    bool labels =
        info->targets.count > 0 && net->kind != NULL &&
        strcmp(net->kind, dnn_choice_name(dnn_kind_choices, DNN_KIND_LABEL)) == 0;
    struct dnn_source *with = NULL, *without = NULL;
    const char *unknown = NULL;

    if (dnn_import_open(how, &with, NULL) < 0) return;
    how->no_classes = true;
    bool classes =
        dnn_import_open(how, &without, NULL) == 0 && with->ncols > without->ncols;
    const struct dnn_column *col = &with->col[with->ncols - 1];
    for (int64_t i = 0; classes && i < col->classes && unknown == NULL; i++)
        if (!has(&net->class_names, col->class_name[i])) unknown = col->class_name[i];
    how->no_classes = classes && (!labels || unknown != NULL);
    if (labels && how->no_classes)
        dnn_log(DNN_WARN, "infer",
                "%s: the directory \"%s\" is not a class of the model; the outputs are "
                "not evaluated",
                how->input.path, unknown);
    else if (classes && labels)
        how->classes = net->class_names;
    dnn_source_close(without);
    dnn_source_close(with);
}

static void add_names(struct dnn_buf *json, const struct dnn_list *names)
{
    for (int64_t i = 0; i < names->count; i++) {
        dnn_buf_add(json, i == 0 ? ", \"classes\": [" : ", ");
        dnn_json_quoted(json, names->texts[i]);
    }
    if (names->count > 0) dnn_buf_add(json, "]");
}

static void add_inputs(struct changes *c, const char *input, const char *target,
                       const struct dnn_package_info *info)
{
    const struct dnn_package_input *net = info->inputs.objects;
    struct dnn_import how = {
        .input = {.path = input, .kind = -1},
          .target = {.kind = -1}
    };
    struct dnn_buf json = {0};

    if (info->inputs.count == 1) find_layout(input, net, &how);
    if (target == NULL) find_classes(info, &how);
    dnn_buf_add(&json, "{\"input_path\": ");
    dnn_json_quoted(&json, input);
    dnn_buf_add(&json, ", \"input_layout\": \"%s\", \"whole\": %s, \"input_gray\": %s",
                dnn_choice_name(dnn_layout_choices, how.input.layout),
                how.whole ? "true" : "false", how.input.gray ? "true" : "false");
    add_names(&json, &how.classes);
    if (how.no_classes) dnn_buf_add(&json, ", \"no_classes\": true");
    if (target != NULL) {
        find_targets(target, info, &how);
        dnn_buf_add(&json, ", \"target_path\": ");
        dnn_json_quoted(&json, target);
        dnn_buf_add(&json,
                    ", \"target_layout\": \"%s\", \"target_gray\": %s, "
                    "\"target_kind\": \"%s\"",
                    dnn_choice_name(dnn_layout_choices, how.target.layout),
                    how.target.gray ? "true" : "false",
                    how.target.kind < 0
                        ? "auto"
                        : dnn_choice_name(dnn_kind_choices, how.target.kind));
    }
    dnn_buf_add(&json, "}");
    add(c, "data.test_from", json.text);
    dnn_buf_free(&json);
}

/* ---- the configuration ---- */

/* Whether a path is a dataset of dnn-prepare. */
static bool is_dataset(const char *path)
{
    char *inside = dnn_format("%s/md.idx", path);
    bool is = access(inside, F_OK) == 0;

    dnn_free(inside);
    return is;
}

/* Whether --set has this key. */
static bool is_set(const struct dnn_infer_model *m, const char *key)
{
    size_t len = strlen(key);
    bool is = false;

    for (int i = 0; i < m->nset; i++)
        is = is || (strncmp(m->set[i], key, len) == 0 && m->set[i][len] == '=');
    return is;
}

/* The steps of a record that change samples, as JSON; NULL: unknown.  The caller owns
 * it: dnn_free(). */
static char *steps_of(const char *record)
{
    struct dnn_json *file = NULL;
    struct dnn_buf out = {0};

    if (record == NULL ||
        dnn_json_text("steps", record, strlen(record), &file, NULL) < 0)
        return NULL;
    struct dnn_jobj top = dnn_json_top(file), steps = dnn_json_sub(&top, "steps");
    dnn_buf_add(&out, "[");
    for (struct dnn_jobj it = dnn_json_first(&steps); it.val != NULL;
         it = dnn_json_next(&it)) {
        struct dnn_jobj step = dnn_json_first(&it);

        if (step.val == NULL || strcmp(step.name, "split") == 0 ||
            strcmp(step.name, "balance") == 0)
            continue;
        char *text = dnn_json_compact(&it);
        dnn_buf_add(&out, "%s%s", out.len > 1 ? ", " : "", text);
        dnn_free(text);
    }
    dnn_buf_add(&out, "]");
    dnn_json_free(file);
    return out.text;
}

/* A dataset is used as it is: warn if its steps are not those of the training data. */
static void compare_steps(const char *path, const char *record, const char *trained)
{
    char *is = steps_of(record), *was = steps_of(trained);

    if (is != NULL && was != NULL && strcmp(is, was) != 0)
        dnn_log(
            DNN_WARN, "infer",
            "%s was prepared with the steps %s, but the training data with %s; give "
            "the files that it was made from, or prepare it with the same steps",
            path, is, was);
    dnn_free(is);
    dnn_free(was);
}

/* The split of a dataset: test, or the only one. */
static int find_split(const struct dnn_dataset_info *set, const char *path,
                      struct changes *c, struct dnn_err *err)
{
    struct dnn_buf names = {0};

    for (int i = 0; i < set->nsplits; i++) {
        if (strcmp(set->split[i].name, "test") == 0) return 0;
        dnn_buf_add(&names, "%s%s", i == 0 ? "" : ", ", set->split[i].name);
    }
    int rc = 0;
    if (set->nsplits == 1)
        add_text(c, "data.test_split", set->split[0].name);
    else
        rc = dnn_fail(err, DNN_EDATA,
                      "%s: there is no split \"test\"; choose one of %s: --set "
                      "data.test_split=%s",
                      path, names.text, set->split[set->nsplits - 1].name);
    dnn_buf_free(&names);
    return rc;
}

static int add_dataset(const struct dnn_infer_model *m,
                       const struct dnn_package_info *info, const char *path,
                       struct changes *c, struct dnn_err *err)
{
    struct dnn_dataset *set;

    if (m->target != NULL)
        return dnn_fail(err, DNN_EUSAGE,
                        "--target: %s is a dataset, which has its own targets", path);
    add_text(c, "data.test_dataset", path);
    DNN_TRY(dnn_dataset_open(NULL, path, 1, &set, err));
    compare_steps(path, dnn_dataset_info(set)->provenance, info->preparation);
    int rc = is_set(m, "data.test_split")
                 ? 0
                 : find_split(dnn_dataset_info(set), path, c, err);
    dnn_dataset_close(set);
    return rc;
}

static int add_samples(const struct dnn_infer_model *m,
                       const struct dnn_package_info *info, const char *model,
                       struct changes *c, struct dnn_err *err)
{
    char *input = NULL, *target = NULL;
    int rc = 0;

    if (m->ninputs > 1)
        rc = list_inputs(m, &input, err);
    else if ((input = config_path(m->input[0], err)) == NULL)
        rc = err->code;
    if (rc == 0 && m->target != NULL && (target = config_path(m->target, err)) == NULL)
        rc = err->code;
    if (rc == 0 && is_dataset(input)) {
        rc = add_dataset(m, info, input, c, err);
    } else if (rc == 0) {
        add_inputs(c, input, target, info);
        if (info->preparation != NULL) add_text(c, "data.test_preparation", model);
    }
    free(input);
    free(target);
    return rc;
}

static void put_keys(struct dnn_buf *out, const struct dnn_jobj *at,
                     const char *const *key)
{
    const char *comma = "";

    for (; *key != NULL; key++) {
        struct dnn_jobj value = dnn_json_sub(at, *key);
        char *text = dnn_json_compact(&value);

        if (text == NULL) continue;
        dnn_buf_add(out, "%s\"%s\": %s", comma, *key, text);
        comma = ", ";
        dnn_free(text);
    }
}

/* The configuration of a model file, only with the keys that dnn-train writes:
 * a file of others must not choose paths.  The caller frees *out. */
static int model_keys(const struct dnn_infer_model *m, const struct dnn_package *p,
                      struct dnn_buf *out, struct dnn_err *err)
{
    static const char *const top[] = {"loss", "metrics", "inference", NULL};
    const char *text = dnn_package_config(p);
    char *name = dnn_format("%s/dnn.json: inference", m->model);
    struct dnn_json *file = NULL;

    int rc = dnn_json_text(name, text, strlen(text), &file, err);
    dnn_free(name);
    DNN_TRY(rc);
    struct dnn_jobj all = dnn_json_top(file), of = dnn_json_sub(&all, "data");
    struct dnn_buf own = {0}, sub = {0};
    put_keys(&own, &all, top);
    put_keys(&sub, &of, dnn_package_data_keys);
    dnn_buf_add(out, "{%s%s\"data\": {%s}}", own.len > 0 ? own.text : "",
                own.len > 0 ? ", " : "", sub.len > 0 ? sub.text : "");
    dnn_buf_free(&own);
    dnn_buf_free(&sub);
    dnn_json_free(file);
    return 0;
}

static int read_config(const struct dnn_infer_model *m, const struct dnn_package *p,
                       const char *model, struct changes *c, struct dnn_config *out,
                       struct dnn_err *err)
{
    struct dnn_buf text = {0};
    const char **all = dnn_alloc((size_t)(m->nset + 16) * sizeof *all);
    char *name = dnn_format("%s/infer.json", m->output);

    add_text(c, "layers", model);
    add_text(c, "checkpoints.load", model);
    add_text(c, "dir", m->output);
    if (m->formats != NULL) add_list(c, "inference.formats", m->formats);
    if (m->contents != NULL) add_list(c, "inference.contents", m->contents);
    int rc = model_keys(m, p, &text, err);
    if (rc == 0) rc = add_samples(m, dnn_package_info(p), model, c, err);
    memcpy(all, c->text, (size_t)c->n * sizeof *all);
    for (int i = 0; i < m->nset; i++)
        all[c->n + i] = m->set[i];
    if (rc == 0)
        rc = dnn_config_read_text(name, text.text, text.len, c->n + m->nset, all, out,
                                  err);
    for (int i = 0; i < c->n; i++)
        dnn_free((char *)(uintptr_t)c->text[i]);
    dnn_buf_free(&text);
    dnn_free(all);
    dnn_free(name);
    return rc;
}

int dnn_infer_model_config(const struct dnn_infer_model *m,
                           struct dnn_package **package, struct dnn_config *out,
                           struct dnn_err *err)
{
    struct changes c = {0};
    char *model = config_path(m->model, err), *output = NULL;

    *package = NULL;
    if (model == NULL) return err->code;
    int rc = dnn_package_open_network(m->model, package, err);
    struct dnn_infer_model with = *m;
    if (rc == 0) rc = dnn_file_make_dirs(m->output, err);
    if (rc == 0 && (output = config_path(m->output, err)) == NULL) rc = err->code;
    with.output = output;
    if (rc == 0) rc = read_config(&with, *package, model, &c, out, err);
    free(model);
    free(output);
    if (rc < 0) {
        dnn_package_close(*package);
        *package = NULL;
    }
    return rc;
}
