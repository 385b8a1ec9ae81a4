/* zoo.h - well-known networks, generated as Keras JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_GRAPH_ZOO_H
#define DNN_GRAPH_ZOO_H

#include "base/err.h"
#include "base/field.h"

#include <stdint.h>

enum dnn_zoo_norm {
    DNN_ZOO_NORM_BATCH,
    DNN_ZOO_NORM_INSTANCE,
    DNN_ZOO_NORM_GROUP,
    DNN_ZOO_NORM_LAYER,
    DNN_ZOO_NORM_NONE
};
enum dnn_zoo_down { DNN_ZOO_POOL, DNN_ZOO_STRIDE };
enum dnn_zoo_up { DNN_ZOO_TRANSPOSE, DNN_ZOO_UPSAMPLE };

/* Options; 0 (dropout: below 0): the network's own value. */
struct dnn_zoo_opts {
    const char *zoo;      /* its name                                         */
    int64_t base;         /* filters of the first level                       */
    int64_t depth;        /* see dnn_zoo_fields                               */
    int64_t width;        /* wideresnet: k                                    */
    int64_t convolutions; /* unet: per level                                  */
    int64_t classes;      /* of the output                                    */
    double dropout;
    int norm, down, up;    /* unet: the enums above                           */
    int backbone;          /* unet, linknet, fpn, pspnet                      */
    struct dnn_list input; /* extents without the batch, channels last        */
};
extern const struct dnn_field dnn_zoo_fields[]; /* of {"zoo": "unet3d", "base": 16} */

/* Options with the network's own values. */
struct dnn_zoo_opts dnn_zoo_defaults(const char *name);

/* The index-th name; NULL past the end. */
const char *dnn_zoo_name(int index);

/* The network as Keras JSON; the caller owns *out: dnn_free().  DNN_ECONFIG: an unknown
 * name, or an option this network does not have. */
int dnn_zoo_text(const struct dnn_zoo_opts *opts, char **out, struct dnn_err *err);

#endif
