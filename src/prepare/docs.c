/* docs.c - prints the configuration keys as Markdown, from the tables that read them.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "prepare/prepare_impl.h"

#include "generate/generate.h"

#include <ctype.h>

/* A line of help as a sentence. */
static void print_sentence(const char *text, FILE *where)
{
    fprintf(where, "%c%s.\n\n", toupper((unsigned char)text[0]), text + 1);
}

static void print_step(const struct dnn_prepare_step_type *type, FILE *where)
{
    fprintf(where, "\n### `%s`\n\n", type->name);
    print_sentence(type->help, where);
    if (type->fields != NULL)
        dnn_field_docs(type->fields, where);
    else
        dnn_field_docs(type->brief, where);
    if (type->fields != NULL && type->brief[0].type != DNN_F_OTHER)
        fprintf(where, "\nShort form: `{\"%s\": %s}`.\n", type->name,
                type->brief[0].help);
}

void dnn_prepare_docs(FILE *where)
{
    const char *name, *help;
    const struct dnn_field *fields;

    fprintf(where, "## The configuration\n\n");
    dnn_field_docs(dnn_prepare_fields, where);
    fprintf(where, "\n## An element of `sources`\n\n");
    dnn_field_docs(dnn_prepare_source_fields, where);
    fprintf(where, "\n## An object under `from`\n\n");
    dnn_field_docs(dnn_import_fields, where);
    fprintf(where, "\n## Steps\n");
    for (int i = 0; dnn_prepare_steps[i] != NULL; i++)
        print_step(dnn_prepare_steps[i], where);
    fprintf(where, "\n## An object under `generate`\n");
    for (int i = 0; (name = dnn_generate_info(i, &help, &fields)) != NULL; i++) {
        fprintf(where, "\n### `%s`\n\n", name);
        print_sentence(help, where);
        dnn_field_docs(fields, where);
    }
}
