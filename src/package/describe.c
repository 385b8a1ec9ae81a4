/* describe.c - prints what a model file contains.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "package/package_impl.h"

#include "base/mem.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

/* Print a line, without control characters: a model file may contain anything. */
static void end_line(struct dnn_buf *line, FILE *where)
{
    fprintf(where, "%s\n", dnn_text_clean(line->text));
    dnn_buf_free(line);
}

static void add_list(struct dnn_buf *out, const struct dnn_list *shape)
{
    for (int64_t i = 0; i < shape->count; i++)
        dnn_buf_add(out, "%s%" PRId64, i == 0 ? "" : "x", shape->ints[i]);
}

static void print_ends(const struct dnn_package_info *info, FILE *where)
{
    const struct dnn_package_input *in = info->inputs.objects;
    const struct dnn_package_target *out = info->targets.objects;
    struct dnn_buf line = {0};

    for (int64_t i = 0; i < info->inputs.count; i++) {
        dnn_buf_add(&line, "input '%s': ", in[i].name);
        add_list(&line, &in[i].shape);
        if (in[i].kind != NULL) dnn_buf_add(&line, ", %s", in[i].kind);
        if (in[i].column != NULL) dnn_buf_add(&line, ", column '%s'", in[i].column);
        if (in[i].scale.count > 0 && in[i].stored != NULL)
            dnn_buf_add(&line, ", scaled from %s", in[i].stored);
        end_line(&line, where);
    }
    for (int64_t i = 0; i < info->targets.count; i++) {
        dnn_buf_add(&line, "output '%s': %s", out[i].name,
                    out[i].kind == NULL ? "no target" : out[i].kind);
        if (out[i].classes > 0)
            dnn_buf_add(&line, ", %" PRId64 " classes", out[i].classes);
        for (int64_t k = 0; k < out[i].class_names.count; k++)
            dnn_buf_add(&line, "%s%s", k == 0 ? ": " : ", ",
                        out[i].class_names.texts[k]);
        end_line(&line, where);
    }
}

/* A line for each step of the preparation, or for each member of a record, except for
 * long ones. */
static int print_record(const char *title, const char *json, const char *key,
                        const char *except, FILE *where, struct dnn_err *err)
{
    struct dnn_json *file = NULL;
    struct dnn_buf line = {0};

    if (json == NULL) {
        fprintf(where, "%s: not recorded\n", title);
        return 0;
    }
    DNN_TRY(dnn_json_text(PACKAGE_INFO, json, strlen(json), &file, err));
    struct dnn_jobj top = dnn_json_top(file);
    struct dnn_jobj at = key == NULL ? top : dnn_json_sub(&top, key);
    fprintf(where, "%s:\n", title);
    for (struct dnn_jobj it = dnn_json_first(&at); it.val != NULL;
         it = dnn_json_next(&it)) {
        if (it.name != NULL && strcmp(it.name, except) == 0) continue;
        char *text = dnn_json_compact(&it);

        dnn_buf_add(&line, "  %s%s%s", it.name == NULL ? "" : it.name,
                    it.name == NULL ? "" : ": ", text);
        end_line(&line, where);
        dnn_free(text);
    }
    dnn_json_free(file);
    return 0;
}

static int print_text(const struct dnn_package *p, const struct dnn_graph *g,
                      FILE *where, struct dnn_err *err)
{
    struct dnn_buf line = {0};

    dnn_buf_add(&line, "%s: model file, format version %" PRId64 ", written by %s",
                p->path, p->info.version,
                p->info.program == NULL ? "an unknown program" : p->info.program);
    end_line(&line, where);
    dnn_buf_add(&line,
                "network: %s, %d layers, %" PRId64 " parameters (%" PRId64
                " trainable)%s",
                g->name, g->nlayers, g->params, g->trainable,
                dnn_package_text(p, PACKAGE_KERAS) == NULL ? "; not for Keras" : "");
    end_line(&line, where);
    print_ends(&p->info, where);
    DNN_TRY(print_record("preparation", p->info.preparation, "steps", "", where, err));
    DNN_TRY(print_record("training", p->info.training, NULL, "config", where, err));
    fprintf(where, "checksum: %s\n", p->sum);
    return 0;
}

static void print_json(const struct dnn_package *p, const struct dnn_graph *g,
                       FILE *where)
{
    struct dnn_jobj top = dnn_json_top(p->file);
    struct dnn_buf out = {0};
    char *info = dnn_json_compact(&top);

    dnn_buf_add(&out, "{\"path\": ");
    dnn_json_quoted(&out, p->path);
    dnn_buf_add(&out, ", \"checksum\": \"%s\", \"network\": {\"name\": ", p->sum);
    dnn_json_quoted(&out, g->name);
    dnn_buf_add(&out,
                ", \"layers\": %d, \"parameters\": %" PRId64 ", \"trainable\": %" PRId64
                ", \"keras\": %s}, \"model\": %s}",
                g->nlayers, g->params, g->trainable,
                dnn_package_text(p, PACKAGE_KERAS) == NULL ? "false" : "true", info);
    fprintf(where, "%s\n", out.text);
    dnn_buf_free(&out);
    dnn_free(info);
}

int dnn_package_describe(const struct dnn_package *package, FILE *where, bool json,
                         struct dnn_err *err)
{
    struct dnn_graph *graph = NULL;
    int rc = 0;

    DNN_TRY(dnn_package_graph(package, NULL, &graph, err));
    if (json)
        print_json(package, graph, where);
    else
        rc = print_text(package, graph, where, err);
    dnn_graph_free(graph);
    return rc;
}
