/* info.c - dnn.json: what a model file says about itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "config.h"

#include "package/package_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "dnn-toolkit model"

const char *const dnn_package_data_keys[] = {"transforms",
                                             "input_transforms",
                                             "target_transforms",
                                             "test_transforms",
                                             "test_input_transforms",
                                             "test_target_transforms",
                                             "slicers",
                                             NULL};

#define AT(f) offsetof(struct dnn_package_input, f)
static const struct dnn_field input_fields[] = {
    {"name",   DNN_F_TEXT,  AT(name),   NULL,   0, 0,        NULL, "input of the network",    NULL},
    {"column", DNN_F_TEXT,  AT(column), "null", 0, 0,        NULL, "column of the dataset",
     NULL                                                                                         },
    {"stored", DNN_F_TEXT,  AT(stored), "null", 0, 0,        NULL, "type in the dataset",     NULL},
    {"kind",   DNN_F_TEXT,  AT(kind),   "null", 0, 0,        NULL, "meaning of the values",   NULL},
    {"shape",  DNN_F_INTS,  AT(shape),  NULL,   1, INFINITY, NULL, "without the batch",
     NULL                                                                                         },
    {"scale",  DNN_F_REALS, AT(scale),  "[]",   0, 0,        NULL,
     "input = stored * scale + offset",                                                       NULL},
    {"offset", DNN_F_REALS, AT(offset), "[]",   0, 0,        NULL, "one, or one per channel",
     NULL                                                                                         },
    {NULL,     0,           0,          NULL,   0, 0,        NULL, NULL,                      NULL},
};
#undef AT
static const struct dnn_sub input_sub = {
    .fields = input_fields, .size = sizeof(struct dnn_package_input), .min = 1};

#define AT(f) offsetof(struct dnn_package_target, f)
static const struct dnn_field target_fields[] = {
    {"name",        DNN_F_TEXT,  AT(name),        NULL,   0, 0,        NULL, "output of the network", NULL},
    {"column",      DNN_F_TEXT,  AT(column),      "null", 0, 0,        NULL, "column of the dataset",
     NULL                                                                                                 },
    {"kind",        DNN_F_TEXT,  AT(kind),        "null", 0, 0,        NULL, "meaning of the values", NULL},
    {"classes",     DNN_F_INT,   AT(classes),     "0",    0, INFINITY, NULL, "0: none, or unknown",
     NULL                                                                                                 },
    {"class_names", DNN_F_TEXTS, AT(class_names), "[]",   0, 0,        NULL, "of each class",
     NULL                                                                                                 },
    {NULL,          0,           0,               NULL,   0, 0,        NULL, NULL,                    NULL},
};
#undef AT
static const struct dnn_sub target_sub = {.fields = target_fields,
                                          .size = sizeof(struct dnn_package_target)};

#define AT(f) offsetof(struct dnn_package_info, f)
const struct dnn_field dnn_package_fields[] = {
    {"format",      DNN_F_TEXT,    AT(format),      NULL,   0, 0,        NULL, FORMAT,                   NULL},
    {"version",     DNN_F_INT,     AT(version),     NULL,   1, INFINITY, NULL, "of the format",          NULL},
    {"program",     DNN_F_TEXT,    AT(program),     "null", 0, 0,        NULL, "that wrote it",          NULL},
    {"inputs",      DNN_F_OBJECTS, AT(inputs),      NULL,   0, 0,        NULL, "of the network",
     &input_sub                                                                                              },
    {"targets",     DNN_F_OBJECTS, AT(targets),     "[]",   0, 0,        NULL, "of its outputs",
     &target_sub                                                                                             },
    {"preparation", DNN_F_JSON,    AT(preparation), "null", 0, 0,        NULL,
     "record of the dataset",                                                                            NULL},
    {"inference",   DNN_F_JSON,    AT(inference),   "null", 0, 0,        NULL,
     "keys of a configuration",                                                                          NULL},
    {"training",    DNN_F_JSON,    AT(training),    "null", 0, 0,        NULL, "record of the training",
     NULL                                                                                                    },
    {NULL,          0,             0,               NULL,   0, 0,        NULL, NULL,                     NULL},
};
#undef AT

char *package_info_text(const struct dnn_package_info *info)
{
    struct dnn_package_info all = *info;
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    if (f == NULL) return NULL;
    all.format = FORMAT;
    all.version = DNN_PACKAGE_VERSION;
    all.program = PACKAGE_NAME " " PACKAGE_VERSION;
    dnn_field_print(dnn_package_fields, &all, f);
    fclose(f);
    return text;
}

/* A newer version may have other keys, so this comes first. */
static int check_version(const struct dnn_package *p, const struct dnn_jobj *top,
                         struct dnn_err *err)
{
    struct dnn_jobj format = dnn_json_sub(top, "format");
    struct dnn_jobj version = dnn_json_sub(top, "version");
    const char *text = NULL;
    int64_t n = 0;

    if (dnn_json_string(&format, &text, NULL) < 0 || strcmp(text, FORMAT) != 0)
        return dnn_json_fail(&format, err, "must be \"" FORMAT "\"");
    DNN_TRY(dnn_json_int(&version, &n, err));
    if (n > DNN_PACKAGE_VERSION)
        return dnn_fail(err, DNN_EDATA,
                        "%s has format version %" PRId64
                        "; this program reads up to %d: upgrade dnn-toolkit",
                        p->path, n, DNN_PACKAGE_VERSION);
    return 0;
}

int package_info_read(struct dnn_package *p, struct dnn_err *err)
{
    char *name = dnn_format("%s/" PACKAGE_INFO, p->path);
    int rc = dnn_json_text(name, p->text[0], strlen(p->text[0]), &p->file, err);

    dnn_free(name);
    if (rc == 0) {
        struct dnn_jobj top = dnn_json_top(p->file);

        rc = check_version(p, &top, err);
        if (rc == 0) rc = dnn_field_fill(&top, dnn_package_fields, NULL, &p->info, err);
    }
    return rc;
}
