/* zoo_segment.c - segmentation networks on a backbone: U-Net, LinkNet, FPN, PSPNet,
 * with the decoders and layer names of the Keras package segmentation_models.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#include "graph/zoo_impl.h"

#include <inttypes.h>
#include <string.h>

#define NAME(...) dnn_zoo_name_of(z, __VA_ARGS__)

/* ---- building blocks ---- */

/* Convolution, batch norm, ReLU. */
static int unit(struct zoo *z, const char *s, int x, int64_t filters, int k)
{
    x = dnn_zoo_conv(z, NAME("%s_conv", s), x, filters, k, 1, "same", false, "linear");
    return dnn_zoo_act(z, NAME("%s_relu", s), dnn_zoo_bn(z, NAME("%s_bn", s), x, 1e-3),
                       "relu");
}

static int up(struct zoo *z, const char *name, int x, int64_t factor, const char *how)
{
    return dnn_zoo_put1(z, "UpSampling2D", name, x,
                        "\"size\": %" PRId64 ", \"interpolation\": \"%s\"", factor,
                        how);
}

static int add(struct zoo *z, const char *name, int a, int b)
{
    return dnn_zoo_put(z, "Add", name, 2, (int[]){a, b}, "%s", "");
}

/* The backbone.  VGG ends in a pool, so two convolutions follow. */
static int encode(struct zoo *z)
{
    const struct zoo_kind *kind = dnn_zoo_backbone(z);
    int x = kind->build(z, kind);

    if (strncmp(kind->name, "vgg", 3) != 0) return x;
    return unit(z, "center_block2", unit(z, "center_block1", x, 512, 3), 512, 3);
}

static int final(struct zoo *z, const char *name, int x, const char *act)
{
    return dnn_zoo_conv(z, name, x, z->classes, 3, 1, "same", true, act);
}

static const char *activation(const struct zoo *z)
{
    return z->classes == 1 ? "sigmoid" : "softmax";
}

/* ---- networks ---- */

static int unet(struct zoo *z, const struct zoo_kind *kind)
{
    int x = encode(z);

    (void)kind;
    for (int i = 0; i <= ZOO_LEVELS; i++) {
        const char *s = NAME("decoder_stage%d", i);

        x = up(z, NAME("%s_upsampling", s), x, 2, "nearest");
        if (i < ZOO_LEVELS)
            x = dnn_zoo_join(z, NAME("%s_concat", s), 2,
                             (int[]){x, z->skip[ZOO_LEVELS - 1 - i]});
        x = unit(z, NAME("%sa", s), x, 256 >> i, 3);
        x = unit(z, NAME("%sb", s), x, 256 >> i, 3);
    }
    return final(z, "final_conv", x, activation(z));
}

static int linknet(struct zoo *z, const struct zoo_kind *kind)
{
    int x = encode(z);
    int64_t channels = z->channels;

    (void)kind;
    for (int i = 0; i <= ZOO_LEVELS; i++) {
        const char *s = NAME("decoder_stage%d", i);
        int level = ZOO_LEVELS - 1 - i;
        int64_t out = i < ZOO_LEVELS ? z->skip_channels[level] : 16;

        x = unit(z, NAME("%sa", s), x, channels / 4, 1);
        x = up(z, NAME("%s_upsampling", s), x, 2, "nearest");
        x = unit(z, NAME("%sb", s), x, channels / 4, 3);
        x = unit(z, NAME("%sc", s), x, out, 1);
        if (i < ZOO_LEVELS) x = add(z, NAME("%s_add", s), x, z->skip[level]);
        channels = out;
    }
    return final(z, "final_conv", x, activation(z));
}

static int fpn(struct zoo *z, const struct zoo_kind *kind)
{
    enum { PYRAMID = 256, SEGMENTATION = 128 };
    int x = encode(z), path[ZOO_LEVELS];

    (void)kind;
    x = dnn_zoo_conv(z, "fpn_stage_p5_pre_conv", x, PYRAMID, 1, 1, "same", true,
                     "linear");
    for (int i = 0; i < ZOO_LEVELS; i++) {
        int p = 5 - i;
        int side =
            dnn_zoo_conv(z, NAME("fpn_stage_p%d_conv", p), z->skip[ZOO_LEVELS - 1 - i],
                         PYRAMID, 1, 1, "same", true, "linear");

        x = up(z, NAME("fpn_stage_p%d_up", p), x, 2, "nearest");
        x = add(z, NAME("fpn_stage_p%d_add", p), x, side);
        path[i] = unit(z, NAME("segm_stage%da", p), x, SEGMENTATION, 3);
        path[i] = unit(z, NAME("segm_stage%db", p), path[i], SEGMENTATION, 3);
        if (i < ZOO_LEVELS - 1)
            path[i] = up(z, NAME("upsampling_stage%d", p), path[i], 8 >> i, "nearest");
    }
    x = dnn_zoo_join(z, "aggregation_concat", ZOO_LEVELS, path);
    x = dnn_zoo_dropout(z, "pyramid_dropout", x, 0);
    x = unit(z, "final_stage", x, SEGMENTATION, 3);
    return final(z, "head_conv", up(z, "final_upsampling", x, 2, "bilinear"),
                 activation(z));
}

/* On the backbone's level of 1/8 of the extents, pooled to 1, 2, 3 and 6. */
static int pspnet(struct zoo *z, const struct zoo_kind *kind)
{
    enum { FILTERS = 512 };
    static const int sizes[] = {1, 2, 3, 6};
    int path[5];

    (void)kind;
    encode(z);
    dnn_zoo_cut(z, 2);
    path[0] = z->skip[2];
    for (int i = 0; i < 4; i++) {
        const char *s = NAME("psp_level%d", sizes[i]);
        int64_t pool[2] = {z->input[0] / 8 / sizes[i], z->input[1] / 8 / sizes[i]};
        int x = dnn_zoo_put1(z, "AveragePooling2D", NAME("%s_pooling", s), z->skip[2],
                             "\"pool_size\": [%" PRId64 ", %" PRId64
                             "], \"strides\": [%" PRId64 ", %" PRId64
                             "], \"padding\": \"valid\"",
                             pool[0], pool[1], pool[0], pool[1]);

        x = unit(z, s, x, FILTERS, 1);
        path[i + 1] = dnn_zoo_put1(z, "UpSampling2D", NAME("%s_upsampling", s), x,
                                   "\"size\": [%" PRId64 ", %" PRId64
                                   "], \"interpolation\": \"bilinear\"",
                                   pool[0], pool[1]);
    }
    int x = unit(z, "aggregation", dnn_zoo_join(z, "psp_concat", 5, path), FILTERS, 1);
    x = final(z, "final_conv", dnn_zoo_dropout(z, "spatial_dropout", x, 0), "linear");
    return dnn_zoo_act(z, activation(z), up(z, "final_upsampling", x, 8, "bilinear"),
                       activation(z));
}

const struct zoo_kind dnn_zoo_segmenters[] = {
    {"unet",    "backbone",         3, {256, 256, 3}, 1, 0, 0, unet,    NULL},
    {"linknet", "backbone",         3, {256, 256, 3}, 1, 0, 0, linknet, NULL},
    {"fpn",     "backbone dropout", 3, {256, 256, 3}, 1, 0, 0, fpn,     NULL},
    {"pspnet",  "backbone dropout", 3, {384, 384, 3}, 1, 0, 0, pspnet,  NULL},
    {NULL,      NULL,               0, {0},           0, 0, 0, NULL,    NULL},
};
