/* source.h - the samples that a configuration names, as a source: files or a generator.
 *
 * The source selects the samples of one part (training, validation, test), converts
 * masks that are images to classes, and cuts volumes by the slicers.  Prepared datasets
 * are read by the feed itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_SOURCE_SOURCE_H
#define DNN_SOURCE_SOURCE_H

#include "config/run_config.h"
#include "sample/source.h"
#include "transform/slice.h"

/* The samples of files or a generator, cut by the configuration's slicers.  The caller
 * owns *out: dnn_source_close(), before the configuration is freed. */
int dnn_source_open(const struct dnn_config *config,
                    const struct dnn_config_origin *origin, struct dnn_source **out,
                    struct dnn_err *err);

/* How samples were cut from volumes.  The samples of a volume are the boxes of all
 * sets, set after set. */
struct dnn_source_slices {
    int nsets;
    const struct dnn_slices *set, *put; /* as cut; for reassembly: without remainders
                                         * that were discarded */
    const char *const *name;            /* of the sets                               */
    int64_t each;                       /* boxes of a volume                         */
    const struct dnn_source *from;      /* the volumes                               */
};
/* Of a source made by dnn_source_open(); NULL if source is NULL or was not cut. */
const struct dnn_source_slices *dnn_source_sliced(const struct dnn_source *source);
/* Which box of which set and volume a sample is. */
void dnn_source_slice_at(const struct dnn_source_slices *slices, int64_t sample,
                         int64_t *volume, int *set, int64_t *box);

#endif
