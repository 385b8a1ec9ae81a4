/* zoo.c - the list of well-known networks, and writing them layer by layer.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/zoo_impl.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- options ---- */

static const struct dnn_choice norms[] = {
    {"batch",    DNN_ZOO_NORM_BATCH   },
    {"instance", DNN_ZOO_NORM_INSTANCE},
    {"group",    DNN_ZOO_NORM_GROUP   },
    {"layer",    DNN_ZOO_NORM_LAYER   },
    {"none",     DNN_ZOO_NORM_NONE    },
    {NULL,       0                    }
};
static const struct dnn_choice downs[] = {
    {"pool",   DNN_ZOO_POOL  },
    {"stride", DNN_ZOO_STRIDE},
    {NULL,     0             }
};
static const struct dnn_choice ups[] = {
    {"transpose", DNN_ZOO_TRANSPOSE},
    {"upsample",  DNN_ZOO_UPSAMPLE },
    {NULL,        0                }
};
static const struct dnn_sub input_sub = {.min = 0, .max = 4};

#define AT(f) offsetof(struct dnn_zoo_opts, f)
#define INT(key, at, def, min, max, help)                                              \
    {key, DNN_F_INT, at, def, min, max, NULL, help, NULL}
#define REAL(key, at, def, min, max, help)                                             \
    {key, DNN_F_REAL, at, def, min, max, NULL, help, NULL}
#define ENUM(key, at, def, choices, help)                                              \
    {key, DNN_F_ENUM, at, def, 0, 0, choices, help, NULL}
#define INTS(key, at, def, min, max, help, sub)                                        \
    {key, DNN_F_INTS, at, def, min, max, NULL, help, sub}
const struct dnn_field dnn_zoo_fields[] = {
    {"zoo", DNN_F_TEXT, AT(zoo), NULL, 0, 0, NULL, "name of the network", NULL},
    INT("base", AT(base), "0", 0, 4096,
        "filters of the first level; 0: the network's own"),
    INT("depth", AT(depth), "0", 0, 10,
        "unet: levels above the bottom; resnet20: blocks of a level; 0: 3"),
    INT("convolutions", AT(convolutions), "0", 0, 16, "unet: per level; 0: 2"),
    INT("classes", AT(classes), "0", 0, 1e6, "of the output; 0: the network's own"),
    REAL("dropout", AT(dropout), "-1", -1, 0.99, "rate; -1: the network's own"),
    ENUM("norm", AT(norm), "batch", norms, "unet: after convolutions"),
    ENUM("down", AT(down), "pool", downs,
         "unet: pooling, or convolutions of 4 with stride 2"),
    ENUM("up", AT(up), "transpose", ups,
         "unet: transposed convolution, or nearest and convolution"),
    INTS("input", AT(input), "[]", 1, 1 << 20,
         "extents of the data without the batch, channels last", &input_sub),
    {NULL,  0,          0,       NULL, 0, 0, NULL, NULL,                  NULL},
};

struct dnn_zoo_opts dnn_zoo_defaults(const char *name)
{
    return (struct dnn_zoo_opts){.zoo = name, .dropout = -1};
}

static const struct zoo_kind *kind_at(int index)
{
    const struct zoo_kind *const lists[] = {dnn_zoo_plain, dnn_zoo_resnets,
                                            dnn_zoo_mobiles, dnn_zoo_unets, NULL};

    for (int i = 0; lists[i] != NULL; i++)
        for (const struct zoo_kind *k = lists[i]; k->name != NULL; k++)
            if (index-- == 0) return k;
    return NULL;
}

const char *dnn_zoo_name(int index)
{
    const struct zoo_kind *kind = kind_at(index);

    return kind == NULL ? NULL : kind->name;
}

static const struct zoo_kind *find(const char *name, struct dnn_err *err)
{
    const char *words[64];
    char hint[96];
    int n = 0;

    for (; kind_at(n) != NULL && n < 63; n++) {
        if (strcmp(kind_at(n)->name, name) == 0) return kind_at(n);
        words[n] = kind_at(n)->name;
    }
    words[n] = NULL;
    dnn_fail(err, DNN_ECONFIG, "there is no network \"%.60s\" in the zoo%s", name,
             dnn_text_hint(hint, sizeof hint, name, words));
    return NULL;
}

static bool allows(const struct zoo_kind *kind, const char *option)
{
    return strstr(kind->allowed, option) != NULL;
}

static int check(const struct zoo_kind *kind, const struct dnn_zoo_opts *o,
                 struct dnn_err *err)
{
    const char *bad = NULL;

    if (o->base > 0 && !allows(kind, "base")) bad = "base";
    if (o->depth > 0 && !allows(kind, "depth")) bad = "depth";
    if (o->convolutions > 0 && !allows(kind, "depth")) bad = "convolutions";
    if (o->dropout >= 0 && !allows(kind, "dropout")) bad = "dropout";
    if (o->norm != DNN_ZOO_NORM_BATCH && !allows(kind, "depth")) bad = "norm";
    if (o->down != DNN_ZOO_POOL && !allows(kind, "depth")) bad = "down";
    if (o->up != DNN_ZOO_TRANSPOSE && !allows(kind, "depth")) bad = "up";
    if (bad != NULL)
        return dnn_fail(err, DNN_ECONFIG, "the network %s has no option \"%s\"",
                        kind->name, bad);
    if (o->input.count != 0 && o->input.count != kind->ninput)
        return dnn_fail(err, DNN_ECONFIG,
                        "the network %s takes an input of %d extents, not %" PRId64,
                        kind->name, kind->ninput, o->input.count);
    return 0;
}

int dnn_zoo_text(const struct dnn_zoo_opts *opts, char **out, struct dnn_err *err)
{
    const struct zoo_kind *kind = find(opts->zoo, err);

    if (kind == NULL) return DNN_ECONFIG;
    DNN_TRY(check(kind, opts, err));
    struct zoo z = {.opts = opts,
                    .nd = kind->ninput - 1,
                    .classes = kind->classes,
                    .arena = dnn_arena_make()};
    struct dnn_buf shape = {0};
    if (opts->classes > 0) z.classes = opts->classes;
    for (int i = 0; i < kind->ninput; i++)
        dnn_buf_add(&shape, ", %" PRId64,
                    opts->input.count > 0 ? opts->input.ints[i] : kind->input[i]);
    dnn_buf_add(&z.text,
                "{\"class_name\": \"Functional\",\n"
                " \"config\": {\"name\": \"%s\", \"layers\": [",
                kind->name);
    dnn_zoo_put(&z, "InputLayer", "input_1", 0, NULL, "\"batch_input_shape\": [null%s]",
                shape.text);
    int last = kind->build(&z, kind);
    dnn_buf_add(&z.text,
                "\n ],\n \"input_layers\": [[\"input_1\", 0, 0]],\n"
                " \"output_layers\": [[\"%s\", 0, 0]]},\n"
                " \"keras_version\": \"2.9.0\", \"backend\": \"tensorflow\"}\n",
                z.name[last]);
    dnn_buf_free(&shape);
    dnn_free(z.name);
    dnn_arena_free(z.arena);
    *out = z.text.text;
    return 0;
}

/* ---- layers ---- */

static int put(struct zoo *z, const char *class_name, const char *name, int nin,
               const int *in, const char *config)
{
    dnn_buf_add(&z->text, "%s\n  {\"class_name\": \"%s\", \"name\": \"%s\",\n",
                z->nlayers == 0 ? "" : ",", class_name, name);
    dnn_buf_add(&z->text, "   \"config\": {\"name\": \"%s\"%s%s},\n", name,
                config[0] == '\0' ? "" : ", ", config);
    dnn_buf_add(&z->text, "   \"inbound_nodes\": [%s", nin > 0 ? "[" : "");
    for (int i = 0; i < nin; i++)
        dnn_buf_add(&z->text, "%s[\"%s\", 0, 0, {}]", i == 0 ? "" : ", ",
                    z->name[in[i]]);
    dnn_buf_add(&z->text, "%s]}", nin > 0 ? "]" : "");
    z->name = dnn_grow(z->name, &z->cap, z->nlayers + 1, sizeof *z->name);
    z->name[z->nlayers] = dnn_arena_strdup(z->arena, name);
    return (int)z->nlayers++;
}

int dnn_zoo_put(struct zoo *z, const char *class_name, const char *name, int nin,
                const int *in, const char *fmt, ...)
{
    char config[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(config, sizeof config, fmt, ap);
    va_end(ap);
    return put(z, class_name, name, nin, in, config);
}

int dnn_zoo_put1(struct zoo *z, const char *class_name, const char *name, int in,
                 const char *fmt, ...)
{
    char config[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(config, sizeof config, fmt, ap);
    va_end(ap);
    return put(z, class_name, name, 1, &in, config);
}

const char *dnn_zoo_name_of(struct zoo *z, const char *fmt, ...)
{
    char name[96];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    return dnn_arena_strdup(z->arena, name);
}

int dnn_zoo_conv(struct zoo *z, const char *name, int in, int64_t filters, int k,
                 int stride, const char *padding, bool bias, const char *act)
{
    return dnn_zoo_put1(z, dnn_zoo_name_of(z, "Conv%dD", z->nd), name, in,
                        "\"filters\": %" PRId64
                        ", \"kernel_size\": %d, \"strides\": %d, \"padding\": \"%s\", "
                        "\"use_bias\": %s, \"activation\": \"%s\"",
                        filters, k, stride, padding, bias ? "true" : "false", act);
}

int dnn_zoo_bn(struct zoo *z, const char *name, int in, double epsilon)
{
    return dnn_zoo_put1(z, "BatchNormalization", name, in,
                        "\"axis\": -1, \"momentum\": 0.99, \"epsilon\": %g", epsilon);
}

int dnn_zoo_act(struct zoo *z, const char *name, int in, const char *act)
{
    return dnn_zoo_put1(z, "Activation", name, in, "\"activation\": \"%s\"", act);
}

int dnn_zoo_pool(struct zoo *z, const char *name, int in, const char *fn, int k,
                 int stride, const char *padding)
{
    return dnn_zoo_put1(z, dnn_zoo_name_of(z, "%sPooling%dD", fn, z->nd), name, in,
                        "\"pool_size\": %d, \"strides\": %d, \"padding\": \"%s\"", k,
                        stride, padding);
}

int dnn_zoo_dense(struct zoo *z, const char *name, int in, int64_t units,
                  const char *act)
{
    return dnn_zoo_put1(z, "Dense", name, in,
                        "\"units\": %" PRId64 ", \"activation\": \"%s\"", units, act);
}

/* The options' rate before the network's own; none at all for 0. */
int dnn_zoo_dropout(struct zoo *z, const char *name, int in, double rate)
{
    if (z->opts->dropout >= 0) rate = z->opts->dropout;
    if (rate == 0) return in;
    return dnn_zoo_put1(z, "Dropout", name, in, "\"rate\": %.17g", rate);
}

int dnn_zoo_pad(struct zoo *z, const char *name, int in, int before, int after)
{
    return dnn_zoo_put1(z, "ZeroPadding2D", name, in,
                        "\"padding\": [[%d, %d], [%d, %d]]", before, after, before,
                        after);
}

int dnn_zoo_gap(struct zoo *z, const char *name, int in)
{
    return dnn_zoo_put1(z, "GlobalAveragePooling2D", name, in, "%s", "");
}
