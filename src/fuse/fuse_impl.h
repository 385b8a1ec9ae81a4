/* fuse_impl.h - shared by match.c and fuse.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_FUSE_FUSE_IMPL_H
#define DNN_FUSE_FUSE_IMPL_H

#include "fuse/fuse.h"

/* The numbers of the ops fused into an op; DNN_NONE: none. */
struct fused {
    bool removed; /* fused into another op, or unused */
    int pad;      /* before it */
    int bias, norm, post;
    int last;  /* itself, or the last one fused into it, whose result it computes */
    bool mask; /* ReLU that outputs its mask */
};

/* The fusion of every op, in arena. keep: by value, whether it must stay. */
struct fused *dnn_fuse_find(const struct dnn_prog *prog, const bool *keep,
                            struct dnn_arena *arena);

#endif
