/* dataset_impl.h - declarations shared by the files of datasets.
 *
 * dataset_write.c   writes samples;
 * dataset_finish.c  writes what is complete only at the end: names, checksums, hash;
 * dataset_path.c    the temporary name, and renaming to the final one;
 * dataset_attr.c    writes the description as attributes;
 * dataset_info.c    reads it;
 * dataset_read.c    reads samples;
 * dataset_source.c  gives them as a source;
 * dataset_verify.c  checks checksums.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Copyright the dnn-toolkit authors
 */
#ifndef DNN_DATA_DATASET_IMPL_H
#define DNN_DATA_DATASET_IMPL_H

#include "data/dataset.h"

#include "base/text.h"

#define DNN_DATASET_FORMAT "dnn-toolkit dataset"
enum { DNN_DATASET_VERSION = 1 };

struct dnn_dataset_writer {
    struct dnn_comm *comm; /* or NULL */
    int rank, size;
    const struct dnn_dataset_info *info;
    bool replace;
    char *path; /* owned: the final path */
    char *part; /* owned: the temporary path */
    struct dnn_bp *bp;
    int var[DNN_MAX_SPLITS][DNN_MAX_COLUMNS];
    struct dnn_buf metadata; /* of each chunk put by this rank */
};

struct dnn_dataset {
    struct dnn_dataset_info info;
    char *path; /* owned */
    struct dnn_bp *bp;
    struct dnn_arena *arena; /* class names */
    int var[DNN_MAX_SPLITS][DNN_MAX_COLUMNS];
    int sum[DNN_MAX_SPLITS][DNN_MAX_COLUMNS];
    struct {
        int name, name_end, sum, fold, group, group_end; /* -1: there is none */
    } meta[DNN_MAX_SPLITS];
};

/* ---- dataset_path.c ---- */

/* Local, on rank 0.  Chooses the temporary path, after removing what killed writers
 * left.  If path exists it is an error, unless replace is set and it is a dataset. */
int dnn_dataset_temp_path(const char *path, bool replace, char **part,
                          struct dnn_err *err);
/* Local, on rank 0.  Renames part to path. */
int dnn_dataset_publish(const char *part, const char *path, bool replace,
                        struct dnn_err *err);

/* ---- dataset_attr.c ---- */

/* The name of an array, such as "train/input.sum"; the caller frees it: dnn_free(). */
char *dnn_dataset_name(const struct dnn_split *split, const char *column,
                       const char *what);
/* Writes info, except the hash, as attributes.  Rank 0 puts the arrays of
 * statistics. */
int dnn_dataset_describe(struct dnn_bp *bp, const struct dnn_dataset_info *info,
                         int rank, struct dnn_err *err);
/* Reads the attributes into dataset->info. */
int dnn_dataset_attributes(struct dnn_dataset *dataset, struct dnn_err *err);
/* Collective.  Reads histograms and class counts. */
int dnn_dataset_stats(struct dnn_dataset *dataset, struct dnn_comm *comm,
                      struct dnn_err *err);

/* ---- dataset_finish.c ---- */

int dnn_dataset_complete(struct dnn_dataset_writer *w, char hash[33],
                         struct dnn_err *err);
/* The checksum of name, fold and group of a sample; group NULL: none. */
uint64_t dnn_dataset_metadata_sum(const char *name, int32_t fold, const char *group);

#endif
