/* fuse_impl.h - shared by matching and building.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_FUSE_FUSE_IMPL_H
#define DNN_FUSE_FUSE_IMPL_H

#include "fuse/fuse.h"

/* The fusion of an op: the ops fused into it, by number; DNN_NONE: none. */
struct fused {
    bool gone; /* fused into another op, or unused */
    int pad;   /* before it */
    int bias, norm, post;
    int last; /* itself, or the last one fused into it, whose result it computes */
    bool mask;
};

/* Decide for every op. keep: by value, whether it must stay. In arena. */
struct fused *dnn_fuse_find(const struct dnn_prog *prog, const bool *keep,
                            struct dnn_arena *arena);

#endif
