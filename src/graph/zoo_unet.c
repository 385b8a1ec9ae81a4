/* zoo_unet.c - U-Nets in two and three dimensions.
 *
 * An encoder of `depth` levels (convolutions of 3 with norm and ReLU, then half the
 * extents and twice the filters), the bottom, and a decoder with skip connections.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/zoo_impl.h"

#include <inttypes.h>
#include <stddef.h>

#define NAME(...) dnn_zoo_name_of(z, __VA_ARGS__)

static int64_t divisor(int64_t filters)
{
    int64_t groups = 8;

    while (filters % groups != 0)
        groups /= 2;
    return groups;
}

static int norm(struct zoo *z, const char *name, int x, int64_t filters)
{
    switch (z->opts->norm) {
    case DNN_ZOO_NORM_INSTANCE:
        return dnn_zoo_put1(z, "InstanceNormalization", name, x,
                            "\"affine\": true, \"epsilon\": 1e-5");
    case DNN_ZOO_NORM_GROUP:
        return dnn_zoo_put1(z, "GroupNormalization", name, x,
                            "\"groups\": %" PRId64 ", \"epsilon\": 1e-5",
                            divisor(filters));
    case DNN_ZOO_NORM_LAYER:
        return dnn_zoo_put1(z, "LayerNormalization", name, x, "\"epsilon\": 1e-5");
    case DNN_ZOO_NORM_NONE:
        return x;
    default:
        return dnn_zoo_bn(z, name, x, 1e-3);
    }
}

/* A convolution, its norm, ReLU. */
static int unit(struct zoo *z, const char *stem, int x, int64_t filters, int k,
                int stride)
{
    bool bias = z->opts->norm == DNN_ZOO_NORM_NONE;

    x = dnn_zoo_conv(z, NAME("%s_conv", stem), x, filters, k, stride, "same", bias,
                     "linear");
    x = norm(z, NAME("%s_norm", stem), x, filters);
    return dnn_zoo_act(z, NAME("%s_relu", stem), x, "relu");
}

static int level(struct zoo *z, const char *where, int x, int64_t filters)
{
    int64_t n = z->opts->convolutions > 0 ? z->opts->convolutions : 2;

    for (int i = 0; i < (int)n; i++)
        x = unit(z, NAME("%s_%d", where, i + 1), x, filters, 3, 1);
    return x;
}

static int up(struct zoo *z, int i, int x, int64_t filters)
{
    if (z->opts->up == DNN_ZOO_TRANSPOSE)
        return dnn_zoo_put1(
            z, NAME("Conv%dDTranspose", z->nd), NAME("up%d", i), x,
            "\"filters\": %" PRId64
            ", \"kernel_size\": 2, \"strides\": 2, \"padding\": \"same\"",
            filters);
    x = dnn_zoo_put1(z, NAME("UpSampling%dD", z->nd), NAME("up%d_nearest", i), x,
                     "\"size\": 2");
    return dnn_zoo_conv(z, NAME("up%d", i), x, filters, 3, 1, "same", true, "linear");
}

static int build(struct zoo *z, const struct zoo_kind *kind)
{
    int depth = z->opts->depth > 0 ? (int)z->opts->depth : 3;
    int64_t base = z->opts->base > 0 ? z->opts->base : kind->number;
    int skip[16], x = 0;

    for (int i = 0; i < depth; i++) {
        x = skip[i] = level(z, NAME("down%d", i + 1), x, base << i);
        if (z->opts->down == DNN_ZOO_POOL)
            x = dnn_zoo_pool(z, NAME("down%d_pool", i + 1), x, "Max", 2, 2, "valid");
        else
            x = unit(z, NAME("down%d_stride", i + 1), x, base << (i + 1), 4, 2);
        x = dnn_zoo_dropout(z, NAME("down%d_dropout", i + 1), x, 0);
    }
    x = level(z, "bottom", x, base << depth);
    for (int i = depth - 1; i >= 0; i--) {
        x = up(z, i + 1, x, base << i);
        x = dnn_zoo_join(z, NAME("join%d", i + 1), 2, (int[]){skip[i], x});
        x = level(z, NAME("up%d", i + 1), x, base << i);
        x = dnn_zoo_dropout(z, NAME("up%d_dropout", i + 1), x, 0);
    }
    return dnn_zoo_conv(z, "predictions", x, z->classes, 1, 1, "same", true,
                        z->classes == 1 ? "sigmoid" : "softmax");
}

#define OPTIONS "base depth convolutions dropout norm down up"
const struct zoo_kind dnn_zoo_unets[] = {
    {"unet2d", OPTIONS, 3, {256, 256, 1},   1, 32, 0, build, NULL},
    {"unet3d", OPTIONS, 4, {64, 64, 64, 1}, 1, 16, 0, build, NULL},
    {NULL,     NULL,    0, {0},             0, 0,  0, NULL,  NULL},
};
