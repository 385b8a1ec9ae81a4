/* cli_config.c - options of the command line as the JSON of a configuration.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/cli_config.h"

#include "base/text.h"
#include "prepare/prepare_impl.h"

#include <string.h>

/* ---- options of the import ---- */

/* --from and --target. */
static bool is_path(const char *key)
{
    return strcmp(key, "input_path") == 0 || strcmp(key, "target_path") == 0;
}

bool dnn_prepare_import_option(int index, struct dnn_option *out, char name[64],
                               bool *end)
{
    const struct dnn_field *f = &dnn_import_fields[index];
    bool flag = f->type == DNN_F_BOOL;

    *end = f->key == NULL;
    if (*end || index >= DNN_PREPARE_IMPORTS) return false;
    if (is_path(f->key)) return false;
    snprintf(name, 64, "%s", strcmp(f->key, "split") == 0 ? "from-split" : f->key);
    for (char *c = name; *c != '\0'; c++)
        if (*c == '_') *c = '-';
    *out = (struct dnn_option){
        .name = name,
        .type = flag ? DNN_O_FLAG : DNN_O_TEXT,
        .offset = flag ? offsetof(struct dnn_cli_config, import_flag) +
                             (size_t)index * sizeof(bool)
                       : offsetof(struct dnn_cli_config, import) +
                             (size_t)index * sizeof(const char *),
        .arg = flag                            ? NULL
               : f->type == DNN_F_INTS         ? "N,N..."
               : f->type == DNN_F_TEXTS        ? "NAME,NAME..."
               : f->type == DNN_F_INT          ? "N"
               : f->type == DNN_F_ENUM         ? "WORD"
               : strstr(f->key, "dir") != NULL ? "DIR"
                                               : "TEXT",
        .help = f->help,
    };
    return true;
}

/* ---- values ---- */

/* "64x64" or "64,64" as [64, 64]. */
static int add_numbers(struct dnn_buf *out, const char *option, const char *text,
                       size_t len, struct dnn_err *err)
{
    const char *at = text, *end = text + len, *comma = "";

    dnn_buf_add(out, "[");
    for (; at <= end; at++) {
        size_t n = strcspn(at, "x,");
        double value;

        if (n > (size_t)(end - at)) n = (size_t)(end - at);
        char *word = dnn_strndup(at, n);
        bool good = dnn_text_real(word, &value);
        if (good) dnn_buf_add(out, "%s%s", comma, word);
        dnn_free(word);
        if (!good)
            return dnn_fail(
                err, DNN_EUSAGE,
                "--%s: must be numbers such as 64x64 or 0.5,0.5, not \"%s\"", option,
                text);
        comma = ", ";
        at += n;
    }
    dnn_buf_add(out, "]");
    return 0;
}

static void add_texts(struct dnn_buf *out, const char *text)
{
    const char *comma = "";

    dnn_buf_add(out, "[");
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ",");
        char *word = dnn_strndup(at, n);

        dnn_buf_add(out, "%s", comma);
        dnn_prepare_quote(out, word);
        dnn_free(word);
        comma = ", ";
        at += n;
        if (*at == '\0') break;
    }
    dnn_buf_add(out, "]");
}

/* A number, true, false or a list of numbers as such, anything else as a string. */
static void add_value(struct dnn_buf *out, const char *text)
{
    struct dnn_buf list = {0};
    double number;

    if (dnn_text_real(text, &number) || strcmp(text, "true") == 0 ||
        strcmp(text, "false") == 0)
        dnn_buf_add(out, "%s", text);
    else if (strchr(text, ',') != NULL &&
             add_numbers(&list, "", text, strlen(text), NULL) == 0)
        dnn_buf_add(out, "%s", list.text);
    else
        dnn_prepare_quote(out, text);
    dnn_buf_free(&list);
}

/* ---- where samples come from ---- */

static int add_import(struct dnn_buf *out, const struct dnn_cli_config *w,
                      struct dnn_err *err)
{
    dnn_buf_add(out, "\"from\": {\"input_path\": ");
    dnn_prepare_quote(out, w->from);
    if (w->target != NULL) {
        dnn_buf_add(out, ", \"target_path\": ");
        dnn_prepare_quote(out, w->target);
    }
    for (int i = 0; dnn_import_fields[i].key != NULL && i < DNN_PREPARE_IMPORTS; i++) {
        const struct dnn_field *f = &dnn_import_fields[i];

        if (w->import_flag[i]) dnn_buf_add(out, ", \"%s\": true", f->key);
        if (w->import[i] == NULL) continue;
        dnn_buf_add(out, ", \"%s\": ", f->key);
        if (f->type == DNN_F_INTS)
            DNN_TRY(add_numbers(out, f->key, w->import[i], strlen(w->import[i]), err));
        else if (f->type == DNN_F_TEXTS)
            add_texts(out, w->import[i]);
        else if (f->type == DNN_F_INT)
            add_value(out, w->import[i]);
        else
            dnn_prepare_quote(out, w->import[i]);
    }
    dnn_buf_add(out, "}");
    return 0;
}

static int add_generator(struct dnn_buf *out, const struct dnn_cli_config *w,
                         struct dnn_err *err)
{
    dnn_buf_add(out, "\"generate\": {\"type\": ");
    dnn_prepare_quote(out, w->generate);
    for (int i = 0; i < w->set.count; i++) {
        const char *equals = strchr(w->set.text[i], '=');

        if (equals == NULL || equals == w->set.text[i])
            return dnn_fail(err, DNN_EUSAGE, "--set: must be KEY=VALUE, not \"%s\"",
                            w->set.text[i]);
        char *key = dnn_strndup(w->set.text[i], (size_t)(equals - w->set.text[i]));
        dnn_buf_add(out, ", ");
        dnn_prepare_quote(out, key);
        dnn_buf_add(out, ": ");
        add_value(out, equals + 1);
        dnn_free(key);
    }
    dnn_buf_add(out, "}");
    return 0;
}

/* ---- steps ---- */

static void begin_step(struct dnn_buf *out, const char *name)
{
    dnn_buf_add(out, "%s{\"%s\": ", out->len > 0 ? ", " : "", name);
}

/* Fractions or names of list files, separated by commas. */
static int add_split(struct dnn_buf *out, const struct dnn_cli_config *w,
                     struct dnn_err *err)
{
    const char *at = w->split;

    if (w->split == NULL && w->folds == NULL) {
        if (!w->stratify && !w->partial) return 0;
        return dnn_fail(err, DNN_EUSAGE, "--%s needs --split or --folds",
                        w->stratify ? "stratify" : "partial");
    }
    begin_step(out, "split");
    dnn_buf_add(out, "{\"stratify\": %s, \"partial\": %s",
                w->stratify ? "true" : "false", w->partial ? "true" : "false");
    for (int p = 0; at != NULL; p++) {
        size_t n = strcspn(at, ",");
        char *word = dnn_strndup(at, n);

        if (p < DNN_PREPARE_PARTS) {
            dnn_buf_add(out, ", \"%s\": ", dnn_prepare_parts[p]);
            add_value(out, word);
        }
        dnn_free(word);
        if (p >= DNN_PREPARE_PARTS)
            return dnn_fail(err, DNN_EUSAGE,
                            "--split: must be up to three fractions (train, "
                            "validation, test), not \"%s\"",
                            w->split);
        at = at[n] == ',' ? at + n + 1 : NULL;
    }
    if (w->folds != NULL) {
        dnn_buf_add(out, ", \"folds\": ");
        add_value(out, w->folds);
    }
    dnn_buf_add(out, "}}");
    return 0;
}

static int add_list(struct dnn_buf *out, const char *step, const char *option,
                    const char *text, struct dnn_err *err)
{
    if (text == NULL) return 0;
    begin_step(out, step);
    DNN_TRY(add_numbers(out, option, text, strlen(text), err));
    dnn_buf_add(out, "}");
    return 0;
}

static void add_text(struct dnn_buf *out, const char *step, const char *text)
{
    if (text == NULL) return;
    begin_step(out, step);
    dnn_prepare_quote(out, text);
    dnn_buf_add(out, "}");
}

/* SIZES[:STRIDES] */
static int add_slice(struct dnn_buf *out, const char *text, struct dnn_err *err)
{
    if (text == NULL) return 0;
    const char *colon = strchr(text, ':');
    begin_step(out, "slice");
    dnn_buf_add(out, "{\"sizes\": ");
    DNN_TRY(add_numbers(out, "slice", text,
                        colon == NULL ? strlen(text) : (size_t)(colon - text), err));
    if (colon != NULL) {
        dnn_buf_add(out, ", \"strides\": ");
        DNN_TRY(add_numbers(out, "slice", colon + 1, strlen(colon + 1), err));
    }
    dnn_buf_add(out, "}}");
    return 0;
}

static int add_steps(struct dnn_buf *out, const struct dnn_cli_config *w,
                     struct dnn_err *err)
{
    DNN_TRY(add_split(out, w, err));
    if (w->balance) {
        begin_step(out, "balance");
        dnn_buf_add(out, "true}");
    }
    DNN_TRY(add_list(out, "remap", "remap", w->remap, err));
    DNN_TRY(add_list(out, "resample", "spacing", w->spacing, err));
    DNN_TRY(add_list(out, "resize", "resize", w->resize, err));
    DNN_TRY(add_list(out, "pad", "pad", w->pad, err));
    DNN_TRY(add_list(out, "crop", "crop", w->crop, err));
    DNN_TRY(add_slice(out, w->slice, err));
    add_text(out, "normalise", w->normalise);
    if (w->one_hot) {
        begin_step(out, "one_hot");
        dnn_buf_add(out, "true}");
    }
    add_text(out, "type", w->type);
    return 0;
}

/* ---- everything ---- */

static int add_all(struct dnn_buf *out, struct dnn_buf *steps,
                   const struct dnn_cli_config *w, struct dnn_err *err)
{
    const struct {
        const char *key, *text;
        bool number;
    } keys[] = {
        {"to",       w->to,       false},
        {"compress", w->compress, false},
        {"chunk",    w->chunk,    false},
        {"piece",    w->piece,    false},
        {"seed",     w->seed,     true },
    };

    dnn_buf_add(out, "{");
    if (w->generate != NULL)
        DNN_TRY(add_generator(out, w, err));
    else
        DNN_TRY(add_import(out, w, err));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (keys[i].text == NULL) continue;
        dnn_buf_add(out, ", \"%s\": ", keys[i].key);
        if (keys[i].number)
            add_value(out, keys[i].text);
        else
            dnn_prepare_quote(out, keys[i].text);
    }
    if (w->shuffle) dnn_buf_add(out, ", \"shuffle\": true");
    if (w->allow_nan) dnn_buf_add(out, ", \"allow_nan\": true");
    DNN_TRY(add_steps(steps, w, err));
    dnn_buf_add(out, ", \"steps\": [%s]}", steps->len > 0 ? steps->text : "");
    return 0;
}

int dnn_prepare_cli_json(const struct dnn_cli_config *cli, char **out,
                         struct dnn_err *err)
{
    struct dnn_buf text = {0}, steps = {0};

    if ((cli->from == NULL) == (cli->generate == NULL))
        return dnn_fail(
            err, DNN_EUSAGE,
            cli->from == NULL
                ? "give a configuration file, --from=PATH or --generate=NAME"
                : "give either --from or --generate, not both");
    if (cli->to == NULL) return dnn_fail(err, DNN_EUSAGE, "--to=DATASET.bp is missing");
    if (cli->generate == NULL && cli->set.count > 0)
        return dnn_fail(err, DNN_EUSAGE, "--set needs --generate");
    int rc = add_all(&text, &steps, cli, err);
    dnn_buf_free(&steps);
    if (rc < 0)
        dnn_buf_free(&text);
    else
        *out = text.text;
    return rc;
}
