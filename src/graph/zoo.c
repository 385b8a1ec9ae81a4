/* zoo.c - the list of networks and their options, and functions that write layers.
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
#include <strings.h>

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
static const struct dnn_choice backbones[] = {
    {"none",        0 },
    {"vgg16",       1 },
    {"vgg19",       2 },
    {"resnet18",    3 },
    {"resnet34",    4 },
    {"resnet50",    5 },
    {"resnet101",   6 },
    {"resnet152",   7 },
    {"densenet121", 8 },
    {"densenet169", 9 },
    {"densenet201", 10},
    {"mobilenet",   11},
    {"mobilenetv2", 12},
    {NULL,          0 }
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
    INT("depth", AT(depth), "0", 0, 1000,
        "unet2d, unet3d: levels above the bottom, 0: 3; resnet20: blocks per level, 0: "
        "3; wideresnet: layers (16, 22, 28, 40...), 0: 28"),
    INT("width", AT(width), "0", 0, 100,
        "wideresnet: widening factor k; 0: the network's own"),
    INT("convolutions", AT(convolutions), "0", 0, 16,
        "unet2d, unet3d: per level; 0: 2"),
    INT("classes", AT(classes), "0", 0, 1e6, "of the output; 0: the network's own"),
    REAL("dropout", AT(dropout), "-1", -1, 0.99, "rate; -1: the network's own"),
    ENUM("norm", AT(norm), "batch", norms, "unet2d, unet3d: after convolutions"),
    ENUM("down", AT(down), "pool", downs,
         "unet2d, unet3d: max pooling, or convolutions of 4 with stride 2"),
    ENUM("up", AT(up), "transpose", ups,
         "unet2d, unet3d: transposed convolution, or nearest upsampling and "
         "convolution"),
    ENUM("backbone", AT(backbone), "none", backbones,
         "unet, linknet, fpn, pspnet: the encoder; none: vgg16"),
    INTS("input", AT(input), "[]", 1, 1 << 20,
         "input shape without the batch axis, channels last", &input_sub),
    {NULL,  0,          0,       NULL, 0, 0, NULL, NULL,                  NULL},
};

struct dnn_zoo_opts dnn_zoo_defaults(const char *name)
{
    return (struct dnn_zoo_opts){.zoo = name, .dropout = -1};
}

static const struct zoo_kind *kind_at(int index)
{
    static const struct zoo_kind *const lists[] = {
        dnn_zoo_plain,      dnn_zoo_inceptions, dnn_zoo_resnets,    dnn_zoo_densenets,
        dnn_zoo_mobilenets, dnn_zoo_unets,      dnn_zoo_segmenters, NULL};

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

/* Ignores case, and PyDTNN's suffix "_imagenet". */
static const struct zoo_kind *find_kind(const char *name)
{
    static const char suffix[] = "_imagenet";
    const struct zoo_kind *kind;
    size_t n = strlen(name), m = sizeof suffix - 1;

    if (n > m && strcasecmp(name + n - m, suffix) == 0) n -= m;
    for (int i = 0; (kind = kind_at(i)) != NULL; i++)
        if (strncasecmp(kind->name, name, n) == 0 && kind->name[n] == '\0') return kind;
    return NULL;
}

static int unknown(const char *name, struct dnn_err *err)
{
    const char *words[128];
    char hint[96];
    int n = 0;

    for (; dnn_zoo_name(n) != NULL && n < 127; n++)
        words[n] = dnn_zoo_name(n);
    words[n] = NULL;
    return dnn_fail(err, DNN_ECONFIG, "the zoo has no network \"%.60s\"%s", name,
                    dnn_text_hint(hint, sizeof hint, name, words));
}

static int check(const struct zoo_kind *kind, const struct dnn_zoo_opts *o,
                 struct dnn_err *err)
{
    const struct {
        const char *key;
        bool given;
    } options[] = {
        {"base",         o->base > 0                  },
        {"depth",        o->depth > 0                 },
        {"width",        o->width > 0                 },
        {"convolutions", o->convolutions > 0          },
        {"dropout",      o->dropout >= 0              },
        {"norm",         o->norm != DNN_ZOO_NORM_BATCH},
        {"down",         o->down != DNN_ZOO_POOL      },
        {"up",           o->up != DNN_ZOO_TRANSPOSE   },
        {"backbone",     o->backbone != 0             },
    };

    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given && strstr(kind->allowed, options[i].key) == NULL)
            return dnn_fail(err, DNN_ECONFIG, "the network %s has no option \"%s\"",
                            kind->name, options[i].key);
    if (o->depth > 10 && strstr(kind->allowed, "norm") != NULL)
        return dnn_fail(err, DNN_ECONFIG, "depth: must be at most 10, not %" PRId64,
                        o->depth);
    if (o->depth > 0 && strstr(kind->allowed, "width") != NULL &&
        (o->depth < 10 || o->depth % 6 != 4))
        return dnn_fail(err, DNN_ECONFIG,
                        "depth: must be 10, 16, 22, 28..., not %" PRId64, o->depth);
    if (o->input.count != 0 && o->input.count != kind->ninput)
        return dnn_fail(err, DNN_ECONFIG,
                        "input: the network %s needs %d dimensions, not %" PRId64,
                        kind->name, kind->ninput, o->input.count);
    return 0;
}

int dnn_zoo_text(const struct dnn_zoo_opts *opts, char **out, struct dnn_err *err)
{
    const struct zoo_kind *kind = find_kind(opts->zoo);

    if (kind == NULL) return unknown(opts->zoo, err);
    DNN_TRY(check(kind, opts, err));
    struct zoo z = {.opts = opts,
                    .nd = kind->ninput - 1,
                    .classes = kind->classes,
                    .arena = dnn_arena_make()};
    struct dnn_buf shape = {0};
    if (opts->classes > 0) z.classes = opts->classes;
    for (int i = 0; i < kind->ninput; i++) {
        z.input[i] = opts->input.count > 0 ? opts->input.ints[i] : kind->input[i];
        dnn_buf_add(&shape, ", %" PRId64, z.input[i]);
    }
    dnn_buf_add(&z.text,
                "{\"class_name\": \"Functional\",\n"
                " \"config\": {\"name\": \"%s\", \"layers\": [",
                kind->name);
    dnn_zoo_put(&z, "InputLayer", "input_1", 0, NULL, "\"batch_input_shape\": [null%s]",
                shape.text);
    int last = kind->build(&z, kind);
    if (kind->head != NULL) last = kind->head(&z, kind, last);
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

/* The rate in the options overrides the network's own; 0: no layer. */
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

int dnn_zoo_flatten(struct zoo *z, int in)
{
    return dnn_zoo_put1(z, "Flatten", "flatten", in, "%s", "");
}

int dnn_zoo_join(struct zoo *z, const char *name, int n, const int *in)
{
    return dnn_zoo_put(z, "Concatenate", name, n, in, "\"axis\": -1");
}

int dnn_zoo_classify(struct zoo *z, const char *pool, int in)
{
    return dnn_zoo_dense(z, "predictions", dnn_zoo_gap(z, pool, in), z->classes,
                         "softmax");
}

int dnn_zoo_classify_small(struct zoo *z, int in, int64_t units)
{
    int x = dnn_zoo_dense(z, "fc1", dnn_zoo_gap(z, "avg_pool", in), units, "linear");

    x = dnn_zoo_act(z, "fc1_relu", dnn_zoo_bn(z, "fc1_bn", x, 1e-5), "relu");
    return dnn_zoo_dense(z, "predictions", x, z->classes, "softmax");
}

void dnn_zoo_skip(struct zoo *z, int level, int x, int64_t channels)
{
    z->skip[level] = x;
    z->skip_channels[level] = channels;
    z->skip_text[level] = z->text.len;
    z->skip_layers[level] = z->nlayers;
}

void dnn_zoo_cut(struct zoo *z, int level)
{
    z->text.len = z->skip_text[level];
    z->text.text[z->text.len] = '\0';
    z->nlayers = z->skip_layers[level];
}

const struct zoo_kind *dnn_zoo_backbone(const struct zoo *z)
{
    int which = z->opts->backbone;

    return find_kind(which == 0 ? "vgg16" : dnn_choice_name(backbones, which));
}
