/* generators.c - the list of generators, and opening one.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "generate/generate_impl.h"

#include <math.h>
#include <stddef.h>

static const struct dnn_generator *const generators[] = {
    &dnn_gen_fractals3d,    &dnn_gen_blobs3d, &dnn_gen_diffusivity2d,
    &dnn_gen_diffusivity3d, &dnn_gen_burgers, &dnn_gen_seismic3d,
};
enum { NGENERATORS = sizeof generators / sizeof generators[0] };

/* A value is an index in generators. */
static const struct dnn_choice types[] = {
    {"fractals3d",    0},
    {"blobs3d",       1},
    {"diffusivity2d", 2},
    {"diffusivity3d", 3},
    {"burgers",       4},
    {"seismic3d",     5},
    {NULL,            0},
};

struct common {
    int type;
    int64_t samples, seed;
};

#define AT(f) offsetof(struct common, f)
const struct dnn_field dnn_generate_fields[] = {
    {"type",    DNN_F_ENUM, AT(type),    NULL, 0, 0,        types, "name of the generator",      NULL},
    {"samples", DNN_F_INT,  AT(samples), NULL, 1, INFINITY, NULL,  "number of samples",
     NULL                                                                                            },
    {"seed",    DNN_F_INT,  AT(seed),    "0",  0, INFINITY, NULL,  "seed of the random numbers",
     NULL                                                                                            },
    {NULL,      0,          0,           NULL, 0, 0,        NULL,  NULL,                         NULL},
};

/* Read the type first, which determines the table of the other keys. */
static int find(const struct dnn_jobj *obj, int *out, struct dnn_err *err)
{
    struct dnn_jobj at = dnn_json_sub(obj, "type");
    struct dnn_err why;
    const char *word;

    if (dnn_json_type(obj) == DNN_J_OBJECT && at.val == NULL)
        return dnn_json_fail(obj, err, "the key \"type\" is missing");
    if (at.val == NULL) {
        char quote[DNN_JSON_QUOTE];

        return dnn_json_fail(obj, err, "must be an object, not %s",
                             dnn_json_quote(quote, obj));
    }
    DNN_TRY(dnn_json_string(&at, &word, err));
    if (dnn_choice_find(types, word, out, &why) < 0)
        return dnn_json_fail(&at, err, "%s", why.text);
    return 0;
}

int dnn_generate_open(const struct dnn_jobj *obj, struct dnn_source **out,
                      struct dnn_err *err)
{
    struct common common;
    int which;

    DNN_TRY(find(obj, &which, err));
    const struct dnn_generator *kind = generators[which];
    struct dnn_gen *gen = dnn_alloc(kind->size);
    gen->kind = kind;
    gen->arena = dnn_arena_make();
    gen->source.type = &kind->type;
    const struct dnn_fill fills[] = {
        {dnn_generate_fields, &common                 },
        {kind->fields,        (char *)gen + kind->opts},
    };
    int rc = dnn_field_fill_all(obj, fills, 2, gen->arena, err);
    if (rc == 0) {
        gen->source.count = common.samples;
        gen->seed = (uint64_t)common.seed;
        rc = kind->make(gen, obj, err);
    }
    if (rc < 0) {
        dnn_gen_close(&gen->source);
        return rc;
    }
    *out = &gen->source;
    return 0;
}

const char *dnn_generate_info(int index, const char **help,
                              const struct dnn_field **fields)
{
    if (index < 0 || index >= NGENERATORS) return NULL;
    if (help != NULL) *help = generators[index]->help;
    if (fields != NULL) *fields = generators[index]->fields;
    return generators[index]->type.name;
}
