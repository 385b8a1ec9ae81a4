/* outputs.h - outputs of a network as HDF5 files, in the layout of rmldnn.
 *
 * One HDF5 dataset per sample, named after its file (directories are groups), channels
 * first.  Slices of a volume are reassembled: one dataset per slicer, with its name,
 * channels last; overlaps are averaged.
 *
 * Local: rank 0 writes.  A file gets its name only when it is complete.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_TRAIN_OUTPUTS_H
#define DNN_TRAIN_OUTPUTS_H

#include "config/run_config.h"
#include "data/feed.h"

enum { DNN_OUTPUTS_FILES = 2 };

struct dnn_outputs_cfg {
    const char *path[DNN_OUTPUTS_FILES]; /* all with the same content; or NULL */
    enum dnn_dtype type;                 /* F16, F32 or F64                          */
    struct dnn_feed *feed;           /* of the samples                             */
    const struct dnn_source *source; /* of the feed; or NULL                       */
    const char *from; /* input file or directory of the samples; or NULL */
    int noutputs;
    const char *const *name; /* of the outputs: HDF5 groups, if there are several */
    const struct dnn_shape *shape; /* of each, for one sample, channels last         */
};

struct dnn_outputs;

/* The pointers in cfg must outlive it.  Creates missing directories.  The caller owns
 * *out: dnn_outputs_commit() or dnn_outputs_abandon(). */
int dnn_outputs_open(const struct dnn_outputs_cfg *cfg, struct dnn_outputs **out,
                     struct dnn_err *err);
/* Add the outputs of a sample, given by its index in the feed; in the order of the
 * samples. */
int dnn_outputs_add(struct dnn_outputs *out, int64_t sample, const float *const *output,
                    struct dnn_err *err);
/* Complete the files.  Frees out, also on failure. */
int dnn_outputs_commit(struct dnn_outputs *out, struct dnn_err *err);
void dnn_outputs_abandon(struct dnn_outputs *out); /* NULL is fine */

#endif
