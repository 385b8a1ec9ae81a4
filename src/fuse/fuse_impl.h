/* fuse_impl.h - what finding and building share.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_FUSE_FUSE_IMPL_H
#define DNN_FUSE_FUSE_IMPL_H

#include "fuse/fuse.h"

/* What becomes of an op: which others it takes in, by number; DNN_NONE: none. */
struct fused {
    bool gone; /* another one took it in, or nobody wants it */
    int pad;   /* before it */
    int bias, norm, post;
    int last; /* itself, or the one behind it whose result it now makes */
    bool mask;
};

/* Decide for every op.  keep: by value, whether it is wanted.  In arena. */
struct fused *dnn_fuse_find(const struct dnn_prog *prog, const bool *keep,
                            struct dnn_arena *arena);

#endif
