/* docs.c - prints all configuration keys as Markdown, from the tables that read them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config/run_config_impl.h"

#include "base/text.h"
#include "generate/generate.h"
#include "graph/zoo.h"
#include "parallel/rule.h"

#include <ctype.h>
#include <string.h>

/* Text in lines of at most 98 characters. */
static void paragraph(const char *text, FILE *where)
{
    enum { WIDTH = 98 };
    size_t column = 0;

    while (*text != '\0') {
        size_t len = strcspn(text, " ");

        if (column > 0)
            column = fputc(column + 1 + len > WIDTH ? '\n' : ' ', where) == '\n'
                         ? 0
                         : column + 1;
        fwrite(text, 1, len, where);
        column += len;
        text += len + strspn(text + len, " ");
    }
    fputc('\n', where);
}

/* A line of help as a sentence. */
static void sentence(const char *text, FILE *where)
{
    if (text == NULL || *text == '\0') return;
    char *whole = dnn_format("%c%s.", toupper((unsigned char)text[0]), text + 1);
    paragraph(whole, where);
    fputc('\n', where);
    dnn_free(whole);
}

/* One kind (of loss, of optimizer, ...) and its keys. */
static void kind(const char *name, const char *help, const struct dnn_field *fields,
                 FILE *where)
{
    fprintf(where, "\n### `%s`\n\n", name);
    sentence(help, where);
    if (fields != NULL && fields->key != NULL) dnn_field_docs(fields, where);
}

/* All kinds of a component. */
static void kinds(const char *title, const char *about,
                  const char *(*info)(int, const char **, const struct dnn_field **),
                  FILE *where)
{
    const struct dnn_field *fields = NULL;
    const char *name, *help = NULL;

    fprintf(where, "\n## %s\n\n", title);
    paragraph(about, where);
    for (int i = 0; (name = info(i, &help, &fields)) != NULL; i++)
        kind(name, help, fields, where);
}

static void transforms(FILE *where)
{
    const char *name, *params, *help;

    fprintf(where, "\n## An element of `data.transforms`\n\n"
                   "`{\"NAME\": PARAMETERS}`, or only the name if all parameters have "
                   "defaults.\n\n| name | parameters | meaning |\n|---|---|---|\n");
    for (int i = 0; (name = dnn_augment_info(i, &params, &help)) != NULL; i++)
        fprintf(where, "| `%s` | `%s` | %s |\n", name, params, help);
}

static void formats(FILE *where)
{
    struct dnn_importer_info info;

    fprintf(
        where,
        "\n## Types of data\n\n"
        "| `type` | means |\n|---|---|\n"
        "| `images` | images; 8-bit values are divided by 255.  For targets that "
        "are masks, the class is the grey level after the division and all "
        "normalisations: black and white are 0 and 1 |\n"
        "| `masks` | images whose grey levels are class indices |\n"
        "| `labels` | only for targets: the class is the name of the directory an "
        "input is in; names are sorted |\n"
        "| `numpy` | `.npy` files with one sample each, or `.npz`; channels first |\n"
        "| `hdf5` | HDF5 files; each dataset in them is one sample; channels first |\n"
        "| `mnist` | IDX files of MNIST and similar datasets, also gzip-compressed |\n"
        "| `pde` | generated initial conditions of Burgers' equation |\n"
        "| `dataset` | a dataset made by `dnn-prepare`; the same as the key `dataset` "
        "|\n");
    for (int i = 0; dnn_import_info(i, &info); i++)
        if (!dnn_config_type_is(info.name, "hdf5"))
            fprintf(where, "| `%s` | %s |\n", info.name, info.help);
}

static void rules(FILE *where)
{
    const struct dnn_rule *rule;

    fprintf(where, "\n## Rules of `parallel.rule`\n\n| name | meaning |\n|---|---|\n");
    for (int i = 0; (rule = dnn_rule_at(i)) != NULL; i++)
        fprintf(where, "| `%s` | %s |\n", rule->name, rule->help);
}

/* The aliases of losses or metrics. */
static void aliases(const char *(*alias)(int, const char **), FILE *where)
{
    const char *also, *name;

    fprintf(where, "\n### Aliases\n\n| alias | name |\n|---|---|\n");
    for (int i = 0; (also = alias(i, &name)) != NULL; i++)
        fprintf(where, "| `%s` | `%s` |\n", also, name);
}

static void zoo(FILE *where)
{
    const char *name;

    fprintf(where,
            "\n## Networks of the zoo\n\n"
            "`layers` may be `{\"zoo\": NAME, ...}` with the keys below.  Names may "
            "be written in any case.\n\n");
    for (int i = 0; (name = dnn_zoo_name(i)) != NULL; i++)
        fprintf(where, "%s`%s`", i == 0 ? "" : i % 4 == 0 ? ",\n" : ", ", name);
    fprintf(where, "\n\n");
    dnn_field_docs(dnn_zoo_fields, where);
}

void dnn_config_docs(FILE *where)
{
    fprintf(where, "# Configuration file\n\n");
    paragraph(
        "One JSON file describes a run of `dnn-train`; `dnn-infer` reads the same file "
        "and uses only its test data.  The smallest is `{\"layers\": "
        "\"net.json\"}`, for `dnn-train --explain`.  What `dnn-train` does depends "
        "on the data:",
        where);
    fprintf(where,
            "\n| the configuration has | `dnn-train` does |\n|---|---|\n"
            "| training data (`data.input_path`, `dataset`, `from`, `generate`, "
            "`num_examples`) | training; evaluation after each epoch if there is "
            "validation or test data |\n"
            "| only test data, with targets, and a `loss` | evaluation |\n"
            "| only test data | inference |\n\n");
    paragraph(
        "All keys may be inside an object under `neural_network`, as in rmldnn's "
        "files.  Upper and lower case of names given as values do not matter.  "
        "Relative paths start at the directory of the configuration file.  Unknown "
        "keys are errors.  The command line can change every key: "
        "`--set data.batch_size=32`, `--set data.slicers[0].sizes=[64,64,64]`; the "
        "value is JSON, or else taken as a string.",
        where);
    fprintf(where, "\n## Keys\n\n");
    dnn_field_docs(dnn_config_fields, where);
    zoo(where);
    formats(where);
    fprintf(where, "\n## An object under `data.from`\n\n");
    dnn_field_docs(dnn_import_fields, where);
    transforms(where);
    kinds("An object under `data.generate`", "All take `type`, `samples` and `seed`.",
          dnn_generate_info, where);
    kinds("Losses", "`loss` is a name, an object with `function`, or a list of these.",
          dnn_loss_info, where);
    aliases(dnn_loss_alias, where);
    kinds("Metrics", "`metrics` is a name, an object with `type`, or a list of these.",
          dnn_metric_info, where);
    aliases(dnn_metric_alias, where);
    kinds("Optimizers",
          "`optimizer` is a name, or an object with `type` and the keys below.  With "
          "`name` (`sgd` or `adam`) instead of `type`, keys and defaults are those of "
          "Keras.",
          dnn_optim_info, where);
    kind("name", "Keras's keys", dnn_optim_fields, where);
    kinds("Learning rate schedules",
          "`optimizer.lr_scheduler` is an object with `type`, or a list of these: each "
          "changes the learning rate that the one before it gives.",
          dnn_schedule_info, where);
    fprintf(where, "\n## An object under `early_stopping`\n\n");
    dnn_field_docs(dnn_stopping_fields, where);
    rules(where);
}
