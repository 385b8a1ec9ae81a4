/* outputs.h - what a network makes of samples, as HDF5 files in rmldnn's form.
 *
 * A dataset for each sample, with the name of its file (directories are groups) and its
 * channels first.  Of samples that were cut from a volume one for each set of slices,
 * put together again, with the set's name and its channels last; where slices overlap,
 * their mean.
 *
 * All is Local: the first rank writes.  Files appear whole or not at all.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_RUN_OUTPUTS_H
#define DNN_RUN_OUTPUTS_H

#include "config/job.h"
#include "data/feed.h"

enum { DNN_OUTPUTS_FILES = 2 };

struct dnn_outputs_cfg {
    const char *path[DNN_OUTPUTS_FILES]; /* the same in each; or NULL                */
    enum dnn_dtype type;                 /* of the numbers: F16, F32 or F64          */
    struct dnn_feed *feed;               /* whose samples they are                   */
    const struct dnn_source *source;     /* of the feed; or NULL                     */
    const char *from;                    /* the file or directory they are in; NULL  */
    int noutputs;
    const char *const *name;       /* of the outputs: groups, if there are several   */
    const struct dnn_shape *shape; /* of each, for one sample, channels last         */
};

struct dnn_outputs;

/* cfg's pointers must outlive it.  Directories are made.  The caller owns *out. */
int dnn_outputs_open(const struct dnn_outputs_cfg *cfg, struct dnn_outputs **out,
                     struct dnn_err *err);
/* The outputs of a sample, by its number in the feed; in their order. */
int dnn_outputs_add(struct dnn_outputs *out, int64_t sample, const float *const *output,
                    struct dnn_err *err);
/* All samples were added: the files come into their places.  Ends out, also on failure.
 */
int dnn_outputs_commit(struct dnn_outputs *out, struct dnn_err *err);
void dnn_outputs_abandon(struct dnn_outputs *out); /* NULL is fine */

#endif
